//! What came of an attempt, and how far it is.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Failure, FailureType};
use crate::protocol::message::Descriptor;

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Both processes ended with 0, and the input was closed cleanly.
    Completed,
    /// Something went wrong.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

/// Where a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StreamState {
    /// Nothing was heard of it yet.
    #[default]
    Pending,
    /// Records come.
    Running,
    /// The source waits for its quota.
    RateLimited,
    /// The source said so, and the destination has acknowledged its last state.
    Complete,
    /// It ended before.
    Incomplete,
}

/// The counts of a stream in an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamStats {
    /// What the source calls it.
    pub name: String,
    /// What the source calls its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Records that the source sent, without empty ones.
    pub records_emitted: u64,
    /// Bytes of their data.
    pub bytes_emitted: u64,
    /// Of them in the destination, as far as it said so.
    pub records_committed: u64,
    /// Bytes of their data.
    pub bytes_committed: u64,
    /// Of them refused by the destination.
    pub records_rejected: u64,
    /// Of them not sent on.
    pub records_filtered: u64,
    /// What the source thinks is to come in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_records: Option<u64>,
    /// What the source thinks is to come in all, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_bytes: Option<u64>,
    /// Where it is.
    pub status: StreamState,
    /// Whether states came twice, or there were too many: what is committed may be too little.
    #[serde(default)]
    pub unreliable: bool,
}

impl StreamStats {
    /// Its name.
    #[must_use]
    pub fn descriptor(&self) -> Descriptor {
        Descriptor { name: self.name.clone(), namespace: self.namespace.clone() }
    }
}

/// Whether connectors count as we do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checksums {
    /// States of the source with a count of records.
    pub source_compared: u64,
    /// Of them with another one than ours.
    pub source_mismatched: u64,
    /// States of the destination with a count of records.
    pub destination_compared: u64,
    /// Of them with another one than ours.
    pub destination_mismatched: u64,
}

/// How far a replication is.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Every stream.
    pub streams: Vec<StreamStats>,
    /// Estimates for the whole, records and bytes, if the source gives any.
    pub estimate: Option<(Option<u64>, Option<u64>)>,
    /// Commits that are durable.
    pub commits: u64,
    /// When the last one became durable, in milliseconds since 1970; 0 for never.
    pub committed_ms: u64,
    /// States that the destination has not acknowledged yet.
    pub states_in_flight: u64,
}

impl Progress {
    /// Sums over all streams: emitted records, emitted bytes, committed records.
    #[must_use]
    pub fn totals(&self) -> (u64, u64, u64) {
        self.streams.iter().fold((0, 0, 0), |(records, bytes, committed), stream| {
            (
                records + stream.records_emitted,
                bytes + stream.bytes_emitted,
                committed + stream.records_committed,
            )
        })
    }
}

/// One step of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// `check source`, `check destination`, `discover` or `replicate`.
    pub name: String,
    /// Milliseconds since 1970.
    pub started_at: u64,
    /// Milliseconds since 1970.
    pub ended_at: u64,
    /// Whether the attempt went on behind it.
    pub succeeded: bool,
}

/// What came of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// In one word.
    pub status: Status,
    /// Milliseconds since 1970.
    pub started_at: u64,
    /// Milliseconds since 1970.
    pub ended_at: u64,
    /// What was done.
    pub steps: Vec<Step>,
    /// The counts of every stream.
    pub streams: Vec<StreamStats>,
    /// Sums of them.
    pub records_emitted: u64,
    /// Sums of them.
    pub bytes_emitted: u64,
    /// Sums of them.
    pub records_committed: u64,
    /// Sums of them.
    pub bytes_committed: u64,
    /// Sums of them.
    pub records_rejected: u64,
    /// Why it failed, at most [`FAILURES_MAX`](crate::failure::FAILURES_MAX) and a notice.
    pub failures: Vec<Failure>,
    /// Whether it failed, but something was committed.
    pub partial_success: bool,
    /// Whether another attempt cannot help: the first failure is a wrong configuration.
    pub permanent: bool,
    /// Of the source, as a shell reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_exit_code: Option<i32>,
    /// Of the destination, as a shell reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination_exit_code: Option<i32>,
    /// Whether connectors count as we do.
    pub checksums: Checksums,
    /// The number of commits.
    pub commits: u64,
    /// The whole state as it is committed.
    pub state: Vec<Value>,
    /// What the source showed, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Value>,
}

impl Summary {
    /// An attempt that has done nothing yet.
    #[must_use]
    pub fn begun() -> Self {
        let now = crate::observer::now_ms();
        Self {
            status: Status::Failed,
            started_at: now,
            ended_at: now,
            steps: Vec::new(),
            streams: Vec::new(),
            records_emitted: 0,
            bytes_emitted: 0,
            records_committed: 0,
            bytes_committed: 0,
            records_rejected: 0,
            failures: Vec::new(),
            partial_success: false,
            permanent: false,
            source_exit_code: None,
            destination_exit_code: None,
            checksums: Checksums::default(),
            commits: 0,
            state: Vec::new(),
            catalog: None,
        }
    }

    /// Of an attempt that never began.
    #[must_use]
    pub fn never_began(failure: Failure) -> Self {
        Self::begun().end(Status::Failed, vec![failure])
    }

    /// Takes over the counts of the streams.
    pub(crate) fn count(&mut self, streams: Vec<StreamStats>) {
        for stream in &streams {
            self.records_emitted += stream.records_emitted;
            self.bytes_emitted += stream.bytes_emitted;
            self.records_committed += stream.records_committed;
            self.bytes_committed += stream.bytes_committed;
            self.records_rejected += stream.records_rejected;
        }
        self.streams = streams;
    }

    /// Takes over the state as committed.
    pub(crate) fn keep_state(&mut self, state: &[Arc<str>]) {
        self.state = state.iter().filter_map(|state| serde_json::from_str(state).ok()).collect();
    }

    /// The end, with everything that follows from the rest.
    pub(crate) fn end(mut self, status: Status, failures: Vec<Failure>) -> Self {
        self.status = status;
        self.ended_at = crate::observer::now_ms();
        let first = failures.first().map(|failure| failure.failure_type);
        self.permanent = status == Status::Failed && first == Some(FailureType::ConfigError);
        self.partial_success = status != Status::Completed && self.records_committed > 0;
        self.failures = failures;
        self
    }
}
