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
        return Err(Rejection::OutOfRange { field: "retries", must: "from 0 to 2147483647" });
    }
    if let Some(lease_ms) = command.lease_ms {
        step.positive("lease", lease_ms)?;
    }
    let slot = step.job_of(command.tenant.as_deref(), key, Verb::Update)?;
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

#[cfg(test)]
mod tests {
    use windlass_record::command::Command;

    use super::*;
    use crate::verb::check::{Check, job};

    fn nothing(key: windlass_record::id::JobKey) -> UpdateJob {
        UpdateJob {
            key,
            activation: None,
            retries: None,
            priority: None,
            lease_ms: None,
            tenant: None,
        }
    }

    #[test]
    fn each_field_alone() {
        let mut check = Check::new();
        let low = check.create(job("q", "a", 0));
        let high = check.create(job("q", "a", 0));
        check
            .give(Command::UpdateJob(UpdateJob { priority: Some(9), ..nothing(high) }))
            .expect("it lives");
        check
            .give(Command::UpdateJob(UpdateJob { retries: Some(9), ..nothing(low) }))
            .expect("it lives");
        assert_eq!(check.job(low).retries, 9);
        assert_eq!(check.take("q"), Some(high), "its priority is higher now");
        check
            .give(Command::UpdateJob(UpdateJob { lease_ms: Some(5), ..nothing(high) }))
            .expect("it is held");
        assert_eq!(check.job(high).due_ms, check.now_ms + 5, "from now, not added");
        check.pass(5);
        assert_eq!(check.state_of(high), Some(JobState::Ready));
    }

    #[test]
    fn what_is_refused() {
        let mut check = Check::new();
        let key = check.create(job("q", "a", 0));
        let update =
            |lease_ms, retries| Command::UpdateJob(UpdateJob { lease_ms, retries, ..nothing(key) });
        let out_of_range = |field, must| Err(Rejection::OutOfRange { field, must });
        assert_eq!(
            check.give(update(None, Some(-1))),
            out_of_range("retries", "from 0 to 2147483647")
        );
        assert_eq!(check.give(update(Some(0), None)), out_of_range("lease", "at least 1 ms"));
        let verb = Verb::ExtendLease.name();
        let not_leased = Rejection::JobInWrongState { key, state: "ready", verb };
        assert_eq!(check.give(update(Some(5), None)), Err(not_leased));
    }
}
