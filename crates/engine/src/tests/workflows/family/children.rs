//! Workflows that run for tasks of others: what each end means for the other, and what retries do.

use windlass_record::workflow::{TaskStatus, WorkflowVerb};

use super::*;

const RETRY: WorkflowVerb = WorkflowVerb::Retry { subworkflows: false };

fn fork(branches: &Value, on: &[&str]) -> [Value; 2] {
    [
        json!({ "name": "fan", "taskReferenceName": "fan", "type": "FORK_JOIN",
                "forkTasks": branches }),
        json!({ "name": "gather", "taskReferenceName": "gather", "type": "JOIN", "joinOn": on }),
    ]
}

#[test]
fn a_child_of_a_parent_that_timed_out_is_retried_and_its_parent_goes_on() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([simple("t")])));
    let below = sub("below", &json!({ "name": "child", "version": 1 }));
    let mut timed = definition("parent", &json!([simple("enter"), below]));
    timed["timeoutSeconds"] = json!(10);
    timed["timeoutPolicy"] = json!("TIME_OUT_WF");
    check.define(&timed);
    let parent = check.start_workflow("parent", &json!({}));
    check.do_task("enter", &json!({}));
    let child = check.child_of(parent, "below");
    check.assert_rows(child, "RUNNING", &["t t SCHEDULED"]);
    check.pass(10_000);
    check.settle();
    let rows = ["enter enter COMPLETED", "SUB_WORKFLOW below CANCELED"];
    check.assert_rows(parent, "TIMED_OUT", &rows);
    check.assert_rows(child, "TERMINATED", &["t t CANCELED"]);

    check.control(child, RETRY).expect("it has ended");
    check.assert_rows(child, "RUNNING", &["t t CANCELED again", "t t SCHEDULED #1 of 1"]);
    let rows = ["enter enter COMPLETED", "SUB_WORKFLOW below IN_PROGRESS"];
    check.assert_rows(parent, "RUNNING", &rows);
    // Its time begins again with the retry.
    check.pass(9_000);
    check.do_task("t", &json!({ "made": 1 }));
    check.assert_rows(child, "COMPLETED", &["t t CANCELED again", "t t COMPLETED #1 of 1"]);
    let rows = ["enter enter COMPLETED", "SUB_WORKFLOW below COMPLETED"];
    check.assert_rows(parent, "COMPLETED", &rows);
    assert_eq!(check.workflow(parent)["output"]["made"], 1);
    check.compare_rebuilt();
}

#[test]
fn a_child_that_is_terminated_terminates_its_parents() {
    let mut check = Check::new();
    check.define(&definition("leaf", &json!([simple("t")])));
    let line = |name: &str| json!([simple("enter"), sub("below", &json!({ "name": name }))]);
    check.define(&definition("middle", &line("leaf")));
    check.define(&definition("top", &line("middle")));
    let top = check.start_workflow("top", &json!({}));
    check.do_task("enter", &json!({}));
    check.do_task("enter", &json!({}));
    let middle = check.child_of(top, "below");
    let leaf = check.child_of(middle, "below");
    let reason = "by hand";
    check.control(leaf, WorkflowVerb::Terminate { reason: reason.into() }).expect("it runs");
    check.assert_rows(leaf, "TERMINATED", &["t t CANCELED"]);
    assert_eq!(check.workflow(leaf)["reasonForIncompletion"], reason);
    for parent in [middle, top] {
        let rows = ["enter enter COMPLETED", "SUB_WORKFLOW below CANCELED"];
        check.assert_rows(parent, "TERMINATED", &rows);
        let why = check.workflow(parent)["reasonForIncompletion"].to_string();
        assert!(why.contains(reason), "{why}");
    }
    assert!(check.poll_tasks("t", 1).is_empty());
    check.compare_rebuilt();
}

