//! Those who wait for jobs: who stands in line, what each is handed, what comes back unsent.

use std::sync::Arc;

use windlass_engine::{Answer as Decided, HandedOut, join, render};
use windlass_record::bound::Bound;
use windlass_record::command::{ActivateJobs, Command, ReturnJob};
use windlass_record::id::{QueueId, Token};
use windlass_record::rejection::Rejection;
use windlass_record::workflow::TASK_QUEUE_PREFIX;

use super::{Action, Core, Delivery, Missing};
use crate::payload::Bytes;
use crate::request::{HandedJob, Poll, Refused, Stream, StreamSink, Unsent, WaiterId, Wanted};
use crate::waiters::Kind;

/// Jobs handed to one waiter before the next has its turn.
const JOBS_PER_TURN_MAX: u32 = 64;
/// Payload bytes of one hand-out.
const HAND_OUT_BYTES_MAX: u64 = 1 << 20;

impl Core {
    pub(super) fn poll(&mut self, poll: Poll) {
        if self.waiters.len() >= self.options.waiters_max {
            let refused = self.too_many_waiters();
            self.deliver(Action::Poll(poll.reply, Err(refused)));
            return;
        }
        if let Err(rejection) = self.check_wanted(&poll.wanted, poll.jobs_max) {
            self.deliver(Action::Poll(poll.reply, Err(rejection.into())));
            return;
        }
        for wanted in &poll.wanted.queues {
            if wanted.queue.starts_with(TASK_QUEUE_PREFIX) {
                self.engine.note_poll(&wanted.queue, self.now_ms);
            }
        }
        let kind = Kind::Poll {
            jobs_max: poll.jobs_max,
            bytes_max: poll.bytes_max,
            reply: poll.reply,
            ends_ms: self.now_ms.saturating_add(poll.wait_ms),
        };
        self.waiters.add(self.engine.state(), self.now_ms, poll.id, poll.wanted, kind);
        if let Some(waiter) = self.waiters.get(poll.id) {
            self.served.extend_from_slice(&waiter.queues);
        }
        if poll.wait_ms == 0 {
            // It is answered in this round, behind whoever waits already.
            self.serve();
            if let Some(waiter) = self.waiters.remove(self.now_ms, poll.id)
                && let Kind::Poll { reply, .. } = waiter.kind
            {
                self.deliver(Action::Poll(reply, Ok(Vec::new())));
            }
        }
    }

    pub(super) fn open_stream(&mut self, stream: Stream) {
        let sink: Arc<dyn StreamSink> = stream.sink.into();
        let checked = self.check_wanted(&stream.wanted, 0);
        if self.waiters.len() >= self.options.waiters_max || checked.is_err() {
            sink.end();
            return;
        }
        let kind = Kind::Stream { credits: stream.credits, sink };
        self.waiters.add(self.engine.state(), self.now_ms, stream.id, stream.wanted, kind);
        if let Some(waiter) = self.waiters.get(stream.id) {
            self.served.extend_from_slice(&waiter.queues);
        }
    }

    pub(crate) fn too_many_waiters(&self) -> Refused {
        let max = u64::try_from(self.options.waiters_max).unwrap_or(u64::MAX);
        Refused::Rejected(Rejection::Exhausted { bound: Bound::Waiters, max })
    }

    /// Refuses what an activation would refuse, before anybody waits for it.
    fn check_wanted(&mut self, wanted: &Wanted, jobs_max: u32) -> Result<(), Rejection> {
        let nothing = ActivateJobs {
            queues: Vec::new(),
            worker: wanted.worker.clone(),
            lease_ms: wanted.lease_ms,
            jobs_max,
            bytes_max: 0,
            with_token: wanted.with_token,
        };
        if wanted.queues.is_empty() {
            return Err(Rejection::NameEmpty { field: "queue" });
        }
        self.decide(&Command::ActivateJobs(nothing)).map(|_| ())
    }

    /// Hands out jobs to those who wait on queues that may have some, as far as the batch has room.
    pub(super) fn serve(&mut self) {
        self.waiters.meet_new_queues(self.engine.state());
        while let Some(queue) = self.served.pop() {
            // Who is served goes behind the others: what is there is shared by all of a line, once.
            let mut left_in_line = 0;
            while let Some((id, in_line)) = self.waiters.first(self.engine.state(), queue) {
                if !self.has_room_for_steps() {
                    // The next batch goes on from here.
                    self.served.push(queue);
                    return;
                }
                if left_in_line == 0 {
                    left_in_line = in_line.max(1);
                }
                if !self.serve_one(queue, id, left_in_line) {
                    break;
                }
                left_in_line -= 1;
            }
        }
    }

