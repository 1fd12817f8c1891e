//! Forks whose branches are computed while the workflow runs.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::WorkflowVerb;

use super::Step::{Done, Fails, Gives, Is};
use super::{RETRIED, definition, join, once, runs, simple, task};
use crate::verb::check::Check;

/// `plan` says what the branches are; behind them `report`.
fn started(check: &mut Check) -> Key {
    let fork = task(
        "FORK_JOIN_DYNAMIC",
        "spread",
        json!({ "inputParameters": { "jobs": "${plan.output.jobs}", "with": "${plan.output.with}" },
                "dynamicForkTasksParam": "jobs", "dynamicForkTasksInputParamName": "with" }),
    );
    check.start_tasks(
        &json!([simple("plan"), fork, join("gather", &json!([])), simple("report")]),
        &json!({}),
    )
}

/// What `plan` gives for these branches; each is told its name.
fn plan(branches: &[Value]) -> Value {
    let name = |task: &Value| task["taskReferenceName"].as_str().expect("text").to_owned();
    let with: serde_json::Map<String, Value> =
        branches.iter().map(|task| (name(task), json!({ "you": name(task) }))).collect();
    json!({ "jobs": branches, "with": with })
}

#[test]
fn branches_come_from_the_output_of_a_task() {
    let mut check = Check::new();
    let key = started(&mut check);
    check.assert_told(key, "RUNNING: plan SCHEDULED");
    check.play(
        key,
        [
            (
                Gives("plan", plan(&[simple("dig"), simple("fill")])),
                "RUNNING: plan COMPLETED, spread FORK COMPLETED, dig SCHEDULED, fill SCHEDULED, \
                 gather JOIN IN_PROGRESS",
            ),
            (
                Gives("dig", json!({ "deep": 2 })),
                "RUNNING: plan COMPLETED, spread FORK COMPLETED, dig COMPLETED, fill SCHEDULED, \
                 gather JOIN IN_PROGRESS",
            ),
            (
                Gives("fill", json!({ "full": true })),
                "RUNNING: plan COMPLETED, spread FORK COMPLETED, dig COMPLETED, fill COMPLETED, \
                 gather JOIN COMPLETED, report SCHEDULED",
            ),
            (
                Done("report"),
                "COMPLETED: plan COMPLETED, spread FORK COMPLETED, dig COMPLETED, fill COMPLETED, \
                 gather JOIN COMPLETED, report COMPLETED",
            ),
        ],
    );
    assert_eq!(check.task(key, "dig")["inputData"], json!({ "you": "dig" }));
    let gather = check.task(key, "gather");
    assert_eq!(gather["inputData"]["joinOn"], json!(["dig", "fill"]));
    assert_eq!(gather["outputData"], json!({ "dig": { "deep": 2 }, "fill": { "full": true } }));
    assert_eq!(check.task(key, "spread")["inputData"]["forkedTasks"], json!(["dig", "fill"]));
    check.compare_rebuilt();
}

