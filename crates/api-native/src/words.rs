//! Names that both wires use for values of the engine, and what both say about time.

use windlass_record::command::Due;
use windlass_record::event::{IncidentKind, Outcome};

/// The latest time at which a job may be due: the year 2100.
pub(crate) const DUE_MS_MAX: u64 = 4_102_444_800_000;

/// What such a time must be.
pub(crate) const DUE_MUST: &str = "before the year 2100";

/// When a job may be handed out that is due at a time, or after a delay; 0 is "not given".
pub(crate) fn due(due_ms: u64, delay_ms: u64) -> Due {
    match (due_ms, delay_ms) {
        (0, 0) => Due::Now,
        (0, delay_ms) => Due::After(delay_ms),
        (due_ms, _) => Due::At(due_ms),
    }
}

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

/// The view of a job, or of why it waits, if it is this tenant's; whosever it is when none is named.
pub(crate) fn of_tenant<T>(view: Option<T>, asked: Option<&str>, of: fn(&T) -> &str) -> Option<T> {
    view.filter(|view| asked.is_none_or(|asked| asked == of(view)))
}

/// The name of an incident's kind.
pub(crate) fn incident_kind(kind: IncidentKind) -> &'static str {
    match kind {
        IncidentKind::NoRetries => "no-retries",
        IncidentKind::ErrorNotCaught => "error-not-caught",
        IncidentKind::Permanent => "permanent",
        IncidentKind::TooLarge => "too-large",
    }
}
