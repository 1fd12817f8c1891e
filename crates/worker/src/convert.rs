//! Times and tokens on their way to the wire.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::error::Error;
use crate::v1;

/// Milliseconds, rounded up: a lease of half a millisecond is not none.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// As a payload.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Bytes, Error> {
    serde_json::to_vec(value).map(Bytes::from).map_err(Error::Json)
}

/// One activation of one job: what makes a result count for this worker and no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// The job.
    pub key: u64,
    /// The number of the activation.
    pub activation: u32,
}

impl From<&v1::Job> for Token {
    fn from(job: &v1::Job) -> Self {
        Self { key: job.key, activation: job.activation }
    }
}

impl From<Token> for v1::Token {
    fn from(token: Token) -> Self {
        Self { key: token.key, activation: token.activation }
    }
}

impl v1::NewJob {
    /// A job for `queue`, with everything else as the queue and the server have it.
    #[must_use]
    pub fn new(queue: impl Into<String>) -> Self {
        Self { queue: queue.into(), ..Self::default() }
    }

    /// Sets the payload to `value` as JSON.
    pub fn json(mut self, value: &impl Serialize) -> Result<Self, Error> {
        self.payload = to_json(value)?;
        Ok(self)
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets the unit of fairness: whose turn the job uses.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }

    /// Sets the priority; higher goes first.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the retries after the first attempt.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Sets how long from now the job may not be handed out.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ms = ms(delay);
        self
    }

    /// The part that most jobs do not have, made when it is not there.
    pub fn options_mut(&mut self) -> &mut v1::JobOptions {
        self.options.get_or_insert_default()
    }

    /// Sets the key of which only one live job may exist.
    #[must_use]
    pub fn unique(mut self, key: impl Into<String>) -> Self {
        self.options_mut().unique_key = key.into();
        self
    }

    /// Sets the request id: a repeated create is answered with the first one's key.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.options_mut().request_id = id.into();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_up() {
        assert_eq!(ms(Duration::ZERO), 0);
        assert_eq!(ms(Duration::from_nanos(1)), 1);
        assert_eq!(ms(Duration::from_millis(60_000)), 60_000);
        assert_eq!(ms(Duration::MAX), u64::MAX);
    }
}
