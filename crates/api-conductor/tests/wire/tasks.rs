//! Tasks handed out, updated and looked at.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::common::{Bench, NOWHERE, fields, simple, text, timed, wait};

#[tokio::test]
async fn polls_answer_as_soon_as_there_is_one() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let (answer, took) = timed(bench.get("/tasks/poll/t?workerid=w")).await;
    answer.is_empty(204);
    assert!(took >= Duration::from_millis(100), "{took:?}");
    let (answer, took) = timed(bench.get("/tasks/poll/batch/t?count=5&timeout=300")).await;
    assert_eq!(answer.shown(), json!([]));
    assert!(took >= Duration::from_millis(300), "{took:?}");
    for _ in 0..3 {
        bench.run("w", json!({})).await;
    }
    let (answer, took) = timed(bench.get("/tasks/poll/batch/t?count=5&timeout=5000")).await;
    assert_eq!(answer.shown().as_array().unwrap().len(), 3);
    assert!(took < Duration::from_secs(4), "{took:?}");
    // One that comes while somebody waits.
    let later = async {
        bench.until_waiters(1).await;
        bench.run("w", json!({})).await
    };
    let path = "/tasks/poll/batch/t?count=5&timeout=5000";
    let ((answer, took), id) = tokio::join!(timed(bench.get(path)), later);
    assert_eq!(answer.shown()[0]["workflowInstanceId"], id);
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[tokio::test]
async fn polls_take_strange_numbers() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    bench
        .get("/tasks/poll/batch/t?timeout=5001")
        .await
        .fails(400, "Long Poll Timeout value cannot be more than 5 seconds");
    for query in ["count=0", "count=-3", "count=1&timeout=-5", "count=99999999999&timeout=0"] {
        let path = format!("/tasks/poll/batch/t?{query}");
        assert_eq!(bench.get(&path).await.shown(), json!([]), "{query}");
    }
    assert_eq!(bench.get("/tasks/poll/batch/t?count=many").await.status, 500);
}

#[tokio::test]
async fn tasks_of_a_domain_are_for_those_who_ask_for_it() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let body = json!({ "name": "w", "taskToDomain": { "*": "d" } });
    let id = bench.post("/workflow", body).await.plain();
    bench.get("/tasks/poll/t").await.is_empty(204);
    assert_eq!(bench.get("/tasks/poll/batch/t?count=1").await.shown(), json!([]));
    assert_eq!(bench.get("/tasks/queue/size?taskType=t&domain=d").await.shown(), json!(1));
    let task = bench.get("/tasks/poll/t?domain=d&workerid=x").await.shown();
    assert_eq!((&task["workflowInstanceId"], &task["domain"]), (&json!(id), &json!("d")));
}

#[tokio::test]
async fn a_worker_gets_the_next_with_its_update() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    bench.run("w", json!({})).await;
    bench.run("w", json!({})).await;
    let mut task = bench.take("t").await;
    let update = |task: &Value, status: &str| {
        json!({
            "workflowInstanceId": task["workflowInstanceId"], "taskId": task["taskId"],
            "status": status, "workerId": "x",
        })
    };
    // A heartbeat, whatever else it says.
    let mut beat = update(&task, "COMPLETED");
    beat["extendLease"] = json!(true);
    bench.post("/tasks/update-v2", beat).await.is_empty(204);
    let next = bench.post("/tasks/update-v2", update(&task, "COMPLETED")).await.shown();
    assert_ne!(next["taskId"], task["taskId"]);
    assert_eq!(next["workerId"], "x");
    // What has ended is passed over.
    bench.post("/tasks/update-v2", update(&task, "FAILED")).await.is_empty(204);
    task = next;
    bench.post("/tasks/update-v2", update(&task, "COMPLETED")).await.is_empty(204);
}

