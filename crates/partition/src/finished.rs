//! The last finished jobs of each queue, until there is a history: bounded in number, age and bytes.
//!
//! They belong to the shell: the engine forgets a job with its final event. They stand in checkpoints
//! beside the engine's images (key `f queue(4) number(8)`) and are not part of its checksum; what came
//! to rest behind the checkpoint is rebuilt from the log. A large result has a key of its own there
//! (`y queue(4) number(8)`), so that it need not stay in memory.
//!
//! At a freeze it is only noted how far each queue has come; images are then written a bounded number
//! at a time. Only what was forgotten by then is deleted, as deliveries that were made since may still
//! read it. What is forgotten meanwhile and was not written yet is left out. A load forgets what lies before
//! such a gap, but cannot see one behind the last that was written: older ones may then be back, and be
//! forgotten a second time.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use windlass_engine::state::job::Extra;
use windlass_engine::{Ended, State};
use windlass_record::codec::{
    DecodeError, Decoder, Encoder, Payloads, decode_options, decode_outcome, encode_options,
    encode_outcome,
};
use windlass_record::command::JobOptions;
use windlass_record::event::Outcome;
use windlass_record::id::{JobKey, Payload, QueueId};

use crate::checkpoint::Images;
use crate::payload::{Bytes, PayloadStore};

/// The first byte of the keys of finished jobs in a checkpoint.
pub(crate) const TAG: u8 = b'f';
/// The first byte of the keys of their large results.
const RESULT_TAG: u8 = b'y';
/// Larger results have keys of their own.
const INLINE_BYTES_MAX: u32 = 512;
/// What a line of a log takes besides its text: where it is, and the allocator's share.
const LINE_BYTES: usize = size_of::<Box<str>>() + 16;
/// Version of their images: 1 has every result in it, where the large ones stay until they are forgotten.
const VERSION: u8 = 2;

/// How many finished jobs are remembered in all queues together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) jobs_max: usize,
    /// Of results, messages, headers and logs.
    pub(crate) bytes_max: u64,
}

/// A job that came to rest.
#[derive(Debug)]
pub(crate) struct FinishedJob {
    pub(crate) key: JobKey,
    pub(crate) queue: QueueId,
    pub(crate) job_type: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) priority: i32,
    pub(crate) retries: i32,
    pub(crate) attempt: u32,
    pub(crate) activation: u32,
    pub(crate) created_ms: u64,
    pub(crate) ended_ms: u64,
    pub(crate) outcome: Outcome,
    pub(crate) cancel_asked: bool,
    pub(crate) message: Box<str>,
    pub(crate) result: Payload,
    pub(crate) extra: Option<Box<Extra>>,
}

/// Finished jobs.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    queues: Vec<Ring>,
    /// Where a job is: queue and number.
    index: HashMap<JobKey, (QueueId, u64), FxBuildHasher>,
    /// Of all of them.
    bytes: u64,
    /// The queue that gives up its oldest when there are too many in all.
    giving: usize,
    /// The queue whose frozen jobs are being written.
    writing: usize,
}

#[derive(Debug, Default)]
struct Ring {
    jobs: VecDeque<FinishedJob>,
    /// The number of the first.
    first: u64,
    bytes: u64,
    /// What of it stands in the newest checkpoint, or in the one being collected, but for gaps: from
    /// the first number to below the second.
    saved: (u64, u64),
    /// Those of `saved` with a large result.
    saved_results: VecDeque<u64>,
    /// Its numbers at the freeze.
    frozen: (u64, u64),
    counts: [u64; 3],
}

impl Ring {
    fn end(&self) -> u64 {
        self.first + wide(self.jobs.len())
    }

