//! JSON as this wire carries it: objects in strings.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use tonic::Status;
use windlass_record::command::Bytes;

/// No variables.
const EMPTY: &str = "{}";

/// Variables that a client sent. Nothing, blanks and `null` are no variables.
pub(crate) fn variables(given: &str) -> Result<Bytes, Status> {
    let text = given.trim();
    if text.is_empty() || text == "null" {
        return Ok(Arc::default());
    }
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(Status::invalid_argument(format!(
            "Property 'variables' is invalid: Invalid JSON value: {error}"
        )));
    }
    let kind = match text.as_bytes().first() {
        Some(b'{') => return Ok(Arc::from(text.as_bytes())),
        Some(b'[') => "ARRAY",
        Some(b'"') => "STRING",
        Some(b't' | b'f') => "BOOLEAN",
        Some(_) | None if text.contains(['.', 'e', 'E']) => "FLOAT",
        Some(_) | None => "INTEGER",
    };
    Err(Status::invalid_argument(format!(
        "Property 'variables' is invalid: Expected document to be a root level object, but was \
         '{kind}'"
    )))
}

/// Which variables a worker wants to see.
#[derive(Debug)]
pub(crate) enum Fetch {
    All,
    Named(HashSet<String>),
}

impl Fetch {
    /// No names are all of them.
    pub(crate) fn new(names: Vec<String>) -> Fetch {
        if names.is_empty() { Fetch::All } else { Fetch::Named(names.into_iter().collect()) }
    }

    /// The wanted variables among `payload`'s, in their order. A payload that is no JSON object
    /// was not made for this wire and goes as it is.
    pub(crate) fn of(&self, payload: &[u8]) -> String {
        if payload.is_empty() {
            return EMPTY.to_owned();
        }
        let text = String::from_utf8_lossy(payload);
        match self {
            Fetch::All => text.into_owned(),
            Fetch::Named(names) => {
                let mut reader = serde_json::Deserializer::from_str(&text);
                let picked = Pick { names }.deserialize(&mut reader);
                picked.unwrap_or_else(|_| text.into_owned())
            }
        }
    }

    /// The wanted ones among names and their JSON values, as an object.
    pub(crate) fn among(&self, variables: &[(Arc<str>, Arc<str>)]) -> String {
        let wanted = |name: &str| match self {
            Fetch::All => true,
            Fetch::Named(names) => names.contains(name),
        };
        let mut object = Object::new();
        for (name, value) in variables.iter().filter(|(name, _)| wanted(name)) {
            object.put(name, value);
        }
        object.end()
    }
}

/// An object as it is written.
struct Object(String);

impl Object {
    fn new() -> Object {
        Object(String::from("{"))
    }

    fn put(&mut self, name: &str, value: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&serde_json::Value::from(name).to_string());
        self.0.push(':');
        self.0.push_str(value);
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Metadata of a job, as the client wants it: a JSON object.
pub(crate) fn headers(headers: &[u8]) -> String {
    Fetch::All.of(headers)
}

/// Writes the members of an object that have one of the names.
struct Pick<'n> {
    names: &'n HashSet<String>,
}

impl<'de> DeserializeSeed<'de> for Pick<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<String, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Pick<'_> {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<String, A::Error> {
        let mut picked = Object::new();
        while let Some(name) = members.next_key::<String>()? {
            if !self.names.contains(&name) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = members.next_value::<&RawValue>()?;
            picked.put(&name, value.get());
        }
        Ok(picked.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_an_object_or_nothing() {
        for (given, expected) in [
            ("", Some("")),
            (" \n", Some("")),
            ("null", Some("")),
            ("{}", Some("{}")),
            (" {\"a\":1} ", Some("{\"a\":1}")),
            ("[]", None),
            ("1", None),
            ("\"{}\"", None),
            ("{", None),
            ("{} {}", None),
            ("{\"a\":}", None),
        ] {
            let read = variables(given);
            let read = read.as_ref().map(|bytes| std::str::from_utf8(bytes).unwrap()).ok();
            assert_eq!(read, expected, "{given:?}");
        }
    }

    #[test]
    fn named_variables_keep_order_and_text() {
        let payload = br#"{"b": 1.50, "a\"b": [ {} ], "c": null, "d": 3}"#;
        let names = |names: &[&str]| Fetch::new(names.iter().map(|n| (*n).to_owned()).collect());
        for (fetch, expected) in [
            (names(&["d", "b"]), r#"{"b":1.50,"d":3}"#),
            (names(&["a\"b"]), r#"{"a\"b":[ {} ]}"#),
            (names(&["x"]), "{}"),
            (names(&["x", "c"]), r#"{"c":null}"#),
        ] {
            assert_eq!(fetch.of(payload), expected);
        }
        assert_eq!(names(&["x"]).of(b""), "{}");
        assert_eq!(names(&["x"]).of(b"[1]"), "[1]");
        assert_eq!(names(&[]).of(payload).as_bytes(), payload);
    }
}
