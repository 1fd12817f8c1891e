//! A cursor is the sort values of an item, as a JSON list in base64. It means nothing outside a
//! search with the same order.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rusqlite::types::Value as Stored;

use crate::error::{HistoryError, Result};

/// Longer ones were not made by us.
const CURSOR_BYTES_MAX: usize = 1 << 20;

pub(super) fn encode(values: &[Stored]) -> String {
    let list = values.iter().map(|value| match value {
        Stored::Integer(number) => (*number).into(),
        Stored::Real(number) => (*number).into(),
        Stored::Text(text) => text.as_str().into(),
        Stored::Null | Stored::Blob(_) => serde_json::Value::Null,
    });
    STANDARD.encode(serde_json::Value::Array(list.collect()).to_string())
}

pub(super) fn decode(cursor: &str, len: usize) -> Result<Vec<Stored>> {
    if cursor.len() > CURSOR_BYTES_MAX {
        return Err(HistoryError::Cursor);
    }
    let bytes = STANDARD.decode(cursor).map_err(|_| HistoryError::Cursor)?;
    let list: Vec<serde_json::Value> =
        serde_json::from_slice(&bytes).map_err(|_| HistoryError::Cursor)?;
    if list.len() != len {
        return Err(HistoryError::Cursor);
    }
    let values = list.into_iter().map(|value| match value {
        serde_json::Value::Number(number) => {
            number.as_i64().map(Stored::Integer).ok_or(HistoryError::Cursor)
        }
        serde_json::Value::String(text) => Ok(Stored::Text(text)),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => Err(HistoryError::Cursor),
    });
    values.collect()
}
