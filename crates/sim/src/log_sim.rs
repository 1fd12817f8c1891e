//! The log on a disk that fails: a history of appends, trims, restarts and new epochs, broken at one chosen operation.
//!
//! Invariants, checked after every restart:
//!
//! 1. A frame that was acknowledged, or read, is there with the same bytes, unless it was trimmed.
//! 2. A frame that is there was appended: nothing else ever appears.
//! 3. Lsns are dense from the first one to the durable one.
//! 4. The log opens, and appends go on.
//!
//! The one case that a single disk cannot tell from a torn write (see `windlass_log::file`) needs damage to data that was
//! synced; crashes alone never do that. [`flip_bits`], which does, closes the log first, so that the mark is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_log::file::{repair, verify};
use windlass_log::{
    BatchBuilder, EpochRecord, EpochRequest, FileLog, FileLogOptions, FrameKind, Housekeeping,
    LifeId, Log, LogError, NewLog, ReadFrom, Tail,
};

use crate::disk::{CrashPoint, Restart, SimDisk};
use crate::random::Random;

/// What breaks in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Power is lost at this operation of the disk, counted from 1.
    PowerLossAt(u64),
    /// This sync fails.
    SyncFailureAt(u64),
}

/// What a run without violations tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunReport {
    /// Operations of the disk, for choosing faults.
    pub operations: u64,
    /// Syncs among them.
    pub syncs: u64,
    /// Frames in the log at the end.
    pub frames: u64,
}

const STEPS: u64 = 30;

/// Power may fail in the first half of them; a sync that was chosen to fail does so once.
const RECOVERY_ATTEMPTS: u32 = 8;
const SEGMENT_BYTES: u64 = 5 * 4096;

fn options() -> FileLogOptions {
    FileLogOptions {
        segment_bytes: SEGMENT_BYTES,
        reserve_segments: 1,
        recycled_segments_max: 2,
        mark_batches: 3,
        housekeeping: Housekeeping::InLine,
    }
}

fn dir() -> PathBuf {
    PathBuf::from("/data/log")
}

/// Runs the history of a seed with one fault. An error describes the violated invariant.
pub fn run(seed: u64, fault: Fault) -> Result<RunReport, String> {
    let mut run = Run::new(seed);
    match fault {
        Fault::None => {}
        Fault::PowerLossAt(operation) => run.disk.crash_at(CrashPoint::Operation(operation)),
        Fault::SyncFailureAt(sync) => {
            run.disk.fail_sync_at(sync);
            run.sync_may_fail = true;
        }
    }
    for _ in 0..STEPS {
        run.step_or_recover()?;
    }
    let counts = run.disk.counts();
    // Whatever was acknowledged survives one more loss of power.
    run.stop(Restart::PowerLoss);
    run.recover()?;
    let frames = run.model.frames.len();
    let frames = u64::try_from(frames).map_err(|error| error.to_string())?;
    Ok(RunReport { operations: counts.total(), syncs: counts.syncs, frames })
}

/// Closes the log of a seed's history, then flips one bit at a time: each is found, or does no harm.
pub fn flip_bits(seed: u64, flips: u64) -> Result<(), String> {
    let mut run = Run::new(seed);
    for _ in 0..STEPS {
        run.step_or_recover()?;
    }
    // Close it in good order, so that the mark is written: without one the last batch is the case that is excluded.
    run.disk.clear_faults();
    if run.disk.is_crashed() {
        // During a chore, whose failure no step reports.
        run.stop(Restart::PowerLoss);
        run.recover()?;
        run.disk.clear_faults();
    }
    let log = run.log.take().ok_or("a step ends with an open log")?;
    log.idle().map_err(|error| format!("idle: {error}"))?;
    drop(log);
    let files: Vec<PathBuf> = run.disk.paths().into_iter().filter(|path| is_read(path)).collect();
    for flip in 0..flips {
        let disk = run.disk.copy(run.random.next_u64());
        let file = pick(&mut run.random, &files).ok_or("the log has files")?;
        let bytes = disk.content(file).map_or(0, |content| content.len());
        let offset = run.random.in_range(0..u64::try_from(bytes).map_err(|e| e.to_string())?);
        let offset = usize::try_from(offset).map_err(|error| error.to_string())?;
        disk.flip_bit(file, offset, 3);
        let at = || format!("flip {flip} in {} at {offset}", file.display());
        run.check_damaged(disk).map_err(|violation| format!("{}: {violation}", at()))?;
    }
    Ok(())
}

