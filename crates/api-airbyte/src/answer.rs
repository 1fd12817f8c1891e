//! Writes answers.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::extract::Page;

/// A JSON answer.
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Shown<T> {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0).expect("answers are plain data");
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// Status 204.
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// A page of what was found, with where the others are.
pub(crate) fn listed<T>(found: Vec<T>, page: &Page, shown: impl Fn(T) -> Value) -> Shown<Value> {
    let (found, more) = page.part(found);
    paged(found.into_iter().map(shown).collect(), more, page)
}

/// A page that was made already.
pub(crate) fn paged(data: Vec<Value>, more: bool, page: &Page) -> Shown<Value> {
    let next = if more { page.at(page.offset.saturating_add(page.limit)) } else { String::new() };
    let previous = match page.offset {
        0 => String::new(),
        offset => page.at(offset.saturating_sub(page.limit)),
    };
    Shown(json!({ "data": data, "next": next, "previous": previous }))
}

/// A time as clients read it: to the second, in UTC.
pub(crate) fn moment(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}

/// A length of time in ISO 8601.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = "PT".to_owned();
    for (count, unit) in [(hours, 'H'), (minutes, 'M')] {
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if seconds > 0 || text == "PT" {
        text.push_str(&format!("{seconds}S"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_lengths() {
        assert_eq!(moment(1_679_707_850_999), "2023-03-25T01:30:50Z");
        for (ms, text) in [
            (0, "PT0S"),
            (999, "PT0S"),
            (61_000, "PT1M1S"),
            (3_600_000, "PT1H"),
            (90_061_000, "PT25H1M1S"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }
}
