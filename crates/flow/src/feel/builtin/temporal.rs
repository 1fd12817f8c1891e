//! The calendar.

use super::{Builtin, Result, metered, number, plain};
use crate::feel::evaluate::Machine;
use crate::feel::temporal::{Date, DateTime};
use crate::feel::value::Value;

const DATE: &[&[&str]] = &[&["date"]];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const TABLE: &[Builtin] = &[
    metered("now", &[&[]], now),
    metered("today", &[&[]], today),
    plain("day of year", DATE, |given| number(date_of(given)?.day_of_year())),
    plain("week of year", DATE, |given| number(date_of(given)?.week_of_year())),
    plain("day of week", DATE, |given| name(&DAYS, date_of(given)?.weekday())),
    plain("month of year", DATE, |given| name(&MONTHS, date_of(given)?.month)),
    plain("last day of month", DATE, |given| Some(Value::Date(date_of(given)?.last_of_month()))),
];

fn now(machine: &mut Machine<'_>, _arguments: &[Value]) -> Result {
    Ok(DateTime::from_milliseconds(machine.environment.now_ms).map(Value::DateTime))
}

fn today(machine: &mut Machine<'_>, _arguments: &[Value]) -> Result {
    let now = DateTime::from_milliseconds(machine.environment.now_ms);
    Ok(now.map(|now| Value::Date(now.date)))
}

fn date_of(arguments: &[Value]) -> Option<Date> {
    match arguments {
        [Value::Date(date)] => Some(*date),
        [Value::DateTime(date_time)] => Some(date_time.date),
        _ => None,
    }
}

/// The name of a place, counted from 1.
fn name(names: &[&str], place: u8) -> Option<Value> {
    names.get(usize::from(place).checked_sub(1)?).map(|name| Value::text(name))
}
