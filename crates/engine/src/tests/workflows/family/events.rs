//! EVENT tasks, and the handlers that act on what they publish.

use windlass_record::workflow::{TaskReference, TaskStatus, TaskUpdate, WorkflowCommand};

use super::*;

fn event(sink: &str, input: &Value) -> Value {
    json!({ "name": "tell", "taskReferenceName": "tell", "type": "EVENT", "sink": sink,
            "inputParameters": input })
}

impl Check {
    #[track_caller]
    fn handle(&mut self, handler: &Value) {
        let handler = handler.to_string().into_bytes().into();
        self.workflow_command(WorkflowCommand::DefineHandler { handler, must_exist: false })
            .expect("it is sound");
    }
}

#[test]
fn an_event_is_done_at_once_or_when_somebody_says_so() {
    for waits in [false, true] {
        let mut check = Check::new();
        let mut tell = event("conductor", &json!({ "n": 1 }));
        tell["asyncComplete"] = json!(waits);
        check.define(&definition("w", &json!([tell, simple("t")])));
        let key = check.start_workflow("w", &json!({}));
        if waits {
            check.assert_rows(key, "RUNNING", &["EVENT tell IN_PROGRESS"]);
            let told = check.task_named(key, "tell");
            assert_eq!(told["outputData"]["event_produced"], "conductor:w:tell");
            check.send_update(TaskUpdate {
                workflow: key,
                task: TaskReference::Key(id(&told, "taskId")),
                status: TaskStatus::Completed,
                output: told["outputData"].to_string().into_bytes().into(),
                merge: false,
                reason: "".into(),
                callback_s: 0,
                worker: "".into(),
                log: Vec::new(),
                extend_lease: false,
            });
        }
        check.assert_rows(key, "RUNNING", &["EVENT tell COMPLETED", "t t SCHEDULED"]);
        let told = check.task_named(key, "tell");
        assert_eq!(told["outputData"]["event_produced"], "conductor:w:tell");
        check.do_task("t", &json!({}));
        check.assert_rows(key, "COMPLETED", &["EVENT tell COMPLETED", "t t COMPLETED"]);
        check.compare_rebuilt();
    }
}

#[test]
fn what_is_published_says_where_it_comes_from() {
    let mut check = Check::new();
    let whole = json!({ "n": "${n}", "id": "${workflowInstanceId}", "type": "${workflowType}",
        "version": "${workflowVersion}", "correlation": "${correlationId}",
        "domains": "${taskToDomain}" });
    for name in ["conductor:w:tell", "conductor:w:other"] {
        let handler = json!({ "name": name, "event": name, "active": true, "actions": [
            { "action": "start_workflow",
              "start_workflow": { "name": "child", "input": whole } }] });
        check.handle(&handler);
    }
    check.define(&definition("child", &json!([simple("t")])));
    for (sink, name) in
        [("conductor", "conductor:w:tell"), ("conductor:other", "conductor:w:other")]
    {
        for domains in [json!({ "u": "blue" }), json!({})] {
            check.define(&definition("w", &json!([event(sink, &json!({ "n": 7 }))])));
            let request = json!({ "name": "w", "input": {}, "correlationId": "mine",
                "taskToDomain": domains });
            let key = check.request_workflow(&request).expect("it is known");
            let task = check.do_task("t", &json!({}));
            let input = check.workflow(id(&task, "workflowInstanceId"))["input"].clone();
            let told = check.task_named(key, "tell");
            let expected = json!({ "n": 7, "id": check.workflow(key)["workflowId"], "type": "w",
                "version": 1, "correlation": "mine", "domains": domains,
                "conductor.event.messageId": told["taskId"], "conductor.event.name": name });
            assert_eq!(input, expected);
            assert_eq!(told["outputData"]["taskToDomain"], domains);
            assert_eq!(told["outputData"]["event_produced"], name);
            check.compare_rebuilt();
        }
    }
}

#[test]
fn an_unknown_sink_fails_the_task() {
    let mut check = Check::new();
    check.define(&definition("w", &json!([event("sqs:queue", &json!({}))])));
    let key = check.start_workflow("w", &json!({}));
    check.assert_rows(key, "FAILED", &["EVENT tell FAILED"]);
    check.compare_rebuilt();
}
