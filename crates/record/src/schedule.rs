//! The vocabulary of schedules: what is to be run again and again, when, and what became of it.
//!
//! A schedule has a key of the same kind as a job's. What it says about times is text here; only the
//! engine reads it. The spec of its owner is text for ever: nobody but the owner looks into it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::command::{Bytes, JobOptions};
use crate::id::JobKey;
use crate::rejection::RejectionKind;

/// Runs of a schedule that are remembered; the oldest makes room.
pub const SCHEDULE_RUNS_MAX: usize = 20;

/// Bytes of all texts and payloads of one schedule.
pub const SCHEDULE_BYTES_MAX: usize = 256 << 10;

/// Names a schedule from outside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScheduleName {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// A command on schedules. One variant, one function in `windlass_engine::verb::schedule`.
#[derive(Clone, Debug)]
pub enum ScheduleCommand {
    /// Make a schedule, or replace its settings.
    Put(Box<PutSchedule>),
    /// Forget it. A run under way goes on, queued ones are dropped.
    Delete(DeleteSchedule),
    /// Nothing is started on time until it is resumed.
    Pause(PauseSchedule),
    /// Go on. What was due during the pause is not caught up.
    Resume(ScheduleName),
    /// A run now, beside its times, under its overlap policy.
    RunNow(ScheduleName),
}

/// See [`ScheduleCommand::Put`].
#[derive(Clone, Debug)]
pub struct PutSchedule {
    /// Which one.
    pub name: ScheduleName,
    /// The version it must have: 0 is "must not exist", `None` is "whatever it is".
    pub expected_version: Option<u64>,
    /// What it is from now on.
    pub settings: ScheduleSettings,
    /// Whether it is paused from now on.
    pub pause: PutPause,
}

/// What a put says about the pause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PutPause {
    /// As it is; a new one runs.
    #[default]
    AsItIs,
    /// It runs.
    Running,
    /// It is paused, for this reason.
    Paused(Box<str>),
}

/// See [`ScheduleCommand::Delete`].
#[derive(Clone, Debug)]
pub struct DeleteSchedule {
    /// Which one.
    pub name: ScheduleName,
    /// The version it must have; `None` is "whatever it is".
    pub expected_version: Option<u64>,
}

/// See [`ScheduleCommand::Pause`].
#[derive(Clone, Debug)]
pub struct PauseSchedule {
    /// Which one.
    pub name: ScheduleName,
    /// Why, for people.
    pub reason: Box<str>,
}

/// What a schedule is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScheduleSettings {
    /// Which face owns it: `native`, `conductor`, `airbyte`.
    pub owner: Box<str>,
    /// What the owner keeps with it, verbatim.
    pub spec: Box<str>,
    /// When it fires.
    pub times: ScheduleTimes,
    /// What happens when the run before is not over.
    pub overlap: Overlap,
    /// What happens to times that passed while nobody was there.
    pub catch_up: CatchUp,
    /// What a run is.
    pub action: ScheduleAction,
}

/// When a schedule fires: at the earliest time of any expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScheduleTimes {
    /// At least one.
    pub expressions: Vec<ScheduleTime>,
    /// Not before this time (ms since the epoch).
    pub starts_ms: Option<u64>,
    /// Not after this time.
    pub ends_ms: Option<u64>,
}

/// Times of the clocks of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScheduleTime {
    /// Cron with seconds, a macro, a calendar event, or an ISO 8601 cycle.
    pub expression: Box<str>,
    /// The zone by its IANA name, or an offset; empty is UTC.
    pub zone: Box<str>,
}

/// What happens when a run is due and the one before is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Overlap {
    /// The new one is skipped.
    #[default]
    Skip,
    /// The new one waits until the one before is over; so many at most.
    Queue,
    /// The one before is cancelled. Until it has ended, only the newest waits.
    Replace,
    /// Both run.
    Allow,
}

/// What happens to times that passed while nobody was there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum CatchUp {
    /// They are skipped and counted.
    None,
    /// The last of them is run.
    #[default]
    One,
    /// All of them are run, in order, up to a bound; the rest is skipped and counted.
    All,
}

/// What a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum ScheduleAction {
    /// A new job.
    Job(Box<JobTemplate>),
    /// A new workflow.
    Workflow {
        /// What Conductor's start takes, JSON.
        request: Box<str>,
    },
}

/// A job that is made again and again, in the tenant of its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobTemplate {
    /// Where it waits.
    pub queue: Box<str>,
    /// What work it is; empty means the queue's name.
    pub job_type: Box<str>,
    /// Whose turn it uses; may be empty.
    pub group: Box<str>,
    /// Higher goes first.
    pub priority: i32,
    /// Retries after the first attempt.
    pub retries: i32,
    /// The variables.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::shown::bytes"))]
    pub payload: Bytes,
    /// What most jobs do not have.
    pub options: Option<Box<JobOptions>>,
}

