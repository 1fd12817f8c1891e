//! What is remembered past a job's life: unique keys on hold and request ids.

use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_record::id::{JobKey, QueueId};

/// Held unique keys. Scope: (queue, key), and a queue belongs to a tenant.
#[derive(Debug, Default)]
pub struct UniqueKeys {
    held: HashMap<UniqueName, Hold, FxBuildHasher>,
    /// Keys whose job has ended, by the time of their release.
    ending: BTreeSet<(u64, UniqueName)>,
    /// Keys that came on hold since the last freeze.
    pub(crate) fresh: Vec<UniqueName>,
    /// Images that are no longer true.
    pub(crate) dead: Vec<(UniqueName, u64)>,
}

/// A unique key in its queue.
pub(crate) type UniqueName = (QueueId, Box<str>);

/// Who holds a unique key, and until when. Only holds that outlive their job have an image; those
/// of live jobs follow from the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The job that holds it or held it last.
    pub holder: JobKey,
    /// `u64::MAX` while the job lives.
    pub until_ms: u64,
    pub(crate) image_hash: u64,
}

impl UniqueKeys {
    /// Who holds a key at `now_ms`.
    pub(crate) fn holder(&self, queue: QueueId, key: &str, now_ms: u64) -> Option<JobKey> {
        let hold = self.held.get(&(queue, Box::from(key)))?;
        (hold.until_ms > now_ms).then_some(hold.holder)
    }

    /// A live job holds the key from now on.
    pub(crate) fn hold(&mut self, queue: QueueId, key: &str, holder: JobKey) {
        let name: UniqueName = (queue, key.into());
        let hold = Hold { holder, until_ms: u64::MAX, image_hash: 0 };
        if let Some(old) = self.held.insert(name.clone(), hold) {
            self.ending.remove(&(old.until_ms, name.clone()));
            self.bury(name, old);
        }
    }

    /// The holder has ended; the key is free at `until_ms`.
    pub(crate) fn release(&mut self, queue: QueueId, key: &str, until_ms: u64, now_ms: u64) {
        let name: UniqueName = (queue, key.into());
        if until_ms <= now_ms {
            self.held.remove(&name);
        } else if let Some(hold) = self.held.get_mut(&name) {
            hold.until_ms = until_ms;
            self.ending.insert((until_ms, name.clone()));
            self.fresh.push(name);
        }
    }

    /// Frees keys whose hold has ended, a few at a time.
    pub(crate) fn prune(&mut self, now_ms: u64) {
        for _ in 0..8 {
            if self.ending.first().is_none_or(|(until_ms, _)| *until_ms > now_ms) {
                break;
            }
            let Some((_, name)) = self.ending.pop_first() else { break };
            if let Some(hold) = self.held.remove(&name) {
                self.bury(name, hold);
            }
        }
    }

    pub(crate) fn get(&self, name: &UniqueName) -> Option<&Hold> {
        self.held.get(name)
    }

    /// All keys that are held or were not freed yet, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&UniqueName, &Hold)> {
        self.held.iter()
    }

    /// Keys whose job has ended, by the time of their release.
    pub(crate) fn ending(&self) -> impl Iterator<Item = &(u64, UniqueName)> {
        self.ending.iter()
    }

    pub(crate) fn get_mut(&mut self, name: &UniqueName) -> Option<&mut Hold> {
        self.held.get_mut(name)
    }

    pub(crate) fn load(&mut self, name: UniqueName, hold: Hold) {
        self.ending.insert((hold.until_ms, name.clone()));
        self.held.insert(name, hold);
    }

    fn bury(&mut self, name: UniqueName, hold: Hold) {
        if hold.image_hash != 0 {
            self.dead.push((name, hold.image_hash));
        }
    }
}

/// Request ids of the last minutes, so that a repeated create is not a second job.
#[derive(Debug, Default)]
pub struct Requests {
    keys: HashMap<Box<str>, Remembered, FxBuildHasher>,
    /// Oldest first: keys of jobs grow.
    order: VecDeque<(JobKey, Box<str>)>,
    pub(crate) fresh: Vec<Box<str>>,
    pub(crate) dead: Vec<(Box<str>, u64)>,
}

/// What a request made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The job.
    pub key: JobKey,
    /// When.
    pub at_ms: u64,
    pub(crate) image_hash: u64,
}

impl Requests {
    /// The job that a request made at or after `since_ms`. `scoped` is tenant, a zero byte, id.
    pub(crate) fn made(&self, scoped: &str, since_ms: u64) -> Option<JobKey> {
        let remembered = self.keys.get(scoped)?;
        (remembered.at_ms >= since_ms).then_some(remembered.key)
    }

    pub(crate) fn remember(&mut self, scoped: Box<str>, key: JobKey, at_ms: u64) {
        self.order.push_back((key, scoped.clone()));
        self.fresh.push(scoped.clone());
        let old = self.keys.insert(scoped.clone(), Remembered { key, at_ms, image_hash: 0 });
        if let Some(old) = old
            && let Some(new) = self.keys.get_mut(&scoped)
        {
            new.image_hash = old.image_hash;
        }
    }

    /// Forgets what is older than `since_ms` or past the bound, a few at a time.
    pub(crate) fn prune(&mut self, since_ms: u64, entries_max: u32) {
        let entries_max = usize::try_from(entries_max).unwrap_or(usize::MAX);
        let mut steps_left = 8;
        while let Some((key, scoped)) = self.order.front() {
            // An id that was used again since stands further behind once more.
            if let Some(newest) = self.keys.get(scoped).filter(|newest| newest.key == *key) {
                let over = self.keys.len() > entries_max;
                if steps_left == 0 || (!over && newest.at_ms >= since_ms) {
                    break;
                }
                steps_left -= 1;
                let image_hash = newest.image_hash;
                self.keys.remove(scoped);
                if image_hash != 0 {
                    self.dead.push((scoped.clone(), image_hash));
                }
            }
            self.order.pop_front();
        }
    }

    /// All that is remembered, in no order.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Remembered)> {
        self.keys.iter().map(|(scoped, remembered)| (&**scoped, remembered))
    }

    pub(crate) fn get_mut(&mut self, scoped: &str) -> Option<&mut Remembered> {
        self.keys.get_mut(scoped)
    }

    pub(crate) fn load(&mut self, scoped: &str, remembered: Remembered) {
        self.order.push_back((remembered.key, scoped.into()));
        self.keys.insert(scoped.into(), remembered);
    }

    /// Restores the order after a load.
    pub(crate) fn finish_load(&mut self) {
        self.order.make_contiguous().sort();
    }
}
