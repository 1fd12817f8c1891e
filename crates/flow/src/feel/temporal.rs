//! Days, times of day and durations, as FEEL counts them.
//!
//! The calendar is our own, because FEEL's years go to 999,999,999; zones are those of the time
//! zone database that is compiled in, and nothing of the machine is read.

pub(crate) mod text;

use std::sync::Arc;

use jiff::tz::{AmbiguousOffset, TimeZone};

pub(crate) use text::{literal, literal_of};

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const YEAR_MAX: i64 = 999_999_999;

/// A day of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// The year, within 999,999,999 of year 0.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// A time of day.
#[derive(Clone, Debug)]
pub struct Time {
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// Below 1,000,000,000.
    pub nanosecond: u32,
    /// Where it holds; `None` is local time, wherever that is.
    pub zone: Option<Zone>,
}

/// What ties a time to the world's.
#[derive(Clone, Debug)]
pub enum Zone {
    /// Seconds east of Greenwich.
    Offset(i32),
    /// A region of the time zone database.
    Named(Arc<NamedZone>),
}

/// A region of the time zone database.
#[derive(Debug)]
pub struct NamedZone {
    /// Its name, such as `Europe/Berlin`.
    pub name: String,
    rules: TimeZone,
    /// Its offset outside of daylight saving, for times without a day.
    standard: i32,
}

/// A day and a time of day.
#[derive(Clone, Debug)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// The time of day.
    pub time: Time,
}

/// An exact duration; days are 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DaysDuration {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// What is left, below 1,000,000,000.
    pub nanoseconds: u32,
}

/// A duration of the calendar, whose length depends on where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct YearsDuration {
    /// Months; twelve are a year.
    pub months: i64,
}

