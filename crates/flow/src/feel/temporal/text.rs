//! Days, times and durations from text and to text.

use std::fmt::Write;

use super::{Date, DateTime, DaysDuration, NANOS_PER_SECOND, Time, YearsDuration, Zone};
use crate::feel::value::Value;

/// The value of `@"..."`: whatever the text looks like.
pub(crate) fn literal(text: &str) -> Option<Value> {
    if let Some(date) = date(text) {
        return Some(Value::Date(date));
    }
    if text.trim_start_matches('-').starts_with('P') {
        return duration(text);
    }
    if let Some(date_time) = date_time(text) {
        return Some(Value::DateTime(date_time));
    }
    time(text).map(Value::Time)
}

/// The value of `date("...")` and the like, where the text is known beforehand.
pub(crate) fn literal_of(function: &str, text: &str) -> Option<Value> {
    match function {
        "date" => date(text).map(Value::Date),
        "time" => time(text).map(Value::Time),
        "date and time" => date_time(text).map(Value::DateTime),
        "duration" => duration(text),
        _ => None,
    }
}

/// `2024-02-29`: four to nine digits of year, without needless zeros.
pub(crate) fn date(text: &str) -> Option<Date> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    let (year, rest) = unsigned.split_once('-')?;
    let (month, day) = rest.split_once('-')?;
    if !(4..=9).contains(&year.len()) || (year.len() > 4 && year.starts_with('0')) {
        return None;
    }
    let year = i64::from(digits(year, year.len())?);
    let year = if negative { -year } else { year };
    let month = u8::try_from(digits(month, 2)?).ok()?;
    Date::new(year, month, u8::try_from(digits(day, 2)?).ok()?)
}

/// `T10:30:00.5+01:00`: seconds, fraction and place may be missing.
pub(crate) fn time(text: &str) -> Option<Time> {
    let text = text.strip_prefix('T').unwrap_or(text);
    let hour = u8::try_from(digits(text.get(..2)?, 2)?).ok()?;
    let rest = text.get(2..)?.strip_prefix(':')?;
    let minute = u8::try_from(digits(rest.get(..2)?, 2)?).ok()?;
    let mut rest = rest.get(2..)?;
    let mut second = 0;
    let mut nanosecond = 0;
    if let Some(behind) = rest.strip_prefix(':') {
        second = u8::try_from(digits(behind.get(..2)?, 2)?).ok()?;
        rest = behind.get(2..)?;
        if let Some(behind) = rest.strip_prefix('.') {
            let length = behind.find(|found: char| !found.is_ascii_digit()).unwrap_or(behind.len());
            nanosecond = fraction(behind.get(..length)?)?;
            rest = behind.get(length..)?;
        }
    }
    let zone = if rest.is_empty() { None } else { Some(zone(rest)?) };
    Some(Time { zone, ..Time::new(hour, minute, second, nanosecond)? })
}

/// A day, `T` and a time; a day alone is its midnight.
pub(crate) fn date_time(text: &str) -> Option<DateTime> {
    match text.split_once('T') {
        None => Some(DateTime { date: date(text)?, time: Time::midnight() }),
        Some((_, behind)) if behind.starts_with('T') => None,
        Some((before, behind)) => match behind.strip_prefix("24:00:00") {
            // The end of a day is the start of the next.
            Some(zone) => {
                let date = Date::from_days(date(before)?.days() + 1)?;
                Some(DateTime { date, time: time(&format!("00:00:00{zone}"))? })
            }
            None => Some(DateTime { date: date(before)?, time: time(behind)? }),
        },
    }
}

/// Either kind of duration.
pub(crate) fn duration(text: &str) -> Option<Value> {
    if let Some(months) = months(text) {
        return Some(Value::YearsDuration(YearsDuration { months }));
    }
    nanoseconds(text).and_then(DaysDuration::from_total).map(Value::DaysDuration)
}

/// `Z`, `+01:00`, `@Europe/Berlin`, or both of the last two.
fn zone(text: &str) -> Option<Zone> {
    if let Some(name) = text.strip_prefix('@') {
        return zone_of_name(name);
    }
    if text == "Z" || text == "z" {
        return Some(Zone::Offset(0));
    }
    if let Some((_, name)) = text.split_once('[') {
        return zone_of_name(name.strip_suffix(']')?);
    }
    offset(text).map(Zone::Offset)
}

