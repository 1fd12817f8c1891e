//! One partition on one simulated machine: its core, its log on a simulated disk, its checkpoint
//! store, and in place of its threads four things that are moved on when the simulation likes: the
//! loop, the commit, the loader and the checkpoint writer. What each does is what the threads of
//! `windlass_partition` do, in the same order between them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use windlass_checkpoint::{MemoryCheckpoint, MemoryDisk};
use windlass_engine::invariant;
use windlass_engine::lifecycle::JobState;
use windlass_log::{
    Batch, FileLog, FileLogOptions, Housekeeping, LifeId, Log, LogError, LogReader, NewLog,
    Position, ReadFrom,
};
use windlass_partition::Options;
use windlass_partition::checkpoint::{Order, Written};
use windlass_partition::clock::{ClockSource, EngineClock};
use windlass_partition::core::{Core, Delivery, Round};
use windlass_partition::recover::{OpenError, Recovered, recover};
use windlass_partition::request::Request;
use windlass_record::bound::{Bound, Bounds};
use windlass_record::rejection::Rejection;

use super::clock::SimClock;
use super::coverage::Coverage;
use super::ledger::Ledger;
use super::plan::Plan;
use super::shadow::Shadow;
use crate::disk::SimDisk;
use crate::random::Random;

/// Small, so that histories have several.
const SEGMENT_BYTES: u64 = 96 * 1024;
/// Requests of a lane taken in one round.
const REQUESTS_PER_ROUND_MAX: usize = 6;
/// The log may fall behind the checkpoint by this before creates are refused.
const CHECKPOINT_LAG_BYTES_MAX: u64 = 200 * 1024;
/// With so many jobs the invariants are checked after some rounds only.
const MANY_JOBS: u32 = 450;
/// A sleeping loop looks at its clocks again after this.
const NAP_MS_MAX: u64 = 500;

/// Why the machine does not go on.
#[derive(Debug)]
pub enum Stop {
    /// The simulated machine has stopped.
    Crashed,
    /// The partition stopped, as it must when a part of it fails.
    Stopped(String),
    /// Something happened that must not.
    Violation(String),
}

impl Stop {
    fn violation(what: impl std::fmt::Display) -> Stop {
        Stop::Violation(what.to_string())
    }
}

/// What outlives a process.
#[derive(Debug)]
pub struct Machine {
    /// Below the log.
    pub disk: SimDisk,
    /// Below the checkpoints.
    pub store_disk: MemoryDisk,
    /// What it believes the time to be.
    pub clock: SimClock,
    /// What must be true.
    pub shadow: Shadow,
    /// What the log says.
    pub ledger: Ledger,
    /// What was exercised.
    pub coverage: Coverage,
    /// Processes so far.
    pub lives: u64,
    options: Options,
    random: Random,
    created: bool,
}

/// A process with the partition open.
pub struct Life {
    pub(super) core: Core,
    pub(super) clock: EngineClock,
    pub(super) log: Arc<FileLog>,
    pub(super) store: MemoryCheckpoint,
    pub(super) reader: Box<dyn LogReader>,
    pub(super) first: VecDeque<Request>,
    pub(super) usual: VecDeque<Request>,
    pub(super) work: VecDeque<Round>,
    pub(super) loads: VecDeque<Load>,
    pub(super) in_flight: bool,
    pub(super) done: Option<Done>,
    pub(super) position: Position,
    pub(super) durable_lsn: u64,
    pub(super) number: u32,
    pub(super) bytes_since: u64,
    pub(super) lag_bytes: u64,
    pub(super) checkpoint_asked: bool,
    pub(super) stage: Stage,
    pub(super) writing: Option<Order>,
    pub(super) written: Option<Written>,
}

/// What the loader has to do, in order.
pub(super) enum Load {
    Delivery(Delivery),
    /// A checkpoint may be written when what was handed out before it has been read.
    Checkpoint(Box<Order>),
}

