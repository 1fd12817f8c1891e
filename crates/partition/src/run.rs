//! The loop of a partition and the threads beside it.
//!
//! ```text
//! requests ─> loop ── batch, deliveries ──> commit ── fsync ──> deliveries leave
//!               └──── images ─────────────────┘ └─ those that lack payloads ─> loader
//!                                               └─ images ─> loader ─> checkpoint writer
//! ```
//!
//! The loop decides batch k+1 while batch k is synced. It never blocks on a disk, and hands over
//! once per batch.
//!
//! Images take the way of the deliveries, so that a checkpoint is written only when every payload
//! that was handed out before it has been read: it may delete or replace what they are read from.

mod stage;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, never, select, unbounded};
use windlass_checkpoint::{Checkpoint, View};
use windlass_log::{Batch, Log, LogError, Position};
use windlass_record::bound::Bound;
use windlass_record::rejection::Rejection;

use self::stage::{CheckpointState, Stage};
use crate::checkpoint::{Written, write_checkpoints};
use crate::clock::{ClockSource, EngineClock, SystemClock};
use crate::commit::{
    Commit, Deliverer, Done, Errand, Loader, Work, refuse_request, spawn, spawn_behind,
};
use crate::core::{Core, Delivery, Round};
use crate::follow::{self, Follow, FollowLag, Follower};
use crate::handle::{Handle, Load, weight};
use crate::options::{Durability, Options};
use crate::recover::{OpenError, Recovered, recover};
use crate::request::{Query, QueryAnswer, Request};
use crate::tally::Tally;

/// Requests of the usual lane taken in one round.
const USUAL_PER_ROUND_MAX: usize = 256;
/// Requests of the first lane taken in one round.
const FIRST_PER_ROUND_MAX: usize = 1_024;

/// A running partition.
pub struct Partition {
    handle: Handle,
    control: Sender<Control>,
    checkpoint: Arc<dyn Checkpoint>,
    stopped: Receiver<StopReason>,
    threads: Vec<JoinHandle<()>>,
    stop_wait_max: Duration,
    /// What the opening found.
    recovery: Recovery,
    follow_lag: FollowLag,
}

/// What the opening of a partition found.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// Live jobs.
    pub live_jobs: u32,
    /// The last record of the checkpoint.
    pub checkpoint_lsn: u64,
    /// Records replayed from the log behind it.
    pub replayed: u64,
    /// Who appends now.
    pub epoch: u32,
}

