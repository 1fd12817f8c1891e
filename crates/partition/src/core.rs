//! Turns requests into records and answers. No thread, no clock, no disk: `run` drives it on a
//! thread of its own, the simulator drives it step by step.
//!
//! One **round**: [`Core::begin`] with the time, any number of [`Core::handle`], then
//! [`Core::settle`], which fires timers and serves those who wait. [`Core::take`] closes the batch:
//! its records go to the log, and its deliveries may leave when the records are durable.

mod serve;

use std::sync::Arc;

use windlass_engine::{Answer as Decided, Context, Engine, Sink};
use windlass_log::{Batch, BatchBuilder, Tail};
use windlass_record::bound::Bound;
use windlass_record::codec::{self, Encoder, encode_event};
use windlass_record::command::{self, Command};
use windlass_record::event::Event;
use windlass_record::flow::FlowCommand;
use windlass_record::id::{Payload, QueueId, Token};
use windlass_record::rejection::Rejection;
use windlass_record::schedule::ScheduleCommand;
use windlass_record::workflow::WorkflowCommand;

use crate::awaited::Awaited;
use crate::changing::Changing;
use crate::finished::Finished;
use crate::options::Options;
use crate::parts::Parts;
use crate::payload::PayloadStore;
use crate::request::{
    Answer, ChangeReply, Changed, Commands, CommandsReply, HandedJob, InstanceRun, PollReply,
    QueryAnswer, QueryReply, Refused, Request, RunReply, StreamSink,
};
use crate::waiters::{Kind, Waiters};

/// Timers fired in one round.
const TIMERS_PER_ROUND_MAX: usize = 1_024;
/// Steps of flows in one round, and in one frame of it.
const STEPS_PER_ROUND_MAX: usize = 1_024;
const STEPS_PER_FRAME_MAX: usize = 32;
/// Places of payloads looked at for eviction in one round.
const EVICTION_LOOKS_MAX: u32 = 4_096;

/// One partition without its threads.
pub struct Core {
    /// The state machine.
    pub engine: Engine,
    /// The bytes it has handles of.
    pub payloads: PayloadStore,
    pub(crate) finished: Finished,
    /// Those who wait for jobs.
    pub waiters: Waiters,
    pub(crate) options: Options,
    /// The images of a checkpoint that is being collected.
    pub images: Option<crate::checkpoint::Images>,
    /// Place of images that were written.
    pub(crate) spent_images: Option<crate::checkpoint::Images>,
    /// Which images are in parts.
    pub(crate) parts: Parts,
    builder: BatchBuilder,
    /// How large commands may make a batch; an eighth of what the log takes is left for timers and
    /// hand-outs.
    batch_room_bytes: usize,
    tail: Tail,
    /// Time of the batch's header; its records carry what passed since.
    batch_ms: Option<u64>,
    /// Whether all records of the batch are about jobs alone.
    jobs_alone: bool,
    now_ms: u64,
    deliveries: Vec<Delivery>,
    served: Vec<QueueId>,
    freed: Vec<Payload>,
    /// Why creates are refused now.
    pub refusing: Option<Rejection>,
    pub(crate) awaited: Awaited,
    pub(crate) changing: Changing,
    /// Deadlines that passed with the outcome alert, in this life.
    pub(crate) alerts: u64,
}

/// Something that leaves when its batch is durable.
pub struct Delivery {
    /// What.
    pub action: Action,
    /// Payloads that must be read from the store first.
    pub missing: Vec<Missing>,
}

/// Where a payload goes that must be read first.
pub struct Missing {
    /// Which job of a hand-out, or document of a list.
    pub index: usize,
    /// Its key in the store.
    pub key: Vec<u8>,
    /// Whether it is the result and not the payload.
    pub result: bool,
}

/// What leaves.
pub enum Action {
    /// Answers of commands.
    Commands(CommandsReply, Vec<Result<Answer, Refused>>),
    /// What was read.
    Query(QueryReply, QueryAnswer),
    /// The end of a poll.
    Poll(PollReply, Result<Vec<HandedJob>, Refused>),
    /// Jobs for a stream.
    Jobs(Arc<dyn StreamSink>, Vec<HandedJob>),
    /// What became of an instance that was waited for.
    Run(RunReply, Result<InstanceRun, Refused>),
    /// What became of a change that was waited for.
    Change(ChangeReply, Result<Changed, Refused>),
    /// A worker is to stop.
    Stop(Vec<Arc<dyn StreamSink>>, Token),
}

