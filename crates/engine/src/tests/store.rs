//! A checkpoint store in memory, and what a restart makes of it and the log.

use std::collections::BTreeMap;

use windlass_record::bound::Bounds;
use windlass_record::codec::{Decoder, Payloads, decode_event};
use windlass_record::id::{PartitionId, Payload};

use crate::state::image::hash_image;
use crate::verb::check::Shelf;
use crate::{Engine, ImageSink, State};

/// Images and payloads of the newest whole checkpoint, and the one that is being written.
#[derive(Default)]
pub(super) struct Store {
    images: BTreeMap<Vec<u8>, Vec<u8>>,
    payloads: BTreeMap<Vec<u8>, Vec<u8>>,
    staged: Vec<Change>,
}

enum Change {
    Put(Vec<u8>, Vec<u8>),
    Payload(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// The store while it takes images. Payload bytes are fetched at once: they may be freed later.
pub(super) struct Writing<'a> {
    pub(super) store: &'a mut Store,
    pub(super) shelf: &'a Shelf,
}

impl ImageSink for Writing<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.store.staged.push(Change::Put(key.to_vec(), value.to_vec()));
    }

    fn put_payload(&mut self, key: &[u8], payload: Payload) {
        let bytes = self.shelf.bytes(payload).to_vec();
        self.store.staged.push(Change::Payload(key.to_vec(), bytes));
    }

    fn delete(&mut self, key: &[u8]) {
        self.store.staged.push(Change::Delete(key.to_vec()));
    }
}

impl Store {
    /// How much was written of the next checkpoint.
    pub(super) fn staged(&self) -> usize {
        self.staged.len()
    }

    /// The checkpoint is whole.
    pub(super) fn commit(&mut self) {
        for change in self.staged.drain(..) {
            match change {
                Change::Put(key, value) => {
                    self.images.insert(key, value);
                }
                Change::Payload(key, bytes) => {
                    self.payloads.insert(key, bytes);
                }
                Change::Delete(key) => {
                    let image = self.images.remove(&key);
                    let payload = self.payloads.remove(&key);
                    // A payload that was never written is deleted in vain: it was empty.
                    let known = image.is_some() || payload.is_some();
                    assert!(known || key.starts_with(b"D"), "{key:?} is not there");
                }
            }
        }
    }

    /// A restart forgets what was not whole.
    pub(super) fn abandon(&mut self) {
        self.staged.clear();
    }

    /// The checksum that a scan finds.
    pub(super) fn checksum(&self) -> u64 {
        self.images
            .iter()
            .fold(0, |sum: u64, (key, value)| sum.wrapping_add(hash_image(key, value)))
    }

    /// How many payloads no image refers to any more.
    pub(super) fn payloads(&self) -> usize {
        self.payloads.len()
    }

    /// Loads the checkpoint.
    pub(super) fn load(&self, bounds: Bounds, shelf: &mut Shelf) -> Engine {
        let mut engine = Engine::new(PartitionId::FIRST, bounds);
        for tag in State::LOAD_ORDER {
            for (key, value) in self.images.iter().filter(|(key, _)| key.first() == Some(&tag)) {
                let mut payload = |key: &[u8], len: u32| {
                    if len == 0 {
                        return Payload::EMPTY;
                    }
                    let bytes = self.payloads.get(key).expect("the payload was written");
                    assert_eq!(bytes.len(), len as usize);
                    Payloads::keep(shelf, bytes)
                };
                engine.load(key, value, &mut payload).expect("own images");
            }
        }
        engine.finish_load();
        engine
    }
}

/// Replays events into an engine.
pub(super) fn replay(engine: &mut Engine, shelf: &mut Shelf, events: &[(u64, Vec<u8>)]) {
    for (now_ms, bytes) in events {
        let event = decode_event(&mut Decoder::new(bytes), shelf).expect("own encoding");
        engine.replay(*now_ms, &event);
    }
}
