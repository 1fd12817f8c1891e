//! A small generator of random numbers (splitmix64): the same seed gives the same numbers on every machine, for ever.

use std::ops::Range;

/// A stream of numbers.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in a range that is not empty. The tiny bias of the remainder does not matter here.
    pub fn in_range(&mut self, range: Range<u64>) -> u64 {
        assert!(range.start < range.end, "the range holds a number");
        range.start + self.next_u64() % (range.end - range.start)
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.in_range(0..100) < percent
    }

    /// One of these; nothing when there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(from.len()).ok().filter(|&count| count > 0)?;
        from.get(usize::try_from(self.in_range(0..count)).ok()?)
    }

    /// Another stream, independent of what this one is used for later.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}
