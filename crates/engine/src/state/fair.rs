//! Whose turn it is: queues, the groups in them, and the lanes of a group.
//!
//! ```text
//! Queue ── list of eligible groups, in order of their turns ──> Group
//! Group ── bays (one per pair of limit keys) ──> Bay ── lanes (retry or not, priority) ──> Lane
//! ```
//!
//! A group is eligible while it has a ready job in a bay that is not parked. It joins its queue's
//! list at the tail when it becomes eligible, is served from the head, and rejoins at the tail.
//! Joining takes a **turn**, a stamp that grows over the whole partition, so a request for several
//! queues serves the one whose first group joined earliest. This is the durable global cursor: no
//! mix of subscriptions and no number of workers can starve a group.
//!
//! What depends on who asks is a list of its own and never a filter. A job that was once leased with
//! a token is only for those who ask with one, so each group has two **sides**, each of them a
//! [`Group`] in its own list with its own bays: the open one for everybody, the fenced one for those
//! with tokens. Who asks with tokens is served from whichever list's first turn is earlier, by the
//! rule of the group over both sides; a hand-out ends the turn of both. Who asks without does not
//! meet the fenced ones, whatever there are of them.
//!
//! Everything here is derived by `apply` from events and is the same after a replay. Reading order:
//! `ready` is how jobs come and go, `list` whose turn it is, `choice` which job of the group,
//! `gates` where bays wait for their keys, `belong` what is made and forgotten with the jobs.

mod belong;
mod choice;
mod gates;
mod list;
mod ranks;
mod ready;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_record::id::{LimitId, QueueId};
use windlass_record::policy::QueueSettings;

use self::ranks::Ranks;
use super::job::{NONE, Slot};
use super::lane::LaneQueue;
use super::limit::Gate;
use crate::lifecycle::JobState;

/// A queue: (tenant, name).
#[derive(Debug)]
pub struct Queue {
    /// The wall of security.
    pub tenant: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its settings.
    pub settings: QueueSettings,
    /// Whether hand-out is stopped.
    pub paused: bool,
    /// Live jobs by state.
    pub counts: Counts,
    /// Groups for everybody who asks.
    pub(crate) open: GroupList,
    /// Groups for those who ask with tokens.
    pub(crate) fenced: GroupList,
    pub(crate) image_hash: u64,
    pub(crate) dirty: bool,
}

/// The groups of one side of a queue.
#[derive(Debug)]
pub(crate) struct GroupList {
    pub(crate) groups: HashMap<Arc<str>, u32, FxBuildHasher>,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    /// Jobs in bays that are not parked.
    pub(crate) eligible_jobs: u32,
}

impl Default for GroupList {
    fn default() -> GroupList {
        GroupList { groups: HashMap::default(), head: NONE, tail: NONE, eligible_jobs: 0 }
    }
}

/// Whom a group's jobs are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    /// Whoever asks.
    Open,
    /// Who asks with tokens.
    Fenced,
}

impl Side {
    pub(crate) const ALL: [Side; 2] = [Side::Open, Side::Fenced];

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Open => Side::Fenced,
            Side::Fenced => Side::Open,
        }
    }
}

impl Queue {
    /// Groups with live jobs, or remembered.
    pub fn group_count(&self) -> u32 {
        u32::try_from(self.open.groups.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn side(&self, side: Side) -> &GroupList {
        match side {
            Side::Open => &self.open,
            Side::Fenced => &self.fenced,
        }
    }

    pub(crate) fn side_mut(&mut self, side: Side) -> &mut GroupList {
        match side {
            Side::Open => &mut self.open,
            Side::Fenced => &mut self.fenced,
        }
    }

    pub(crate) fn new(tenant: Arc<str>, name: Arc<str>, settings: QueueSettings) -> Queue {
        Queue {
            tenant,
            name,
            settings,
            paused: false,
            counts: Counts::default(),
            open: GroupList::default(),
            fenced: GroupList::default(),
            image_hash: 0,
            dirty: false,
        }
    }
}

/// Live jobs of a queue by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Not before a time.
    pub scheduled: u32,
    /// Ready, parked ones too.
    pub ready: u32,
    /// Leased.
    pub active: u32,
    /// Waiting for their next attempt.
    pub backoff: u32,
    /// Waiting for a person.
    pub incident: u32,
}

impl Counts {
    pub(crate) fn of(&mut self, state: JobState) -> &mut u32 {
        match state {
            JobState::Scheduled => &mut self.scheduled,
            JobState::Ready => &mut self.ready,
            JobState::Active => &mut self.active,
            JobState::Backoff => &mut self.backoff,
            JobState::Incident => &mut self.incident,
            JobState::Vacant | JobState::Completed | JobState::Failed | JobState::Cancelled => {
                unreachable!("jobs at rest are not counted")
            }
        }
    }

