//! When timers and schedules fire: ISO 8601 durations, dates and cycles, cron, calendar events, and
//! [`Timetable`], which is several of them.
//!
//! Times are milliseconds since 1970 in UTC. Months and days are added by the calendar of a zone
//! (UTC unless a date names one), hours and less by the clock. `None` instead of a time is a time
//! outside of the calendar, which ends with the year 9999.

mod calendar;
mod clock;
mod cron;
mod timetable;

use std::fmt;

use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;
use jiff::tz::{TimeZone, TimeZoneDatabase};

pub use calendar::Calendar;
pub use cron::Cron;
pub use timetable::{Passed, Timetable};

/// Why a text is not a schedule, as a lowercase fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What was expected.
    pub message: String,
}

/// A length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    months: u32,
    days: u32,
    milliseconds: u64,
}

/// Again and again.
#[derive(Clone, Debug)]
pub struct Cycle(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Every { repetitions: Option<u32>, start_ms: Option<u64>, span: Span, zone: TimeZone },
    Cron(Box<Cron>),
}

/// A length of time in ISO 8601, such as `P1Y2M3DT4H5M6.5S` or `P2W`. It is not negative.
pub fn parse_duration(text: &str) -> Result<Span, ParseError> {
    let refused = || ParseError::of(format!("'{text}' is not a duration like PT30S or P1DT12H"));
    let rest = text.strip_prefix(['P', 'p']).ok_or_else(refused)?;
    let (date, time) = match rest.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        None => (rest, None),
    };
    let mut span = Span::default();
    let days = read_units(date, "YMWD", |unit, number, fraction| {
        if !fraction.is_empty() {
            return None;
        }
        let number = u32::try_from(number).ok()?;
        match unit {
            'Y' => span.months = span.months.checked_add(number.checked_mul(12)?)?,
            'M' => span.months = span.months.checked_add(number)?,
            'W' => span.days = span.days.checked_add(number.checked_mul(7)?)?,
            _ => span.days = span.days.checked_add(number)?,
        }
        Some(())
    })
    .ok_or_else(refused)?;
    let times = read_units(time.unwrap_or_default(), "HMS", |unit, number, fraction| {
        let scale = match unit {
            'H' => 3_600_000,
            'M' => 60_000,
            _ => 1_000,
        };
        let whole = number.checked_mul(scale)?;
        let part = match fraction {
            "" => 0,
            digits if unit == 'S' => milliseconds_of(digits)?,
            _ => return None,
        };
        span.milliseconds = span.milliseconds.checked_add(whole)?.checked_add(part)?;
        Some(())
    })
    .ok_or_else(refused)?;
    if days + times == 0 || (time.is_some() && times == 0) {
        return Err(refused());
    }
    Ok(span)
}

/// How long a timer waits: a duration, of which a negative one is none at all. Computed ones often
/// are: what is late is due now.
pub fn parse_delay(text: &str) -> Result<Span, ParseError> {
    match text.strip_prefix('-') {
        Some(positive) => parse_duration(positive).map(|_| Span::default()),
        None => parse_duration(text),
    }
}

/// A time in ISO 8601 with an offset, a zone, or both, such as `2026-01-31T12:00:00Z` or
/// `2026-01-31T12:00:00+01:00[Europe/Berlin]`. The offset rules if they do not agree. Times before
/// 1970 are 0.
pub fn parse_date(text: &str) -> Result<u64, ParseError> {
    moment(text).map(|(ms, _)| ms)
}

/// `Rn/<duration>`, `Rn/<start>/<duration>` (`R` alone has no end), or cron.
pub fn parse_cycle(text: &str) -> Result<Cycle, ParseError> {
    let Some(rest) = text.strip_prefix('R') else {
        return Cron::parse(text).map(Box::new).map(Kind::Cron).map(Cycle);
    };
    let refused = || ParseError::of(format!("'{text}' is not a cycle like R3/PT10S"));
    let (count, rest) = rest.split_once('/').ok_or_else(refused)?;
    let repetitions = match count {
        "" => None,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse::<u32>().map_err(|_| refused())?)
        }
        _ => return Err(refused()),
    };
    let (start_ms, zone, duration) = match rest.rsplit_once('/') {
        // The last one: names of zones have slashes.
        Some((start, duration)) => {
            let (ms, zone) = moment(start)?;
            (Some(ms), zone, duration)
        }
        None => (None, TimeZone::UTC, rest),
    };
    let span = parse_duration(duration)?;
    if repetitions.is_none() && span == Span::default() {
        return Err(ParseError::of(format!("'{text}' never ends and never waits")));
    }
    Ok(Cycle(Kind::Every { repetitions, start_ms, span, zone }))
}

