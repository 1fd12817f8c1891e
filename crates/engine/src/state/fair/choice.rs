//! Asking: whose turn it is, and which job its group would hand out.

use windlass_record::id::QueueId;
use windlass_record::policy::{PriorityRule, QueueSettings};

use super::super::State;
use super::super::job::NONE;
use super::ranks::Ranks;
use super::{Choice, Rank, ReadyLanes};

impl State {
    /// The turn of the first group of a queue, if the queue can serve.
    pub(crate) fn first_turn(&self, queue: QueueId) -> Option<u64> {
        let queue = self.queue(queue);
        if queue.paused || queue.head == NONE {
            return None;
        }
        Some(self.groups.get(queue.head).turn)
    }

    /// What the first group of a queue would hand out at `now_ms`.
    pub(crate) fn choose(&self, queue: QueueId, now_ms: u64) -> Option<Choice> {
        let queue = self.queue(queue);
        if queue.paused || queue.head == NONE {
            return None;
        }
        Some(self.choose_in_group(queue.head, &queue.settings, now_ms))
    }

    fn choose_in_group(&self, group: u32, settings: &QueueSettings, now_ms: u64) -> Choice {
        let group = self.groups.get(group);
        let (hint_low, scheme_count) = match settings.priority {
            PriorityRule::Strict => (false, group.scheme_count),
            PriorityRule::Scheme { high, low } => {
                let turns = high.saturating_add(low).max(1);
                let count = group.scheme_count % turns;
                (count >= high, (count + 1) % turns)
            }
        };
        let lane = match &group.ready {
            ReadyLanes::None => unreachable!("a group in the list has a lane that can be served"),
            ReadyLanes::One(lane) => *lane,
            ReadyLanes::Many(ranks) => self
                .aged_lane(ranks, settings.aging_ms, now_ms)
                .unwrap_or_else(|| by_priority(ranks, hint_low)),
        };
        let slot = self.lanes.get(lane).queue.front().expect("a lane that can be served has a job");
        Choice { slot, scheme_count }
    }

    /// The lane whose first job has waited longest, if it waited past the queue's aging time.
    fn aged_lane(&self, ranks: &Ranks, aging_ms: u64, now_ms: u64) -> Option<u32> {
        if aging_ms == 0 {
            return None;
        }
        let since_ms = |rank: &Rank| {
            let head = self.lanes.get(rank.lane).queue.front().expect("a ranked lane has a job");
            (self.jobs.get(head).due_ms, rank.head_order)
        };
        let oldest = ranks.iter().min_by_key(|rank| since_ms(rank))?;
        (since_ms(oldest).0 + aging_ms <= now_ms).then_some(oldest.lane)
    }
}

/// The lane a group serves by its priority rule.
fn by_priority(ranks: &Ranks, hint_low: bool) -> u32 {
    let rank = if hint_low { ranks.first_of_lowest() } else { ranks.first() };
    rank.expect("a group in the list has a lane that can be served").lane
}
