//! Who waits for something of this process to end, until a time. Known to this process alone: who
//! waits is told when the partition stops, and asks again.

use std::collections::{BTreeSet, HashMap};

use windlass_record::id::JobKey;

/// Those who wait, by what they wait for.
pub(crate) struct Waits<W> {
    waiting: HashMap<JobKey, (u64, W)>,
    ends: BTreeSet<(u64, JobKey)>,
}

impl<W> Default for Waits<W> {
    fn default() -> Waits<W> {
        Waits { waiting: HashMap::new(), ends: BTreeSet::new() }
    }
}

impl<W> Waits<W> {
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether somebody waits for it.
    pub(crate) fn has(&self, key: JobKey) -> bool {
        self.waiting.contains_key(&key)
    }

    /// Somebody waits for it, until then.
    pub(crate) fn add(&mut self, key: JobKey, end_ms: u64, who: W) {
        debug_assert!(!self.has(key), "one waits for each");
        self.ends.insert((end_ms, key));
        self.waiting.insert(key, (end_ms, who));
    }

    /// Who waits for it.
    pub(crate) fn get_mut(&mut self, key: JobKey) -> Option<&mut W> {
        self.waiting.get_mut(&key).map(|(_, who)| who)
    }

    /// Nobody waits for it any more.
    pub(crate) fn remove(&mut self, key: JobKey) -> Option<W> {
        let (end_ms, who) = self.waiting.remove(&key)?;
        self.ends.remove(&(end_ms, key));
        Some(who)
    }

    /// Those whose time is over.
    pub(crate) fn expired(&mut self, now_ms: u64) -> Vec<W> {
        let mut expired = Vec::new();
        while let Some((end_ms, key)) = self.ends.first().copied()
            && end_ms <= now_ms
        {
            self.ends.pop_first();
            expired.extend(self.waiting.remove(&key).map(|(_, who)| who));
        }
        expired
    }

    /// When the first one's time is over.
    pub(crate) fn next_end_ms(&self) -> Option<u64> {
        self.ends.first().map(|(end_ms, _)| *end_ms)
    }

    /// The partition stops.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = W> {
        self.ends.clear();
        self.waiting.drain().map(|(_, (_, who))| who)
    }
}
