//! Schedules: what is run again and again. One that is due stands in an index by time; one whose run
//! is over and that has another waiting, in a set of those that can go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_record::id::JobKey;
use windlass_record::schedule::{FireCause, ScheduleName, ScheduleSettings, SkipReason};

/// A schedule.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its key.
    pub key: JobKey,
    /// Its name.
    pub name: ScheduleName,
    /// From 1; grows by one with each put.
    pub version: u64,
    /// What it is.
    pub settings: ScheduleSettings,
    /// Why it is paused, if it is.
    pub paused: Option<Box<str>>,
    /// When it was made.
    pub created_ms: u64,
    /// When it was put, paused or resumed last.
    pub updated_ms: u64,
    /// When it fires next.
    pub next_due_ms: Option<u64>,
    /// Runs that were caught up since it was last on time.
    pub caught_up: u32,
    /// The newest run, while it is not over.
    pub live: Option<JobKey>,
    /// The times of runs that wait for it, oldest first.
    pub queued: VecDeque<u64>,
    /// What became of its last times, oldest first.
    pub runs: VecDeque<Run>,
    /// Runs that were started, in all.
    pub started: u64,
    /// Times that were skipped, in all.
    pub skipped: u64,
    /// Times at which nothing could be started, in all.
    pub failed: u64,
    pub(crate) image_hash: u64,
}

/// What became of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The time; of several that were skipped one after the other, the first.
    pub scheduled_for_ms: u64,
    /// When something was done about it, or about the last of them.
    pub at_ms: u64,
    /// Why then.
    pub cause: FireCause,
    /// What was done.
    pub outcome: RunOutcome,
}

/// What was done about a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// A run was started: a job, or a workflow.
    Started(JobKey),
    /// So many times in a row were skipped.
    Skipped(SkipReason, u32),
    /// Nothing could be started.
    Failed(Box<str>),
}

/// All schedules.
#[derive(Debug, Default)]
pub struct Schedules {
    pub(crate) by_key: BTreeMap<JobKey, Schedule>,
    by_name: BTreeMap<ScheduleName, JobKey>,
    pub(crate) due: BTreeSet<(u64, JobKey)>,
    /// Those that can start a run that waited.
    pub(crate) ready: BTreeSet<JobKey>,
    /// Which schedule a run belongs to.
    pub(crate) by_run: HashMap<JobKey, JobKey, FxBuildHasher>,
    pub(crate) changed: BTreeSet<JobKey>,
    pub(crate) dead: Vec<(JobKey, u64)>,
}

impl Schedules {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The schedule with this name.
    pub fn named(&self, name: &ScheduleName) -> Option<&Schedule> {
        self.by_key.get(self.by_name.get(name)?)
    }

    /// Schedules of a tenant whose name begins so and comes after `after`, in order of their names.
    pub fn list<'a>(
        &'a self,
        tenant: &'a str,
        prefix: &'a str,
        after: &str,
    ) -> impl Iterator<Item = &'a Schedule> {
        let name = |name: &str| ScheduleName { tenant: tenant.into(), name: name.into() };
        let start = match after < prefix || after.is_empty() {
            true => Bound::Included(name(prefix)),
            false => Bound::Excluded(name(after)),
        };
        self.by_name
            .range((start, Bound::Unbounded))
            .take_while(move |(name, _)| &*name.tenant == tenant && name.name.starts_with(prefix))
            .filter_map(|(_, key)| self.by_key.get(key))
    }

    /// When one of them has something to do.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        self.due.first().map(|(at_ms, _)| *at_ms)
    }

    pub(crate) fn insert(&mut self, schedule: Schedule) {
        let key = schedule.key;
        self.by_name.insert(schedule.name.clone(), key);
        self.by_key.insert(key, schedule);
        self.enter(key);
    }

    pub(crate) fn remove(&mut self, key: JobKey) {
        self.leave(key);
        self.changed.remove(&key);
        let Some(schedule) = self.by_key.remove(&key) else { return };
        self.by_name.remove(&schedule.name);
        if schedule.image_hash != 0 {
            self.dead.push((key, schedule.image_hash));
        }
    }

    /// Changes a schedule, its places in the indexes included.
    pub(crate) fn change(&mut self, key: JobKey, change: impl FnOnce(&mut Schedule)) {
        self.leave(key);
        change(self.by_key.get_mut(&key).expect("events are only about schedules that exist"));
        self.enter(key);
        self.changed.insert(key);
    }

    /// Whether a schedule can start a run that waited.
    pub(crate) fn is_ready(schedule: &Schedule) -> bool {
        schedule.paused.is_none() && schedule.live.is_none() && !schedule.queued.is_empty()
    }

    fn leave(&mut self, key: JobKey) {
        let Some(schedule) = self.by_key.get(&key) else { return };
        if let Some(at_ms) = schedule.next_due_ms {
            self.due.remove(&(at_ms, key));
        }
        if let Some(run) = schedule.live {
            self.by_run.remove(&run);
        }
        self.ready.remove(&key);
    }

    fn enter(&mut self, key: JobKey) {
        let Some(schedule) = self.by_key.get(&key) else { return };
        if let Some(at_ms) = schedule.next_due_ms {
            self.due.insert((at_ms, key));
        }
        if let Some(run) = schedule.live {
            self.by_run.insert(run, key);
        }
        if Schedules::is_ready(schedule) {
            self.ready.insert(key);
        }
    }

    /// How many names and runs are known, for the invariants.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.by_name.len(), self.by_run.len())
    }
}
