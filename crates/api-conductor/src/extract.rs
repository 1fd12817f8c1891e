//! Reads requests: bodies, paths, parameters, ids. Lenient where the original is: what is unknown is
//! passed over, null is absent.

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, key_of};

use crate::failure::{Answered, Failure};
use crate::limit::BODY_BYTES_MAX;

/// A body that must be there.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Answered<Body<T>> {
        let bytes = raw(request, state).await?;
        if is_absent(&bytes) {
            return Err(missing_body());
        }
        parse(&bytes).map(Body)
    }
}

/// A JSON object that must be there.
pub(crate) struct Object<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Object<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Answered<Object<T>> {
        let bytes = raw(request, state).await?;
        if is_absent(&bytes) {
            return Err(missing_body());
        }
        check_object(&bytes)?;
        parse(&bytes).map(Object)
    }
}

/// A JSON object that may be left out, or be `null`.
pub(crate) struct MaybeObject<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for MaybeObject<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Answered<MaybeObject<T>> {
        let bytes = raw(request, state).await?;
        if is_absent(&bytes) {
            return Ok(MaybeObject(T::default()));
        }
        check_object(&bytes)?;
        parse(&bytes).map(MaybeObject)
    }
}

/// A JSON object that passes on as it came; empty if it was left out.
pub(crate) struct ObjectText(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for ObjectText {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Answered<ObjectText> {
        let bytes = raw(request, state).await?;
        if is_absent(&bytes) {
            return Ok(ObjectText(Bytes::new()));
        }
        check_object(&bytes)?;
        let _well_formed: IgnoredAny = parse(&bytes)?;
        Ok(ObjectText(bytes))
    }
}

impl ObjectText {
    /// One that must be there.
    pub(crate) fn required(self) -> Answered<Bytes> {
        if self.0.is_empty() { Err(missing_body()) } else { Ok(self.0) }
    }
}

/// A body of any kind.
pub(crate) struct TextBody(pub(crate) String);

impl<S: Send + Sync> FromRequest<S> for TextBody {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Answered<TextBody> {
        let bytes = whole(request, state).await?;
        Ok(TextBody(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

async fn raw<S: Send + Sync>(request: Request, state: &S) -> Answered<Bytes> {
    check_json(request.headers())?;
    whole(request, state).await
}

/// A missing type is taken as JSON. Another one is refused: browsers send those anywhere, unasked.
fn check_json(headers: &HeaderMap) -> Answered<()> {
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let given = given.to_str().unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || (essence.starts_with("application/") && essence.ends_with("+json"));
    if is_json || essence.is_empty() {
        return Ok(());
    }
    let message = format!("Content-Type '{given}' is not supported");
    Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
}

async fn whole<S: Send + Sync>(request: Request, state: &S) -> Answered<Bytes> {
    let too_large = || {
        let message = format!("The request body is over the limit of {BODY_BYTES_MAX} bytes");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if usize::try_from(request.body().size_hint().lower()).is_ok_and(|bytes| bytes > BODY_BYTES_MAX)
    {
        return Err(too_large());
    }
    Bytes::from_request(request, state).await.map_err(|rejection| {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return too_large();
        }
        Failure::unreadable("The request body did not arrive whole")
    })
}

fn is_absent(bytes: &[u8]) -> bool {
    matches!(bytes.trim_ascii(), b"" | b"null")
}

/// Without this, a list would be taken as an object's members in order.
fn check_object(bytes: &[u8]) -> Answered<()> {
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return Ok(());
    }
    Err(not_json(&"an object is expected"))
}

fn missing_body() -> Failure {
    Failure::unreadable("Required request body is missing")
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Answered<T> {
    serde_json::from_slice(bytes).map_err(|error| not_json(&error))
}

/// A body that is no JSON, or not of the type it ought to have.
pub(crate) fn not_json(error: &dyn std::fmt::Display) -> Failure {
    Failure::unreadable(format!("JSON parse error: {error}"))
}

/// Parts of the path.
pub(crate) struct At<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for At<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Answered<At<T>> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(at)) => Ok(At(at)),
            Err(rejection) => Err(Failure::unreadable(rejection.body_text())),
        }
    }
}

/// The parameters of a query.
pub(crate) struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Answered<Params> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(given)) => Ok(Params(given)),
            Err(rejection) => Err(Failure::unreadable(rejection.body_text())),
        }
    }
}

impl Params {
    /// The first of a name; what is empty is not there.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        let mut matching = self.0.iter().filter(|(key, value)| key == name && !value.is_empty());
        matching.next().map(|(_, value)| value.as_str())
    }

    /// Every one of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A text; empty if it was left out.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// A text that must be there.
    pub(crate) fn required(&self, name: &str) -> Answered<&str> {
        self.find(name).ok_or_else(|| {
            Failure::unreadable(format!(
                "Required request parameter '{name}' for method parameter type String is not present"
            ))
        })
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Answered<Option<i64>> {
        let Some(text) = self.find(name) else { return Ok(None) };
        text.trim().parse().map(Some).map_err(|_| ill_typed(text, "long"))
    }

    /// A whole number that is not negative.
    pub(crate) fn count(&self, name: &str, default: usize) -> Answered<usize> {
        let Some(number) = self.number(name)? else { return Ok(default) };
        usize::try_from(number)
            .map_err(|_| Failure::invalid(format!("{name}: {number} must not be negative")))
    }

    /// Yes or no.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Answered<bool> {
        let Some(text) = self.find(name) else { return Ok(default) };
        match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(true),
            "false" | "off" | "no" | "0" => Ok(false),
            _ => Err(ill_typed(text, "boolean")),
        }
    }
}

/// A parameter of the wrong type.
pub(crate) fn ill_typed(text: &str, kind: &str) -> Failure {
    Failure::unreadable(format!("Failed to convert value '{text}' to required type '{kind}'"))
}

/// The key of a workflow's id. Any other text names no workflow.
pub(crate) fn workflow_key(id: &str) -> Answered<Key> {
    key_of(id).ok_or_else(|| no_workflow(id))
}

/// What is said of a workflow that is not there.
pub(crate) fn no_workflow(id: &str) -> Failure {
    Failure::not_found(format!("No such workflow found by id: {id}"))
}

/// The key of a task's id, where an update is for it.
pub(crate) fn task_key(id: &str) -> Answered<Key> {
    key_of(id).ok_or_else(|| Failure::not_found(format!("No such task found by id: {id}")))
}

/// A status that an update may give a task.
pub(crate) fn update_status(name: &str) -> Answered<TaskStatus> {
    let status = TaskStatus::named(name).filter(|status| match status {
        TaskStatus::InProgress
        | TaskStatus::Failed
        | TaskStatus::FailedWithTerminalError
        | TaskStatus::Completed
        | TaskStatus::Canceled => true,
        TaskStatus::Scheduled
        | TaskStatus::CompletedWithErrors
        | TaskStatus::TimedOut
        | TaskStatus::Skipped => false,
    });
    status.ok_or_else(|| ill_typed(name, "TaskResult.Status"))
}

/// A JSON object in a body; empty if it is null.
pub(crate) fn object_text(given: Option<&RawValue>) -> Answered<windlass_record::command::Bytes> {
    match given.map(RawValue::get) {
        None | Some("null") => Ok(windlass_record::command::Bytes::default()),
        Some(text) if text.starts_with('{') => Ok(text.as_bytes().into()),
        Some(_) => Err(not_json(&"an object is expected")),
    }
}
