//! Sources and destinations.

use serde_json::{Value, json};

use crate::bench::{Bench, NOWHERE, WORKSPACE, text, write};

#[tokio::test]
async fn a_source_lives() {
    let bench = Bench::start().await;
    let configuration =
        json!({ "sourceType": "source-faker", "count": 10, "seed": { "a": 1, "b": 2 } });
    let body = json!({
        "name": "s", "workspaceId": WORKSPACE, "configuration": configuration,
        "resourceAllocation": { "default": { "cpu_limit": "1" } },
    });
    let made = bench.post("/sources", body).await.shown();
    let expected = json!({
        "sourceId": made["sourceId"], "name": "s", "sourceType": "faker",
        "definitionId": "dfd88b22-b603-4c3d-aad7-3701784586b1", "workspaceId": WORKSPACE,
        "configuration": { "count": 10, "seed": { "a": 1, "b": 2 } },
        "createdAt": made["createdAt"],
        "resourceAllocation": { "default": { "cpu_limit": "1" } },
    });
    assert_eq!(made, expected);
    assert!(made["createdAt"].as_u64().unwrap() < 100_000_000_000, "seconds");
    let path = format!("/sources/{}", text(&made["sourceId"]));
    assert_eq!(bench.get(&path).await.shown(), made);

    let change = json!({ "configuration": { "seed": { "b": 3 }, "count": null, "new": [1] } });
    let merged = bench.patch(&path, change).await.shown();
    assert_eq!(merged["configuration"], json!({ "seed": { "a": 1, "b": 3 }, "new": [1] }));
    assert_eq!(merged["name"], "s");
    let whole = json!({ "name": "t", "configuration": { "sourceType": "faker", "x": 1 } });
    let replaced = bench.put(&path, whole).await.shown();
    assert_eq!((&replaced["name"], &replaced["configuration"]), (&json!("t"), &json!({ "x": 1 })));

    let listed = bench.get("/sources").await.shown();
    assert_eq!(listed["data"], json!([replaced]));
    let none = bench.get(&format!("/sources?workspaceIds={NOWHERE}")).await.shown();
    assert_eq!(none["data"], json!([]));
    bench.delete(&path).await.gone();
    bench.get(&path).await.fails(404, "resource-not-found");
}

/// Once its connector has said what it wants. What was asked for before is taken as it is.
#[tokio::test]
async fn a_configuration_is_held_against_the_specification() {
    let bench = Bench::start().await;
    let definition = "dfd88b22-b603-4c3d-aad7-3701784586b1";
    let body = |configuration: &Value| {
        let mut configuration = configuration.clone();
        configuration["sourceType"] = json!("faker");
        json!({ "name": "s", "workspaceId": WORKSPACE, "configuration": configuration })
    };
    let given = json!({ "count": "many", "password": "hunter2" });
    let early = bench.post("/sources", body(&given)).await.shown();
    let early = format!("/sources/{}", text(&early["sourceId"]));

    let job = bench.take("airbyte.spec").await;
    let (_, mut kept) = bench.document("airbyte.definition", definition).await.unwrap();
    kept["spec"] = json!({ "connectionSpecification": {
        "type": "object", "required": ["count", "password"], "additionalProperties": false,
        "properties": {
            "count": { "type": "integer", "minimum": 1 },
            "password": { "type": "string", "airbyte_secret": true, "minLength": 3 },
            "mode": { "enum": ["fast", "slow"] },
        },
    } });
    kept["specAt"] = json!(1);
    let written = vec![write("airbyte.definition", definition, kept)];
    bench.complete(&job, json!({}), written).await;

    let wrong = json!({ "count": 0, "mode": "x", "colour": "red" });
    let answer = bench.post("/sources", body(&wrong)).await;
    let detail = answer.fails(422, "unprocessable-entity");
    for part in [
        "configuration.password is required",
        "configuration.count must be at least 1",
        r#"configuration.mode must be one of "fast", "slow""#,
        "configuration.colour is not known to the connector",
    ] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
    assert_eq!(answer.json()["data"]["message"], detail);
    let secret = json!({ "count": 1, "password": "pw" });
    let detail = bench.post("/sources", body(&secret)).await.fails(422, "unprocessable-entity");
    assert!(detail.contains("password must have at least 3") && !detail.contains("pw"), "{detail}");

    // A secret that comes back masked is the one that is kept.
    let right = json!({ "count": 1, "password": "hunter3" });
    let made = bench.post("/sources", body(&right)).await.shown();
    let path = format!("/sources/{}", text(&made["sourceId"]));
    let masked = made["configuration"].clone();
    assert_eq!(masked["password"], "**********");
    let whole = json!({ "name": "t", "configuration": masked });
    bench.put(&path, whole).await.shown();
    let change = |configuration: Value| json!({ "configuration": configuration });
    bench.patch(&path, change(json!({ "password": "**********", "count": 2 }))).await.shown();
    for wrong in [json!({ "count": "2" }), json!({ "password": null })] {
        bench.patch(&path, change(wrong)).await.fails(422, "unprocessable-entity");
    }
    let lacking = json!({ "name": "t", "configuration": { "count": 3 } });
    bench.put(&path, lacking).await.fails(422, "unprocessable-entity");
    assert_eq!(bench.get(&path).await.shown()["configuration"]["count"], 2);

    // What was there before can be renamed, and mended.
    bench.patch(&early, json!({ "name": "other" })).await.shown();
    bench.patch(&early, change(json!({ "mode": "fast" }))).await.fails(422, "unprocessable-entity");
    bench.patch(&early, change(json!({ "count": 5 }))).await.shown();

    // Another connector may want something else: until it has said so, everything is taken.
    let (_, mut kept) = bench.document("airbyte.definition", definition).await.unwrap();
    kept.as_object_mut().unwrap().remove("specAt");
    bench.put_documents(vec![write("airbyte.definition", definition, kept)]).await;
    bench.patch(&path, change(json!({ "colour": "red" }))).await.shown();
}

