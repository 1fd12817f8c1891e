//! A checkpoint under way: images are collected on the loop a bounded number at a time and written
//! by a thread of their own, once the log is durable up to the freeze.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use windlass_checkpoint::{Checkpoint, Entry, Stamp};
use windlass_engine::ImageSink;
use windlass_engine::state::image::IMAGE_VERSION;
use windlass_log::{LogError, Position};
use windlass_record::id::Payload;

use crate::core::Core;
use crate::parts::Parts;
use crate::payload::PayloadStore;

/// Bytes of a chunk of images.
const CHUNK_BYTES: usize = 1 << 20;

/// Images of a run.
const RUN_LEN: usize = 1 << 14;

/// Bytes of images that are collected in one round, but for the last of them …
const BYTES_PER_ROUND_MAX: u64 = 1 << 20;

/// … which are so many at most: between them it is looked how many bytes there are.
const IMAGES_AT_ONCE: usize = 8;

/// Chunks, and runs, that are kept for the next checkpoint.
const SPARE_MAX: usize = 64;

/// Images since a freeze. They are collected by the loop, which must not stop to move what it has to
/// a larger place: so they lie in chunks, and those are used again.
pub struct Images {
    /// The number of this checkpoint, from 1.
    pub number: u32,
    /// The newest record that the images hold.
    pub lsn: u64,
    /// When they were frozen.
    pub time_ms: u64,
    /// Keys and values, one after the other. None of them lies in two chunks.
    chunks: Vec<Vec<u8>>,
    /// In the order in which they came; each run is sorted before they are written.
    runs: Vec<Vec<ImageEntry>>,
    /// Keys and values that were copied into chunks, since there are images.
    bytes: u64,
    /// Empty, of the checkpoint before.
    spare_chunks: Vec<Vec<u8>>,
    spare_runs: Vec<Vec<ImageEntry>>,
}

struct ImageEntry {
    /// The first bytes of the key, for comparing without a look at the bytes.
    prefix: u128,
    chunk: u32,
    key_at: u32,
    /// [`DELETED`] where there is none.
    value_at: u32,
    end: u32,
    /// The value, where it is not in the chunk.
    shared: Option<Arc<[u8]>>,
}

/// What an image says.
enum Value<'a> {
    Inline(&'a [u8]),
    Shared(Arc<[u8]>),
    Deleted,
}

impl<'a> Value<'a> {
    fn of(image: Option<&'a [u8]>) -> Value<'a> {
        image.map_or(Value::Deleted, Value::Inline)
    }
}

/// There are two for every new job.
const _: () = assert!(size_of::<ImageEntry>() == 48);

const DELETED: u32 = u32::MAX;

impl Images {
    /// None yet.
    pub fn new(number: u32, lsn: u64, time_ms: u64) -> Images {
        Images {
            number,
            lsn,
            time_ms,
            chunks: Vec::new(),
            runs: Vec::new(),
            bytes: 0,
            spare_chunks: Vec::new(),
            spare_runs: Vec::new(),
        }
    }

    /// The same in the place of those that were written.
    pub(crate) fn renew(self, number: u32, lsn: u64, time_ms: u64) -> Images {
        Images { number, lsn, time_ms, ..self }
    }

    /// They are written: forgets them, and keeps some of their place.
    fn clear(&mut self) {
        for mut chunk in self.chunks.drain(..) {
            // A large one was made for one image.
            if self.spare_chunks.len() < SPARE_MAX && chunk.capacity() <= 2 * CHUNK_BYTES {
                chunk.clear();
                self.spare_chunks.push(chunk);
            }
        }
        for mut run in self.runs.drain(..) {
            run.clear();
            if self.spare_runs.len() < SPARE_MAX {
                self.spare_runs.push(run);
            }
        }
    }

