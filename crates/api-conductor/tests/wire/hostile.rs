//! What nobody should send.

use serde_json::json;

use crate::common::{Bench, NOWHERE, simple};

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let deep = format!("{}{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let named = format!("/tasks/{id}/t/COMPLETED");
    let rerun = format!("/workflow/{id}/rerun");
    let variables = format!("/workflow/{id}/variables");
    for path in [
        "/workflow",
        "/workflow/w",
        "/workflow/test",
        "/workflow/execute/w/1",
        "/workflow/w/correlated",
        "/workflow/bulk/retry",
        "/metadata/workflow",
        "/metadata/workflow/validate",
        "/metadata/taskdefs",
        "/tasks",
        "/tasks/update-v2",
        "/event",
        named.as_str(),
        rerun.as_str(),
        variables.as_str(),
    ] {
        for body in ["{", "}", "nonsense", "{\"a\":}", "7", "\"text\"", "{} {}", "\u{0}", &deep] {
            let answer = bench.text("POST", path, body).await;
            assert_eq!(answer.status, 500, "{path} {body} {}", answer.text());
            assert!(answer.json()["message"].as_str().unwrap().starts_with("JSON parse error: "));
        }
    }
    for path in ["/tasks", "/tasks/update-v2", "/workflow", "/workflow/w", "/workflow/test", &rerun]
    {
        bench.text("POST", path, "[]").await.fails(500, "JSON parse error: an object is expected");
    }
    assert_eq!(bench.workflow(&id).await["status"], "RUNNING");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let bench = Bench::start().await;
    let body = format!("[{{\"name\":\"{}\"}}]", "x".repeat(10 << 20));
    let answer = bench.text("POST", "/metadata/taskdefs", &body).await;
    answer.fails(413, "The request body is over the limit of 10485760 bytes");
    let lines = ["transfer-encoding: chunked", "content-type: application/json"];
    let chunk = format!("{:x}\r\n{}\r\n0\r\n\r\n", body.len(), body);
    let answer = bench.send("POST", "/api/metadata/taskdefs", &lines, chunk.as_bytes()).await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_result_over_the_limit_of_payloads_is_refused() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let task = bench.take("t").await;
    let answer = bench.update(&task, "COMPLETED", json!({ "x": "y".repeat(5 << 20) })).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(bench.workflow(&id).await["status"], "RUNNING");
}

#[tokio::test]
async fn ids_that_name_nothing_are_not_found() {
    let bench = Bench::start().await;
    for id in NOWHERE.into_iter().chain(["..", "%2e%2e%2f", "%F0%9F%92%A9", "8-8-8-8-8"]) {
        for (method, path) in [
            ("GET", "/workflow/{}"),
            ("GET", "/workflow/{}/status"),
            ("GET", "/workflow/{}/tasks"),
            ("GET", "/workflow/{}/tasks?status=NONE"),
            ("DELETE", "/workflow/{}"),
            ("DELETE", "/workflow/{}/remove"),
            ("DELETE", "/workflow/{}/terminate-remove"),
            ("PUT", "/workflow/decide/{}"),
            ("PUT", "/workflow/{}/pause"),
            ("PUT", "/workflow/{}/resume"),
            ("PUT", "/workflow/{}/skiptask/r"),
            ("POST", "/workflow/{}/rerun"),
            ("POST", "/workflow/{}/restart"),
            ("POST", "/workflow/{}/retry"),
            ("POST", "/workflow/{}/resetcallbacks"),
            ("POST", "/workflow/{}/state"),
            ("POST", "/tasks/{}/r/COMPLETED"),
            ("POST", "/tasks/{}/r/COMPLETED/sync"),
            ("POST", "/tasks/{}/COMPLETED/signal"),
            ("POST", "/tasks/{}/COMPLETED/signal/sync"),
            ("POST", "/queue/update/{}/r/COMPLETED"),
            ("POST", "/admin/sweep/requeue/{}"),
            ("POST", "/admin/consistency/verifyAndRepair/{}"),
        ] {
            let path = path.replace("{}", id);
            let answer = bench.bare(method, &path).await;
            assert_eq!(answer.status, 404, "{method} {path} {}", answer.text());
            let message = answer.json()["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with("No such workflow found by id: "), "{message}");
        }
    }
}

#[tokio::test]
async fn strange_numbers_and_names_are_taken_or_refused() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let task = bench.take("t").await;
    for (path, status) in [
        (format!("/workflow/{id}/tasks?start=-1"), 400),
        (format!("/workflow/{id}/tasks?count=-1"), 400),
        (format!("/workflow/{id}/tasks?start=99999999999"), 200),
        (format!("/workflow/{id}/tasks?count=1e3"), 500),
        ("/admin/task/t?start=-1".to_owned(), 400),
        ("/metadata/taskdefs/%00".to_owned(), 404),
        ("/tasks/poll/%00".to_owned(), 400),
        ("/tasks/poll/%FF".to_owned(), 500),
        (format!("/tasks/poll/{}", "x".repeat(5_000)), 400),
    ] {
        assert_eq!(bench.get(&path).await.status, status, "{path}");
    }
    let body = json!({
        "workflowInstanceId": id, "taskId": task["taskId"], "status": "IN_PROGRESS",
        "callbackAfterSeconds": -5, "logs": null, "outputData": null, "workerId": null,
    });
    bench.post("/tasks", body).await.plain();
    bench.take("t").await;
    let body = json!({
        "workflowInstanceId": id, "taskId": task["taskId"], "status": "COMPLETED", "outputData": [],
    });
    assert_eq!(bench.post("/tasks", body).await.status, 500);
    for version in ["-1", "4294967296", "9223372036854775807"] {
        let path = format!("/metadata/workflow/w/{version}");
        let answer = bench.bare("DELETE", &path).await;
        answer.fails(404, &format!("No such workflow definition: w version: {version}"));
    }
}
