//! The last finished jobs of each queue, until there is a history: bounded in number and age, kept
//! in memory and rebuilt from the tail of the log at a restart.

use std::collections::{HashMap, VecDeque};

use rustc_hash::FxBuildHasher;
use windlass_engine::{Ended, State};
use windlass_record::event::Outcome;
use windlass_record::id::{JobKey, Payload, QueueId};

/// Finished jobs.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    queues: Vec<Ring>,
    /// Where a job is: queue and number.
    index: HashMap<JobKey, (QueueId, u64), FxBuildHasher>,
}

#[derive(Debug, Default)]
struct Ring {
    jobs: VecDeque<Ended>,
    /// The number of the first.
    first: u64,
    counts: [u64; 3],
}

impl Finished {
    /// Remembers a job and forgets those past the bounds. Returns payloads that are free.
    pub(crate) fn push(
        &mut self,
        state: &State,
        ended: Ended,
        total_max: usize,
        freed: &mut Vec<Payload>,
    ) {
        let settings = &state.queue(ended.queue).settings;
        let (queue, key, now_ms) = (ended.queue, ended.job.key, ended.ended_ms);
        let ring_index = usize::try_from(queue.0).expect("usize has at least 32 bits");
        if self.queues.len() <= ring_index {
            self.queues.resize_with(ring_index + 1, Ring::default);
        }
        let ring = self.queues.get_mut(ring_index).expect("just made");
        *ring.counts.get_mut(count_of(ended.outcome)).expect("three outcomes") += 1;
        let jobs_max = usize::try_from(settings.finished_max).unwrap_or(usize::MAX);
        if jobs_max == 0 {
            freed.push(ended.result);
            return;
        }
        self.index.insert(key, (queue, ring.first + wide(ring.jobs.len())));
        ring.jobs.push_back(ended);
        while let Some(oldest) = ring.jobs.front() {
            let too_many = ring.jobs.len() > jobs_max || self.index.len() > total_max;
            let too_old = oldest.ended_ms.saturating_add(settings.finished_ms) <= now_ms;
            if !too_many && !too_old {
                break;
            }
            let Some(oldest) = ring.jobs.pop_front() else { break };
            ring.first += 1;
            self.index.remove(&oldest.job.key);
            freed.push(oldest.result);
        }
    }

    pub(crate) fn get(&self, key: JobKey) -> Option<&Ended> {
        let &(queue, number) = self.index.get(&key)?;
        let ring = self.ring(queue)?;
        ring.jobs.get(usize::try_from(number.checked_sub(ring.first)?).ok()?)
    }

    /// Finished jobs of a queue, newest first, numbered below `before`; 0 is "from the newest".
    pub(crate) fn newest(
        &self,
        queue: QueueId,
        before: u64,
    ) -> impl Iterator<Item = (u64, &Ended)> {
        let ring = self.ring(queue);
        let first = ring.map_or(0, |ring| ring.first);
        ring.into_iter()
            .flat_map(move |ring| (first + 1..).zip(&ring.jobs))
            .rev_until(before)
    }

    /// Jobs that came to rest: completed, failed, cancelled.
    pub(crate) fn counts(&self, queue: QueueId) -> [u64; 3] {
        self.ring(queue).map_or([0; 3], |ring| ring.counts)
    }

    fn ring(&self, queue: QueueId) -> Option<&Ring> {
        self.queues.get(usize::try_from(queue.0).ok()?)
    }
}

/// Newest first, from below a number.
trait RevUntil<'a>: Iterator<Item = (u64, &'a Ended)> + Sized {
    fn rev_until(self, before: u64) -> std::vec::IntoIter<(u64, &'a Ended)> {
        let mut all: Vec<_> =
            self.filter(|(number, _)| before == 0 || *number < before).collect();
        all.reverse();
        all.into_iter()
    }
}

impl<'a, I: Iterator<Item = (u64, &'a Ended)>> RevUntil<'a> for I {}

fn count_of(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Completed | Outcome::CompletedWithErrors => 0,
        Outcome::Failed | Outcome::FailedForGood | Outcome::TimedOut => 1,
        Outcome::Cancelled | Outcome::Skipped => 2,
    }
}

fn wide(n: usize) -> u64 {
    u64::try_from(n).expect("a length fits 64 bits")
}
