//! The way to the daemon.

use std::error::Error;
use std::future::Future;
use std::io;

use bollard::{API_DEFAULT_VERSION, Docker};
use thiserror::Error;

/// Names the daemon's socket.
pub const HOST: &str = "DOCKER_HOST";
/// Where it is otherwise.
const DEFAULT: &str = "unix:///var/run/docker.sock";
/// Until the daemon begins to answer.
const ANSWER_SECONDS_MAX: u64 = 120;

/// What Docker did not do.
#[derive(Debug, Error)]
pub enum DockerError {
    /// Nobody is there.
    #[error("no Docker daemon answers at {address} ({why}); DOCKER_HOST names another socket")]
    NoDaemon {
        /// Where one looked.
        address: String,
        /// What the system said.
        why: String,
    },
    /// It is somewhere else.
    #[error("DOCKER_HOST is {0}, but only sockets of this machine (unix://…) are supported")]
    NoSocket(String),
    /// There is no such image.
    #[error("the image {image} is not here and cannot be pulled: {why}")]
    NoImage {
        /// Which one.
        image: String,
        /// What the daemon said.
        why: String,
        /// No other attempt will find it either.
        is_final: bool,
    },
    /// It is no connector.
    #[error("the image {0} has neither an ENTRYPOINT nor AIRBYTE_ENTRYPOINT: it is no connector")]
    NoConnector(String),
    /// The daemon refused.
    #[error("failed to {what}: {why}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        why: String,
    },
    /// Somebody cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl DockerError {
    pub(super) fn refused(what: &'static str) -> impl FnOnce(bollard::errors::Error) -> Self {
        move |error| Self::Refused { what, why: words(&error) }
    }
}

/// Where the daemon of this machine is.
#[must_use]
pub fn address() -> String {
    std::env::var(HOST).ok().filter(|host| !host.is_empty()).unwrap_or_else(|| DEFAULT.to_owned())
}

/// A daemon that has answered.
pub(super) async fn connect() -> Result<Docker, DockerError> {
    let address = address();
    let Some(path) = address.strip_prefix("unix://") else {
        return Err(DockerError::NoSocket(address));
    };
    let none = |error: bollard::errors::Error| {
        let why = words(&error);
        DockerError::NoDaemon { address: address.clone(), why }
    };
    let docker = Docker::connect_with_unix(path, ANSWER_SECONDS_MAX, API_DEFAULT_VERSION);
    // Daemons speak older versions than we do.
    docker.map_err(none)?.negotiate_version().await.map_err(none)
}

/// An error with its reasons.
pub(super) fn words(error: &bollard::errors::Error) -> String {
    if let bollard::errors::Error::DockerResponseServerError { message, .. } = error {
        return message.clone();
    }
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(reason) = inner {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        inner = reason.source();
    }
    text
}

/// Asks on this thread, which must not be one of a runtime.
pub(super) fn block_on<T>(
    ask: impl Future<Output = Result<T, DockerError>>,
) -> Result<T, DockerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed =
        |error: io::Error| DockerError::Refused { what: "ask the daemon", why: error.to_string() };
    runtime.map_err(failed)?.block_on(ask)
}
