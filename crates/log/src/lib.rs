//! The durable log of a partition, and the two small stores beside it.
//!
//! # What it promises
//!
//! * When [`Log::append`] returns, every frame of the batch survives kill -9 and loss of power.
//! * A frame that was not appended never appears; lsns are dense; a reader sees frames in the order of their lsns.
//! * What cannot be told apart from durable data is never dropped silently: a log that lost something it had
//!   acknowledged refuses to open, with file, offset and lsn. The one exception is described in [`file`](mod@file).
//! * After a failed write or sync nothing more is acknowledged until the log has been opened again.
//!
//! # Words
//!
//! A **frame** carries one payload under one **lsn**. A **batch** is what one append writes and one sync makes durable.
//! A **position** is what a backend returns for a batch; it is opaque and only a hint for reading from there. An
//! **epoch** is the reign of one writer: it begins with an epoch frame that says where its predecessors end.
//!
//! # Using it
//!
//! ```
//! use windlass_log::{BatchBuilder, EpochRequest, Log, MemoryLog, ReadFrom};
//!
//! let log = MemoryLog::create(0, 1)?;
//! let opened = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 1_000 })?;
//!
//! let mut builder = BatchBuilder::new();
//! builder.start(&opened.tail, 1_001);
//! builder.frame(|buffer| buffer.extend_from_slice(b"job created"));
//! let mut batch = builder.finish();
//! let position = log.append(&mut batch)?; // durable from here on
//! let builder = BatchBuilder::recycle(batch);
//!
//! let mut reader = log.read(&ReadFrom { lsn: 2, near: Some(position) })?;
//! let entry = reader.next_entry()?.expect("one entry is durable");
//! assert_eq!((entry.lsn, entry.payload), (2, b"job created".as_slice()));
//! # drop(builder);
//! # Ok::<(), windlass_log::LogError>(())
//! ```
//!
//! # Modules in reading order
//!
//! [`frame`] and [`batch`] are the format; [`accept`] says which frame may follow which. [`memory`] is the shortest
//! backend. [`fs`] is what the file backend needs from an operating system, or from the simulator; [`file`](mod@file)
//! is that backend and explains recovery. [`lease`] and [`snapshots`] are the other two traits that a replicated
//! backend brings along. [`conformance`] is the suite that every backend passes.
//!
//! # What is absent
//!
//! No knowledge of payloads, no clock (times are arguments), no group commit (the partition batches), no async: calls
//! block, and the partition makes them on a thread of their own.

pub mod accept;
pub mod batch;
pub mod conformance;
mod dir;
mod error;
pub mod file;
pub mod frame;
pub mod fs;
pub mod lease;
mod little_endian;
pub mod memory;
pub mod snapshots;
mod walk;

use std::fmt;

pub use batch::{Batch, BatchBuilder, Tail};
pub use error::{Damage, Fault, LogError, Proof};
pub use file::{FileLog, FileLogOptions, Housekeeping, NewLog};
pub use frame::{EpochRecord, FrameKind, LifeId};
pub use lease::{FileLease, Lease, LeaseError, LeaseGrant, LeaseRequest, MemoryLease};
pub use memory::MemoryLog;
pub use snapshots::{FileSnapshots, MemorySnapshots, SnapshotError, SnapshotInfo, Snapshots};

/// One log of one partition.
///
/// Methods take `&self` so that a committer thread can append while others read, trim and ask for the status. Appends
/// are serialised by the backend; there is one writer by contract.
pub trait Log: Send + Sync + fmt::Debug {
    /// Begins the reign of a writer: appends an epoch frame at the next lsn and makes it durable. From then on appends
    /// of every earlier epoch fail. MUST be refused when `epoch` is not above the last epoch in the log.
    ///
    /// On a replicated log the caller reads up to [`EpochOpened::lsn`] *after* this returned: only now is it known what
    /// its predecessor wrote.
    fn open_epoch(&self, request: &EpochRequest) -> Result<EpochOpened, LogError>;

