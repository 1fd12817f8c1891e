//! What people do with workflows: pause, end, try again, begin again, skip.

use serde_json::{Value, json};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{RerunWorkflow, TaskStatus, WorkflowVerb};

use super::{definition, id, simple};
use crate::verb::check::Check;

fn fragile(name: &str) -> Value {
    let mut task = simple(name);
    task["retryCount"] = json!(0);
    task
}

#[test]
fn a_paused_workflow_hands_out_what_is_there_and_goes_on_later() {
    let mut check = Check::new();
    check.define(&definition("w", &json!([simple("a"), simple("b")])));
    let key = check.start_workflow("w", &json!({}));
    check.control(key, WorkflowVerb::Pause).expect("it runs");
    check.control(key, WorkflowVerb::Pause).expect("once more is nothing");
    check.do_task("a", &json!({}));
    assert!(check.poll_tasks("b", 1).is_empty());
    check.control(key, WorkflowVerb::Resume).expect("it is paused");
    let refused = check.control(key, WorkflowVerb::Resume).expect_err("it runs");
    assert_eq!(refused.kind(), RejectionKind::FailedPrecondition);
    check.do_task("b", &json!({}));
    check.assert_status(key, "COMPLETED");
    let refused = check.control(key, WorkflowVerb::Pause).expect_err("it has ended");
    assert_eq!(refused.kind(), RejectionKind::AlreadyExists);
    check.compare_rebuilt();
}

#[test]
fn retry_goes_on_with_what_failed() {
    let mut check = Check::new();
    check.define(&definition(
        "w",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
              "forkTasks": [[fragile("a")], [simple("b")]] },
            { "name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["a", "b"] },
            simple("end"),
        ]),
    ));
    let key = check.start_workflow("w", &json!({}));
    check.fail_task("a", "no");
    check.assert_status(key, "FAILED");
    check.control(key, WorkflowVerb::Retry { subworkflows: false }).expect("it failed");
    check.assert_status(key, "RUNNING");
    check.do_task("a", &json!({}));
    check.do_task("b", &json!({}));
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    let refused = check
        .control(key, WorkflowVerb::Retry { subworkflows: false })
        .expect_err("nothing failed");
    assert_eq!(refused.kind(), RejectionKind::AlreadyExists);
    check.compare_rebuilt();
}

#[test]
fn retry_of_a_child_revives_its_parents() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([fragile("inner")])));
    check.define(&definition(
        "parent",
        &json!([{ "name": "sub", "taskReferenceName": "sub", "type": "SUB_WORKFLOW",
                  "subWorkflowParam": { "name": "child" } }, simple("end")]),
    ));
    let key = check.start_workflow("parent", &json!({}));
    let inner = check.fail_task("inner", "no");
    check.assert_status(key, "FAILED");
    check
        .control(id(&inner, "workflowInstanceId"), WorkflowVerb::Retry { subworkflows: false })
        .expect("it failed");
    check.assert_status(key, "RUNNING");
    check.fail_task("inner", "again");
    check.assert_status(key, "FAILED");
    // From the top, into the deepest that failed.
    check.control(key, WorkflowVerb::Retry { subworkflows: true }).expect("it failed");
    check.do_task("inner", &json!({}));
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn restart_begins_again_with_the_same_id() {
    let mut check = Check::new();
    check.define(&definition("w", &json!([simple("a")])));
    let key = check.start_workflow("w", &json!({ "n": 1 }));
    let refused = check.control(key, WorkflowVerb::Restart { latest: false }).expect_err("it runs");
    assert_eq!(refused.kind(), RejectionKind::AlreadyExists);
    check.do_task("a", &json!({}));
    check.define(&definition("w", &json!([simple("other")])));
    check.control(key, WorkflowVerb::Restart { latest: false }).expect("it has ended");
    check.do_task("a", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.control(key, WorkflowVerb::Restart { latest: true }).expect("it has ended");
    check.do_task("other", &json!({}));
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.workflow(key)["input"], json!({ "n": 1 }));
    check.compare_rebuilt();
}

#[test]
fn rerun_goes_on_from_a_task_with_another_input() {
    let mut check = Check::new();
    check.define(&definition("w", &json!([simple("a"), simple("b"), fragile("c")])));
    let key = check.start_workflow("w", &json!({}));
    check.do_task("a", &json!({}));
    let b = check.do_task("b", &json!({}));
    check.fail_task("c", "no");
    let rerun = RerunWorkflow {
        from: Some(id(&b, "taskId")),
        task_input: b"{\"fresh\":1}".as_slice().into(),
        ..RerunWorkflow::default()
    };
    check.control(key, WorkflowVerb::Rerun(rerun)).expect("it failed");
    let again = check.do_task("b", &json!({}));
    assert_eq!(again["inputData"], json!({ "fresh": 1 }));
    assert_eq!(again["taskId"], b["taskId"]);
    check.do_task("c", &json!({}));
    check.assert_status(key, "COMPLETED");
    let rerun = RerunWorkflow {
        workflow_input: b"{\"x\":2}".as_slice().into(),
        ..RerunWorkflow::default()
    };
    check.control(key, WorkflowVerb::Rerun(rerun)).expect("it has ended");
    assert_eq!(check.workflow(key)["input"], json!({ "x": 2 }));
    check.do_task("a", &json!({}));
    check.compare_rebuilt();
}

