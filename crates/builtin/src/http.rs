//! Requests over HTTP, as a task of Conductor asks for them.
//!
//! [`destination`] says where they may go, `call` sends them, `location` follows redirects. A request
//! has a connection of its own, so that what is allowed is checked on the very address that is
//! connected to; nothing is remembered between two.

mod call;
pub mod destination;
mod location;

use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};
use serde_json::{Map, Value, json};

use call::Answer;
pub use call::Caller;
pub use destination::{Denied, Network};

/// How the message of a failure begins, unless the task does not say what to ask.
pub const FAILED: &str = "Failed to invoke HTTP task due to: ";

/// How large a response may be.
pub const RESPONSE_BYTES_MAX: usize = 10 << 20;

/// How many redirects are followed.
pub const REDIRECTS_MAX: usize = 5;

/// How long all of it may take, however slowly something comes.
pub const CALL_MAX: Duration = Duration::from_secs(300);

/// How long a wait is, if the task does not say.
const TIMEOUT_DEFAULT: Duration = Duration::from_millis(3_000);

/// Said without [`FAILED`], as Conductor says it.
const NO_URI: &str =
    "Missing HTTP URI.  See documentation for HttpTask for required input parameters";
/// So too.
const NO_METHOD: &str = "No HTTP method specified";

/// How much of a refusal's body is told.
const BODY_TOLD_BYTES_MAX: usize = 2_000;

/// Why a request has no answer to give.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The task does not say what to ask.
    #[error("{0}")]
    Missing(&'static str),
    /// What the task says cannot be asked.
    #[error("{0}")]
    Input(String),
    /// The destination may not be asked.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// Somewhere on the way something failed.
    #[error("failed to {step} {authority}{}", cause(.source.as_ref()))]
    Failed {
        /// What was tried.
        step: &'static str,
        /// With whom.
        authority: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A wait was too long.
    #[error("{authority} did not {step} within {limit_ms} ms")]
    Timeout {
        /// What was waited for.
        step: &'static str,
        /// From whom.
        authority: String,
        /// How long.
        limit_ms: u128,
    },
    /// The response is too large.
    #[error("the response is larger than {} MiB", RESPONSE_BYTES_MAX >> 20)]
    TooLarge,
    /// Somebody sends us around in circles.
    #[error("there were more than {REDIRECTS_MAX} redirects")]
    Redirects,
    /// The answer is a refusal.
    #[error("{0}")]
    Status(String),
}

fn cause(source: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    let mut text = format!(": {source}");
    let mut next = source.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// What a task asks.
#[derive(Debug)]
struct Request {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Vec<u8>,
    connect_timeout: Duration,
    read_timeout: Duration,
}

impl Caller {
    /// The output of a task with this input, or why it has none.
    pub async fn task(&self, input: &Value) -> Result<Value, HttpError> {
        let answer = self.call(request(input)?).await?;
        let body = body(&answer.body);
        if !answer.status.is_success() {
            let told = if body.is_null() {
                "[no body]".to_owned()
            } else {
                format!("{:?}", bounded(text_of(&body)))
            };
            return Err(HttpError::Status(format!("{}: {told}", answer.status)));
        }
        Ok(json!({ "response": {
            "statusCode": answer.status.as_u16(),
            "reasonPhrase": answer.status.canonical_reason().unwrap_or_default(),
            "headers": headers(&answer),
            "body": body,
        } }))
    }
}

fn request(input: &Value) -> Result<Request, HttpError> {
    let input = match input.get("http_request") {
        Some(request @ Value::Object(_)) => request,
        Some(_) | None => input,
    };
    let said = |name: &str| match input.get(name) {
        None | Some(Value::Null) => None,
        Some(value) => Some(text_of(value)),
    };
    let wrong = |what: String| HttpError::Input(what);
    let uri = said("uri").filter(|uri| !uri.is_empty());
    let uri = uri.ok_or(HttpError::Missing(NO_URI))?;
    let uri = location::uri(&uri).ok_or_else(|| wrong(format!("{uri:?} is no HTTP URI")))?;
    let method = said("method").filter(|method| !method.is_empty());
    let method = method.ok_or(HttpError::Missing(NO_METHOD))?;
    let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes())
        .map_err(|_| wrong(format!("{method:?} is no HTTP method")))?;
    let body = match input.get("body") {
        None | Some(Value::Null) => Vec::new(),
        Some(body) => text_of(body).into_bytes(),
    };
    let timeout = |name: &str| match input.get(name).and_then(whole) {
        // Nothing at all is what somebody writes who does not want to wait for ever either.
        None | Some(0) => TIMEOUT_DEFAULT,
        Some(ms) => Duration::from_millis(ms).min(CALL_MAX),
    };
    Ok(Request {
        method,
        uri,
        headers: request_headers(input, !body.is_empty())?,
        body,
        connect_timeout: timeout("connectionTimeOut"),
        read_timeout: timeout("readTimeOut"),
    })
}

fn request_headers(input: &Value, has_body: bool) -> Result<HeaderMap, HttpError> {
    let mut headers = HeaderMap::new();
    let accept = match input.get("accept") {
        Some(Value::Array(kinds)) => kinds.iter().map(text_of).collect::<Vec<_>>().join(", "),
        Some(Value::String(kind)) if !kind.is_empty() => kind.clone(),
        Some(_) | None => "application/json".to_owned(),
    };
    add(&mut headers, ACCEPT.as_str(), &accept)?;
    if has_body {
        let kind = input.get("contentType").and_then(Value::as_str).unwrap_or("application/json");
        add(&mut headers, CONTENT_TYPE.as_str(), kind)?;
    }
    let said = input.get("headers").and_then(Value::as_object);
    for (name, value) in said.into_iter().flatten() {
        // These belong to the connection, which is ours.
        let ours = ["host", "content-length", "transfer-encoding", "connection", "upgrade"];
        if !ours.contains(&name.to_ascii_lowercase().as_str()) && !value.is_null() {
            add(&mut headers, name, &text_of(value))?;
        }
    }
    Ok(headers)
}

fn add(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), HttpError> {
    let wrong = || HttpError::Input(format!("{name:?} is no HTTP header"));
    let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
    headers.insert(header, HeaderValue::from_str(value).map_err(|_| wrong())?);
    Ok(())
}

/// A number of milliseconds, which templates may have made a text of.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn bounded(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(BODY_TOLD_BYTES_MAX));
    text
}

impl HttpError {
    /// What a job fails with.
    #[must_use]
    pub fn message(&self) -> String {
        if self.was_asked() { format!("{FAILED}{self}") } else { self.to_string() }
    }

    /// Whether the task says what to ask.
    pub(crate) fn was_asked(&self) -> bool {
        match self {
            HttpError::Missing(_) => false,
            HttpError::Input(_)
            | HttpError::Denied(_)
            | HttpError::Failed { .. }
            | HttpError::Timeout { .. }
            | HttpError::TooLarge
            | HttpError::Redirects
            | HttpError::Status(_) => true,
        }
    }
}

/// What a body is: an object, a list or a number if it reads as one, else text; none is null.
fn body(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    match serde_json::from_slice(bytes) {
        Ok(value @ (Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::String(_))) => {
            value
        }
        Ok(Value::Null | Value::Bool(_)) | Err(_) => {
            Value::String(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

fn headers(answer: &Answer) -> Value {
    let mut headers = Map::new();
    for name in answer.headers.keys() {
        let values = answer.headers.get_all(name).iter();
        let values = values.map(|value| Value::from(String::from_utf8_lossy(value.as_bytes())));
        headers.insert(name.to_string(), values.collect());
    }
    Value::Object(headers)
}
