//! A second engine that has seen every durable record since the first one and no checkpoint: what
//! the state must be after a recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_engine::lifecycle::JobState;
use windlass_engine::state::image::hash_image;
use windlass_engine::{Engine, ImageSink};
use windlass_log::{Entry, FrameKind};
use windlass_partition::core::Core;
use windlass_partition::payload::Bytes;
use windlass_record::bound::Bounds;
use windlass_record::codec::{Decoder, Payloads, decode_event};
use windlass_record::event::Event;
use windlass_record::id::{PartitionId, Payload, PayloadHandle};

use super::coverage::Coverage;
use super::ledger::Ledger;

/// Images, by key.
pub type Images = BTreeMap<Vec<u8>, Vec<u8>>;

/// The second engine.
#[derive(Debug)]
pub struct Shadow {
    engine: Engine,
    shelf: Shelf,
    /// What its own checkpoint would hold.
    images: Images,
    /// A hash of each durable record.
    records: BTreeMap<u64, u64>,
}

/// Payloads of the second engine.
#[derive(Debug, Default)]
struct Shelf {
    places: Vec<Option<Arc<[u8]>>>,
}

impl Shelf {
    fn get(&self, payload: Payload) -> Arc<[u8]> {
        let place = usize::try_from(payload.handle.0).ok().and_then(|at| self.places.get(at));
        place.cloned().flatten().unwrap_or_default()
    }
}

impl Payloads for Shelf {
    fn bytes(&self, payload: Payload) -> &[u8] {
        let place = usize::try_from(payload.handle.0).ok().and_then(|at| self.places.get(at));
        place.and_then(Option::as_deref).unwrap_or_default()
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        if bytes.is_empty() {
            return Payload::EMPTY;
        }
        let handle = u32::try_from(self.places.len()).expect("a run is short");
        let len = u32::try_from(bytes.len()).expect("payloads are short");
        self.places.push(Some(bytes.into()));
        Payload { handle: PayloadHandle(handle), len }
    }
}

impl Shadow {
    /// Has seen nothing.
    #[must_use]
    pub fn new(bounds: Bounds) -> Shadow {
        Shadow {
            engine: Engine::new(PartitionId::FIRST, bounds),
            shelf: Shelf::default(),
            images: Images::new(),
            records: BTreeMap::new(),
        }
    }

    /// The newest record it has seen.
    #[must_use]
    pub fn last_lsn(&self) -> u64 {
        self.records.last_key_value().map_or(0, |(lsn, _)| *lsn)
    }

    /// Takes in a durable record, or compares it with what it was when it was seen before.
    pub fn accept(
        &mut self,
        entry: &Entry<'_>,
        ledger: &mut Ledger,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let hash = hash_image(&entry.lsn.to_le_bytes(), entry.payload);
        if let Some(before) = self.records.get(&entry.lsn) {
            let same = *before == hash;
            return if same { Ok(()) } else { Err(format!("record {} changed", entry.lsn)) };
        }
        if entry.lsn != self.last_lsn() + 1 {
            return Err(format!("record {} comes after {}", entry.lsn, self.last_lsn()));
        }
        self.records.insert(entry.lsn, hash);
        if entry.kind != FrameKind::Data {
            return Ok(());
        }
        let told = |error| format!("record {} cannot be decoded: {error}", entry.lsn);
        let mut from = Decoder::new(entry.payload);
        from.u8().map_err(told)?;
        let now_ms = entry.time_ms + from.u64().map_err(told)?;
        while !from.is_empty() {
            let event = decode_event(&mut from, &mut self.shelf).map_err(told)?;
            let bytes =
                payload_of(&event).map_or(Arc::default(), |payload| self.shelf.get(payload));
            ledger
                .apply(now_ms, &event, &bytes, coverage)
                .map_err(|why| format!("record {}: {why}", entry.lsn))?;
            self.engine.replay(now_ms, &event);
        }
        let mut served = Vec::new();
        self.engine.take_served(&mut served);
        let effects = self.engine.effects();
        effects.alerts.clear();
        effects.cancels.clear();
        let mut freed = std::mem::take(&mut effects.freed);
        freed.extend(effects.ended.drain(..).map(|ended| ended.result));
        for payload in freed {
            let place = usize::try_from(payload.handle.0).ok();
            if let Some(place) = place.and_then(|at| self.shelf.places.get_mut(at)) {
                *place = None;
            }
        }
        Ok(())
    }

