//! What happened. Events are what the log keeps and what `apply` assigns from: they carry
//! outcomes (a due time, the retries left, a counter's new value), never the inputs of a rule, so
//! that an upgrade that changes a decision cannot change the past.

use std::borrow::Cow;

use crate::command::JobOptions;
use crate::flow::FlowEvent;
use crate::id::{JobKey, LimitId, Payload, QueueId};
use crate::policy::{LimitSettings, QueueSettings};
use crate::schedule::ScheduleEvent;

/// An event. Borrows its text from the command or from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Event<'a> {
    /// The partition came up after an outage or a hand-over. Leases that end before `leases_to_ms`
    /// end then instead, so that workers can reconnect before their jobs are given away.
    PartitionOpened {
        /// No lease ends before this.
        leases_to_ms: u64,
    },
    /// The wall clock jumped ahead; leases move with it.
    LeasesMoved {
        /// By how much.
        by_ms: u64,
    },
    /// A queue exists from now on.
    QueueCreated {
        /// Its id, dense from 0.
        queue: QueueId,
        /// The wall of security.
        tenant: &'a str,
        /// Its name.
        name: &'a str,
        /// Its settings.
        settings: QueueSettings,
    },
    /// A queue has new settings.
    QueueConfigured {
        /// The queue.
        queue: QueueId,
        /// Its settings.
        settings: QueueSettings,
    },
    /// Hand-out of a queue stopped or resumed.
    QueuePaused {
        /// The queue.
        queue: QueueId,
        /// Whether it is stopped.
        paused: bool,
    },
    /// A limit key has new settings.
    LimitConfigured {
        /// Its number, dense from 0; the first event with a number makes the key.
        limit: LimitId,
        /// The wall of security.
        tenant: &'a str,
        /// The limit key.
        name: &'a str,
        /// Its settings.
        settings: LimitSettings,
        /// Whether the settings come from a queue and not from a person. Such a key is forgotten
        /// when no job uses it.
        implied: bool,
    },
    /// A rate window has room again for jobs that were parked on it.
    RateFreed {
        /// The limit key, by its number in the partition.
        limit: LimitId,
    },
    /// A job exists from now on.
    JobCreated(JobCreated<'a>),
    /// A worker holds the job.
    JobActivated(JobActivated<'a>),
    /// A hand-out that was never sent was taken back; it left no trace but its number.
    JobReturned {
        /// The job.
        key: JobKey,
        /// The turn its group gets back.
        turn: u64,
        /// The counter of its group's scheme.
        scheme_count: u32,
    },
    /// The lease ends later (or sooner).
    LeaseExtended {
        /// The job.
        key: JobKey,
        /// When it ends.
        deadline_ms: u64,
    },
    /// The worker said how far it is.
    JobProgressed {
        /// The job.
        key: JobKey,
        /// 0..=100.
        percent: u8,
        /// What to show beside it.
        note: &'a str,
    },
    /// The worker logged.
    JobLogged {
        /// The job.
        key: JobKey,
        /// The lines that are kept.
        lines: Cow<'a, [Cow<'a, str>]>,
        /// Lines of this attempt that were dropped so far.
        dropped: u32,
    },
    /// The attempt failed and there will be another.
    JobRetried {
        /// The job.
        key: JobKey,
        /// Not before this time; 0 is at once.
        due_ms: u64,
        /// Retries left.
        retries: i32,
        /// The number of the next attempt.
        attempt: u32,
        /// Failures so far.
        failures: FailureCounts,
        /// What went wrong.
        message: &'a str,
    },
    /// The job may be handed out (again).
    JobReadied {
        /// The job.
        key: JobKey,
        /// Why now.
        cause: ReadyCause,
    },
    /// The worker put the job back.
    JobReleased {
        /// The job.
        key: JobKey,
        /// Not before this time; 0 is at once.
        due_ms: u64,
    },
    /// The job waits for a person.
    IncidentRaised {
        /// The job.
        key: JobKey,
        /// The incident's own key.
        incident: JobKey,
        /// Of which kind.
        kind: IncidentKind,
        /// Retries left.
        retries: i32,
        /// Failures so far.
        failures: FailureCounts,
        /// The error code, when the worker threw one.
        code: &'a str,
        /// What went wrong.
        message: &'a str,
    },
    /// A person said: try again. The job is ready.
    IncidentResolved {
        /// The job.
        key: JobKey,
        /// Retries left.
        retries: i32,
        /// The number of the next attempt.
        attempt: u32,
    },
    /// Cancel was asked and the worker will be told.
    CancelAsked {
        /// The job.
        key: JobKey,
        /// Why.
        reason: &'a str,
    },
    /// Retries, priority or lease end changed.
    JobUpdated {
        /// The job.
        key: JobKey,
        /// Retries left.
        retries: i32,
        /// Its priority.
        priority: i32,
        /// When its lease ends, if it is leased.
        deadline_ms: Option<u64>,
    },
    /// A deadline of the alerting kind passed. Told once.
    JobAlerted {
        /// The job.
        key: JobKey,
        /// Which deadline.
        deadline: DeadlineKind,
    },
    /// The job is at rest and leaves the core.
    JobEnded {
        /// The job.
        key: JobKey,
        /// How it ended.
        outcome: Outcome,
        /// The result.
        result: Payload,
        /// What went wrong, or why it was cancelled.
        message: &'a str,
    },
    /// A document has new bytes.
    DocumentPut {
        /// The wall of security.
        tenant: &'a str,
        /// Its kind.
        kind: &'a str,
        /// Its id.
        id: &'a str,
        /// Its version, from 1.
        version: u64,
        /// Its bytes.
        bytes: Payload,
    },
    /// A document is gone.
    DocumentDeleted {
        /// The wall of security.
        tenant: &'a str,
        /// Its kind.
        kind: &'a str,
        /// Its id.
        id: &'a str,
    },
    /// Something happened in a flow.
    Flow(FlowEvent<'a>),
    /// Something happened to a schedule.
    Schedule(ScheduleEvent<'a>),
}

impl Event<'_> {
    /// Whether it is about one job and nothing else. What a flow or a schedule does with a job comes
    /// with an event of its own, so a read model without rows of jobs can leave these out.
    pub fn is_of_job(&self) -> bool {
        match self {
            Event::JobCreated(_)
            | Event::JobActivated(_)
            | Event::JobReturned { .. }
            | Event::LeaseExtended { .. }
            | Event::JobProgressed { .. }
            | Event::JobLogged { .. }
            | Event::JobRetried { .. }
            | Event::JobReadied { .. }
            | Event::JobReleased { .. }
            | Event::IncidentRaised { .. }
            | Event::IncidentResolved { .. }
            | Event::CancelAsked { .. }
            | Event::JobUpdated { .. }
            | Event::JobAlerted { .. }
            | Event::JobEnded { .. } => true,
            Event::PartitionOpened { .. }
            | Event::LeasesMoved { .. }
            | Event::QueueCreated { .. }
            | Event::QueueConfigured { .. }
            | Event::QueuePaused { .. }
            | Event::LimitConfigured { .. }
            | Event::RateFreed { .. }
            | Event::DocumentPut { .. }
            | Event::DocumentDeleted { .. }
            | Event::Flow(_)
            | Event::Schedule(_) => false,
        }
    }
}

/// See [`Event::JobCreated`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobCreated<'a> {
    /// Its key.
    pub key: JobKey,
    /// Where it waits.
    pub queue: QueueId,
    /// What work it is; empty is the queue's name.
    pub job_type: &'a str,
    /// Whose turn it uses.
    pub group: &'a str,
    /// Higher goes first.
    pub priority: i32,
    /// Retries after the first attempt.
    pub retries: i32,
    /// Not before this time; 0 is ready now.
    pub due_ms: u64,
    /// The variables.
    pub payload: Payload,
    /// The limit key that bounds how many are active.
    pub concurrency: Option<LimitId>,
    /// The limit key that bounds activations per window.
    pub rate: Option<LimitId>,
    /// What most jobs do not have.
    pub options: Option<Cow<'a, JobOptions>>,
}

