//! Workflows started, read and controlled.

use serde_json::{Value, json};

use crate::common::{Bench, NOWHERE, fields, simple, text, wait};

#[tokio::test]
async fn a_workflow_starts_runs_and_ends() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("a"), simple("b")])).await;
    let body = json!({ "name": "w", "version": 1, "correlationId": "c", "priority": 7, "input": { "x": null } });
    let id = bench.post("/workflow", body).await.plain();
    assert_eq!(id.len(), 36);

    let first = bench.take("a").await;
    assert_eq!(first["workflowInstanceId"], id);
    assert_eq!((&first["status"], &first["pollCount"]), (&json!("IN_PROGRESS"), &json!(1)));
    assert_eq!((&first["workerId"], &first["correlationId"]), (&json!("w"), &json!("c")));
    assert_eq!((&first["seq"], &first["workflowPriority"]), (&json!(1), &json!(7)));
    assert_eq!(first["responseTimeoutSeconds"], 3600);
    assert!(first.get("subWorkflowId").is_none(), "nulls are left out");

    let updated = bench.update(&first, "COMPLETED", json!({ "r": 1 })).await;
    assert_eq!(updated.plain(), text(&first["taskId"]));
    bench.update(&bench.take("b").await, "COMPLETED", json!({ "s": 2 })).await.plain();
    let ended = bench.until(&id, "COMPLETED").await;
    assert_eq!(ended["output"], json!({ "s": 2 }));
    assert_eq!(ended["input"], json!({ "x": null }), "values of maps may be null");
    assert_eq!(ended["tasks"].as_array().unwrap().len(), 2);
    assert_eq!(ended["workflowDefinition"]["name"], "w");
    let short = bench.get(&format!("/workflow/{id}?includeTasks=false")).await.shown();
    assert_eq!(short["tasks"], json!([]));
}

#[tokio::test]
async fn workflows_are_started_by_name_too() {
    let bench = Bench::start().await;
    bench.define("by name", json!([simple("t")])).await;
    let input = json!({ "k": "v" });
    for path in [
        "/workflow/by%20name?correlationId=c&priority=3",
        "/workflow/by%20name?version=1&correlationId=c&priority=3",
        "/workflow/start/by%20name?correlationId=c&priority=3",
        "/workflow/start/by%20name/1?correlationId=c&priority=3",
    ] {
        let id = bench.post(path, input.clone()).await.plain();
        let workflow = bench.workflow(&id).await;
        assert_eq!((&workflow["input"], &workflow["correlationId"]), (&input, &json!("c")));
        assert_eq!((&workflow["priority"], &workflow["workflowVersion"]), (&json!(3), &json!(1)));
    }
    bench.bare("POST", "/workflow/by%20name").await.plain();
    bench
        .post("/workflow/none", json!({}))
        .await
        .fails(404, "No such workflow found by name: none, version: null");
    bench
        .post("/workflow/by%20name?version=2", json!({}))
        .await
        .fails(404, "No such workflow found by name: by name, version: 2");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    for (body, status, message) in [
        (json!({ "name": "n" }), 404, "No such workflow defined. name=n, version=null"),
        (json!({ "name": "w", "version": 4 }), 404, "No such workflow defined. name=w, version=4"),
        (json!({ "name": "w", "input": null }), 400, "NULL input passed when starting workflow"),
        (json!({}), 400, "Workflow name cannot be null or empty"),
        (
            json!({ "name": "w", "priority": 100 }),
            400,
            "priority: a number between 0 and 99 is expected",
        ),
        (
            json!({ "name": "w", "priority": -1 }),
            400,
            "priority: a number between 0 and 99 is expected",
        ),
    ] {
        bench.post("/workflow", body).await.fails(status, message);
    }
}

