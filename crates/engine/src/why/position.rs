//! The position of a job: how many would be handed out before it.
//!
//! Who asks is one with tokens, for whom all jobs are; both sides of a group count as the one group.
//! Let `k` be the jobs of its own group that go before it. Then every other group of the queue is
//! served as often as the own one is, once more if its turn comes first, and no more often than it
//! has jobs: the position is `k` and the sum of `min(jobs, k + [its turn is earlier])`. That costs
//! one step for each group, whatever the backlog.
//!
//! In the group, due retries go first. With strict priorities `k` is what has a higher priority and
//! what is as high and earlier. With a counting scheme, let `highs(t)` and `lows(t)` be how many of
//! the next `t` turns go to the highest and the lowest priority. High turns use up what is higher
//! before they come to the job's own priority, low turns what is lower; so of `t` turns
//! `max(0, highs(t) - higher) + max(0, lows(t) - lower)` go to its own priority, and the job is
//! handed out at the first `t` for which that is more than those before it there. The sum never
//! falls, so `t` is found by halving.

use windlass_record::policy::PriorityRule;

use crate::state::State;
use crate::state::fair::{BayPlace, Class, Group, Side};
use crate::state::job::{NONE, Slot};

/// Ready jobs of a group, as one of them sees the others.
#[derive(Clone, Copy, Debug, Default)]
struct Others {
    /// In a class that goes first.
    first: u64,
    /// In the same class with a higher priority.
    higher: u64,
    /// With the same priority, before it.
    before: u64,
    /// With a lower priority.
    lower: u64,
}

impl State {
    /// How many jobs would be handed out before a ready job of an awake bay.
    pub(super) fn position(&self, slot: Slot) -> u64 {
        let own = self.group_of(slot);
        let before = self.before_in_group(slot);
        let (own_turn, _) = self.turn_and_jobs(own);
        let mut sum = before;
        for side in Side::ALL {
            let mut number = self.queue(self.queue_of(slot)).side(side).head;
            while number != NONE {
                let group = self.groups.get(number);
                // A group that stands in both lists is met in the first.
                let met =
                    side == Side::Fenced && self.twin_of(group).is_some_and(|twin| twin.turn != 0);
                if number != own && group.twin != own && !met {
                    let (turn, jobs) = self.turn_and_jobs(number);
                    sum += (before + u64::from(turn < own_turn)).min(jobs);
                }
                number = group.next;
            }
        }
        sum
    }

    fn twin_of(&self, group: &Group) -> Option<&Group> {
        (group.twin != NONE).then(|| self.groups.get(group.twin))
    }

    /// The turn of a listed group, that of its earlier side, and how many jobs both can serve.
    fn turn_and_jobs(&self, group: u32) -> (u64, u64) {
        let group = self.groups.get(group);
        match self.twin_of(group).filter(|twin| twin.turn != 0) {
            None => (group.turn, u64::from(group.ready_jobs)),
            Some(twin) => (
                group.turn.min(twin.turn),
                u64::from(group.ready_jobs) + u64::from(twin.ready_jobs),
            ),
        }
    }

    /// How many of its own group go before it.
    fn before_in_group(&self, slot: Slot) -> u64 {
        let others = self.others(slot);
        let group = self.groups.get(self.group_of(slot));
        match self.queue(group.queue).settings.priority {
            PriorityRule::Strict => others.first + others.higher + others.before,
            PriorityRule::Scheme { high, low } => {
                let scheme =
                    Scheme { high: u64::from(high), turns: u64::from(high) + u64::from(low) };
                let count = u64::from(group.scheme_count) + others.first;
                others.first + scheme.turns_before(count, &others)
            }
        }
    }

    fn others(&self, slot: Slot) -> Others {
        let job = self.jobs.get(slot);
        let own = self.lanes.get(job.lane);
        let mut others = Others::default();
        let group = self.groups.get(self.group_of(slot));
        let sides = std::iter::once(group).chain(self.twin_of(group));
        let bays = sides.flat_map(|side| &side.bays).map(|bay| self.bays.get(*bay));
        for bay in bays.filter(|bay| bay.place == BayPlace::Awake) {
            for (&(class, priority), &lane) in &bay.lanes {
                let queue = &self.lanes.get(lane).queue;
                let len = u64::from(queue.len());
                match (class, own.class) {
                    (Class::Retry, Class::Usual) => others.first += len,
                    (Class::Usual, Class::Retry) => {}
                    (Class::Retry, Class::Retry) | (Class::Usual, Class::Usual) => {
                        match priority.cmp(&own.priority) {
                            std::cmp::Ordering::Greater => others.higher += len,
                            std::cmp::Ordering::Less => others.lower += len,
                            std::cmp::Ordering::Equal => {
                                others.before += u64::from(queue.rank(&self.jobs, job.order));
                            }
                        }
                    }
                }
            }
        }
        others
    }
}

/// A counting scheme: of so many turns the first are high.
struct Scheme {
    high: u64,
    turns: u64,
}

impl Scheme {
    /// How many turns from `count` on go to others before the job has its own.
    fn turns_before(&self, count: u64, others: &Others) -> u64 {
        let reaches = |turns: u64| {
            let highs = self.highs_until(count + turns) - self.highs_until(count);
            let lows = turns - highs;
            highs.saturating_sub(others.higher) + lows.saturating_sub(others.lower) > others.before
        };
        // After all of them it is the only one left.
        let (mut short, mut enough) = (0, others.higher + others.lower + others.before + 1);
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            if reaches(middle) {
                enough = middle;
            } else {
                short = middle;
            }
        }
        short
    }

    /// How many of the first turns of the scheme's life are high.
    fn highs_until(&self, turns: u64) -> u64 {
        turns / self.turns * self.high + (turns % self.turns).min(self.high)
    }
}
