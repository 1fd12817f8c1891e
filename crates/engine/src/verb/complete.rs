//! Complete a job. A late completion counts while nobody else finished: without a token from
//! anybody, with one until the next activation. The second completion finds no job. The listener of a
//! user task may have more to say than that it is done.

use windlass_flow::conductor::job::JobEnd;
use windlass_record::bound::Bound;
use windlass_record::command::{CompleteJob, CompleteListener};
use windlass_record::event::{Event, Outcome};
use windlass_record::id::Payload;
use windlass_record::policy::CancelPolicy;
use windlass_record::rejection::Rejection;

use super::guard::at_most;
use crate::lifecycle::Verb;
use crate::state::job::Slot;
use crate::{Answer, Sink, Step};

/// Decides [`CompleteJob`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &CompleteJob,
) -> Result<Answer, Rejection> {
    at_most(Bound::PayloadBytes, command.result.len(), step.bounds.payload_bytes_max)?;
    let slot = step.job_held(command.lease, Verb::Complete)?;
    step.check_documents(&command.documents)?;
    let key = command.lease.key;
    if step.state.flow.element_of_job(key).is_some() {
        return of_flow(step, command);
    }
    if step.state.flow.workflows().task_of_job(key).is_some() {
        return of_task(step, slot, command);
    }

    // Cannot fail from here.
    let job = step.state.job(slot);
    let cancelled =
        job.cancel_asked() && job.cancel_policy() != CancelPolicy::CooperativeCompletionCounts;
    let result =
        if command.result.is_empty() { Payload::EMPTY } else { step.sink.keep(&command.result) };
    step.put_documents(&command.documents);
    step.emit(&Event::JobEnded {
        key: command.lease.key,
        outcome: if cancelled { Outcome::Cancelled } else { Outcome::Completed },
        result,
        message: "",
    });
    Ok(Answer::Done)
}

/// The job's task is done with the result; the job itself keeps none.
fn of_task<S: Sink>(
    step: &mut Step<'_, S>,
    slot: Slot,
    command: &CompleteJob,
) -> Result<Answer, Rejection> {
    let key = command.lease.key;
    windlass_flow::kernel::split(&command.result)?;

    // Cannot fail from here.
    step.put_documents(&command.documents);
    let now = step.state.task_job_now(slot);
    let end = JobEnd::Completed(&command.result);
    windlass_flow::conductor::job::job_ended(step, key, &now, end);
    let (outcome, message) = (Outcome::Completed, "");
    step.emit(&Event::JobEnded { key, outcome, result: Payload::EMPTY, message });
    Ok(Answer::Done)
}

/// The job's element goes on with the result; the job itself keeps none.
fn of_flow<S: Sink>(step: &mut Step<'_, S>, command: &CompleteJob) -> Result<Answer, Rejection> {
    let key = command.lease.key;
    let result = windlass_flow::kernel::split(&command.result)?;
    windlass_flow::kernel::check_listener(step, key, &result, None)?;

    // Cannot fail from here.
    step.put_documents(&command.documents);
    let (outcome, message) = (Outcome::Completed, "");
    step.emit(&Event::JobEnded { key, outcome, result: Payload::EMPTY, message });
    windlass_flow::kernel::job_completed(step, key, &result);
    Ok(Answer::Done)
}

/// Decides [`CompleteListener`].
pub(super) fn decide_listener<S: Sink>(
    step: &mut Step<'_, S>,
    command: &CompleteListener,
) -> Result<Answer, Rejection> {
    let key = command.lease.key;
    at_most(Bound::PayloadBytes, command.result.len(), step.bounds.payload_bytes_max)?;
    at_most(Bound::PayloadBytes, command.says.bytes(), step.bounds.payload_bytes_max)?;
    step.job_held(command.lease, Verb::Complete)?;
    let result = windlass_flow::kernel::split(&command.result)?;
    windlass_flow::kernel::check_listener(step, key, &result, Some(&command.says))?;

    // Cannot fail from here.
    let (outcome, message) = (Outcome::Completed, "");
    step.emit(&Event::JobEnded { key, outcome, result: Payload::EMPTY, message });
    windlass_flow::kernel::listener_answered(step, key, Some(&command.says));
    Ok(Answer::Done)
}
