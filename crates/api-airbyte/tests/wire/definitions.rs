//! Definitions: which connectors there are.

use serde_json::json;

use crate::bench::{Bench, NOWHERE, WORKSPACE, payload, text, write};

fn path(what: &str) -> String {
    format!("/workspaces/{WORKSPACE}/definitions/{what}")
}

#[tokio::test]
async fn connectors_that_are_built_in_are_there() {
    let bench = Bench::start().await;
    let found = bench.get(&path("sources")).await.shown();
    let mut types: Vec<String> =
        found["data"].as_array().unwrap().iter().map(|it| text(&it["type"])).collect();
    types.sort();
    assert_eq!(types, ["faker", "file", "hardcoded-records"]);
    let faker = found["data"].as_array().unwrap().iter().find(|it| it["type"] == "faker").unwrap();
    assert_eq!(faker["launch"], json!({ "kind": "python", "package": "airbyte-source-faker" }));
    assert_eq!(faker["dockerRepository"], "airbyte/source-faker");
    assert_eq!(bench.get(&path("destinations")).await.shown()["data"], json!([]));
    let id = text(&faker["id"]);
    assert_eq!(&bench.get(&path(&format!("sources/{id}"))).await.shown(), faker);
    bench.get(&path(&format!("destinations/{id}"))).await.fails(404, "resource-not-found");
    bench.delete(&path(&format!("sources/{id}"))).await.fails(409, "state-conflict");
}

#[tokio::test]
async fn a_definition_lives_and_its_connector_is_asked_what_it_wants_to_know() {
    let bench = Bench::start().await;
    let body = json!({
        "name": "Null", "dockerRepository": "me/destination-null", "dockerImageTag": "1",
        "documentationUrl": "https://example.com",
    });
    let made = bench.post(&path("destinations"), body).await.shown();
    let expected = json!({
        "id": made["id"], "name": "Null", "dockerRepository": "me/destination-null",
        "dockerImageTag": "1", "type": "null",
        "launch": { "kind": "docker", "image": "me/destination-null:1" },
        "documentationUrl": "https://example.com",
    });
    assert_eq!(made, expected);
    let id = text(&made["id"]);
    let job = bench.take("airbyte.spec").await;
    assert_eq!(payload(&job), json!({ "definitionId": id }));
    let (_, mut kept) = bench.document("airbyte.definition", &id).await.unwrap();
    kept["spec"] = json!({ "connectionSpecification": {} });
    kept["specAt"] = json!(1);
    kept["future"] = json!("kept");
    bench.complete(&job, json!({}), vec![write("airbyte.definition", &id, kept)]).await;

    let one = path(&format!("destinations/{id}"));
    bench.put(&one, json!({ "name": "Nothing", "dockerImageTag": "1" })).await.shown();
    assert_eq!(bench.live("airbyte.spec").await, 0, "its connector is the same");
    let changed = bench.put(&one, json!({ "name": "None", "dockerImageTag": "2" })).await.shown();
    assert_eq!(changed["launch"]["image"], "me/destination-null:2");
    let (_, kept) = bench.document("airbyte.definition", &id).await.unwrap();
    assert_eq!(kept["spec"], json!({ "connectionSpecification": {} }), "until there is another");
    assert_eq!((kept.get("specAt"), &kept["future"]), (None, &json!("kept")));
    // Who asked for another version does not answer for this one.
    assert_eq!(bench.live("airbyte.spec").await, 1);
    bench.put(&one, json!({ "name": "None", "dockerImageTag": "3" })).await.shown();
    assert_eq!(bench.live("airbyte.spec").await, 2);
    let changed = bench.put(&one, json!({ "name": "Null" })).await.shown();
    assert_eq!(bench.live("airbyte.spec").await, 3, "nothing is known yet of its connector");

    let configuration = json!({});
    let body = json!({
        "name": "d", "workspaceId": WORKSPACE, "definitionId": id, "configuration": configuration,
    });
    let destination = text(&bench.post("/destinations", body).await.shown()["destinationId"]);
    bench.delete(&one).await.fails(409, "state-conflict");
    bench.delete(&format!("/destinations/{destination}")).await.gone();
    assert_eq!(bench.delete(&one).await.shown(), changed);
    bench.get(&one).await.fails(404, "resource-not-found");
}

