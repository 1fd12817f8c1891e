//! Rounds of a loop that fail, and what brings them on again.

use serde_json::{Value, json};
use windlass_record::flow::Key;

use super::Step::{Dies, Done, Fails, Waits};
use super::{RESTARTED, RETRIED, fork, join, once, rerun, rounds, simple, with};
use crate::verb::check::Check;

/// `first`, then `left` beside `right`, in as many rounds as asked.
fn looped(check: &mut Check, first: Value, left: Value, count: u32) -> Key {
    let body = json!([
        first,
        fork("split", &json!([[left], [simple("right")]])),
        join("merge", &json!(["left", "right"])),
    ]);
    check.start_tasks(&json!([rounds("loop", &body)]), &json!({ "rounds": count }))
}

#[test]
fn a_failed_round_cancels_its_loop_and_a_retry_goes_on_in_it() {
    let mut check = Check::new();
    let key = looped(&mut check, once("first"), simple("left"), 1);
    check.play(
        key,
        [
            (Fails("first"), "FAILED: loop DO_WHILE CANCELED, first__1 FAILED"),
            (RETRIED, "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 FAILED, first__1 SCHEDULED #1"),
            (
                Done("first"),
                "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 FAILED, first__1 COMPLETED #1, \
                 split__1 FORK COMPLETED, left__1 SCHEDULED, right__1 SCHEDULED, merge__1 JOIN \
                 IN_PROGRESS",
            ),
        ],
    );
    check.step(key, Done("left"));
    check.step(key, Done("right"));
    check.assert_told(
        key,
        "COMPLETED: loop DO_WHILE COMPLETED, first__1 FAILED, first__1 COMPLETED #1, split__1 FORK \
         COMPLETED, left__1 COMPLETED, right__1 COMPLETED, merge__1 JOIN COMPLETED",
    );
    check.compare_rebuilt();
}

#[test]
fn a_task_of_a_round_is_tried_again_by_itself() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "first", "retryCount": 1, "retryDelaySeconds": 0 }));
    let key = looped(&mut check, simple("first"), simple("left"), 1);
    check.play(
        key,
        [(
            Fails("first"),
            "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 FAILED, first__1 SCHEDULED #1",
        )],
    );
    let workflow = check.workflow(key);
    let tasks = &workflow["tasks"];
    assert_eq!(tasks[1]["retried"], true);
    assert_eq!(tasks[2]["retriedTaskId"], tasks[1]["taskId"]);
    assert_eq!(tasks[2]["iteration"], 1);
    for done in ["first", "left", "right"] {
        check.step(key, Done(done));
    }
    check.assert_told(
        key,
        "COMPLETED: loop DO_WHILE COMPLETED, first__1 FAILED, first__1 COMPLETED #1, split__1 FORK \
         COMPLETED, left__1 COMPLETED, right__1 COMPLETED, merge__1 JOIN COMPLETED",
    );
    check.compare_rebuilt();
}

#[test]
fn a_failed_branch_in_a_later_round_leaves_the_earlier_ones_alone() {
    let mut check = Check::new();
    let key = looped(&mut check, simple("first"), once("left"), 2);
    for done in ["first", "left", "right", "first"] {
        check.step(key, Done(done));
    }
    let before = "first__1 COMPLETED, split__1 FORK COMPLETED, left__1 COMPLETED, right__1 \
                  COMPLETED, merge__1 JOIN COMPLETED, first__2 COMPLETED, split__2 FORK COMPLETED";
    check.play(
        key,
        [
            (
                Dies("left"),
                &format!(
                    "FAILED: loop DO_WHILE CANCELED, {before}, left__2 FAILED_WITH_TERMINAL_ERROR, \
                     right__2 CANCELED, merge__2 JOIN CANCELED"
                ),
            ),
            (
                RETRIED,
                &format!(
                    "RUNNING: loop DO_WHILE IN_PROGRESS, {before}, left__2 \
                     FAILED_WITH_TERMINAL_ERROR, right__2 CANCELED, merge__2 JOIN IN_PROGRESS, \
                     left__2 SCHEDULED #1, right__2 SCHEDULED #1"
                ),
            ),
        ],
    );
    check.step(key, Done("right"));
    check.step(key, Done("left"));
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.task(key, "loop")["outputData"]["iteration"], 2);
    check.compare_rebuilt();
}

#[test]
fn an_optional_failure_is_no_obstacle_to_the_round() {
    let mut check = Check::new();
    let first = with(once("first"), "optional", json!(true));
    let key = looped(&mut check, first, simple("left"), 2);
    for round in 1..=2 {
        check.step(key, Fails("first"));
        let first = check.task(key, &format!("first__{round}"));
        assert_eq!(first["status"], "COMPLETED_WITH_ERRORS");
        check.step(key, Done("left"));
        check.step(key, Done("right"));
    }
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_round_that_takes_too_long_is_tried_again_then_ends_the_workflow() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "first", "retryCount": 1, "retryDelaySeconds": 0,
        "timeoutSeconds": 5, "responseTimeoutSeconds": 5, "timeoutPolicy": "RETRY" }));
    let key = looped(&mut check, simple("first"), simple("left"), 2);
    for _ in 0..2 {
        check.poll_one("first");
        check.step(key, Waits(5));
    }
    check.assert_told(
        key,
        "TIMED_OUT: loop DO_WHILE CANCELED, first__1 TIMED_OUT, first__1 TIMED_OUT #1",
    );
    check.step(key, RETRIED);
    check.assert_told(
        key,
        "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 TIMED_OUT, first__1 TIMED_OUT #1, first__1 \
         SCHEDULED #2",
    );
    check.compare_rebuilt();
}

#[test]
fn a_restart_begins_with_the_first_round() {
    let mut check = Check::new();
    let key = looped(&mut check, once("first"), simple("left"), 2);
    for done in ["first", "left", "right"] {
        check.step(key, Done(done));
    }
    check.step(key, Fails("first"));
    check.assert_status(key, "FAILED");
    check.play(key, [(RESTARTED, "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 SCHEDULED")]);
    for done in ["first", "left", "right", "first", "left", "right"] {
        check.step(key, Done(done));
    }
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_rerun_from_a_task_of_a_round_goes_on_in_that_round() {
    let mut check = Check::new();
    let key = looped(&mut check, simple("first"), simple("left"), 2);
    for done in ["first", "left", "right", "first", "left", "right"] {
        check.step(key, Done(done));
    }
    check.assert_status(key, "COMPLETED");
    let first = check.task(key, "first__2");
    check.play(
        key,
        [(
            rerun(&first),
            "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 COMPLETED, split__1 FORK COMPLETED, \
             left__1 COMPLETED, right__1 COMPLETED, merge__1 JOIN COMPLETED, first__2 SCHEDULED",
        )],
    );
    for done in ["first", "left", "right"] {
        check.step(key, Done(done));
    }
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.task(key, "loop")["outputData"]["iteration"], 2);
    check.compare_rebuilt();
}
