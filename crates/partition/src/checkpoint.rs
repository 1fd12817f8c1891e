//! A checkpoint under way: images are collected on the loop a bounded number at a time and written
//! by a thread of their own, once the log is durable up to the freeze.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use windlass_checkpoint::{Checkpoint, Entry, Error, Stamp};
use windlass_engine::ImageSink;
use windlass_engine::state::image::IMAGE_VERSION;
use windlass_log::{LogError, Position};
use windlass_record::id::Payload;

use crate::payload::PayloadStore;

/// Images since a freeze.
pub struct Images {
    /// The number of this checkpoint, from 1.
    pub number: u32,
    /// The newest record that the images hold.
    pub lsn: u64,
    /// When they were frozen.
    pub time_ms: u64,
    /// Keys and values, one after the other.
    bytes: Vec<u8>,
    entries: Vec<ImageEntry>,
}

#[derive(Clone)]
struct ImageEntry {
    /// The first bytes of the key, for comparing without a look at the bytes.
    prefix: u128,
    key_at: usize,
    value_at: usize,
    end: usize,
    value: ImageValue,
}

#[derive(Clone)]
enum ImageValue {
    /// In `bytes`.
    Inline,
    Shared(Arc<[u8]>),
    Deleted,
}

impl Images {
    /// None yet.
    pub fn new(number: u32, lsn: u64, time_ms: u64) -> Images {
        Images { number, lsn, time_ms, bytes: Vec::new(), entries: Vec::new() }
    }

    /// Where the engine puts images.
    pub fn sink<'a>(&'a mut self, payloads: &'a mut PayloadStore) -> impl ImageSink + 'a {
        Collector { images: self, payloads }
    }

    /// Where the shell puts images of its own.
    pub(crate) fn plain_sink(&mut self) -> impl ImageSink + '_ {
        PlainCollector { images: self }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn key(&self, entry: &ImageEntry) -> &[u8] {
        self.bytes.get(entry.key_at..entry.value_at).expect("entries lie within the bytes")
    }

    fn push(&mut self, key: &[u8], inline: &[u8], value: ImageValue) {
        let key_at = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(inline);
        let prefix = prefix_of(key);
        self.entries.push(ImageEntry { prefix, key_at, value_at, end: self.bytes.len(), value });
    }

    fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| self.key(a).cmp(self.key(b))));
        // A key may have been deleted and written again between two freezes: the last one counts.
        entries.dedup_by(|later, earlier| {
            let same = later.prefix == earlier.prefix && self.key(later) == self.key(earlier);
            if same {
                *earlier = later.clone();
            }
            same
        });
        self.entries = entries;
    }

    /// Writes them.
    pub fn write(
        &mut self,
        checkpoint: &dyn Checkpoint,
        position: u64,
        checksum: u64,
    ) -> windlass_checkpoint::Result<()> {
        self.sort();
        let stamp = Stamp {
            lsn: self.lsn,
            position,
            time_ms: self.time_ms,
            checksum,
            format: u32::from(IMAGE_VERSION),
            meta: Vec::new(),
        };
        let mut entries = self.entries.iter().map(|entry| {
            let key = self.key(entry);
            Ok(match &entry.value {
                ImageValue::Inline => {
                    let value = self.bytes.get(entry.value_at..entry.end);
                    Entry::put(key, value.expect("entries lie within the bytes"))
                }
                ImageValue::Shared(bytes) => Entry::put(key, &**bytes),
                ImageValue::Deleted => Entry::delete(key),
            })
        });
        checkpoint.write(&mut entries, &stamp)
    }
}

/// The first sixteen bytes of a key as a number that orders as they do.
fn prefix_of(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().zip(key) {
        *place = *byte;
    }
    u128::from_be_bytes(bytes)
}

/// For images without payloads.
struct PlainCollector<'a> {
    images: &'a mut Images,
}

impl ImageSink for PlainCollector<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.images.push(key, value, ImageValue::Inline);
    }

    fn put_payload(&mut self, _key: &[u8], _payload: Payload) {
        unreachable!("the shell's own images hold their bytes")
    }

    fn delete(&mut self, key: &[u8]) {
        self.images.push(key, &[], ImageValue::Deleted);
    }
}

struct Collector<'a> {
    images: &'a mut Images,
    payloads: &'a mut PayloadStore,
}

impl ImageSink for Collector<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.images.push(key, value, ImageValue::Inline);
    }

    fn put_payload(&mut self, key: &[u8], payload: Payload) {
        let bytes = self.payloads.save(payload, key, self.images.number);
        self.images.push(key, &[], ImageValue::Shared(bytes));
    }

    fn delete(&mut self, key: &[u8]) {
        self.images.push(key, &[], ImageValue::Deleted);
    }
}

/// A checkpoint for the writer thread.
pub struct Order {
    /// What is written.
    pub images: Images,
    /// Where the log is read from after it.
    pub position: Option<Position>,
    /// Of the state.
    pub checksum: u64,
}

/// A checkpoint was written.
pub struct Written {
    /// Its number.
    pub number: u32,
    /// The newest record that it holds.
    pub lsn: u64,
    /// When its images were frozen.
    pub time_ms: u64,
}

/// The writer thread: writes checkpoints one after the other and trims the log behind them. A
/// failed write is tried again, for its images are only here, unless the store says that nothing
/// but opening it again helps: then the partition must stop.
pub(crate) fn write_checkpoints(
    orders: &Receiver<Order>,
    written: &Sender<windlass_checkpoint::Result<Written>>,
    checkpoint: &dyn Checkpoint,
    trim: impl Fn(u64) -> Result<(), LogError>,
) {
    const RETRY_AFTER: Duration = Duration::from_millis(500);
    while let Ok(mut order) = orders.recv() {
        let position = order.position.map_or(0, Position::to_raw);
        while let Err(error) = order.images.write(checkpoint, position, order.checksum) {
            if matches!(error, Error::Poisoned | Error::Stale) {
                // The loop may have ended.
                let _ = written.send(Err(error));
                return;
            }
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "failed to write a checkpoint, trying again"
            );
            // There is no second order before the first is done, but there may be an end.
            if let Err(RecvTimeoutError::Disconnected) = orders.recv_timeout(RETRY_AFTER) {
                return;
            }
        }
        if let Err(error) = trim(order.images.lsn) {
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to trim the log");
        }
        let Images { number, lsn, time_ms, .. } = order.images;
        let done = Written { number, lsn, time_ms };
        if written.send(Ok(done)).is_err() {
            return;
        }
    }
}
