//! Tasks that wait for somebody, signals, and variables.

use windlass_record::command::Bytes;
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{
    SignalWorkflow, TaskReference, TaskStatus, TaskUpdate, WorkflowAnswer, WorkflowCommand, id_of,
};

use super::*;

fn wait(name: &str, input: &Value) -> Value {
    json!({ "name": name, "taskReferenceName": name, "type": "WAIT", "inputParameters": input })
}

fn bytes(value: &Value) -> Bytes {
    value.to_string().into_bytes().into()
}

impl Check {
    /// Ends the task with this reference name.
    #[track_caller]
    fn end_named(&mut self, workflow: Key, name: &str, status: TaskStatus, output: &Value) {
        self.send_update(TaskUpdate {
            workflow,
            task: TaskReference::Name(name.into()),
            status,
            output: bytes(output),
            merge: false,
            reason: "".into(),
            callback_s: 0,
            worker: "".into(),
            log: Vec::new(),
            extend_lease: false,
        });
    }

    /// Signals a workflow: the task that was blocked, if there was one.
    fn signal_workflow(
        &mut self,
        workflow: Key,
        status: TaskStatus,
        output: &Value,
    ) -> Option<Key> {
        let signal = SignalWorkflow { workflow, status, output: bytes(output) };
        match self.workflow_command(WorkflowCommand::Signal(signal)) {
            Ok(WorkflowAnswer::Updated { task, .. }) => {
                Some(task).filter(|task| *task != windlass_record::flow::NO_KEY)
            }
            other => panic!("a signal was answered {other:?}"),
        }
    }
}

#[test]
fn a_wait_without_a_time_is_ended_by_hand() {
    for (status, workflow, rows) in [
        (TaskStatus::Completed, "RUNNING", ["WAIT hold COMPLETED", "t t SCHEDULED"].as_slice()),
        (TaskStatus::Failed, "FAILED", &["WAIT hold FAILED"]),
        (TaskStatus::FailedWithTerminalError, "FAILED", &["WAIT hold FAILED_WITH_TERMINAL_ERROR"]),
    ] {
        let mut check = Check::new();
        check.define(&definition("w", &json!([wait("hold", &json!({})), simple("t")])));
        let key = check.start_workflow("w", &json!({}));
        check.pass(86_400_000);
        check.assert_rows(key, "RUNNING", &["WAIT hold IN_PROGRESS"]);
        check.end_named(key, "hold", status, &json!({ "by": "hand" }));
        check.assert_rows(key, workflow, rows);
        if status == TaskStatus::Completed {
            check.do_task("t", &json!({}));
            check.assert_rows(key, "COMPLETED", &["WAIT hold COMPLETED", "t t COMPLETED"]);
        }
        check.compare_rebuilt();
    }
}

#[test]
fn variables_are_seen_by_what_follows_and_by_the_output() {
    let mut check = Check::new();
    let set = json!({ "name": "set", "taskReferenceName": "set", "type": "SET_VARIABLE",
        "inputParameters": { "color": "${workflow.input.color}" } });
    let mut alone = definition("alone", &json!([set]));
    alone["outputParameters"] = json!({ "variables": "${workflow.variables}" });
    check.define(&alone);
    let mut between = alone.clone();
    between["name"] = json!("between");
    between["tasks"] = json!([simple("t"), set, wait("hold", &json!({}))]);
    check.define(&between);

    let key = check.start_workflow("alone", &json!({ "color": "red" }));
    check.assert_rows(key, "COMPLETED", &["SET_VARIABLE set COMPLETED"]);
    assert_eq!(check.workflow(key)["output"], json!({ "variables": { "color": "red" } }));

    let key = check.start_workflow("between", &json!({ "color": "red" }));
    check.assert_rows(key, "RUNNING", &["t t SCHEDULED"]);
    assert_eq!(check.workflow(key)["variables"], json!({}));
    check.do_task("t", &json!({ "other": 1 }));
    let rows = ["t t COMPLETED", "SET_VARIABLE set COMPLETED", "WAIT hold IN_PROGRESS"];
    check.assert_rows(key, "RUNNING", &rows);
    assert_eq!(check.workflow(key)["variables"], json!({ "color": "red" }));
    check.end_named(key, "hold", TaskStatus::Completed, &json!({}));
    let rows = ["t t COMPLETED", "SET_VARIABLE set COMPLETED", "WAIT hold COMPLETED"];
    check.assert_rows(key, "COMPLETED", &rows);
    assert_eq!(check.workflow(key)["output"], json!({ "variables": { "color": "red" } }));
    check.compare_rebuilt();
}

#[test]
fn variables_that_are_too_large_change_nothing() {
    let mut check = Check::new();
    let set = json!({ "name": "set", "taskReferenceName": "set", "type": "SET_VARIABLE",
        "inputParameters": { "v": "${workflow.input.v}" } });
    let mut large = definition("w", &json!([set, simple("never")]));
    large["outputParameters"] = json!({ "variables": "${workflow.variables}" });
    check.define(&large);
    let key = check.start_workflow("w", &json!({ "v": "x".repeat(256 << 10) }));
    check.assert_rows(key, "FAILED", &["SET_VARIABLE set FAILED_WITH_TERMINAL_ERROR"]);
    let workflow = check.workflow(key);
    assert_eq!(workflow["variables"], json!({}));
    assert_eq!(workflow["output"], json!({ "variables": {} }));
    assert_eq!(
        workflow["tasks"][0]["reasonForIncompletion"],
        format!(
            "The variables payload size: {} of workflow: {} is greater than the permissible \
             limit: 256 kilobytes",
            (256 << 10) + r#"{"v":""}"#.len(),
            id_of(key)
        )
    );
    check.compare_rebuilt();
}

