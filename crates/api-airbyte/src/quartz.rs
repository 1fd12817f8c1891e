//! Quartz's cron, as connections have it, in the words of the engine's: `second minute hour day-of-month
//! month day-of-week [year] [zone]`. Days of the week count from 1, Sunday; one of the day fields is `?`;
//! ranges may go over the end. Of the seconds only the first counts: what a connection does is not
//! started twice in a minute.

use jiff::civil::date;
use jiff::tz::TimeZone;
use windlass_record::schedule::{ScheduleTime, ScheduleTimes};

/// Why a text is no schedule, as a sentence.
pub(crate) type Wrong = String;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The numbers of a field, and the names that the first of them have.
#[derive(Clone, Copy)]
struct Range {
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

const SECONDS: Range = Range { first: 0, last: 59, names: &[] };
const HOURS: Range = Range { first: 0, last: 23, names: &[] };
const DAYS: Range = Range { first: 1, last: 31, names: &[] };
const OF_YEAR: Range = Range { first: 1, last: 12, names: &MONTHS };
const OF_WEEK: Range = Range { first: 1, last: 7, names: &WEEKDAYS };
const YEARS: Range = Range { first: 1970, last: 2199, names: &[] };

/// Reads an expression.
pub(crate) fn times(text: &str) -> Result<ScheduleTimes, Wrong> {
    let wrong = |what: String| format!("'{text}' is not a Quartz cron expression: {what}");
    let mut fields: Vec<String> = text.split_whitespace().map(str::to_uppercase).collect();
    let zone = zone_of(text, &mut fields).map_err(wrong)?;
    let [second, minute, hour, day, month, weekday, year @ ..] = fields.as_slice() else {
        return Err(wrong("it has six or seven fields, the first is the second".to_owned()));
    };
    let (day, weekday) = days(day, weekday).map_err(wrong)?;
    let first = numbers(second, SECONDS).map_err(wrong)?;
    let first = first.first().copied().unwrap_or(0);
    let list = |text: &str, range| field(text, range).map_err(wrong);
    let expression = format!(
        "{first} {} {} {day} {} {weekday}",
        list(minute, SECONDS)?,
        list(hour, HOURS)?,
        list(month, OF_YEAR)?,
    );
    let (starts_ms, ends_ms) = match year {
        [] => (None, None),
        [year] => bounds(year, &zone).map_err(wrong)?,
        _ => return Err(wrong("it has too many fields".to_owned())),
    };
    let time = ScheduleTime { expression: expression.into(), zone: zone.into() };
    Ok(ScheduleTimes { expressions: vec![time], starts_ms, ends_ms })
}

/// A zone may stand behind the fields.
fn zone_of(text: &str, fields: &mut Vec<String>) -> Result<String, Wrong> {
    let last = text.split_whitespace().last().unwrap_or_default();
    let is_zone =
        fields.len() > 6 && last.chars().next().is_some_and(char::is_alphabetic) && last.len() > 1;
    if !is_zone {
        return Ok("UTC".to_owned());
    }
    fields.pop();
    TimeZone::get(last).map_err(|_| format!("no zone is called {last}"))?;
    Ok(last.to_owned())
}

/// The fields of the days: both are looked at by the engine, one of them says something.
fn days(day: &str, weekday: &str) -> Result<(String, String), Wrong> {
    let is_open = |text: &str| matches!(text, "?" | "*");
    if !is_open(day) && !is_open(weekday) {
        return Err("one of day-of-month and day-of-week must be ?".to_owned());
    }
    let month_days = if is_open(day) { "*".to_owned() } else { month_days(day)? };
    let weekdays = if is_open(weekday) { "*".to_owned() } else { weekdays(weekday)? };
    Ok((month_days, weekdays))
}

fn month_days(text: &str) -> Result<String, Wrong> {
    let items: Result<Vec<String>, Wrong> = text.split(',').map(month_day).collect();
    Ok(items?.join(","))
}

fn month_day(item: &str) -> Result<String, Wrong> {
    if matches!(item, "L" | "LW") {
        return Ok(item.to_owned());
    }
    if let Some(days) = item.strip_prefix("L-") {
        return Ok(format!("L-{}", number(days, Range { last: 30, ..DAYS })?));
    }
    match item.strip_suffix('W') {
        Some(day) => Ok(format!("{}W", number(day, DAYS)?)),
        None => field(item, DAYS),
    }
}

/// From days that count from 1, Sunday, to days that count from 0.
fn weekdays(text: &str) -> Result<String, Wrong> {
    let items: Result<Vec<String>, Wrong> = text.split(',').map(weekday).collect();
    Ok(items?.join(","))
}

fn weekday(item: &str) -> Result<String, Wrong> {
    if item == "L" {
        // The last day of a week that begins on Sunday.
        return Ok("6".to_owned());
    }
    if let Some((day, nth)) = item.split_once('#') {
        let nth = number(nth, Range { first: 1, last: 5, names: &[] })?;
        return Ok(format!("{}#{nth}", number(day, OF_WEEK)? - 1));
    }
    if let Some(day) = item.strip_suffix('L').filter(|day| !day.is_empty()) {
        return Ok(format!("{}L", number(day, OF_WEEK)? - 1));
    }
    let days = numbers(item, OF_WEEK)?;
    Ok(days.iter().map(|day| (day - 1).to_string()).collect::<Vec<_>>().join(","))
}

/// A field as a list of numbers, or `*`.
fn field(text: &str, range: Range) -> Result<String, Wrong> {
    let numbers = numbers(text, range)?;
    let all = usize::try_from(range.last - range.first + 1).unwrap_or(usize::MAX);
    if numbers.len() == all {
        return Ok("*".to_owned());
    }
    Ok(numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
}

/// The numbers of a field, in order.
fn numbers(text: &str, range: Range) -> Result<Vec<u32>, Wrong> {
    let mut found = std::collections::BTreeSet::new();
    for item in text.split(',') {
        let (span, step) = match item.split_once('/') {
            Some((span, step)) => {
                let last = range.last;
                (span, Some(number(step, Range { first: 1, last, names: &[] })?))
            }
            None => (item, None),
        };
        let (from, to) = match span {
            "*" => (range.first, range.last),
            "" if step.is_some() => (range.first, range.last),
            _ => match span.split_once('-') {
                Some((from, to)) => (number(from, range)?, number(to, range)?),
                None if step.is_some() => (number(span, range)?, range.last),
                None => {
                    let one = number(span, range)?;
                    (one, one)
                }
            },
        };
        let size = range.last - range.first + 1;
        let length = if from <= to { to - from } else { to + size - from };
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1);
        let each = (0..=length).step_by(step);
        found.extend(each.map(|by| (from - range.first + by) % size + range.first));
    }
    Ok(found.into_iter().collect())
}

fn number(text: &str, range: Range) -> Result<u32, Wrong> {
    let named = range.names.iter().zip(range.first..).find(|(name, _)| **name == text);
    if let Some((_, number)) = named {
        return Ok(number);
    }
    let number = text.parse().ok().filter(|number| (range.first..=range.last).contains(number));
    number.ok_or_else(|| format!("'{text}' is not a number from {} to {}", range.first, range.last))
}

/// The first and the last moment of the years. Years with others between them are not understood.
fn bounds(text: &str, zone: &str) -> Result<(Option<u64>, Option<u64>), Wrong> {
    let years = numbers(text, YEARS)?;
    let (Some(&first), Some(&last)) = (years.first(), years.last()) else {
        return Ok((None, None));
    };
    if text == "*" {
        return Ok((None, None));
    }
    if usize::try_from(last - first + 1).ok() != Some(years.len()) {
        return Err("only years in a row are understood".to_owned());
    }
    let begin = |year: u32| {
        let year = i16::try_from(year).ok()?;
        let begin = date(year, 1, 1).in_tz(zone).ok()?;
        u64::try_from(begin.timestamp().as_millisecond()).ok()
    };
    let (Some(from), Some(to)) = (begin(first), begin(last + 1)) else {
        return Err("its years are out of range".to_owned());
    };
    Ok((Some(from), Some(to - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_said_in_the_engines_words() {
        for (quartz, ours) in [
            ("0 0 12 * * ?", "0 0 12 * * *"),
            ("0 0 12 * * *", "0 0 12 * * *"),
            ("0 15 10 ? * 6L", "0 15 10 * * 5L"),
            ("0 15 10 ? * 6#3", "0 15 10 * * 5#3"),
            ("0 15 10 ? * FRI#3", "0 15 10 * * 5#3"),
            ("0 15 10 ? * MON-FRI", "0 15 10 * * 1,2,3,4,5"),
            ("0 15 10 ? * 1", "0 15 10 * * 0"),
            ("0 15 10 ? * 7", "0 15 10 * * 6"),
            ("0 15 10 ? * L", "0 15 10 * * 6"),
            ("0 15 10 ? * fri-mon", "0 15 10 * * 0,1,5,6"),
            ("0 0/20 14,18 L-3 * ?", "0 0,20,40 14,18 L-3 * *"),
            ("0 0 22-1 15W JAN,mar ?", "0 0 0,1,22,23 15W 1,3 *"),
            ("0/10 * * * * ?", "0 * * * * *"),
            ("30,45 5 * LW * ?", "30 5 * LW * *"),
            ("0 /20 0 * * ?", "0 0,20,40 0 * * *"),
            ("0 0 */6 1/10 * ?", "0 0 0,6,12,18 1,11,21,31 * *"),
            ("0 0 0 * * ? *", "0 0 0 * * *"),
        ] {
            let times = times(quartz).unwrap_or_else(|wrong| panic!("{wrong}"));
            assert_eq!(&*times.expressions[0].expression, ours, "{quartz}");
            assert_eq!(&*times.expressions[0].zone, "UTC");
            assert_eq!((times.starts_ms, times.ends_ms), (None, None));
        }
    }

    #[test]
    fn a_zone_and_years_may_follow() {
        let berlin = times("0 0 6 * * ? Europe/Berlin").unwrap();
        assert_eq!(&*berlin.expressions[0].zone, "Europe/Berlin");
        let years = times("0 0 6 * * ? 2026-2027 UTC").unwrap();
        assert_eq!(years.starts_ms, Some(1_767_225_600_000));
        assert_eq!(years.ends_ms, Some(1_830_297_599_999));
    }

    #[test]
    fn what_is_none_is_refused() {
        for wrong in [
            "",
            "* * * * *",
            "0 0 0 1 * 2",
            "0 60 0 * * ?",
            "0 0 0 * * ? 2026,2028",
            "0 0 0 * * ? Nowhere/Town",
            "0 0 0 ? * 8",
            "0 0 0 ? * 0",
            "0 0 0 ? * 2#6",
            "0 0 0 32 * ?",
            "0 0/0 0 * * ?",
            "0 5, 0 * * ?",
            "0 0 , * * ?",
            "0 0 0 15, * ?",
            "0 0 0 L-L-3 * ?",
            "0 0 0 ? * MON,",
            "0 0 0 * * ? 2026,",
            "x 0 0 * * ?",
            "0 0 0 * * ? 2026 UTC x",
        ] {
            let said = times(wrong).expect_err(wrong);
            assert!(said.contains("is not a Quartz cron expression"), "{said}");
        }
    }
}
