//! Schedules that start workflows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{Bench, PATIENCE, simple, text};

fn schedule(name: &str, cron: &str) -> Value {
    json!({
        "name": name, "cronExpression": cron, "description": "d",
        "startWorkflowRequest": { "name": "w", "version": 1, "input": { "k": 1 }, "correlationId": null },
    })
}

#[tokio::test]
async fn schedules_come_and_go() {
    let bench = Bench::start().await;
    let made = bench.post("/scheduler/schedules", schedule("a", "0 0 9 * * ?")).await.shown();
    assert_eq!((&made["name"], &made["paused"]), (&json!("a"), &json!(false)));
    assert_eq!((&made["zoneId"], &made["cronSchedules"]), (&json!("UTC"), &json!([])));
    assert_eq!(made["runCatchupScheduleInstances"], false);
    assert_eq!(
        made["startWorkflowRequest"],
        json!({ "name": "w", "version": 1, "input": { "k": 1 } })
    );
    for time in ["createTime", "updatedTime", "nextRunTime"] {
        assert!(made[time].as_u64().unwrap() > 0, "{time}");
    }
    assert_eq!(bench.get("/scheduler/schedules/a").await.shown(), made);
    let two = json!([
        { "cronExpression": "0 0 9 * * ?", "zoneId": "Europe/Berlin" },
        { "cronExpression": "0 0 10 * * ?" },
    ]);
    let mut other = schedule("b", "");
    other["cronSchedules"] = two.clone();
    other["paused"] = json!(true);
    other["pausedReason"] = json!("later");
    other["startWorkflowRequest"]["name"] = json!("v");
    let made = bench.post("/scheduler/schedules", other).await.shown();
    assert_eq!(made["cronSchedules"][0], two[0]);
    assert_eq!((&made["paused"], &made["pausedReason"]), (&json!(true), &json!("later")));
    assert!(made.get("nextRunTime").is_none());

    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|it| text(&it["name"])).collect()
    };
    assert_eq!(names(&bench.get("/scheduler/schedules").await.shown()), ["a", "b"]);
    assert_eq!(names(&bench.get("/scheduler/schedules?workflowName=v").await.shown()), ["b"]);
    for (query, wanted) in [
        ("", vec!["a", "b"]),
        ("?paused=true", vec!["b"]),
        ("?paused=false&workflowName=w", vec!["a"]),
        ("?scheduleName=b&freeText=*", vec!["b"]),
        ("?start=1&size=5", vec!["b"]),
        ("?sort=name:DESC", vec!["b", "a"]),
        ("?sort=zoneId%7Cname:DESC&size=1", vec!["b"]),
        ("?sort=nothing:DESC", vec!["a", "b"]),
    ] {
        let found = bench.get(&format!("/scheduler/schedules/search{query}")).await.shown();
        assert_eq!(names(&found["results"]), wanted, "{query}");
    }
    for _ in 0..2 {
        bench.bare("DELETE", "/scheduler/schedules/a").await.is_empty(200);
    }
    bench.get("/scheduler/schedules/a").await.fails(404, "Schedule 'a' not found");
}

#[tokio::test]
async fn schedules_pause_and_go_on() {
    let bench = Bench::start().await;
    bench.post("/scheduler/schedules", schedule("a", "0 0 9 * * ?")).await.shown();
    let path = |verb: &str| format!("/scheduler/schedules/a/{verb}");
    bench.bare("PUT", &path("resume")).await.fails(404, "Schedule 'a' not found");
    bench.bare("PUT", &path("pause?reason=r")).await.is_empty(200);
    let paused = bench.get("/scheduler/schedules/a").await.shown();
    assert_eq!((&paused["paused"], &paused["pausedReason"]), (&json!(true), &json!("r")));
    bench.bare("PUT", &path("resume")).await.is_empty(200);
    assert_eq!(bench.get("/scheduler/schedules/a").await.shown()["paused"], false);
    assert_eq!(bench.get(&path("pause")).await.status, 405);
    for verb in ["pause", "resume"] {
        let bulk = bench.put(&format!("/scheduler/bulk/{verb}"), json!(["a", "b"])).await.shown();
        assert_eq!(
            bulk,
            json!({
                "bulkErrorResults": { "b": "Schedule 'b' not found" },
                "bulkSuccessfulResults": ["a"],
                "message": "Bulk Request has been processed.",
            })
        );
    }
}

#[tokio::test]
async fn all_schedules_pause_and_go_on_together() {
    let bench = Bench::start().await;
    for name in ["a", "b"] {
        bench.post("/scheduler/schedules", schedule(name, "0 0 9 * * ?")).await.shown();
    }
    bench.bare("PUT", "/scheduler/schedules/a/pause?reason=mine").await.is_empty(200);
    let done = json!({ "status": "done" });
    assert_eq!(bench.get("/scheduler/admin/pause").await.shown(), done);
    bench.post("/scheduler/schedules", schedule("later", "0 0 9 * * ?")).await.shown();
    let paused = async || {
        let all = bench.get("/scheduler/schedules").await.shown();
        let all = all.as_array().unwrap().iter();
        all.map(|it| (text(&it["name"]), it["paused"] == true)).collect::<Vec<_>>()
    };
    let named = |states: [bool; 3]| ["a", "b", "later"].map(str::to_owned).into_iter().zip(states);
    assert_eq!(paused().await, named([true, true, false]).collect::<Vec<_>>());
    assert_eq!(bench.get("/scheduler/admin/resume").await.shown(), done);
    assert_eq!(paused().await, named([true, false, false]).collect::<Vec<_>>());
    let kept = bench.get("/scheduler/schedules/a").await.shown();
    assert_eq!(kept["pausedReason"], "mine", "it was paused by itself");
}

