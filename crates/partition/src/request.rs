//! What goes into a partition's loop and what comes out: the seam to the gateway.
//!
//! Everything is handed over in batches, and every answer leaves only when all it saw is durable.
//! Answers are closures that run on the partition's commit thread: they must be short and must not
//! block (send into a channel, wake a task).

use std::sync::Arc;

use windlass_engine::JobFacts;
pub use windlass_engine::UserTaskShown;
pub use windlass_engine::schedule::Timetable;
pub use windlass_engine::state::limit::LimitView;
pub use windlass_engine::state::schedule::{Run, RunOutcome, Schedule};
use windlass_record::command::{Command, QueueName};
use windlass_record::event::{DeadlineKind, Outcome};
use windlass_record::flow::{CreateInstance, FlowAnswer, FlowCommand};
use windlass_record::id::{JobKey, QueueId, Token};
use windlass_record::policy::QueueSettings;
use windlass_record::rejection::Rejection;
use windlass_record::schedule::{ScheduleAnswer, ScheduleName};
use windlass_record::workflow::WorkflowQuery;

use crate::tally::Tally;

/// What the loop can be asked.
pub enum Request {
    /// Decide commands, each for itself, in order.
    Commands(Commands),
    /// Read the state.
    Query(Query, QueryReply),
    /// Wait for jobs, once.
    Poll(Poll),
    /// The poll with this id no longer waits.
    EndPoll(WaiterId),
    /// Wait for jobs until closed; jobs are sent while there are credits.
    OpenStream(Stream),
    /// More jobs may be sent to a stream.
    AddCredits(WaiterId, u32),
    /// The stream is gone. Jobs it was given and did not send come back with [`Request::Return`].
    CloseStream(WaiterId),
    /// Jobs that were given to a connection and never sent, in the order in which they were given:
    /// ready again at once.
    Return(Vec<Unsent>),
    /// Start a process and wait for its end.
    RunInstance(RunInstance),
    /// Change a user task, or the variables of one, and wait until its listeners are through.
    Change(Change),
}

/// A process that is started and waited for.
pub struct RunInstance {
    /// What is started; it is awaited, whatever it says itself.
    pub command: CreateInstance,
    /// How long its end is waited for; the instance itself goes on.
    pub wait_ms: u64,
    /// Called once.
    pub reply: RunReply,
}

/// See [`RunInstance::reply`].
pub type RunReply = Box<dyn FnOnce(Result<InstanceRun, Refused>) + Send>;

/// What became of an instance that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRun {
    /// The instance.
    pub key: JobKey,
    /// Its definition.
    pub definition: JobKey,
    /// The process's id.
    pub process_id: Arc<str>,
    /// The definition's version.
    pub version: u32,
    /// Its variables when it completed; `None` when it did not within the time.
    pub variables: Option<Vec<(Arc<str>, Arc<str>)>>,
}

/// What is asked of a user task and waited for.
pub struct Change {
    /// What. Other commands are answered at once.
    pub command: FlowCommand,
    /// How long the listeners are waited for; the change itself goes on.
    pub wait_ms: u64,
    /// Called once.
    pub reply: ChangeReply,
}

/// See [`Change::reply`].
pub type ChangeReply = Box<dyn FnOnce(Result<Changed, Refused>) + Send>;

/// What became of a change that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It happened.
    Answered(Answer),
    /// A listener denied it, for this reason; may be empty.
    Denied(Arc<str>),
    /// The user task came to its end meanwhile.
    Cancelled,
    /// The listeners are not through yet.
    TimedOut,
}

/// Commands with one answer for all.
pub struct Commands {
    /// In order.
    pub items: Vec<Command>,
    /// Called once, with a result per item.
    pub reply: CommandsReply,
}

/// See [`Commands::reply`].
pub type CommandsReply = Box<dyn FnOnce(Vec<Result<Answer, Refused>>) + Send>;

/// What a command was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing more to say.
    Done,
    /// The new job, or the one the same request made before.
    Created {
        /// Its key.
        key: JobKey,
        /// Whether the request was a repetition.
        existing: bool,
    },
    /// The worker still holds the job.
    Held {
        /// When its lease ends.
        deadline_ms: u64,
        /// Whether it should stop.
        cancel_asked: bool,
    },
    /// The worker was asked to stop; the job ends when it has.
    CancelPending,
    /// The new versions of documents, in order; 0 is "deleted".
    Versions(Vec<u64>),
    /// Of a command on flows.
    Flow(FlowAnswer),
    /// Of a command on schedules.
    Schedule(ScheduleAnswer),
}