/// Flips a bit in every byte of a small log that was killed before a mark was written: damage is found, unless it is in
/// the last batch, which cannot be told from a torn write. Then the frames in front of it are kept.
pub fn flip_every_byte(seed: u64) -> Result<u64, String> {
    let mut run = Run::new(seed);
    run.recover()?;
    run.disk.clear_faults();
    for _ in 0..6 {
        run.append().map_err(|stop| format!("append: {stop:?}"))?;
    }
    let last_batch_lsn = run.model.frames.last_key_value().map_or(0, |(lsn, _)| *lsn);
    run.append().map_err(|stop| format!("append: {stop:?}"))?;
    let files: Vec<PathBuf> = run.disk.paths().into_iter().filter(|path| is_read(path)).collect();
    let mut flips = 0;
    for file in &files {
        let content = run.disk.content(file).unwrap_or_default();
        for (offset, byte) in content.iter().enumerate() {
            // Bytes that are zero are all alike; some of them will do.
            if *byte == 0 && offset % 64 != 63 {
                continue;
            }
            flips += 1;
            let disk = run.disk.copy(seed);
            disk.flip_bit(file, offset, 5);
            let at = format!("{} at {offset}", file.display());
            let log = FileLog::open(Arc::new(disk), &dir(), 0, options());
            let frames = match log.and_then(|log| read_all(&log)) {
                Ok(frames) => frames,
                Err(LogError::Damaged(_)) => continue,
                Err(error) => return Err(format!("{at}: {error}")),
            };
            let last_lsn = frames.last_key_value().map_or(0, |(lsn, _)| *lsn);
            let prefix = run.model.frames.range(..=last_lsn);
            expect(prefix.eq(frames.iter()), &format!("{at}: a frame changed"))?;
            expect(last_lsn >= last_batch_lsn, &format!("{at}: ends at lsn {last_lsn}"))?;
        }
    }
    Ok(flips)
}

/// Fills a disk until nothing can be appended, then trims: the log says so in time, loses nothing, and goes on.
pub fn fill_disk(seed: u64) -> Result<(), String> {
    let mut run = Run::new(seed);
    run.disk.set_capacity_bytes(Some(SEGMENT_BYTES * 6));
    let mut was_reserve_low = false;
    let refused = loop {
        match run.append() {
            Ok(()) => {}
            Err(Stop::Log(LogError::NoSpace)) => break true,
            Err(Stop::NotOpen) => {
                run.recover()?;
                run.disk.clear_faults();
            }
            Err(stop) => return Err(format!("unexpected: {stop:?}")),
        }
        was_reserve_low |= run.log.as_ref().is_some_and(|log| log.status().reserve_low);
    };
    // The batch that was refused was not written.
    run.model.in_flight.clear();
    if !refused || !was_reserve_low {
        return Err("the log did not say that its reserve is low".to_owned());
    }
    run.stop(Restart::PowerLoss);
    run.recover_on_full_disk()?;
    let log = run.log.as_ref().ok_or("the log is open")?;
    let durable_lsn = log.status().durable_lsn;
    log.trim(durable_lsn).map_err(|error| format!("trim on a full disk: {error}"))?;
    run.model.needed_from = durable_lsn + 1;
    run.open_epoch().map_err(|stop| format!("no epoch after the trim: {stop:?}"))?;
    for _ in 0..5 {
        run.append().map_err(|stop| format!("no append after the trim: {stop:?}"))?;
    }
    run.stop(Restart::PowerLoss);
    run.recover()
}

