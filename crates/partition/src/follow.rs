//! Those who want every durable record, or all but those about jobs alone: a read model, an
//! exporter. [`Follower`] is the seam; what is behind it is nothing that the partition knows.
//!
//! The log is the queue. A thread of its own reads it behind the commit thread, through the second
//! reader that the log's contract allows, so that a slow follower costs the loop and the commit
//! thread nothing but a wake-up, and no memory: what it has not taken yet lies in the log, which is
//! trimmed to the older of checkpoint and follower. Past [`Options::follow_log_bytes_max`] the log
//! is trimmed all the same, and the follower is told what it [missed](Follower::miss).
//!
//! [`Options::follow_log_bytes_max`]: crate::Options::follow_log_bytes_max

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use windlass_log::batch::{BATCH_HEADER_BYTES, BLOCK_BYTES};
use windlass_log::frame::FRAME_HEADER_BYTES;
use windlass_log::{Batch, FrameKind, Log, LogError, LogReader, Position, ReadFrom};

/// Records given before the follower is asked to make them its own.
const RECORDS_PER_FLUSH_MAX: u32 = 8_192;
/// Bytes of them.
const BYTES_PER_FLUSH_MAX: u64 = 8 << 20;
/// After a wake-up, more is let come before it is read: one hand-over for many batches.
const GATHER: Duration = Duration::from_millis(5);
/// Nothing came for this long: time for the follower's own chores.
const IDLE_AFTER: Duration = Duration::from_millis(500);
/// A log that cannot be read, or a follower that cannot keep what it took, is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// Rounds of catching up that an orderly stop waits for; the rest is read at the next start.
const ROUNDS_AT_END_MAX: u32 = 8;

/// One who wants every durable record that it does not leave out, in order, at least once.
///
/// All but [`kept`](Follower::kept) is called by one thread, which may be blocked as long as
/// it takes.
pub trait Follower: Send + Sync {
    /// The partition came up. Says the newest record that needs not be given again; at most
    /// [`Followed::durable_lsn`].
    fn begin(&self, log: &Followed) -> u64;
    /// A record. It may be kept for later until [`flush`](Follower::flush).
    fn take(&self, record: &Record<'_>);
    /// Batches came, the newest of this time, in which [nothing but jobs] changed.
    /// True if it does without all of them: they are left out then, unread, and it is as late as
    /// that for it too. Everything before was flushed.
    ///
    /// [nothing but jobs]: windlass_record::event::Event::is_of_job
    fn leave_out(&self, time_ms: u64) -> bool {
        let _ = time_ms;
        false
    }
    /// These records are gone from the log: it will never get them.
    fn miss(&self, first_lsn: u64, last_lsn: u64);
    /// Everything up to here was given: says the newest record that need not be given again before
    /// the next start. When that is less, the rest is given again after a while.
    fn flush(&self, through_lsn: u64) -> u64;
    /// Nothing to take: a bounded piece of its own chores. True if there is more.
    fn idle(&self) -> bool;
    /// The newest record that it has for good: the log may forget it. Called by any thread; must
    /// not block.
    fn kept(&self) -> u64;
}

/// The log that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// Its life: another number is another log, whose records have nothing to do with this one's.
    pub life: u64,
    /// The first record that can still be read.
    pub first_lsn: u64,
    /// The newest durable record.
    pub durable_lsn: u64,
}

/// A durable record, see `windlass_record::codec` for its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number.
    pub lsn: u64,
    /// The time of its batch.
    pub time_ms: u64,
    /// Codec version, milliseconds since the batch's time, events.
    pub payload: &'a [u8],
}

/// How far a follower is behind, in bytes of the log.
#[derive(Clone, Debug, Default)]
pub struct FollowLag {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    appended: AtomicU64,
    read: AtomicU64,
}

/// The newest durable batch, and what is in those before it.
#[derive(Clone, Copy, Debug)]
struct Newest {
    last_lsn: u64,
    time_ms: u64,
    position: Option<Position>,
    /// Bytes appended up to its end since the partition came up.
    appended: u64,
    /// The newest record that may be about more than jobs.
    not_jobs_alone_lsn: u64,
}

impl FollowLag {
    /// Bytes appended since the partition came up that the follower has not taken.
    pub fn bytes(&self) -> u64 {
        let read = self.counts.read.load(Ordering::Relaxed);
        self.counts.appended.load(Ordering::Relaxed).saturating_sub(read)
    }

