//! Everything a partition remembers. Written by [`apply`](crate::apply) alone.
//!
//! Reading order: [`job`] is what it is about; [`fair`] says whose turn it is, [`lane`] in which
//! order, [`limit`] how many; `due` and `wheel` when; [`document`], [`memory`] and [`schedule`] stand
//! beside the jobs;
//! [`image`] is how all of it gets into a checkpoint and back.

pub mod document;
mod due;
pub mod fair;
pub mod image;
mod intern;
pub mod job;
mod keys;
mod lane;
pub mod limit;
pub mod memory;
mod paged;
mod pair;
pub mod schedule;
mod wheel;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_flow::FlowState;
use windlass_record::bound::Bounds;
use windlass_record::command::QueueName;
use windlass_record::event::{DeadlineKind, Outcome};
use windlass_record::id::{JobKey, LimitId, PartitionId, Payload, QueueId, Token};

use self::document::{Document, DocumentName, Documents};
use self::fair::{Bay, Group, Lane, Queue, Side};
use self::image::Dirt;
use self::intern::Interner;
use self::job::{Job, Jobs, NONE, Slot, Text};
use self::keys::KeyIndex;
use self::limit::Limit;
use self::memory::{Requests, UniqueKeys};
use self::paged::Paged;
use self::schedule::{Schedule, Schedules};
use self::wheel::Wheel;
use crate::lifecycle::JobState;

pub(crate) use self::due::deadline_of;
pub(crate) use self::limit::Gate;
pub(crate) use self::pair::PairName;

/// The two limit keys of a bay.
type Keys = (Option<LimitId>, Option<LimitId>);

/// Everything a partition remembers.
#[derive(Debug)]
pub struct State {
    pub(crate) partition: PartitionId,
    /// The time of the newest record.
    pub(crate) last_ms: u64,
    /// The counter of the newest key.
    pub(crate) last_counter: u64,
    /// The newest stamp: orders turns, becoming ready, parking and falling idle.
    pub(crate) last_stamp: u64,
    pub(crate) jobs: Jobs,
    pub(crate) keys: KeyIndex,
    pub(crate) wheel: Wheel,
    pub(crate) queues: Vec<Queue>,
    pub(crate) queue_names: HashMap<(Arc<str>, Arc<str>), QueueId, FxBuildHasher>,
    pub(crate) groups: Paged<Group>,
    pub(crate) bays: Paged<Bay>,
    pub(crate) bay_index: HashMap<(u32, Keys), u32, FxBuildHasher>,
    pub(crate) lanes: Paged<Lane>,
    pub(crate) idle_groups: BTreeSet<(u64, u32)>,
    pub(crate) idle_groups_max: u32,
    pub(crate) limits: HashMap<LimitId, Limit, FxBuildHasher>,
    pub(crate) limit_names: HashMap<(Arc<str>, Arc<str>), LimitId, FxBuildHasher>,
    /// The same in order, for lists.
    pub(crate) limits_in_order: BTreeMap<(Arc<str>, Arc<str>), LimitId>,
    pub(crate) last_limit: u32,
    /// When rate gates with parked bays should be looked at.
    pub(crate) rate_wakes: BTreeSet<(u64, LimitId)>,
    /// Incident key to job key.
    pub(crate) incidents: HashMap<JobKey, JobKey, FxBuildHasher>,
    pub(crate) types: Interner,
    pub(crate) workers: Interner,
    pub(crate) unique_keys: UniqueKeys,
    pub(crate) requests: Requests,
    pub(crate) documents: Documents,
    pub(crate) flow: FlowState,
    pub(crate) schedules: Schedules,
    pub(crate) dirt: Dirt,
    pub(crate) effects: Effects,
    request_id_ms: u64,
    request_ids_max: u32,
    served_marks: Vec<bool>,
}

