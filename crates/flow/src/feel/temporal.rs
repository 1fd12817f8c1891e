//! Days, times of day and durations, as FEEL counts them.

use std::sync::Arc;

use jiff::tz::TimeZone;

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
    pub(crate) rules: TimeZone,
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
