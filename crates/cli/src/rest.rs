//! The server's APIs that speak JSON: Camunda's for processes, version 2, Airbyte's for connections, and the
//! native one, as far as commands here use them. Keys are texts there, but for Airbyte's.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::args::Online;
use crate::failure::Failure;

/// What is asked for at once.
const PAGE: usize = 500;
/// How a server says that it does not know a path, with and without this API.
const UNKNOWN_PATHS: [&str; 2] = ["No endpoint ", "nothing is at "];
/// How it says that it keeps no history, so that nothing can be searched.
const HISTORY_OFF: &str = "secondary storage";
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Between the parts of a deployment; [`deployment`] makes sure that no file holds it.
const BOUNDARY: &str = "windlass-deployment";

/// A way to it.
pub(crate) struct Rest {
    client: Client<HttpConnector, Full<Bytes>>,
    address: String,
    prefix: &'static str,
    /// What is said about who asks, if anything is.
    authorization: Option<String>,
}

/// A file of a deployment.
pub(crate) struct Resource {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

impl Rest {
    /// To the one for processes.
    pub(crate) fn new(online: &Online) -> Self {
        Self::below(online, "v2")
    }

    /// To the native one.
    pub(crate) fn native(online: &Online) -> Self {
        Self::below(online, "windlass/v1")
    }

    /// To Airbyte's, for a client with a secret where the server has a list of them.
    pub(crate) fn airbyte(online: &Online, client: Option<(&str, &str)>) -> Self {
        let basic = |(id, secret)| format!("Basic {}", BASE64.encode(format!("{id}:{secret}")));
        Self { authorization: client.map(basic), ..Self::below(online, "api/public/v1") }
    }

    fn below(online: &Online, prefix: &'static str) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let address = online.address.trim_end_matches('/').to_owned();
        Self { client, address, prefix, authorization: None }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send("POST", path, Some(Body::json(body))).await
    }

    /// With the version that the thing must have; 0 is "must not exist".
    pub(crate) async fn put(
        &self,
        path: &str,
        body: &Value,
        expect: Option<u64>,
    ) -> Result<Value, Failure> {
        self.send_if("PUT", path, Some(Body::json(body)), expect).await
    }

    /// The same.
    pub(crate) async fn delete(&self, path: &str, expect: Option<u64>) -> Result<Value, Failure> {
        self.send_if("DELETE", path, None, expect).await
    }

    pub(crate) async fn deploy(
        &self,
        tenant: &str,
        resources: &[Resource],
    ) -> Result<Value, Failure> {
        self.send("POST", "deployments", Some(deployment(tenant, resources))).await
    }

    /// All that a search finds, or the first so many. `what` is its path without `/search`, and may
    /// have a query behind it.
    pub(crate) async fn search(
        &self,
        what: &str,
        filter: &Value,
        sort: &Value,
        at_most: usize,
    ) -> Result<Vec<Value>, Failure> {
        let (what, query) = what.split_once('?').unwrap_or((what, ""));
        let path = format!("{what}/search?{query}");
        let path = path.trim_end_matches('?');
        let mut items = Vec::new();
        while items.len() < at_most {
            let limit = PAGE.min(at_most - items.len());
            let page = json!({ "from": items.len(), "limit": limit });
            let body = json!({ "filter": filter, "sort": sort, "page": page });
            let mut answer = self.post(path, &body).await?;
            let found = match answer.get_mut("items").map(Value::take) {
                Some(Value::Array(found)) => found,
                Some(_) | None => return Err(Failure::new("the answer of a search has no items")),
            };
            let is_last = found.len() < limit;
            items.extend(found);
            if is_last {
                break;
            }
        }
        Ok(items)
    }

    async fn send(&self, method: &str, path: &str, body: Option<Body>) -> Result<Value, Failure> {
        self.send_if(method, path, body, None).await
    }

