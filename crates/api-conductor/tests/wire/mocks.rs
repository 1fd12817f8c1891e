//! Workflows run with made-up results.

use serde_json::{Value, json};

use crate::common::{Bench, simple, wait};

#[tokio::test]
async fn results_are_given_in_order() {
    let bench = Bench::start().await;
    bench
        .post(
            "/metadata/taskdefs",
            json!([{ "name": "t", "retryCount": 1, "retryDelaySeconds": 0 }]),
        )
        .await
        .is_empty(200);
    bench.define("w", json!([simple("t"), wait("hold"), simple("u")])).await;
    let body = json!({
        "name": "w", "version": 1, "input": {},
        "taskRefToMockOutput": {
            "t": [{ "status": "FAILED" }, { "output": { "n": 2 } }],
            "hold": [{ "status": "COMPLETED", "output": { "held": true }, "executionTime": 1 }],
            "u": [{ "output": { "end": 1 } }],
        },
    });
    let workflow = bench.post("/workflow/test", body).await.shown();
    assert_eq!(workflow["status"], "COMPLETED", "{workflow}");
    assert_eq!(workflow["output"], json!({ "end": 1 }));
    let seen: Vec<(&Value, &Value)> = workflow["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (&task["referenceTaskName"], &task["status"]))
        .collect();
    let wanted = [("t", "FAILED"), ("t", "COMPLETED"), ("hold", "COMPLETED"), ("u", "COMPLETED")];
    assert_eq!(json!(seen), json!(wanted));
}

#[tokio::test]
async fn no_worker_sees_a_test() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t"), simple("u")])).await;
    let body = json!({ "name": "w", "taskRefToMockOutput": { "t": [{}] } });
    let workflow = bench.post("/workflow/test", body).await.shown();
    assert_eq!(workflow["status"], "RUNNING");
    assert_eq!(workflow["tasks"][1]["referenceTaskName"], "u");
    bench.get("/tasks/poll/u").await.is_empty(204);
}

#[tokio::test]
async fn a_test_may_bring_its_definition() {
    let bench = Bench::start().await;
    let way = json!({
        "name": "way", "taskReferenceName": "way", "type": "SWITCH",
        "evaluatorType": "value-param", "expression": "to",
        "inputParameters": { "to": "${workflow.input.to}" },
        "decisionCases": { "left": [simple("l")], "right": [simple("r")] },
    });
    let definition = json!({ "name": "d", "version": 1, "tasks": [simple("t"), way] });
    let body = json!({
        "name": "d", "version": 1, "workflowDef": definition, "input": { "to": "right" },
        "taskRefToMockOutput": { "t": [{ "status": "COMPLETED", "output": { "k": "v" } }] },
    });
    let workflow = bench.post("/workflow/test", body).await.shown();
    assert_eq!(workflow["status"], "RUNNING", "{workflow}");
    let seen: Vec<(&Value, &Value, &Value)> = workflow["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (&task["taskType"], &task["referenceTaskName"], &task["status"]))
        .collect();
    let wanted = [("t", "t", "COMPLETED"), ("SWITCH", "way", "COMPLETED"), ("r", "r", "SCHEDULED")];
    assert_eq!(json!(seen), json!(wanted));
    assert_eq!(workflow["tasks"][0]["outputData"]["k"], "v");
    assert_eq!(bench.get("/metadata/workflow").await.shown(), json!([]), "it is kept nowhere");
}

#[tokio::test]
async fn workflows_below_have_results_of_their_own() {
    let bench = Bench::start().await;
    let child = json!({
        "name": "child", "taskReferenceName": "child", "type": "SUB_WORKFLOW",
        "subWorkflowParam": { "name": "below" },
    });
    bench.define("below", json!([simple("t")])).await;
    bench.define("w", json!([child, simple("u")])).await;
    let body = json!({
        "name": "w", "taskRefToMockOutput": { "u": [{}] },
        "subWorkflowTestRequest": {
            "child": { "name": "below", "taskRefToMockOutput": { "t": [{ "output": { "x": 1 } }] } },
        },
    });
    let workflow = bench.post("/workflow/test", body).await.shown();
    assert_eq!(workflow["status"], "COMPLETED", "{workflow}");
    assert_eq!(workflow["tasks"][0]["outputData"]["x"], 1);
}

#[tokio::test]
async fn what_cannot_be_tested_says_why() {
    let bench = Bench::start().await;
    assert_eq!(bench.post("/workflow/test", json!({ "name": "n" })).await.status, 404);
    let body = json!({ "name": "n", "taskRefToMockOutput": [] });
    assert_eq!(bench.post("/workflow/test", body).await.status, 500);
    assert_eq!(bench.bare("POST", "/workflow/test").await.status, 500);
}
