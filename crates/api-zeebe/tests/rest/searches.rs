//! Searches, and single items.

use serde_json::{Value, json};

use crate::common::{Bench, NOWHERE, fields, read, text};

/// What a search found: its items, and how many there are on all pages.
async fn search(bench: &Bench, path: &str, body: Value) -> (Vec<Value>, u64) {
    let found = bench.post(&format!("{path}/search"), body).await;
    assert_eq!(fields(&found), ["items", "page"]);
    let page = ["endCursor", "hasMoreTotalItems", "startCursor", "totalItems"];
    assert_eq!(fields(&found["page"]), page);
    let total = found["page"]["totalItems"].as_u64().unwrap();
    (found["items"].as_array().unwrap().clone(), total)
}

async fn only(bench: &Bench, path: &str, filter: Value) -> Value {
    let (items, total) = search(bench, path, json!({ "filter": filter })).await;
    let [item] = items.as_slice() else { panic!("one item is wanted: {items:?}") };
    assert_eq!(total, 1);
    item.clone()
}

async fn show(bench: &Bench, path: &str) -> Value {
    let answer = bench.ask("GET", path, None).await;
    assert_eq!(answer.status, 200, "{path} {}", answer.json());
    answer.json()
}

#[tokio::test]
async fn an_instance_is_found_at_once_and_when_it_is_done() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn", "no-task.bpmn"]).await;
    let key = bench.create("service-task", json!({ "a": "x" })).await;
    let filter = json!({ "processInstanceKey": key, "state": "ACTIVE" });
    let found = only(&bench, "/process-instances", filter).await;
    assert_eq!(fields(&found).len(), 17, "{found}");
    assert_eq!(found["processDefinitionId"], "service-task");
    assert_eq!(found["endDate"], Value::Null);
    assert_eq!(found["rootProcessInstanceKey"], json!(key));
    assert_eq!(show(&bench, &format!("/process-instances/{key}")).await, found);
    let job = text(&bench.take("work").await["jobKey"]);
    bench.post(&format!("/jobs/{job}/completion"), json!({})).await;
    let done = show(&bench, &format!("/process-instances/{key}")).await;
    assert_eq!(done["state"], "COMPLETED");
    assert!(text(&done["endDate"]).ends_with('Z'));
    let chain = show(&bench, &format!("/process-instances/{key}/call-hierarchy")).await;
    assert_eq!(chain[0]["processInstanceKey"], json!(key));
}

#[tokio::test]
async fn pages_follow_one_another() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let mut keys = Vec::new();
    for index in 0..5 {
        keys.push(bench.create("service-task", json!({ "index": index })).await);
    }
    let path = "/process-instances/search";
    let sort = json!([{ "field": "processInstanceKey", "order": "DESC" }]);
    keys.reverse();
    let of = |found: &Value| -> Vec<String> {
        let items = found["items"].as_array().unwrap();
        items.iter().map(|item| text(&item["processInstanceKey"])).collect()
    };
    let mut page = json!({ "limit": 2 });
    let mut seen = Vec::new();
    loop {
        let found = bench.post(path, json!({ "sort": sort, "page": page })).await;
        assert_eq!(found["page"]["totalItems"], 5);
        if of(&found).is_empty() {
            assert_eq!(found["page"]["endCursor"], Value::Null);
            break;
        }
        seen.extend(of(&found));
        page = json!({ "limit": 2, "after": found["page"]["endCursor"] });
    }
    assert_eq!(seen, keys);
    let found = bench.post(path, json!({ "sort": sort, "page": { "from": 3 } })).await;
    assert_eq!(of(&found), keys[3..]);
    let cursor = &found["page"]["startCursor"];
    let before = json!({ "limit": 2, "before": cursor });
    let found = bench.post(path, json!({ "sort": sort, "page": before })).await;
    assert_eq!(of(&found), keys[1..3]);
    let found = bench.post(path, json!({ "page": { "limit": 0 } })).await;
    assert_eq!((of(&found).len(), &found["page"]["totalItems"]), (0, &json!(5)));
    // No body is no filter.
    let answer = bench.ask("POST", path, None).await;
    assert_eq!(of(&answer.json()).len(), 5);
}

