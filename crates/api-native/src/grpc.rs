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
use prost::Message;
use windlass_gateway::Gateway;

use crate::limit::message_bytes_max;
use crate::v1;
use crate::v1::windlass_server::{SERVICE_NAME, WindlassServer};

/// The service under its path.
pub fn router(gateway: Gateway) -> Router {
    let bytes_max = message_bytes_max(&gateway.limits().bounds);
    let server =
        WindlassServer::new(service::Service::new(gateway)).max_decoding_message_size(bytes_max);
    Router::new().route_service(&format!("/{SERVICE_NAME}/{{*rpc}}"), server)
}

/// Reads bytes as each message that carries something of a client's own making, and makes the
/// commands of it. Everything a fuzzer wants: no server, no answer, and no panic whatever comes.
pub fn read_any(bytes: &[u8]) {
    // What is refused is as good as what is taken: only a panic counts.
    if let Ok(given) = v1::CreateJobsRequest::decode(bytes) {
        given.jobs.into_iter().for_each(|job| drop(ask::create(job)));
    }
    if let Ok(given) = v1::WorkerMessage::decode(bytes) {
        given.results.into_iter().for_each(|result| drop(ask::result(result)));
    }
    if let Ok(given) = v1::PutDocumentsRequest::decode(bytes) {
        given.documents.into_iter().for_each(|write| drop(ask::document_write(write)));
    }
    if let Ok(given) = v1::ConfigureQueueRequest::decode(bytes) {
        drop(ask::configure_queue(given));
    }
    if let Ok(given) = v1::ConfigureLimitRequest::decode(bytes) {
        drop(ask::configure_limit(given));
    }
    if let Ok(given) = v1::ListJobsRequest::decode(bytes) {
        drop(ask::job_filter(given));
    }
}
