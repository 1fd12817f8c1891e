//! Put a job back: Ready again, or Scheduled until a time. The attempt goes on, retries stay, the
//! slot is free.

use windlass_record::command::ReleaseJob;
use windlass_record::event::{Event, Outcome};
use windlass_record::rejection::Rejection;

use crate::lifecycle::Verb;
use crate::{Answer, Sink, Step};

/// Decides [`ReleaseJob`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ReleaseJob,
) -> Result<Answer, Rejection> {
    step.duration(command.delay_ms)?;
    let slot = step.job_held(command.lease, Verb::Release)?;
    step.lease_lives(slot)?;

    // Cannot fail from here.
    if step.state.job(slot).cancel_asked() {
        step.end(slot, Outcome::Cancelled, "");
        return Ok(Answer::Done);
    }
    let due_ms = match command.delay_ms {
        0 => 0,
        delay_ms => step.context.now_ms.saturating_add(delay_ms),
    };
    step.emit(&Event::JobReleased { key: command.lease.key, due_ms });
    Ok(Answer::Done)
}
