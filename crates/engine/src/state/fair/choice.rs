//! Asking: whose turn it is, and which job its group would hand out.

use std::borrow::Cow;
use std::cmp::Ordering;

use windlass_record::id::QueueId;
use windlass_record::policy::{PriorityRule, QueueSettings};

use super::super::State;
use super::super::job::{NONE, Slot};
use super::ranks::Ranks;
use super::{Choice, Group, Queue, Rank, ReadyLanes};

impl State {
    /// The turn of the first group of a queue, if the queue can serve.
    pub(crate) fn first_turn(&self, queue: QueueId, with_token: bool) -> Option<u64> {
        let group = self.first_group(self.queue(queue), with_token)?;
        Some(self.groups.get(group).turn)
    }

    /// What the first group of a queue would hand out at `now_ms`.
    pub(crate) fn choose(&self, queue: QueueId, with_token: bool, now_ms: u64) -> Option<Choice> {
        let queue = self.queue(queue);
        let group = self.groups.get(self.first_group(queue, with_token)?);
        // The first of both lists is the earlier side of its group.
        let turn = group.turn;
        let twin = Some(group.twin).filter(|&twin| with_token && twin != NONE);
        let twin = twin.map(|twin| self.groups.get(twin)).filter(|twin| !twin.ready.is_empty());
        let (slot, scheme_count) = self.choose_in_group(group, twin, &queue.settings, now_ms);
        Some(Choice { slot, scheme_count, turn })
    }

    fn first_group(&self, queue: &Queue, with_token: bool) -> Option<u32> {
        let open = queue.open.head;
        let fenced = if with_token { queue.fenced.head } else { NONE };
        let first = match (open, fenced) {
            _ if queue.paused => NONE,
            (open, NONE) => open,
            (NONE, fenced) => fenced,
            (open, fenced) if self.groups.get(open).turn < self.groups.get(fenced).turn => open,
            (_, fenced) => fenced,
        };
        (first != NONE).then_some(first)
    }

    fn choose_in_group(
        &self,
        group: &Group,
        twin: Option<&Group>,
        settings: &QueueSettings,
        now_ms: u64,
    ) -> (Slot, u32) {
        let (hint_low, scheme_count) = match settings.priority {
            PriorityRule::Strict => (false, group.scheme_count),
            PriorityRule::Scheme { high, low } => {
                let turns = high.saturating_add(low).max(1);
                let count = group.scheme_count % turns;
                (count >= high, (count + 1) % turns)
            }
        };
        let lane = match (&group.ready, twin) {
            (ReadyLanes::None, _) => {
                unreachable!("a group in the list has a lane that can be served")
            }
            (ReadyLanes::One(lane), None) => *lane,
            (ReadyLanes::Many(ranks), None) => self
                .aged_lane(ranks, settings.aging_ms, now_ms)
                .unwrap_or_else(|| by_priority(ranks, hint_low).lane),
            (_, Some(twin)) => self.choose_of_both([group, twin], settings, hint_low, now_ms),
        };
        let slot = self.lanes.get(lane).queue.front().expect("a lane that can be served has a job");
        (slot, scheme_count)
    }

    /// The same over both sides of a group.
    fn choose_of_both(
        &self,
        sides: [&Group; 2],
        settings: &QueueSettings,
        hint_low: bool,
        now_ms: u64,
    ) -> u32 {
        let ranks = sides.map(|side| match &side.ready {
            ReadyLanes::None => unreachable!("both sides have a lane that can be served"),
            ReadyLanes::One(lane) => {
                let head = self.lanes.get(*lane).queue.front().expect("it can be served");
                Cow::Owned(Ranks::one(self.rank_of(*lane, head)))
            }
            ReadyLanes::Many(ranks) => Cow::Borrowed(ranks),
        });
        let aged =
            ranks.iter().filter_map(|ranks| self.aged_lane(ranks, settings.aging_ms, now_ms));
        if let Some(lane) = aged.min_by_key(|&lane| self.head_since(lane)) {
            return lane;
        }
        let [a, b] = ranks.map(|ranks| by_priority(&ranks, hint_low));
        let a_first = match a.class.cmp(&b.class) {
            Ordering::Equal if hint_low => (b.priority, a.head_order) < (a.priority, b.head_order),
            Ordering::Equal => a < b,
            Ordering::Less => true,
            Ordering::Greater => false,
        };
        if a_first { a.lane } else { b.lane }
    }

    /// The lane whose first job has waited longest, if it waited past the queue's aging time.
    fn aged_lane(&self, ranks: &Ranks, aging_ms: u64, now_ms: u64) -> Option<u32> {
        if aging_ms == 0 {
            return None;
        }
        let oldest =
            ranks.iter().map(|rank| rank.lane).min_by_key(|&lane| self.head_since(lane))?;
        (self.head_since(oldest).0 + aging_ms <= now_ms).then_some(oldest)
    }

    /// Since when the first job of a lane is ready, and its order to tell equals apart.
    fn head_since(&self, lane: u32) -> (u64, u64) {
        let head = self.lanes.get(lane).queue.front().expect("a ranked lane has a job");
        let job = self.jobs.get(head);
        (job.due_ms, job.order)
    }
}

/// The lane a group serves by its priority rule.
fn by_priority(ranks: &Ranks, hint_low: bool) -> Rank {
    let rank = if hint_low { ranks.first_of_lowest() } else { ranks.first() };
    *rank.expect("a group in the list has a lane that can be served")
}
