//! Reading JSON as Conductor's server does: what is unknown is passed over, and null where a number,
//! text, list or object stands is its default.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Null is the default of the type.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Null is 0. A number in text counts.
pub(crate) fn or_zero<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    let value = Value::deserialize(from)?;
    if value.is_null() {
        return Ok(0);
    }
    integer(&value).ok_or_else(|| serde::de::Error::custom(format!("{value} is not a number")))
}

/// A whole number, also one in text.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            // Truncated, as Jackson does.
            let float = number.as_f64()?;
            (float.abs() < 9e18).then_some(float as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A field as text; absent, null or of another type is empty.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A field as yes or no; absent, null or of another type is no.
pub(crate) fn flag(object: &Value, field: &str) -> bool {
    match object.get(field) {
        Some(Value::Bool(value)) => *value,
        Some(Value::String(text)) => text == "true",
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) | None => false,
    }
}

/// A field as an object; absent, null or of another type is `None`.
pub(crate) fn object<'a>(value: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    value.get(field).and_then(Value::as_object)
}

/// A field as a list; absent, null or of another type is empty.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A JSON object in text; empty is an empty one.
pub(crate) fn parse_object(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => object,
        Ok(_) | Err(_) => Map::new(),
    }
}
