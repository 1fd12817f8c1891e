//! How much of the log a command may need, before it is decided.

use crate::command::{Command, CreateJob, DocumentWrite, JobOptions, ListenerSays};
use crate::flow::{FlowCommand, ModifyInstance, UserTaskAction, VariableInstruction};
use crate::schedule::{PutPause, SCHEDULE_BYTES_MAX, ScheduleCommand};
use crate::workflow::{WorkflowCommand, WorkflowVerb};

/// Room for the numbers of a record, and for those of what it makes on the way.
const NUMBERS_BYTES: usize = 1_024;
/// Room for the numbers of a document or a line.
const ITEM_BYTES: usize = 64;

impl Command {
    /// What follows from the command takes at most so many bytes in the log. Names are counted as
    /// often as they may be written: a queue or a limit key may be made with its first job.
    pub fn record_bytes_max(&self) -> usize {
        NUMBERS_BYTES
            + match self {
                Command::CreateJob(command) => created(command),
                Command::ReportProgress(command) => {
                    command.note.len() + documents(&command.documents)
                }
                Command::AppendLog(command) => {
                    command.lines.iter().map(|line| line.len() + ITEM_BYTES).sum()
                }
                Command::CompleteJob(command) => {
                    command.result.len() + documents(&command.documents)
                }
                Command::CompleteListener(command) => command.says.bytes(),
                Command::FailJob(command) => command.message.len() + command.variables.len(),
                Command::ThrowError(command) => {
                    command.code.len() + command.message.len() + command.variables.len()
                }
                Command::Flow(command) => flow(command),
                Command::Schedule(command) => schedule(command),
                Command::CancelJob(command) => command.reason.len(),
                Command::ConfigureQueue(command) => {
                    command.queue.tenant.len() + command.queue.queue.len()
                }
                Command::PauseQueue(command) => {
                    command.queue.tenant.len() + command.queue.queue.len()
                }
                Command::ConfigureLimit(command) => command.tenant.len() + command.name.len(),
                Command::PutDocuments(command) => documents(&command.documents),
                // Bounded by how many jobs a hand-out may have, and by numbers alone.
                Command::ActivateJobs(_)
                | Command::ReturnJob(_)
                | Command::ExtendLease(_)
                | Command::ReleaseJob(_)
                | Command::UpdateJob(_)
                | Command::ResolveIncident(_) => 0,
            }
    }
}

/// What follows from a command on flows itself. The steps behind it have a bound of their own and
/// stand in frames of their own when they do not fit.
fn flow(command: &FlowCommand) -> usize {
    match command {
        FlowCommand::Workflow(command) => 2 * command.bytes(),
        // A definition's event names its elements again, and a message that is correlated at once
        // stands there a second time.
        FlowCommand::DeployResources(_) | FlowCommand::PublishMessage(_) => 2 * command.bytes(),
        FlowCommand::CreateInstance(_)
        | FlowCommand::ModifyInstance(_)
        | FlowCommand::SetVariables(_)
        | FlowCommand::BroadcastSignal(_)
        | FlowCommand::EvaluateDecision(_)
        | FlowCommand::UpdateUserTask(_)
        | FlowCommand::DeleteResource(_)
        | FlowCommand::CancelInstance(_)
        | FlowCommand::MigrateInstance(_) => command.bytes(),
    }
}

impl FlowCommand {
    /// How many bytes it brings: files, variables and names.
    pub fn bytes(&self) -> usize {
        match self {
            FlowCommand::DeployResources(command) => {
                command.resources.iter().map(|(name, bytes)| name.len() + bytes.len()).sum()
            }
            FlowCommand::CreateInstance(command) => {
                let tags: usize = command.tags.iter().map(|tag| tag.len()).sum();
                command.variables.len() + command.business_id.len() + tags
            }
            FlowCommand::ModifyInstance(command) => {
                variables_of(command).map(|given| given.variables.len() + ITEM_BYTES).sum()
            }
            FlowCommand::SetVariables(command) => command.variables.len(),
            FlowCommand::PublishMessage(command) => {
                let names = command.name.len() + command.correlation_key.len();
                names + command.message_id.len() + command.variables.len()
            }
            FlowCommand::BroadcastSignal(command) => command.name.len() + command.variables.len(),
            FlowCommand::EvaluateDecision(command) => command.variables.len(),
            FlowCommand::UpdateUserTask(command) => command.name.len() + user_task(&command.action),
            FlowCommand::Workflow(command) => command.bytes(),
            FlowCommand::DeleteResource(_)
            | FlowCommand::CancelInstance(_)
            | FlowCommand::MigrateInstance(_) => 0,
        }
    }

