//! Who may write: the seam [`Lease`], with a backend in memory and one in a file.
//!
//! A lease hands out epochs. Each grant has a higher epoch than every grant before it; the log refuses writers of a
//! lower one, so that a holder who does not know yet that its lease ended does no harm. The lease only keeps two
//! holders from wearing each other out; **safety rests on the log**.
//!
//! Time is an argument. Backends with a clock of their own (a database) may ignore it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::LogError;
use crate::fs::{FileSystem, Lock};
use crate::little_endian::{array_at, put, u16_at, u32_at};

/// Hands out the right to write.
pub trait Lease: Send + Sync + fmt::Debug {
    /// Takes the lease when it is free, ended, or already this holder's. MUST grant an epoch above every earlier one
    /// and above `request.epoch_above`, durably, before it returns.
    fn acquire(&self, request: &LeaseRequest<'_>) -> Result<LeaseGrant, LeaseError>;

    /// Keeps the lease until `now_ms + ttl_ms`. MUST fail with [`LeaseError::Lost`] once anybody else was granted a
    /// higher epoch.
    fn renew(&self, grant: &LeaseGrant, now_ms: u64, ttl_ms: u64) -> Result<(), LeaseError>;
}

/// A wish for the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest<'a> {
    /// Names the holder, for people and for taking one's own lease again.
    pub holder: &'a str,
    /// The last epoch that the log holds; the grant is above it even when the lease's own record was lost.
    pub epoch_above: u32,
    /// Now.
    pub now_ms: u64,
    /// How long the lease lasts without renewal.
    pub ttl_ms: u64,
}

/// The right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseGrant {
    /// For [`Log::open_epoch`](crate::Log::open_epoch).
    pub epoch: u32,
}

/// The lease was not granted or renewed.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else has it.
    #[error("the lease is held by {holder} for another {remaining_ms} ms")]
    Held {
        /// Who.
        holder: String,
        /// For how long at most.
        remaining_ms: u64,
    },
    /// Somebody else was granted a higher epoch.
    #[error("the lease of epoch {epoch} was lost to epoch {newer}")]
    Lost {
        /// The epoch of the grant.
        epoch: u32,
        /// The epoch that ended it.
        newer: u32,
    },
    /// All epochs are used up.
    #[error("there is no epoch left")]
    EpochsExhausted,
    /// The store of the lease failed.
    #[error("failed to store the lease")]
    Store(#[source] LogError),
}

/// The state that every backend keeps, and the rule on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct LeaseState {
    epoch: u32,
    until_ms: u64,
    holder: String,
}

impl LeaseState {
    fn acquired(&self, request: &LeaseRequest<'_>) -> Result<Self, LeaseError> {
        let remaining_ms = self.until_ms.saturating_sub(request.now_ms);
        if remaining_ms > 0 && self.holder != request.holder {
            return Err(LeaseError::Held { holder: self.holder.clone(), remaining_ms });
        }
        let highest = self.epoch.max(request.epoch_above);
        Ok(Self {
            epoch: highest.checked_add(1).ok_or(LeaseError::EpochsExhausted)?,
            until_ms: request.now_ms.saturating_add(request.ttl_ms),
            holder: request.holder.to_owned(),
        })
    }

    fn renewed(&self, grant: &LeaseGrant, until_ms: u64) -> Result<Self, LeaseError> {
        if self.epoch != grant.epoch {
            return Err(LeaseError::Lost { epoch: grant.epoch, newer: self.epoch });
        }
        Ok(Self { until_ms, ..self.clone() })
    }
}

/// A lease for tests.
#[derive(Debug, Default)]
pub struct MemoryLease {
    state: Mutex<LeaseState>,
}

impl Lease for MemoryLease {
    fn acquire(&self, request: &LeaseRequest<'_>) -> Result<LeaseGrant, LeaseError> {
        let mut state = self.state.lock().expect("no panic while the lease is locked");
        *state = state.acquired(request)?;
        Ok(LeaseGrant { epoch: state.epoch })
    }

