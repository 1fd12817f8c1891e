//! Forks whose branches are written down: what their JOIN makes of what becomes of the branches.

use serde_json::{Value, json};

use super::Step::{Done, Fails};
use super::{RETRIED, fork, join, once, simple, with};
use crate::verb::check::Check;

/// `pick`, `wrap` beside `print`; behind them `send`.
fn parcel(pick: Value, wrap: Value, print: Value) -> Value {
    json!([
        fork("split", &json!([[pick, wrap], [print]])),
        join("merge", &json!(["wrap", "print"])),
        simple("send"),
    ])
}

#[test]
fn the_join_ends_with_the_last_branch() {
    let mut check = Check::new();
    let tasks = parcel(simple("pick"), simple("wrap"), simple("print"));
    let key = check.start_tasks(&tasks, &json!({}));
    check.assert_told(
        key,
        "RUNNING: split FORK COMPLETED, pick SCHEDULED, print SCHEDULED, merge JOIN IN_PROGRESS",
    );
    check.play(
        key,
        [
            (
                Done("pick"),
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print SCHEDULED, merge JOIN \
                 IN_PROGRESS, wrap SCHEDULED",
            ),
            (
                Done("wrap"),
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print SCHEDULED, merge JOIN \
                 IN_PROGRESS, wrap COMPLETED",
            ),
            (
                Done("print"),
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print COMPLETED, merge JOIN \
                 COMPLETED, wrap COMPLETED, send SCHEDULED",
            ),
            (
                Done("send"),
                "COMPLETED: split FORK COMPLETED, pick COMPLETED, print COMPLETED, merge JOIN \
                 COMPLETED, wrap COMPLETED, send COMPLETED",
            ),
        ],
    );
    assert_eq!(check.task(key, "merge")["inputData"]["joinOn"], json!(["wrap", "print"]));
    check.compare_rebuilt();
}

#[test]
fn a_failure_cancels_the_other_branches_and_a_retry_tries_them_again() {
    let mut check = Check::new();
    let key = check.start_tasks(&parcel(simple("pick"), simple("wrap"), once("print")), &json!({}));
    check.step(key, Done("pick"));
    check.play(
        key,
        [
            (
                Fails("print"),
                "FAILED: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN CANCELED, \
                 wrap CANCELED",
            ),
            (
                RETRIED,
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN \
                 IN_PROGRESS, wrap CANCELED, print SCHEDULED #1, wrap SCHEDULED #1",
            ),
            (
                Done("wrap"),
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN \
                 IN_PROGRESS, wrap CANCELED, print SCHEDULED #1, wrap COMPLETED #1",
            ),
            (
                Done("print"),
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN \
                 COMPLETED, wrap CANCELED, print COMPLETED #1, wrap COMPLETED #1, send SCHEDULED",
            ),
            (
                Done("send"),
                "COMPLETED: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN \
                 COMPLETED, wrap CANCELED, print COMPLETED #1, wrap COMPLETED #1, send COMPLETED",
            ),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn a_retry_of_a_task_keeps_its_branch_and_leaves_the_others_alone() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "print", "retryCount": 2, "retryDelaySeconds": 0 }));
    let key =
        check.start_tasks(&parcel(simple("pick"), simple("wrap"), simple("print")), &json!({}));
    check.play(
        key,
        [
            (
                Fails("print"),
                "RUNNING: split FORK COMPLETED, pick SCHEDULED, print FAILED, merge JOIN \
                 IN_PROGRESS, print SCHEDULED #1",
            ),
            (
                Fails("print"),
                "RUNNING: split FORK COMPLETED, pick SCHEDULED, print FAILED, merge JOIN \
                 IN_PROGRESS, print FAILED #1, print SCHEDULED #2",
            ),
            (
                Done("print"),
                "RUNNING: split FORK COMPLETED, pick SCHEDULED, print FAILED, merge JOIN \
                 IN_PROGRESS, print FAILED #1, print COMPLETED #2",
            ),
        ],
    );
    check.step(key, Done("pick"));
    check.step(key, Done("wrap"));
    check.step(key, Done("send"));
    check.assert_status(key, "COMPLETED");
    let print = check.task(key, "print");
    assert_eq!(print["retriedTaskId"], check.workflow(key)["tasks"][4]["taskId"]);
    check.compare_rebuilt();
}

fn permissive(name: &str) -> Value {
    with(once(name), "permissive", json!(true))
}

#[test]
fn permissive_branches_fail_the_join_when_all_have_ended() {
    let mut check = Check::new();
    let tasks = parcel(permissive("pick"), permissive("wrap"), permissive("print"));
    let key = check.start_tasks(&tasks, &json!({}));
    check.step(key, Done("pick"));
    check.play(
        key,
        [
            (
                Fails("print"),
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN \
                 IN_PROGRESS, wrap SCHEDULED",
            ),
            (
                Fails("wrap"),
                "FAILED: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN FAILED, \
                 wrap FAILED",
            ),
            (
                RETRIED,
                "RUNNING: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN \
                 IN_PROGRESS, wrap FAILED, print SCHEDULED #1, wrap SCHEDULED #1",
            ),
        ],
    );
    check.step(key, Done("wrap"));
    check.step(key, Done("print"));
    check.step(key, Done("send"));
    check.assert_told(
        key,
        "COMPLETED: split FORK COMPLETED, pick COMPLETED, print FAILED, merge JOIN COMPLETED, \
         wrap FAILED, print COMPLETED #1, wrap COMPLETED #1, send COMPLETED",
    );
    check.compare_rebuilt();
}

#[test]
fn one_permissive_failure_is_enough_for_the_join_to_fail() {
    let mut check = Check::new();
    let tasks = json!([
        fork("split", &json!([[permissive("pick")], [permissive("print")]])),
        join("merge", &json!(["pick", "print"])),
        simple("send"),
    ]);
    let key = check.start_tasks(&tasks, &json!({}));
    check.play(
        key,
        [
            (
                Fails("pick"),
                "RUNNING: split FORK COMPLETED, pick FAILED, print SCHEDULED, merge JOIN \
                 IN_PROGRESS",
            ),
            (
                Done("print"),
                "FAILED: split FORK COMPLETED, pick FAILED, print COMPLETED, merge JOIN FAILED",
            ),
        ],
    );
    let join = check.task(key, "merge");
    assert_eq!(join["reasonForIncompletion"], "no");
    check.compare_rebuilt();
}

#[test]
fn an_optional_branch_that_fails_is_told_by_the_join() {
    let mut check = Check::new();
    let optional = with(once("print"), "optional", json!(true));
    let key = check.start_tasks(&parcel(simple("pick"), simple("wrap"), optional), &json!({}));
    check.step(key, Fails("print"));
    check.step(key, Done("pick"));
    check.step(key, Done("wrap"));
    check.assert_told(
        key,
        "RUNNING: split FORK COMPLETED, pick COMPLETED, print COMPLETED_WITH_ERRORS, merge JOIN \
         COMPLETED_WITH_ERRORS, wrap COMPLETED, send SCHEDULED",
    );
    let (print, merge) = (check.task(key, "print"), check.task(key, "merge"));
    let told = format!("print/{} completed with errors", print["taskId"].as_str().expect("text"));
    assert_eq!(merge["reasonForIncompletion"], told.as_str());
    check.step(key, Done("send"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}
