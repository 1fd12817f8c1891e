//! Reading images back: the state of a checkpoint.

use std::sync::Arc;

use windlass_flow::FlowState;
use windlass_record::codec::{
    DecodeError, Decoder, decode_failures, decode_limit_settings, decode_options,
    decode_queue_settings,
};
use windlass_record::event::IncidentKind;
use windlass_record::id::{JobKey, LimitId, Payload, QueueId};

use super::schedule::TAG;
use super::{IMAGE_VERSION, State, hash_image};
use crate::lifecycle::JobState;
use crate::state::document::{Document, DocumentName};
use crate::state::fair::{BayPlace, Class, Queue, Side};
use crate::state::job::{Extra, Flags, Incident, Job, NONE};
use crate::state::limit::{Gate, Limit};
use crate::state::memory::{Hold, Remembered};

/// An image that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// No image has such a key.
    UnknownKey,
    /// The image was written by a later version.
    UnknownVersion {
        /// Its version.
        version: u8,
    },
    /// Its bytes make no sense.
    Malformed(DecodeError),
    /// It refers to something that has no image.
    Dangling {
        /// To what.
        what: &'static str,
    },
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::UnknownKey => f.write_str("no image has such a key"),
            LoadError::UnknownVersion { version } => {
                write!(f, "image version {version} is newer than this program")
            }
            LoadError::Malformed(_) => f.write_str("the image is malformed"),
            LoadError::Dangling { what } => write!(f, "the image refers to a {what} without one"),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LoadError::Malformed(source) => Some(source),
            LoadError::UnknownKey
            | LoadError::UnknownVersion { .. }
            | LoadError::Dangling { .. } => None,
        }
    }
}

impl From<DecodeError> for LoadError {
    fn from(source: DecodeError) -> LoadError {
        LoadError::Malformed(source)
    }
}

impl State {
    /// The first bytes of image keys, in the order in which they must be loaded. Payloads stay in
    /// the store.
    pub const LOAD_ORDER: [u8; 29] = {
        let [r, p, v, e, t, s, m, n, i, u, l, a, c, h, w, k, f] = FlowState::LOAD_ORDER;
        [
            b'm', b'q', b'l', b'g', b'G', b'j', b'b', b'B', b'u', b'r', b'd', r, p, v, e, t, s, m,
            n, i, u, l, a, c, h, w, k, f, TAG,
        ]
    };

    /// Takes in one image. `payload` gives the place of a payload that stays in the store, by its
    /// key and length.
    pub(crate) fn load(
        &mut self,
        key: &[u8],
        value: &[u8],
        payload: &mut dyn FnMut(&[u8], u32) -> Payload,
    ) -> Result<(), LoadError> {
        let (&tag, rest) = key.split_first().ok_or(LoadError::UnknownKey)?;
        let mut from = Decoder::new(value);
        let version = from.u8()?;
        if version != IMAGE_VERSION {
            return Err(LoadError::UnknownVersion { version });
        }
        let hash = hash_image(key, value);
        match tag {
            b'm' => self.load_counters(&mut from, hash)?,
            b'q' => self.load_queue(&mut from, rest, hash)?,
            b'l' => self.load_limit(&mut from, rest, hash)?,
            b'g' => self.load_group(&mut from, Side::Open, rest, hash)?,
            b'G' => self.load_group(&mut from, Side::Fenced, rest, hash)?,
            b'j' => self.load_job(&mut from, rest, hash, payload)?,
            b'b' => self.load_bay(&mut from, Side::Open, rest, hash)?,
            b'B' => self.load_bay(&mut from, Side::Fenced, rest, hash)?,
            b'u' => self.load_hold(&mut from, rest, hash)?,
            b'r' => self.load_request(&mut from, rest, hash)?,
            b'd' => self.load_document(&mut from, key, hash, payload)?,
            TAG => self.load_schedule(&mut from, rest, hash)?,
            tag if FlowState::LOAD_ORDER.contains(&tag) => self.flow.load(key, value, hash)?,
            _ => return Err(LoadError::UnknownKey),
        }
        self.dirt.checksum = self.dirt.checksum.wrapping_add(hash);
        Ok(())
    }

