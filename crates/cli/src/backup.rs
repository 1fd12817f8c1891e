//! `windlass backup`: the state of a server as one file, while it runs; or, with `--data-dir`, the
//! state of a stopped one.
//!
//! A backup is a checkpoint. A running server writes one for it. What a stopped server wrote to its
//! log behind its last checkpoint is not in it; a server that was stopped in good order leaves
//! nothing there, and after a crash this command says so and refuses.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use windlass_checkpoint::backup::{Summary, verify_backup, write_backup};
use windlass_checkpoint::{Checkpoint, LocalCheckpoint, LocalOptions, View};
use windlass_log::FrameKind;
use windlass_log::file::inspect;
use windlass_log::fs::OsFileSystem;
use windlass_server::data;

use crate::args::Online;
use crate::failure::Failure;
use crate::offline::{checkpoint_failure, log_failure, progress_bytes};
use crate::output::Output;
use crate::units::{grouped, moment};

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Where to write it; must not exist
    file: PathBuf,
    /// Back up this data directory of a stopped server instead of asking a running one
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Leave out what stands in the log behind the checkpoint of a stopped server
    #[arg(long, requires = "data_dir")]
    without_log_tail: bool,
}

impl BackupArgs {
    /// Whether a running server is to be asked.
    pub(crate) fn online(&self) -> bool {
        self.data_dir.is_none()
    }
}

/// Asks a running server.
pub(crate) async fn run_online(online: &Online, args: &BackupArgs) -> Result<(), Failure> {
    let address = online.address.clone();
    let bar = progress_bytes(None, "backing up");
    let uri = format!("{}/windlass/v1/backup", address.trim_end_matches('/'));
    let uri = uri.parse().map_err(|_| Failure::new(format!("{uri} is not an address")))?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let unreachable = |error: &dyn std::error::Error| Failure::caused(error).at(&address);
    let answer = client.get(uri).await.map_err(|error| unreachable(&error))?;
    let status = answer.status();
    let mut body = answer.into_body();
    if !status.is_success() {
        let said = body.collect().await.map_err(|error| unreachable(&error))?.to_bytes();
        let said = String::from_utf8_lossy(&said).into_owned();
        return Err(Failure::new(format!("the server answered {status}: {said}")));
    }
    let file = write_new(&args.file, |_file| Ok(())).and_then(|()| {
        let opened = OpenOptions::new().write(true).open(&args.file);
        opened.map_err(|error| Failure::io(format!("write {}", args.file.display()), error))
    })?;
    let received = async {
        let mut file = BufWriter::new(&file);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreachable(&error))?;
            let Some(part) = frame.data_ref() else { continue };
            file.write_all(part)
                .map_err(|error| Failure::io(format!("write {}", args.file.display()), error))?;
            bar.inc(u64::try_from(part.len()).unwrap_or(0));
        }
        let flushed = file.flush().and_then(|()| file.get_ref().sync_all());
        flushed.map_err(|error| Failure::io(format!("write {}", args.file.display()), error))?;
        verify(&args.file)
    };
    let verified = received.await;
    bar.finish_and_clear();
    let summary = verified.inspect_err(|_| {
        // Half a backup must not look like one; that it could not be removed adds nothing.
        let _ = fs::remove_file(&args.file);
    })?;
    show(&args.file, &summary, online.out.json)
}

/// Reads a backup whole: one that was cut short has no end.
fn verify(path: &Path) -> Result<Summary, Failure> {
    let file =
        File::open(path).map_err(|error| Failure::io(format!("read {}", path.display()), error))?;
    verify_backup(std::io::BufReader::new(file), |_| {}).map_err(|error| checkpoint_failure(&error))
}

/// Reads the directory of a stopped server.
pub(crate) fn run_offline(args: &BackupArgs, json: bool) -> Result<(), Failure> {
    let Some(data_dir) = &args.data_dir else {
        return Err(Failure::new("--data-dir names the directory of a stopped server"));
    };
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
    show(&args.file, &summary, json)
}

fn show(file: &Path, summary: &Summary, json: bool) -> Result<(), Failure> {
    let value = json!({
        "file": file,
        "lsn": summary.stamp.lsn,
        "time_ms": summary.stamp.time_ms,
        "entries": summary.entries,
        "bytes": summary.bytes,
    });
    Output { json }.show(&value, || {
        format!(
            "{} holds the state at lsn {} of {}: {} entries, {} bytes\n\
             `windlass restore --check {}` reads it all again",
            file.display(),
            summary.stamp.lsn,
            moment(summary.stamp.time_ms),
            grouped(summary.entries),
            grouped(summary.bytes),
            file.display(),
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