#[test]
fn a_parent_that_went_on_without_an_optional_child_is_left_alone() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([once("t")])));
    let mut below = sub("below", &json!({ "name": "child" }));
    below["optional"] = json!(true);
    check.define(&definition("parent", &json!([below, simple("next")])));
    for running in [true, false] {
        let parent = check.start_workflow("parent", &json!({}));
        let child = check.child_of(parent, "below");
        check.fail_task("t", "no");
        let mut rows = vec!["SUB_WORKFLOW below COMPLETED_WITH_ERRORS", "next next SCHEDULED"];
        check.assert_rows(parent, "RUNNING", &rows);
        if !running {
            check.do_task("next", &json!({}));
            rows[1] = "next next COMPLETED";
            check.assert_rows(parent, "COMPLETED", &rows);
        }
        for verb in [RETRY, WorkflowVerb::Restart { latest: false }] {
            check.control(child, verb).expect("it has ended");
            check.assert_status(child, "RUNNING");
            check.do_task("t", &json!({}));
            check.assert_status(child, "COMPLETED");
            assert_eq!(check.rows(parent), rows);
        }
        if running {
            check.do_task("next", &json!({}));
        }
        check.assert_status(parent, "COMPLETED");
        check.compare_rebuilt();
    }
}

#[test]
fn a_child_that_another_has_replaced_tells_its_parent_nothing() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([once("t")])));
    check.define(&definition("parent", &json!([sub("below", &json!({ "name": "child" }))])));
    let parent = check.start_workflow("parent", &json!({}));
    let old = check.child_of(parent, "below");
    check.fail_task("t", "no");
    check.control(parent, RETRY).expect("it failed");
    let new = check.child_of(parent, "below");
    assert_ne!(new, old);
    let rows = ["SUB_WORKFLOW below FAILED again", "SUB_WORKFLOW below IN_PROGRESS #1 of 1"];
    check.assert_rows(parent, "RUNNING", &rows);
    // The old one is retried all the same; nobody waits for it.
    check.control(old, RETRY).expect("it failed");
    check.assert_rows(parent, "RUNNING", &rows);
    let mut tasks = check.poll_tasks("t", 2);
    tasks.sort_by_key(|task| id(task, "workflowInstanceId"));
    for (task, (ended, above)) in tasks.iter().zip([(old, "RUNNING"), (new, "COMPLETED")]) {
        check.update_task(task, TaskStatus::Completed, &json!({}), "");
        check.assert_status(ended, "COMPLETED");
        check.assert_status(parent, above);
    }
    let rows = ["SUB_WORKFLOW below FAILED again", "SUB_WORKFLOW below COMPLETED #1 of 1"];
    check.assert_rows(parent, "COMPLETED", &rows);
    check.compare_rebuilt();

    // Nor one whose task is forgotten.
    check.control(parent, WorkflowVerb::Restart { latest: false }).expect("it has ended");
    check.control(new, WorkflowVerb::Restart { latest: false }).expect("it has ended");
    check.assert_rows(parent, "RUNNING", &["SUB_WORKFLOW below IN_PROGRESS"]);
    check.assert_status(new, "RUNNING");
    check.compare_rebuilt();
}

#[test]
fn what_a_child_beside_had_done_is_not_done_again() {
    for resume in [true, false] {
        let mut check = Check::new();
        check.define(&definition("left", &json!([once("l")])));
        check.define(&definition("right", &json!([simple("r1"), simple("r2")])));
        let branches = ["left", "right"].map(|name| json!([sub(name, &json!({ "name": name }))]));
        check.define(&definition("parent", &json!(fork(&json!(branches), &["left", "right"]))));
        let parent = check.start_workflow("parent", &json!({}));
        let children = ["left", "right"].map(|name| check.child_of(parent, name));
        check.do_task("r1", &json!({}));
        check.fail_task("l", "no");
        let rows = [
            "FORK fan COMPLETED",
            "SUB_WORKFLOW left FAILED",
            "SUB_WORKFLOW right CANCELED",
            "JOIN gather CANCELED",
        ];
        check.assert_rows(parent, "FAILED", &rows);
        check.assert_rows(children[1], "TERMINATED", &["r1 r1 COMPLETED", "r2 r2 CANCELED"]);
        let verb = WorkflowVerb::Retry { subworkflows: resume };
        check.control(if resume { parent } else { children[0] }, verb).expect("it failed");
        let rows = [
            "FORK fan COMPLETED",
            "SUB_WORKFLOW left IN_PROGRESS",
            "SUB_WORKFLOW right IN_PROGRESS",
            "JOIN gather IN_PROGRESS",
        ];
        check.assert_rows(parent, "RUNNING", &rows);
        assert_eq!(["left", "right"].map(|name| check.child_of(parent, name)), children);
        let rows = ["r1 r1 COMPLETED", "r2 r2 CANCELED again", "r2 r2 SCHEDULED #1 of 2"];
        check.assert_rows(children[1], "RUNNING", &rows);
        check.compare_rebuilt();
        check.do_task("r2", &json!({}));
        check.do_task("l", &json!({}));
        check.assert_status(parent, "COMPLETED");
        check.compare_rebuilt();
    }
}