#[test]
fn branches_that_give_nothing_are_not_in_what_the_join_gives() {
    let mut check = Check::new();
    let key = started(&mut check);
    check.step(key, Gives("plan", plan(&[simple("dig"), simple("fill")])));
    check.step(key, Done("dig"));
    check.step(key, Done("fill"));
    let gather = check.task(key, "gather");
    assert_eq!((&gather["status"], &gather["outputData"]), (&json!("COMPLETED"), &json!({})));
    check.step(key, Done("report"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_failed_branch_fails_all_and_a_retry_tries_all_that_did_not_end_well() {
    let mut check = Check::new();
    let key = started(&mut check);
    check.step(key, Gives("plan", plan(&[once("dig"), simple("fill")])));
    check.play(
        key,
        [
            (
                Fails("dig"),
                "FAILED: plan COMPLETED, spread FORK COMPLETED, dig FAILED, fill CANCELED, gather \
                 JOIN CANCELED",
            ),
            (
                RETRIED,
                "RUNNING: plan COMPLETED, spread FORK COMPLETED, dig FAILED, fill CANCELED, \
                 gather JOIN IN_PROGRESS, dig SCHEDULED #1, fill SCHEDULED #1",
            ),
            (
                Gives("dig", json!({ "deep": 2 })),
                "RUNNING: plan COMPLETED, spread FORK COMPLETED, dig FAILED, fill CANCELED, \
                 gather JOIN IN_PROGRESS, dig COMPLETED #1, fill SCHEDULED #1",
            ),
            (
                Gives("fill", json!({ "full": true })),
                "RUNNING: plan COMPLETED, spread FORK COMPLETED, dig FAILED, fill CANCELED, \
                 gather JOIN COMPLETED, dig COMPLETED #1, fill COMPLETED #1, report SCHEDULED",
            ),
            (
                Done("report"),
                "COMPLETED: plan COMPLETED, spread FORK COMPLETED, dig FAILED, fill CANCELED, \
                 gather JOIN COMPLETED, dig COMPLETED #1, fill COMPLETED #1, report COMPLETED",
            ),
        ],
    );
    for (reference, retried) in [("dig", "dig"), ("fill", "fill")] {
        assert_eq!(check.task(key, reference)["inputData"], json!({ "you": retried }));
    }
    let output = &check.task(key, "gather")["outputData"];
    assert_eq!(*output, json!({ "dig": { "deep": 2 }, "fill": { "full": true } }));
    check.compare_rebuilt();
}

#[test]
fn a_retry_goes_down_into_a_workflow_in_a_branch() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([simple("one"), once("two"), simple("three")])));
    let key = started(&mut check);
    check.step(key, Gives("plan", plan(&[runs("below", "child"), simple("fill")])));
    let child = check.child(key, "below");
    assert_eq!(check.workflow(child)["input"], json!({ "you": "below" }));
    check.play(
        key,
        [(
            Done("fill"),
            "RUNNING: plan COMPLETED, spread FORK COMPLETED, below SUB_WORKFLOW IN_PROGRESS, fill \
             COMPLETED, gather JOIN IN_PROGRESS",
        )],
    );
    check.step(key, Done("one"));
    check.play(
        key,
        [
            (
                Fails("two"),
                "FAILED: plan COMPLETED, spread FORK COMPLETED, below SUB_WORKFLOW FAILED, fill \
                 COMPLETED, gather JOIN CANCELED",
            ),
            (
                Is(WorkflowVerb::Retry { subworkflows: true }),
                "RUNNING: plan COMPLETED, spread FORK COMPLETED, below SUB_WORKFLOW IN_PROGRESS, \
                 fill COMPLETED, gather JOIN IN_PROGRESS",
            ),
        ],
    );
    assert_eq!(check.child(key, "below"), child, "the same one");
    check.assert_told(child, "RUNNING: one COMPLETED, two FAILED, two SCHEDULED #1");
    check.step(key, Done("two"));
    check.step(key, Done("three"));
    check.assert_told(
        child,
        "COMPLETED: one COMPLETED, two FAILED, two COMPLETED #1, three COMPLETED",
    );
    check.assert_told(
        key,
        "RUNNING: plan COMPLETED, spread FORK COMPLETED, below SUB_WORKFLOW COMPLETED, fill \
         COMPLETED, gather JOIN COMPLETED, report SCHEDULED",
    );
    assert_eq!(check.task(key, "below")["subworkflowChanged"], false);
    check.step(key, Done("report"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn input_of_branches_that_is_none_fails_the_workflow() {
    let branches = json!([simple("dig"), simple("fill")]);
    for (with, problem) in [
        (json!({ "dig": "deep", "fill": {} }), "invalid input"),
        (json!("deep"), "not a map"),
        (json!(null), "not a map"),
    ] {
        let mut check = Check::new();
        let key = started(&mut check);
        check.step(key, Gives("plan", json!({ "jobs": branches, "with": with })));
        check.assert_told(key, "FAILED: plan COMPLETED, spread FORK FAILED_WITH_TERMINAL_ERROR");
        let reason = check.workflow(key)["reasonForIncompletion"].to_string();
        assert!(reason.contains(problem), "{reason} says {problem}");
        assert!(check.poll_tasks("dig", 1).is_empty());
        check.compare_rebuilt();
    }
    // Branches that are no tasks likewise; one that is not named in the input has none.
    let mut check = Check::new();
    let key = started(&mut check);
    check.step(key, Gives("plan", json!({ "jobs": [{ "name": "dig" }], "with": {} })));
    check.assert_status(key, "FAILED");
    let key = started(&mut check);
    check.step(key, Gives("plan", json!({ "jobs": branches, "with": { "dig": null } })));
    assert_eq!(check.task(key, "dig")["inputData"], json!({}));
    assert_eq!(check.task(key, "fill")["inputData"], json!({}));
    check.compare_rebuilt();
}

#[test]
fn a_workflow_whose_first_task_cannot_be_begun_is_started_and_fails() {
    let mut check = Check::new();
    let fork = task(
        "FORK_JOIN_DYNAMIC",
        "spread",
        json!({ "inputParameters": { "jobs": "${workflow.input.jobs}", "with": "${workflow.input.with}" },
                "dynamicForkTasksParam": "jobs", "dynamicForkTasksInputParamName": "with" }),
    );
    let key = check.start_tasks(
        &json!([fork, join("gather", &json!([]))]),
        &json!({ "jobs": [simple("dig")], "with": { "dig": "deep" } }),
    );
    check.assert_told(key, "FAILED: spread FORK FAILED_WITH_TERMINAL_ERROR");
    check.compare_rebuilt();
}
