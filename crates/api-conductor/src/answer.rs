//! Writes answers: JSON that is there already, JSON that is made here, ids as plain text, nothing.

use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use windlass_record::flow::Key;
use windlass_record::workflow::id_of;

/// JSON as the kernel wrote it.
pub(crate) struct Text(pub(crate) Arc<str>);

impl IntoResponse for Text {
    fn into_response(self) -> Response {
        json(self.0.as_bytes().to_vec())
    }
}

/// A JSON answer.
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Shown<T> {
    fn into_response(self) -> Response {
        json(serde_json::to_vec(&self.0).expect("answers are plain data"))
    }
}

fn json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Text without quotes.
pub(crate) struct Plain(pub(crate) String);

impl Plain {
    /// The id of a workflow or task.
    pub(crate) fn id(key: Key) -> Plain {
        Plain(id_of(key))
    }
}

impl IntoResponse for Plain {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "text/plain;charset=UTF-8")], self.0).into_response()
    }
}

/// Status 200 and no body.
pub(crate) struct Empty;

impl IntoResponse for Empty {
    fn into_response(self) -> Response {
        StatusCode::OK.into_response()
    }
}

/// Status 204.
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// One or the other.
pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

impl<A: IntoResponse, B: IntoResponse> IntoResponse for Either<A, B> {
    fn into_response(self) -> Response {
        match self {
            Either::First(first) => first.into_response(),
            Either::Second(second) => second.into_response(),
        }
    }
}