    /// A frame was read. Only the follower's thread counts what was read.
    fn read(&self, frame_bytes: u64, is_first_of_batch: bool) {
        let header = if is_first_of_batch { wide(BATCH_HEADER_BYTES) } else { 0 };
        self.counts.read.fetch_add(frame_bytes + header, Ordering::Relaxed);
    }

    /// A batch was read whole: it is padded to whole blocks.
    fn batch_read(&self) {
        let read = self.counts.read.load(Ordering::Relaxed);
        let whole = read.next_multiple_of(wide(BLOCK_BYTES));
        self.counts.read.store(whole, Ordering::Relaxed);
    }
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// How the commit thread tells that there is more.
pub(crate) struct Nudge {
    wake: Sender<()>,
    lag: FollowLag,
    newest: Arc<Mutex<Newest>>,
}

impl Nudge {
    /// A batch is durable. The lock is held, here and there, for as long as a few numbers are copied.
    pub(crate) fn durable(&self, batch: &Batch, position: Position, jobs_alone: bool) {
        let bytes = wide(batch.len_bytes());
        let appended = self.lag.counts.appended.fetch_add(bytes, Ordering::Relaxed) + bytes;
        {
            let mut newest = lock(&self.newest);
            newest.last_lsn = batch.last_lsn();
            newest.time_ms = batch.time_ms();
            newest.position = Some(position);
            newest.appended = appended;
            if !jobs_alone {
                newest.not_jobs_alone_lsn = batch.last_lsn();
            }
        }
        self.wake();
    }

    fn wake(&self) {
        // When one wake-up is waiting already, another says nothing new.
        let _ = self.wake.try_send(());
    }
}

fn lock(newest: &Mutex<Newest>) -> MutexGuard<'_, Newest> {
    newest.lock().expect("no panic while it is locked")
}

/// Trims the log to the older of checkpoint and follower, or to the checkpoint when that keeps too
/// much of it.
pub(crate) fn trim(
    log: &dyn Log,
    checkpoint_lsn: u64,
    follower: Option<&dyn Follower>,
    follow_log_bytes_max: u64,
) -> Result<(), LogError> {
    let Some(follower) = follower else { return log.trim(checkpoint_lsn) };
    log.trim(checkpoint_lsn.min(follower.kept()))?;
    if follower.kept() < checkpoint_lsn && log.status().log_bytes > follow_log_bytes_max {
        tracing::warn!(
            kept_lsn = follower.kept(),
            checkpoint_lsn,
            "the follower of the log is too far behind: it will miss records"
        );
        log.trim(checkpoint_lsn)?;
    }
    Ok(())
}

/// What the follower's thread does when nothing comes.
#[derive(Clone, Copy)]
enum Next {
    /// Waits for more.
    Wait,
    /// Tries again what failed.
    Again,
    /// Goes on with the follower's chores.
    Chores,
}

/// The follower's thread.
pub(crate) struct Follow {
    log: Arc<dyn Log>,
    follower: Arc<dyn Follower>,
    woken: Receiver<()>,
    lag: FollowLag,
    reader: Option<Box<dyn LogReader>>,
    next_lsn: u64,
    /// Records up to here were there before the lag was counted.
    counted_from_lsn: u64,
    batch: Option<Position>,
    newest: Arc<Mutex<Newest>>,
    /// Near the next record, where that is known.
    near: Option<Position>,
}

impl Follow {
    /// Gets ready to follow this log, which is durable up to `durable_lsn`.
    pub(crate) fn begin(
        log: Arc<dyn Log>,
        follower: Arc<dyn Follower>,
        life: u64,
        durable_lsn: u64,
    ) -> (Follow, Nudge) {
        let first_lsn = log.status().first_lsn;
        let covered = follower.begin(&Followed { life, first_lsn, durable_lsn });
        assert!(covered <= durable_lsn, "a follower covers what is durable");
        let (wake, woken) = bounded(1);
        let lag = FollowLag::default();
        let newest = Arc::new(Mutex::new(Newest {
            last_lsn: durable_lsn,
            time_ms: 0,
            position: None,
            appended: 0,
            // What they were about is not known any more.
            not_jobs_alone_lsn: durable_lsn,
        }));
        let nudge = Nudge { wake, lag: lag.clone(), newest: Arc::clone(&newest) };
        // What the log holds already is there to be read.
        nudge.wake();
        let follow = Follow {
            log,
            follower,
            woken,
            lag,
            reader: None,
            next_lsn: covered + 1,
            counted_from_lsn: durable_lsn,
            batch: None,
            newest,
            near: None,
        };
        (follow, nudge)
    }

