//! Whose turn it is: queues, the groups in them, and the lanes of a group.
//!
//! ```text
//! Queue ── list of eligible groups, in order of their turns ──> Group
//! Group ── bays (one per pair of limit keys) ──> Bay ── lanes (retry or not, priority) ──> Lane
//! ```
//!
//! A group is eligible while it has a ready job in a bay that is not parked. It joins its queue's
//! list at the tail when it becomes eligible, is served from the head, and rejoins at the tail.
//! Joining takes a **turn**, a stamp that grows over the whole partition, so a request for several
//! queues serves the one whose first group joined earliest. This is the durable global cursor: no
//! mix of subscriptions and no number of workers can starve a group.
//!
//! Everything here is derived by `apply` from events and is the same after a replay.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_record::id::{LimitId, QueueId};
use windlass_record::policy::{PriorityRule, QueueSettings};

use super::State;
use super::job::{Flags, NONE, Slot};
use super::lane::LaneQueue;
use super::limit::Gate;
use crate::lifecycle::JobState;

/// A queue: (tenant, name).
#[derive(Debug)]
pub struct Queue {
    /// The wall of security.
    pub tenant: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its settings.
    pub settings: QueueSettings,
    /// Whether hand-out is stopped.
    pub paused: bool,
    /// Live jobs by state.
    pub counts: Counts,
    pub(crate) groups: HashMap<Arc<str>, u32, FxBuildHasher>,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    /// Jobs in bays that are not parked.
    pub(crate) eligible_jobs: u32,
    pub(crate) image_hash: u64,
    pub(crate) dirty: bool,
}

impl Queue {
    pub(crate) fn new(tenant: Arc<str>, name: Arc<str>, settings: QueueSettings) -> Queue {
        Queue {
            tenant,
            name,
            settings,
            paused: false,
            counts: Counts::default(),
            groups: HashMap::default(),
            head: NONE,
            tail: NONE,
            eligible_jobs: 0,
            image_hash: 0,
            dirty: false,
        }
    }
}

/// Live jobs of a queue by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Not before a time.
    pub scheduled: u32,
    /// Ready, parked ones too.
    pub ready: u32,
    /// Leased.
    pub active: u32,
    /// Waiting for their next attempt.
    pub backoff: u32,
    /// Waiting for a person.
    pub incident: u32,
}

impl Counts {
    pub(crate) fn of(&mut self, state: JobState) -> &mut u32 {
        match state {
            JobState::Scheduled => &mut self.scheduled,
            JobState::Ready => &mut self.ready,
            JobState::Active => &mut self.active,
            JobState::Backoff => &mut self.backoff,
            JobState::Incident => &mut self.incident,
            JobState::Vacant | JobState::Completed | JobState::Failed | JobState::Cancelled => {
                unreachable!("jobs at rest are not counted")
            }
        }
    }

    /// All of them.
    pub fn live(&self) -> u32 {
        self.scheduled + self.ready + self.active + self.backoff + self.incident
    }
}

/// The unit of fairness inside a queue.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) queue: QueueId,
    pub(crate) name: Arc<str>,
    /// Live jobs in any state.
    pub(crate) live: u32,
    /// Its place in the queue's list; 0 is "not in it".
    pub(crate) turn: u64,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// The counter of the counting scheme.
    pub(crate) scheme_count: u32,
    /// Lanes that can be served.
    pub(crate) ready: ReadyLanes,
    /// Jobs in them.
    pub(crate) ready_jobs: u32,
    /// The bay without limit keys and the lane in it that was used last, kept while the group is.
    pub(crate) home_bay: u32,
    pub(crate) home_lane: u32,
    pub(crate) bays: BTreeSet<u32>,
    /// Since when it has no job; 0 is "it has".
    pub(crate) idle_stamp: u64,
    pub(crate) image_hash: u64,
    pub(crate) dirty: bool,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            queue: QueueId(NONE),
            name: "".into(),
            live: 0,
            turn: 0,
            prev: NONE,
            next: NONE,
            scheme_count: 0,
            ready: ReadyLanes::None,
            ready_jobs: 0,
            home_bay: NONE,
            home_lane: NONE,
            bays: BTreeSet::new(),
            idle_stamp: 0,
            image_hash: 0,
            dirty: false,
        }
    }
}

