//! Deadlines: a hierarchical timer wheel whose lists run through the jobs themselves.
//!
//! Eight levels of 64 buckets, one millisecond at the bottom (Varghese and Lauck, 1987). Insert and
//! remove are O(1); an entry moves down at most once per level. Measured at 1.8 times a B-tree of
//! deadlines on this workload. A job is in the wheel at most once, at the earliest time at which
//! anything about it may be due.

use super::job::{Jobs, NONE, Slot};

const LEVEL_BITS: u32 = 6;
const LEVELS: usize = 8;
const BUCKETS: usize = 1 << LEVEL_BITS;
/// The farthest time the wheel can hold from its present: 2^48 ms, some 8,900 years.
const SPAN_MS: u64 = 1 << (LEVEL_BITS * LEVELS as u32);

/// Bucket number of the list of entries that are due.
const DUE: u16 = (LEVELS * BUCKETS) as u16;
/// Bucket number of a job that is in no list.
const NOWHERE: u16 = u16::MAX;

/// The wheel. Its entries are jobs; the links stand in them.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Everything at or before this has been moved to the due list.
    now_ms: u64,
    /// First job of each bucket, level by level, and of the due list last.
    heads: Vec<u32>,
    /// Which buckets of a level hold anything.
    occupied: [u64; LEVELS],
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel { now_ms: 0, heads: vec![NONE; LEVELS * BUCKETS + 1], occupied: [0; LEVELS] }
    }

    /// Sets when to look at a job; `u64::MAX` is never.
    pub(crate) fn set(&mut self, jobs: &mut Jobs, slot: Slot, wake_ms: u64) {
        let job = jobs.get_mut(slot);
        if job.wake_ms == wake_ms {
            return;
        }
        let linked = job.timer_bucket != NOWHERE;
        job.wake_ms = wake_ms;
        if linked {
            self.unlink(jobs, slot);
        }
        if wake_ms != u64::MAX {
            self.link(jobs, slot, wake_ms);
        }
    }

    /// A job that is due at `now_ms`, if there is one. It stays in the wheel: whoever handles it
    /// sets a later time or none.
    pub(crate) fn due(&mut self, jobs: &mut Jobs, now_ms: u64) -> Option<Slot> {
        self.advance(jobs, now_ms);
        let head = self.head(DUE);
        (head != NONE).then_some(Slot(head))
    }

    /// No job is due before this. May be earlier than the first deadline, never later.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        if self.head(DUE) != NONE {
            return Some(self.now_ms);
        }
        self.next_bucket().map(|(_, _, start_ms)| start_ms)
    }

    /// How many jobs are in it, found by walking all lists; `None` if a link is wrong.
    pub(crate) fn count(&self, jobs: &Jobs) -> Option<usize> {
        let mut count = 0;
        for (bucket, &head) in (0u16..).zip(&self.heads) {
            let (mut prev, mut slot) = (NONE, head);
            while slot != NONE {
                let job = jobs.get(Slot(slot));
                if job.timer_bucket != bucket || job.timer_prev != prev {
                    return None;
                }
                count += 1;
                (prev, slot) = (slot, job.timer_next);
            }
            let level = usize::from(bucket) / BUCKETS;
            let bit = 1 << (usize::from(bucket) % BUCKETS);
            let occupied = self.occupied.get(level).is_some_and(|bits| bits & bit != 0);
            if bucket != DUE && occupied != (head != NONE) {
                return None;
            }
        }
        Some(count)
    }

    fn advance(&mut self, jobs: &mut Jobs, now_ms: u64) {
        while let Some((level, bucket, start_ms)) = self.next_bucket() {
            if start_ms > now_ms {
                break;
            }
            self.now_ms = self.now_ms.max(start_ms);
            // Everything in the bucket is due now or belongs to a lower level.
            loop {
                let head = self.head(number(level, bucket));
                if head == NONE {
                    break;
                }
                self.unlink(jobs, Slot(head));
                let wake_ms = jobs.get(Slot(head)).wake_ms;
                self.link(jobs, Slot(head), wake_ms);
            }
        }
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// The first bucket in time that holds anything: level, bucket, and when it starts.
    fn next_bucket(&self) -> Option<(usize, usize, u64)> {
        // A lower level always starts earlier than a higher one: higher levels hold only what
        // differs from the present in their own digits.
        for (level, &occupied) in self.occupied.iter().enumerate() {
            if occupied == 0 {
                continue;
            }
            let shift = LEVEL_BITS * u32::try_from(level).expect("eight levels");
            let present = (self.now_ms >> shift) % BUCKETS as u64;
            let present = u32::try_from(present).expect("six bits");
            let ahead = occupied.rotate_right(present).trailing_zeros();
            let bucket = (present + ahead) % BUCKETS as u32;
            let level_start = self.now_ms >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);
            let wrapped = if bucket < present { 1u64 << (shift + LEVEL_BITS) } else { 0 };
            let start_ms = level_start + (u64::from(bucket) << shift) + wrapped;
            return Some((level, usize::try_from(bucket).expect("six bits"), start_ms));
        }
        None
    }

    fn link(&mut self, jobs: &mut Jobs, slot: Slot, wake_ms: u64) {
        let bucket = if wake_ms <= self.now_ms {
            DUE
        } else {
            let wake_ms = wake_ms.min(self.now_ms + SPAN_MS - 1);
            let differ = (self.now_ms ^ wake_ms) | (BUCKETS as u64 - 1);
            let level = ((63 - differ.leading_zeros()) / LEVEL_BITS).min(LEVELS as u32 - 1);
            let digit = (wake_ms >> (LEVEL_BITS * level)) % BUCKETS as u64;
            let level = usize::try_from(level).expect("eight levels");
            *self.occupied.get_mut(level).expect("eight levels") |= 1 << digit;
            number(level, usize::try_from(digit).expect("six bits"))
        };
        let head = self.head(bucket);
        *self.heads.get_mut(usize::from(bucket)).expect("buckets are numbered from 0") = slot.0;
        let job = jobs.get_mut(slot);
        job.timer_bucket = bucket;
        job.timer_prev = NONE;
        job.timer_next = head;
        if head != NONE {
            jobs.get_mut(Slot(head)).timer_prev = slot.0;
        }
    }

    fn unlink(&mut self, jobs: &mut Jobs, slot: Slot) {
        let job = jobs.get_mut(slot);
        let (bucket, prev, next) = (job.timer_bucket, job.timer_prev, job.timer_next);
        job.timer_bucket = NOWHERE;
        job.timer_prev = NONE;
        job.timer_next = NONE;
        if next != NONE {
            jobs.get_mut(Slot(next)).timer_prev = prev;
        }
        if prev != NONE {
            jobs.get_mut(Slot(prev)).timer_next = next;
            return;
        }
        *self.heads.get_mut(usize::from(bucket)).expect("buckets are numbered from 0") = next;
        if next == NONE && bucket != DUE {
            let level = usize::from(bucket) / BUCKETS;
            let digit = usize::from(bucket) % BUCKETS;
            *self.occupied.get_mut(level).expect("eight levels") &= !(1 << digit);
        }
    }

    fn head(&self, bucket: u16) -> u32 {
        *self.heads.get(usize::from(bucket)).expect("buckets are numbered from 0")
    }
}

