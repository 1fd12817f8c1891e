//! `windlass serve`: the engine itself.

use windlass_server::{ServeArgs, ServeError};

use crate::failure::Failure;

pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let config = args.config().map_err(|error| Failure::caused(&error))?;
    let listen = config.listen;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start the runtime", error))?;
    let ended = runtime.block_on(windlass_server::serve(config));
    ended.map_err(|error| {
        let failure = failure_of(&error);
        let in_use = is_caused_by_address_in_use(&error);
        if in_use {
            failure.hint(format!(
                "something listens on {listen} already: `windlass status --server http://{listen}` \
                 tells whether it is a server of ours; --listen takes another address"
            ))
        } else {
            failure
        }
    })
}

/// A server that ended by itself has an exit code of its own, for whoever starts it again.
fn failure_of(error: &ServeError) -> Failure {
    match error {
        ServeError::Stopped(_) | ServeError::Vanished => Failure::stopped(error),
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
        | ServeError::Traces { .. } => Failure::caused(error),
    }
}

fn is_caused_by_address_in_use(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::AddrInUse) {
            return true;
        }
        cause = error.source();
    }
    false
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
