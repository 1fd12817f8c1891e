//! Where acknowledged states go.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::process::Side;
use crate::summary::StreamStats;

/// A commit that did not become durable.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct JournalError {
    /// What happened, with its causes.
    pub message: String,
}

impl JournalError {
    /// `what` completes "failed to …".
    #[must_use]
    pub fn new(what: &str, error: &dyn std::error::Error) -> Self {
        let mut message = format!("failed to {what}: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        Self { message }
    }
}

/// What is known to be in the destination.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Commit {
    /// Grows by one with each commit of an attempt, from 1.
    pub sequence: u64,
    /// The whole state, as an array for `--state`: what was there when the attempt began, with what
    /// was acknowledged since.
    pub state: Vec<Arc<str>>,
    /// The counts of the attempt so far. Committed are the records before the states of this commit.
    pub streams: Vec<StreamStats>,
}

impl Commit {
    /// The state as one JSON array.
    #[must_use]
    pub fn state_json(&self) -> String {
        format!("[{}]", self.state.join(","))
    }
}

/// Makes commits durable. Called from the threads of an attempt, one commit at a time; meanwhile
/// further acknowledgements gather, and the next commit has all of them.
pub trait Journal: Sync {
    /// Returns when the commit is durable.
    ///
    /// # Errors
    /// If it cannot become durable: the attempt fails.
    fn commit(&self, commit: &Commit) -> Result<(), JournalError>;

    /// A connector has a new configuration, for instance with a rotated token: durable at once.
    ///
    /// # Errors
    /// If it cannot become durable: the attempt fails.
    fn configuration(&self, side: Side, config: &str) -> Result<(), JournalError>;
}
