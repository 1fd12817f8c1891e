//! Tables: what each text means. Times are written as dates, in UTC unless they say otherwise.

use jiff::tz::TimeZoneDatabase;

use super::*;

fn at(text: &str) -> u64 {
    parse_date(text).expect(text)
}

fn show(ms: u64) -> String {
    timestamp(ms).map(|at| at.to_string()).unwrap_or_default()
}

#[test]
fn a_duration_is_added_by_the_calendar_and_then_by_the_clock() {
    let check = |duration: &str, from: &str, expected: &str| {
        let span = parse_duration(duration).expect(duration);
        assert_eq!(show(span.after(at(from)).expect(duration)), expected, "{duration} {from}");
    };
    check("PT10S", "2026-01-31T12:00:00Z", "2026-01-31T12:00:10Z");
    check("PT0S", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z");
    check("PT1.5S", "2026-01-31T12:00:00Z", "2026-01-31T12:00:01.5Z");
    check("PT0,0259S", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.025Z");
    check("pt36h", "2026-01-31T12:00:00Z", "2026-02-02T00:00:00Z");
    check("P1M", "2026-01-31T12:00:00Z", "2026-02-28T12:00:00Z");
    check("P1M", "2028-01-31T12:00:00Z", "2028-02-29T12:00:00Z");
    check("P1Y", "2028-02-29T12:00:00Z", "2029-02-28T12:00:00Z");
    check("P4Y", "2028-02-29T12:00:00Z", "2032-02-29T12:00:00Z");
    check("P2W", "2026-02-20T00:00:00Z", "2026-03-06T00:00:00Z");
    check("P1Y2M3DT4H5M6S", "2026-01-31T12:00:00Z", "2027-04-03T16:05:06Z");
    check("P1DT1M", "2026-12-31T23:59:00Z", "2027-01-02T00:00:00Z");
}

#[test]
fn what_is_no_duration_is_refused() {
    let check = |text: &str| {
        let error = parse_duration(text).expect_err(text);
        assert!(error.message.contains(text), "{error}");
    };
    for text in [
        "",
        "P",
        "PT",
        "P1DT",
        "1D",
        "-PT1S",
        "PT-1S",
        "P1H",
        "PT1D",
        "PT1S1M",
        "PT1M1M",
        "P1.5D",
        "PT1.5M",
        "PT.5S",
        "PT1.S",
        "PT1",
        "P99999999999Y",
        "PT1S ",
        "R3/PT1S",
        "PT1Ü",
        "PT99999999999999999999S",
    ] {
        check(text);
    }
}

#[test]
fn a_negative_delay_is_none() {
    let check = |text: &str, expected: Option<u64>| {
        assert_eq!(parse_delay(text).ok().and_then(|span| span.after(1_000)), expected, "{text}");
    };
    check("PT3S", Some(4_000));
    check("-PT3S", Some(1_000));
    check("-P1Y", Some(1_000));
    check("--PT3S", None);
    check("-3S", None);
}

#[test]
fn a_duration_out_of_the_calendar_has_no_end() {
    let span = parse_duration("P9000Y").expect("it is well-formed");
    assert_eq!(span.after(at("2026-01-01T00:00:00Z")), None);
    let span = parse_duration("PT18446744073709551S").expect("it is well-formed");
    assert_eq!(span.after(at("2026-01-01T00:00:00Z")), None);
}

#[test]
fn a_date_is_a_time_with_a_zone() {
    let check = |text: &str, expected: &str| assert_eq!(show(at(text)), expected, "{text}");
    check("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z");
    check("2026-01-31T12:00Z", "2026-01-31T12:00:00Z");
    check("2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123Z");
    check("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00Z");
    check("2026-01-31T12:00:00-05:30", "2026-01-31T17:30:00Z");
    check("2026-07-01T12:00:00+02:00[Europe/Berlin]", "2026-07-01T10:00:00Z");
    check("2026-07-01T12:00:00[Europe/Berlin]", "2026-07-01T10:00:00Z");
    // The offset rules, and tells the hours apart that a clock shows twice.
    check("2026-07-01T12:00:00+05:00[Europe/Berlin]", "2026-07-01T07:00:00Z");
    check("2026-10-25T02:30:00+02:00[Europe/Berlin]", "2026-10-25T00:30:00Z");
    check("2026-10-25T02:30:00+01:00[Europe/Berlin]", "2026-10-25T01:30:00Z");
    // A time that the clocks skip.
    check("2026-03-29T02:30:00[Europe/Berlin]", "2026-03-29T01:30:00Z");
    check("2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z");
    check("1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z");
}

#[test]
fn what_is_no_date_is_refused() {
    for text in [
        "",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-02-29T12:00:00Z",
        "2026-01-31T25:00:00Z",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00:00[Europe/Atlantis]",
        "PT1S",
        "tomorrow",
    ] {
        assert!(parse_date(text).is_err(), "{text}");
    }
}

#[test]
fn a_cycle_fires_from_due_time_to_due_time() {
    let check = |text: &str, now: &str, repetitions: Option<u32>, expected: &[&str]| {
        let cycle = parse_cycle(text).expect(text);
        assert_eq!(cycle.repetitions(), repetitions, "{text}");
        let mut due = cycle.first(at(now));
        for expected in expected {
            let previous = due.expect(text);
            assert_eq!(show(previous), *expected, "{text} {now}");
            due = cycle.next(previous, previous);
        }
    };
    let now = "2026-01-31T12:00:00Z";
    check("R3/PT10S", now, Some(3), &["2026-01-31T12:00:10Z", "2026-01-31T12:00:20Z"]);
    check("R/PT10S", now, None, &["2026-01-31T12:00:10Z"]);
    check("R/P1M", now, None, &["2026-02-28T12:00:00Z", "2026-03-28T12:00:00Z"]);
    check("R1/PT0S", now, Some(1), &["2026-01-31T12:00:00Z"]);
    let ahead = "R2/2026-02-01T00:00:00Z/PT1H";
    check(ahead, now, Some(2), &["2026-02-01T00:00:00Z", "2026-02-01T01:00:00Z"]);
    let passed = "R2/2020-01-01T00:30:00Z/PT1H";
    check(passed, now, Some(2), &["2026-01-31T12:30:00Z", "2026-01-31T13:30:00Z"]);
    let passed = "R/1970-01-01T00:00:00Z/PT0.001S";
    check(passed, now, None, &["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.001Z"]);
    check("R/2000-01-15T00:00:00Z/P1M", now, None, &["2026-02-15T00:00:00Z"]);
    // By the calendar of the zone: 8 o'clock stays 8 o'clock when the clocks change.
    let berlin = "R/2026-03-28T08:00:00+01:00[Europe/Berlin]/P1D";
    check(berlin, now, None, &["2026-03-28T07:00:00Z", "2026-03-29T06:00:00Z"]);
    let berlin = "R/2026-03-28T08:00:00+01:00[Europe/Berlin]/PT24H";
    check(berlin, now, None, &["2026-03-28T07:00:00Z", "2026-03-29T07:00:00Z"]);
    check("@hourly", now, None, &["2026-01-31T13:00:00Z", "2026-01-31T14:00:00Z"]);
}

#[test]
fn an_interval_counts_from_its_due_time_and_cron_from_now() {
    let (due, now) = (at("2026-01-31T12:00:00Z"), at("2026-01-31T15:30:00Z"));
    let check = |text: &str, expected: &str| {
        let next = parse_cycle(text).expect(text).next(due, now).expect(text);
        assert_eq!(show(next), expected, "{text}");
    };
    check("R/PT1H", "2026-01-31T13:00:00Z");
    check("@hourly", "2026-01-31T16:00:00Z");
}

#[test]
fn what_is_no_cycle_is_refused() {
    for text in [
        "",
        "R",
        "R3",
        "R/",
        "R3/",
        "R-1/PT1S",
        "R+1/PT1S",
        "Rx/PT1S",
        "R3/PT",
        "R/PT0S",
        "R3/2026-01-31/PT1S",
        "R3/PT1S/PT1S",
        "R99999999999/PT1S",
        "PT1S",
        "@never",
    ] {
        assert!(parse_cycle(text).is_err(), "{text}");
    }
    assert_eq!(parse_cycle("R0/PT1S").expect("it is well-formed").first(0), None);
}

#[test]
fn cron_fires_where_all_its_fields_match() {
    let check = |text: &str, from: &str, expected: &[&str]| {
        let cron = Cron::parse(text).expect(text);
        let mut now = at(from);
        for expected in expected {
            now = cron.next_after(now).expect(text);
            assert_eq!(show(now), format!("{expected}:00Z").replace(".00:00Z", "Z"), "{text}");
        }
    };
    let now = "2026-01-31T12:00:00Z";
    check("0 * * * * *", now, &["2026-01-31T12:01", "2026-01-31T12:02"]);
    check("0 0/15 * * * *", "2026-01-31T12:44:59.999Z", &["2026-01-31T12:45", "2026-01-31T13:00"]);
    check("0 0 9-17/4 * * *", now, &["2026-01-31T13:00", "2026-01-31T17:00", "2026-02-01T09:00"]);
    check("0 0 8,20 * * MON-FRI", now, &["2026-02-02T08:00", "2026-02-02T20:00"]);
    check("0 0 0 29 2 ?", now, &["2028-02-29T00:00", "2032-02-29T00:00"]);
    check("0 0 0 29 2 SUN", now, &["2032-02-29T00:00", "2060-02-29T00:00"]);
    check("0 0 0 29 FEB MON", "2072-03-01T00:00:00Z", &["2112-02-29T00:00"]);
    check("0 0 0 31 * *", now, &["2026-03-31T00:00", "2026-05-31T00:00"]);
    check("0 0 0 L * *", now, &["2026-02-28T00:00", "2026-03-31T00:00"]);
    check("0 0 0 L-3 * *", now, &["2026-02-25T00:00", "2026-03-28T00:00"]);
    check("0 0 0 LW * *", now, &["2026-02-27T00:00", "2026-03-31T00:00"]);
    check("0 0 0 1W * *", now, &["2026-02-02T00:00", "2026-03-02T00:00"]);
    check("0 0 0 15W * *", now, &["2026-02-16T00:00", "2026-03-16T00:00"]);
    check("0 0 0 31W * *", now, &["2026-03-31T00:00", "2026-05-29T00:00"]);
    check("0 0 0 ? * 5L", now, &["2026-02-27T00:00", "2026-03-27T00:00"]);
    check("0 0 0 ? * THUL", now, &["2026-02-26T00:00"]);
    check("0 0 0 ? * MON#1", now, &["2026-02-02T00:00", "2026-03-02T00:00"]);
    check("0 0 0 ? * 5#5", now, &["2026-05-29T00:00"]);
    check("0 0 0 * * 7", now, &["2026-02-01T00:00", "2026-02-08T00:00"]);
    check("0 0 0 * * FRI-SUN", now, &["2026-02-01T00:00", "2026-02-06T00:00"]);
    check("0 0 0 1,L * *", now, &["2026-02-01T00:00", "2026-02-28T00:00"]);
    check("@yearly", now, &["2027-01-01T00:00"]);
    check("@monthly", now, &["2026-02-01T00:00"]);
    check("@weekly", now, &["2026-02-01T00:00", "2026-02-08T00:00"]);
    check("@midnight", now, &["2026-02-01T00:00"]);
    check("30 59 23 31 12 *", now, &["2026-12-31T23:59:30.00", "2027-12-31T23:59:30.00"]);
}

#[test]
fn cron_on_clocks_that_change() {
    let berlin = TimeZoneDatabase::bundled().get("Europe/Berlin").expect("it is bundled");
    let check = |text: &str, from: &str, expected: &[&str]| {
        let cron = Cron::parse(text).expect(text).in_zone(berlin.clone());
        let mut now = at(from);
        for expected in expected {
            now = cron.next_after(now).expect(text);
            assert_eq!(show(now), format!("{expected}:00Z"), "{text}");
        }
    };
    let spring = "2026-03-29T00:00:00Z";
    check("0 30 2 * * *", spring, &["2026-03-29T01:00", "2026-03-30T00:30"]);
    check("0 0/30 * * * *", spring, &["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"]);
    let autumn = "2026-10-25T00:00:00Z";
    check("0 30 2 * * *", autumn, &["2026-10-25T00:30", "2026-10-26T01:30"]);
    check(
        "0 0/30 * * * *",
        autumn,
        &["2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00"],
    );
}

#[test]
fn what_is_no_cron_is_refused() {
    for text in [
        "* * * * *",
        "60 * * * * *",
        "* 60 * * * *",
        "* * 24 * * *",
        "* * * 0 * *",
        "* * * 32 * *",
        "* * * * 13 *",
        "* * * * * 8",
        "* * * * * L",
        "*/0 * * * * *",
        "5-3 * * * * *",
        "a * * * * *",
        "1, * * * * *",
        "-1 * * * * *",
        "+1 * * * * *",
        "* * * * * MON#6",
        "* * * 32W * *",
        "* * * * * * *",
        "@often",
    ] {
        assert!(Cron::parse(text).is_err(), "{text}");
    }
    assert_eq!(Cron::parse("0 0 0 30 2 *").expect("it is well-formed").next_after(0), None);
}
