//! Where bays wait for their keys.
//!
//! Each key has two gates: one counts the active, the other the hand-outs of its window. At each
//! gate the bays of one side of a queue stand in one line, ordered by their **stamp**: when they got their
//! first ready job or were served last, whichever is later. A bay is awake while it may be served.
//!
//! - When a gate becomes full, all its awake bays park on it.
//! - While a gate has room, each queue has at least as many awake bays as there is room, if it has
//!   so many bays there: the oldest of its line are woken. Lines are kept per queue and side because a
//!   freed place would be wasted on a queue that is paused or a side that nobody asks.
//! - A bay that gets its first ready job parks if a gate is full or if an older bay of its queue
//!   waits there.
//!
//! A bay with two keys waits in one line at a time and holds nothing while it waits: under constant
//! pressure on both keys it is served only when both have room at the same instant.

use windlass_record::id::{LimitId, QueueId};

use super::super::State;
use super::super::job::Slot;
use super::super::limit::Gate;
use super::{BayPlace, Side};

/// Both gates of a bay, in the order in which they are asked.
const GATES: [Gate; 2] = [Gate::Concurrency, Gate::Rate];

impl State {
    /// A bay got its first ready job, in this lane: it is served, or waits behind the others.
    pub(super) fn join_line(&mut self, bay_number: u32, lane_number: u32) {
        let bay = self.bays.get_mut(bay_number);
        if bay.concurrency.is_none() && bay.rate.is_none() {
            bay.place = BayPlace::Awake;
            let group = bay.group;
            self.count_ready(group, lane_number, None);
            return;
        }
        self.open_window(bay_number);
        self.stamp_bay(bay_number);
        self.settle(bay_number);
    }

    /// A bay whose places were given back is served before those that wait, if there is room.
    pub(super) fn jump_line(&mut self, bay_number: u32, lane_number: u32) {
        if self.is_unlimited(bay_number) {
            self.join_line(bay_number, lane_number);
            return;
        }
        match self.bays.get(bay_number).place {
            BayPlace::Awake => unreachable!("an awake bay stands in front already"),
            BayPlace::Empty => self.stamp_bay(bay_number),
            BayPlace::Parked(gate) => self.unpark(bay_number, gate),
        }
        let full = GATES.into_iter().find(|&gate| {
            self.limit_at(bay_number, gate).is_some_and(|id| self.limit(id).free(gate) == 0)
        });
        match full {
            Some(gate) => self.park(bay_number, gate),
            None => self.admit(bay_number),
        }
    }

    /// A bay has no ready job any more; whoever it stood in front of at its gates may go on.
    pub(super) fn quit_line(&mut self, bay_number: u32) {
        match self.bays.get(bay_number).place {
            BayPlace::Empty => {}
            BayPlace::Parked(gate) => self.unpark(bay_number, gate),
            BayPlace::Awake => self.dismiss(bay_number),
        }
    }

    /// Finds out whether a bay with ready jobs may be served, and puts it where it belongs.
    fn settle(&mut self, bay_number: u32) {
        let line = self.line_of(bay_number);
        let stamp = self.bays.get(bay_number).stamp;
        let blocked = GATES.into_iter().find(|&gate| {
            let Some(id) = self.limit_at(bay_number, gate) else { return false };
            let limit = self.limit(id);
            let behind = limit.gate(gate).first_parked(line).is_some_and(|first| first < stamp);
            behind || limit.free(gate) == 0
        });
        match blocked {
            Some(gate) => self.park(bay_number, gate),
            None => self.admit(bay_number),
        }
    }

    /// Forgets what has left the window of a bay's rate, so that nobody waits for the timer.
    /// True if anything had.
    fn open_window(&mut self, bay_number: u32) -> bool {
        let Some(id) = self.limit_at(bay_number, Gate::Rate) else { return false };
        let now_ms = self.last_ms;
        if !self.limit_mut(id).prune(now_ms) {
            return false;
        }
        self.mark_limit(id);
        self.wake(id, Gate::Rate);
        true
    }

