//! What a Rust program sees that uses `zeebe-rs`: the server's address comes from `../run`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use zeebe_rs::{ActivatedJob, Client, ClientError, WorkerError};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: start this with `run`"))
}

async fn client() -> Client {
    let address = variable("ZEEBE_ADDRESS");
    let (host, port) = address.rsplit_once(':').expect("host:port");
    let host = format!("http://{host}");
    Client::builder().with_address(&host, port.parse().unwrap()).build().await.unwrap()
}

/// A name that no other scenario uses.
fn unique(name: &str) -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("{name}-rs-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed))
}

/// Deploys a process of these elements between start and end, which is called like its job type.
async fn deploy(client: &Client, id: &str, roots: &str, elements: &str) -> i64 {
    let text = format!(
        r#"<b:definitions xmlns:b="http://www.omg.org/spec/BPMN/20100524/MODEL"
            xmlns:z="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="t">{roots}
          <b:process id="{id}" isExecutable="true">
            <b:startEvent id="start"/><b:sequenceFlow id="in" sourceRef="start" targetRef="it"/>
            {elements}
            <b:endEvent id="end"/><b:sequenceFlow id="out" sourceRef="it" targetRef="end"/>
          </b:process></b:definitions>"#
    );
    let deploy = client.deploy_resource().with_definition(format!("{id}.bpmn"), text.into_bytes());
    let deployed = deploy.send().await.unwrap();
    match deployed.deployments()[0].metadata() {
        Some(zeebe_rs::Metadata::Process(process)) => {
            assert_eq!((process.bpmn_process_id(), process.version()), (id, 1));
            process.process_definition_key()
        }
        _ => panic!("a process was deployed"),
    }
}

async fn deploy_task(client: &Client, id: &str) -> i64 {
    let task = format!(
        r#"<b:serviceTask id="it"><b:extensionElements><z:taskDefinition type="{id}"/>
           </b:extensionElements></b:serviceTask>"#
    );
    deploy(client, id, "", &task).await
}

async fn start(client: &Client, id: &str, variables: Value) -> i64 {
    let create = client.create_process_instance().with_bpmn_process_id(id.to_owned());
    let created = create.with_variables(variables).unwrap().send().await.unwrap();
    created.process_instance_key()
}

/// Starts an instance; its variables when it is done.
fn run(client: &Client, id: &str, variables: Value) -> tokio::task::JoinHandle<Value> {
    let create = client.create_process_instance().with_bpmn_process_id(id.to_owned());
    let create = create.with_variables(variables).unwrap().with_result(None);
    tokio::spawn(async move {
        create.send_with_result::<Value>().await.expect("it completes").data().clone()
    })
}

async fn end(run: tokio::task::JoinHandle<Value>) -> Value {
    timeout(PATIENCE, run).await.expect("it completes").expect("it completes")
}

/// The first job that a worker of the library gets, which does nothing with it.
async fn take(client: &Client, job_type: &str) -> ActivatedJob {
    let (out, mut jobs) = mpsc::unbounded_channel();
    let worker = client
        .worker()
        .with_request_timeout(PATIENCE)
        .with_job_timeout(Duration::from_secs(60))
        .with_max_jobs_to_activate(1)
        .with_concurrency_limit(1)
        .with_job_type(job_type.to_owned())
        .with_handler(move |_: Client, job| {
            let out = out.clone();
            async move {
                let _gone = out.send(job);
            }
        })
        .build();
    let working = tokio::spawn(worker.run());
    let job = timeout(PATIENCE, jobs.recv()).await.expect("a job comes").expect("a job comes");
    working.abort();
    job
}

