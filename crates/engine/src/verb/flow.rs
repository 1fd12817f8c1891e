//! Commands on flows, which the kernel of flows decides, and what it asks of the engine for that:
//! events, keys, the time, jobs.

use std::borrow::Cow;

use windlass_flow::FlowState;
use windlass_flow::conductor::job::JobEnd;
use windlass_flow::kernel::{NewJob, NewTaskJob, Port, TaskJobNow};
use windlass_record::bound::{Bound, Bounds};
use windlass_record::command::{JobOptions, QueueName};
use windlass_record::event::{DeadlineKind, Event, JobCreated, Outcome, ReadyCause};
use windlass_record::flow::{FlowCommand, FlowEvent, Key, job_queue};
use windlass_record::id::{LimitId, Payload, QueueId};
use windlass_record::policy::{
    DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings, QueueSettings,
    RateWindow,
};
use windlass_record::rejection::Rejection;
use windlass_record::workflow::WORKFLOW_TENANT;

use super::guard::at_most;
use crate::lifecycle::JobState;
use crate::retry::jitter;
use crate::state::PairName;
use crate::state::job::{Flags, Slot};
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

    fn written(&self) -> usize {
        self.flow_bytes
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

    fn create_task_job(&mut self, job: &NewTaskJob) -> Key {
        let name = QueueName { tenant: WORKFLOW_TENANT.into(), queue: (*job.queue).into() };
        let known = self.state.queue_named(&name);
        let queue =
            known.unwrap_or_else(|| self.emit_queue(WORKFLOW_TENANT, &name.queue, &SETTINGS));
        let limits = &job.limits;
        let concurrency =
            self.make_limit(WORKFLOW_TENANT, &limits.concurrency_key, LimitSettings::default());
        let rate = self.make_limit(WORKFLOW_TENANT, &limits.rate_key, LimitSettings::default());
        let outcome = if limits.only_alert { DeadlineOutcome::Alert } else { DeadlineOutcome::End };
        let after = |ms: Option<u64>| ms.map(|ms| (ms, outcome));
        // Where nothing says that silence costs an attempt, a worker that died costs none.
        let lease = match limits.response_ms {
            0 => DeadlineOutcome::Again,
            _ => DeadlineOutcome::End,
        };
        let options = JobOptions {
            concurrency_key: limits.concurrency_key.clone(),
            rate_key: limits.rate_key.clone(),
            exhausted: Exhausted::Fail,
            deadlines: Deadlines {
                lease,
                waiting: after(limits.waiting_ms),
                attempt: after(limits.attempt_ms),
                total: after(limits.total_ms),
            },
            dialect: Dialect::Conductor,
            ..JobOptions::default()
        };
        let payload = if job.payload.is_empty() {
            Payload::EMPTY
        } else {
            self.sink.keep(&job.payload.clone().into())
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
                retries: 0,
                due_ms: job.due_ms,
                payload,
                concurrency,
                rate,
                options: Some(Cow::Borrowed(&options)),
            }),
        );
        key
    }

    fn task_job(&self, job: Key) -> Option<TaskJobNow> {
        self.state.find(job).map(|slot| self.state.task_job_now(slot))
    }

    fn complete_task_job(&mut self, job: Key) {
        if let Some(slot) = self.state.find(job) {
            self.end(slot, Outcome::Completed, "");
        }
    }

    fn put_back_task_job(&mut self, job: Key, delay_ms: u64) {
        let Some(slot) = self.state.find(job) else { return };
        let due_ms = if delay_ms == 0 { 0 } else { self.context.now_ms.saturating_add(delay_ms) };
        match self.state.job(slot).state {
            JobState::Active => Step::emit(self, &Event::JobReleased { key: job, due_ms }),
            // Nobody has it: it stays where it is.
            JobState::Scheduled
            | JobState::Ready
            | JobState::Backoff
            | JobState::Incident
            | JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Vacant => {}
        }
    }

    fn ready_task_job(&mut self, job: Key) -> bool {
        let Some(slot) = self.state.find(job) else { return false };
        let waits = self.state.job(slot).state == JobState::Scheduled;
        if waits {
            Step::emit(self, &Event::JobReadied { key: job, cause: ReadyCause::Due });
        }
        waits
    }

    fn extend_task_job(&mut self, job: Key) {
        let Some(slot) = self.state.find(job) else { return };
        let lease_ms = self.state.flow.response_ms(job);
        if self.state.job(slot).state == JobState::Active && lease_ms > 0 {
            let deadline_ms = self.context.now_ms.saturating_add(lease_ms);
            Step::emit(self, &Event::LeaseExtended { key: job, deadline_ms });
        }
    }

    fn set_limit(&mut self, name: &str, active_max: Option<u32>, rate: Option<(u32, u64)>) {
        let known = self.state.limit_names.get(&(WORKFLOW_TENANT, name) as &dyn PairName).copied();
        let window_max = self.bounds.rate_window_size_max;
        let rate = rate.map(|(max, window_ms)| RateWindow { max: max.min(window_max), window_ms });
        let settings = LimitSettings { active_max, rate };
        let same = match known {
            Some(limit) => self.state.limit(limit).settings == settings,
            None => settings == LimitSettings::default(),
        };
        if same {
            return;
        }
        let limit = known.unwrap_or(LimitId(self.state.last_limit + 1));
        let (tenant, implied) = (WORKFLOW_TENANT, false);
        Step::emit(self, &Event::LimitConfigured { limit, tenant, name, settings, implied });
    }

    fn jitter(&self, key: Key) -> u64 {
        jitter(self.context.seed, key.raw(), 1)
    }
}

