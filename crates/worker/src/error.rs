//! What can go wrong, as types that a caller can act on.

use tonic::{Code, Status};

use crate::v1;

/// The trailer in which the server names its refusal.
const TRAILER_CODE: &str = "windlass-code";
/// The trailer that names the job that holds the unique key.
const TRAILER_HOLDER: &str = "windlass-holder";
/// The trailers that name the limit that was met.
const TRAILER_BOUND: &str = "windlass-bound";
const TRAILER_BOUND_MAX: &str = "windlass-bound-max";
const TRAILER_BOUND_SETTING: &str = "windlass-bound-setting";

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the server cannot be read.
    #[error("invalid server address {address:?}: expected for instance http://127.0.0.1:8080")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        #[source]
        source: tonic::transport::Error,
    },
    /// The server cannot be reached, or the connection broke. Whether the call took effect is not
    /// known.
    #[error("failed to reach the server: {message}")]
    Unreachable {
        /// What the transport said.
        message: String,
    },
    /// The server understood and said no; nothing changed.
    #[error("{0}")]
    Refused(Refusal),
    /// The server answered something that this version does not understand.
    #[error("the server answered against the protocol: {0}")]
    Protocol(&'static str),
    /// A value could not be written as JSON.
    #[error("failed to write a value as JSON")]
    Json(#[source] serde_json::Error),
    /// The worker or the stream has ended.
    #[error("the worker has stopped")]
    Stopped,
    /// The worker was built wrongly.
    #[error("invalid worker: {0}")]
    Invalid(&'static str),
}

impl Error {
    /// The refusal, when there is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => refusal.kind.is_transient(),
            Self::Address { .. }
            | Self::Protocol(_)
            | Self::Json(_)
            | Self::Stopped
            | Self::Invalid(_) => false,
        }
    }
}

/// Why the server said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What a program should look at first.
    pub kind: RefusalKind,
    /// A stable name, for instance `unique-key-held`; empty when the server gave none.
    pub code: String,
    /// For people.
    pub message: String,
    /// The job that holds the unique key.
    pub holder: Option<u64>,
    /// The limit that was met.
    pub bound: Option<Box<MetBound>>,
}

/// A limit of the server that a request met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetBound {
    /// Its stable name, for instance `payload-bytes`.
    pub name: String,
    /// Its value.
    pub max: u64,
    /// The server's setting that it follows; `None`: it is fixed.
    pub setting: Option<String>,
}

impl MetBound {
    /// `None` where none was met.
    fn of(name: String, max: u64, setting: String) -> Option<Box<Self>> {
        let setting = (!setting.is_empty()).then_some(setting);
        (!name.is_empty()).then(|| Box::new(Self { name, max, setting }))
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code.is_empty(), self.message.is_empty()) {
            (true, true) => f.write_str(self.kind.words()),
            (true, false) => f.write_str(&self.message),
            (false, true) => f.write_str(&self.code),
            (false, false) => write!(f, "{} ({})", self.message, self.code),
        }
    }
}

/// The kinds of refusal, as gRPC groups them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// The request itself is wrong.
    InvalidArgument,
    /// No such thing; for a result: somebody else finished the job, or holds it.
    NotFound,
    /// A unique key is held.
    AlreadyExists,
    /// Not in this state.
    FailedPrecondition,
    /// A limit is reached; later it may work.
    ResourceExhausted,
    /// Not now; later it will work.
    Unavailable,
    /// Not allowed.
    Denied,
    /// The server does not know this call.
    Unimplemented,
    /// Anything else: a defect of the server, or of something in between.
    Internal,
}

