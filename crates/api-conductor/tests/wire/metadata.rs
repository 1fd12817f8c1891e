//! Definitions of workflows and of tasks.

use serde_json::{Value, json};

use crate::common::{Bench, fields, simple};

const INVALID: &str = "Validation failed, check below errors for detail.";

fn sentences(failure: &Value) -> Vec<&str> {
    let errors = failure["validationErrors"].as_array().unwrap();
    errors.iter().map(|error| error["message"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn task_definitions_come_and_go() {
    let bench = Bench::start().await;
    let a = json!({ "name": "a", "retryCount": 1, "ownerEmail": "o@example.org", "custom": 7 });
    bench.post("/metadata/taskdefs", json!([a, { "name": "b" }])).await.is_empty(200);
    let shown = bench.get("/metadata/taskdefs/a").await.shown();
    assert_eq!(shown["retryCount"], 1);
    assert_eq!(shown["timeoutSeconds"], 0);
    assert_eq!(shown["responseTimeoutSeconds"], 3600);
    assert_eq!(shown["custom"], 7);
    assert!(shown["createTime"].as_u64().unwrap() > 0);
    assert_eq!(bench.get("/metadata/taskdefs").await.shown().as_array().unwrap().len(), 2);

    bench.put("/metadata/taskdefs", json!({ "name": "a", "retryCount": 5 })).await.is_empty(200);
    assert_eq!(bench.get("/metadata/taskdefs/a").await.shown()["retryCount"], 5);
    bench
        .put("/metadata/taskdefs", json!({ "name": "c" }))
        .await
        .fails(404, "No such task by name c");
    bench.get("/metadata/taskdefs/c").await.fails(404, "No such taskType found by name: c");
    bench.bare("DELETE", "/metadata/taskdefs/a").await.is_empty(200);
    bench.bare("DELETE", "/metadata/taskdefs/a").await.fails(404, "No such task definition");
}

#[tokio::test]
async fn wrong_definitions_of_tasks_are_told_apart() {
    let bench = Bench::start().await;
    for (body, sentence) in [
        (json!({ "retryCount": 1 }), "TaskDef name cannot be null or empty"),
        (
            json!({ "name": "a", "timeoutSeconds": 5, "responseTimeoutSeconds": 10 }),
            "TaskDef: a responseTimeoutSeconds: 10 must be less than timeoutSeconds: 5",
        ),
    ] {
        for answer in [
            bench.post("/metadata/taskdefs", json!([body])).await,
            bench.put("/metadata/taskdefs", body.clone()).await,
        ] {
            let failure = answer.fails(400, INVALID);
            assert_eq!(sentences(&failure), [sentence], "{body}");
        }
    }
    // A list is wanted, and one thing.
    assert_eq!(bench.post("/metadata/taskdefs", json!({ "name": "a" })).await.status, 500);
    assert_eq!(bench.put("/metadata/taskdefs", json!([{ "name": "a" }])).await.status, 500);
}

#[tokio::test]
async fn workflow_definitions_come_and_go() {
    let bench = Bench::start().await;
    let definition = |version: u32| json!({ "name": "w", "version": version, "tasks": [simple("t")], "ownerEmail": "o@example.org" });
    bench.post("/metadata/workflow/validate", definition(1)).await.is_empty(200);
    bench
        .get("/metadata/workflow/w")
        .await
        .fails(404, "No such workflow found by name: w, version: null");
    bench.post("/metadata/workflow", definition(1)).await.is_empty(200);
    bench
        .post("/metadata/workflow", definition(1))
        .await
        .fails(409, "Workflow with w.1 already exists!");
    bench.post("/metadata/workflow?overwrite=true", definition(1)).await.is_empty(200);

    let bulk = bench.put("/metadata/workflow", json!([definition(2), definition(3)])).await.shown();
    assert_eq!(
        bulk,
        json!({
            "bulkErrorResults": {}, "bulkSuccessfulResults": ["w", "w"],
            "message": "Bulk Request has been processed.",
        })
    );
    assert_eq!(bench.get("/metadata/workflow/w").await.shown()["version"], 3);
    let shown = bench.get("/metadata/workflow/w?version=1").await.shown();
    assert_eq!(shown["version"], 1);
    assert_eq!(shown["schemaVersion"], 2);
    assert_eq!(shown["tasks"][0]["taskReferenceName"], "t");
    for version in ["9", "-1"] {
        bench
            .get(&format!("/metadata/workflow/w?version={version}"))
            .await
            .fails(404, &format!("No such workflow found by name: w, version: {version}"));
    }
    bench.bare("DELETE", "/metadata/workflow/w/2").await.is_empty(200);
    bench
        .bare("DELETE", "/metadata/workflow/w/2")
        .await
        .fails(404, "No such workflow definition: w version: 2");
}

#[tokio::test]
async fn definitions_are_listed_by_name_and_version() {
    let bench = Bench::start().await;
    let agent = json!({ "classifier": "agent" });
    bench
        .put(
            "/metadata/workflow",
            json!([
                { "name": "b", "version": 2, "tasks": [simple("t")] },
                { "name": "b", "version": 10, "tasks": [simple("t")] },
                { "name": "a", "version": 1, "tasks": [simple("t")], "metadata": agent },
            ]),
        )
        .await
        .shown();
    let all = bench.get("/metadata/workflow").await.shown();
    assert_eq!(all.as_array().unwrap().len(), 3);
    let plain = bench.get("/metadata/workflow?classifier=Workflow").await.shown();
    assert_eq!(plain.as_array().unwrap().len(), 2);
    assert_eq!(bench.get("/metadata/workflow/names").await.shown(), json!(["a", "b"]));
    let latest = bench.get("/metadata/workflow/latest-versions").await.shown();
    let latest: Vec<_> = latest
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].clone(), it["version"].clone()))
        .collect();
    assert_eq!(latest, [(json!("a"), json!(1)), (json!("b"), json!(10))]);
    let versions = bench.get("/metadata/workflow/b/versions").await.shown();
    assert_eq!(versions[0]["version"], 2);
    assert_eq!(fields(&versions[1]), ["createTime", "name", "updateTime", "version"]);
    assert_eq!(bench.get("/metadata/workflow/none/versions").await.shown(), json!([]));
    let by_name = bench.get("/metadata/workflow/names-and-versions").await.shown();
    assert_eq!(by_name["b"], versions);
    assert_eq!(fields(&by_name), ["a", "b"]);
}

#[tokio::test]
async fn wrong_definitions_of_workflows_are_told_apart() {
    let bench = Bench::start().await;
    let empty = ["WorkflowDef name cannot be null or empty", "WorkflowTask list cannot be empty"];
    let twice = json!({ "name": "w", "tasks": [simple("t"), simple("t")] });
    let unique =
        "taskReferenceName: t should be unique across tasks for a given workflowDefinition: w";
    for (body, wanted) in [(json!({}), empty.as_slice()), (twice, &[unique])] {
        for answer in [
            bench.post("/metadata/workflow", body.clone()).await,
            bench.post("/metadata/workflow/validate", body.clone()).await,
            bench.put("/metadata/workflow", json!([body])).await,
        ] {
            let failure = answer.fails(400, INVALID);
            assert_eq!(sentences(&failure), wanted);
        }
    }
    // All are looked at before the first is taken.
    let good = json!({ "name": "good", "tasks": [simple("t")] });
    bench.put("/metadata/workflow", json!([good, {}])).await.fails(400, INVALID);
    assert_eq!(bench.get("/metadata/workflow").await.shown(), json!([]));
    assert_eq!(bench.put("/metadata/workflow", good).await.status, 500);
}
