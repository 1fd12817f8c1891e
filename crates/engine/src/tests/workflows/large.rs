//! Texts that grow in the kernel: each is refused at its bound, and no frame of the log holds many.

use serde_json::{Value, json};
use windlass_record::bound::Bounds;
use windlass_record::flow::Key;
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{WorkflowCommand, WorkflowVerb};

use super::{definition, simple, simple_with};
use crate::verb::check::Check;

/// Bytes of a payload in most of these tests.
const BOUND: usize = 4_000;

fn small() -> Check {
    Check::with_bounds(Bounds { payload_bytes_max: BOUND, ..Bounds::default() })
}

fn text(bytes: usize) -> Value {
    "x".repeat(bytes).into()
}

impl Check {
    /// Asserts that a workflow failed because a task was to hold too much.
    #[track_caller]
    fn assert_too_large(&mut self, key: Key, reference: &str) {
        self.assert_status(key, "FAILED");
        let workflow = self.workflow(key);
        let tasks = workflow["tasks"].as_array().expect("a list");
        let task = tasks.iter().find(|task| task["referenceTaskName"] == reference);
        let task = task.expect("it is there");
        assert_eq!(task["status"], "FAILED_WITH_TERMINAL_ERROR");
        let reason = task["reasonForIncompletion"].as_str().expect("text");
        assert!(reason.starts_with("The payload size: "), "{reason}");
        assert!(reason.ends_with("is greater than the permissible limit: 4000 bytes"), "{reason}");
        self.compare_rebuilt();
    }
}

/// Twice what the workflow was given.
fn twice() -> Value {
    json!({ "a": "${workflow.input.text}", "b": "${workflow.input.text}" })
}

#[test]
fn the_input_of_a_task_is_bounded() {
    let inline = json!({ "name": "inline", "taskReferenceName": "s", "type": "INLINE",
        "inputParameters": { "evaluatorType": "javascript", "expression": "1",
            "a": "${workflow.input.text}", "b": "${workflow.input.text}" } });
    for task in [simple_with("s", &twice()), inline] {
        let mut check = small();
        check.define(&definition("w", &json!([task])));
        let key = check.start_workflow("w", &json!({ "text": text(BOUND / 2) }));
        check.assert_too_large(key, "s");
    }
}

#[test]
fn what_a_task_works_out_is_bounded() {
    let mut check = small();
    let script = json!({ "name": "i", "taskReferenceName": "i", "type": "INLINE",
        "inputParameters": { "evaluatorType": "javascript", "expression": "$.t + $.t",
            "t": "${workflow.input.text}" } });
    check.define(&definition("w", &json!([script])));
    let key = check.start_workflow("w", &json!({ "text": text(BOUND / 2) }));
    check.assert_too_large(key, "i");
}

#[test]
fn a_case_that_does_not_fit_beside_its_input_ends_the_switch() {
    let mut check = small();
    let switch = json!({ "name": "s", "taskReferenceName": "s", "type": "SWITCH",
        "evaluatorType": "value-param", "expression": "t",
        "inputParameters": { "t": "${workflow.input.text}" },
        "decisionCases": { "x": [simple("x")] } });
    check.define(&definition("w", &json!([switch])));
    let key = check.start_workflow("w", &json!({ "text": text(BOUND / 2) }));
    check.assert_too_large(key, "s");
}

#[test]
fn what_a_sandbox_is_given_is_bounded() {
    let mut check = small();
    // More than the kernel evaluates by itself.
    let script = json!({ "name": "i", "taskReferenceName": "i", "type": "INLINE",
        "inputParameters": { "evaluatorType": "javascript",
            "expression": "new Date(0).getTime()", "t": "${workflow.input.text}" } });
    check.define(&definition("w", &json!([script])));
    let key = check.start_workflow("w", &json!({ "text": text(BOUND - 120) }));
    check.assert_too_large(key, "i");
}

#[test]
fn what_the_branches_of_a_fork_gave_is_bounded() {
    let mut check = small();
    check.define(&definition(
        "w",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
              "forkTasks": [[simple("a")], [simple("b")], [simple("c")]] },
            { "name": "j", "taskReferenceName": "j", "type": "JOIN", "joinOn": ["a", "b", "c"] },
        ]),
    ));
    let key = check.start_workflow("w", &json!({}));
    for branch in ["a", "b", "c"] {
        check.do_task(branch, &json!({ "text": text(BOUND / 2) }));
    }
    check.assert_too_large(key, "j");
}