#[track_caller]
fn refused<T>(result: Result<T, ClientError>, code: &str) {
    match result {
        Err(ClientError::RequestFailed(status)) => {
            assert_eq!(format!("{:?}", status.code()), code, "{status}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused with {code}"),
    }
}

/// The incident of an instance, which gRPC does not tell.
async fn incident(instance: i64) -> i64 {
    let url = format!("{}/v2/incidents/search", variable("WINDLASS_URL"));
    let filter = json!({ "filter": { "processInstanceKey": instance.to_string() } });
    let since = Instant::now();
    loop {
        let asked = reqwest::Client::new().post(&url).json(&filter).send().await.unwrap();
        let found: Value = asked.json().await.unwrap();
        if let Some(key) = found["items"][0]["incidentKey"].as_str() {
            return key.parse().unwrap();
        }
        assert!(since.elapsed() < PATIENCE, "there is no incident: {found}");
    }
}

#[tokio::test]
async fn topology() {
    let topology = client().await.topology().send().await.unwrap();
    assert_eq!((topology.cluster_size(), topology.partitions_count()), (1, 1));
    let broker = &topology.brokers()[0];
    assert_eq!(broker.partitions()[0].partition_id(), 1);
    assert!(broker.port() > 0, "{}", broker.host());
}

#[tokio::test]
async fn a_worker_completes_what_it_handles() {
    let (client, id) = (client().await, unique("double"));
    deploy_task(&client, &id).await;
    let worker = client
        .worker()
        .with_request_timeout(PATIENCE)
        .with_job_timeout(Duration::from_secs(60))
        .with_max_jobs_to_activate(8)
        .with_concurrency_limit(2)
        .with_job_type(id.clone())
        .with_handler(|_: Client, job: ActivatedJob| async move {
            let given = job.data::<Value>().unwrap();
            Ok::<_, WorkerError<()>>(json!({ "doubled": given["n"].as_i64().unwrap() * 2 }))
        })
        .build();
    let working = tokio::spawn(worker.run());
    let left = end(run(&client, &id, json!({ "n": 21 }))).await;
    assert_eq!(left, json!({ "n": 21, "doubled": 42 }));
    working.abort();
}

#[tokio::test]
async fn a_job_says_where_it_is_from() {
    let (client, id) = (client().await, unique("job"));
    let definition = deploy_task(&client, &id).await;
    let create = client.create_process_instance().with_process_definition_key(definition);
    let instance = create.without_input().send().await.unwrap();
    assert_eq!((instance.bpmn_process_id(), instance.version()), (&*id, 1));
    let job = take(&client, &id).await;
    assert_eq!(job.process_instance_key(), instance.process_instance_key());
    assert_eq!((job.process_definition_key(), job.element_id()), (definition, "it"));
    assert_eq!((job.job_type(), job.retries(), job.tenant_id()), (&*id, 3, "<default>"));
    client.complete_job().with_job_key(job.key()).send().await.unwrap();
    refused(client.complete_job().with_job_key(job.key()).send().await, "NotFound");
}

#[tokio::test]
async fn what_fails_is_tried_again_and_then_waits_for_a_person() {
    let (client, id) = (client().await, unique("fail"));
    deploy_task(&client, &id).await;
    let instance = start(&client, &id, json!({})).await;
    let job = take(&client, &id).await;
    let fail = client.fail_job().with_job_key(job.key()).with_retries(1);
    fail.with_error_message("not yet".to_owned()).send().await.unwrap();
    let again = take(&client, &id).await;
    assert_eq!((again.key(), again.retries()), (job.key(), 1));
    client.fail_job().with_job_key(job.key()).with_retries(0).send().await.unwrap();
    let incident = incident(instance).await;
    let resolve = || client.resolve_incident().with_incident_key(incident);
    refused(resolve().send().await, "FailedPrecondition");
    let retries = client.update_job_retries().with_job_key(job.key()).with_retries(2);
    retries.send().await.unwrap();
    resolve().send().await.unwrap();
    refused(resolve().send().await, "NotFound");
    let job = take(&client, &id).await;
    assert_eq!(job.retries(), 2);
    client.complete_job().with_job_key(job.key()).send().await.unwrap();
    let gone = client.cancel_process_instance().with_process_instance_key(instance);
    refused(gone.send().await, "NotFound");
}

#[tokio::test]
async fn a_thrown_error_is_caught() {
    let (client, id) = (client().await, unique("throw"));
    let elements = format!(
        r#"<b:serviceTask id="it"><b:extensionElements><z:taskDefinition type="{id}"/>
             </b:extensionElements></b:serviceTask>
           <b:boundaryEvent id="broken" attachedToRef="it">
             <b:errorEventDefinition errorRef="e"/></b:boundaryEvent>
           <b:endEvent id="caught"><b:extensionElements><z:ioMapping>
             <z:output source="=true" target="caught"/></z:ioMapping></b:extensionElements>
           </b:endEvent>
           <b:sequenceFlow id="to" sourceRef="broken" targetRef="caught"/>"#
    );
    deploy(&client, &id, r#"<b:error id="e" errorCode="BROKEN"/>"#, &elements).await;
    let run = run(&client, &id, json!({}));
    let job = take(&client, &id).await;
    let throw = client.throw_error().with_job_key(job.key());
    throw.with_error_code("BROKEN".to_owned()).send().await.unwrap();
    assert_eq!(end(run).await, json!({ "caught": true }));
}

#[tokio::test]
async fn a_message_reaches_who_waits_and_who_comes_later() {
    let (client, id) = (client().await, unique("message"));
    let roots = format!(
        r#"<b:message id="m" name="{id}"><b:extensionElements>
             <z:subscription correlationKey="=key"/></b:extensionElements></b:message>"#
    );
    let elements = r#"<b:intermediateCatchEvent id="it"><b:messageEventDefinition messageRef="m"/>
        </b:intermediateCatchEvent>"#;
    deploy(&client, &id, &roots, elements).await;
    let publish = |key: &str| {
        let publish = client.publish_message().with_name(id.clone());
        let publish = publish.with_correlation_key(key.to_owned());
        publish.with_time_to_live(Duration::from_secs(60)).with_message_id("once".to_owned())
    };
    publish("later").send().await.unwrap();
    refused(publish("later").send().await, "AlreadyExists");
    assert_eq!(end(run(&client, &id, json!({ "key": "later" }))).await, json!({ "key": "later" }));
    let waiting = run(&client, &id, json!({ "key": "now" }));
    publish("now").with_variables(json!({ "said": 1 })).unwrap().send().await.unwrap();
    assert_eq!(end(waiting).await, json!({ "key": "now", "said": 1 }));
}

#[tokio::test]
async fn variables_are_set_and_instances_cancelled() {
    let (client, id) = (client().await, unique("operate"));
    deploy_task(&client, &id).await;
    let instance = start(&client, &id, json!({ "a": 1 })).await;
    let set = client.set_variables().with_element_instance_key(instance);
    set.with_variable(json!({ "a": 2, "b": 3 })).unwrap().send().await.unwrap();
    let job = take(&client, &id).await;
    assert_eq!(job.data::<Value>().unwrap(), json!({ "a": 2, "b": 3 }));
    let cancel = || client.cancel_process_instance().with_process_instance_key(instance);
    cancel().send().await.unwrap();
    refused(cancel().send().await, "NotFound");
    refused(client.complete_job().with_job_key(job.key()).send().await, "NotFound");
    let nowhere = client.create_process_instance().with_bpmn_process_id(unique("nowhere"));
    refused(nowhere.without_input().send().await, "NotFound");
}
