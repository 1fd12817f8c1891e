//! The life of a job as one table: which verb is allowed in which state, and what follows.
//!
//! `docs/job-lifecycle.md` is generated from [`transition`] and checked by a test.

use crate::rights::Rights;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Not before a time.
    Scheduled,
    /// May be handed out.
    Ready,
    /// Leased to a worker.
    Active,
    /// Waiting for its next attempt.
    Backoff,
    /// Waiting for a person.
    Incident,
    /// At rest: done.
    Completed,
    /// At rest: failed or timed out.
    Failed,
    /// At rest: no longer wanted.
    Cancelled,
    /// An empty place in the slab; no job is ever in this state.
    Vacant,
}

/// What can be done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Hand it to a worker.
    Activate,
    /// Take it back unsent.
    Return,
    /// Move the end of its lease.
    ExtendLease,
    /// Report progress or append to its log.
    Report,
    /// It is done.
    Complete,
    /// The attempt failed.
    Fail,
    /// A business error.
    ThrowError,
    /// The worker puts it back.
    Release,
    /// The lease ended.
    LeaseEnds,
    /// Its scheduled time, or the end of its backoff, came.
    Due,
    /// It stood ready for too long.
    WaitingEnds,
    /// The attempt took too long.
    AttemptEnds,
    /// All of it took too long.
    TotalEnds,
    /// No longer wanted.
    Cancel,
    /// New retries, priority or lease end.
    Update,
    /// A person says: try again.
    Resolve,
}

