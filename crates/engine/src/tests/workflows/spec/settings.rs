//! What definitions say of tasks and workflows: optional, permissive, templates, call-backs.

use serde_json::{Value, json};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{TaskReference, TaskStatus, TaskUpdate, WorkflowVerb};

use super::Step::{Done, Fails, Is, Takes, Waits};
use super::{definition, id, once, simple, with};
use crate::tests::workflows::simple_with;
use crate::verb::check::Check;

/// A task with these flags, tried twice, then another one.
fn lax(check: &mut Check, flags: &[&str]) -> Value {
    check.define_task(&json!({ "name": "lax", "retryCount": 1, "retryDelaySeconds": 0,
        "responseTimeoutSeconds": 5, "timeoutSeconds": 0, "timeoutPolicy": "RETRY" }));
    let lax = flags.iter().fold(simple("lax"), |lax, flag| with(lax, flag, json!(true)));
    json!([lax, simple("after")])
}

#[test]
fn an_optional_task_may_fail_when_its_attempts_are_used_up() {
    // Permissive as well changes nothing.
    for flags in [&["optional"][..], &["optional", "permissive"]] {
        let mut check = Check::new();
        let tasks = lax(&mut check, flags);
        let key = check.start_tasks(&tasks, &json!({}));
        check.play(
            key,
            [
                (Fails("lax"), "RUNNING: lax FAILED, lax SCHEDULED #1"),
                (Takes("lax"), "RUNNING: lax FAILED, lax IN_PROGRESS #1"),
                (Waits(5), "RUNNING: lax FAILED, lax COMPLETED_WITH_ERRORS #1, after SCHEDULED"),
                (
                    Done("after"),
                    "COMPLETED: lax FAILED, lax COMPLETED_WITH_ERRORS #1, after COMPLETED",
                ),
            ],
        );
        check.compare_rebuilt();
    }
}

#[test]
fn a_permissive_task_that_failed_fails_the_workflow_at_its_end() {
    let mut check = Check::new();
    let tasks = lax(&mut check, &["permissive"]);
    let key = check.start_tasks(&tasks, &json!({}));
    check.play(
        key,
        [
            (Fails("lax"), "RUNNING: lax FAILED, lax SCHEDULED #1"),
            (Fails("lax"), "RUNNING: lax FAILED, lax FAILED #1, after SCHEDULED"),
            (Done("after"), "FAILED: lax FAILED, lax FAILED #1, after COMPLETED"),
        ],
    );
    let workflow = check.workflow(key);
    let lax = workflow["tasks"][1]["taskId"].as_str().expect("text");
    let reason = format!("Task {lax} failed with status: FAILED and reason: 'no'");
    assert_eq!(workflow["reasonForIncompletion"], reason.as_str());
    check.compare_rebuilt();
}

#[test]
fn all_permissive_failures_are_told() {
    let mut check = Check::new();
    let permissive = |name: &str| with(once(name), "permissive", json!(true));
    let key = check.start_tasks(&json!([permissive("one"), permissive("two")]), &json!({}));
    check.step(key, Fails("one"));
    check.step(key, Fails("two"));
    check.assert_told(key, "FAILED: one FAILED, two FAILED");
    let workflow = check.workflow(key);
    let told = |index: usize| {
        let task = workflow["tasks"][index]["taskId"].as_str().expect("text");
        format!("Task {task} failed with status: FAILED and reason: 'no'")
    };
    let reason = format!("{}. {}", told(0), told(1));
    assert_eq!(workflow["reasonForIncompletion"], reason.as_str());
    check.compare_rebuilt();
}

#[test]
fn a_workflow_s_template_fills_in_what_its_input_lacks() {
    let mut check = Check::new();
    let mut templated = definition("w", &json!([simple("one")]));
    templated["inputTemplate"] =
        json!({ "deep": { "a": { "b": 1 } }, "list": ["x", "y"], "text": "from the template" });
    templated["outputParameters"] = json!({ "of": "${one.output.it}", "deep": "${workflow.input.deep}",
        "list": "${workflow.input.list}", "text": "${workflow.input.text}" });
    check.define(&templated);
    let key = check.start_workflow("w", &json!({ "text": "from outside" }));
    check.do_task("one", &json!({ "it": "done" }));
    check.assert_status(key, "COMPLETED");
    let output = json!({ "of": "done", "deep": { "a": { "b": 1 } }, "list": ["x", "y"],
        "text": "from outside" });
    assert_eq!(check.workflow(key)["output"], output);
    check.compare_rebuilt();
}

