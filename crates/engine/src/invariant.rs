//! What always holds, by number. Checked after every step by the tests and the simulator, and by
//! debug builds where they choose to: a check walks all of the state.

use std::collections::{BTreeMap, BTreeSet};

use windlass_record::event::DeadlineKind;
use windlass_record::id::{JobKey, QueueId};
use windlass_record::schedule::SCHEDULE_RUNS_MAX;

use crate::lifecycle::JobState;
use crate::state::fair::{BayPlace, Counts, Queue, ReadyLanes, Side};
use crate::state::job::{Flags, NONE, Slot};
use crate::state::schedule::Schedules;
use crate::state::{Gate, State, deadline_of};

/// An invariant that does not hold: a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The number of the invariant, from 1.
    pub number: usize,
    /// What it says.
    pub says: &'static str,
    /// What breaks it: the number of a job, group, bay, lane, queue or key, as the invariant has it.
    pub subject: u64,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invariant I{} is broken by {}: {}", self.number, self.subject, self.says)
    }
}

impl std::error::Error for Violation {}

/// Finds what breaks an invariant.
type Search = fn(&State) -> Option<u64>;

/// The invariants. Their numbers are their places, from 1, and are never reused.
pub const INVARIANTS: [(&str, Search); 24] = [
    ("the counts of a queue are those of its jobs", counts),
    ("a lane holds exactly its ready jobs, in order", lanes),
    ("bays, groups and queues count their ready jobs", ready_counts),
    ("a queue's list holds its groups that can be served, by turn, with sound links", list),
    ("a group ranks exactly the lanes of its awake bays that have jobs", ranks),
    ("a bay stands in line exactly where its place says", lines),
    ("a bay waits only if its gate is full or its queue has as many awake bays as room", parked),
    ("no bay is awake at a full gate", awake),
    ("a key counts its active jobs", active),
    ("the hand-outs of a window are in order, and none without a rate", windows),
    ("unique keys are held by live jobs, or until a time", unique_keys),
    ("the wheel holds each job at its earliest deadline", wheel),
    ("each live job is found by its key", index),
    ("types and workers count their users", interned),
    ("each incident names the job that waits in it", incidents),
    ("no two payloads share a handle", payloads),
    ("a group without jobs is idle, and no other; its sides know each other", idle_groups),
    ("keys count the bays that use them, and are looked at when their window frees", limits),
    ("only an active job has a worker, or has been asked to stop", active_only),
    (
        "no key, stamp or turn is newer than its counter; jobs are in their class and on their side",
        counters,
    ),
    ("a job of a flow lives as long as its element waits for it", flow_jobs),
    ("what windlass_flow::invariant lists holds", flows),
    ("a schedule is found by its name, its run and its time, and by no other", schedule_indexes),
    ("a schedule's run lives, and one that is paused or deleted is not due", schedules),
];

/// Checks all invariants; returns the first that does not hold.
pub fn check(state: &State) -> Result<(), Violation> {
    for (place, (says, search)) in INVARIANTS.iter().enumerate() {
        if let Some(subject) = search(state) {
            return Err(Violation { number: place + 1, says, subject });
        }
    }
    Ok(())
}

fn flow_jobs(state: &State) -> Option<u64> {
    let mut jobs = state.flow.attached_jobs();
    jobs.find(|job| state.find(*job).is_none()).map(JobKey::raw)
}

fn flows(state: &State) -> Option<u64> {
    windlass_flow::invariant::check(&state.flow).err().map(|_| 0)
}

fn counts(state: &State) -> Option<u64> {
    let mut found: Vec<Counts> = state.queues.iter().map(|_| Counts::default()).collect();
    for (slot, job) in state.jobs.iter() {
        let queue = usize::try_from(state.queue_of(slot).0).ok()?;
        *found.get_mut(queue)?.of(job.state) += 1;
    }
    let wrong = state.queues.iter().zip(&found).position(|(queue, found)| queue.counts != *found);
    wrong.map(wide)
}

