//! The Airbyte face: `/api/public/v1`, as Airbyte's SDKs and the orchestrators that call it speak to it, and
//! the vault that seals what is secret in a configuration.
//!
//! Like every face it maps names and types, checks shape, hands commands to the gateway and maps the
//! answers back. Workspaces, definitions, sources, destinations and connections are documents; jobs
//! are jobs of the engine, and what a connection does on time is a schedule of the engine.
//! `docs/airbyte.md` has the fields of all of them. Nothing here starts a connector.
//!
//! Reading order: [`vault`] seals and opens, `secret` says what is one; `document` is what is kept,
//! `face` reads and writes it; `token` is who asks, `extract` reads requests, `answer` writes
//! answers, `failure` is every error, [`limit`] names the limits of the wire. The other files are one
//! per group of endpoints, each with its routes first:
//!
//! | file | endpoints |
//! |---|---|
//! | `workspace` | workspaces |
//! | `definition` | which connectors there are |
//! | `actor` | sources and destinations; `schema` holds configurations against specifications |
//! | `connection` | connections; `timing` is when they sync, `quartz` how clients say it |
//! | `stream` | the streams of a source |
//! | `job` | jobs; `job_list` is their list |
//!
//! `start` is what happens when the server starts. Absent on purpose: users, organizations, permissions,
//! tags of their own, OAuth, declarative definitions, notifications that are sent, and all of
//! `/api/v1` but a token and the health.

mod actor;
mod answer;
mod connection;
mod definition;
mod document;
mod extract;
mod face;
mod failure;
mod job;
mod job_list;
pub mod limit;
mod quartz;
mod schema;
mod secret;
mod start;
mod stream;
mod timing;
mod token;
pub mod vault;
mod workspace;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, OriginalUri};
use axum::http::{Method, StatusCode};
use axum::routing::{any, get};
use windlass_gateway::Gateway;
use windlass_record::policy::RetryPolicy;

use face::Face;
use failure::Failure;
use vault::Vault;

pub use start::Started;

/// Where everything stands.
const PREFIX: &str = "/api/public/v1";

/// Where the original has an API for its own pages. Clients get tokens there too.
const PREFIX_INTERNAL: &str = "/api/v1";

/// The tenant of everybody, unless there is a list of clients.
pub const TENANT_DEFAULT: &str = "default";

/// The workspace that is there from the start.
pub const WORKSPACE_DEFAULT: &str = "00000000-0000-4000-8000-000000000001";

/// Who may ask, and for whose things.
#[derive(Clone)]
pub struct Client {
    /// Its name.
    pub id: String,
    /// What only it knows.
    pub secret: String,
    /// Whose things it works with.
    pub tenant: String,
}

/// How this face works.
pub struct Settings {
    /// What seals secrets; whoever starts connectors opens them with the same.
    pub vault: Arc<Vault>,
    /// Who may ask; nobody is asked who they are when it is empty. At most [`limit::CLIENTS_MAX`].
    pub clients: Vec<Client>,
    /// What follows a failed attempt of a sync.
    pub retry: RetryPolicy,
}

/// Brings schedules in line with their connections, and makes the routes. What a tenant has from the
/// start is written when it first asks for something: a server that nobody uses so is left alone.
pub async fn open(gateway: &Gateway, settings: Settings) -> (Router, Started) {
    let settings = Arc::new(settings);
    let face = Face { gateway: gateway.clone(), settings, seeded: Arc::default() };
    let started = start::start(&face).await;
    (router(face), started)
}

/// The scope in which the secrets of a document are sealed, for [`Vault::open`].
pub fn scope(tenant: &str, kind: &str, id: &str) -> String {
    format!("{tenant}/{kind}/{id}")
}

fn router(face: Face) -> Router {
    let routes = Router::new()
        .merge(token::routes())
        .merge(workspace::routes())
        .merge(definition::routes())
        .merge(actor::routes())
        .merge(connection::routes())
        .merge(stream::routes())
        .merge(job::routes())
        .route("/health", get(health))
        .fallback(no_such_path);
    let internal =
        Router::new().merge(token::routes()).route("/health", get(health)).fallback(no_such_path);
    Router::new()
        .nest(PREFIX, routes)
        .nest(PREFIX_INTERNAL, internal)
        // Where the SDKs ask for a token unless they are told otherwise.
        .merge(token::routes())
        // The paths that nesting leaves out.
        .route(&format!("{PREFIX}/"), any(no_such_path))
        .route(&format!("{PREFIX_INTERNAL}/"), any(no_such_path))
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(limit::BODY_BYTES_MAX))
        .with_state(face)
}

async fn health() -> &'static str {
    "Successful operation"
}

async fn no_such_path(OriginalUri(uri): OriginalUri) -> Failure {
    Failure::no_such_path(uri.path())
}

async fn wrong_method(method: Method, OriginalUri(uri): OriginalUri) -> Failure {
    let detail = format!("Method {method} is not allowed for {}", uri.path());
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail)
}