/// The lanes of one group that share their limit keys: parked and woken together.
#[derive(Debug)]
pub(crate) struct Bay {
    pub(crate) group: u32,
    pub(crate) concurrency: Option<LimitId>,
    pub(crate) rate: Option<LimitId>,
    pub(crate) lanes: BTreeMap<(Class, i32), u32>,
    /// Ready jobs.
    pub(crate) ready_jobs: u32,
    pub(crate) place: BayPlace,
    /// When it came to where it is.
    pub(crate) stamp: u64,
    pub(crate) image_hash: u64,
    pub(crate) dirty: bool,
}

impl Default for Bay {
    fn default() -> Bay {
        Bay {
            group: NONE,
            concurrency: None,
            rate: None,
            lanes: BTreeMap::new(),
            ready_jobs: 0,
            place: BayPlace::Empty,
            stamp: 0,
            image_hash: 0,
            dirty: false,
        }
    }
}

/// Where a bay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BayPlace {
    /// It has no ready job.
    Empty,
    /// Its group may be served from it.
    Awake,
    /// It waits at a gate of one of its keys.
    Parked(Gate),
}

/// Jobs of one queue with the same group, keys, class and priority, in order.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) bay: u32,
    pub(crate) class: Class,
    pub(crate) priority: i32,
    /// Live jobs that belong here, ready or not.
    pub(crate) live: u32,
    pub(crate) queue: LaneQueue,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane {
            bay: NONE,
            class: Class::Usual,
            priority: 0,
            live: 0,
            queue: LaneQueue::default(),
        }
    }
}

/// Whether a lane is served before all others of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// Retries that are due, in queues that serve them first.
    Retry,
    /// Everything else.
    Usual,
}

/// The lanes of a group that can be served. One lane is by far the most common case.
#[derive(Debug, Default)]
pub(crate) enum ReadyLanes {
    #[default]
    None,
    One(u32),
    Many(BTreeSet<Rank>),
}

/// The order of lanes in a group: class, highest priority, whose first job is first, and the lane
/// to tell equals apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) class: Class,
    pub(crate) priority: Reverse<i32>,
    pub(crate) head_order: u64,
    pub(crate) lane: u32,
}

/// What a group would hand out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) slot: Slot,
    /// The scheme's counter afterwards.
    pub(crate) scheme_count: u32,
}

