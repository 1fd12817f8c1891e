//! The queue's list of groups, in order of their turns.

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
}
