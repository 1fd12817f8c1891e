//! The benchmark's one error: what it failed to do and why, as a sentence for a person.

use std::fmt::{self, Display};

/// Result of a step of the benchmark.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a step failed. A failure of one system is printed and ends that system's figures, never
/// the others'; nothing branches on its kind, so it carries only words.
#[derive(Debug, Clone)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure with no error beneath it.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Names the step at hand when an inner error passes through.
pub(crate) trait Context<T> {
    /// Turns the error into "failed to `what`: error".
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Failure(format!("failed to {what}: {error}")))
    }
}