/// Why a partition stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopReason {
    /// It was asked to.
    #[error("the partition was asked to stop")]
    Asked,
    /// A write or a sync of the log failed. What was not acknowledged may or may not be there
    /// after the next start; what was, is.
    #[error("failed to write the log")]
    Log(#[source] LogError),
    /// The checkpoint store takes no more writes until it is opened again.
    #[error("failed to write a checkpoint")]
    Checkpoint(#[source] windlass_checkpoint::Error),
    /// A payload could not be read back from the checkpoint.
    #[error("failed to read a payload from the checkpoint")]
    Payload(#[source] PayloadLost),
    /// A thread beside its loop panicked, which is a fault of the program.
    #[error("a thread of the partition panicked")]
    Panicked,
}

/// A payload that the checkpoint should hold.
#[derive(Debug, thiserror::Error)]
pub enum PayloadLost {
    /// The store failed.
    #[error("failed to read the checkpoint")]
    Store(#[source] windlass_checkpoint::Error),
    /// The store has no such key.
    #[error("the checkpoint has no payload under {key:02x?}")]
    Missing {
        /// Its key.
        key: Vec<u8>,
    },
}

/// The way to a partition's checkpoints; cheap to clone, and outlives it.
#[derive(Clone)]
pub struct Checkpoints {
    control: Sender<Control>,
    store: Arc<dyn Checkpoint>,
}

impl Checkpoints {
    /// Writes a checkpoint of the state as it is now or a little later. Returns its lsn, or nothing
    /// when the partition has stopped. Blocks until it is durable.
    pub fn write_now(&self) -> Option<u64> {
        let (done, wait) = bounded(1);
        self.control.send(Control::Checkpoint(done)).ok()?;
        wait.recv().ok()
    }

    /// The state of now as an unmoving view, for a backup while work goes on.
    pub fn snapshot(&self) -> windlass_checkpoint::Result<Box<dyn View>> {
        self.write_now();
        self.store.snapshot()
    }
}

pub(crate) enum Control {
    /// Write a checkpoint now and say which lsn it holds.
    Checkpoint(Sender<u64>),
    Stop,
    Fail(StopReason),
}

impl Partition {
    /// Opens a partition on the machine's clocks.
    pub fn open(
        options: Options,
        log: Arc<dyn Log>,
        checkpoint: Arc<dyn Checkpoint>,
    ) -> Result<Partition, OpenError> {
        Partition::open_with(options, log, checkpoint, Arc::new(SystemClock::default()))
    }

    /// Opens a partition on these clocks.
    pub fn open_with(
        options: Options,
        log: Arc<dyn Log>,
        checkpoint: Arc<dyn Checkpoint>,
        clock: Arc<dyn ClockSource>,
    ) -> Result<Partition, OpenError> {
        Partition::open_followed(options, log, checkpoint, clock, None)
    }

    /// The same, with one who wants what is durable.
    pub fn open_followed(
        options: Options,
        log: Arc<dyn Log>,
        checkpoint: Arc<dyn Checkpoint>,
        clock: Arc<dyn ClockSource>,
        follower: Option<Arc<dyn Follower>>,
    ) -> Result<Partition, OpenError> {
        let recovered = recover(&*log, &*checkpoint, &options, clock.read())?;
        let recovery = Recovery {
            live_jobs: recovered.core.engine().state().jobs().live(),
            checkpoint_lsn: recovered.checkpoint_lsn,
            replayed: recovered.replayed,
            epoch: recovered.core.epoch(),
        };
        let (first, first_in) = unbounded();
        let (usual, usual_in) = unbounded();
        let (control, control_in) = unbounded();
        let (stopped_out, stopped) = bounded(1);
        let load = Arc::new(Load {
            commands_max: options.loop_commands_max,
            bytes_max: options.loop_bytes_max,
            ..Load::default()
        });
        let (durability, stop_wait_max) = (options.durability, options.stop_wait_max);
        let handle = Handle { first: first.clone(), usual, load: load.clone(), durability };

        let world =
            World { log: log.clone(), checkpoint: checkpoint.clone(), clock: clock.clone() };
        let stores = Stores { world: &world, follower };
        let beside = start_beside(&stores, &recovered, &options, (first, control.clone()))?;
        let mut threads = beside.threads;
        let now_ms = recovered.last_ms;
        let mut run = Run {
            core: recovered.core,
            clock: EngineClock::start(now_ms, clock.read()),
            source: clock,
            log: log.clone(),
            first: first_in,
            usual: usual_in,
            control: control_in,
            load,
            work: beside.work,
            at_once: match durability {
                Durability::Fsync => None,
                Durability::Interval(_) => Some(beside.to_load),
            },
            handed_over_us: 0,
            ended: beside.ended,
            done: beside.done,
            written: beside.written,
            in_flight: false,
            recycled: None,
            position: recovered.position,
            durable_lsn: recovered.durable_lsn,
            checkpoint: CheckpointState::new(recovered.checkpoint_lsn, recovered.checkpoint_ms),
            last_sync_ms: 0,
            commands: 0,
            batch_commands: Tally::default(),
            appends_us: Tally::default(),
            callers: Vec::new(),
            callers_frozen: Vec::new(),
            options,
        };
        threads.push(spawn("windlass-loop", move || {
            let reason = run.run();
            run.end();
            drop(run);
            // Nobody may be left to hear it.
            let _ = stopped_out.send(reason);
        })?);
        let follow_lag = beside.follow_lag;
        Ok(Partition {
            handle,
            control,
            checkpoint,
            stopped,
            threads,
            stop_wait_max,
            recovery,
            follow_lag,
        })
    }

    /// The way in.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// What the opening found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// How far its follower is behind; nothing when it has none.
    pub fn follow_lag(&self) -> FollowLag {
        self.follow_lag.clone()
    }

    /// The way to checkpoints and snapshots.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints { control: self.control.clone(), store: self.checkpoint.clone() }
    }

    /// See [`Checkpoints::write_now`].
    pub fn checkpoint_now(&self) -> Option<u64> {
        self.checkpoints().write_now()
    }

    /// Waits for the partition to stop, at most this long.
    pub fn wait_stopped(&self, at_most: Duration) -> Option<StopReason> {
        self.stopped.recv_timeout(at_most).ok()
    }

    /// Fires when the partition stops by itself; for a watching thread.
    pub fn stopped(&self) -> Receiver<StopReason> {
        self.stopped.clone()
    }

    /// Stops it: what was accepted is made durable and answered first, then a checkpoint is
    /// written, unless that takes longer than [`Options::stop_wait_max`].
    pub fn stop(self) {
        let (done, wait) = bounded(1);
        let asked = self.control.send(Control::Checkpoint(done));
        if asked.is_ok() && wait.recv_timeout(self.stop_wait_max) == Err(RecvTimeoutError::Timeout)
        {
            tracing::error!(
                waited_ms = self.stop_wait_max.as_millis(),
                "failed to write the last checkpoint in time, stopping without it: the log has \
                 everything, and the next start reads more of it"
            );
        }
    }

    /// Stops it without a checkpoint and without answering: as a crash would, for tests. So does
    /// dropping it.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        // The loop may have stopped by itself.
        let _ = self.control.send(Control::Stop);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the partition panicked");
            }
        }
    }
}

