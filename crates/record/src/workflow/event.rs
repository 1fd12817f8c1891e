//! What happened in workflows. Events carry outcomes: resolved inputs, due times, chosen branches.

use std::borrow::Cow;

use crate::flow::Key;

/// Something happened in a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum WorkflowEvent<'a> {
    /// A task definition, new or replaced.
    TaskDefined {
        /// Its key; that of the one it replaces.
        key: Key,
        /// Its name.
        name: &'a str,
        /// A JSON object.
        json: &'a str,
    },
    /// A task definition is no longer there.
    TaskForgotten {
        /// Which one.
        key: Key,
    },
    /// A workflow definition, new, or in place of one with its name and version.
    WorkflowDefined {
        /// Its key.
        key: Key,
        /// Its name.
        name: &'a str,
        /// Its version.
        version: u32,
        /// Whether it is found by its name; if not, it is there for the workflows that run by it.
        listed: bool,
        /// The listed definition that this one is, with the task definitions of its time in it.
        snapshot_of: Key,
        /// A JSON object.
        json: &'a str,
    },
    /// A workflow definition is no longer found by its name.
    WorkflowForgotten {
        /// Which one.
        key: Key,
    },
    /// An event handler, new or replaced.
    HandlerDefined {
        /// Its key.
        key: Key,
        /// Its name.
        name: &'a str,
        /// A JSON object.
        json: &'a str,
    },
    /// An event handler is no longer there.
    HandlerForgotten {
        /// Which one.
        key: Key,
    },
    /// A workflow was started; on the to-do list.
    WorkflowStarted(Box<WorkflowStarted<'a>>),
    /// A workflow was paused, or goes on (on the to-do list).
    WorkflowPaused {
        /// Which one.
        key: Key,
        /// Paused, or not.
        paused: bool,
    },
    /// A workflow came to its end; on the to-do list until its tasks are ended too.
    WorkflowEnded {
        /// Which one.
        key: Key,
        /// How.
        status: WorkflowStatus,
        /// Why; may be empty.
        reason: &'a str,
        /// Its output, a JSON object.
        output: &'a str,
        /// Whether its failure workflow is to run.
        compensate: bool,
        /// The task that it failed by, or none.
        by: Key,
    },
    /// All that its end asks for has been done.
    WorkflowClosed {
        /// Which one.
        key: Key,
        /// Its output, when the failure workflow is named in it.
        output: Option<&'a str>,
    },
    /// A workflow that had ended runs again; on the to-do list.
    WorkflowRevived(Box<WorkflowRevived<'a>>),
    /// A workflow is no longer kept here.
    WorkflowRemoved {
        /// Which one.
        key: Key,
        /// Whether somebody asked for it, so that nobody is to find it again. If not, only its time
        /// here is over, and the history still has it.
        forget: bool,
    },
    /// New variables of a workflow: all of them, a JSON object.
    WorkflowVariablesSet {
        /// Which one.
        key: Key,
        /// A JSON object.
        variables: &'a str,
    },
    /// A workflow is to be looked at; on the to-do list.
    WorkflowQueued {
        /// Which one.
        key: Key,
    },
    /// A workflow has something to do at a time.
    WorkflowDue {
        /// Which one.
        key: Key,
        /// When; 0 is never.
        at_ms: u64,
    },
    /// Tasks that no definition names are known to a workflow: those of a dynamic fork.
    TasksAdded {
        /// The fork's task.
        task: Key,
        /// A JSON list of workflow tasks.
        tasks: &'a str,
    },
    /// A task has a record; on the to-do list unless a worker is waited for.
    TaskScheduled(Box<TaskScheduled<'a>>),
    /// A task changed.
    TaskChanged(Box<TaskChanged<'a>>),
    /// A task waits for a job.
    TaskJobAttached {
        /// The task.
        task: Key,
        /// The job.
        job: Key,
        /// Whether a script is evaluated, instead of the task's own work done.
        evaluates: bool,
    },
    /// A task no longer waits for its job.
    TaskJobDetached {
        /// The task.
        task: Key,
    },
    /// A task has something to do at a time.
    TaskDue {
        /// The task.
        task: Key,
        /// When; 0 is never.
        at_ms: u64,
    },
    /// A task has something to go on with; on the to-do list.
    TaskQueued {
        /// The task.
        task: Key,
    },
    /// A fork has scheduled its branches up to here, or a loop begins its next round.
    TaskAdvanced {
        /// The task.
        task: Key,
        /// How far it is.
        to: u32,
    },
    /// Handlers have acted on what a task published: all before this one, and some of its actions.
    TaskActed {
        /// The task.
        task: Key,
        /// The handler, or none before the first has acted.
        handler: Key,
        /// How far it is with that one's actions.
        to: u32,
    },
    /// What follows a task that ended has been done.
    TaskFollowed {
        /// The task.
        task: Key,
        /// Whether another record took its place.
        retried: bool,
    },
    /// Records of tasks are forgotten.
    TasksDropped {
        /// Which ones, of one workflow.
        tasks: Cow<'a, [Key]>,
    },
    /// Somebody had something to say about a task.
    TaskLogged {
        /// The task.
        task: Key,
        /// Lines.
        lines: Cow<'a, [Cow<'a, str>]>,
    },
}

/// See [`WorkflowEvent::WorkflowStarted`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WorkflowStarted<'a> {
    /// Its key.
    pub key: Key,
    /// The definition that it runs by.
    pub definition: Key,
    /// The task that it runs for, or none.
    pub parent_task: Key,
    /// A JSON object.
    pub input: &'a str,
    /// A JSON object.
    pub variables: &'a str,
    /// The caller's own name of it; may be empty.
    pub correlation_id: &'a str,
    /// Makes a second start harmless; empty is none.
    pub idempotency_key: &'a str,
    /// Domains by task type, a JSON object; empty is none.
    pub task_to_domain: &'a str,
    /// 0..=99; higher goes first.
    pub priority: u32,
    /// Who started it; may be empty.
    pub created_by: &'a str,
    /// The event that started it; may be empty.
    pub event: &'a str,
    /// The key of its rate limit; empty is none.
    pub rate_limit_key: &'a str,
    /// Whether it waits for others with its key.
    pub waits: bool,
}

/// See [`WorkflowEvent::WorkflowRevived`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WorkflowRevived<'a> {
    /// Its key.
    pub key: Key,
    /// The definition that it goes on with.
    pub definition: Key,
    /// Its input from now on.
    pub input: Option<&'a str>,
    /// Its variables from now on.
    pub variables: Option<&'a str>,
    /// Its caller's name from now on.
    pub correlation_id: Option<&'a str>,
    /// Whether it begins again: its time of creation is now.
    pub anew: bool,
    /// Whether a new run of it was asked for by rerun.
    pub rerun: bool,
}

