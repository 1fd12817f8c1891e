//! Everything that can go wrong between the command line and the last checkpoint.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use windlass_api_airbyte::vault::VaultError;
use windlass_gateway::GatewayError;
use windlass_log::LogError;
use windlass_partition::{OpenError, StopReason};

/// The settings do not make sense.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named cannot be read.
    #[error("failed to read the configuration file {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not what it should be.
    #[error("failed to understand the configuration file {}", path.display())]
    Parse {
        /// Which.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// Listening where others can reach us needs a word.
    #[error(
        "refusing to listen on {listen}: there is no authentication yet, and everybody who reaches \
         that address could do everything. Listen on a loopback address such as 127.0.0.1:8080, or \
         pass --allow-unauthenticated if the network is trusted"
    )]
    Unauthenticated {
        /// The address.
        listen: SocketAddr,
    },
    /// A number that cannot be used.
    #[error("{setting} must be {must}")]
    Value {
        /// The setting.
        setting: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// Traces were asked of a build that cannot send them.
    #[error(
        "--otlp-endpoint needs a build with the feature `otel`: \
         cargo build --release -p windlass-cli --features otel"
    )]
    NoOtel,
}

/// The server could not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings do not make sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data directory could not be made.
    #[error("failed to create the data directory {}", dir.display())]
    CreateDir {
        /// Which.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is a checkpoint but no log: a new log would hide that records are missing.
    #[error(
        "{} holds a checkpoint, but there is no log in {}: restore the log, or restore a backup \
         into an empty directory", checkpoint.display(), log.display()
    )]
    LogMissing {
        /// The checkpoint that is there.
        checkpoint: PathBuf,
        /// The log that is not.
        log: PathBuf,
    },
    /// The log did not open.
    #[error("failed to open the log in {}", dir.display())]
    Log {
        /// Where.
        dir: PathBuf,
        /// Why.
        source: LogError,
    },
    /// The checkpoint did not open.
    #[error("failed to open the checkpoint in {}", dir.display())]
    Checkpoint {
        /// Where.
        dir: PathBuf,
        /// Why.
        source: windlass_checkpoint::Error,
    },
    /// The state could not be brought back.
    #[error("failed to recover the state in {}", dir.display())]
    Recover {
        /// Where.
        dir: PathBuf,
        /// Why.
        source: OpenError,
    },
    /// The address is taken, or not ours.
    #[error("failed to listen on {listen}")]
    Listen {
        /// Which.
        listen: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Where to say that the server is ready could not be written.
    #[error("failed to write the ready file {}", path.display())]
    ReadyFile {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Signals cannot be heard.
    #[error("failed to listen for signals")]
    Signals(#[source] io::Error),
    /// A queue of the configuration file was refused.
    #[error("failed to seed the queue {queue} of the configuration file")]
    Seed {
        /// Which.
        queue: String,
        /// Why.
        source: GatewayError,
    },
    /// The key that secrets of connectors are sealed with cannot be used.
    #[error("failed to open the vault for secrets of connectors")]
    Vault(#[source] VaultError),
    /// Traces cannot be sent.
    #[error("failed to set up traces: {reason}")]
    Traces {
        /// Why.
        reason: String,
    },
    /// The partition stopped by itself: what was acknowledged is on disk; what was not may be.
    #[error("the partition has stopped; what was acknowledged is safe. Start the server again")]
    Stopped(#[source] StopReason),
    /// The partition stopped and did not say why.
    #[error("the partition has stopped without a reason: this is a defect of Windlass")]
    Vanished,
}

impl ServeError {
    /// Is there something in the data directory that cannot be right?
    pub fn is_damage(&self) -> bool {
        match self {
            ServeError::Log { source, .. } => source.is_damage(),
            ServeError::Checkpoint { source, .. } => source.is_damage(),
            ServeError::Recover { source, .. } => source.is_damage(),
            ServeError::LogMissing { .. } => true,
            ServeError::Config(_)
            | ServeError::CreateDir { .. }
            | ServeError::Listen { .. }
            | ServeError::ReadyFile { .. }
            | ServeError::Signals(_)
            | ServeError::Seed { .. }
            | ServeError::Vault(_)
            | ServeError::Traces { .. }
            | ServeError::Stopped(_)
            | ServeError::Vanished => false,
        }
    }
}
