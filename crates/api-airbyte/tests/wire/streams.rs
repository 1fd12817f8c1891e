//! Streams of a source.

use serde_json::{Value, json};

use crate::bench::{Bench, NOWHERE, payload, text, write};

fn catalog(source: &str, version: u64, stream: &str) -> windlass_record::command::DocumentWrite {
    let stream = json!({
        "name": stream, "namespace": "n", "supported_sync_modes": ["full_refresh", "incremental"],
        "default_cursor_field": ["at"], "source_defined_cursor": true,
        "source_defined_primary_key": [["id"]], "json_schema": { "properties": { "id": {} } },
    });
    let kept = json!({
        "sourceId": source, "configurationVersion": version, "catalog": { "streams": [stream] },
    });
    write("airbyte.catalog", source, kept)
}

/// A launcher that asks a source once.
async fn discover(bench: &Bench, version: u64, stream: &str) {
    let job = bench.take("airbyte.discover").await;
    let source = text(&payload(&job)["sourceId"]);
    bench.complete(&job, json!({}), vec![catalog(&source, version, stream)]).await;
}

fn names(streams: &Value) -> Vec<String> {
    streams.as_array().unwrap().iter().map(|stream| text(&stream["streamName"])).collect()
}

#[tokio::test]
async fn a_source_is_asked_once() {
    let bench = Bench::start().await;
    let source = bench.source().await;
    let path = format!("/streams?sourceId={source}");
    let (both, other, ()) =
        tokio::join!(bench.get(&path), bench.get(&path), discover(&bench, 1, "users"));
    let shown = both.shown();
    let expected = json!([{
        "streamName": "users", "streamnamespace": "n",
        "syncModes": [
            "full_refresh_append", "full_refresh_overwrite", "full_refresh_overwrite_deduped",
            "incremental_append", "incremental_deduped_history",
        ],
        "defaultCursorField": ["at"], "sourceDefinedCursorField": true,
        "sourceDefinedPrimaryKey": [["id"]], "propertyFields": [["id"]],
    }]);
    assert_eq!(shown, expected);
    assert_eq!(other.shown(), expected);
    assert_eq!(bench.get(&path).await.shown(), expected, "from what was kept");

    let fresh = format!("{path}&ignoreCache=true");
    let (asked, ()) = tokio::join!(bench.get(&fresh), discover(&bench, 1, "people"));
    assert_eq!(names(&asked.shown()), ["people"]);

    // Another configuration may have other streams.
    bench
        .patch(&format!("/sources/{source}"), json!({ "configuration": { "x": 1 } }))
        .await
        .shown();
    let (asked, ()) = tokio::join!(bench.get(&path), discover(&bench, 2, "orders"));
    assert_eq!(names(&asked.shown()), ["orders"]);
}

#[tokio::test]
async fn a_source_that_changed_while_it_was_asked_is_asked_again() {
    let bench = Bench::start().await;
    let source = bench.source().await;
    let path = format!("/streams?sourceId={source}");
    let launcher = async {
        // Its configuration is read, and changes.
        let job = bench.take("airbyte.discover").await;
        let change = json!({ "configuration": { "x": 1 } });
        bench.patch(&format!("/sources/{source}"), change).await.shown();
        bench.complete(&job, json!({}), vec![catalog(&source, 1, "old")]).await;
        discover(&bench, 2, "new").await;
    };
    let (asked, ()) = tokio::join!(bench.get(&path), launcher);
    assert_eq!(names(&asked.shown()), ["new"]);
    assert_eq!(bench.live("airbyte.discover").await, 0);
}

#[tokio::test]
async fn a_destination_bounds_the_modes() {
    let bench = Bench::start().await;
    let (source, destination) = (bench.source().await, bench.destination().await);
    let shown = bench.get(&format!("/destinations/{destination}")).await.shown();
    let definition = text(&shown["definitionId"]);
    let (_, mut kept) = bench.document("airbyte.definition", &definition).await.unwrap();
    kept["spec"] = json!({ "supported_destination_sync_modes": ["append"] });
    let job = bench.take("airbyte.spec").await;
    bench.complete(&job, json!({}), vec![write("airbyte.definition", &definition, kept)]).await;
    let path = format!("/streams?sourceId={source}&destinationId={destination}");
    let (asked, ()) = tokio::join!(bench.get(&path), discover(&bench, 1, "users"));
    let modes = json!(["full_refresh_append", "incremental_append"]);
    assert_eq!(asked.shown()[0]["syncModes"], modes);
}

#[tokio::test]
async fn a_source_that_cannot_be_asked() {
    let bench = Bench::start().await;
    let source = bench.source().await;
    let path = format!("/streams?sourceId={source}");
    let (asked, ()) = tokio::join!(bench.get(&path), async {
        let job = bench.take("airbyte.discover").await;
        bench.fail(&job, false, true).await;
    });
    let said = asked.fails(422, "unprocessable-entity");
    assert!(said.contains("the source said no"), "{said}");
    bench.get("/streams").await.fails(400, "bad-request");
    bench.get(&format!("/streams?sourceId={NOWHERE}")).await.fails(404, "resource-not-found");
    bench.get(&format!("{path}&ignoreCache=perhaps")).await.fails(400, "bad-request");
    bench.get(&format!("{path}&destinationId={NOWHERE}")).await.fails(404, "resource-not-found");
}
