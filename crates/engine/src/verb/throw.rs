//! Throw an error: a business error that a retry cannot help. An event of the job's flow catches it;
//! where there is none, the job waits for a person.

use windlass_record::bound::Bound;
use windlass_record::command::ThrowError;
use windlass_record::event::{Event, IncidentKind, Outcome};
use windlass_record::flow::{FlowRejection, JobRole};
use windlass_record::rejection::Rejection;

use super::guard::at_most;
use crate::lifecycle::Verb;
use crate::{Answer, Sink, Step};

/// Decides [`ThrowError`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ThrowError,
) -> Result<Answer, Rejection> {
    // An empty code is an error that only a catch-all catches.
    step.optional_name("error code", &command.code)?;
    at_most(Bound::PayloadBytes, command.variables.len(), step.bounds.payload_bytes_max)?;
    let slot = step.job_held(command.lease, Verb::ThrowError)?;

    let brought = windlass_flow::kernel::split(&command.variables)?;
    let role = windlass_flow::kernel::role_of(step, command.lease.key);
    if let Some(role) = role.filter(|role| *role != JobRole::Work) {
        return Err(FlowRejection::ListenerThrows { job: command.lease.key, role }.into());
    }

    // Cannot fail from here.
    let message = step.message(&command.message);
    let key = command.lease.key;
    let mut told = None;
    if step.state.flow.element_of_job(key).is_some() {
        match windlass_flow::kernel::job_threw(step, key, &command.code, message, &brought) {
            Ok(()) => {
                step.end(slot, Outcome::Failed, message);
                return Ok(Answer::Done);
            }
            Err(error) => told = Some(error.message),
        }
    }
    let message = told.as_deref().map_or(message, |told| step.message(told));
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
