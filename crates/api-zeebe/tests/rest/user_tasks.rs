//! What people do with user tasks.

use serde_json::{Value, json};

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

impl Bench {
    /// The next job of a listener, and what is said to it.
    async fn answer(&self, job_type: &str, result: Value) -> Value {
        let jobs = self.activate(json!({ "type": job_type, "requestTimeout": 10_000 })).await;
        let job = jobs.into_iter().next().expect("a listener is asked");
        let path = format!("/jobs/{}/completion", text(&job["jobKey"]));
        let answer = self.ask("POST", &path, Some(json!({ "result": result }))).await;
        assert_eq!(answer.status, 204, "{}", answer.json());
        job
    }

    async fn user_task(&self, instance: &str) -> Value {
        let body = json!({ "filter": { "processInstanceKey": instance } });
        self.post("/user-tasks/search", body).await["items"][0].clone()
    }

    /// A process whose user task waits for a person, who is ann.
    async fn listened(&self) -> (String, String) {
        self.deploy(&["task-listeners.bpmn"]).await;
        let instance = self.create("task-listeners", json!({ "b": "ann", "flag": true })).await;
        for job_type in ["listen-creating", "listen-assigning-1", "listen-assigning-2"] {
            self.answer(job_type, json!(null)).await;
        }
        let task = self.user_task(&instance).await;
        assert_eq!((&task["state"], &task["assignee"]), (&json!("CREATED"), &json!("ann")));
        let task = text(&task["userTaskKey"]);
        (instance, task)
    }
}

#[tokio::test]
async fn an_assignment_is_answered_when_its_listeners_are_through() {
    let bench = Bench::start().await;
    let (instance, task) = bench.listened().await;
    let path = format!("/user-tasks/{task}/assignment");
    let assign = || Some(json!({ "assignee": "bob", "action": "escalate" }));
    let (answer, ()) = tokio::join!(bench.ask("POST", &path, assign()), async {
        let job = bench
            .answer(
                "listen-assigning-1",
                json!({ "corrections": {
            "priority": 9, "candidateUsers": ["u"], "dueDate": "2030-01-01T00:00:00Z",
        } }),
            )
            .await;
        assert_eq!(
            (&job["kind"], &job["listenerEventType"]),
            (&json!("TASK_LISTENER"), &json!("ASSIGNING"))
        );
        assert_eq!(
            job["userTask"],
            json!({
                "action": "escalate", "assignee": "bob", "candidateGroups": ["clerks", "bosses"],
                "candidateUsers": [], "changedAttributes": ["assignee"], "dueDate": null,
                "followUpDate": null, "formKey": null, "priority": 50, "userTaskKey": task,
            })
        );
        let now = bench.user_task(&instance).await;
        assert_eq!((&now["state"], &now["assignee"]), (&json!("ASSIGNING"), &json!("ann")));
        for (method, rest, body) in [
            ("POST", "/assignment", assign()),
            ("POST", "/completion", None),
            ("PATCH", "", Some(json!({ "changeset": { "priority": 1 } }))),
        ] {
            let answer = bench.ask(method, &format!("/user-tasks/{task}{rest}"), body).await;
            assert_eq!((answer.status, &answer.json()["title"]), (409, &json!("INVALID_STATE")));
            let detail = answer.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.contains("it is in state 'ASSIGNING'"), "{detail}");
        }
        bench.answer("listen-assigning-2", json!({ "type": "userTask", "denied": false })).await;
    });
    assert_eq!(answer.status, 204);
    let now = bench.user_task(&instance).await;
    for (name, expected) in [
        ("state", json!("CREATED")),
        ("assignee", json!("bob")),
        ("priority", json!(9)),
        ("candidateUsers", json!(["u"])),
    ] {
        assert_eq!(now[name], expected, "{name}");
    }
}

#[tokio::test]
async fn a_completion_is_denied_and_then_not() {
    let bench = Bench::start().await;
    let (instance, task) = bench.listened().await;
    let path = format!("/user-tasks/{task}/completion");
    let done = || Some(json!({ "variables": { "ok": true } }));
    let (answer, job) = tokio::join!(
        bench.ask("POST", &path, done()),
        bench.answer("listen-completing-1", json!({ "denied": true, "deniedReason": "too soon" })),
    );
    assert_eq!(job["variables"]["ok"], true, "what is about to be written");
    assert_eq!((answer.status, &answer.json()["title"]), (409, &json!("INVALID_STATE")));
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("denied it. Reason to deny: 'too soon'"), "{detail}");
    assert_eq!(bench.user_task(&instance).await["state"], "CREATED");
    let (answer, _, _) = tokio::join!(
        bench.ask("POST", &path, done()),
        bench.answer("listen-completing-1", json!(null)),
        bench.answer("listen-completing-2", json!({ "corrections": { "assignee": "cy" } })),
    );
    assert_eq!(answer.status, 204, "{}", answer.json());
    let now = bench.user_task(&instance).await;
    assert_eq!((&now["state"], &now["assignee"]), (&json!("COMPLETED"), &json!("cy")));
}

#[tokio::test]
async fn a_cancelled_instance_ends_what_was_about_to_happen() {
    let bench = Bench::start().await;
    let (instance, task) = bench.listened().await;
    let path = format!("/user-tasks/{task}");
    let change = Some(json!({ "changeset": { "priority": 1 } }));
    let (answer, ()) = tokio::join!(bench.ask("PATCH", &path, change), async {
        let asked = json!({ "type": "listen-updating", "requestTimeout": 10_000 });
        assert_eq!(bench.activate(asked).await.len(), 1);
        bench.post(&format!("/process-instances/{instance}/cancellation"), json!({})).await;
    });
    assert_eq!(answer.status, 409);
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("it was canceled meanwhile"), "{detail}");
    assert_eq!(bench.user_task(&instance).await["state"], "CANCELING");

    let key = text(&bench.take("listen-canceling").await["jobKey"]);
    let failure = json!({ "retries": 0, "errorMessage": "oh" });
    bench.post(&format!("/jobs/{key}/failure"), failure).await;
    let filter = json!({ "filter": { "processInstanceKey": instance } });
    let incident = bench.post("/incidents/search", filter.clone()).await["items"][0].clone();
    assert_eq!(incident["errorType"], "TASK_LISTENER_NO_RETRIES");
    let of_listeners = json!({ "filter": {
        "kind": "TASK_LISTENER", "listenerEventType": "CANCELING", "processInstanceKey": instance,
    } });
    let jobs = bench.post("/jobs/search", of_listeners).await;
    assert_eq!(jobs["items"][0]["jobKey"], json!(key));

    let more = json!({ "changeset": { "retries": 1 } });
    assert_eq!(bench.ask("PATCH", &format!("/jobs/{key}"), Some(more)).await.status, 204);
    let incident = text(&incident["incidentKey"]);
    bench.post(&format!("/incidents/{incident}/resolution"), json!({})).await;
    bench.answer("listen-canceling", json!(null)).await;
    assert_eq!(bench.user_task(&instance).await["state"], "CANCELED");
    let now = bench.post("/process-instances/search", filter).await["items"][0].clone();
    assert_eq!(now["state"], "TERMINATED");
}
