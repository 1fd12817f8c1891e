//! The last finished jobs of each queue, until there is a history: bounded in number and age.
//!
//! They belong to the shell: the engine forgets a job with its final event. They stand in checkpoints
//! beside the engine's images (key `f queue(4) number(8)`) and are not part of its checksum; what came
//! to rest behind the checkpoint is rebuilt from the log.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use windlass_engine::state::job::Extra;
use windlass_engine::{Ended, ImageSink, State};
use windlass_record::codec::{
    DecodeError, Decoder, Encoder, Payloads, decode_options, decode_outcome, encode_options,
    encode_outcome,
};
use windlass_record::event::Outcome;
use windlass_record::id::{JobKey, Payload, QueueId};

use crate::payload::{Bytes, PayloadStore};

/// The first byte of the keys of finished jobs in a checkpoint.
pub(crate) const TAG: u8 = b'f';
/// Version of their images.
const VERSION: u8 = 1;

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
}

#[derive(Debug, Default)]
struct Ring {
    jobs: VecDeque<FinishedJob>,
    /// The number of the first.
    first: u64,
    /// What of it stands in the newest checkpoint: from the first number to below the second.
    saved: (u64, u64),
    counts: [u64; 3],
}

impl Ring {
    fn end(&self) -> u64 {
        self.first + wide(self.jobs.len())
    }
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
        let (jobs_max, keep_ms) = (settings.finished_max, settings.finished_ms);
        let (queue, now_ms) = (ended.queue, ended.ended_ms);
        let ring = ring_mut(&mut self.queues, queue);
        *ring.counts.get_mut(count_of(ended.outcome)).expect("three outcomes") += 1;
        let jobs_max = usize::try_from(jobs_max).unwrap_or(usize::MAX);
        if jobs_max == 0 {
            freed.push(ended.result);
            return;
        }
        let job = FinishedJob::from(ended);
        self.index.insert(job.key, (queue, ring.end()));
        ring.jobs.push_back(job);
        while let Some(oldest) = ring.jobs.front() {
            let too_many = ring.jobs.len() > jobs_max || self.index.len() > total_max;
            let too_old = oldest.ended_ms.saturating_add(keep_ms) <= now_ms;
            if !too_many && !too_old {
                break;
            }
            let Some(oldest) = ring.jobs.pop_front() else { break };
            ring.first += 1;
            self.index.remove(&oldest.key);
            freed.push(oldest.result);
        }
    }

    pub(crate) fn get(&self, key: JobKey) -> Option<&FinishedJob> {
        let &(queue, number) = self.index.get(&key)?;
        let ring = self.ring(queue)?;
        ring.jobs.get(usize::try_from(number.checked_sub(ring.first)?).ok()?)
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

    /// Writes what is not in the newest checkpoint, and deletes from it what is forgotten.
    pub(crate) fn freeze(&mut self, payloads: &PayloadStore, sink: &mut dyn ImageSink) {
        let mut value = Vec::new();
        for (queue, ring) in (0..).map(QueueId).zip(&mut self.queues) {
            let (from, to) = ring.saved;
            for number in from..ring.first.min(to) {
                sink.delete(&image_key(queue, number));
            }
            let fresh = to.max(ring.first);
            let skip = usize::try_from(fresh - ring.first).unwrap_or(usize::MAX);
            for (number, job) in (fresh..).zip(ring.jobs.iter().skip(skip)) {
                value.clear();
                job.encode(payloads, &mut value);
                sink.put(&image_key(queue, number), &value);
            }
            ring.saved = (ring.first, ring.end());
        }
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
        let job = FinishedJob::decode(queue, value, payloads)?;
        let ring = ring_mut(&mut self.queues, queue);
        if ring.jobs.is_empty() {
            ring.first = number;
        }
        *ring.counts.get_mut(count_of(job.outcome)).expect("three outcomes") += 1;
        self.index.insert(job.key, (queue, ring.end()));
        ring.jobs.push_back(job);
        ring.saved = (ring.first, ring.end());
        Ok(())
    }

    fn ring(&self, queue: QueueId) -> Option<&Ring> {
        self.queues.get(usize::try_from(queue.0).ok()?)
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
            extra: ended.job.into_extra(),
        }
    }
}

impl FinishedJob {
    fn encode(&self, payloads: &PayloadStore, value: &mut Vec<u8>) {
        let result = match payloads.get(self.result) {
            Bytes::Here(bytes) => bytes,
            Bytes::Stored(_) => unreachable!("results are in no checkpoint of their own"),
        };
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
        out.bytes(&result);
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
        queue: QueueId,
        value: &[u8],
        payloads: &mut PayloadStore,
    ) -> Result<FinishedJob, DecodeError> {
        let from = &mut Decoder::new(value);
        let version = from.u8()?;
        if version != VERSION {
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
            result: payloads.keep(from.bytes()?),
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

fn ring_mut(queues: &mut Vec<Ring>, queue: QueueId) -> &mut Ring {
    let index = usize::try_from(queue.0).expect("usize has at least 32 bits");
    if queues.len() <= index {
        queues.resize_with(index + 1, Ring::default);
    }
    queues.get_mut(index).expect("just made")
}

fn image_key(queue: QueueId, number: u64) -> Vec<u8> {
    let mut key = vec![TAG];
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
