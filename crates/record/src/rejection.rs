//! Why a command was refused. Faces turn a rejection into the code of their wire; the words are
//! made here and nowhere else.

use std::fmt;

use crate::bound::Bound;
use crate::flow::FlowRejection;
use crate::id::JobKey;
use crate::schedule::ScheduleRejection;

/// What a name must be: a zero byte separates names in checkpoints.
pub const NAME_MUST: &str = "free of zero bytes";

/// A refusal. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// No live job has this key: it never existed, or it has ended.
    JobNotFound {
        /// The key asked for.
        key: JobKey,
    },
    /// The job's state does not allow the command.
    JobInWrongState {
        /// The job.
        key: JobKey,
        /// Its state.
        state: &'static str,
        /// What was asked.
        verb: &'static str,
    },
    /// The lease has ended, so the worker's word on a failure no longer counts.
    LeaseEnded {
        /// The job.
        key: JobKey,
    },
    /// The job was leased with a token and the command carries none.
    TokenMissing {
        /// The job.
        key: JobKey,
    },
    /// The token belongs to an earlier activation.
    TokenStale {
        /// The job.
        key: JobKey,
        /// The activation of the token.
        given: u32,
        /// The newest activation.
        current: u32,
    },
    /// Another job holds the unique key.
    UniqueKeyHeld {
        /// The job that holds it, or held it last.
        holder: JobKey,
    },
    /// The queue takes only jobs of its own type.
    QueueOfOneType,
    /// No queue has this name.
    QueueNotFound,
    /// No incident waits under this key.
    IncidentNotFound {
        /// The key asked for.
        key: JobKey,
    },
    /// A job without retries cannot be tried again.
    NoRetriesLeft {
        /// The job.
        key: JobKey,
    },
    /// The document does not have the expected version.
    DocumentVersion {
        /// Its kind.
        kind: Box<str>,
        /// Which one.
        id: Box<str>,
        /// The version it should have; 0 is "does not exist".
        expected: u64,
        /// The version it has.
        actual: u64,
    },
    /// A name that must not be empty is.
    NameEmpty {
        /// The field.
        field: &'static str,
    },
    /// A value is outside what the field can mean.
    OutOfRange {
        /// The field.
        field: &'static str,
        /// What it must be, in words.
        must: &'static str,
    },
    /// The value is past its limit: asking again with the same value is in vain.
    TooLarge {
        /// The limit.
        bound: Bound,
        /// Its value.
        max: u64,
        /// What was given.
        given: u64,
    },
    /// A limit of the installation is reached: asking again later may succeed.
    Exhausted {
        /// The limit.
        bound: Bound,
        /// Its value.
        max: u64,
    },
    /// A command on flows was refused.
    Flow(Box<FlowRejection>),
    /// A command on schedules was refused.
    Schedule(Box<ScheduleRejection>),
}

impl From<FlowRejection> for Rejection {
    fn from(rejection: FlowRejection) -> Rejection {
        Rejection::Flow(Box::new(rejection))
    }
}

impl From<ScheduleRejection> for Rejection {
    fn from(rejection: ScheduleRejection) -> Rejection {
        Rejection::Schedule(Box::new(rejection))
    }
}

/// What sort of refusal it is; each wire has a code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectionKind {
    /// The thing does not exist.
    NotFound,
    /// The thing exists already.
    AlreadyExists,
    /// The thing is not in a state for it.
    FailedPrecondition,
    /// The request can never succeed.
    InvalidArgument,
    /// The request may succeed later.
    ResourceExhausted,
}

impl Rejection {
    /// What sort of refusal it is.
    pub fn kind(&self) -> RejectionKind {
        match self {
            Rejection::JobNotFound { .. }
            | Rejection::QueueNotFound
            | Rejection::IncidentNotFound { .. } => RejectionKind::NotFound,
            Rejection::UniqueKeyHeld { .. } => RejectionKind::AlreadyExists,
            Rejection::JobInWrongState { .. }
            | Rejection::LeaseEnded { .. }
            | Rejection::TokenMissing { .. }
            | Rejection::TokenStale { .. }
            | Rejection::NoRetriesLeft { .. }
            | Rejection::QueueOfOneType
            | Rejection::DocumentVersion { .. } => RejectionKind::FailedPrecondition,
            Rejection::NameEmpty { .. }
            | Rejection::OutOfRange { .. }
            | Rejection::TooLarge { .. } => RejectionKind::InvalidArgument,
            Rejection::Exhausted { .. } => RejectionKind::ResourceExhausted,
            Rejection::Flow(rejection) => rejection.kind(),
            Rejection::Schedule(rejection) => rejection.kind(),
        }
    }

