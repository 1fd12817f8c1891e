//! Where is my job, and why is it not running? The two questions, answered for any live job.
//!
//! [`State::why`] reads and changes nothing. A job that could be handed out has a **position**, see
//! `position`; every other job has a reason and its rank in its lane instead.

mod position;

use windlass_record::event::IncidentKind;
use windlass_record::id::{JobKey, LimitId};
use windlass_record::policy::JobOrder;

use crate::lifecycle::JobState;
use crate::state::fair::BayPlace;
use crate::state::job::Slot;
use crate::state::{Gate, State};

/// Whether anybody asks for the jobs of a queue: the shell knows its waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pollers {
    /// A request or a stream waits, or one asked not long ago.
    Waiting,
    /// Nobody does.
    Absent,
}

/// The answer about one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why<'a> {
    /// Why it is not running, or who runs it.
    pub reason: Reason<'a>,
    /// Where it stands.
    pub place: Place,
    /// Whether hand-out of its queue is stopped, whatever else holds it.
    pub queue_paused: bool,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// So many jobs would be handed out before it if nothing arrived, failed or finished, no limit
    /// became full, its queue were not paused, and one request asked this queue alone. What is
    /// parked stays parked; aging is left out.
    Position(u64),
    /// So many ready jobs stand, or would stand, before it in its lane: those of its queue with its
    /// group, priority and keys.
    LaneRank(u32),
}

/// Why a job is not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason<'a> {
    /// It can be handed out; others come first.
    Turn,
    /// It can be handed out, and nobody asks.
    NoWorker,
    /// Hand-out of its queue is stopped.
    QueuePaused,
    /// As many jobs of its concurrency key are active as may be, or the free places belong to bays
    /// that came first.
    ConcurrencyFull {
        /// The key.
        key: &'a str,
        /// How many may be active; `None` when that has just been lifted.
        max: Option<u32>,
        /// How many are.
        active: u32,
        /// Bays of this queue that are woken before its own.
        ahead: u64,
    },
    /// As many jobs of its rate key were handed out in the window as may be.
    RateFull {
        /// The key.
        key: &'a str,
        /// How many hand-outs a window may have.
        max: u32,
        /// The window.
        window_ms: u64,
        /// When the next hand-out is possible.
        frees_ms: u64,
        /// Bays of this queue that are woken before its own.
        ahead: u64,
    },
    /// Not before a time.
    Scheduled {
        /// The time.
        until_ms: u64,
    },
    /// It failed and waits for its next attempt.
    Backoff {
        /// Until when.
        until_ms: u64,
        /// The number of the next attempt.
        attempt: u32,
        /// What went wrong last.
        message: &'a str,
    },
    /// A worker has it.
    Active {
        /// Who.
        worker: Option<&'a str>,
        /// When the lease ends.
        until_ms: u64,
        /// The number of the hand-out.
        activation: u32,
        /// Whether the worker has been asked to stop.
        cancel_asked: bool,
    },
    /// It waits for a person.
    Incident {
        /// The incident's own key.
        key: JobKey,
        /// Of which kind.
        kind: IncidentKind,
        /// Since when.
        since_ms: u64,
        /// What went wrong.
        message: &'a str,
    },
}

impl State {
    /// Where a live job is and why it is not running.
    pub fn why(&self, slot: Slot, now_ms: u64, pollers: Pollers) -> Why<'_> {
        let queue_paused = self.queue(self.queue_of(slot)).paused;
        let (reason, place) = match self.job(slot).state {
            JobState::Ready => self.why_ready(slot, now_ms, pollers, queue_paused),
            JobState::Scheduled | JobState::Active | JobState::Backoff | JobState::Incident => {
                (self.why_not_ready(slot), self.rank_if_ready(slot))
            }
            JobState::Completed | JobState::Failed | JobState::Cancelled | JobState::Vacant => {
                unreachable!("a live job is not at rest")
            }
        };
        Why { reason, place, queue_paused }
    }

    fn why_ready(
        &self,
        slot: Slot,
        now_ms: u64,
        pollers: Pollers,
        queue_paused: bool,
    ) -> (Reason<'_>, Place) {
        let bay = self.bay_of(slot);
        let gate = match self.bays.get(bay).place {
            BayPlace::Empty => unreachable!("a bay with a ready job is not empty"),
            BayPlace::Awake => {
                let reason = match pollers {
                    _ if queue_paused => Reason::QueuePaused,
                    Pollers::Waiting => Reason::Turn,
                    Pollers::Absent => Reason::NoWorker,
                };
                return (reason, Place::Position(self.position(slot)));
            }
            BayPlace::Parked(gate) => gate,
        };
        let id = self.limit_at(bay, gate).expect("a bay is parked on a key it has");
        let lane = &self.lanes.get(self.job(slot).lane).queue;
        let rank = lane.rank(&self.jobs, self.job(slot).order);
        (self.why_parked(bay, gate, id, now_ms), Place::LaneRank(rank))
    }

    fn why_parked(&self, bay: u32, gate: Gate, id: LimitId, now_ms: u64) -> Reason<'_> {
        let limit = self.limit(id);
        let ahead = limit.gate(gate).ahead(self.line_of(bay), (self.bays.get(bay).stamp, bay));
        let key = &*limit.name;
        let concurrency = Reason::ConcurrencyFull {
            key,
            max: limit.settings.active_max,
            active: limit.active,
            ahead,
        };
        match (gate, limit.settings.rate) {
            // A rate that was lifted wakes its bays at once.
            (Gate::Concurrency, _) | (Gate::Rate, None) => concurrency,
            (Gate::Rate, Some(rate)) => Reason::RateFull {
                key,
                max: rate.max,
                window_ms: rate.window_ms,
                frees_ms: limit.room_ms().unwrap_or(now_ms).max(now_ms),
                ahead,
            },
        }
    }

    fn why_not_ready(&self, slot: Slot) -> Reason<'_> {
        let job = self.job(slot);
        let extra = job.extra();
        let message = extra.map_or("", |extra| &*extra.message);
        match job.state {
            JobState::Scheduled => Reason::Scheduled { until_ms: job.due_ms },
            JobState::Backoff => {
                Reason::Backoff { until_ms: job.due_ms, attempt: job.attempt, message }
            }
            JobState::Active => Reason::Active {
                worker: self.worker_name(slot).map(|name| &**name),
                until_ms: job.due_ms,
                activation: job.activation,
                cancel_asked: job.cancel_asked(),
            },
            JobState::Incident => {
                let incident = extra.and_then(|extra| extra.incident.as_ref());
                let incident = incident.expect("a job in an incident knows it");
                let (key, kind, since_ms) = (incident.key, incident.kind, incident.since_ms);
                Reason::Incident { key, kind, since_ms, message }
            }
            JobState::Ready
            | JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Vacant => unreachable!("ready jobs are asked about elsewhere"),
        }
    }

    /// The rank that a job would have in its lane if it became ready now.
    fn rank_if_ready(&self, slot: Slot) -> Place {
        let job = self.job(slot);
        let order = match self.queue(self.queue_of(slot)).settings.order {
            JobOrder::Creation => job.key.counter(),
            JobOrder::Ready => u64::MAX,
        };
        Place::LaneRank(self.lanes.get(job.lane).queue.rank(&self.jobs, order))
    }
}
