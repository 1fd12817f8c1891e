//! How often which size was seen: what the loop tells of its batches and syncs.

/// Classes of sizes: up to 1, 2, 4 and so on, and one for all that is larger.
const CLASSES: usize = 25;

/// Counts numbers by the power of two that they do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    counts: [u64; CLASSES],
    sum: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { counts: [0; CLASSES], sum: 0 }
    }
}

impl Tally {
    /// Counts one.
    pub fn add(&mut self, number: u64) {
        self.sum = self.sum.saturating_add(number);
        let bits = u64::BITS - number.saturating_sub(1).leading_zeros();
        let class = usize::try_from(bits).unwrap_or(CLASSES).min(CLASSES - 1);
        if let Some(count) = self.counts.get_mut(class) {
            *count += 1;
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// What each class goes up to, the last without end, and how many are in it.
    pub fn classes(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        let last = CLASSES - 1;
        self.counts.iter().enumerate().map(move |(class, count)| {
            let up_to = (class < last).then(|| 1u64 << class);
            (up_to, *count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_in_the_first_class_that_reaches_it() {
        for (number, class) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 23, 23)] {
            let mut tally = Tally::default();
            tally.add(number);
            let found = tally.classes().position(|(_, count)| count == 1);
            assert_eq!(found, Some(class), "{number}");
            assert_eq!((tally.count(), tally.sum()), (1, number));
        }
        let mut tally = Tally::default();
        tally.add(u64::MAX);
        assert_eq!(tally.classes().last(), Some((None, 1)));
    }
}
