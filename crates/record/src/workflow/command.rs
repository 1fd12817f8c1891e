//! What can be asked of workflows. JSON in them is Conductor's, field by field.

use super::TaskStatus;
use crate::command::Bytes;
use crate::flow::Key;

/// A command on workflows. One variant, one file in `windlass_flow::conductor::verb`.
#[derive(Clone, Debug)]
pub enum WorkflowCommand {
    /// Task definitions, JSON objects: all or none.
    DefineTasks {
        /// The definitions.
        tasks: Vec<Bytes>,
        /// Refused if one is not there yet.
        must_exist: bool,
    },
    /// Forget a task definition.
    ForgetTask {
        /// Its name.
        name: Box<str>,
    },
    /// A workflow definition, a JSON object.
    DefineWorkflow {
        /// The definition.
        workflow: Bytes,
        /// Whether one with its name and version is replaced; refused otherwise.
        overwrite: bool,
        /// Only look whether it would be taken.
        dry_run: bool,
    },
    /// Forget a workflow definition. Workflows that run by it go on.
    ForgetWorkflow {
        /// Its name.
        name: Box<str>,
        /// Its version.
        version: u32,
    },
    /// An event handler, a JSON object.
    DefineHandler {
        /// The handler.
        handler: Bytes,
        /// Whether it must be there already, or must not.
        must_exist: bool,
    },
    /// Forget an event handler.
    ForgetHandler {
        /// Its name.
        name: Box<str>,
    },
    /// Start a workflow: a `StartWorkflowRequest`.
    Start {
        /// A JSON object.
        request: Bytes,
    },
    /// What a worker, or anybody, says about a task.
    UpdateTask(Box<TaskUpdate>),
    /// Lines for a task's log.
    LogTask {
        /// The task.
        task: Key,
        /// Lines.
        lines: Vec<Box<str>>,
    },
    /// Make tasks of a type that were put back ready now.
    RequeueTasks {
        /// Their type.
        task_type: Box<str>,
    },
    /// What is done with one workflow.
    Control {
        /// The workflow.
        workflow: Key,
        /// What.
        verb: WorkflowVerb,
    },
    /// End the task that blocks a workflow: its first WAIT.
    Signal(SignalWorkflow),
}

impl WorkflowCommand {
    /// Whether it ends or furthers what is there already: it goes first, and is never refused for
    /// load.
    pub fn lets_work_drain(&self) -> bool {
        match self {
            WorkflowCommand::UpdateTask(_)
            | WorkflowCommand::LogTask { .. }
            | WorkflowCommand::Signal(_)
            | WorkflowCommand::Control { verb: WorkflowVerb::Terminate { .. }, .. } => true,
            WorkflowCommand::DefineTasks { .. }
            | WorkflowCommand::ForgetTask { .. }
            | WorkflowCommand::DefineWorkflow { .. }
            | WorkflowCommand::ForgetWorkflow { .. }
            | WorkflowCommand::DefineHandler { .. }
            | WorkflowCommand::ForgetHandler { .. }
            | WorkflowCommand::Start { .. }
            | WorkflowCommand::RequeueTasks { .. }
            | WorkflowCommand::Control { .. } => false,
        }
    }
}

/// Which task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskReference {
    /// This one.
    Key(Key),
    /// The newest one with this reference name; a round behind it may be left out.
    Name(Box<str>),
}

/// See [`WorkflowCommand::UpdateTask`]; a `TaskResult`.
#[derive(Clone, Debug)]
pub struct TaskUpdate {
    /// The workflow.
    pub workflow: Key,
    /// The task.
    pub task: TaskReference,
    /// Its status from now on.
    pub status: TaskStatus,
    /// Its output from now on, a JSON object; empty is none.
    pub output: Bytes,
    /// Whether the output is added to what is there, instead of taking its place.
    pub merge: bool,
    /// Why; may be empty.
    pub reason: Box<str>,
    /// Not again before this long (s).
    pub callback_s: u32,
    /// Who says so; may be empty.
    pub worker: Box<str>,
    /// Lines for its log.
    pub log: Vec<Box<str>>,
    /// The worker is still at it: nothing else counts.
    pub extend_lease: bool,
}

/// See [`WorkflowCommand::Control`].
#[derive(Clone, Debug)]
pub enum WorkflowVerb {
    /// Stand still.
    Pause,
    /// Go on.
    Resume,
    /// End it.
    Terminate {
        /// Why; may be empty.
        reason: Box<str>,
    },
    /// Begin again.
    Restart {
        /// By the newest version of its definition.
        latest: bool,
    },
    /// Go on with what failed.
    Retry {
        /// Also in the workflows that run for its tasks.
        subworkflows: bool,
    },
    /// Begin again, or from a task.
    Rerun(RerunWorkflow),
    /// Pass over a task that was not scheduled yet.
    Skip {
        /// Its reference name.
        reference: Box<str>,
        /// Its input, a JSON object; empty is none.
        input: Bytes,
        /// Its output, a JSON object; empty is none.
        output: Bytes,
    },
    /// Tasks that were put back are ready now.
    ResetCallbacks,
    /// Look at it.
    Decide,
    /// Forget it.
    Remove {
        /// Refused unless it has ended.
        only_at_rest: bool,
    },
    /// New variables, a JSON object that is merged.
    SetVariables {
        /// A JSON object.
        variables: Bytes,
    },
}

/// See [`WorkflowVerb::Rerun`].
#[derive(Clone, Debug, Default)]
pub struct RerunWorkflow {
    /// From this task; `None` is from the beginning.
    pub from: Option<Key>,
    /// Its input from now on; empty stays.
    pub workflow_input: Bytes,
    /// The task's input from now on; empty stays.
    pub task_input: Bytes,
    /// The caller's name from now on; empty stays.
    pub correlation_id: Box<str>,
}

/// See [`WorkflowCommand::Signal`].
#[derive(Clone, Debug)]
pub struct SignalWorkflow {
    /// The workflow.
    pub workflow: Key,
    /// The status of the task from now on.
    pub status: TaskStatus,
    /// Its output, a JSON object; empty is none.
    pub output: Bytes,
}
