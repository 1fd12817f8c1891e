//! Looks at the shape of some records, on a thread of its own, and warns.
//!
//! The first records of each stream, then one in many. A schema that does not hold is the source's affair
//! (many do not): one warning for each stream and field, and nothing ever fails by it.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::observer::{Level, Observer};
use crate::process::Side;
use crate::protocol::catalog::Catalog;

/// Of each stream, from its beginning.
const FIRST_RECORDS: u32 = 50;
/// Behind these, one in so many.
const EVERY_RECORDS: u32 = 1_000;
/// Records that wait; further ones are not looked at.
const WAITING_MAX: usize = 64;
/// A larger record is not looked at.
const RECORD_BYTES_MAX: usize = 1 << 20;
/// After so many records that do not hold, a stream is not looked at any more.
const BAD_RECORDS_MAX: u32 = 10;
/// How deep objects are looked into.
const DEPTH_MAX: u32 = 6;

type Sample = (usize, Box<[u8]>);

/// The pump's side: picks.
#[derive(Debug)]
pub struct Sampler {
    seen: Vec<u32>,
    to: SyncSender<Sample>,
}

impl Sampler {
    /// With the other side of it.
    #[must_use]
    pub fn new(streams: usize) -> (Self, Receiver<Sample>) {
        let (to, from) = sync_channel(WAITING_MAX);
        (Self { seen: vec![0; streams], to }, from)
    }

    /// A record passes.
    pub fn pass(&mut self, stream: usize, data: &[u8]) {
        let Some(seen) = self.seen.get_mut(stream) else { return };
        *seen += 1;
        if *seen > FIRST_RECORDS {
            if *seen < FIRST_RECORDS + EVERY_RECORDS {
                return;
            }
            *seen = FIRST_RECORDS;
        }
        if data.len() <= RECORD_BYTES_MAX {
            let _ = self.to.try_send((stream, Box::from(data)));
        }
    }
}

/// The other side: looks, until the pump is gone.
pub fn run(catalog: &Catalog, observer: &dyn Observer, samples: &Receiver<Sample>) {
    let mut warned: FxHashSet<(usize, String)> = HashSet::default();
    let mut bad = vec![0u32; catalog.streams.len()];
    while let Ok((index, data)) = samples.recv() {
        let Some(stream) = catalog.streams.get(index) else { continue };
        let Some(bad) = bad.get_mut(index).filter(|bad| **bad < BAD_RECORDS_MAX) else { continue };
        let mut found = Vec::new();
        match serde_json::from_slice(&data) {
            Ok(value) => look(&stream.json_schema, &value, "", DEPTH_MAX, &mut found),
            Err(error) => found.push((String::new(), format!("data is no JSON: {error}"))),
        }
        *bad += u32::from(!found.is_empty());
        for (field, what) in found {
            if warned.insert((index, field)) {
                let text = format!("stream {}: {what}", stream.descriptor);
                observer.log(Some(Side::Source), Level::Warn, &text);
            }
        }
    }
}

/// Types and required fields, nothing else of JSON Schema.
fn look(schema: &Value, value: &Value, path: &str, depth: u32, found: &mut Vec<(String, String)>) {
    if !is_of_type(schema.get("type"), value) {
        let expected = schema.get("type").unwrap_or(&Value::Null);
        let what = format!("{} is {}, not {expected}", field(path), name(value));
        found.push((path.to_owned(), what));
        return;
    }
    let Value::Object(fields) = value else { return };
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if let Some(required) = required.as_str().filter(|name| !fields.contains_key(*name)) {
            let path = join(path, required);
            found.push((path.clone(), format!("{} is missing", field(&path))));
        }
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if depth == 0 {
        return;
    }
    for (key, value) in fields {
        if let Some(schema) = properties.get(key) {
            look(schema, value, &join(path, key), depth - 1, found);
        }
    }
}

fn is_of_type(expected: Option<&Value>, value: &Value) -> bool {
    match expected {
        Some(Value::String(one)) => is_one_of(one, value),
        Some(Value::Array(any)) => {
            any.iter().filter_map(Value::as_str).any(|one| is_one_of(one, value))
        }
        _ => true,
    }
}

fn is_one_of(expected: &str, value: &Value) -> bool {
    match expected {
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        other => other == name(value),
    }
}

fn name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn field(path: &str) -> String {
    if path.is_empty() { "data".to_owned() } else { format!("the field {path}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_and_required_fields() {
        let schema = json!({"type": "object", "required": ["id"], "properties": {
            "id": {"type": "integer"}, "name": {"type": ["null", "string"]},
            "in": {"type": "object", "properties": {"x": {"type": "number"}}}, "any": {}}});
        let cases = [
            (json!({"id": 1, "name": null, "in": {"x": 1.5}, "any": [1], "more": 1}), vec![]),
            (json!({"id": 1.0}), vec![]),
            (json!({"id": "1"}), vec!["the field id is string, not \"integer\""]),
            (json!({}), vec!["the field id is missing"]),
            (
                json!({"id": 1, "in": {"x": true}}),
                vec!["the field in.x is boolean, not \"number\""],
            ),
        ];
        for (value, expected) in cases {
            let mut found = Vec::new();
            look(&schema, &value, "", DEPTH_MAX, &mut found);
            let texts: Vec<&str> = found.iter().map(|(_, what)| what.as_str()).collect();
            assert_eq!(texts, expected, "{value}");
        }
    }

    #[test]
    fn some_records_are_picked() {
        let (mut sampler, from) = Sampler::new(1);
        let mut picked = Vec::new();
        for number in 0..FIRST_RECORDS + 2 * EVERY_RECORDS {
            sampler.pass(0, b"{}");
            picked.extend(from.try_iter().map(|_| number));
        }
        assert_eq!(picked.len(), 52);
    }
}
