//! kill -9 of the real binary in the middle of processes, again and again: every instance whose
//! start was acknowledged comes to its end, no token is lost, and no task is done twice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../api-zeebe/tests/generated/gateway_protocol.rs"]
mod protocol;
#[path = "common/server.rs"]
mod server;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use protocol as p;
use protocol::gateway_client::GatewayClient;
use server::{Server, free_address};
use tonic::transport::Channel;

const ROUNDS: u64 = 5;
const PATIENCE: Duration = Duration::from_secs(120);
const ITEMS: usize = 5;

/// A fork; on one branch a task, on the other a task for each of some items and a timer; a join; a
/// last task.
const PROCESS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <bpmn:process id="forked" isExecutable="true">
    <bpmn:startEvent id="start" />
    <bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="fork" />
    <bpmn:parallelGateway id="fork" />
    <bpmn:sequenceFlow id="f2" sourceRef="fork" targetRef="one" />
    <bpmn:sequenceFlow id="f3" sourceRef="fork" targetRef="each" />
    <bpmn:serviceTask id="one"><bpmn:extensionElements><zeebe:taskDefinition type="work" /></bpmn:extensionElements></bpmn:serviceTask>
    <bpmn:serviceTask id="each">
      <bpmn:extensionElements><zeebe:taskDefinition type="work" /></bpmn:extensionElements>
      <bpmn:multiInstanceLoopCharacteristics>
        <bpmn:extensionElements><zeebe:loopCharacteristics inputCollection="=items" inputElement="item" outputCollection="results" outputElement="=item * 2" /></bpmn:extensionElements>
      </bpmn:multiInstanceLoopCharacteristics>
    </bpmn:serviceTask>
    <bpmn:sequenceFlow id="f4" sourceRef="each" targetRef="wait" />
    <bpmn:intermediateCatchEvent id="wait">
      <bpmn:timerEventDefinition><bpmn:timeDuration>PT0.2S</bpmn:timeDuration></bpmn:timerEventDefinition>
    </bpmn:intermediateCatchEvent>
    <bpmn:sequenceFlow id="f5" sourceRef="one" targetRef="join" />
    <bpmn:sequenceFlow id="f6" sourceRef="wait" targetRef="join" />
    <bpmn:parallelGateway id="join" />
    <bpmn:sequenceFlow id="f7" sourceRef="join" targetRef="last" />
    <bpmn:serviceTask id="last"><bpmn:extensionElements><zeebe:taskDefinition type="work" /></bpmn:extensionElements></bpmn:serviceTask>
    <bpmn:sequenceFlow id="f8" sourceRef="last" targetRef="end" />
    <bpmn:endEvent id="end" />
  </bpmn:process>
</bpmn:definitions>"#;

/// What is done once: an element of an instance, and which item of it.
type Task = (i64, String, i64);

/// What clients were told.
#[derive(Default)]
struct Told {
    /// Acknowledged starts.
    started: HashSet<i64>,
    /// Acknowledged completions, by task and job.
    done: HashMap<Task, i64>,
    /// Jobs whose completion was sent and whose answer died with the server.
    unsure: HashSet<i64>,
    /// What must never happen.
    wrong: Vec<String>,
}

