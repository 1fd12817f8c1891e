//! Jobs: asked for, run by somebody, looked at, listed, cancelled.

use serde_json::{Value, json};

use crate::bench::{Bench, NOWHERE, WORKSPACE, payload, text, write};

async fn connection(bench: &Bench) -> String {
    text(&bench.connect(json!({})).await["connectionId"])
}

#[tokio::test]
async fn a_sync_is_asked_for_runs_and_succeeds() {
    let bench = Bench::start().await;
    let id = connection(&bench).await;
    let job = bench.sync(&id).await;
    let expected = json!({
        "jobId": job["jobId"], "status": "pending", "jobType": "sync",
        "startTime": job["startTime"], "connectionId": id,
    });
    assert_eq!(job, expected);
    assert!(text(&job["startTime"]).ends_with('Z'));
    let handed = bench.take("airbyte.sync").await;
    assert_eq!(json!(handed.key.raw()), job["jobId"]);
    assert_eq!((&*handed.group, &*handed.job_type), (WORKSPACE, "sync"));
    let expected = json!({ "jobType": "sync", "connectionId": id, "workspaceId": WORKSPACE });
    assert_eq!(payload(&handed), expected);
    let running = bench.job(&job, "running").await;
    assert!(text(&running["duration"]).starts_with("PT"), "{running}");

    let again = json!({ "connectionId": id, "jobType": "clear" });
    bench.post("/jobs", again).await.fails(409, "try-again-later");

    let attempt = |number: u32| format!("{id}.{}-{number}", job["jobId"]);
    let totals = |records: u64| {
        json!({ "jobId": job["jobId"], "updatedAt": 1,
            "totals": { "recordsCommitted": records, "bytesCommitted": records * 10 } })
    };
    bench.progress(&handed, vec![write("airbyte.attempt", &attempt(1), totals(5))]).await;
    assert_eq!(bench.job(&job, "running").await["rowsSynced"], 5);
    bench.fail(&handed, true, false).await;
    // Progress was made: the next attempt is ready at once.
    bench.job(&job, "incomplete").await;
    let handed = bench.take("airbyte.sync").await;
    assert_eq!(handed.attempt, 2);
    let written = vec![write("airbyte.attempt", &attempt(2), totals(7))];
    bench.complete(&handed, json!({}), written).await;
    let done = bench.job(&job, "succeeded").await;
    assert_eq!((&done["rowsSynced"], &done["bytesSynced"]), (&json!(12), &json!(120)));
    assert!(done["lastUpdatedAt"].is_string() && done["duration"].is_string(), "{done}");
}

#[tokio::test]
async fn a_permanent_failure_fails_the_job_at_once() {
    let bench = Bench::start().await;
    let job = bench.sync(&connection(&bench).await).await;
    let handed = bench.take("airbyte.sync").await;
    bench.fail(&handed, false, true).await;
    bench.job(&job, "failed").await;
}

#[tokio::test]
async fn a_failure_without_progress_waits_for_its_next_attempt() {
    let bench = Bench::start().await;
    let job = bench.sync(&connection(&bench).await).await;
    let handed = bench.take("airbyte.sync").await;
    bench.fail(&handed, false, false).await;
    bench.job(&job, "incomplete").await;
    let key = windlass_record::id::JobKey::from_raw(job["jobId"].as_u64().unwrap());
    let view = bench.gateway().job(key).await.unwrap().unwrap();
    assert_eq!(view.state, "backoff");
    assert!(view.time_ms >= view.created_ms + 10_000, "{view:?}");
}

#[tokio::test]
async fn attempts_are_as_many_as_the_settings_say() {
    let bench = Bench::with(|config| config.airbyte_retry_partial_total_max = 2).await;
    let job = bench.sync(&connection(&bench).await).await;
    for _ in 0..2 {
        let handed = bench.take("airbyte.sync").await;
        bench.fail(&handed, true, false).await;
    }
    bench.job(&job, "failed").await;
}

#[tokio::test]
async fn a_job_is_cancelled() {
    let bench = Bench::start().await;
    let id = connection(&bench).await;
    let waiting = bench.sync(&id).await;
    let path = format!("/jobs/{}", waiting["jobId"]);
    assert_eq!(bench.delete(&path).await.shown()["status"], "cancelled");
    bench.delete(&path).await.fails(409, "state-conflict");

    let running = bench.sync(&id).await;
    let handed = bench.take("airbyte.sync").await;
    let path = format!("/jobs/{}", running["jobId"]);
    let stops = bench.stops("airbyte.sync");
    let (answer, ()) = tokio::join!(bench.delete(&path), async {
        stops.all(std::slice::from_ref(&handed)).await;
        bench.complete(&handed, json!({}), Vec::new()).await;
    });
    assert_eq!(answer.shown()["status"], "cancelled");
    bench.sync(&id).await;
}

#[tokio::test]
async fn clears_name_streams_and_refreshes_are_refused() {
    let bench = Bench::start().await;
    let id = connection(&bench).await;
    let refresh = json!({ "connectionId": id, "jobType": "refresh" });
    bench.post("/jobs", refresh).await.fails(422, "unprocessable-entity");
    let streams = json!([{ "name": "users" }]);
    let some = json!({ "connectionId": id, "jobType": "sync", "streams": streams });
    bench.post("/jobs", some).await.fails(400, "bad-request");
    let clear = json!({ "connectionId": id, "jobType": "clear", "streams": streams });
    assert_eq!(bench.post("/jobs", clear).await.shown()["jobType"], "clear");
    let handed = bench.take("airbyte.sync").await;
    assert_eq!(payload(&handed)["streams"], streams);
    bench.complete(&handed, json!({}), Vec::new()).await;
    let reset = json!({ "connectionId": id, "jobType": "reset" });
    assert_eq!(bench.post("/jobs", reset).await.shown()["jobType"], "reset");
}