#[tokio::test]
async fn filters_have_operators() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn", "no-task.bpmn"]).await;
    let body = json!({
        "processDefinitionId": "service-task", "variables": { "a": "x", "n": 1 },
        "tags": ["red", "big"], "businessId": "order-1",
    });
    let one = text(&bench.post("/process-instances", body).await["processInstanceKey"]);
    let other = bench.create("no-task", json!({ "a": "y" })).await;
    let both = vec![one.as_str(), other.as_str()];
    let (one, other) = (vec![one.as_str()], vec![other.as_str()]);
    for (filter, expected) in [
        (json!({}), &both),
        (json!({ "state": { "$eq": "COMPLETED" } }), &other),
        (json!({ "state": { "$neq": "COMPLETED" } }), &one),
        (json!({ "state": { "$in": ["ACTIVE", "COMPLETED"] } }), &both),
        (json!({ "processDefinitionId": { "$like": "*-task" } }), &both),
        (json!({ "processDefinitionId": { "$like": "no-*" } }), &other),
        (json!({ "processDefinitionId": { "$notIn": ["no-task"] } }), &one),
        (json!({ "endDate": { "$exists": false } }), &one),
        (json!({ "startDate": { "$gt": "2020-01-01T00:00:00Z" } }), &both),
        (json!({ "startDate": { "$lte": "2020-01-01T00:00:00+02:00" } }), &vec![]),
        (json!({ "businessId": "order-1", "tenantId": "<default>" }), &one),
        (json!({ "tags": ["big"] }), &one),
        (json!({ "tags": ["big", "red"] }), &one),
        (json!({ "tags": ["big", "blue"] }), &vec![]),
        (json!({ "variables": [{ "name": "a", "value": "\"x\"" }] }), &one),
        (json!({ "variables": [{ "name": "a", "value": { "$like": "\"*\"" } }] }), &both),
        (
            json!({ "variables": [
                { "name": "a", "value": "\"x\"" }, { "name": "n", "value": "2" },
            ] }),
            &vec![],
        ),
        (json!({ "$or": [{ "state": "COMPLETED" }, { "businessId": "order-1" }] }), &both),
        (json!({ "state": "ACTIVE", "$or": [{ "businessId": "z" }] }), &vec![]),
        (json!({ "elementId": "work", "elementInstanceState": "ACTIVE" }), &one),
        (json!({ "hasIncident": false, "endDate": null }), &both),
        (json!({ "hasIncident": true }), &vec![]),
        (json!({ "batchOperationId": "x" }), &vec![]),
        (json!({ "processDefinitionVersion": { "$gte": 1, "$lt": 2 } }), &both),
        (json!({ "parentProcessInstanceKey": { "$exists": true } }), &vec![]),
    ] {
        let (items, total) =
            search(&bench, "/process-instances", json!({ "filter": filter })).await;
        let keys: Vec<String> =
            items.iter().map(|item| text(&item["processInstanceKey"])).collect();
        assert_eq!(keys, *expected, "{filter}");
        assert_eq!(total, u64::try_from(expected.len()).unwrap(), "{filter}");
    }
}