    async fn send_if(
        &self,
        method: &str,
        path: &str,
        body: Option<Body>,
        expect: Option<u64>,
    ) -> Result<Value, Failure> {
        let uri = format!("{}/{}/{path}", self.address, self.prefix);
        let mut request = http::Request::builder().method(method).uri(&uri);
        request = match expect {
            None => request,
            Some(0) => request.header("if-none-match", "*"),
            Some(version) => request.header("if-match", format!("\"{version}\"")),
        };
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        if let Some(body) = &body {
            request = request.header("content-type", &body.kind);
        }
        let bytes = body.map(|body| body.bytes).unwrap_or_default();
        let request = request
            .body(Full::new(bytes))
            .map_err(|_| Failure::new(format!("{uri} is not an address")))?;
        let unreachable = |error: &dyn std::error::Error| Failure::unreachable(error);
        let answer = self.client.request(request).await.map_err(|error| unreachable(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| unreachable(&*error))?.to_bytes();
        if !status.is_success() {
            return Err(problem(status.as_u16(), &body));
        }
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body)
            .map_err(|error| Failure::new(format!("failed to read the answer of {uri}: {error}")))
    }
}

/// What is sent.
struct Body {
    kind: String,
    bytes: Bytes,
}

impl Body {
    fn json(value: &Value) -> Self {
        Self { kind: "application/json".to_owned(), bytes: value.to_string().into() }
    }
}

/// A text as a part of a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                // Writing to a string does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// A refusal in the server's words: a problem as RFC 9457 has it.
fn problem(status: u16, body: &[u8]) -> Failure {
    let said: Value = serde_json::from_slice(body).unwrap_or_default();
    let title = text(&said, "title");
    let detail = text(&said, "detail");
    let message = match (title.is_empty(), detail.is_empty()) {
        (_, false) => detail.to_owned(),
        (false, true) => title.to_owned(),
        (true, true) => format!("the server answered {status}"),
    };
    match status {
        405 | 501 => Failure::unknown_call(message),
        404 if UNKNOWN_PATHS.iter().any(|words| detail.starts_with(words)) => {
            Failure::unknown_call(message)
        }
        403 if detail.contains(HISTORY_OFF) => Failure::history_off(message),
        404 => Failure::not_found(message),
        429 | 503 => Failure::new(message)
            .hint("`windlass status` says what the server accepts at present; try again later"),
        _ => Failure::new(message),
    }
}

fn deployment(tenant: &str, resources: &[Resource]) -> Body {
    let mut boundary = BOUNDARY.to_owned();
    while resources.iter().any(|resource| holds(&resource.content, boundary.as_bytes())) {
        boundary.push('-');
    }
    let mut bytes = Vec::new();
    for resource in resources {
        let name = resource.name.replace(['"', '\r', '\n'], "_");
        bytes.extend_from_slice(
            format!(
                "--{boundary}\r\ncontent-disposition: form-data; name=\"resources\"; \
                 filename=\"{name}\"\r\ncontent-type: application/octet-stream\r\n\r\n"
            )
            .as_bytes(),
        );
        bytes.extend_from_slice(&resource.content);
        bytes.extend_from_slice(b"\r\n");
    }
    if !tenant.is_empty() {
        let part = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"tenantId\"\r\n\r\n{tenant}\r\n"
        );
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Body { kind: format!("multipart/form-data; boundary={boundary}"), bytes: bytes.into() }
}

fn holds(content: &[u8], needle: &[u8]) -> bool {
    content.windows(needle.len()).any(|window| window == needle)
}

/// A text field; empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A field as people read it: numbers and flags too.
pub(crate) fn shown(value: &Value, field: &str) -> String {
    match value.get(field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_holds_the_boundary() {
        let content = format!("--{BOUNDARY}\r\n").into_bytes();
        let body = deployment("", &[Resource { name: "a\"b.bpmn".to_owned(), content }]);
        assert_eq!(body.kind, format!("multipart/form-data; boundary={BOUNDARY}-"));
        let text = String::from_utf8_lossy(&body.bytes).into_owned();
        assert!(text.contains("filename=\"a_b.bpmn\""), "{text}");
        assert!(text.ends_with(&format!("--{BOUNDARY}---\r\n")), "{text}");
    }

    #[test]
    fn parts_of_a_path_are_encoded() {
        assert_eq!(encoded("a/b ü*?"), "a%2Fb%20%C3%BC%2A%3F");
        assert_eq!(encoded("Az09-._~"), "Az09-._~");
    }

    #[test]
    fn refusals_are_told_in_the_servers_words() {
        let said = br#"{"title": "INVALID_ARGUMENT", "detail": "no process", "status": 400}"#;
        assert_eq!(problem(400, said).to_string(), "no process");
        assert_eq!(problem(500, b"<html>").to_string(), "the server answered 500");
    }
}
