//! Key to slot. Keys of one partition are dense counters, so the index is pages of 64 slots: four
//! bytes a job while jobs are dense, one small page for each lonely survivor, and no rehash that
//! touches more than a shard of page pointers.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_record::id::{JobKey, PartitionId};

use super::job::{NONE, Slot};

const PAGE_BITS: u32 = 6;
const PAGE_LEN: usize = 1 << PAGE_BITS;
const SHARDS: usize = 64;

#[derive(Debug)]
struct Page {
    slots: [u32; PAGE_LEN],
    live: u32,
}

/// Key to slot for one partition.
#[derive(Debug)]
pub(crate) struct KeyIndex {
    partition: PartitionId,
    shards: Vec<HashMap<u64, Box<Page>, FxBuildHasher>>,
}

impl KeyIndex {
    pub(crate) fn new(partition: PartitionId) -> KeyIndex {
        KeyIndex { partition, shards: (0..SHARDS).map(|_| HashMap::default()).collect() }
    }

    #[inline]
    pub(crate) fn get(&self, key: JobKey) -> Option<Slot> {
        if key.partition_raw() != u64::from(self.partition.get()) {
            return None;
        }
        let (page, index) = split(key);
        let slot = *self.shard(page).get(&page)?.slots.get(index)?;
        (slot != NONE).then_some(Slot(slot))
    }

    pub(crate) fn insert(&mut self, key: JobKey, slot: Slot) {
        let (page, index) = split(key);
        let page = self
            .shard_mut(page)
            .entry(page)
            .or_insert_with(|| Box::new(Page { slots: [NONE; PAGE_LEN], live: 0 }));
        let place = page.slots.get_mut(index).expect("the index has six bits");
        debug_assert_eq!(*place, NONE, "keys are never reused");
        *place = slot.0;
        page.live += 1;
    }

    pub(crate) fn remove(&mut self, key: JobKey) {
        let (number, index) = split(key);
        let shard = self.shard_mut(number);
        let page = shard.get_mut(&number).expect("only keys that were inserted are removed");
        *page.slots.get_mut(index).expect("the index has six bits") = NONE;
        page.live -= 1;
        if page.live == 0 {
            shard.remove(&number);
        }
    }

    /// How many keys there are, found by walking all pages.
    pub(crate) fn count(&self) -> usize {
        let pages = self.shards.iter().flat_map(HashMap::values);
        pages.map(|page| page.slots.iter().filter(|&&slot| slot != NONE).count()).sum()
    }

    fn shard(&self, page: u64) -> &HashMap<u64, Box<Page>, FxBuildHasher> {
        self.shards.get(shard_of(page)).expect("the shard has six bits")
    }

    fn shard_mut(&mut self, page: u64) -> &mut HashMap<u64, Box<Page>, FxBuildHasher> {
        self.shards.get_mut(shard_of(page)).expect("the shard has six bits")
    }
}

fn split(key: JobKey) -> (u64, usize) {
    let counter = key.counter();
    let index = usize::try_from(counter % PAGE_LEN as u64).expect("six bits");
    (counter >> PAGE_BITS, index)
}

fn shard_of(page: u64) -> usize {
    usize::try_from(page % SHARDS as u64).expect("six bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_and_go() {
        let mut index = KeyIndex::new(PartitionId::FIRST);
        let keys: Vec<_> =
            (1..1000).map(|n| JobKey::from_parts(PartitionId::FIRST, n * 37)).collect();
        for (slot, key) in (0..).zip(&keys) {
            index.insert(*key, Slot(slot));
        }
        for (slot, key) in (0..).zip(&keys) {
            assert_eq!(index.get(*key), Some(Slot(slot)));
            index.remove(*key);
            assert_eq!(index.get(*key), None);
        }
        assert!(index.shards.iter().all(HashMap::is_empty));
    }

    #[test]
    fn a_key_of_another_partition_names_nothing() {
        let mut index = KeyIndex::new(PartitionId::FIRST);
        index.insert(JobKey::from_parts(PartitionId::FIRST, 5), Slot(0));
        assert_eq!(index.get(JobKey::from_raw(5)), None);
        assert_eq!(index.get(JobKey::from_raw(u64::MAX)), None);
    }
}
