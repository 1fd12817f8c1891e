//! gRPC: `windlass.v1.Windlass`.
//!
//! [`service`] has one function per call; [`work`] is the worker's stream; [`ask`] maps messages
//! to commands and [`show`] maps views to messages; [`status`] maps errors.

mod ask;
mod service;
mod show;
mod status;
mod work;

use axum::Router;
use windlass_gateway::Gateway;

use crate::limit::MESSAGE_BYTES_MAX;
use crate::v1::windlass_server::{SERVICE_NAME, WindlassServer};

/// The service under its path.
pub fn router(gateway: Gateway) -> Router {
    let server = WindlassServer::new(service::Service::new(gateway))
        .max_decoding_message_size(MESSAGE_BYTES_MAX);
    Router::new().route_service(&format!("/{SERVICE_NAME}/{{*rpc}}"), server)
}
