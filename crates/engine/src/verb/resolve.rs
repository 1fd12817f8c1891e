//! Resolve an incident: the job is ready for its next attempt. Takes the key of the incident or of
//! its job, and refuses a job that has no retries left unless the command brings some.

use windlass_record::command::ResolveIncident;
use windlass_record::event::Event;
use windlass_record::policy::RetryPolicy;
use windlass_record::rejection::Rejection;

use crate::lifecycle::JobState;
use crate::{Answer, Sink, Step};

/// Decides [`ResolveIncident`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ResolveIncident,
) -> Result<Answer, Rejection> {
    if command.retries.is_some_and(|retries| retries < 0) {
        return Err(Rejection::OutOfRange { field: "retries" });
    }
    let not_found = Rejection::IncidentNotFound { key: command.key };
    let key = step.state.incident_job(command.key).unwrap_or(command.key);
    let slot = step.state.find(key).ok_or(not_found)?;
    let job = step.state.job(slot);
    if job.state != JobState::Incident {
        return Err(not_found);
    }
    let retries = command.retries.unwrap_or(job.retries);
    let counts_retries = !matches!(job.retry_policy(), RetryPolicy::Attempts { .. });
    if retries <= 0 && counts_retries {
        return Err(Rejection::NoRetriesLeft { key });
    }

    // Cannot fail from here.
    let attempt = job.attempt.saturating_add(1);
    step.emit(&Event::IncidentResolved { key, retries, attempt });
    Ok(Answer::Done)
}
