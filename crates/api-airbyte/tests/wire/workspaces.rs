//! Workspaces.

use std::time::Instant;

use serde_json::{Value, json};
use windlass_api_airbyte::limit::CANCEL_WAIT_MAX;

use crate::bench::{Bench, NOWHERE, WORKSPACE, text, write};

#[tokio::test]
async fn a_workspace_lives_and_goes_with_all_that_is_in_it() {
    let bench = Bench::start().await;
    let all = bench.get("/workspaces").await.shown();
    assert_eq!(all["data"][0]["workspaceId"], WORKSPACE);
    assert_eq!((&all["next"], &all["previous"]), (&json!(""), &json!("")));

    let made = bench.post("/workspaces", json!({ "name": " mine " })).await.shown();
    let expected = json!({
        "workspaceId": made["workspaceId"], "name": "mine", "dataResidency": "auto",
        "notifications": {},
    });
    assert_eq!(made, expected);
    let id = text(&made["workspaceId"]);
    let path = format!("/workspaces/{id}");
    let notifications = json!({ "failure": { "email": { "enabled": true } } });
    let changed = bench.patch(&path, json!({ "notifications": notifications })).await.shown();
    assert_eq!((&changed["name"], &changed["notifications"]), (&json!("mine"), &notifications));
    assert_eq!(bench.get(&path).await.shown(), changed);

    let configuration = json!({ "sourceType": "faker" });
    let body = json!({ "name": "s", "workspaceId": id, "configuration": configuration });
    let source = text(&bench.post("/sources", body).await.shown()["sourceId"]);
    bench.delete(&path).await.gone();
    bench.get(&path).await.fails(404, "resource-not-found");
    bench.get(&format!("/sources/{source}")).await.fails(404, "resource-not-found");
    bench.delete(&path).await.fails(404, "resource-not-found");
    bench.delete(&format!("/workspaces/{WORKSPACE}")).await.fails(409, "state-conflict");
}

#[tokio::test]
async fn a_workspace_goes_at_once_with_its_catalogs() {
    let bench = Bench::start().await;
    let made = bench.post("/workspaces", json!({ "name": "w" })).await.shown();
    let workspace = text(&made["workspaceId"]);
    let launch = json!({ "kind": "command", "command": ["true"] });
    let definition = json!({ "name": "null", "launch": launch });
    let path = format!("/workspaces/{workspace}/definitions/destinations");
    bench.post(&path, definition).await.shown();
    let end = |side: &str, kind: &str| {
        let configuration = json!({ format!("{side}Type"): kind });
        json!({ "name": side, "workspaceId": workspace, "configuration": configuration })
    };
    let source = bench.post("/sources", end("source", "faker")).await.shown()["sourceId"].clone();
    let destination = bench.post("/destinations", end("destination", "null")).await.shown();
    let catalog = write("airbyte.catalog", &text(&source), json!({ "sourceId": source }));
    bench.put_documents(vec![catalog]).await;
    let mut jobs = Vec::new();
    for _ in 0..3 {
        let ends = json!({ "sourceId": source, "destinationId": destination["destinationId"] });
        let made = bench.post("/connections", ends).await.shown();
        bench.sync(&text(&made["connectionId"])).await;
        jobs.push(bench.take("airbyte.sync").await);
    }
    let stops = bench.stops("airbyte.sync");
    // Workers that end none of their jobs before all are cancelled.
    let workers = async {
        stops.all(&jobs).await;
        for job in &jobs {
            bench.complete(job, json!({}), Vec::new()).await;
        }
    };
    let path = format!("/workspaces/{workspace}");
    let began = Instant::now();
    let (gone, ()) = tokio::join!(bench.delete(&path), workers);
    gone.gone();
    assert!(began.elapsed() < CANCEL_WAIT_MAX, "{:?}", began.elapsed());
    assert!(bench.document("airbyte.catalog", &text(&source)).await.is_none());
}

#[tokio::test]
async fn lists_have_pages() {
    let bench = Bench::start().await;
    for name in ["a", "b", "c", "d"] {
        bench.post("/workspaces", json!({ "name": name })).await.shown();
    }
    let mut seen = Vec::new();
    let mut path = "/workspaces?limit=2".to_owned();
    loop {
        let page = bench.get(&path).await.shown();
        seen.extend(page["data"].as_array().unwrap().iter().map(|it| text(&it["workspaceId"])));
        let next = text(&page["next"]);
        if next.is_empty() {
            assert!(text(&page["previous"]).ends_with("/workspaces?limit=2&offset=2"), "{page}");
            break;
        }
        path = next.strip_prefix("http://windlass/api/public/v1").unwrap().to_owned();
    }
    assert_eq!(seen.len(), 5);
    let wanted = format!("/workspaces?workspaceIds={}&workspaceIds={},x", seen[1], seen[3]);
    assert_eq!(bench.get(&wanted).await.shown()["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(bench.get("/workspaces?offset=9").await.shown()["data"], Value::Array(vec![]));
    for wrong in ["limit=0", "limit=101", "limit=x", "offset=-1"] {
        bench.get(&format!("/workspaces?{wrong}")).await.fails(400, "bad-request");
    }
}

#[tokio::test]
async fn what_is_no_workspace_is_refused() {
    let bench = Bench::start().await;
    bench.post("/workspaces", json!({})).await.fails(400, "bad-request");
    bench.post("/workspaces", json!({ "name": " " })).await.fails(400, "bad-request");
    bench.post("/workspaces", json!({ "name": "x".repeat(2_000) })).await.fails(400, "bad-request");
    let path = format!("/workspaces/{NOWHERE}");
    bench.get(&path).await.fails(404, "resource-not-found");
    bench.patch(&path, json!({ "name": "x" })).await.fails(404, "resource-not-found");
}
