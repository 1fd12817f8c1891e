//! The limits that the gateway holds, and the checks that come before a request waits.

use windlass_partition::request::Wanted;
use windlass_record::bound::{Bound, Bounds};
use windlass_record::rejection::{NAME_MUST, Rejection};

/// Limits of the gateway.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Commands in one batch; also queues in one request for jobs.
    pub batch_items_max: usize,
    /// Batches of results, heartbeats and cancels that wait for their answer. Further ones wait
    /// for a place; they are never refused.
    pub result_batches_max: usize,
    /// Polls and streams that wait.
    pub waiters_max: usize,
    /// Jobs that one stream may be owed: credits given and not used.
    pub stream_credits_max: u32,
    /// The limits of the engine, for what must be refused before it waits.
    pub bounds: Bounds,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            batch_items_max: 10_000,
            result_batches_max: 1_024,
            waiters_max: 65_536,
            stream_credits_max: 65_536,
            bounds: Bounds::default(),
        }
    }
}

impl Limits {
    /// Refuses a batch that is too long.
    pub(crate) fn batch(&self, items: usize) -> Result<(), Rejection> {
        at_most(Bound::BatchItems, items, self.batch_items_max)
    }

    /// Refuses what nobody could be served with. The engine checks polls again; a stream has no
    /// way back for its refusal, so it must be right before it waits.
    pub(crate) fn wanted(&self, wanted: &Wanted) -> Result<(), Rejection> {
        if wanted.queues.is_empty() {
            return Err(Rejection::NameEmpty { field: "queues" });
        }
        self.batch(wanted.queues.len())?;
        for name in &wanted.queues {
            self.name("tenant", &name.tenant)?;
            self.name("queue", &name.queue)?;
        }
        if !wanted.worker.is_empty() {
            self.name("worker", &wanted.worker)?;
        }
        if wanted.lease_ms == 0 {
            return Err(Rejection::OutOfRange { field: "lease", must: "at least 1 ms" });
        }
        if wanted.lease_ms > self.bounds.duration_ms_max {
            return Err(Rejection::TooLarge {
                bound: Bound::DurationMs,
                max: self.bounds.duration_ms_max,
                given: wanted.lease_ms,
            });
        }
        Ok(())
    }

    /// Refuses a request for no jobs, or for more than one answer may carry.
    pub(crate) fn jobs(&self, jobs_max: u32) -> Result<(), Rejection> {
        if jobs_max == 0 {
            return Err(Rejection::OutOfRange { field: "jobs_max", must: "at least 1" });
        }
        if jobs_max > self.bounds.activation_jobs_max {
            return Err(Rejection::TooLarge {
                bound: Bound::ActivationJobs,
                max: u64::from(self.bounds.activation_jobs_max),
                given: u64::from(jobs_max),
            });
        }
        Ok(())
    }

    /// Refuses credits that would owe a stream more jobs than it may be owed.
    pub(crate) fn credits(&self, owed: u32, more: u32) -> Result<(), Rejection> {
        let given = u64::from(owed) + u64::from(more);
        let max = u64::from(self.stream_credits_max);
        if given > max {
            return Err(Rejection::TooLarge { bound: Bound::ActivationJobs, max, given });
        }
        Ok(())
    }

    fn name(&self, field: &'static str, name: &str) -> Result<(), Rejection> {
        if name.is_empty() {
            return Err(Rejection::NameEmpty { field });
        }
        if name.contains('\0') {
            return Err(Rejection::OutOfRange { field, must: NAME_MUST });
        }
        at_most(Bound::NameBytes, name.len(), self.bounds.name_bytes_max)
    }
}

fn at_most(bound: Bound, given: usize, max: usize) -> Result<(), Rejection> {
    if given <= max {
        return Ok(());
    }
    let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    Err(Rejection::TooLarge { bound, max: wide(max), given: wide(given) })
}
