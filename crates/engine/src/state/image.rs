//! How the state gets into a checkpoint and back.
//!
//! Every job, group, bay, limit key, hold, request and document has an **image**: a key and a value
//! in the checkpoint. `apply` puts what it is about to change on the dirty list, once. At a
//! **freeze** the list is set aside in O(1) and a new one begins; the shell then asks for a bounded
//! number of frozen images between batches. An `apply` that touches a job whose frozen image was
//! not written yet writes the old image first, so that all images together show the state exactly
//! as it was at the freeze. Requests and flows are written in the same way. The rest (groups, limit keys,
//! holds that outlive their job, documents, schedules) is written at the freeze itself.
//!
//! The **checksum** of the state is the wrapping sum of the hashes of all images. It is adjusted as
//! images are written and recomputed from the images by a restart.
//!
//! ```text
//! j key(8)                     job             p key(8)              its payload, by the shell
//! q id(4)                      queue           l id(4)               limit key
//! g queue(4) name              group           b queue(4) keys(8) name  bay
//! G, B                         the same on the side of those who ask with tokens
//! u queue(4) key               hold            r tenant 0 id         request
//! d tenant 0 kind 0 id         document        D (as d)              its bytes, by the shell
//! s key(8)                     schedule
//! m                            counters        R P V E T S M N I U A C H W K F  flows, see
//!                                              windlass_flow
//! ```

mod load;
mod schedule;
mod write;

pub use load::LoadError;

use windlass_record::id::{JobKey, Payload, mix};

use super::fair::Side;
use super::job::{Job, Slot};
use super::{LimitId, QueueId, State};

/// Version of the images. The rule is that of the log: a change of meaning takes a new tag or a
/// new version, and old ones stay readable for ever.
pub const IMAGE_VERSION: u8 = 1;

/// Takes images in no particular order.
pub trait ImageSink {
    /// An image, new or changed.
    fn put(&mut self, key: &[u8], value: &[u8]);
    /// The bytes of a payload that belongs to an image; written once.
    fn put_payload(&mut self, key: &[u8], payload: Payload);
    /// An image that is no longer there.
    fn delete(&mut self, key: &[u8]);
}

/// What is out of date in the newest checkpoint.
#[derive(Debug)]
pub(crate) struct Dirt {
    /// The number of the current dirty list, from 1. A job's `dirty` says which list it is on.
    list: u32,
    jobs: Vec<Slot>,
    /// Jobs with an image that have ended.
    dead_jobs: Vec<(JobKey, u64, bool)>,
    /// Those at the freeze that the checkpoint does not know of yet.
    frozen_dead_jobs: Vec<(JobKey, u64, bool)>,
    /// The list that is being written, and how much of it has been.
    frozen: Vec<Slot>,
    frozen_list: u32,
    /// Images of jobs that changed or ended before their frozen image was written.
    early: Vec<EarlyImage>,
    groups: Vec<u32>,
    bays: Vec<u32>,
    limits: Vec<LimitId>,
    queues: Vec<QueueId>,
    /// Images of what is gone, jobs apart.
    dead: Vec<(Vec<u8>, u64)>,
    counters_hash: u64,
    checksum: u64,
}

/// A frozen image that could not wait.
#[derive(Debug)]
struct EarlyImage {
    key: JobKey,
    value: Vec<u8>,
    /// The payload, when it was never written.
    payload: Option<Payload>,
}

impl Default for Dirt {
    fn default() -> Dirt {
        Dirt {
            list: 1,
            jobs: Vec::new(),
            dead_jobs: Vec::new(),
            frozen_dead_jobs: Vec::new(),
            frozen: Vec::new(),
            frozen_list: 0,
            early: Vec::new(),
            groups: Vec::new(),
            bays: Vec::new(),
            limits: Vec::new(),
            queues: Vec::new(),
            dead: Vec::new(),
            counters_hash: 0,
            checksum: 0,
        }
    }
}

impl State {
    /// Must be called before a job changes.
    #[inline]
    pub(crate) fn touch(&mut self, slot: Slot) {
        let dirty = self.jobs.get(slot).dirty;
        if dirty == self.dirt.list {
            return;
        }
        if dirty != 0 && dirty == self.dirt.frozen_list {
            self.write_early(slot);
        }
        self.jobs.get_mut(slot).dirty = self.dirt.list;
        self.dirt.jobs.push(slot);
    }

    /// Must be called before a job leaves.
    pub(crate) fn bury(&mut self, slot: Slot) {
        let dirty = self.jobs.get(slot).dirty;
        if dirty != 0 && dirty == self.dirt.frozen_list {
            self.write_early(slot);
        }
        let job = self.jobs.get(slot);
        if job.image_hash != 0 {
            self.dirt.dead_jobs.push((job.key, job.image_hash, job.payload.len > 0));
        }
    }

