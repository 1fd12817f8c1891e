//! Tasks one behind the other: what is handed on, tried again, ended for good, begun again.

use serde_json::{Value, json};
use windlass_record::command::Bytes;
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{RerunWorkflow, TaskStatus, WorkflowVerb};

use super::Step::{Dies, Done, Fails, Gives, Is, Waits};
use super::{RESTARTED, RETRIED, definition, once, rerun, simple};
use crate::tests::workflows::simple_with;
use crate::verb::check::Check;

fn two() -> Value {
    json!([simple("one"), simple("two")])
}

#[test]
fn what_is_null_stays_there_and_stays_null() {
    let mut check = Check::new();
    let key = check.start_tasks(
        &json!([
            simple_with("one", &json!({ "given": "${workflow.input.none}", "fixed": null })),
            simple_with("two", &json!({ "all": "${one.output}" })),
        ]),
        &json!({ "some": 1, "none": null }),
    );
    assert_eq!(check.workflow(key)["input"], json!({ "some": 1, "none": null }));
    let output = json!({ "deep": { "a": 1, "A": null }, "none": null });
    let one = check.do_task("one", &output);
    assert_eq!(one["inputData"], json!({ "given": null, "fixed": null }));
    assert_eq!(check.task(key, "one")["outputData"], output);
    assert_eq!(check.do_task("two", &json!({}))["inputData"], json!({ "all": output }));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn an_error_for_good_is_not_tried_again_and_its_output_counts() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "one", "retryCount": 5, "retryDelaySeconds": 0 }));
    let mut told = definition("w", &two());
    told["outputParameters"] =
        json!({ "who": "${workflow.input.who}", "why": "${one.output.why}" });
    check.define(&told);
    let key = check.start_workflow("w", &json!({ "who": "me" }));
    let refused = check.control(key, WorkflowVerb::Restart { latest: false }).expect_err("it runs");
    assert_eq!(refused.kind(), RejectionKind::AlreadyExists);
    let one = check.poll_one("one");
    let output = json!({ "why": "the other side is gone" });
    check.update_task(&one, TaskStatus::FailedWithTerminalError, &output, "no use");
    check.assert_told(key, "FAILED: one FAILED_WITH_TERMINAL_ERROR");
    let workflow = check.workflow(key);
    let task = one["taskId"].as_str().expect("text");
    let reason = format!("Task {task} failed with status: FAILED and reason: 'no use'");
    assert_eq!(workflow["reasonForIncompletion"], reason.as_str());
    assert_eq!(workflow["output"], json!({ "who": "me", "why": "the other side is gone" }));
    assert_eq!(workflow["failedReferenceTaskNames"], json!(["one"]));
    assert_eq!(workflow["failedTaskNames"], json!(["one"]));
    check.compare_rebuilt();
}

#[test]
fn attempts_name_the_one_before_and_failures_are_remembered() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "two", "retryCount": 3, "retryDelaySeconds": 2 }));
    let key = check.start_tasks(
        &json!([simple("one"), simple_with("two", &json!({ "from": "${one.output.it}" }))]),
        &json!({}),
    );
    check.step(key, Gives("one", json!({ "it": 1 })));
    for attempt in 0..2 {
        let task = check.fail_task("two", "no");
        assert_eq!(
            (&task["retryCount"], &task["inputData"]),
            (&json!(attempt), &json!({ "from": 1 }))
        );
        assert!(check.poll_tasks("two", 1).is_empty(), "not yet");
        check.step(key, Waits(2));
    }
    check.step(key, Done("two"));
    check.assert_told(key, "COMPLETED: one COMPLETED, two FAILED, two FAILED #1, two COMPLETED #2");
    let workflow = check.workflow(key);
    let tasks = &workflow["tasks"];
    for (later, before) in [(2, 1), (3, 2)] {
        assert_eq!(tasks[later]["retriedTaskId"], tasks[before]["taskId"]);
        assert_eq!(tasks[before]["retried"], true);
    }
    // It is told even though all went well in the end, and once.
    assert_eq!(workflow["failedReferenceTaskNames"], json!(["two"]));
    assert_eq!(workflow["failedTaskNames"], json!(["two"]));
    check.compare_rebuilt();
}

#[test]
fn every_attempt_knows_its_own_id() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "one", "retryCount": 1, "retryDelaySeconds": 0 }));
    let own = json!({ "me": "${CPEWF_TASK_ID}" });
    let key = check.start_tasks(&json!([simple_with("one", &own), simple("two")]), &json!({}));
    let knows = |check: &Check| {
        let workflow = check.workflow(key);
        for task in workflow["tasks"].as_array().expect("a list") {
            if task["referenceTaskName"] == "one" {
                assert_eq!(task["inputData"]["me"], task["taskId"]);
            }
        }
    };
    for (step, told) in [
        (Fails("one"), "RUNNING: one FAILED, one SCHEDULED #1"),
        (Fails("one"), "FAILED: one FAILED, one FAILED #1"),
        (RETRIED, "RUNNING: one FAILED, one FAILED #1, one SCHEDULED #2"),
        (Done("one"), "RUNNING: one FAILED, one FAILED #1, one COMPLETED #2, two SCHEDULED"),
        (Done("two"), "COMPLETED: one FAILED, one FAILED #1, one COMPLETED #2, two COMPLETED"),
    ] {
        knows(&check);
        check.play(key, [(step, told)]);
    }
    knows(&check);
    assert_eq!(check.workflow(key)["failedReferenceTaskNames"], json!(["one"]));
    check.compare_rebuilt();
}

