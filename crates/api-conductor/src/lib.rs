//! The Conductor face: `/api`, as Conductor's SDKs, workers and tools speak to it.
//!
//! Like every face it maps names and types, checks shape, hands commands to the gateway and maps
//! the answers back; it holds no rule of the domain. JSON of workflows, tasks and definitions is
//! read and written by the kernel and passes through here as text.
//!
//! Reading order: `face` is how everything asks, `extract` reads requests, `answer` writes
//! answers, `failure` is every error, [`limit`] names the limits of the wire. The other files are
//! one per group of endpoints, each with its routes first:
//!
//! | file | endpoints |
//! |---|---|
//! | `metadata` | definitions of workflows and tasks |
//! | `workflow` | workflows started, read, controlled |
//! | `bulk` | the same for many |
//! | `run` | workflows run and signalled, answered with what became of them |
//! | `mock` | workflows run with made-up results |
//! | `poll` | tasks handed out |
//! | `task` | tasks read and updated, their logs |
//! | `queue` | how much waits, and who asks for it (`pollers`) |
//! | `search` | what there is and was (`past`) |
//! | `scheduler` | schedules that start workflows (`condition`) |
//! | `event` | event handlers |
//! | `admin` | the rest |
//!
//! Absent on purpose: users, groups, permissions, tags, schemas, secrets, prompts, integrations,
//! external payload storage, and gRPC, which the original has switched off.

mod admin;
mod answer;
mod bulk;
mod condition;
mod event;
mod extract;
mod face;
mod failure;
pub mod limit;
mod metadata;
mod mock;
mod past;
mod poll;
mod pollers;
mod queue;
mod run;
mod scheduler;
mod search;
mod task;
mod workflow;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, OriginalUri};
use axum::http::{Method, StatusCode};
use axum::routing::any;
use windlass_gateway::Gateway;

use face::Face;
use failure::Failure;
use pollers::Pollers;

/// Where everything stands, but for a few pages.
pub const PREFIX: &str = "/api";

/// All routes.
pub fn router(gateway: &Gateway) -> Router {
    let face = Face { gateway: gateway.clone(), pollers: Arc::new(Pollers::default()) };
    let routes = Router::new()
        .merge(metadata::routes())
        .merge(workflow::routes())
        .merge(bulk::routes())
        .merge(run::routes())
        .merge(mock::routes())
        .merge(poll::routes())
        .merge(task::routes())
        .merge(queue::routes())
        .merge(event::routes())
        .merge(search::routes())
        .merge(scheduler::routes())
        .merge(admin::routes())
        .fallback(no_such_path);
    Router::new()
        .nest(PREFIX, routes)
        // The paths that nesting leaves out.
        .route(&format!("{PREFIX}/"), any(no_such_path))
        .route("/actuator", any(no_such_path))
        .route("/actuator/{*rest}", any(no_such_path))
        .merge(admin::pages())
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(limit::BODY_BYTES_MAX))
        .with_state(face)
}

async fn no_such_path(OriginalUri(uri): OriginalUri) -> Failure {
    let path = uri.path().trim_start_matches('/');
    Failure::not_found(format!("No static resource {path}."))
}

async fn wrong_method(method: Method) -> Failure {
    let message = format!("Request method '{method}' is not supported");
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, message)
}