#[tokio::test]
async fn what_cannot_be_searched_for_is_refused() {
    let bench = Bench::start().await;
    for body in [
        json!({ "filter": [] }),
        json!({ "filter": { "nothing": 1 } }),
        json!({ "filter": { "state": { "$almost": "ACTIVE" } } }),
        json!({ "filter": { "processInstanceKey": "x" } }),
        json!({ "filter": { "startDate": "yesterday" } }),
        json!({ "filter": { "hasIncident": "no" } }),
        json!({ "filter": { "state": { "$in": "ACTIVE" } } }),
        json!({ "filter": { "$or": {} } }),
        json!({ "filter": { "$or": [1] } }),
        json!({ "filter": { "variables": [{ "name": "a" }] } }),
        json!({ "sort": [{ "field": "nothing" }] }),
        json!({ "sort": [{}] }),
        json!({ "sort": [{ "field": "state", "order": "UP" }] }),
        json!({ "page": { "limit": -1 } }),
        json!({ "page": { "limit": 10_001 } }),
        json!({ "page": { "from": -1 } }),
        json!({ "page": { "from": 1, "after": "x" } }),
    ] {
        let answer = bench.ask("POST", "/process-instances/search", Some(body.clone())).await;
        assert_eq!(answer.status, 400, "{body} {}", answer.json());
        assert_eq!(fields(&answer.json()).len(), 5);
    }
    bench.deploy(&["no-task.bpmn"]).await;
    bench.create("no-task", json!({})).await;
    let body = json!({ "page": { "after": "not ours" } });
    let answer = bench.ask("POST", "/process-instances/search", Some(body)).await;
    assert_eq!(answer.status, 400, "{}", answer.json());
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let bench = Bench::start().await;
    for path in [
        "/process-instances/{}",
        "/process-instances/{}/call-hierarchy",
        "/element-instances/{}",
        "/variables/{}",
        "/incidents/{}",
        "/user-tasks/{}",
        "/process-definitions/{}",
        "/process-definitions/{}/xml",
        "/decision-definitions/{}",
        "/decision-definitions/{}/xml",
        "/decision-requirements/{}",
        "/decision-requirements/{}/xml",
    ] {
        let answer = bench.ask("GET", &path.replace("{}", NOWHERE), None).await;
        let problem = answer.json();
        assert_eq!((answer.status, &problem["title"]), (404, &json!("NOT_FOUND")), "{path}");
        assert!(text(&problem["detail"]).ends_with("not found"), "{problem}");
    }
    for path in ["/process-instances/{}/incidents/search", "/user-tasks/{}/variables/search"] {
        let path = path.replace("{}", NOWHERE);
        assert_eq!(bench.ask("POST", &path, None).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn variables_are_cut_short_unless_they_are_wanted_whole() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let long = "x".repeat(10_000);
    let key = bench.create("service-task", json!({ "long": long, "n": 1 })).await;
    let filter = json!({ "processInstanceKey": key, "name": "n" });
    let found = only(&bench, "/variables", filter).await;
    assert_eq!(fields(&found).len(), 8, "{found}");
    assert_eq!((&found["value"], &found["isTruncated"]), (&json!("1"), &json!(false)));
    assert_eq!(found["scopeKey"], json!(key));
    let shown = show(&bench, &format!("/variables/{}", text(&found["variableKey"]))).await;
    assert_eq!(fields(&shown).len(), 7, "{shown}");

    let filter = json!({ "isTruncated": true });
    let found = only(&bench, "/variables", filter.clone()).await;
    assert_eq!(text(&found["value"]).len(), 8192);
    let whole = json!(format!("\"{long}\""));
    let shown = show(&bench, &format!("/variables/{}", text(&found["variableKey"]))).await;
    assert_eq!(shown["value"], whole);
    let path = "/variables/search?truncateValues=false";
    let found = bench.post(path, json!({ "filter": filter })).await;
    assert_eq!(found["items"][0]["value"], whole);
    assert_eq!(found["items"][0]["isTruncated"], false);
    let answer = bench.ask("POST", "/variables/search?truncateValues=7", Some(json!({}))).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn elements_and_jobs_are_found() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let key = bench.create("service-task", json!({})).await;
    let filter = json!({ "processInstanceKey": key, "type": "SERVICE_TASK" });
    let element = only(&bench, "/element-instances", filter).await;
    assert_eq!(fields(&element).len(), 14, "{element}");
    assert_eq!((&element["elementId"], &element["state"]), (&json!("work"), &json!("ACTIVE")));
    let shown =
        show(&bench, &format!("/element-instances/{}", text(&element["elementInstanceKey"]))).await;
    assert_eq!(shown, element);

    let filter = json!({ "state": "CREATED", "listenerEventType": "UNSPECIFIED" });
    let job = only(&bench, "/jobs", filter).await;
    assert_eq!(fields(&job).len(), 26, "{job}");
    assert_eq!(job["elementInstanceKey"], element["elementInstanceKey"]);
    assert_eq!(job["customHeaders"], json!({ "team": "ops", "level": "3" }));
    let taken = bench.take("work").await;
    assert_eq!(taken["jobKey"], job["jobKey"]);
    bench.post(&format!("/jobs/{}/completion", text(&job["jobKey"])), json!({})).await;
    let job = only(&bench, "/jobs", json!({ "state": "COMPLETED", "type": "work" })).await;
    assert!(!job["endTime"].is_null());
}

#[tokio::test]
async fn an_incident_is_found_and_resolved_by_its_own_key() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn"]).await;
    let instance = bench.create("service-task", json!({})).await;
    let job = text(&bench.take("work").await["jobKey"]);
    let body = json!({ "retries": 0, "errorMessage": "it broke" });
    bench.post(&format!("/jobs/{job}/failure"), body).await;
    let incident = only(&bench, "/incidents", json!({ "state": "ACTIVE" })).await;
    assert_eq!(fields(&incident).len(), 13, "{incident}");
    for (name, expected) in [
        ("errorType", "JOB_NO_RETRIES"),
        ("errorMessage", "it broke"),
        ("elementId", "work"),
        ("jobKey", job.as_str()),
        ("processInstanceKey", instance.as_str()),
    ] {
        assert_eq!(incident[name], expected, "{name}");
    }
    let key = text(&incident["incidentKey"]);
    assert_eq!(show(&bench, &format!("/incidents/{key}")).await, incident);
    let of_instance = format!("/process-instances/{instance}/incidents");
    assert_eq!(only(&bench, &of_instance, json!({})).await, incident);
    let element = text(&incident["elementInstanceKey"]);
    let of_element = format!("/element-instances/{element}/incidents");
    assert_eq!(only(&bench, &of_element, json!({})).await, incident);
    let filter = json!({ "errorMessage": { "$like": "*broke*" }, "hasIncident": true });
    only(&bench, "/process-instances", filter).await;

    let change = json!({ "changeset": { "retries": 1 } });
    assert_eq!(bench.ask("PATCH", &format!("/jobs/{job}"), Some(change)).await.status, 204);
    bench.post(&format!("/incidents/{key}/resolution"), json!({})).await;
    let resolved = show(&bench, &format!("/incidents/{key}")).await;
    assert_eq!(resolved["state"], "RESOLVED");
    bench.take("work").await;
}

#[tokio::test]
async fn incidents_of_what_was_called_belong_to_the_caller() {
    let bench = Bench::start().await;
    bench.deploy(&["call-activity.bpmn", "call-child.bpmn"]).await;
    let parent = bench.create("call-activity", json!({ "a": 1 })).await;
    let filter = json!({ "parentProcessInstanceKey": parent });
    let child = only(&bench, "/process-instances", filter).await;
    let child = text(&child["processInstanceKey"]);
    let job = bench.take("call-work").await;
    bench.post(&format!("/jobs/{}/failure", text(&job["jobKey"])), json!({})).await;
    let of_parent = format!("/process-instances/{parent}/incidents");
    let incident = only(&bench, &of_parent, json!({})).await;
    assert_eq!(incident["processInstanceKey"], json!(child));
    let chain = show(&bench, &format!("/process-instances/{child}/call-hierarchy")).await;
    let keys: Vec<String> =
        chain.as_array().unwrap().iter().map(|entry| text(&entry["processInstanceKey"])).collect();
    assert_eq!(keys, [parent, child]);
}

#[tokio::test]
async fn definitions_are_found_with_their_files() {
    let bench = Bench::start().await;
    bench.deploy(&["service-task.bpmn", "decision-requirements.dmn"]).await;
    let found = only(
        &bench,
        "/process-definitions",
        json!({ "processDefinitionId": "service-task", "isLatestVersion": true }),
    )
    .await;
    assert_eq!(fields(&found).len(), 9, "{found}");
    let path = format!("/process-definitions/{}", text(&found["processDefinitionKey"]));
    assert_eq!(show(&bench, &path).await, found);
    let answer = bench.ask("GET", &format!("{path}/xml"), None).await;
    assert_eq!(answer.header("content-type"), Some("text/xml"));
    assert_eq!(answer.body, read("service-task.bpmn"));

    let requirements = only(&bench, "/decision-requirements", json!({})).await;
    assert_eq!(fields(&requirements).len(), 6, "{requirements}");
    let key = text(&requirements["decisionRequirementsKey"]);
    let path = format!("/decision-requirements/{key}");
    assert_eq!(show(&bench, &path).await, requirements);
    let answer = bench.ask("GET", &format!("{path}/xml"), None).await;
    assert_eq!(answer.body, read("decision-requirements.dmn"));

    let body = json!({ "filter": { "decisionRequirementsKey": key } });
    let (decisions, total) = search(&bench, "/decision-definitions", body).await;
    assert!(total > 1);
    for decision in decisions {
        assert_eq!(fields(&decision).len(), 9, "{decision}");
        let path = format!("/decision-definitions/{}", text(&decision["decisionDefinitionKey"]));
        assert_eq!(show(&bench, &path).await, decision);
        let answer = bench.ask("GET", &format!("{path}/xml"), None).await;
        assert_eq!(answer.body, read("decision-requirements.dmn"));
    }
}

#[tokio::test]
async fn subscriptions_and_user_tasks_are_found() {
    let bench = Bench::start().await;
    bench.deploy(&["message-catch.bpmn", "user-task-native.bpmn", "form.form"]).await;
    let waits = bench.create("message-catch", json!({ "key": "k" })).await;
    let filter = json!({
        "processInstanceKey": waits, "messageSubscriptionState": "CREATED", "correlationKey": "k",
    });
    let subscription = only(&bench, "/message-subscriptions", filter).await;
    assert_eq!(fields(&subscription).len(), 19, "{subscription}");
    assert_eq!(subscription["messageName"], "scenario-catch");

    let instance = bench.create("user-task-native", json!({ "owner": "ann" })).await;
    let filter = json!({
        "assignee": "ann", "candidateGroup": "clerks", "priority": { "$gt": 50 },
        "processInstanceVariables": [{ "name": "owner", "value": "\"ann\"" }],
    });
    let task = only(&bench, "/user-tasks", filter).await;
    assert_eq!(fields(&task).len(), 25, "{task}");
    assert_eq!(task["processInstanceKey"], json!(instance));
    assert!(!task["formKey"].is_null());
    let path = format!("/user-tasks/{}", text(&task["userTaskKey"]));
    assert_eq!(show(&bench, &path).await, task);
    let variable = only(&bench, &format!("{path}/variables"), json!({ "name": "owner" })).await;
    assert_eq!(variable["value"], "\"ann\"");
    bench.post(&format!("{path}/completion"), json!({})).await;
    assert_eq!(show(&bench, &path).await["state"], "COMPLETED");
}

#[tokio::test]
async fn without_a_history_searches_say_so() {
    let bench = Bench::with(|config| config.history = windlass_server::settings::Switch::Off).await;
    let answer = bench.ask("POST", "/jobs/search", Some(json!({}))).await;
    assert_eq!(answer.status, 403);
    assert!(text(&answer.json()["detail"]).contains("secondary storage"));
}