fn is_read(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with("segment-") || name == "marks"
}

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> Option<&'a T> {
    let count = u64::try_from(from.len()).ok().filter(|count| *count > 0)?;
    from.get(usize::try_from(random.in_range(0..count)).ok()?)
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    kind: FrameKind,
    epoch: u32,
    time_ms: u64,
    payload: Vec<u8>,
}

/// What the log must hold.
#[derive(Debug, Default)]
struct Model {
    created: bool,
    frames: BTreeMap<u64, Frame>,
    /// Appended, with an unknown outcome.
    in_flight: BTreeMap<u64, Frame>,
    /// Frames below this were given up by a trim.
    needed_from: u64,
    epoch: u32,
}

/// Why a step did not finish.
#[derive(Debug)]
enum Stop {
    NotOpen,
    Log(LogError),
}

impl From<LogError> for Stop {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

struct Run {
    disk: SimDisk,
    random: Random,
    model: Model,
    log: Option<FileLog>,
    tail: Option<Tail>,
    life: LifeId,
    sync_may_fail: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        Self {
            disk: SimDisk::new(random.next_u64()),
            life: LifeId::from_raw(random.next_u64()),
            random,
            model: Model { needed_from: 1, ..Model::default() },
            log: None,
            tail: None,
            sync_may_fail: false,
        }
    }

