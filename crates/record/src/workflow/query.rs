//! What can be read about workflows. Answers are JSON, as Conductor's clients see it.

use super::TaskStatus;
use crate::flow::Key;

/// A question about workflows. `None` is answered when what it names is not there.
#[derive(Clone, Debug)]
pub enum WorkflowQuery {
    /// A `Workflow`.
    Workflow {
        /// Which one.
        key: Key,
        /// With its tasks.
        tasks: bool,
    },
    /// A `WorkflowStatus`: id, correlation id, status.
    Status {
        /// Which one.
        key: Key,
        /// With its output.
        output: bool,
        /// With its variables.
        variables: bool,
    },
    /// A list of `Task`, of one workflow, and how many there are in all: `{"totalHits", "results"}`.
    TasksOf {
        /// The workflow.
        key: Key,
        /// How many are left out.
        start: usize,
        /// At most this many.
        count: usize,
        /// Only those; all when empty.
        statuses: Vec<TaskStatus>,
    },
    /// A `Task`.
    Task(Key),
    /// A list of `TaskExecLog`.
    TaskLog(Key),
    /// Tasks of a type that wait for a worker or are at work: a list of `Task`.
    PendingTasks {
        /// Their type.
        task_type: Box<str>,
        /// How many are left out.
        start: usize,
        /// At most this many.
        count: usize,
    },
    /// Ids of workflows that have not ended.
    Running {
        /// Their name.
        name: Box<str>,
        /// Their version; any when `None`.
        version: Option<u32>,
        /// Started at or after (ms since the epoch).
        from_ms: u64,
        /// Started before or at (ms since the epoch).
        to_ms: u64,
    },
    /// `{correlation id: [Workflow]}`.
    Correlated {
        /// The name of the workflows; any when empty.
        name: Box<str>,
        /// Their callers' names.
        correlation_ids: Vec<Box<str>>,
        /// With those that have ended.
        closed: bool,
        /// With their tasks.
        tasks: bool,
    },
    /// The `Task` that blocks a workflow, also in those that run for its tasks.
    Blocking(Key),
    /// A list of `TaskDef`.
    TaskDefinitions,
    /// A `TaskDef`.
    TaskDefinition(Box<str>),
    /// A list of `WorkflowDef`, all versions.
    WorkflowDefinitions,
    /// A `WorkflowDef`; the newest without a version.
    WorkflowDefinition {
        /// Its name.
        name: Box<str>,
        /// Its version.
        version: Option<u32>,
    },
    /// A list of `EventHandler`.
    Handlers,
}