#[test]
fn what_the_rounds_of_a_loop_gave_is_bounded() {
    let mut check = small();
    let body = simple_with("s", &json!({}));
    let around = json!({ "name": "l", "taskReferenceName": "l", "type": "DO_WHILE",
        "loopCondition": "$.l['iteration'] < 3", "loopOver": [body] });
    check.define(&definition("w", &json!([around])));
    let key = check.start_workflow("w", &json!({}));
    for _ in 0..3 {
        check.do_task("s", &json!({ "text": text(BOUND / 2) }));
    }
    check.assert_too_large(key, "l");
}

#[test]
fn the_branches_that_a_fork_adds_are_bounded() {
    let mut check = small();
    let fork = json!({ "name": "f", "taskReferenceName": "f", "type": "FORK_JOIN_DYNAMIC",
        "inputParameters": { "forkTaskName": "s", "forkTaskInputs": "${workflow.input.list}" } });
    let join = json!({ "name": "j", "taskReferenceName": "j", "type": "JOIN" });
    check.define(&definition("w", &json!([fork, join])));
    let key = check.start_workflow("w", &json!({ "list": vec![1; 100] }));
    check.assert_too_large(key, "f");
}

#[test]
fn an_output_that_is_too_large_fails_its_workflow() {
    let mut check = small();
    let mut large = definition("w", &json!([simple("s")]));
    large["outputParameters"] = twice();
    check.define(&large);
    let key = check.start_workflow("w", &json!({ "text": text(BOUND / 2) }));
    check.do_task("s", &json!({}));
    check.assert_status(key, "FAILED");
    let workflow = check.workflow(key);
    let reason = workflow["reasonForIncompletion"].as_str().expect("text");
    assert!(reason.starts_with("The payload size: "), "{reason}");
    assert_eq!(workflow["output"], json!({}));
    check.compare_rebuilt();
}

#[test]
fn an_input_that_its_template_makes_too_large_is_refused() {
    let mut check = small();
    let mut large = definition("w", &json!([simple("s")]));
    large["inputTemplate"] = json!({ "more": text(BOUND / 2) });
    check.define(&large);
    let input = json!({ "name": "w", "input": { "text": text(BOUND / 2) } });
    let refused = check.request_workflow(&input).expect_err("it is too large");
    assert_eq!(refused.kind(), RejectionKind::InvalidArgument, "{refused}");
}

#[test]
fn a_retry_of_more_than_a_frame_holds_is_refused() {
    let mut check = small();
    let mut tasks = Vec::new();
    for name in ["a", "b", "c"] {
        let mut task = simple_with(name, &json!({ "t": "${workflow.input.text}" }));
        task["retryCount"] = json!(0);
        task["permissive"] = json!(true);
        tasks.push(task);
    }
    check.define(&definition("w", &Value::Array(tasks)));
    let key = check.start_workflow("w", &json!({ "text": text(BOUND / 2) }));
    for name in ["a", "b", "c"] {
        check.fail_task(name, "no");
    }
    check.assert_status(key, "FAILED");
    let refused = check.control(key, WorkflowVerb::Retry { subworkflows: false });
    let refused = refused.expect_err("it is too much");
    assert_eq!(refused.kind(), RejectionKind::ResourceExhausted, "{refused}");
    check.assert_status(key, "FAILED");
    check.control(key, WorkflowVerb::Restart { latest: false }).expect("it begins again");
    check.compare_rebuilt();
}

#[test]
fn the_definitions_in_a_snapshot_are_bounded() {
    let mut check = Check::new();
    let description = "x".repeat(1 << 20);
    check.define_task(&json!({ "name": "s", "description": description }));
    let named =
        |n: usize| json!({ "name": "s", "taskReferenceName": format!("s{n}"), "type": "SIMPLE" });
    check.define(&definition("w", &(0..8).map(named).collect()));
    let refused = check.request_workflow(&json!({ "name": "w", "input": {} }));
    let refused = refused.expect_err("it is too large");
    assert_eq!(refused.kind(), RejectionKind::ResourceExhausted, "{refused}");
}

