//! Resolve an incident: the job is ready for its next attempt, the element goes on. Takes the key of the incident or of
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
        return Err(Rejection::OutOfRange { field: "retries", must: "from 0 to 2147483647" });
    }
    let not_found = || Rejection::IncidentNotFound { key: command.key };
    let tenant = command.tenant.as_deref();
    let of_process = step.state.flow.tenant_of_incident(command.key);
    if tenant.is_some() && of_process.is_some() && tenant != of_process {
        return Err(not_found());
    }
    if windlass_flow::verb::resolve(step, command.key) {
        return Ok(Answer::Done);
    }
    let key = step.state.incident_job(command.key).unwrap_or(command.key);
    let slot = step.state.find(key).ok_or_else(not_found)?;
    let job = step.state.job(slot);
    let is_of = |tenant| step.state.is_of(slot, tenant);
    if job.state != JobState::Incident || !tenant.is_none_or(is_of) {
        return Err(not_found());
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

#[cfg(test)]
mod tests {
    use windlass_record::command::{Command, FailJob, FailureKind, JobOptions};
    use windlass_record::id::JobKey;

    use super::*;
    use crate::verb::check::{Check, failure, job, job_with};

    /// A job in an incident, without retries, and the incident's key.
    fn incident(check: &mut Check) -> (JobKey, JobKey) {
        let key = check.create(job("q", "a", 0));
        check.take("q");
        check.give(Command::FailJob(FailJob { retries: Some(0), ..failure(key) })).expect("held");
        let incident = check.job(key).extra().and_then(|extra| extra.incident.as_ref());
        (key, incident.expect("no retry is left").key)
    }

    #[test]
    fn by_job_or_incident_with_retries_given_or_set_before() {
        for (by_incident, given, set, expected) in [
            (false, None, None, Some(Rejection::NoRetriesLeft { key: JobKey::from_raw(0) })),
            (true, None, None, Some(Rejection::NoRetriesLeft { key: JobKey::from_raw(0) })),
            (true, Some(0), None, Some(Rejection::NoRetriesLeft { key: JobKey::from_raw(0) })),
            (
                true,
                Some(-1),
                None,
                Some(Rejection::OutOfRange { field: "retries", must: "from 0 to 2147483647" }),
            ),
            (false, Some(2), None, None),
            (true, Some(2), None, None),
            (true, None, Some(2), None),
        ] {
            let mut check = Check::new();
            let (key, incident) = incident(&mut check);
            if let Some(retries) = set {
                let update = windlass_record::command::UpdateJob {
                    key,
                    activation: None,
                    retries: Some(retries),
                    priority: None,
                    lease_ms: None,
                    tenant: None,
                };
                check.give(Command::UpdateJob(update)).expect("it lives");
                assert_eq!(check.state_of(key), Some(JobState::Incident), "an update wakes nobody");
            }
            let named = if by_incident { incident } else { key };
            let resolve = ResolveIncident { key: named, retries: given, tenant: None };
            let said = check.give(Command::ResolveIncident(resolve));
            match expected {
                None => {
                    assert_eq!(said, Ok(Answer::Done));
                    assert_eq!(check.take("q"), Some(key));
                    assert_eq!((check.job(key).retries, check.job(key).attempt), (2, 2));
                }
                Some(Rejection::NoRetriesLeft { .. }) => {
                    assert_eq!(said, Err(Rejection::NoRetriesLeft { key }));
                }
                Some(other) => assert_eq!(said, Err(other)),
            }
        }
    }

    #[test]
    fn only_an_incident_that_waits() {
        let mut check = Check::new();
        let (key, incident) = incident(&mut check);
        let resolve =
            |key| Command::ResolveIncident(ResolveIncident { key, retries: Some(1), tenant: None });
        check.give(resolve(incident)).expect("it waits");
        for key in [key, incident, JobKey::from_raw(7)] {
            assert_eq!(check.give(resolve(key)), Err(Rejection::IncidentNotFound { key }));
        }
    }

    /// Attempts with progress are counted by their own rule, not by retries.
    #[test]
    fn attempts_need_no_retries() {
        let mut check = Check::new();
        let options = JobOptions { retry: RetryPolicy::AIRBYTE, ..JobOptions::default() };
        let key = check.create(windlass_record::command::CreateJob {
            retries: 0,
            ..job_with("q", "a", options)
        });
        check.take("q");
        check
            .give(Command::FailJob(FailJob { kind: FailureKind::Permanent, ..failure(key) }))
            .expect("held");
        check
            .give(Command::ResolveIncident(ResolveIncident { key, retries: None, tenant: None }))
            .expect("it waits");
    }
}