/// What a verb does in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// One of these states follows; which one, the verb's file says.
    To(&'static [JobState]),
    /// Only for dialects whose workers may report without a lease.
    WithoutLease(&'static [JobState]),
    /// Refused: the state does not allow it.
    WrongState,
    /// Refused: a job at rest is not found.
    NotFound,
}

/// The table.
pub fn transition(state: JobState, verb: Verb) -> Transition {
    use JobState::{
        Active, Backoff, Cancelled, Completed, Failed, Incident, Ready, Scheduled, Vacant,
    };
    use Transition::{NotFound, To, WithoutLease, WrongState};
    use Verb::{
        Activate, AttemptEnds, Cancel, Complete, Due, ExtendLease, Fail, LeaseEnds, Release,
        Report, Resolve, Return, ThrowError, TotalEnds, Update, WaitingEnds,
    };
    match (state, verb) {
        (Ready, Activate) => To(&[Active]),
        (Scheduled | Active | Backoff | Incident, Activate) => WrongState,

        (Active, Return) => To(&[Ready, Cancelled]),
        (Scheduled | Ready | Backoff | Incident, Return) => WrongState,

        (Active, ExtendLease | Report) => To(&[Active]),
        (Scheduled | Ready | Backoff | Incident, ExtendLease | Report) => WrongState,

        // A late completion counts while nobody else finished: the job may be ready again.
        (Active, Complete) => To(&[Completed, Cancelled]),
        (Ready, Complete) => To(&[Completed]),
        (Scheduled | Backoff, Complete) => WithoutLease(&[Completed]),
        (Incident, Complete) => WrongState,

        // A late failure does not: somebody else may have the job, or it has been given back.
        (Active, Fail) => To(&[Ready, Backoff, Incident, Failed, Cancelled]),
        (Ready | Scheduled | Backoff, Fail) => WithoutLease(&[Ready, Backoff, Incident, Failed]),
        (Incident, Fail) => WrongState,

        (Active, ThrowError) => To(&[Incident, Cancelled]),
        (Ready, ThrowError) => To(&[Incident]),
        (Scheduled | Backoff | Incident, ThrowError) => WrongState,

        (Active, Release) => To(&[Ready, Scheduled, Cancelled]),
        (Scheduled | Ready | Backoff | Incident, Release) => WrongState,

        (Active, LeaseEnds) => To(&[Ready, Backoff, Incident, Failed, Cancelled, Active]),
        (Scheduled | Ready | Backoff | Incident, LeaseEnds) => WrongState,

        (Scheduled | Backoff, Due) => To(&[Ready]),
        (Ready | Active | Incident, Due) => WrongState,

        (Ready, WaitingEnds | AttemptEnds) => To(&[Ready, Backoff, Incident, Failed]),
        (Scheduled | Active | Backoff | Incident, WaitingEnds) => WrongState,

        (Active, AttemptEnds) => To(&[Ready, Backoff, Incident, Failed, Cancelled, Active]),
        (Scheduled, AttemptEnds) => To(&[Scheduled, Ready, Backoff, Incident, Failed]),
        (Backoff | Incident, AttemptEnds) => WrongState,

        (Scheduled, TotalEnds) => To(&[Scheduled, Failed]),
        (Ready, TotalEnds) => To(&[Ready, Failed]),
        (Active, TotalEnds) => To(&[Active, Failed, Cancelled]),
        (Backoff, TotalEnds) => To(&[Backoff, Failed]),
        (Incident, TotalEnds) => To(&[Incident, Failed]),

        (Active, Cancel) => To(&[Cancelled, Active]),
        (Scheduled | Ready | Backoff | Incident, Cancel) => To(&[Cancelled]),

        (Scheduled, Update) => To(&[Scheduled]),
        (Ready, Update) => To(&[Ready]),
        (Active, Update) => To(&[Active]),
        (Backoff, Update) => To(&[Backoff]),
        (Incident, Update) => To(&[Incident]),

        (Incident, Resolve) => To(&[Ready]),
        (Scheduled | Ready | Active | Backoff, Resolve) => WrongState,

        (
            Completed | Failed | Cancelled | Vacant,
            Activate | Return | ExtendLease | Report | Complete | Fail | ThrowError | Release
            | LeaseEnds | Due | WaitingEnds | AttemptEnds | TotalEnds | Cancel | Update | Resolve,
        ) => NotFound,
    }
}

/// Whether a verb is allowed in a state to a job with these rights.
pub fn allows(state: JobState, verb: Verb, rights: Rights) -> bool {
    match transition(state, verb) {
        Transition::To(_) => true,
        Transition::WithoutLease(_) => rights.results_without_lease,
        Transition::WrongState | Transition::NotFound => false,
    }
}

impl JobState {
    /// Every state a job can be in.
    pub const ALL: [JobState; 8] = [
        JobState::Scheduled,
        JobState::Ready,
        JobState::Active,
        JobState::Backoff,
        JobState::Incident,
        JobState::Completed,
        JobState::Failed,
        JobState::Cancelled,
    ];

    /// Its name, as clients see it.
    pub fn name(self) -> &'static str {
        match self {
            JobState::Scheduled => "scheduled",
            JobState::Ready => "ready",
            JobState::Active => "active",
            JobState::Backoff => "backoff",
            JobState::Incident => "incident",
            JobState::Completed => "completed",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
            JobState::Vacant => "vacant",
        }
    }
}

impl Verb {
    /// Every verb.
    pub const ALL: [Verb; 16] = [
        Verb::Activate,
        Verb::Return,
        Verb::ExtendLease,
        Verb::Report,
        Verb::Complete,
        Verb::Fail,
        Verb::ThrowError,
        Verb::Release,
        Verb::LeaseEnds,
        Verb::Due,
        Verb::WaitingEnds,
        Verb::AttemptEnds,
        Verb::TotalEnds,
        Verb::Cancel,
        Verb::Update,
        Verb::Resolve,
    ];

    /// Its name in messages and in the diagram.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Activate => "activate",
            Verb::Return => "return",
            Verb::ExtendLease => "extend the lease of",
            Verb::Report => "report on",
            Verb::Complete => "complete",
            Verb::Fail => "fail",
            Verb::ThrowError => "throw an error in",
            Verb::Release => "release",
            Verb::LeaseEnds => "end the lease of",
            Verb::Due => "ready",
            Verb::WaitingEnds => "end the waiting of",
            Verb::AttemptEnds => "end the attempt of",
            Verb::TotalEnds => "end the time of",
            Verb::Cancel => "cancel",
            Verb::Update => "update",
            Verb::Resolve => "resolve",
        }
    }
}