/// See [`WorkflowEvent::TaskScheduled`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskScheduled<'a> {
    /// Its key.
    pub key: Key,
    /// Its workflow.
    pub workflow: Key,
    /// The fork whose added tasks it is one of, or none: those of the definition.
    pub among: Key,
    /// Its number there.
    pub node: u32,
    /// The loop that it runs in, or none.
    pub loop_task: Key,
    /// The round of that loop, from 1; 0 outside of loops.
    pub iteration: u32,
    /// Its reference name, with the round behind it.
    pub reference: &'a str,
    /// What it is, as clients see it: the name of a worker's task, or `SWITCH`.
    pub task_type: &'a str,
    /// The name of its task definition.
    pub name: &'a str,
    /// How often it was tried before.
    pub retry_count: u32,
    /// The record that it is a retry of, or none.
    pub retry_of: Key,
    /// When its first record was made (ms since the epoch); 0 is now.
    pub first_ms: u64,
    /// Where it begins.
    pub status: TaskStatus,
    /// A JSON object.
    pub input: &'a str,
    /// Why the record before it failed; may be empty.
    pub reason: &'a str,
    /// The domain of its queue; may be empty.
    pub domain: &'a str,
    /// How long it waits before it is handed out (s).
    pub delay_s: u32,
}

/// See [`WorkflowEvent::TaskChanged`]. What is `None` stays.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TaskChanged<'a> {
    /// Which one.
    pub key: Key,
    /// Its status; one that is at rest puts it on the to-do list.
    pub status: Option<TaskStatus>,
    /// Its input, a JSON object.
    pub input: Option<&'a str>,
    /// Its output, a JSON object.
    pub output: Option<&'a str>,
    /// Why it is as it is.
    pub reason: Option<&'a str>,
    /// Who worked on it.
    pub worker: Option<&'a str>,
    /// When it was handed out first (ms since the epoch).
    pub started_ms: Option<u64>,
    /// How often it was handed out.
    pub polls: Option<u32>,
    /// How long it was put back for (s).
    pub callback_s: Option<u32>,
    /// The workflow that runs for it.
    pub child: Option<Key>,
}