#[tokio::test]
async fn a_schedule_starts_workflows() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    bench.post("/scheduler/schedules", schedule("a", "* * * * * *")).await.shown();
    let mut broken = schedule("b", "* * * * * *");
    broken["startWorkflowRequest"]["name"] = json!("none");
    bench.post("/scheduler/schedules", broken).await.shown();
    let tasks = bench.get("/tasks/poll/batch/t?count=1&timeout=5000").await.json();
    let task = &tasks[0];
    let workflow = bench.workflow(&text(&task["workflowInstanceId"])).await;
    assert_eq!(workflow["input"]["k"], 1);
    assert_eq!(workflow["input"]["_startedByScheduler"], "a");

    let find = |query: &str| format!("/scheduler/search/executions?query={query}");
    let runs = bench.get(&find("scheduleName%3Da")).await.shown();
    let run = runs["results"].as_array().unwrap().last().unwrap();
    assert_eq!((&run["state"], &run["workflowId"]), (&json!("EXECUTED"), &workflow["workflowId"]));
    assert_eq!(run["scheduledTime"], workflow["input"]["_scheduledTime"]);
    let began = Instant::now();
    loop {
        let runs = bench.get(&find("state+IN+(FAILED)")).await.shown();
        if runs["totalHits"].as_u64().unwrap() > 0 {
            assert_eq!(runs["results"][0]["scheduleName"], "b");
            assert!(text(&runs["results"][0]["reason"]).contains("No such workflow defined"));
            break;
        }
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn wrong_schedules_are_refused() {
    let bench = Bench::start().await;
    for (body, status) in [
        (json!({}), 400),
        (json!({ "name": "a", "cronExpression": "0 0 9 * * ?" }), 400),
        (json!({ "name": "a", "startWorkflowRequest": { "name": "w" } }), 400),
        (schedule("a", "nonsense"), 400),
        (schedule("a", "0 0 99 * * ?"), 400),
        (schedule("", "0 0 9 * * ?"), 400),
        (json!([]), 500),
        (json!({ "name": 7 }), 500),
    ] {
        let answer = bench.post("/scheduler/schedules", body.clone()).await;
        assert_eq!(answer.status, status, "{body} {}", answer.text());
    }
    assert_eq!(bench.get("/scheduler/schedules").await.shown(), json!([]));
}

#[tokio::test]
async fn the_next_times_are_told() {
    let bench = Bench::start().await;
    let path = "/scheduler/nextFewSchedules?cronExpression=0+0+9+*+*+?";
    let times = bench.get(path).await.shown();
    let times: Vec<u64> = times.as_array().unwrap().iter().map(|it| it.as_u64().unwrap()).collect();
    assert_eq!(times.len(), 5);
    assert_eq!(times[1] - times[0], 24 * 60 * 60 * 1000);
    assert_eq!(times[0] % (24 * 60 * 60 * 1000), 9 * 60 * 60 * 1000);
    let limited =
        bench.get(&format!("{path}&limit=2&scheduleStartTime=4102444800000")).await.shown();
    assert_eq!(limited[0], 4_102_477_200_000_u64);
    assert_eq!(limited.as_array().unwrap().len(), 2);
    bench
        .get("/scheduler/nextFewSchedules?cronExpression=nonsense")
        .await
        .fails(400, "Invalid cron expression");
    assert_eq!(bench.get("/scheduler/nextFewSchedules").await.status, 500);
    let requeued = bench.get("/scheduler/admin/requeue").await.shown();
    assert_eq!(requeued["recordIds.size"], 0);
}

/// The native face sees them, and keeps its own.
#[tokio::test]
async fn schedules_have_owners() {
    let bench = Bench::start().await;
    let native = json!({
        "times": [{ "expression": "@daily" }],
        "job": { "queue": "q" },
    });
    let body = native.to_string();
    let length = format!("content-length: {}", body.len());
    let lines = ["content-type: application/json", &*length];
    let put = bench.send("PUT", "/windlass/v1/schedules/n", &lines, body.as_bytes()).await;
    assert_eq!(put.status, 200, "{}", put.text());
    bench.get("/scheduler/schedules/n").await.fails(404, "Schedule 'n' not found");
    assert_eq!(bench.post("/scheduler/schedules", schedule("n", "@daily")).await.status, 409);
    bench.bare("DELETE", "/scheduler/schedules/n").await.is_empty(200);
    assert_eq!(bench.send("GET", "/windlass/v1/schedules/n", &[], b"").await.status, 200);
    bench.post("/scheduler/schedules", schedule("c", "@daily")).await.shown();
    let seen = bench.send("GET", "/windlass/v1/schedules/c", &[], b"").await.json();
    assert_eq!(seen["owner"], "conductor");
}
