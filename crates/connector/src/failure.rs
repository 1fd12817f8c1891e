//! Why something did not work, in the words of the face: who, of which kind, and what was said.

use serde::{Deserialize, Serialize};

use crate::protocol::message::{Descriptor, TraceError};

/// Failures that an attempt keeps; then it says that there were more.
pub const FAILURES_MAX: usize = 10;
/// Characters of a message.
pub const MESSAGE_CHARS_MAX: usize = 50_000;
/// Characters of a stack trace.
pub const STACK_CHARS_MAX: usize = 100_000;

/// Where it went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The source.
    Source,
    /// The destination.
    Destination,
    /// Between the two.
    Replication,
    /// Where states are kept.
    Persistence,
    /// Everything else of ours.
    AirbytePlatform,
}

/// Of which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureType {
    /// The configuration is wrong: another attempt will not help.
    ConfigError,
    /// Anything else.
    SystemError,
    /// Another attempt will probably help.
    TransientError,
    /// Somebody cancelled.
    ManualCancellation,
    /// The source was silent for too long.
    HeartbeatTimeout,
    /// The destination took nothing for too long.
    DestinationTimeout,
}

/// One thing that went wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Where.
    pub failure_origin: Origin,
    /// Of which kind.
    pub failure_type: FailureType,
    /// For developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_message: Option<String>,
    /// For people.
    pub external_message: String,
    /// Of an exception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacktrace: Option<String>,
    /// Whether the connector itself said so, in a trace.
    #[serde(default)]
    pub from_trace: bool,
    /// When, in milliseconds since 1970.
    pub timestamp: u64,
    /// Which stream it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_descriptor: Option<Descriptor>,
}

impl Failure {
    /// With a message for people.
    #[must_use]
    pub fn new(origin: Origin, kind: FailureType, message: impl Into<String>) -> Self {
        Self {
            failure_origin: origin,
            failure_type: kind,
            internal_message: None,
            external_message: shorten(message.into(), MESSAGE_CHARS_MAX),
            stacktrace: None,
            from_trace: false,
            timestamp: crate::observer::now_ms(),
            stream_descriptor: None,
        }
    }

    /// With more for developers.
    #[must_use]
    pub fn internal(mut self, message: impl Into<String>) -> Self {
        self.internal_message = Some(shorten(message.into(), MESSAGE_CHARS_MAX));
        self
    }

    /// About a stream.
    #[must_use]
    pub fn stream(mut self, stream: Descriptor) -> Self {
        self.stream_descriptor = Some(stream);
        self
    }

    /// What a connector said in an error trace.
    #[must_use]
    pub fn of_trace(origin: Origin, error: TraceError, emitted_at: Option<f64>) -> Self {
        let kind = match error.failure_type.as_deref() {
            Some("config_error") => FailureType::ConfigError,
            Some("transient_error") => FailureType::TransientError,
            _ => FailureType::SystemError,
        };
        let message = error.message.filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| "something went wrong in the connector".to_owned());
        let mut failure = Self::new(origin, kind, message);
        failure.internal_message =
            error.internal_message.map(|text| shorten(text, MESSAGE_CHARS_MAX));
        failure.stacktrace = error.stack_trace.map(|text| shorten(text, STACK_CHARS_MAX));
        failure.stream_descriptor = error.stream_descriptor;
        failure.from_trace = true;
        if let Some(ms) = emitted_at.filter(|ms| (0.0..1e15).contains(ms)) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            let ms = ms as u64;
            failure.timestamp = ms;
        }
        failure
    }
}

/// Failures in their order: what connectors said by themselves, by its time; then what we found.
#[derive(Debug, Default)]
pub struct Failures {
    traces: Vec<Failure>,
    found: Vec<Failure>,
    left_out: usize,
}

impl Failures {
    /// One more, unless there are too many already.
    pub fn push(&mut self, failure: Failure) {
        let list = if failure.from_trace { &mut self.traces } else { &mut self.found };
        // Each list by itself, so that a connector that says a lot does not hide what we found.
        if list.len() < FAILURES_MAX { list.push(failure) } else { self.left_out += 1 }
    }

    /// In order, bounded.
    #[must_use]
    pub fn into_list(mut self) -> Vec<Failure> {
        self.traces.sort_by_key(|failure| failure.timestamp);
        // What we found says why the attempt failed: at least one of it stays.
        let room = FAILURES_MAX - self.found.len().min(FAILURES_MAX / 2);
        let cut = self.traces.len().saturating_sub(room);
        self.traces.truncate(self.traces.len() - cut);
        let mut list = self.traces;
        list.append(&mut self.found);
        let more = list.len().saturating_sub(FAILURES_MAX);
        list.truncate(FAILURES_MAX);
        let left_out = self.left_out + cut + more;
        if left_out > 0 {
            let message = format!("{left_out} further failures were left out");
            list.push(Failure::new(Origin::AirbytePlatform, FailureType::SystemError, message));
        }
        list
    }
}

/// At most so many characters, and a sign where it was cut.
#[must_use]
pub fn shorten(mut text: String, chars_max: usize) -> String {
    if text.len() > chars_max && text.chars().nth(chars_max).is_some() {
        let last = text.char_indices().nth(chars_max.saturating_sub(1));
        text.truncate(last.map_or(0, |(at, _)| at));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_bounded_and_traces_come_first() {
        let mut failures = Failures::default();
        for number in 0..30 {
            failures.push(Failure::new(
                Origin::Source,
                FailureType::SystemError,
                format!("f{number}"),
            ));
        }
        let text = r#"{"message":"bad token","failure_type":"config_error"}"#;
        for at in [2.5, 1.5] {
            let error: TraceError = serde_json::from_str(text).unwrap();
            failures.push(Failure::of_trace(Origin::Source, error, Some(at)));
        }
        let list = failures.into_list();
        assert_eq!(list.len(), FAILURES_MAX + 1);
        assert_eq!((list[0].timestamp, list[1].timestamp), (1, 2));
        assert_eq!(list[0].failure_type, FailureType::ConfigError);
        assert_eq!(list[2].external_message, "f0");
        assert_eq!(list[10].external_message, "22 further failures were left out");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shorten("ééé".to_owned(), 3), "ééé");
        assert_eq!(shorten("éééé".to_owned(), 3), "éé…");
    }
}
