//! What can be taken of a value by name, apart from the entries of a context.

use rust_decimal::Decimal;

use super::temporal::{Date, DateTime, DaysDuration, Time, YearsDuration};
use super::value::{Range, Value};

/// A property of a value that is neither a context nor a list.
pub(crate) fn of(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Date(date) => of_date(*date, name),
        Value::Time(time) => of_time(time, time.offset(), name),
        Value::DateTime(date_time) => of_date_time(date_time, name),
        Value::DaysDuration(duration) => of_days(*duration, name),
        Value::YearsDuration(duration) => of_years(*duration, name),
        Value::Range(range) => of_range(range, name),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Text(_)
        | Value::List(_)
        | Value::Context(_)
        | Value::Function(_) => None,
    }
}

fn number(number: impl Into<Decimal>) -> Option<Value> {
    Some(Value::Number(number.into()))
}

fn of_date(date: Date, name: &str) -> Option<Value> {
    match name {
        "year" => number(date.year),
        "month" => number(date.month),
        "day" => number(date.day),
        "weekday" => number(date.weekday()),
        _ => None,
    }
}

fn of_time(time: &Time, offset: Option<i32>, name: &str) -> Option<Value> {
    match name {
        "hour" => number(time.hour),
        "minute" => number(time.minute),
        "second" => number(time.second),
        "time offset" => offset.map(|seconds| {
            Value::DaysDuration(DaysDuration { seconds: i64::from(seconds), nanoseconds: 0 })
        }),
        "timezone" => match &time.zone {
            Some(super::temporal::Zone::Named(zone)) => Some(Value::text(&zone.name)),
            Some(super::temporal::Zone::Offset(_)) | None => None,
        },
        _ => None,
    }
}

fn of_date_time(date_time: &DateTime, name: &str) -> Option<Value> {
    of_date(date_time.date, name).or_else(|| of_time(&date_time.time, date_time.offset(), name))
}

fn of_days(duration: DaysDuration, name: &str) -> Option<Value> {
    // Towards zero: the parts of a negative duration are negative.
    let seconds = i64::try_from(duration.total() / 1_000_000_000).ok()?;
    match name {
        "days" => number(seconds / 86_400),
        "hours" => number(seconds / 3_600 % 24),
        "minutes" => number(seconds / 60 % 60),
        "seconds" => number(seconds % 60),
        _ => None,
    }
}

fn of_years(duration: YearsDuration, name: &str) -> Option<Value> {
    match name {
        "years" => number(duration.months / 12),
        "months" => number(duration.months % 12),
        _ => None,
    }
}

fn of_range(range: &Range, name: &str) -> Option<Value> {
    match name {
        "start" => range.start.clone(),
        "end" => range.end.clone(),
        "start included" => Some(Value::Bool(range.start_included)),
        "end included" => Some(Value::Bool(range.end_included)),
        _ => None,
    }
}
