//! Throw an error: a business error that a retry cannot help. Nothing catches it yet, so the job
//! waits for a person; flows will look for a catcher first.

use windlass_record::command::ThrowError;
use windlass_record::event::{Event, IncidentKind, Outcome};
use windlass_record::rejection::Rejection;

use crate::lifecycle::Verb;
use crate::{Answer, Sink, Step};

/// Decides [`ThrowError`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ThrowError,
) -> Result<Answer, Rejection> {
    // An empty code is an error that only a catch-all catches.
    step.optional_name("error code", &command.code)?;
    let slot = step.job_held(command.lease, Verb::ThrowError)?;

    // Cannot fail from here.
    let message = step.message(&command.message);
    let job = step.state.job(slot);
    if job.cancel_asked() {
        step.end(slot, Outcome::Cancelled, message);
        return Ok(Answer::Done);
    }
    step.emit(&Event::IncidentRaised {
        key: job.key,
        incident: step.next_key(),
        kind: IncidentKind::ErrorNotCaught,
        retries: job.retries,
        failures: job.failures(),
        code: &command.code,
        message,
    });
    Ok(Answer::Done)
}
