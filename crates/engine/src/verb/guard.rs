//! What several commands check before anything is emitted.

use windlass_record::bound::{Bound, cut};
use windlass_record::command::Lease;
use windlass_record::id::JobKey;
use windlass_record::policy::DeadlineOutcome;
use windlass_record::rejection::{NAME_MUST, Rejection};

use crate::lifecycle::{JobState, Verb, allows};
use crate::rights::rights;
use crate::state::job::Slot;
use crate::{Sink, Step};

impl<S: Sink> Step<'_, S> {
    /// The live job with this key, if its state allows the verb.
    pub(super) fn job_for(&self, key: JobKey, verb: Verb) -> Result<Slot, Rejection> {
        let slot = self.state.find(key).ok_or(Rejection::JobNotFound { key })?;
        let job = self.state.job(slot);
        if allows(job.state, verb, rights(job.dialect())) {
            return Ok(slot);
        }
        // A worker whose lease is over hears that, and not what has become of the job since.
        let from_worker =
            matches!(verb, Verb::Fail | Verb::Release | Verb::ExtendLease | Verb::Report);
        if from_worker && job.state == JobState::Ready && job.activation > 0 {
            return Err(Rejection::LeaseEnded { key });
        }
        Err(Rejection::JobInWrongState { key, state: job.state.name(), verb: verb.name() })
    }

    /// The same, for an operator's word: a job of another tenant than the one that is named does not
    /// exist for whoever named it.
    pub(super) fn job_of(
        &self,
        tenant: Option<&str>,
        key: JobKey,
        verb: Verb,
    ) -> Result<Slot, Rejection> {
        if let (Some(tenant), Some(slot)) = (tenant, self.state.find(key))
            && !self.state.is_of(slot, tenant)
        {
            return Err(Rejection::JobNotFound { key });
        }
        self.job_for(key, verb)
    }

    /// The same as [`Step::job_for`], for a worker's word: its token must be the newest, and must be there once the job
    /// was leased with one.
    pub(super) fn job_held(&self, lease: Lease, verb: Verb) -> Result<Slot, Rejection> {
        let key = lease.key;
        let slot = self.state.find(key).ok_or(Rejection::JobNotFound { key })?;
        let job = self.state.job(slot);
        match lease.activation {
            None if job.tokened() => return Err(Rejection::TokenMissing { key }),
            Some(given) if given != job.activation => {
                return Err(Rejection::TokenStale { key, given, current: job.activation });
            }
            None | Some(_) => {}
        }
        self.job_for(key, verb)
    }

    /// Refuses a word that counts only during the lease. Judged by the time of the batch against
    /// the deadline, not by whether the timer has run.
    pub(super) fn lease_lives(&self, slot: Slot) -> Result<(), Rejection> {
        let job = self.state.job(slot);
        let unbounded = job.deadlines().lease == DeadlineOutcome::Alert
            || rights(job.dialect()).results_without_lease;
        if job.state == JobState::Active && job.due_ms <= self.context.now_ms && !unbounded {
            return Err(Rejection::LeaseEnded { key: job.key });
        }
        Ok(())
    }

    /// A name that must be there.
    pub(super) fn name(&self, field: &'static str, name: &str) -> Result<(), Rejection> {
        if name.is_empty() {
            return Err(Rejection::NameEmpty { field });
        }
        self.optional_name(field, name)
    }

    /// A name that may be empty. A zero byte separates names in checkpoints.
    pub(super) fn optional_name(&self, field: &'static str, name: &str) -> Result<(), Rejection> {
        at_most(Bound::NameBytes, name.len(), self.bounds.name_bytes_max)?;
        if name.contains('\0') {
            return Err(Rejection::OutOfRange { field, must: NAME_MUST });
        }
        Ok(())
    }

    /// A span of time.
    pub(super) fn duration(&self, duration_ms: u64) -> Result<(), Rejection> {
        if duration_ms > self.bounds.duration_ms_max {
            return Err(Rejection::TooLarge {
                bound: Bound::DurationMs,
                max: self.bounds.duration_ms_max,
                given: duration_ms,
            });
        }
        Ok(())
    }

    /// A span of time that must not be empty.
    pub(super) fn positive(&self, field: &'static str, duration_ms: u64) -> Result<(), Rejection> {
        if duration_ms == 0 {
            return Err(Rejection::OutOfRange { field, must: "at least 1 ms" });
        }
        self.duration(duration_ms)
    }

    /// A message, cut to its bound.
    pub(super) fn message<'m>(&self, message: &'m str) -> &'m str {
        cut(message, self.bounds.message_bytes_max)
    }
}

/// Refuses a length over its limit.
pub(super) fn at_most(bound: Bound, given: usize, max: usize) -> Result<(), Rejection> {
    if given <= max {
        return Ok(());
    }
    let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    Err(Rejection::TooLarge { bound, max: wide(max), given: wide(given) })
}

/// Refuses one more when the limit is reached.
pub(super) fn room(bound: Bound, present: usize, max: u32) -> Result<(), Rejection> {
    if u32::try_from(present).is_ok_and(|present| present < max) {
        return Ok(());
    }
    Err(Rejection::Exhausted { bound, max: u64::from(max) })
}
