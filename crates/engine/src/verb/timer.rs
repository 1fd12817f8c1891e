//! What time does: leases end, backoffs end, deadlines pass, rate windows free, timers of flows
//! fire, schedules are due.

use windlass_record::event::{DeadlineKind, Event, Outcome, ReadyCause};
use windlass_record::policy::DeadlineOutcome;

use super::fail::AttemptFailed;
use super::schedule;
use crate::lifecycle::JobState;
use crate::state::deadline_of;
use crate::state::job::{Flags, Slot};
use crate::{Sink, Step};

/// Does what is due, at most `steps_max` times; returns how often.
pub(crate) fn fire<S: Sink>(step: &mut Step<'_, S>, steps_max: usize) -> usize {
    let now_ms = step.context.now_ms;
    for done in 0..steps_max {
        if let Some(slot) = step.state.wheel.due(&mut step.state.jobs, now_ms) {
            fire_job(step, slot);
            continue;
        }
        if let Some(&(at_ms, limit)) = step.state.rate_wakes.first()
            && at_ms <= now_ms
        {
            step.emit(&Event::RateFreed { limit });
            continue;
        }
        if !windlass_flow::kernel::fire(step) && !schedule::fire(step) {
            return done;
        }
    }
    steps_max
}

/// Does the most far-reaching thing that is due about a job, or sets its wheel entry right.
fn fire_job<S: Sink>(step: &mut Step<'_, S>, slot: Slot) {
    let now_ms = step.context.now_ms;
    let job = step.state.job(slot);
    for kind in [DeadlineKind::Total, DeadlineKind::Attempt, DeadlineKind::Waiting] {
        if let Some((at_ms, outcome)) = deadline_of(job, kind)
            && at_ms <= now_ms
        {
            deadline_passed(step, slot, kind, outcome);
            return;
        }
    }
    if job.due_ms > now_ms {
        step.state.reset_wake(slot);
        return;
    }
    let key = job.key;
    match job.state {
        JobState::Scheduled => step.emit(&Event::JobReadied { key, cause: ReadyCause::Due }),
        JobState::Backoff => step.emit(&Event::JobReadied { key, cause: ReadyCause::BackoffEnded }),
        JobState::Active if job.flags.has(Flags::ALERTED_LEASE) => step.state.reset_wake(slot),
        JobState::Active => {
            let outcome = job.deadlines().lease;
            deadline_passed(step, slot, DeadlineKind::Lease, outcome);
        }
        JobState::Ready | JobState::Incident => step.state.reset_wake(slot),
        JobState::Completed | JobState::Failed | JobState::Cancelled | JobState::Vacant => {
            unreachable!("jobs at rest are not in the wheel")
        }
    }
}

fn deadline_passed<S: Sink>(
    step: &mut Step<'_, S>,
    slot: Slot,
    kind: DeadlineKind,
    outcome: DeadlineOutcome,
) {
    let job = step.state.job(slot);
    let (key, cancel_asked) = (job.key, job.cancel_asked());
    let words = match kind {
        DeadlineKind::Lease => "the lease ended",
        DeadlineKind::Waiting => "nobody took the job in time",
        DeadlineKind::Attempt => "the attempt took too long",
        DeadlineKind::Total => "the job took too long",
    };
    match (kind, outcome) {
        (_, DeadlineOutcome::End) if step.state.flow.workflows().task_of_job(key).is_some() => {
            let now = step.state.task_job_now(slot);
            if windlass_flow::conductor::job::job_timed_out(step, key, &now, kind) {
                step.end(slot, Outcome::TimedOut, words);
            } else {
                // Its workflow stands still; it looks again when it goes on.
                step.emit(&Event::JobAlerted { key, deadline: kind });
            }
        }
        // Who was asked to stop and fell silent has stopped.
        (DeadlineKind::Lease, _) if cancel_asked => step.end(slot, Outcome::Cancelled, words),
        (_, DeadlineOutcome::Alert) => step.emit(&Event::JobAlerted { key, deadline: kind }),
        // Once cancel was asked, any end is that of a cancelled job.
        (DeadlineKind::Attempt | DeadlineKind::Total, _) if cancel_asked => {
            step.end(slot, Outcome::Cancelled, words);
        }
        (_, DeadlineOutcome::End) => step.end(slot, Outcome::TimedOut, words),
        // After all of its time there is no other attempt.
        (DeadlineKind::Total, DeadlineOutcome::FailAttempt | DeadlineOutcome::Again) => {
            step.end(slot, Outcome::TimedOut, words);
        }
        (_, DeadlineOutcome::FailAttempt) => {
            step.attempt_failed(slot, AttemptFailed::by_deadline(words));
        }
        (DeadlineKind::Lease, DeadlineOutcome::Again) => {
            step.emit(&Event::JobReadied { key, cause: ReadyCause::LeaseEnded });
        }
        // The attempt begins anew, with nothing counted.
        (DeadlineKind::Attempt, DeadlineOutcome::Again) => {
            let (retries, attempt, failures) = (job.retries, job.attempt + 1, job.failures());
            let message = words;
            step.emit(&Event::JobRetried { key, due_ms: 0, retries, attempt, failures, message });
        }
        // It stands ready as before; the deadline is told once for this stay.
        (DeadlineKind::Waiting, DeadlineOutcome::Again) => {
            step.emit(&Event::JobAlerted { key, deadline: kind });
        }
    }
}
