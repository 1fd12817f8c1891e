//! `windlass restore`: a data directory from a backup, or the check of a backup.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use windlass_checkpoint::backup::{restore_backup, verify_backup};
use windlass_checkpoint::{LocalCheckpoint, LocalOptions};
use windlass_log::fs::OsFileSystem;
use windlass_log::{FileLog, FileLogOptions, LifeId, Log, NewLog};
use windlass_record::PartitionId;
use windlass_server::data;

use crate::failure::Failure;
use crate::offline::{DataDir, checkpoint_failure, log_failure, progress_bytes};
use crate::output::Output;
use crate::units::{grouped, moment};

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    file: PathBuf,
    #[command(flatten)]
    data: DataDir,
    /// Only read the backup and check all of it
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &RestoreArgs, json: bool) -> Result<(), Failure> {
    let failed = |error| Failure::io(format!("read {}", args.file.display()), error);
    let file = File::open(&args.file).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let input = BufReader::new(file);
    let bar = progress_bytes(Some(bytes), if args.check { "checking" } else { "restoring" });
    let summary = if args.check {
        verify_backup(input, |done| bar.set_position(done.bytes))
            .map_err(|error| checkpoint_failure(&error))?
    } else {
        check_empty(args)?;
        let dir = data::checkpoint_dir(&args.data.data_dir);
        // Nobody else shares the disk yet: no speed limits.
        let options = LocalOptions { write_bytes_per_second: None, ..LocalOptions::default() };
        std::fs::create_dir_all(&dir)
            .map_err(|error| Failure::io(format!("create {}", dir.display()), error))?;
        let restored = LocalCheckpoint::open(&dir, &options)
            .and_then(|store| restore_backup(input, &store, |done| bar.set_position(done.bytes)));
        restored.map_err(|error| {
            // Half a state is of no use, and would be in the way of the next try.
            let _ = std::fs::remove_dir_all(&dir);
            checkpoint_failure(&error)
        })?
    };
    bar.finish_and_clear();
    let lsn = summary.stamp.lsn;
    if !args.check {
        begin_log(args, lsn)?;
    }
    let value = json!({
        "file": args.file,
        "checked_only": args.check,
        "data_dir": (!args.check).then_some(&args.data.data_dir),
        "lsn": lsn,
        "time_ms": summary.stamp.time_ms,
        "entries": summary.entries,
        "bytes": summary.bytes,
    });
    Output { json }.show(&value, || {
        let what = format!(
            "the state at lsn {lsn} of {}, {} entries",
            moment(summary.stamp.time_ms),
            grouped(summary.entries)
        );
        if args.check {
            format!("{} is whole: {what}", args.file.display())
        } else {
            let dir = args.data.data_dir.display();
            format!("{dir} holds {what}\n`windlass serve --data-dir {dir}` starts it")
        }
    })
}

fn check_empty(args: &RestoreArgs) -> Result<(), Failure> {
    let dir = &args.data.data_dir;
    if data::log_dir(dir).exists() || data::checkpoint_dir(dir).exists() {
        return Err(Failure::new(format!("{} holds data already", dir.display()))
            .hint("restore into a directory that does not exist, with --data-dir"));
    }
    Ok(())
}

/// The log goes on where the backup ends, as a log of its own life.
fn begin_log(args: &RestoreArgs, lsn: u64) -> Result<(), Failure> {
    let new = NewLog {
        life: LifeId::random(),
        partition: PartitionId::FIRST.get(),
        first_lsn: lsn.saturating_add(1),
    };
    let dir = data::log_dir(&args.data.data_dir);
    let log = FileLog::create(Arc::new(OsFileSystem), &dir, &new, FileLogOptions::default());
    let log = log.map_err(|error| log_failure(&error))?;
    log.idle().map_err(|error| log_failure(&error))
}
