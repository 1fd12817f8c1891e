//! What can go wrong, as types that a caller can act on.

use std::io;
use std::path::PathBuf;

use crate::accept::Refusal;
use crate::batch::HeaderFault;
use crate::frame::FrameFault;

/// An operation on a log failed. Grouped by what the caller should do.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    // The caller is wrong about the log: nothing was written, the log goes on.
    /// There is no log to open.
    #[error("there is no log in {}", dir.display())]
    NotFound {
        /// Where we looked.
        dir: PathBuf,
    },
    /// A log is never created over another one.
    #[error("a log already exists in {}", dir.display())]
    AlreadyExists {
        /// Where it is.
        dir: PathBuf,
    },
    /// Another process has the directory.
    #[error("another process has locked {}", dir.display())]
    Locked {
        /// The directory of the log.
        dir: PathBuf,
    },
    /// `open_epoch` comes before `append`.
    #[error("no epoch is open for writing")]
    NoEpochOpen,
    /// The epoch asked for is not above the last one.
    #[error("epoch {asked} is not above epoch {last}, which the log already holds")]
    EpochTooLow {
        /// The epoch of the request.
        asked: u32,
        /// The last epoch in the log.
        last: u32,
    },
    /// Somebody else opened a higher epoch: this writer must stop.
    #[error("epoch {epoch} was ended by epoch {newer}")]
    Fenced {
        /// The epoch of this writer.
        epoch: u32,
        /// The epoch that ended it.
        newer: u32,
    },
    /// The batch does not continue the log. A bug of the caller.
    #[error("the batch starts at lsn {found}, but lsn {expected} comes next in this history")]
    NotNext {
        /// The lsn that comes next.
        expected: u64,
        /// The first lsn of the batch.
        found: u64,
    },
    /// A batch or directory of another partition or another log.
    #[error(
        "this log belongs to partition {expected}, not to partition {found}, or to another log"
    )]
    WrongLog {
        /// The log's partition.
        expected: u16,
        /// The caller's.
        found: u16,
    },
    /// A batch without frames.
    #[error("the batch holds no frames")]
    EmptyBatch,
    /// The batch is larger than a segment.
    #[error("the batch has {bytes} bytes, the most is {bytes_max}")]
    BatchTooLarge {
        /// Size of the batch.
        bytes: u64,
        /// The limit, also in the status.
        bytes_max: u64,
    },
    /// The lsn was trimmed away.
    #[error("lsn {lsn} was trimmed; the log begins at lsn {first_lsn}")]
    Trimmed {
        /// The lsn asked for.
        lsn: u64,
        /// The first one that is still there.
        first_lsn: u64,
    },
    /// The lsn was never written.
    #[error("lsn {lsn} is behind the end of the log, which is lsn {durable_lsn}")]
    BehindEnd {
        /// The lsn asked for.
        lsn: u64,
        /// The last durable one.
        durable_lsn: u64,
    },
    /// The option contradicts the files or itself.
    #[error("invalid option: {0}")]
    InvalidOption(&'static str),

    // The world is full: nothing was written, the same batch may be appended again later.
    /// No prepared segment is left, and preparing another failed; on a full disk above all.
    #[error("no prepared segment is left, and there was no room to prepare another")]
    NoSpace,

    // The log stops for good.
    /// A write or sync failed. What the disk holds is unknown until the log is opened again; it must not be retried.
    #[error(
        "failed to make a batch durable; the log is closed for writing until it is opened again"
    )]
    WriteFailed(#[source] io::Error),
    /// A write or sync failed earlier.
    #[error(
        "an earlier write or sync failed; the log is closed for writing until it is opened again"
    )]
    Poisoned,

    // A person has to look.
    /// Durable data cannot be read.
    #[error(transparent)]
    Damaged(Box<Damage>),
    /// Written by a newer version.
    #[error("{} is written in format version {version}, which this version cannot read", file.display())]
    UnsupportedVersion {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: u16,
    },

    /// The file system failed at something that leaves the log as it was.
    #[error("failed to {action} {}", path.display())]
    Io {
        /// What we tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

impl LogError {
    /// Does the log hold what this program cannot read?
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::UnsupportedVersion { .. })
    }

    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}

/// Durable data that cannot be read, with all that a person needs in order to decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log is damaged: {} at byte {offset}: lsn {lsn} cannot be read ({fault}), but it was durable: {proof}; \
     nothing was changed; run `windlass log verify` for a report, and `windlass log repair` only if no copy is left",
    file.display()
)]
pub struct Damage {
    /// The file in which the damage begins.
    pub file: PathBuf,
    /// Where in the file.
    pub offset: u64,
    /// The first lsn that cannot be read.
    pub lsn: u64,
    /// What is wrong there.
    pub fault: Fault,
    /// Why it is not the tail of an unfinished write.
    pub proof: Proof,
}

impl From<Damage> for LogError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(Box::new(damage))
    }
}

/// What is wrong at one place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No readable batch header.
    #[error("{0}")]
    BatchHeader(HeaderFault),
    /// A batch header that continues another history.
    #[error("the batch at this place does not continue the log")]
    BatchOutOfOrder,
    /// No readable frame.
    #[error("{0}")]
    Frame(FrameFault),
    /// A frame that may not follow.
    #[error("the frame is not the next one: {0}")]
    OutOfOrder(Refusal),
    /// The frame belongs to a deposed writer or another partition.
    #[error("the frame was written by another epoch or partition than its batch")]
    ForeignFrame,
    /// Count or size in the batch header do not fit its frames.
    #[error("the batch header does not fit its frames")]
    BatchMismatch,
    /// A file that must exist does not.
    #[error("the file is missing")]
    FileMissing,
    /// The header block of a segment.
    #[error("the segment header cannot be read")]
    SegmentHeader,
    /// A segment under another's name.
    #[error("the segment header names segment {found}")]
    SegmentMisplaced {
        /// The number in the header.
        found: u64,
    },
    /// A segment that does not start where the one before ended.
    #[error("the segment does not continue the one before it")]
    SegmentOutOfOrder,
    /// Both mark blocks.
    #[error("neither mark block can be read")]
    Marks,
}

/// Why a bad place held durable data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Proof {
    /// A mark block says so.
    #[error("the mark block says that lsn {durable_lsn} is durable")]
    Mark {
        /// What the mark says.
        durable_lsn: u64,
    },
    /// A later batch header says so.
    #[error("a later batch, written when lsn {durable_lsn} was durable, follows at byte {offset}")]
    LaterBatch {
        /// What the header says.
        durable_lsn: u64,
        /// Where it stands.
        offset: u64,
    },
    /// A frame of a later batch.
    #[error("lsn {lsn} of a later batch follows at byte {offset}")]
    LaterFrame {
        /// The frame.
        lsn: u64,
        /// Where it stands.
        offset: u64,
    },
    /// A later segment was begun, which happens only when all before it is durable.
    #[error("segment {segment} was begun after it")]
    LaterSegment {
        /// The number of that segment.
        segment: u64,
    },
    /// The log was read up to an lsn that its writer knows to be durable.
    #[error("the log acknowledged lsn {durable_lsn}")]
    Acknowledged {
        /// The writer's durable lsn.
        durable_lsn: u64,
    },
    /// The place is written and synced when the log is created, or before it is used.
    #[error("it is synced before the log uses it")]
    SyncedBeforeUse,
}