/// What the threads work with.
struct World {
    log: Arc<dyn Log>,
    checkpoint: Arc<dyn Checkpoint>,
    clock: Arc<dyn ClockSource>,
}

/// How the loop talks to the threads beside it.
struct Beside {
    work: mpsc::Sender<Work>,
    to_load: mpsc::Sender<Errand>,
    ended: Arc<AtomicBool>,
    done: Receiver<Done>,
    written: Receiver<windlass_checkpoint::Result<Written>>,
    threads: Vec<JoinHandle<()>>,
    follow_lag: FollowLag,
}

/// What the partition stands on.
struct Stores<'a> {
    world: &'a World,
    follower: Option<Arc<dyn Follower>>,
}

/// Starts the threads beside the loop.
fn start_beside(
    stores: &Stores<'_>,
    recovered: &Recovered,
    options: &Options,
    (returns, control): (Sender<Request>, Sender<Control>),
) -> Result<Beside, OpenError> {
    let ended = Arc::new(AtomicBool::new(false));
    let Stores { world: World { log, checkpoint, clock }, follower } = stores;
    let mut threads = Vec::new();
    let mut follow_lag = FollowLag::default();
    let mut nudge = None;
    if let Some(follower) = follower.clone() {
        let (life, durable_lsn) = (recovered.core.life(), recovered.durable_lsn);
        let (follow, wake) = Follow::begin(log.clone(), follower, life, durable_lsn);
        follow_lag = follow.lag();
        nudge = Some(wake);
        threads.push(spawn_behind("windlass-follow", move || follow.run())?);
    }
    let (work, work_in) = mpsc::channel();
    let (done_out, done) = unbounded();
    let (to_load, to_load_in) = mpsc::channel();
    let (orders, orders_in) = unbounded();
    let (written_out, written) = unbounded();
    let commit = Commit {
        log: log.clone(),
        clock: clock.clone(),
        ended: ended.clone(),
        work: work_in,
        done: done_out,
        deliverer: Deliverer { to_load: Some(to_load.clone()), returns: returns.clone() },
        nudge,
    };
    let loader = Loader {
        store: checkpoint.clone(),
        input: to_load_in,
        orders,
        deliverer: Deliverer { to_load: None, returns },
        control,
    };
    let (log, store, follower) = (log.clone(), checkpoint.clone(), follower.clone());
    let bytes_max = options.follow_log_bytes_max;
    threads.push(spawn("windlass-commit", move || commit.run())?);
    threads.push(spawn("windlass-loader", move || loader.run())?);
    threads.push(spawn_behind("windlass-checkpoint", move || {
        write_checkpoints(&orders_in, &written_out, &*store, |lsn| {
            follow::trim(&*log, lsn, follower.as_deref(), bytes_max)
        });
    })?);
    Ok(Beside { work, to_load, ended, done, written, threads, follow_lag })
}

