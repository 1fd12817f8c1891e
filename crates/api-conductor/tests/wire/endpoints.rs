//! Every endpoint that has no test of its own elsewhere, with what it answers when all is well.

use serde_json::{Value, json};

use crate::common::{Bench, simple, text};

#[tokio::test]
async fn endpoints_answer_in_their_shapes() {
    let bench = Bench::start().await;
    bench.define("w", json!([simple("t")])).await;
    let id = bench.run("w", json!({})).await;
    let storage = json!({ "uri": "", "path": "" });
    let query = "?path=p&operation=READ&payloadType=WORKFLOW_INPUT";
    for (path, wanted) in [
        (format!("/workflow/externalstoragelocation{query}"), storage.clone()),
        (format!("/workflow/external-storage-location{query}"), storage.clone()),
        (format!("/tasks/externalstoragelocation{query}"), storage.clone()),
        (format!("/tasks/external-storage-location{query}"), storage),
        ("/environment".to_owned(), json!([])),
        ("/secrets".to_owned(), json!([])),
        ("/queue".to_owned(), json!({})),
        ("/queue/".to_owned(), json!({})),
        ("/queue/size".to_owned(), json!({})),
        ("/admin/queues".to_owned(), json!({})),
        ("/event".to_owned(), json!([])),
        ("/event/conductor:x".to_owned(), json!([])),
    ] {
        assert_eq!(bench.get(&path).await.shown(), wanted, "{path}");
    }
    assert!(bench.get("/admin/config").await.shown()["version"].is_string());
    bench.get("/environment/HOME").await.is_empty(200);
    bench.bare("PUT", &format!("/workflow/decide/{id}")).await.is_empty(200);
    let swept = bench.bare("POST", &format!("/admin/sweep/requeue/{id}")).await;
    assert_eq!(swept.plain(), format!("true.{id}"));
    let path = format!("/admin/consistency/verifyAndRepair/{id}");
    assert_eq!(bench.bare("POST", &path).await.plain(), "false");
    assert_eq!(bench.bare("POST", "/tasks/queue/requeue/none").await.plain(), "0");
}

#[tokio::test]
async fn event_handlers_come_and_go() {
    let bench = Bench::start().await;
    let handler = |name: &str, active: bool| -> Value {
        json!({
            "name": name, "event": "conductor:e", "active": active,
            "actions": [{ "action": "start_workflow", "start_workflow": { "name": "w" } }],
        })
    };
    bench.post("/event", handler("a", true)).await.is_empty(200);
    bench
        .post("/event", handler("a", true))
        .await
        .fails(409, "EventHandler with name a already exists!");
    bench.put("/event", handler("a", false)).await.is_empty(200);
    bench.put("/event", handler("b", true)).await.fails(404, "EventHandler with name b not found!");
    bench.post("/event", handler("b", true)).await.is_empty(200);
    assert_eq!(bench.get("/event").await.shown().as_array().unwrap().len(), 2);
    let active = bench.get("/event/conductor:e").await.shown();
    assert_eq!((active.as_array().unwrap().len(), text(&active[0]["name"])), (1, "b".to_owned()));
    let all = bench.get("/event/conductor:e?activeOnly=false").await.shown();
    assert_eq!(all.as_array().unwrap().len(), 2);
    bench.bare("DELETE", "/event/a").await.is_empty(200);
    bench.bare("DELETE", "/event/a").await.fails(404, "EventHandler with name a not found!");
    for (body, sentence) in [
        (json!({}), "Missing event handler name"),
        (json!({ "name": "c" }), "Missing event location"),
        (
            json!({ "name": "c", "event": "e" }),
            "No actions specified. Please specify at-least one action",
        ),
    ] {
        let failure = bench.post("/event", body).await;
        let failure = failure.fails(400, "Validation failed, check below errors for detail.");
        assert_eq!(failure["validationErrors"][0]["message"], sentence);
    }
}