    /// The bytes of its largest payload: a file, or an object of variables.
    pub fn payload_bytes(&self) -> usize {
        match self {
            FlowCommand::DeployResources(command) => {
                command.resources.iter().map(|(_, bytes)| bytes.len()).max().unwrap_or(0)
            }
            FlowCommand::CreateInstance(command) => command.variables.len(),
            FlowCommand::ModifyInstance(command) => {
                variables_of(command).map(|given| given.variables.len()).max().unwrap_or(0)
            }
            FlowCommand::SetVariables(command) => command.variables.len(),
            FlowCommand::PublishMessage(command) => command.variables.len(),
            FlowCommand::BroadcastSignal(command) => command.variables.len(),
            FlowCommand::EvaluateDecision(command) => command.variables.len(),
            FlowCommand::Workflow(command) => command.payload_bytes(),
            FlowCommand::UpdateUserTask(command) => match &command.action {
                UserTaskAction::Complete(result) => result.len(),
                UserTaskAction::Assign { .. } | UserTaskAction::Change { .. } => 0,
            },
            FlowCommand::DeleteResource(_)
            | FlowCommand::CancelInstance(_)
            | FlowCommand::MigrateInstance(_) => 0,
        }
    }
}

fn variables_of(command: &ModifyInstance) -> impl Iterator<Item = &VariableInstruction> {
    let entered = command.activate.iter().flat_map(|it| &it.variables);
    entered.chain(command.moves.iter().flat_map(|it| &it.variables))
}

impl ListenerSays {
    /// How many bytes of text it brings.
    pub fn bytes(&self) -> usize {
        match self {
            ListenerSays::Denied(reason) => reason.len(),
            ListenerSays::Corrected(corrections) => [
                &corrections.assignee,
                &corrections.candidate_groups,
                &corrections.candidate_users,
                &corrections.due_date,
                &corrections.follow_up_date,
            ]
            .into_iter()
            .flatten()
            .map(|text| text.len())
            .sum(),
        }
    }
}

fn user_task(action: &UserTaskAction) -> usize {
    match action {
        UserTaskAction::Complete(result) => result.len(),
        UserTaskAction::Assign { assignee, .. } => assignee.len(),
        UserTaskAction::Change {
            candidate_groups,
            candidate_users,
            due_date,
            follow_up_date,
            ..
        } => [candidate_groups, candidate_users, due_date, follow_up_date]
            .into_iter()
            .flatten()
            .map(|text| text.len())
            .sum(),
    }
}

impl WorkflowCommand {
    /// How many bytes it brings.
    fn bytes(&self) -> usize {
        let of_lines = |lines: &[Box<str>]| -> usize {
            lines.iter().map(|line| line.len() + ITEM_BYTES).sum()
        };
        match self {
            WorkflowCommand::DefineTasks { tasks, .. } => {
                tasks.iter().map(|task| task.len() + ITEM_BYTES).sum()
            }
            WorkflowCommand::UpdateTask(update) => {
                let texts = update.reason.len() + update.worker.len();
                update.output.len() + texts + of_lines(&update.log)
            }
            WorkflowCommand::LogTask { lines, .. } => of_lines(lines),
            WorkflowCommand::Control { verb, .. } => match verb {
                WorkflowVerb::Rerun(rerun) => rerun.workflow_input.len() + rerun.task_input.len(),
                WorkflowVerb::Skip { reference, input, output } => {
                    reference.len() + input.len() + output.len()
                }
                WorkflowVerb::SetVariables { variables } => variables.len(),
                WorkflowVerb::Terminate { reason } => reason.len(),
                WorkflowVerb::Pause
                | WorkflowVerb::Resume
                | WorkflowVerb::Restart { .. }
                | WorkflowVerb::Retry { .. }
                | WorkflowVerb::ResetCallbacks
                | WorkflowVerb::Decide
                | WorkflowVerb::Remove { .. } => 0,
            },
            WorkflowCommand::DefineWorkflow { .. }
            | WorkflowCommand::DefineHandler { .. }
            | WorkflowCommand::Start { .. }
            | WorkflowCommand::Signal(_)
            | WorkflowCommand::ForgetTask { .. }
            | WorkflowCommand::ForgetWorkflow { .. }
            | WorkflowCommand::ForgetHandler { .. }
            | WorkflowCommand::RequeueTasks { .. } => self.payload_bytes(),
        }
    }