    /// Where the engine puts images.
    pub(crate) fn sink<'a>(
        &'a mut self,
        payloads: &'a mut PayloadStore,
        parts: &'a mut Parts,
    ) -> impl ImageSink + 'a {
        Collector { images: self, payloads, parts }
    }

    /// An image of the shell's own, new or changed.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.push(key, Value::Inline(value));
    }

    /// The bytes of a payload that belongs to an image; written once.
    pub(crate) fn put_payload(
        &mut self,
        payloads: &mut PayloadStore,
        key: &[u8],
        payload: Payload,
    ) {
        let bytes = payloads.save(payload, key, self.number);
        self.push(key, Value::Shared(bytes));
    }

    /// An image of the shell's own that is no longer there.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.push(key, Value::Deleted);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    fn push(&mut self, key: &[u8], value: Value<'_>) {
        let place = |at: usize| u32::try_from(at).expect("a chunk is far below 4 GiB");
        let is_deleted = matches!(value, Value::Deleted);
        let (inline, shared) = match value {
            Value::Inline(bytes) => (bytes, None),
            Value::Shared(bytes) => (&[][..], Some(bytes)),
            Value::Deleted => (&[][..], None),
        };
        let bytes = key.len() + inline.len();
        self.bytes += u64::try_from(bytes).expect("a length fits 64 bits");
        if self.chunks.last().is_none_or(|chunk| chunk.capacity() - chunk.len() < bytes) {
            let spare = self.spare_chunks.pop().filter(|chunk| chunk.capacity() >= bytes);
            let fresh = || Vec::with_capacity(bytes.max(CHUNK_BYTES));
            self.chunks.push(spare.unwrap_or_else(fresh));
        }
        let number = place(self.chunks.len() - 1);
        let chunk = self.chunks.last_mut().expect("one was just seen to");
        let key_at = place(chunk.len());
        chunk.extend_from_slice(key);
        let behind_key = place(chunk.len());
        chunk.extend_from_slice(inline);
        let (prefix, end) = (prefix_of(key), place(chunk.len()));
        let value_at = if is_deleted { DELETED } else { behind_key };
        if self.runs.last().is_none_or(|run| run.len() == RUN_LEN) {
            let fresh = || Vec::with_capacity(RUN_LEN);
            self.runs.push(self.spare_runs.pop().unwrap_or_else(fresh));
        }
        let run = self.runs.last_mut().expect("one was just seen to");
        run.push(ImageEntry { prefix, chunk: number, key_at, value_at, end, shared });
    }

    fn part(&self, entry: &ImageEntry, from: u32, to: u32) -> &[u8] {
        let place = |at: u32| usize::try_from(at).expect("usize has at least 32 bits");
        let chunk = self.chunks.get(place(entry.chunk));
        let part = chunk.and_then(|chunk| chunk.get(place(from)..place(to)));
        part.expect("entries lie within their chunks")
    }

    fn key(&self, entry: &ImageEntry) -> &[u8] {
        let to = if entry.value_at == DELETED { entry.end } else { entry.value_at };
        self.part(entry, entry.key_at, to)
    }

    fn entry<'a>(&'a self, entry: &'a ImageEntry) -> Entry<'a> {
        let key = self.key(entry);
        match &entry.shared {
            _ if entry.value_at == DELETED => Entry::delete(key),
            Some(bytes) => Entry::put(key, &**bytes),
            None => Entry::put(key, self.part(entry, entry.value_at, entry.end)),
        }
    }

    fn sort(&mut self) {
        let mut runs = std::mem::take(&mut self.runs);
        for run in &mut runs {
            // Equal keys stay in the order in which they came.
            run.sort_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| self.key(a).cmp(self.key(b))));
        }
        self.runs = runs;
    }

    /// All in the order of their keys, each key once: one may have been deleted and written again
    /// since the freeze before, and the last one counts.
    fn merged(&self) -> impl Iterator<Item = &ImageEntry> {
        let mut heads = BinaryHeap::with_capacity(self.runs.len());
        let head = |run: usize, index: usize| {
            let entry = self.runs.get(run)?.get(index)?;
            Some(Reverse(Head { prefix: entry.prefix, key: self.key(entry), run, index }))
        };
        heads.extend((0..self.runs.len()).filter_map(|run| head(run, 0)));
        std::iter::from_fn(move || {
            let Reverse(mut last) = heads.pop()?;
            heads.extend(head(last.run, last.index + 1));
            while let Some(Reverse(next)) = heads.peek()
                && next.prefix == last.prefix
                && next.key == last.key
            {
                let Reverse(next) = heads.pop()?;
                heads.extend(head(next.run, next.index + 1));
                last = next;
            }
            self.runs.get(last.run)?.get(last.index)
        })
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
        let mut entries = self.merged().map(|entry| Ok(self.entry(entry)));
        checkpoint.write(&mut entries, &stamp)
    }
}

/// The first entry of a run that is not written yet; of equal keys the one that came first is less.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head<'a> {
    prefix: u128,
    key: &'a [u8],
    run: usize,
    index: usize,
}

/// The first sixteen bytes of a key as a number that orders as they do.
fn prefix_of(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().zip(key) {
        *place = *byte;
    }
    u128::from_be_bytes(bytes)
}

struct Collector<'a> {
    images: &'a mut Images,
    payloads: &'a mut PayloadStore,
    parts: &'a mut Parts,
}

impl ImageSink for Collector<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.parts.put(key, value, |key, value| self.images.push(key, Value::of(value)));
    }

    fn put_payload(&mut self, key: &[u8], payload: Payload) {
        self.images.put_payload(self.payloads, key, payload);
    }

    fn delete(&mut self, key: &[u8]) {
        self.parts.delete(key, |key, value| self.images.push(key, Value::of(value)));
    }
}

