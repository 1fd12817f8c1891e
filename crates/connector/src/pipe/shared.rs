//! What the threads of a replication have in common.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::{Failure, Failures};
use crate::journal::Journal;
use crate::observer::Observer;
use crate::pipe::ledger::Ledger;
use crate::pipe::outlet::Beat;
use crate::protocol::catalog::Catalog;

/// Bytes of a line of a log; the rest is cut off.
pub const LOG_BYTES_MAX: usize = 10_000;

/// Handed to every thread.
pub struct Shared<'a> {
    /// The streams.
    pub catalog: &'a Catalog,
    /// The books.
    pub ledger: Mutex<Ledger>,
    /// What went wrong.
    pub failures: Mutex<Failures>,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Where commits go.
    pub journal: &'a dyn Journal,
    /// The last record or state of the source.
    pub source: Beat,
    /// Since when a read from the source waits.
    pub reading: Beat,
    /// Since when a write to the destination waits.
    pub writing: Beat,
    /// The last message of the destination.
    pub destination: Beat,
}

impl std::fmt::Debug for Shared<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("ledger", &self.ledger).finish_non_exhaustive()
    }
}

impl<'a> Shared<'a> {
    /// Nothing happened yet.
    #[must_use]
    pub fn new(
        catalog: &'a Catalog,
        ledger: Ledger,
        observer: &'a dyn Observer,
        journal: &'a dyn Journal,
    ) -> Self {
        Self {
            catalog,
            ledger: Mutex::new(ledger),
            failures: Mutex::new(Failures::default()),
            observer,
            journal,
            source: Beat::default(),
            reading: Beat::default(),
            writing: Beat::default(),
            destination: Beat::default(),
        }
    }

    /// The books; a thread that panicked has left them whole, for it holds them for one entry only.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something went wrong.
    pub fn fail(&self, failure: Failure) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
    }
}

/// A line for a log, bounded; what is no text is replaced.
#[must_use]
pub fn for_log(line: &[u8]) -> String {
    let cut = line.get(..LOG_BYTES_MAX.min(line.len())).unwrap_or_default();
    let mut text = String::from_utf8_lossy(cut).trim_end().to_owned();
    if cut.len() < line.len() {
        text.push_str(&format!("… ({} bytes)", line.len()));
    }
    text
}
