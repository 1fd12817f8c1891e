//! TERMINATE wherever it stands, failure workflows, and workflows that end halfway and go on again.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::WorkflowVerb;

use super::Step::{Completes, Done, Fails, Gives, Is};
use super::{RETRIED, definition, fork, join, once, rerun, rounds, runs, simple, task, wait};
use crate::tests::workflows::id;
use crate::verb::check::Check;

fn lambda(name: &str, script: &str) -> Value {
    let input = json!({ "all": "${workflow.input}", "scriptExpression": script });
    task("LAMBDA", name, json!({ "inputParameters": input }))
}

/// Whether the input `a` is 1.
const IS_ONE: &str = "if ($.all.a == 1) { return { one: true }; } else { return { one: false }; }";

fn terminate(name: &str, input: Value) -> Value {
    task("TERMINATE", name, json!({ "inputParameters": input }))
}

/// A workflow with a failure workflow, which is there.
fn guarded(check: &mut Check, tasks: &Value) -> Value {
    check.define(&definition("mourn", &json!([lambda("note", "return $.all.reason;")])));
    let mut guarded = definition("w", tasks);
    guarded["failureWorkflow"] = json!("mourn");
    guarded
}

#[test]
fn a_lambda_gives_what_its_body_returns() {
    let mut check = Check::new();
    let key = check.start_tasks(&json!([lambda("look", IS_ONE)]), &json!({ "a": 1 }));
    check.assert_told(key, "COMPLETED: look LAMBDA COMPLETED");
    assert_eq!(check.task(key, "look")["outputData"], json!({ "result": { "one": true } }));
    check.compare_rebuilt();
}

#[test]
fn a_terminate_completes_the_workflow_with_its_output() {
    let mut check = Check::new();
    let stop = json!({ "terminationStatus": "COMPLETED", "workflowOutput": "${look.output}" });
    let tasks = json!([lambda("look", IS_ONE), terminate("stop", stop), simple("never")]);
    let mut guarded = guarded(&mut check, &tasks);
    guarded["outputParameters"] = json!({ "look": "${look.output}", "never": "${never.output}" });
    check.define(&guarded);
    let key = check.start_workflow("w", &json!({ "a": 1 }));
    check.assert_told(key, "COMPLETED: look LAMBDA COMPLETED, stop TERMINATE COMPLETED");
    let workflow = check.workflow(key);
    assert_eq!(workflow["output"], json!({ "result": { "one": true } }));
    let reason = workflow["reasonForIncompletion"].as_str().expect("text");
    assert!(reason.starts_with("Workflow is COMPLETED by TERMINATE task"), "{reason}");
    check.compare_rebuilt();
}

#[test]
fn a_terminate_that_fails_the_workflow_runs_its_failure_workflow() {
    for status in ["FAILED", "TERMINATED"] {
        let mut check = Check::new();
        let stop = json!({ "terminationStatus": status, "terminationReason": "enough",
            "workflowOutput": "${look.output}" });
        let tasks = json!([lambda("look", IS_ONE), terminate("stop", stop), simple("never")]);
        let guarded = guarded(&mut check, &tasks);
        check.define(&guarded);
        let key = check.start_workflow("w", &json!({ "a": 1 }));
        check.assert_told(
            key,
            &format!("{status}: look LAMBDA COMPLETED, stop TERMINATE COMPLETED"),
        );
        let workflow = check.workflow(key);
        assert_eq!(workflow["reasonForIncompletion"], "enough");
        assert_eq!(workflow["output"]["result"], json!({ "one": true }));
        let mourning = id(&workflow["output"], "conductor.failure_workflow");
        check.assert_told(mourning, "COMPLETED: note LAMBDA COMPLETED");
        let input = &check.workflow(mourning)["input"];
        assert_eq!(input["workflowId"], workflow["workflowId"]);
        assert_eq!((&input["reason"], &input["failureStatus"]), (&json!("enough"), &json!(status)));
        check.compare_rebuilt();
    }
}