pub(super) struct Done {
    pub(super) last_lsn: u64,
    pub(super) position: Position,
    pub(super) batch: Batch,
}

pub(super) enum Stage {
    Idle,
    Collecting(Position),
    Waiting(Box<Order>),
    Writing,
}

fn log_dir() -> &'static Path {
    Path::new("/data/log")
}

fn log_options() -> FileLogOptions {
    FileLogOptions {
        segment_bytes: SEGMENT_BYTES,
        reserve_segments: 1,
        recycled_segments_max: 2,
        mark_batches: 7,
        housekeeping: Housekeeping::InLine,
    }
}

impl Machine {
    /// A machine that was never started.
    #[must_use]
    pub fn new(plan: &Plan) -> Machine {
        let mut random = Random::new(plan.seed ^ 0x6d61_6368);
        let bounds = Bounds {
            live_jobs_max: if plan.features.storms { 4_000 } else { 400 },
            log_lines_per_attempt_max: 4,
            log_line_bytes_max: 40,
            limit_keys_max: 12,
            documents_max: 12,
            activation_jobs_max: 16,
            request_ids_max: 40,
            idle_groups_max: 3,
            ..Bounds::default()
        };
        let options = Options {
            bounds,
            batch_bytes_max: 16 * 1024,
            payload_bytes_max: if plan.features.eviction { 0 } else { 1 << 30 },
            finished_max: 100_000,
            ..Options::default()
        };
        Machine {
            disk: SimDisk::new(random.next_u64()),
            store_disk: MemoryDisk::new(),
            clock: SimClock::default(),
            shadow: Shadow::new(bounds),
            ledger: Ledger::default(),
            coverage: Coverage::default(),
            lives: 0,
            options,
            random,
            created: false,
        }
    }

    /// Starts a process: recovers twice, once to compare the state with what it must be, and once
    /// for good.
    pub fn start(&mut self) -> Result<Life, Stop> {
        self.lives += 1;
        let (log, store) = self.open_log()?;
        let mut recovered = self.recover(&log, &store)?;
        self.read_all(&log)?;
        let stored = self.store_disk.contents();
        let compared = self.shadow.compare(&mut recovered.core, stored);
        compared.map_err(|why| Stop::Violation(format!("after recovery: {why}")))?;
        drop(recovered);

        let recovered = self.recover(&log, &store)?;
        let reader = self.read_all(&log)?;
        let state = recovered.core.engine().state();
        let compared = self.ledger.compare(state);
        compared.map_err(|why| Stop::Violation(format!("after recovery: {why}")))?;
        invariant::check(state).map_err(Stop::violation)?;
        windlass_flow::invariant::check(state.flow()).map_err(Stop::Violation)?;
        self.coverage.add("recovery", "records replayed", recovered.replayed);
        self.coverage.count("recovery", "recoveries");
        let clock = EngineClock::start(recovered.last_ms, self.clock.read());
        let mut life = Life {
            core: recovered.core,
            clock,
            log,
            store,
            reader,
            first: VecDeque::new(),
            usual: VecDeque::new(),
            work: VecDeque::new(),
            loads: VecDeque::new(),
            in_flight: false,
            done: None,
            position: recovered.position,
            durable_lsn: recovered.durable_lsn,
            number: 0,
            bytes_since: 0,
            lag_bytes: 0,
            checkpoint_asked: false,
            stage: Stage::Idle,
            writing: None,
            written: None,
        };
        let tick = life.clock.tick(self.clock.read());
        life.core.open(tick.now_ms);
        self.note_moment(tick.now_ms);
        self.round(&mut life)?;
        Ok(life)
    }

