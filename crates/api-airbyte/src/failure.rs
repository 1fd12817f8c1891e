//! Errors: one shape for everything under the prefix, a problem as RFC 9457 has it.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use windlass_gateway::GatewayError;
use windlass_record::rejection::{Rejection, RejectionKind};

use crate::vault::VaultError;

/// What handlers return.
pub(crate) type Answered<T> = Result<T, Failure>;

/// Why a request did not succeed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    /// Its name, for machines; the title too.
    name: &'static str,
    detail: String,
    data: Value,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, name: &'static str, detail: impl Into<String>) -> Self {
        Failure { status, name, detail: detail.into(), data: Value::Null }
    }

    /// A thing that is not there.
    pub(crate) fn not_found(what: &'static str, id: &str) -> Failure {
        let detail = format!("The requested {what} could not be found.");
        let failure = Failure::new(StatusCode::NOT_FOUND, "resource-not-found", detail);
        Failure { data: json!({ "resourceType": what, "resourceId": id }), ..failure }
    }

    /// A path that is none.
    pub(crate) fn no_such_path(path: &str) -> Failure {
        let detail = format!("No endpoint {path}");
        Failure::new(StatusCode::NOT_FOUND, "resource-not-found", detail)
    }

    /// A request that makes no sense.
    pub(crate) fn invalid(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "bad-request", detail)
    }

    /// A field that must be there.
    pub(crate) fn missing(field: &str) -> Failure {
        Failure::invalid(format!("The field {field} is required."))
    }

    /// A request that is understood and will not be done.
    pub(crate) fn unprocessable(detail: impl Into<String>) -> Failure {
        let failure =
            Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "unprocessable-entity", detail);
        // Clients of the original look for the reason there.
        Failure { data: json!({ "message": failure.detail }), ..failure }
    }

    /// What is asked for does not fit what is.
    pub(crate) fn conflict(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::CONFLICT, "state-conflict", detail)
    }

    /// The same, and it will pass.
    pub(crate) fn try_again_later(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::CONFLICT, "try-again-later", detail)
    }

    /// Nobody knows who asks.
    pub(crate) fn unauthorized(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    /// Something is wrong here.
    pub(crate) fn internal(detail: impl Into<String>) -> Failure {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "unexpected-problem", detail)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.detail)
    }
}

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Failure {
        let detail = error.to_string();
        match error {
            GatewayError::Rejected(Rejection::TooLarge { .. }) => {
                Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "payload-too-large", detail)
            }
            GatewayError::Rejected(rejection) => of_rejection(rejection.kind(), detail),
            GatewayError::Overloaded { .. } => {
                Failure::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail)
            }
            GatewayError::ShuttingDown | GatewayError::Stopped => {
                Failure::new(StatusCode::SERVICE_UNAVAILABLE, "service-unavailable", detail)
            }
        }
    }
}

fn of_rejection(kind: RejectionKind, detail: String) -> Failure {
    match kind {
        RejectionKind::NotFound => {
            Failure::new(StatusCode::NOT_FOUND, "resource-not-found", detail)
        }
        RejectionKind::AlreadyExists | RejectionKind::FailedPrecondition => {
            Failure::conflict(detail)
        }
        RejectionKind::InvalidArgument => Failure::invalid(detail),
        RejectionKind::ResourceExhausted => {
            Failure::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail)
        }
    }
}

impl From<VaultError> for Failure {
    fn from(error: VaultError) -> Failure {
        Failure::internal(error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": format!("error:{}", self.name),
            "title": self.name,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "documentationUrl": null,
        });
        if let (Some(body), false) = (body.as_object_mut(), self.data.is_null()) {
            body.insert("data".to_owned(), self.data);
        }
        let head = [(header::CONTENT_TYPE, "application/problem+json")];
        let mut answer = (self.status, head, body.to_string()).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let challenge = header::HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        answer
    }
}
