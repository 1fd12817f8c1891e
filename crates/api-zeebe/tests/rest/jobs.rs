//! Jobs: handed out, completed, failed, changed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::common::{Bench, NOWHERE, fields, text};

/// What strict clients want to be there.
const FIELDS: [&str; 23] = [
    "businessId",
    "customHeaders",
    "deadline",
    "elementId",
    "elementInstanceKey",
    "jobKey",
    "jobLeaseToken",
    "kind",
    "listenerEventType",
    "physicalTenantId",
    "priority",
    "processDefinitionId",
    "processDefinitionKey",
    "processDefinitionVersion",
    "processInstanceKey",
    "retries",
    "rootProcessInstanceKey",
    "tags",
    "tenantId",
    "type",
    "userTask",
    "variables",
    "worker",
];

#[tokio::test]
async fn an_activated_job_has_all_its_fields() {
    let bench = Bench::start().await;
    let deployed = bench.deploy(&["service-task.bpmn"]).await;
    let definition = &deployed["deployments"][0]["processDefinition"]["processDefinitionKey"];
    let body = json!({
        "processDefinitionId": "service-task", "variables": { "a": 1, "b": [2] },
        "tags": ["t:1"], "businessId": "order-7",
    });
    let instance = bench.post("/process-instances", body).await;
    let asked = json!({ "type": "work", "worker": "me", "withLease": true });
    let jobs = bench.activate(asked).await;
    let job = &jobs[0];
    assert_eq!(fields(job), FIELDS);
    for (name, expected) in [
        ("type", json!("work")),
        ("processDefinitionId", json!("service-task")),
        ("processDefinitionVersion", json!(1)),
        ("processDefinitionKey", definition.clone()),
        ("processInstanceKey", instance["processInstanceKey"].clone()),
        ("rootProcessInstanceKey", instance["processInstanceKey"].clone()),
        ("elementId", json!("work")),
        ("customHeaders", json!({ "team": "ops", "level": "3" })),
        ("worker", json!("me")),
        ("retries", json!(5)),
        ("variables", json!({ "a": 1, "b": [2] })),
        ("tenantId", json!("<default>")),
        ("kind", json!("BPMN_ELEMENT")),
        ("listenerEventType", json!("UNSPECIFIED")),
        ("userTask", Value::Null),
        ("tags", json!(["t:1"])),
        ("businessId", json!("order-7")),
        ("priority", json!(0)),
    ] {
        assert_eq!(job[name], expected, "{name}");
    }
    for name in ["jobKey", "elementInstanceKey", "jobLeaseToken", "physicalTenantId"] {
        assert!(!text(&job[name]).is_empty(), "{name}");
    }
    assert!(job["deadline"].as_u64().unwrap() > 1_700_000_000_000);
}

#[tokio::test]
async fn a_job_of_a_called_process_names_the_outermost_instance() {
    let bench = Bench::start().await;
    bench.deploy(&["call-activity.bpmn", "call-child.bpmn"]).await;
    let instance = bench.create("call-activity", json!({})).await;
    let job = bench.take("call-work").await;
    assert_eq!(text(&job["rootProcessInstanceKey"]), instance);
    assert_ne!(text(&job["processInstanceKey"]), instance);
}

#[tokio::test]
async fn a_job_is_completed_once() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    bench.create("service-task", json!({})).await;
    let job = bench.take("work").await;
    let path = format!("/jobs/{}/completion", text(&job["jobKey"]));
    let body =
        json!({ "variables": { "r": 1 }, "result": { "type": "userTask", "denied": false } });
    let answer = bench.ask("POST", &path, Some(body)).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let answer = bench.ask("POST", &path, None).await;
    assert_eq!((answer.status, answer.json()["title"].as_str()), (404, Some("NOT_FOUND")));
}

#[tokio::test]
async fn only_wanted_variables_are_fetched() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    bench.create("service-task", json!({ "a": 1, "b": 2 })).await;
    let jobs = bench.activate(json!({ "type": "work", "fetchVariable": ["b", "x"] })).await;
    assert_eq!(jobs[0]["variables"], json!({ "b": 2 }));
}

#[tokio::test]
async fn a_poll_waits_for_the_first_job() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let begun = Instant::now();
    let none = bench.activate(json!({ "type": "work", "requestTimeout": 150 })).await;
    assert!(none.is_empty());
    assert!(begun.elapsed() >= Duration::from_millis(150));
    let (jobs, _) = tokio::join!(
        bench.activate(json!({ "type": "work", "requestTimeout": 20_000 })),
        bench.create("service-task", json!({})),
    );
    assert_eq!(jobs.len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(15));
}

