//! How much of the log a command may need, before it is decided.

use crate::command::{Command, CreateJob, DocumentWrite, JobOptions};
use crate::flow::{FlowCommand, UserTaskAction};
use crate::schedule::{PutPause, SCHEDULE_BYTES_MAX, ScheduleCommand};

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

/// What a command on flows brings itself. The steps behind it have a bound of their own and stand in
/// frames of their own when they do not fit.
fn flow(command: &FlowCommand) -> usize {
    match command {
        // A definition's event names its elements again.
        FlowCommand::DeployResources(command) => {
            command.resources.iter().map(|(name, bytes)| 2 * (name.len() + bytes.len())).sum()
        }
        FlowCommand::CreateInstance(command) => {
            let tags: usize = command.tags.iter().map(|tag| tag.len()).sum();
            command.variables.len() + command.business_id.len() + tags
        }
        FlowCommand::ModifyInstance(command) => command
            .activate
            .iter()
            .flat_map(|instruction| &instruction.variables)
            .map(|given| given.variables.len() + ITEM_BYTES)
            .sum(),
        FlowCommand::SetVariables(command) => command.variables.len(),
        // A message that is correlated at once stands there a second time.
        FlowCommand::PublishMessage(command) => 2 * command.variables.len(),
        FlowCommand::BroadcastSignal(command) => command.variables.len(),
        FlowCommand::UpdateUserTask(command) => match &command.action {
            UserTaskAction::Complete(result) => result.len(),
            UserTaskAction::Assign { assignee, .. } => assignee.len(),
            UserTaskAction::Change { .. } => NUMBERS_BYTES,
        },
        FlowCommand::DeleteResource(_)
        | FlowCommand::CancelInstance(_)
        | FlowCommand::MigrateInstance(_)
        | FlowCommand::EvaluateDecision(_) => 0,
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