#[tokio::test]
async fn a_destination_has_names_of_its_own() {
    let bench = Bench::start().await;
    let id = bench.destination().await;
    let shown = bench.get(&format!("/destinations/{id}")).await.shown();
    assert_eq!((&shown["destinationId"], &shown["destinationType"]), (&json!(id), &json!("null")));
    let data = bench.get("/destinations").await.shown()["data"].clone();
    assert_eq!(data, json!([shown]));
    bench.delete(&format!("/sources/{id}")).await.fails(404, "resource-not-found");
    bench.delete(&format!("/destinations/{id}")).await.gone();
}

#[tokio::test]
async fn its_connections_go_with_it() {
    let bench = Bench::start().await;
    let connection = bench.connect(json!({})).await;
    let path = format!("/connections/{}", text(&connection["connectionId"]));
    bench.get(&path).await.shown();
    bench.delete(&format!("/destinations/{}", text(&connection["destinationId"]))).await.gone();
    bench.get(&path).await.fails(404, "resource-not-found");
    bench.get(&format!("/sources/{}", text(&connection["sourceId"]))).await.shown();
}

#[tokio::test]
async fn what_is_no_source_is_refused() {
    let bench = Bench::start().await;
    let whole = json!({ "name": "s", "workspaceId": WORKSPACE, "configuration": {
        "sourceType": "faker" } });
    for (field, value, status) in [
        ("name", json!(null), 400),
        ("name", json!(""), 400),
        ("name", json!(7), 400),
        ("workspaceId", json!(null), 400),
        ("workspaceId", json!(NOWHERE), 404),
        ("configuration", json!(null), 400),
        ("configuration", json!([]), 400),
        ("configuration", json!({}), 400),
        ("configuration", json!({ "sourceType": "nothing" }), 400),
        ("configuration", json!({ "sourceType": "faker", "seed": "**********" }), 400),
        ("definitionId", json!(NOWHERE), 404),
    ] {
        let mut body = whole.clone();
        body[field] = value.clone();
        let answer = bench.post("/sources", body).await;
        assert_eq!(answer.status, status, "{field} {value}: {}", answer.text());
    }
    assert_eq!(bench.live("airbyte.spec").await, 0, "nobody is asked for what is refused");
    let path = format!("/sources/{}", bench.source().await);
    let moved = json!({ "workspaceId": NOWHERE });
    bench.patch(&path, moved).await.fails(400, "bad-request");
    let other = json!({ "configuration": { "sourceType": "file" } });
    bench.patch(&path, other).await.fails(400, "bad-request");
    bench.put(&path, json!({ "name": "x" })).await.fails(400, "bad-request");
    bench.patch(&format!("/sources/{NOWHERE}"), json!({})).await.fails(404, "resource-not-found");
}
