//! Files deployed and deleted; decisions.

use serde_json::{Value, json};

use crate::common::{Bench, MULTIPART, NOWHERE, fields, multipart, read, text};

#[tokio::test]
async fn a_deployment_lists_what_it_holds() {
    let bench = Bench::start().await;
    let files = ["service-task.bpmn", "decision-unique.dmn", "form.form"];
    let deployed = bench.deploy(&files).await;
    assert_eq!(fields(&deployed), ["deploymentKey", "deployments", "tenantId"]);
    let items = deployed["deployments"].as_array().unwrap();
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| {
            let names = fields(item);
            assert_eq!(names.len(), 5);
            names.into_iter().find(|name| !item[*name].is_null()).unwrap()
        })
        .collect();
    let expected = ["processDefinition", "decisionDefinition", "decisionRequirements", "form"];
    assert_eq!(kinds, expected);
    let process = &items[0]["processDefinition"];
    assert_eq!(process["resourceName"], "service-task.bpmn");
    assert_eq!(process["processDefinitionVersion"], 1);
    // The same again is the same.
    let again = bench.deploy(&files).await;
    assert_eq!(again["deployments"], deployed["deployments"]);
}

#[tokio::test]
async fn a_broken_file_says_where() {
    let bench = Bench::start().await;
    let answer = bench.deploy_parts(&[("x.bpmn", b"<x".to_vec())]).await;
    let problem = answer.json();
    assert_eq!((answer.status, &problem["title"]), (400, &json!("INVALID_ARGUMENT")));
    assert!(text(&problem["detail"]).contains("'x.bpmn'"), "{problem}");
}

#[tokio::test]
async fn a_form_that_is_none_is_refused() {
    let bench = Bench::start().await;
    let whole = multipart(&[("service-task.bpmn", read("service-task.bpmn"))], &[]);
    let other = multipart(
        &[("service-task.bpmn", read("service-task.bpmn"))],
        &[("tenantId", "other"), ("unknown", "x")],
    );
    let large = multipart(&[("large.bpmn", vec![b' '; 5 << 20])], &[]);
    let cut = &whole[..whole.len() / 2];
    for (kind, body, status) in [
        (MULTIPART, multipart(&[], &[("tenantId", "<default>")]).as_slice(), 400),
        (MULTIPART, cut, 400),
        (MULTIPART, large.as_slice(), 413),
        (MULTIPART, other.as_slice(), 400),
        ("application/json", b"{}", 415),
        ("", b"", 415),
        (MULTIPART, whole.as_slice(), 200),
    ] {
        let answer = bench.send("POST", "/deployments", kind, body).await;
        assert_eq!(answer.status, status, "{kind} {answer:?}");
    }
}

#[tokio::test]
async fn a_definition_is_deleted_once() {
    let bench = Bench::start().await;
    let deployed = bench.deploy(&["service-task.bpmn"]).await;
    let process = &deployed["deployments"][0]["processDefinition"];
    let path = format!("/resources/{}/deletion", text(&process["processDefinitionKey"]));
    let answer = bench.ask("POST", &path, None).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(fields(&answer.json()), ["batchOperation", "resourceKey"]);
    assert_eq!(bench.ask("POST", &path, Some(json!({}))).await.status, 404);
}

#[tokio::test]
async fn a_decision_is_evaluated() {
    let bench = Bench::start().await;
    let deployed = bench.deploy(&["decision-requirements.dmn"]).await;
    let decisions: Vec<&Value> = deployed["deployments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["decisionDefinition"])
        .filter(|decision| !decision.is_null())
        .collect();
    assert!(!decisions.is_empty());
    for decision in decisions {
        let path = "/decision-definitions/evaluation";
        let by_key = json!({
            "decisionDefinitionKey": decision["decisionDefinitionKey"], "variables": {},
        });
        let by_id = json!({ "decisionDefinitionId": decision["decisionDefinitionId"] });
        for body in [by_key, by_id] {
            let evaluated = bench.post(path, body).await;
            assert_eq!(evaluated["decisionDefinitionKey"], decision["decisionDefinitionKey"]);
            assert_eq!(fields(&evaluated).len(), 13, "{evaluated}");
            assert!(evaluated["output"].is_string(), "{evaluated}");
        }
    }
}

#[tokio::test]
async fn an_unknown_decision_is_not_found() {
    let bench = Bench::start().await;
    let path = "/decision-definitions/evaluation";
    for (body, status) in [
        (json!({ "decisionDefinitionId": "nowhere" }), 404),
        (json!({ "decisionDefinitionKey": NOWHERE }), 404),
        (json!({}), 400),
        (json!({ "decisionDefinitionKey": NOWHERE, "decisionDefinitionId": "a" }), 400),
    ] {
        let answer = bench.ask("POST", path, Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body} {answer:?}");
    }
}
