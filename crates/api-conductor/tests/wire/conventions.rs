//! What holds for every endpoint.

use serde_json::json;
use windlass_server::settings::Switch;

use crate::common::{Bench, simple};

#[tokio::test]
async fn errors_have_one_shape() {
    let bench = Bench::start().await;
    for (method, path, status, message) in [
        ("GET", "/nothing", 404, "No static resource api/nothing."),
        ("GET", "/", 404, "No static resource api/."),
        ("GET", "", 404, "No static resource api."),
        ("POST", "/tasks/t/ack", 404, "No static resource api/tasks/t/ack."),
        ("GET", "/metadata/workflow/", 404, "No static resource api/metadata/workflow/."),
        ("POST", "/token", 404, "No static resource api/token."),
        ("PATCH", "/workflow", 405, "Request method 'PATCH' is not supported"),
        ("GET", "/workflow", 405, "Request method 'GET' is not supported"),
        ("DELETE", "/tasks", 405, "Request method 'DELETE' is not supported"),
        ("POST", "/health", 405, "Request method 'POST' is not supported"),
    ] {
        bench.bare(method, path).await.fails(status, message);
    }
    let answer = bench.send("GET", "/actuator/nothing", &[], b"").await;
    answer.fails(404, "No static resource actuator/nothing.");
}

#[tokio::test]
async fn parameters_are_read_leniently() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    for (flag, tasks) in [("false", 0), ("OFF", 0), ("no", 0), ("0", 0), ("1", 1), ("", 1)] {
        let path = format!("/workflow/{id}?includeTasks={flag}&queryId=x");
        assert_eq!(bench.get(&path).await.shown()["tasks"].as_array().unwrap().len(), tasks);
    }
    for path in [
        format!("/workflow/{id}?includeTasks=maybe"),
        "/metadata/workflow/w?version=one".to_owned(),
        "/tasks/queue/size".to_owned(),
        "/tasks/queue/polldata".to_owned(),
        "/workflow/externalstoragelocation?path=p".to_owned(),
        "/metadata/workflow/w/one".to_owned(),
    ] {
        let method = if path.ends_with("/one") { "DELETE" } else { "GET" };
        assert_eq!(bench.bare(method, &path).await.status, 500, "{path}");
    }
}

#[tokio::test]
async fn the_accept_header_does_not_count() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let body = json!({ "name": "w" }).to_string();
    let length = format!("content-length: {}", body.len());
    let lines =
        ["accept: application/xml", "content-type: application/json;charset=utf-8", &length];
    bench.send("POST", "/api/workflow", &lines, body.as_bytes()).await.plain();
    let lines = ["accept: text/plain"];
    bench.send("GET", "/api/metadata/workflow", &lines, b"").await.shown();
}

#[tokio::test]
async fn bodies_may_come_in_chunks_and_without_a_type() {
    let bench = Bench::start().await;
    let body = br#"[{"name":"a","unknown":{"x":[]},"retryCount":null}]"#;
    let mut chunked = Vec::new();
    for part in body.chunks(10) {
        chunked.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        chunked.extend_from_slice(part);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    let lines = ["transfer-encoding: chunked", "content-type: application/json"];
    bench.send("POST", "/api/metadata/taskdefs", &lines, &chunked).await.is_empty(200);
    let shown = bench.get("/metadata/taskdefs/a").await.shown();
    assert_eq!(shown["unknown"], json!({ "x": [] }));
    let lines = ["content-length: 14"];
    bench.send("POST", "/api/metadata/taskdefs", &lines, br#"[{"name":"b"}]"#).await.is_empty(200);
    // Some clients send an empty object where nothing is wanted.
    let lines = ["content-length: 2", "content-type: application/json"];
    bench.send("DELETE", "/api/metadata/taskdefs/a", &lines, b"{}").await.is_empty(200);
}

#[tokio::test]
async fn what_browsers_send_anywhere_is_refused() {
    let bench = Bench::start().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let lines = ["content-length: 14", &*format!("content-type: {kind}")];
        let answer =
            bench.send("POST", "/api/metadata/taskdefs", &lines, br#"[{"name":"b"}]"#).await;
        answer.fails(415, &format!("Content-Type '{kind}' is not supported"));
    }
}

#[tokio::test]
async fn the_pages_beside_the_prefix_are_there() {
    let bench = Bench::start().await;
    let health = bench.send("GET", "/health", &[], b"").await.json();
    assert_eq!((&health["healthy"], &health["status"]), (&json!(true), &json!("serving")));
    assert_eq!(health["healthResults"], json!([]));
    let health = bench.get("/health").await.shown();
    assert_eq!(
        health,
        json!({ "healthy": true, "healthResults": [], "suppressedHealthResults": [] })
    );
    let up = bench.send("GET", "/actuator/health", &[], b"").await.shown();
    assert_eq!(up, json!({ "status": "UP" }));
    assert!(bench.send("GET", "/actuator/info", &[], b"").await.shown()["build"].is_object());
    assert!(bench.send("GET", "/api-docs", &[], b"").await.shown()["openapi"].is_string());
    assert!(!bench.get("/version").await.plain().is_empty());
}

#[tokio::test]
async fn the_face_can_be_switched_off() {
    let bench = Bench::with(|config| config.conductor = Switch::Off).await;
    for path in ["/api/metadata/workflow", "/api/health", "/actuator/health", "/api-docs"] {
        assert_eq!(bench.send("GET", path, &[], b"").await.status, 404, "{path}");
    }
    assert_eq!(bench.send("GET", "/health", &[], b"").await.status, 200);
}
