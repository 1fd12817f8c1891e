//! What can be asked of a partition. Commands are never logged; what they cause is.

use std::sync::Arc;

use crate::flow::{FlowCommand, UserTaskCorrections};
use crate::id::{JobKey, QueueId, Token};
use crate::policy::{
    CancelPolicy, Deadlines, Dialect, Exhausted, LimitSettings, QueueSettings, RetryPolicy,
};
use crate::schedule::ScheduleCommand;

/// Bytes on their way into the engine's shell.
pub type Bytes = Arc<[u8]>;

/// A command. One variant, one file in `windlass_engine::verb`.
#[derive(Clone, Debug)]
pub enum Command {
    /// A new job.
    CreateJob(CreateJob),
    /// Hand out jobs to a worker that waits.
    ActivateJobs(ActivateJobs),
    /// Take back a job whose worker went away before it was sent.
    ReturnJob(ReturnJob),
    /// The worker is still at it.
    ExtendLease(ExtendLease),
    /// How far the worker is.
    ReportProgress(ReportProgress),
    /// What the worker has to say.
    AppendLog(AppendLog),
    /// The job is done.
    CompleteJob(CompleteJob),
    /// The job of a user task's listener is done, and it has something to say.
    CompleteListener(CompleteListener),
    /// The attempt failed.
    FailJob(FailJob),
    /// A business error: not retried.
    ThrowError(ThrowError),
    /// The worker puts the job back.
    ReleaseJob(ReleaseJob),
    /// The job is no longer wanted.
    CancelJob(CancelJob),
    /// New retries, priority or lease end.
    UpdateJob(UpdateJob),
    /// A person says: try again.
    ResolveIncident(ResolveIncident),
    /// New settings for a queue, which is made if it does not exist.
    ConfigureQueue(ConfigureQueue),
    /// Stop or resume hand-out of a queue.
    PauseQueue(PauseQueue),
    /// New settings for a limit key.
    ConfigureLimit(ConfigureLimit),
    /// Write documents.
    PutDocuments(PutDocuments),
    /// Something about flows.
    Flow(FlowCommand),
    /// Something about schedules.
    Schedule(ScheduleCommand),
}

/// Names a queue from outside. Shared, so that the jobs of a batch may have one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueName {
    /// The wall of security.
    pub tenant: Arc<str>,
    /// The queue; by default the job type.
    pub queue: Arc<str>,
}

/// See [`Command::CreateJob`].
#[derive(Clone, Debug)]
pub struct CreateJob {
    /// Where it waits.
    pub queue: QueueName,
    /// What work it is; empty means the queue's name.
    pub job_type: Box<str>,
    /// Whose turn it uses; may be empty.
    pub group: Box<str>,
    /// Higher goes first.
    pub priority: i32,
    /// Retries after the first attempt.
    pub retries: i32,
    /// Not before then.
    pub due: Due,
    /// The variables, JSON by convention; the engine does not look.
    pub payload: Bytes,
    /// What most jobs do not have.
    pub options: Option<Box<JobOptions>>,
}

/// When a new job may be handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// Not before this time (ms since the epoch).
    At(u64),
    /// Not before this long (ms) after the time of the record.
    After(u64),
}

/// What most jobs do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobOptions {
    /// Static metadata for the worker, JSON by convention.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::shown::bytes"))]
    pub headers: Box<[u8]>,
    /// Held until the job is final and `unique_hold_ms` longer; empty is none.
    pub unique_key: Box<str>,
    /// How long the unique key stays held after the job.
    pub unique_hold_ms: u64,
    /// Makes a repeated create harmless: the answer is the first one's key. Empty is none.
    pub request_id: Box<str>,
    /// The limit key that bounds how many are active; empty is none.
    pub concurrency_key: Box<str>,
    /// The limit key that bounds activations per window; empty is none.
    pub rate_key: Box<str>,
    /// What follows a failure.
    pub retry: RetryPolicy,
    /// What happens when no retry is left.
    pub exhausted: Exhausted,
    /// The four deadlines.
    pub deadlines: Deadlines,
    /// How a cancel treats a job in work.
    pub cancel: CancelPolicy,
    /// Whose rules it lives by.
    pub dialect: Dialect,
}