    /// Makes a bay that stands nowhere awake.
    fn admit(&mut self, bay_number: u32) {
        let line = self.line_of(bay_number);
        let entry = (self.bays.get(bay_number).stamp, bay_number);
        for gate in GATES {
            if let Some(id) = self.limit_at(bay_number, gate) {
                self.limit_mut(id).gate_mut(gate).line(line).awake.insert(entry);
            }
        }
        let bay = self.bays.get_mut(bay_number);
        bay.place = BayPlace::Awake;
        let (group, ready_jobs) = (bay.group, bay.ready_jobs);
        self.mark_bay(bay_number);
        self.count_eligible(group, ready_jobs);
        self.rank_lanes(bay_number, group, true);
    }

    /// An awake bay is awake no more and stands nowhere; those behind it may go on.
    fn dismiss(&mut self, bay_number: u32) {
        let line = self.line_of(bay_number);
        let bay = self.bays.get_mut(bay_number);
        bay.place = BayPlace::Empty;
        let entry = (bay.stamp, bay_number);
        let (group, ready_jobs) = (bay.group, bay.ready_jobs);
        if ready_jobs > 0 {
            self.count_ineligible(group, ready_jobs);
            self.rank_lanes(bay_number, group, false);
        }
        for gate in GATES {
            if let Some(id) = self.limit_at(bay_number, gate) {
                self.limit_mut(id).gate_mut(gate).leave_awake(line, entry);
            }
        }
        self.wake_behind(bay_number);
    }

    /// Those who wait at the gates of a bay may go on.
    fn wake_behind(&mut self, bay_number: u32) {
        for gate in GATES {
            if let Some(id) = self.limit_at(bay_number, gate) {
                self.wake(id, gate);
            }
        }
    }

    fn park(&mut self, bay_number: u32, gate: Gate) {
        let line = self.line_of(bay_number);
        let bay = self.bays.get_mut(bay_number);
        bay.place = BayPlace::Parked(gate);
        let entry = (bay.stamp, bay_number);
        self.mark_bay(bay_number);
        let id = self.limit_at(bay_number, gate).expect("a bay parks on a key it has");
        self.limit_mut(id).gate_mut(gate).line(line).parked.insert(entry);
        self.schedule_rate(id);
    }

    fn unpark(&mut self, bay_number: u32, gate: Gate) {
        let line = self.line_of(bay_number);
        let bay = self.bays.get_mut(bay_number);
        bay.place = BayPlace::Empty;
        let entry = (bay.stamp, bay_number);
        let id = self.limit_at(bay_number, gate).expect("a bay is parked on a key it has");
        self.limit_mut(id).gate_mut(gate).leave_parked(line, entry);
        self.schedule_rate(id);
    }

    /// A bay goes to the end of its lines.
    fn stamp_bay(&mut self, bay_number: u32) {
        let stamp = self.next_stamp();
        self.bays.get_mut(bay_number).stamp = stamp;
        self.mark_bay(bay_number);
    }

    /// Lets parked bays pass while the gate has room that no awake bay of their queue waits to use.
    pub(crate) fn wake(&mut self, id: LimitId, gate: Gate) {
        loop {
            let limit = self.limit(id);
            let Some((_, bay_number)) = limit.gate(gate).next_to_wake(limit.free(gate)) else {
                break;
            };
            if self.open_window(bay_number) {
                continue;
            }
            self.unpark(bay_number, gate);
            self.settle(bay_number);
        }
        self.schedule_rate(id);
    }

    /// The gate became full: all its awake bays park on it.
    fn shut(&mut self, id: LimitId, gate: Gate) {
        for (_, bay_number) in self.limit(id).gate(gate).awake() {
            self.dismiss(bay_number);
            self.park(bay_number, gate);
        }
    }

