//! Connections.

use serde_json::json;
use windlass_api_airbyte::limit::CONNECTIONS_MAX;

use crate::bench::{Bench, NOWHERE, WORKSPACE, text, write};

#[tokio::test]
async fn a_start_keeps_what_belongs_to_connections_beyond_the_bound() {
    let mut bench = Bench::start().await;
    let (source, destination) = (bench.source().await, bench.destination().await);
    // As many as there may be, written as others may have, and one more.
    let ids: Vec<String> = (0..=CONNECTIONS_MAX).map(|number| format!("c{number:06}")).collect();
    let one = |id: &String| write("airbyte.connection", id, json!({ "connectionId": id }));
    let here = &bench;
    let put = |ids: &[String]| here.put_documents(ids.iter().map(one).collect());
    for [a, b, c, d] in ids
        .chunks(256)
        .map(|some| [0, 1, 2, 3].map(|it| some.chunks(64).nth(it).unwrap_or_default()))
    {
        tokio::join!(put(a), put(b), put(c), put(d));
    }
    let last = ids.last().unwrap();
    bench.put_documents(vec![write("airbyte.state", last, json!({ "connectionId": last }))]).await;
    bench.again().await;
    assert!(bench.document("airbyte.state", last).await.is_some());

    let body = json!({ "sourceId": source, "destinationId": destination });
    let said = bench.post("/connections", body).await.fails(422, "unprocessable-entity");
    assert_eq!(said, "There are 100000 connections, and may be no more.");
}

#[tokio::test]
async fn a_connection_lives() {
    let bench = Bench::start().await;
    let streams = json!([{
        "name": "users", "syncMode": "incremental_deduped_history", "cursorField": ["updated_at"],
        "primaryKey": [["id"]], "includeFiles": true,
    }]);
    let made = bench
        .connect(json!({
            "name": "c", "configurations": { "streams": streams }, "prefix": "p_",
            "namespaceDefinition": "custom_format", "namespaceFormat": "x_${SOURCE_NAMESPACE}",
            "nonBreakingSchemaUpdatesBehavior": "propagate_columns",
            "schedule": { "scheduleType": "cron", "cronExpression": "0 0 * * * ?" },
        }))
        .await;
    let expected = json!({
        "connectionId": made["connectionId"], "name": "c", "sourceId": made["sourceId"],
        "destinationId": made["destinationId"], "workspaceId": WORKSPACE, "status": "active",
        "schedule": { "scheduleType": "cron", "cronExpression": "0 0 * * * ?" },
        "dataResidency": "auto",
        "configurations": { "streams": [{
            "name": "users", "syncMode": "incremental_deduped_history",
            "cursorField": ["updated_at"], "primaryKey": [["id"]], "selectedFields": [],
            "mappers": [], "includeFiles": true,
        }] },
        "namespaceDefinition": "custom_format", "namespaceFormat": "x_${SOURCE_NAMESPACE}",
        "nonBreakingSchemaUpdatesBehavior": "propagate_columns", "prefix": "p_",
        "createdAt": made["createdAt"], "tags": [],
    });
    assert_eq!(made, expected);
    let path = format!("/connections/{}", text(&made["connectionId"]));
    assert_eq!(bench.get(&path).await.shown(), made);
    assert_eq!(bench.get("/connections").await.shown()["data"], json!([made]));

    let change = json!({
        "status": "inactive", "schedule": { "scheduleType": "manual" }, "prefix": "",
        "namespaceDefinition": "source", "configurations": { "streams": [{ "name": "a" }] },
    });
    let changed = bench.patch(&path, change).await.shown();
    assert_eq!(changed["status"], "inactive");
    assert_eq!(changed["schedule"], json!({ "scheduleType": "manual" }));
    assert_eq!(changed["name"], "c");
    let stream = &changed["configurations"]["streams"][0];
    assert_eq!(stream["syncMode"], "full_refresh_overwrite");
    bench.delete(&path).await.gone();
    bench.get(&path).await.fails(404, "resource-not-found");
}

