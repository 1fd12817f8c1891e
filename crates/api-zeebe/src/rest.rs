//! Camunda's REST API, version 2: JSON under `/v2`.
//!
//! Most of what can be asked here can be asked over gRPC too, and is handed to the same functions:
//! a file of this folder reads JSON, makes the message of that wire from it, and writes what comes
//! back as JSON. What is refused there with a status is a problem here.
//!
//! `extract` reads requests, `shape` checks what they must have, `problem` is every error; the other
//! files are one per group of operations, each with its routes first:
//!
//! | file | operations |
//! |---|---|
//! | `activation` | jobs handed out |
//! | `job` | jobs completed, failed, changed; incidents resolved |
//! | `deployment` | files deployed, and deleted |
//! | `instance` | process instances created and changed; variables set |
//! | `message` | messages and signals |
//! | `decision` | decisions evaluated |
//! | `user_task` | what people do with user tasks |
//! | `cluster` | topology and status |
//! | `search` | what there is and was: searches, and single items |
//!
//! Absent on purpose: users, groups, roles, tenants, authorizations, documents, batch operations,
//! and whatever else is not about processes and jobs. It answers as an unknown path does.

mod activation;
mod cluster;
mod decision;
mod deployment;
mod extract;
mod instance;
mod job;
mod message;
mod problem;
mod search;
mod shape;
mod user_task;

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{DefaultBodyLimit, OriginalUri};
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn;
use axum::routing::any;
use windlass_gateway::Gateway;

use crate::limit::MESSAGE_BYTES_MAX;
use problem::Problem;

/// Where everything stands.
pub const PREFIX: &str = "/v2";

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Face {
    pub(crate) gateway: Gateway,
    /// Where clients are told that the broker is.
    pub(crate) address: SocketAddr,
}

/// All routes under their prefix. `address` is where clients are told that the broker is.
pub fn router(gateway: &Gateway, address: SocketAddr) -> Router {
    let routes = Router::new()
        .merge(activation::routes())
        .merge(job::routes())
        .merge(deployment::routes())
        .merge(instance::routes())
        .merge(message::routes())
        .merge(decision::routes())
        .merge(user_task::routes())
        .merge(cluster::routes())
        .merge(search::routes())
        .method_not_allowed_fallback(wrong_method)
        .fallback(no_such_path)
        .layer(DefaultBodyLimit::max(MESSAGE_BYTES_MAX))
        .layer(from_fn(problem::write))
        .with_state(Face { gateway: gateway.clone(), address });
    // The one path under the prefix that nesting leaves out.
    let root = any(no_such_path).layer(from_fn(problem::write));
    Router::new().nest(PREFIX, routes).route(&format!("{PREFIX}/"), root)
}

async fn no_such_path(OriginalUri(uri): OriginalUri) -> Problem {
    let path = uri.path().trim_start_matches('/');
    Problem::plain(StatusCode::NOT_FOUND, format!("No endpoint {path}."))
}

async fn wrong_method(method: Method) -> Problem {
    let detail = format!("Method '{method}' is not supported.");
    Problem::plain(StatusCode::METHOD_NOT_ALLOWED, detail)
}
