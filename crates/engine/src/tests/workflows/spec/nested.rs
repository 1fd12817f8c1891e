//! Forks in branches of forks, and workflows in branches.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, WorkflowVerb};

use super::Step::{Done, Fails, Is};
use super::{RETRIED, definition, fork, id, join, once, rerun, runs, simple, task, with};
use crate::verb::check::Check;

/// A fork in a branch of a fork, with a choice in one of its branches.
fn nested(more: &[Value]) -> Value {
    let sort = task(
        "SWITCH",
        "sort",
        json!({ "inputParameters": { "size": "${workflow.input.size}" },
                "evaluatorType": "value-param", "expression": "size",
                "decisionCases": { "small": [simple("bag"), simple("weigh")],
                                   "large": [simple("crate")] },
                "defaultCase": [simple("measure")] }),
    );
    let inner = json!([
        fork("inner", &json!([[simple("pick"), simple("wrap")], [simple("look"), sort]])),
        join("inner_join", &json!(["wrap", "weigh"])),
    ]);
    let mut branches = vec![json!([simple("bill")]), inner];
    let mut on = vec![json!("bill"), json!("inner_join")];
    for task in more {
        branches.push(json!([task]));
        on.push(task["taskReferenceName"].clone());
    }
    json!([fork("outer", &json!(branches)), join("outer_join", &json!(on)), simple("send")])
}