#[tokio::test]
async fn a_command_of_this_machine_is_a_connector() {
    let bench = Bench::start().await;
    let launch = json!({
        "kind": "command", "command": ["python3", "dst.py"], "environment": { "KEY": "hush" },
    });
    let body = json!({ "name": "My Sink", "launch": launch });
    let made = bench.post(&path("destinations"), body).await.shown();
    assert_eq!(made["type"], "my-sink");
    assert_eq!(made["launch"]["environment"]["KEY"], "**********");
    let found = bench.get(&path("destinations?name=SINK")).await.shown();
    assert_eq!(found["data"], json!([made]));
}

#[tokio::test]
async fn a_definition_that_is_read_and_written_back_keeps_its_environment() {
    let bench = Bench::start().await;
    let environment = json!({ "KEY": "hush", "OLD": "gone" });
    for launch in [
        json!({ "kind": "command", "command": ["dst"], "environment": environment }),
        json!({ "kind": "docker", "image": "dst:1", "environment": environment }),
    ] {
        let body = json!({ "name": "n", "launch": launch });
        let mut shown = bench.post(&path("destinations"), body).await.shown();
        let id = text(&shown["id"]);
        let one = path(&format!("destinations/{id}"));
        let environment = &mut shown["launch"]["environment"];
        environment.as_object_mut().unwrap().remove("OLD");
        environment["NEW"] = json!("n");
        bench.put(&one, shown.clone()).await.shown();
        let (_, kept) = bench.document("airbyte.definition", &id).await.unwrap();
        assert_eq!(kept["launch"]["environment"], json!({ "KEY": "hush", "NEW": "n" }), "{launch}");

        shown["launch"]["environment"] = json!({ "OTHER": "**********" });
        let said = bench.put(&one, shown.clone()).await.fails(400, "bad-request");
        assert!(said.starts_with("launch.environment.OTHER is the mask"), "{said}");
        bench.post(&path("destinations"), shown).await.fails(400, "bad-request");
    }
}

#[tokio::test]
async fn a_definition_that_is_made_is_shown_also_when_its_connector_cannot_be_asked() {
    let bench = Bench::with(|config| config.live_jobs_max = 1).await;
    for name in ["a", "b"] {
        let body = json!({ "name": name, "launch": { "kind": "command", "command": ["src"] } });
        let made = bench.post(&path("sources"), body).await.shown();
        assert_eq!(bench.get(&path(&format!("sources/{}", text(&made["id"])))).await.shown(), made);
    }
    assert_eq!(bench.live("airbyte.spec").await, 1);
}

#[tokio::test]
async fn a_tag_that_is_changed_is_that_of_the_image() {
    let bench = Bench::start().await;
    let body = json!({ "name": "n", "dockerRepository": "me/dst", "dockerImageTag": "1" });
    let mut shown = bench.post(&path("destinations"), body).await.shown();
    let one = path(&format!("destinations/{}", text(&shown["id"])));
    shown["dockerImageTag"] = json!("2");
    let changed = bench.put(&one, shown).await.shown();
    assert_eq!(
        (&changed["dockerImageTag"], &changed["launch"]["image"]),
        (&json!("2"), &json!("me/dst:2"))
    );
    bench.put(&one, json!({ "name": "n", "dockerImageTag": "" })).await.fails(400, "bad-request");
    assert_eq!(bench.get(&one).await.shown(), changed);

    // An image that is named as a whole has no repository to which a tag could belong.
    let body = json!({ "name": "n", "launch": { "kind": "docker", "image": "me/src:1" } });
    let mut shown = bench.post(&path("sources"), body).await.shown();
    let one = path(&format!("sources/{}", text(&shown["id"])));
    bench.put(&one, json!({ "name": "n", "dockerImageTag": "2" })).await.fails(400, "bad-request");
    shown["launch"]["image"] = json!("me/src:2");
    assert_eq!(bench.put(&one, shown.clone()).await.shown(), shown);
}

#[tokio::test]
async fn what_is_no_definition_is_refused() {
    let bench = Bench::start().await;
    for body in [
        json!({ "dockerRepository": "r", "dockerImageTag": "t" }),
        json!({ "name": "x" }),
        json!({ "name": "x", "dockerRepository": "r" }),
        json!({ "name": "x", "launch": { "kind": "rocket" } }),
        json!({ "name": "x", "launch": { "kind": "command", "command": [] } }),
        json!({ "name": "x", "launch": { "kind": "python", "package": "" } }),
    ] {
        bench.post(&path("sources"), body).await.fails(400, "bad-request");
    }
    bench.get(&path("rockets")).await.fails(404, "resource-not-found");
    let other = format!("/workspaces/{NOWHERE}/definitions/sources");
    bench.get(&other).await.fails(404, "resource-not-found");
}