/// The loop.
struct Run {
    core: Core,
    clock: EngineClock,
    source: Arc<dyn ClockSource>,
    log: Arc<dyn Log>,
    first: Receiver<Request>,
    usual: Receiver<Request>,
    control: Receiver<Control>,
    load: Arc<Load>,
    work: mpsc::Sender<Work>,
    /// Where deliveries go that do not wait for the log; `None` when all do.
    at_once: Option<mpsc::Sender<Errand>>,
    /// When the commit thread got its newest batch.
    handed_over_us: u64,
    /// Tells the commit thread that the loop has ended.
    ended: Arc<AtomicBool>,
    done: Receiver<Done>,
    written: Receiver<windlass_checkpoint::Result<Written>>,
    /// The commit thread has a batch.
    in_flight: bool,
    recycled: Option<Batch>,
    /// Of the newest durable batch.
    position: Position,
    durable_lsn: u64,
    checkpoint: CheckpointState,
    last_sync_ms: u64,
    /// Commands since the last hand-over.
    commands: u64,
    batch_commands: Tally,
    appends_us: Tally,
    /// Who asked since the newest freeze: what they saw may only be in the next checkpoint.
    callers: Vec<Sender<u64>>,
    /// Who asked before it, and waits for the checkpoint under way.
    callers_frozen: Vec<Sender<u64>>,
    options: Options,
}

/// What happened.
enum Happened {
    First(Request),
    Usual(Request),
    Done(Done),
    Written(windlass_checkpoint::Result<Written>),
    Control(Control),
    Time,
}

impl Run {
    fn run(&mut self) -> StopReason {
        let tick = self.clock.tick(self.source.read());
        self.core.open(tick.now_ms);
        self.checkpoint.last_us = self.source.read().monotonic_us;
        let mut more = true;
        loop {
            let happened = self.wait(more);
            let tick = self.clock.tick(self.source.read());
            self.core.begin(tick.now_ms, tick.jumped_ms);
            if let Some(by_ms) = tick.jumped_ms {
                tracing::warn!(by_ms, "the wall clock jumped ahead; leases move with it");
            }
            if self.core.refusing.is_some() {
                // Where only creates come in, no batch would say that there is room again.
                self.refuse_or_not();
            }
            if let Some(reason) = self.happen(happened) {
                return reason;
            }
            if let Some(reason) = self.drain() {
                return reason;
            }
            more = self.core.settle();
            more |= self.step_checkpoint();
            self.hand_over();
        }
    }

    /// Waits for the next thing to do. While a batch is full, only for the log.
    fn wait(&self, more: bool) -> Happened {
        /// Who gives up waiting meanwhile hears it this much later.
        const STUCK_NAP: Duration = Duration::from_millis(10);
        let full = self.is_full();
        // The threads beside the loop end after it.
        let panicked = || Happened::Control(Control::Fail(StopReason::Panicked));
        let closed = never();
        let (first, usual) = if full { (&closed, &closed) } else { (&self.first, &self.usual) };
        // What is due now may be so for long: a log without room takes no batch.
        let stuck = self.in_flight && !self.core.has_room_for_steps();
        // Images are collected while nothing else can go on: there may be room behind them.
        let collecting = matches!(self.checkpoint.stage, Stage::Collecting(_));
        let timeout = if collecting || more && !full && !stuck {
            Duration::ZERO
        } else if stuck {
            self.until_due().max(STUCK_NAP)
        } else {
            self.until_due()
        };
        select! {
            recv(self.done) -> done => done.map_or_else(|_| panicked(), Happened::Done),
            recv(first) -> request => request.map_or(Happened::Time, Happened::First),
            recv(usual) -> request => request.map_or(Happened::Time, Happened::Usual),
            recv(self.written) -> written => {
                written.map_or_else(|_| panicked(), Happened::Written)
            }
            recv(self.control) -> control => {
                // Whoever could stop it is gone.
                Happened::Control(control.unwrap_or(Control::Stop))
            }
            default(timeout) => Happened::Time,
        }
    }

