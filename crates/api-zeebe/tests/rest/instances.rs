//! Process instances: created, awaited, cancelled, modified, migrated; variables.

use serde_json::{Value, json};

use crate::common::{Bench, NOWHERE, fields, text};

#[tokio::test]
async fn an_instance_is_created_by_id_and_by_key() {
    let bench = Bench::start().await;
    let deployed = bench.deploy(&["service-task.bpmn"]).await;
    let process = &deployed["deployments"][0]["processDefinition"];
    let key = process["processDefinitionKey"].clone();
    for body in [
        json!({ "processDefinitionId": "service-task" }),
        json!({ "processDefinitionId": "service-task", "processDefinitionVersion": 1 }),
        json!({ "processDefinitionKey": key, "tenantId": "<default>", "unknown": {} }),
        json!({ "processDefinitionKey": key, "startInstructions": [{ "elementId": "work" }] }),
    ] {
        let created = bench.post("/process-instances", body).await;
        assert_eq!(fields(&created).len(), 8);
        assert_eq!(created["processDefinitionKey"], key);
        assert_eq!(created["variables"], json!({}));
        assert_eq!(created["tags"], json!([]));
        assert_eq!(created["businessId"], Value::Null);
    }
    assert_eq!(bench.activate(json!({ "type": "work" })).await.len(), 4);
}

#[tokio::test]
async fn creation_is_refused_for_a_reason() {
    let bench = Bench::start().await;
    let deployed = bench.deploy(&["service-task.bpmn"]).await;
    let key = &deployed["deployments"][0]["processDefinition"]["processDefinitionKey"];
    let id = "service-task";
    for (body, status, title) in [
        (json!({}), 400, "INVALID_ARGUMENT"),
        (
            json!({ "processDefinitionId": id, "processDefinitionKey": key }),
            400,
            "INVALID_ARGUMENT",
        ),
        (json!({ "processDefinitionId": "nowhere" }), 404, "NOT_FOUND"),
        (json!({ "processDefinitionKey": NOWHERE }), 404, "NOT_FOUND"),
        (json!({ "processDefinitionId": id, "processDefinitionVersion": 7 }), 404, "NOT_FOUND"),
        (json!({ "processDefinitionId": id, "variables": [] }), 400, "INVALID_ARGUMENT"),
        (json!({ "processDefinitionId": id, "tenantId": "t" }), 400, "INVALID_ARGUMENT"),
        (json!({ "processDefinitionId": id, "tags": ["no tag"] }), 400, "INVALID_ARGUMENT"),
        (
            json!({ "processDefinitionId": id, "startInstructions": [{ "elementId": "x" }] }),
            400,
            "INVALID_ARGUMENT",
        ),
        (json!({ "processDefinitionId": id, "startInstructions": [{}] }), 400, "INVALID_ARGUMENT"),
        (json!({ "processDefinitionId": 7 }), 400, "Bad Request"),
        (json!({ "processDefinitionKey": "x" }), 400, "Bad Request"),
    ] {
        let answer = bench.ask("POST", "/process-instances", Some(body.clone())).await;
        let problem = answer.json();
        assert_eq!((answer.status, &problem["title"]), (status, &json!(title)), "{body} {problem}");
    }
}

#[tokio::test]
async fn an_awaited_instance_answers_with_its_variables() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn", "no-task.bpmn"]).await;
    let body = json!({
        "processDefinitionId": "no-task", "awaitCompletion": true,
        "variables": { "a": 1, "b": 2 }, "fetchVariables": ["b"],
    });
    let done = bench.post("/process-instances", body).await;
    assert_eq!(done["variables"], json!({ "b": 2 }));
    let body = json!({
        "processDefinitionId": "service-task", "awaitCompletion": true, "requestTimeout": 100,
    });
    let answer = bench.ask("POST", "/process-instances", Some(body)).await;
    let problem = answer.json();
    assert_eq!((answer.status, &problem["title"]), (504, &json!("DEADLINE_EXCEEDED")), "{problem}");
    // It goes on.
    bench.take("work").await;
}

#[tokio::test]
async fn an_instance_is_cancelled_once() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let key = bench.create("service-task", json!({})).await;
    let path = format!("/process-instances/{key}/cancellation");
    let body = json!({ "operationReference": 1 });
    assert_eq!(bench.ask("POST", &path, Some(body)).await.status, 204);
    assert_eq!(bench.ask("POST", &path, None).await.status, 404);
    assert!(bench.activate(json!({ "type": "work" })).await.is_empty());
}