impl Delivery {
    /// Lets it leave: what it saw is durable. Gives back jobs that nobody could take.
    pub fn leave(self) -> Vec<HandedJob> {
        match self.action {
            Action::Commands(reply, results) => reply(results),
            Action::Query(reply, answer) => reply(Ok(answer)),
            Action::Poll(reply, jobs) => return reply(jobs),
            Action::Jobs(sink, jobs) => return sink.deliver(jobs),
            Action::Run(reply, run) => reply(run),
            Action::Change(reply, changed) => reply(changed),
            Action::Stop(sinks, token) => {
                sinks.iter().for_each(|sink| sink.stop(token.key, token.activation));
            }
        }
        Vec::new()
    }

    /// The partition stops before what it saw is durable.
    pub fn refuse(self) {
        match self.action {
            Action::Commands(reply, results) => {
                reply(results.iter().map(|_| Err(Refused::Stopped)).collect());
            }
            Action::Query(reply, _) => reply(Err(Refused::Stopped)),
            Action::Poll(reply, _) => {
                reply(Err(Refused::Stopped));
            }
            Action::Jobs(sink, _) => sink.end(),
            Action::Run(reply, _) => reply(Err(Refused::Stopped)),
            Action::Change(reply, _) => reply(Err(Refused::Stopped)),
            Action::Stop(..) => {}
        }
    }
}

/// A closed round: records for the log and what leaves when they are durable.
pub struct Round {
    /// `None` when nothing was recorded.
    pub batch: Option<Batch>,
    /// Whether they are about jobs alone.
    pub(crate) jobs_alone: bool,
    /// What leaves with them.
    pub deliveries: Vec<Delivery>,
}

impl Core {
    pub(crate) fn new(
        engine: Engine,
        payloads: PayloadStore,
        finished: Finished,
        (tail, batch_bytes_max): (Tail, u64),
        options: Options,
    ) -> Core {
        let batch_bytes_max = usize::try_from(batch_bytes_max).unwrap_or(usize::MAX);
        Core {
            engine,
            payloads,
            finished,
            waiters: Waiters::default(),
            options,
            images: None,
            spent_images: None,
            parts: Parts::default(),
            builder: BatchBuilder::new(),
            batch_room_bytes: batch_bytes_max - batch_bytes_max / 8,
            tail,
            batch_ms: None,
            jobs_alone: true,
            now_ms: 0,
            deliveries: Vec::new(),
            served: Vec::new(),
            freed: Vec::new(),
            refusing: None,
            awaited: Awaited::default(),
            changing: Changing::default(),
            alerts: 0,
        }
    }

    /// The state machine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The lsn of the newest record, durable or not.
    pub fn last_lsn(&self) -> u64 {
        match self.batch_ms {
            Some(_) => self.builder.next_lsn() - 1,
            None => self.tail.last_lsn(),
        }
    }

    /// The life of the log.
    pub(crate) fn life(&self) -> u64 {
        self.tail.life.raw()
    }

    /// Who appends.
    pub fn epoch(&self) -> u32 {
        self.tail.epoch
    }

    pub(crate) fn partition(&self) -> u16 {
        self.tail.partition
    }

    /// The time of the last round.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Whether there is anything to take.
    pub fn has_round(&self) -> bool {
        !self.deliveries.is_empty() || self.batch_ms.is_some()
    }

    /// Bytes of the open batch.
    pub fn batch_bytes(&self) -> usize {
        if self.batch_ms.is_some() { self.builder.len_bytes() } else { 0 }
    }

    // ── a round ─────────────────────────────────────────────────────────────────────────────

    /// It is `now_ms`; the wall clock may have jumped ahead.
    pub fn begin(&mut self, now_ms: u64, jumped_ms: Option<u64>) {
        debug_assert!(now_ms >= self.now_ms, "engine time never goes back");
        self.now_ms = now_ms;
        if let Some(by_ms) = jumped_ms {
            self.record(|engine, context, sink| engine.move_leases(context, by_ms, sink));
        }
    }

    /// The partition came up: live leases end no sooner than its grace.
    pub fn open(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
        let grace_ms = u64::try_from(self.options.lease_grace.as_millis()).unwrap_or(u64::MAX);
        let leases_to_ms = now_ms.saturating_add(grace_ms);
        self.record(|engine, context, sink| engine.open(context, leases_to_ms, sink));
    }

