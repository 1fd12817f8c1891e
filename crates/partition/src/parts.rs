//! Images that are too large for one value of the checkpoint store: the variables of a scope have no
//! bound together.
//!
//! Such an image lies in **parts**, under keys of their own (`+ key part(4)`), and under its key stands
//! how many there are, behind a byte that no version of an image has: all others begin with theirs.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use windlass_checkpoint::View;

use crate::recover::OpenError;

/// The first byte of the keys of parts.
const TAG: u8 = b'+';
/// The first byte of what says how many there are.
const PARTED: u8 = 0xff;
/// Bytes of a part, and of the largest image that has none.
pub(crate) const PART_BYTES: usize = 16 << 20;

/// Which images of the newest checkpoint, or of the one being collected, are in parts, and in how many.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    of: FxHashMap<Box<[u8]>, u32>,
}

impl Parts {
    /// Gives `push` an image, and deletes what is left of a longer one before it.
    pub(crate) fn put(
        &mut self,
        key: &[u8],
        value: &[u8],
        mut push: impl FnMut(&[u8], Option<&[u8]>),
    ) {
        if value.len() <= PART_BYTES {
            self.shrink(key, 0, &mut push);
            push(key, Some(value));
            return;
        }
        let mut count: u32 = 0;
        for part in value.chunks(PART_BYTES) {
            push(&part_key(key, count), Some(part));
            count += 1;
        }
        self.shrink(key, count, &mut push);
        self.of.insert(key.into(), count);
        let [a, b, c, d] = count.to_be_bytes();
        push(key, Some(&[PARTED, a, b, c, d]));
    }

    /// Gives `push` the end of an image.
    pub(crate) fn delete(&mut self, key: &[u8], mut push: impl FnMut(&[u8], Option<&[u8]>)) {
        self.shrink(key, 0, &mut push);
        push(key, None);
    }

    fn shrink(&mut self, key: &[u8], to: u32, push: &mut impl FnMut(&[u8], Option<&[u8]>)) {
        if self.of.is_empty() {
            return;
        }
        for part in to..self.of.remove(key).unwrap_or(0) {
            push(&part_key(key, part), None);
        }
    }

    /// The image that stands under a key, put together.
    pub(crate) fn whole<'a>(
        &mut self,
        view: &dyn View,
        key: &[u8],
        value: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, OpenError> {
        let Some((&PARTED, count)) = value.split_first() else { return Ok(Cow::Borrowed(value)) };
        let lost = || OpenError::Part { key: key.to_vec() };
        let count = u32::from_be_bytes(count.try_into().map_err(|_| lost())?);
        let mut image = Vec::new();
        for part in 0..count {
            image.extend(view.get(&part_key(key, part))?.ok_or_else(lost)?);
        }
        self.of.insert(key.into(), count);
        Ok(Cow::Owned(image))
    }
}

fn part_key(key: &[u8], part: u32) -> Vec<u8> {
    [&[TAG], key, &part.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use windlass_checkpoint::{Checkpoint, Entry, KeyRange, MemoryCheckpoint, Stamp};

    use super::*;

    /// What was pushed, in a store.
    struct Fixture {
        store: MemoryCheckpoint,
        parts: Parts,
        lsn: u64,
    }

    impl Fixture {
        /// Whoever opens the store must know as much as who wrote it.
        fn write(&mut self, image: Option<&[u8]>, opens_again: bool) {
            let mut pushed = std::collections::BTreeMap::new();
            let push = |key: &[u8], value: Option<&[u8]>| {
                pushed.insert(key.to_vec(), value.map(<[u8]>::to_vec));
            };
            match image {
                Some(image) => self.parts.put(b"E1", image, push),
                None => self.parts.delete(b"E1", push),
            }
            self.lsn += 1;
            let stamp = Stamp { lsn: self.lsn, ..Stamp::default() };
            let mut entries = pushed.into_iter().map(|(key, value)| {
                Ok(value.map_or_else(
                    || Entry::delete(key.clone()),
                    |value| Entry::put(key.clone(), value),
                ))
            });
            self.store.write(&mut entries, &stamp).unwrap();
            let mut opened = Parts::default();
            if let Some(value) = self.store.get(b"E1").unwrap() {
                let whole = opened.whole(&self.store, b"E1", &value).unwrap();
                assert!(Some(&*whole) == image);
            }
            if opens_again {
                self.parts = opened;
            }
        }

        fn keys(&self) -> usize {
            self.store.scan(&KeyRange::all()).count()
        }
    }

    #[test]
    fn an_image_grows_into_parts_and_leaves_none_behind() {
        for opens_again in [false, true] {
            let store = MemoryCheckpoint::new();
            let mut fixture = Fixture { store, parts: Parts::default(), lsn: 0 };
            let image = |bytes: usize| vec![1; bytes];
            for (bytes, keys) in [
                (PART_BYTES, 1),
                (PART_BYTES + 1, 3),
                (3 * PART_BYTES, 4),
                (2 * PART_BYTES, 3),
                (7, 1),
                (5 * PART_BYTES / 2, 4),
            ] {
                fixture.write(Some(&image(bytes)), opens_again);
                assert_eq!(fixture.keys(), keys, "{bytes} bytes");
            }
            fixture.write(None, opens_again);
            assert_eq!(fixture.keys(), 0);
        }
    }

    #[test]
    fn a_part_that_is_missing_is_damage() {
        let store = MemoryCheckpoint::new();
        let found = Parts::default().whole(&store, b"E1", &[PARTED, 0, 0, 0, 1]);
        assert!(matches!(found, Err(OpenError::Part { .. })), "{found:?}");
    }
}
