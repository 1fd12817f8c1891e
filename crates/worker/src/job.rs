//! A job as a handler sees it, and what the handler may do besides returning.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::client::Lease;
use crate::convert::Token;
use crate::error::Error;
use crate::flight::{Flight, Watch};
use crate::v1::{self, result::Outcome};

/// One activation of a job. `T` is its payload as the handler wants it.
#[derive(Debug)]
pub struct Job<T> {
    /// The payload.
    pub payload: T,
    info: v1::Job,
    context: JobContext,
}

impl<T> Job<T> {
    /// The job's key.
    #[must_use]
    pub fn key(&self) -> u64 {
        self.info.key
    }

    /// The token of this activation.
    #[must_use]
    pub fn token(&self) -> Token {
        self.context.token
    }

    /// Where it waited.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.info.queue
    }

    /// What work it is.
    #[must_use]
    pub fn job_type(&self) -> &str {
        &self.info.r#type
    }

    /// Whose turn it uses.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.info.group
    }

    /// Its priority.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.info.priority
    }

    /// The number of the attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.info.attempt
    }

    /// Retries left after this attempt.
    #[must_use]
    pub fn retries(&self) -> i32 {
        self.info.retries
    }

    /// When it was created, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn created_ms(&self) -> u64 {
        self.info.created_ms
    }

    /// Its static metadata as it was given; empty when there is none.
    #[must_use]
    pub fn header_bytes(&self) -> &Bytes {
        &self.info.headers
    }

    /// Its static metadata, read as JSON; an absent one reads as `null`.
    pub fn headers<H: DeserializeOwned>(&self) -> Result<H, serde_json::Error> {
        from_json(&self.info.headers)
    }

    /// What can be done besides returning. Cheap to clone; outlives the job without harm.
    #[must_use]
    pub fn context(&self) -> &JobContext {
        &self.context
    }

    pub(crate) fn split(self) -> (T, Job<()>) {
        (self.payload, Job { payload: (), info: self.info, context: self.context })
    }

    pub(crate) fn with<U>(self, payload: U) -> Job<U> {
        Job { payload, info: self.info, context: self.context }
    }
}

impl Job<Bytes> {
    pub(crate) fn arrived(mut info: v1::Job, flight: &Arc<Flight>, watch: Arc<Watch>) -> Self {
        let token = Token::from(&info);
        let context = JobContext { token, flight: Arc::clone(flight), watch };
        Self { payload: std::mem::take(&mut info.payload), info, context }
    }
}

/// Reads JSON as payloads hold it: nothing at all is `null`.
pub(crate) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(if bytes.is_empty() { b"null" } else { bytes })
}

/// What a handler may do while its job runs.
///
/// The lease is extended by itself for as long as the worker lives; a handler only has to look at
/// [`cancelled`](Self::cancelled) if it can stop half way.
#[derive(Debug, Clone)]
pub struct JobContext {
    token: Token,
    flight: Arc<Flight>,
    watch: Arc<Watch>,
}

impl JobContext {
    /// Cancelled when the job should stop: somebody cancelled it, its lease was lost, or the worker
    /// drains and its time is up.
    #[must_use]
    pub fn cancelled(&self) -> &CancellationToken {
        &self.watch.cancelled
    }

    /// Whether the reason to stop is that the job is no longer ours, so that its result will be
    /// refused.
    #[must_use]
    pub fn lease_lost(&self) -> bool {
        self.watch.lease_lost.load(Ordering::Relaxed)
    }

    /// Says how far the job is, without waiting. Of several in a row only the last may be sent. A note is cut
    /// after 4,096 bytes.
    pub fn progress(&self, percent: u8, note: impl Into<String>) {
        let note = cut(note.into());
        let progress =
            v1::Progress { percent: percent.min(100).into(), note, documents: Vec::new() };
        self.flight.note(self.token, Outcome::Progress(progress));
    }

    /// Adds a line to the job's log, without waiting. A line is cut after 4,096 bytes, and the server keeps a
    /// bounded number per attempt.
    pub fn log(&self, line: impl Into<String>) {
        let log = v1::Log { lines: vec![cut(line.into())] };
        self.flight.note(self.token, Outcome::Log(log));
    }

    /// Says how far the job is and writes documents in the same moment; both are durable when this
    /// returns.
    pub async fn commit(
        &self,
        percent: u8,
        note: impl Into<String>,
        documents: Vec<v1::DocumentWrite>,
    ) -> Result<Lease, Error> {
        let note = note.into();
        let progress = v1::Progress { percent: percent.min(100).into(), note, documents };
        let lease = self.flight.client.report_progress(self.token, progress).await?;
        self.learn(lease)
    }

    /// Moves the end of the lease to `lease` from now, for a step in which even the worker's
    /// heartbeats may stop.
    pub async fn extend(&self, lease: Duration) -> Result<Lease, Error> {
        self.flight.extending(self.token);
        let answer = self.flight.client.extend_lease(self.token, lease).await?;
        self.flight.extended(self.token, lease);
        self.learn(answer)
    }

    fn learn(&self, lease: Lease) -> Result<Lease, Error> {
        if lease.cancel_asked {
            self.watch.cancelled.cancel();
        }
        Ok(lease)
    }
}

/// Servers keep no more of a line.
const TEXT_BYTES_MAX: usize = 4_096;

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}
