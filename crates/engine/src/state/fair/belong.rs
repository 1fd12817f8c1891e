//! What is made with the first job that needs it and forgotten with the last: groups, bays, lanes.

use windlass_record::id::{LimitId, QueueId};

use super::super::State;
use super::super::job::{Flags, NONE, Slot};
use super::super::lane::LaneQueue;
use super::{Bay, BayPlace, Class, Group, Lane, ReadyLanes, Side};

/// Unused lanes of a bay without keys that are kept while their group is: most groups use a few
/// priorities again and again.
const LANES_KEPT: usize = 8;

impl State {
    /// This side of the group of this name, made if it is new.
    pub(crate) fn group_named(&mut self, queue_id: QueueId, side: Side, name: &str) -> u32 {
        let queue = self.queue(queue_id);
        if let Some(&group) = queue.side(side).groups.get(name) {
            return group;
        }
        let twin = queue.side(side.other()).groups.get(name).copied().unwrap_or(NONE);
        let mut group = Group { queue: queue_id, side, twin, ..Group::default() };
        if twin == NONE {
            group.name = name.into();
        } else {
            let twin = self.groups.get(twin);
            group.name = twin.name.clone();
            group.scheme_count = twin.scheme_count;
        }
        let text = group.name.clone();
        let group = self.groups.insert(group);
        if twin != NONE {
            self.groups.get_mut(twin).twin = group;
        }
        self.queue_mut(queue_id).side_mut(side).groups.insert(text, group);
        self.mark_group(group);
        group
    }

    /// The side of its group that a job belongs to, made if it is new.
    fn side_for(&mut self, slot: Slot) -> u32 {
        let number = self.group_of(slot);
        let side = self.jobs.get(slot).flags.side();
        let group = self.groups.get(number);
        match () {
            () if group.side == side => number,
            () if group.twin != NONE => group.twin,
            () => {
                let (queue, name) = (group.queue, group.name.clone());
                self.group_named(queue, side, &name)
            }
        }
    }

    /// The counter of a group's scheme, on both sides.
    pub(crate) fn set_scheme_count(&mut self, group_number: u32, scheme_count: u32) {
        self.mark_group(group_number);
        let group = self.groups.get_mut(group_number);
        group.scheme_count = scheme_count;
        let twin = group.twin;
        if twin != NONE {
            self.mark_group(twin);
            self.groups.get_mut(twin).scheme_count = scheme_count;
        }
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
        let queue_id = self.groups.get(group_number).queue;
        let lane = self.lanes.insert(Lane {
            bay: bay_number,
            group: group_number,
            queue_id,
            class,
            priority,
            ..Lane::default()
        });
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
            self.schedule_rate(id);
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
        let group = lane.group;
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
        let (bay_number, group_number, lane_unused) = (lane.bay, lane.group, lane.live == 0);
        let group = self.groups.get_mut(group_number);
        group.live -= 1;
        let group_unused = group.live == 0;
        if lane_unused {
            let is_kept = group.home_bay == bay_number
                && (group.home_lane == lane_number
                    || self.bays.get(bay_number).lanes.len() <= LANES_KEPT);
            if !is_kept {
                self.forget_lane(lane_number);
            }
        }
        if group_unused {
            self.groups.get_mut(group_number).ready = ReadyLanes::None;
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
            if group.twin != NONE {
                self.groups.get_mut(group.twin).twin = NONE;
            }
            self.queue_mut(group.queue).side_mut(group.side).groups.remove(&group.name);
        }
    }

    /// The class a job is served in.
    pub(crate) fn class_of(&self, queue: QueueId, slot: Slot) -> Class {
        let retry = self.jobs.get(slot).flags.has(Flags::RETRY);
        if retry && self.queue(queue).settings.retries_first { Class::Retry } else { Class::Usual }
    }

    /// Moves a job that stands in no lane to the one that its side, class and priority ask for.
    pub(crate) fn relane(&mut self, slot: Slot, priority: i32) {
        if let Some(new) = self.other_lane(slot, priority) {
            self.change_lane(slot, new);
        }
    }

    /// The same for a ready job. It enters the new lane before it leaves the old one, so that its
    /// bay and its group keep their places.
    pub(crate) fn relane_ready(&mut self, slot: Slot, priority: i32) {
        let Some(new) = self.other_lane(slot, priority) else { return };
        let old = std::mem::replace(&mut self.jobs.get_mut(slot).lane, new);
        self.enter_lane(slot);
        self.jobs.get_mut(slot).lane = old;
        self.leave_lane(slot);
        self.change_lane(slot, new);
    }

    /// The lane that a job's side, class and this priority ask for, if it is not the one it has.
    fn other_lane(&mut self, slot: Slot, priority: i32) -> Option<u32> {
        let group = self.side_for(slot);
        let lane = self.lanes.get(self.jobs.get(slot).lane);
        let bay = self.bays.get(lane.bay);
        let keys = (bay.concurrency, bay.rate);
        let class = self.class_of(lane.queue_id, slot);
        if lane.group == group && lane.class == class && lane.priority == priority {
            return None;
        }
        Some(self.lane_for(group, keys, class, priority))
    }

    fn change_lane(&mut self, slot: Slot, new: u32) {
        let old = self.jobs.get(slot).lane;
        self.join_lane(slot, new);
        // `quit_lane` looks at the job's lane, so show it the old one once more.
        self.jobs.get_mut(slot).lane = old;
        self.quit_lane(slot);
        self.jobs.get_mut(slot).lane = new;
    }

    /// Takes all ready jobs of a queue out of their lanes, for a moment: bays and groups stay where
    /// they are, and [`State::rank_all_lanes`] must follow when the jobs are back.
    pub(crate) fn empty_lanes(&mut self, queue: QueueId) {
        for (group, lane, awake) in self.filled_lanes(queue) {
            if awake {
                self.rank_lane(group, lane, false);
            }
            self.lanes.get_mut(lane).queue = LaneQueue::default();
        }
    }

    /// Ranks the lanes of all awake bays of a queue.
    pub(crate) fn rank_all_lanes(&mut self, queue: QueueId) {
        for (group, lane, awake) in self.filled_lanes(queue) {
            if awake {
                self.rank_lane(group, lane, true);
            }
        }
    }

    /// Group, lane, and whether its bay is awake, of each lane with jobs.
    fn filled_lanes(&self, queue: QueueId) -> Vec<(u32, u32, bool)> {
        self.lanes
            .iter()
            .filter(|(_, lane)| !lane.queue.is_empty())
            .map(|(number, lane)| (number, self.bays.get(lane.bay)))
            .filter(|(_, bay)| self.groups.get(bay.group).queue == queue)
            .map(|(number, bay)| (bay.group, number, bay.place == BayPlace::Awake))
            .collect()
    }
}
