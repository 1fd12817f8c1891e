//! EVENT tasks, and the handlers that act on what they publish.

use windlass_record::workflow::{TaskReference, TaskStatus, TaskUpdate, WorkflowCommand};

use super::*;

fn event(sink: &str, input: &Value) -> Value {
    json!({ "name": "tell", "taskReferenceName": "tell", "type": "EVENT", "sink": sink,
            "inputParameters": input })
}

/// A handler of `conductor:w:tell` that starts the workflow `child` so often, and says who it is.
fn starts(name: &str, times: usize) -> Value {
    let start = |n: usize| {
        json!({ "action": "start_workflow", "start_workflow": { "name": "child",
            "input": { "by": format!("{name} {n}"), "message": "${whole}" } } })
    };
    json!({ "name": name, "event": "conductor:w:tell", "active": true,
            "actions": (0..times).map(start).collect::<Value>() })
}

impl Check {
    #[track_caller]
    fn handle(&mut self, handler: &Value, known: bool) {
        let handler = handler.to_string().into_bytes().into();
        self.workflow_command(WorkflowCommand::DefineHandler { handler, must_exist: known })
            .expect("it is sound");
    }

    #[track_caller]
    fn forget_handler(&mut self, name: &str) {
        let name = name.into();
        self.workflow_command(WorkflowCommand::ForgetHandler { name }).expect("it is known");
    }

    /// Who started workflows, in order.
    fn started_by(&mut self) -> Vec<String> {
        let tasks = self.poll_tasks("t", 1_000);
        let by = |task: &Value| task["inputData"]["by"].as_str().expect("text").to_owned();
        tasks.iter().map(by).collect()
    }
}

/// Gives the command without letting anything go on.
fn give(check: &mut Check, command: WorkflowCommand) {
    let command = windlass_record::flow::FlowCommand::Workflow(command);
    check.give(windlass_record::command::Command::Flow(command)).expect("it is sound");
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
        check.handle(&handler, false);
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

/// What is done to the handlers between two steps of an event.
enum Between {
    Forget(&'static str),
    Define(Value),
    Change(Value),
}

#[test]
fn handlers_that_come_and_go_shift_nothing() {
    let of =
        |name: &str, times: usize| (0..times).map(|n| format!("{name} {n}")).collect::<Vec<_>>();
    // 130 actions: three steps of 64 at most.
    for (between, expected) in [
        // All of that one has acted.
        (Between::Forget("a"), [of("a", 50), of("b", 50), of("c", 30)].concat()),
        // It is in the middle of its actions: the rest of them is gone with it.
        (Between::Forget("b"), [of("a", 50), of("b", 14), of("c", 30)].concat()),
        // Its turn has not come.
        (Between::Forget("c"), [of("a", 50), of("b", 50)].concat()),
        // One that comes later was not there when the event was.
        (Between::Define(starts("d", 9)), [of("a", 50), of("b", 50), of("c", 30)].concat()),
        // One that changes is another.
        (Between::Change(starts("a", 3)), [of("a", 50), of("b", 50), of("c", 30)].concat()),
        (Between::Change(starts("c", 3)), [of("a", 50), of("b", 50)].concat()),
    ] {
        let mut check = Check::new();
        for (name, times) in [("a", 50), ("b", 50), ("c", 30)] {
            check.handle(&starts(name, times), false);
        }
        let child = simple_with("t", &json!({ "by": "${workflow.input.by}" }));
        check.define(&definition("child", &json!([child])));
        check.define(&definition("w", &json!([event("conductor", &json!({}))])));
        let request = json!({ "name": "w", "input": {} }).to_string().into_bytes().into();
        give(&mut check, WorkflowCommand::Start { request });
        let context = check.context();
        while check.engine.state().flow().workflows().keys().len() < 10 {
            assert_eq!(check.engine.go_on(context, 1, &mut check.shelf), 1, "it acts");
        }
        let acted = check.engine.state().flow().workflows().keys().len() - 1;
        assert_eq!(acted, 64, "one step");
        match between {
            Between::Forget(name) => check.forget_handler(name),
            Between::Define(handler) => check.handle(&handler, false),
            Between::Change(handler) => check.handle(&handler, true),
        }
        check.settle();
        assert_eq!(check.started_by(), expected);
        check.compare_rebuilt();
    }
}