#[test]
fn a_terminate_in_a_case_wraps_output_that_is_no_object() {
    let mut check = Check::new();
    let stop = json!({ "terminationStatus": "FAILED", "workflowOutput": "${one.output.it}" });
    let choose = task(
        "DECISION",
        "choose",
        json!({ "inputParameters": { "way": "${workflow.input.way}" }, "caseValueParam": "way",
                "decisionCases": { "on": [simple("more")], "out": [terminate("stop", stop)] } }),
    );
    let tasks = json!([simple("one"), choose, simple("after")]);
    let key = check.start_tasks(&tasks, &json!({ "way": "out" }));
    check.play(
        key,
        [(
            Gives("one", json!({ "it": "text" })),
            "FAILED: one COMPLETED, choose DECISION COMPLETED, stop TERMINATE COMPLETED",
        )],
    );
    let workflow = check.workflow(key);
    assert_eq!(workflow["output"], json!({ "output": "text" }));
    let reason = workflow["reasonForIncompletion"].as_str().expect("text");
    assert!(reason.starts_with("Workflow is FAILED by TERMINATE task"), "{reason}");
    check.compare_rebuilt();
}

#[test]
fn a_terminate_in_a_branch_ends_the_others_and_what_runs_for_them() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([simple("inner")])));
    let stop = json!({ "terminationStatus": "COMPLETED", "workflowOutput": "some" });
    let left = json!([lambda("left", IS_ONE), runs("below", "child")]);
    let right =
        json!([lambda("right", IS_ONE), wait("hold"), terminate("stop", stop), wait("never")]);
    let key = check.start_tasks(
        &json!([fork("split", &json!([left, right])), join("merge", &json!(["below", "never"]))]),
        &json!({ "a": 2 }),
    );
    check.assert_told(
        key,
        "RUNNING: split FORK COMPLETED, left LAMBDA COMPLETED, right LAMBDA COMPLETED, below \
         SUB_WORKFLOW IN_PROGRESS, hold WAIT IN_PROGRESS, merge JOIN IN_PROGRESS",
    );
    let child = check.child(key, "below");
    check.play(
        key,
        [(
            Completes("hold"),
            "COMPLETED: split FORK COMPLETED, left LAMBDA COMPLETED, right LAMBDA COMPLETED, below \
             SUB_WORKFLOW CANCELED, hold WAIT COMPLETED, merge JOIN CANCELED, stop TERMINATE \
             COMPLETED",
        )],
    );
    check.assert_told(child, "TERMINATED: inner CANCELED");
    let reason = check.workflow(child)["reasonForIncompletion"].to_string();
    let expected =
        "Parent workflow has been terminated with reason: Workflow is COMPLETED by TERMINATE";
    assert!(reason.contains(expected), "{reason}");
    check.compare_rebuilt();
}

#[test]
fn a_terminate_in_a_round_ends_the_loop_with_the_workflow() {
    let mut check = Check::new();
    let stop = json!({ "terminationStatus": "TERMINATED", "terminationReason": "enough",
        "workflowOutput": { "round": "${loop.iteration}" } });
    let choose = task(
        "SWITCH",
        "choose",
        json!({ "inputParameters": { "round": "${loop.iteration}" },
                "evaluatorType": "value-param", "expression": "round",
                "decisionCases": { "2": [terminate("stop", stop)] } }),
    );
    let tasks = json!([rounds("loop", &json!([simple("one"), choose])), simple("never")]);
    let key = check.start_tasks(&tasks, &json!({ "rounds": 9 }));
    check.step(key, Done("one"));
    check.play(
        key,
        [(
            Done("one"),
            "TERMINATED: loop DO_WHILE CANCELED, one__1 COMPLETED, choose__1 SWITCH COMPLETED, \
             one__2 COMPLETED, choose__2 SWITCH COMPLETED, stop__2 TERMINATE COMPLETED",
        )],
    );
    let workflow = check.workflow(key);
    assert_eq!(workflow["reasonForIncompletion"], "enough");
    assert_eq!(workflow["output"], json!({ "round": 2 }));
    check.compare_rebuilt();
}

