//! Keeps payload bytes for the engine, which knows only their handles.
//!
//! Bytes that a checkpoint holds may be evicted past a budget; whoever hands them out reads them
//! back from the store. Eviction is never logged and changes no decision.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use windlass_record::codec::Payloads;
use windlass_record::id::{Payload, PayloadHandle};

/// The place of one payload.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Vacant,
    Resident {
        bytes: Arc<[u8]>,
        /// The checkpoint that holds it, by its number; 0 is none yet.
        saved_in: u32,
        /// Its key there, if one does.
        key: StoreKey,
    },
    Stored(StoreKey),
}

/// The key of a payload in the checkpoint store: that of a job by its eight bytes, as all of those
/// are alike but for these. Others are [`OTHER`] and stand beside.
type StoreKey = u64;

/// No job has this key: counters of partitions do not come so far.
const OTHER: StoreKey = u64::MAX;

/// There is one for every payload.
const _: () = assert!(size_of::<Place>() == 32);

/// Where the bytes of a payload are.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// In memory.
    Here(Arc<[u8]>),
    /// In the checkpoint store, under this key.
    Stored(Vec<u8>),
}

/// All payloads, by handle.
#[derive(Debug, Default)]
pub struct PayloadStore {
    pages: Vec<Vec<Place>>,
    /// Keys of payloads that are not jobs', by the number of their place.
    other_keys: FxHashMap<u32, Box<[u8]>>,
    free: Vec<u32>,
    resident_bytes: u64,
    /// Payloads saved in checkpoints up to this one may be evicted.
    saved_through: u32,
    hand: u32,
}

/// Two megabytes: what an allocator adds to a page is little beside it.
const PAGE_BITS: u32 = 16;
const PAGE_LEN: usize = 1 << PAGE_BITS;

impl PayloadStore {
    /// Keeps bytes that somebody else may hold too.
    pub(crate) fn keep_shared(&mut self, bytes: &Arc<[u8]>) -> Payload {
        if bytes.is_empty() {
            return Payload::EMPTY;
        }
        let len = length(bytes);
        self.resident_bytes += u64::from(len);
        let bytes = bytes.clone();
        self.put(Place::Resident { bytes, saved_in: 0, key: OTHER }, len)
    }

    /// A payload that stands in the checkpoint store.
    pub(crate) fn keep_stored(&mut self, key: &[u8], len: u32) -> Payload {
        if len == 0 {
            return Payload::EMPTY;
        }
        let payload = self.put(Place::Stored(OTHER), len);
        let key = self.store_key(payload.handle, key);
        *self.place_mut(payload.handle) = Place::Stored(key);
        payload
    }

    /// Where the bytes of a payload are.
    pub fn get(&self, payload: Payload) -> Bytes {
        if payload.handle == PayloadHandle::EMPTY {
            return Bytes::Here(Arc::default());
        }
        match self.place(payload.handle) {
            Place::Resident { bytes, .. } => Bytes::Here(bytes.clone()),
            Place::Stored(key) => Bytes::Stored(self.key_bytes(payload.handle, *key)),
            Place::Vacant => unreachable!("a payload is used while it is kept"),
        }
    }

    pub(crate) fn free(&mut self, payload: Payload) {
        if payload.handle == PayloadHandle::EMPTY {
            return;
        }
        match std::mem::take(self.place_mut(payload.handle)) {
            Place::Resident { .. } => self.resident_bytes -= u64::from(payload.len),
            Place::Stored(_) => {}
            Place::Vacant => unreachable!("a payload is freed once"),
        }
        if !self.other_keys.is_empty() {
            self.other_keys.remove(&payload.handle.0);
        }
        self.free.push(payload.handle.0);
    }

    /// The bytes of a payload that is to be written into a checkpoint, by its number.
    pub(crate) fn save(&mut self, payload: Payload, key: &[u8], checkpoint: u32) -> Arc<[u8]> {
        if payload.handle == PayloadHandle::EMPTY {
            return Arc::default();
        }
        let store_key = self.store_key(payload.handle, key);
        match self.place_mut(payload.handle) {
            Place::Resident { bytes, saved_in, key } => {
                *saved_in = checkpoint;
                *key = store_key;
                bytes.clone()
            }
            Place::Stored(_) | Place::Vacant => {
                unreachable!("a payload is written once, while it is in memory")
            }
        }
    }

    /// A checkpoint and all before it are durable.
    pub fn saved_through(&mut self, checkpoint: u32) {
        self.saved_through = checkpoint;
    }

