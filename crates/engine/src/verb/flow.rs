//! Commands on flows, which the kernel of flows decides, and what it asks of the engine for that:
//! events, keys, the time, jobs.

use std::borrow::Cow;

use windlass_flow::FlowState;
use windlass_flow::kernel::{NewJob, Port};
use windlass_record::bound::{Bound, Bounds};
use windlass_record::command::{JobOptions, QueueName};
use windlass_record::event::{Event, JobCreated, Outcome};
use windlass_record::flow::{FlowCommand, FlowEvent, Key, job_queue};
use windlass_record::id::{Payload, QueueId};
use windlass_record::policy::{Dialect, JobOrder, QueueSettings};
use windlass_record::rejection::Rejection;

use super::guard::at_most;
use crate::{Answer, Sink, Step};

/// Jobs of flows are handed out in the order of their creation, a retried one at its old place, and
/// leave nothing behind: what they did stands in their flow.
const SETTINGS: QueueSettings =
    QueueSettings { order: JobOrder::Creation, finished_max: 0, ..QueueSettings::DEFAULT };

/// Decides a command on flows.
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &FlowCommand,
) -> Result<Answer, Rejection> {
    at_most(Bound::PayloadBytes, command.payload_bytes(), step.bounds.payload_bytes_max)?;
    Ok(Answer::Flow(windlass_flow::verb::decide(step, command)?))
}

impl<S: Sink> Port for Step<'_, S> {
    fn state(&self) -> &FlowState {
        &self.state.flow
    }

    fn emit(&mut self, event: FlowEvent<'_>) {
        self.flow_bytes = self.flow_bytes.saturating_add(event.bytes());
        Step::emit(self, &Event::Flow(event));
    }

    fn next_key(&self) -> Key {
        Step::next_key(self)
    }

    fn now_ms(&self) -> u64 {
        self.context.now_ms
    }

    fn bounds(&self) -> &Bounds {
        self.bounds
    }

    fn create_job(&mut self, job: &NewJob) -> Key {
        let queue = queue_of(self, job);
        let options = JobOptions {
            headers: job.headers.as_bytes().into(),
            dialect: Dialect::Zeebe,
            ..JobOptions::default()
        };
        let key = Step::next_key(self);
        Step::emit(
            self,
            &Event::JobCreated(JobCreated {
                key,
                queue,
                job_type: &job.job_type,
                group: "",
                priority: job.priority,
                retries: job.retries.max(0),
                due_ms: 0,
                payload: Payload::EMPTY,
                concurrency: None,
                rate: None,
                options: Some(Cow::Borrowed(&options)),
            }),
        );
        key
    }

    fn cancel_job(&mut self, job: Key) {
        if let Some(slot) = self.state.find(job) {
            self.end(slot, Outcome::Cancelled, "its element was terminated");
        }
    }
}

fn queue_of<S: Sink>(step: &mut Step<'_, S>, job: &NewJob) -> QueueId {
    let queue = job_queue(&job.job_type);
    let name = QueueName { tenant: (*job.tenant).into(), queue };
    let known = step.state.queue_named(&name);
    known.unwrap_or_else(|| step.emit_queue(&name.tenant, &name.queue, &SETTINGS))
}

#[cfg(test)]
mod tests {
    use windlass_record::command::{Bytes, Command, FailJob, Lease, ThrowError};
    use windlass_record::flow::{
        ActivateInstruction, BroadcastSignal, CreateInstance, DecisionReference, DeployResources,
        EvaluateDecision, ModifyInstance, ProcessReference, PublishMessage, SetVariables,
        UpdateUserTask, UserTaskAction, VariableInstruction,
    };

    use super::*;
    use crate::verb::check::Check;

    /// Every command that brings variables or files to a flow, with these bytes.
    fn with(bytes: &[u8]) -> Vec<Command> {
        let key = Key::from_raw(7);
        let bytes = || Bytes::from(bytes);
        let lease = Lease { key, activation: None };
        let given = VariableInstruction { variables: bytes(), scope_id: "".into() };
        let activate = ActivateInstruction {
            element_id: "a".into(),
            ancestor: Key::NONE,
            variables: vec![given],
        };
        let flows = [
            FlowCommand::DeployResources(DeployResources {
                tenant: "t".into(),
                resources: vec![("a".into(), Bytes::default()), ("b".into(), bytes())],
            }),
            FlowCommand::CreateInstance(CreateInstance {
                tenant: "t".into(),
                process: ProcessReference::Key(key),
                variables: bytes(),
                start_at: Vec::new(),
                business_id: "".into(),
                tags: Vec::new(),
                awaited: false,
            }),
            FlowCommand::ModifyInstance(ModifyInstance {
                key,
                activate: vec![activate],
                terminate: Vec::new(),
                moves: Vec::new(),
            }),
            FlowCommand::SetVariables(SetVariables {
                scope: key,
                variables: bytes(),
                local: false,
            }),
            FlowCommand::PublishMessage(PublishMessage {
                tenant: "t".into(),
                name: "m".into(),
                correlation_key: "".into(),
                message_id: "".into(),
                time_to_live_ms: 0,
                variables: bytes(),
                must_correlate: false,
            }),
            FlowCommand::BroadcastSignal(BroadcastSignal {
                tenant: "t".into(),
                name: "s".into(),
                variables: bytes(),
            }),
            FlowCommand::EvaluateDecision(EvaluateDecision {
                tenant: "t".into(),
                decision: DecisionReference::Key(key),
                variables: bytes(),
            }),
            FlowCommand::UpdateUserTask(UpdateUserTask {
                key,
                action: UserTaskAction::Complete(bytes()),
            }),
        ];
        let mut commands: Vec<Command> = flows.into_iter().map(Command::Flow).collect();
        commands.push(Command::FailJob(FailJob {
            lease,
            message: "".into(),
            retries: None,
            backoff_ms: None,
            progressed: false,
            kind: Default::default(),
            variables: bytes(),
        }));
        commands.push(Command::ThrowError(ThrowError {
            lease,
            code: "".into(),
            message: "".into(),
            variables: bytes(),
        }));
        commands
    }

    #[test]
    fn payloads_are_bounded() {
        let bounds = Bounds { payload_bytes_max: 4, ..Bounds::default() };
        let too_large =
            || Err(Rejection::TooLarge { bound: Bound::PayloadBytes, max: 4, given: 5 });
        let mut check = Check::with_bounds(bounds);
        for command in with(b"{   }") {
            assert_eq!(check.give(command.clone()), too_large(), "{command:?}");
        }
        for command in with(b"{  }") {
            assert_ne!(check.give(command.clone()), too_large(), "{command:?}");
        }
    }
}
