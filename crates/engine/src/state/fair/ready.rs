//! How ready jobs come and go, and which lanes of a group can be served.

use std::cmp::Reverse;

use super::super::State;
use super::super::job::Slot;
use super::ranks::Ranks;
use super::{BayPlace, Rank, ReadyLanes};

impl State {
    /// Puts a job that just became ready into its lane.
    pub(crate) fn enter_lane(&mut self, slot: Slot) {
        let (lane_number, old_head) = self.stand_in_lane(slot);
        let bay_number = self.lanes.get(lane_number).bay;
        let bay = self.bays.get(bay_number);
        match bay.place {
            BayPlace::Empty => self.join_line(bay_number, lane_number),
            BayPlace::Parked(_) => {}
            BayPlace::Awake => self.count_ready(bay.group, lane_number, old_head),
        }
    }

    /// Puts a job that was handed out for nothing back where it stood. Its places were given back,
    /// so its bay goes before those that wait in line.
    pub(crate) fn reenter_lane(&mut self, slot: Slot) {
        let (lane_number, old_head) = self.stand_in_lane(slot);
        let bay_number = self.lanes.get(lane_number).bay;
        let bay = self.bays.get(bay_number);
        match bay.place {
            BayPlace::Empty | BayPlace::Parked(_) => self.jump_line(bay_number, lane_number),
            BayPlace::Awake => self.count_ready(bay.group, lane_number, old_head),
        }
    }

    /// Adds a job to its lane; returns the lane and who was first in it.
    fn stand_in_lane(&mut self, slot: Slot) -> (u32, Option<Slot>) {
        let lane_number = self.jobs.get(slot).lane;
        let lane = self.lanes.get_mut(lane_number);
        let old_head = lane.queue.front();
        lane.queue.insert(&self.jobs, slot);
        self.bays.get_mut(lane.bay).ready_jobs += 1;
        (lane_number, old_head)
    }

    /// One more job in a lane of an awake bay.
    pub(super) fn count_ready(&mut self, group: u32, lane_number: u32, old_head: Option<Slot>) {
        self.count_eligible(group, 1);
        self.rerank(group, lane_number, old_head);
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
            self.quit_line(bay_number);
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

    pub(super) fn count_eligible(&mut self, group: u32, jobs: u32) {
        let group = self.groups.get_mut(group);
        group.ready_jobs += jobs;
        let (queue, side) = (group.queue, group.side);
        self.queue_mut(queue).side_mut(side).eligible_jobs += jobs;
        self.mark_served(queue);
    }

    pub(super) fn count_ineligible(&mut self, group: u32, jobs: u32) {
        let group = self.groups.get_mut(group);
        group.ready_jobs -= jobs;
        let (queue, side) = (group.queue, group.side);
        self.queue_mut(queue).side_mut(side).eligible_jobs -= jobs;
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
            (ReadyLanes::One(_), Some(_), Some(_)) => return,
            (ReadyLanes::One(other), None, Some(new_rank)) => {
                let other = *other;
                let head = self.lanes.get(other).queue.front().expect("it can be served");
                let ranks = Ranks::new([self.rank_of(other, head), new_rank]);
                self.groups.get_mut(group_number).ready = ReadyLanes::Many(ranks);
            }
            (ReadyLanes::Many(ranks), Some(old_rank), Some(new_rank)) => {
                ranks.replace(&old_rank, new_rank);
                return;
            }
            (ReadyLanes::Many(ranks), Some(old_rank), None) => ranks.remove(&old_rank),
            (ReadyLanes::Many(ranks), None, Some(new_rank)) => ranks.insert(new_rank),
            (ReadyLanes::None, ..) | (ReadyLanes::One(_) | ReadyLanes::Many(_), None, None) => {
                unreachable!("ready lanes and lane heads agree")
            }
        }
        self.relist(group_number);
    }

    pub(crate) fn rank_of(&self, lane_number: u32, head: Slot) -> Rank {
        let lane = self.lanes.get(lane_number);
        Rank {
            class: lane.class,
            priority: Reverse(lane.priority),
            head_order: self.jobs.get(head).order,
            lane: lane_number,
        }
    }

    /// Ranks all lanes of a bay that has just become awake, or unranks them.
    pub(super) fn rank_lanes(&mut self, bay_number: u32, group: u32, awake: bool) {
        let lanes: Vec<u32> = self.bays.get(bay_number).lanes.values().copied().collect();
        for lane in lanes {
            self.rank_lane(group, lane, awake);
        }
        self.relist(group);
    }

    /// Ranks a lane among those its group can serve, or unranks it. Leaves the list as it is.
    pub(crate) fn rank_lane(&mut self, group: u32, lane: u32, awake: bool) {
        let Some(head) = self.lanes.get(lane).queue.front() else { return };
        let rank = self.rank_of(lane, head);
        let ready = &mut self.groups.get_mut(group).ready;
        match ready {
            ReadyLanes::None if awake => *ready = ReadyLanes::One(lane),
            ReadyLanes::One(other) if awake => {
                let other = *other;
                let head = self.lanes.get(other).queue.front().expect("it can be served");
                let ranks = Ranks::new([self.rank_of(other, head), rank]);
                self.groups.get_mut(group).ready = ReadyLanes::Many(ranks);
            }
            ReadyLanes::Many(ranks) if awake => ranks.insert(rank),
            ReadyLanes::None => unreachable!("a ranked lane is in its group"),
            ReadyLanes::One(_) => *ready = ReadyLanes::None,
            ReadyLanes::Many(ranks) => ranks.remove(&rank),
        }
    }
}