#[test]
fn a_signal_ends_the_first_wait() {
    for input in [json!({}), json!({ "duration": "2 days" })] {
        let mut check = Check::new();
        check.define(&definition("w", &json!([wait("hold", &input), simple("t")])));
        let key = check.start_workflow("w", &json!({}));
        check.assert_rows(key, "RUNNING", &["WAIT hold IN_PROGRESS"]);
        let hold = id(&check.task_named(key, "hold"), "taskId");
        let signalled =
            check.signal_workflow(key, TaskStatus::Completed, &json!({ "result": "done" }));
        assert_eq!(signalled, Some(hold), "{input}");
        check.assert_rows(key, "RUNNING", &["WAIT hold COMPLETED", "t t SCHEDULED"]);
        assert_eq!(check.task_named(key, "hold")["outputData"], json!({ "result": "done" }));
        // Nothing is blocked.
        assert_eq!(check.signal_workflow(key, TaskStatus::Completed, &json!({})), None);
        check.do_task("t", &json!({}));
        assert_eq!(
            check.signal_workflow(key, TaskStatus::Completed, &json!({})),
            None,
            "it has ended"
        );
        check.compare_rebuilt();
    }
    let mut check = Check::new();
    check.define(&definition("w", &json!([simple("t")])));
    let key = check.start_workflow("w", &json!({}));
    let task = check.poll_one("t");
    let signal = SignalWorkflow {
        workflow: id(&task, "taskId"),
        status: TaskStatus::Completed,
        output: Bytes::default(),
    };
    let refused = check.workflow_command(WorkflowCommand::Signal(signal));
    let refused = refused.expect_err("it is a task's id");
    assert_eq!(refused.kind(), RejectionKind::NotFound);
    check.assert_rows(key, "RUNNING", &["t t IN_PROGRESS"]);
}

#[test]
fn a_signal_goes_down_to_the_wait_of_a_child() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([wait("hold", &json!({}))])));
    check.define(&definition("parent", &json!([sub("below", &json!({ "name": "child" }))])));
    let parent = check.start_workflow("parent", &json!({}));
    check.assert_rows(parent, "RUNNING", &["SUB_WORKFLOW below IN_PROGRESS"]);
    let child = check.child_of(parent, "below");
    check.assert_rows(child, "RUNNING", &["WAIT hold IN_PROGRESS"]);
    let hold = id(&check.task_named(child, "hold"), "taskId");
    assert_eq!(
        check.signal_workflow(parent, TaskStatus::Completed, &json!({ "n": 1 })),
        Some(hold)
    );
    check.assert_rows(child, "COMPLETED", &["WAIT hold COMPLETED"]);
    check.assert_rows(parent, "COMPLETED", &["SUB_WORKFLOW below COMPLETED"]);
    assert_eq!(check.workflow(parent)["output"]["n"], 1);
    check.compare_rebuilt();
}

#[test]
fn a_signal_looks_at_a_workflow_first_then_at_its_children_in_order() {
    let mut check = Check::new();
    for name in ["busy", "one", "two"] {
        let task = if name == "busy" { simple("t") } else { wait(name, &json!({})) };
        check.define(&definition(name, &json!([task])));
    }
    let branches = ["busy", "one", "two"].map(|name| json!([sub(name, &json!({ "name": name }))]));
    let mut branches = branches.to_vec();
    branches.push(json!([wait("own", &json!({}))]));
    check.define(&definition(
        "parent",
        &json!([
            { "name": "fan", "taskReferenceName": "fan", "type": "FORK_JOIN", "forkTasks": branches },
            { "name": "gather", "taskReferenceName": "gather", "type": "JOIN",
              "joinOn": ["busy", "one", "two", "own"] },
        ]),
    ));
    let parent = check.start_workflow("parent", &json!({}));
    let mut expected = vec![id(&check.task_named(parent, "own"), "taskId")];
    for name in ["one", "two"] {
        let child = check.child_of(parent, name);
        expected.push(id(&check.task_named(child, name), "taskId"));
    }
    for task in expected {
        assert_eq!(check.signal_workflow(parent, TaskStatus::Completed, &json!({})), Some(task));
    }
    assert_eq!(check.signal_workflow(parent, TaskStatus::Completed, &json!({})), None);
    check.do_task("t", &json!({}));
    check.assert_status(parent, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_secret_stays_as_it_is_written() {
    let mut check = Check::new();
    let input = json!({ "key": "${workflow.secrets.KEY}", "in": "Bearer ${workflow.secrets.KEY}",
        "region": "${workflow.env.REGION}" });
    check.define(&definition("child", &json!([simple_with("t", &input)])));
    check.define(&definition("parent", &json!([sub("below", &json!({ "name": "child" }))])));
    let parent = check.start_workflow("parent", &json!({}));
    let child = check.child_of(parent, "below");
    let stored = check.task_named(child, "t")["inputData"].clone();
    assert_eq!(stored["key"], "${workflow.secrets.KEY}");
    assert_eq!(stored["in"], "Bearer ${workflow.secrets.KEY}");
    assert_eq!(stored["region"], Value::Null);
    assert_eq!(check.do_task("t", &json!({}))["inputData"], stored, "it is handed out so too");
    check.assert_status(parent, "COMPLETED");
    check.compare_rebuilt();
}