#[test]
fn a_failure_workflow_is_told_of_small_tasks_only() {
    let mut check = Check::new();
    let mut fails = definition(
        "w",
        &json!([simple("s"), { "name": "t", "taskReferenceName": "t",
        "type": "TERMINATE", "inputParameters": { "terminationStatus": "FAILED" } }]),
    );
    fails["failureWorkflow"] = json!("f");
    check.define(&fails);
    check.define(&definition("f", &json!([simple("mend")])));
    for (bytes, tasks) in [(10, 2), (2 << 20, 0)] {
        check.start_workflow("w", &json!({}));
        check.do_task("s", &json!({ "text": text(bytes) }));
        let key = super::id(&check.poll_one("mend"), "workflowInstanceId");
        let told = check.workflow(key)["input"]["failedWorkflow"].clone();
        assert_eq!(told["status"], "FAILED");
        assert_eq!(told["tasks"].as_array().map_or(0, Vec::len), tasks);
    }
}

/// Bytes of the largest frame while flows go on.
fn largest_frame(check: &mut Check) -> usize {
    let context = check.context();
    let mut largest = 0;
    loop {
        let before = check.shelf.log.len();
        if check.engine.go_on(context, 32, &mut check.shelf) == 0 {
            return largest;
        }
        let bytes = check.shelf.log[before..].iter().map(|(_, event)| event.len()).sum();
        largest = largest.max(bytes);
    }
}

#[test]
fn no_frame_holds_many_large_texts() {
    let mut check = Check::new();
    let branch = |n: usize| {
        json!([{ "name": "sub", "taskReferenceName": format!("b{n}"),
            "type": "SUB_WORKFLOW", "subWorkflowParam": { "name": "child" },
            "inputParameters": { "t": "${workflow.input.text}" } }])
    };
    check.define(&definition(
        "w",
        &json!([
            { "name": "f", "taskReferenceName": "f", "type": "FORK_JOIN",
              "forkTasks": (0..40).map(branch).collect::<Value>() },
            { "name": "j", "taskReferenceName": "j", "type": "JOIN", "joinOn": ["b0"] },
        ]),
    ));
    let mut child = definition("child", &json!([simple("s")]));
    child["outputParameters"] = json!({ "t": "${workflow.input.t}" });
    check.define(&child);
    let request = json!({ "name": "w", "input": { "text": text(200_000) } });
    let key = check.request_workflow(&request).expect("it is known");
    let frame_max = (1 << 20) + (512 << 10);
    assert!(largest_frame(&mut check) < frame_max);
    assert_eq!(check.shown(key).len(), 42);
    // Each child has that output when it ends with its parent.
    check.control(key, WorkflowVerb::Terminate { reason: "enough".into() }).expect("it runs");
    assert!(largest_frame(&mut check) < frame_max);
    check.assert_status(key, "TERMINATED");
    check.compare_rebuilt();
}

#[test]
fn every_handler_of_an_event_acts_a_few_at_a_time() {
    let mut check = Check::new();
    for n in 0..100 {
        let handler = json!({ "name": format!("h{n:03}"), "event": "conductor:w:e", "active": true,
            "actions": [{ "action": "start_workflow",
                "start_workflow": { "name": "child", "input": { "t": "${t}" } } }] });
        let handler = handler.to_string().into_bytes().into();
        check
            .workflow_command(WorkflowCommand::DefineHandler { handler, must_exist: false })
            .expect("it is sound");
    }
    check.define(&definition("child", &json!([simple("s")])));
    check.define(&definition(
        "w",
        &json!([{ "name": "e", "taskReferenceName": "e", "type": "EVENT",
        "sink": "conductor", "inputParameters": { "t": "${workflow.input.text}" } }]),
    ));
    let request = json!({ "name": "w", "input": { "text": text(100_000) } });
    let key = check.request_workflow(&request).expect("it is known");
    assert!(largest_frame(&mut check) < (1 << 20) + (512 << 10));
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.poll_tasks("s", 1_000).len(), 100, "each started one");
    check.compare_rebuilt();
}

#[test]
fn lines_of_a_task_are_bounded() {
    let bounds =
        Bounds { log_lines_per_attempt_max: 3, log_line_bytes_max: 5, ..Bounds::default() };
    let mut check = Check::with_bounds(bounds);
    check.define(&definition("w", &json!([simple("s")])));
    check.start_workflow("w", &json!({}));
    let task = check.poll_one("s");
    let task = super::id(&task, "taskId");
    for _ in 0..2 {
        let lines = vec!["a line".into(), "b".into()];
        check.workflow_command(WorkflowCommand::LogTask { task, lines }).expect("it is known");
    }
    let state = check.engine.state().flow().workflows();
    let log = &state.task(task).expect("it is known").log;
    let lines: Vec<&str> = log.iter().map(|(_, line)| &**line).collect();
    assert_eq!(lines, ["a lin", "b", "a lin"]);
}