impl State {
    // ── asking ──────────────────────────────────────────────────────────────────────────────

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
    fn aged_lane(&self, ranks: &BTreeSet<Rank>, aging_ms: u64, now_ms: u64) -> Option<u32> {
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

    // ── jobs come and go ────────────────────────────────────────────────────────────────────

    /// Puts a job that just became ready into its lane.
    pub(crate) fn enter_lane(&mut self, slot: Slot) {
        let lane_number = self.jobs.get(slot).lane;
        let lane = self.lanes.get_mut(lane_number);
        let old_head = lane.queue.front();
        lane.queue.insert(&self.jobs, slot);
        let bay_number = lane.bay;
        let bay = self.bays.get_mut(bay_number);
        bay.ready_jobs += 1;
        let group = bay.group;
        match bay.place {
            BayPlace::Empty => self.settle(bay_number, None),
            BayPlace::Parked(_) => {}
            BayPlace::Awake => {
                self.count_eligible(group, 1);
                self.rerank(group, lane_number, old_head);
            }
        }
    }

    /// Takes a ready job out of its lane.
    pub(crate) fn leave_lane(&mut self, slot: Slot) {
        let lane_number = self.jobs.get(slot).lane;
        let lane = self.lanes.get_mut(lane_number);
        let old_head = lane.queue.front();
        lane.queue.remove(&self.jobs, slot);
        let bay_number = lane.bay;
        let bay = self.bays.get_mut(bay_number);
        bay.ready_jobs -= 1;
        let (group, emptied) = (bay.group, bay.ready_jobs == 0);
        match bay.place {
            BayPlace::Empty => unreachable!("a bay with a ready job is not empty"),
            BayPlace::Parked(_) => {}
            BayPlace::Awake => {
                self.count_ineligible(group, 1);
                self.rerank(group, lane_number, old_head);
            }
        }
        if emptied {
            self.unsettle(bay_number);
            self.bays.get_mut(bay_number).place = BayPlace::Empty;
        }
    }

    /// An awake bay of a checkpoint: counts and ranks its jobs. The list of groups comes later.
    pub(crate) fn load_awake(&mut self, bay_number: u32) {
        let bay = self.bays.get(bay_number);
        let (group, ready_jobs) = (bay.group, bay.ready_jobs);
        self.count_eligible(group, ready_jobs);
        let lanes: Vec<u32> = self.bays.get(bay_number).lanes.values().copied().collect();
        for lane in lanes {
            self.rank_lane(group, lane, true);
        }
    }

    fn count_eligible(&mut self, group: u32, jobs: u32) {
        let group = self.groups.get_mut(group);
        group.ready_jobs += jobs;
        let queue = group.queue;
        self.queue_mut(queue).eligible_jobs += jobs;
        self.mark_served(queue);
    }

    fn count_ineligible(&mut self, group: u32, jobs: u32) {
        let group = self.groups.get_mut(group);
        group.ready_jobs -= jobs;
        let queue = group.queue;
        self.queue_mut(queue).eligible_jobs -= jobs;
    }

    /// Brings the group's ready lanes, and the group's place in the list, in line with a lane of
    /// an awake bay whose first job was `old_head`.
    fn rerank(&mut self, group_number: u32, lane_number: u32, old_head: Option<Slot>) {
        let new_head = self.lanes.get(lane_number).queue.front();
        if old_head == new_head {
            return;
        }
        let old_rank = old_head.map(|head| self.rank_of(lane_number, head));
        let new_rank = new_head.map(|head| self.rank_of(lane_number, head));
        let ready = &mut self.groups.get_mut(group_number).ready;
        match (&mut *ready, old_rank, new_rank) {
            (ReadyLanes::None, None, Some(_)) => *ready = ReadyLanes::One(lane_number),
            (ReadyLanes::One(_), Some(_), None) => *ready = ReadyLanes::None,
            (ReadyLanes::One(_), Some(_), Some(_)) => {}
            (ReadyLanes::One(other), None, Some(new_rank)) => {
                let other = *other;
                let head = self.lanes.get(other).queue.front().expect("it can be served");
                let ranks = BTreeSet::from([self.rank_of(other, head), new_rank]);
                self.groups.get_mut(group_number).ready = ReadyLanes::Many(ranks);
            }
            (ReadyLanes::Many(ranks), old_rank, new_rank) => {
                if let Some(old_rank) = old_rank {
                    let was_there = ranks.remove(&old_rank);
                    debug_assert!(was_there, "a lane that can be served is ranked");
                }
                if let Some(new_rank) = new_rank {
                    ranks.insert(new_rank);
                }
                if let (1, Some(last)) = (ranks.len(), ranks.first()) {
                    *ready = ReadyLanes::One(last.lane);
                }
            }
            (ReadyLanes::None, ..) | (ReadyLanes::One(_), None, None) => {
                unreachable!("ready lanes and lane heads agree")
            }
        }
        self.relist(group_number);
    }

    fn rank_of(&self, lane_number: u32, head: Slot) -> Rank {
        let lane = self.lanes.get(lane_number);
        Rank {
            class: lane.class,
            priority: Reverse(lane.priority),
            head_order: self.jobs.get(head).order,
            lane: lane_number,
        }
    }

    // ── the queue's list of groups ──────────────────────────────────────────────────────────

    /// Puts a group at the tail of its queue's list when it became eligible, takes it out when it
    /// no longer is.
    fn relist(&mut self, group_number: u32) {
        let group = self.groups.get(group_number);
        let eligible = !matches!(group.ready, ReadyLanes::None);
        if eligible && group.turn == 0 {
            let turn = self.next_stamp();
            self.list_insert(group_number, turn);
        } else if !eligible && group.turn != 0 {
            self.list_remove(group_number);
        }
    }

    /// The group was served: back to the tail, if it is still eligible.
    pub(crate) fn end_turn(&mut self, group_number: u32) {
        if self.groups.get(group_number).turn == 0 {
            return;
        }
        self.list_remove(group_number);
        let turn = self.next_stamp();
        self.list_insert(group_number, turn);
    }

    /// The group gets back a turn that came to nothing.
    pub(crate) fn restore_turn(&mut self, group_number: u32, turn: u64) {
        let now = self.groups.get(group_number).turn;
        if now == 0 || now <= turn {
            return;
        }
        self.list_remove(group_number);
        self.list_insert(group_number, turn);
    }

    /// Inserts by turn. Turns grow, so the place is the tail but for a turn that was given back,
    /// which is near the head.
    pub(crate) fn list_insert(&mut self, group_number: u32, turn: u64) {
        self.mark_group(group_number);
        let queue_id = self.groups.get(group_number).queue;
        let tail = self.queue(queue_id).tail;
        let (prev, next) = if tail == NONE || self.groups.get(tail).turn < turn {
            (tail, NONE)
        } else {
            let mut next = self.queue(queue_id).head;
            while self.groups.get(next).turn < turn {
                next = self.groups.get(next).next;
            }
            (self.groups.get(next).prev, next)
        };
        let group = self.groups.get_mut(group_number);
        debug_assert_eq!(group.turn, 0, "a group is in the list once");
        group.turn = turn;
        group.prev = prev;
        group.next = next;
        if prev == NONE {
            self.queue_mut(queue_id).head = group_number;
        } else {
            self.groups.get_mut(prev).next = group_number;
        }
        if next == NONE {
            self.queue_mut(queue_id).tail = group_number;
        } else {
            self.groups.get_mut(next).prev = group_number;
        }
    }

    fn list_remove(&mut self, group_number: u32) {
        self.mark_group(group_number);
        let group = self.groups.get_mut(group_number);
        let (queue_id, prev, next) = (group.queue, group.prev, group.next);
        group.turn = 0;
        group.prev = NONE;
        group.next = NONE;
        if prev == NONE {
            self.queue_mut(queue_id).head = next;
        } else {
            self.groups.get_mut(prev).next = next;
        }
        if next == NONE {
            self.queue_mut(queue_id).tail = prev;
        } else {
            self.groups.get_mut(next).prev = prev;
        }
    }

    // ── bays and gates ──────────────────────────────────────────────────────────────────────

    /// Finds out whether a bay with ready jobs may be served, and puts it where it belongs.
    /// `woken_by` is the gate that just let it pass.
    fn settle(&mut self, bay_number: u32, woken_by: Option<Gate>) {
        for gate in [Gate::Concurrency, Gate::Rate] {
            let Some(id) = self.limit_at(bay_number, gate) else { continue };
            let limit = self.limit(id);
            let in_line = woken_by != Some(gate) && !limit.gate(gate).parked.is_empty();
            if limit.free(gate) == 0 || in_line {
                self.park(bay_number, gate);
                return;
            }
        }
        let stamp = self.stamp_bay(bay_number);
        for gate in [Gate::Concurrency, Gate::Rate] {
            if let Some(id) = self.limit_at(bay_number, gate) {
                self.limit_mut(id).gate_mut(gate).awake.insert((stamp, bay_number));
            }
        }
        let bay = self.bays.get_mut(bay_number);
        bay.place = BayPlace::Awake;
        let (group, ready_jobs) = (bay.group, bay.ready_jobs);
        self.count_eligible(group, ready_jobs);
        self.rank_lanes(bay_number, group, true);
    }

    /// Takes a bay from wherever it is; whoever it stood in front of at its gates may go on.
    fn unsettle(&mut self, bay_number: u32) {
        let bay = self.bays.get(bay_number);
        let entry = (bay.stamp, bay_number);
        match bay.place {
            BayPlace::Empty => {}
            BayPlace::Parked(gate) => {
                let id = self.limit_at(bay_number, gate).expect("it is parked on a key it has");
                self.limit_mut(id).gate_mut(gate).parked.remove(&entry);
            }
            BayPlace::Awake => {
                let (group, ready_jobs) = (bay.group, bay.ready_jobs);
                if ready_jobs > 0 {
                    self.count_ineligible(group, ready_jobs);
                    self.rank_lanes(bay_number, group, false);
                }
                self.bays.get_mut(bay_number).place = BayPlace::Empty;
                for gate in [Gate::Concurrency, Gate::Rate] {
                    if let Some(id) = self.limit_at(bay_number, gate) {
                        self.limit_mut(id).gate_mut(gate).awake.remove(&entry);
                        self.wake(id, gate);
                    }
                }
            }
        }
    }

    /// Ranks all lanes of a bay that has just become awake, or unranks them.
    fn rank_lanes(&mut self, bay_number: u32, group: u32, awake: bool) {
        let lanes: Vec<u32> = self.bays.get(bay_number).lanes.values().copied().collect();
        for lane in lanes {
            self.rank_lane(group, lane, awake);
        }
        self.relist(group);
    }

    fn rank_lane(&mut self, group: u32, lane: u32, awake: bool) {
        let Some(head) = self.lanes.get(lane).queue.front() else { return };
        let rank = self.rank_of(lane, head);
        let ready = &mut self.groups.get_mut(group).ready;
        match ready {
            ReadyLanes::None if awake => *ready = ReadyLanes::One(lane),
            ReadyLanes::One(other) if awake => {
                let other = *other;
                let head = self.lanes.get(other).queue.front().expect("it can be served");
                let ranks = BTreeSet::from([self.rank_of(other, head), rank]);
                self.groups.get_mut(group).ready = ReadyLanes::Many(ranks);
            }
            ReadyLanes::Many(ranks) if awake => {
                ranks.insert(rank);
            }
            ReadyLanes::None => unreachable!("a ranked lane is in its group"),
            ReadyLanes::One(_) => *ready = ReadyLanes::None,
            ReadyLanes::Many(ranks) => {
                ranks.remove(&rank);
                if let (1, Some(last)) = (ranks.len(), ranks.first()) {
                    *ready = ReadyLanes::One(last.lane);
                }
            }
        }
    }

    fn park(&mut self, bay_number: u32, gate: Gate) {
        let stamp = self.stamp_bay(bay_number);
        let id = self.limit_at(bay_number, gate).expect("a bay parks on a key it has");
        self.limit_mut(id).gate_mut(gate).parked.insert((stamp, bay_number));
        self.bays.get_mut(bay_number).place = BayPlace::Parked(gate);
        self.schedule_rate(id);
    }

    fn stamp_bay(&mut self, bay_number: u32) -> u64 {
        let stamp = self.next_stamp();
        self.bays.get_mut(bay_number).stamp = stamp;
        self.mark_bay(bay_number);
        stamp
    }

    /// Lets parked bays pass while the gate has room that no awake bay waits to use.
    pub(crate) fn wake(&mut self, id: LimitId, gate: Gate) {
        loop {
            let limit = self.limit(id);
            let room = usize::try_from(limit.free(gate)).unwrap_or(usize::MAX);
            let state = limit.gate(gate);
            if state.awake.len() >= room {
                break;
            }
            let Some(&(stamp, bay_number)) = state.parked.first() else { break };
            self.limit_mut(id).gate_mut(gate).parked.remove(&(stamp, bay_number));
            self.bays.get_mut(bay_number).place = BayPlace::Empty;
            self.settle(bay_number, Some(gate));
        }
        self.schedule_rate(id);
    }

    /// The gate became full: all its awake bays park on it, the one just served last.
    fn shut(&mut self, id: LimitId, gate: Gate, served: Option<u32>) {
        let awake: Vec<u32> = self.limit(id).gate(gate).awake.iter().map(|&(_, bay)| bay).collect();
        let (last, first): (Vec<u32>, Vec<u32>) =
            awake.into_iter().partition(|&bay| Some(bay) == served);
        for bay_number in first.into_iter().chain(last) {
            self.unsettle(bay_number);
            self.park(bay_number, gate);
        }
    }

    /// A job of this bay was handed out: it takes a place at each of the bay's gates.
    pub(crate) fn take_places(&mut self, bay_number: u32, now_ms: u64) {
        if let Some(id) = self.limit_at(bay_number, Gate::Concurrency) {
            self.mark_limit(id);
            self.limit_mut(id).active += 1;
            if self.limit(id).free(Gate::Concurrency) == 0 {
                self.shut(id, Gate::Concurrency, Some(bay_number));
            }
        }
        if let Some(id) = self.limit_at(bay_number, Gate::Rate) {
            self.mark_limit(id);
            let limit = self.limit_mut(id);
            if limit.settings.rate.is_some() {
                limit.prune(now_ms);
                limit.handed_ms.push_back(now_ms);
            }
            if self.limit(id).free(Gate::Rate) == 0 {
                self.shut(id, Gate::Rate, Some(bay_number));
            }
        }
    }

    /// A job of this bay is no longer active: its place is free at once.
    pub(crate) fn free_place(&mut self, bay_number: u32) {
        if let Some(id) = self.limit_at(bay_number, Gate::Concurrency) {
            self.mark_limit(id);
            self.limit_mut(id).active -= 1;
            self.wake(id, Gate::Concurrency);
        }
    }

    /// A hand-out that came to nothing gives its rate token back.
    pub(crate) fn refund_rate(&mut self, bay_number: u32) {
        if let Some(id) = self.limit_at(bay_number, Gate::Rate) {
            self.mark_limit(id);
            self.limit_mut(id).handed_ms.pop_back();
            self.wake(id, Gate::Rate);
        }
    }

    /// After new settings or the passing of time: parks or wakes what must be.
    pub(crate) fn refresh_gates(&mut self, id: LimitId) {
        for gate in [Gate::Concurrency, Gate::Rate] {
            if self.limit(id).free(gate) == 0 {
                self.shut(id, gate, None);
            } else {
                self.wake(id, gate);
            }
        }
        self.schedule_rate(id);
    }

    fn limit_at(&self, bay_number: u32, gate: Gate) -> Option<LimitId> {
        let bay = self.bays.get(bay_number);
        match gate {
            Gate::Concurrency => bay.concurrency,
            Gate::Rate => bay.rate,
        }
    }

    // ── making and forgetting ───────────────────────────────────────────────────────────────

    /// The group of this name, made if it is new.
    pub(crate) fn group_named(&mut self, queue_id: QueueId, name: &str) -> u32 {
        if let Some(&group) = self.queue(queue_id).groups.get(name) {
            return group;
        }
        let text: Arc<str> = name.into();
        let group =
            self.groups.insert(Group { queue: queue_id, name: text.clone(), ..Group::default() });
        self.queue_mut(queue_id).groups.insert(text, group);
        self.mark_group(group);
        group
    }

    /// The lane with these properties, made if it is new.
    pub(crate) fn lane_for(
        &mut self,
        group_number: u32,
        keys: (Option<LimitId>, Option<LimitId>),
        class: Class,
        priority: i32,
    ) -> u32 {
        let group = self.groups.get(group_number);
        if keys == (None, None) && group.home_lane != NONE {
            let home = self.lanes.get(group.home_lane);
            if home.priority == priority && home.class == class {
                return group.home_lane;
            }
        }
        let bay_number = self.bay_for(group_number, keys);
        if let Some(&lane) = self.bays.get(bay_number).lanes.get(&(class, priority)) {
            return lane;
        }
        let lane =
            self.lanes.insert(Lane { bay: bay_number, class, priority, ..Lane::default() });
        self.bays.get_mut(bay_number).lanes.insert((class, priority), lane);
        let group = self.groups.get_mut(group_number);
        if group.home_bay == bay_number && group.home_lane == NONE {
            group.home_lane = lane;
        }
        lane
    }

    fn bay_for(&mut self, group_number: u32, keys: (Option<LimitId>, Option<LimitId>)) -> u32 {
        let group = self.groups.get(group_number);
        if keys == (None, None) && group.home_bay != NONE {
            return group.home_bay;
        }
        if let Some(&bay) = self.bay_index.get(&(group_number, keys)) {
            return bay;
        }
        let (concurrency, rate) = keys;
        let bay =
            self.bays.insert(Bay { group: group_number, concurrency, rate, ..Bay::default() });
        for id in [concurrency, rate].into_iter().flatten() {
            self.limit_mut(id).bays += 1;
        }
        let group = self.groups.get_mut(group_number);
        group.bays.insert(bay);
        if keys == (None, None) {
            group.home_bay = bay;
        } else {
            self.bay_index.insert((group_number, keys), bay);
        }
        bay
    }

    /// A live job belongs to this lane from now on.
    pub(crate) fn join_lane(&mut self, slot: Slot, lane_number: u32) {
        self.jobs.get_mut(slot).lane = lane_number;
        let lane = self.lanes.get_mut(lane_number);
        lane.live += 1;
        let group = self.bays.get(lane.bay).group;
        let group_ref = self.groups.get_mut(group);
        group_ref.live += 1;
        if group_ref.idle_stamp != 0 {
            let stamp = std::mem::take(&mut group_ref.idle_stamp);
            self.idle_groups.remove(&(stamp, group));
            self.mark_group(group);
        }
    }

    /// A live job no longer belongs to its lane. Forgets what nothing uses any more.
    pub(crate) fn quit_lane(&mut self, slot: Slot) {
        let lane_number = std::mem::replace(&mut self.jobs.get_mut(slot).lane, NONE);
        let lane = self.lanes.get_mut(lane_number);
        lane.live -= 1;
        let (bay_number, lane_unused) = (lane.bay, lane.live == 0);
        let group_number = self.bays.get(bay_number).group;
        let group = self.groups.get_mut(group_number);
        group.live -= 1;
        let group_unused = group.live == 0;
        if lane_unused && group.home_lane != lane_number {
            self.forget_lane(lane_number);
        }
        if group_unused {
            let stamp = self.next_stamp();
            self.groups.get_mut(group_number).idle_stamp = stamp;
            self.mark_group(group_number);
            self.idle_groups.insert((stamp, group_number));
            self.forget_idle_groups();
        }
    }

    fn forget_lane(&mut self, lane_number: u32) {
        let lane = self.lanes.remove(lane_number);
        let bay = self.bays.get_mut(lane.bay);
        bay.lanes.remove(&(lane.class, lane.priority));
        let limited = bay.concurrency.is_some() || bay.rate.is_some();
        if limited && bay.lanes.is_empty() {
            self.forget_bay(lane.bay);
        }
    }

    fn forget_bay(&mut self, bay_number: u32) {
        self.bury_bay(bay_number);
        let bay = self.bays.remove(bay_number);
        debug_assert_eq!(bay.place, BayPlace::Empty, "a bay without lanes has no jobs");
        let keys = (bay.concurrency, bay.rate);
        self.bay_index.remove(&(bay.group, keys));
        self.groups.get_mut(bay.group).bays.remove(&bay_number);
        for id in [bay.concurrency, bay.rate].into_iter().flatten() {
            self.limit_mut(id).bays -= 1;
            self.forget_limit_if_unused(id);
        }
    }

    /// Keeps the number of groups without jobs in bounds, oldest out first. With a group goes its
    /// place in the counting scheme.
    fn forget_idle_groups(&mut self) {
        while self.idle_groups.len() > usize::try_from(self.idle_groups_max).unwrap_or(usize::MAX) {
            let Some((_, group_number)) = self.idle_groups.pop_first() else { break };
            self.bury_group(group_number);
            let bays = self.groups.get(group_number).bays.clone();
            for bay_number in bays {
                for (_, lane) in std::mem::take(&mut self.bays.get_mut(bay_number).lanes) {
                    self.lanes.remove(lane);
                }
                self.forget_bay(bay_number);
            }
            let group = self.groups.remove(group_number);
            self.queue_mut(group.queue).groups.remove(&group.name);
        }
    }

    /// The class a job is served in.
    pub(crate) fn class_of(&self, queue: QueueId, slot: Slot) -> Class {
        let retry = self.jobs.get(slot).flags.has(Flags::RETRY);
        if retry && self.queue(queue).settings.retries_first { Class::Retry } else { Class::Usual }
    }

    /// Moves a job, ready or not, to the lane that its class and priority ask for.
    pub(crate) fn relane(&mut self, slot: Slot, priority: i32) {
        let old = self.jobs.get(slot).lane;
        let lane = self.lanes.get(old);
        let bay = self.bays.get(lane.bay);
        let (group, keys) = (bay.group, (bay.concurrency, bay.rate));
        let class = self.class_of(self.groups.get(group).queue, slot);
        if lane.class == class && lane.priority == priority {
            return;
        }
        let new = self.lane_for(group, keys, class, priority);
        self.join_lane(slot, new);
        // `quit_lane` looks at the job's lane, so show it the old one once more.
        self.jobs.get_mut(slot).lane = old;
        self.quit_lane(slot);
        self.jobs.get_mut(slot).lane = new;
    }
}

/// The lane a group serves by its priority rule.
fn by_priority(ranks: &BTreeSet<Rank>, hint_low: bool) -> u32 {
    let first = ranks.first().expect("there are at least two");
    if !hint_low {
        return first.lane;
    }
    // The lowest priority of the first class, and in it the lane whose first job is first.
    let last_of_class =
        Rank { class: first.class, priority: Reverse(i32::MIN), head_order: u64::MAX, lane: NONE };
    let lowest = ranks.range(..=last_of_class).next_back().expect("the first is in the range");
    let first_of_lowest = Rank { head_order: 0, lane: 0, ..*lowest };
    ranks.range(first_of_lowest..).next().expect("the lowest is in the range").lane
}
