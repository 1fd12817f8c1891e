//! Who watches: logs, and that something is known now.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::process::Side;

/// How much a line of a log matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For whoever looks for a defect.
    Debug,
    /// What happens.
    Info,
    /// Something is strange.
    Warn,
    /// Something went wrong.
    Error,
}

impl Level {
    /// As a connector calls it.
    #[must_use]
    pub fn of_connector(level: &str) -> Self {
        match level {
            "FATAL" | "ERROR" => Self::Error,
            "WARN" => Self::Warn,
            "DEBUG" | "TRACE" => Self::Debug,
            _ => Self::Info,
        }
    }

    /// In capitals, five letters wide at most.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// Takes what people may want to see. Called from several threads, and not waited for gladly.
pub trait Observer: Send + Sync {
    /// A line of a connector's log, or of ours with `side` as `None`. Bounded in length.
    fn log(&self, side: Option<Side>, level: Level, text: &str);

    /// An attempt is at another step: `check source`, `replicate`, `pulling …`.
    fn step(&self, name: &str) {
        let _ = name;
    }

    /// Everything that a connector needs is there: it is started.
    fn launched(&self) {}

    /// A connector has said something. Called for each piece that is read.
    fn heard(&self) {}

    /// How far the replication is; called a few times a second.
    fn progress(&self, progress: &crate::summary::Progress) {
        let _ = progress;
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn log(&self, _side: Option<Side>, _level: Level, _text: &str) {}
}

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