fn rerun_from(task: &Value) -> WorkflowVerb {
    WorkflowVerb::Rerun(RerunWorkflow {
        from: Some(id(task, "taskId")),
        ..RerunWorkflow::default()
    })
}

/// A fork of `a1`, `a2` beside `b1`, `b2`, and `end` behind it.
fn forked() -> Value {
    json!([
        { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
          "forkTasks": [[simple("a1"), fragile("a2")], [simple("b1"), simple("b2")]] },
        { "name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["a2", "b2"] },
        simple("end"),
    ])
}

#[test]
fn rerun_in_a_branch_leaves_what_was_done_beside_it() {
    let mut check = Check::new();
    check.define(&definition("w", &forked()));
    let key = check.start_workflow("w", &json!({}));
    let a1 = check.do_task("a1", &json!({}));
    let b1 = check.do_task("b1", &json!({ "kept": 1 }));
    check.fail_task("a2", "no");
    check.assert_status(key, "FAILED");
    check.control(key, rerun_from(&a1)).expect("it failed");
    check.assert_status(key, "RUNNING");
    assert!(check.poll_tasks("b1", 1).is_empty(), "it was done");
    assert!(check.poll_tasks("a2", 1).is_empty(), "it comes after a1");
    // It was cancelled when a2 failed.
    check.do_task("b2", &json!({}));
    assert!(check.poll_tasks("end", 1).is_empty(), "the JOIN waits for the branch");
    check.do_task("a1", &json!({}));
    check.do_task("a2", &json!({}));
    let end = check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();

    // The same of one that completed, from the other branch; what comes behind the JOIN again too.
    check.control(key, rerun_from(&b1)).expect("it has ended");
    assert!(check.poll_tasks("a1", 1).is_empty() && check.poll_tasks("end", 1).is_empty());
    check.do_task("b1", &json!({}));
    check.do_task("b2", &json!({}));
    let again = check.do_task("end", &json!({}));
    assert_ne!(again["taskId"], end["taskId"]);
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn rerun_in_a_branch_of_a_dynamic_fork() {
    let mut check = Check::new();
    let inner = json!({ "name": "inner", "taskReferenceName": "inner", "type": "SWITCH",
        "evaluatorType": "value-param", "expression": "on", "inputParameters": { "on": "x" },
        "decisionCases": { "x": [simple("x1"), simple("x2")] } });
    check.define(&definition(
        "w",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN_DYNAMIC",
              "inputParameters": { "tasks": [inner, simple("y")], "inputs": {} },
              "dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs" },
            { "name": "join", "taskReferenceName": "join", "type": "JOIN" },
            simple("end"),
        ]),
    ));
    let key = check.start_workflow("w", &json!({}));
    let x1 = check.do_task("x1", &json!({}));
    check.do_task("x2", &json!({}));
    let y = check.do_task("y", &json!({}));
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    for (from, again) in [(&x1, &["x1", "x2"][..]), (&y, &["y"])] {
        check.control(key, rerun_from(from)).expect("it has ended");
        for task in again {
            check.do_task(task, &json!({}));
        }
        check.do_task("end", &json!({}));
        check.assert_status(key, "COMPLETED");
        check.compare_rebuilt();
    }
}