/// A region, or an offset where a region could stand.
pub(crate) fn zone_of_name(name: &str) -> Option<Zone> {
    if name == "Z" {
        return Some(Zone::Offset(0));
    }
    if name.starts_with(['+', '-']) {
        return offset(name).map(Zone::Offset);
    }
    Zone::named(name)
}

fn offset(text: &str) -> Option<i32> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-'])?;
    let hours = digits(unsigned.get(..2)?, 2)?;
    let rest = unsigned.get(2..)?.strip_prefix(':')?;
    let minutes = digits(rest.get(..2)?, 2)?;
    let seconds = match rest.get(2..)?.strip_prefix(':') {
        Some(seconds) => digits(seconds, 2)?,
        None if rest.len() == 2 => 0,
        None => return None,
    };
    let total = i32::try_from(hours * 3_600 + minutes * 60 + seconds).ok()?;
    let exists = minutes < 60 && seconds < 60 && total <= 18 * 3_600;
    exists.then_some(if negative { -total } else { total })
}

/// A number of exactly so many digits.
fn digits(text: &str, length: usize) -> Option<u32> {
    let only_digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    if only_digits { text.parse().ok() } else { None }
}

/// Nanoseconds of the digits behind a point; what is finer is cut off.
fn fraction(digits: &str) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    let kept = digits.get(..9).unwrap_or(digits);
    let scale = u32::try_from(9 - kept.len()).ok()?;
    kept.parse::<u32>().ok()?.checked_mul(10_u32.checked_pow(scale)?)
}

/// The parts of a duration, such as `1Y` and `-2M`, in the order of `units`.
fn parts<'a>(text: &'a str, units: &[char]) -> Option<Vec<(&'a str, char)>> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut units = units.iter();
    while !rest.is_empty() {
        let end = rest.find(|found: char| found.is_ascii_alphabetic())?;
        let unit = rest.get(end..)?.chars().next()?;
        units.find(|known| **known == unit)?;
        let number = rest.get(..end)?;
        if number.trim_start_matches('-').is_empty() {
            return None;
        }
        parts.push((number, unit));
        rest = rest.get(end + 1..)?;
    }
    Some(parts)
}

fn unsigned_duration(text: &str) -> Option<(i64, &str)> {
    match text.strip_prefix('-') {
        Some(rest) => Some((-1, rest.strip_prefix('P')?)),
        None => Some((1, text.strip_prefix('P')?)),
    }
}

fn months(text: &str) -> Option<i64> {
    let (sign, rest) = unsigned_duration(text)?;
    let parts = parts(rest, &['Y', 'M'])?;
    if parts.is_empty() {
        return None;
    }
    let mut months = 0_i64;
    for (number, unit) in parts {
        let number: i64 = number.parse().ok()?;
        let factor = if unit == 'Y' { 12 } else { 1 };
        months = months.checked_add(number.checked_mul(factor)?)?;
    }
    months.checked_mul(sign)
}

fn nanoseconds(text: &str) -> Option<i128> {
    let (sign, rest) = unsigned_duration(text)?;
    let (days, clock) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((days, clock)) => (days, clock),
        None => (rest, ""),
    };
    let mut all = parts(days, &['D'])?;
    all.extend(parts(clock, &['H', 'M', 'S'])?);
    if all.is_empty() {
        return None;
    }
    let mut total = 0_i128;
    for (number, unit) in all {
        let (whole, behind) = match number.split_once('.') {
            Some((whole, behind)) if unit == 'S' => (whole, fraction_or_none(behind)?),
            Some(_) => return None,
            None => (number, 0),
        };
        let whole: i64 = whole.parse().ok()?;
        let factor = match unit {
            'D' => 86_400,
            'H' => 3_600,
            'M' => 60,
            _ => 1,
        };
        let behind = if number.starts_with('-') { -behind } else { behind };
        total += i128::from(whole) * factor * i128::from(NANOS_PER_SECOND) + behind;
    }
    Some(total * i128::from(sign))
}

