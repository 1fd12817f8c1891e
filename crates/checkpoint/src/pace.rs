//! A speed limit for background writing.
//!
//! A checkpoint that writes as fast as the disk can makes the log's syncs wait behind it. So whoever
//! writes a checkpoint, or merges old ones, spends its bytes here and sleeps when it is ahead. Time is
//! used for nothing else in this crate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes spent between two looks at the clock: small against a second's worth, large against an entry.
const CHUNK_BYTES: u64 = 256 << 10;

/// Unused time is kept up to this long, then forgotten: an idle hour buys no burst.
const BURST: Duration = Duration::from_millis(20);

/// Longest sleep before the stop sign is looked at again.
const NAP: Duration = Duration::from_millis(20);

/// The limit, shared by everyone it holds for.
#[derive(Debug)]
pub(crate) struct Pace {
    bytes_per_second: Option<u64>,
    /// When everything spent so far is paid for.
    paid_at: Mutex<Instant>,
    stopped: AtomicBool,
}

impl Pace {
    pub(crate) fn new(bytes_per_second: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            bytes_per_second,
            paid_at: Mutex::new(Instant::now()),
            stopped: AtomicBool::new(false),
        })
    }

    /// Whoever sleeps here wakes up, and nobody sleeps again: the store is closing.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn pay(&self, bytes: u64) {
        let Some(bytes_per_second) = self.bytes_per_second else { return };
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_second.max(1));
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let paid_at = {
            let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
            let earliest = Instant::now().checked_sub(BURST).unwrap_or(*paid_at);
            *paid_at = earliest.max(*paid_at) + cost;
            *paid_at
        };
        loop {
            let ahead = paid_at.saturating_duration_since(Instant::now());
            if ahead.is_zero() || self.is_stopped() {
                return;
            }
            std::thread::sleep(ahead.min(NAP));
        }
    }
}

/// One spender's running account; cheap to call for every entry.
#[derive(Debug)]
pub(crate) struct Purse {
    pace: Arc<Pace>,
    owed: u64,
}

impl Purse {
    pub(crate) fn new(pace: &Arc<Pace>) -> Self {
        Self { pace: Arc::clone(pace), owed: 0 }
    }

    pub(crate) fn spend(&mut self, bytes: u64) {
        self.owed += bytes;
        if self.owed >= CHUNK_BYTES {
            self.pace.pay(self.owed);
            self.owed = 0;
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.pace.is_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending_takes_its_time_and_no_limit_takes_none() {
        let spend = |limit| {
            let mut purse = Purse::new(&Pace::new(limit));
            let start = Instant::now();
            for _ in 0..20_000 {
                purse.spend(500);
            }
            start.elapsed()
        };
        let limited = spend(Some(100_000_000));
        assert!(limited >= Duration::from_millis(70), "10 MB at 100 MB/s took {limited:?}");
        assert!(spend(None) < limited);
    }

    #[test]
    fn a_stopped_pace_lets_everyone_go() {
        let pace = Pace::new(Some(1));
        pace.stop();
        Purse::new(&pace).spend(u64::from(u32::MAX));
    }
}