#[tokio::test]
async fn a_key_that_comes_again_does_what_the_caller_says() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let start = |strategy: &str| json!({ "name": "w", "idempotencyKey": "k", "idempotencyStrategy": strategy });
    let id = bench.post("/workflow", start("FAIL")).await.plain();
    assert_eq!(bench.post("/workflow", start("FAIL")).await.status, 409);
    assert_eq!(bench.post("/workflow", start("RETURN_EXISTING")).await.plain(), id);
    assert_eq!(bench.post("/workflow", start("FAIL_ON_RUNNING")).await.status, 409);
    // A strategy without a key says nothing.
    let body = json!({ "name": "w", "idempotencyStrategy": "FAIL" });
    assert_ne!(bench.post("/workflow", body.clone()).await.plain(), id);
    assert_ne!(bench.post("/workflow", body).await.plain(), id);
}

#[tokio::test]
async fn a_workflow_pauses_and_goes_on() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("a"), simple("b")])).await;
    let id = bench.run("w", json!({})).await;
    let not_paused =
        format!("The workflow {id} is not PAUSED so cannot resume. Current status is RUNNING");
    bench.bare("PUT", &format!("/workflow/{id}/resume")).await.fails(500, &not_paused);
    for _ in 0..2 {
        bench.bare("PUT", &format!("/workflow/{id}/pause")).await.is_empty(200);
    }
    assert_eq!(bench.workflow(&id).await["status"], "PAUSED");
    // What waits already may be done.
    bench.update(&bench.take("a").await, "COMPLETED", json!({})).await.plain();
    bench.get("/tasks/poll/b").await.is_empty(204);
    bench.put(&format!("/workflow/{id}/resume"), json!({})).await.is_empty(200);
    bench.update(&bench.take("b").await, "COMPLETED", json!({})).await.plain();
    bench.until(&id, "COMPLETED").await;
    bench
        .bare("PUT", &format!("/workflow/{id}/pause"))
        .await
        .fails(409, &format!("Workflow {id} has ended, status cannot be updated."));
}

#[tokio::test]
async fn a_workflow_is_terminated() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    bench.bare("DELETE", &format!("/workflow/{id}?reason=enough%20of%20it")).await.is_empty(200);
    bench.bare("DELETE", &format!("/workflow/{id}")).await.is_empty(200);
    let ended = bench.workflow(&id).await;
    assert_eq!(
        (&ended["status"], &ended["reasonForIncompletion"]),
        (&json!("TERMINATED"), &json!("enough of it"))
    );
    assert_eq!(ended["tasks"][0]["status"], "CANCELED");
    let done = bench.run("w", json!({})).await;
    bench.update(&bench.take("t").await, "COMPLETED", json!({})).await.plain();
    bench
        .bare("DELETE", &format!("/workflow/{done}"))
        .await
        .fails(409, "Cannot terminate a COMPLETED workflow.");
}

