//! A lock that connectors inherit: as long as one process of an attempt lives that was started with it, nobody
//! else has it. So two attempts of one connection never run at once, whatever was killed.
//!
//! Programs that close what they do not know (Python does, in the children that it starts) do not hold it; those
//! are found by [`sweep`](crate::process::sweep) before anything is started.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use thiserror::Error;

/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that is not ours.
#[derive(Debug, Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("{} is held by another attempt", .0.display())]
    Held(PathBuf),
    /// The system does not let us.
    #[error("failed to lock {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Held until it is dropped, and every process that was started meanwhile has ended.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it, waiting for others that long. From then on every process that this one starts inherits it.
    ///
    /// # Errors
    /// If others have it for longer, or the file cannot be opened.
    pub fn take(path: &Path, patience: Duration) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let began = Instant::now();
        let file = loop {
            match try_hold(path).map_err(io)? {
                Some(file) => break file,
                None if began.elapsed() > patience => return Err(LockError::Held(path.to_owned())),
                None => std::thread::sleep(PAUSE),
            }
        };
        fcntl_setfd(&file, FdFlags::empty()).map_err(|error| io(error.into()))?;
        Ok(Self { _file: file })
    }
}

/// Locks a file, which is made, for this process and not for those that it starts; `None` if somebody
/// else holds it.
pub(crate) fn try_hold(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
