//! The read model behind a running server: what ran can be searched, after a restart too, and
//! whatever is wrong with its file.

use std::time::Duration;

use windlass_gateway::read_model::names::{FlowState, JobState};
use windlass_gateway::read_model::search::{
    ElementInstance, Job, ProcessDefinition, ProcessInstance, Variable,
};
use windlass_gateway::read_model::{Entity, Found, Search};
use windlass_gateway::record::command::{Command, CompleteJob, Lease, QueueName};
use windlass_gateway::record::flow::{
    CreateInstance, DeployResources, FlowAnswer, FlowCommand, ProcessReference, job_queue,
};
use windlass_gateway::request::{Answer, Wanted};
use windlass_gateway::{Gateway, PollRequest, SearchError};
use windlass_server::settings::Switch;
use windlass_server::start;

use crate::common::{Bench, PATIENCE, config};

const TENANT: &str = "<default>";

const PROCESS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <bpmn:process id="order" name="Order" isExecutable="true">
    <bpmn:startEvent id="start"><bpmn:outgoing>a</bpmn:outgoing></bpmn:startEvent>
    <bpmn:sequenceFlow id="a" sourceRef="start" targetRef="pay"/>
    <bpmn:serviceTask id="pay" name="Pay">
      <bpmn:extensionElements><zeebe:taskDefinition type="pay"/></bpmn:extensionElements>
      <bpmn:incoming>a</bpmn:incoming><bpmn:outgoing>b</bpmn:outgoing>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="b" sourceRef="pay" targetRef="end"/>
    <bpmn:endEvent id="end"><bpmn:incoming>b</bpmn:incoming></bpmn:endEvent>
  </bpmn:process>
</bpmn:definitions>"#;

async fn deploy(gateway: &Gateway) {
    let resources = vec![("order.bpmn".into(), PROCESS.as_bytes().into())];
    let command = DeployResources { tenant: TENANT.into(), resources };
    gateway.command(Command::Flow(FlowCommand::DeployResources(command))).await.unwrap();
}

async fn begin(gateway: &Gateway) -> u64 {
    let command = CreateInstance {
        tenant: TENANT.into(),
        process: ProcessReference::Latest("order".into()),
        variables: b"{\"amount\": 17}".as_slice().into(),
        start_at: Vec::new(),
        business_id: "".into(),
        tags: Vec::new(),
        awaited: false,
    };
    let command = Command::Flow(FlowCommand::CreateInstance(command));
    let answer = gateway.command(command).await.unwrap();
    let Answer::Flow(FlowAnswer::InstanceCreated { key, .. }) = answer else {
        panic!("{answer:?}");
    };
    key.raw()
}

async fn work(gateway: &Gateway) {
    let queue = QueueName { tenant: TENANT.into(), queue: job_queue("pay") };
    let wanted =
        Wanted { queues: vec![queue], worker: "ann".into(), lease_ms: 60_000, with_token: false };
    let request = PollRequest { wanted, jobs_max: 1, bytes_max: u64::MAX, wait_ms: 20_000 };
    let job = gateway.poll(request).await.unwrap().remove(0);
    let command = CompleteJob {
        lease: Lease { key: job.key, activation: None },
        result: b"{\"paid\": true}".as_slice().into(),
        documents: Vec::new(),
    };
    gateway.result(Command::CompleteJob(command)).await.unwrap();
}

async fn all<E: Entity>(gateway: &Gateway) -> Found<E> {
    let searches = gateway.searches_after_now(PATIENCE).await.unwrap();
    searches.search::<E>(Search::default()).await.unwrap()
}

/// An instance ends some rounds after its last job.
async fn wait_completed(gateway: &Gateway, instance: u64) -> ProcessInstance {
    let began = std::time::Instant::now();
    loop {
        let searches = gateway.searches_after_now(PATIENCE).await.unwrap();
        let found = searches.get::<ProcessInstance>(instance).await.unwrap().unwrap();
        if found.state == FlowState::Completed {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_ran_can_be_searched() {
    let bench = Bench::start().await;
    let gateway = bench.server.gateway();
    deploy(gateway).await;
    let instance = begin(gateway).await;
    let waits = begin(gateway).await;
    work(gateway).await;
    let found = wait_completed(gateway, instance).await;
    assert_eq!((found.process_id.as_str(), found.version), ("order", 1));

    let definitions = all::<ProcessDefinition>(gateway).await;
    assert_eq!(definitions.items[0].resource_name.as_deref(), Some("order.bpmn"));
    let searches = gateway.searches().unwrap();
    let (name, xml) = searches.resource(definitions.items[0].key).await.unwrap().unwrap();
    assert_eq!((name.as_str(), xml.as_slice()), ("order.bpmn", PROCESS.as_bytes()));

    let elements = all::<ElementInstance>(gateway).await;
    let of_first = elements.items.iter().filter(|it| it.instance == instance);
    let of_first: Vec<_> =
        of_first.map(|it| (it.element_id.as_str(), it.element_type.as_str(), it.state)).collect();
    assert_eq!(
        of_first,
        [
            ("start", "START_EVENT", FlowState::Completed),
            ("pay", "SERVICE_TASK", FlowState::Completed),
            ("end", "END_EVENT", FlowState::Completed),
        ]
    );
    let jobs = all::<Job>(gateway).await;
    let seen: Vec<_> = jobs.items.iter().map(|it| (it.instance, it.state)).collect();
    assert_eq!(seen, [(Some(instance), JobState::Completed), (Some(waits), JobState::Created)]);
    assert_eq!(jobs.items[0].worker.as_deref(), Some("ann"));
    let variables = all::<Variable>(gateway).await;
    assert_eq!(variables.total, 3);

    let text = bench.http("GET", "/metrics", "").await.text();
    for line in ["windlass_history_gaps 0", "windlass_history_lag_bytes 0"] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[tokio::test]
async fn it_goes_on_after_a_crash_and_without_its_file() {
    let bench = Bench::start().await;
    deploy(bench.server.gateway()).await;
    let first = begin(bench.server.gateway()).await;
    let Bench { server, dir } = bench;
    server.kill().await;

    let server = start(config(&dir)).await.unwrap();
    let second = begin(server.gateway()).await;
    work(server.gateway()).await;
    wait_completed(server.gateway(), first).await;
    let keys: Vec<_> =
        all::<ProcessInstance>(server.gateway()).await.items.iter().map(|it| it.key).collect();
    assert_eq!(keys, [first, second]);
    server.stop().await;

    // A file that is no database is put aside; the log still has everything here.
    std::fs::write(dir.path().join("data/history.db"), [7; 10_000]).unwrap();
    let server = start(config(&dir)).await.unwrap();
    assert_eq!(all::<ProcessInstance>(server.gateway()).await.total, 2);
    assert_eq!(server.gateway().searches().unwrap().status().gaps, 0);
    server.stop().await;
}

#[tokio::test]
async fn without_a_history_there_is_no_file_and_searches_say_so() {
    let bench = Bench::with(|config| config.history = Switch::Off).await;
    assert!(matches!(bench.server.gateway().searches(), Err(SearchError::Off)));
    assert!(!bench.dir.path().join("data/history.db").exists());
}
