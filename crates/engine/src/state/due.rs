//! When something about a job is due.

use windlass_record::event::DeadlineKind;
use windlass_record::policy::DeadlineOutcome;

use super::State;
use super::job::{Flags, Job, Slot};
use crate::lifecycle::JobState;

impl State {
    /// Sets when the wheel looks at a job, from all that may be due about it.
    pub(crate) fn reset_wake(&mut self, slot: Slot) {
        let wake_ms = self.wake_ms(slot);
        self.wheel.set(&mut self.jobs, slot, wake_ms);
    }

    /// The earliest time at which anything about a job is due; `u64::MAX` is never.
    pub(crate) fn wake_ms(&self, slot: Slot) -> u64 {
        let job = self.job(slot);
        let own_ms = match job.state {
            JobState::Scheduled | JobState::Backoff => job.due_ms,
            JobState::Active if !job.flags.has(Flags::ALERTED_LEASE) => job.due_ms,
            JobState::Active | JobState::Ready | JobState::Incident => u64::MAX,
            JobState::Completed | JobState::Failed | JobState::Cancelled | JobState::Vacant => {
                unreachable!("a live job is not at rest")
            }
        };
        if job.extra.is_none() {
            return own_ms;
        }
        [DeadlineKind::Waiting, DeadlineKind::Attempt, DeadlineKind::Total]
            .into_iter()
            .filter_map(|kind| deadline_of(job, kind))
            .map(|(at_ms, _)| at_ms)
            .fold(own_ms, u64::min)
    }
}

/// When one of the three long deadlines of a job ends, if it has it, it runs in the job's state,
/// and it was not reported yet.
pub(crate) fn deadline_of(job: &Job, kind: DeadlineKind) -> Option<(u64, DeadlineOutcome)> {
    let extra = job.extra()?;
    let deadlines = &extra.options.deadlines;
    match kind {
        DeadlineKind::Lease => None,
        DeadlineKind::Waiting => {
            let (after_ms, outcome) = deadlines.waiting?;
            let runs = job.state == JobState::Ready && !job.flags.has(Flags::ALERTED_WAITING);
            runs.then(|| (job.due_ms.saturating_add(after_ms), outcome))
        }
        DeadlineKind::Attempt => {
            let (_, outcome) = deadlines.attempt?;
            let started = extra.attempt_due_ms != 0;
            let in_attempt =
                matches!(job.state, JobState::Active | JobState::Ready | JobState::Scheduled);
            let runs = started && in_attempt && !job.flags.has(Flags::ALERTED_ATTEMPT);
            runs.then_some((extra.attempt_due_ms, outcome))
        }
        DeadlineKind::Total => {
            let (after_ms, outcome) = deadlines.total?;
            let runs = !job.flags.has(Flags::ALERTED_TOTAL);
            runs.then(|| (job.created_ms.saturating_add(after_ms), outcome))
        }
    }
}
