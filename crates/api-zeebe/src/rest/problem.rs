//! Errors: `application/problem+json` (RFC 9457), for everything under the prefix.

use axum::extract::{OriginalUri, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tonic::{Code, Status};

/// What handlers return.
pub(crate) type Answered<T> = Result<T, Problem>;

/// Why a request did not succeed. [`write()`] makes the body of it, where the path is known.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
}

impl Problem {
    /// A problem of HTTP itself: the status says it all.
    pub(crate) fn plain(status: StatusCode, detail: impl Into<String>) -> Problem {
        let title = status.canonical_reason().unwrap_or("Error");
        Problem { status, title, detail: detail.into() }
    }

    /// A request whose shape is wrong.
    pub(crate) fn invalid(detail: impl Into<String>) -> Problem {
        let status = StatusCode::BAD_REQUEST;
        Problem { status, title: "INVALID_ARGUMENT", detail: detail.into() }
    }

    /// A thing that is not there.
    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem { status: StatusCode::NOT_FOUND, title: "NOT_FOUND", detail: detail.into() }
    }

    /// Too much is asked at once.
    pub(crate) fn overloaded(detail: impl Into<String>) -> Problem {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Problem { status, title: "RESOURCE_EXHAUSTED", detail: detail.into() }
    }

    /// A body or a path that cannot be read at all.
    pub(crate) fn unreadable(detail: impl Into<String>) -> Problem {
        Problem::plain(StatusCode::BAD_REQUEST, detail)
    }
}

/// The other wire's word for the same thing.
impl From<Status> for Problem {
    fn from(refused: Status) -> Problem {
        let (status, title) = match refused.code() {
            Code::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND"),
            Code::AlreadyExists => (StatusCode::CONFLICT, "ALREADY_EXISTS"),
            Code::FailedPrecondition => (StatusCode::CONFLICT, "INVALID_STATE"),
            Code::InvalidArgument | Code::OutOfRange => {
                (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT")
            }
            Code::ResourceExhausted => (StatusCode::SERVICE_UNAVAILABLE, "RESOURCE_EXHAUSTED"),
            Code::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
            Code::DeadlineExceeded => (StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED"),
            Code::Unimplemented => (StatusCode::NOT_IMPLEMENTED, "UNIMPLEMENTED"),
            Code::PermissionDenied => (StatusCode::FORBIDDEN, "FORBIDDEN"),
            Code::Unauthenticated => (StatusCode::UNAUTHORIZED, "UNAUTHORIZED"),
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::Aborted
            | Code::Internal
            | Code::DataLoss => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
        };
        Problem { status, title, detail: refused.message().to_owned() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// As it is written.
#[derive(Serialize)]
struct Body<'p> {
    r#type: &'static str,
    title: &'p str,
    status: u16,
    detail: &'p str,
    instance: &'p str,
}

/// Writes the problem of an answer that is one.
pub(crate) async fn write(OriginalUri(uri): OriginalUri, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    let Some(problem) = answer.extensions().get::<Problem>() else { return answer };
    let body = Body {
        r#type: "about:blank",
        title: problem.title,
        status: problem.status.as_u16(),
        detail: &problem.detail,
        instance: uri.path(),
    };
    let body = serde_json::to_vec(&body).expect("a problem is plain text and numbers");
    let mut answer = (problem.status, body).into_response();
    let kind = HeaderValue::from_static("application/problem+json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
