//! Calendar events, as systemd reads them: `[weekdays] [year-month-day] [hour:minute[:second]]
//! [zone]`, of which any may be missing but not all.
//!
//! Parts are `*`, numbers, ranges `a..b`, repetitions `a/n` and `a..b/n`, and lists of them. `~`
//! instead of the last `-` counts days from the end of the month: `*-02~01` is the last day of
//! February, `Mon *-05~07/1` the last Monday of May. A date that is missing is any, a time that is
//! missing is midnight, a second that is missing is 0. A day that a month does not have does not
//! happen in it. Weekdays and dates must both match. The words are `minutely`, `hourly`, `daily`,
//! `weekly`, `monthly`, `quarterly`, `semiannually`, `yearly` and `annually`.
//!
//! Absent: fractions of a second, and `@` with a number.

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::clock::{Bits, Clock, Dates, Times};
use super::{ParseError, timetable};

/// The years that systemd knows.
const YEAR_MIN: i16 = 1970;
const YEAR_MAX: i16 = 2199;

const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Times of a calendar.
#[derive(Clone, Debug)]
pub struct Calendar {
    times: Times,
    days: Days,
    /// The zone it names itself.
    zone: Option<TimeZone>,
}

/// Its days.
#[derive(Clone, Debug)]
struct Days {
    years: Vec<Item>,
    months: Bits,
    /// Counted from the first of the month, or from the last.
    days: Bits,
    from_end: bool,
    /// Bit 0 is Monday.
    weekdays: Bits,
}

/// From, to, and every how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    low: i16,
    high: i16,
    step: i16,
}

impl Calendar {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Calendar, ParseError> {
        let refused =
            |what: &str| ParseError::of(format!("'{text}' is not a calendar event: {what}"));
        let mut tokens: Vec<&str> = text.split_ascii_whitespace().collect();
        let (Some(first), Some(last)) = (tokens.first().copied(), tokens.last().copied()) else {
            return Err(refused("it is empty"));
        };
        let mut zone = None;
        if tokens.len() > 1 && is_zone(last) {
            let what = || refused(&format!("no time zone is named '{last}'"));
            zone = Some(timetable::zone_named(last).ok_or_else(what)?);
            tokens.pop();
        }
        if let Some(written) = word(first) {
            tokens.splice(..1, written.split(' '));
        }
        let mut rest = tokens.into_iter().peekable();
        let mut weekdays = Bits::full(6);
        if let Some(token) = rest.next_if(|token| token.starts_with(char::is_alphabetic)) {
            let what = || refused(&format!("the weekdays '{token}'"));
            weekdays = parse_weekdays(token).ok_or_else(what)?;
        }
        let mut days = Days::any(weekdays);
        if let Some(token) = rest.next_if(|token| !token.contains(':')) {
            let what = || refused(&format!("the date '{token}'"));
            days = Days::parse(token, weekdays).ok_or_else(what)?;
        }
        let mut times = Times { hours: Bits(1), minutes: Bits(1), seconds: Bits(1) };
        if let Some(token) = rest.next() {
            let what = || refused(&format!("the time '{token}'"));
            times = parse_times(token).ok_or_else(what)?;
        }
        match rest.next() {
            Some(token) => Err(refused(&format!("'{token}' is too much"))),
            None => Ok(Calendar { times, days, zone }),
        }
    }

    /// The first time after this one, on the clocks of the zone it names or else of this one;
    /// `None` if there is none.
    pub fn next_after(&self, ms: u64, zone: &TimeZone) -> Option<u64> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        Clock { dates: &self.days, times: &self.times, zone }.next_after(ms)
    }
}

impl Days {
    fn any(weekdays: Bits) -> Days {
        let years = vec![Item { low: YEAR_MIN, high: YEAR_MAX, step: 1 }];
        Days { years, months: bits_of(1, 12), days: bits_of(1, 31), from_end: false, weekdays }
    }

    /// `year-month-day` or `month-day`, or with `~` before the day.
    fn parse(text: &str, weekdays: Bits) -> Option<Days> {
        let place = text.rfind(['-', '~'])?;
        let from_end = text.get(place..)?.starts_with('~');
        let (front, day) = (text.get(..place)?, text.get(place + 1..)?);
        let (years, months) = match front.split_once('-') {
            Some((years, months)) => (Some(years), months),
            None => (None, front),
        };
        let mut days = Days::any(weekdays);
        if let Some(years) = years {
            days.years = items(years, YEAR_MIN, YEAR_MAX, year)?;
        }
        days.months = bits(months, 1, 12)?;
        days.from_end = from_end;
        days.days = if from_end { bits_from_end(day)? } else { bits(day, 1, 31)? };
        Some(days)
    }
}

impl Dates for Days {
    fn matches_month(&self, year: i16, month: i8) -> bool {
        self.months.has(month) && self.years.iter().any(|item| item.has(year))
    }

    fn matches_day(&self, date: Date) -> bool {
        let day = if self.from_end { date.days_in_month() - date.day() + 1 } else { date.day() };
        self.days.has(day) && self.weekdays.has(date.weekday().to_monday_zero_offset())
    }

