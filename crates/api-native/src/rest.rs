//! REST: JSON under `/windlass/v1`.
//!
//! `operation` is what an operation is; `jobs`, `work`, `queues`, `documents` and `schedules` each list
//! theirs beside their handlers. The router and the OpenAPI document are both made of these lists.
//! `schema` declares types for serde and the document at once; `input` and `output` are these
//! types with their mapping, and `schedule` those of schedules; `extract` reads requests; `problem` is every error.

mod documents;
mod extract;
mod input;
mod jobs;
mod operation;
mod output;
mod problem;
mod queues;
mod schedule;
mod schedules;
mod schema;
mod work;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, OriginalUri};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use windlass_gateway::Gateway;

use crate::limit::message_bytes_max;
use operation::{At, Operation};
use problem::Failure;

/// Where everything stands.
const PREFIX: &str = "/windlass/v1";

/// What cannot be.
const MISMATCH: &str = "the partition answers a command with its own kind of answer";

/// Reads bytes as the body of a create and of a batch, and makes the commands of it. Everything a
/// fuzzer wants: no server, no answer, and no panic whatever comes.
pub fn read_any(bytes: &[u8]) {
    // What is refused is as good as what is taken: only a panic counts.
    if let Ok(schema::Object(job)) = serde_json::from_slice::<schema::Object<input::NewJob>>(bytes)
    {
        drop(job.command());
    }
    if let Ok(schema::Object(batch)) =
        serde_json::from_slice::<schema::Object<input::NewJobs>>(bytes)
    {
        batch.jobs.into_iter().for_each(|schema::Object(job)| drop(job.command()));
    }
}

fn operations() -> Vec<Operation> {
    let mut operations = jobs::operations();
    operations.extend(work::operations());
    operations.extend(queues::operations());
    operations.extend(documents::operations());
    operations.extend(schedules::operations());
    operations.push(backup());
    operations
}

/// The server has the store, so it makes the stream; see `windlass_server::backup`.
fn backup() -> Operation {
    let at = At { method: Method::GET, path: "/backup", id: "getBackup", tag: "Server" };
    let stream = json!({
        "description": "The state of now as one checksummed stream, for `windlass restore`. One that \
                        was cut short has no trailer, and `windlass restore --check` says so.",
        "content": {
            "application/octet-stream": { "schema": { "type": "string", "format": "binary" } },
        },
    });
    Operation::of_the_server(at, "Back the state up while work goes on")
        .other_answer(200, stream)
        .problems(&[429])
}

/// The OpenAPI document.
pub fn openapi() -> Value {
    let mut document = operation::document(&operations());
    // In an order of its own, so that the contract changes only where it means something else.
    document.sort_all_objects();
    document
}

/// All routes under their prefix.
pub fn router(gateway: Gateway) -> Router {
    let document: Arc<str> = openapi().to_string().into();
    let routes = operation::router(operations())
        .route("/openapi.json", get(|| async move { document_page(&document) }))
        .method_not_allowed_fallback(wrong_method)
        .fallback(|OriginalUri(uri): OriginalUri| async move { no_such_path(&uri) })
        .layer(DefaultBodyLimit::max(message_bytes_max(&gateway.limits().bounds)))
        .with_state(gateway);
    Router::new().nest(PREFIX, routes)
}

fn document_page(document: &str) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document.to_owned()).into_response()
}

/// The answer to a path that nobody has.
pub fn no_such_path(uri: &Uri) -> Response {
    let detail = format!("nothing is at {}", uri.path());
    Failure::new(StatusCode::NOT_FOUND, "no-such-path", detail).into_response()
}

async fn wrong_method(method: Method, OriginalUri(uri): OriginalUri) -> Response {
    let detail = format!("{} does not take {method}", uri.path());
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail).into_response()
}
