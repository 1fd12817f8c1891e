//! What people do with user tasks.

use serde_json::json;

use crate::common::{Bench, NOWHERE, text};

#[tokio::test]
async fn a_user_task_is_assigned_changed_and_completed() {
    let bench = Bench::start().await;
    bench.deploy(&["user-task-native.bpmn", "form.form"]).await;
    let instance = bench.create("user-task-native", json!({ "owner": "ann" })).await;
    let body = json!({ "filter": { "processInstanceKey": instance } });
    let found = bench.post("/user-tasks/search", body).await;
    let task = text(&found["items"][0]["userTaskKey"]);
    let path = |rest: &str| format!("/user-tasks/{task}{rest}");
    for (method, rest, body, status) in [
        ("POST", "/assignment", Some(json!({})), 400),
        ("POST", "/assignment", Some(json!({ "assignee": "cy", "allowOverride": false })), 409),
        ("POST", "/assignment", Some(json!({ "assignee": "cy" })), 204),
        ("DELETE", "/assignee", None, 204),
        ("POST", "/assignment", Some(json!({ "assignee": "cy", "allowOverride": false })), 204),
        ("PATCH", "", None, 400),
        ("PATCH", "", Some(json!({ "changeset": {} })), 400),
        ("PATCH", "", Some(json!({ "changeset": { "priority": 101 } })), 400),
        ("PATCH", "", Some(json!({ "action": "touch" })), 204),
        (
            "PATCH",
            "",
            Some(json!({ "changeset": {
                "candidateUsers": ["a"], "candidateGroups": [], "priority": 9,
                "dueDate": "2030-01-01T00:00:00Z", "followUpDate": "",
            } })),
            204,
        ),
        ("POST", "/completion", Some(json!({ "variables": { "ok": true } })), 204),
        ("POST", "/completion", None, 404),
        ("DELETE", "/assignee", None, 404),
    ] {
        let answer = bench.ask(method, &path(rest), body.clone()).await;
        assert_eq!(answer.status, status, "{method} {rest} {body:?} {}", answer.json());
    }
    let answer = bench.ask("POST", &format!("/user-tasks/{NOWHERE}/completion"), None).await;
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("no such user task was found"), "{detail}");
}
