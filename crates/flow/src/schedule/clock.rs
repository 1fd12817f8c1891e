//! Times of the clocks of a zone: which days, and when on each.
//!
//! The rule where clocks change: a time that the clocks skip fires once, at the moment they jump; a
//! time that they show twice fires when they show it first. Where every hour matches, times follow
//! each other as they do on any day, the repeated hour included.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

use super::timestamp;

/// February 29th on a given weekday comes back after 40 years at the latest.
const YEARS_MAX: i16 = 41;

/// Which days match.
pub(super) trait Dates {
    /// Whether any day of the month may match; no more than a way to be quick.
    fn matches_month(&self, year: i16, month: i8) -> bool;
    /// Whether this day matches; asked only where its month does.
    fn matches_day(&self, date: Date) -> bool;
    /// The first year that may match, and the last.
    fn years(&self) -> (i16, i16);
}

/// Which times of a day match.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) hours: Bits,
    pub(super) minutes: Bits,
    pub(super) seconds: Bits,
}

/// Bit n is value n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits(pub(super) u64);

/// Days and times on the clocks of a zone.
pub(super) struct Clock<'a, D> {
    pub(super) dates: &'a D,
    pub(super) times: &'a Times,
    pub(super) zone: &'a TimeZone,
}

impl<D: Dates> Clock<'_, D> {
    /// The first time after this one; `None` if there is none.
    pub(super) fn next_after(&self, ms: u64) -> Option<u64> {
        let after = timestamp(ms)?;
        let mut from = after.to_zoned(self.zone.clone()).datetime();
        let every_hour = self.times.hours == Bits::full(23);
        loop {
            let local = self.next_local(from)?;
            let mut due = self.moment_of(local)?;
            let ambiguous = self.zone.to_ambiguous_timestamp(local);
            if every_hour
                && due <= after
                && let AmbiguousOffset::Fold { .. } = ambiguous.offset()
            {
                due = ambiguous.later().ok()?;
            }
            if every_hour {
                due = due.min(self.repeated_hour(after, due).unwrap_or(due));
            }
            if due > after {
                return u64::try_from(due.as_millisecond()).ok();
            }
            from = local;
        }
    }

    /// When the clocks show this, or first show it, or pass over it.
    fn moment_of(&self, local: DateTime) -> Option<Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(local);
        let moment = ambiguous.compatible().ok()?;
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => Some(moment),
            AmbiguousOffset::Gap { .. } => {
                // It counts by the offset before the jump, so it is not before the jump.
                let behind = moment.checked_add(1.nanoseconds()).ok()?;
                let jump = self.zone.preceding(behind).next();
                Some(jump.map_or(moment, |jump| jump.timestamp()))
            }
        }
    }

    /// The first match in an hour that the clocks repeat between `after` and `before`.
    fn repeated_hour(&self, after: Timestamp, before: Timestamp) -> Option<Timestamp> {
        let change = self.zone.following(after).next()?.timestamp();
        if change >= before {
            return None;
        }
        let start = change.to_zoned(self.zone.clone()).datetime();
        let local = self.next_local(start.checked_sub(1.second()).ok()?)?;
        self.zone.to_ambiguous_timestamp(local).later().ok()
    }

    /// The first match after this time, on a clock that is never changed.
    fn next_local(&self, after: DateTime) -> Option<DateTime> {
        let from = after.checked_add(1.second()).ok()?.with().subsec_nanosecond(0).build().ok()?;
        let (first_year, last_year) = self.dates.years();
        let today = from.date();
        if self.matches(today)
            && let Some(time) = self.times.at_or_after(from.time())
        {
            return Some(today.to_datetime(time));
        }
        let time = self.times.at_or_after(Time::midnight())?;
        let begin = today.tomorrow().ok()?;
        let mut date = begin.max(Date::new(first_year, 1, 1).ok()?);
        let last_year = date.year().saturating_add(YEARS_MAX).min(last_year);
        while date.year() <= last_year {
            if !self.dates.matches_month(date.year(), date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
            } else if self.dates.matches_day(date) {
                return Some(date.to_datetime(time));
            } else {
                date = date.tomorrow().ok()?;
            }
        }
        None
    }

    fn matches(&self, date: Date) -> bool {
        self.dates.matches_month(date.year(), date.month()) && self.dates.matches_day(date)
    }
}

impl Times {
    fn at_or_after(&self, from: Time) -> Option<Time> {
        let time = |hour, minute, second| Time::new(hour, minute, second, 0).ok();
        let (hour, minute) = (from.hour(), from.minute());
        if self.hours.has(hour) {
            if self.minutes.has(minute)
                && let Some(second) = self.seconds.at_least(from.second())
            {
                return time(hour, minute, second);
            }
            if let Some(minute) = self.minutes.at_least(minute + 1) {
                return time(hour, minute, self.seconds.at_least(0)?);
            }
        }
        time(self.hours.at_least(hour + 1)?, self.minutes.at_least(0)?, self.seconds.at_least(0)?)
    }
}

impl Bits {
    pub(super) fn full(high: u8) -> Bits {
        Bits((0..=high).fold(0, |bits, value| bits | 1 << value))
    }

    pub(super) fn has(self, value: i8) -> bool {
        u32::try_from(value).ok().and_then(|value| self.0.checked_shr(value)).unwrap_or(0) & 1 == 1
    }

    pub(super) fn at_least(self, value: i8) -> Option<i8> {
        (value.max(0)..60).find(|value| self.has(*value))
    }
}