/// See [`Event::JobActivated`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobActivated<'a> {
    /// The job.
    pub key: JobKey,
    /// The number of this activation.
    pub activation: u32,
    /// When the lease ends.
    pub deadline_ms: u64,
    /// When the attempt must be done; 0 is never. Set at its first activation.
    pub attempt_due_ms: u64,
    /// Whether results must carry the token.
    pub with_token: bool,
    /// The new counter of the group's scheme.
    pub scheme_count: u32,
    /// Who holds it.
    pub worker: &'a str,
}

/// Failures of a job, as the attempts policy counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FailureCounts {
    /// Without progress, in a row.
    pub complete_successive: u32,
    /// Without progress, in all.
    pub complete_total: u32,
    /// With progress, in a row.
    pub partial_successive: u32,
    /// With progress, in all.
    pub partial_total: u32,
}

/// Why a job may be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum ReadyCause {
    /// Its scheduled time came.
    Due,
    /// Its backoff ended.
    BackoffEnded,
    /// Its worker was silent for too long.
    LeaseEnded,
}

/// Why a job waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum IncidentKind {
    /// The last retry failed.
    NoRetries,
    /// The worker threw an error that nothing catches.
    ErrorNotCaught,
    /// The worker said that retrying cannot help.
    Permanent,
    /// The job is larger than a message to a worker may be.
    TooLarge,
}

/// Which of the four deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum DeadlineKind {
    /// The lease.
    Lease,
    /// Standing ready.
    Waiting,
    /// The attempt.
    Attempt,
    /// All of it.
    Total,
}

impl DeadlineKind {
    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            DeadlineKind::Lease => "lease",
            DeadlineKind::Waiting => "waiting",
            DeadlineKind::Attempt => "attempt",
            DeadlineKind::Total => "total",
        }
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Outcome {
    /// Done.
    Completed,
    /// Done, with errors that were allowed.
    CompletedWithErrors,
    /// Failed, no retry left.
    Failed,
    /// Failed, retrying cannot help.
    FailedForGood,
    /// A deadline ended it.
    TimedOut,
    /// No longer wanted.
    Cancelled,
    /// Never run, on purpose.
    Skipped,
}