fn lanes(state: &State) -> Option<u64> {
    let mut ready: BTreeMap<u32, Vec<(u64, Slot)>> = BTreeMap::new();
    let mut live: BTreeMap<u32, u32> = BTreeMap::new();
    for (slot, job) in state.jobs.iter() {
        *live.entry(job.lane).or_default() += 1;
        if job.state == JobState::Ready {
            ready.entry(job.lane).or_default().push((job.order, slot));
        }
    }
    for (number, lane) in state.lanes.iter() {
        let mut expected = ready.remove(&number).unwrap_or_default();
        expected.sort_unstable();
        let same = lane.queue.iter().eq(expected.iter().map(|(_, slot)| *slot));
        let counted = usize::try_from(lane.queue.len()) == Ok(expected.len())
            && lane.live == live.get(&number).copied().unwrap_or(0);
        let ranked = expected
            .iter()
            .zip(0..)
            .all(|((order, _), place)| lane.queue.rank(&state.jobs, *order) == place);
        if !same || !counted || !ranked {
            return Some(u64::from(number));
        }
    }
    ready.keys().next().map(|lane| u64::from(*lane))
}

fn ready_counts(state: &State) -> Option<u64> {
    let mut groups: BTreeMap<u32, u32> = BTreeMap::new();
    let mut sides: BTreeMap<(QueueId, Side), u32> = BTreeMap::new();
    for (number, bay) in state.bays.iter().filter(|(_, bay)| bay.group != NONE) {
        let lens = bay.lanes.values().map(|lane| state.lanes.get(*lane).queue.len());
        if bay.ready_jobs != lens.sum::<u32>() {
            return Some(u64::from(number));
        }
        if bay.place == BayPlace::Awake {
            *groups.entry(bay.group).or_default() += bay.ready_jobs;
            *sides.entry(state.line_of(number)).or_default() += bay.ready_jobs;
        }
    }
    let wrong_group = state
        .groups
        .iter()
        .find(|(number, group)| group.ready_jobs != groups.get(number).copied().unwrap_or(0));
    if let Some((number, _)) = wrong_group {
        return Some(u64::from(number));
    }
    let wrong_queue = state.queues().find(|(id, queue)| {
        Side::ALL.iter().any(|side| {
            let found = sides.get(&(*id, *side)).copied().unwrap_or(0);
            queue.side(*side).eligible_jobs != found
        })
    });
    wrong_queue.map(|(id, _)| u64::from(id.0))
}

fn list(state: &State) -> Option<u64> {
    let mut listed = BTreeSet::new();
    let sides = |(id, queue)| Side::ALL.map(|side| (id, side, Queue::side(queue, side)));
    for (id, side, list) in state.queues().flat_map(sides) {
        let (mut prev, mut number, mut turn) = (NONE, list.head, 0);
        while number != NONE {
            let group = state.groups.get(number);
            let sound =
                group.prev == prev && group.turn > turn && group.queue == id && group.side == side;
            if !sound || !listed.insert(number) {
                return Some(u64::from(number));
            }
            (prev, number, turn) = (number, group.next, group.turn);
        }
        if list.tail != prev {
            return Some(u64::from(id.0));
        }
    }
    let wrong = state.groups.iter().find(|(number, group)| {
        let served = !group.ready.is_empty();
        served != listed.contains(number) || served != (group.turn != 0)
    });
    wrong.map(|(number, _)| u64::from(number))
}

fn ranks(state: &State) -> Option<u64> {
    for (number, group) in state.groups.iter() {
        let expected: BTreeSet<_> = group
            .bays
            .iter()
            .map(|bay| state.bays.get(*bay))
            .filter(|bay| bay.place == BayPlace::Awake)
            .flat_map(|bay| bay.lanes.values())
            .filter_map(|lane| Some(state.rank_of(*lane, state.lanes.get(*lane).queue.front()?)))
            .collect();
        let sound = match &group.ready {
            ReadyLanes::None => expected.is_empty(),
            ReadyLanes::One(lane) => {
                expected.len() == 1 && expected.first().is_some_and(|rank| rank.lane == *lane)
            }
            ReadyLanes::Many(ranks) => ranks.iter().eq(&expected),
        };
        if !sound {
            return Some(u64::from(number));
        }
    }
    None
}