    /// Takes in a request.
    pub fn handle(&mut self, request: Request) {
        match request {
            Request::Commands(commands) => self.commands(commands),
            Request::Query(query, reply) => {
                let (answer, missing) = self.query(&query);
                self.deliveries.push(Delivery { action: Action::Query(reply, answer), missing });
            }
            Request::Poll(poll) => self.poll(poll),
            Request::EndPoll(id) => {
                self.waiters.remove(self.now_ms, id);
            }
            Request::OpenStream(stream) => self.open_stream(stream),
            Request::AddCredits(id, credits) => {
                let queues = self.waiters.add_credits(id, credits);
                self.served.extend_from_slice(queues);
            }
            Request::CloseStream(id) => {
                self.waiters.remove(self.now_ms, id);
            }
            Request::Return(unsent) => {
                // The last first, so that turn and counter end as they began.
                for unsent in unsent.into_iter().rev() {
                    self.take_back(unsent);
                }
            }
            Request::RunInstance(run) => self.run_instance(run),
            Request::Change(change) => self.change(change),
        }
    }

    /// Fires what is due and serves those who wait. True if there is more to do at once.
    pub fn settle(&mut self) -> bool {
        let context = self.context();
        let mut fired = 0;
        while fired < TIMERS_PER_ROUND_MAX && self.has_room_for_steps() {
            let mut did = 0;
            self.record(|engine, _, sink| did = engine.fire(context, 1, sink));
            if did == 0 {
                break;
            }
            fired += did;
        }
        let more_steps = self.go_on_with_flows();
        for waiting in self.awaited.expired(self.now_ms) {
            let run = waiting.run.ok_or(Refused::Stopped);
            self.deliver(Action::Run(waiting.reply, run));
        }
        for waiting in self.changing.expired(self.now_ms) {
            self.deliver(Action::Change(waiting.reply, Ok(Changed::TimedOut)));
        }
        while let Some(id) = self.waiters.ended(self.now_ms) {
            if let Some(waiter) = self.waiters.remove(self.now_ms, id)
                && let Kind::Poll { reply, .. } = waiter.kind
            {
                self.deliver(Action::Poll(reply, Ok(Vec::new())));
            }
        }
        self.serve();
        self.payloads.evict(self.options.payload_bytes_max, EVICTION_LOOKS_MAX);
        fired >= TIMERS_PER_ROUND_MAX || !self.has_room_for_steps() || more_steps
    }

    /// When there is something to do even if nothing comes in.
    pub fn next_due_ms(&self) -> Option<u64> {
        let timer_ms = self.engine.next_due_ms();
        let poll_ms = self.waiters.next_end_ms();
        let waits_ms = [self.awaited.next_end_ms(), self.changing.next_end_ms()];
        [timer_ms, poll_ms].into_iter().chain(waits_ms).flatten().min()
    }

    /// What may leave before the round is durable, where that is allowed.
    pub(crate) fn take_deliveries(&mut self) -> Vec<Delivery> {
        std::mem::take(&mut self.deliveries)
    }

    /// Closes the round.
    pub fn take(&mut self, recycled: Option<Batch>) -> Round {
        let deliveries = std::mem::take(&mut self.deliveries);
        if self.batch_ms.take().is_none() {
            return Round { batch: None, jobs_alone: true, deliveries };
        }
        let jobs_alone = std::mem::replace(&mut self.jobs_alone, true);
        let fresh = recycled.map_or_else(BatchBuilder::new, BatchBuilder::recycle);
        let batch = std::mem::replace(&mut self.builder, fresh).finish();
        self.tail = batch.tail_after();
        Round { batch: Some(batch), jobs_alone, deliveries }
    }

    /// The partition stops: everybody who waits hears it.
    pub fn abandon(&mut self) -> Vec<Delivery> {
        for waiter in self.waiters.drain() {
            match waiter.kind {
                Kind::Poll { reply, .. } => {
                    self.deliver(Action::Poll(reply, Err(Refused::Stopped)));
                }
                Kind::Stream { sink, .. } => sink.end(),
            }
        }
        let stopped = || Refused::Stopped;
        let awaited = self.awaited.drain().map(|it| Action::Run(it.reply, Err(stopped())));
        let changing = self.changing.drain().map(|it| Action::Change(it.reply, Err(stopped())));
        for action in awaited.chain(changing).collect::<Vec<_>>() {
            self.deliver(action);
        }
        std::mem::take(&mut self.deliveries)
    }