impl TaskChanged<'_> {
    /// Nothing about this task changed yet.
    pub const fn of(key: Key) -> Self {
        TaskChanged {
            key,
            status: None,
            input: None,
            output: None,
            reason: None,
            worker: None,
            started_ms: None,
            polls: None,
            callback_s: None,
            child: None,
        }
    }
}

/// Where a task is in its life, in Conductor's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum TaskStatus {
    /// Waits for a worker, or for its turn.
    Scheduled,
    /// At work.
    InProgress,
    /// Done.
    Completed,
    /// Failed, and optional.
    CompletedWithErrors,
    /// Failed; may be tried again.
    Failed,
    /// Failed for good.
    FailedWithTerminalError,
    /// Took too long; may be tried again.
    TimedOut,
    /// No longer wanted.
    Canceled,
    /// Passed over by hand.
    Skipped,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [TaskStatus; 9] = [
        TaskStatus::Scheduled,
        TaskStatus::InProgress,
        TaskStatus::Completed,
        TaskStatus::CompletedWithErrors,
        TaskStatus::Failed,
        TaskStatus::FailedWithTerminalError,
        TaskStatus::TimedOut,
        TaskStatus::Canceled,
        TaskStatus::Skipped,
    ];

    /// Its name, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            TaskStatus::Scheduled => "SCHEDULED",
            TaskStatus::InProgress => "IN_PROGRESS",
            TaskStatus::Completed => "COMPLETED",
            TaskStatus::CompletedWithErrors => "COMPLETED_WITH_ERRORS",
            TaskStatus::Failed => "FAILED",
            TaskStatus::FailedWithTerminalError => "FAILED_WITH_TERMINAL_ERROR",
            TaskStatus::TimedOut => "TIMED_OUT",
            TaskStatus::Canceled => "CANCELED",
            TaskStatus::Skipped => "SKIPPED",
        }
    }

    /// The status with this name.
    pub fn named(name: &str) -> Option<TaskStatus> {
        TaskStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing more happens to it.
    pub fn is_at_rest(self) -> bool {
        !matches!(self, TaskStatus::Scheduled | TaskStatus::InProgress)
    }

    /// Whether what comes after it may begin.
    pub fn is_success(self) -> bool {
        match self {
            TaskStatus::Scheduled
            | TaskStatus::InProgress
            | TaskStatus::Completed
            | TaskStatus::CompletedWithErrors
            | TaskStatus::Skipped => true,
            TaskStatus::Failed
            | TaskStatus::FailedWithTerminalError
            | TaskStatus::TimedOut
            | TaskStatus::Canceled => false,
        }
    }
}

/// Where a workflow is in its life, in Conductor's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum WorkflowStatus {
    /// Goes on.
    Running,
    /// Stands still by hand.
    Paused,
    /// Done.
    Completed,
    /// A task failed.
    Failed,
    /// Took too long.
    TimedOut,
    /// Ended by hand.
    Terminated,
}

impl WorkflowStatus {
    /// Every status.
    pub const ALL: [WorkflowStatus; 6] = [
        WorkflowStatus::Running,
        WorkflowStatus::Paused,
        WorkflowStatus::Completed,
        WorkflowStatus::Failed,
        WorkflowStatus::TimedOut,
        WorkflowStatus::Terminated,
    ];

    /// Its name, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            WorkflowStatus::Running => "RUNNING",
            WorkflowStatus::Paused => "PAUSED",
            WorkflowStatus::Completed => "COMPLETED",
            WorkflowStatus::Failed => "FAILED",
            WorkflowStatus::TimedOut => "TIMED_OUT",
            WorkflowStatus::Terminated => "TERMINATED",
        }
    }

    /// The status with this name.
    pub fn named(name: &str) -> Option<WorkflowStatus> {
        WorkflowStatus::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether it has ended.
    pub fn is_at_rest(self) -> bool {
        !matches!(self, WorkflowStatus::Running | WorkflowStatus::Paused)
    }
}