#[test]
fn a_restart_begins_with_the_first_task_and_nothing_is_left() {
    let mut check = Check::new();
    let key = check.start_tasks(&json!([once("one"), simple("two")]), &json!({ "n": 1 }));
    check.step(key, Fails("one"));
    check.assert_told(key, "FAILED: one FAILED");
    // Another version does not matter to it, until it is asked for.
    let mut newer = definition("w", &json!([once("one"), simple("two"), simple("three")]));
    newer["version"] = json!(2);
    check.define(&newer);
    check.play(
        key,
        [
            (RESTARTED, "RUNNING: one SCHEDULED"),
            (Done("one"), "RUNNING: one COMPLETED, two SCHEDULED"),
            (Done("two"), "COMPLETED: one COMPLETED, two COMPLETED"),
            (Is(WorkflowVerb::Restart { latest: true }), "RUNNING: one SCHEDULED"),
            (Done("one"), "RUNNING: one COMPLETED, two SCHEDULED"),
            (Done("two"), "RUNNING: one COMPLETED, two COMPLETED, three SCHEDULED"),
            (Done("three"), "COMPLETED: one COMPLETED, two COMPLETED, three COMPLETED"),
        ],
    );
    assert_eq!(check.workflow(key)["workflowVersion"], 2);
    assert_eq!(check.workflow(key)["failedReferenceTaskNames"], json!([]));
    check.compare_rebuilt();
}

#[test]
fn what_may_not_be_restarted_may_be_while_it_failed() {
    let mut check = Check::new();
    let mut stubborn = definition("w", &json!([once("one"), simple("two")]));
    stubborn["restartable"] = json!(false);
    check.define(&stubborn);
    let key = check.start_workflow("w", &json!({}));
    check.play(
        key,
        [
            (Fails("one"), "FAILED: one FAILED"),
            (RESTARTED, "RUNNING: one SCHEDULED"),
            (Done("one"), "RUNNING: one COMPLETED, two SCHEDULED"),
            (Done("two"), "COMPLETED: one COMPLETED, two COMPLETED"),
        ],
    );
    let refused = check.control(key, WorkflowVerb::Restart { latest: false }).expect_err("it is");
    assert_eq!(refused.kind(), RejectionKind::NotFound);
    check.assert_told(key, "COMPLETED: one COMPLETED, two COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_workflow_is_rerun_as_often_as_one_likes() {
    let mut check = Check::new();
    let key = check.start_tasks(
        &json!([simple("one"), simple_with("two", &json!({ "from": "${one.output.it}" }))]),
        &json!({}),
    );
    check.step(key, Gives("one", json!({ "it": 1 })));
    check.step(key, Done("two"));
    for _ in 0..2 {
        let two = check.task(key, "two");
        check.play(key, [(rerun(&two), "RUNNING: one COMPLETED, two SCHEDULED")]);
        let again = check.do_task("two", &json!({}));
        assert_eq!(again["inputData"], json!({ "from": 1 }));
        check.assert_told(key, "COMPLETED: one COMPLETED, two COMPLETED");
    }
    let all = Is(WorkflowVerb::Rerun(RerunWorkflow::default()));
    check.play(
        key,
        [
            (all, "RUNNING: one SCHEDULED"),
            (Gives("one", json!({ "it": 2 })), "RUNNING: one COMPLETED, two SCHEDULED"),
        ],
    );
    assert_eq!(check.do_task("two", &json!({}))["inputData"], json!({ "from": 2 }));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_rerun_from_a_failed_task_takes_its_record() {
    let mut check = Check::new();
    let tasks = json!([simple("one"), once("two"), simple("three")]);
    let key = check.start_tasks(&tasks, &json!({}));
    check.step(key, Done("one"));
    check.step(key, Dies("two"));
    check.assert_told(key, "FAILED: one COMPLETED, two FAILED_WITH_TERMINAL_ERROR");
    let two = check.task(key, "two");
    check.play(
        key,
        [
            (rerun(&two), "RUNNING: one COMPLETED, two SCHEDULED"),
            (Done("two"), "RUNNING: one COMPLETED, two COMPLETED, three SCHEDULED"),
            (Done("three"), "COMPLETED: one COMPLETED, two COMPLETED, three COMPLETED"),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn a_skipped_task_stands_in_the_list_from_the_moment_it_is_skipped() {
    let mut check = Check::new();
    let tasks = json!([simple("one"), simple("two"), simple("three")]);
    let key = check.start_tasks(&tasks, &json!({}));
    let skip = Is(WorkflowVerb::Skip {
        reference: "two".into(),
        input: Bytes::default(),
        output: Bytes::default(),
    });
    check.play(
        key,
        [
            (skip, "RUNNING: one SCHEDULED, two SKIPPED"),
            (Done("one"), "RUNNING: one COMPLETED, two SKIPPED, three SCHEDULED"),
            (Done("three"), "COMPLETED: one COMPLETED, two SKIPPED, three COMPLETED"),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn a_paused_workflow_schedules_nothing_until_it_goes_on() {
    let mut check = Check::new();
    let key = check.start_tasks(&two(), &json!({}));
    check.play(
        key,
        [
            (Is(WorkflowVerb::Pause), "PAUSED: one SCHEDULED"),
            (Done("one"), "PAUSED: one COMPLETED"),
            (Is(WorkflowVerb::Decide), "PAUSED: one COMPLETED"),
            (Is(WorkflowVerb::Resume), "RUNNING: one COMPLETED, two SCHEDULED"),
            (Done("two"), "COMPLETED: one COMPLETED, two COMPLETED"),
        ],
    );
    check.compare_rebuilt();
}
