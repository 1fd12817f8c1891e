//! The two lists of groups of a queue, in order of their turns.

use super::super::State;
use super::super::job::NONE;

impl State {
    /// Puts a group at the tail of its queue's list when it became eligible, takes it out when it
    /// no longer is.
    pub(super) fn relist(&mut self, group_number: u32) {
        let group = self.groups.get(group_number);
        let eligible = !group.ready.is_empty();
        if eligible && group.turn == 0 {
            let turn = self.next_stamp();
            self.list_insert(group_number, turn);
        } else if !eligible && group.turn != 0 {
            self.list_remove(group_number);
        }
    }

    /// The group was served: both its sides go back to the tail, if they are still eligible.
    pub(crate) fn end_turn(&mut self, group_number: u32) {
        let group = self.groups.get(group_number);
        let (listed, twin) = (group.turn != 0, group.twin);
        if listed {
            self.rejoin(group_number);
        }
        if twin != NONE && self.groups.get(twin).turn != 0 {
            self.rejoin(twin);
        }
    }

    fn rejoin(&mut self, group_number: u32) {
        self.list_remove(group_number);
        let turn = self.next_stamp();
        self.list_insert(group_number, turn);
    }

    /// The group gets back a turn that came to nothing.
    pub(crate) fn restore_turn(&mut self, group_number: u32, turn: u64) {
        self.restore_turn_of_side(group_number, turn);
        let twin = self.groups.get(group_number).twin;
        if twin != NONE {
            self.restore_turn_of_side(twin, turn);
        }
    }

    fn restore_turn_of_side(&mut self, group_number: u32, turn: u64) {
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
        let group = self.groups.get(group_number);
        let (queue_id, side) = (group.queue, group.side);
        let tail = self.queue(queue_id).side(side).tail;
        let (prev, next) = if tail == NONE || self.groups.get(tail).turn < turn {
            (tail, NONE)
        } else {
            let mut next = self.queue(queue_id).side(side).head;
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
            self.queue_mut(queue_id).side_mut(side).head = group_number;
        } else {
            self.groups.get_mut(prev).next = group_number;
        }
        if next == NONE {
            self.queue_mut(queue_id).side_mut(side).tail = group_number;
        } else {
            self.groups.get_mut(next).prev = group_number;
        }
    }

    fn list_remove(&mut self, group_number: u32) {
        self.mark_group(group_number);
        let group = self.groups.get_mut(group_number);
        let (queue_id, side, prev, next) = (group.queue, group.side, group.prev, group.next);
        group.turn = 0;
        group.prev = NONE;
        group.next = NONE;
        if prev == NONE {
            self.queue_mut(queue_id).side_mut(side).head = next;
        } else {
            self.groups.get_mut(prev).next = next;
        }
        if next == NONE {
            self.queue_mut(queue_id).side_mut(side).tail = prev;
        } else {
            self.groups.get_mut(next).prev = prev;
        }
    }
}