/// See [`Command::ActivateJobs`].
#[derive(Clone, Debug)]
pub struct ActivateJobs {
    /// Where to look; the queue whose first group joined earliest is served first.
    pub queues: Vec<QueueId>,
    /// Who asks; for people to read.
    pub worker: Arc<str>,
    /// How long the worker may be silent.
    pub lease_ms: u64,
    /// At most this many.
    pub jobs_max: u32,
    /// Stop before the payloads handed out exceed this.
    pub bytes_max: u64,
    /// Whether results must carry the token.
    pub with_token: bool,
}

/// See [`Command::ReturnJob`]. What the activation took and is to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnJob {
    /// The activation that was not sent.
    pub token: Token,
    /// The turn its group had, see `windlass_engine::fair`.
    pub turn: u64,
    /// The counter of the group's scheme before the activation.
    pub scheme_count: u32,
}

/// Which lease a worker's word belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub key: JobKey,
    /// The activation, when the worker has a token. A job once leased with a token takes nothing
    /// without one.
    pub activation: Option<u32>,
}

impl From<Token> for Lease {
    fn from(token: Token) -> Lease {
        Lease { key: token.key, activation: Some(token.activation) }
    }
}

/// See [`Command::ExtendLease`].
#[derive(Clone, Debug)]
pub struct ExtendLease {
    /// Which lease.
    pub lease: Lease,
    /// The lease ends this long after now.
    pub lease_ms: u64,
}

/// See [`Command::ReportProgress`].
#[derive(Clone, Debug)]
pub struct ReportProgress {
    /// Which lease.
    pub lease: Lease,
    /// 0..=100; larger is taken as 100.
    pub percent: u8,
    /// What to show beside it; replaces the last one.
    pub note: Box<str>,
    /// Documents that change with it, all or nothing.
    pub documents: Vec<DocumentWrite>,
}

/// See [`Command::AppendLog`].
#[derive(Clone, Debug)]
pub struct AppendLog {
    /// Which lease.
    pub lease: Lease,
    /// Lines in order.
    pub lines: Vec<Box<str>>,
}

/// See [`Command::CompleteJob`].
#[derive(Clone, Debug)]
pub struct CompleteJob {
    /// Which lease.
    pub lease: Lease,
    /// The result.
    pub result: Bytes,
    /// Documents that change with it, all or nothing.
    pub documents: Vec<DocumentWrite>,
}

/// See [`Command::CompleteListener`].
#[derive(Clone, Debug)]
pub struct CompleteListener {
    /// Which lease.
    pub lease: Lease,
    /// A JSON object, which must be empty: listeners of user tasks bring no variables.
    pub result: Bytes,
    /// What it says.
    pub says: ListenerSays,
}

/// What a listener says about the user task that is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerSays {
    /// It must not change, for this reason; may be empty.
    Denied(Box<str>),
    /// It may change, but so.
    Corrected(Box<UserTaskCorrections>),
}

/// See [`Command::FailJob`].
#[derive(Clone, Debug)]
pub struct FailJob {
    /// Which lease.
    pub lease: Lease,
    /// What went wrong, for people.
    pub message: Box<str>,
    /// Retries that remain, when the worker decides.
    pub retries: Option<i32>,
    /// How long to wait, when the worker decides.
    pub backoff_ms: Option<u64>,
    /// Whether the attempt got something done (Airbyte).
    pub progressed: bool,
    /// Of a job of a flow: a JSON object, set in the scope of its element. Empty is none.
    pub variables: Bytes,
    /// Whether another attempt could help.
    pub kind: FailureKind,
}

