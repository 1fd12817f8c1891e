//! The state machine of Windlass: what may happen to a job, whose turn it is, and when.
//!
//! [`Engine::decide`] takes a command, checks everything that can refuse it, and emits events;
//! each event is applied at once and handed to the shell's [`Sink`], which logs it. `apply` is the
//! only thing that writes state, and a replay is nothing but `apply`.
//!
//! Reading order: [`lifecycle`] is the table of a job's life; [`state`] what is remembered, with
//! [`state::fair`] at its heart; [`apply`](mod@apply) what events do; `verb` one file per command;
//! [`retry`] what follows a failure; [`why`] answers where a job is and why it is not running;
//! [`invariant`] lists what always holds.
//!
//! Absent on purpose: IO, clocks, randomness, threads, async, logging. Time is an argument, and so
//! is the seed of the jitter. The iteration order of hash maps decides nothing.

mod apply;
pub mod invariant;

pub mod lifecycle;
pub mod retry;
pub mod rights;
pub mod state;
#[cfg(test)]
mod tests;
mod verb;
pub mod why;

use windlass_record::bound::Bounds;
use windlass_record::command::{Bytes, Command};
use windlass_record::event::Event;
use windlass_record::flow::FlowAnswer;
use windlass_record::id::{JobKey, PartitionId, Payload, QueueId};
use windlass_record::rejection::Rejection;
use windlass_record::schedule::ScheduleAnswer;

pub use state::image::{ImageSink, LoadError};
pub use state::job::{Job, Slot};
pub use state::{Effects, Ended, State};
pub use windlass_flow::conductor::{query as workflows, render};
pub use windlass_flow::kernel::join;
pub use windlass_flow::schedule;
pub use windlass_flow::state::transition::{TransitionEnded, TransitionOutcome, UserTaskShown};
pub use windlass_flow::state::{InstanceEnded, JobFacts};

/// What the shell does with events and payloads while a command is decided.
pub trait Sink {
    /// Keeps the bytes of a payload. Called only for commands that will not be refused.
    fn keep(&mut self, bytes: &Bytes) -> Payload;
    /// Logs an event that was just applied.
    fn record(&mut self, event: &Event<'_>);
}

/// What a decision may know besides the state and the command.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The time of the batch (ms since the epoch).
    pub now_ms: u64,
    /// The batch's seed, from which jitter is derived.
    pub seed: u64,
}

/// What a command that was not refused is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing more to say.
    Done,
    /// The new job, or the one that the same request made before.
    Created {
        /// Its key.
        key: JobKey,
        /// Whether the request was a repetition.
        existing: bool,
    },
    /// What was handed out, in order.
    Activated(Vec<HandedOut>),
    /// For a worker that reports or extends: whether it should stop.
    Held {
        /// When its lease ends.
        deadline_ms: u64,
        /// Whether cancel was asked.
        cancel_asked: bool,
    },
    /// The job that was asked about still waits for its worker to stop.
    CancelPending,
    /// The queue.
    Queue(QueueId),
    /// The new versions, in order; 0 is "deleted".
    Versions(Vec<u64>),
    /// Of a command on flows.
    Flow(FlowAnswer),
    /// Of a command on schedules.
    Schedule(ScheduleAnswer),
}

/// One job that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandedOut {
    /// Where it stands; valid until the next command.
    pub slot: Slot,
    /// Its key.
    pub key: JobKey,
    /// The number of the activation.
    pub activation: u32,
    /// The turn its group used, to be given back if it is never sent.
    pub turn: u64,
    /// The scheme's counter before, likewise.
    pub scheme_count: u32,
}

/// Steps of flows that are taken in the frame of the command that caused them.
const FOLLOW_UPS_MAX: usize = 32;

/// Bytes of events of flows after which the rest is left to the next frame.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// One partition's state machine.
#[derive(Debug)]
pub struct Engine {
    state: State,
    bounds: Bounds,
}

impl Engine {
    /// An empty partition.
    pub fn new(partition: PartitionId, bounds: Bounds) -> Engine {
        Engine { state: State::new(partition, &bounds), bounds }
    }

    /// The key that the next new entity gets.
    pub fn next_key(&self) -> JobKey {
        JobKey::from_parts(self.state.partition, self.state.last_counter + 1)
    }

    /// What it remembers.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Decides a command: refuses it and changes nothing, or emits what follows from it.
    pub fn decide<S: Sink>(
        &mut self,
        command: &Command,
        context: Context,
        sink: &mut S,
    ) -> Result<Answer, Rejection> {
        let mut step = self.step(context, sink);
        let answer = verb::decide(&mut step, command)?;
        // Most flows are at rest again after a few steps, which then stand in the same frame. What
        // moved no flow does not go on with those of others, which might end a job that was just
        // handed out.
        if step.flow_bytes > 0 {
            step.go_on(FOLLOW_UPS_MAX);
        }
        Ok(answer)
    }

    /// Goes on with what flows have left to do, for one frame of the log: at most `steps_max` entries
    /// of their to-do list, fewer when they bring much. Returns how many it did.
    pub fn go_on<S: Sink>(&mut self, context: Context, steps_max: usize, sink: &mut S) -> usize {
        self.step(context, sink).go_on(steps_max)
    }

