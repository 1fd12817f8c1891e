//! The ranked lanes of a group: a sorted list while they are few, which is nearly always, and a
//! tree when they are many. A new first job of a lane, the most frequent change by far, is one
//! assignment as long as the lane keeps its place.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Rank;

/// From here on a list is too slow.
const FEW_MAX: usize = 8;

/// Ranks in order.
#[derive(Clone, Debug)]
pub(crate) enum Ranks {
    /// Sorted.
    Few(Vec<Rank>),
    /// More than a list is good for.
    Many(BTreeSet<Rank>),
}

impl Ranks {
    pub(crate) fn new(ranks: [Rank; 2]) -> Ranks {
        let mut few = ranks.to_vec();
        few.sort_unstable();
        Ranks::Few(few)
    }

    pub(crate) fn one(rank: Rank) -> Ranks {
        Ranks::Few(vec![rank])
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Ranks::Few(few) => few.is_empty(),
            Ranks::Many(many) => many.is_empty(),
        }
    }

    pub(crate) fn insert(&mut self, rank: Rank) {
        match self {
            Ranks::Few(few) if few.len() < FEW_MAX => {
                let place = few.partition_point(|other| *other < rank);
                few.insert(place, rank);
            }
            Ranks::Few(few) => {
                let mut many: BTreeSet<Rank> = few.drain(..).collect();
                many.insert(rank);
                *self = Ranks::Many(many);
            }
            Ranks::Many(many) => {
                many.insert(rank);
            }
        }
    }

    pub(crate) fn remove(&mut self, rank: &Rank) {
        match self {
            Ranks::Few(few) => match few.binary_search(rank) {
                Ok(place) => {
                    few.remove(place);
                }
                Err(_) => unreachable!("a lane that can be served is ranked"),
            },
            Ranks::Many(many) => {
                let was_there = many.remove(rank);
                debug_assert!(was_there, "a lane that can be served is ranked");
                if many.len() <= FEW_MAX / 2 {
                    *self = Ranks::Few(many.iter().copied().collect());
                }
            }
        }
    }

    /// A lane has another first job.
    pub(crate) fn replace(&mut self, old: &Rank, new: Rank) {
        if let Ranks::Few(few) = self
            && let Ok(place) = few.binary_search(old)
        {
            let after_last = place.checked_sub(1).and_then(|last| few.get(last));
            let before_next = few.get(place + 1);
            let stays = after_last.is_none_or(|last| *last < new)
                && before_next.is_none_or(|next| new < *next);
            if let Some(entry) = few.get_mut(place).filter(|_| stays) {
                *entry = new;
                return;
            }
        }
        self.remove(old);
        self.insert(new);
    }

    pub(crate) fn first(&self) -> Option<&Rank> {
        match self {
            Ranks::Few(few) => few.first(),
            Ranks::Many(many) => many.first(),
        }
    }

    /// The first of those with the lowest priority in the class that is served first.
    pub(crate) fn first_of_lowest(&self) -> Option<&Rank> {
        let class = self.first()?.class;
        let least = Reverse(i32::MIN);
        let end = Rank { class, priority: least, head_order: u64::MAX, lane: u32::MAX };
        let start = |last: &Rank| Rank { head_order: 0, lane: 0, ..*last };
        match self {
            Ranks::Few(few) => {
                let last = few.iter().rfind(|rank| **rank <= end)?;
                let start = start(last);
                few.iter().find(|rank| **rank >= start)
            }
            Ranks::Many(many) => {
                let last = many.range(..=end).next_back()?;
                many.range(start(last)..).next()
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rank> {
        let (few, many) = match self {
            Ranks::Few(few) => (Some(few), None),
            Ranks::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }
}