/// Whether another attempt could help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureKind {
    /// The job's retry policy decides.
    #[default]
    Usual,
    /// Retrying cannot help (Airbyte's `config_error`, Docspell's permanent error).
    Permanent,
    /// The job is larger than a message to a worker may be; what stands in it must change first.
    TooLarge,
}

impl FailureKind {
    /// As workers say it.
    pub fn of(permanent: bool) -> FailureKind {
        if permanent { FailureKind::Permanent } else { FailureKind::Usual }
    }
}

/// See [`Command::ThrowError`].
#[derive(Clone, Debug)]
pub struct ThrowError {
    /// Which lease.
    pub lease: Lease,
    /// What kind of error.
    pub code: Box<str>,
    /// What went wrong, for people.
    pub message: Box<str>,
    /// Of a job of a flow: a JSON object for whoever catches it. Empty is none.
    pub variables: Bytes,
}

/// See [`Command::ReleaseJob`].
#[derive(Clone, Debug)]
pub struct ReleaseJob {
    /// Which lease.
    pub lease: Lease,
    /// Not again before this long from now; 0 is at once.
    pub delay_ms: u64,
}

/// See [`Command::CancelJob`].
#[derive(Clone, Debug)]
pub struct CancelJob {
    /// The job.
    pub key: JobKey,
    /// Cancel at once even if the job's policy is cooperative: for operators whose worker is gone.
    pub force: bool,
    /// Why, for people.
    pub reason: Box<str>,
    /// When given, a job of another tenant is not found.
    pub tenant: Option<Box<str>>,
}

/// See [`Command::UpdateJob`]. What is `None` stays.
#[derive(Clone, Debug)]
pub struct UpdateJob {
    /// The job.
    pub key: JobKey,
    /// When given, it must be the current activation.
    pub activation: Option<u32>,
    /// Retries that remain. Does not make a waiting incident ready.
    pub retries: Option<i32>,
    /// The new priority.
    pub priority: Option<i32>,
    /// The lease ends this long after now.
    pub lease_ms: Option<u64>,
    /// When given, a job of another tenant is not found.
    pub tenant: Option<Box<str>>,
}

/// See [`Command::ResolveIncident`].
#[derive(Clone, Debug)]
pub struct ResolveIncident {
    /// The job, or its incident.
    pub key: JobKey,
    /// Retries to set first.
    pub retries: Option<i32>,
    /// When given, a job or a process of another tenant is not found.
    pub tenant: Option<Box<str>>,
}

/// See [`Command::ConfigureQueue`].
#[derive(Clone, Debug)]
pub struct ConfigureQueue {
    /// The queue.
    pub queue: QueueName,
    /// Its settings.
    pub settings: QueueSettings,
    /// Only if the queue does not exist yet: how configuration files seed.
    pub seed_only: bool,
}

/// See [`Command::PauseQueue`].
#[derive(Clone, Debug)]
pub struct PauseQueue {
    /// The queue.
    pub queue: QueueName,
    /// Whether hand-out stops.
    pub paused: bool,
}

/// See [`Command::ConfigureLimit`].
#[derive(Clone, Debug)]
pub struct ConfigureLimit {
    /// The wall of security.
    pub tenant: Box<str>,
    /// The limit key.
    pub name: Box<str>,
    /// Its settings.
    pub settings: LimitSettings,
}

/// See [`Command::PutDocuments`].
#[derive(Clone, Debug)]
pub struct PutDocuments {
    /// All or nothing.
    pub documents: Vec<DocumentWrite>,
}

/// One change of a document.
#[derive(Clone, Debug)]
pub struct DocumentWrite {
    /// The wall of security.
    pub tenant: Box<str>,
    /// What kind it is; a face owns its kinds.
    pub kind: Box<str>,
    /// Which one.
    pub id: Box<str>,
    /// The version it must have: 0 is "must not exist", `None` is "whatever it is".
    pub expected_version: Option<u64>,
    /// The new bytes; `None` deletes.
    pub bytes: Option<Bytes>,
}