fn fraction_or_none(digits: &str) -> Option<i128> {
    if digits.is_empty() {
        return Some(0);
    }
    let only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    if only_digits { fraction(digits).map(i128::from) } else { None }
}

/// Writing to a `String` cannot fail.
const WRITTEN: &str = "a string takes what is written to it";

pub(crate) fn write_date(date: Date, text: &mut String) {
    let sign = if date.year < 0 { "-" } else { "" };
    let year = date.year.unsigned_abs();
    write!(text, "{sign}{year:04}-{:02}-{:02}", date.month, date.day).expect(WRITTEN);
}

pub(crate) fn write_time(time: &Time, text: &mut String) {
    write!(text, "{:02}:{:02}:{:02}", time.hour, time.minute, time.second).expect(WRITTEN);
    write_fraction(time.nanosecond, text);
    match &time.zone {
        None => {}
        Some(Zone::Offset(0)) => text.push('Z'),
        Some(Zone::Offset(offset)) => {
            let sign = if *offset < 0 { '-' } else { '+' };
            let seconds = offset.unsigned_abs();
            write!(text, "{sign}{:02}:{:02}", seconds / 3_600, seconds / 60 % 60).expect(WRITTEN);
            if !seconds.is_multiple_of(60) {
                write!(text, ":{:02}", seconds % 60).expect(WRITTEN);
            }
        }
        Some(Zone::Named(zone)) => write!(text, "@{}", zone.name).expect(WRITTEN),
    }
}

impl Time {
    /// This time as others read it: with an offset, and without the name of a region.
    pub(crate) fn to_iso(&self) -> String {
        let mut text = String::new();
        write_time(&Time { zone: self.offset().map(Zone::Offset), ..self.clone() }, &mut text);
        text
    }
}

impl DateTime {
    /// This point in time as others read it: with an offset, and the region behind it in brackets.
    pub(crate) fn to_iso(&self) -> String {
        let mut text = String::new();
        let zone = self.offset().map(Zone::Offset);
        let time = Time { zone, ..self.time.clone() };
        write_date_time(&DateTime { date: self.date, time }, &mut text);
        if let Some(Zone::Named(zone)) = &self.time.zone {
            text.push('[');
            text.push_str(&zone.name);
            text.push(']');
        }
        text
    }
}

pub(crate) fn write_date_time(date_time: &DateTime, text: &mut String) {
    write_date(date_time.date, text);
    text.push('T');
    write_time(&date_time.time, text);
}

pub(crate) fn write_months(duration: YearsDuration, text: &mut String) {
    if duration.months == 0 {
        text.push_str("P0Y");
        return;
    }
    let months = duration.months.unsigned_abs();
    text.push_str(if duration.months < 0 { "-P" } else { "P" });
    write_part(months / 12, 'Y', text);
    write_part(months % 12, 'M', text);
}

pub(crate) fn write_days(duration: DaysDuration, text: &mut String) {
    let total = duration.total();
    if total == 0 {
        text.push_str("P0D");
        return;
    }
    text.push_str(if total < 0 { "-P" } else { "P" });
    let second = u128::from(NANOS_PER_SECOND.unsigned_abs());
    let seconds = u64::try_from(total.unsigned_abs() / second).unwrap_or(u64::MAX);
    let nanoseconds = u32::try_from(total.unsigned_abs() % second).unwrap_or(0);
    write_part(seconds / 86_400, 'D', text);
    if seconds.is_multiple_of(86_400) && nanoseconds == 0 {
        return;
    }
    text.push('T');
    write_part(seconds / 3_600 % 24, 'H', text);
    write_part(seconds / 60 % 60, 'M', text);
    if !seconds.is_multiple_of(60) || nanoseconds > 0 {
        write!(text, "{}", seconds % 60).expect(WRITTEN);
        write_fraction(nanoseconds, text);
        text.push('S');
    }
}

fn write_part(number: u64, unit: char, text: &mut String) {
    if number > 0 {
        write!(text, "{number}{unit}").expect(WRITTEN);
    }
}

fn write_fraction(nanoseconds: u32, text: &mut String) {
    if nanoseconds > 0 {
        let digits = format!("{nanoseconds:09}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
}
