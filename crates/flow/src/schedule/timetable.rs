//! When a schedule fires: at the earliest time of any of its expressions, between a start and an
//! end.
//!
//! An expression is told by its looks: `R/…` is a cycle of ISO 8601, `@…` and six fields are cron,
//! anything else is a calendar event.

use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use windlass_record::schedule::{ScheduleTime, ScheduleTimes};

use super::{Calendar, Cron, Cycle, ParseError, parse_cycle};

/// Times found one after the other when missed ones are counted.
const COUNTED_MAX: u32 = 1_000;

/// When a schedule fires.
#[derive(Clone, Debug)]
pub struct Timetable {
    rules: Vec<Rule>,
    starts_ms: Option<u64>,
    ends_ms: Option<u64>,
    anchor_ms: u64,
}

#[derive(Clone, Debug)]
enum Rule {
    Cron(Box<Cron>),
    Calendar(Box<Calendar>, TimeZone),
    Cycle(Box<Cycle>),
}

/// Times that have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The last of them.
    pub last_ms: u64,
    /// How many lie before the last; of very many it is the least there may be.
    pub before_last: u32,
}

impl Timetable {
    /// Reads expressions. A cycle without a start counts from the start of the schedule, or else
    /// from `anchor_ms`.
    pub fn parse(times: &ScheduleTimes, anchor_ms: u64) -> Result<Timetable, ParseError> {
        if times.expressions.is_empty() {
            return Err(ParseError::of("a schedule needs at least one expression"));
        }
        if let (Some(starts_ms), Some(ends_ms)) = (times.starts_ms, times.ends_ms)
            && ends_ms < starts_ms
        {
            return Err(ParseError::of("the end of the schedule is before its start"));
        }
        let rules = times.expressions.iter().map(Rule::parse).collect::<Result<_, _>>()?;
        let (starts_ms, ends_ms) = (times.starts_ms, times.ends_ms);
        let anchor_ms = starts_ms.unwrap_or(anchor_ms);
        Ok(Timetable { rules, starts_ms, ends_ms, anchor_ms })
    }

    /// The first time after this one; `None` if there is none.
    pub fn next_after(&self, ms: u64) -> Option<u64> {
        let from_ms = self.starts_ms.map_or(ms, |starts_ms| ms.max(starts_ms.saturating_sub(1)));
        let next = self.rules.iter().filter_map(|rule| rule.next_after(from_ms, self.anchor_ms));
        next.min().filter(|next_ms| self.ends_ms.is_none_or(|ends_ms| *next_ms <= ends_ms))
    }

    /// The next times after this one, at most `count`.
    pub fn next(&self, ms: u64, count: usize) -> Vec<u64> {
        std::iter::successors(self.next_after(ms), |ms| self.next_after(*ms)).take(count).collect()
    }

    /// What has passed from `first_ms`, which is one of the times, until `now_ms`.
    pub fn passed(&self, first_ms: u64, now_ms: u64) -> Passed {
        let mut passed = Passed { last_ms: first_ms, before_last: 0 };
        while let Some(next_ms) = self.next_after(passed.last_ms).filter(|ms| *ms <= now_ms) {
            passed = Passed { last_ms: next_ms, before_last: passed.before_last + 1 };
            if passed.before_last >= COUNTED_MAX {
                passed.last_ms = self.last_until(next_ms, now_ms);
                break;
            }
        }
        passed
    }

    /// The last time until `now_ms`, by halves: `first_ms` is a time, and the one after a moment is
    /// never before the one after an earlier moment.
    fn last_until(&self, first_ms: u64, now_ms: u64) -> u64 {
        let (mut last_ms, mut end_ms) = (first_ms, now_ms);
        while last_ms < end_ms {
            let middle_ms = last_ms + (end_ms - last_ms) / 2;
            match self.next_after(middle_ms).filter(|ms| *ms <= now_ms) {
                Some(next_ms) => last_ms = next_ms,
                None => end_ms = middle_ms,
            }
        }
        last_ms
    }
}

impl Rule {
    fn parse(time: &ScheduleTime) -> Result<Rule, ParseError> {
        let (text, zone_name) = (time.expression.trim(), time.zone.trim());
        let unknown = || ParseError::of(format!("no time zone is named '{zone_name}'"));
        let zone = zone_named(zone_name).ok_or_else(unknown)?;
        if text.starts_with("R") && text.contains('/') {
            let cycle = parse_cycle(text)?;
            if cycle.repetitions().is_some() {
                let what = "a schedule's cycle has no number of repetitions";
                return Err(ParseError::of(format!("'{text}' cannot be used: {what}")));
            }
            if cycle.is_below_a_second() {
                return Err(ParseError::of(format!("'{text}' is shorter than a second")));
            }
            return Ok(Rule::Cycle(Box::new(cycle.in_zone(zone))));
        }
        let fields = text.split_ascii_whitespace().count();
        if text.starts_with('@') || (fields >= 5 && !text.contains(':')) {
            return Ok(Rule::Cron(Box::new(Cron::parse(text)?.in_zone(zone))));
        }
        Ok(Rule::Calendar(Box::new(Calendar::parse(text)?), zone))
    }