impl RefusalKind {
    fn of(code: Code) -> Self {
        match code {
            Code::InvalidArgument | Code::OutOfRange => Self::InvalidArgument,
            Code::NotFound => Self::NotFound,
            Code::AlreadyExists => Self::AlreadyExists,
            Code::FailedPrecondition => Self::FailedPrecondition,
            Code::ResourceExhausted => Self::ResourceExhausted,
            Code::Unavailable | Code::Aborted | Code::DeadlineExceeded => Self::Unavailable,
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied,
            Code::Unimplemented => Self::Unimplemented,
            Code::Ok | Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
                Self::Internal
            }
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        match self {
            Self::ResourceExhausted | Self::Unavailable => true,
            Self::InvalidArgument
            | Self::NotFound
            | Self::AlreadyExists
            | Self::FailedPrecondition
            | Self::Denied
            | Self::Unimplemented
            | Self::Internal => false,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid argument",
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::FailedPrecondition => "not possible in this state",
            Self::ResourceExhausted => "a limit is reached",
            Self::Unavailable => "not available at present",
            Self::Denied => "not allowed",
            Self::Unimplemented => "the server does not know this call",
            Self::Internal => "the server failed",
        }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let trailer = |name: &str| status.metadata().get(name).and_then(|text| text.to_str().ok());
        let code = trailer(TRAILER_CODE).unwrap_or_default();
        if code.is_empty() && is_transport(&status) {
            return Self::Unreachable { message: innermost(&status) };
        }
        Self::Refused(Refusal {
            kind: RefusalKind::of(status.code()),
            code: code.to_owned(),
            message: status.message().to_owned(),
            holder: trailer(TRAILER_HOLDER).and_then(|text| text.parse().ok()),
            bound: MetBound::of(
                trailer(TRAILER_BOUND).unwrap_or_default().to_owned(),
                trailer(TRAILER_BOUND_MAX).and_then(|text| text.parse().ok()).unwrap_or_default(),
                trailer(TRAILER_BOUND_SETTING).unwrap_or_default().to_owned(),
            ),
        })
    }
}

impl From<v1::Refusal> for Refusal {
    fn from(refusal: v1::Refusal) -> Self {
        let number = i32::try_from(refusal.grpc_code).unwrap_or(i32::MAX);
        Self {
            kind: RefusalKind::of(Code::from_i32(number)),
            code: refusal.code,
            message: refusal.message,
            holder: (refusal.holder != 0).then_some(refusal.holder),
            bound: MetBound::of(refusal.bound, refusal.bound_max, refusal.bound_setting),
        }
    }
}

/// An answer of the server has no source; what the transport made up has one, or says unavailable.
fn is_transport(status: &Status) -> bool {
    status.code() == Code::Unavailable || std::error::Error::source(status).is_some()
}

/// `transport error` says nothing; what it was caused by does.
fn innermost(status: &Status) -> String {
    let mut error: &dyn std::error::Error = status;
    let mut text = status.message().to_owned();
    while let Some(source) = error.source() {
        text = source.to_string();
        error = source;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_make_a_refusal() {
        let mut status = Status::already_exists("the unique key is held");
        status.metadata_mut().insert(TRAILER_CODE, "unique-key-held".parse().unwrap());
        status.metadata_mut().insert(TRAILER_HOLDER, "42".parse().unwrap());
        let error = Error::from(status);
        let refusal = error.refusal().unwrap();
        assert_eq!((refusal.kind, refusal.holder), (RefusalKind::AlreadyExists, Some(42)));
        assert_eq!(error.to_string(), "the unique key is held (unique-key-held)");
        assert!(!error.is_transient());
    }

    #[test]
    fn unavailable_is_transport_unless_the_server_names_a_refusal() {
        assert!(matches!(Error::from(Status::unavailable("x")), Error::Unreachable { .. }));
        let mut status = Status::unavailable("stopping");
        status.metadata_mut().insert(TRAILER_CODE, "stopping".parse().unwrap());
        let error = Error::from(status);
        assert_eq!(error.refusal().map(|refusal| refusal.kind), Some(RefusalKind::Unavailable));
        assert!(error.is_transient());
    }
}
