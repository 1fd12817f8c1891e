//! Writing images: the freeze, and what is written behind it.

use windlass_flow::FlowState;
use windlass_flow::state::image::PutImage;
use windlass_record::codec::{
    Encoder, encode_failures, encode_limit_settings, encode_options, encode_queue_settings,
};
use windlass_record::event::IncidentKind;

use super::{
    EarlyImage, IMAGE_VERSION, ImageSink, State, hash_image, job_key, keyed, numbered, payload_key,
    request_key,
};
use crate::lifecycle::JobState;
use crate::state::document::DocumentName;
use crate::state::fair::BayPlace;
use crate::state::job::{NONE, Slot};
use crate::state::limit::Gate;

impl State {
    /// Sets the dirty jobs and requests aside and writes everything else that is dirty. Must not be called
    /// while frozen jobs remain to be written.
    pub(crate) fn freeze(&mut self, sink: &mut dyn ImageSink) {
        assert!(self.dirt.frozen.is_empty(), "one checkpoint at a time");
        assert!(self.dirt.early.is_empty(), "one checkpoint at a time");
        self.dirt.frozen = std::mem::take(&mut self.dirt.jobs);
        self.dirt.frozen_list = self.dirt.list;
        self.dirt.list = self.dirt.list.wrapping_add(1).max(1);
        self.dirt.frozen_dead_jobs = std::mem::take(&mut self.dirt.dead_jobs);
        self.requests.freeze();
        for (key, image_hash) in std::mem::take(&mut self.dirt.dead) {
            self.dirt.checksum = self.dirt.checksum.wrapping_sub(image_hash);
            sink.delete(&key);
        }
        self.write_groups_and_bays(sink);
        self.write_queues_and_limits(sink);
        self.write_holds(sink);
        self.write_documents(sink);
        self.write_schedules(sink);
        self.write_flow(sink, |flow, put| flow.freeze(put));
        let mut value = vec![IMAGE_VERSION];
        let out = &mut Encoder::new(&mut value);
        out.u64(self.last_ms);
        out.u64(self.last_counter);
        out.u64(self.last_stamp);
        out.u32(self.last_limit);
        let old = self.dirt.counters_hash;
        self.dirt.counters_hash = self.put_small(sink, b"m", &value, old);
    }

    /// Writes up to `jobs_max` frozen jobs, and as many ended ones, entities of flows, and requests. True when none remain: the images since the freeze are
    /// the state as it was then, and [`State::checksum`] is theirs.
    pub(crate) fn write_frozen(&mut self, jobs_max: usize, sink: &mut dyn ImageSink) -> bool {
        self.write_early_images(sink);
        for _ in 0..jobs_max {
            let Some((key, image_hash, has_payload)) = self.dirt.frozen_dead_jobs.pop() else {
                break;
            };
            self.dirt.checksum = self.dirt.checksum.wrapping_sub(image_hash);
            sink.delete(&keyed(b'j', key));
            if has_payload {
                sink.delete(&payload_key(key));
            }
        }
        let mut value = Vec::new();
        for _ in 0..jobs_max {
            let Some(slot) = self.dirt.frozen.pop() else { break };
            if self.jobs.get(slot).dirty != self.dirt.frozen_list {
                // It changed or ended since, and its image was written then.
                continue;
            }
            value.clear();
            self.job_image(slot, &mut value);
            let job = self.jobs.get_mut(slot);
            job.dirty = 0;
            sink.put(&job_key(job), &value);
            if job.image_hash == 0 && job.payload.len > 0 {
                sink.put_payload(&payload_key(job.key), job.payload);
            }
            self.account(slot, &value);
        }
        let flow_is_written = self.write_flow(sink, |flow, put| flow.write_frozen(jobs_max, put));
        self.write_frozen_requests(jobs_max, sink)
            && flow_is_written
            && self.dirt.frozen.is_empty()
            && self.dirt.frozen_dead_jobs.is_empty()
    }

