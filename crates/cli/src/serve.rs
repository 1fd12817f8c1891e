//! `windlass serve`: the engine itself.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use windlass_resident::{huge_pages, program};
use windlass_server::{ServeArgs, ServeError};

use crate::failure::Failure;

/// From when a server answers until its first looks at everything are done.
const START_ENDS_IN: Duration = Duration::from_secs(1);

pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let mut config = args.config().map_err(|error| Failure::caused(&error))?;
    config.sandbox_program = std::env::current_exe().ok();
    let main = config.listen;
    let held_back = huge_pages::hold_back();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start the runtime", error))?;
    if held_back {
        runtime.spawn(huge_pages::allow_at_work());
    }
    let ready = || drop(runtime.spawn(give_program_back()));
    let ended = runtime.block_on(windlass_server::serve(config, ready));
    ended.map_err(|error: ServeError| {
        let failure = failure_of(&error);
        match address_in_use(&error) {
            Some(listen) if listen == main => failure.hint(format!(
                "something listens on {listen} already: `windlass status --server http://{listen}` \
                 tells whether it is a server of ours; --listen takes another address"
            )),
            Some(listen) => failure.hint(format!(
                "something listens on {listen} already, perhaps a Zeebe gateway or another server \
                 of ours; --zeebe-listen takes another address, or off"
            )),
            None => failure,
        }
    })
}

/// Once the last of the start is done.
async fn give_program_back() {
    tokio::time::sleep(START_ENDS_IN).await;
    match program::give_back() {
        Ok(bytes) => tracing::debug!(bytes, "what the start ran of the program is given back"),
        Err(error) => {
            tracing::warn!(error = &error as &dyn Error, "failed to give the program's pages back");
        }
    }
}

/// The address that somebody else listens on.
fn address_in_use(error: &ServeError) -> Option<SocketAddr> {
    let ServeError::Listen { listen, source } = error else { return None };
    (source.kind() == std::io::ErrorKind::AddrInUse).then_some(*listen)
}

/// A server that ended by itself has an exit code of its own, for whoever starts it again.
fn failure_of(error: &ServeError) -> Failure {
    match error {
        ServeError::Stopped(_) | ServeError::Vanished => Failure::stopped(error),
        ServeError::Log { source, .. } if source.is_damage() => Failure::damaged_by(error).hint(
            "`windlass log verify` says what is wrong with the log, `windlass log repair` cuts it \
             off there; `windlass restore` makes a new data directory of a backup",
        ),
        error if error.is_damage() => Failure::damaged_by(error).hint(
            "`windlass log verify` says what is wrong with the log and with the checkpoint; `windlass \
             restore` makes a new data directory of a backup",
        ),
        ServeError::Config(_)
        | ServeError::CreateDir { .. }
        | ServeError::LogMissing { .. }
        | ServeError::Log { .. }
        | ServeError::Checkpoint { .. }
        | ServeError::Recover { .. }
        | ServeError::Listen { .. }
        | ServeError::ReadyFile { .. }
        | ServeError::Signals(_)
        | ServeError::Seed { .. }
        | ServeError::Vault(_)
        | ServeError::Traces { .. } => Failure::caused(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::process::ExitCode;

    use windlass_log::LogError;
    use windlass_server::StopReason;

    use super::*;

    /// A supervisor can tell a disk that failed from a command line that is wrong.
    #[test]
    fn a_failed_sync_has_an_exit_code_of_its_own() {
        let io = io::Error::other("the disk is gone");
        let failed = ServeError::Stopped(StopReason::Log(LogError::WriteFailed(io)));
        let failure = failure_of(&failed);
        let words = failure.to_string();
        for part in ["the partition has stopped", "failed to write the log", "the disk is gone"] {
            assert!(words.contains(part), "{part} is missing in: {words}");
        }
        assert_eq!(format!("{:?}", failure.report(false)), format!("{:?}", ExitCode::from(6)));
    }
}