    fn open_log(&mut self) -> Result<(Arc<FileLog>, MemoryCheckpoint), Stop> {
        let opened = FileLog::open(Arc::new(self.disk.clone()), log_dir(), 1, log_options());
        let log = match opened {
            Err(LogError::NotFound { .. }) if !self.created => {
                let new = NewLog { life: LifeId::from_raw(7), partition: 1, first_lsn: 1 };
                FileLog::create(Arc::new(self.disk.clone()), log_dir(), &new, log_options())
            }
            opened => opened,
        };
        let log = log.map_err(|error| self.log_failed(&error))?;
        self.created = true;
        let durable_lsn = log.status().durable_lsn;
        if durable_lsn < self.shadow.last_lsn() {
            let last = self.shadow.last_lsn();
            return Err(Stop::Violation(format!(
                "record {last} was durable, the log ends at {durable_lsn}"
            )));
        }
        Ok((Arc::new(log), MemoryCheckpoint::open(&self.store_disk)))
    }

    fn recover(&self, log: &FileLog, store: &MemoryCheckpoint) -> Result<Recovered, Stop> {
        let recovered = recover(log, store, &self.options, self.clock.read());
        recovered.map_err(|error| {
            if let OpenError::Log(error) = &error {
                return self.log_failed(error);
            }
            Stop::Violation(format!("the partition does not open: {}", chain(&error)))
        })
    }

    /// A crash explains every failure; a failed write or sync stops the partition; a full disk may
    /// keep it from starting; everything else is a bug.
    pub(super) fn log_failed(&self, error: &LogError) -> Stop {
        if self.disk.is_crashed() {
            return Stop::Crashed;
        }
        let explained = matches!(
            error,
            LogError::WriteFailed(_) | LogError::Poisoned | LogError::NoSpace | LogError::Io { .. }
        );
        if explained {
            return Stop::Stopped(chain(error));
        }
        Stop::Violation(format!("the log failed: {}", chain(error)))
    }

    /// Reads all that is durable and returns the reader, which stands at the end.
    fn read_all(&mut self, log: &FileLog) -> Result<Box<dyn LogReader>, Stop> {
        let from = ReadFrom::lsn(log.status().first_lsn);
        let mut reader = log.read(&from).map_err(|error| self.log_failed(&error))?;
        self.read_on(&mut *reader)?;
        Ok(reader)
    }