    /// Whether an engine that was just recovered, with the store it was recovered from, has the
    /// same state. Uses the engine up: its images count as written afterwards.
    pub fn compare(&mut self, core: &mut Core, stored: Images) -> Result<(), String> {
        let mut found = stored;
        // Finished jobs are the shell's, and are looked at by asking for them.
        found.retain(|key, _| key.first() != Some(&b'f'));
        let payloads = &core.payloads;
        let bytes = |payload: Payload| match payloads.get(payload) {
            Bytes::Here(bytes) => Ok(bytes),
            Bytes::Stored(key) => Err(key),
        };
        let mut sink = Collect { images: &mut found, bytes: &bytes, lost: None };
        core.engine.freeze(&mut sink);
        core.engine.write_frozen(usize::MAX, &mut sink);
        if let Some(key) = sink.lost {
            return Err(format!("the payload under {key:02x?} is to be written and not here"));
        }

        let shelf = &self.shelf;
        let bytes = |payload: Payload| Ok(shelf.get(payload));
        let mut sink = Collect { images: &mut self.images, bytes: &bytes, lost: None };
        self.engine.freeze(&mut sink);
        self.engine.write_frozen(usize::MAX, &mut sink);

        for (engine, images) in [(&core.engine, &found), (&self.engine, &self.images)] {
            let (said, sum) = (engine.checksum(), images_sum(images));
            if said != sum {
                return Err(format!("the checksum is {said:016x}, that of the images {sum:016x}"));
            }
        }
        let ready = self.bays_with_ready_jobs();
        differ(&meaningful(found, &ready), &meaningful(self.images.clone(), &ready))
    }

    /// An image as it would be written now.
    pub fn image(&mut self, key: &[u8]) -> Option<&[u8]> {
        let shelf = &self.shelf;
        let bytes = |payload: Payload| Ok(shelf.get(payload));
        let mut sink = Collect { images: &mut self.images, bytes: &bytes, lost: None };
        self.engine.freeze(&mut sink);
        self.engine.write_frozen(usize::MAX, &mut sink);
        self.images.get(key).map(Vec::as_slice)
    }

    /// The image keys of bays that have ready jobs.
    fn bays_with_ready_jobs(&self) -> BTreeSet<Vec<u8>> {
        let state = self.engine.state();
        let mut limits = BTreeMap::new();
        for (key, value) in self.images.iter().filter(|(key, _)| key.first() == Some(&b'l')) {
            let mut from = Decoder::new(value);
            if let (Ok(_), Ok(_), Ok(name)) = (from.u8(), from.str(), from.str()) {
                let id = key.get(1..5).and_then(|id| <[u8; 4]>::try_from(id).ok());
                limits.insert(name.to_owned(), u32::from_be_bytes(id.unwrap_or_default()) + 1);
            }
        }
        let number =
            |name: Option<&str>| name.and_then(|name| limits.get(name)).map_or(0, |id| *id);
        let ready = state.jobs().iter().filter(|(_, job)| job.state == JobState::Ready);
        ready
            .map(|(slot, _)| {
                let (concurrency, rate) = state.limit_names(slot);
                let mut key = vec![if state.wants_token(slot) { b'B' } else { b'b' }];
                for part in [state.queue_of(slot).0, number(concurrency), number(rate)] {
                    key.extend_from_slice(&part.to_be_bytes());
                }
                key.extend_from_slice(state.group_name(slot).as_bytes());
                key
            })
            .collect()
    }
}

/// The checksum that a state with these images has.
#[must_use]
pub fn images_sum(images: &Images) -> u64 {
    let of_state = images.iter().filter(|(key, _)| !matches!(key.first(), Some(b'p' | b'D')));
    of_state.fold(0, |sum, (key, value)| sum.wrapping_add(hash_image(key, value)))
}

/// Where a bay without ready jobs stands means nothing, and its image is let grow old.
fn meaningful(mut images: Images, ready: &BTreeSet<Vec<u8>>) -> Images {
    let bays = images.iter_mut().filter(|(key, _)| matches!(key.first(), Some(b'b' | b'B')));
    for (_, value) in bays.filter(|(key, _)| !ready.contains(*key)) {
        if let Some(place) = value.get_mut(1) {
            *place = 0;
        }
    }
    images
}

fn differ(found: &Images, expected: &Images) -> Result<(), String> {
    for key in found.keys().chain(expected.keys()) {
        let (found, expected) = (found.get(key), expected.get(key));
        if found != expected {
            let name = String::from_utf8_lossy(key);
            return Err(format!(
                "the image {name:?} ({key:02x?}) is {found:02x?}, a replay of all has {expected:02x?}"
            ));
        }
    }
    Ok(())
}

fn payload_of(event: &Event<'_>) -> Option<Payload> {
    if let Event::JobCreated(created) = event {
        return Some(created.payload);
    }
    if let Event::JobEnded { result: bytes, .. } | Event::DocumentPut { bytes, .. } = event {
        return Some(*bytes);
    }
    None
}

struct Collect<'a> {
    images: &'a mut Images,
    bytes: &'a dyn Fn(Payload) -> Result<Arc<[u8]>, Vec<u8>>,
    lost: Option<Vec<u8>>,
}

impl ImageSink for Collect<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.images.insert(key.to_vec(), value.to_vec());
    }

    fn put_payload(&mut self, key: &[u8], payload: Payload) {
        match (self.bytes)(payload) {
            Ok(bytes) => {
                self.images.insert(key.to_vec(), bytes.to_vec());
            }
            Err(stored) => self.lost = Some(stored),
        }
    }

    fn delete(&mut self, key: &[u8]) {
        self.images.remove(key);
    }
}