    fn renew(&self, grant: &LeaseGrant, now_ms: u64, ttl_ms: u64) -> Result<(), LeaseError> {
        let mut state = self.state.lock().expect("no panic while the lease is locked");
        *state = state.renewed(grant, now_ms.saturating_add(ttl_ms))?;
        Ok(())
    }
}

/// A lease in a directory of one machine.
///
/// The directory's lock is the true lease: while this value lives, no other process can take it, and when a process
/// dies its lock goes with it, so that a restart does not wait for a lease to end. The file only remembers the epoch;
/// renewing writes nothing.
///
/// ```text
/// lease:  0  4  crc32c of bytes 4..16     4  4  magic "WLLE"     8  2  version 1     10  2  zero     12  4  epoch
/// ```
#[derive(Debug)]
pub struct FileLease {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    state: Mutex<LeaseState>,
    _lock: Box<dyn Lock>,
}

const LEASE_FILE: &str = "lease";
const LEASE_FILE_NEW: &str = "lease.new";
const LEASE_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"WLLE";
const VERSION: u16 = 1;

impl FileLease {
    /// Takes the lock of `dir`, which is created when it does not exist.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Self, LogError> {
        fs.create_dir_all(dir).map_err(|error| LogError::io("create", dir, error))?;
        let lock = crate::dir::lock(fs.as_ref(), &dir.join("lease.lock"), dir)?;
        let epoch = Self::load(fs.as_ref(), dir)?;
        let state = LeaseState { epoch, ..LeaseState::default() };
        Ok(Self { fs, dir: dir.to_owned(), state: Mutex::new(state), _lock: lock })
    }

    fn load(fs: &dyn FileSystem, dir: &Path) -> Result<u32, LogError> {
        let path = dir.join(LEASE_FILE);
        let names = fs.list(dir).map_err(|error| LogError::io("list", dir, error))?;
        if !names.iter().any(|name| name == LEASE_FILE) {
            return Ok(0);
        }
        let read_error = |error| LogError::io("read", &path, error);
        let file = fs.open(&path).map_err(read_error)?;
        let mut bytes = [0; LEASE_BYTES];
        let count = file.read_at(&mut bytes, 0).map_err(read_error)?;
        let crc = crc32c::crc32c(bytes.get(4..).unwrap_or_default());
        let whole = count == LEASE_BYTES
            && u32_at(&bytes, 0) == Some(crc)
            && array_at(&bytes, 4) == Some(MAGIC)
            && u16_at(&bytes, 8) == Some(VERSION);
        // A lost epoch does no harm, since the log's own epoch is a lower bound; but the file was replaced atomically,
        // so a bad one means that the disk is not to be trusted.
        u32_at(&bytes, 12).filter(|_| whole).ok_or_else(|| {
            let source = std::io::Error::other("the checksum does not match");
            LogError::io("read", &path, source)
        })
    }

    fn store(&self, epoch: u32) -> Result<(), LogError> {
        let mut bytes = [0; LEASE_BYTES];
        put(&mut bytes, 4, &MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 12, &epoch.to_le_bytes());
        let crc = crc32c::crc32c(bytes.get(4..).unwrap_or_default());
        put(&mut bytes, 0, &crc.to_le_bytes());
        crate::dir::replace_file(self.fs.as_ref(), &self.dir, LEASE_FILE_NEW, LEASE_FILE, &bytes)
    }
}

impl Lease for FileLease {
    fn acquire(&self, request: &LeaseRequest<'_>) -> Result<LeaseGrant, LeaseError> {
        let mut state = self.state.lock().expect("no panic while the lease is locked");
        let acquired = state.acquired(request)?;
        self.store(acquired.epoch).map_err(LeaseError::Store)?;
        *state = acquired;
        Ok(LeaseGrant { epoch: state.epoch })
    }

    fn renew(&self, grant: &LeaseGrant, now_ms: u64, ttl_ms: u64) -> Result<(), LeaseError> {
        let mut state = self.state.lock().expect("no panic while the lease is locked");
        *state = state.renewed(grant, now_ms.saturating_add(ttl_ms))?;
        Ok(())
    }
}
