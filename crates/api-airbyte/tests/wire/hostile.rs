//! What no client of the original sends, and what every path under the prefix answers then.

use serde_json::json;
use windlass_record::command::{Command, PutDocuments};

use crate::bench::{Bench, text, write};

#[tokio::test]
async fn unknown_paths_and_methods_have_this_shape() {
    let bench = Bench::start().await;
    for path in [
        "/api/public/v1",
        "/api/public/v1/",
        "/api/public/v1/rockets",
        "/api/public/v1/jobs/1/2",
        "/api/v1",
        "/api/v1/",
        "/api/v1/connections/get",
        "/api/public/v1/users",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let answer = bench.send(method, path, &["content-length: 0"], b"").await;
            let said = answer.fails(404, "resource-not-found");
            assert_eq!(said, format!("No endpoint {path}"));
        }
    }
    for (method, path) in [
        ("PUT", "/api/public/v1/jobs"),
        ("DELETE", "/api/public/v1/workspaces"),
        ("POST", "/api/public/v1/health"),
        ("GET", "/api/v1/applications/token"),
    ] {
        let answer = bench.send(method, path, &["content-length: 0"], b"").await;
        answer.fails(405, "method-not-allowed");
        assert!(answer.header("allow").is_some(), "{answer:?}");
    }
    let others = bench.send("GET", "/api/nothing", &[], b"").await;
    assert_eq!(others.status, 404);
    assert!(others.json()["instance"].is_string(), "the other face has its own shape");
}

#[tokio::test]
async fn the_health_is_told_without_a_token() {
    let bench = Bench::start().await;
    for path in ["/api/public/v1/health", "/api/v1/health"] {
        let answer = bench.send("GET", path, &[], b"").await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "Successful operation"));
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused() {
    let bench = Bench::start().await;
    for body in ["", "{", "[]", "null", "7", "\"x\"", "{\"name\":", "{\"name\": {}}", "\u{0}"] {
        bench.text("POST", "/workspaces", body).await.fails(400, "bad-request");
        bench.text("POST", "/jobs", body).await.fails(400, "bad-request");
        bench.text("POST", "/applications/token", body).await.fails(400, "bad-request");
    }
    let xml = ["content-type: application/xml", "content-length: 2"];
    let answer = bench.send("POST", "/api/public/v1/workspaces", &xml, b"{}").await;
    answer.fails(415, "unsupported-media-type");
    let broken = ["content-length: 2"];
    let answer = bench.send("POST", "/api/public/v1/workspaces", &broken, &[b'{', 0xff]).await;
    answer.fails(400, "bad-request");
}

#[tokio::test]
async fn bodies_that_are_too_large_are_refused() {
    let bench = Bench::start().await;
    let length = format!("content-length: {}", 11 << 20);
    let body = vec![b' '; 11 << 20];
    for (path, kind) in [
        ("/api/public/v1/sources", "content-type: application/json"),
        ("/api/public/v1/applications/token", "content-type: application/json"),
        ("/api/public/v1/applications/token", "content-type: application/x-www-form-urlencoded"),
    ] {
        let answer = bench.send("POST", path, &[kind, &length], &body).await;
        answer.fails(413, "payload-too-large");
    }
    // A body that fits, and a document that does not.
    let name = "x".repeat(5 << 20);
    let configuration = json!({ "sourceType": "faker", "x": name });
    let body = json!({
        "name": "n", "workspaceId": crate::bench::WORKSPACE, "configuration": configuration,
    });
    bench.post("/sources", body).await.fails(413, "payload-too-large");
}

#[tokio::test]
async fn a_configuration_may_not_be_too_deep() {
    let bench = Bench::start().await;
    let mut configuration = json!("leaf");
    for _ in 0..100 {
        configuration = json!({ "x": configuration });
    }
    configuration["sourceType"] = json!("faker");
    let body = json!({
        "name": "n", "workspaceId": crate::bench::WORKSPACE, "configuration": configuration,
    });
    bench.post("/sources", body).await.fails(400, "bad-request");
}

#[tokio::test]
async fn ids_of_any_kind_name_nothing() {
    let bench = Bench::start().await;
    for id in ["x", "%20", "%00", "..%2f..", &"y".repeat(4_000), "%F0%9F%98%80"] {
        for what in ["sources", "destinations", "connections", "workspaces"] {
            let answer = bench.get(&format!("/{what}/{id}")).await;
            answer.fails(404, "resource-not-found");
        }
    }
    bench.get("/sources/%ff").await.fails(400, "bad-request");
}

#[tokio::test]
async fn a_document_that_cannot_be_read_hides_no_others() {
    let mut bench = Bench::start().await;
    let connection = text(&bench.connect(json!({})).await["connectionId"]);
    let broken = vec![
        write("airbyte.connection", "broken", json!({ "name": 7 })),
        write("airbyte.source", "broken", json!([])),
        write("airbyte.state", "broken", json!({})),
    ];
    let command = Command::PutDocuments(PutDocuments { documents: broken });
    bench.gateway().command(command).await.unwrap();
    bench.again().await;
    let found = bench.get("/connections").await.shown();
    assert_eq!(found["data"][0]["connectionId"], json!(connection));
    assert_eq!(found["data"].as_array().map(Vec::len), Some(1));
    assert_eq!(bench.get("/sources").await.shown()["data"].as_array().map(Vec::len), Some(1));
    let said = bench.get("/connections/broken").await.fails(500, "unexpected-problem");
    assert!(said.contains("airbyte.connection broken"), "{said}");
    assert!(bench.document("airbyte.state", "broken").await.is_some(), "its connection is there");
}
