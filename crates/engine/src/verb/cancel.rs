//! Cancel a job, in any state. At once, or cooperatively when its policy says so and a worker has
//! it: then it keeps lease, slot and unique key until its worker has stopped or fallen silent.
//! `force` needs no worker.

use windlass_record::command::CancelJob;
use windlass_record::event::{Event, Outcome};
use windlass_record::policy::CancelPolicy;
use windlass_record::rejection::Rejection;

use crate::lifecycle::{JobState, Verb};
use crate::{Answer, Sink, Step};

/// Decides [`CancelJob`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &CancelJob,
) -> Result<Answer, Rejection> {
    let slot = step.job_of(command.tenant.as_deref(), command.key, Verb::Cancel)?;
    if step.state.flow.element_of_job(command.key).is_some() {
        // Its element would wait for ever: the instance is cancelled, or the element ended by hand.
        let (key, verb) = (command.key, Verb::Cancel.name());
        return Err(Rejection::JobInWrongState { key, state: "part of a process instance", verb });
    }

    // Cannot fail from here.
    let reason = step.message(&command.reason);
    let job = step.state.job(slot);
    let cooperative = match job.cancel_policy() {
        CancelPolicy::AtOnce => false,
        CancelPolicy::Cooperative | CancelPolicy::CooperativeCompletionCounts => true,
    };
    // A lease whose end only raises an alert leaves the job with a worker that fell silent.
    let is_silent = job.due_ms <= step.context.now_ms;
    if job.state != JobState::Active || !cooperative || is_silent || command.force {
        step.end(slot, Outcome::Cancelled, reason);
        return Ok(Answer::Done);
    }
    if !job.cancel_asked() {
        step.emit(&Event::CancelAsked { key: command.key, reason });
    }
    Ok(Answer::CancelPending)
}