    pub(crate) fn lag(&self) -> FollowLag {
        self.lag.clone()
    }

    /// Runs until the commit thread has ended.
    pub(crate) fn run(mut self) {
        let mut next = Next::Wait;
        loop {
            let wait = match next {
                Next::Wait => IDLE_AFTER,
                Next::Again => AGAIN_AFTER,
                Next::Chores => Duration::ZERO,
            };
            let woken = self.woken.recv_timeout(wait);
            next = match (woken, next) {
                (Err(RecvTimeoutError::Disconnected), _) => break,
                (Ok(()), _) => {
                    std::thread::sleep(GATHER);
                    self.catch_up(u32::MAX)
                }
                (Err(RecvTimeoutError::Timeout), Next::Again) => self.catch_up(u32::MAX),
                (Err(RecvTimeoutError::Timeout), Next::Wait | Next::Chores) => {
                    if self.follower.idle() { Next::Chores } else { Next::Wait }
                }
            };
        }
        self.catch_up(ROUNDS_AT_END_MAX);
    }

    /// Gives what is durable.
    fn catch_up(&mut self, rounds_max: u32) -> Next {
        for _ in 0..rounds_max {
            let newest = *lock(&self.newest);
            if self.next_lsn > newest.last_lsn {
                // Nothing is said to have come; there may be more than is said yet.
                return Next::Wait;
            }
            let first_lsn = self.next_lsn;
            let read = if self.leave_out(&newest) { Ok(false) } else { self.give() };
            if let Err(error) = &read {
                tracing::warn!(
                    error = error as &dyn std::error::Error,
                    lsn = self.next_lsn,
                    "failed to read the log for its follower, trying again"
                );
            }
            if self.next_lsn > first_lsn {
                let covered = self.follower.flush(self.next_lsn - 1);
                if covered + 1 < self.next_lsn {
                    self.next_lsn = covered + 1;
                    (self.reader, self.near) = (None, None);
                    return Next::Again;
                }
            }
            match read {
                Ok(true) => {}
                Ok(false) => return Next::Wait,
                Err(_) => {
                    self.reader = None;
                    return Next::Again;
                }
            }
        }
        Next::Wait
    }

    /// Goes behind everything that is durable, if the follower can do without it.
    fn leave_out(&mut self, newest: &Newest) -> bool {
        let jobs_alone = newest.not_jobs_alone_lsn < self.next_lsn;
        if !jobs_alone || !self.follower.leave_out(newest.time_ms) {
            return false;
        }
        self.next_lsn = newest.last_lsn + 1;
        self.counted_from_lsn = newest.last_lsn;
        (self.reader, self.near, self.batch) = (None, newest.position, newest.position);
        self.lag.counts.read.store(newest.appended, Ordering::Relaxed);
        true
    }

    /// Gives one flush's worth of records. True if there may be more.
    fn give(&mut self) -> Result<bool, LogError> {
        let (mut records, mut bytes) = (0, 0);
        while records < RECORDS_PER_FLUSH_MAX && bytes < BYTES_PER_FLUSH_MAX {
            match self.give_one() {
                Ok(Some(given)) => {
                    records += 1;
                    bytes += given;
                }
                Ok(None) => return Ok(false),
                Err(LogError::Trimmed { first_lsn, .. }) if first_lsn > self.next_lsn => {
                    self.follower.miss(self.next_lsn, first_lsn - 1);
                    self.next_lsn = first_lsn;
                    self.reader = None;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Gives one record and says its bytes.
    fn give_one(&mut self) -> Result<Option<u64>, LogError> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.log.read(&ReadFrom { lsn: self.next_lsn, near: self.near.take() })?,
        };
        let Some(entry) = reader.next_entry()? else {
            self.reader = Some(reader);
            self.lag.batch_read();
            return Ok(None);
        };
        if entry.kind == FrameKind::Data {
            let (lsn, time_ms, payload) = (entry.lsn, entry.time_ms, entry.payload);
            self.follower.take(&Record { lsn, time_ms, payload });
        }
        let is_next_batch = self.batch.replace(entry.position) != Some(entry.position);
        let bytes = wide(entry.payload.len() + FRAME_HEADER_BYTES);
        if entry.lsn > self.counted_from_lsn {
            self.counted_from_lsn = entry.lsn;
            if is_next_batch {
                self.lag.batch_read();
            }
            self.lag.read(bytes, is_next_batch);
        }
        self.next_lsn = entry.lsn + 1;
        self.reader = Some(reader);
        Ok(Some(bytes))
    }
}
