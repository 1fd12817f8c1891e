//! Reads requests: bodies, queries and keys, each with a problem of its own when it cannot be read.

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_gateway::Gateway;
use windlass_record::bound::Bound;
use windlass_record::id::JobKey;

use super::problem::Failure;
use super::schema::{Object, parse_key};
use crate::limit::message_bytes_max;

/// A JSON body. An empty one is an empty object.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Gateway> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Body<T>, Failure> {
        let Raw(bytes) = Raw::from_request(request, gateway).await?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(text)
            .map(|Object(body)| Body(body))
            .map_err(|error| Failure::json(&error))
    }
}

/// A body as it came, of the right type and size.
pub(crate) struct Raw(pub(crate) Bytes);

impl FromRequest<Gateway> for Raw {
    type Rejection = Failure;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Raw, Failure> {
        check_json(request.headers())?;
        let bytes_max = message_bytes_max(&gateway.limits().bounds);
        let too_large = || {
            let detail = format!("the body is over the limit of {bytes_max} bytes");
            let max = u64::try_from(bytes_max).unwrap_or(u64::MAX);
            Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail)
                .met(Bound::BodyBytes, max)
        };
        let announced = request.body().size_hint().lower();
        if usize::try_from(announced).is_ok_and(|announced| announced > bytes_max) {
            return Err(too_large());
        }
        Bytes::from_request(request, gateway).await.map(Raw).map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                return too_large();
            }
            Failure::bad("body-unreadable", "the body did not arrive whole")
        })
    }
}

/// A missing type is taken as JSON; another one is refused.
fn check_json(headers: &HeaderMap) -> Result<(), Failure> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = given.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if is_json || essence.is_empty() {
        return Ok(());
    }
    let detail = "send JSON, as application/json";
    Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", detail))
}

/// The query of an address.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, Failure> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Asked(asked)),
            Err(rejection) => Err(Failure::bad("query-invalid", rejection.body_text())),
        }
    }
}

/// The key in a path.
pub(crate) struct KeyPath(pub(crate) JobKey);

impl<S: Send + Sync> FromRequestParts<S> for KeyPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<KeyPath, Failure> {
        let NamePath(text) = NamePath::from_request_parts(parts, state).await?;
        let key = parse_key(&text).ok_or_else(|| {
            Failure::bad("key-invalid", format!("{text:?} is not a key: a key is a whole number"))
        })?;
        Ok(KeyPath(JobKey::from_raw(key.0)))
    }
}

/// The name in a path.
pub(crate) struct NamePath(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for NamePath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<NamePath, Failure> {
        path(parts, state).await.map(NamePath)
    }
}

/// Two names in a path.
pub(crate) struct NamesPath(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for NamesPath {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<NamesPath, Failure> {
        path(parts, state).await.map(|(first, second)| NamesPath(first, second))
    }
}

async fn path<T, S>(parts: &mut Parts, state: &S) -> Result<T, Failure>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    match Path::<T>::from_request_parts(parts, state).await {
        Ok(Path(found)) => Ok(found),
        Err(rejection) => Err(Failure::bad("path-invalid", rejection.body_text())),
    }
}

/// A JSON answer.
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Shown<T> {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self.0).expect("answers are plain data");
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    }
}
