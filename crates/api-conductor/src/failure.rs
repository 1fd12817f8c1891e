//! Errors: one shape for everything under the prefix.

use std::sync::OnceLock;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use windlass_gateway::GatewayError;
use windlass_record::rejection::RejectionKind;

/// What handlers return.
pub(crate) type Answered<T> = Result<T, Failure>;

/// Why a request did not succeed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    pub(crate) message: String,
    retryable: bool,
    /// What is wrong with the parts of a request, a sentence each.
    problems: Vec<String>,
}

/// What is said when parts of a request are wrong.
const VALIDATION: &str = "Validation failed, check below errors for detail.";

impl Failure {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), retryable: false, problems: Vec::new() }
    }

    /// A thing that is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, message)
    }

    /// A request that makes no sense.
    pub(crate) fn invalid(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, message)
    }

    /// A request that cannot be read. The original does not tell it from an error of its own.
    pub(crate) fn unreadable(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Parts of the request are wrong.
    pub(crate) fn validation(problems: Vec<String>) -> Failure {
        Failure { problems, ..Failure::invalid(VALIDATION) }
    }

    /// The same, where what is refused as invalid is a list of sentences about the request's parts.
    pub(crate) fn into_validation(self) -> Failure {
        if self.status != StatusCode::BAD_REQUEST || !self.problems.is_empty() {
            return self;
        }
        Failure::validation(self.message.lines().map(str::to_owned).collect())
    }

    /// The same, to be asked again later.
    pub(crate) fn retryable(self) -> Failure {
        Failure { retryable: true, ..self }
    }

    pub(crate) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    pub(crate) fn is_invalid(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
    }

    /// The sentences of a failure, for an answer that tells of many.
    pub(crate) fn sentences(self) -> String {
        if self.problems.is_empty() { self.message } else { self.problems.join("\n") }
    }

    pub(crate) fn into_problems(self) -> Vec<String> {
        if self.problems.is_empty() { vec![self.message] } else { self.problems }
    }
}

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Failure {
        let message = error.to_string();
        match error {
            GatewayError::Rejected(rejection) => Failure::new(status_of(rejection.kind()), message),
            GatewayError::Overloaded { .. } => {
                Failure::new(StatusCode::TOO_MANY_REQUESTS, message).retryable()
            }
            GatewayError::ShuttingDown | GatewayError::Stopped => {
                Failure::new(StatusCode::SERVICE_UNAVAILABLE, message).retryable()
            }
        }
    }
}

/// What is not in its place for a command is an error of the server, to these clients.
fn status_of(kind: RejectionKind) -> StatusCode {
    match kind {
        RejectionKind::NotFound => StatusCode::NOT_FOUND,
        RejectionKind::AlreadyExists => StatusCode::CONFLICT,
        RejectionKind::InvalidArgument => StatusCode::BAD_REQUEST,
        RejectionKind::FailedPrecondition => StatusCode::INTERNAL_SERVER_ERROR,
        RejectionKind::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// As it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'f> {
    status: u16,
    message: &'f str,
    instance: &'static str,
    retryable: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    validation_errors: Vec<Problem<'f>>,
}

#[derive(Serialize)]
struct Problem<'f> {
    path: &'static str,
    message: &'f str,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let problem = |message| Problem { path: "", message };
        let body = Body {
            status: self.status.as_u16(),
            message: &self.message,
            instance: host(),
            retryable: self.retryable,
            validation_errors: self.problems.iter().map(|text| problem(text)).collect(),
        };
        let body = serde_json::to_vec(&body).expect("a failure is plain text and numbers");
        (self.status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}

/// The name of this machine, as errors carry it.
fn host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}