    fn step_or_recover(&mut self) -> Result<(), String> {
        match self.step() {
            Ok(()) => Ok(()),
            Err(Stop::NotOpen) => self.recover(),
            Err(Stop::Log(_)) if self.disk.is_crashed() => {
                self.stop(Restart::PowerLoss);
                self.recover()
            }
            // The sync of a segment that was being prepared failed. Nothing was written, and the next step tries again.
            Err(Stop::Log(LogError::NoSpace)) => {
                self.model.in_flight.clear();
                expect(self.sync_may_fail, "the disk is not full")
            }
            Err(Stop::Log(error)) => {
                self.check_poisoned(&error)?;
                // The machine runs on; a new process sees everything, durable or not.
                self.stop(Restart::ProcessKilled);
                self.recover()
            }
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        let Some(log) = &self.log else { return Err(Stop::NotOpen) };
        match self.random.in_range(0..100) {
            0..74 => self.append(),
            74..84 => {
                let durable_lsn = log.status().durable_lsn;
                let through_lsn = self.random.in_range(0..durable_lsn + 1);
                self.model.needed_from = self.model.needed_from.max(through_lsn + 1);
                Ok(log.trim(through_lsn)?)
            }
            84..90 => Ok(log.idle()?),
            90..95 => {
                self.log = None;
                Err(Stop::NotOpen)
            }
            _ => {
                self.stop(Restart::ProcessKilled);
                Err(Stop::NotOpen)
            }
        }
    }

    fn append(&mut self) -> Result<(), Stop> {
        let (Some(log), Some(tail)) = (&self.log, self.tail) else { return Err(Stop::NotOpen) };
        let time_ms = log.status().time_ms + 1;
        let mut builder = BatchBuilder::new();
        builder.start(&tail, time_ms);
        for _ in 0..self.random.in_range(1..6) {
            let lsn = builder.next_lsn();
            let byte = self.random.next_u64().to_le_bytes();
            let payload = byte.repeat(usize::try_from(self.random.in_range(0..250)).unwrap_or(0));
            builder.frame(|buffer| buffer.extend_from_slice(&payload));
            let frame = Frame { kind: FrameKind::Data, epoch: tail.epoch, time_ms, payload };
            self.model.in_flight.insert(lsn, frame);
        }
        let mut batch = builder.finish();
        log.append(&mut batch)?;
        self.tail = Some(batch.tail_after());
        self.model.frames.append(&mut self.model.in_flight);
        Ok(())
    }

    /// The process, or the machine, stops without a good-bye.
    fn stop(&mut self, restart: Restart) {
        self.disk.crash_now();
        self.log = None;
        self.tail = None;
        self.disk.restart(restart);
    }

    /// Opens, checks and begins an epoch, through further losses of power.
    fn recover(&mut self) -> Result<(), String> {
        for attempt in 0..RECOVERY_ATTEMPTS {
            if attempt < RECOVERY_ATTEMPTS / 2 && self.random.chance(40) {
                let operation = self.random.in_range(1..25);
                self.disk.crash_at(CrashPoint::Operation(operation));
            }
            match self.open_and_check()? {
                // A chore may have met the crash, whose failure no call reports.
                Ok(()) | Err(_) if self.disk.is_crashed() => self.stop(Restart::PowerLoss),
                Ok(()) => return Ok(()),
                // The sync that was chosen to fail did so while opening.
                Err(Stop::Log(
                    LogError::Io { .. } | LogError::WriteFailed(_) | LogError::Poisoned,
                )) => {
                    self.stop(Restart::ProcessKilled);
                }
                Err(stop) => return Err(format!("the log does not open: {stop:?}")),
            }
        }
        Err("the log does not open, though nothing is wrong any more".to_owned())
    }

    fn open_and_check(&mut self) -> Result<Result<(), Stop>, String> {
        self.tail = None;
        self.log = None;
        let opened = FileLog::open(Arc::new(self.disk.clone()), &dir(), 0, options());
        let log = match opened {
            Err(LogError::NotFound { .. }) if !self.model.created => {
                let new = NewLog { life: self.life, partition: 0, first_lsn: 1 };
                FileLog::create(Arc::new(self.disk.clone()), &dir(), &new, options())
            }
            opened => opened,
        };
        match log {
            Ok(log) => self.log = Some(log),
            Err(error) => return Ok(Err(error.into())),
        }
        self.model.created = true;
        match self.check() {
            Ok(()) => {}
            Err(_) if self.disk.is_crashed() => return Ok(Err(Stop::NotOpen)),
            Err(violation) => return Err(violation),
        }
        Ok(self.open_epoch())
    }

    fn recover_on_full_disk(&mut self) -> Result<(), String> {
        match self.open_and_check()? {
            Ok(()) | Err(Stop::Log(LogError::NoSpace)) => Ok(()),
            Err(stop) => Err(format!("the log does not open: {stop:?}")),
        }
    }

    fn open_epoch(&mut self) -> Result<(), Stop> {
        let Some(log) = &self.log else { return Err(Stop::NotOpen) };
        let status = log.status();
        self.model.epoch = self.model.epoch.max(status.epoch) + 1;
        let (epoch, time_ms) = (self.model.epoch, status.time_ms + 1000);
        let mut payload = Vec::new();
        let record = EpochRecord {
            predecessor_epoch: status.epoch,
            predecessor_last_lsn: status.durable_lsn,
            predecessor_time_ms: status.time_ms,
        };
        record.encode(&mut payload);
        let frame = Frame { kind: FrameKind::Epoch, epoch, time_ms, payload };
        self.model.in_flight.insert(status.durable_lsn + 1, frame);
        match log.open_epoch(&EpochRequest { epoch, time_ms }) {
            Ok(opened) => {
                self.tail = Some(opened.tail);
                self.model.frames.append(&mut self.model.in_flight);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Invariants 1 to 3. What was read counts as acknowledged from then on.
    fn check(&mut self) -> Result<(), String> {
        let log = self.log.as_ref().ok_or("the log is open")?;
        let frames = read_all(log).map_err(|error| format!("reading failed: {error}"))?;
        self.model.accept(log, frames)
    }

    fn check_poisoned(&self, error: &LogError) -> Result<(), String> {
        let log = self.log.as_ref().ok_or("the log is open")?;
        if !log.status().poisoned {
            return Err(format!("the log goes on after: {error}"));
        }
        match log.idle() {
            Err(LogError::Poisoned) => Ok(()),
            other => Err(format!("a poisoned log answers {other:?}")),
        }
    }

    /// Opens a log in which one bit was flipped.
    fn check_damaged(&self, disk: SimDisk) -> Result<(), String> {
        let fs = Arc::new(disk);
        let verified = verify(fs.as_ref(), &dir());
        let opened = FileLog::open(fs.clone(), &dir(), 0, options());
        let read = opened.and_then(|log| {
            let frames = read_all(&log)?;
            Ok((log.status(), frames))
        });
        match read {
            Ok((status, frames)) => {
                let clean = verified.as_ref().is_ok_and(|report| report.damage.is_none());
                let lost = self.model.frames.range(status.first_lsn..).ne(frames.iter());
                if lost { Err("frames differ".to_owned()) } else { expect(clean, "verify differs") }
            }
            Err(LogError::Damaged(_)) => {
                let seen = match &verified {
                    Ok(report) => report.damage.is_some(),
                    Err(LogError::Damaged(_)) => true,
                    Err(_) => false,
                };
                expect(seen, "verify sees no damage")?;
                self.check_repair(&fs)
            }
            Err(error) => Err(format!("unexpected error: {error}")),
        }
    }

    /// A repair keeps a prefix, says what is gone, and leaves a log that opens.
    fn check_repair(&self, fs: &Arc<SimDisk>) -> Result<(), String> {
        let report = match repair(fs.as_ref(), &dir()) {
            Ok(report) => report,
            // Nothing is readable: the first segment's header is gone.
            Err(LogError::Damaged(damage)) if damage.offset == 0 => return Ok(()),
            Err(error) => return Err(format!("repair failed: {error}")),
        };
        let log = FileLog::open(fs.clone(), &dir(), 0, options())
            .map_err(|error| format!("the repaired log does not open: {error}"))?;
        let frames = read_all(&log).map_err(|error| format!("the repaired log: {error}"))?;
        let first_lsn = log.status().first_lsn;
        let kept = self.model.frames.range(first_lsn..report.last_lsn.max(first_lsn - 1) + 1);
        expect(kept.eq(frames.iter()), "the repaired log does not hold what it says")?;
        let last_lsn = self.model.frames.last_key_value().map(|(lsn, _)| *lsn);
        let said = report.lost_lsns.map_or(Some(report.last_lsn), |lost| Some(*lost.end()));
        expect(said == last_lsn, "the repair does not say what is lost")
    }
}

fn expect(holds: bool, violation: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(violation.to_owned()) }
}

fn read_all(log: &dyn Log) -> Result<BTreeMap<u64, Frame>, LogError> {
    let mut reader = log.read(&ReadFrom::lsn(log.status().first_lsn))?;
    let mut frames = BTreeMap::new();
    while let Some(entry) = reader.next_entry()? {
        let payload = entry.payload.to_vec();
        let (kind, epoch, time_ms) = (entry.kind, entry.epoch, entry.time_ms);
        frames.insert(entry.lsn, Frame { kind, epoch, time_ms, payload });
    }
    Ok(frames)
}

impl Model {
    fn accept(&mut self, log: &dyn Log, found: BTreeMap<u64, Frame>) -> Result<(), String> {
        let status = log.status();
        if status.first_lsn > self.needed_from {
            return Err(format!("the log begins at {}", status.first_lsn));
        }
        if !found.keys().copied().eq(status.first_lsn..=status.durable_lsn) {
            return Err(format!("lsns are not dense up to {}", status.durable_lsn));
        }
        let acknowledged = self.frames.last_key_value().map_or(0, |(lsn, _)| *lsn);
        if acknowledged > status.durable_lsn {
            return Err(format!(
                "lsn {acknowledged} was acknowledged, the log ends at {}",
                status.durable_lsn
            ));
        }
        for (lsn, frame) in &found {
            let appended = self.frames.get(lsn).or_else(|| self.in_flight.get(lsn));
            if appended != Some(frame) {
                return Err(format!("lsn {lsn} is {frame:?}, appended was {appended:?}"));
            }
        }
        self.frames.extend(found);
        self.in_flight.clear();
        Ok(())
    }
}
