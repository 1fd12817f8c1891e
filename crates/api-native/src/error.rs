//! What both wires say when a request does not succeed: one kind, one stable code, one sentence.

use std::borrow::Cow;

use windlass_gateway::GatewayError;
use windlass_gateway::request::Refused;
use windlass_record::bound::Bound;
use windlass_record::id::JobKey;
use windlass_record::rejection::{Rejection, RejectionKind};
use windlass_record::schedule::ScheduleRejection;

/// A request that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What sort of error it is; each wire has a code for each.
    pub kind: ErrorKind,
    /// A stable name for machines.
    pub code: &'static str,
    /// A sentence for people.
    pub message: Cow<'static, str>,
    /// The job that holds the unique key.
    pub holder: Option<JobKey>,
    /// The limit that was met, and its value.
    pub bound: Option<(Bound, u64)>,
}

/// What sort of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The thing does not exist.
    NotFound,
    /// The thing exists already.
    AlreadyExists,
    /// The thing is not in a state for it.
    FailedPrecondition,
    /// The document has another version.
    VersionMismatch,
    /// The request can never succeed.
    InvalidArgument,
    /// A payload, a result or a document is past its limit.
    PayloadTooLarge,
    /// A limit of the installation is reached.
    ResourceExhausted,
    /// Too much is waiting.
    Overloaded,
    /// The server is going down, or has lost its log.
    Unavailable,
}

impl ApiError {
    fn new(kind: ErrorKind, code: &'static str, message: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError { kind, code, message: message.into(), holder: None, bound: None }
    }

    /// A request whose shape is wrong.
    pub fn invalid(code: &'static str, message: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(ErrorKind::InvalidArgument, code, message)
    }

    /// A thing that does not exist and is not a job.
    pub fn not_found(code: &'static str, message: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::new(ErrorKind::NotFound, code, message)
    }

    /// A number that no value of an enum has.
    pub fn unknown_enum(field: &'static str, number: i32) -> ApiError {
        ApiError::invalid("unknown-enum-value", format!("{field} has no value {number}"))
    }

    /// A field that must be there is not.
    pub fn missing(field: &'static str) -> ApiError {
        ApiError::invalid("field-missing", format!("{field} is missing"))
    }
}

/// No limit key has the name that was asked for.
pub(crate) fn limit_not_found() -> ApiError {
    ApiError::not_found(
        "limit-not-found",
        "no limit has this name: none is set, and no job uses it",
    )
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> ApiError {
        let holder = rejection.holder();
        let (kind, bound) = (kind_of(&rejection), rejection.bound());
        let error = ApiError::new(kind, rejection.code(), rejection.to_string());
        ApiError { holder, bound, ..error }
    }
}

fn kind_of(rejection: &Rejection) -> ErrorKind {
    if let Rejection::TooLarge { bound: Bound::PayloadBytes, .. } = rejection {
        return ErrorKind::PayloadTooLarge;
    }
    if let Rejection::DocumentVersion { .. } = rejection {
        return ErrorKind::VersionMismatch;
    }
    if let Rejection::Schedule(rejection) = rejection
        && let ScheduleRejection::Version { .. } | ScheduleRejection::Exists { .. } = **rejection
    {
        return ErrorKind::VersionMismatch;
    }
    match rejection.kind() {
        RejectionKind::NotFound => ErrorKind::NotFound,
        RejectionKind::AlreadyExists => ErrorKind::AlreadyExists,
        RejectionKind::FailedPrecondition => ErrorKind::FailedPrecondition,
        RejectionKind::InvalidArgument => ErrorKind::InvalidArgument,
        RejectionKind::ResourceExhausted => ErrorKind::ResourceExhausted,
    }
}

impl From<GatewayError> for ApiError {
    fn from(error: GatewayError) -> ApiError {
        let kind = match error {
            GatewayError::Rejected(rejection) => return rejection.into(),
            GatewayError::Overloaded { .. } => ErrorKind::Overloaded,
            GatewayError::ShuttingDown | GatewayError::Stopped => ErrorKind::Unavailable,
        };
        let bound = error.bound();
        ApiError { bound, ..ApiError::new(kind, error.code(), error.to_string()) }
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> ApiError {
        GatewayError::from(refused).into()
    }
}
