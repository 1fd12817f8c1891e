//! The way into a partition's loop: bounded, and never blocking.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::Sender;
use windlass_record::bound::Bound;
use windlass_record::command::{Command, CreateJob};
use windlass_record::schedule::ScheduleCommand;

use crate::options::Durability;
use crate::request::{Commands, Request};

/// A way into the loop; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(crate) first: Sender<Request>,
    pub(crate) usual: Sender<Request>,
    pub(crate) load: Arc<Load>,
    pub(crate) durability: Durability,
}

/// What waits for the loop.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Commands in the usual lane.
    pub(crate) commands: AtomicU64,
    /// Their bytes.
    pub(crate) bytes: AtomicU64,
    pub(crate) commands_max: u64,
    pub(crate) bytes_max: u64,
}

/// Why a request did not get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Overloaded {
    /// A limit was reached; try again later.
    #[error("the partition has {max} {bound} waiting: try again later")]
    Full {
        /// Which.
        bound: Bound,
        /// Its value.
        max: u64,
    },
    /// The partition has stopped.
    #[error("the partition has stopped")]
    Stopped,
}

impl Handle {
    /// What an acknowledgement means here.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Hands a request to the loop. Results, heartbeats, cancels, returns and everything about
    /// streams go first and are never refused here: callers hold them back by waiting for answers.
    /// Everything else is refused at the limits of the loop, but the end of a poll.
    pub fn submit(&self, request: Request) -> Result<(), Overloaded> {
        if goes_first(&request) {
            return self.first.send(request).map_err(|_| Overloaded::Stopped);
        }
        let (commands, bytes) = weight(&request);
        if commands > 0 {
            self.admit(commands, bytes)?;
        }
        self.usual.send(request).map_err(|_| Overloaded::Stopped)
    }

    fn admit(&self, commands: u64, bytes: u64) -> Result<(), Overloaded> {
        let load = &self.load;
        let before = load.commands.fetch_add(commands, Ordering::Relaxed);
        let bytes_before = load.bytes.fetch_add(bytes, Ordering::Relaxed);
        let full = if before > 0 && before + commands > load.commands_max {
            Some((Bound::LoopCommands, load.commands_max))
        } else if bytes_before > 0 && bytes_before + bytes > load.bytes_max {
            Some((Bound::LoopBytes, load.bytes_max))
        } else {
            None
        };
        let Some((bound, max)) = full else { return Ok(()) };
        load.commands.fetch_sub(commands, Ordering::Relaxed);
        load.bytes.fetch_sub(bytes, Ordering::Relaxed);
        Err(Overloaded::Full { bound, max })
    }
}

/// Whether a request has the lane that is served first.
fn goes_first(request: &Request) -> bool {
    match request {
        Request::Commands(commands) => commands.items.iter().all(lets_work_drain),
        // Whoever completes a user task has no place among the results, which bounds those.
        Request::Query(..)
        | Request::Poll(_)
        | Request::EndPoll(_)
        | Request::RunInstance(_)
        | Request::Change(_) => false,
        Request::OpenStream(_)
        | Request::AddCredits(..)
        | Request::CloseStream(_)
        | Request::Return(_) => true,
    }
}

fn lets_work_drain(command: &Command) -> bool {
    match command {
        Command::CompleteJob(_)
        | Command::CompleteListener(_)
        | Command::FailJob(_)
        | Command::ThrowError(_)
        | Command::ReleaseJob(_)
        | Command::CancelJob(_)
        | Command::ExtendLease(_)
        | Command::ReportProgress(_)
        | Command::AppendLog(_)
        | Command::ReturnJob(_) => true,
        Command::Flow(command) => command.lets_work_drain(),
        Command::CreateJob(_)
        | Command::ActivateJobs(_)
        | Command::UpdateJob(_)
        | Command::ResolveIncident(_)
        | Command::ConfigureQueue(_)
        | Command::PauseQueue(_)
        | Command::ConfigureLimit(_)
        | Command::Schedule(_)
        | Command::PutDocuments(_) => false,
    }
}

/// Commands and bytes of a request in the usual lane; what has none is never refused.
pub(crate) fn weight(request: &Request) -> (u64, u64) {
    match request {
        Request::Commands(Commands { items, .. }) => {
            let commands = u64::try_from(items.len()).unwrap_or(u64::MAX);
            (commands, items.iter().map(bytes_of).sum())
        }
        Request::RunInstance(run) => {
            (1, u64::try_from(run.command.variables.len()).unwrap_or(u64::MAX))
        }
        Request::Change(change) => (1, u64::try_from(change.command.bytes()).unwrap_or(u64::MAX)),
        // There are no more of them than polls, whose lane this is: it cannot overtake its own.
        Request::EndPoll(_) => (0, 0),
        Request::Query(..)
        | Request::Poll(_)
        | Request::OpenStream(_)
        | Request::AddCredits(..)
        | Request::CloseStream(_)
        | Request::Return(_) => (1, 0),
    }
}