impl Date {
    /// A day, if it exists.
    pub fn new(year: i64, month: u8, day: u8) -> Option<Date> {
        let exists = year.abs() <= YEAR_MAX
            && (1..=12).contains(&month)
            && day >= 1
            && day <= days_of_month(year, month);
        let year = i32::try_from(year).ok()?;
        exists.then_some(Date { year, month, day })
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        // Counted in years that start in March, so that the leap day is the last of its year.
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// The day that many days after 1970-01-01.
    pub fn from_days(days: i64) -> Option<Date> {
        let days = days.checked_add(719_468)?;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = u8::try_from(day_of_year - (153 * month_from_march + 2) / 5 + 1).ok()?;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era.checked_add(era.checked_mul(400)?)? + i64::from(month <= 2);
        Date::new(year, u8::try_from(month).ok()?, day)
    }

    /// This day some months later; the last of the month where there is no such day.
    pub fn add_months(self, months: i64) -> Option<Date> {
        let of_year_zero =
            (i64::from(self.year) * 12 + i64::from(self.month) - 1).checked_add(months)?;
        let year = of_year_zero.div_euclid(12);
        let month = u8::try_from(of_year_zero.rem_euclid(12) + 1).ok()?;
        Date::new(year, month, self.day.min(days_of_month(year, month)))
    }

    /// The day of the week: Monday is 1, Sunday 7.
    pub fn weekday(self) -> u8 {
        let weekday = (self.days() + 3).rem_euclid(7) + 1;
        u8::try_from(weekday).unwrap_or(1)
    }

    /// The day of the year, from 1.
    pub fn day_of_year(self) -> i64 {
        self.days() - Date { year: self.year, month: 1, day: 1 }.days() + 1
    }

    /// The week of the year as ISO 8601 counts: the first is the one with the first Thursday.
    pub fn week_of_year(self) -> i64 {
        let thursday = self.days() + 4 - i64::from(self.weekday());
        Date::from_days(thursday).map_or(1, |date| (date.day_of_year() - 1) / 7 + 1)
    }

    /// The last day of this month.
    pub fn last_of_month(self) -> Date {
        Date { day: days_of_month(i64::from(self.year), self.month), ..self }
    }

    /// Whole months from this day to another.
    pub fn months_until(self, other: Date) -> i64 {
        let count = |date: Date| i64::from(date.year) * 12 + i64::from(date.month);
        let months = count(other) - count(self);
        if months > 0 && other.day < self.day {
            months - 1
        } else if months < 0 && other.day > self.day {
            months + 1
        } else {
            months
        }
    }
}

fn days_of_month(year: i64, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Zone {
    /// The region of this name.
    pub fn named(name: &str) -> Option<Zone> {
        let rules = jiff::tz::db().get(name).ok()?;
        let name = rules.iana_name().unwrap_or(name).to_owned();
        // Two instants half a year apart: one of them is outside of daylight saving.
        let standard = [1_705_276_800, 1_721_001_600]
            .into_iter()
            .filter_map(|second| jiff::Timestamp::from_second(second).ok())
            .map(|instant| rules.to_offset_info(instant))
            .find(|info| !info.dst().is_dst())
            .map_or(0, |info| info.offset().seconds());
        Some(Zone::Named(Arc::new(NamedZone { name, rules, standard })))
    }
}

impl NamedZone {
    /// Seconds east of Greenwich at a local day and time. In the hour that comes twice it is the
    /// first that counts, in the one that does not come the offset before the gap.
    fn offset_at(&self, date: Date, time: &Time) -> i32 {
        // The database knows years up to 9999; the calendar repeats every 400.
        let year = match date.year {
            -9_000..=9_000 => date.year,
            other => other.rem_euclid(400) + 2_400,
        };
        let civil = i16::try_from(year).ok().and_then(|year| {
            let month = i8::try_from(date.month).ok()?;
            let day = i8::try_from(date.day).ok()?;
            let hour = i8::try_from(time.hour).ok()?;
            let minute = i8::try_from(time.minute).ok()?;
            let second = i8::try_from(time.second).ok()?;
            jiff::civil::DateTime::new(year, month, day, hour, minute, second, 0).ok()
        });
        let Some(civil) = civil else { return self.standard };
        match self.rules.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.seconds(),
            AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => {
                before.seconds()
            }
        }
    }

    fn offset_of_instant(&self, seconds: i64) -> i32 {
        let instant = jiff::Timestamp::from_second(seconds).ok();
        instant.map_or(self.standard, |instant| self.rules.to_offset(instant).seconds())
    }
}

impl Time {
    /// A time of day without a place, if there is such a time.
    pub fn new(hour: u8, minute: u8, second: u8, nanosecond: u32) -> Option<Time> {
        let exists = hour < 24 && minute < 60 && second < 60 && nanosecond < 1_000_000_000;
        exists.then_some(Time { hour, minute, second, nanosecond, zone: None })
    }

    /// Midnight without a place.
    pub fn midnight() -> Time {
        Time { hour: 0, minute: 0, second: 0, nanosecond: 0, zone: None }
    }

    /// Nanoseconds since midnight.
    pub fn nanoseconds_of_day(&self) -> i64 {
        let seconds =
            i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second);
        seconds * NANOS_PER_SECOND + i64::from(self.nanosecond)
    }

    /// Seconds east of Greenwich; of a region, outside of daylight saving.
    pub fn offset(&self) -> Option<i32> {
        match &self.zone {
            None => None,
            Some(Zone::Offset(seconds)) => Some(*seconds),
            Some(Zone::Named(zone)) => Some(zone.standard),
        }
    }

    /// Nanoseconds since midnight in Greenwich, or of the local day if it has no place.
    pub(crate) fn universal_nanoseconds(&self) -> i64 {
        self.nanoseconds_of_day() - i64::from(self.offset().unwrap_or(0)) * NANOS_PER_SECOND
    }

    /// This time that much later; it goes round at midnight.
    pub(crate) fn add(&self, duration: DaysDuration) -> Option<Time> {
        let day = i128::from(SECONDS_PER_DAY * NANOS_PER_SECOND);
        let sum = (i128::from(self.nanoseconds_of_day()) + duration.total()).rem_euclid(day);
        Some(Time { zone: self.zone.clone(), ..Time::from_nanoseconds(i64::try_from(sum).ok()?)? })
    }