fn lines(state: &State) -> Option<u64> {
    let mut standing = 0;
    for (number, bay) in state.bays.iter().filter(|(_, bay)| bay.group != NONE) {
        if (bay.place == BayPlace::Empty) != (bay.ready_jobs == 0) {
            return Some(u64::from(number));
        }
        let entry = (bay.stamp, number);
        let own = state.line_of(number);
        for gate in [Gate::Concurrency, Gate::Rate] {
            let Some(id) = state.limit_at(number, gate) else { continue };
            let line = state.limit(id).gate(gate).lines().find(|(of, _)| *of == own);
            let awake = line.is_some_and(|(_, line)| line.awake.contains(&entry));
            let parked = line.is_some_and(|(_, line)| line.parked.contains(&entry));
            standing += usize::from(awake) + usize::from(parked);
            let expected = (bay.place == BayPlace::Awake, bay.place == BayPlace::Parked(gate));
            if (awake, parked) != expected {
                return Some(u64::from(number));
            }
        }
    }
    let entries: usize = state
        .limits
        .values()
        .flat_map(|limit| limit.concurrency.lines().chain(limit.rate.lines()))
        .map(|(_, line)| line.awake.len() + line.parked.len())
        .sum();
    (entries != standing).then_some(wide(entries))
}

fn parked(state: &State) -> Option<u64> {
    find_line(state, |room, awake, parked| parked == 0 || awake >= room)
}

fn awake(state: &State) -> Option<u64> {
    find_line(state, |room, awake, _| room > 0 || awake == 0)
}

/// The first key with a line that is not sound, by its room and the bays awake and parked there.
fn find_line(state: &State, sound: impl Fn(usize, usize, usize) -> bool) -> Option<u64> {
    for (id, limit) in &state.limits {
        for gate in [Gate::Concurrency, Gate::Rate] {
            let room = usize::try_from(limit.free(gate)).unwrap_or(usize::MAX);
            for (_, line) in limit.gate(gate).lines() {
                if !sound(room, line.awake.len(), line.parked.len()) {
                    return Some(u64::from(id.0));
                }
            }
        }
    }
    None
}

fn active(state: &State) -> Option<u64> {
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    for (slot, _) in state.jobs.iter().filter(|(_, job)| job.state == JobState::Active) {
        if let Some(id) = state.limit_at(state.bay_of(slot), Gate::Concurrency) {
            *found.entry(id.0).or_default() += 1;
        }
    }
    let wrong = state
        .limits
        .iter()
        .find(|(id, limit)| limit.active != found.get(&id.0).copied().unwrap_or(0));
    wrong.map(|(id, _)| u64::from(id.0))
}

fn windows(state: &State) -> Option<u64> {
    let wrong = state.limits.iter().find(|(_, limit)| {
        let sorted = limit.handed_ms.iter().is_sorted();
        let counted = limit.settings.rate.is_some() || limit.handed_ms.is_empty();
        !sorted || !counted
    });
    wrong.map(|(id, _)| u64::from(id.0))
}

fn unique_keys(state: &State) -> Option<u64> {
    let mut living = 0;
    for (slot, job) in state.jobs.iter() {
        let Some(options) = job.options() else { continue };
        if options.unique_key.is_empty() {
            continue;
        }
        living += 1;
        let name = (state.queue_of(slot), options.unique_key.clone());
        let sound = state
            .unique_keys
            .get(&name)
            .is_some_and(|hold| hold.holder == job.key && hold.until_ms == u64::MAX);
        if !sound {
            return Some(job.key.raw());
        }
    }
    let held = state.unique_keys.iter().filter(|(_, hold)| hold.until_ms == u64::MAX).count();
    let ending: BTreeSet<_> = state
        .unique_keys
        .iter()
        .filter(|(_, hold)| hold.until_ms != u64::MAX)
        .map(|(name, hold)| (hold.until_ms, name.clone()))
        .collect();
    let sound = held == living && state.unique_keys.ending().eq(&ending);
    (!sound).then_some(wide(held))
}

