//! Open files: every connection is one, and where there are none left, neither a checkpoint nor a new
//! segment of the log can be written. So there are always some that no connection can take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are not connections: the log, checkpoints, the history, programs that were started.
const OWN_FILES: u64 = 1_024;

/// Raises the process's limit of open files, as far as it may, so that this many connections fit on
/// each of so many ports. Returns how many do.
pub(crate) fn make_room(connections_max: usize, ports: usize) -> usize {
    let wanted = connections_max.saturating_mul(ports);
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(OWN_FILES);
    let limit = getrlimit(Resource::Nofile);
    let mut files_max = limit.current.unwrap_or(u64::MAX);
    if files_max < wanted {
        let raised = limit.maximum.unwrap_or(u64::MAX).min(wanted);
        match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }) {
            Ok(()) => files_max = raised,
            Err(error) => tracing::warn!(%error, "failed to raise the limit of open files"),
        }
    }
    let fit = connections_that_fit(files_max, connections_max, ports);
    if fit < connections_max {
        tracing::warn!(
            files_max,
            asked = connections_max,
            connections_max = fit,
            "the limit of open files is too low for all connections; taking fewer at once"
        );
    }
    fit
}

/// How many connections fit on each port below this limit; at least one.
fn connections_that_fit(files_max: u64, connections_max: usize, ports: usize) -> usize {
    let own = OWN_FILES.min(files_max / 2);
    let left = usize::try_from(files_max - own).unwrap_or(usize::MAX);
    connections_max.min(left / ports.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_our_own_are_left() {
        assert_eq!(connections_that_fit(21_024, 10_000, 2), 10_000);
        assert_eq!(connections_that_fit(u64::MAX, 10_000, 2), 10_000);
        assert_eq!(connections_that_fit(4_096, 10_000, 1), 3_072);
        assert_eq!(connections_that_fit(1_024, 10_000, 2), 256);
        assert_eq!(connections_that_fit(3, 10_000, 2), 1);
    }
}