#[tokio::test]
async fn a_failed_workflow_is_retried_restarted_and_rerun() {
    let bench = Bench::start().await;
    bench.post("/metadata/taskdefs", json!([{ "name": "t", "retryCount": 0 }])).await.is_empty(200);
    bench.define("w", json!([simple("first"), simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let path = |verb: &str| format!("/workflow/{id}/{verb}");
    bench
        .bare("POST", &path("retry"))
        .await
        .fails(404, "Workflow is still running.  status=RUNNING");
    assert_eq!(bench.bare("POST", &path("restart")).await.status, 409);
    assert_eq!(bench.post(&path("rerun"), json!({})).await.status, 409);
    bench.update(&bench.take("first").await, "COMPLETED", json!({})).await.plain();
    bench.update(&bench.take("t").await, "FAILED", json!({})).await.plain();
    let failed = bench.until(&id, "FAILED").await;
    assert_eq!(failed["failedReferenceTaskNames"], json!(["t"]));
    let reset = bench.bare("POST", &path("resetcallbacks")).await;
    reset.fails(409, "Workflow is in terminal state. Status = FAILED");

    bench.bare("POST", &path("retry")).await.is_empty(204);
    let again = bench.take("t").await;
    assert_eq!(again["retryCount"], 1);
    bench.bare("POST", &path("resetcallbacks")).await.is_empty(204);
    bench.update(&again, "FAILED_WITH_TERMINAL_ERROR", json!({})).await.plain();
    bench.until(&id, "FAILED").await;

    bench.bare("POST", &path("restart?useLatestDefinitions=true")).await.is_empty(204);
    let first = bench.take("first").await;
    bench.update(&first, "COMPLETED", json!({})).await.plain();
    bench.update(&bench.take("t").await, "COMPLETED", json!({})).await.plain();
    bench.until(&id, "COMPLETED").await;
    let nothing = format!(
        "There are no retryable tasks! Use restart if you want to attempt entire workflow execution \
         again. workflow {id}"
    );
    bench.bare("POST", &path("retry")).await.fails(409, &nothing);

    for task in NOWHERE {
        let body = json!({ "reRunFromTaskId": task });
        bench.post(&path("rerun"), body).await.fails(400, &format!("Task {task} not found"));
    }
    let body = json!({ "reRunFromTaskId": first["taskId"], "taskInput": { "again": true } });
    assert_eq!(bench.post(&path("rerun"), body).await.plain(), id);
    let again = bench.take("first").await;
    assert_eq!((&again["taskId"], &again["inputData"]["again"]), (&first["taskId"], &json!(true)));
}

#[tokio::test]
async fn a_task_is_skipped() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("a"), simple("b"), simple("c")])).await;
    let id = bench.run("w", json!({})).await;
    let skip = |name: &str| format!("/workflow/{id}/skiptask/{name}");
    let body = json!({ "taskInput": { "i": 1 }, "taskOutput": { "o": 2 } });
    bench.put(&skip("b"), body).await.is_empty(200);
    bench.bare("PUT", &skip("c")).await.is_empty(200);
    assert_eq!(bench.bare("PUT", &skip("a")).await.status, 500);
    assert_eq!(bench.bare("PUT", &skip("none")).await.status, 500);
    bench.update(&bench.take("a").await, "COMPLETED", json!({})).await.plain();
    let ended = bench.until(&id, "COMPLETED").await;
    let skipped =
        ended["tasks"].as_array().unwrap().iter().find(|it| it["referenceTaskName"] == "b");
    let skipped = skipped.unwrap();
    assert_eq!(skipped["status"], "SKIPPED");
    assert_eq!((&skipped["inputData"]["i"], &skipped["outputData"]["o"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn workflows_are_removed() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    bench
        .bare("DELETE", &format!("/workflow/{id}/remove"))
        .await
        .fails(400, &format!("Cannot archive workflow: {id} with status: RUNNING"));
    bench
        .bare("DELETE", &format!("/workflow/{id}/remove?archiveWorkflow=false"))
        .await
        .is_empty(200);
    bench
        .get(&format!("/workflow/{id}"))
        .await
        .fails(404, &format!("No such workflow found by id: {id}"));
    let id = bench.run("w", json!({})).await;
    bench.bare("DELETE", &format!("/workflow/{id}/terminate-remove?reason=r")).await.is_empty(200);
    assert_eq!(bench.get(&format!("/workflow/{id}")).await.status, 404);
    bench.get("/tasks/poll/t").await.is_empty(204);
}

#[tokio::test]
async fn a_workflow_is_read_in_parts() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("a"), wait("b")])).await;
    let body = json!({ "name": "w", "correlationId": "c" });
    let id = bench.post("/workflow", body).await.plain();
    bench.update(&bench.take("a").await, "COMPLETED", json!({ "r": 1 })).await.plain();
    let status = bench.get(&format!("/workflow/{id}/status")).await.shown();
    assert_eq!(status, json!({ "workflowId": id, "correlationId": "c", "status": "RUNNING" }));
    let path = format!("/workflow/{id}/status?includeOutput=true&includeVariables=true");
    let status = bench.get(&path).await.shown();
    assert_eq!(fields(&status), ["correlationId", "output", "status", "variables", "workflowId"]);

    let names = |page: &Value| -> Vec<String> {
        let results = page["results"].as_array().unwrap().iter();
        results.map(|task| text(&task["referenceTaskName"])).collect()
    };
    let tasks = |query: &str| format!("/workflow/{id}/tasks{query}");
    let page = bench.get(&tasks("")).await.shown();
    assert_eq!(
        (&page["totalHits"], names(&page)),
        (&json!(2), vec!["a".to_owned(), "b".to_owned()])
    );
    let page = bench.get(&tasks("?start=1&count=5")).await.shown();
    assert_eq!((&page["totalHits"], names(&page)), (&json!(2), vec!["b".to_owned()]));
    let page = bench.get(&tasks("?status=completed&status=FAILED")).await.shown();
    assert_eq!((&page["totalHits"], names(&page)), (&json!(1), vec!["a".to_owned()]));
    let page = bench.get(&tasks("?status=OTHER")).await.shown();
    assert_eq!(page, json!({ "totalHits": 0, "results": [] }));
}

