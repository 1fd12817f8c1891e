//! A live job as the core holds it, and the paged slab of all of them.
//!
//! A job that waits costs one [`Job`] (a little over a hundred bytes) and four bytes each in the
//! key index and in its lane. What few jobs have stands in a boxed [`Extra`].

use std::sync::Arc;

use windlass_record::command::JobOptions;
use windlass_record::event::{DeadlineKind, FailureCounts, IncidentKind};
use windlass_record::id::{JobKey, Payload};
use windlass_record::policy::{CancelPolicy, Deadlines, Dialect, Exhausted, RetryPolicy};

use super::fair::Side;
use super::paged::Paged;
use crate::lifecycle::JobState;

/// Where a job stands in the slab. Reused after the job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// No slot, no lane, no bucket.
pub(crate) const NONE: u32 = u32::MAX;

/// A live job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its key.
    pub key: JobKey,
    /// Its place among its equals: smaller is handed out first.
    pub order: u64,
    /// When it was created.
    pub created_ms: u64,
    /// Scheduled and Backoff: when it is due. Ready: since when. Active: when the lease ends.
    pub due_ms: u64,
    /// When the wheel looks at it next; `u64::MAX` is never.
    pub(crate) wake_ms: u64,
    /// Its payload.
    pub payload: Payload,
    /// Hash of its newest image in a checkpoint; 0 is "in none".
    pub(crate) image_hash: u64,
    /// What few jobs have.
    pub(crate) extra: Option<Box<Extra>>,
    /// Retries left.
    pub retries: i32,
    /// The attempt it is in, or will be in, from 1.
    pub attempt: u32,
    /// How often it was handed out. Never resets.
    pub activation: u32,
    /// Its lane.
    pub(crate) lane: u32,
    /// Its type, see `State::type_name`; `NONE` is the queue's name.
    pub(crate) job_type: u32,
    /// Who holds it, see `State::worker_name`.
    pub(crate) worker: u32,
    pub(crate) timer_prev: u32,
    pub(crate) timer_next: u32,
    pub(crate) timer_bucket: u16,
    /// Where it is in its life.
    pub state: JobState,
    pub(crate) flags: Flags,
    /// The dirty list it is on, see `state::image`; 0 is none.
    pub(crate) dirty: u32,
}

/// There is one for every job that waits.
const _: () = assert!(size_of::<Job>() == 104);

/// Small facts of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u8);

impl Flags {
    /// Was once leased with a token: results without one are refused.
    pub(crate) const TOKENED: u8 = 1;
    /// Its group serves it as a due retry.
    pub(crate) const RETRY: u8 = 2;
    /// Cancel was asked.
    pub(crate) const CANCEL_ASKED: u8 = 4;
    /// The waiting deadline was reported for this stay in Ready.
    pub(crate) const ALERTED_WAITING: u8 = 8;
    /// The attempt deadline was reported for this attempt.
    pub(crate) const ALERTED_ATTEMPT: u8 = 16;
    /// The total deadline was reported.
    pub(crate) const ALERTED_TOTAL: u8 = 32;
    /// The lease's end was reported for this activation.
    pub(crate) const ALERTED_LEASE: u8 = 64;
    /// This lease is the first with a token: should the job come back unsent, none was given.
    pub(crate) const FIRST_TOKEN: u8 = 128;

    /// The side of its group that the job belongs to. The first lease with a token is still one of
    /// the open side.
    pub(crate) fn side(self) -> Side {
        let fenced = self.has(Flags::TOKENED) && !self.has(Flags::FIRST_TOKEN);
        if fenced { Side::Fenced } else { Side::Open }
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    pub(crate) fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.0 |= flag;
        } else {
            self.0 &= !flag;
        }
    }
}

/// What few jobs have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// As created.
    pub options: JobOptions,
    /// Failures so far.
    pub failures: FailureCounts,
    /// The last error, or the reason of a cancel.
    pub message: Box<str>,
    /// The incident it waits in.
    pub incident: Option<Incident>,
    /// When the attempt must be done; 0 is never or not started.
    pub attempt_due_ms: u64,
    /// When the attempt was started first; 0 is not yet.
    pub attempt_started_ms: u64,
    /// When it was handed out last, so that a rate token can be given back; 0 is never.
    pub activated_ms: u64,
    /// 0..=100, of the running attempt.
    pub percent: u8,
    /// What to show beside it.
    pub note: Box<str>,
    /// Log lines of the attempt.
    pub log: Vec<Box<str>>,
    /// Log lines of the attempt that were dropped.
    pub log_dropped: u32,
    /// Why cancel was asked.
    pub cancel_reason: Box<str>,
}

/// A job that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The incident's own key.
    pub key: JobKey,
    /// Of which kind.
    pub kind: IncidentKind,
    /// The error code, when the worker threw one.
    pub code: Box<str>,
    /// Since when.
    pub since_ms: u64,
}