    /// The bytes of its largest payload.
    fn payload_bytes(&self) -> usize {
        match self {
            WorkflowCommand::DefineTasks { tasks, .. } => {
                tasks.iter().map(|task| task.len()).max().unwrap_or(0)
            }
            WorkflowCommand::DefineWorkflow { workflow, .. } => workflow.len(),
            WorkflowCommand::DefineHandler { handler, .. } => handler.len(),
            WorkflowCommand::Start { request } => request.len(),
            WorkflowCommand::UpdateTask(update) => update.output.len(),
            WorkflowCommand::Signal(signal) => signal.output.len(),
            WorkflowCommand::Control { verb, .. } => match verb {
                WorkflowVerb::Rerun(rerun) => {
                    rerun.workflow_input.len().max(rerun.task_input.len())
                }
                WorkflowVerb::Skip { input, output, .. } => input.len().max(output.len()),
                WorkflowVerb::SetVariables { variables } => variables.len(),
                WorkflowVerb::Pause
                | WorkflowVerb::Resume
                | WorkflowVerb::Restart { .. }
                | WorkflowVerb::Retry { .. }
                | WorkflowVerb::ResetCallbacks
                | WorkflowVerb::Decide
                | WorkflowVerb::Terminate { .. }
                | WorkflowVerb::Remove { .. } => 0,
            },
            WorkflowCommand::LogTask { .. }
            | WorkflowCommand::ForgetTask { .. }
            | WorkflowCommand::ForgetWorkflow { .. }
            | WorkflowCommand::ForgetHandler { .. }
            | WorkflowCommand::RequeueTasks { .. } => 0,
        }
    }
}

fn schedule(command: &ScheduleCommand) -> usize {
    let names = command.name().tenant.len() + command.name().name.len();
    names
        + match command {
            ScheduleCommand::Put(command) => {
                let times = command.settings.times.expressions.len();
                let reason = match &command.pause {
                    PutPause::Paused(reason) => reason.len(),
                    PutPause::AsItIs | PutPause::Running => 0,
                };
                command.settings.bytes() + times * ITEM_BYTES + reason
            }
            ScheduleCommand::Pause(command) => command.reason.len(),
            // What it makes stands in the schedule; a new queue or key is named again.
            ScheduleCommand::RunNow(_) => 2 * SCHEDULE_BYTES_MAX,
            ScheduleCommand::Delete(_) | ScheduleCommand::Resume(_) => 0,
        }
}

fn created(command: &CreateJob) -> usize {
    let names = 3 * command.queue.tenant.len() + command.queue.queue.len();
    let texts = command.job_type.len() + command.group.len();
    names + texts + command.payload.len() + command.options.as_deref().map_or(0, options)
}

pub(crate) fn options(options: &JobOptions) -> usize {
    let keys = options.concurrency_key.len() + options.rate_key.len();
    options.headers.len() + options.unique_key.len() + options.request_id.len() + 2 * keys
}

fn documents(writes: &[DocumentWrite]) -> usize {
    let bytes = |write: &DocumentWrite| {
        let name = write.tenant.len() + write.kind.len() + write.id.len();
        ITEM_BYTES + name + write.bytes.as_ref().map_or(0, |bytes| bytes.len())
    };
    writes.iter().map(bytes).sum()
}
