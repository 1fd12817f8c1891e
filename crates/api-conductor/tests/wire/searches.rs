//! Searches, and what only the history has.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_server::settings::Switch;

use crate::common::{Bench, fields, simple, text};

/// Three workflows: one is done, one has failed, one runs.
async fn three(bench: &Bench) -> [String; 3] {
    bench.post("/metadata/taskdefs", json!([{ "name": "t", "retryCount": 0 }])).await.is_empty(200);
    bench.define("w", json!([simple("t")])).await;
    let mut ids = Vec::new();
    for status in ["COMPLETED", "FAILED", ""] {
        let body =
            json!({ "name": "w", "correlationId": format!("c-{status}"), "input": { "n": 7 } });
        // Each begins at a time of its own, by which they are sorted.
        tokio::time::sleep(Duration::from_millis(2)).await;
        ids.push(bench.post("/workflow", body).await.plain());
        if !status.is_empty() {
            bench.update(&bench.take("t").await, status, json!({ "said": status })).await.plain();
        }
    }
    ids.try_into().unwrap()
}

fn ids(found: &Value, name: &str) -> Vec<String> {
    found["results"].as_array().unwrap().iter().map(|it| text(&it[name])).collect()
}

#[tokio::test]
async fn workflows_are_searched() {
    let bench = Bench::start().await;
    let [done, failed, running] = three(&bench).await;
    for (query, wanted) in [
        ("query=status%3DCOMPLETED", vec![&done]),
        ("query=status+IN+(FAILED,RUNNING)&sort=startTime:DESC", vec![&running, &failed]),
        ("query=workflowType%3D'w'&sort=workflowId&size=0", vec![]),
        (
            "query=workflowType%3D%22w%22+AND+correlationId%3Dc-*&sort=startTime:ASC",
            vec![&done, &failed, &running],
        ),
        ("sort=startTime:ASC&start=1&size=1", vec![&failed]),
        ("query=workflowType%3Dother", vec![]),
        ("freeText=c-FAILED&classifier=workflow&topLevelOnly=true&queryId=x", vec![&failed]),
    ] {
        for path in ["search", "search-v2"] {
            let found = bench.get(&format!("/workflow/{path}?{query}")).await.shown();
            let found = ids(&found, "workflowId");
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{path} {query}");
        }
    }
    let found = bench.get("/workflow/search?size=1").await.shown();
    assert_eq!(found["totalHits"], 3);
    let found = bench.get("/workflow/search?query=status%3DFAILED").await.shown();
    let summary = &found["results"][0];
    assert_eq!(
        (&summary["workflowType"], &summary["failedReferenceTaskNames"]),
        (&json!("w"), &json!("t"))
    );
    assert!(text(&summary["startTime"]).ends_with('Z'));
    assert!(text(&summary["input"]).contains('7'));
    let found = bench.get("/workflow/search-v2?query=status%3DFAILED").await.shown();
    assert_eq!(found["results"][0]["tasks"], json!([]));
    assert_eq!(found["results"][0]["input"], json!({ "n": 7 }));
}

#[tokio::test]
async fn tasks_are_searched() {
    let bench = Bench::start().await;
    let [done, failed, running] = three(&bench).await;
    let found = bench.get("/tasks/search?query=status%3DFAILED").await.shown();
    assert_eq!((ids(&found, "workflowId"), &found["totalHits"]), (vec![failed.clone()], &json!(1)));
    assert_eq!(found["results"][0]["taskDefName"], "t");
    let found = bench.get("/tasks/search-v2?query=taskType%3Dt&sort=startTime:ASC").await.shown();
    assert_eq!(found["totalHits"], 3);
    let found = bench.get("/tasks/search-v2?query=status%3DCOMPLETED").await.shown();
    assert_eq!(found["results"][0]["outputData"], json!({ "said": "COMPLETED" }));
    for path in ["search-by-tasks", "search-by-tasks-v2"] {
        let found = bench.get(&format!("/workflow/{path}?query=status%3DCOMPLETED")).await.shown();
        assert_eq!(ids(&found, "workflowId"), [done.as_str()], "{path}");
        let found = bench.get(&format!("/workflow/{path}?query=status%3DSCHEDULED")).await.shown();
        assert_eq!(ids(&found, "workflowId"), [running.as_str()], "{path}");
    }
}

#[tokio::test]
async fn searches_that_cannot_be_read_are_refused() {
    let bench = Bench::start().await;
    for path in
        ["/workflow/search", "/workflow/search-v2", "/workflow/search-by-tasks", "/tasks/search"]
    {
        let answer = bench.get(&format!("{path}?query=nonsense")).await;
        answer.fails(400, "Incorrectly formatted query string: nonsense");
        assert_eq!(bench.get(&format!("{path}?start=-1")).await.status, 400);
        assert_eq!(bench.get(&format!("{path}?size=many")).await.status, 500);
        let failure = bench.get(&format!("{path}?size=5001")).await;
        let failure = failure.fails(400, "Validation failed, check below errors for detail.");
        let sentence = text(&failure["validationErrors"][0]["message"]);
        assert!(sentence.starts_with("Cannot return more than 5000 "), "{sentence}");
    }
}

#[tokio::test]
async fn without_a_history_nothing_is_found() {
    let bench = Bench::with(|config| config.history = Switch::Off).await;
    let [done, ..] = three(&bench).await;
    let none = json!({ "totalHits": 0, "results": [] });
    for path in
        ["/workflow/search", "/workflow/search-by-tasks-v2", "/tasks/search", "/tasks/search-v2"]
    {
        assert_eq!(bench.get(path).await.shown(), none, "{path}");
    }
    assert_eq!(bench.workflow(&done).await["status"], "COMPLETED");
    bench.bare("DELETE", &format!("/workflow/{done}/remove")).await.is_empty(200);
    assert_eq!(bench.get(&format!("/workflow/{done}")).await.status, 404);
}

/// A workflow that was removed by hand is gone from the history too.
#[tokio::test]
async fn what_was_removed_is_not_found_anywhere() {
    let bench = Bench::start().await;
    let [done, ..] = three(&bench).await;
    let task = text(&bench.workflow(&done).await["tasks"][0]["taskId"]);
    bench.bare("DELETE", &format!("/workflow/{done}/remove")).await.is_empty(200);
    for path in [
        format!("/workflow/{done}"),
        format!("/workflow/{done}/status"),
        format!("/workflow/{done}/tasks"),
        format!("/tasks/{task}"),
    ] {
        assert_eq!(bench.get(&path).await.status, 404, "{path}");
    }
    let found = bench.get("/workflow/search").await.shown();
    assert_eq!(found["totalHits"], 2);
    assert_eq!(fields(&found), ["results", "totalHits"]);
}