    /// A stable name for machines, used by metrics and problem documents.
    pub fn code(&self) -> &'static str {
        match self {
            Rejection::JobNotFound { .. } => "job-not-found",
            Rejection::JobInWrongState { .. } => "job-in-wrong-state",
            Rejection::LeaseEnded { .. } => "lease-ended",
            Rejection::TokenMissing { .. } => "token-missing",
            Rejection::TokenStale { .. } => "token-stale",
            Rejection::UniqueKeyHeld { .. } => "unique-key-held",
            Rejection::QueueOfOneType => "queue-of-one-type",
            Rejection::QueueNotFound => "queue-not-found",
            Rejection::IncidentNotFound { .. } => "incident-not-found",
            Rejection::NoRetriesLeft { .. } => "no-retries-left",
            Rejection::DocumentVersion { .. } => "document-version",
            Rejection::NameEmpty { .. } => "name-empty",
            Rejection::OutOfRange { .. } => "out-of-range",
            Rejection::TooLarge { .. } => "too-large",
            Rejection::Exhausted { .. } => "exhausted",
            Rejection::Flow(rejection) => rejection.code(),
            Rejection::Schedule(rejection) => rejection.code(),
        }
    }
}

impl Rejection {
    /// The job that holds the unique key.
    pub fn holder(&self) -> Option<JobKey> {
        if let Rejection::UniqueKeyHeld { holder } = self { Some(*holder) } else { None }
    }

    /// The limit that was met, and its value.
    pub fn bound(&self) -> Option<(Bound, u64)> {
        match self {
            Rejection::TooLarge { bound, max, .. } | Rejection::Exhausted { bound, max } => {
                Some((*bound, *max))
            }
            Rejection::Flow(_)
            | Rejection::Schedule(_)
            | Rejection::JobNotFound { .. }
            | Rejection::JobInWrongState { .. }
            | Rejection::LeaseEnded { .. }
            | Rejection::TokenMissing { .. }
            | Rejection::TokenStale { .. }
            | Rejection::UniqueKeyHeld { .. }
            | Rejection::QueueOfOneType
            | Rejection::QueueNotFound
            | Rejection::IncidentNotFound { .. }
            | Rejection::NoRetriesLeft { .. }
            | Rejection::DocumentVersion { .. }
            | Rejection::NameEmpty { .. }
            | Rejection::OutOfRange { .. } => None,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::JobNotFound { key } => {
                write!(f, "no live job has the key {key}: it never existed or has ended")
            }
            Rejection::JobInWrongState { key, state, verb } => {
                write!(f, "cannot {verb} job {key}: it is {state}")
            }
            Rejection::LeaseEnded { key } => {
                write!(f, "the lease of job {key} has ended: a late failure does not count")
            }
            Rejection::TokenMissing { key } => {
                write!(f, "job {key} was leased with a token: send the token with the result")
            }
            Rejection::TokenStale { key, given, current } => write!(
                f,
                "the token of activation {given} of job {key} is stale: the newest is {current}"
            ),
            Rejection::UniqueKeyHeld { holder } => {
                write!(f, "the unique key is held by job {holder}")
            }
            Rejection::QueueOfOneType => {
                f.write_str("the queue takes only jobs whose type is the queue's name")
            }
            Rejection::QueueNotFound => f.write_str("no queue has this name"),
            Rejection::IncidentNotFound { key } => write!(f, "no incident waits under {key}"),
            Rejection::NoRetriesLeft { key } => {
                write!(f, "job {key} has no retries left: set its retries first")
            }
            Rejection::DocumentVersion { kind, id, expected, actual: 0 } => {
                write!(f, "document {kind}/{id} does not exist: version {expected} was expected")
            }
            Rejection::DocumentVersion { kind, id, expected: 0, actual } => {
                write!(f, "document {kind}/{id} exists, in version {actual}")
            }
            Rejection::DocumentVersion { kind, id, expected, actual } => write!(
                f,
                "document {kind}/{id} has version {actual}: version {expected} was expected"
            ),
            Rejection::NameEmpty { field } => write!(f, "{field} must not be empty"),
            Rejection::OutOfRange { field, must } => write!(f, "{field} must be {must}"),
            Rejection::TooLarge { bound, max, given } => {
                write!(f, "{given} {bound} is over the limit of {max}")
            }
            Rejection::Exhausted { bound, max } => {
                write!(f, "the limit of {max} {bound} is reached: try again later")
            }
            Rejection::Flow(rejection) => rejection.fmt(f),
            Rejection::Schedule(rejection) => rejection.fmt(f),
        }
    }
}

impl std::error::Error for Rejection {}
