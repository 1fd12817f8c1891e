//! Cron with seconds, as Spring reads it: `second minute hour day-of-month month day-of-week`.
//!
//! Fields are `*`, numbers, names (`JAN`, `MON`), ranges `a-b`, steps `/n` and lists of them. A day
//! must match both day fields. `?` is `*`. Of days: `L` the last of the month, `L-3` the third
//! before it, `15W` the weekday nearest to the 15th, `LW` the last weekday, `5L` the last Friday,
//! `5#2` the second Friday. Sunday is 0 and 7. The macros are `@yearly`, `@annually`, `@monthly`,
//! `@weekly`, `@daily`, `@midnight` and `@hourly`.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;

use super::ParseError;
use super::clock::{Bits, Clock, Dates, Times};

/// Times of a clock.
#[derive(Clone, Debug)]
pub struct Cron {
    times: Times,
    days: Days,
    zone: TimeZone,
}

/// The days of a cron: each must match all three fields.
#[derive(Clone, Debug)]
struct Days {
    months: Bits,
    days: Vec<Day>,
    weekdays: Vec<Weekdays>,
}

/// One item of the day-of-month field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Day {
    Any(Bits),
    /// This many days before the last.
    FromLast(i8),
    /// The weekday nearest to this day, in the same month.
    NearestWeekday(i8),
    LastWeekday,
}

/// One item of the day-of-week field; Sunday is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weekdays {
    Any(Bits),
    Last(i8),
    Nth(i8, i8),
}

const MONTHS: &[&str] =
    &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Cron {
    /// Reads six fields or a macro; times are those of UTC.
    pub fn parse(text: &str) -> Result<Cron, ParseError> {
        let refused = |what: String| ParseError::of(format!("'{text}' is not a schedule: {what}"));
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 0 1 1 *",
            "@monthly" => "0 0 0 1 * *",
            "@weekly" => "0 0 0 * * 0",
            "@daily" | "@midnight" => "0 0 0 * * *",
            "@hourly" => "0 0 * * * *",
            fields => fields,
        };
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let [seconds, minutes, hours, days, months, weekdays] = fields.as_slice() else {
            let what = "cron has six fields, the first is the second; a cycle begins with R";
            return Err(refused(what.to_owned()));
        };
        let field = |name: &str, text: &str, range| {
            Bits::parse(text, range).ok_or_else(|| refused(format!("the {name} '{text}'")))
        };
        let times = Times {
            seconds: field("second", seconds, Range::new(0, 59, &[], 0))?,
            minutes: field("minute", minutes, Range::new(0, 59, &[], 0))?,
            hours: field("hour", hours, Range::new(0, 23, &[], 0))?,
        };
        let days = Days {
            months: field("month", months, Range::new(1, 12, MONTHS, 1))?,
            days: items(days, Day::parse)
                .ok_or_else(|| refused(format!("the day of the month '{days}'")))?,
            weekdays: items(weekdays, Weekdays::parse)
                .ok_or_else(|| refused(format!("the day of the week '{weekdays}'")))?,
        };
        Ok(Cron { times, days, zone: TimeZone::UTC })
    }

    /// The same times on the clocks of a zone. Where they change, `clock` has the rule: Spring's own
    /// expressions drop a time that the clocks skip, and run one twice that they repeat, which is
    /// what nobody wants of a nightly job.
    pub fn in_zone(self, zone: TimeZone) -> Cron {
        Cron { zone, ..self }
    }

    /// The first time after this one; `None` if there is none.
    pub fn next_after(&self, ms: u64) -> Option<u64> {
        Clock { dates: &self.days, times: &self.times, zone: &self.zone }.next_after(ms)
    }
}

impl Dates for Days {
    fn matches_month(&self, _year: i16, month: i8) -> bool {
        self.months.has(month)
    }

    fn matches_day(&self, date: Date) -> bool {
        self.days.iter().any(|day| day.matches(date))
            && self.weekdays.iter().any(|weekdays| weekdays.matches(date))
    }

    fn years(&self) -> (i16, i16) {
        (0, i16::MAX)
    }
}