fn wheel(state: &State) -> Option<u64> {
    let mut timed = 0;
    for (slot, job) in state.jobs.iter() {
        let long = [DeadlineKind::Waiting, DeadlineKind::Attempt, DeadlineKind::Total];
        let first_ms = long
            .into_iter()
            .filter_map(|kind| deadline_of(job, kind))
            .map(|(at_ms, _)| at_ms)
            .min();
        let late = first_ms.is_some_and(|first_ms| job.wake_ms > first_ms);
        if job.wake_ms != state.wake_ms(slot) || late {
            return Some(job.key.raw());
        }
        timed += usize::from(job.wake_ms != u64::MAX);
    }
    (state.wheel.count(&state.jobs) != Some(timed)).then_some(wide(timed))
}

fn index(state: &State) -> Option<u64> {
    let lost = state.jobs.iter().find(|(slot, job)| state.find(job.key) != Some(*slot));
    if let Some((_, job)) = lost {
        return Some(job.key.raw());
    }
    let live = state.jobs.iter().count();
    let counted = usize::try_from(state.jobs.live()) == Ok(live) && state.keys.count() == live;
    (!counted).then_some(wide(live))
}

fn interned(state: &State) -> Option<u64> {
    let mut types: BTreeMap<u32, u32> = BTreeMap::new();
    let mut workers: BTreeMap<u32, u32> = BTreeMap::new();
    for (_, job) in state.jobs.iter() {
        *types.entry(job.job_type).or_default() += 1;
        *workers.entry(job.worker).or_default() += 1;
    }
    types.remove(&NONE);
    workers.remove(&NONE);
    let sound = state.types.users().eq(types) && state.workers.users().eq(workers);
    (!sound).then_some(0)
}

fn incidents(state: &State) -> Option<u64> {
    let mut waiting = 0;
    for (_, job) in state.jobs.iter() {
        let incident = job.extra().and_then(|extra| extra.incident.as_ref());
        let found = incident.and_then(|incident| state.incident_job(incident.key));
        if incident.is_some() != (job.state == JobState::Incident)
            || incident.is_some() != (found == Some(job.key))
        {
            return Some(job.key.raw());
        }
        waiting += usize::from(incident.is_some());
    }
    (state.incidents.len() != waiting).then_some(wide(waiting))
}

fn payloads(state: &State) -> Option<u64> {
    let mut seen = BTreeSet::new();
    let of_jobs = state.jobs.iter().map(|(_, job)| job.payload);
    let of_documents = state.documents.by_name.values().map(|document| document.bytes);
    let mut all = of_jobs.chain(of_documents).filter(|payload| payload.len > 0);
    all.find(|payload| !seen.insert(payload.handle.0)).map(|payload| u64::from(payload.handle.0))
}

fn idle_groups(state: &State) -> Option<u64> {
    let mut live: BTreeMap<u32, u32> = BTreeMap::new();
    for (slot, _) in state.jobs.iter() {
        *live.entry(state.group_of(slot)).or_default() += 1;
    }
    for (number, group) in state.groups.iter().filter(|(_, group)| group.queue.0 != NONE) {
        let jobs = live.get(&number).copied().unwrap_or(0);
        let idle = state.idle_groups.contains(&(group.idle_stamp, number));
        let queue = state.queue(group.queue);
        let named = queue.side(group.side).groups.get(&group.name) == Some(&number);
        let twin = queue.side(group.side.other()).groups.get(&group.name).copied();
        let paired = twin.unwrap_or(NONE) == group.twin
            && twin.is_none_or(|twin| state.groups.get(twin).scheme_count == group.scheme_count);
        if group.live != jobs
            || idle != (jobs == 0)
            || idle != (group.idle_stamp != 0)
            || !named
            || !paired
        {
            return Some(u64::from(number));
        }
    }
    let named = |queue: &Queue| queue.open.groups.len() + queue.fenced.groups.len();
    let groups: usize = state.queues.iter().map(named).sum();
    (usize::try_from(state.groups.live()) != Ok(groups)).then_some(wide(groups))
}

