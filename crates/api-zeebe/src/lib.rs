//! The Zeebe face: `gateway_protocol.Gateway`, which Zeebe's clients and job workers speak to, and
//! the health service that they ask first. One gRPC port of its own, 26500 by default.
//!
//! Like every face it maps names and types, checks shape, hands commands to the gateway and maps
//! the answers back; it holds no rule of the domain.
//!
//! Reading order: [`queue`] is where jobs of a type wait; [`limit`] names the limits of the wire;
//! `service` has one function per call and hands each to the module of its group:
//!
//! | module | calls |
//! |---|---|
//! | `activate` | ActivateJobs |
//! | `push` | StreamActivatedJobs |
//! | `job` | CompleteJob, FailJob, ThrowError, UpdateJob..., ResolveIncident |
//! | `topology` | Topology |
//! | `resource` | DeployResource, DeployProcess, DeleteResource |
//! | `instance` | Create..., Cancel..., Modify..., Migrate..., AssignProcessInstance..., SetVariables |
//! | `message` | PublishMessage, BroadcastSignal, EvaluateConditional |
//! | `decision` | EvaluateDecision |
//!
//! Shared by them: `handing` is a job as this wire says it; `flow` asks about flows and says why it
//! was refused; `document` checks and filters JSON; `label` checks tags and business ids; `lease` is
//! the lease token; `listener` what a user task's listener says; `change` waits for listeners; `tenant`
//! whose jobs; `refusal` what is said when something about jobs is refused.
//! `health` is `grpc.health.v1.Health`. [`rest`] is Camunda's REST API, over the same functions.
//!
//! Absent on purpose: Camunda's own protocol file (ours is written from field numbers), and
//! multi-tenancy: there is one tenant, `<default>`, as in a broker where it is switched off.

mod activate;
mod change;
mod decision;
mod document;
mod flow;
mod handing;
mod health;
mod instance;
mod job;
mod label;
mod lease;
pub mod limit;
mod listener;
mod message;
mod push;
pub mod queue;
mod refusal;
mod resource;
pub mod rest;
mod service;
mod tenant;
mod topology;

/// The messages and the service, generated from `proto/gateway.proto` by `tools/codegen`.
#[path = "generated/gateway_protocol.rs"]
pub mod protocol;

#[path = "generated/grpc.health.v1.rs"]
mod health_v1;

use std::net::SocketAddr;

use axum::Router;
use axum::http::HeaderValue;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use windlass_gateway::Gateway;

use crate::health_v1::health_server::{self, HealthServer};
use crate::limit::MESSAGE_BYTES_MAX;
use crate::protocol::gateway_server::{self, GatewayServer};

/// The name under which the service is found healthy.
pub const SERVICE_NAME: &str = gateway_server::SERVICE_NAME;

/// Both services under their paths. `address` is where clients are told that they are.
pub fn router(gateway: &Gateway, address: SocketAddr) -> Router {
    let service = service::Service::new(gateway.clone(), address);
    let server = GatewayServer::new(service)
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    let health = HealthServer::new(health::Health::new(gateway.clone()));
    Router::new()
        .route_service(&format!("/{}/{{*rpc}}", gateway_server::SERVICE_NAME), server)
        .route_service(&format!("/{}/{{*rpc}}", health_server::SERVICE_NAME), health)
        .fallback(no_such_service)
        .layer(map_response(too_large))
}

const GRPC_STATUS: &str = "grpc-status";

/// How gRPC says that there is no such service.
async fn no_such_service() -> Response {
    [("content-type", "application/grpc"), (GRPC_STATUS, "12")].into_response()
}

/// A message over the limit is answered with OUT_OF_RANGE by our library and with
/// RESOURCE_EXHAUSTED by the one that clients know. Nothing else here says OUT_OF_RANGE.
async fn too_large(mut response: Response) -> Response {
    const OUT_OF_RANGE: &str = "11";
    const RESOURCE_EXHAUSTED: HeaderValue = HeaderValue::from_static("8");
    if let Some(status) = response.headers_mut().get_mut(GRPC_STATUS)
        && status == OUT_OF_RANGE
    {
        *status = RESOURCE_EXHAUSTED;
    }
    response
}
