//! Ranges of keys: half open, in the order of their bytes.

use std::ops::Bound;

/// Keys from `from` (inclusive) up to `to` (exclusive); `None` has no upper end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct KeyRange {
    /// First key that may be in the range.
    pub from: Vec<u8>,
    /// First key behind the range.
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self::default()
    }

    /// Every key from `from` up to, not including, `to`.
    pub fn between(from: impl Into<Vec<u8>>, to: impl Into<Vec<u8>>) -> Self {
        Self { from: from.into(), to: Some(to.into()) }
    }

    /// Every key that begins with `prefix`.
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        let from = prefix.into();
        let mut to = from.clone();
        // The successor of a prefix is the prefix with its last byte that can grow grown; a prefix of
        // 0xff alone has none, and the range is open above.
        while let Some(last) = to.pop() {
            if let Some(next) = last.checked_add(1) {
                to.push(next);
                return Self { from, to: Some(to) };
            }
        }
        Self { from, to: None }
    }

    /// The rest of this range behind `key`: how a scan in slices goes on.
    #[must_use]
    pub fn after(&self, key: &[u8]) -> Self {
        let mut from = key.to_vec();
        from.push(0);
        Self { from: from.max(self.from.clone()), to: self.to.clone() }
    }

    /// Is `key` in the range?
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_deref().is_none_or(|to| key < to)
    }

    /// Can no key be in the range?
    pub fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    /// At most `parts` adjoining ranges that cover this one, cut so that keys spread evenly between
    /// `first` and `last` fall evenly into them. The cut looks at the eight bytes behind what `first`
    /// and `last` have in common, so that dense counters split well.
    pub fn split(&self, first: &[u8], last: &[u8], parts: usize) -> Vec<Self> {
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let low = eight_bytes_behind(first, common);
        let high = eight_bytes_behind(last, common);
        let prefix: Vec<u8> = first.iter().take(common).copied().collect();
        let parts = u64::try_from(parts.max(1)).unwrap_or(u64::MAX);
        let step = high.saturating_sub(low) / parts;
        if step == 0 {
            return vec![self.clone()];
        }

        let mut ranges = Vec::new();
        let mut from = self.from.clone();
        for part in 1..parts {
            let mut cut = prefix.clone();
            cut.extend_from_slice(&(low + step * part).to_be_bytes());
            if cut <= from || self.to.as_ref().is_some_and(|to| cut >= *to) {
                continue;
            }
            ranges.push(Self { from, to: Some(cut.clone()) });
            from = cut;
        }
        ranges.push(Self { from, to: self.to.clone() });
        ranges
    }

    /// The range as the standard library's maps want it.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let to = self.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(self.from.as_slice()), to)
    }
}

fn eight_bytes_behind(key: &[u8], skip: usize) -> u64 {
    let mut bytes = [0; 8];
    for (slot, byte) in bytes.iter_mut().zip(key.iter().skip(skip)) {
        *slot = *byte;
    }
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_holds_exactly_what_begins_with_it() {
        let range = KeyRange::prefix(*b"h\xff");
        assert!(range.contains(b"h\xff"));
        assert!(range.contains(b"h\xff\xff\xff"));
        assert!(!range.contains(b"h\xfe"));
        assert!(!range.contains(b"i"));
        assert!(KeyRange::prefix([0xff, 0xff]).to.is_none());
    }

    #[test]
    fn after_goes_on_behind_a_key() {
        let range = KeyRange::prefix(*b"h").after(b"h5");
        assert!(!range.contains(b"h5"));
        assert!(range.contains(b"h5\0"));
        assert!(!range.contains(b"i"));
    }

    #[test]
    fn split_covers_without_overlap() {
        let key = |n: u64| [b"h".as_slice(), &n.to_be_bytes()].concat();
        let whole = KeyRange::prefix(*b"h");
        let parts = whole.split(&key(1_000), &key(9_000), 4);
        assert_eq!(parts.len(), 4);
        assert_eq!(parts[0].from, whole.from);
        assert_eq!(parts[3].to, whole.to);
        for pair in parts.windows(2) {
            assert_eq!(pair[0].to.as_deref(), Some(pair[1].from.as_slice()));
        }
        let held = |range: &KeyRange| (1_000..=9_000).filter(|n| range.contains(&key(*n))).count();
        assert_eq!(parts.iter().map(held).collect::<Vec<_>>(), [2_001, 2_000, 2_000, 2_000]);
    }

    #[test]
    fn split_of_one_key_is_one_range() {
        assert_eq!(KeyRange::all().split(b"a", b"a", 4), [KeyRange::all()]);
    }
}