#[tokio::test]
async fn a_task_put_back_is_handed_out_again() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let task = bench.take("t").await;
    bench.update(&task, "IN_PROGRESS", json!({ "part": 1 })).await.plain();
    let again = bench.take("t").await;
    assert_eq!((&again["taskId"], &again["pollCount"]), (&task["taskId"], &json!(2)));
    assert_eq!(again["outputData"], json!({ "part": 1 }));
    let body = json!({
        "workflowInstanceId": id, "taskId": task["taskId"], "status": "IN_PROGRESS",
        "callbackAfterSeconds": 1000,
    });
    bench.post("/tasks", body).await.plain();
    bench.get("/tasks/poll/t").await.is_empty(204);
    // Nobody gets it yet, and it counts.
    assert_eq!(bench.get("/tasks/queue/sizes?taskType=t").await.shown(), json!({ "t": 1 }));
    assert_eq!(bench.bare("POST", "/tasks/queue/requeue/t").await.plain(), "1");
    bench.take("t").await;
}

#[tokio::test]
async fn updates_of_what_is_not_there_say_so() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let task = bench.take("t").await;
    for path in ["/tasks", "/tasks/update-v2"] {
        let failure = bench.post(path, json!({ "status": "COMPLETED" })).await;
        let failure = failure.fails(400, "Validation failed, check below errors for detail.");
        let sentences: Vec<_> = failure["validationErrors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| text(&error["message"]))
            .collect();
        assert_eq!(
            sentences,
            ["Workflow Id cannot be null or empty", "Task ID cannot be null or empty"]
        );
        for nowhere in NOWHERE {
            let mut body = json!({ "workflowInstanceId": nowhere, "taskId": task["taskId"], "status": "COMPLETED" });
            bench
                .post(path, body.clone())
                .await
                .fails(404, &format!("No such workflow found by id: {nowhere}"));
            body["workflowInstanceId"] = json!(id);
            body["taskId"] = json!(nowhere);
            bench
                .post(path, body)
                .await
                .fails(404, &format!("No such task found by id: {nowhere}"));
        }
        for status in ["DONE", "SCHEDULED", ""] {
            assert_eq!(bench.update(&task, status, json!({})).await.status, 500, "{status}");
        }
    }
    for nowhere in NOWHERE {
        bench
            .get(&format!("/tasks/{nowhere}"))
            .await
            .fails(404, &format!("Task not found for taskId: {nowhere}"));
        bench.get(&format!("/tasks/{nowhere}/log")).await.is_empty(204);
    }
}

#[tokio::test]
async fn tasks_are_updated_by_their_names() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("a"), wait("b"), simple("c")])).await;
    let id = bench.run("w", json!({})).await;
    let task = bench.take("a").await;
    bench.update(&task, "IN_PROGRESS", json!({ "first": 1 })).await.plain();
    let updated =
        bench.post(&format!("/tasks/{id}/a/COMPLETED?workerid=x"), json!({ "second": 2 })).await;
    assert_eq!(updated.plain(), text(&task["taskId"]));
    let seen = bench.get(&format!("/tasks/{}", text(&task["taskId"]))).await.shown();
    assert_eq!(seen["outputData"], json!({ "first": 1, "second": 2 }));
    assert_eq!(seen["workerId"], "x");
    // Nothing has that name, or it has ended.
    for name in ["a", "none"] {
        bench.post(&format!("/tasks/{id}/{name}/COMPLETED"), json!({})).await.is_empty(200);
        bench
            .post(&format!("/tasks/{id}/{name}/COMPLETED/sync"), json!({}))
            .await
            .fails(404, &format!("Found no running task {name} of workflow {id} to update"));
    }
    assert_eq!(bench.post(&format!("/tasks/{id}/b/DONE"), json!({})).await.status, 500);
    let workflow =
        bench.post(&format!("/tasks/{id}/b/COMPLETED/sync"), json!({ "k": 1 })).await.shown();
    assert_eq!(workflow["workflowId"], id);
    assert_eq!(workflow["tasks"][1]["outputData"], json!({ "k": 1 }));
    assert_eq!(workflow["tasks"][2]["referenceTaskName"], "c");
}