fn bytes_of(command: &Command) -> u64 {
    let bytes = match command {
        Command::CreateJob(CreateJob { payload, .. }) => payload.len(),
        Command::PutDocuments(command) => command
            .documents
            .iter()
            .map(|write| write.bytes.as_ref().map_or(0, |bytes| bytes.len()))
            .sum(),
        Command::Flow(command) => command.bytes(),
        Command::Schedule(ScheduleCommand::Put(command)) => command.settings.bytes(),
        Command::ActivateJobs(_)
        | Command::ReturnJob(_)
        | Command::ExtendLease(_)
        | Command::ReportProgress(_)
        | Command::AppendLog(_)
        | Command::CompleteJob(_)
        | Command::CompleteListener(_)
        | Command::FailJob(_)
        | Command::ThrowError(_)
        | Command::ReleaseJob(_)
        | Command::CancelJob(_)
        | Command::UpdateJob(_)
        | Command::ResolveIncident(_)
        | Command::ConfigureQueue(_)
        | Command::PauseQueue(_)
        | Command::ConfigureLimit(_)
        | Command::Schedule(_) => 0,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;
    use windlass_record::flow::{FlowCommand, NO_KEY, UpdateUserTask, UserTaskAction};
    use windlass_record::workflow::{SignalWorkflow, TaskStatus, WorkflowCommand, WorkflowVerb};

    use super::*;
    use crate::request::{Change, Poll, WaiterId, Wanted};

    #[test]
    fn the_end_of_a_poll_gets_in_behind_it() {
        let (first, first_in) = unbounded();
        let (usual, usual_in) = unbounded();
        let load = Load { commands_max: 1, ..Load::default() };
        let durability = Durability::Fsync;
        let handle = Handle { first, usual, load: Arc::new(load), durability };
        let wanted =
            Wanted { queues: Vec::new(), worker: "w".into(), lease_ms: 1, with_token: true };
        let poll = |id| {
            let (reply, wanted) = (Box::new(|_| Vec::new()), wanted.clone());
            let (jobs_max, bytes_max, wait_ms) = (1, 1, 1);
            Request::Poll(Poll { id: WaiterId(id), wanted, jobs_max, bytes_max, wait_ms, reply })
        };
        assert_eq!(handle.submit(poll(1)), Ok(()));
        assert!(matches!(handle.submit(poll(2)), Err(Overloaded::Full { .. })));
        assert_eq!(handle.submit(Request::EndPoll(WaiterId(1))), Ok(()));
        assert_eq!(first_in.len(), 0);
        let came: Vec<Request> = usual_in.try_iter().collect();
        assert!(matches!(*came, [Request::Poll(_), Request::EndPoll(WaiterId(1))]));
    }

    #[test]
    fn what_ends_work_gets_in_where_new_work_does_not() {
        let (first, first_in) = unbounded();
        let (usual, usual_in) = unbounded();
        let load = Load { commands: AtomicU64::new(1), commands_max: 1, ..Load::default() };
        let durability = Durability::Fsync;
        let handle = Handle { first, usual, load: Arc::new(load), durability };
        let submit = |command| {
            let items = vec![Command::Flow(command)];
            handle.submit(Request::Commands(Commands { items, reply: Box::new(|_| {}) }))
        };
        let submit_workflow = |command| submit(FlowCommand::Workflow(command));
        let change = |action| {
            let command = FlowCommand::UpdateUserTask(UpdateUserTask {
                key: NO_KEY,
                name: "".into(),
                action,
            });
            handle.submit(Request::Change(Change { command, wait_ms: 1, reply: Box::new(|_| {}) }))
        };
        let control = |verb| WorkflowCommand::Control { workflow: NO_KEY, verb };
        let start = WorkflowCommand::Start { request: Arc::from(&b"{}"[..]) };
        for refused in [start, control(WorkflowVerb::Pause)] {
            let Err(Overloaded::Full { bound, .. }) = submit_workflow(refused) else {
                panic!("it is full")
            };
            assert_eq!(bound, Bound::LoopCommands);
        }
        let status = TaskStatus::Completed;
        let signal = SignalWorkflow { workflow: NO_KEY, status, output: Default::default() };
        let log = WorkflowCommand::LogTask { task: NO_KEY, lines: Vec::new() };
        let terminate = control(WorkflowVerb::Terminate { reason: "".into() });
        for taken in [WorkflowCommand::Signal(signal), log, terminate] {
            assert_eq!(submit_workflow(taken), Ok(()));
        }
        let assign = UserTaskAction::Assign { assignee: "".into(), replace: true };
        assert!(matches!(change(assign), Err(Overloaded::Full { .. })));
        let complete = UserTaskAction::Complete(Arc::from(&b"{}"[..]));
        assert!(matches!(change(complete), Err(Overloaded::Full { .. })), "nothing else bounds it");
        assert_eq!((first_in.len(), usual_in.len()), (3, 0));
    }
}
