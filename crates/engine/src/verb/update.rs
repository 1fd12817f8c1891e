//! Update a job's retries, its priority, or the end of its lease. None of them makes an incident
//! ready or resolves it. Needs no token; a wrong one is refused.

use windlass_record::command::UpdateJob;
use windlass_record::event::Event;
use windlass_record::rejection::Rejection;

use crate::lifecycle::{JobState, Verb};
use crate::{Answer, Sink, Step};

/// Decides [`UpdateJob`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &UpdateJob,
) -> Result<Answer, Rejection> {
    let key = command.key;
    if command.retries.is_some_and(|retries| retries < 0) {
        return Err(Rejection::OutOfRange { field: "retries" });
    }
    if let Some(lease_ms) = command.lease_ms {
        step.positive("lease", lease_ms)?;
    }
    let slot = step.job_for(key, Verb::Update)?;
    let job = step.state.job(slot);
    if let Some(given) = command.activation
        && given != job.activation
    {
        return Err(Rejection::TokenStale { key, given, current: job.activation });
    }
    if command.lease_ms.is_some() && job.state != JobState::Active {
        let verb = Verb::ExtendLease.name();
        return Err(Rejection::JobInWrongState { key, state: job.state.name(), verb });
    }

    // Cannot fail from here.
    let retries = command.retries.unwrap_or(job.retries);
    let priority = command.priority.unwrap_or_else(|| step.state.priority(slot));
    let deadline_ms = command.lease_ms.map(|lease_ms| step.context.now_ms.saturating_add(lease_ms));
    step.emit(&Event::JobUpdated { key, retries, priority, deadline_ms });
    Ok(Answer::Done)
}
