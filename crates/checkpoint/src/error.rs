//! What can go wrong with a checkpoint store or a backup.
//!
//! Every message is a fragment that reads on from "failed to …" or stands alone; the inner error is the
//! `source` and is not repeated.

use std::io;
use std::path::PathBuf;

/// Result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a checkpoint store refused or failed.
///
/// No failure of a write ever leaves part of it visible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The keys of a write were not strictly ascending.
    #[error("entry {index} of the checkpoint is not above the entry before it")]
    OutOfOrder {
        /// Counted from zero.
        index: u64,
    },
    /// A key was empty, too long, or in the store's own range.
    #[error("the key of entry {index} is {reason}")]
    KeyRefused {
        /// Counted from zero.
        index: u64,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A value, or the stamp's `meta`, was over its limit.
    #[error("the value of entry {index} has {bytes} bytes, more than {bytes_max}")]
    ValueTooLarge {
        /// Counted from zero.
        index: u64,
        /// Its length.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// A write would have taken the store back in time.
    #[error("checkpoint at lsn {new} is older than the stored one at lsn {stored}")]
    StampBackwards {
        /// Lsn of the newest checkpoint in the store.
        stored: u64,
        /// Lsn of the refused write.
        new: u64,
    },
    /// A restore was asked into a store that already holds a checkpoint.
    #[error("the store already holds a checkpoint at lsn {lsn}; restore into an empty one")]
    NotEmpty {
        /// Lsn of what it holds.
        lsn: u64,
    },
    /// Backing up a store that has never been written.
    #[error("the store holds no checkpoint yet")]
    Empty,
    /// The stored bytes are not what was written.
    #[error("the checkpoint store is damaged: {what}")]
    Corrupt {
        /// What was found, and where.
        what: String,
    },
    /// The stored bytes are of a version that this build does not read.
    #[error("{what} has version {found}; this build reads up to {known}")]
    UnknownVersion {
        /// Which format.
        what: &'static str,
        /// Version found.
        found: u32,
        /// Newest version this build reads.
        known: u32,
    },
    /// A backup ends early or was altered.
    #[error("the backup is damaged in the part that begins at byte {offset}: expected {expected}")]
    BackupDamaged {
        /// Where in the stream the header, block or trailer begins that is damaged.
        offset: u64,
        /// What was expected there.
        expected: &'static str,
    },
    /// The store was opened again, or crashed, since this handle was made.
    #[error("this handle of the checkpoint store is no longer the open one")]
    Stale,
    /// An earlier write failed in a way that leaves its outcome unknown; open the store again.
    #[error("the checkpoint store takes no more writes after a failed one; open it again")]
    Poisoned,
    /// Another process, or another handle in this one, has the store open.
    #[error("the checkpoint store at {path} is in use by another process")]
    Locked {
        /// Its directory.
        path: PathBuf,
    },
    /// The operating system failed.
    #[error("failed to {action}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The storage engine failed.
    #[error("failed to {action}")]
    Engine {
        /// What was attempted.
        action: &'static str,
        /// Why it failed.
        #[source]
        source: Box<lsm_tree::Error>,
    },
}

impl Error {
    /// Is the disk full? Such a write is retried later, with an alarm.
    pub fn is_out_of_space(&self) -> bool {
        self.io_kind() == Some(io::ErrorKind::StorageFull)
    }

    /// Are stored bytes damaged? Such a store must be restored, not retried.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::BackupDamaged { .. })
    }

    /// May the same write succeed later? What the operating system refuses now it may grant then; all
    /// else is as wrong the next time.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Engine { .. })
    }

    fn io_kind(&self) -> Option<io::ErrorKind> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return Some(io.kind());
            }
            cause = error.source();
        }
        None
    }
}
