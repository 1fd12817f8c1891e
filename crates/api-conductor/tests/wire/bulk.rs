//! The same for many workflows.

use serde_json::json;

use crate::common::{Bench, simple, text};

#[tokio::test]
async fn each_is_answered_for_itself() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let ids = json!([id, "w123"]);
    let missing = "No such workflow found by id: w123";
    let message = "Bulk Request has been processed.";
    for (method, path) in [
        ("PUT", "pause"),
        ("PUT", "resume"),
        ("POST", "terminate?reason=r"),
        ("POST", "retry"),
        ("DELETE", "terminate-remove?archiveWorkflow=false"),
    ] {
        let answer = bench.text(method, &format!("/workflow/bulk/{path}"), &ids.to_string()).await;
        let wanted = json!({
            "bulkErrorResults": { "w123": missing },
            "bulkSuccessfulResults": [id],
            "message": message,
        });
        assert_eq!(answer.shown(), wanted, "{path}");
    }
    let answer = bench.post("/workflow/bulk/restart?useLatestDefinitions=true", json!([id])).await;
    let gone = format!("No such workflow found by id: {id}");
    assert_eq!(answer.shown()["bulkErrorResults"][&id], json!(gone));
}

#[tokio::test]
async fn many_are_found_and_removed() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let (first, second) = (bench.run("w", json!({})).await, bench.run("w", json!({})).await);
    let ids = json!([first, "w123", second]);
    let found = bench.post("/workflow/bulk/search", ids.clone()).await.shown();
    let names: Vec<_> = found["bulkSuccessfulResults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (text(&it["workflowId"]), it["tasks"].as_array().unwrap().len()))
        .collect();
    assert_eq!(names, [(first.clone(), 1), (second.clone(), 1)]);
    assert!(found["bulkErrorResults"]["w123"].is_string());
    let found = bench.post("/workflow/bulk/search?includeTasks=false", ids.clone()).await.shown();
    assert_eq!(found["bulkSuccessfulResults"][0]["tasks"], json!([]));

    let removed = bench.text("DELETE", "/workflow/bulk/remove", &json!([first]).to_string()).await;
    let why = format!("Cannot archive workflow: {first} with status: RUNNING");
    assert_eq!(removed.shown()["bulkErrorResults"], json!({ first.clone(): why }));
    let path = "/workflow/bulk/delete?archiveWorkflow=false";
    let removed = bench.post(path, json!([first, second])).await.shown();
    assert_eq!(removed["bulkSuccessfulResults"], json!([first, second]));
}

#[tokio::test]
async fn there_is_a_limit() {
    let bench = Bench::start().await;
    let many = vec!["x"; 1_001];
    for path in ["/workflow/bulk/retry", "/workflow/bulk/search"] {
        let answer = bench.post(path, json!(many)).await;
        answer.fails(400, "Validation failed, check below errors for detail.");
    }
    assert_eq!(bench.post("/workflow/bulk/retry", json!([])).await.status, 200);
    assert_eq!(bench.post("/workflow/bulk/retry", json!({ "a": 1 })).await.status, 500);
    assert_eq!(bench.bare("POST", "/workflow/bulk/retry").await.status, 500);
}