    fn at(&self, number: u64) -> Option<&FinishedJob> {
        self.jobs.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

impl Finished {
    /// Remembers a job and forgets those past the bounds. Returns payloads that are free.
    pub(crate) fn push(
        &mut self,
        state: &State,
        ended: Ended,
        room: Room,
        freed: &mut Vec<Payload>,
    ) {
        let settings = &state.queue(ended.queue).settings;
        let (jobs_max, keep_ms) = (settings.finished_max, settings.finished_ms);
        let (queue, now_ms) = (ended.queue, ended.ended_ms);
        let ring = ring_mut(&mut self.queues, queue);
        *ring.counts.get_mut(count_of(ended.outcome)).expect("three outcomes") += 1;
        let jobs_max = usize::try_from(jobs_max).unwrap_or(usize::MAX);
        if jobs_max == 0 {
            freed.push(ended.result);
            return;
        }
        self.insert(queue, FinishedJob::from(ended));
        while let Some(ring) = self.ring(queue)
            && let Some(oldest) = ring.jobs.front()
            && (ring.jobs.len() > jobs_max || oldest.ended_ms.saturating_add(keep_ms) <= now_ms)
        {
            freed.extend(self.forget_oldest(queue));
        }
        while let Some(queue) = self.giving(room, queue) {
            freed.extend(self.forget_oldest(queue));
        }
    }

    fn insert(&mut self, queue: QueueId, job: FinishedJob) {
        let ring = ring_mut(&mut self.queues, queue);
        let bytes = job.bytes();
        self.index.insert(job.key, (queue, ring.end()));
        ring.jobs.push_back(job);
        ring.bytes += bytes;
        self.bytes += bytes;
    }

    fn forget_oldest(&mut self, queue: QueueId) -> Option<Payload> {
        let ring = ring_mut(&mut self.queues, queue);
        let oldest = ring.jobs.pop_front()?;
        let bytes = oldest.bytes();
        ring.first += 1;
        ring.bytes -= bytes;
        self.bytes -= bytes;
        self.index.remove(&oldest.key);
        Some(oldest.result)
    }

    /// A queue that has more than its share, when there are too many in all: none goes below an equal
    /// share for others. Whoever just `grew` comes first, so that it is rare to look at all of them.
    fn giving(&mut self, room: Room, grew: QueueId) -> Option<QueueId> {
        let (jobs, bytes) = (self.index.len() > room.jobs_max, self.bytes > room.bytes_max);
        if !jobs && !bytes {
            return None;
        }
        let queues = self.queues.len();
        let jobs_share = room.jobs_max / queues.max(1);
        let bytes_share = room.bytes_max / wide(queues).max(1);
        let gives =
            |ring: &Ring| jobs && ring.jobs.len() > jobs_share || bytes && ring.bytes > bytes_share;
        if self.ring(grew).is_some_and(gives) {
            return Some(grew);
        }
        // One of them has more than its share, or they would not be too many.
        for _ in 0..queues {
            if self.queues.get(self.giving).is_some_and(gives) {
                return u32::try_from(self.giving).ok().map(QueueId);
            }
            self.giving = (self.giving + 1) % queues;
        }
        None
    }

    pub(crate) fn get(&self, key: JobKey) -> Option<&FinishedJob> {
        let &(queue, number) = self.index.get(&key)?;
        self.ring(queue)?.at(number)
    }

    /// Finished jobs of a queue, newest first, numbered below `before`; 0 is "from the newest".
    /// Numbers count from 1 here.
    pub(crate) fn newest(
        &self,
        queue: QueueId,
        before: u64,
    ) -> impl Iterator<Item = (u64, &FinishedJob)> {
        let ring = self.ring(queue);
        let (first, len) = ring.map_or((0, 0), |ring| (ring.first, wide(ring.jobs.len())));
        let below = if before == 0 { len } else { (before - 1).saturating_sub(first).min(len) };
        let below = usize::try_from(below).unwrap_or(usize::MAX);
        ring.into_iter()
            .flat_map(move |ring| ring.jobs.iter().take(below).enumerate().rev())
            .map(move |(index, job)| (first + wide(index) + 1, job))
    }

    /// Jobs that came to rest: completed, failed, cancelled.
    pub(crate) fn counts(&self, queue: QueueId) -> [u64; 3] {
        self.ring(queue).map_or([0; 3], |ring| ring.counts)
    }

    /// What came to rest until now is for the checkpoint that begins.
    pub(crate) fn freeze(&mut self) {
        self.writing = 0;
        for ring in &mut self.queues {
            ring.frozen = (ring.first, ring.end());
        }
    }

    /// Writes up to so many images that are not in the newest checkpoint, or deletes from it what is
    /// forgotten. True when none remain.
    pub(crate) fn write_frozen(
        &mut self,
        images_max: usize,
        payloads: &mut PayloadStore,
        images: &mut Images,
    ) -> bool {
        let mut left = images_max;
        while let Some(ring) = self.queues.get_mut(self.writing) {
            let queue = QueueId(u32::try_from(self.writing).expect("queues are numbered by u32"));
            while ring.write_one(queue, payloads, images) {
                left -= 1;
                if left == 0 {
                    return false;
                }
            }
            self.writing += 1;
        }
        true
    }

    /// Takes in an image, in the order of the keys.
    pub(crate) fn load(
        &mut self,
        key: &[u8],
        value: &[u8],
        payloads: &mut PayloadStore,
    ) -> Result<(), DecodeError> {
        let rest = key.get(1..).ok_or(DecodeError::Truncated)?;
        let (queue, rest) = rest.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
        let (number, _) = rest.split_first_chunk::<8>().ok_or(DecodeError::Truncated)?;
        let queue = QueueId(u32::from_be_bytes(*queue));
        let number = u64::from_be_bytes(*number);
        let job = FinishedJob::decode((queue, number), value, payloads)?;
        while self.ring(queue).is_some_and(|ring| ring.end() < number)
            && let Some(result) = self.forget_oldest(queue)
        {
            payloads.free(result);
        }
        let ring = ring_mut(&mut self.queues, queue);
        if ring.jobs.is_empty() {
            ring.first = number;
        }
        *ring.counts.get_mut(count_of(job.outcome)).expect("three outcomes") += 1;
        if ring.saved == (0, 0) {
            ring.saved.0 = number;
        }
        ring.saved.1 = number + 1;
        if job.has_large_result() {
            ring.saved_results.push_back(number);
        }
        self.insert(queue, job);
        Ok(())
    }

    fn ring(&self, queue: QueueId) -> Option<&Ring> {
        self.queues.get(usize::try_from(queue.0).ok()?)
    }
}

impl Ring {
    /// Brings the checkpoint one image nearer to the freeze; false when it is there.
    fn write_one(
        &mut self,
        queue: QueueId,
        payloads: &mut PayloadStore,
        images: &mut Images,
    ) -> bool {
        let (from, to) = &mut self.saved;
        if *from < (*to).min(self.frozen.0) {
            images.delete(&key_of(TAG, queue, *from));
            if self.saved_results.front() == Some(from) {
                images.delete(&key_of(RESULT_TAG, queue, *from));
                self.saved_results.pop_front();
            }
            *from += 1;
            return true;
        }
        if from == to {
            *from = self.first.max(*from);
        }
        *to = self.first.max(*to);
        let number = *to;
        let Some(job) = self.at(number).filter(|_| number < self.frozen.1) else { return false };
        let mut value = Vec::new();
        job.encode(payloads, &mut value);
        images.put(&key_of(TAG, queue, number), &value);
        if job.has_large_result() {
            images.put_payload(payloads, &key_of(RESULT_TAG, queue, number), job.result);
            self.saved_results.push_back(number);
        }
        self.saved.1 += 1;
        true
    }
}

impl From<Ended> for FinishedJob {
    fn from(ended: Ended) -> FinishedJob {
        let cancel_asked = ended.job.cancel_asked();
        FinishedJob {
            key: ended.job.key,
            queue: ended.queue,
            job_type: ended.job_type,
            group: ended.group,
            priority: ended.priority,
            retries: ended.job.retries,
            attempt: ended.job.attempt,
            activation: ended.job.activation,
            created_ms: ended.job.created_ms,
            ended_ms: ended.ended_ms,
            outcome: ended.outcome,
            cancel_asked,
            message: ended.message,
            result: ended.result,
            extra: ended.job.into_extra().map(|mut extra| {
                // Of the attempts before: what counts at the end is the message beside it.
                (extra.message, extra.incident) = (Box::default(), None);
                extra
            }),
        }
    }
}

impl FinishedJob {
    /// What it takes besides its place.
    fn bytes(&self) -> u64 {
        let extra = self.extra.as_ref().map_or(0, |extra| {
            let lines: usize = extra.log.iter().map(|line| line.len() + LINE_BYTES).sum();
            let texts = extra.note.len() + extra.cancel_reason.len();
            let JobOptions { headers, unique_key, request_id, concurrency_key, rate_key, .. } =
                &extra.options;
            let names = unique_key.len() + request_id.len() + concurrency_key.len();
            lines + texts + headers.len() + names + rate_key.len()
        });
        u64::from(self.result.len) + wide(self.message.len() + extra)
    }

    fn has_large_result(&self) -> bool {
        self.result.len > INLINE_BYTES_MAX
    }

    fn encode(&self, payloads: &PayloadStore, value: &mut Vec<u8>) {
        let out = &mut Encoder::new(value);
        out.u8(VERSION);
        out.u64(self.key.raw());
        out.str(&self.job_type);
        out.str(&self.group);
        out.i32(self.priority);
        out.i32(self.retries);
        out.u32(self.attempt);
        out.u32(self.activation);
        out.u64(self.created_ms);
        out.u64(self.ended_ms);
        encode_outcome(out, self.outcome);
        out.bool(self.cancel_asked);
        out.str(&self.message);
        out.u32(self.result.len);
        if !self.has_large_result() {
            match payloads.get(self.result) {
                Bytes::Here(bytes) => out.bytes(&bytes),
                Bytes::Stored(_) => unreachable!("a small result is in no checkpoint of its own"),
            }
        }
        out.bool(self.extra.is_some());
        if let Some(extra) = &self.extra {
            encode_options(out, &extra.options);
            out.u8(extra.percent);
            out.str(&extra.note);
            out.u64(wide(extra.log.len()));
            for line in &extra.log {
                out.str(line);
            }
            out.u32(extra.log_dropped);
            out.str(&extra.cancel_reason);
        }
    }

    fn decode(
        (queue, number): (QueueId, u64),
        value: &[u8],
        payloads: &mut PayloadStore,
    ) -> Result<FinishedJob, DecodeError> {
        let from = &mut Decoder::new(value);
        let version = from.u8()?;
        if version == 0 || version > VERSION {
            return Err(DecodeError::UnknownVersion { version });
        }
        let mut job = FinishedJob {
            key: JobKey::from_raw(from.u64()?),
            queue,
            job_type: from.str()?.into(),
            group: from.str()?.into(),
            priority: from.i32()?,
            retries: from.i32()?,
            attempt: from.u32()?,
            activation: from.u32()?,
            created_ms: from.u64()?,
            ended_ms: from.u64()?,
            outcome: decode_outcome(from)?,
            cancel_asked: from.bool()?,
            message: from.str()?.into(),
            result: decode_result(from, version, &key_of(RESULT_TAG, queue, number), payloads)?,
            extra: None,
        };
        if from.bool()? {
            let mut extra = Extra { options: decode_options(from)?, ..Extra::default() };
            extra.percent = from.u8()?;
            extra.note = from.str()?.into();
            for _ in 0..from.u64()? {
                extra.log.push(from.str()?.into());
            }
            extra.log_dropped = from.u32()?;
            extra.cancel_reason = from.str()?.into();
            job.extra = Some(Box::new(extra));
        }
        Ok(job)
    }
}

fn decode_result(
    from: &mut Decoder<'_>,
    version: u8,
    key: &[u8],
    payloads: &mut PayloadStore,
) -> Result<Payload, DecodeError> {
    let len = if version == 1 { 0 } else { from.u32()? };
    if len > INLINE_BYTES_MAX {
        return Ok(payloads.keep_stored(key, len));
    }
    Ok(payloads.keep(from.bytes()?))
}

fn ring_mut(queues: &mut Vec<Ring>, queue: QueueId) -> &mut Ring {
    let index = usize::try_from(queue.0).expect("usize has at least 32 bits");
    if queues.len() <= index {
        queues.resize_with(index + 1, Ring::default);
    }
    queues.get_mut(index).expect("just made")
}

fn key_of(tag: u8, queue: QueueId, number: u64) -> Vec<u8> {
    let mut key = vec![tag];
    key.extend_from_slice(&queue.0.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use windlass_checkpoint::{KeyRange, MemoryCheckpoint, View};
    use windlass_log::MemoryLog;
    use windlass_record::command::{
        Command, CompleteJob, ConfigureQueue, CreateJob, Due, Lease, QueueName,
    };
    use windlass_record::policy::QueueSettings;

    use super::*;
    use crate::clock::Reading;
    use crate::core::Core;
    use crate::options::Options;
    use crate::recover::recover;
    use crate::request::{Commands, HandedJob, Poll, Request, WaiterId, Wanted};

    /// A core without threads that remembers three finished jobs.
    struct Fixture {
        core: Core,
        store: MemoryCheckpoint,
        checkpoints: u32,
        polls: u64,
    }

    impl Fixture {
        fn new() -> Fixture {
            let (log, store) = (MemoryLog::create(1, 1).unwrap(), MemoryCheckpoint::new());
            let reading = Reading { monotonic_us: 0, wall_ms: 1_000 };
            let core = recover(&log, &store, &Options::default(), reading).unwrap().core;
            let mut fixture = Fixture { core, store, checkpoints: 0, polls: 0 };
            let settings = QueueSettings { finished_max: 3, ..QueueSettings::DEFAULT };
            let configure = ConfigureQueue { queue: queue(), settings, seed_only: false };
            fixture.give(Command::ConfigureQueue(configure));
            fixture
        }

        fn round(&mut self, request: Request) {
            self.core.begin(2_000, None);
            self.core.handle(request);
            self.core.settle();
            for delivery in self.core.take(None).deliveries {
                delivery.leave();
            }
        }

        fn give(&mut self, command: Command) {
            let reply =
                Box::new(|results: Vec<Result<_, _>>| assert!(results.iter().all(Result::is_ok)));
            self.round(Request::Commands(Commands { items: vec![command], reply }));
        }

        /// A job comes, is done, and has a large result.
        fn finish(&mut self) {
            self.give(Command::CreateJob(CreateJob {
                queue: queue(),
                job_type: "".into(),
                group: "g".into(),
                priority: 0,
                retries: 0,
                due: Due::Now,
                payload: Arc::default(),
                options: None,
            }));
            let (tx, jobs) = mpsc::channel();
            self.polls += 1;
            self.round(Request::Poll(Poll {
                id: WaiterId(self.polls),
                wanted: Wanted {
                    queues: vec![queue()],
                    worker: "w".into(),
                    lease_ms: 60_000,
                    with_token: true,
                },
                jobs_max: 1,
                bytes_max: u64::MAX,
                wait_ms: 0,
                reply: Box::new(move |jobs| {
                    tx.send(jobs.unwrap()).unwrap();
                    Vec::new()
                }),
            }));
            let job: HandedJob = jobs.recv().unwrap().remove(0);
            self.give(Command::CompleteJob(CompleteJob {
                lease: Lease { key: job.key, activation: Some(job.activation) },
                result: vec![7; 1_000].into(),
                documents: Vec::new(),
            }));
        }

        /// A checkpoint, in which so many jobs finish between the freeze and the first image.
        fn checkpoint(&mut self, meanwhile: usize) {
            self.checkpoints += 1;
            self.core.freeze(self.checkpoints);
            (0..meanwhile).for_each(|_| self.finish());
            let (mut images, checksum) = loop {
                if let Some(whole) = self.core.collect(1) {
                    break whole;
                }
            };
            images.write(&self.store, 0, checksum).unwrap();
            self.core.written(crate::checkpoint::Written::of(images));
        }

        fn stored(&self, tag: u8) -> Vec<u64> {
            let pairs = self.store.scan(&KeyRange::prefix([tag]));
            let number = |key: &[u8]| u64::from_be_bytes(key[5..].try_into().unwrap());
            pairs.map(|pair| number(&pair.unwrap().0)).collect()
        }

        /// What a restart finds.
        fn loaded(&self) -> (Finished, Vec<u64>) {
            let (mut finished, mut payloads) = (Finished::default(), PayloadStore::default());
            for pair in self.store.scan(&KeyRange::prefix([TAG])) {
                let (key, value) = pair.unwrap();
                finished.load(&key, &value, &mut payloads).unwrap();
            }
            let numbers = finished.newest(QueueId(0), 0).map(|(number, _)| number - 1).collect();
            (finished, numbers)
        }
    }

    fn queue() -> QueueName {
        QueueName { tenant: "t".into(), queue: "q".into() }
    }

    #[test]
    fn what_is_forgotten_behind_a_freeze_is_not_deleted_by_its_checkpoint() {
        let mut fixture = Fixture::new();
        (0..3).for_each(|_| fixture.finish());
        fixture.checkpoint(0);
        assert_eq!(
            (fixture.stored(TAG), fixture.stored(RESULT_TAG)),
            (vec![0, 1, 2], vec![0, 1, 2])
        );

        // The first two are forgotten meanwhile. Deliveries may be on their way to read them.
        fixture.checkpoint(2);
        assert_eq!(fixture.stored(RESULT_TAG), [0, 1, 2]);
        assert_eq!(fixture.loaded().1, [2, 1, 0], "as it was at the freeze");

        // These come in a gap: the first of them is forgotten before it was ever written.
        fixture.finish();
        fixture.checkpoint(4);
        assert_eq!(fixture.loaded().0.index.len(), fixture.loaded().1.len());
        for meanwhile in [3, 1, 5, 2, 0] {
            (0..meanwhile).for_each(|_| fixture.finish());
            fixture.checkpoint(meanwhile);
            let (loaded, numbers) = fixture.loaded();
            assert!(numbers.windows(2).all(|pair| pair[0] == pair[1] + 1), "{numbers:?}");
            assert_eq!(loaded.index.len(), numbers.len());
        }
        fixture.checkpoint(0);
        let (_, numbers) = fixture.loaded();
        let kept: Vec<u64> =
            fixture.core.finished.newest(QueueId(0), 0).map(|(number, _)| number - 1).collect();
        assert_eq!(numbers, kept);
        assert_eq!(fixture.stored(TAG).len(), 3, "nothing is left behind");
        assert_eq!(fixture.stored(RESULT_TAG).len(), 3, "nothing is left behind");
    }
}
