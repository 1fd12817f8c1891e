//! Workflows run and signalled, and answered with what became of them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Bench, fields, simple, text, timed, wait};

fn inline(name: &str, expression: &str) -> Value {
    json!({
        "name": name, "taskReferenceName": name, "type": "INLINE",
        "inputParameters": { "evaluatorType": "javascript", "expression": expression },
    })
}

#[tokio::test]
async fn a_run_is_answered_with_its_end() {
    let bench = Bench::start().await;
    bench.define("w", json!([inline("a", "1 + 1")])).await;
    let path = "/workflow/execute/w/1?requestId=r";
    let body = json!({ "name": "other", "input": { "k": 1 }, "correlationId": "c" });
    let run = bench.post(path, body).await.shown();
    assert_eq!(run["responseType"], "TARGET_WORKFLOW");
    assert_eq!((&run["requestId"], &run["signalTimeout"]), (&json!("r"), &json!(false)));
    assert_eq!(
        (&run["status"], &run["targetWorkflowStatus"]),
        (&json!("COMPLETED"), &json!("COMPLETED"))
    );
    assert_eq!(run["workflowId"], run["targetWorkflowId"]);
    assert_eq!((&run["input"], &run["output"]), (&json!({ "k": 1 }), &json!({ "result": 2 })));
    assert_eq!(
        fields(&run),
        [
            "correlationId",
            "createTime",
            "input",
            "output",
            "priority",
            "requestId",
            "responseType",
            "signalTimeout",
            "status",
            "targetWorkflowId",
            "targetWorkflowStatus",
            "tasks",
            "updateTime",
            "variables",
            "workflowId",
        ]
    );
}

#[tokio::test]
async fn a_run_is_answered_when_somebody_must_act() {
    let bench = Bench::start().await;
    let child = json!({
        "name": "child", "taskReferenceName": "child", "type": "SUB_WORKFLOW",
        "subWorkflowParam": { "name": "below", "version": 1 },
    });
    bench.define("below", json!([wait("hold")])).await;
    bench.define("w", json!([child])).await;
    let execute = |strategy: &str| format!("/workflow/execute/w/0?returnStrategy={strategy}");
    let (run, took) = timed(bench.post(&execute("TARGET_WORKFLOW"), json!({}))).await;
    let run = run.shown();
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!((&run["status"], &run["signalTimeout"]), (&json!("RUNNING"), &json!(false)));
    let run = bench.post(&execute("BLOCKING_WORKFLOW"), json!({})).await.shown();
    assert_ne!(run["workflowId"], run["targetWorkflowId"]);
    assert_eq!(run["tasks"][0]["referenceTaskName"], "hold");
    let run = bench.post(&execute("BLOCKING_TASK"), json!({})).await.shown();
    assert_eq!((&run["referenceTaskName"], &run["taskType"]), (&json!("hold"), &json!("WAIT")));
    assert_eq!(
        (&run["responseType"], &run["workflowType"]),
        (&json!("BLOCKING_TASK"), &json!("below"))
    );
    let run = bench.post(&execute("BLOCKING_TASK_INPUT"), json!({})).await.shown();
    assert_eq!(run["responseType"], "BLOCKING_TASK_INPUT");

    // The wait of the child is signalled through its parent.
    let id = text(&run["targetWorkflowId"]);
    let path = format!("/tasks/{id}/COMPLETED/signal/sync");
    let run = bench.post(&path, json!({ "ok": true })).await.shown();
    assert_eq!((&run["workflowId"], &run["status"]), (&json!(id), &json!("COMPLETED")));
    bench
        .post(&path, json!({}))
        .await
        .fails(404, &format!("Found no blocked task in workflow {id} to signal"));
    assert_eq!(bench.post(&execute("SOMETHING"), json!({})).await.status, 500);
}

