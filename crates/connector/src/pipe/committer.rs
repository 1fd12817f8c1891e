//! Makes durable what was acknowledged: one commit at a time, and the next has all that came meanwhile.

use std::sync::mpsc::Receiver;

use crate::failure::{Failure, FailureType, Origin};
use crate::observer;
use crate::pipe::shared::Shared;

/// Commits until nobody can bring news any more.
///
/// # Errors
/// If a commit does not become durable.
pub fn run(shared: &Shared<'_>, news: &Receiver<()>) -> Result<(), Box<Failure>> {
    while news.recv().is_ok() {
        commit(shared)?;
    }
    // What came between the last commit and the end.
    commit(shared)
}

fn commit(shared: &Shared<'_>) -> Result<(), Box<Failure>> {
    let Some(commit) = shared.ledger().take_commit() else { return Ok(()) };
    shared.journal.commit(&commit).map_err(|error| {
        let message = "what the destination acknowledged could not be kept";
        let failure = Failure::new(Origin::Persistence, FailureType::SystemError, message);
        Box::new(failure.internal(error.message))
    })?;
    shared.ledger().committed(commit, observer::now_ms());
    Ok(())
}