impl Span {
    /// The time that lies this long after another.
    pub fn after(&self, ms: u64) -> Option<u64> {
        self.after_in(ms, &TimeZone::UTC)
    }

    fn after_in(&self, ms: u64, zone: &TimeZone) -> Option<u64> {
        let mut due = ms;
        if self.months > 0 || self.days > 0 {
            let calendar = jiff::Span::new()
                .try_months(i64::from(self.months))
                .and_then(|span| span.try_days(i64::from(self.days)))
                .ok()?;
            let local = timestamp(ms)?.to_zoned(zone.clone()).checked_add(calendar).ok()?;
            due = u64::try_from(local.timestamp().as_millisecond()).ok()?;
        }
        let due = due.checked_add(self.milliseconds)?;
        timestamp(due).map(|_| due)
    }

    /// This length as often as it fits for sure before `now_ms`; the rest is found step by step.
    fn first_at_or_after(&self, start_ms: u64, now_ms: u64, zone: &TimeZone) -> Option<u64> {
        if start_ms >= now_ms {
            return Some(start_ms);
        }
        let Some(count) = self.times_between(start_ms, now_ms) else {
            return Some(now_ms);
        };
        let mut due = self.multiple(count)?.after_in(start_ms, zone)?;
        while due < now_ms {
            due = self.after_in(due, zone)?;
        }
        Some(due)
    }

    /// The first whole multiple behind the start that lies after `after_ms`. Each is counted from
    /// the start, so that a month that begins on the 31st comes back to it.
    fn first_multiple(&self, start_ms: u64, after_ms: u64, zone: &TimeZone) -> Option<u64> {
        let mut count = self.times_between(start_ms, after_ms)?;
        loop {
            let due = self.multiple(count)?.after_in(start_ms, zone)?;
            if due > after_ms {
                return Some(due);
            }
            count += 1;
        }
    }

    /// How often this length fits for sure; `None` if it is none at all.
    fn times_between(&self, start_ms: u64, end_ms: u64) -> Option<u64> {
        const DAY_MS: u64 = 86_400_000;
        let longest = u64::from(self.months)
            .checked_mul(31)?
            .checked_add(u64::from(self.days))?
            .checked_mul(DAY_MS)?
            .checked_add(self.milliseconds)?;
        // By the calendar it is an hour less, for clocks that are set back on the way.
        let slack_ms = if self.months > 0 || self.days > 0 { 3_600_000 } else { 0 };
        end_ms.saturating_sub(start_ms).saturating_sub(slack_ms).checked_div(longest)
    }

    fn multiple(&self, count: u64) -> Option<Span> {
        Some(Span {
            months: u32::try_from(u64::from(self.months).checked_mul(count)?).ok()?,
            days: u32::try_from(u64::from(self.days).checked_mul(count)?).ok()?,
            milliseconds: self.milliseconds.checked_mul(count)?,
        })
    }
}

impl Cycle {
    /// When it fires first, if it begins now. A start that has passed is moved on by whole
    /// intervals.
    pub fn first(&self, now_ms: u64) -> Option<u64> {
        match &self.0 {
            Kind::Every { repetitions: Some(0), .. } => None,
            Kind::Every { start_ms: Some(start), span, zone, .. } => {
                span.first_at_or_after(*start, now_ms, zone)
            }
            Kind::Every { start_ms: None, span, zone, .. } => span.after_in(now_ms, zone),
            Kind::Cron(cron) => cron.next_after(now_ms),
        }
    }

    /// When it fires after it was due at `previous_due_ms`. An interval counts from there, even if
    /// that is late by now; cron skips what was missed. Repetitions are the caller's to count.
    pub fn next(&self, previous_due_ms: u64, now_ms: u64) -> Option<u64> {
        match &self.0 {
            Kind::Every { span, zone, .. } => span.after_in(previous_due_ms, zone),
            Kind::Cron(cron) => cron.next_after(previous_due_ms.max(now_ms)),
        }
    }