    fn until_due(&self) -> Duration {
        /// Longest sleep: clocks may jump, and a checkpoint may be due.
        const NAP_MAX: Duration = Duration::from_millis(500);
        let due = match self.core.next_due_ms() {
            None => NAP_MAX,
            Some(due_ms) => {
                // The round that has just ended may have been a long one.
                let now_ms = self.clock.at(self.source.read().monotonic_us);
                Duration::from_millis(due_ms.saturating_sub(now_ms)).min(NAP_MAX)
            }
        };
        match self.until_hand_over() {
            Some(sync) if !self.in_flight && self.core.has_round() => due.min(sync),
            Some(_) | None => due,
        }
    }

    /// How long batches are still collected; `None` when they are not.
    fn until_hand_over(&self) -> Option<Duration> {
        match self.options.durability {
            Durability::Fsync => None,
            Durability::Interval(every) => {
                let now_us = self.source.read().monotonic_us;
                let elapsed = Duration::from_micros(now_us.saturating_sub(self.handed_over_us));
                Some(every.saturating_sub(elapsed))
            }
        }
    }

    /// Whether the open batch must wait for more.
    fn collects(&self) -> bool {
        let wanted = matches!(self.checkpoint.stage, Stage::Waiting(_));
        !self.is_full() && !wanted && self.until_hand_over().is_some_and(|left| !left.is_zero())
    }

    fn is_full(&self) -> bool {
        self.core.batch_bytes() >= self.options.batch_bytes_max
    }

    fn happen(&mut self, happened: Happened) -> Option<StopReason> {
        match happened {
            Happened::Time => self.give_back_memory(),
            Happened::First(request) => self.request(request),
            Happened::Usual(request) => self.usual_request(request),
            Happened::Done(done) => return self.batch_done(done),
            Happened::Written(Ok(written)) => self.checkpoint_written(written),
            Happened::Written(Err(error)) => return Some(StopReason::Checkpoint(error)),
            Happened::Control(Control::Checkpoint(caller)) => self.callers.push(caller),
            Happened::Control(Control::Stop) => return Some(StopReason::Asked),
            Happened::Control(Control::Fail(reason)) => return Some(reason),
        }
        None
    }

    /// Takes what has come in: results first, then the rest, each within its share.
    fn drain(&mut self) -> Option<StopReason> {
        while let Ok(done) = self.done.try_recv() {
            if let Some(reason) = self.batch_done(done) {
                return Some(reason);
            }
        }
        for _ in 0..FIRST_PER_ROUND_MAX {
            if self.is_full() {
                return None;
            }
            let Ok(request) = self.first.try_recv() else { break };
            self.request(request);
        }
        for _ in 0..USUAL_PER_ROUND_MAX {
            if self.is_full() {
                return None;
            }
            let Ok(request) = self.usual.try_recv() else { break };
            self.usual_request(request);
        }
        None
    }

    fn usual_request(&mut self, request: Request) {
        let (commands, bytes) = weight(&request);
        self.load.commands.fetch_sub(commands, Ordering::Relaxed);
        self.load.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.request(request);
    }

