//! What is remembered past a job's life: unique keys on hold and request ids.

use std::collections::{BTreeSet, VecDeque};

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_record::codec::Encoder;
use windlass_record::id::{JobKey, QueueId};

use super::image::{IMAGE_VERSION, hash_image, request_key};

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

/// Request ids of the last minutes, so that a repeated create is not a second job. There may be as many as
/// creates, so their images are written as those of jobs are: a bounded number at a time behind a freeze, and what
/// changes before its turn leaves its frozen image first.
#[derive(Debug)]
pub struct Requests {
    keys: HashMap<Box<str>, Remembered, FxBuildHasher>,
    /// Oldest first: keys of jobs grow.
    order: VecDeque<(JobKey, Box<str>)>,
    /// Those since the last freeze, whose number, from 1, is `list`.
    fresh: Vec<Box<str>>,
    list: u32,
    /// Images that are no longer true since the last freeze.
    dead: Vec<(Box<str>, u64)>,
    pub(crate) frozen: FrozenRequests,
}

/// What a checkpoint has yet to learn of requests, in this order.
#[derive(Debug, Default)]
pub(crate) struct FrozenRequests {
    pub(crate) dead: Vec<(Box<str>, u64)>,
    /// Frozen images of what changed before its turn, and the hash of the image before.
    pub(crate) early: Vec<(Box<str>, Remembered, u64)>,
    fresh: Vec<Box<str>>,
    list: u32,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            keys: HashMap::default(),
            order: VecDeque::new(),
            fresh: Vec::new(),
            list: 1,
            dead: Vec::new(),
            frozen: FrozenRequests::default(),
        }
    }
}

/// What a request made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The job.
    pub key: JobKey,
    /// When.
    pub at_ms: u64,
    pub(crate) image_hash: u64,
    /// The list on which it waits for a checkpoint; 0 is none.
    list: u32,
}

impl Remembered {
    pub(crate) fn new(key: JobKey, at_ms: u64, image_hash: u64) -> Remembered {
        Remembered { key, at_ms, image_hash, list: 0 }
    }

    /// Its image in a checkpoint.
    pub(crate) fn image(&self) -> Vec<u8> {
        let mut value = vec![IMAGE_VERSION];
        let out = &mut Encoder::new(&mut value);
        out.u64(self.key.raw());
        out.u64(self.at_ms);
        value
    }
}

impl FrozenRequests {
    /// Must be called before a request changes or is forgotten. The hash of the image that the checkpoint then has.
    fn leave(&mut self, scoped: &str, remembered: &Remembered) -> u64 {
        let old = remembered.image_hash;
        if remembered.list == 0 || remembered.list != self.list {
            return old;
        }
        self.early.push((scoped.into(), *remembered, old));
        hash_image(&request_key(scoped), &remembered.image())
    }
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
        let old = self.keys.get(&scoped);
        let image_hash = old.map_or(0, |old| self.frozen.leave(&scoped, old));
        self.keys.insert(scoped, Remembered { key, at_ms, image_hash, list: self.list });
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
                let image_hash = self.frozen.leave(scoped, newest);
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

    /// Sets aside what a checkpoint has to learn.
    pub(crate) fn freeze(&mut self) {
        self.frozen.dead = std::mem::take(&mut self.dead);
        self.frozen.fresh = std::mem::take(&mut self.fresh);
        self.frozen.list = self.list;
        self.list = self.list.wrapping_add(1).max(1);
    }

    /// One of those that were to be written at the freeze.
    pub(crate) fn next_frozen(&mut self) -> Option<Box<str>> {
        self.frozen.fresh.pop()
    }

    /// A request that has not changed since the freeze, to be written now.
    pub(crate) fn take_frozen(&mut self, scoped: &str) -> Option<&mut Remembered> {
        let list = self.frozen.list;
        let remembered = self.keys.get_mut(scoped).filter(|remembered| remembered.list == list)?;
        remembered.list = 0;
        Some(remembered)
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