async fn client(address: &str) -> GatewayClient<Channel> {
    const START_MAX: Duration = Duration::from_secs(30);
    let started = Instant::now();
    loop {
        if let Ok(mut client) = GatewayClient::connect(format!("http://{address}")).await
            && client.topology(p::TopologyRequest {}).await.is_ok()
        {
            return client;
        }
        assert!(started.elapsed() < START_MAX, "the server does not answer");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn deploy(mut client: GatewayClient<Channel>) {
    let resource =
        p::Resource { name: "forked.bpmn".to_owned(), content: PROCESS.as_bytes().into() };
    let request = p::DeployResourceRequest { resources: vec![resource], ..Default::default() };
    client.deploy_resource(request).await.unwrap();
}

/// Starts instances until the server is gone.
async fn produce(mut client: GatewayClient<Channel>, told: Arc<Mutex<Told>>) {
    let items: Vec<usize> = (1..=ITEMS).collect();
    loop {
        let request = p::CreateProcessInstanceRequest {
            bpmn_process_id: "forked".to_owned(),
            version: -1,
            variables: format!(r#"{{"items":{items:?}}}"#),
            ..Default::default()
        };
        let Ok(answer) = client.create_process_instance(request).await else { return };
        told.lock().unwrap().started.insert(answer.into_inner().process_instance_key);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Works until the server is gone, or until there is nothing to do for a while when `drain` is set.
async fn work(mut client: GatewayClient<Channel>, told: Arc<Mutex<Told>>, drain: bool) {
    loop {
        let request = p::ActivateJobsRequest {
            r#type: "work".to_owned(),
            worker: "w".to_owned(),
            timeout: 2_000,
            max_jobs_to_activate: 50,
            // Leases that a killed server had given live on for ten seconds.
            request_timeout: if drain { 15_000 } else { 500 },
            ..Default::default()
        };
        let Ok(answer) = client.activate_jobs(request).await else { return };
        let mut answer = answer.into_inner();
        let mut jobs = Vec::new();
        loop {
            match answer.message().await {
                Ok(Some(message)) => jobs.extend(message.jobs),
                Ok(None) => break,
                Err(_) => return,
            }
        }
        if jobs.is_empty() && drain {
            return;
        }
        for job in jobs {
            if !complete(&mut client, &told, job).await {
                return;
            }
        }
    }
}

/// Completes one job; false when the server is gone.
async fn complete(
    client: &mut GatewayClient<Channel>,
    told: &Mutex<Told>,
    job: p::ActivatedJob,
) -> bool {
    let variables: serde_json::Value = serde_json::from_str(&job.variables).unwrap();
    let item = variables.get("loopCounter").and_then(serde_json::Value::as_i64).unwrap_or(0);
    let task = (job.process_instance_key, job.element_id.clone(), item);
    {
        let mut told = told.lock().unwrap();
        if let Some(before) = told.done.get(&task) {
            let wrong = format!("{task:?} was done by job {before} and came again as {}", job.key);
            told.wrong.push(wrong);
        }
        told.unsure.insert(job.key);
    }
    let request = p::CompleteJobRequest {
        job_key: job.key,
        variables: r#"{"seen":true}"#.to_owned(),
        ..Default::default()
    };
    let answered = client.complete_job(request).await;
    let mut told = told.lock().unwrap();
    match answered {
        Ok(_) => {
            told.unsure.remove(&job.key);
            if told.done.insert(task.clone(), job.key).is_some() {
                told.wrong.push(format!("{task:?} was completed twice"));
            }
            true
        }
        // Somebody else was quicker, or it was this one before the server was killed.
        Err(status) if status.code() == tonic::Code::NotFound => true,
        Err(_) => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_nine_in_mid_flow_loses_no_token_and_does_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let address = free_address();
    let flags = ["--listen", "127.0.0.1:0", "--zeebe-listen", &address];
    let told = Arc::new(Mutex::new(Told::default()));
    for round in 0..ROUNDS {
        let mut server = Server::start(dir.path(), &flags);
        deploy(client(&address).await).await;
        let mut tasks = Vec::new();
        tasks.push(tokio::spawn(produce(client(&address).await, told.clone())));
        for _ in 0..2 {
            tasks.push(tokio::spawn(work(client(&address).await, told.clone(), false)));
        }
        // Early and late, before, in and behind checkpoints.
        tokio::time::sleep(Duration::from_millis(200 + round * 430)).await;
        server.kill();
        for task in tasks {
            let _ = tokio::time::timeout(PATIENCE, task).await.expect("clients notice the end");
        }
    }
    let _server = Server::start(dir.path(), &flags);
    let mut last = client(&address).await;
    work(last.clone(), told.clone(), true).await;
    let started: Vec<i64> = told.lock().unwrap().started.iter().copied().collect();
    for &instance in &started {
        let request = p::CancelProcessInstanceRequest {
            process_instance_key: instance,
            ..Default::default()
        };
        let status = last.cancel_process_instance(request).await.expect_err("it has ended");
        assert_eq!(status.code(), tonic::Code::NotFound, "instance {instance}: {status}");
    }
    let told = told.lock().unwrap();
    assert!(told.wrong.is_empty(), "{:?}", &told.wrong[..told.wrong.len().min(5)]);
    let tasks = started.len() * (ITEMS + 2);
    // An answer may have died with the server, and a start may have happened unanswered.
    assert!(told.done.len() + told.unsure.len() >= tasks, "{} of {tasks}", told.done.len());
    println!("{} instances came to their end over {ROUNDS} kills", started.len());
    assert!(started.len() > 100, "there was load: {}", started.len());
}
