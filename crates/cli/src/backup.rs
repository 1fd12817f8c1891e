//! `windlass backup`: the state of a stopped server as one file.
//!
//! A backup is a checkpoint. What a server wrote to its log behind its last checkpoint is not in it;
//! a server that was stopped in good order leaves nothing there, and after a crash this command says
//! so and refuses.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use windlass_checkpoint::backup::write_backup;
use windlass_checkpoint::{Checkpoint, LocalCheckpoint, LocalOptions, View};
use windlass_log::FrameKind;
use windlass_log::file::inspect;
use windlass_log::fs::OsFileSystem;
use windlass_server::data;

use crate::failure::Failure;
use crate::offline::{DataDir, checkpoint_failure, log_failure, progress_bytes};
use crate::output::Output;
use crate::units::{grouped, moment};

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Where to write it; must not exist
    file: PathBuf,
    #[command(flatten)]
    data: DataDir,
    /// Leave out what stands in the log behind the checkpoint
    #[arg(long)]
    without_log_tail: bool,
}

pub(crate) fn run(args: &BackupArgs, json: bool) -> Result<(), Failure> {
    let data_dir = &args.data.data_dir;
    // The log's lock is the directory's: looking through it proves that no server runs.
    let last_lsn = last_data_lsn(&data::log_dir(data_dir))?;
    let dir = data::checkpoint_dir(data_dir);
    if !dir.exists() {
        return Err(Failure::new(format!("there is no checkpoint in {}", dir.display()))
            .hint("a server writes one when it is stopped in good order"));
    }
    let store = LocalCheckpoint::open(&dir, &LocalOptions::default())
        .map_err(|error| checkpoint_failure(&error))?;
    let lsn = store.stamp().map_or(0, |stamp| stamp.lsn);
    if last_lsn > lsn && !args.without_log_tail {
        return Err(Failure::new(format!(
            "the log goes on to lsn {last_lsn} behind the checkpoint at lsn {lsn}"
        ))
        .hint("start the server and stop it in good order; --without-log-tail leaves that out"));
    }
    let snapshot = store.snapshot().map_err(|error| checkpoint_failure(&error))?;
    let bar = progress_bytes(None, "backing up");
    let summary = write_new(&args.file, |file| {
        write_backup(snapshot.as_ref(), file, |done| bar.set_position(done.bytes))
            .map_err(|error| checkpoint_failure(&error))
    })?;
    bar.finish_and_clear();
    let value = json!({
        "file": args.file,
        "lsn": summary.stamp.lsn,
        "time_ms": summary.stamp.time_ms,
        "entries": summary.entries,
        "bytes": summary.bytes,
    });
    Output { json }.show(&value, || {
        format!(
            "{} holds the state at lsn {} of {}: {} entries, {} bytes\n\
             `windlass restore --check {}` reads it all again",
            args.file.display(),
            summary.stamp.lsn,
            moment(summary.stamp.time_ms),
            grouped(summary.entries),
            grouped(summary.bytes),
            args.file.display(),
        )
    })
}

/// The last lsn that carries data: the frames that announce a writer change no state.
fn last_data_lsn(log_dir: &Path) -> Result<u64, Failure> {
    let mut last = 0;
    let damage = inspect(&OsFileSystem, log_dir, &mut |frame| {
        if frame.kind == FrameKind::Data {
            last = frame.lsn;
        }
    });
    match damage.map_err(|error| log_failure(&error))? {
        Some(damage) => Err(Failure::damaged(damage.to_string())),
        None => Ok(last),
    }
}

/// Writes a file whole and durably, or leaves none.
fn write_new<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error| Failure::io(format!("write {}", path.display()), error);
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let mut buffered = BufWriter::new(&file);
    let written = write(&mut buffered).and_then(|result| {
        buffered.flush().and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(result)
    });
    if written.is_err() {
        // Half a backup must not look like one; that it could not be removed adds nothing.
        let _ = fs::remove_file(path);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new("."))).and_then(|dir| dir.sync_all()).map_err(failed)?;
    written
}
