//! Errors as REST says them: `application/problem+json` (RFC 9457), for everything.

use std::borrow::Cow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use windlass_record::bound::Bound;

use crate::error::{ApiError, ErrorKind};
use crate::rest::schema::{Key, Schema, object};

object! { out
    /// Why a request did not succeed (RFC 9457).
    Problem {
        /// A name for the sort of problem, made of its code.
        r#type: String,
        /// The status in words.
        title: &'static str,
        /// The HTTP status.
        status: u16,
        /// What went wrong, for people.
        detail: String,
        /// A stable name for machines, such as unique-key-held.
        code: &'static str,
        /// The job that holds the unique key.
        holder: Option<Key>,
        /// The limit that was met, such as payload-bytes.
        bound: Option<&'static str>,
        /// Its value.
        max: Option<u64>,
        /// The server's setting that it follows; null where it is fixed.
        setting: Option<&'static str>,
        /// Where the body stops being JSON.
        line: Option<u64>,
        /// Where in that line.
        column: Option<u64>,
    }
}

impl Schema for &'static str {
    fn schema() -> Value {
        String::schema()
    }
}

impl Schema for u16 {
    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 100, "maximum": 599 })
    }
}

/// A problem on its way out.
#[derive(Debug)]
pub(crate) struct Failure(Box<Problem>);

/// What every handler returns.
pub(crate) type Answered<T> = Result<T, Failure>;

impl Failure {
    /// A problem of the wire itself.
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Failure {
        Failure(Box::new(Problem {
            r#type: format!("urn:windlass:problem:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: detail.into().into_owned(),
            code,
            holder: None,
            bound: None,
            max: None,
            setting: None,
            line: None,
            column: None,
        }))
    }

    /// A request that can never succeed.
    pub(crate) fn bad(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// The body is not JSON, or not the JSON that is wanted.
    pub(crate) fn json(error: &serde_json::Error) -> Failure {
        let code = if error.is_data() { "json-mismatch" } else { "json-invalid" };
        let mut failure = Failure::bad(code, format!("the body cannot be read: {error}"));
        let wide = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        failure.0.line = Some(wide(error.line()));
        failure.0.column = Some(wide(error.column()));
        failure
    }

    /// Names the limit that was met.
    pub(crate) fn met(mut self, bound: Bound, max: u64) -> Failure {
        self.0.bound = Some(bound.name());
        self.0.max = Some(max);
        self.0.setting = bound.setting();
        self
    }

    /// The problem, for an answer that carries several.
    pub(crate) fn problem(self) -> Problem {
        *self.0
    }
}

fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists | ErrorKind::FailedPrecondition => StatusCode::CONFLICT,
        ErrorKind::VersionMismatch => StatusCode::PRECONDITION_FAILED,
        ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
        ErrorKind::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Overloaded | ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl<E: Into<ApiError>> From<E> for Failure {
    fn from(error: E) -> Failure {
        let error = error.into();
        let mut failure = Failure::new(status_of(error.kind), error.code, error.message);
        failure.0.holder = error.holder.map(|holder| Key(holder.raw()));
        match error.bound {
            Some((bound, max)) => failure.met(bound, max),
            None => failure,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self.0).expect("a problem is plain text and numbers");
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        if later.contains(&status) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The schema of [`Problem`], for the document.
pub(crate) fn define(schemas: &mut Map<String, Value>) {
    Problem::define(schemas);
}