    /// Hands a ready job out: it takes a place at each of its bay's gates and leaves its lane.
    pub(crate) fn serve(&mut self, slot: Slot, now_ms: u64) {
        let bay_number = self.bay_of(slot);
        if self.is_unlimited(bay_number) {
            self.leave_lane(slot);
            return;
        }
        // The places are taken before the job leaves, so that nobody is woken for them.
        if let Some(id) = self.limit_at(bay_number, Gate::Concurrency) {
            self.mark_limit(id);
            self.limit_mut(id).active += 1;
        }
        if let Some(id) = self.limit_at(bay_number, Gate::Rate) {
            self.mark_limit(id);
            let limit = self.limit_mut(id);
            if limit.settings.rate.is_some() {
                limit.prune(now_ms);
                limit.handed_ms.push_back(now_ms);
            }
        }
        self.leave_lane(slot);
        if self.bays.get(bay_number).place == BayPlace::Awake {
            self.requeue_awake(bay_number);
        }
        for gate in GATES {
            if let Some(id) = self.limit_at(bay_number, gate) {
                self.refresh_gate(id, gate);
            }
        }
    }

    /// Moves an awake bay behind the others of its queue.
    fn requeue_awake(&mut self, bay_number: u32) {
        let line = self.line_of(bay_number);
        let old = (self.bays.get(bay_number).stamp, bay_number);
        self.stamp_bay(bay_number);
        let new = (self.bays.get(bay_number).stamp, bay_number);
        for gate in GATES {
            if let Some(id) = self.limit_at(bay_number, gate) {
                let awake = &mut self.limit_mut(id).gate_mut(gate).line(line).awake;
                awake.remove(&old);
                awake.insert(new);
            }
        }
    }

    /// Takes back a job that was handed out at `activated_ms` for nothing: its places are its own
    /// again, and what is left of them goes to those that wait.
    pub(crate) fn unserve(&mut self, slot: Slot, activated_ms: u64) {
        let bay_number = self.bay_of(slot);
        self.open_window(bay_number);
        if let Some(id) = self.limit_at(bay_number, Gate::Concurrency) {
            self.mark_limit(id);
            self.limit_mut(id).active -= 1;
        }
        if let Some(id) = self.limit_at(bay_number, Gate::Rate) {
            self.mark_limit(id);
            self.limit_mut(id).refund(activated_ms);
        }
        self.reenter_lane(slot);
        self.wake_behind(bay_number);
    }

    /// A job of this bay is no longer active: its place is free at once.
    pub(crate) fn free_place(&mut self, bay_number: u32) {
        if let Some(id) = self.limit_at(bay_number, Gate::Concurrency) {
            self.mark_limit(id);
            self.limit_mut(id).active -= 1;
            self.wake(id, Gate::Concurrency);
        }
    }

    /// After new settings or the passing of time: parks or wakes what must be.
    pub(crate) fn refresh_gates(&mut self, id: LimitId) {
        for gate in GATES {
            self.refresh_gate(id, gate);
        }
    }

    fn refresh_gate(&mut self, id: LimitId, gate: Gate) {
        if self.limit(id).free(gate) == 0 {
            self.shut(id, gate);
            self.schedule_rate(id);
        } else {
            self.wake(id, gate);
        }
    }

    pub(crate) fn limit_at(&self, bay_number: u32, gate: Gate) -> Option<LimitId> {
        let bay = self.bays.get(bay_number);
        match gate {
            Gate::Concurrency => bay.concurrency,
            Gate::Rate => bay.rate,
        }
    }

    fn is_unlimited(&self, bay_number: u32) -> bool {
        let bay = self.bays.get(bay_number);
        bay.concurrency.is_none() && bay.rate.is_none()
    }

    /// The line in which a bay stands at its gates.
    pub(crate) fn line_of(&self, bay_number: u32) -> (QueueId, Side) {
        let group = self.groups.get(self.bays.get(bay_number).group);
        (group.queue, group.side)
    }
}