impl Day {
    fn parse(text: &str) -> Option<Day> {
        let range = Range::new(1, 31, &[], 1);
        if text == "L" {
            return Some(Day::FromLast(0));
        }
        if text == "LW" {
            return Some(Day::LastWeekday);
        }
        if let Some(days) = text.strip_prefix("L-") {
            return Range::new(1, 30, &[], 1).number(days).map(Day::FromLast);
        }
        if let Some(day) = text.strip_suffix('W') {
            return range.number(day).map(Day::NearestWeekday);
        }
        Bits::parse(text, range).map(Day::Any)
    }

    fn matches(self, date: Date) -> bool {
        let last = date.last_of_month();
        match self {
            Day::Any(bits) => bits.has(date.day()),
            Day::FromLast(days) => last.day() - days == date.day(),
            Day::NearestWeekday(day) => {
                date.with().day(day).build().ok().and_then(nearest_weekday) == Some(date)
            }
            Day::LastWeekday => nearest_weekday(last) == Some(date),
        }
    }
}

impl Weekdays {
    fn parse(text: &str) -> Option<Weekdays> {
        let range = Range::new(0, 7, WEEKDAYS, 0);
        let day = |text: &str| range.number(text).map(|day| day % 7);
        if let Some((weekday, nth)) = text.split_once('#') {
            let nth = Range::new(1, 5, &[], 1).number(nth)?;
            return Some(Weekdays::Nth(day(weekday)?, nth));
        }
        if let Some(weekday) = text.strip_suffix('L') {
            return day(weekday).map(Weekdays::Last);
        }
        let Bits(bits) = Bits::parse(text, range)?;
        // Sunday is 7, too.
        Some(Weekdays::Any(Bits((bits | bits >> 7) & 0x7f)))
    }

    fn matches(self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        match self {
            Weekdays::Any(bits) => bits.has(weekday),
            Weekdays::Last(day) => day == weekday && date.day() > date.days_in_month() - 7,
            Weekdays::Nth(day, nth) => day == weekday && (date.day() - 1) / 7 + 1 == nth,
        }
    }
}

/// The day itself, or the Friday before or Monday after it that is in the same month.
fn nearest_weekday(day: Date) -> Option<Date> {
    let shift = match day.weekday() {
        Weekday::Saturday if day.day() == 1 => 2,
        Weekday::Saturday => -1,
        Weekday::Sunday if day.day() == day.days_in_month() => -2,
        Weekday::Sunday => 1,
        Weekday::Monday
        | Weekday::Tuesday
        | Weekday::Wednesday
        | Weekday::Thursday
        | Weekday::Friday => 0,
    };
    day.checked_add(shift.days()).ok()
}

fn items<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(parse).collect()
}

/// What numbers a field may hold, and their names, of which the first is `first`.
#[derive(Clone, Copy)]
struct Range {
    low: i8,
    high: i8,
    names: &'static [&'static str],
    first: i8,
}

impl Range {
    fn new(low: i8, high: i8, names: &'static [&'static str], first: i8) -> Range {
        Range { low, high, names, first }
    }

    fn number(self, text: &str) -> Option<i8> {
        let named = (self.first..)
            .zip(self.names)
            .find_map(|(number, name)| name.eq_ignore_ascii_case(text).then_some(number));
        if named.is_some() {
            return named;
        }
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits)?;
        (self.low..=self.high).contains(&number).then_some(number)
    }
}

impl Bits {
    fn parse(text: &str, range: Range) -> Option<Bits> {
        text.split(',').try_fold(Bits(0), |Bits(all), item| {
            let (span, step) = match item.split_once('/') {
                Some((span, step)) => (span, Some(step)),
                None => (item, None),
            };
            let (low, high) = match span.split_once('-') {
                Some((low, high)) => (range.number(low)?, range.number(high)?),
                None if span == "*" || span == "?" => (range.low, range.high),
                None => {
                    let low = range.number(span)?;
                    (low, if step.is_some() { range.high } else { low })
                }
            };
            let step = match step {
                Some(step) => step.parse::<usize>().ok().filter(|step| (1..=100).contains(step))?,
                None => 1,
            };
            // `FRI-SUN`: Sunday is behind Saturday.
            let high = if high < low && high == 0 && range.high == 7 { 7 } else { high };
            if low > high {
                return None;
            }
            Some(Bits((low..=high).step_by(step).fold(all, |bits, value| bits | 1 << value)))
        })
    }
}