#[test]
fn a_task_s_template_is_filled_in_and_resolved() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "call", "retryCount": 1, "retryDelaySeconds": 0,
    "inputTemplate": {
        "request": { "how": "GET", "of": ["${workflow.input.a}", "${workflow.input.b}"],
                     "with": "${workflow.input.with}", "me": "${CPEWF_TASK_ID}" },
        "given": "${workflow.input.a}", "null": "${workflow.input.a}"
    } }));
    let tasks =
        json!([simple_with("call", &json!({ "given": "own", "null": "${workflow.input.none}" }))]);
    let key = check.start_tasks(&tasks, &json!({ "a": "x", "b": "y", "with": { "n": 42 } }));
    for _ in 0..2 {
        let call = check.fail_task("call", "no");
        let expected = json!({
            "request": { "how": "GET", "of": ["x", "y"], "with": { "n": 42 }, "me": call["taskId"] },
            "given": "own",
            // What comes to nothing is taken from the template as it is written.
            "null": "${workflow.input.a}",
        });
        assert_eq!(call["inputData"], expected);
    }
    check.assert_status(key, "FAILED");
    check.compare_rebuilt();
}

#[test]
fn a_task_that_nobody_defined_runs_by_the_defaults() {
    let mut check = Check::new();
    let key = check.start_tasks(&json!([simple("unheard_of")]), &json!({}));
    let task = check.fail_task("unheard_of", "no");
    assert_eq!(task["taskDefName"], "unheard_of");
    assert_eq!(task["responseTimeoutSeconds"], 3600);
    check.assert_told(key, "RUNNING: unheard_of FAILED, unheard_of SCHEDULED #1");
    check.step(key, Waits(59));
    assert!(check.poll_tasks("unheard_of", 1).is_empty());
    check.step(key, Waits(1));
    check.step(key, Done("unheard_of"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_definition_without_tasks_is_refused_also_with_a_start() {
    let mut check = Check::new();
    let empty = definition("w", &json!([]));
    let refused = check
        .request_workflow(&json!({ "name": "w", "input": {}, "workflowDef": empty }))
        .expect_err("there is nothing to do");
    assert_eq!(refused.kind(), RejectionKind::InvalidArgument);
}

fn put_back(check: &mut Check, task: &Value, callback_s: u32) {
    check.send_update(TaskUpdate {
        workflow: id(task, "workflowInstanceId"),
        task: TaskReference::Key(id(task, "taskId")),
        status: TaskStatus::InProgress,
        output: b"{\"half\":1}".as_slice().into(),
        merge: false,
        reason: "".into(),
        callback_s,
        worker: "w".into(),
        log: Vec::new(),
        extend_lease: false,
    });
}

#[test]
fn tasks_that_were_put_back_come_again_at_once_or_later_or_when_all_are_reset() {
    let mut check = Check::new();
    let key = check.start_tasks(&json!([simple("one"), simple("two")]), &json!({}));
    let one = check.poll_one("one");
    put_back(&mut check, &one, 0);
    check.assert_told(key, "RUNNING: one SCHEDULED");
    assert_eq!(check.task(key, "one")["callbackAfterSeconds"], 0);
    let again = check.poll_one("one");
    assert_eq!((&again["taskId"], &again["pollCount"]), (&one["taskId"], &json!(2)));
    put_back(&mut check, &again, 3600);
    assert_eq!(check.task(key, "one")["callbackAfterSeconds"], 3600);
    check.step(key, Waits(3599));
    assert!(check.poll_tasks("one", 1).is_empty());
    check.step(key, Is(WorkflowVerb::ResetCallbacks));
    assert_eq!(check.do_task("one", &json!({ "whole": 1 }))["outputData"], json!({ "half": 1 }));
    assert_eq!(check.task(key, "one")["outputData"], json!({ "whole": 1 }));
    let two = check.poll_one("two");
    put_back(&mut check, &two, 5);
    check.step(key, Waits(4));
    assert!(check.poll_tasks("two", 1).is_empty());
    check.step(key, Waits(1));
    check.step(key, Done("two"));
    check.assert_told(key, "COMPLETED: one COMPLETED, two COMPLETED");
    check.compare_rebuilt();
}
