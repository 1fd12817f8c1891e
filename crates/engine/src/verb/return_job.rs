//! Take back a job that was handed to a connection which died before it was sent. The job is ready
//! at once in its old place; its group gets its turn back, the keys their places; only the number
//! of the activation is spent. Several are to be returned in the reverse order of their hand-out,
//! so that turn and counter end as they began.

use windlass_record::command::{Lease, ReturnJob};
use windlass_record::event::{Event, Outcome};
use windlass_record::rejection::Rejection;

use crate::lifecycle::Verb;
use crate::{Answer, Sink, Step};

/// Decides [`ReturnJob`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ReturnJob,
) -> Result<Answer, Rejection> {
    let slot = step.job_held(Lease::from(command.token), Verb::Return)?;

    // Cannot fail from here.
    if step.state.job(slot).cancel_asked() {
        step.end(slot, Outcome::Cancelled, "");
        return Ok(Answer::Done);
    }
    step.emit(&Event::JobReturned {
        key: command.token.key,
        turn: command.turn,
        scheme_count: command.scheme_count,
    });
    Ok(Answer::Done)
}
