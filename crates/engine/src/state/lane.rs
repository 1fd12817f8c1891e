//! The jobs of a lane in order: a deque of chunks of slots.
//!
//! Taking from the front and adding at the back touch one chunk. A job that returns to its old
//! place, leaves from the middle, or asks for its rank finds its chunk by binary search over the
//! chunks' first jobs; rank then costs chunks, not jobs.

use std::collections::VecDeque;

use super::job::{Jobs, Slot};

/// Slots in a chunk at most.
const CHUNK_LEN: usize = 256;

/// Slots that an empty lane keeps room for.
const CAPACITY_KEPT: usize = 16;

/// Slots sorted by their job's `order`.
#[derive(Debug, Default)]
pub(crate) struct LaneQueue {
    chunks: VecDeque<VecDeque<u32>>,
    len: u32,
}

impl LaneQueue {
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn front(&self) -> Option<Slot> {
        self.chunks.front()?.front().map(|&slot| Slot(slot))
    }

    /// Adds a job at the place its `order` gives it.
    pub(crate) fn insert(&mut self, jobs: &Jobs, slot: Slot) {
        self.len += 1;
        let order = jobs.get(slot).order;
        let last = self.chunks.back().and_then(|chunk| chunk.back());
        if last.is_none_or(|&last| jobs.get(Slot(last)).order < order) {
            self.push_back(slot);
            return;
        }
        let index = self.chunk_of(jobs, order);
        let chunk = self.chunks.get_mut(index).expect("a lane with a last job has chunks");
        let place = chunk.partition_point(|&other| jobs.get(Slot(other)).order < order);
        chunk.insert(place, slot.0);
        if chunk.len() > CHUNK_LEN {
            let tail = chunk.split_off(CHUNK_LEN / 2);
            self.chunks.insert(index + 1, tail);
        }
    }

    /// Takes a job out, from wherever it is.
    pub(crate) fn remove(&mut self, jobs: &Jobs, slot: Slot) {
        self.len -= 1;
        if self.front() == Some(slot) {
            let is_last = self.chunks.len() == 1;
            let chunk = self.chunks.front_mut().expect("the front was just seen");
            chunk.pop_front();
            if chunk.is_empty() && !is_last {
                self.chunks.pop_front();
            } else if chunk.is_empty() && chunk.capacity() > CAPACITY_KEPT {
                *chunk = VecDeque::new();
            }
            return;
        }
        let order = jobs.get(slot).order;
        let index = self.chunk_of(jobs, order);
        let chunk = self.chunks.get_mut(index).expect("the job is in the lane");
        let place = chunk.partition_point(|&other| jobs.get(Slot(other)).order < order);
        let removed = chunk.remove(place);
        debug_assert_eq!(removed, Some(slot.0), "a ready job stands in its lane");
        if chunk.is_empty() && self.chunks.len() > 1 {
            self.chunks.remove(index);
        }
    }

    /// How many jobs stand before this order.
    pub(crate) fn rank(&self, jobs: &Jobs, order: u64) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let index = self.chunk_of(jobs, order);
        let before: usize = self.chunks.iter().take(index).map(VecDeque::len).sum();
        let inside = self
            .chunks
            .get(index)
            .map_or(0, |chunk| chunk.partition_point(|&other| jobs.get(Slot(other)).order < order));
        u32::try_from(before + inside).expect("a lane has at most 2^32 jobs")
    }

    /// All slots in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        self.chunks.iter().flatten().map(|&slot| Slot(slot))
    }

    fn push_back(&mut self, slot: Slot) {
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK_LEN => chunk.push_back(slot.0),
            Some(_) | None => {
                let mut chunk = VecDeque::new();
                chunk.push_back(slot.0);
                self.chunks.push_back(chunk);
            }
        }
    }

    /// The last chunk whose first job does not stand behind `order`.
    fn chunk_of(&self, jobs: &Jobs, order: u64) -> usize {
        self.chunks
            .partition_point(|chunk| {
                chunk.front().is_some_and(|&first| jobs.get(Slot(first)).order <= order)
            })
            .saturating_sub(1)
    }
}