    /// All of them.
    pub fn live(&self) -> u32 {
        self.scheduled + self.ready + self.active + self.backoff + self.incident
    }
}

/// The unit of fairness inside a queue; one of its two sides.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) queue: QueueId,
    pub(crate) side: Side,
    /// The other side, if there is one.
    pub(crate) twin: u32,
    pub(crate) name: Arc<str>,
    /// Live jobs in any state.
    pub(crate) live: u32,
    /// Its place in the queue's list; 0 is "not in it".
    pub(crate) turn: u64,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// The counter of the counting scheme; both sides have the same.
    pub(crate) scheme_count: u32,
    /// Lanes that can be served.
    pub(crate) ready: ReadyLanes,
    /// Jobs in them.
    pub(crate) ready_jobs: u32,
    /// The bay without limit keys and the lane in it that was used last, kept while the group is.
    pub(crate) home_bay: u32,
    pub(crate) home_lane: u32,
    pub(crate) bays: BTreeSet<u32>,
    /// Since when it has no job; 0 is "it has".
    pub(crate) idle_stamp: u64,
    pub(crate) image_hash: u64,
    pub(crate) dirty: bool,
}

impl Default for Group {
    fn default() -> Group {
        Group {
            queue: QueueId(NONE),
            side: Side::Open,
            twin: NONE,
            name: "".into(),
            live: 0,
            turn: 0,
            prev: NONE,
            next: NONE,
            scheme_count: 0,
            ready: ReadyLanes::None,
            ready_jobs: 0,
            home_bay: NONE,
            home_lane: NONE,
            bays: BTreeSet::new(),
            idle_stamp: 0,
            image_hash: 0,
            dirty: false,
        }
    }
}

/// The lanes of one group that share their limit keys: parked and woken together.
#[derive(Debug)]
pub(crate) struct Bay {
    pub(crate) group: u32,
    pub(crate) concurrency: Option<LimitId>,
    pub(crate) rate: Option<LimitId>,
    pub(crate) lanes: BTreeMap<(Class, i32), u32>,
    /// Ready jobs.
    pub(crate) ready_jobs: u32,
    pub(crate) place: BayPlace,
    /// Its place in line at its gates: when it got its first ready job or was served last. Bays
    /// without keys stand in no line and have none.
    pub(crate) stamp: u64,
    pub(crate) image_hash: u64,
    pub(crate) dirty: bool,
}

impl Default for Bay {
    fn default() -> Bay {
        Bay {
            group: NONE,
            concurrency: None,
            rate: None,
            lanes: BTreeMap::new(),
            ready_jobs: 0,
            place: BayPlace::Empty,
            stamp: 0,
            image_hash: 0,
            dirty: false,
        }
    }
}

/// Where a bay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BayPlace {
    /// It has no ready job.
    Empty,
    /// Its group may be served from it.
    Awake,
    /// It waits at a gate of one of its keys.
    Parked(Gate),
}

/// Jobs of one queue with the same group, keys, class and priority, in order.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) bay: u32,
    /// Its bay's group and that one's queue, which are asked for all the time.
    pub(crate) group: u32,
    pub(crate) queue_id: QueueId,
    pub(crate) class: Class,
    pub(crate) priority: i32,
    /// Live jobs that belong here, ready or not.
    pub(crate) live: u32,
    pub(crate) queue: LaneQueue,
}

impl Default for Lane {
    fn default() -> Lane {
        Lane {
            bay: NONE,
            group: NONE,
            queue_id: QueueId(NONE),
            class: Class::Usual,
            priority: 0,
            live: 0,
            queue: LaneQueue::default(),
        }
    }
}

/// Whether a lane is served before all others of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// Retries that are due, in queues that serve them first.
    Retry,
    /// Everything else.
    Usual,
}

/// The lanes of a group that can be served. One lane is by far the most common case.
#[derive(Debug, Default)]
pub(crate) enum ReadyLanes {
    #[default]
    None,
    One(u32),
    /// Any number: kept until the group is idle, so that lanes may come and go without a trace.
    Many(Ranks),
}

impl ReadyLanes {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            ReadyLanes::None => true,
            ReadyLanes::One(_) => false,
            ReadyLanes::Many(ranks) => ranks.is_empty(),
        }
    }
}

/// The order of lanes in a group: class, highest priority, whose first job is first, and the lane
/// to tell equals apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) class: Class,
    pub(crate) priority: Reverse<i32>,
    pub(crate) head_order: u64,
    pub(crate) lane: u32,
}

/// What a group would hand out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) slot: Slot,
    /// The scheme's counter afterwards.
    pub(crate) scheme_count: u32,
    /// The turn that its group had.
    pub(crate) turn: u64,
}