/// What happened to a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum ScheduleEvent<'a> {
    /// It is there from now on, or has new settings.
    Set {
        /// The schedule; a new key makes a new one.
        schedule: JobKey,
        /// The wall of security.
        tenant: &'a str,
        /// Its name.
        name: &'a str,
        /// From 1; grows by one with each put.
        version: u64,
        /// What it is.
        settings: Cow<'a, ScheduleSettings>,
        /// Why it is paused, if it is.
        paused: Option<&'a str>,
        /// When it fires next; `None` while it is paused and when no time is left.
        next_due_ms: Option<u64>,
    },
    /// It is gone.
    Deleted {
        /// The schedule.
        schedule: JobKey,
    },
    /// It starts nothing until it is resumed.
    Paused {
        /// The schedule.
        schedule: JobKey,
        /// Why.
        reason: &'a str,
    },
    /// It goes on.
    Resumed {
        /// The schedule.
        schedule: JobKey,
        /// When it fires next.
        next_due_ms: Option<u64>,
    },
    /// A time of it came, and something was done about it.
    Fired(ScheduleFired<'a>),
}

/// See [`ScheduleEvent::Fired`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScheduleFired<'a> {
    /// The schedule.
    pub schedule: JobKey,
    /// The time that this is about; of several that were skipped together, the first.
    pub scheduled_for_ms: u64,
    /// Why now.
    pub cause: FireCause,
    /// What was done.
    pub outcome: FireOutcome<'a>,
    /// When it fires next.
    pub next_due_ms: Option<u64>,
    /// Runs that were caught up since it was last on time.
    pub caught_up: u32,
}

/// Why something was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum FireCause {
    /// Its time came.
    Due,
    /// Somebody asked for it.
    Asked,
    /// The run before is over, and this one waited for it.
    Queued,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum FireOutcome<'a> {
    /// A run was started.
    Started {
        /// The job, or the workflow.
        run: JobKey,
    },
    /// It waits for the end of the run before.
    Queued {
        /// What waited until now is dropped.
        alone: bool,
    },
    /// Nothing was started, on purpose.
    Skipped {
        /// Why.
        why: SkipReason,
        /// How many times.
        count: u32,
    },
    /// Nothing could be started.
    Failed {
        /// Why.
        message: &'a str,
    },
}

/// Why a time was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum SkipReason {
    /// The run before is not over.
    Running,
    /// As many wait as may.
    QueueFull,
    /// It passed while nobody was there.
    Missed,
}

/// What a command on schedules is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleAnswer {
    /// It is as it was put.
    Put {
        /// The schedule.
        schedule: JobKey,
        /// Its version; 1 is "it is new".
        version: u64,
        /// When it fires next.
        next_due_ms: Option<u64>,
    },
    /// Nothing more to say.
    Done,
    /// A run was started, now.
    Started {
        /// The job, or the workflow.
        run: JobKey,
    },
    /// A run waits for the end of the one before.
    Queued,
    /// The policy says that there is none.
    Skipped(SkipReason),
    /// Nothing could be started; the schedule remembers why.
    Failed,
}

/// Why a command on schedules was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleRejection {
    /// No schedule has this name.
    NotFound {
        /// The name.
        name: Arc<str>,
    },
    /// It must not exist and does.
    Exists {
        /// The name.
        name: Arc<str>,
    },
    /// It does not have the expected version.
    Version {
        /// The name.
        name: Arc<str>,
        /// The version it has.
        actual: u64,
    },
    /// Its times cannot be read.
    InvalidTimes {
        /// What is wrong with them.
        problem: Arc<str>,
    },
}

impl ScheduleRejection {
    /// What sort of refusal it is.
    pub fn kind(&self) -> RejectionKind {
        match self {
            ScheduleRejection::NotFound { .. } => RejectionKind::NotFound,
            ScheduleRejection::Exists { .. } => RejectionKind::AlreadyExists,
            ScheduleRejection::Version { .. } => RejectionKind::FailedPrecondition,
            ScheduleRejection::InvalidTimes { .. } => RejectionKind::InvalidArgument,
        }
    }

    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            ScheduleRejection::NotFound { .. } => "schedule-not-found",
            ScheduleRejection::Exists { .. } => "schedule-exists",
            ScheduleRejection::Version { .. } => "schedule-version",
            ScheduleRejection::InvalidTimes { .. } => "schedule-times",
        }
    }
}

impl fmt::Display for ScheduleRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleRejection::NotFound { name } => write!(f, "no schedule is named {name}"),
            ScheduleRejection::Exists { name } => write!(f, "the schedule {name} exists already"),
            ScheduleRejection::Version { name, actual: 0 } => {
                write!(f, "the schedule {name} does not exist")
            }
            ScheduleRejection::Version { name, actual } => {
                write!(f, "the schedule {name} has version {actual}")
            }
            ScheduleRejection::InvalidTimes { problem } => f.write_str(problem),
        }
    }
}

impl ScheduleCommand {
    /// Which schedule it is about.
    pub fn name(&self) -> &ScheduleName {
        match self {
            ScheduleCommand::Put(command) => &command.name,
            ScheduleCommand::Delete(command) => &command.name,
            ScheduleCommand::Pause(command) => &command.name,
            ScheduleCommand::Resume(name) | ScheduleCommand::RunNow(name) => name,
        }
    }
}

impl ScheduleSettings {
    /// Bytes of all its texts and payloads.
    pub fn bytes(&self) -> usize {
        let times: usize =
            self.times.expressions.iter().map(|time| time.expression.len() + time.zone.len()).sum();
        let action = match &self.action {
            ScheduleAction::Job(job) => {
                let names = job.queue.len() + job.job_type.len() + job.group.len();
                let options = job.options.as_deref().map_or(0, crate::size::options);
                names + job.payload.len() + options
            }
            ScheduleAction::Workflow { request } => request.len(),
        };
        self.owner.len() + self.spec.len() + times + action
    }
}