#[tokio::test]
async fn workflows_are_found_by_what_their_callers_name_them() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    bench.define("v", json!([simple("u")])).await;
    let start = |name: &str, id: &str| json!({ "name": name, "correlationId": id });
    let first = bench.post("/workflow", start("w", "c/1")).await.plain();
    let second = bench.post("/workflow", start("w", "d")).await.plain();
    let other = bench.post("/workflow", start("v", "d")).await.plain();

    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|it| text(&it["workflowId"])).collect()
    };
    let found = bench.get("/workflow/w/correlated/c%2F1").await.shown();
    assert_eq!(ids(&found), [first.as_str()]);
    assert_eq!(found[0]["tasks"], json!([]));
    let found = bench.get("/workflow/w/correlated/c%2F1?includeTasks=true").await.shown();
    assert_eq!(found[0]["tasks"].as_array().unwrap().len(), 1);
    bench.bare("DELETE", &format!("/workflow/{first}")).await.is_empty(200);
    assert_eq!(bench.get("/workflow/w/correlated/c%2F1").await.shown(), json!([]));
    let found = bench.get("/workflow/w/correlated/c%2F1?includeClosed=true").await.shown();
    assert_eq!(ids(&found), [first.as_str()]);

    let found = bench.post("/workflow/w/correlated", json!(["d", "none"])).await.shown();
    assert_eq!((ids(&found["d"]), &found["none"]), (vec![second.clone()], &json!([])));
    let body = json!({ "correlationIds": ["d"], "workflowNames": ["w", "v"] });
    let found = bench.post("/workflow/correlated/batch", body).await.shown();
    assert_eq!(ids(&found["d"]), [second.as_str(), other.as_str()]);

    let running = bench.get("/workflow/running/w").await.shown();
    assert_eq!(running, json!([second]));
    assert_eq!(bench.get("/workflow/running/w?version=2").await.shown(), json!([]));
    assert_eq!(bench.get("/workflow/running/w?version=-2").await.shown(), json!([]));
    assert_eq!(bench.get("/workflow/running/w?startTime=1&endTime=2").await.shown(), json!([]));
}

#[tokio::test]
async fn variables_are_set_from_outside() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let path = format!("/workflow/{id}/variables");
    let shown = bench.post(&path, json!({ "a": 1, "b": 2 })).await.shown();
    assert_eq!(
        (&shown["workflowId"], &shown["variables"]),
        (&json!(id), &json!({ "a": 1, "b": 2 }))
    );
    let shown = bench.post(&path, json!({ "b": 3 })).await.shown();
    assert_eq!(shown["variables"], json!({ "a": 1, "b": 3 }));
}