#[test]
fn the_input_may_name_the_failure_workflow() {
    for (written, input) in [
        ("$workflow.input.mourner", json!({ "mourner": "mourn" })),
        ("${workflow.input.mourner}", json!({ "mourner": "mourn" })),
        ("mourn", json!({})),
    ] {
        let mut check = Check::new();
        let mut guarded = guarded(&mut check, &json!([once("one")]));
        guarded["failureWorkflow"] = json!(written);
        check.define(&guarded);
        let key = check.start_workflow("w", &input);
        check.step(key, Fails("one"));
        let mourning = id(&check.workflow(key)["output"], "conductor.failure_workflow");
        check.assert_told(mourning, "COMPLETED: note LAMBDA COMPLETED");
        check.compare_rebuilt();
    }
    // Where it names nothing, none runs.
    let mut check = Check::new();
    let mut guarded = guarded(&mut check, &json!([once("one")]));
    guarded["failureWorkflow"] = json!("$workflow.input.mourner");
    check.define(&guarded);
    let key = check.start_workflow("w", &json!({}));
    check.step(key, Fails("one"));
    assert_eq!(check.workflow(key)["output"], json!({}));
    check.compare_rebuilt();
}

/// A branch that fails while the fork is not done with its own work yet.
fn hasty(check: &mut Check) -> Key {
    let key = check.start_tasks(
        &json!([
            fork("split", &json!([[runs("below", "child")], [simple("beside"), simple("more")]])),
            join("merge", &json!(["below", "more"])),
            simple("after"),
        ]),
        &json!({}),
    );
    // There is no such workflow.
    check.assert_status(key, "FAILED");
    check.define(&definition("child", &json!([simple("inner")])));
    key
}

/// All branches of that fork are done, then its join, then what is behind it.
#[track_caller]
fn assert_joined(check: &mut Check, key: Key) {
    for done in ["inner", "beside", "more"] {
        check.assert_status(key, "RUNNING");
        check.step(key, Done(done));
    }
    assert_eq!(check.task(key, "merge")["status"], "COMPLETED");
    check.step(key, Done("after"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_fork_that_was_cut_short_is_joined_after_a_retry() {
    let mut check = Check::new();
    let key = hasty(&mut check);
    check.step(key, RETRIED);
    assert_joined(&mut check, key);
}

#[test]
fn a_fork_that_was_cut_short_is_joined_after_a_rerun() {
    let mut check = Check::new();
    let key = hasty(&mut check);
    let below = check.task(key, "below");
    check.step(key, rerun(&below));
    assert_joined(&mut check, key);
}

#[test]
fn what_was_done_while_a_workflow_was_paused_is_followed_after_a_retry() {
    let mut check = Check::new();
    let key = check.start_tasks(
        &json!([
            fork("split", &json!([[simple("one"), simple("two")], [simple("beside")]])),
            join("merge", &json!(["two", "beside"])),
        ]),
        &json!({}),
    );
    check.step(key, Is(WorkflowVerb::Pause));
    check.step(key, Done("one"));
    check.step(key, Is(WorkflowVerb::Terminate { reason: "".into() }));
    check.play(
        key,
        [
            (
                RETRIED,
                "RUNNING: split FORK COMPLETED, one COMPLETED, beside CANCELED, merge JOIN \
                 IN_PROGRESS, beside SCHEDULED #1, two SCHEDULED",
            ),
            (
                Done("two"),
                "RUNNING: split FORK COMPLETED, one COMPLETED, beside CANCELED, merge JOIN \
                 IN_PROGRESS, beside SCHEDULED #1, two COMPLETED",
            ),
            (
                Done("beside"),
                "COMPLETED: split FORK COMPLETED, one COMPLETED, beside CANCELED, merge JOIN \
                 COMPLETED, beside COMPLETED #1, two COMPLETED",
            ),
        ],
    );
    check.compare_rebuilt();
}