#[tokio::test]
async fn what_is_no_job_is_refused() {
    let bench = Bench::start().await;
    let id = connection(&bench).await;
    for (body, status) in [
        (json!({ "connectionId": id }), 400),
        (json!({ "jobType": "sync" }), 400),
        (json!({ "connectionId": id, "jobType": "fly" }), 400),
        (json!({ "connectionId": NOWHERE, "jobType": "sync" }), 404),
    ] {
        assert_eq!(bench.post("/jobs", body.clone()).await.status, status, "{body}");
    }
    for (path, status) in [("/jobs/7", 404), ("/jobs/x", 400), ("/jobs/-1", 400)] {
        assert_eq!(bench.get(path).await.status, status, "{path}");
        assert_eq!(bench.delete(path).await.status, status, "{path}");
    }
    bench.patch(&format!("/connections/{id}"), json!({ "status": "inactive" })).await.shown();
    let body = json!({ "connectionId": id, "jobType": "sync" });
    bench.post("/jobs", body).await.fails(409, "state-conflict");
    // The job that asked for the source's spec is none of these.
    let spec = bench.take("airbyte.spec").await;
    bench.get(&format!("/jobs/{}", spec.key.raw())).await.fails(404, "resource-not-found");
}

fn ids(page: &Value) -> Vec<u64> {
    page["data"].as_array().unwrap().iter().map(|job| job["jobId"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_list_has_live_and_ended_jobs_and_its_filters_are_exact() {
    let bench = Bench::start().await;
    let first = connection(&bench).await;
    let second = connection(&bench).await;
    let mut made = Vec::new();
    for end in ["succeeded", "failed", "cancelled"] {
        let job = bench.sync(&first).await;
        made.push(job["jobId"].as_u64().unwrap());
        match end {
            "cancelled" => {
                bench.delete(&format!("/jobs/{}", job["jobId"])).await.shown();
            }
            _ => {
                let handed = bench.take("airbyte.sync").await;
                if end == "failed" {
                    bench.fail(&handed, false, true).await;
                } else {
                    bench.complete(&handed, json!({}), Vec::new()).await;
                }
            }
        }
        bench.job(&job, end).await;
    }
    let clear = json!({ "connectionId": second, "jobType": "clear" });
    let live = bench.post("/jobs", clear).await.shown()["jobId"].as_u64().unwrap();
    let [succeeded, failed, cancelled] = made[..] else { panic!("{made:?}") };
    let started = text(&bench.get(&format!("/jobs/{succeeded}")).await.shown()["startTime"]);
    for (query, expected) in [
        (String::new(), vec![live, cancelled, failed, succeeded]),
        ("orderBy=createdAt|ASC".into(), vec![succeeded, failed, cancelled, live]),
        ("orderBy=updatedAt%7CDESC&limit=2&offset=1".into(), vec![cancelled, failed]),
        ("limit=2".into(), vec![live, cancelled]),
        ("limit=2&offset=2".into(), vec![failed, succeeded]),
        (format!("connectionId={first}"), vec![cancelled, failed, succeeded]),
        (format!("connectionId={first}&status=failed"), vec![failed]),
        (format!("connectionId={first}&status=pending"), vec![]),
        (format!("connectionId={second}"), vec![live]),
        (format!("connectionId={second}&status=pending"), vec![live]),
        (format!("connectionId={second}&status=succeeded"), vec![]),
        (format!("connectionId={second}&workspaceIds={NOWHERE}"), vec![]),
        (format!("connectionId={NOWHERE}"), vec![]),
        ("status=succeeded".into(), vec![succeeded]),
        ("status=failed".into(), vec![failed]),
        ("status=cancelled".into(), vec![cancelled]),
        ("status=pending".into(), vec![live]),
        ("status=queued".into(), vec![]),
        ("jobType=clear".into(), vec![live]),
        (format!("workspaceIds={NOWHERE}"), vec![]),
        (format!("workspaceIds={NOWHERE},{WORKSPACE}&limit=1"), vec![live]),
        ("createdAtStart=2999-01-01T00:00:00Z".into(), vec![]),
        (
            "createdAtEnd=2999-01-01&updatedAtEnd=2999-01-01T00:00:00".into(),
            vec![live, cancelled, failed, succeeded],
        ),
        ("updatedAtStart=2999-01-01T00:00:00%2B02:00".into(), vec![]),
        (format!("createdAtStart={started}&status=succeeded"), vec![succeeded]),
    ] {
        let page = bench.get(&format!("/jobs?{query}")).await.shown();
        assert_eq!(ids(&page), expected, "{query}");
    }
    for wrong in ["status=done", "jobType=x", "orderBy=size", "createdAtStart=soon", "limit=0"] {
        bench.get(&format!("/jobs?{wrong}")).await.fails(400, "bad-request");
    }
}

#[tokio::test]
async fn ended_jobs_are_listed_after_a_restart() {
    let mut bench = Bench::start().await;
    let job = bench.sync(&connection(&bench).await).await;
    let handed = bench.take("airbyte.sync").await;
    let result = json!({ "totals": { "recordsCommitted": 3, "bytesCommitted": 4 } });
    bench.complete(&handed, result, Vec::new()).await;
    let before = bench.job(&job, "succeeded").await;
    assert_eq!((&before["rowsSynced"], &before["bytesSynced"]), (&json!(3), &json!(4)));
    bench.again().await;
    assert_eq!(bench.get("/jobs").await.shown()["data"], json!([before]));
}