/// A job that was meant for a client that went goes to the next one at once, with its retries.
#[tokio::test]
async fn a_client_that_goes_takes_no_job_with_it() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let mut stream = bench.connect().await;
    let body = r#"{"type":"work","timeout":60000,"maxJobsToActivate":1,"requestTimeout":60000}"#;
    let request = format!(
        "POST /v2/jobs/activation HTTP/1.1\r\nhost: w\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    while bench.server.gateway().waiters() == 0 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    while bench.server.gateway().waiters() > 0 {
        tokio::task::yield_now().await;
    }
    bench.create("service-task", json!({})).await;
    assert_eq!(bench.take("work").await["retries"], 5);
}

#[tokio::test]
async fn a_failed_job_comes_again_until_an_incident_is_resolved() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    bench.create("service-task", json!({})).await;
    let key = text(&bench.take("work").await["jobKey"]);
    let failure = format!("/jobs/{key}/failure");
    let body = json!({ "retries": 1, "errorMessage": "oh", "variables": { "why": "oh" } });
    assert_eq!(bench.ask("POST", &failure, Some(body)).await.status, 204);
    let again = bench.take("work").await;
    assert_eq!((&again["jobKey"], &again["retries"]), (&json!(key), &json!(1)));
    assert_eq!(again["variables"], json!({ "why": "oh" }));
    // No body at all is no retries.
    assert_eq!(bench.ask("POST", &failure, None).await.status, 204);
    let answer = bench.ask("POST", &failure, None).await;
    assert_eq!((answer.status, answer.json()["title"].as_str()), (409, Some("INVALID_STATE")));
    assert!(bench.activate(json!({ "type": "work" })).await.is_empty());

    let resolution = format!("/incidents/{key}/resolution");
    let answer = bench.ask("POST", &resolution, Some(json!({}))).await;
    assert_eq!(answer.status, 409, "{}", answer.json());
    let change = json!({ "changeset": { "retries": 2, "priority": 7 } });
    assert_eq!(bench.ask("PATCH", &format!("/jobs/{key}"), Some(change)).await.status, 204);
    assert_eq!(bench.ask("POST", &resolution, None).await.status, 204);
    let again = bench.take("work").await;
    assert_eq!((&again["retries"], &again["priority"]), (&json!(2), &json!(7)));
}

#[tokio::test]
async fn an_error_is_caught_by_its_boundary() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    bench.create("service-task", json!({})).await;
    let key = text(&bench.take("work").await["jobKey"]);
    let path = format!("/jobs/{key}/error");
    let answer = bench.ask("POST", &path, Some(json!({ "errorMessage": "m" }))).await;
    assert_eq!(answer.json()["detail"], "No errorCode provided.");
    let body = json!({ "errorCode": "E", "errorMessage": null, "variables": null });
    assert_eq!(bench.ask("POST", &path, Some(body.clone())).await.status, 204);
    // Nobody catches it: the job waits for a person.
    assert_eq!(bench.ask("POST", &path, Some(body)).await.status, 409);
}

#[tokio::test]
async fn a_change_is_all_or_nothing() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    bench.create("service-task", json!({})).await;
    let job = bench.take("work").await;
    let path = format!("/jobs/{}", text(&job["jobKey"]));
    for (changes, status) in [
        (json!({}), 400),
        (json!({ "retries": 0 }), 400),
        (json!({ "retries": 9, "timeout": 1 }), 204),
        (json!({ "timeout": null, "priority": 3 }), 204),
    ] {
        let body = json!({ "changeset": changes });
        let answer = bench.ask("PATCH", &path, Some(body)).await;
        assert_eq!(answer.status, status, "{changes} {answer:?}");
    }
    // Its timeout is over at once.
    let asked = json!({ "type": "work", "requestTimeout": 10_000 });
    let jobs = bench.activate(asked).await;
    assert_eq!((&jobs[0]["retries"], &jobs[0]["priority"]), (&json!(9), &json!(3)));
    let nowhere = json!({ "changeset": { "retries": 1 } });
    let answer = bench.ask("PATCH", &format!("/jobs/{NOWHERE}"), Some(nowhere)).await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn a_lease_is_asked_for_and_shown() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    bench.create("service-task", json!({})).await;
    let jobs = bench.activate(json!({ "type": "work", "withLease": true })).await;
    let (key, token) = (text(&jobs[0]["jobKey"]), text(&jobs[0]["jobLeaseToken"]));
    let path = format!("/jobs/{key}/completion");
    for (token, status) in [(None, 409), (Some("x"), 409), (Some(token.as_str()), 204)] {
        let body = json!({ "jobLeaseToken": token });
        let answer = bench.ask("POST", &path, Some(body)).await;
        assert_eq!(answer.status, status, "{token:?} {}", answer.json());
    }
}