fn number(level: usize, bucket: usize) -> u16 {
    u16::try_from(level * BUCKETS + bucket).expect("512 buckets")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::job::Job;
    use std::collections::BTreeSet;
    use windlass_record::id::{JobKey, Payload};

    /// The wheel against a sorted set, over random sets, removals and jumps of time.
    #[test]
    fn fires_what_a_sorted_set_fires() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let mut jobs = Jobs::default();
        let mut wheel = Wheel::new();
        let mut model = BTreeSet::new();
        let slots: Vec<Slot> = (0..200)
            .map(|n| jobs.insert(Job::new(JobKey::from_raw(n), 0, Payload::EMPTY)))
            .collect();
        let mut now_ms = 1_700_000_000_000u64;
        for _ in 0..20_000 {
            let slot = slots[usize::try_from(next() % 200).unwrap()];
            model.remove(&(jobs.get(slot).wake_ms, slot));
            let wake_ms = match next() % 4 {
                0 => u64::MAX,
                1 => now_ms + next() % 100,
                2 => now_ms + next() % 100_000,
                _ => now_ms + next() % 100_000_000_000,
            };
            wheel.set(&mut jobs, slot, wake_ms);
            if wake_ms != u64::MAX {
                model.insert((wake_ms, slot));
            }
            now_ms += match next() % 8 {
                0 => next() % 10_000_000,
                1..4 => next() % 50,
                _ => 0,
            };
            if let (Some(promised), Some((first, _))) = (wheel.next_ms(), model.first()) {
                assert!(promised <= *first, "never later than the first deadline");
            }
            assert_eq!(wheel.next_ms().is_some(), !model.is_empty());
            let mut fired = BTreeSet::new();
            while let Some(slot) = wheel.due(&mut jobs, now_ms) {
                fired.insert((jobs.get(slot).wake_ms, slot));
                wheel.set(&mut jobs, slot, u64::MAX);
            }
            let later = model.split_off(&(now_ms + 1, Slot(0)));
            assert_eq!(fired, model, "at {now_ms}");
            model = later;
        }
    }
}
