//! Reads requests: bodies, paths and keys, each with a problem of its own when it cannot be read.

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limit::MESSAGE_BYTES_MAX;
use crate::rest::problem::Problem;

/// A body that must be there: a JSON object.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, Problem> {
        let bytes = raw(request, state).await?;
        if bytes.trim_ascii().is_empty() {
            return Err(Problem::unreadable("Required request body is missing"));
        }
        read(&bytes).map(Body)
    }
}

/// A body that may be left out, or be `null`.
pub(crate) struct MaybeBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for MaybeBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<MaybeBody<T>, Problem> {
        let bytes = raw(request, state).await?;
        match bytes.trim_ascii() {
            b"" | b"null" => Ok(MaybeBody(T::default())),
            text => read(text).map(MaybeBody),
        }
    }
}

async fn raw<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    check_json(request.headers())?;
    let announced = request.body().size_hint().lower();
    if usize::try_from(announced).is_ok_and(|bytes| bytes > MESSAGE_BYTES_MAX) {
        return Err(too_large());
    }
    Bytes::from_request(request, state).await.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return too_large();
        }
        Problem::unreadable("The request body did not arrive whole")
    })
}

/// A body over the limit.
pub(crate) fn too_large() -> Problem {
    let detail = format!("The request body is over the limit of {MESSAGE_BYTES_MAX} bytes");
    Problem::plain(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let cannot = |error: &dyn std::fmt::Display| {
        Problem::unreadable(format!("The request body cannot be parsed: {error}"))
    };
    // Without this, a list would be taken as an object's members in order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(cannot(&"it is not a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| cannot(&error))
}

/// A missing type is taken as JSON; another one is refused.
fn check_json(headers: &HeaderMap) -> Result<(), Problem> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let given = given.to_str().unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if is_json || essence.is_empty() {
        return Ok(());
    }
    let detail = format!("Content-Type '{essence}' is not supported.");
    Err(Problem::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
}

/// The key in a path.
pub(crate) struct KeyPath(pub(crate) i64);

impl<S: Send + Sync> FromRequestParts<S> for KeyPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<KeyPath, Problem> {
        let text = match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(text)) => text,
            Err(rejection) => return Err(Problem::unreadable(rejection.body_text())),
        };
        match text.parse() {
            Ok(key) => Ok(KeyPath(key)),
            Err(_) => Err(Problem::unreadable(format!("Failed to convert '{text}' to a key"))),
        }
    }
}

/// A key in a body: text, and numbers are read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) i64);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Key, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(i64),
            Text(String),
        }
        match Form::deserialize(reader) {
            Ok(Form::Number(key)) => Ok(Key(key)),
            Ok(Form::Text(text)) => text
                .parse()
                .map(Key)
                .map_err(|_| D::Error::custom(format!("the key '{text}' is not a number"))),
            Err(_) => Err(D::Error::custom("a key is a number in a text")),
        }
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(&self.0)
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