#[tokio::test]
async fn without_a_word_all_streams_of_the_source_are_synced() {
    let bench = Bench::start().await;
    let made = bench.connect(json!({})).await;
    assert_eq!(made["name"], "src → dst");
    assert_eq!(made["namespaceDefinition"], "destination");
    assert_eq!(made["configurations"], json!({ "streams": [] }));
    let source = text(&made["sourceId"]);
    let job = bench.take("airbyte.spec").await;
    let catalog = json!({ "sourceId": source, "configurationVersion": 1, "catalog": { "streams": [
        { "name": "users", "json_schema": {}, "supported_sync_modes": ["full_refresh"] },
    ] } });
    bench.complete(&job, json!({}), vec![write("airbyte.catalog", &source, catalog)]).await;
    let id = text(&made["connectionId"]);
    let shown = bench.get(&format!("/connections/{id}")).await.shown();
    assert_eq!(shown["configurations"]["streams"][0]["name"], "users");
    let unknown = json!({ "configurations": { "streams": [{ "name": "nothing" }] } });
    bench.patch(&format!("/connections/{id}"), unknown).await.fails(400, "bad-request");
}

#[tokio::test]
async fn what_is_no_connection_is_refused() {
    let bench = Bench::start().await;
    let (source, destination) = (bench.source().await, bench.destination().await);
    let whole = json!({ "sourceId": source, "destinationId": destination });
    let stream = |more: serde_json::Value| json!({ "streams": [more] });
    for (field, value, status) in [
        ("sourceId", json!(null), 400),
        ("sourceId", json!(NOWHERE), 404),
        ("destinationId", json!(null), 400),
        ("destinationId", json!(source), 404),
        ("status", json!("asleep"), 400),
        ("schedule", json!({ "scheduleType": "sometimes" }), 400),
        ("schedule", json!({ "scheduleType": "cron" }), 400),
        ("schedule", json!({ "scheduleType": "cron", "cronExpression": "never" }), 400),
        ("schedule", json!({ "scheduleType": "cron", "cronExpression": "0 0 0 30 2 ?" }), 400),
        ("schedule", json!({ "scheduleType": "basic" }), 400),
        ("schedule", json!({ "scheduleType": "basic", "units": 0, "timeUnit": "hours" }), 400),
        ("namespaceDefinition", json!("custom_format"), 400),
        ("configurations", stream(json!({ "name": "a", "syncMode": "sideways" })), 400),
        ("configurations", stream(json!({ "name": "" })), 400),
        ("configurations", json!({ "streams": [{ "name": "a" }, { "name": "a" }] }), 400),
    ] {
        let mut body = whole.clone();
        body[field] = value.clone();
        let answer = bench.post("/connections", body).await;
        assert_eq!(answer.status, status, "{field} {value}: {}", answer.text());
    }
    assert_eq!(bench.get("/connections").await.shown()["data"], json!([]), "nothing was made");

    let other =
        text(&bench.post("/workspaces", json!({ "name": "w" })).await.shown()["workspaceId"]);
    let body =
        json!({ "name": "s", "workspaceId": other, "configuration": { "sourceType": "faker" } });
    let foreign = bench.post("/sources", body).await.shown()["sourceId"].clone();
    let body = json!({ "sourceId": foreign, "destinationId": destination });
    bench.post("/connections", body).await.fails(400, "bad-request");
}

#[tokio::test]
async fn a_connection_that_goes_takes_its_job_and_what_was_written_along() {
    let bench = Bench::start().await;
    let id = text(&bench.connect(json!({})).await["connectionId"]);
    let job = bench.sync(&id).await;
    let handed = bench.take("airbyte.sync").await;
    let attempt = format!("{id}.{}-1", job["jobId"]);
    let documents =
        vec![write("airbyte.state", &id, json!({})), write("airbyte.attempt", &attempt, json!({}))];
    bench.progress(&handed, documents).await;
    bench.fail(&handed, true, false).await;
    bench.delete(&format!("/connections/{id}")).await.gone();
    bench.job(&job, "cancelled").await;
    assert!(bench.document("airbyte.state", &id).await.is_none());
    assert!(bench.document("airbyte.attempt", &attempt).await.is_none());
}

#[tokio::test]
async fn what_a_connection_left_behind_is_swept_away_at_the_next_start() {
    let mut bench = Bench::start().await;
    let id = text(&bench.connect(json!({})).await["connectionId"]);
    bench.sync(&id).await;
    let job = bench.take("airbyte.sync").await;
    bench.delete(&format!("/connections/{id}")).await.gone();
    // Its runner was told, and writes a last time before it ends.
    bench.complete(&job, json!({}), vec![write("airbyte.state", &id, json!({}))]).await;
    assert!(bench.document("airbyte.state", &id).await.is_some());
    bench.again().await;
    assert!(bench.document("airbyte.state", &id).await.is_none());
}