    fn from_nanoseconds(nanoseconds: i64) -> Option<Time> {
        let seconds = nanoseconds.div_euclid(NANOS_PER_SECOND);
        Time::new(
            u8::try_from(seconds / 3_600).ok()?,
            u8::try_from(seconds / 60 % 60).ok()?,
            u8::try_from(seconds % 60).ok()?,
            u32::try_from(nanoseconds.rem_euclid(NANOS_PER_SECOND)).ok()?,
        )
    }
}

impl DateTime {
    /// The instant of these milliseconds since 1970, in Greenwich.
    pub fn from_milliseconds(milliseconds: u64) -> Option<DateTime> {
        let nanoseconds = i128::from(milliseconds) * 1_000_000;
        DateTime::from_local(nanoseconds, Some(Zone::Offset(0)))
    }

    /// Seconds east of Greenwich at this instant.
    pub fn offset(&self) -> Option<i32> {
        match &self.time.zone {
            None => None,
            Some(Zone::Offset(seconds)) => Some(*seconds),
            Some(Zone::Named(zone)) => Some(zone.offset_at(self.date, &self.time)),
        }
    }

    /// Nanoseconds since 1970 in Greenwich; without a place, since 1970 in local time.
    pub fn instant(&self) -> i128 {
        self.local() - i128::from(self.offset().unwrap_or(0)) * i128::from(NANOS_PER_SECOND)
    }

    /// The same instant in another place. A local time is taken to be in that place already.
    pub(crate) fn in_zone(&self, zone: Zone) -> Option<DateTime> {
        if self.time.zone.is_none() {
            let time = Time { zone: Some(zone), ..self.time.clone() };
            return Some(DateTime { date: self.date, time });
        }
        DateTime::at_instant(self.instant(), zone)
    }

    fn at_instant(instant: i128, zone: Zone) -> Option<DateTime> {
        let offset = match &zone {
            Zone::Offset(seconds) => *seconds,
            Zone::Named(named) => {
                let seconds = instant.div_euclid(i128::from(NANOS_PER_SECOND));
                named.offset_of_instant(i64::try_from(seconds).ok()?)
            }
        };
        let local = instant + i128::from(offset) * i128::from(NANOS_PER_SECOND);
        DateTime::from_local(local, Some(zone))
    }

    fn from_local(nanoseconds: i128, zone: Option<Zone>) -> Option<DateTime> {
        let day = i128::from(SECONDS_PER_DAY * NANOS_PER_SECOND);
        let date = Date::from_days(i64::try_from(nanoseconds.div_euclid(day)).ok()?)?;
        let time = Time::from_nanoseconds(i64::try_from(nanoseconds.rem_euclid(day)).ok()?)?;
        Some(DateTime { date, time: Time { zone, ..time } })
    }

    fn local(&self) -> i128 {
        let day = i128::from(SECONDS_PER_DAY * NANOS_PER_SECOND);
        i128::from(self.date.days()) * day + i128::from(self.time.nanoseconds_of_day())
    }

    pub(crate) fn add(&self, duration: DaysDuration) -> Option<DateTime> {
        match &self.time.zone {
            None => DateTime::from_local(self.local().checked_add(duration.total())?, None),
            Some(zone) => {
                DateTime::at_instant(self.instant().checked_add(duration.total())?, zone.clone())
            }
        }
    }

    pub(crate) fn add_months(&self, months: i64) -> Option<DateTime> {
        Some(DateTime { date: self.date.add_months(months)?, time: self.time.clone() })
    }
}

impl DaysDuration {
    /// A duration of so many nanoseconds, if it is not beyond all use.
    pub fn from_total(nanoseconds: i128) -> Option<DaysDuration> {
        let second = i128::from(NANOS_PER_SECOND);
        Some(DaysDuration {
            seconds: i64::try_from(nanoseconds.div_euclid(second)).ok()?,
            nanoseconds: u32::try_from(nanoseconds.rem_euclid(second)).ok()?,
        })
    }

    /// All of it in nanoseconds.
    pub fn total(self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanoseconds)
    }
}