    // ── commands ────────────────────────────────────────────────────────────────────────────

    fn commands(&mut self, commands: Commands) {
        let results = commands.items.iter().map(|command| self.command(command)).collect();
        self.deliver(Action::Commands(commands.reply, results));
    }

    pub(crate) fn command(&mut self, command: &Command) -> Result<Answer, Refused> {
        self.fits(command)?;
        if let (Some(rejection), true) = (&self.refusing, adds_work(command)) {
            return Err(rejection.clone().into());
        }
        Ok(match self.decide(command)? {
            Decided::Done | Decided::Queue(_) | Decided::Activated(_) => Answer::Done,
            Decided::Created { key, existing } => Answer::Created { key, existing },
            Decided::Held { deadline_ms, cancel_asked } => {
                Answer::Held { deadline_ms, cancel_asked }
            }
            Decided::CancelPending => Answer::CancelPending,
            Decided::Versions(versions) => Answer::Versions(versions),
            Decided::Flow(answer) => Answer::Flow(answer),
            Decided::Schedule(answer) => Answer::Schedule(answer),
        })
    }

    /// Refuses what no batch of the log can hold, and what the open one cannot hold besides what it
    /// has.
    fn fits(&self, command: &Command) -> Result<(), Rejection> {
        let (room, bytes) = (self.batch_room_bytes, command.record_bytes_max());
        let wide = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes > room {
            let (max, given) = (wide(room), wide(bytes));
            return Err(Rejection::TooLarge { bound: Bound::RecordBytes, max, given });
        }
        // What these bring along is in the state, not in them.
        let grows = matches!(
            command,
            Command::Flow(FlowCommand::Workflow(
                WorkflowCommand::Start { .. } | WorkflowCommand::Control { .. }
            ))
        );
        if self.batch_bytes() + bytes > room || (grows && !self.has_room_for_steps()) {
            return Err(Rejection::Exhausted { bound: Bound::BatchBytes, max: wide(room) });
        }
        Ok(())
    }

    fn decide(&mut self, command: &Command) -> Result<Decided, Rejection> {
        let mut decided = Ok(Decided::Done);
        self.record(|engine, context, sink| decided = engine.decide(command, context, sink));
        decided
    }

