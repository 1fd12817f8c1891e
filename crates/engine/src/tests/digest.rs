//! All of a state as lines of text that two engines must agree on, whatever their slots and handles.

use std::fmt::Debug;

use windlass_record::codec::Payloads;
use windlass_record::id::LimitId;

use crate::state::fair::{BayPlace, ReadyLanes, Side};
use crate::state::job::NONE;
use crate::state::{Gate, State};
use crate::verb::check::Shelf;

/// The lines, sorted.
pub(super) fn digest(state: &State, shelf: &Shelf) -> Vec<String> {
    let mut out = vec![format!(
        "counters {:?}",
        (state.partition, state.last_ms, state.last_counter, state.last_stamp, state.last_limit)
    )];
    jobs(state, shelf, &mut out);
    queues(state, &mut out);
    groups(state, &mut out);
    bays(state, &mut out);
    limits(state, &mut out);
    memory(state, shelf, &mut out);
    out.extend(state.flow.described());
    schedules(state, &mut out);
    out.sort();
    out
}

/// Compares two digests; a difference is shown by its lines alone.
pub(super) fn assert_same(what: &str, left: &[String], right: &[String]) {
    if left == right {
        return;
    }
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|line| !those.contains(line)).cloned().collect()
    };
    panic!("{what}\nonly left: {:#?}\nonly right: {:#?}", only(left, right), only(right, left));
}

fn jobs(state: &State, shelf: &Shelf, out: &mut Vec<String>) {
    for (slot, job) in state.jobs.iter() {
        out.push(format!(
            "job {:?}",
            (
                (job.key, job.state, job.flags, job.order, job.created_ms, job.due_ms),
                (job.wake_ms, job.retries, job.attempt, job.activation),
                (lane_name(state, job.lane), state.type_name(slot), state.worker_name(slot)),
                job.extra(),
                shelf.bytes(job.payload),
            )
        ));
    }
}

fn queues(state: &State, out: &mut Vec<String>) {
    for (id, queue) in state.queues() {
        let lists = Side::ALL.map(|side| {
            let mut list = Vec::new();
            let mut number = queue.side(side).head;
            while number != NONE {
                let group = state.groups.get(number);
                list.push((&group.name, group.turn));
                number = group.next;
            }
            (queue.side(side).eligible_jobs, list, queue.side(side).groups.len())
        });
        out.push(format!(
            "queue {:?}",
            ((id, &queue.tenant, &queue.name, queue.settings, queue.paused, queue.counts), lists,)
        ));
    }
}

fn groups(state: &State, out: &mut Vec<String>) {
    for (_, group) in state.groups.iter().filter(|(_, group)| group.queue.0 != NONE) {
        let mut ready: Vec<String> = match &group.ready {
            ReadyLanes::None => Vec::new(),
            ReadyLanes::One(lane) => vec![lane_name(state, *lane)],
            ReadyLanes::Many(ranks) => {
                ranks.iter().map(|rank| lane_name(state, rank.lane)).collect()
            }
        };
        ready.sort();
        out.push(format!(
            "group {:?}",
            (
                (group.queue, group.side, &group.name, group.live, group.turn, group.scheme_count),
                (ready, group.ready_jobs, group.idle_stamp),
            )
        ));
    }
}

fn bays(state: &State, out: &mut Vec<String>) {
    for (number, bay) in state.bays.iter().filter(|(_, bay)| bay.group != NONE) {
        // The bay without keys is kept for speed; whether it is there means nothing.
        if bay.place != BayPlace::Empty || bay.concurrency.is_some() || bay.rate.is_some() {
            let name = bay_name(state, number);
            let stamp = (bay.stamp, bay.place, bay.ready_jobs);
            out.push(format!("bay {name} {stamp:?}"));
        }
    }
    for (number, lane) in state.lanes.iter().filter(|(_, lane)| lane.live > 0) {
        let keys: Vec<_> = lane.queue.iter().map(|slot| state.job(slot).key).collect();
        out.push(format!("lane {} {:?} {keys:?}", lane_name(state, number), lane.live));
    }
}

fn limits(state: &State, out: &mut Vec<String>) {
    for (id, limit) in &state.limits {
        let mut lines = Vec::new();
        for gate in [Gate::Concurrency, Gate::Rate] {
            for (queue, line) in limit.gate(gate).lines() {
                for (what, entries) in [("awake", &line.awake), ("parked", &line.parked)] {
                    let names: Vec<_> = entries
                        .iter()
                        .map(|(stamp, bay)| (*stamp, bay_name(state, *bay)))
                        .collect();
                    lines.push((gate, queue, what, names));
                }
            }
        }
        out.push(format!(
            "limit {:?}",
            (
                (id, &limit.tenant, &limit.name, limit.settings, limit.implied, limit.bays),
                (limit.active, &limit.handed_ms, limit.rate_wake_ms, lines),
            )
        ));
    }
    all(out, "limit name", &state.limit_names);
    all(out, "limit in order", &state.limits_in_order);
    all(out, "rate wake", &state.rate_wakes);
}

fn memory(state: &State, shelf: &Shelf, out: &mut Vec<String>) {
    all(out, "incident", &state.incidents);
    for (name, hold) in state.unique_keys.iter() {
        out.push(format!("hold {name:?} {:?}", (hold.holder, hold.until_ms)));
    }
    all(out, "hold ends", state.unique_keys.ending());
    for (scoped, remembered) in state.requests.iter() {
        out.push(format!("request {scoped:?} {:?}", (remembered.key, remembered.at_ms)));
    }
    for (name, document) in &state.documents.by_name {
        let bytes = shelf.bytes(document.bytes);
        out.push(format!("document {name:?} {:?} {bytes:?}", document.version));
    }
    let idle: Vec<_> = state
        .idle_groups
        .iter()
        .map(|(stamp, number)| (stamp, state.groups.get(*number)))
        .map(|(stamp, group)| (stamp, &group.name, group.side))
        .collect();
    out.push(format!("idle {idle:?}"));
}

fn schedules(state: &State, out: &mut Vec<String>) {
    for one in state.schedules.by_key.values() {
        out.push(format!(
            "schedule {:?}",
            (
                (one.key, &one.name, one.version, &one.settings, &one.paused),
                (one.created_ms, one.updated_ms, one.next_due_ms, one.caught_up, one.live),
                (&one.queued, &one.runs, one.started, one.skipped, one.failed),
            )
        ));
    }
    all(out, "schedule due", &state.schedules.due);
    all(out, "schedule ready", &state.schedules.ready);
    all(out, "schedule run", &state.schedules.by_run);
}

fn all(out: &mut Vec<String>, what: &str, items: impl IntoIterator<Item = impl Debug>) {
    out.extend(items.into_iter().map(|item| format!("{what} {item:?}")));
}

fn lane_name(state: &State, number: u32) -> String {
    let lane = state.lanes.get(number);
    format!("{} {:?}", bay_name(state, lane.bay), (lane.class, lane.priority))
}

fn bay_name(state: &State, number: u32) -> String {
    let bay = state.bays.get(number);
    let group = state.groups.get(bay.group);
    let id = |id: Option<LimitId>| id.map_or(0, |id| id.0 + 1);
    let (queue, side) = (group.queue.0, group.side);
    format!("q{queue}/{side:?} {}/{}-{}", group.name, id(bay.concurrency), id(bay.rate))
}
