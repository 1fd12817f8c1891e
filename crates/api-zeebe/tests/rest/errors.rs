//! What is wrong is a problem, whatever it is.

use serde_json::json;

use crate::common::{Bench, NOWHERE, fields, text};

#[tokio::test]
async fn every_problem_has_five_fields() {
    let bench = Bench::start().await;
    let job = format!("/jobs/{NOWHERE}/completion");
    let large = format!("{{\"variables\":{{\"a\":\"{}\"}}}}", "x".repeat(5 << 20));
    for (method, path, kind, body, status, title) in [
        ("GET", "/nothing", "", "", 404, "Not Found"),
        ("GET", "/", "", "", 404, "Not Found"),
        ("GET", "", "", "", 404, "Not Found"),
        ("POST", "/users/search", "application/json", "{}", 404, "Not Found"),
        ("GET", "/jobs/activation", "", "", 405, "Method Not Allowed"),
        ("PUT", "/topology", "", "", 405, "Method Not Allowed"),
        ("POST", job.as_str(), "application/json", "{}", 404, "NOT_FOUND"),
        ("POST", job.as_str(), "application/json", "{", 400, "Bad Request"),
        ("POST", job.as_str(), "application/json", "[]", 400, "Bad Request"),
        ("POST", job.as_str(), "application/json", "{} {}", 400, "Bad Request"),
        ("POST", job.as_str(), "application/json", r#"{"variables":7}"#, 400, "INVALID_ARGUMENT"),
        ("POST", job.as_str(), "text/plain", "{}", 415, "Unsupported Media Type"),
        ("POST", job.as_str(), "application/json", large.as_str(), 413, "Payload Too Large"),
        ("POST", "/jobs/x/completion", "application/json", "{}", 400, "Bad Request"),
        ("POST", "/signals/broadcast", "application/json", "", 400, "Bad Request"),
        ("POST", "/jobs/activation", "application/json", "{}", 400, "INVALID_ARGUMENT"),
    ] {
        let answer = bench.send(method, path, kind, body.as_bytes()).await;
        let problem = answer.json();
        assert_eq!(answer.status, status, "{method} {path} {problem}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(fields(&problem), ["detail", "instance", "status", "title", "type"]);
        assert_eq!(problem["status"], status);
        assert_eq!(problem["title"], title, "{problem}");
        assert_eq!(problem["type"], "about:blank");
        assert_eq!(problem["instance"], format!("/v2{path}"));
        assert!(!text(&problem["detail"]).is_empty());
    }
}

#[tokio::test]
async fn an_activation_names_what_it_misses() {
    let bench = Bench::start().await;
    for (body, detail) in [
        (json!({}), "No type provided."),
        (json!({ "type": " " }), "No type provided."),
        (json!({ "type": "t" }), "No timeout provided."),
        (
            json!({ "type": "t", "timeout": 0 }),
            "The value for timeout is '0' but must be greater than 0.",
        ),
        (json!({ "type": "t", "timeout": 1 }), "No maxJobsToActivate provided."),
        (
            json!({ "type": "t", "timeout": 1, "maxJobsToActivate": -1 }),
            "The value for maxJobsToActivate is '-1' but must be greater than 0.",
        ),
    ] {
        let answer = bench.ask("POST", "/jobs/activation", Some(body.clone())).await;
        assert_eq!((answer.status, &answer.json()["detail"]), (400, &json!(detail)), "{body}");
    }
    let other = json!({
        "type": "t", "timeout": 1, "maxJobsToActivate": 1, "requestTimeout": -1, "tenantIds": ["t"],
    });
    assert_eq!(bench.ask("POST", "/jobs/activation", Some(other.clone())).await.status, 400);
    let mut assigned = other;
    assigned["tenantFilter"] = json!("ASSIGNED");
    assert_eq!(bench.ask("POST", "/jobs/activation", Some(assigned)).await.status, 200);
}

/// Commands about what does not exist are all answered alike.
#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let bench = Bench::start().await;
    for (method, path, body) in [
        ("POST", "/jobs/{}/failure", json!({})),
        ("POST", "/jobs/{}/error", json!({ "errorCode": "e" })),
        ("PATCH", "/jobs/{}", json!({ "changeset": { "timeout": 1 } })),
        ("POST", "/incidents/{}/resolution", json!({})),
        ("POST", "/process-instances/{}/cancellation", json!({})),
        ("POST", "/resources/{}/deletion", json!({})),
        ("POST", "/user-tasks/{}/assignment", json!({ "assignee": "a" })),
        ("PATCH", "/user-tasks/{}", json!({ "changeset": { "priority": 1 } })),
        ("DELETE", "/user-tasks/{}/assignee", json!({})),
    ] {
        let path = path.replace("{}", NOWHERE);
        let answer = bench.ask(method, &path, Some(body)).await;
        let problem = answer.json();
        assert_eq!((answer.status, &problem["title"]), (404, &json!("NOT_FOUND")), "{path}");
        assert!(text(&problem["detail"]).starts_with("Command '"), "{problem}");
    }
}

#[tokio::test]
async fn what_is_not_there_yet_says_so() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    bench.create("service-task", json!({})).await;
    let job = text(&bench.take("work").await["jobKey"]);
    let id = "service-task";
    let ends = json!([{ "type": "TERMINATE_PROCESS_INSTANCE", "afterElementId": "work" }]);
    let fulfilled = json!({ "result": { "isCompletionConditionFulfilled": true } });
    for (path, body) in [
        (format!("/jobs/{job}/completion"), fulfilled),
        (
            "/process-instances".to_owned(),
            json!({ "processDefinitionId": id, "runtimeInstructions": ends }),
        ),
        ("/messages/publication".to_owned(), json!({ "name": "m", "businessId": "b" })),
        ("/messages/correlation".to_owned(), json!({ "name": "m", "businessId": "b" })),
    ] {
        let answer = bench.ask("POST", &path, Some(body)).await;
        assert_eq!(answer.status, 501, "{path} {}", answer.json());
    }
}
