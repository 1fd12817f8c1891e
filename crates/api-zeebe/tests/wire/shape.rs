//! What is not about jobs: health, topology, limits of messages, calls that are not there yet.

use tonic::Code;

use crate::common::{Bench, complete};
use crate::health_v1::HealthCheckRequest;
use crate::health_v1::health_check_response::ServingStatus;
use crate::health_v1::health_client::HealthClient;
use crate::protocol as p;

#[tokio::test]
async fn the_health_service_knows_two_names() {
    let bench = Bench::start().await;
    let mut health = HealthClient::new(bench.channel().await);
    for service in ["", "gateway_protocol.Gateway"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let answer = health.check(request.clone()).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
        let mut watched = health.watch(request).await.unwrap().into_inner();
        let answer = watched.message().await.unwrap().unwrap();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service}");
    }
    let request = HealthCheckRequest { service: "other".to_owned() };
    let status = health.check(request.clone()).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let mut watched = health.watch(request).await.unwrap().into_inner();
    let answer = watched.message().await.unwrap().unwrap();
    assert_eq!(answer.status(), ServingStatus::ServiceUnknown);
}

#[tokio::test]
async fn a_watcher_hears_of_a_shutdown() {
    let bench = Bench::start().await;
    let mut health = HealthClient::new(bench.channel().await);
    let request = HealthCheckRequest { service: String::new() };
    let mut watched = health.watch(request).await.unwrap().into_inner();
    watched.message().await.unwrap().unwrap();
    let Bench { server, .. } = bench;
    let stopping = tokio::spawn(server.stop());
    let answer = watched.message().await.unwrap().unwrap();
    assert_eq!(answer.status(), ServingStatus::NotServing);
    assert!(watched.message().await.unwrap().is_none());
    drop((watched, health));
    stopping.await.unwrap();
}

#[tokio::test]
async fn the_topology_is_one_broker_that_leads() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let topology = client.topology(p::TopologyRequest {}).await.unwrap().into_inner();
    let sizes = (topology.cluster_size, topology.partitions_count, topology.replication_factor);
    assert_eq!(sizes, (1, 1, 1));
    assert!(topology.gateway_version.starts_with("8."), "{}", topology.gateway_version);
    let [broker] = topology.brokers.as_slice() else { panic!("{topology:?}") };
    let address = format!("{}:{}", broker.host, broker.port);
    assert_eq!(address, bench.server.zeebe_address().unwrap().to_string());
    let [partition] = broker.partitions.as_slice() else { panic!("{broker:?}") };
    assert_eq!(partition.partition_id, 1);
    assert_eq!(partition.role(), p::partition::PartitionBrokerRole::Leader);
    assert_eq!(partition.health(), p::partition::PartitionBrokerHealth::Healthy);
}

#[tokio::test]
async fn a_message_over_four_mebibytes_is_resource_exhausted() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let key = bench.create("t").await;
    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat(4 << 20));
    let request = p::CompleteJobRequest { job_key: key, variables, ..Default::default() };
    let status = client.complete_job(request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    let variables = format!("{{\"a\":\"{}\"}}", "x".repeat((4 << 20) - 100));
    let request = p::CompleteJobRequest { job_key: key, variables, ..Default::default() };
    client.complete_job(request).await.unwrap();
    assert_eq!(complete(&mut client, key).await.unwrap_err().code(), Code::NotFound);
}

/// The calls that are not there, each with a sentence.
#[tokio::test]
async fn what_is_not_there_yet_says_so() {
    let bench = Bench::start().await;
    let mut client = bench.client().await;
    let assign = p::AssignProcessInstanceBusinessIdRequest::default();
    for status in [
        client.assign_process_instance_business_id(assign).await.map(|_| ()).unwrap_err(),
        client
            .evaluate_conditional(p::EvaluateConditionalRequest::default())
            .await
            .map(|_| ())
            .unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::Unimplemented, "{status}");
        assert!(status.message().contains(" is not supported yet: "), "{status}");
    }
}