impl Core {
    /// Begins a checkpoint, by its number: sets aside what there is much of and writes the rest.
    /// What was set aside is for [`Core::collect`].
    pub fn freeze(&mut self, number: u32) {
        let (lsn, now_ms) = (self.last_lsn(), self.now_ms());
        let mut images = match self.spent_images.take() {
            Some(spent) => spent.renew(number, lsn, now_ms),
            None => Images::new(number, lsn, now_ms),
        };
        self.engine.freeze(&mut images.sink(&mut self.payloads, &mut self.parts));
        self.finished.freeze();
        self.images = Some(images);
    }

    /// A checkpoint was written.
    pub fn written(&mut self, written: Written) {
        self.payloads.saved_through(written.number);
        self.spent_images = Some(written.spent);
    }

    /// Writes up to so many frozen images of each kind, or a megabyte of them all. When none remain: all
    /// images and their checksum.
    pub fn collect(&mut self, images_max: usize) -> Option<(Images, u64)> {
        let mut images = self.images.take()?;
        let enough_bytes = images.bytes + BYTES_PER_ROUND_MAX;
        let mut left = images_max;
        while left > 0 && images.bytes < enough_bytes {
            let some = left.min(IMAGES_AT_ONCE);
            left -= some;
            let (payloads, parts) = (&mut self.payloads, &mut self.parts);
            if self.engine.write_frozen(some, &mut images.sink(payloads, parts))
                && self.finished.write_frozen(some, payloads, &mut images)
            {
                return Some((images, self.engine.checksum()));
            }
        }
        self.images = Some(images);
        None
    }
}

/// A checkpoint for the writer thread.
pub struct Order {
    /// What is written.
    pub images: Images,
    /// Where the log is read from after it.
    pub position: Position,
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
    /// Empty, to be used again.
    spent: Images,
}

impl Written {
    /// These were.
    pub fn of(mut images: Images) -> Written {
        images.clear();
        let Images { number, lsn, time_ms, .. } = images;
        Written { number, lsn, time_ms, spent: images }
    }
}

/// The writer thread: writes checkpoints one after the other and trims the log behind them. A
/// failed write is tried again, for its images are only here, unless it would fail for ever: then
/// the partition must stop.
pub(crate) fn write_checkpoints(
    orders: &Receiver<Order>,
    written: &Sender<windlass_checkpoint::Result<Written>>,
    checkpoint: &dyn Checkpoint,
    trim: impl Fn(u64) -> Result<(), LogError>,
) {
    const RETRY_AFTER: Duration = Duration::from_millis(500);
    while let Ok(mut order) = orders.recv() {
        let position = order.position.to_raw();
        while let Err(error) = order.images.write(checkpoint, position, order.checksum) {
            if !error.may_pass() {
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
        if written.send(Ok(Written::of(order.images))).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_checkpoint::MemoryCheckpoint;

    use super::*;

    #[test]
    fn the_last_image_of_a_key_counts_in_whatever_run_it_is() {
        let store = MemoryCheckpoint::new();
        let key = |number: usize| format!("k{number:09}").into_bytes();
        let mut images = Images::new(1, 1, 0);
        // Backwards, so that every run overlaps with none in order.
        for number in (0..3 * RUN_LEN).rev() {
            images.push(&key(number), Value::Inline(b"old"));
        }
        images.push(&key(7), Value::Inline(b"new"));
        images.push(&key(8), Value::Deleted);
        images.push(&key(9), Value::Deleted);
        images.push(&key(9), Value::Inline(b"again"));
        images.push(&key(10), Value::Inline(&vec![b'x'; 3 * CHUNK_BYTES]));
        images.write(&store, 1, 0).unwrap();
        let view = store.snapshot().unwrap();
        let value = |number: usize| view.get(&key(number)).unwrap();
        assert_eq!(value(7), Some(b"new".to_vec()));
        assert_eq!(value(8), None);
        assert_eq!(value(9), Some(b"again".to_vec()));
        assert_eq!(value(10).unwrap().len(), 3 * CHUNK_BYTES);
        assert_eq!(value(2 * RUN_LEN), Some(b"old".to_vec()));
        let keys: Vec<Vec<u8>> = images.merged().map(|entry| images.key(entry).to_vec()).collect();
        assert!(keys.is_sorted() && keys.len() == 3 * RUN_LEN, "each key once");

        images.clear();
        let again = images.renew(2, 2, 0);
        assert_eq!((again.len(), again.number), (0, 2));
        assert!(again.spare_chunks.iter().all(|chunk| chunk.capacity() <= 2 * CHUNK_BYTES));
        assert_eq!(again.spare_runs.len(), 4);
    }
}
