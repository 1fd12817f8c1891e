//! The fields of a JSON object in their order, each value as it was written.
//!
//! Whoever changes one field of a message leaves the others, known or not, byte for byte.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// An object, one level deep.
#[derive(Debug)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Fields<'a> {
    /// Reads an object.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of a field; a null is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(key, _)| key == name);
        field.map(|(_, value)| &**value).filter(|value| *value != "null")
    }

    /// Sets a field to JSON: in its place, or at the end.
    pub fn set(&mut self, name: &str, json: String) {
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, value)) => *value = Cow::Owned(json),
            None => self.0.push((Cow::Owned(name.to_owned()), Cow::Owned(json))),
        }
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// Keeps the fields that are asked for.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|(key, _)| keep(key));
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The object, compact between its fields.
    #[must_use]
    pub fn to_json(&self) -> String {
        let length: usize = self.0.iter().map(|(key, value)| key.len() + value.len() + 6).sum();
        let mut text = String::with_capacity(length + 2);
        text.push('{');
        for (index, (key, value)) in self.0.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&quote(key));
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        text
    }
}

/// Text as a JSON string.
#[must_use]
pub fn quote(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, value)) =
            map.next_entry::<crate::protocol::message::Text<'de>, &'de RawValue>()?
        {
            fields.push((key.0, Cow::Borrowed(value.get())));
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_touched_stays_byte_for_byte() {
        let text = r#"{"b":1.50,"a":{ "x" : [1, 2] },"c\"d":null,"e":12345678901234567890123}"#;
        let mut fields = Fields::read(text).unwrap();
        assert_eq!(fields.to_json(), text);
        fields.set("a", "2".to_owned());
        fields.set("new", "3".to_owned());
        fields.remove("b");
        assert_eq!(fields.to_json(), r#"{"a":2,"c\"d":null,"e":12345678901234567890123,"new":3}"#);
        assert_eq!((fields.get("a"), fields.get("c\"d")), (Some("2"), None));
        assert!(Fields::read("[1]").is_err());
    }
}
