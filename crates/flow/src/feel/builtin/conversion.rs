//! Values from other values.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::{Builtin, Result, metered, plain};
use crate::feel::evaluate::Machine;
use crate::feel::node::Node;
use crate::feel::scan::Scanner;
use crate::feel::temporal::{self, Date, DateTime, Time, YearsDuration, Zone};
use crate::feel::value::{Range, Value};
use crate::feel::{Names, json, number, parse, text};

pub(super) const TABLE: &[Builtin] = &[
    plain("date", &[&["from"], &["year", "month", "day"]], date),
    plain(
        "time",
        &[&["from"], &["hour", "minute", "second"], &["hour", "minute", "second", "offset"]],
        time,
    ),
    plain("date and time", &[&["from"], &["date", "time"], &["date", "timezone"]], date_and_time),
    plain("duration", &[&["from"]], duration),
    plain("years and months duration", &[&["from", "to"]], years_and_months),
    plain(
        "number",
        &[
            &["from"],
            &["from", "grouping separator"],
            &["from", "grouping separator", "decimal separator"],
        ],
        to_number,
    ),
    metered("string", &[&["from"]], string),
    metered("to json", &[&["value"]], to_json),
    metered("from json", &[&["json"]], from_json),
    metered("range", &[&["from"]], range),
];

fn date(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [Value::Text(text)] => temporal::text::date(text).map(Value::Date),
        [Value::Date(date)] => Some(Value::Date(*date)),
        [Value::DateTime(date_time)] => Some(Value::Date(date_time.date)),
        [Value::Number(year), Value::Number(month), Value::Number(day)] => {
            let date = Date::new(year.to_i64()?, month.to_u8()?, day.to_u8()?)?;
            Some(Value::Date(date))
        }
        _ => None,
    }
}

fn time(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [Value::Text(text)] => temporal::text::time(text).map(Value::Time),
        [Value::Time(time)] => Some(Value::Time(time.clone())),
        [Value::DateTime(date_time)] => Some(Value::Time(date_time.time.clone())),
        [Value::Date(_)] => {
            Some(Value::Time(Time { zone: Some(Zone::Offset(0)), ..Time::midnight() }))
        }
        [hour, minute, second] => time_of(hour, minute, second).map(Value::Time),
        [hour, minute, second, Value::Null] => time_of(hour, minute, second).map(Value::Time),
        [hour, minute, second, Value::DaysDuration(offset)] => {
            let seconds = i32::try_from(offset.seconds).ok()?;
            if seconds.abs() > 18 * 3_600 {
                return None;
            }
            let time = time_of(hour, minute, second)?;
            Some(Value::Time(Time { zone: Some(Zone::Offset(seconds)), ..time }))
        }
        _ => None,
    }
}

fn time_of(hour: &Value, minute: &Value, second: &Value) -> Option<Time> {
    let (Value::Number(hour), Value::Number(minute), Value::Number(second)) =
        (hour, minute, second)
    else {
        return None;
    };
    let nanosecond = second.fract().checked_mul(Decimal::from(1_000_000_000))?.to_u32()?;
    Time::new(hour.to_u8()?, minute.to_u8()?, second.trunc().to_u8()?, nanosecond)
}

fn date_and_time(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [Value::Text(text)] => temporal::text::date_time(text).map(Value::DateTime),
        [Value::DateTime(date_time)] => Some(Value::DateTime(date_time.clone())),
        [Value::Date(date)] => {
            Some(Value::DateTime(DateTime { date: *date, time: Time::midnight() }))
        }
        [Value::DateTime(date_time), Value::Text(zone)] => {
            date_time.in_zone(temporal::text::zone_of_name(zone)?).map(Value::DateTime)
        }
        [date, Value::Time(time)] => {
            Some(Value::DateTime(DateTime { date: date.day()?, time: time.clone() }))
        }
        _ => None,
    }
}

fn duration(arguments: &[Value]) -> Option<Value> {
    match arguments {
        [Value::Text(text)] => temporal::text::duration(text),
        [value @ (Value::DaysDuration(_) | Value::YearsDuration(_))] => Some(value.clone()),
        _ => None,
    }
}

fn years_and_months(arguments: &[Value]) -> Option<Value> {
    let [from, to] = arguments else { return None };
    let months = from.day()?.months_until(to.day()?);
    Some(Value::YearsDuration(YearsDuration { months }))
}

fn to_number(arguments: &[Value]) -> Option<Value> {
    let (text, grouping, decimal) = match arguments {
        [Value::Number(number)] => return Some(Value::Number(*number)),
        [Value::Text(text)] => (text, &Value::Null, &Value::Null),
        [Value::Text(text), grouping] => (text, grouping, &Value::Null),
        [Value::Text(text), grouping, decimal] => (text, grouping, decimal),
        _ => return None,
    };
    let grouping = separator(grouping, &[" ", ",", "."])?;
    let decimal = separator(decimal, &[",", "."])?;
    if grouping.is_some() && grouping == decimal {
        return None;
    }
    let mut text = text.to_string();
    if let Some(grouping) = grouping {
        text = text.replace(grouping, "");
    }
    if let Some(decimal) = decimal {
        text = text.replace(decimal, ".");
    }
    number::parse(&text).map(Value::Number)
}

/// A separator that is allowed, or none given.
fn separator<'a>(value: &'a Value, allowed: &[&str]) -> Option<Option<&'a str>> {
    if value.is_null() {
        return Some(None);
    }
    let text: &str = value.as_text()?;
    allowed.contains(&text).then_some(Some(text))
}

fn string(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    match arguments {
        [Value::Null] => Ok(None),
        [Value::Text(text)] => Ok(Some(Value::Text(text.clone()))),
        [value] => {
            machine.look_at(value)?;
            Ok(Some(Value::text(&text::of(value))))
        }
        _ => Ok(None),
    }
}

fn to_json(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [value] = arguments else { return Ok(None) };
    machine.look_at(value)?;
    Ok(Some(Value::text(&value.to_json())))
}

fn from_json(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [Value::Text(text)] = arguments else { return Ok(None) };
    // A value of JSON takes up to a hundred times its text: `[0,0,...`.
    machine.spend(crate::feel::evaluate::size(text.len()) / 4)?;
    let Ok(value) = json::read(text) else { return Ok(None) };
    machine.allocate(value.weight())?;
    Ok(Some(value))
}

/// A range from its text; its ends have to be literals.
fn range(machine: &mut Machine<'_>, arguments: &[Value]) -> Result {
    let [Value::Text(text)] = arguments else { return Ok(None) };
    machine.spend(crate::feel::evaluate::size(text.len()))?;
    let text = text.trim();
    if !text.starts_with(['[', '(', ']']) {
        return Ok(None);
    }
    let parsed = parse::Parser::new(Scanner::new(text, &Names::default())).whole();
    let Ok(Node::Range(node)) = parsed else { return Ok(None) };
    let (Some(Node::Literal(start)), Some(Node::Literal(end))) = (&node.start, &node.end) else {
        return Ok(None);
    };
    if crate::feel::compare::order(start, end).is_none_or(std::cmp::Ordering::is_gt) {
        return Ok(None);
    }
    Ok(Some(Value::Range(std::sync::Arc::new(Range {
        start: Some(start.clone()),
        start_included: node.start_included,
        end: Some(end.clone()),
        end_included: node.end_included,
    }))))
}