fn limits(state: &State) -> Option<u64> {
    let mut bays: BTreeMap<u32, u32> = BTreeMap::new();
    for (_, bay) in state.bays.iter().filter(|(_, bay)| bay.group != NONE) {
        for id in [bay.concurrency, bay.rate].into_iter().flatten() {
            *bays.entry(id.0).or_default() += 1;
        }
    }
    let mut wakes = BTreeSet::new();
    for (id, limit) in &state.limits {
        let unused = limit.implied && limit.bays == 0;
        let wanted_ms = limit.frees_ms().filter(|_| unused || !limit.rate.none_parked());
        let kept = !unused || wanted_ms.is_some();
        let sound = limit.bays == bays.get(&id.0).copied().unwrap_or(0)
            && limit.rate_wake_ms == wanted_ms
            && kept;
        if !sound {
            return Some(u64::from(id.0));
        }
        wakes.extend(wanted_ms.map(|at_ms| (at_ms, *id)));
    }
    (wakes != state.rate_wakes).then_some(wide(wakes.len()))
}

fn active_only(state: &State) -> Option<u64> {
    let wrong = state.jobs.iter().find(|(_, job)| {
        job.state != JobState::Active && (job.worker != NONE || job.cancel_asked())
    });
    wrong.map(|(_, job)| job.key.raw())
}

fn counters(state: &State) -> Option<u64> {
    let late_job = state.jobs.iter().find(|(slot, job)| {
        let class = state.class_of(state.queue_of(*slot), *slot);
        let lane = state.lanes.get(job.lane);
        let in_class = lane.class == class;
        let on_side = state.groups.get(lane.group).side == job.flags.side();
        let first = job.flags.has(Flags::FIRST_TOKEN) && job.state != JobState::Active;
        job.key.counter() > state.last_counter || !in_class || !on_side || first
    });
    if let Some((_, job)) = late_job {
        return Some(job.key.raw());
    }
    let late_group =
        state.groups.iter().find(|(_, group)| group.turn.max(group.idle_stamp) > state.last_stamp);
    if let Some((number, _)) = late_group {
        return Some(u64::from(number));
    }
    let late_bay = state.bays.iter().find(|(_, bay)| bay.stamp > state.last_stamp);
    late_bay.map(|(number, _)| u64::from(number))
}

fn schedule_indexes(state: &State) -> Option<u64> {
    let all = state.schedules.by_key.values();
    let due: BTreeSet<_> =
        all.clone().filter_map(|one| one.next_due_ms.map(|at_ms| (at_ms, one.key))).collect();
    let ready: BTreeSet<_> =
        all.clone().filter(|one| Schedules::is_ready(one)).map(|one| one.key).collect();
    if due != state.schedules.due || ready != state.schedules.ready {
        return Some(wide(due.len()));
    }
    let lost = all.clone().find(|one| {
        let named = state.schedules.named(&one.name).map(|found| found.key) == Some(one.key);
        let run = one.live.and_then(|run| state.schedules.by_run.get(&run));
        !named || run.copied() != one.live.map(|_| one.key)
    });
    if let Some(one) = lost {
        return Some(one.key.raw());
    }
    let counts = (state.schedules.len(), all.filter(|one| one.live.is_some()).count());
    (state.schedules.counts() != counts).then_some(wide(counts.0))
}

fn schedules(state: &State) -> Option<u64> {
    let wrong = state.schedules.by_key.values().find(|one| {
        let dead = one.live.is_some_and(|run| !state.run_lives(run));
        let late = one.key.counter() > state.last_counter;
        let idle = one.paused.is_some() && one.next_due_ms.is_some();
        dead || late || idle || one.runs.len() > SCHEDULE_RUNS_MAX
    });
    wrong.map(|one| one.key.raw())
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