/// Why a command did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The engine said no; nothing changed.
    Rejected(Rejection),
    /// The partition stopped before the answer was durable: whether it happened is not known.
    Stopped,
}

impl From<Rejection> for Refused {
    fn from(rejection: Rejection) -> Refused {
        Refused::Rejected(rejection)
    }
}

/// Names a poll or a stream; chosen by the gateway, unique in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId(pub u64);

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where to look. A queue that does not exist yet is watched for.
    pub queues: Vec<QueueName>,
    /// Who asks; for people to read, and to find the streams of a worker.
    pub worker: Arc<str>,
    /// How long the worker may be silent.
    pub lease_ms: u64,
    /// Whether results must carry the token.
    pub with_token: bool,
}

/// A request for jobs that is answered once: as soon as there is one, or when its time is over.
pub struct Poll {
    /// Its name.
    pub id: WaiterId,
    /// What it asks for.
    pub wanted: Wanted,
    /// At most this many.
    pub jobs_max: u32,
    /// Stop before payloads exceed this.
    pub bytes_max: u64,
    /// How long it waits for the first; 0 is "answer at once".
    pub wait_ms: u64,
    /// Called once; with nothing when the time is over. Gives back what it could not pass on.
    pub reply: PollReply,
}

/// See [`Poll::reply`].
pub type PollReply = Box<dyn FnOnce(Result<Vec<HandedJob>, Refused>) -> Vec<HandedJob> + Send>;

/// A worker's connection over which jobs are sent as they become ready.
pub struct Stream {
    /// Its name.
    pub id: WaiterId,
    /// What it asks for.
    pub wanted: Wanted,
    /// Jobs that may be sent at once.
    pub credits: u32,
    /// Where they go.
    pub sink: Box<dyn StreamSink>,
}

/// The near end of a worker's connection.
pub trait StreamSink: Send + Sync {
    /// Passes jobs on. Returns those that the connection can no longer take.
    fn deliver(&self, jobs: Vec<HandedJob>) -> Vec<HandedJob>;
    /// This worker was asked to stop this job. May reach streams that do not hold it.
    fn stop(&self, job: JobKey, activation: u32);
    /// The partition stopped: nothing more will come.
    fn end(&self);
}

/// A job as it goes to a worker.
#[derive(Clone, Debug)]
pub struct HandedJob {
    /// Its key.
    pub key: JobKey,
    /// The number of the activation; with the key, the token.
    pub activation: u32,
    /// The wall of security.
    pub tenant: Arc<str>,
    /// Its queue.
    pub queue: Arc<str>,
    /// Its type.
    pub job_type: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Its priority.
    pub priority: i32,
    /// Retries left.
    pub retries: i32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// When it was created.
    pub created_ms: u64,
    /// When the lease ends.
    pub deadline_ms: u64,
    /// The variables.
    pub payload: Arc<[u8]>,
    /// Static metadata; empty for most.
    pub headers: Arc<[u8]>,
    /// Of a job of a flow: what it belongs to.
    pub flow: Option<Box<JobFacts>>,
    /// What is given back if it is never sent.
    pub unsent: Unsent,
}

/// What is needed to take back a job that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The activation.
    pub token: Token,
    /// The turn its group used.
    pub turn: u64,
    /// The counter of its group's scheme before.
    pub scheme_count: u32,
}

