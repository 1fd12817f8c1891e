//! How a handler says that it did not succeed.

use std::time::Duration;

use bytes::Bytes;

use crate::convert::ms;
use crate::v1::{self, result::Outcome};

/// The longest message that is sent; the server refuses more than 10,000 bytes.
pub const MESSAGE_BYTES_MAX: usize = 8_000;

/// What a handler returns instead of a result. Any error turns into one with `?`, so that the job's
/// retry policy decides; the constructors say more.
///
/// It is not an error itself, since then not every error could become one.
#[derive(Debug, Clone)]
pub struct Failure {
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    Fail(v1::Fail),
    Throw(v1::Throw),
    Release(v1::Release),
}

impl Failure {
    /// The attempt failed; the job's retry policy decides what comes next.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        let message = bounded(message.into());
        Self { how: How::Fail(v1::Fail { message, ..v1::Fail::default() }) }
    }

    /// The attempt failed and another one would fail as well: no retries.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self::new(message).with(|fail| fail.permanent = true)
    }

    /// The job ends with an error of its domain, which a flow may catch by its code.
    #[must_use]
    pub fn throw(code: impl Into<String>, message: impl Into<String>) -> Self {
        let throw = v1::Throw { code: code.into(), message: bounded(message.into()) };
        Self { how: How::Throw(throw) }
    }

    /// Put back: not done, nobody's fault, costs no retry. Another worker may have it after `delay`.
    #[must_use]
    pub fn release(delay: Duration) -> Self {
        Self { how: How::Release(v1::Release { delay_ms: ms(delay) }) }
    }

    /// Says what remains, instead of using one up. Means something for a failed attempt only.
    #[must_use]
    pub fn retries(self, retries: i32) -> Self {
        self.with(|fail| fail.retries = Some(retries))
    }

    /// Says when the next attempt may begin, instead of the retry policy.
    #[must_use]
    pub fn backoff(self, backoff: Duration) -> Self {
        self.with(|fail| fail.backoff_ms = Some(ms(backoff)))
    }

    /// The attempt failed, but it got further than the one before.
    #[must_use]
    pub fn progressed(self) -> Self {
        self.with(|fail| fail.progressed = true)
    }

    /// Leaves a JSON object behind: variables of the element, or the output of the task, that the job
    /// is of. Means something for a failed attempt of a job of a flow only.
    #[must_use]
    pub fn variables(self, variables: impl Into<Bytes>) -> Self {
        self.with(|fail| fail.variables = variables.into())
    }

    /// How much it leaves behind.
    pub(crate) fn variables_bytes(&self) -> usize {
        if let How::Fail(fail) = &self.how { fail.variables.len() } else { 0 }
    }

    fn with(mut self, change: impl FnOnce(&mut v1::Fail)) -> Self {
        if let How::Fail(fail) = &mut self.how {
            change(fail);
        }
        self
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        match self.how {
            How::Fail(fail) => Outcome::Fail(fail),
            How::Throw(throw) => Outcome::Throw(throw),
            How::Release(release) => Outcome::Release(release),
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new(message)
    }
}

/// Cuts at a character, so that a long message cannot make the failure itself fail.
fn bounded(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_brings_its_causes() {
        fn fails() -> Result<(), Failure> {
            Err(crate::Error::Json(serde_json::from_str::<u8>("x").unwrap_err()))?
        }
        let Outcome::Fail(fail) = fails().unwrap_err().into_outcome() else { panic!("no fail") };
        assert!(fail.message.starts_with("failed to write a value as JSON: expected value"));
        assert_eq!(fail.retries, None);
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let failure = Failure::new("ä".repeat(MESSAGE_BYTES_MAX));
        let Outcome::Fail(fail) = failure.into_outcome() else { panic!("no fail") };
        assert_eq!(fail.message.len(), MESSAGE_BYTES_MAX);
    }

    #[test]
    fn what_only_a_fail_has_leaves_a_throw_alone() {
        let outcome = Failure::throw("no-stock", "sold out").retries(3).into_outcome();
        let Outcome::Throw(throw) = outcome else { panic!("no throw") };
        assert_eq!((throw.code.as_str(), throw.message.as_str()), ("no-stock", "sold out"));
    }
}
