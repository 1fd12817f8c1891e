//! The native face: gRPC and REST of Windlass on one port.
//!
//! Like every face it maps names and types, checks shape, hands commands to the gateway and maps
//! the answers back; it holds no rule of the domain.
//!
//! Reading order: [`error`] is what both wires say when something is refused; [`grpc`] is
//! `windlass.v1.Windlass` (`proto/windlass/v1/windlass.proto`) with the worker's stream in
//! `grpc::work`; [`rest`] is `/windlass/v1` with its OpenAPI document; [`limit`] names the limits
//! of the wires. `words` is the little that both wires share.
//!
//! Absent on purpose: anything about jobs that is not in the request or the answer.

mod activation;
mod batch;
pub mod error;
pub mod grpc;
pub mod limit;
pub mod rest;
mod words;

/// The messages and the service, generated from the proto file by `tools/codegen`.
#[path = "generated/windlass.v1.rs"]
pub mod v1;

use axum::Router;
use windlass_gateway::Gateway;

/// Both wires, to be served on one port. Paths outside are not answered.
pub fn router(gateway: &Gateway) -> Router {
    grpc::router(gateway.clone()).merge(rest::router(gateway.clone()))
}

/// The version that answers carry.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
