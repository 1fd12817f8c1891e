//! The data directory.
//!
//! ```text
//! log/          the log, see `windlass_log::file`
//! checkpoint/   the checkpoint, see `windlass_checkpoint::local`
//! history.db    the read model, see `windlass_history`; may be deleted while the server is down
//! airbyte.key   what secrets of connectors are sealed with, unless the environment has it; in no backup
//! ```
//!
//! The lock is the log's: one process has the directory at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_checkpoint::{LocalCheckpoint, LocalOptions};
use windlass_gateway::record::id::PartitionId;
use windlass_log::fs::FileSystem;
use windlass_log::{FileLog, FileLogOptions, LifeId, LogError, NewLog};

use crate::error::ServeError;

/// Where the log lies.
pub fn log_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("log")
}

/// Where the checkpoint lies.
pub fn checkpoint_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("checkpoint")
}

/// The file of the read model. Backups do not hold it: it is only what the log said.
pub fn history_path(data_dir: &Path) -> PathBuf {
    data_dir.join("history.db")
}

/// The file of the key that secrets of connectors are sealed with. Backups do not hold it.
pub fn airbyte_key_path(data_dir: &Path) -> PathBuf {
    data_dir.join("airbyte.key")
}

/// What the directory holds, opened.
pub(crate) struct Data {
    pub(crate) log: Arc<FileLog>,
    pub(crate) checkpoint: Arc<LocalCheckpoint>,
}

/// Opens the directory, or makes a new one.
pub(crate) fn open(
    fs: Arc<dyn FileSystem>,
    data_dir: &Path,
    options: FileLogOptions,
) -> Result<Data, ServeError> {
    let log_dir = log_dir(data_dir);
    let checkpoint_dir = checkpoint_dir(data_dir);
    std::fs::create_dir_all(data_dir)
        .map_err(|source| ServeError::CreateDir { dir: data_dir.to_owned(), source })?;
    let log = open_log(fs, &log_dir, &checkpoint_dir, options)?;
    let checkpoint = LocalCheckpoint::open(&checkpoint_dir, &LocalOptions::default())
        .map_err(|source| ServeError::Checkpoint { dir: checkpoint_dir, source })?;
    Ok(Data { log: Arc::new(log), checkpoint: Arc::new(checkpoint) })
}

fn open_log(
    fs: Arc<dyn FileSystem>,
    dir: &Path,
    checkpoint_dir: &Path,
    options: FileLogOptions,
) -> Result<FileLog, ServeError> {
    let failed = |source| ServeError::Log { dir: dir.to_owned(), source };
    let partition = PartitionId::FIRST.get();
    match FileLog::open(Arc::clone(&fs), dir, partition, options) {
        Err(LogError::NotFound { .. }) => {}
        opened => return opened.map_err(failed),
    }
    if checkpoint_dir.exists() {
        let (checkpoint, log) = (checkpoint_dir.to_owned(), dir.to_owned());
        return Err(ServeError::LogMissing { checkpoint, log });
    }
    let new = NewLog { life: LifeId::random(), partition, first_lsn: 1 };
    FileLog::create(fs, dir, &new, options).map_err(failed)
}