impl WorkflowEvent<'_> {
    /// About how many bytes of text it carries.
    pub fn text_bytes(&self) -> usize {
        let length = |text: Option<&str>| text.map_or(0, str::len);
        match self {
            WorkflowEvent::TaskDefined { json, .. }
            | WorkflowEvent::WorkflowDefined { json, .. }
            | WorkflowEvent::HandlerDefined { json, .. } => json.len(),
            WorkflowEvent::WorkflowStarted(started) => {
                started.input.len() + started.variables.len() + started.task_to_domain.len()
            }
            WorkflowEvent::WorkflowEnded { reason, output, .. } => reason.len() + output.len(),
            WorkflowEvent::WorkflowClosed { output, .. } => length(*output),
            WorkflowEvent::WorkflowRevived(revived) => {
                length(revived.input) + length(revived.variables)
            }
            WorkflowEvent::WorkflowVariablesSet { variables, .. } => variables.len(),
            WorkflowEvent::TasksAdded { tasks, .. } => tasks.len(),
            WorkflowEvent::TaskScheduled(scheduled) => scheduled.input.len() + 128,
            WorkflowEvent::TaskChanged(changed) => {
                length(changed.input) + length(changed.output) + length(changed.reason)
            }
            WorkflowEvent::TaskLogged { lines, .. } => lines.iter().map(|line| line.len()).sum(),
            WorkflowEvent::TaskForgotten { .. }
            | WorkflowEvent::WorkflowForgotten { .. }
            | WorkflowEvent::HandlerForgotten { .. }
            | WorkflowEvent::WorkflowPaused { .. }
            | WorkflowEvent::WorkflowRemoved { .. }
            | WorkflowEvent::WorkflowQueued { .. }
            | WorkflowEvent::WorkflowDue { .. }
            | WorkflowEvent::TaskJobAttached { .. }
            | WorkflowEvent::TaskJobDetached { .. }
            | WorkflowEvent::TaskDue { .. }
            | WorkflowEvent::TaskQueued { .. }
            | WorkflowEvent::TaskAdvanced { .. }
            | WorkflowEvent::TaskActed { .. }
            | WorkflowEvent::TaskFollowed { .. }
            | WorkflowEvent::TasksDropped { .. } => 0,
        }
    }

    /// The newest key that it brings into the world.
    pub fn new_key(&self) -> Option<Key> {
        match self {
            WorkflowEvent::TaskDefined { key, .. }
            | WorkflowEvent::WorkflowDefined { key, .. }
            | WorkflowEvent::HandlerDefined { key, .. } => Some(*key),
            WorkflowEvent::WorkflowStarted(started) => Some(started.key),
            WorkflowEvent::TaskScheduled(scheduled) => Some(scheduled.key),
            WorkflowEvent::TaskForgotten { .. }
            | WorkflowEvent::WorkflowForgotten { .. }
            | WorkflowEvent::HandlerForgotten { .. }
            | WorkflowEvent::WorkflowPaused { .. }
            | WorkflowEvent::WorkflowEnded { .. }
            | WorkflowEvent::WorkflowClosed { .. }
            | WorkflowEvent::WorkflowRevived(_)
            | WorkflowEvent::WorkflowRemoved { .. }
            | WorkflowEvent::WorkflowVariablesSet { .. }
            | WorkflowEvent::WorkflowQueued { .. }
            | WorkflowEvent::WorkflowDue { .. }
            | WorkflowEvent::TasksAdded { .. }
            | WorkflowEvent::TaskChanged(_)
            | WorkflowEvent::TaskJobAttached { .. }
            | WorkflowEvent::TaskJobDetached { .. }
            | WorkflowEvent::TaskDue { .. }
            | WorkflowEvent::TaskQueued { .. }
            | WorkflowEvent::TaskAdvanced { .. }
            | WorkflowEvent::TaskActed { .. }
            | WorkflowEvent::TaskFollowed { .. }
            | WorkflowEvent::TasksDropped { .. }
            | WorkflowEvent::TaskLogged { .. } => None,
        }
    }
}