    /// Derives what has no image of its own. After it the state is as it was at the freeze.
    pub(crate) fn finish_load(&mut self) {
        self.requests.finish_load();
        self.flow.finish_load();
        let bays: Vec<(u32, u64)> = self
            .bays
            .iter()
            .filter(|(_, bay)| bay.group != NONE && bay.ready_jobs > 0)
            .map(|(number, bay)| (number, bay.stamp))
            .collect();
        for (number, stamp) in bays {
            let bay = self.bays.get_mut(number);
            let limited = bay.concurrency.is_some() || bay.rate.is_some();
            if !limited {
                bay.place = BayPlace::Awake;
            }
            let (place, concurrency, rate) = (bay.place, bay.concurrency, bay.rate);
            let line = self.line_of(number);
            match place {
                BayPlace::Empty => {}
                BayPlace::Parked(gate) => {
                    let id = if gate == Gate::Concurrency { concurrency } else { rate };
                    if let Some(id) = id {
                        self.limit_mut(id).gate_mut(gate).line(line).parked.insert((stamp, number));
                    }
                }
                BayPlace::Awake => {
                    for (id, gate) in [(concurrency, Gate::Concurrency), (rate, Gate::Rate)] {
                        if let Some(id) = id {
                            self.limit_mut(id)
                                .gate_mut(gate)
                                .line(line)
                                .awake
                                .insert((stamp, number));
                        }
                    }
                    self.load_awake(number);
                }
            }
        }
        let mut listed: Vec<(u64, u32)> = self
            .groups
            .iter()
            .filter(|(_, group)| group.queue.0 != NONE && group.turn != 0)
            .map(|(number, group)| (group.turn, number))
            .collect();
        listed.sort_unstable();
        for (turn, number) in listed {
            self.groups.get_mut(number).turn = 0;
            self.list_insert(number, turn);
        }
        let mut limits: Vec<LimitId> = self.limits.keys().copied().collect();
        limits.sort_unstable();
        for id in limits {
            self.schedule_rate(id);
        }
        // What the load itself marked is as it is in the checkpoint.
        self.dirt.groups.clear();
        let numbers: Vec<u32> = self.groups.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.groups.get_mut(number).dirty = false;
        }
        self.dirt.bays.clear();
    }

    fn load_counters(&mut self, from: &mut Decoder<'_>, hash: u64) -> Result<(), LoadError> {
        self.last_ms = from.u64()?;
        self.last_counter = from.u64()?;
        self.last_stamp = from.u64()?;
        self.last_limit = from.u32()?;
        self.dirt.counters_hash = hash;
        Ok(())
    }

    fn load_queue(
        &mut self,
        from: &mut Decoder<'_>,
        rest: &[u8],
        hash: u64,
    ) -> Result<(), LoadError> {
        let id = QueueId(number(rest)?.0);
        let (tenant, name): (Arc<str>, Arc<str>) = (from.str()?.into(), from.str()?.into());
        let paused = from.bool()?;
        let settings = decode_queue_settings(from)?;
        if usize::try_from(id.0).ok() != Some(self.queues.len()) {
            return Err(LoadError::Dangling { what: "queue" });
        }
        let mut queue = Queue::new(tenant.clone(), name.clone(), settings);
        queue.paused = paused;
        queue.image_hash = hash;
        self.queues.push(queue);
        self.queue_names.insert((tenant, name), id);
        Ok(())
    }

    fn load_limit(
        &mut self,
        from: &mut Decoder<'_>,
        rest: &[u8],
        hash: u64,
    ) -> Result<(), LoadError> {
        let id = LimitId(number(rest)?.0);
        let (tenant, name): (Arc<str>, Arc<str>) = (from.str()?.into(), from.str()?.into());
        let mut limit = Limit::new(tenant, name);
        limit.implied = from.bool()?;
        limit.settings = decode_limit_settings(from)?;
        for _ in 0..from.u64()? {
            limit.handed_ms.push_back(from.u64()?);
        }
        limit.image_hash = hash;
        self.keep_limit(id, limit);
        Ok(())
    }

    fn load_group(
        &mut self,
        from: &mut Decoder<'_>,
        side: Side,
        rest: &[u8],
        hash: u64,
    ) -> Result<(), LoadError> {
        let (queue, name) = number(rest)?;
        self.known_queue(queue)?;
        let name = text(name)?;
        let number = self.group_named(QueueId(queue), side, name);
        let group = self.groups.get_mut(number);
        group.turn = from.u64()?;
        group.scheme_count = from.u32()?;
        group.idle_stamp = from.u64()?;
        group.image_hash = hash;
        if group.idle_stamp != 0 {
            let stamp = group.idle_stamp;
            self.idle_groups.insert((stamp, number));
        }
        Ok(())
    }

    fn load_bay(
        &mut self,
        from: &mut Decoder<'_>,
        side: Side,
        rest: &[u8],
        hash: u64,
    ) -> Result<(), LoadError> {
        let (queue, rest) = number(rest)?;
        let (concurrency, rest) = number(rest)?;
        let (rate, name) = number(rest)?;
        self.known_queue(queue)?;
        let keys = (concurrency.checked_sub(1).map(LimitId), rate.checked_sub(1).map(LimitId));
        let group = self.queue(QueueId(queue)).side(side).groups.get(text(name)?).copied();
        let dangling = LoadError::Dangling { what: "group or lane" };
        let group = group.ok_or(dangling.clone())?;
        let number = *self.bay_index.get(&(group, keys)).ok_or(dangling)?;
        let bay = self.bays.get_mut(number);
        bay.place = match from.u8()? {
            _ if bay.ready_jobs == 0 => BayPlace::Empty,
            2 => BayPlace::Parked(Gate::Concurrency),
            3 => BayPlace::Parked(Gate::Rate),
            _ => BayPlace::Awake,
        };
        bay.stamp = from.u64()?;
        bay.image_hash = hash;
        bay.dirty = false;
        Ok(())
    }

    fn load_hold(
        &mut self,
        from: &mut Decoder<'_>,
        rest: &[u8],
        hash: u64,
    ) -> Result<(), LoadError> {
        let (queue, key) = number(rest)?;
        let hold =
            Hold { holder: JobKey::from_raw(from.u64()?), until_ms: from.u64()?, image_hash: hash };
        self.unique_keys.load((QueueId(queue), text(key)?.into()), hold);
        Ok(())
    }

    fn load_request(
        &mut self,
        from: &mut Decoder<'_>,
        rest: &[u8],
        hash: u64,
    ) -> Result<(), LoadError> {
        let remembered = Remembered::new(JobKey::from_raw(from.u64()?), from.u64()?, hash);
        self.requests.load(text(rest)?, remembered);
        Ok(())
    }

    fn load_document(
        &mut self,
        from: &mut Decoder<'_>,
        key: &[u8],
        hash: u64,
        payload: &mut dyn FnMut(&[u8], u32) -> Payload,
    ) -> Result<(), LoadError> {
        let mut parts = key.get(1..).unwrap_or_default().splitn(3, |&byte| byte == 0);
        let mut part = || text(parts.next().unwrap_or_default()).map(Box::from);
        let name = DocumentName { tenant: part()?, kind: part()?, id: part()? };
        let version = from.u64()?;
        let mut bytes_key = key.to_vec();
        if let Some(tag) = bytes_key.first_mut() {
            *tag = b'D';
        }
        let bytes = payload(&bytes_key, from.u32()?);
        self.documents.by_name.insert(name, Document { version, bytes, image_hash: hash });
        Ok(())
    }

    fn load_job(
        &mut self,
        from: &mut Decoder<'_>,
        rest: &[u8],
        hash: u64,
        payload: &mut dyn FnMut(&[u8], u32) -> Payload,
    ) -> Result<(), LoadError> {
        let raw: [u8; 8] = rest.try_into().map_err(|_| LoadError::UnknownKey)?;
        let key = JobKey::from_raw(u64::from_be_bytes(raw));
        let state = match from.u8()? {
            0 => JobState::Scheduled,
            1 => JobState::Ready,
            2 => JobState::Active,
            3 => JobState::Backoff,
            4 => JobState::Incident,
            tag => return Err(DecodeError::UnknownTag { field: "job state", tag }.into()),
        };
        let flags = Flags(from.u8()?);
        let queue = from.u32()?;
        self.known_queue(queue)?;
        let queue = QueueId(queue);
        let group = from.str()?;
        let job_type = from.str()?;
        let priority = from.i32()?;
        let mut job = Job::new(key, 0, Payload::EMPTY);
        job.flags = flags;
        job.image_hash = hash;
        job.retries = from.i32()?;
        job.attempt = from.u32()?;
        job.activation = from.u32()?;
        job.order = from.u64()?;
        job.created_ms = from.u64()?;
        job.due_ms = from.u64()?;
        let payload_len = from.u32()?;
        if payload_len > 0 {
            job.payload = payload(&super::payload_key(key), payload_len);
        }
        let worker = from.str()?;
        let mut limits = (None, None);
        if from.bool()? {
            let mut limit = || -> Result<Option<LimitId>, LoadError> {
                let id = u32::try_from(from.u64()?).map_err(|_| DecodeError::NumberTooLarge)?;
                Ok(id.checked_sub(1).map(LimitId))
            };
            limits = (limit()?, limit()?);
            job.extra = Some(Box::new(load_extra(from)?));
        }
        for id in [limits.0, limits.1].into_iter().flatten() {
            if !self.limits.contains_key(&id) {
                return Err(LoadError::Dangling { what: "limit key" });
            }
        }
        if !job_type.is_empty() {
            job.job_type = self.types.add(job_type);
        }
        if !worker.is_empty() {
            job.worker = self.workers.add(worker);
        }
        job.state = state;
        let group = self.group_named(queue, flags.side(), group);
        let slot = self.jobs.insert(job);
        self.keys.insert(key, slot);
        let class = self.class_of(queue, slot);
        let lane = self.lane_for(group, limits, class, priority);
        self.join_lane(slot, lane);
        *self.queue_mut(queue).counts.of(state) += 1;
        if let Some(extra) = self.jobs.get(slot).extra() {
            if let Some(incident) = &extra.incident {
                self.incidents.insert(incident.key, key);
            }
            let unique_key = extra.options.unique_key.clone();
            if !unique_key.is_empty() {
                self.unique_keys.hold(queue, &unique_key, key);
            }
        }
        if state == JobState::Ready {
            let lane = self.lanes.get_mut(lane);
            lane.queue.insert(&self.jobs, slot);
            let bay = lane.bay;
            self.bays.get_mut(bay).ready_jobs += 1;
        }
        if state == JobState::Active
            && let Some(id) = limits.0
        {
            self.limit_mut(id).active += 1;
        }
        self.reset_wake(slot);
        Ok(())
    }

    fn known_queue(&self, id: u32) -> Result<(), LoadError> {
        let known = usize::try_from(id).is_ok_and(|index| index < self.queues.len());
        if known { Ok(()) } else { Err(LoadError::Dangling { what: "queue" }) }
    }
}