#[test]
fn forks_nest() {
    let mut check = Check::new();
    let key = check.start_tasks(&nested(&[]), &json!({ "size": "small" }));
    check.assert_told(
        key,
        "RUNNING: outer FORK COMPLETED, bill SCHEDULED, inner FORK COMPLETED, pick SCHEDULED, \
         look SCHEDULED, outer_join JOIN IN_PROGRESS, inner_join JOIN IN_PROGRESS",
    );
    for done in ["bill", "pick", "look"] {
        check.step(key, Done(done));
    }
    check.assert_told(
        key,
        "RUNNING: outer FORK COMPLETED, bill COMPLETED, inner FORK COMPLETED, pick COMPLETED, \
         look COMPLETED, outer_join JOIN IN_PROGRESS, inner_join JOIN IN_PROGRESS, wrap \
         SCHEDULED, sort SWITCH COMPLETED, bag SCHEDULED",
    );
    for done in ["bag", "wrap"] {
        check.step(key, Done(done));
    }
    check.assert_told(
        key,
        "RUNNING: outer FORK COMPLETED, bill COMPLETED, inner FORK COMPLETED, pick COMPLETED, \
         look COMPLETED, outer_join JOIN IN_PROGRESS, inner_join JOIN IN_PROGRESS, wrap \
         COMPLETED, sort SWITCH COMPLETED, bag COMPLETED, weigh SCHEDULED",
    );
    check.step(key, Done("weigh"));
    check.assert_told(
        key,
        "RUNNING: outer FORK COMPLETED, bill COMPLETED, inner FORK COMPLETED, pick COMPLETED, \
         look COMPLETED, outer_join JOIN COMPLETED, inner_join JOIN COMPLETED, wrap COMPLETED, \
         sort SWITCH COMPLETED, bag COMPLETED, weigh COMPLETED, send SCHEDULED",
    );
    check.step(key, Done("send"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_workflow_beside_nested_forks_is_waited_for() {
    let mut check = Check::new();
    check.define(&definition("advice", &json!([simple("write"), simple("post")])));
    let tasks = nested(&[runs("advise", "advice")]);
    let key = check.start_tasks(&tasks, &json!({ "size": "small" }));
    let child = check.child(key, "advise");
    check.assert_told(child, "RUNNING: write SCHEDULED");
    for done in ["bill", "pick", "look", "wrap", "bag", "write", "post"] {
        check.step(key, Done(done));
    }
    check.assert_told(child, "COMPLETED: write COMPLETED, post COMPLETED");
    let on = &check.task(key, "outer_join")["inputData"]["joinOn"];
    assert_eq!(*on, json!(["bill", "inner_join", "advise"]));
    for (reference, status) in
        [("advise", "COMPLETED"), ("outer_join", "IN_PROGRESS"), ("weigh", "SCHEDULED")]
    {
        assert_eq!(check.task(key, reference)["status"], status, "{reference}");
    }
    check.step(key, Done("weigh"));
    assert_eq!(check.task(key, "outer_join")["status"], "COMPLETED");
    check.step(key, Done("send"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

/// Two workflows of one task beside each other, their tasks with one more field.
fn two_children(check: &mut Check, field: &str) -> Key {
    check.define(&definition("child", &json!([once("inner")])));
    let child = |name: &str| with(runs(name, "child"), field, json!(true));
    check.start_tasks(
        &json!([
            fork("split", &json!([[child("left")], [child("right")]])),
            join("merge", &json!(["left", "right"])),
        ]),
        &json!({}),
    )
}

#[test]
fn optional_workflows_that_fail_are_no_obstacle_and_revive_nobody() {
    let mut check = Check::new();
    let key = two_children(&mut check, "optional");
    check.assert_told(
        key,
        "RUNNING: split FORK COMPLETED, left SUB_WORKFLOW IN_PROGRESS, right SUB_WORKFLOW \
         IN_PROGRESS, merge JOIN IN_PROGRESS",
    );
    let children = [check.child(key, "left"), check.child(key, "right")];
    for inner in check.poll_tasks("inner", 2) {
        check.update_task(&inner, TaskStatus::Failed, &json!({}), "no");
    }
    for child in children {
        check.assert_told(child, "FAILED: inner FAILED");
    }
    let ended = "COMPLETED: split FORK COMPLETED, left SUB_WORKFLOW COMPLETED_WITH_ERRORS, right \
                 SUB_WORKFLOW COMPLETED_WITH_ERRORS, merge JOIN COMPLETED_WITH_ERRORS";
    check.assert_told(key, ended);
    // Whatever is done with a child now is its own affair.
    let inner = check.task(children[0], "inner");
    check.play(children[0], [(rerun(&inner), "RUNNING: inner SCHEDULED")]);
    check.assert_told(key, ended);
    check.play(children[0], [(Fails("inner"), "FAILED: inner FAILED")]);
    check.play(children[0], [(RETRIED, "RUNNING: inner FAILED, inner SCHEDULED #1")]);
    check.assert_told(key, ended);
    check.step(children[0], Done("inner"));
    check.assert_status(children[0], "COMPLETED");
    check.assert_told(key, ended);
    check.compare_rebuilt();
}

#[test]
fn workflows_that_were_ended_by_hand_end_their_parent_and_do_not_fail_it() {
    let mut check = Check::new();
    let key = two_children(&mut check, "permissive");
    for child in ["left", "right"] {
        let child = check.child(key, child);
        let reason = "by hand".into();
        check.step(child, Is(WorkflowVerb::Terminate { reason }));
        check.assert_told(child, "TERMINATED: inner CANCELED");
    }
    check.assert_told(
        key,
        "TERMINATED: split FORK COMPLETED, left SUB_WORKFLOW CANCELED, right SUB_WORKFLOW \
         CANCELED, merge JOIN CANCELED",
    );
    check.compare_rebuilt();
}

#[test]
fn a_workflow_in_a_branch_is_tried_again_as_its_task_definition_says() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "left", "retryCount": 1, "retryDelaySeconds": 0 }));
    check.define(&definition("child", &json!([once("inner")])));
    let key = check.start_tasks(
        &json!([
            fork("split", &json!([[runs("left", "child")], [simple("right")]])),
            join("merge", &json!(["left", "right"])),
        ]),
        &json!({}),
    );
    let first = check.child(key, "left");
    check.play(
        key,
        [(
            Fails("inner"),
            "RUNNING: split FORK COMPLETED, left SUB_WORKFLOW FAILED, right SCHEDULED, merge JOIN \
             IN_PROGRESS, left SUB_WORKFLOW IN_PROGRESS #1",
        )],
    );
    check.assert_told(first, "FAILED: inner FAILED");
    let second = check.child(key, "left");
    assert_ne!(first, second);
    // Another one has taken the place of the first: whoever revives that does it for itself.
    check.step(first, RETRIED);
    check.assert_told(
        key,
        "RUNNING: split FORK COMPLETED, left SUB_WORKFLOW FAILED, right SCHEDULED, merge JOIN \
         IN_PROGRESS, left SUB_WORKFLOW IN_PROGRESS #1",
    );
    check.assert_told(second, "RUNNING: inner SCHEDULED");
    let inner = check.poll_tasks("inner", 2);
    for task in &inner {
        check.update_task(task, TaskStatus::Completed, &json!({}), "");
    }
    assert!(inner.iter().any(|task| id(task, "workflowInstanceId") == first));
    check.play(
        key,
        [(
            Done("right"),
            "COMPLETED: split FORK COMPLETED, left SUB_WORKFLOW FAILED, right COMPLETED, merge \
             JOIN COMPLETED, left SUB_WORKFLOW COMPLETED #1",
        )],
    );
    check.compare_rebuilt();
}
