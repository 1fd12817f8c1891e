//! Whether values are equal, and which comes first.

use std::cmp::Ordering;

use super::temporal::{DateTime, Time};
use super::value::{Context, Range, Value};

/// Whether two values are equal; `None` if they are of kinds that cannot be compared.
pub(crate) fn equality(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Null, other) | (other, Value::Null) => Some(other.is_null()),
        (Value::Number(left), Value::Number(right)) => Some(left == right),
        (Value::Bool(left), Value::Bool(right)) => Some(left == right),
        (Value::Text(left), Value::Text(right)) => Some(left == right),
        (Value::Date(left), Value::Date(right)) => Some(left == right),
        (Value::Time(left), Value::Time(right)) => {
            Some(time_order(left, right)? == Ordering::Equal)
        }
        (Value::DateTime(left), Value::DateTime(right)) => {
            Some(date_time_order(left, right)? == Ordering::Equal)
        }
        (Value::DaysDuration(left), Value::DaysDuration(right)) => Some(left == right),
        (Value::YearsDuration(left), Value::YearsDuration(right)) => Some(left == right),
        (Value::List(left), Value::List(right)) => Some(
            left.len() == right.len() && left.iter().zip(right.iter()).all(|(a, b)| same(a, b)),
        ),
        (Value::Context(left), Value::Context(right)) => Some(contexts_equal(left, right)),
        (Value::Range(left), Value::Range(right)) => Some(ranges_equal(left, right)),
        _ => None,
    }
}

/// Whether two values are equal; values that cannot be compared are not.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    equality(left, right) == Some(true)
}

/// Which value comes first; `None` if they are not two values of one ordered kind.
pub(crate) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Date(left), Value::Date(right)) => Some(left.cmp(right)),
        (Value::Time(left), Value::Time(right)) => time_order(left, right),
        (Value::DateTime(left), Value::DateTime(right)) => date_time_order(left, right),
        (Value::DaysDuration(left), Value::DaysDuration(right)) => Some(left.cmp(right)),
        (Value::YearsDuration(left), Value::YearsDuration(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Whether a value lies in a range; `None` if it cannot be compared with its ends.
pub(crate) fn in_range(value: &Value, range: &Range) -> Option<bool> {
    let from_start = match &range.start {
        None => true,
        Some(start) => match order(value, start)? {
            Ordering::Less => false,
            Ordering::Equal => range.start_included,
            Ordering::Greater => true,
        },
    };
    let to_end = match &range.end {
        None => true,
        Some(end) => match order(value, end)? {
            Ordering::Less => true,
            Ordering::Equal => range.end_included,
            Ordering::Greater => false,
        },
    };
    Some(from_start && to_end)
}

fn contexts_equal(left: &Context, right: &Context) -> bool {
    left.len() == right.len()
        && left
            .entries()
            .iter()
            .all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
}

fn ranges_equal(left: &Range, right: &Range) -> bool {
    let ends_equal = |left: &Option<Value>, right: &Option<Value>| match (left, right) {
        (None, None) => true,
        (Some(left), Some(right)) => same(left, right),
        (None, Some(_)) | (Some(_), None) => false,
    };
    left.start_included == right.start_included
        && left.end_included == right.end_included
        && ends_equal(&left.start, &right.start)
        && ends_equal(&left.end, &right.end)
}

/// Times with and without a place in the world cannot be compared.
fn time_order(left: &Time, right: &Time) -> Option<Ordering> {
    match (left.offset(), right.offset()) {
        (None, None) => Some(left.nanoseconds_of_day().cmp(&right.nanoseconds_of_day())),
        (Some(here), Some(there)) => {
            let at = |time: &Time, offset: i32| {
                time.nanoseconds_of_day() - i64::from(offset) * 1_000_000_000
            };
            Some(at(left, here).cmp(&at(right, there)))
        }
        (None, Some(_)) | (Some(_), None) => None,
    }
}

fn date_time_order(left: &DateTime, right: &DateTime) -> Option<Ordering> {
    if left.time.zone.is_some() != right.time.zone.is_some() {
        return None;
    }
    Some(left.instant().cmp(&right.instant()))
}