    fn request(&mut self, request: Request) {
        if let Request::Commands(commands) = &request {
            self.commands += u64::try_from(commands.items.len()).unwrap_or(u64::MAX);
        }
        let asks_status = matches!(request, Request::Query(Query::Status, _));
        let reply = match request {
            Request::Query(_, reply) if asks_status => reply,
            Request::Query(..)
            | Request::Commands(_)
            | Request::Poll(_)
            | Request::EndPoll(_)
            | Request::OpenStream(_)
            | Request::AddCredits(..)
            | Request::CloseStream(_)
            | Request::Return(_)
            | Request::RunInstance(_)
            | Request::Change(_) => return self.core.handle(request),
        };
        let status = self.core.status(crate::query::LogView {
            durable_lsn: self.durable_lsn,
            checkpoint_lsn: self.checkpoint.lsn,
            last_sync_ms: self.last_sync_ms,
            checkpoint_ms: self.checkpoint.time_ms,
            checkpoint_took_ms: self.checkpoint.took_ms,
            appends_us: self.appends_us,
            batch_commands: self.batch_commands,
        });
        // Says what is durable, so it need not wait for more to be.
        reply(Ok(QueryAnswer::Status(Box::new(status))));
    }

    /// Gives the commit thread what there is, if it has nothing to do.
    fn hand_over(&mut self) {
        if let Some(at_once) = &self.at_once {
            let deliveries = self.core.take_deliveries();
            if !deliveries.is_empty() {
                // The loader ends after the loop.
                let _ = at_once.send(Errand::Round(deliveries));
            }
        }
        if !self.core.has_round() || self.in_flight || self.collects() {
            return;
        }
        self.handed_over_us = self.source.read().monotonic_us;
        let round = self.core.take(self.recycled.take());
        self.in_flight = round.batch.is_some();
        let commands = std::mem::take(&mut self.commands);
        if let Some(batch) = &round.batch {
            let bytes = u64::try_from(batch.len_bytes()).unwrap_or(u64::MAX);
            self.batch_commands.add(commands);
            self.checkpoint.bytes_since += bytes;
            self.checkpoint.lag_bytes += bytes;
        }
        // The commit thread ends after the loop.
        let _ = self.work.send(Work::Round(round));
    }

    fn batch_done(&mut self, done: Done) -> Option<StopReason> {
        self.in_flight = false;
        self.recycled = Some(done.batch);
        self.appends_us.add(done.took_us);
        match done.result {
            Ok(position) => {
                self.position = position;
                self.durable_lsn = done.last_lsn;
                self.last_sync_ms = self.core.now_ms();
                self.refuse_or_not();
                None
            }
            Err(error) => Some(StopReason::Log(error)),
        }
    }

    /// Creates are refused while the log has no room or checkpoints lag, so that work can drain.
    fn refuse_or_not(&mut self) {
        let status = self.log.status();
        let lag_max = self.options.checkpoint_lag_bytes_max;
        let refusing = if status.reserve_low {
            Some(Rejection::Exhausted { bound: Bound::LogSpace, max: status.reserve_bytes })
        } else if self.checkpoint.lag_bytes > lag_max {
            Some(Rejection::Exhausted { bound: Bound::CheckpointLag, max: lag_max })
        } else {
            None
        };
        if refusing.is_some() != self.core.refusing.is_some() {
            match &refusing {
                Some(rejection) => tracing::warn!(%rejection, "refusing creates"),
                None => tracing::info!("taking creates again"),
            }
        }
        self.core.refusing = refusing;
    }

    /// Tells everybody who waits that there is nothing more to come.
    fn end(&mut self) {
        self.ended.store(true, Ordering::Release);
        let deliveries = self.core.abandon();
        let Round { batch, jobs_alone, deliveries: left } = self.core.take(None);
        deliveries.into_iter().chain(left).for_each(Delivery::refuse);
        if self.at_once.is_some() && batch.is_some() {
            // It was acknowledged, so it should reach the disk if it still can.
            let _ =
                self.work.send(Work::Round(Round { batch, jobs_alone, deliveries: Vec::new() }));
        }
        for request in self.first.try_iter().chain(self.usual.try_iter()) {
            refuse_request(request);
        }
    }
}