    fn years(&self) -> (i16, i16) {
        let first = self.years.iter().map(|item| item.low).min();
        let last = self.years.iter().map(|item| item.high).max();
        (first.unwrap_or(YEAR_MIN), last.unwrap_or(YEAR_MAX))
    }
}

impl Item {
    fn has(self, value: i16) -> bool {
        (self.low..=self.high).contains(&value) && (value - self.low) % self.step == 0
    }
}

fn word(token: &str) -> Option<&'static str> {
    Some(match token.to_ascii_lowercase().as_str() {
        "minutely" => "*-*-* *:*:00",
        "hourly" => "*-*-* *:00:00",
        "daily" => "*-*-* 00:00:00",
        "weekly" => "Mon *-*-* 00:00:00",
        "monthly" => "*-*-01 00:00:00",
        "quarterly" => "*-01,04,07,10-01 00:00:00",
        "semiannually" | "semi-annually" => "*-01,07-01 00:00:00",
        "yearly" | "annually" => "*-01-01 00:00:00",
        _ => return None,
    })
}

/// The last of several parts is a zone if it is no date, no time and no weekday.
fn is_zone(token: &str) -> bool {
    let offset = token.starts_with('+') || token.starts_with('-');
    let named = token.starts_with(|first: char| first.is_ascii_alphabetic());
    offset || (named && parse_weekdays(token).is_none())
}

fn parse_weekdays(text: &str) -> Option<Bits> {
    let mut found = 0u64;
    // A comma may stand at the end, before the date.
    for item in text.strip_suffix(',').unwrap_or(text).split(',') {
        let ends = item.split_once("..").or_else(|| item.split_once('-'));
        let (first, last) = ends.unwrap_or((item, item));
        let (first, last) = (weekday(first)?, weekday(last)?);
        let mut day = first;
        loop {
            found |= 1 << day;
            if day == last {
                break;
            }
            day = (day + 1) % 7;
        }
    }
    Some(Bits(found))
}

fn weekday(text: &str) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    WEEKDAYS.iter().position(|name| *name == text || name.get(..3) == Some(text.as_str()))
}

fn parse_times(text: &str) -> Option<Times> {
    let mut parts = text.split(':');
    let (hours, minutes) = (bits(parts.next()?, 0, 23)?, bits(parts.next()?, 0, 59)?);
    let seconds = parts.next().map_or(Some(Bits(1)), |part| bits(part, 0, 59))?;
    parts.next().is_none().then_some(Times { hours, minutes, seconds })
}

/// Two digits are a year of 1970 to 2069.
fn year(text: &str) -> Option<i16> {
    let number = number(text)?;
    match (text.len(), number) {
        (1 | 2, 0..70) => Some(2000 + number),
        (1 | 2, _) => Some(1900 + number),
        _ => Some(number),
    }
}

fn number(text: &str) -> Option<i16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn items(
    text: &str,
    low: i16,
    high: i16,
    number_of: impl Fn(&str) -> Option<i16>,
) -> Option<Vec<Item>> {
    let item = |text: &str| {
        let (span, step) = match text.split_once('/') {
            Some((span, step)) => (span, Some(number(step).filter(|step| *step > 0)?)),
            None => (text, None),
        };
        let (first, last) = match span.split_once("..") {
            Some((first, last)) => (number_of(first)?, number_of(last)?),
            None if span == "*" => (low, high),
            None => {
                let first = number_of(span)?;
                (first, if step.is_some() { high } else { first })
            }
        };
        let sound = low <= first && first <= last && last <= high;
        sound.then_some(Item { low: first, high: last, step: step.unwrap_or(1) })
    };
    text.split(',').map(item).collect()
}

fn bits(text: &str, low: i16, high: i16) -> Option<Bits> {
    let items = items(text, low, high, number)?;
    let all = (low..=high).filter(|value| items.iter().any(|item| item.has(*value)));
    Some(Bits(all.fold(0, |bits, value| bits | 1 << value)))
}

fn bits_of(low: i8, high: i8) -> Bits {
    Bits((low..=high).fold(0, |bits, value| bits | 1 << value))
}

/// Days counted from the last one, which is 1. Ranges go either way and repetitions to the end of
/// the month: `~07/1` is the last seven days.
fn bits_from_end(text: &str) -> Option<Bits> {
    let mut found = 0u64;
    for text in text.split(',') {
        let (span, step) = match text.split_once('/') {
            Some((span, step)) => (span, Some(number(step).filter(|step| *step > 0)?)),
            None => (text, None),
        };
        let (first, last) = match span.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                (first.max(last), first.min(last))
            }
            None => {
                let first = number(span)?;
                (first, if step.is_some() { 1 } else { first })
            }
        };
        if last < 1 || first > 31 {
            return None;
        }
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        found = (last..=first).rev().step_by(step).fold(found, |bits, value| bits | 1 << value);
    }
    Some(Bits(found))
}