/// What the shell must do about what was applied. Derived from the state, so a replay makes the
/// same; the shell drops those of a replay but for the payloads.
#[derive(Debug, Default)]
pub struct Effects {
    /// Payloads that nothing refers to any more.
    pub freed: Vec<Payload>,
    /// Jobs that came to rest.
    pub ended: Vec<Ended>,
    /// Queues that may have something for those who wait.
    pub served: Vec<QueueId>,
    /// Jobs whose worker must learn that cancel was asked.
    pub cancels: Vec<JobKey>,
    /// Leases that ended with their job, and whose they were.
    pub lost: Vec<(Token, Text)>,
    /// Deadlines that asked for an alert.
    pub alerts: Vec<(JobKey, DeadlineKind)>,
}

/// A job that came to rest.
#[derive(Debug)]
pub struct Ended {
    /// As it was last.
    pub job: Job,
    /// Its queue.
    pub queue: QueueId,
    /// Its group.
    pub group: Text,
    /// Its type.
    pub job_type: Text,
    /// Its priority.
    pub priority: i32,
    /// How it ended.
    pub outcome: Outcome,
    /// The result; the shell owns it now.
    pub result: Payload,
    /// What went wrong, or why it was cancelled.
    pub message: Box<str>,
    /// When it ended.
    pub ended_ms: u64,
}

impl State {
    pub(crate) fn new(partition: PartitionId, bounds: &Bounds) -> State {
        State {
            partition,
            last_ms: 0,
            last_counter: 0,
            last_stamp: 0,
            jobs: Jobs::default(),
            keys: KeyIndex::new(partition),
            wheel: Wheel::new(),
            queues: Vec::new(),
            queue_names: HashMap::default(),
            groups: Paged::default(),
            bays: Paged::default(),
            bay_index: HashMap::default(),
            lanes: Paged::default(),
            idle_groups: BTreeSet::new(),
            idle_groups_max: bounds.idle_groups_max,
            limits: HashMap::default(),
            limit_names: HashMap::default(),
            limits_in_order: BTreeMap::new(),
            last_limit: 0,
            rate_wakes: BTreeSet::new(),
            incidents: HashMap::default(),
            types: Interner::default(),
            workers: Interner::default(),
            unique_keys: UniqueKeys::default(),
            requests: Requests::default(),
            documents: Documents::default(),
            flow: FlowState::default(),
            schedules: Schedules::default(),
            dirt: Dirt::default(),
            effects: Effects::default(),
            request_id_ms: bounds.request_id_ms,
            request_ids_max: bounds.request_ids_max,
            served_marks: Vec::new(),
        }
    }

    // ── reading ─────────────────────────────────────────────────────────────────────────────

    /// The time of the newest record (ms since the epoch).
    pub fn last_ms(&self) -> u64 {
        self.last_ms
    }

    /// The live job with this key.
    #[inline]
    pub fn find(&self, key: JobKey) -> Option<Slot> {
        self.keys.get(key)
    }

    /// The job in a slot.
    #[inline]
    pub fn job(&self, slot: Slot) -> &Job {
        self.jobs.get(slot)
    }

    /// All live jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// All queues, in order of their ids.
    pub fn queues(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        (0..).map(QueueId).zip(&self.queues)
    }

    /// How many queues there are.
    pub fn queue_count(&self) -> usize {
        self.queues.len()
    }

    /// The queue with this id.
    #[inline]
    pub fn queue(&self, id: QueueId) -> &Queue {
        self.queues
            .get(usize::try_from(id.0).expect("usize has at least 32 bits"))
            .expect("queue ids are only made by their creation")
    }

    /// The queue with this name.
    pub fn queue_named(&self, name: &QueueName) -> Option<QueueId> {
        self.queue_names.get(&(&*name.tenant, &*name.queue) as &dyn PairName).copied()
    }

    /// The job that holds a unique key of a queue at `now_ms`. It may have ended, and hold it for a while.
    pub fn holder(&self, queue: &QueueName, unique_key: &str, now_ms: u64) -> Option<JobKey> {
        self.unique_keys.holder(self.queue_named(queue)?, unique_key, now_ms)
    }

    /// The job that waits in this incident.
    pub fn incident_job(&self, incident: JobKey) -> Option<JobKey> {
        self.incidents.get(&incident).copied()
    }

