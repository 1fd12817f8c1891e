//! The seam: what a checkpoint store promises.
//!
//! A store is one ordered map from keys to values, both opaque bytes, and the **stamp** of the state
//! that the map is. It changes in one way only: [`Checkpoint::write`] applies a sorted list of puts and
//! deletes together with a new stamp.
//!
//! ```text
//!           write @ lsn 10          write @ lsn 25
//!  ─────────────┼───────────────────────┼──────────────►
//!   empty       │  map₁₀, stamp 10      │  map₂₅, stamp 25
//! ```
//!
//! Promises, held by the conformance suite for every backend:
//!
//! * **Atomic.** A reader, and whoever opens the store after a crash, sees a write with its stamp or not
//!   at all. Never some of its entries, never entries without the stamp.
//! * **Durable.** When `write` returns `Ok`, the checkpoint survives kill -9 and power loss. When it
//!   returns `Err`, the store holds the old state; after an error of the disk itself it *may* hold the
//!   new one, whole, once it is opened again, as after a crash in the middle of the call.
//! * **Isolated.** A scan sees one state from its first entry to its last, however many writes end in
//!   between. A snapshot keeps seeing its state for as long as it lives.
//! * **Checked.** Bytes that the disk changed are an error, never an answer.
//! * **One writer.** Writes wait for each other; reads wait for nobody.

use std::borrow::Cow;
use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::range::KeyRange;
use crate::stamp::{Stamp, length};

/// Longest key.
pub const KEY_BYTES_MAX: usize = 4_096;

/// Longest value.
pub const VALUE_BYTES_MAX: usize = 256 << 20;

/// Keys that begin with this byte belong to the store (its stamp lies there) and are refused.
pub const RESERVED_PREFIX: u8 = 0;

/// One change of a checkpoint: a key with its new value, or without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Not empty, at most [`KEY_BYTES_MAX`], not beginning with [`RESERVED_PREFIX`].
    pub key: Cow<'a, [u8]>,
    /// `None` deletes the key, which need not exist.
    pub value: Option<Cow<'a, [u8]>>,
}

impl<'a> Entry<'a> {
    /// `key` gets `value`.
    pub fn put(key: impl Into<Cow<'a, [u8]>>, value: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { key: key.into(), value: Some(value.into()) }
    }

    /// `key` is no more.
    pub fn delete(key: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { key: key.into(), value: None }
    }
}

/// What a scan calls with each key and value.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A key and its value, owned.
pub type Pair = (Vec<u8>, Vec<u8>);

/// An iterator over pairs in the order of their keys.
pub type Pairs<'a> = Box<dyn Iterator<Item = Result<Pair>> + Send + 'a>;

/// Reading one state of a store. All of it may be used from several threads at once.
pub trait View: Send + Sync {
    /// Which state this is; `None` if nothing was ever written.
    fn stamp(&self) -> Option<Stamp>;

    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The values of `keys`, in their order. Sorted keys are read fastest.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Calls `visit` with each key and value of `range` in ascending order until it breaks. The fastest
    /// way to read: nothing is allocated per entry.
    ///
    /// `visit` may see entries before damage further on turns the scan into an error.
    fn scan_with(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<()>;

    /// The pairs of `range` in ascending order. Ends after its first error.
    fn scan(&self, range: &KeyRange) -> Pairs<'_>;

    /// First and last key in `range`.
    fn edges(&self, range: &KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>>;

    /// At most `parts` ranges that cover `range` with about as many entries each, if keys are spread
    /// evenly; for reading with several threads. On a [`Checkpoint`] take a snapshot first, so that all
    /// threads read the same state.
    fn split(&self, range: &KeyRange, parts: usize) -> Result<Vec<KeyRange>> {
        Ok(match self.edges(range)? {
            Some((first, last)) => range.split(&first, &last, parts),
            None => vec![range.clone()],
        })
    }
}

/// A store that can be written. As a [`View`] it shows the newest checkpoint; each single call sees one.
pub trait Checkpoint: View {
    /// Applies `entries`, strictly ascending by key, and sets `stamp`, as one.
    ///
    /// Entries are taken one by one and never collected, so that a write may be larger than memory. An
    /// `Err` among them abandons the write and is returned. Order and sizes are checked as they come;
    /// an offence abandons the write. `stamp.lsn` may repeat but not go back.
    ///
    /// Takes as long as the backend's rate limit says: call it from a thread of its own.
    fn write(
        &self,
        entries: &mut dyn Iterator<Item = Result<Entry<'_>>>,
        stamp: &Stamp,
    ) -> Result<()>;

    /// The newest checkpoint as it is now, unmoved by later writes. The disk space of what is deleted
    /// meanwhile stays in use until the snapshot is dropped.
    fn snapshot(&self) -> Result<Box<dyn View>>;
}

/// Checks entries as they pass: the same rules for every backend.
#[derive(Debug, Default)]
pub(crate) struct EntryCheck {
    index: u64,
    last_key: Vec<u8>,
}

impl EntryCheck {
    pub(crate) fn admit(&mut self, entry: &Entry<'_>) -> Result<()> {
        let index = self.index;
        let key = entry.key.as_ref();
        match key.first() {
            None => return Err(Error::KeyRefused { index, reason: "empty" }),
            Some(&RESERVED_PREFIX) => {
                return Err(Error::KeyRefused { index, reason: "in the store's own range" });
            }
            Some(_) => {}
        }
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::KeyRefused { index, reason: "too long" });
        }
        // The empty start value is below every key that passed the first check.
        if key <= self.last_key.as_slice() {
            return Err(Error::OutOfOrder { index });
        }
        if let Some(value) = &entry.value
            && value.len() > VALUE_BYTES_MAX
        {
            return Err(Error::ValueTooLarge {
                index,
                bytes: length(value),
                bytes_max: u64::try_from(VALUE_BYTES_MAX).unwrap_or(u64::MAX),
            });
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.index += 1;
        Ok(())
    }
}
