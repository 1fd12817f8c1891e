//! What web pages may not do, over the wires that a browser can speak.

use serde_json::json;

use crate::common::{Bench, create, http, job};

/// What each wire takes from clients without a content type, so that a browser would ask nobody first.
const CHANGES: [(&str, &str); 4] = [
    ("/windlass/v1/jobs", r#"{"queue":"q"}"#),
    ("/api/metadata/taskdefs", r#"[{"name":"t","ownerEmail":"a@b.example"}]"#),
    ("/api/public/v1/workspaces", r#"{"name":"w"}"#),
    ("/api/public/v1/applications/token", r#"{"client_id":"c","client_secret":"s"}"#),
];

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let bench = Bench::start().await;
    let own = format!("http://{}", bench.address());
    let host = bench.address().to_string();
    for (path, body) in CHANGES {
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
            for kind in ["application/json", ""] {
                let headers = [("origin", origin), ("content-type", kind), ("host", &*host)];
                let answer = http(bench.address(), "POST", path, &headers, body.as_bytes()).await;
                assert_eq!(answer.status, 403, "{path} {origin}: {answer:?}");
                assert_eq!(answer.header("content-type"), Some("application/problem+json"));
                let body = answer.json();
                assert_eq!((&body["status"], &body["code"]), (&json!(403), &json!("cross-origin")));
                assert!(body["message"].is_string() && body["detail"] == body["message"], "{body}");
            }
        }
        let headers = [("origin", &*own), ("content-type", "application/json"), ("host", &*host)];
        let answer = http(bench.address(), "POST", path, &headers, body.as_bytes()).await;
        assert!(answer.status < 300, "its own: {path}: {answer:?}");
        let answer = bench.http("POST", path, body).await;
        assert!(answer.status < 300 || answer.status == 409, "no browser: {path}: {answer:?}");
    }
}

#[tokio::test]
async fn a_page_of_another_origin_takes_no_tasks_with_a_picture() {
    let bench = Bench::start().await;
    let host = bench.address().to_string();
    for (site, status) in [("cross-site", 403), ("same-origin", 204)] {
        let kind = [("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")];
        let headers = [("sec-fetch-site", site), ("host", &*host), kind[0], kind[1]];
        let answer = http(bench.address(), "GET", "/api/tasks/poll/t", &headers, b"").await;
        assert_eq!(answer.status, status, "{site}: {answer:?}");
    }
}

#[tokio::test]
async fn a_name_that_was_made_to_lead_here_reads_nothing() {
    let bench = Bench::start().await;
    let path = "/api/public/v1/workspaces";
    for (host, status) in [("evil.example", 403), ("localhost:8080", 200), ("127.0.0.1", 200)] {
        let headers = [("sec-fetch-site", "same-origin"), ("host", host)];
        let answer = http(bench.address(), "GET", path, &headers, b"").await;
        assert_eq!(answer.status, status, "{host}: {answer:?}");
    }
    // Programs may call it what they like.
    assert_eq!(bench.http("GET", path, "").await.status, 200);
    create(&mut bench.grpc().await, job("q")).await;
}
