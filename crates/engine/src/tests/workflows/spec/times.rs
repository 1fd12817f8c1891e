//! Times of tasks that no worker has, and workflows whose time was over.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{SignalWorkflow, TaskStatus, WorkflowCommand, WorkflowVerb};

use super::Step::{Completes, Done, Fails, Is, Waits};
use super::{RETRIED, definition, fork, join, once, runs, simple, task, wait};
use crate::verb::check::Check;

/// The definition of `slow`: five seconds, and then this.
fn slow(check: &mut Check, policy: &str, retries: u32) {
    check.define_task(&json!({ "name": "slow", "timeoutSeconds": 5, "responseTimeoutSeconds": 5,
        "retryCount": retries, "retryDelaySeconds": 10, "timeoutPolicy": policy }));
}

#[test]
fn a_wait_that_takes_too_long_is_tried_again() {
    let mut check = Check::new();
    slow(&mut check, "RETRY", 1);
    let key = check.start_tasks(&json!([wait("slow"), simple("after")]), &json!({}));
    check.play(
        key,
        [
            (Waits(4), "RUNNING: slow WAIT IN_PROGRESS"),
            (Waits(1), "RUNNING: slow WAIT TIMED_OUT, slow WAIT SCHEDULED #1"),
        ],
    );
    check.compare_rebuilt();
    let timed_out = &check.workflow(key)["tasks"][0];
    assert_eq!(
        timed_out["reasonForIncompletion"],
        "Task timed out after 5 seconds. Timeout configured as 5 seconds. Timeout policy \
         configured to RETRY"
    );
    check.play(
        key,
        [
            (
                Completes("slow"),
                "RUNNING: slow WAIT TIMED_OUT, slow WAIT COMPLETED #1, after SCHEDULED",
            ),
            (
                Done("after"),
                "COMPLETED: slow WAIT TIMED_OUT, slow WAIT COMPLETED #1, after COMPLETED",
            ),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn what_follows_when_a_task_without_a_worker_takes_too_long() {
    for kind in ["WAIT", "HUMAN"] {
        for (policy, retries, told) in [
            ("TIME_OUT_WF", 3, "TIMED_OUT: slow K TIMED_OUT"),
            ("ALERT_ONLY", 3, "RUNNING: slow K IN_PROGRESS"),
            ("RETRY", 0, "TIMED_OUT: slow K TIMED_OUT"),
            ("RETRY", 1, "RUNNING: slow K TIMED_OUT, slow K SCHEDULED #1"),
        ] {
            let mut check = Check::new();
            slow(&mut check, policy, retries);
            let key = check.start_tasks(&json!([task(kind, "slow", json!({}))]), &json!({}));
            check.play(key, [(Waits(5), &told.replace('K', kind))]);
            check.compare_rebuilt();
        }
    }
}

#[test]
fn an_attempt_that_began_late_has_its_time_too() {
    let mut check = Check::new();
    slow(&mut check, "RETRY", 1);
    let key = check.start_tasks(&json!([wait("slow")]), &json!({}));
    check.step(key, Waits(5));
    check.play(
        key,
        [
            (Waits(10), "RUNNING: slow WAIT TIMED_OUT, slow WAIT IN_PROGRESS #1"),
            (Waits(4), "RUNNING: slow WAIT TIMED_OUT, slow WAIT IN_PROGRESS #1"),
            (Waits(1), "TIMED_OUT: slow WAIT TIMED_OUT, slow WAIT TIMED_OUT #1"),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn a_wait_for_a_time_ends_by_whichever_is_first() {
    for (duration, told) in
        [("3 s", "COMPLETED: slow WAIT COMPLETED"), ("9 s", "TIMED_OUT: slow WAIT TIMED_OUT")]
    {
        let mut check = Check::new();
        slow(&mut check, "TIME_OUT_WF", 0);
        let waits = task("WAIT", "slow", json!({ "inputParameters": { "duration": duration } }));
        let key = check.start_tasks(&json!([waits]), &json!({}));
        check.step(key, Waits(60));
        check.assert_told(key, told);
        check.compare_rebuilt();
    }
}

#[test]
fn the_total_time_of_a_wait_runs_across_its_attempts() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "slow", "timeoutSeconds": 5, "responseTimeoutSeconds": 5,
        "totalTimeoutSeconds": 8, "retryCount": 9, "retryDelaySeconds": 0,
        "timeoutPolicy": "RETRY" }));
    let key = check.start_tasks(&json!([wait("slow")]), &json!({}));
    check.play(
        key,
        [
            (Waits(5), "RUNNING: slow WAIT TIMED_OUT, slow WAIT IN_PROGRESS #1"),
            (Waits(3), "TIMED_OUT: slow WAIT TIMED_OUT, slow WAIT TIMED_OUT #1"),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn a_workflow_that_takes_its_task_too_long_is_ended_with_it() {
    let mut check = Check::new();
    slow(&mut check, "RETRY", 1);
    check.define(&definition("child", &json!([simple("inner")])));
    let key = check.start_tasks(&json!([runs("slow", "child")]), &json!({}));
    let child = check.child(key, "slow");
    check.play(
        key,
        [(Waits(5), "RUNNING: slow SUB_WORKFLOW TIMED_OUT, slow SUB_WORKFLOW SCHEDULED #1")],
    );
    check.assert_told(child, "TERMINATED: inner CANCELED");
    check.step(key, Waits(10));
    let second = check.child(key, "slow");
    assert_ne!(second, child);
    check.step(key, Done("inner"));
    check
        .assert_told(key, "COMPLETED: slow SUB_WORKFLOW TIMED_OUT, slow SUB_WORKFLOW COMPLETED #1");
    check.compare_rebuilt();
}

#[test]
fn the_time_of_a_loop_ends_it_with_its_round() {
    let mut check = Check::new();
    slow(&mut check, "RETRY", 3);
    let loops = task(
        "DO_WHILE",
        "slow",
        json!({ "loopCondition": "$.slow['iteration'] < 9", "loopOver": [simple("work")] }),
    );
    let key = check.start_tasks(&json!([loops]), &json!({}));
    check.step(key, Done("work"));
    check.step(key, Waits(5));
    // A loop is not tried again by itself.
    check.assert_told(
        key,
        "TIMED_OUT: slow DO_WHILE TIMED_OUT, work__1 COMPLETED, work__2 CANCELED",
    );
    check.compare_rebuilt();
}

#[test]
fn what_goes_on_in_place_has_its_time_anew() {
    let mut check = Check::new();
    slow(&mut check, "TIME_OUT_WF", 0);
    check.define(&definition("child", &json!([once("inner")])));
    let key = check.start_tasks(&json!([runs("slow", "child")]), &json!({}));
    check.step(key, Waits(3));
    check.step(key, Fails("inner"));
    check.assert_told(key, "FAILED: slow SUB_WORKFLOW FAILED");
    check.step(key, Waits(60));
    let child = check.child(key, "slow");
    check.step(child, RETRIED);
    check.play(
        key,
        [
            (Waits(4), "RUNNING: slow SUB_WORKFLOW IN_PROGRESS"),
            (Waits(1), "TIMED_OUT: slow SUB_WORKFLOW TIMED_OUT"),
        ],
    );
    check.assert_told(child, "TERMINATED: inner FAILED, inner CANCELED #1");
    check.compare_rebuilt();

    // A loop likewise.
    let loops = task(
        "DO_WHILE",
        "slow",
        json!({ "loopCondition": "$.slow['iteration'] < 2", "loopOver": [simple("work")] }),
    );
    let key = check.start_tasks(&json!([loops]), &json!({}));
    check.play(
        key,
        [
            (Waits(5), "TIMED_OUT: slow DO_WHILE TIMED_OUT, work__1 CANCELED"),
            (RETRIED, "RUNNING: slow DO_WHILE IN_PROGRESS, work__1 CANCELED, work__1 SCHEDULED #1"),
            (
                Waits(4),
                "RUNNING: slow DO_WHILE IN_PROGRESS, work__1 CANCELED, work__1 SCHEDULED #1",
            ),
        ],
    );
    check.step(key, Done("work"));
    check.step(key, Done("work"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_signal_finds_a_wait_that_has_a_time_limit() {
    let mut check = Check::new();
    slow(&mut check, "TIME_OUT_WF", 0);
    let key = check.start_tasks(&json!([wait("slow")]), &json!({}));
    let signal = SignalWorkflow {
        workflow: key,
        status: TaskStatus::Completed,
        output: b"{\"by\":\"signal\"}".as_slice().into(),
    };
    check.workflow_command(WorkflowCommand::Signal(signal)).expect("it waits");
    check.assert_told(key, "COMPLETED: slow WAIT COMPLETED");
    check.step(key, Waits(60));
    check.compare_rebuilt();
}

#[test]
fn a_paused_workflow_defers_the_time_of_a_wait() {
    let mut check = Check::new();
    slow(&mut check, "TIME_OUT_WF", 0);
    let key = check.start_tasks(&json!([wait("slow")]), &json!({}));
    check.play(
        key,
        [
            (Is(WorkflowVerb::Pause), "PAUSED: slow WAIT IN_PROGRESS"),
            (Waits(60), "PAUSED: slow WAIT IN_PROGRESS"),
            (Is(WorkflowVerb::Resume), "TIMED_OUT: slow WAIT TIMED_OUT"),
        ],
    );
    check.compare_rebuilt();
}

/// A workflow that may take five seconds.
fn hurried(check: &mut Check, tasks: &Value) -> Key {
    let mut hurried = definition("w", tasks);
    hurried["timeoutSeconds"] = json!(5);
    hurried["timeoutPolicy"] = json!("TIME_OUT_WF");
    check.define(&hurried);
    check.start_workflow("w", &json!({}))
}

#[test]
fn a_workflow_whose_time_was_over_has_it_anew_after_a_retry() {
    let mut check = Check::new();
    let key = hurried(&mut check, &json!([simple("one"), simple("two")]));
    check.poll_one("one");
    check.play(key, [(Waits(5), "TIMED_OUT: one CANCELED")]);
    assert_eq!(check.workflow(key)["lastRetriedTime"], 0);
    check.play(key, [(RETRIED, "RUNNING: one CANCELED, one SCHEDULED #1")]);
    assert_eq!(check.workflow(key)["lastRetriedTime"], check.now_ms);
    check.play(
        key,
        [
            (Waits(4), "RUNNING: one CANCELED, one SCHEDULED #1"),
            (Waits(1), "TIMED_OUT: one CANCELED, one CANCELED #1"),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn a_workflow_whose_time_was_over_goes_on_with_what_was_not_scheduled() {
    let mut check = Check::new();
    let key = hurried(&mut check, &json!([simple("one"), simple("two")]));
    check.play(
        key,
        [
            (Is(WorkflowVerb::Pause), "PAUSED: one SCHEDULED"),
            (Done("one"), "PAUSED: one COMPLETED"),
            (Waits(5), "TIMED_OUT: one COMPLETED"),
            // Nothing failed; its time was over.
            (RETRIED, "RUNNING: one COMPLETED, two SCHEDULED"),
            (Done("two"), "COMPLETED: one COMPLETED, two COMPLETED"),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn all_branches_are_tried_again_when_the_time_of_the_workflow_was_over() {
    let mut check = Check::new();
    let tasks = json!([
        fork("split", &json!([[simple("left")], [simple("right")]])),
        join("merge", &json!(["left", "right"])),
    ]);
    let key = hurried(&mut check, &tasks);
    check.step(key, Done("left"));
    check.play(
        key,
        [
            (
                Waits(5),
                "TIMED_OUT: split FORK COMPLETED, left COMPLETED, right CANCELED, merge JOIN \
                 CANCELED",
            ),
            (
                RETRIED,
                "RUNNING: split FORK COMPLETED, left COMPLETED, right CANCELED, merge JOIN \
                 IN_PROGRESS, right SCHEDULED #1",
            ),
            (
                Done("right"),
                "COMPLETED: split FORK COMPLETED, left COMPLETED, right CANCELED, merge JOIN \
                 COMPLETED, right COMPLETED #1",
            ),
        ],
    );
    check.compare_rebuilt();
}
