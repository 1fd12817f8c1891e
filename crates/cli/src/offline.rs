//! What the commands for a stopped server share.

use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use windlass_log::LogError;

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct DataDir {
    /// Data directory of the server, which must be stopped
    #[arg(long, env = "WINDLASS_DATA_DIR", default_value = "windlass-data", value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
}

/// Counts bytes of a known or unknown total.
pub(crate) fn progress_bytes(total: Option<u64>, what: &'static str) -> ProgressBar {
    let template = match total {
        Some(_) => "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
        None => "{spinner} {msg} {bytes}, {bytes_per_sec}",
    };
    let style = ProgressStyle::with_template(template);
    let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what)
}

pub(crate) fn log_failure(error: &LogError) -> Failure {
    match error {
        LogError::Locked { .. } => {
            Failure::caused(error).hint("a server runs on this data directory: stop it first")
        }
        LogError::NotFound { .. } => Failure::caused(error)
            .hint("--data-dir names the directory that `windlass serve` was given"),
        error if error.is_damage() => Failure::damaged(error.to_string()),
        LogError::AlreadyExists { .. }
        | LogError::NoEpochOpen
        | LogError::EpochTooLow { .. }
        | LogError::Fenced { .. }
        | LogError::NotNext { .. }
        | LogError::WrongLog { .. }
        | LogError::EmptyBatch
        | LogError::BatchTooLarge { .. }
        | LogError::Trimmed { .. }
        | LogError::BehindEnd { .. }
        | LogError::InvalidOption(_)
        | LogError::NoSpace
        | LogError::WriteFailed(_)
        | LogError::Poisoned
        | LogError::Damaged(_)
        | LogError::UnsupportedVersion { .. }
        | LogError::Io { .. } => Failure::caused(error),
    }
}

pub(crate) fn checkpoint_failure(error: &windlass_checkpoint::Error) -> Failure {
    let failure = Failure::caused(error);
    if error.is_damage() { Failure::damaged(error.to_string()) } else { failure }
}