    /// Makes a batch durable. Returning `Ok` is the promise this project is about.
    ///
    /// * The batch MUST start at the tail: the next lsn, the last frame's chain, the epoch opened by this handle. If it
    ///   does not, nothing is written and the log goes on.
    /// * [`LogError::NoSpace`]: nothing is written; the same batch may be appended again later.
    /// * [`LogError::WriteFailed`], [`LogError::Poisoned`], [`LogError::Fenced`]: the writer MUST stop and acknowledge
    ///   nothing more. Whether the batch survives is only known after the next open.
    ///
    /// The batch is only borrowed so that its memory can be used again; its header is stamped on the way.
    fn append(&self, batch: &mut Batch) -> Result<Position, LogError>;

    /// Reads durable frames from an lsn on. The reader ends at what is durable when it gets there and may be asked
    /// again later: a standby or an exporter tails the log with one reader.
    fn read(&self, from: &ReadFrom) -> Result<Box<dyn LogReader>, LogError>;

    /// Frames up to and including `through_lsn` are not needed any more. The log may keep them longer: it gives back
    /// whole segments. Trimming behind the end is trimming to the end; the last frames may stay.
    fn trim(&self, through_lsn: u64) -> Result<(), LogError>;

    /// Nothing is waiting to be appended: a good moment to note durably what is durable. Call it when the partition
    /// falls idle and before the log is dropped; it costs one small sync, and nothing when nothing was appended since.
    fn idle(&self) -> Result<(), LogError>;

    /// The state of the log, without waiting for an append in progress.
    fn status(&self) -> LogStatus;
}

/// Yields frames in the order of their lsns.
pub trait LogReader: Send + fmt::Debug {
    /// The next durable frame, or nothing when there is none yet. An error is final.
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, LogError>;
}

/// A writer asks for its reign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochRequest {
    /// From the lease; above every epoch that the log holds.
    pub epoch: u32,
    /// The record time of the epoch frame.
    pub time_ms: u64,
}

/// A writer's reign has begun; its epoch frame is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochOpened {
    /// Where the first batch starts.
    pub tail: Tail,
    /// The lsn of the epoch frame.
    pub lsn: u64,
    /// The position of the epoch frame.
    pub position: Position,
    /// What stood in front of it.
    pub predecessor: EpochRecord,
}

/// A place to read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFrom {
    /// The first lsn wanted.
    pub lsn: u64,
    /// The position of a batch that begins at or before `lsn`. Without it backends may have to search.
    pub near: Option<Position>,
}

impl ReadFrom {
    /// From an lsn without a hint.
    #[must_use]
    pub fn lsn(lsn: u64) -> Self {
        Self { lsn, near: None }
    }
}

/// Where a backend put a batch. Opaque: only the backend that made it can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// For storing it, in a checkpoint for example.
    #[must_use]
    pub const fn to_raw(self) -> u64 {
        self.0
    }

    /// What [`to_raw`](Self::to_raw) gave.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// One frame as a reader sees it. The payload lives until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The frame's number.
    pub lsn: u64,
    /// The writer's epoch.
    pub epoch: u32,
    /// The writer's partition.
    pub partition: u16,
    /// Data, or the announcement of a writer ([`EpochRecord::decode`] reads it).
    pub kind: FrameKind,
    /// The record time of its batch.
    pub time_ms: u64,
    /// Where its batch is.
    pub position: Position,
    /// The payload.
    pub payload: &'a [u8],
}

/// The state of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStatus {
    /// The first lsn that can still be read; one more than `durable_lsn` when there is none.
    pub first_lsn: u64,
    /// Everything up to here is durable; one less than the first lsn when the log is empty.
    pub durable_lsn: u64,
    /// The last epoch in the log; 0 when it holds none.
    pub epoch: u32,
    /// The record time of the last durable batch, 0 when there is none.
    pub time_ms: u64,
    /// Bytes that the retained log takes up.
    pub log_bytes: u64,
    /// Bytes that can be appended without asking the file system for room.
    pub reserve_bytes: u64,
    /// The largest batch that `append` takes; compare with [`BatchBuilder::len_bytes`].
    pub batch_bytes_max: u64,
    /// The disk is full and the reserve is below its target: refuse what adds work, so that the rest can drain.
    pub reserve_low: bool,
    /// A write or sync failed: only opening the log again helps.
    pub poisoned: bool,
}
