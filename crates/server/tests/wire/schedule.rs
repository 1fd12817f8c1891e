//! Schedules over REST.

use serde_json::{Value, json};

use crate::common::{Bench, http};

const SCHEDULES: &str = "/windlass/v1/schedules";

fn every_second() -> Value {
    json!({
        "times": [{ "expression": "* * * * * *" }],
        "job": { "queue": "q", "priority": 2, "payload": { "n": 1 } },
        "spec": { "kept": 1.50 },
    })
}

#[tokio::test]
async fn a_schedule_is_put_runs_and_is_deleted() {
    let bench = Bench::start().await;
    let path = format!("{SCHEDULES}/nightly%2Freport");
    let put = bench.json("PUT", &path, &every_second().to_string()).await;
    assert_eq!(put["version"], 1);
    assert!(put["next_due_ms"].is_u64());

    // Its first job comes by itself; the next times are skipped while nobody completes it.
    let request = r#"{"queues":["q"],"wait_ms":20000}"#;
    let taken = bench.json("POST", "/windlass/v1/jobs/activate", request).await;
    let job = &taken["jobs"][0];
    assert_eq!((&job["priority"], &job["payload"]), (&json!(2), &json!({ "n": 1 })));
    let ran = bench.json("POST", &format!("{path}/run"), "").await;
    assert_eq!((&ran["outcome"], &ran["why"]), (&json!("skipped"), &json!("running")));

    let shown = bench.http("GET", &path, "").await;
    assert_eq!(shown.header("etag"), Some("\"1\""));
    assert!(shown.text().contains(r#""spec":{"kept":1.5}"#), "{}", shown.text());
    let shown = shown.json();
    assert_eq!((&shown["name"], &shown["owner"]), (&json!("nightly/report"), &json!("native")));
    assert_eq!((&shown["overlap"], &shown["catch_up"]), (&json!("skip"), &json!("one")));
    assert_eq!((&shown["running"], &shown["started"]), (&job["key"], &json!(1)));
    assert_eq!(shown["runs"][0]["run"], job["key"]);

    bench.json("POST", &format!("{path}/pause"), r#"{"reason":"holidays"}"#).await;
    let paused = bench.json("GET", &path, "").await;
    assert_eq!((&paused["paused"], &paused["pause_reason"]), (&json!(true), &json!("holidays")));
    assert_eq!(paused["next_due_ms"], Value::Null);
    bench.json("POST", &format!("{path}/resume"), "").await;
    let resumed = bench.json("GET", &path, "").await;
    assert!(resumed["next_due_ms"].is_u64());

    let answer = bench.http("DELETE", &path, "").await;
    assert_eq!(answer.status, 204);
    let answer = bench.http("GET", &path, "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("schedule-not-found")));
}

#[tokio::test]
async fn a_put_can_say_which_version_it_replaces() {
    let bench = Bench::start().await;
    let path = format!("{SCHEDULES}/s");
    let body = every_second().to_string();
    let rows = [
        ("if-match", "\"1\"", 412),
        ("if-none-match", "*", 200),
        ("if-none-match", "*", 412),
        ("if-match", "\"1\"", 200),
        ("if-match", "\"1\"", 412),
    ];
    for (name, value, status) in rows {
        let headers = [(name, value)];
        let answer = http(bench.address(), "PUT", &path, &headers, body.as_bytes()).await;
        assert_eq!(answer.status, status, "{name}: {value}: {answer:?}");
    }
}

#[tokio::test]
async fn schedules_are_listed_by_the_beginning_of_their_names() {
    let bench = Bench::start().await;
    for name in ["b1", "a", "b2", "c"] {
        bench.json("PUT", &format!("{SCHEDULES}/{name}"), &every_second().to_string()).await;
    }
    let names = |page: &Value| -> Vec<String> {
        let all = page["schedules"].as_array().unwrap();
        all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let page = bench.json("GET", &format!("{SCHEDULES}?prefix=b"), "").await;
    assert_eq!((names(&page), &page["next"]), (vec!["b1".into(), "b2".into()], &Value::Null));
    let page = bench.json("GET", &format!("{SCHEDULES}?limit=3"), "").await;
    assert_eq!((names(&page).len(), &page["next"]), (3, &json!("b2")));
    let page = bench.json("GET", &format!("{SCHEDULES}?limit=3&after=b2"), "").await;
    assert_eq!((names(&page), &page["next"]), (vec!["c".into()], &Value::Null));
    let page = bench.json("GET", &format!("{SCHEDULES}?owner=conductor"), "").await;
    assert!(names(&page).is_empty());
}

#[tokio::test]
async fn the_next_times_of_an_expression() {
    let bench = Bench::start().await;
    // 2026-03-28 at noon.
    let query =
        "expression=0%2030%202%20*%20*%20*&zone=Europe/Berlin&count=2&after_ms=1774699200000";
    let next = bench.json("GET", &format!("{SCHEDULES}/next?{query}"), "").await;
    assert_eq!(next["times_ms"], json!([1_774_746_000_000_u64, 1_774_830_600_000_u64]));
    let next = bench.json("GET", &format!("{SCHEDULES}/next?expression=hourly"), "").await;
    assert_eq!(next["times_ms"].as_array().unwrap().len(), 5);
    let answer = bench.http("GET", &format!("{SCHEDULES}/next?expression=sometimes"), "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("schedule-times")));
    let answer =
        bench.http("GET", &format!("{SCHEDULES}/next?expression=hourly&count=101"), "").await;
    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("count-invalid")));
}

#[tokio::test]
async fn a_schedule_has_a_job_or_a_workflow() {
    let bench = Bench::start().await;
    let times = json!([{ "expression": "daily", "zone": "Europe/Berlin" }]);
    let answer =
        bench.http("PUT", &format!("{SCHEDULES}/s"), &json!({ "times": times }).to_string()).await;
    assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("action-invalid")));
    let workflow = json!({ "times": times, "workflow": { "name": "w" } });
    bench.json("PUT", &format!("{SCHEDULES}/s"), &workflow.to_string()).await;
    let shown = bench.json("GET", &format!("{SCHEDULES}/s"), "").await;
    assert_eq!((&shown["workflow"], &shown["job"]), (&json!({ "name": "w" }), &Value::Null));
}