fn load_extra(from: &mut Decoder<'_>) -> Result<Extra, LoadError> {
    let mut extra = Extra {
        options: decode_options(from)?,
        failures: decode_failures(from)?,
        message: from.str()?.into(),
        ..Extra::default()
    };
    if from.bool()? {
        extra.incident = Some(Incident {
            key: JobKey::from_raw(from.u64()?),
            kind: match from.u8()? {
                0 => IncidentKind::NoRetries,
                1 => IncidentKind::ErrorNotCaught,
                2 => IncidentKind::Permanent,
                3 => IncidentKind::TooLarge,
                tag => return Err(DecodeError::UnknownTag { field: "incident kind", tag }.into()),
            },
            code: from.str()?.into(),
            since_ms: from.u64()?,
        });
    }
    extra.attempt_due_ms = from.u64()?;
    extra.attempt_started_ms = from.u64()?;
    extra.activated_ms = from.u64()?;
    extra.percent = from.u8()?;
    extra.note = from.str()?.into();
    for _ in 0..from.u64()? {
        extra.log.push(from.str()?.into());
    }
    extra.log_dropped = from.u32()?;
    extra.cancel_reason = from.str()?.into();
    Ok(extra)
}

fn number(bytes: &[u8]) -> Result<(u32, &[u8]), LoadError> {
    let (head, rest) = bytes.split_first_chunk::<4>().ok_or(LoadError::UnknownKey)?;
    Ok((u32::from_be_bytes(*head), rest))
}

fn text(bytes: &[u8]) -> Result<&str, LoadError> {
    std::str::from_utf8(bytes).map_err(|_| LoadError::Malformed(DecodeError::NotText))
}

/// Retries due first are a class of their own; see [`Class`].
const _: () = assert!((Class::Retry as u8) < (Class::Usual as u8));
