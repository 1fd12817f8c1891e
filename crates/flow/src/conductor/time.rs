//! Times as WAIT tasks write them: `2 days 3 h 5 min 1 s`, `2026-11-21 09:30 Europe/Berlin`.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// Units of a duration, the longest first: what they are called, and how long they are (ms).
const UNITS: [(&[&str], u64); 4] = [
    (&["d", "day", "days"], 86_400_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
];

/// A length of time (ms): numbers with units, each unit once, the longest first.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let refused = || format!("Not valid duration: {text}");
    let mut rest = text.trim();
    let mut total_ms: u64 = 0;
    let mut next_unit = 0;
    if rest.is_empty() {
        return Err(refused());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| refused())?;
        let behind = behind.trim_start();
        let letters = behind.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, behind) = behind.split_at(letters);
        let unit = unit.to_ascii_lowercase();
        let found = UNITS
            .iter()
            .enumerate()
            .skip(next_unit)
            .find(|(_, (names, _))| names.contains(&unit.as_str()));
        let (index, (_, ms)) = found.ok_or_else(refused)?;
        next_unit = index + 1;
        let part_ms = number.checked_mul(*ms).ok_or_else(refused)?;
        total_ms = total_ms.checked_add(part_ms).ok_or_else(refused)?;
        rest = behind.trim_start();
    }
    Ok(total_ms)
}

/// A time (ms since the epoch): `yyyy-MM-dd HH:mm z`, `yyyy-MM-dd HH:mm` or `yyyy-MM-dd`; UTC when
/// no zone is named.
pub fn date_ms(text: &str) -> Result<u64, String> {
    let refused = || {
        format!(
            "Not a valid date: {text}; yyyy-MM-dd HH:mm z, yyyy-MM-dd HH:mm or yyyy-MM-dd is \
             expected"
        )
    };
    let mut parts = text.split_whitespace();
    let day: Date = parts.next().and_then(|day| day.parse().ok()).ok_or_else(refused)?;
    let time: DateTime = match parts.next() {
        None => day.to_datetime(jiff::civil::Time::midnight()),
        Some(clock) => {
            let (hour, minute) = clock.split_once(':').ok_or_else(refused)?;
            let (hour, minute) =
                (hour.parse().map_err(|_| refused())?, minute.parse().map_err(|_| refused())?);
            let clock = jiff::civil::Time::new(hour, minute, 0, 0).map_err(|_| refused())?;
            day.to_datetime(clock)
        }
    };
    let zone = match parts.next() {
        None | Some("UTC" | "GMT" | "Z") => TimeZone::UTC,
        Some(name) => zone(name).ok_or_else(refused)?,
    };
    if parts.next().is_some() {
        return Err(refused());
    }
    let zoned = time.to_zoned(zone).map_err(|_| refused())?;
    u64::try_from(zoned.timestamp().as_millisecond()).map_err(|_| refused())
}

/// A zone by its name in the database, by one of Java's short names, or by an offset.
fn zone(name: &str) -> Option<TimeZone> {
    let known = match name {
        "PST" | "PDT" => "America/Los_Angeles",
        "EST" | "EDT" => "America/New_York",
        "CST" | "CDT" => "America/Chicago",
        "MST" | "MDT" => "America/Denver",
        "CET" | "CEST" => "Europe/Paris",
        "BST" => "Europe/London",
        "IST" => "Asia/Kolkata",
        "JST" => "Asia/Tokyo",
        other => other,
    };
    if let Some(offset) = known.strip_prefix("GMT").or_else(|| known.strip_prefix("UTC")) {
        return offset_zone(offset);
    }
    TimeZone::get(known).ok().or_else(|| offset_zone(known))
}

fn offset_zone(text: &str) -> Option<TimeZone> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = match rest.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if rest.len() == 4 => rest.split_at(2),
        None => (rest, "0"),
    };
    let seconds = hours.parse::<i32>().ok()? * 3_600 + minutes.parse::<i32>().ok()? * 60;
    Some(TimeZone::fixed(jiff::tz::Offset::from_seconds(sign * seconds).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, expected) in [
            ("1 s", Some(1_000)),
            ("2 days 3 h 5 min 1 s", Some(183_901_000)),
            ("5m", Some(300_000)),
            ("1h30m", Some(5_400_000)),
            ("10 Seconds", Some(10_000)),
            ("", None),
            ("5", None),
            ("5 s 1 m", None),
            ("1 m 1 m", None),
            ("x", None),
            ("99999999999999999999 d", None),
            ("18446744073709551615 d", None),
        ] {
            assert_eq!(duration_ms(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn dates() {
        for (text, expected) in [
            ("1970-01-02", Some(86_400_000)),
            ("1970-01-01 00:01", Some(60_000)),
            ("2026-11-21 09:30 Europe/Berlin", Some(1_795_249_800_000)),
            ("2026-11-21 09:30 GMT+01:00", Some(1_795_249_800_000)),
            ("2026-13-01", None),
            ("2026-11-21 25:00", None),
            ("2026-11-21 09:30 Nowhere/Town", None),
            ("soon", None),
        ] {
            assert_eq!(date_ms(text).ok(), expected, "{text}");
        }
    }
}
