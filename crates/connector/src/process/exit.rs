//! How a connector ended, and what that means.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use crate::failure::{Failure, FailureType};
use crate::process::Side;

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended by itself.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
const SIGXCPU: i32 = 24;

/// What [`helper`](mod@crate::process::helper) ends with when it could not start the connector.
pub const NOT_STARTED: i32 = 127;

/// What the stand-in of a container says when the kernel has killed in it for want of memory.
pub(crate) const OOM_KILLED: &str = "(OOMKilled)";

impl Exit {
    /// As the system reports it.
    #[must_use]
    pub fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or(SIGKILL)),
        }
    }

    /// As a shell reports it.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// Whether all is well.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// Why a connector that ended so, by itself, has failed. `said` is the end of its standard error.
    #[must_use]
    pub fn failure(self, side: Side, said: &str) -> Failure {
        let name = side.name();
        let out_of_memory = said.contains("MemoryError") || said.contains("OutOfMemoryError");
        let (kind, message) = match self {
            Self::Code(code) if said.contains(OOM_KILLED) => (
                FailureType::SystemError,
                format!("the {name} ran out of memory (exit code {code})"),
            ),
            Self::Code(137) | Self::Signal(SIGKILL) => (
                FailureType::SystemError,
                format!(
                    "the {name} was killed (exit code 137): most likely the machine or its limit was \
                     out of memory"
                ),
            ),
            Self::Code(code) if out_of_memory => (
                FailureType::SystemError,
                format!("the {name} ran out of memory (exit code {code})"),
            ),
            Self::Code(2) => (
                FailureType::SystemError,
                format!("the {name} did not understand its command line (exit code 2)"),
            ),
            Self::Code(120) => (
                FailureType::SystemError,
                format!("the {name} could not write its output (exit code 120)"),
            ),
            Self::Code(126 | NOT_STARTED) => (
                FailureType::SystemError,
                format!("the {name} could not be started (exit code {})", self.code()),
            ),
            Self::Code(143) | Self::Signal(SIGTERM) => (
                FailureType::TransientError,
                format!("the {name} was asked to end by somebody else (exit code 143)"),
            ),
            Self::Signal(SIGXCPU) => (
                FailureType::SystemError,
                format!("the {name} used up its processor time (signal {SIGXCPU})"),
            ),
            Self::Signal(signal) => {
                (FailureType::SystemError, format!("the {name} was ended by signal {signal}"))
            }
            Self::Code(code) => {
                (FailureType::SystemError, format!("the {name} ended with exit code {code}"))
            }
        };
        let failure = Failure::new(side.origin(), kind, message);
        if said.is_empty() { failure } else { failure.internal(said) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_in_words() {
        let cases = [
            (Exit::Code(137), "out of memory"),
            (Exit::Signal(9), "out of memory"),
            (Exit::Signal(15), "exit code 143"),
            (Exit::Code(120), "write its output"),
            (Exit::Code(2), "command line"),
            (Exit::Code(127), "could not be started"),
            (Exit::Code(1), "exit code 1"),
            (Exit::Signal(11), "signal 11"),
        ];
        for (exit, part) in cases {
            let failure = exit.failure(Side::Source, "Traceback");
            assert!(failure.external_message.contains(part), "{exit:?}: {failure:?}");
            assert_eq!(failure.internal_message.as_deref(), Some("Traceback"));
        }
        let failure = Exit::Code(1).failure(Side::Destination, "x\nMemoryError\n");
        assert!(failure.external_message.contains("ran out of memory"));
    }
}
