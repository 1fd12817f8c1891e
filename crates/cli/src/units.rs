//! Durations, times and numbers, from words and into words.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads `500ms`, `10s`, `5m`, `2h`, `1d`; a plain number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let ms_per_unit = match unit {
        "ms" => 1.0,
        "s" | "" => 1_000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(format!("{unit:?} is no unit of time: use ms, s, m, h or d")),
    };
    let number: f64 = number.trim().parse().map_err(|_| "expected for instance 10s".to_owned())?;
    let seconds = number * ms_per_unit / 1_000.0;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis)
}

/// A length of time in two digits or so.
pub(crate) fn short(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} days", ms / 86_400_000),
    }
}

/// A moment, seen from now.
pub(crate) fn seen_from_now(time_ms: u64) -> String {
    let now = now_ms();
    if time_ms > now {
        format!("in {}", short(time_ms - now))
    } else {
        format!("{} ago", short(now - time_ms))
    }
}

/// A moment in full, in UTC.
pub(crate) fn utc(time_ms: u64) -> String {
    let (days, rest) = (time_ms / 86_400_000, time_ms % 86_400_000);
    // Years of 365.2425 days counted from 0000-03-01, so that leap days come last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// A moment in full, and seen from now; nothing for no moment.
pub(crate) fn moment(time_ms: u64) -> String {
    if time_ms == 0 {
        String::new()
    } else {
        format!("{} ({})", utc(time_ms), seen_from_now(time_ms))
    }
}

/// 12345678 as 12,345,678.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in [("500ms", 500), ("2", 2_000), ("1.5s", 1_500), ("5m", 300_000)] {
            assert_eq!(duration(text).map(millis), Ok(ms), "{text}");
        }
        assert_eq!(duration("1d").map(millis), Ok(86_400_000));
        for text in ["", "s", "-1s", "5y", "1e400"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn days_are_counted_through_leap_years() {
        assert_eq!(utc(0), "1970-01-01 00:00:00Z");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00Z");
        assert_eq!(utc(1_709_251_199_000), "2024-02-29 23:59:59Z");
        assert_eq!(utc(1_735_689_600_000), "2025-01-01 00:00:00Z");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            (grouped(7), grouped(1_234), grouped(123_456)),
            ("7".to_owned(), "1,234".to_owned(), "123,456".to_owned())
        );
    }
}
