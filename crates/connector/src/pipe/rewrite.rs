//! Records that do not go on as they came: under another name, or with some of their fields.

use std::collections::HashSet;

use rustc_hash::FxBuildHasher;
use serde_json::json;

use crate::protocol::catalog::Stream;
use crate::protocol::fields::Fields;
use crate::protocol::line::RecordLine;

/// What is changed in the records of a stream.
#[derive(Debug)]
pub struct Rewrite {
    name: String,
    namespace: Option<String>,
    /// Everything before the data, for records that have nothing unknown.
    head: String,
    selected: Option<HashSet<String, FxBuildHasher>>,
}

impl Rewrite {
    /// Nothing, if its records go on as they come.
    #[must_use]
    pub fn of(stream: &Stream) -> Option<Self> {
        if stream.mapped == stream.descriptor && stream.selected.is_none() {
            return None;
        }
        let name = json!(stream.mapped.name).to_string();
        let namespace = stream.mapped.namespace.as_ref().map(|text| json!(text).to_string());
        let inner = match &namespace {
            Some(namespace) => format!("\"namespace\":{namespace},\"stream\":{name}"),
            None => format!("\"stream\":{name}"),
        };
        Some(Self {
            head: format!("{{\"type\":\"RECORD\",\"record\":{{{inner},\"data\":"),
            selected: stream.selected.as_ref().map(|fields| fields.iter().cloned().collect()),
            name,
            namespace,
        })
    }

    /// The record as it goes on, with its line feed; nothing, if its fields cannot be told apart.
    #[must_use]
    pub fn apply(&self, line: &[u8], record: &RecordLine<'_>) -> Option<Vec<u8>> {
        if let (Some(emitted_at), None) = (record.emitted_at, &self.selected) {
            return Some(self.around(record.data, emitted_at));
        }
        let mut envelope = Fields::read(std::str::from_utf8(line).ok()?).ok()?;
        let inner = envelope.get("record")?.to_owned();
        let mut inner = Fields::read(&inner).ok()?;
        inner.set("stream", self.name.clone());
        match &self.namespace {
            Some(namespace) => inner.set("namespace", namespace.clone()),
            None => inner.remove("namespace"),
        }
        if let Some(selected) = &self.selected {
            let data = inner.get("data")?.to_owned();
            let mut data = Fields::read(&data).ok()?;
            data.retain(|field| selected.contains(field));
            inner.set("data", data.to_json());
        }
        envelope.set("record", inner.to_json());
        let mut bytes = envelope.to_json().into_bytes();
        bytes.push(b'\n');
        Some(bytes)
    }

    fn around(&self, data: &[u8], emitted_at: &[u8]) -> Vec<u8> {
        const MIDDLE: &[u8] = b",\"emitted_at\":";
        let length = self.head.len() + data.len() + MIDDLE.len() + emitted_at.len() + 3;
        let mut bytes = Vec::with_capacity(length);
        for piece in [self.head.as_bytes(), data, MIDDLE, emitted_at, b"}}\n"] {
            bytes.extend_from_slice(piece);
        }
        bytes
    }
}

/// Whether a record has none of the fields of its key: each of them is missing or null.
#[must_use]
pub fn lacks_key(data: &[u8], key: &[Vec<String>]) -> bool {
    if has_key_early(data, key) {
        return false;
    }
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(fields) = Fields::read(text) else { return false };
    key.iter().all(|path| lacks(&fields, path))
}

/// Keys mostly come first: looks through the fields up to the first one that is not simple, and is sure only if it
/// finds a part of the key there that is not null.
fn has_key_early(data: &[u8], key: &[Vec<String>]) -> bool {
    let mut rest = data.strip_prefix(b"{").unwrap_or_default();
    loop {
        let Some((name, after)) = simple_string(rest.trim_ascii_start()) else { return false };
        let Some(value) = after.trim_ascii_start().strip_prefix(b":") else { return false };
        let value = value.trim_ascii_start();
        let after = match value.first() {
            Some(b'"') => simple_string(value).map(|(_, after)| after),
            Some(b'{' | b'[') | None => None,
            Some(_) => memchr::memchr2(b',', b'}', value).and_then(|end| value.get(end..)),
        };
        let Some(after) = after else { return false };
        let is_key =
            |path: &Vec<String>| matches!(path.as_slice(), [one] if one.as_bytes() == name);
        if !value.starts_with(b"null") && key.iter().any(is_key) {
            return true;
        }
        let Some(next) = after.trim_ascii_start().strip_prefix(b",") else { return false };
        rest = next;
    }
}