    /// What is remembered about flows.
    pub fn flow(&self) -> &FlowState {
        &self.flow
    }

    /// All schedules.
    pub fn schedules(&self) -> &Schedules {
        &self.schedules
    }

    /// A schedule.
    pub fn schedule(&self, key: JobKey) -> Option<&Schedule> {
        self.schedules.by_key.get(&key)
    }

    /// Whether a run of a schedule, a job or a workflow, is not over.
    pub(crate) fn run_lives(&self, run: JobKey) -> bool {
        let workflow = self.flow.workflows().workflow(run);
        self.find(run).is_some()
            || self.flow.element(run).is_some()
            || workflow.is_some_and(|workflow| !workflow.status.is_at_rest())
    }

    /// The document with this name.
    pub fn document(&self, name: &DocumentName) -> Option<&Document> {
        self.documents.get(name)
    }

    /// Documents of a tenant and kind whose id comes after `after`, in order.
    pub fn documents_after<'a>(
        &'a self,
        tenant: &'a str,
        kind: &'a str,
        after: &str,
    ) -> impl Iterator<Item = (&'a DocumentName, &'a Document)> {
        self.documents.list(tenant, kind, after)
    }

    /// A job's queue.
    pub fn queue_of(&self, slot: Slot) -> QueueId {
        self.lanes.get(self.job(slot).lane).queue_id
    }

    /// Whether a job belongs to this tenant.
    pub fn is_of(&self, slot: Slot, tenant: &str) -> bool {
        *self.queue(self.queue_of(slot)).tenant == *tenant
    }

    /// A job's group, by name.
    pub fn group_name(&self, slot: Slot) -> &Text {
        &self.groups.get(self.group_of(slot)).name
    }

    /// A job's type, by name.
    pub fn type_name(&self, slot: Slot) -> &Text {
        match self.job(slot).job_type {
            NONE => &self.queue(self.queue_of(slot)).name,
            number => self.types.text(number),
        }
    }

    /// A job's priority.
    pub fn priority(&self, slot: Slot) -> i32 {
        self.lanes.get(self.job(slot).lane).priority
    }

    /// Who holds a job.
    pub fn worker_name(&self, slot: Slot) -> Option<&Text> {
        match self.job(slot).worker {
            NONE => None,
            number => Some(self.workers.text(number)),
        }
    }

    /// The names of a job's concurrency key and rate key.
    pub fn limit_names(&self, slot: Slot) -> (Option<&str>, Option<&str>) {
        let bay = self.bays.get(self.bay_of(slot));
        let name = |id: Option<LimitId>| id.map(|id| &*self.limit(id).name);
        (name(bay.concurrency), name(bay.rate))
    }

    /// Jobs of a queue that could be handed out now to one who asks with tokens, or without.
    pub fn eligible_jobs(&self, queue: QueueId, with_token: bool) -> u32 {
        let queue = self.queue(queue);
        let fenced = if with_token { queue.fenced.eligible_jobs } else { 0 };
        if queue.paused { 0 } else { queue.open.eligible_jobs + fenced }
    }

    /// Whether only those who ask with tokens get this job.
    pub fn wants_token(&self, slot: Slot) -> bool {
        self.job(slot).flags.side() == Side::Fenced
    }

    pub(crate) fn group_of(&self, slot: Slot) -> u32 {
        self.lanes.get(self.job(slot).lane).group
    }

    pub(crate) fn bay_of(&self, slot: Slot) -> u32 {
        self.lanes.get(self.job(slot).lane).bay
    }

    pub(crate) fn limit(&self, id: LimitId) -> &Limit {
        self.limits.get(&id).expect("a limit key lives while a bay uses it")
    }

    // ── writing ─────────────────────────────────────────────────────────────────────────────

    pub(crate) fn queue_mut(&mut self, id: QueueId) -> &mut Queue {
        self.queues
            .get_mut(usize::try_from(id.0).expect("usize has at least 32 bits"))
            .expect("queue ids are only made by their creation")
    }

    pub(crate) fn limit_mut(&mut self, id: LimitId) -> &mut Limit {
        self.limits.get_mut(&id).expect("a limit key lives while a bay uses it")
    }

    pub(crate) fn next_stamp(&mut self) -> u64 {
        self.last_stamp += 1;
        self.last_stamp
    }

    /// A request id in its scope, the tenant. Names hold no zero bytes.
    pub(crate) fn scoped_request(&self, queue: QueueId, request_id: &str) -> Box<str> {
        format!("{}\0{request_id}", self.queue(queue).tenant).into()
    }

    /// Since when request ids are remembered, and how many.
    pub(crate) fn request_bounds(&self, now_ms: u64) -> (u64, u32) {
        (now_ms.saturating_sub(self.request_id_ms), self.request_ids_max)
    }

    /// Changes a job's state and the counts of its queue.
    pub(crate) fn set_state(&mut self, slot: Slot, state: JobState) {
        let queue = self.queue_of(slot);
        let old = std::mem::replace(&mut self.jobs.get_mut(slot).state, state);
        let counts = &mut self.queue_mut(queue).counts;
        *counts.of(old) -= 1;
        *counts.of(state) += 1;
    }

    /// Tells the shell, once, that a queue may have something for those who wait.
    pub(crate) fn mark_served(&mut self, queue: QueueId) {
        let index = usize::try_from(queue.0).expect("usize has at least 32 bits");
        if self.served_marks.len() <= index {
            self.served_marks.resize(index + 1, false);
        }
        if let Some(mark) = self.served_marks.get_mut(index)
            && !*mark
        {
            *mark = true;
            self.effects.served.push(queue);
        }
    }

    /// Hands the queues that were marked to the shell.
    pub(crate) fn take_served(&mut self, into: &mut Vec<QueueId>) {
        for queue in &self.effects.served {
            let index = usize::try_from(queue.0).expect("usize has at least 32 bits");
            if let Some(mark) = self.served_marks.get_mut(index) {
                *mark = false;
            }
        }
        into.append(&mut self.effects.served);
    }

    /// Remembers a new limit key.
    pub(crate) fn keep_limit(&mut self, id: LimitId, limit: Limit) {
        let names = (limit.tenant.clone(), limit.name.clone());
        self.limit_names.insert(names.clone(), id);
        self.limits_in_order.insert(names, id);
        self.limits.insert(id, limit);
    }

    /// Registers when a rate gate with parked bays should be looked at.
    pub(crate) fn schedule_rate(&mut self, id: LimitId) {
        let limit = self.limit(id);
        let unused = limit.implied && limit.bays == 0;
        let wanted_ms = if limit.rate.none_parked() && !unused { None } else { limit.frees_ms() };
        let registered_ms = limit.rate_wake_ms;
        if wanted_ms == registered_ms {
            return;
        }
        self.limit_mut(id).rate_wake_ms = wanted_ms;
        if let Some(at_ms) = registered_ms {
            self.rate_wakes.remove(&(at_ms, id));
        }
        if let Some(at_ms) = wanted_ms {
            self.rate_wakes.insert((at_ms, id));
        }
    }

    /// Forgets a key that nobody configured and nothing uses.
    pub(crate) fn forget_limit_if_unused(&mut self, id: LimitId) {
        let limit = self.limit(id);
        if !limit.implied || limit.bays > 0 {
            return;
        }
        if !limit.handed_ms.is_empty() {
            // Its window must end first: the same key may come back within it.
            self.schedule_rate(id);
            return;
        }
        self.bury_limit(id);
        if let Some(at_ms) = self.limit(id).rate_wake_ms {
            self.rate_wakes.remove(&(at_ms, id));
        }
        if let Some(limit) = self.limits.remove(&id) {
            let names = (limit.tenant, limit.name);
            self.limit_names.remove(&names);
            self.limits_in_order.remove(&names);
        }
    }
}

pub(crate) fn new_limit(tenant: &str, name: &str) -> Limit {
    Limit::new(tenant.into(), name.into())
}
