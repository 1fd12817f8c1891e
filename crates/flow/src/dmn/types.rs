//! The types that a model gives to outputs and parameters, as far as Camunda enforces them.

use crate::feel::Value;

use super::evaluation::Reason;

/// The value, if it is of a type. Null is of every type, and types that a model defines itself
/// hold every value.
pub(super) fn check(value: Value, type_name: Option<&str>) -> Result<Value, Reason> {
    let Some(type_name) = type_name else {
        return Ok(value);
    };
    let plain = type_name.strip_prefix("feel:").unwrap_or(type_name);
    let is_of_type = match plain {
        "string" => matches!(value, Value::Text(_)),
        "number" => matches!(value, Value::Number(_)),
        "boolean" => matches!(value, Value::Bool(_)),
        "time" => matches!(value, Value::Time(_)),
        "date" => matches!(value, Value::Date(_)),
        "dateTime" => matches!(value, Value::DateTime(_)),
        "dayTimeDuration" => matches!(value, Value::DaysDuration(_)),
        "yearMonthDuration" => matches!(value, Value::YearsDuration(_)),
        _ => true,
    };
    if is_of_type || value.is_null() {
        return Ok(value);
    }
    Err(Reason::WrongType { expected: plain.to_owned(), found: Reason::quote(&value) })
}