#[test]
fn rerun_in_a_branch_in_a_round_of_a_loop() {
    let mut check = Check::new();
    let mut body = forked();
    let body = body.as_array_mut().expect("a list");
    body.truncate(2);
    check.define(&definition(
        "w",
        &json!([
            { "name": "loop", "taskReferenceName": "loop", "type": "DO_WHILE",
              "loopCondition": "$.loop['iteration'] < 2", "loopOver": body },
            simple("end"),
        ]),
    ));
    let key = check.start_workflow("w", &json!({}));
    let round = |check: &mut Check| {
        let tasks = ["a1", "a2", "b1", "b2"].map(|task| check.do_task(task, &json!({})));
        tasks[2].clone()
    };
    let b1 = round(&mut check);
    round(&mut check);
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.control(key, rerun_from(&b1)).expect("it has ended");
    assert!(check.poll_tasks("a1", 1).is_empty(), "that of this round was done");
    check.do_task("b1", &json!({}));
    check.do_task("b2", &json!({}));
    round(&mut check);
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_skipped_task_is_passed_over_with_the_output_it_was_given() {
    let mut check = Check::new();
    check.define(&definition("w", &json!([simple("a"), simple("b"), simple("c")])));
    let key = check.start_workflow("w", &json!({}));
    let skip = |reference: &str| WorkflowVerb::Skip {
        reference: reference.into(),
        input: windlass_record::command::Bytes::default(),
        output: b"{\"by\":\"hand\"}".as_slice().into(),
    };
    check.control(key, skip("b")).expect("it was not scheduled yet");
    for (reference, kind) in
        [("a", RejectionKind::FailedPrecondition), ("x", RejectionKind::FailedPrecondition)]
    {
        assert_eq!(check.control(key, skip(reference)).expect_err("no").kind(), kind);
    }
    check.do_task("a", &json!({}));
    assert!(check.poll_tasks("b", 1).is_empty());
    check.do_task("c", &json!({}));
    check.assert_status(key, "COMPLETED");
    let mut shown = check.shown(key);
    shown.sort();
    assert_eq!(shown, ["a COMPLETED", "b SKIPPED", "c COMPLETED"]);
    check.compare_rebuilt();
}

#[test]
fn a_failed_workflow_starts_its_failure_workflow() {
    let mut check = Check::new();
    check.define(&definition("mourn", &json!([simple("cry")])));
    let mut fails = definition("w", &json!([fragile("a")]));
    fails["failureWorkflow"] = json!("mourn");
    check.define(&fails);
    let key = check.start_workflow("w", &json!({ "n": 1 }));
    check.fail_task("a", "no");
    let cry = check.poll_one("cry");
    let mourning = id(&cry, "workflowInstanceId");
    let input = check.workflow(mourning)["input"].clone();
    assert_eq!(input["n"], 1);
    assert_eq!(input["failureStatus"], "FAILED");
    assert_eq!(input["workflowId"], check.workflow(key)["workflowId"]);
    assert_eq!(
        check.workflow(key)["output"]["conductor.failure_workflow"],
        cry["workflowInstanceId"]
    );
    // One that is ended by hand starts none.
    let key = check.start_workflow("w", &json!({}));
    check.control(key, WorkflowVerb::Terminate { reason: "".into() }).expect("it runs");
    assert!(check.poll_tasks("cry", 1).is_empty());
    check.compare_rebuilt();
}

#[test]
fn a_second_start_with_the_same_key_does_as_it_was_told() {
    let mut check = Check::new();
    check.define(&definition("w", &json!([simple("a")])));
    let request = |strategy: &str| json!({ "name": "w", "input": {}, "idempotencyKey": "k", "idempotencyStrategy": strategy });
    let first = check.request_workflow(&request("FAIL")).expect("it is the first");
    let refused = check.request_workflow(&request("FAIL")).expect_err("it is the second");
    assert_eq!(refused.kind(), RejectionKind::AlreadyExists);
    assert_eq!(check.request_workflow(&request("RETURN_EXISTING")), Ok(first));
    check.request_workflow(&request("FAIL_ON_RUNNING")).expect_err("it runs");
    check.do_task("a", &json!({}));
    let second = check.request_workflow(&request("FAIL_ON_RUNNING")).expect("it has ended");
    assert_ne!(second, first);
    // Without a key the strategy means nothing.
    let request = json!({ "name": "w", "input": {}, "idempotencyStrategy": "FAIL" });
    check.request_workflow(&request).expect("no key");
    check.request_workflow(&request).expect("no key");
    check.compare_rebuilt();
}

#[test]
fn workflows_of_one_rate_limit_key_take_their_turns() {
    let mut check = Check::new();
    let mut limited = definition("w", &json!([simple("a")]));
    limited["rateLimitConfig"] =
        json!({ "rateLimitKey": "${workflow.input.who}", "concurrentExecLimit": 1 });
    check.define(&limited);
    let first = check.start_workflow("w", &json!({ "who": "me" }));
    let second = check.start_workflow("w", &json!({ "who": "me" }));
    check.start_workflow("w", &json!({ "who": "you" }));
    let tasks = check.poll_tasks("a", 9);
    assert_eq!(tasks.len(), 2, "one of each");
    assert_eq!(id(&tasks[0], "workflowInstanceId"), first);
    check.update_task(&tasks[0], TaskStatus::Completed, &json!({}), "");
    assert_eq!(id(&check.poll_one("a"), "workflowInstanceId"), second);
    check.compare_rebuilt();
}

#[test]
fn definitions_that_make_no_sense_are_refused_in_words() {
    let mut check = Check::new();
    let twice = definition("w", &json!([simple("a"), simple("a")]));
    let unknown =
        definition("w", &json!([super::simple_with("a", &json!({ "x": "${nobody.output.x}" }))]));
    let lone_fork = definition(
        "w",
        &json!([{ "name": "f", "taskReferenceName": "f", "type": "FORK_JOIN",
                  "forkTasks": [[simple("b")]] }]),
    );
    for (bad, part) in [
        (twice, "taskReferenceName: a should be unique"),
        (unknown, "is not defined in workflow definition"),
        (lone_fork, "must be followed by a JOIN"),
        (json!({ "name": "w", "tasks": [] }), "WorkflowTask list cannot be empty"),
        (json!({ "tasks": [simple("a")] }), "name cannot be null or empty"),
    ] {
        let refused = check
            .workflow_command(windlass_record::workflow::WorkflowCommand::DefineWorkflow {
                workflow: bad.to_string().into_bytes().into(),
                overwrite: true,
                dry_run: false,
            })
            .expect_err(part);
        assert!(refused.to_string().contains(part), "{refused} says {part}");
        assert_eq!(refused.kind(), RejectionKind::InvalidArgument);
    }
}