    /// Evicts payloads that a checkpoint holds while there is more than the budget, looking at a
    /// bounded number of them.
    pub(crate) fn evict(&mut self, budget_bytes: u64, looks_max: u32) {
        if self.resident_bytes <= budget_bytes {
            return;
        }
        let places: usize = self.pages.iter().map(Vec::len).sum();
        let places = u32::try_from(places).unwrap_or(u32::MAX);
        let mut looks = 0;
        while self.resident_bytes > budget_bytes && looks < looks_max.min(places) {
            looks += 1;
            self.hand = if self.hand + 1 >= places { 0 } else { self.hand + 1 };
            let saved_through = self.saved_through;
            let index = usize::try_from(self.hand).expect("usize has at least 32 bits");
            let place = self
                .pages
                .get_mut(index >> PAGE_BITS)
                .and_then(|page| page.get_mut(index & (PAGE_LEN - 1)));
            let Some(place) = place else { continue };
            if let Place::Resident { bytes, saved_in, key } = place
                && *saved_in != 0
                && *saved_in <= saved_through
            {
                self.resident_bytes -= u64::from(length(bytes));
                *place = Place::Stored(*key);
            }
        }
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    fn put(&mut self, place: Place, len: u32) -> Payload {
        if let Some(number) = self.free.pop() {
            *self.place_mut(PayloadHandle(number)) = place;
            return Payload { handle: PayloadHandle(number), len };
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE_LEN) {
            self.pages.push(Vec::with_capacity(PAGE_LEN));
        }
        let page_index = self.pages.len() - 1;
        let page = self.pages.last_mut().expect("a page was just pushed");
        let number = page_index << PAGE_BITS | page.len();
        page.push(place);
        let number = u32::try_from(number).expect("payloads are bounded by jobs");
        Payload { handle: PayloadHandle(number), len }
    }

    /// What a place says of its key.
    fn store_key(&mut self, handle: PayloadHandle, key: &[u8]) -> StoreKey {
        if let (Some((b'p', raw)), 9) = (key.split_first(), key.len())
            && let Ok(raw) = <[u8; 8]>::try_from(raw)
            && u64::from_be_bytes(raw) != OTHER
        {
            return u64::from_be_bytes(raw);
        }
        self.other_keys.insert(handle.0, key.into());
        OTHER
    }

    fn key_bytes(&self, handle: PayloadHandle, key: StoreKey) -> Vec<u8> {
        if key == OTHER {
            let key = self.other_keys.get(&handle.0);
            return key.expect("a stored payload that is not a job's has its key here").to_vec();
        }
        let mut bytes = vec![b'p'];
        bytes.extend_from_slice(&key.to_be_bytes());
        bytes
    }

    fn place(&self, handle: PayloadHandle) -> &Place {
        let index = usize::try_from(handle.0).expect("usize has at least 32 bits");
        self.pages
            .get(index >> PAGE_BITS)
            .and_then(|page| page.get(index & (PAGE_LEN - 1)))
            .expect("handles are only made here")
    }

    fn place_mut(&mut self, handle: PayloadHandle) -> &mut Place {
        let index = usize::try_from(handle.0).expect("usize has at least 32 bits");
        self.pages
            .get_mut(index >> PAGE_BITS)
            .and_then(|page| page.get_mut(index & (PAGE_LEN - 1)))
            .expect("handles are only made here")
    }
}

impl Payloads for PayloadStore {
    fn bytes(&self, payload: Payload) -> &[u8] {
        if payload.handle == PayloadHandle::EMPTY {
            return &[];
        }
        match self.place(payload.handle) {
            Place::Resident { bytes, .. } => bytes,
            Place::Stored(_) | Place::Vacant => {
                unreachable!("an event is encoded while its payload is fresh")
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        if bytes.is_empty() {
            return Payload::EMPTY;
        }
        self.keep_shared(&Arc::from(bytes))
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("payloads are bounded far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicts_only_what_a_durable_checkpoint_holds() {
        let mut store = PayloadStore::default();
        let a = store.keep(b"aaaa");
        let b = store.keep(b"bbbb");
        assert_eq!(&*store.save(a, &[b'p', 0, 0, 0, 0, 0, 0, 0, 7], 1), b"aaaa");
        store.evict(0, 1000);
        assert!(matches!(store.get(a), Bytes::Here(_)), "the checkpoint is not durable yet");
        store.saved_through(1);
        store.evict(0, 2);
        let Bytes::Stored(key) = store.get(a) else { panic!("evicted") };
        assert_eq!(key, [b'p', 0, 0, 0, 0, 0, 0, 0, 7]);
        assert!(matches!(store.get(b), Bytes::Here(_)), "in no checkpoint");
        assert_eq!(store.resident_bytes(), 4);
        store.free(a);
        store.free(b);
        assert_eq!(store.resident_bytes(), 0);
        assert_eq!(store.keep(b"c").handle, b.handle, "places are reused");
    }

    #[test]
    fn keys_that_are_not_jobs_are_kept_as_long_as_their_payload() {
        let mut store = PayloadStore::default();
        let document = store.keep(b"aaaa");
        let like_a_job = [&[b'p'][..], &[0xff; 8]].concat();
        let loaded = store.keep_stored(&like_a_job, 4);
        store.save(document, b"D document", 1);
        store.saved_through(1);
        store.evict(0, 2);
        let key = |store: &PayloadStore, payload| match store.get(payload) {
            Bytes::Stored(key) => key,
            Bytes::Here(bytes) => panic!("{bytes:?} is here"),
        };
        assert_eq!(key(&store, document), b"D document");
        assert_eq!(key(&store, loaded), like_a_job);
        store.free(document);
        let job = store.keep_stored(b"p\x00\x00\x00\x00\x00\x00\x00\x09", 1);
        assert_eq!(job.handle, document.handle);
        assert_eq!(key(&store, job), b"p\x00\x00\x00\x00\x00\x00\x00\x09");
        store.free(loaded);
        assert!(store.other_keys.is_empty());
    }
}