/// What can be read.
#[derive(Clone, Debug)]
pub enum Query {
    /// One job, live or recently finished.
    Job(JobKey),
    /// Jobs that match, a page at a time.
    Jobs(JobFilter),
    /// The job that holds a unique key.
    Holder {
        /// In this queue.
        queue: QueueName,
        /// The key.
        unique_key: Box<str>,
    },
    /// Where a job is and why it is not running.
    Why(JobKey),
    /// Queues of a tenant; of all when `None`.
    Queues(Option<Box<str>>),
    /// One limit key.
    Limit {
        /// The wall of security.
        tenant: Box<str>,
        /// The key.
        name: Box<str>,
    },
    /// Limit keys, in order of their names, a page at a time.
    Limits {
        /// The wall of security.
        tenant: Box<str>,
        /// Names after this one; empty begins.
        after: Box<str>,
        /// At most this many.
        limit: usize,
    },
    /// One document.
    Document {
        /// The wall of security.
        tenant: Box<str>,
        /// Its kind.
        kind: Box<str>,
        /// Its id.
        id: Box<str>,
    },
    /// Documents of a kind, without their bytes, a page at a time.
    Documents {
        /// The wall of security.
        tenant: Box<str>,
        /// Their kind.
        kind: Box<str>,
        /// Ids after this one.
        after: Box<str>,
        /// At most this many.
        limit: usize,
    },
    /// Documents of a kind with their bytes, a page at a time: as [`Query::Documents`] in all else.
    WholeDocuments {
        /// The wall of security.
        tenant: Box<str>,
        /// Their kind.
        kind: Box<str>,
        /// Ids after this one.
        after: Box<str>,
        /// At most this many; fewer, if they are large.
        limit: usize,
    },
    /// One schedule.
    Schedule(ScheduleName),
    /// Schedules that match, in order of their names, a page at a time.
    Schedules(ScheduleFilter),
    /// What time it is.
    Time,
    /// Something about workflows.
    Workflows(WorkflowQuery),
    /// The partition itself.
    Status,
}

/// Called once with the answer.
pub type QueryReply = Box<dyn FnOnce(Result<QueryAnswer, Refused>) + Send>;

/// Which jobs to list.
#[derive(Clone, Debug, Default)]
pub struct JobFilter {
    /// Of this tenant; of all when `None`.
    pub tenant: Option<Box<str>>,
    /// In this queue.
    pub queue: Option<Box<str>>,
    /// In this group.
    pub group: Option<Box<str>>,
    /// In this state; the name as `JobState::name` gives it. Live jobs when `None`.
    pub state: Option<&'static str>,
    /// Where the last page ended; 0 begins.
    pub cursor: u64,
    /// At most this many. A page may be shorter and still not be the last.
    pub limit: usize,
}

/// Which schedules to list.
#[derive(Clone, Debug, Default)]
pub struct ScheduleFilter {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Names that begin so.
    pub prefix: Box<str>,
    /// Names after this one; empty begins.
    pub after: Box<str>,
    /// Those of this owner; of all when `None`.
    pub owner: Option<Box<str>>,
    /// At most this many. A page may be shorter and still not be the last.
    pub limit: usize,
}

/// A page of schedules.
#[derive(Clone, Debug, Default)]
pub struct SchedulePage {
    /// In order of their names.
    pub schedules: Vec<Schedule>,
    /// After which name the next page begins; `None` is "no more".
    pub next: Option<Box<str>>,
}

/// What was read.
#[derive(Clone, Debug)]
pub enum QueryAnswer {
    /// The job, if it is live or remembered.
    Job(Option<Box<JobView>>),
    /// A page, and where the next begins; 0 is "no more".
    Jobs(Vec<JobView>, u64),
    /// `None`: nobody holds it.
    Holder(Option<JobKey>),
    /// `None`: no such job, live or remembered.
    Why(Option<Box<WhyView>>),
    /// The queues.
    Queues(Vec<QueueView>),
    /// The limit key.
    Limit(Option<LimitView>),
    /// Limit keys, and whether there are more.
    Limits(Vec<LimitView>, bool),
    /// The document with its bytes.
    Document(Option<(u64, Arc<[u8]>)>),
    /// Ids and versions in order, and whether there are more.
    Documents(Vec<(Box<str>, u64)>, bool),
    /// Documents in order, and whether there are more.
    WholeDocuments(Vec<DocumentView>, bool),
    /// The schedule.
    Schedule(Option<Box<Schedule>>),
    /// A page of schedules.
    Schedules(SchedulePage),
    /// The time of the partition (ms since the epoch).
    Time(u64),
    /// JSON, as Conductor's clients see it; `None`: no such thing.
    Workflows(Option<Arc<str>>),
    /// The partition.
    Status(Box<StatusView>),
}

/// A document of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentView {
    /// Its id.
    pub id: Box<str>,
    /// From 1; grows by one with each write.
    pub version: u64,
    /// What was written.
    pub bytes: Arc<[u8]>,
}