#[tokio::test]
async fn a_run_that_takes_longer_is_answered_as_it_stands() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let path = "/workflow/execute/w/1?waitForSeconds=1";
    let (run, took) = timed(bench.post(path, json!({}))).await;
    let run = run.shown();
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert_eq!((&run["status"], &run["signalTimeout"]), (&json!("RUNNING"), &json!(true)));
    let path = format!("{path}&returnStrategy=BLOCKING_TASK");
    bench.post(&path, json!({})).await.is_empty(200);
    assert_eq!(bench.post("/workflow/execute/none/1", json!({})).await.status, 404);
    assert_eq!(bench.bare("POST", "/workflow/execute/w/1").await.status, 500);
}

#[tokio::test]
async fn the_end_of_a_named_task_is_enough() {
    let bench = Bench::start().await;
    bench.define("w", json!([inline("first", "1"), inline("a", "2"), simple("t")])).await;
    let path = "/workflow/execute/w/1?waitUntilTaskRef=none,%20a&returnStrategy=BLOCKING_TASK";
    let (run, took) = timed(bench.post(path, json!({}))).await;
    assert!(took < Duration::from_secs(8), "{took:?}");
    let run = run.shown();
    assert_eq!((&run["referenceTaskName"], &run["status"]), (&json!("a"), &json!("COMPLETED")));
    assert_eq!(run["output"], json!({ "result": 2 }));
}

#[tokio::test]
async fn a_definition_may_come_with_its_run() {
    let bench = Bench::start().await;
    let definition = json!({ "name": "d", "version": 1, "tasks": [inline("a", "3")] });
    let body = json!({ "name": "d", "workflowDef": definition, "input": {} });
    let run = bench.post("/workflow/execute/d/1", body).await.shown();
    assert_eq!(run["status"], "COMPLETED");
    assert_eq!(run["input"]["_systemMetadata"], json!({ "dynamic": true }));
    assert_eq!(bench.get("/metadata/workflow").await.shown(), json!([]));
}

#[tokio::test]
async fn signals_wake_one_wait_after_the_other() {
    let bench = Bench::start().await;
    bench.define("w", json!([wait("a"), wait("b")])).await;
    let id = bench.run("w", json!({})).await;
    bench.post(&format!("/tasks/{id}/COMPLETED/signal"), json!({ "n": 1 })).await.is_empty(200);
    let path = format!(
        "/tasks/{id}/FAILED/signal/sync?timeoutMillis=9000&returnStrategy=BLOCKING_WORKFLOW"
    );
    let run = bench.post(&path, json!({ "n": 2 })).await.shown();
    assert_eq!(run["status"], "FAILED");
    assert_eq!(run["tasks"][0]["outputData"], json!({ "n": 1 }));
    // Nothing is blocked: nothing is said.
    bench.post(&format!("/tasks/{id}/COMPLETED/signal"), json!({})).await.is_empty(200);
    assert_eq!(bench.post(&format!("/tasks/{id}/DONE/signal"), json!({})).await.status, 500);
    bench
        .post("/tasks/w123/COMPLETED/signal", json!({}))
        .await
        .fails(404, "No such workflow found by id: w123");
}

#[tokio::test]
async fn a_workflow_s_state_is_changed_and_waited_for() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t"), wait("hold")])).await;
    let id = bench.run("w", json!({})).await;
    let path = format!("/workflow/{id}/state?waitForSeconds=9&requestId=r");
    let body = json!({
        "variables": { "v": 1 }, "taskReferenceName": "t",
        "taskResult": { "status": "COMPLETED", "outputData": { "o": 2 } },
    });
    let run = bench.post(&path, body.clone()).await.shown();
    assert_eq!((&run["variables"], &run["requestId"]), (&json!({ "v": 1 }), &json!("r")));
    assert_eq!(run["tasks"][0]["outputData"], json!({ "o": 2 }));
    assert_eq!(run["tasks"][1]["referenceTaskName"], "hold");
    bench
        .post(&path, body)
        .await
        .fails(404, &format!("Found no running task t of workflow {id} to update"));
}
