//! Topology and status: one broker with one partition, which leads and is well.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use serde::Serialize;

use crate::protocol as p;
use crate::protocol::partition::{PartitionBrokerHealth, PartitionBrokerRole};
use crate::rest::Face;
use crate::rest::extract::Shown;
use crate::rest::problem::{Answered, Problem};
use crate::rest::shape::some_text;
use crate::topology;

pub(super) fn routes() -> Router<Face> {
    Router::new().route("/topology", get(show)).route("/status", get(status))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Topology {
    brokers: Vec<Broker>,
    cluster_id: Option<String>,
    cluster_size: i32,
    partitions_count: i32,
    replication_factor: i32,
    gateway_version: String,
    last_completed_change_id: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Broker {
    node_id: i32,
    broker_id: String,
    host: String,
    port: i32,
    partitions: Vec<Partition>,
    version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partition {
    partition_id: i32,
    role: &'static str,
    health: &'static str,
    state: &'static str,
}

/// The cluster has never been changed.
const NO_CHANGE: &str = "-1";

async fn show(State(face): State<Face>) -> Answered<Shown<Topology>> {
    let of = topology::topology(&face.gateway, face.address).await?;
    Ok(Shown(Topology {
        brokers: of.brokers.into_iter().map(broker).collect(),
        cluster_id: some_text(of.cluster_id),
        cluster_size: of.cluster_size,
        partitions_count: of.partitions_count,
        replication_factor: of.replication_factor,
        gateway_version: of.gateway_version,
        last_completed_change_id: NO_CHANGE,
    }))
}

fn broker(of: p::BrokerInfo) -> Broker {
    let partitions = of.partitions.into_iter().map(|partition| Partition {
        partition_id: partition.partition_id,
        role: match partition.role() {
            PartitionBrokerRole::Leader => "leader",
            PartitionBrokerRole::Follower => "follower",
            PartitionBrokerRole::Inactive => "inactive",
        },
        health: match partition.health() {
            PartitionBrokerHealth::Healthy => "healthy",
            PartitionBrokerHealth::Unhealthy => "unhealthy",
            PartitionBrokerHealth::Dead => "dead",
        },
        state: "active",
    });
    Broker {
        node_id: of.node_id,
        broker_id: of.broker_id,
        host: of.host,
        port: of.port,
        partitions: partitions.collect(),
        version: of.version,
    }
}

/// Whether the partition answers.
async fn status(State(face): State<Face>) -> Answered<StatusCode> {
    let answers = face.gateway.status().await.is_ok();
    if answers && !face.gateway.is_shutting_down() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let detail = "The partition does not answer, or is going down";
    Err(Problem::plain(StatusCode::SERVICE_UNAVAILABLE, detail))
}