/// A job as clients see it.
#[derive(Clone, Debug)]
pub struct JobView {
    /// Its key.
    pub key: JobKey,
    /// The wall of security.
    pub tenant: Arc<str>,
    /// Its queue.
    pub queue: Arc<str>,
    /// Its type.
    pub job_type: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Its priority.
    pub priority: i32,
    /// Its state, by name.
    pub state: &'static str,
    /// How it ended, when it has.
    pub outcome: Option<Outcome>,
    /// Retries left.
    pub retries: i32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// How often it was handed out.
    pub activation: u32,
    /// When it was created.
    pub created_ms: u64,
    /// Scheduled, backoff: due. Ready: since. Active: end of the lease. At rest: when it ended.
    pub time_ms: u64,
    /// Who holds it.
    pub worker: Option<Arc<str>>,
    /// The variables. Empty in lists.
    pub payload: Arc<[u8]>,
    /// The result. Empty in lists.
    pub result: Arc<[u8]>,
    /// The last error, or why it was cancelled.
    pub message: Box<str>,
    /// Whether its worker has been asked to stop.
    pub cancel_asked: bool,
    /// Deadlines that have passed and only raised an alert.
    pub alerts: Vec<DeadlineKind>,
    /// The key that no other job of its queue may have; empty is none. In lists too.
    pub unique_key: Box<str>,
    /// What few jobs have.
    pub extra: Option<Box<windlass_engine::state::job::Extra>>,
}

/// Where a job is and why it is not running.
#[derive(Clone, Debug)]
pub struct WhyView {
    /// Its state, by name.
    pub state: &'static str,
    /// A stable name of the reason.
    pub reason: &'static str,
    /// One sentence for people.
    pub text: String,
    /// Jobs that would be handed out before it.
    pub position: Option<u64>,
    /// Jobs before it in its lane.
    pub lane_rank: Option<u64>,
    /// When the reason ends by itself.
    pub until_ms: Option<u64>,
    /// Who holds it.
    pub worker: Option<Arc<str>>,
    /// Polls and streams with credits that wait on its queue.
    pub waiting_workers: u32,
    /// The key it is parked on: name, what it lets pass, what has passed.
    pub limit: Option<(Arc<str>, u32, u32)>,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// Deadlines that have passed and only raised an alert.
    pub alerts: Vec<DeadlineKind>,
}

/// A queue as clients see it.
#[derive(Clone, Debug)]
pub struct QueueView {
    /// Its id.
    pub id: QueueId,
    /// The wall of security.
    pub tenant: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Whether hand-out is stopped.
    pub paused: bool,
    /// Its settings.
    pub settings: QueueSettings,
    /// Live jobs by state.
    pub counts: windlass_engine::state::fair::Counts,
    /// Groups with live jobs, or remembered.
    pub groups: u32,
    /// Polls and streams with credits that wait on it.
    pub waiting_workers: u32,
    /// Jobs that came to rest since the partition came up: completed, failed, cancelled.
    pub finished: [u64; 3],
}

/// A partition as operators see it.
#[derive(Clone, Debug)]
pub struct StatusView {
    /// Which one.
    pub partition: u16,
    /// Who appends.
    pub epoch: u32,
    /// The newest record.
    pub lsn: u64,
    /// The newest durable record.
    pub durable_lsn: u64,
    /// What the newest checkpoint covers.
    pub checkpoint_lsn: u64,
    /// When the last sync ended (ms since the epoch); 0 is "none yet".
    pub last_sync_ms: u64,
    /// When the state of the newest checkpoint was that of the partition (ms since the epoch); 0 is
    /// "there is none".
    pub checkpoint_ms: u64,
    /// From the freeze of the newest checkpoint of this life until it was durable; 0 is "none yet".
    pub checkpoint_took_ms: u64,
    /// How long the log took to write and sync each batch.
    pub appends_us: Tally,
    /// Commands of each batch.
    pub batch_commands: Tally,
    /// Live jobs.
    pub live_jobs: u32,
    /// Waiting polls and streams.
    pub waiters: u32,
    /// Bytes of payloads in memory.
    pub payload_bytes: u64,
    /// Deadlines that passed with the outcome alert, since the opening.
    pub alerts: u64,
    /// Why creates are refused, when they are.
    pub refusing: Option<Rejection>,
}
