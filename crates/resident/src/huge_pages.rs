//! Huge pages, once there is something to put into them.
//!
//! The allocator asks for them wherever it allocates. That takes about a seventh off the processor
//! time of a server at work, but an idle one touches a few bytes in each of several and pays 2 MiB
//! every time. So a server begins without, and gets them when it grows.

use std::fs;
use std::time::Duration;

use rustix::param::page_size;
use rustix::thread::disable_transparent_huge_pages;

/// Memory of its own of a server that has something to do; an idle one has less. Its program is not
/// counted: how much of that the kernel maps is the kernel's affair.
const AT_WORK_BYTES: usize = 14 << 20;
/// How often it is looked at until then.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Keeps the process from getting huge pages. False where that cannot be said; then nothing changes.
pub fn hold_back() -> bool {
    disable_transparent_huge_pages(true).is_ok()
}

/// Lets it have them from when it grows.
pub async fn allow_at_work() {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    while own_bytes().is_some_and(|bytes| bytes < AT_WORK_BYTES) {
        looks.tick().await;
    }
    if let Err(error) = disable_transparent_huge_pages(false) {
        tracing::warn!(error = &error as &dyn std::error::Error, "failed to allow huge pages");
    }
}

/// Resident memory that is of no file.
fn own_bytes() -> Option<usize> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = statm.split_ascii_whitespace().skip(1).map(str::parse::<usize>);
    let (resident, of_files) = (pages.next()?.ok()?, pages.next()?.ok()?);
    Some(resident.saturating_sub(of_files) * page_size())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_size_of_this_process_can_be_read() {
        assert!(super::own_bytes().is_some_and(|bytes| bytes > 1 << 16));
    }
}