    fn write_early(&mut self, slot: Slot) {
        let mut value = Vec::new();
        self.job_image(slot, &mut value);
        let job = self.jobs.get(slot);
        let payload = (job.image_hash == 0 && job.payload.len > 0).then_some(job.payload);
        let key = job.key;
        self.account(slot, &value);
        self.dirt.early.push(EarlyImage { key, value, payload });
    }

    /// Adjusts the checksum for a job's new image.
    fn account(&mut self, slot: Slot, value: &[u8]) {
        let job = self.jobs.get_mut(slot);
        let new = hash_image(&job_key(job), value);
        let old = std::mem::replace(&mut job.image_hash, new);
        self.dirt.checksum = self.dirt.checksum.wrapping_sub(old).wrapping_add(new);
    }

    pub(crate) fn mark_group(&mut self, group: u32) {
        let entry = self.groups.get_mut(group);
        if !entry.dirty {
            entry.dirty = true;
            self.dirt.groups.push(group);
        }
    }

    pub(crate) fn mark_bay(&mut self, bay: u32) {
        let entry = self.bays.get_mut(bay);
        let limited = entry.concurrency.is_some() || entry.rate.is_some();
        if limited && !entry.dirty {
            entry.dirty = true;
            self.dirt.bays.push(bay);
        }
    }

    pub(crate) fn mark_limit(&mut self, limit: LimitId) {
        let entry = self.limit_mut(limit);
        if !entry.dirty {
            entry.dirty = true;
            self.dirt.limits.push(limit);
        }
    }

    pub(crate) fn mark_queue(&mut self, queue: QueueId) {
        let entry = self.queue_mut(queue);
        if !entry.dirty {
            entry.dirty = true;
            self.dirt.queues.push(queue);
        }
    }

    /// Must be called before a group leaves.
    pub(crate) fn bury_group(&mut self, group: u32) {
        let image_hash = self.groups.get(group).image_hash;
        if image_hash != 0 {
            let key = self.group_key(group);
            self.dirt.dead.push((key, image_hash));
        }
    }

    /// Must be called before a bay leaves.
    pub(crate) fn bury_bay(&mut self, bay: u32) {
        let image_hash = self.bays.get(bay).image_hash;
        if image_hash != 0 {
            let key = self.bay_key(bay);
            self.dirt.dead.push((key, image_hash));
        }
    }

    /// Must be called before a limit key leaves.
    pub(crate) fn bury_limit(&mut self, limit: LimitId) {
        let image_hash = self.limit(limit).image_hash;
        if image_hash != 0 {
            self.dirt.dead.push((numbered(b'l', limit.0), image_hash));
        }
    }

    fn group_key(&self, group: u32) -> Vec<u8> {
        let group = self.groups.get(group);
        let mut key = numbered(group_tag(group.side), group.queue.0);
        key.extend_from_slice(group.name.as_bytes());
        key
    }

    fn bay_key(&self, bay: u32) -> Vec<u8> {
        let bay = self.bays.get(bay);
        let group = self.groups.get(bay.group);
        let mut key = numbered(bay_tag(group.side), group.queue.0);
        for id in [bay.concurrency, bay.rate] {
            key.extend_from_slice(&id.map_or(0, |id| id.0 + 1).to_be_bytes());
        }
        key.extend_from_slice(group.name.as_bytes());
        key
    }
}

fn group_tag(side: Side) -> u8 {
    match side {
        Side::Open => b'g',
        Side::Fenced => b'G',
    }
}

fn bay_tag(side: Side) -> u8 {
    match side {
        Side::Open => b'b',
        Side::Fenced => b'B',
    }
}

fn numbered(tag: u8, number: u32) -> Vec<u8> {
    let mut key = vec![tag];
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn job_key(job: &Job) -> [u8; 9] {
    keyed(b'j', job.key)
}

/// The checkpoint key of a job's payload.
pub fn payload_key(key: JobKey) -> [u8; 9] {
    keyed(b'p', key)
}

fn keyed(tag: u8, key: JobKey) -> [u8; 9] {
    let mut out = [tag; 9];
    for (place, byte) in out.iter_mut().skip(1).zip(key.raw().to_be_bytes()) {
        *place = byte;
    }
    out
}

pub(crate) fn request_key(scoped: &str) -> Vec<u8> {
    let mut key = vec![b'r'];
    key.extend_from_slice(scoped.as_bytes());
    key
}

/// Hash of one image. Never 0, which stands for "no image". FNV-1a folded eight bytes at a time and
/// finished as splitmix64 is; it guards against mistakes, not against an adversary.
pub fn hash_image(key: &[u8], value: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for part in [key, value] {
        for chunk in part.chunks(8) {
            let mut word = [0u8; 8];
            for (place, byte) in word.iter_mut().zip(chunk) {
                *place = *byte;
            }
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3);
            hash ^= hash >> 29;
        }
        hash = hash.wrapping_add(u64::try_from(part.len()).expect("a length fits 64 bits"));
    }
    mix(hash).max(1)
}