    /// The first time after this one, counted from its own start or else from `anchor_ms`, however
    /// often it has fired.
    pub fn next_after(&self, ms: u64, anchor_ms: u64) -> Option<u64> {
        match &self.0 {
            Kind::Every { start_ms, span, zone, .. } => {
                span.first_multiple(start_ms.unwrap_or(anchor_ms), ms, zone)
            }
            Kind::Cron(cron) => cron.next_after(ms),
        }
    }

    /// Whether it fires more than once in a second.
    pub fn is_below_a_second(&self) -> bool {
        match &self.0 {
            Kind::Every { span, .. } => {
                span.months == 0 && span.days == 0 && span.milliseconds < 1_000
            }
            Kind::Cron(_) => false,
        }
    }

    /// The same by the calendar of a zone, unless its start names another.
    pub fn in_zone(self, to: TimeZone) -> Cycle {
        Cycle(match self.0 {
            Kind::Every { repetitions, start_ms, span, zone } if zone == TimeZone::UTC => {
                Kind::Every { repetitions, start_ms, span, zone: to }
            }
            Kind::Every { repetitions, start_ms, span, zone } => {
                Kind::Every { repetitions, start_ms, span, zone }
            }
            Kind::Cron(cron) => Kind::Cron(Box::new(cron.in_zone(to))),
        })
    }

    /// How often it fires; `None` is without end.
    pub fn repetitions(&self) -> Option<u32> {
        match &self.0 {
            Kind::Every { repetitions, .. } => *repetitions,
            Kind::Cron(_) => None,
        }
    }
}

impl ParseError {
    fn of(message: impl Into<String>) -> ParseError {
        ParseError { message: message.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads `1Y2M` and the like: each unit at most once, in the order of `units`. Gives how many.
fn read_units(
    text: &str,
    units: &str,
    mut take: impl FnMut(char, u64, &str) -> Option<()>,
) -> Option<u32> {
    let mut rest = text;
    let mut allowed = units;
    let mut count = 0;
    while !rest.is_empty() {
        let (digits, behind) = split_digits(rest)?;
        let (fraction, behind) = match behind.strip_prefix(['.', ',']) {
            Some(behind) => split_digits(behind)?,
            None => ("", behind),
        };
        let unit = behind.chars().next()?;
        let upper = unit.to_ascii_uppercase();
        let (_, later) = allowed.split_once(upper)?;
        take(upper, digits.parse().ok()?, fraction)?;
        allowed = later;
        rest = behind.get(unit.len_utf8()..)?;
        count += 1;
    }
    Some(count)
}

/// Leading digits, at least one, and what is behind them.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 { None } else { text.split_at_checked(end) }
}

/// The digits behind a decimal point of seconds; what is less than a millisecond is dropped.
fn milliseconds_of(digits: &str) -> Option<u64> {
    let mut ms = 0;
    for digit in digits.chars().chain("000".chars()).take(3) {
        ms = ms * 10 + u64::from(digit.to_digit(10)?);
    }
    Some(ms)
}

fn moment(text: &str) -> Result<(u64, TimeZone), ParseError> {
    let refused = || ParseError::of(format!("'{text}' is not a date like 2026-01-31T12:00:00Z"));
    let pieces = Pieces::parse(text).map_err(|_| refused())?;
    let time = pieces.time().filter(|_| text.contains(['T', 't'])).ok_or_else(refused)?;
    let local = pieces.date().to_datetime(time);
    // Only the bundled zones: another machine must not read another time.
    let zone = pieces.to_time_zone_with(&TimeZoneDatabase::bundled());
    let zone = zone.map_err(|_| ParseError::of(format!("'{text}' names an unknown time zone")))?;
    let at = match (pieces.to_numeric_offset(), &zone) {
        (Some(offset), _) => offset.to_timestamp(local).map_err(|_| refused())?,
        (None, Some(zone)) => zone.to_timestamp(local).map_err(|_| refused())?,
        (None, None) => {
            let what =
                format!("'{text}' says no time zone: end it with Z or an offset like +01:00");
            return Err(ParseError::of(what));
        }
    };
    let ms = u64::try_from(at.as_millisecond()).unwrap_or(0);
    Ok((ms, zone.unwrap_or(TimeZone::UTC)))
}

fn timestamp(ms: u64) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()
}

#[cfg(test)]
mod tests;
