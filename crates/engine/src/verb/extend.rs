//! Extend a lease: it ends `lease_ms` after now. Answers whether cancel was asked, so that a
//! heartbeat is how a polling worker learns of it.

use windlass_record::command::ExtendLease;
use windlass_record::event::Event;
use windlass_record::rejection::Rejection;

use crate::lifecycle::Verb;
use crate::{Answer, Sink, Step};

/// Decides [`ExtendLease`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &ExtendLease,
) -> Result<Answer, Rejection> {
    step.positive("lease", command.lease_ms)?;
    let slot = step.job_held(command.lease, Verb::ExtendLease)?;
    step.lease_lives(slot)?;

    // Cannot fail from here.
    let deadline_ms = step.context.now_ms.saturating_add(command.lease_ms);
    step.emit(&Event::LeaseExtended { key: command.lease.key, deadline_ms });
    Ok(Answer::Held { deadline_ms, cancel_asked: step.state.job(slot).cancel_asked() })
}
