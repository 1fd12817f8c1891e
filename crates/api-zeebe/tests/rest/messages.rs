//! Messages and signals.

use serde_json::json;

use crate::common::{Bench, fields};

#[tokio::test]
async fn a_message_is_published() {
    let bench = Bench::start().await;
    let body = json!({
        "name": "scenario-catch", "correlationKey": "k", "timeToLive": 60_000, "messageId": "1",
        "variables": { "m": 1 },
    });
    let published = bench.post("/messages/publication", body.clone()).await;
    assert_eq!(fields(&published), ["messageKey", "tenantId"]);
    let answer = bench.ask("POST", "/messages/publication", Some(body)).await;
    assert_eq!((answer.status, answer.json()["title"].as_str()), (409, Some("ALREADY_EXISTS")));
    let answer = bench.ask("POST", "/messages/publication", Some(json!({}))).await;
    assert_eq!((answer.status, answer.json()["detail"].as_str()), (400, Some("No name provided.")));

    // It waits for who asks for it later.
    bench.deploy(&["message-catch.bpmn"]).await;
    let body = json!({
        "processDefinitionId": "message-catch", "variables": { "key": "k" },
        "awaitCompletion": true, "requestTimeout": 10_000,
    });
    let done = bench.post("/process-instances", body).await;
    assert_eq!(done["variables"], json!({ "key": "k", "m": 1 }));
}

#[tokio::test]
async fn a_message_is_correlated_now_or_not_at_all() {
    let bench = Bench::start().await;
    bench.deploy(&["message-catch.bpmn"]).await;
    let path = "/messages/correlation";
    let body = json!({ "name": "scenario-catch", "correlationKey": "k", "variables": { "m": 1 } });
    let answer = bench.ask("POST", path, Some(body.clone())).await;
    let problem = answer.json();
    assert_eq!(answer.status, 404, "{problem}");
    assert!(problem["detail"].as_str().unwrap().starts_with("Command 'CORRELATE' rejected"));
    let instance = bench.create("message-catch", json!({ "key": "k" })).await;
    let correlated = bench.post(path, body.clone()).await;
    assert_eq!(fields(&correlated), ["messageKey", "processInstanceKey", "tenantId"]);
    assert_eq!(correlated["processInstanceKey"], json!(instance));
    assert_eq!(bench.ask("POST", path, Some(body)).await.status, 404);
    for body in [json!({}), json!({ "name": "a", "tenantId": "t" })] {
        assert_eq!(bench.ask("POST", path, Some(body)).await.status, 400);
    }
}

#[tokio::test]
async fn a_signal_is_broadcast() {
    let bench = Bench::start().await;
    let body = json!({ "signalName": "s", "variables": { "a": 1 } });
    let done = bench.post("/signals/broadcast", body).await;
    assert_eq!(fields(&done), ["signalKey", "tenantId"]);
    let answer = bench.ask("POST", "/signals/broadcast", Some(json!({ "signalName": " " }))).await;
    assert_eq!(answer.json()["detail"], "No signalName provided.");
}