    fn next_after(&self, ms: u64, anchor_ms: u64) -> Option<u64> {
        match self {
            Rule::Cron(cron) => cron.next_after(ms),
            Rule::Calendar(calendar, zone) => calendar.next_after(ms, zone),
            Rule::Cycle(cycle) => cycle.next_after(ms, anchor_ms),
        }
    }
}

/// A zone by its name, or a fixed offset such as `+02:00`; the empty name is UTC.
pub(super) fn zone_named(name: &str) -> Option<TimeZone> {
    if name.is_empty() || name.eq_ignore_ascii_case("z") {
        return Some(TimeZone::UTC);
    }
    if let Some(digits) = name.strip_prefix(['+', '-']) {
        let (hours, minutes) = match digits.split_once(':') {
            Some(parts) => parts,
            None => digits.split_at_checked(2)?,
        };
        let number = |text: &str| match text {
            "" => Some(0),
            text => text.parse::<i32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit())),
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let seconds = hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?;
        let seconds = if name.starts_with('-') { -seconds } else { seconds };
        return Offset::from_seconds(seconds)
            .ok()
            .filter(|_| minutes < 60)
            .map(Offset::to_time_zone);
    }
    // Only the bundled zones: another machine must not read another time.
    TimeZoneDatabase::bundled().get(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{parse_date, timestamp};

    fn at(text: &str) -> u64 {
        parse_date(text).expect(text)
    }

    fn show(ms: u64) -> String {
        timestamp(ms).map(|at| at.to_string()).unwrap_or_default().replace(":00Z", "Z")
    }

    fn times(all: &[(&str, &str)]) -> ScheduleTimes {
        let time = |(expression, zone): &(&str, &str)| ScheduleTime {
            expression: (*expression).into(),
            zone: (*zone).into(),
        };
        ScheduleTimes { expressions: all.iter().map(time).collect(), ..ScheduleTimes::default() }
    }

    fn table(all: &[(&str, &str)]) -> Timetable {
        Timetable::parse(&times(all), at("2026-01-01T00:00:00Z")).expect("they are sound")
    }

    #[track_caller]
    fn check(expression: &str, zone: &str, after: &str, expected: &[&str]) {
        let found = table(&[(expression, zone)]).next(at(after), expected.len());
        let found: Vec<String> = found.into_iter().map(show).collect();
        assert_eq!(found, expected, "{expression} {zone}");
    }

    /// The clocks of 2026: Berlin jumps on March 29th at 02:00 and goes back on October 25th at
    /// 03:00, New York on March 8th at 02:00 and on November 1st at 02:00.
    #[test]
    fn a_time_that_the_clocks_skip_fires_when_they_jump() {
        for (cron, event) in [
            ("0 30 2 * * *", "*-*-* 02:30"),
            ("0 0 2 * * *", "*-*-* 02:00"),
            ("59 59 2 * * *", "*-*-* 02:59:59"),
        ] {
            for expression in [cron, event] {
                let spring = table(&[(expression, "Europe/Berlin")]);
                let found = spring.next_after(at("2026-03-28T12:00:00Z"));
                assert_eq!(found.map(show).as_deref(), Some("2026-03-29T01:00Z"), "{expression}");
                let next = found.and_then(|ms| spring.next_after(ms)).map(show);
                assert!(next.is_some_and(|next| next.starts_with("2026-03-30T00:")), "once only");

                let spring = table(&[(expression, "America/New_York")]);
                let found = spring.next_after(at("2026-03-07T12:00:00Z"));
                assert_eq!(found.map(show).as_deref(), Some("2026-03-08T07:00Z"), "{expression}");
            }
        }
        // Several times that are skipped are one moment.
        let every = &["2026-03-29T01:00Z", "2026-03-30T00:00Z", "2026-03-30T00:20Z"];
        check("0 0/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", every);
        // Where the day begins with the jump.
        let cairo = &["2026-04-23T22:00Z", "2026-04-24T21:30Z"];
        check("0 30 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", cairo);
    }

    #[test]
    fn a_time_that_the_clocks_show_twice_fires_the_first_time() {
        let berlin = &["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"];
        check("0 30 2 * * *", "Europe/Berlin", "2026-10-23T12:00:00Z", berlin);
        check("*-*-* 02:30", "Europe/Berlin", "2026-10-23T12:00:00Z", berlin);
        let york = &["2026-10-31T05:30Z", "2026-11-01T05:30Z", "2026-11-02T06:30Z"];
        check("0 30 1 * * *", "America/New_York", "2026-10-30T12:00:00Z", york);
        check("*-*-* 1:30 America/New_York", "UTC", "2026-10-30T12:00:00Z", york);
        // Asked in the middle of the second hour.
        check("0 30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", &["2026-10-26T01:30Z"]);
        // The ends of the hour.
        let ends = &["2026-10-25T00:00Z", "2026-10-25T02:00Z"];
        check("0 0 2,3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", ends);
    }

    #[test]
    fn every_hour_is_every_hour_when_clocks_change() {
        let spring =
            &["2026-03-29T00:00Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z", "2026-03-29T03:00Z"];
        check("hourly", "Europe/Berlin", "2026-03-28T23:30:00Z", spring);
        let autumn = &[
            "2026-10-25T00:00Z",
            "2026-10-25T00:30Z",
            "2026-10-25T01:00Z",
            "2026-10-25T01:30Z",
            "2026-10-25T02:00Z",
        ];
        check("0 0/30 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", autumn);
        check("*:00,30", "Europe/Berlin", "2026-10-24T23:30:00Z", autumn);
        let york = &["2026-11-01T05:00Z", "2026-11-01T06:00Z", "2026-11-01T07:00Z"];
        check("@hourly", "America/New_York", "2026-11-01T04:30:00Z", york);
    }

    #[test]
    fn midday_is_midday_all_year() {
        let spring = &["2026-03-28T08:00Z", "2026-03-29T07:00Z"];
        check("Mon..Sun *-*-* 09:00:00 Europe/Berlin", "", "2026-03-28T00:00:00Z", spring);
        let autumn = &["2026-10-31T13:00Z", "2026-11-01T14:00Z"];
        check("0 0 9 * * *", "America/New_York", "2026-10-31T00:00:00Z", autumn);
    }

    #[test]
    fn calendar_events() {
        let now = "2026-01-31T12:00:00Z";
        let check = |event: &str, expected: &[&str]| check(event, "", now, expected);
        check("minutely", &["2026-01-31T12:01Z", "2026-01-31T12:02Z"]);
        check("hourly", &["2026-01-31T13:00Z"]);
        check("daily", &["2026-02-01T00:00Z", "2026-02-02T00:00Z"]);
        check("weekly", &["2026-02-02T00:00Z", "2026-02-09T00:00Z"]);
        check("monthly", &["2026-02-01T00:00Z", "2026-03-01T00:00Z"]);
        check("quarterly", &["2026-04-01T00:00Z", "2026-07-01T00:00Z"]);
        check("semiannually", &["2026-07-01T00:00Z", "2027-01-01T00:00Z"]);
        check("Yearly", &["2027-01-01T00:00Z"]);
        check("daily Europe/Berlin", &["2026-01-31T23:00Z"]);
        check("Mon..Fri *-*-* 09:00:00 Europe/Berlin", &["2026-02-02T08:00Z"]);
        check("Mon,Sun 12-*-* 2,1:23", &[]);
        check("Mon,Sun 27-*-* 2,1:23", &["2027-01-03T01:23Z", "2027-01-03T02:23Z"]);
        check("Wed, 17:48", &["2026-02-04T17:48Z"]);
        check("Sat..Mon 10:00", &["2026-02-01T10:00Z", "2026-02-02T10:00Z", "2026-02-07T10:00Z"]);
        check("thursday,Fri", &["2026-02-05T00:00Z", "2026-02-06T00:00Z"]);
        check("10-15", &["2026-10-15T00:00Z", "2027-10-15T00:00Z"]);
        check("2026-12-03 05:40", &["2026-12-03T05:40Z"]);
        check("2026-12-03 05:40", &["2026-12-03T05:40Z"]);
        check("*-*-01/2 06:00", &["2026-02-01T06:00Z", "2026-02-03T06:00Z"]);
        check("*:2/3", &["2026-01-31T12:02Z", "2026-01-31T12:05Z"]);
        check("12:0/20:30", &["2026-01-31T12:00:30Z", "2026-01-31T12:20:30Z"]);
        check("08..10/2,23:00", &["2026-01-31T23:00Z", "2026-02-01T08:00Z", "2026-02-01T10:00Z"]);
        check("2026..2027/1-02-28", &["2026-02-28T00:00Z", "2027-02-28T00:00Z"]);
        // A day that a month does not have does not happen in it.
        check("*-*-31", &["2026-03-31T00:00Z", "2026-05-31T00:00Z"]);
        check("*-02-29", &["2028-02-29T00:00Z", "2032-02-29T00:00Z"]);
        // From the end of the month.
        check("*-*~01", &["2026-02-28T00:00Z", "2026-03-31T00:00Z"]);
        check("*-02~03", &["2026-02-26T00:00Z", "2027-02-26T00:00Z", "2028-02-27T00:00Z"]);
        check("*-*~02..01", &["2026-02-27T00:00Z", "2026-02-28T00:00Z"]);
        check("Mon *-05~07/1", &["2026-05-25T00:00Z", "2027-05-31T00:00Z"]);
        check("*-*-* 00:00:00 +02:00", &["2026-01-31T22:00Z"]);
        check("2020-01-01", &[]);
        check("*-02-30", &[]);
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        for (expression, zone) in [
            ("", ""),
            ("tomorrow", ""),
            ("* * * * *", ""),
            ("Mon *-*-* 25:00", ""),
            ("*-13-01", ""),
            ("*-*-32", ""),
            ("*-*~00", ""),
            ("*-*-5..3", ""),
            ("*-*-* 10", ""),
            ("*-*-* 1:2:3:4", ""),
            ("*-*-* 1:2:3.5", ""),
            ("*:0/0", ""),
            ("daily daily", ""),
            ("daily Europe/Atlantis", ""),
            ("daily", "Europe/Atlantis"),
            ("daily", "+25:00:00"),
            ("daily", "+1"),
            ("2201-01-01", ""),
            ("R3/PT1H", ""),
            ("R/PT0.5S", ""),
            ("R/PT1Ü", ""),
            ("Mön", ""),
            ("1-2-3-4", ""),
        ] {
            let refused = Timetable::parse(&times(&[(expression, zone)]), 0);
            assert!(refused.is_err(), "{expression} {zone}: {refused:?}");
        }
        assert!(Timetable::parse(&ScheduleTimes::default(), 0).is_err());
        let mut backwards = times(&[("daily", "")]);
        (backwards.starts_ms, backwards.ends_ms) = (Some(2), Some(1));
        assert!(Timetable::parse(&backwards, 0).is_err());
    }

    #[test]
    fn several_expressions_fire_at_the_earliest() {
        let both = table(&[("0 0 9 * * MON-FRI", "Europe/Berlin"), ("0 0 9 * * *", "UTC")]);
        let found: Vec<String> =
            both.next(at("2026-01-30T00:00:00Z"), 3).into_iter().map(show).collect();
        assert_eq!(found, ["2026-01-30T08:00Z", "2026-01-30T09:00Z", "2026-01-31T09:00Z"]);
    }

    #[test]
    fn between_a_start_and_an_end() {
        let mut bounded = times(&[("0 0 * * * *", "")]);
        bounded.starts_ms = Some(at("2026-01-01T10:00:00Z"));
        bounded.ends_ms = Some(at("2026-01-01T12:00:00Z"));
        let table = Timetable::parse(&bounded, 0).expect("they are sound");
        let found: Vec<String> = table.next(0, 9).into_iter().map(show).collect();
        assert_eq!(found, ["2026-01-01T10:00Z", "2026-01-01T11:00Z", "2026-01-01T12:00Z"]);
    }

    #[test]
    fn a_cycle_counts_from_its_start() {
        check("R/PT90M", "", "2026-01-01T01:00:00Z", &["2026-01-01T01:30Z", "2026-01-01T03:00Z"]);
        let months = &["2026-02-28T00:00Z", "2026-03-31T00:00Z", "2026-04-30T00:00Z"];
        check("R/2026-01-31T00:00:00Z/P1M", "", "2026-02-01T00:00:00Z", months);
        let days = &["2026-03-28T07:00Z", "2026-03-29T06:00Z", "2026-03-30T06:00Z"];
        check("R/2026-01-01T07:00:00Z/P1D", "Europe/Berlin", "2026-03-27T12:00:00Z", days);
        let days = &["2026-10-24T06:00Z", "2026-10-25T07:00Z"];
        check("R/2026-08-01T06:00:00Z/P1D", "Europe/Berlin", "2026-10-23T12:00:00Z", days);
    }

    #[test]
    fn what_has_passed_is_counted_up_to_a_bound() {
        let check = |expression: &str, first: &str, now: &str, last: &str, before_last: u32| {
            let passed = table(&[(expression, "")]).passed(at(first), at(now));
            let found = (show(passed.last_ms), passed.before_last);
            assert_eq!(found, (last.to_owned(), before_last), "{expression} {now}");
        };
        let first = "2026-01-01T00:00:00Z";
        check("hourly", first, first, "2026-01-01T00:00Z", 0);
        check("hourly", first, "2026-01-01T05:59:00Z", "2026-01-01T05:00Z", 5);
        check("hourly", first, "2026-12-31T23:59:00Z", "2026-12-31T23:00Z", 1_000);
        check("* * * * * *", first, "2026-12-31T23:59:59.5Z", "2026-12-31T23:59:59Z", 1_000);
    }
}