impl Job {
    /// What few jobs have.
    pub fn extra(&self) -> Option<&Extra> {
        self.extra.as_deref()
    }

    /// What few jobs have, of a job that has ended.
    pub fn into_extra(self) -> Option<Box<Extra>> {
        self.extra
    }

    pub(crate) fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// What was given at creation beyond the usual.
    pub fn options(&self) -> Option<&JobOptions> {
        self.extra.as_deref().map(|extra| &extra.options)
    }

    /// Whether its results must carry a token.
    pub fn tokened(&self) -> bool {
        self.flags.has(Flags::TOKENED)
    }

    /// Whether its worker has been asked to stop.
    pub fn cancel_asked(&self) -> bool {
        self.flags.has(Flags::CANCEL_ASKED)
    }

    /// Deadlines with the outcome alert that have passed. That of the lease is forgotten with it, that of
    /// an attempt with the attempt, that of waiting with the stay.
    pub fn alerts(&self) -> impl Iterator<Item = DeadlineKind> + use<> {
        let flags = self.flags;
        [
            (DeadlineKind::Lease, Flags::ALERTED_LEASE),
            (DeadlineKind::Waiting, Flags::ALERTED_WAITING),
            (DeadlineKind::Attempt, Flags::ALERTED_ATTEMPT),
            (DeadlineKind::Total, Flags::ALERTED_TOTAL),
        ]
        .into_iter()
        .filter(move |(_, flag)| flags.has(*flag))
        .map(|(kind, _)| kind)
    }

    /// What follows a failure.
    pub fn retry_policy(&self) -> RetryPolicy {
        self.options().map_or(RetryPolicy::WorkerGiven, |options| options.retry)
    }

    /// What happens when no retry is left.
    pub fn exhausted(&self) -> Exhausted {
        self.options().map_or(Exhausted::Incident, |options| options.exhausted)
    }

    /// Its four deadlines.
    pub fn deadlines(&self) -> Deadlines {
        self.options().map_or(Deadlines::default(), |options| options.deadlines)
    }

    /// How a cancel treats it while it is in work.
    pub fn cancel_policy(&self) -> CancelPolicy {
        self.options().map_or(CancelPolicy::AtOnce, |options| options.cancel)
    }

    /// Whose rules it lives by.
    pub fn dialect(&self) -> Dialect {
        self.options().map_or(Dialect::Native, |options| options.dialect)
    }

    /// Failures so far.
    pub fn failures(&self) -> FailureCounts {
        self.extra().map_or(FailureCounts::default(), |extra| extra.failures)
    }
}

/// All live jobs.
#[derive(Debug, Default)]
pub struct Jobs {
    slab: Paged<Job>,
}

impl Jobs {
    /// How many there are.
    pub fn live(&self) -> u32 {
        self.slab.live()
    }

    pub(crate) fn insert(&mut self, job: Job) -> Slot {
        Slot(self.slab.insert(job))
    }

    /// Takes the job out. The slot may be reused by the next insert.
    pub(crate) fn remove(&mut self, slot: Slot) -> Job {
        let job = self.slab.remove(slot.0);
        debug_assert!(job.state != JobState::Vacant, "a job is removed once");
        job
    }

    /// The job in a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Job {
        self.slab.get(slot.0)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Job {
        self.slab.get_mut(slot.0)
    }

    /// Live jobs from a slot on, in slot order, which means nothing.
    pub fn iter_from(&self, slot: u64) -> impl Iterator<Item = (Slot, &Job)> {
        self.slab
            .iter_from(slot)
            .filter(|(_, job)| job.state != JobState::Vacant)
            .map(|(number, job)| (Slot(number), job))
    }

    /// All live jobs in slot order, which means nothing.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &Job)> {
        self.slab
            .iter()
            .filter(|(_, job)| job.state != JobState::Vacant)
            .map(|(number, job)| (Slot(number), job))
    }
}

impl Default for Job {
    fn default() -> Job {
        Job::vacant()
    }
}

impl Job {
    fn vacant() -> Job {
        Job {
            key: JobKey::from_raw(0),
            order: 0,
            created_ms: 0,
            due_ms: 0,
            wake_ms: u64::MAX,
            payload: Payload::EMPTY,
            image_hash: 0,
            extra: None,
            retries: 0,
            attempt: 0,
            activation: 0,
            lane: NONE,
            job_type: NONE,
            worker: NONE,
            timer_prev: NONE,
            timer_next: NONE,
            timer_bucket: u16::MAX,
            state: JobState::Vacant,
            flags: Flags::default(),
            dirty: 0,
        }
    }

    /// A job that was just created and stands nowhere yet.
    pub(crate) fn new(key: JobKey, now_ms: u64, payload: Payload) -> Job {
        Job {
            key,
            created_ms: now_ms,
            payload,
            attempt: 1,
            state: JobState::Scheduled,
            ..Job::vacant()
        }
    }
}

/// Text that is shared with what the shell hands out.
pub type Text = Arc<str>;