    /// Lets the flows write images, and accounts for them.
    fn write_flow<T>(
        &mut self,
        sink: &mut dyn ImageSink,
        write: impl FnOnce(&mut FlowState, &mut PutImage<'_>) -> T,
    ) -> T {
        let State { flow, dirt, .. } = self;
        let checksum = &mut dirt.checksum;
        write(flow, &mut |key, value, old| {
            let new = value.map_or(0, |value| hash_image(key, value));
            *checksum = checksum.wrapping_sub(old).wrapping_add(new);
            match value {
                Some(value) if new != old => sink.put(key, value),
                Some(_) => {}
                None => sink.delete(key),
            }
            new
        })
    }

    /// Writes frozen images that could not wait. The shell calls this after every command while a
    /// checkpoint is being written, before it frees payloads.
    pub(crate) fn write_early_images(&mut self, sink: &mut dyn ImageSink) {
        for EarlyImage { key, value, payload } in self.dirt.early.drain(..) {
            sink.put(&keyed(b'j', key), &value);
            if let Some(payload) = payload {
                sink.put_payload(&payload_key(key), payload);
            }
        }
        self.write_flow(sink, |flow, put| flow.write_early(put));
    }

    /// How many jobs would be written if the state were frozen now.
    pub(crate) fn dirty_jobs(&self) -> usize {
        self.dirt.jobs.len() + self.flow.dirty_entities()
    }

    /// Sum of the hashes of all images written so far.
    pub(crate) fn checksum(&self) -> u64 {
        self.dirt.checksum
    }

    pub(super) fn put_small(
        &mut self,
        sink: &mut dyn ImageSink,
        key: &[u8],
        value: &[u8],
        old: u64,
    ) -> u64 {
        let new = hash_image(key, value);
        if new != old {
            self.dirt.checksum = self.dirt.checksum.wrapping_sub(old).wrapping_add(new);
            sink.put(key, value);
        }
        new
    }

    fn write_groups_and_bays(&mut self, sink: &mut dyn ImageSink) {
        for number in std::mem::take(&mut self.dirt.groups) {
            let group = self.groups.get(number);
            if group.queue.0 == NONE || !group.dirty {
                continue;
            }
            let mut value = vec![IMAGE_VERSION];
            let out = &mut Encoder::new(&mut value);
            out.u64(group.turn);
            out.u32(group.scheme_count);
            out.u64(group.idle_stamp);
            let old = group.image_hash;
            let key = self.group_key(number);
            let new = self.put_small(sink, &key, &value, old);
            let group = self.groups.get_mut(number);
            group.image_hash = new;
            group.dirty = false;
        }
        for number in std::mem::take(&mut self.dirt.bays) {
            let bay = self.bays.get(number);
            if bay.group == NONE || !bay.dirty {
                continue;
            }
            let mut value = vec![IMAGE_VERSION];
            let out = &mut Encoder::new(&mut value);
            out.u8(match bay.place {
                BayPlace::Empty => 0,
                BayPlace::Awake => 1,
                BayPlace::Parked(Gate::Concurrency) => 2,
                BayPlace::Parked(Gate::Rate) => 3,
            });
            out.u64(bay.stamp);
            let old = bay.image_hash;
            let key = self.bay_key(number);
            let new = self.put_small(sink, &key, &value, old);
            let bay = self.bays.get_mut(number);
            bay.image_hash = new;
            bay.dirty = false;
        }
    }

    fn write_queues_and_limits(&mut self, sink: &mut dyn ImageSink) {
        for id in std::mem::take(&mut self.dirt.queues) {
            let queue = self.queue(id);
            let mut value = vec![IMAGE_VERSION];
            let out = &mut Encoder::new(&mut value);
            out.str(&queue.tenant);
            out.str(&queue.name);
            out.bool(queue.paused);
            encode_queue_settings(out, &queue.settings);
            let old = queue.image_hash;
            let new = self.put_small(sink, &numbered(b'q', id.0), &value, old);
            let queue = self.queue_mut(id);
            queue.image_hash = new;
            queue.dirty = false;
        }
        for id in std::mem::take(&mut self.dirt.limits) {
            let Some(limit) = self.limits.get(&id) else { continue };
            let mut value = vec![IMAGE_VERSION];
            let out = &mut Encoder::new(&mut value);
            out.str(&limit.tenant);
            out.str(&limit.name);
            out.bool(limit.implied);
            encode_limit_settings(out, &limit.settings);
            out.u64(u64::try_from(limit.handed_ms.len()).expect("a length fits 64 bits"));
            for at_ms in &limit.handed_ms {
                out.u64(*at_ms);
            }
            let old = limit.image_hash;
            let new = self.put_small(sink, &numbered(b'l', id.0), &value, old);
            let limit = self.limit_mut(id);
            limit.image_hash = new;
            limit.dirty = false;
        }
    }

    fn write_holds(&mut self, sink: &mut dyn ImageSink) {
        for (name, image_hash) in std::mem::take(&mut self.unique_keys.dead) {
            self.dirt.checksum = self.dirt.checksum.wrapping_sub(image_hash);
            sink.delete(&unique_key(&name));
        }
        for name in std::mem::take(&mut self.unique_keys.fresh) {
            let Some(hold) = self.unique_keys.get_mut(&name) else { continue };
            if hold.until_ms == u64::MAX {
                continue;
            }
            let mut value = vec![IMAGE_VERSION];
            let out = &mut Encoder::new(&mut value);
            out.u64(hold.holder.raw());
            out.u64(hold.until_ms);
            let old = hold.image_hash;
            let new = self.put_small(sink, &unique_key(&name), &value, old);
            if let Some(hold) = self.unique_keys.get_mut(&name) {
                hold.image_hash = new;
            }
        }
    }

    /// Writes up to `requests_max` frozen images of requests. True when none remain.
    fn write_frozen_requests(&mut self, requests_max: usize, sink: &mut dyn ImageSink) -> bool {
        for _ in 0..requests_max {
            // What is no longer true goes first: a name may have come back.
            if let Some((scoped, image_hash)) = self.requests.frozen.dead.pop() {
                self.dirt.checksum = self.dirt.checksum.wrapping_sub(image_hash);
                sink.delete(&request_key(&scoped));
            } else if let Some((scoped, remembered, old)) = self.requests.frozen.early.pop() {
                self.put_small(sink, &request_key(&scoped), &remembered.image(), old);
            } else if let Some(scoped) = self.requests.next_frozen() {
                let Some(remembered) = self.requests.take_frozen(&scoped) else { continue };
                let (key, value) = (request_key(&scoped), remembered.image());
                let old = std::mem::replace(&mut remembered.image_hash, hash_image(&key, &value));
                self.put_small(sink, &key, &value, old);
            } else {
                return true;
            }
        }
        false
    }

    fn write_documents(&mut self, sink: &mut dyn ImageSink) {
        for (name, image_hash) in std::mem::take(&mut self.documents.dead) {
            self.dirt.checksum = self.dirt.checksum.wrapping_sub(image_hash);
            sink.delete(&document_key(b'd', &name));
            sink.delete(&document_key(b'D', &name));
        }
        for name in std::mem::take(&mut self.documents.changed) {
            let Some(document) = self.documents.by_name.get(&name) else { continue };
            let (version, bytes, old) = (document.version, document.bytes, document.image_hash);
            let mut value = vec![IMAGE_VERSION];
            let out = &mut Encoder::new(&mut value);
            out.u64(version);
            out.u32(bytes.len);
            let new = self.put_small(sink, &document_key(b'd', &name), &value, old);
            if new != old {
                sink.put_payload(&document_key(b'D', &name), bytes);
            }
            if let Some(document) = self.documents.by_name.get_mut(&name) {
                document.image_hash = new;
            }
        }
    }

    pub(super) fn job_image(&self, slot: Slot, value: &mut Vec<u8>) {
        let job = self.jobs.get(slot);
        let lane = self.lanes.get(job.lane);
        let bay = self.bays.get(lane.bay);
        let group = self.groups.get(bay.group);
        let out = &mut Encoder::new(value);
        out.u8(IMAGE_VERSION);
        out.u8(match job.state {
            JobState::Scheduled => 0,
            JobState::Ready => 1,
            JobState::Active => 2,
            JobState::Backoff => 3,
            JobState::Incident => 4,
            JobState::Completed | JobState::Failed | JobState::Cancelled | JobState::Vacant => {
                unreachable!("only live jobs have images")
            }
        });
        out.u8(job.flags.0);
        out.u32(group.queue.0);
        out.str(&group.name);
        out.str(if job.job_type == NONE { "" } else { self.types.text(job.job_type) });
        out.i32(lane.priority);
        out.i32(job.retries);
        out.u32(job.attempt);
        out.u32(job.activation);
        out.u64(job.order);
        out.u64(job.created_ms);
        out.u64(job.due_ms);
        out.u32(job.payload.len);
        out.str(if job.worker == NONE { "" } else { self.workers.text(job.worker) });
        let Some(extra) = job.extra() else {
            out.bool(false);
            return;
        };
        out.bool(true);
        for id in [bay.concurrency, bay.rate] {
            out.u64(id.map_or(0, |id| u64::from(id.0) + 1));
        }
        encode_options(out, &extra.options);
        encode_failures(out, &extra.failures);
        out.str(&extra.message);
        out.bool(extra.incident.is_some());
        if let Some(incident) = &extra.incident {
            out.u64(incident.key.raw());
            out.u8(match incident.kind {
                IncidentKind::NoRetries => 0,
                IncidentKind::ErrorNotCaught => 1,
                IncidentKind::Permanent => 2,
                IncidentKind::TooLarge => 3,
            });
            out.str(&incident.code);
            out.u64(incident.since_ms);
        }
        out.u64(extra.attempt_due_ms);
        out.u64(extra.attempt_started_ms);
        out.u64(extra.activated_ms);
        out.u8(extra.percent);
        out.str(&extra.note);
        out.u64(u64::try_from(extra.log.len()).expect("a length fits 64 bits"));
        for line in &extra.log {
            out.str(line);
        }
        out.u32(extra.log_dropped);
        out.str(&extra.cancel_reason);
    }
}

fn unique_key(name: &crate::state::memory::UniqueName) -> Vec<u8> {
    let mut key = numbered(b'u', name.0.0);
    key.extend_from_slice(name.1.as_bytes());
    key
}

/// The checkpoint key of a document, `d`, or of its bytes, `D`. Names hold no zero bytes.
pub(super) fn document_key(tag: u8, name: &DocumentName) -> Vec<u8> {
    let mut key = vec![tag];
    key.extend_from_slice(name.tenant.as_bytes());
    key.push(0);
    key.extend_from_slice(name.kind.as_bytes());
    key.push(0);
    key.extend_from_slice(name.id.as_bytes());
    key
}