/// A string without escapes at the beginning, and what stands behind it.
fn simple_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = bytes.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', inner)?;
    let (name, after) = inner.split_at_checked(end)?;
    Some((name, after.strip_prefix(b"\"")?))
}

fn lacks(fields: &Fields<'_>, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    let Some(value) = fields.get(first) else { return true };
    if rest.is_empty() {
        return false;
    }
    Fields::read(value).map_or(true, |inner| lacks(&inner, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::protocol::catalog::{Catalog, Mapping, NamespaceRule};
    use crate::protocol::line::{self, Line};

    fn stream(mapping: &Mapping, selected: Option<&[&str]>) -> Stream {
        let catalog = json!({"streams": [{"stream": {"name": "a", "namespace": "n"},
            "sync_mode": "full_refresh", "destination_sync_mode": "append"}]});
        let mut stream = Catalog::new(&catalog, mapping).unwrap().streams.remove(0);
        stream.selected = selected.map(|fields| fields.iter().map(|f| (*f).to_owned()).collect());
        stream
    }

    fn apply(rewrite: &Rewrite, line: &str) -> Value {
        let Line::Record(record) = line::read(line.as_bytes()) else { panic!("{line}") };
        let bytes = rewrite.apply(line.as_bytes(), &record).unwrap();
        assert_eq!(bytes.last(), Some(&b'\n'));
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn names_and_fields_change_and_the_rest_stays() {
        let rule = NamespaceRule::Custom("to_${SOURCE_NAMESPACE}".to_owned());
        let mapping = Mapping { namespace: rule, prefix: "p_".to_owned() };
        let names = Rewrite::of(&stream(&mapping, None)).unwrap();
        let both = Rewrite::of(&stream(&mapping, Some(&["x"]))).unwrap();
        let fast = r#"{"type":"RECORD","record":{"stream":"a","data":{"x":1.50,"y":2},"emitted_at":3,"namespace":"n"}}"#;
        let slow = r#"{"type":"RECORD","record":{"stream":"a","namespace":"n","data":{"x":1.50,"y":2},"emitted_at":3,"meta":{"changes":[]},"z":0},"w":1}"#;
        let expected = json!({"type": "RECORD", "record": {"namespace": "to_n", "stream": "p_a",
            "data": {"x": 1.5, "y": 2}, "emitted_at": 3}});
        assert_eq!(apply(&names, fast), expected);
        let sent = apply(&both, slow);
        assert_eq!(sent["record"]["data"], json!({"x": 1.5}));
        assert_eq!(sent["record"]["stream"], "p_a");
        assert_eq!((&sent["record"]["z"], &sent["w"]), (&json!(0), &json!(1)));
        assert_eq!(apply(&both, fast)["record"]["data"], json!({"x": 1.5}));
        assert!(Rewrite::of(&stream(&Mapping::default(), None)).is_none());
    }

    #[test]
    fn keys_that_are_missing_or_null() {
        let key = |paths: &[&[&str]]| -> Vec<Vec<String>> {
            paths.iter().map(|path| path.iter().map(|s| (*s).to_owned()).collect()).collect()
        };
        let cases: [(&str, &[&[&str]], bool); 11] = [
            (r#"{ "x" : "id" , "id" : 1 }"#, &[&["id"]], false),
            (r#"{"x":"\"","id":1}"#, &[&["id"]], false),
            (r#"{"x":"\",\"id\":1","y":1}"#, &[&["id"]], true),
            (r#"{"x":{"id":1},"id":null}"#, &[&["id"]], true),
            (r#"{"x":[1,2],"id":0}"#, &[&["id"]], false),
            (r#"{"id":1}"#, &[&["id"]], false),
            (r#"{"id":null}"#, &[&["id"]], true),
            (r#"{"x":1}"#, &[&["id"]], true),
            (r#"{"id":null,"b":1}"#, &[&["id"], &["b"]], false),
            (r#"{"a":{"id":2}}"#, &[&["a", "id"]], false),
            (r#"{"a":{"id":null}}"#, &[&["a", "id"]], true),
        ];
        for (data, paths, expected) in cases {
            assert_eq!(lacks_key(data.as_bytes(), &key(paths)), expected, "{data}");
        }
    }
}