impl crate::State {
    /// What is known of the job of a workflow's task.
    pub fn task_job_now(&self, slot: Slot) -> TaskJobNow {
        let job = self.job(slot);
        let alerted = |flag| job.flags.has(flag);
        let overdue = if alerted(Flags::ALERTED_TOTAL) {
            Some(DeadlineKind::Total)
        } else if alerted(Flags::ALERTED_ATTEMPT) {
            Some(DeadlineKind::Attempt)
        } else if alerted(Flags::ALERTED_WAITING) {
            Some(DeadlineKind::Waiting)
        } else if alerted(Flags::ALERTED_LEASE) {
            Some(DeadlineKind::Lease)
        } else {
            None
        };
        TaskJobNow {
            active: job.state == JobState::Active,
            worker: self.worker_name(slot).cloned().unwrap_or_default(),
            started_ms: job.extra().map_or(0, |extra| extra.attempt_started_ms),
            activations: job.activation,
            overdue,
        }
    }
}

/// What the end of a job means to a workflow's task. Must be called before the job ends.
pub(super) fn task_job_ends<S: Sink>(
    step: &mut Step<'_, S>,
    slot: Slot,
    outcome: Outcome,
    message: &str,
) {
    let key = step.state.job(slot).key;
    if step.state.flow.workflows().task_of_job(key).is_none() {
        return;
    }
    let now = step.state.task_job_now(slot);
    let end = match outcome {
        Outcome::Completed | Outcome::CompletedWithErrors => JobEnd::Completed(&[]),
        Outcome::FailedForGood => JobEnd::Failed(message, true),
        Outcome::Failed | Outcome::TimedOut => JobEnd::Failed(message, false),
        Outcome::Cancelled | Outcome::Skipped => JobEnd::Cancelled(message),
    };
    windlass_flow::conductor::job::job_ended(step, key, &now, end);
}

fn queue_of<S: Sink>(step: &mut Step<'_, S>, job: &NewJob) -> QueueId {
    let queue = job_queue(&job.job_type);
    let name = QueueName { tenant: job.tenant.clone(), queue };
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
                name: "".into(),
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