#[test]
fn what_follows_a_task_that_ended_while_its_workflow_stood_still_is_not_lost() {
    let mut check = Check::new();
    let [fan, gather] = fork(&json!([[simple("a"), simple("a2")], [simple("b")]]), &["a2", "b"]);
    check.define(&definition("w", &json!([fan, gather])));
    let key = check.start_workflow("w", &json!({}));
    check.control(key, WorkflowVerb::Pause).expect("it runs");
    check.do_task("a", &json!({}));
    check.control(key, WorkflowVerb::Terminate { reason: "".into() }).expect("it is paused");
    let rows = ["FORK fan COMPLETED", "a a COMPLETED", "b b CANCELED", "JOIN gather CANCELED"];
    check.assert_rows(key, "TERMINATED", &rows);
    check.compare_rebuilt();
    check.control(key, RETRY).expect("it has ended");
    check.do_task("b", &json!({}));
    check.do_task("a2", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn what_followed_a_child_is_not_done_again_when_that_goes_on() {
    for ended in ["COMPLETED", "FAILED"] {
        let mut check = Check::new();
        check.define(&definition("child", &json!([once("t")])));
        let below = sub("below", &json!({ "name": "child" }));
        check.define(&definition("parent", &json!([below, once("next")])));
        let parent = check.start_workflow("parent", &json!({}));
        let child = check.child_of(parent, "below");
        check.do_task("t", &json!({ "n": 1 }));
        match ended {
            "COMPLETED" => check.do_task("next", &json!({})),
            _ => check.fail_task("next", "no"),
        };
        let next = format!("next next {ended}");
        check.assert_rows(parent, ended, &["SUB_WORKFLOW below COMPLETED", &next]);
        check.control(child, WorkflowVerb::Restart { latest: false }).expect("it has ended");
        check.assert_rows(parent, "RUNNING", &["SUB_WORKFLOW below IN_PROGRESS", &next]);
        check.do_task("t", &json!({ "n": 2 }));
        check.assert_status(child, "COMPLETED");
        assert!(check.poll_tasks("next", 1).is_empty(), "it was done");
        check.assert_rows(parent, ended, &["SUB_WORKFLOW below COMPLETED", &next]);
        assert_eq!(check.task_named(parent, "below")["outputData"]["n"], 2);
        check.compare_rebuilt();
    }
}

#[test]
fn a_retry_of_two_tasks_in_a_row_does_each_once() {
    let mut check = Check::new();
    let mut permissive = once("a");
    permissive["permissive"] = json!(true);
    check.define(&definition("w", &json!([permissive, once("b"), simple("c")])));
    let key = check.start_workflow("w", &json!({}));
    check.fail_task("a", "no");
    check.fail_task("b", "no");
    check.assert_rows(key, "FAILED", &["a a FAILED", "b b FAILED"]);
    check.control(key, RETRY).expect("it failed");
    let rows =
        ["a a FAILED again", "b b FAILED again", "a a SCHEDULED #1 of 1", "b b SCHEDULED #1 of 2"];
    check.assert_rows(key, "RUNNING", &rows);
    check.do_task("a", &json!({}));
    check.do_task("b", &json!({}));
    check.do_task("c", &json!({}));
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.rows(key).len(), 5);
    check.compare_rebuilt();
}

#[test]
fn a_workflow_that_took_too_long_between_two_tasks_goes_on_with_the_second() {
    let mut check = Check::new();
    let mut timed = definition("w", &json!([simple("a"), simple("b")]));
    timed["timeoutSeconds"] = json!(10);
    timed["timeoutPolicy"] = json!("TIME_OUT_WF");
    check.define(&timed);
    let key = check.start_workflow("w", &json!({}));
    check.control(key, WorkflowVerb::Pause).expect("it runs");
    check.do_task("a", &json!({}));
    check.pass(10_000);
    check.settle();
    check.assert_rows(key, "TIMED_OUT", &["a a COMPLETED"]);
    check.control(key, RETRY).expect("it took too long");
    check.assert_rows(key, "RUNNING", &["a a COMPLETED", "b b SCHEDULED"]);
    check.do_task("b", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}