    pub(super) fn read_on(&mut self, reader: &mut dyn LogReader) -> Result<(), Stop> {
        loop {
            match reader.next_entry() {
                Ok(Some(entry)) => self
                    .shadow
                    .accept(&entry, &mut self.ledger, &mut self.coverage)
                    .map_err(Stop::Violation)?,
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.log_failed(&error)),
            }
        }
    }

    fn note_moment(&mut self, now_ms: u64) {
        self.ledger.moment(now_ms, self.clock.read().monotonic_us, self.lives);
    }

    // ── the loop ────────────────────────────────────────────────────────────────────────────

    /// One round of the loop.
    pub fn round(&mut self, life: &mut Life) -> Result<(), Stop> {
        let reading = self.clock.read();
        let tick = life.clock.tick(reading);
        if tick.now_ms < life.core.now_ms() {
            return Err(Stop::Violation("engine time goes back".to_owned()));
        }
        self.note_moment(tick.now_ms);
        life.core.begin(tick.now_ms, tick.jumped_ms);
        if tick.jumped_ms.is_some() {
            self.coverage.count("clock", "jumps that were followed");
        }
        self.batch_done(life);
        if let Some(written) = life.written.take() {
            life.stage = Stage::Idle;
            life.lag_bytes = life.bytes_since;
            life.core.written(written);
        }
        if life.refusing() {
            self.refuse_or_not(life);
        }
        for lane in [&mut life.first, &mut life.usual] {
            for _ in 0..REQUESTS_PER_ROUND_MAX {
                if life.core.batch_bytes() >= self.options.batch_bytes_max {
                    break;
                }
                let Some(request) = lane.pop_front() else { break };
                if let Request::Return(unsent) = &request {
                    let tokens = unsent.iter().map(|unsent| unsent.token);
                    let tokens = tokens.map(|token| (token.key, token.activation));
                    self.ledger.returning.extend(tokens);
                }
                life.core.handle(request);
            }
        }
        let more = life.core.settle();
        self.step_checkpoint(life);
        self.check_round(life, more)?;
        hand_over(life);
        Ok(())
    }

    fn batch_done(&self, life: &mut Life) {
        let Some(done) = life.done.take() else { return };
        life.in_flight = false;
        life.position = done.position;
        life.durable_lsn = done.last_lsn;
        drop(done.batch);
        self.refuse_or_not(life);
    }

    fn refuse_or_not(&self, life: &mut Life) {
        let status = life.log.status();
        life.core.refusing = if status.reserve_low {
            Some(Rejection::Exhausted { bound: Bound::LogSpace, max: status.reserve_bytes })
        } else if life.lag_bytes > CHECKPOINT_LAG_BYTES_MAX {
            let max = CHECKPOINT_LAG_BYTES_MAX;
            Some(Rejection::Exhausted { bound: Bound::CheckpointLag, max })
        } else {
            None
        };
    }

    fn step_checkpoint(&mut self, life: &mut Life) {
        match std::mem::replace(&mut life.stage, Stage::Idle) {
            Stage::Idle => {
                if life.checkpoint_asked || life.bytes_since > SEGMENT_BYTES {
                    life.checkpoint_asked = false;
                    life.number += 1;
                    life.bytes_since = 0;
                    life.core.freeze(life.number);
                    life.stage = Stage::Collecting(life.position);
                }
            }
            Stage::Collecting(position) => {
                let jobs_max = usize::try_from(self.random.in_range(1..12)).unwrap_or(1);
                life.stage = match life.core.collect(jobs_max) {
                    None => Stage::Collecting(position),
                    Some((images, checksum)) => {
                        Stage::Waiting(Box::new(Order { images, position, checksum }))
                    }
                };
            }
            Stage::Waiting(order) if life.durable_lsn >= order.images.lsn => {
                life.stage = Stage::Writing;
                life.loads.push_back(Load::Checkpoint(order));
            }
            stage @ (Stage::Waiting(_) | Stage::Writing) => life.stage = stage,
        }
    }

    /// What must hold when a round is over.
    fn check_round(&mut self, life: &Life, more: bool) -> Result<(), Stop> {
        let state = life.core.engine().state();
        // Looking at all of a large state takes long.
        if state.jobs().live() < MANY_JOBS || self.random.chance(5) {
            invariant::check(state).map_err(Stop::violation)?;
            windlass_flow::invariant::check(state.flow()).map_err(Stop::Violation)?;
        }
        if more {
            self.coverage.count("timers", "rounds that left some for the next");
            return Ok(());
        }
        let now_ms = life.core.now_ms();
        let next_ms = life.core.next_due_ms().unwrap_or(u64::MAX);
        if let Some(due_ms) = state.flow().next_due_ms()
            && (due_ms <= now_ms || due_ms < next_ms)
        {
            return Err(Stop::Violation(format!(
                "a process has something due at {due_ms}: it is {now_ms}, the loop would sleep until \
                 {next_ms}"
            )));
        }
        if state.flow().steps_waiting() > 0 {
            return Err(Stop::Violation("a process has steps to take and nobody does".to_owned()));
        }
        for (_, job) in state.jobs().iter() {
            let timed = match job.state {
                JobState::Scheduled | JobState::Backoff => true,
                // An alert is told once, and the lease goes on.
                JobState::Active => {
                    job.deadlines().lease != windlass_record::policy::DeadlineOutcome::Alert
                }
                JobState::Ready
                | JobState::Incident
                | JobState::Completed
                | JobState::Failed
                | JobState::Cancelled
                | JobState::Vacant => false,
            };
            if timed && job.due_ms <= now_ms {
                return Err(Stop::Violation(format!(
                    "job {} was due at {} and is {} at {now_ms}",
                    job.key,
                    job.due_ms,
                    job.state.name()
                )));
            }
            if timed && job.due_ms < next_ms {
                return Err(Stop::Violation(format!(
                    "job {} is due at {}, the loop would sleep until {next_ms}",
                    job.key, job.due_ms
                )));
            }
        }
        for (id, queue) in state.queues() {
            if life.core.waiters.lacks(state, id) {
                return Err(Stop::Violation(format!(
                    "queue {} has jobs that could be handed out, and waiting workers",
                    queue.name
                )));
            }
        }
        Ok(())
    }

    // ── time ────────────────────────────────────────────────────────────────────────────────

    /// Time passes, and the loop wakes whenever it must.
    pub fn pass(&mut self, life: &mut Life, ms: u64) -> Result<(), Stop> {
        let mut left_us = ms * 1000;
        while left_us > 0 {
            let until_due_ms = life
                .core
                .next_due_ms()
                .map_or(u64::MAX, |due_ms| due_ms.saturating_sub(life.core.now_ms()));
            let nap_ms = if ms > 20 * NAP_MS_MAX { u64::MAX } else { NAP_MS_MAX };
            let nap_us = until_due_ms.min(nap_ms).max(1).saturating_mul(1000).min(left_us);
            self.clock.advance(nap_us);
            left_us -= nap_us;
            self.round(life)?;
            if ms > NAP_MS_MAX {
                self.commit(life)?;
            }
        }
        Ok(())
    }

    /// Everything that is under way comes to its end, without any time passing.
    pub fn drain(&mut self, life: &mut Life) -> Result<(), Stop> {
        for _ in 0..10_000 {
            self.round(life)?;
            self.commit(life)?;
            self.load(life)?;
            self.write_checkpoint(life)?;
            if life.is_quiet() {
                return Ok(());
            }
        }
        Err(Stop::Violation("the partition does not come to rest".to_owned()))
    }

    /// Opens a copy of what the machine holds. The log must be closed.
    pub fn recover_copy(&self, disk: SimDisk, store: &MemoryDisk) -> Result<Recovered, OpenError> {
        let log = FileLog::open(Arc::new(disk), log_dir(), 1, log_options())?;
        recover(&log, &MemoryCheckpoint::open(store), &self.options, self.clock.read())
    }
}

