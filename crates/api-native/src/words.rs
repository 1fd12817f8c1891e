//! Names that both wires use for values of the engine.

use windlass_record::event::{IncidentKind, Outcome};

/// The name of an outcome.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::CompletedWithErrors => "completed-with-errors",
        Outcome::Failed => "failed",
        Outcome::FailedForGood => "failed-for-good",
        Outcome::TimedOut => "timed-out",
        Outcome::Cancelled => "cancelled",
        Outcome::Skipped => "skipped",
    }
}

/// The name of an incident's kind.
pub(crate) fn incident_kind(kind: IncidentKind) -> &'static str {
    match kind {
        IncidentKind::NoRetries => "no-retries",
        IncidentKind::ErrorNotCaught => "error-not-caught",
        IncidentKind::Permanent => "permanent",
    }
}