#[tokio::test]
async fn tasks_are_woken_through_the_queue_of_events() {
    let bench = Bench::start().await;
    bench.define("w", json!([wait("a"), wait("b")])).await;
    let id = bench.run("w", json!({})).await;
    bench.post(&format!("/queue/update/{id}/a/COMPLETED"), json!({ "x": 1 })).await.is_empty(200);
    assert_eq!(bench.post(&format!("/queue/update/{id}/a/COMPLETED"), json!({})).await.status, 400);
    let workflow = bench.workflow(&id).await;
    let task = text(&workflow["tasks"][1]["taskId"]);
    bench.post(&format!("/queue/update/{id}/task/{task}/COMPLETED"), json!({})).await.is_empty(200);
    bench.until(&id, "COMPLETED").await;
}

#[tokio::test]
async fn tasks_have_logs() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let task = bench.take("t").await;
    let path = format!("/tasks/{}/log", text(&task["taskId"]));
    bench.get(&path).await.is_empty(204);
    bench.text("POST", &path, "{\"any\": text}").await.is_empty(200);
    let lines = ["content-type: text/plain", "content-length: 5"];
    bench.send("POST", &format!("/api{path}"), &lines, b"plain").await.is_empty(200);
    let body = json!({
        "workflowInstanceId": id, "taskId": task["taskId"], "status": "FAILED",
        "logs": [{ "log": "why", "taskId": "x", "createdTime": 1 }, { "log": null }, {}],
        "reasonForIncompletion": "because",
    });
    bench.post("/tasks", body).await.plain();
    let lines = bench.get(&path).await.shown();
    let said: Vec<_> = lines.as_array().unwrap().iter().map(|line| text(&line["log"])).collect();
    assert_eq!(said, ["{\"any\": text}", "plain", "why"]);
    assert_eq!(fields(&lines[0]), ["createdTime", "log", "taskId"]);
    assert_eq!(lines[0]["taskId"], task["taskId"]);
    bench.text("POST", "/tasks/t1/log", "x").await.fails(404, "No such task found by id: t1");
}

#[tokio::test]
async fn queues_and_pollers_are_counted() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    for _ in 0..3 {
        bench.run("w", json!({})).await;
    }
    bench.take("t").await;
    assert_eq!(bench.get("/tasks/queue/size?taskType=t").await.shown(), json!(2));
    assert_eq!(bench.get("/tasks/queue/size?taskType=none").await.shown(), json!(0));
    let sizes = bench.get("/tasks/queue/sizes?taskType=t&taskType=u").await.shown();
    assert_eq!(sizes, json!({ "t": 2, "u": 0 }));
    assert_eq!(bench.get("/tasks/queue/sizes").await.shown(), json!({}));
    assert_eq!(bench.get("/tasks/queue/all").await.shown(), json!({ "t": 2 }));
    let verbose = bench.get("/tasks/queue/all/verbose").await.shown();
    assert_eq!(verbose, json!({ "t": { "a": { "size": 2, "uacked": 1 } } }));

    let data = bench.get("/tasks/queue/polldata?taskType=t").await.shown();
    assert_eq!(fields(&data[0]), ["lastPollTime", "queueName", "workerId"]);
    assert_eq!((&data[0]["queueName"], &data[0]["workerId"]), (&json!("t"), &json!("w")));
    bench.get("/tasks/poll/batch/u?workerid=v&domain=d").await.shown();
    let all = bench.get("/tasks/queue/polldata/all").await.shown();
    assert_eq!(all.as_array().unwrap().len(), 2);
    assert_eq!((&all[1]["queueName"], &all[1]["domain"]), (&json!("u"), &json!("d")));

    let pending = bench.get("/admin/task/t").await.shown();
    assert_eq!(pending.as_array().unwrap().len(), 3);
    let pending = bench.get("/admin/task/t?start=1&count=1").await.shown();
    assert_eq!(pending.as_array().unwrap().len(), 1);
}

/// A poll whose client went takes nothing with it.
#[tokio::test]
async fn a_poll_ends_with_its_client() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let mut gone = bench.connect().await;
    let request = "GET /api/tasks/poll/batch/t?count=1&timeout=5000 HTTP/1.1\r\nhost: x\r\n\r\n";
    gone.write_all(request.as_bytes()).await.unwrap();
    bench.until_waiters(1).await;
    drop(gone);
    bench.until_waiters(0).await;
    bench.run("w", json!({})).await;
    bench.take("t").await;
}
