//! Huge pages, once there is something to put into them.
//!
//! The allocator asks for them wherever it allocates. That takes about a seventh off the processor
//! time of a server at work, but an idle one touches a few bytes in each of several and pays 2 MiB
//! every time. So a server begins without, and gets them when it grows.

use std::fs;
use std::time::Duration;

use rustix::param::page_size;
use rustix::thread::disable_transparent_huge_pages;

/// Memory of a server that has something to do; an idle one has less.
const AT_WORK_BYTES: usize = 28 << 20;
/// How often it is looked at until then.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Keeps the process from getting huge pages. False where that cannot be said; then nothing changes.
pub(crate) fn hold_back() -> bool {
    disable_transparent_huge_pages(true).is_ok()
}

/// Lets it have them from when it grows.
pub(crate) async fn allow_at_work() {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    while resident_bytes().is_some_and(|bytes| bytes < AT_WORK_BYTES) {
        looks.tick().await;
    }
    if let Err(error) = disable_transparent_huge_pages(false) {
        tracing::warn!(error = &error as &dyn std::error::Error, "failed to allow huge pages");
    }
}

fn resident_bytes() -> Option<usize> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * page_size())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_size_of_this_process_can_be_read() {
        assert!(super::resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
