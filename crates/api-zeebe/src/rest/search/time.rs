//! Times as this wire writes and reads them.

use jiff::Timestamp;

/// Written in UTC, with thousandths.
pub(super) fn show(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    // What is later than the year 9999 was never a time.
    format!("{:.3}", time.unwrap_or(Timestamp::MAX))
}

/// Milliseconds since the epoch.
pub(super) fn read(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_was_shown() {
        assert_eq!(show(1_700_000_000_007), "2023-11-14T22:13:20.007Z");
        assert_eq!(show(0), "1970-01-01T00:00:00.000Z");
        assert!(show(u64::MAX).starts_with("9999-"));
        for (text, ms) in [
            ("2023-11-14T22:13:20.007Z", Some(1_700_000_000_007)),
            ("2023-11-14T23:13:20.007+01:00", Some(1_700_000_000_007)),
            ("2023-11-14T22:13:20Z", Some(1_700_000_000_000)),
            ("yesterday", None),
            ("2023-11-14", None),
        ] {
            assert_eq!(read(text), ms, "{text}");
        }
    }
}