    /// Notes that a worker asked for a queue, see [`windlass_flow::FlowState::note_poll`].
    pub fn note_poll(&mut self, queue: &str, now_ms: u64) {
        self.state.flow.note_poll(queue, now_ms);
    }

    /// Moves out which awaited instances came to their end.
    pub fn take_ended_instances(&mut self) -> Vec<InstanceEnded> {
        self.state.flow.take_ended()
    }

    /// Moves out which transitions of user tasks are over.
    pub fn take_ended_transitions(&mut self) -> Vec<TransitionEnded> {
        self.state.flow.take_ended_transitions()
    }

    /// Does what time asks for, at most `steps_max` times. Returns how many it did; the caller
    /// goes on in its next batch when it did as many as it might.
    pub fn fire<S: Sink>(&mut self, context: Context, steps_max: usize, sink: &mut S) -> usize {
        verb::timer::fire(&mut self.step(context, sink), steps_max)
    }

    /// Records that the partition came up: no live lease ends before `leases_to_ms`.
    pub fn open<S: Sink>(&mut self, context: Context, leases_to_ms: u64, sink: &mut S) {
        self.step(context, sink).emit(&Event::PartitionOpened { leases_to_ms });
    }

    /// Records that the wall clock jumped ahead: live leases move with it.
    pub fn move_leases<S: Sink>(&mut self, context: Context, by_ms: u64, sink: &mut S) {
        self.step(context, sink).emit(&Event::LeasesMoved { by_ms });
    }

    /// Applies an event of the log.
    pub fn replay(&mut self, now_ms: u64, event: &Event<'_>) {
        self.state.apply(now_ms, event);
    }

    /// When [`Engine::fire`] has something to do next; may be early, is never late.
    pub fn next_due_ms(&self) -> Option<u64> {
        let rate_ms = self.state.rate_wakes.first().map(|(at_ms, _)| *at_ms);
        let flow_ms = self.state.flow.next_due_ms();
        let schedule_ms = self.state.schedules.next_due_ms();
        [self.state.wheel.next_ms(), rate_ms, flow_ms, schedule_ms].into_iter().flatten().min()
    }

    /// What the shell must do about what was applied since the last call.
    pub fn effects(&mut self) -> &mut Effects {
        &mut self.state.effects
    }

    /// Queues that may have something for those who wait, since the last call.
    pub fn take_served(&mut self, into: &mut Vec<QueueId>) {
        self.state.take_served(into);
    }

    fn step<'a, S>(&'a mut self, context: Context, sink: &'a mut S) -> Step<'a, S> {
        Step { state: &mut self.state, bounds: &self.bounds, context, sink, flow_bytes: 0 }
    }

    // ── checkpoints, see `state::image` ─────────────────────────────────────────────────────

    /// Sets the dirty state aside for a checkpoint and writes what is few.
    pub fn freeze(&mut self, sink: &mut dyn ImageSink) {
        self.state.freeze(sink);
    }

    /// Writes up to `jobs_max` frozen jobs, and as many ended ones, entities of flows, and requests; true
    /// when none remain.
    pub fn write_frozen(&mut self, jobs_max: usize, sink: &mut dyn ImageSink) -> bool {
        self.state.write_frozen(jobs_max, sink)
    }

    /// Writes frozen images that could not wait; to be called after each command while frozen jobs
    /// remain, before payloads are freed.
    pub fn write_early_images(&mut self, sink: &mut dyn ImageSink) {
        self.state.write_early_images(sink);
    }

    /// Sum of the hashes of all images: that of the checkpoint when it has just been written whole.
    pub fn checksum(&self) -> u64 {
        self.state.checksum()
    }

    /// How many jobs a checkpoint would write now.
    pub fn dirty_jobs(&self) -> usize {
        self.state.dirty_jobs()
    }

    /// Takes in one image of a checkpoint, see [`State::LOAD_ORDER`].
    pub fn load(
        &mut self,
        key: &[u8],
        value: &[u8],
        payload: &mut dyn FnMut(&[u8], u32) -> Payload,
    ) -> Result<(), LoadError> {
        self.state.load(key, value, payload)
    }

    /// After the last image.
    pub fn finish_load(&mut self) {
        self.state.finish_load();
    }
}

/// A decision under way.
pub(crate) struct Step<'a, S> {
    pub(crate) state: &'a mut State,
    pub(crate) bounds: &'a Bounds,
    pub(crate) context: Context,
    pub(crate) sink: &'a mut S,
    /// Bytes of events of flows so far, about.
    pub(crate) flow_bytes: usize,
}

impl<S: Sink> Step<'_, S> {
    /// Applies an event and logs it, so that later choices of the same command see it.
    pub(crate) fn emit(&mut self, event: &Event<'_>) {
        self.state.apply(self.context.now_ms, event);
        self.sink.record(event);
    }

    /// A fresh key.
    pub(crate) fn next_key(&self) -> JobKey {
        JobKey::from_parts(self.state.partition, self.state.last_counter + 1)
    }

    /// Takes steps of flows while they fit into the frame. Returns how many it took.
    fn go_on(&mut self, steps_max: usize) -> usize {
        let mut did = 0;
        while did < steps_max
            && self.flow_bytes <= FRAME_BYTES_MAX
            && windlass_flow::kernel::step(self)
        {
            did += 1;
        }
        did
    }
}