    /// Runs something that may emit; what it emits becomes one frame.
    fn record(&mut self, emit: impl FnOnce(&mut Engine, Context, &mut Recorder<'_>)) {
        let context = self.context();
        if self.batch_ms.is_none() {
            self.builder.start(&self.tail, self.now_ms);
        }
        let since_ms = self.now_ms - self.batch_ms.unwrap_or(self.now_ms);
        let (engine, payloads) = (&mut self.engine, &mut self.payloads);
        let jobs_alone = &mut self.jobs_alone;
        let recorded = self.builder.try_frame(|buffer| {
            buffer.push(codec::VERSION);
            Encoder::new(buffer).u64(since_ms);
            let mut recorder = Recorder { payloads, buffer, events: 0, jobs_alone };
            emit(engine, context, &mut recorder);
            if recorder.events == 0 { Err(()) } else { Ok(()) }
        });
        if recorded.is_ok() {
            self.batch_ms = self.batch_ms.or(Some(self.now_ms));
            self.absorb();
        }
    }

    fn context(&self) -> Context {
        // The seed only spreads retries; engine time and epoch make it differ from batch to batch.
        let seed = self.now_ms.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(self.tail.epoch);
        Context { now_ms: self.now_ms, seed }
    }

    /// Carries out what the applied events ask of the shell.
    fn absorb(&mut self) {
        if let Some(images) = &mut self.images {
            self.engine.write_early_images(&mut images.sink(&mut self.payloads, &mut self.parts));
        }
        self.engine.take_served(&mut self.served);
        let effects = self.engine.effects();
        for payload in effects.freed.drain(..) {
            self.payloads.free(payload);
        }
        let alerts = std::mem::take(&mut effects.alerts);
        let cancels = std::mem::take(&mut effects.cancels);
        let lost = std::mem::take(&mut effects.lost);
        let mut ended = std::mem::take(&mut effects.ended);
        for ended in ended.drain(..) {
            let room = self.options.finished_room();
            self.finished.push(self.engine.state(), ended, room, &mut self.freed);
        }
        self.engine.effects().ended = ended;
        for payload in self.freed.drain(..) {
            self.payloads.free(payload);
        }
        for ended in self.engine.take_ended_instances() {
            if let Some((reply, run)) = self.awaited.end(ended) {
                self.deliver(Action::Run(reply, Ok(run)));
            }
        }
        for ended in self.engine.take_ended_transitions() {
            if let Some((reply, changed)) = self.changing.end(ended) {
                self.deliver(Action::Change(reply, changed));
            }
        }
        for (key, deadline) in alerts {
            self.alerts += 1;
            tracing::warn!(job = key.raw(), ?deadline, "a deadline passed");
        }
        for (token, worker) in lost {
            let sinks = self.waiters.streams_of(&worker);
            self.deliver(Action::Stop(sinks, token));
        }
        for key in cancels {
            let state = self.engine.state();
            let Some(slot) = state.find(key) else { continue };
            let token = Token { key, activation: state.job(slot).activation };
            let sinks = state.worker_name(slot).map(|worker| self.waiters.streams_of(worker));
            self.deliver(Action::Stop(sinks.unwrap_or_default(), token));
        }
    }

    // ── flows ───────────────────────────────────────────────────────────────────────────────

    /// Whether the batch holds another frame of timers, schedules, hand-outs or steps of flows. Nothing refuses
    /// those: the other half of the batch is for what one brings along.
    pub(crate) fn has_room_for_steps(&self) -> bool {
        self.batch_bytes() <= self.batch_room_bytes / 2
    }

    /// Works on what flows have left to do; some steps to a frame, so that no frame is long. True
    /// if there is more.
    fn go_on_with_flows(&mut self) -> bool {
        let mut steps = 0;
        while steps < STEPS_PER_ROUND_MAX && self.has_room_for_steps() {
            let mut did = 0;
            self.record(|engine, context, sink| {
                did = engine.go_on(context, STEPS_PER_FRAME_MAX, sink);
            });
            if did == 0 {
                return false;
            }
            steps += did;
        }
        true
    }

    pub(crate) fn deliver(&mut self, action: Action) {
        self.deliveries.push(Delivery { action, missing: Vec::new() });
    }
}

/// Whether a command is refused while the partition lets work drain.
fn adds_work(command: &Command) -> bool {
    match command {
        Command::CreateJob(_) | Command::PutDocuments(_) => true,
        Command::Schedule(ScheduleCommand::Put(_) | ScheduleCommand::RunNow(_)) => true,
        Command::Flow(command) => adds_flow_work(command),
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
        | Command::Schedule(_) => false,
    }
}

/// The same for commands on flows: what ends or mends goes on.
fn adds_flow_work(command: &FlowCommand) -> bool {
    match command {
        FlowCommand::DeployResources(_)
        | FlowCommand::CreateInstance(_)
        | FlowCommand::PublishMessage(_)
        | FlowCommand::BroadcastSignal(_)
        | FlowCommand::Workflow(
            WorkflowCommand::DefineTasks { .. }
            | WorkflowCommand::DefineWorkflow { .. }
            | WorkflowCommand::DefineHandler { .. }
            | WorkflowCommand::Start { .. },
        ) => true,
        FlowCommand::DeleteResource(_)
        | FlowCommand::CancelInstance(_)
        | FlowCommand::ModifyInstance(_)
        | FlowCommand::MigrateInstance(_)
        | FlowCommand::SetVariables(_)
        | FlowCommand::EvaluateDecision(_)
        | FlowCommand::UpdateUserTask(_)
        | FlowCommand::Workflow(_) => false,
    }
}

/// The engine's way into the open frame.
pub(crate) struct Recorder<'a> {
    payloads: &'a mut PayloadStore,
    buffer: &'a mut Vec<u8>,
    events: u32,
    jobs_alone: &'a mut bool,
}

impl Sink for Recorder<'_> {
    fn keep(&mut self, bytes: &command::Bytes) -> Payload {
        self.payloads.keep_shared(bytes)
    }

    fn record(&mut self, event: &Event<'_>) {
        self.events += 1;
        *self.jobs_alone &= event.is_of_job();
        encode_event(event, self.payloads, self.buffer);
    }
}