    /// Hands jobs to one who waits on a queue; a stream gets its share of what is there for
    /// `left_in_line`. False if there were none after all.
    fn serve_one(&mut self, queue: QueueId, id: WaiterId, left_in_line: usize) -> bool {
        let Some(waiter) = self.waiters.get(id) else { return false };
        let eligible = self.engine.state().eligible_jobs(queue, waiter.wanted.with_token);
        let share = eligible.div_ceil(u32::try_from(left_in_line).unwrap_or(u32::MAX));
        let is_stream = matches!(waiter.kind, Kind::Stream { .. });
        let turn_max = if is_stream { share.clamp(1, JOBS_PER_TURN_MAX) } else { u32::MAX };
        let bytes_max = match waiter.kind {
            Kind::Poll { bytes_max, .. } => bytes_max,
            Kind::Stream { .. } => HAND_OUT_BYTES_MAX,
        };
        let command = ActivateJobs {
            queues: waiter.queues.clone(),
            worker: waiter.wanted.worker.clone(),
            lease_ms: waiter.wanted.lease_ms,
            jobs_max: waiter.room().min(turn_max).min(self.options.bounds.activation_jobs_max),
            bytes_max,
            with_token: waiter.wanted.with_token,
        };
        let mut handed = Vec::new();
        let mut missing = Vec::new();
        match self.decide(&Command::ActivateJobs(command)) {
            Ok(Decided::Activated(out)) => {
                for (index, out) in out.iter().enumerate() {
                    handed.push(self.handed_job(index, out, &mut missing));
                }
            }
            Ok(_) | Err(_) => unreachable!("what is wanted was checked when it was asked"),
        }
        if handed.is_empty() {
            return false;
        }
        if is_stream {
            let used = u32::try_from(handed.len()).unwrap_or(u32::MAX);
            let Some(sink) = self.stream_sink(id) else { return false };
            self.waiters.set_credits(id, |credits| credits.saturating_sub(used));
            self.deliveries.push(Delivery { action: Action::Jobs(sink, handed), missing });
        } else if let Some(waiter) = self.waiters.remove(self.now_ms, id)
            && let Kind::Poll { reply, .. } = waiter.kind
        {
            self.deliveries.push(Delivery { action: Action::Poll(reply, Ok(handed)), missing });
        }
        true
    }

    fn stream_sink(&self, id: WaiterId) -> Option<Arc<dyn StreamSink>> {
        match &self.waiters.get(id)?.kind {
            Kind::Stream { sink, .. } => Some(sink.clone()),
            Kind::Poll { .. } => None,
        }
    }

    fn handed_job(&self, index: usize, out: &HandedOut, missing: &mut Vec<Missing>) -> HandedJob {
        let state = self.engine.state();
        let job = state.job(out.slot);
        let flow = state.flow().facts_of_job(out.key).map(Box::new);
        let of_flow = flow.as_ref().map(|_| {
            // A flow's variables are those of the moment of the hand-out.
            let variables = state.flow().variables_of_job(out.key);
            Bytes::Here(join(&variables).into_bytes().into())
        });
        let of_task = || self.task_of_workflow(out);
        let of_flow = of_flow.or_else(of_task);
        let payload = match of_flow.unwrap_or_else(|| self.payloads.get(job.payload)) {
            Bytes::Here(bytes) => bytes,
            Bytes::Stored(key) => {
                missing.push(Missing { index, key, result: false });
                Arc::default()
            }
        };
        let headers = match job.options() {
            Some(options) if !options.headers.is_empty() => Arc::from(&*options.headers),
            Some(_) | None => Arc::default(),
        };
        let queue = state.queue(state.queue_of(out.slot));
        HandedJob {
            key: out.key,
            activation: out.activation,
            tenant: queue.tenant.clone(),
            queue: queue.name.clone(),
            job_type: state.type_name(out.slot).clone(),
            group: state.group_name(out.slot).clone(),
            priority: state.priority(out.slot),
            retries: job.retries,
            attempt: job.attempt,
            created_ms: job.created_ms,
            deadline_ms: job.due_ms,
            payload,
            headers,
            flow,
            unsent: Unsent {
                token: Token { key: out.key, activation: out.activation },
                turn: out.turn,
                scheme_count: out.scheme_count,
            },
        }
    }

    /// The task of a workflow as its worker gets it. Workers of ours get what came with the job.
    fn task_of_workflow(&self, out: &HandedOut) -> Option<Bytes> {
        let state = self.engine.state();
        let workflows = state.flow().workflows();
        let task = workflows.task_of_job(out.key)?;
        if state.job(out.slot).payload.len > 0 {
            return None;
        }
        let now = state.task_job_now(out.slot);
        let task = render::task(workflows, task, Some(&now))?;
        Some(Bytes::Here(task.to_string().into_bytes().into()))
    }

    pub(super) fn take_back(&mut self, unsent: Unsent) {
        let command =
            ReturnJob { token: unsent.token, turn: unsent.turn, scheme_count: unsent.scheme_count };
        // Refused when the job has ended or been handed out again meanwhile: nothing to take back.
        let _ = self.decide(&Command::ReturnJob(command));
    }
}