#[tokio::test]
async fn variables_are_set_where_they_are_wanted() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let key = bench.create("service-task", json!({ "a": 1 })).await;
    let path = format!("/element-instances/{key}/variables");
    let body = json!({ "variables": { "a": 2, "b": {} }, "local": true });
    let answer = bench.ask("PUT", &path, Some(body)).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(bench.take("work").await["variables"], json!({ "a": 2, "b": {} }));
    for (path, body, status) in [
        (path.clone(), json!({}), 400),
        (path, json!({ "variables": "a" }), 400),
        (format!("/element-instances/{NOWHERE}/variables"), json!({ "variables": {} }), 404),
    ] {
        assert_eq!(bench.ask("PUT", &path, Some(body.clone())).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn tokens_are_moved_by_hand() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let key = bench.create("service-task", json!({})).await;
    let first = bench.take("work").await;
    let path = format!("/process-instances/{key}/modification");
    let body = json!({
        "activateInstructions": [{
            "elementId": "work", "variableInstructions": [{ "variables": { "again": true } }],
        }],
        "terminateInstructions": [{ "elementInstanceKey": first["elementInstanceKey"] }],
    });
    let answer = bench.ask("POST", &path, Some(body)).await;
    assert_eq!(answer.status, 204, "{}", answer.json());
    assert_eq!(bench.take("work").await["variables"], json!({ "again": true }));
    for (path, body, status) in [
        (path.as_str(), json!({ "activateInstructions": [{ "elementId": "x" }] }), 400),
        (path.as_str(), json!({ "activateInstructions": [{}] }), 400),
        (path.as_str(), json!({ "terminateInstructions": [{}] }), 400),
        (&format!("/process-instances/{NOWHERE}/modification"), json!({}), 404),
    ] {
        let answer = bench.ask("POST", path, Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body} {answer:?}");
    }
    let body = json!({ "moveInstructions": [{
        "sourceElementInstruction": { "sourceType": "byId", "sourceElementId": "work" },
        "targetElementId": "work",
        "ancestorScopeInstruction": { "ancestorScopeType": "sourceParent" },
        "variableInstructions": [{ "variables": { "moved": true } }],
    }] });
    assert_eq!(bench.ask("POST", &path, Some(body)).await.status, 204);
    assert_eq!(bench.take("work").await["variables"], json!({ "again": true, "moved": true }));
    let body = json!({ "terminateInstructions": [{ "elementId": "work" }] });
    assert_eq!(bench.ask("POST", &path, Some(body)).await.status, 204);
    assert_eq!(bench.ask("POST", &path, Some(json!({}))).await.status, 404, "nothing is left");
}

#[tokio::test]
async fn an_instance_goes_on_with_another_definition() {
    let bench = Bench::start().await;
    bench.deploy(&["version-two-migrate-a.bpmn"]).await;
    let other = bench.deploy(&["version-two-migrate-b.bpmn"]).await;
    let process = &other["deployments"][0]["processDefinition"];
    let key = bench.create("migrate-a", json!({})).await;
    let path = format!("/process-instances/{key}/migration");
    let target = process["processDefinitionKey"].clone();
    for (body, status) in [
        (json!({}), 400),
        (json!({ "targetProcessDefinitionKey": target }), 400),
        (json!({ "targetProcessDefinitionKey": NOWHERE, "mappingInstructions": [] }), 404),
        (json!({ "targetProcessDefinitionKey": target, "mappingInstructions": [] }), 409),
        (
            json!({
                "targetProcessDefinitionKey": target,
                "mappingInstructions": [{ "sourceElementId": "old", "targetElementId": "fresh" }],
            }),
            204,
        ),
    ] {
        let answer = bench.ask("POST", &path, Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body} {}", answer.json());
    }
}

#[tokio::test]
async fn the_topology_is_one_broker_that_leads() {
    let bench = Bench::start().await;
    let answer = bench.ask("GET", "/topology", None).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let topology = answer.json();
    assert_eq!(fields(&topology).len(), 7, "{topology}");
    assert!(text(&topology["gatewayVersion"]).starts_with("8."));
    assert_eq!(topology["clusterSize"], 1);
    let partition = &topology["brokers"][0]["partitions"][0];
    let expected =
        json!({ "partitionId": 1, "role": "leader", "health": "healthy", "state": "active" });
    assert_eq!(*partition, expected);
    let answer = bench.ask("GET", "/status", None).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
}