impl Life {
    /// Into the lane of results, or into the usual one.
    pub fn submit(&mut self, request: Request, first: bool) {
        let lane = if first { &mut self.first } else { &mut self.usual };
        lane.push_back(request);
    }

    /// A checkpoint is wanted.
    pub fn ask_checkpoint(&mut self) {
        self.checkpoint_asked = true;
    }

    /// The partition.
    #[must_use]
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Whether creates are refused.
    #[must_use]
    pub fn refusing(&self) -> bool {
        self.core.refusing.is_some()
    }

    /// The records of the log.
    pub fn records(&self) -> Result<Vec<Vec<u8>>, LogError> {
        let mut reader = self.log.read(&ReadFrom::lsn(self.log.status().first_lsn))?;
        let mut records = Vec::new();
        while let Some(entry) = reader.next_entry()? {
            records.push(entry.payload.to_vec());
        }
        Ok(records)
    }

    /// Closes the log in good order.
    pub fn close(self) {
        // What it would have said is of no use any more.
        let _ = self.log.idle();
    }

    fn is_quiet(&self) -> bool {
        self.first.is_empty()
            && self.usual.is_empty()
            && self.work.is_empty()
            && self.loads.is_empty()
            && self.done.is_none()
            && !self.in_flight
            && self.writing.is_none()
            && self.written.is_none()
            && matches!(self.stage, Stage::Idle)
            && !self.core.has_round()
    }
}

fn hand_over(life: &mut Life) {
    if !life.core.has_round() || life.in_flight {
        return;
    }
    let round = life.core.take(None);
    life.in_flight = round.batch.is_some();
    if let Some(batch) = &round.batch {
        let bytes = u64::try_from(batch.len_bytes()).unwrap_or(u64::MAX);
        life.bytes_since += bytes;
        life.lag_bytes += bytes;
    }
    life.work.push_back(round);
}

/// An error with all that caused it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
