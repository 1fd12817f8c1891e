//! Topology: one broker with one partition, which leads and is well.

use std::net::SocketAddr;

use tonic::Status;
use windlass_gateway::Gateway;

use crate::protocol::partition::{PartitionBrokerHealth, PartitionBrokerRole};
use crate::protocol::{BrokerInfo, Partition, TopologyResponse};
use crate::refusal::no_jobs;

/// The version of the protocol that is spoken here: clients read major and minor and choose their
/// words by it.
pub(crate) const GATEWAY_VERSION: &str = "8.9.0";

pub(crate) async fn topology(
    gateway: &Gateway,
    address: SocketAddr,
) -> Result<TopologyResponse, Status> {
    let status = gateway.status().await.map_err(no_jobs)?;
    let partition = Partition {
        partition_id: i32::from(status.partition),
        role: PartitionBrokerRole::Leader.into(),
        health: PartitionBrokerHealth::Healthy.into(),
    };
    let broker = BrokerInfo {
        node_id: 0,
        host: address.ip().to_string(),
        port: i32::from(address.port()),
        partitions: vec![partition],
        version: GATEWAY_VERSION.to_owned(),
        broker_id: "0".to_owned(),
        zone: String::new(),
    };
    Ok(TopologyResponse {
        brokers: vec![broker],
        cluster_size: 1,
        partitions_count: 1,
        replication_factor: 1,
        gateway_version: GATEWAY_VERSION.to_owned(),
        cluster_id: String::new(),
    })
}
