//! Branches: forks, dynamic forks, joins, sub-workflows.

use serde_json::{Value, json};
use windlass_record::workflow::TaskStatus;

use super::{definition, id, simple};
use crate::verb::check::Check;

fn join(on: &Value) -> Value {
    json!({ "name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": on })
}

#[test]
fn a_join_waits_for_its_branches() {
    let mut check = Check::new();
    check.define(&definition(
        "f",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
              "forkTasks": [[simple("a"), simple("a2")], [simple("b")]] },
            join(&json!(["a2", "b"])),
            simple("end"),
        ]),
    ));
    let key = check.start_workflow("f", &json!({}));
    check.do_task("b", &json!({ "b": 1 }));
    check.do_task("a", &json!({}));
    assert!(check.poll_tasks("end", 1).is_empty());
    check.do_task("a2", &json!({ "a": 2 }));
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    let workflow = check.workflow(key);
    let join = workflow["tasks"].as_array().expect("a list").iter();
    let join = join.clone().find(|task| task["referenceTaskName"] == "join").expect("it is there");
    assert_eq!(join["outputData"], json!({ "a2": { "a": 2 }, "b": { "b": 1 } }));
    assert_eq!(workflow["tasks"][0]["taskType"], "FORK");
    check.compare_rebuilt();
}

#[test]
fn a_failed_branch_ends_the_workflow_and_its_siblings() {
    let mut check = Check::new();
    let mut fails = simple("a");
    fails["retryCount"] = json!(0);
    check.define(&definition(
        "f",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
              "forkTasks": [[fails], [simple("b")]] },
            join(&json!(["a", "b"])),
        ]),
    ));
    let key = check.start_workflow("f", &json!({}));
    check.fail_task("a", "no");
    check.assert_status(key, "FAILED");
    let mut shown = check.shown(key);
    shown.sort();
    assert_eq!(shown, ["a FAILED", "b CANCELED", "fork COMPLETED", "join CANCELED"]);
    assert!(check.poll_tasks("b", 1).is_empty(), "its job is gone");
    check.compare_rebuilt();
}

#[test]
fn dynamic_branches_in_their_forms() {
    let mut check = Check::new();
    check.define(&definition(
        "two_lists",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN_DYNAMIC",
              "inputParameters": { "tasks": "${workflow.input.tasks}", "inputs": "${workflow.input.inputs}" },
              "dynamicForkTasksParam": "tasks", "dynamicForkTasksInputParamName": "inputs" },
            join(&json!([])),
        ]),
    ));
    let key = check.start_workflow(
        "two_lists",
        &json!({ "tasks": [simple("x"), simple("y")], "inputs": { "x": { "n": 1 }, "y": { "n": 2 } } }),
    );
    assert_eq!(check.do_task("x", &json!({ "r": 1 }))["inputData"], json!({ "n": 1 }));
    assert_eq!(check.do_task("y", &json!({ "r": 2 }))["inputData"], json!({ "n": 2 }));
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.workflow(key)["output"], json!({ "x": { "r": 1 }, "y": { "r": 2 } }));

    check.define(&definition(
        "same",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN_DYNAMIC",
              "inputParameters": { "forkTaskName": "each", "forkTaskInputs": "${workflow.input.items}" } },
            join(&json!([])),
        ]),
    ));
    let key =
        check.start_workflow("same", &json!({ "items": [{ "v": 1 }, { "v": 2 }, { "v": 3 }] }));
    let tasks = check.poll_tasks("each", 10);
    assert_eq!(tasks.len(), 3);
    assert_eq!(tasks[2]["referenceTaskName"], "_each_2");
    assert_eq!(tasks[2]["inputData"], json!({ "v": 3, "__index": 2 }));
    for task in &tasks {
        check.update_task(task, TaskStatus::Completed, &json!({}), "");
    }
    check.assert_status(key, "COMPLETED");
    let none = check.start_workflow("same", &json!({ "items": [] }));
    check.assert_status(none, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn many_dynamic_branches_are_scheduled_piece_by_piece() {
    let mut check = Check::new();
    check.define(&definition(
        "many",
        &json!([
            { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN_DYNAMIC",
              "inputParameters": { "forkTaskName": "each", "forkTaskInputs": "${workflow.input.items}" } },
            join(&json!([])),
        ]),
    ));
    let items: Vec<Value> = (0..1_000).map(|n| json!({ "n": n })).collect();
    let key = check.start_workflow("many", &json!({ "items": items }));
    let tasks = check.poll_tasks("each", 2_000);
    assert_eq!(tasks.len(), 1_000);
    for task in &tasks {
        check.update_task(task, TaskStatus::Completed, &json!({}), "");
    }
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_sub_workflow_runs_for_its_task() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([simple("inner")])));
    check.define(&definition(
        "parent",
        &json!([
            { "name": "sub", "taskReferenceName": "sub", "type": "SUB_WORKFLOW",
              "inputParameters": { "n": "${workflow.input.n}" },
              "subWorkflowParam": { "name": "child", "version": 1 } },
            simple("end"),
        ]),
    ));
    let key = check.start_workflow("parent", &json!({ "n": 4 }));
    let inner = check.do_task("inner", &json!({ "done": true }));
    let child = id(&inner, "workflowInstanceId");
    assert_ne!(child, key);
    assert_eq!(check.workflow(child)["input"], json!({ "n": 4 }));
    let parent = check.workflow(key);
    assert_eq!(parent["tasks"][0]["subWorkflowId"], inner["workflowInstanceId"]);
    assert_eq!(parent["tasks"][0]["outputData"]["done"], true);
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn what_a_definition_below_names_is_its_own() {
    let mut check = Check::new();
    let mut inner = simple("inner");
    inner["inputParameters"] = json!({ "x": "${workflow.input.x}" });
    check.define(&definition(
        "parent",
        &json!([{
            "name": "sub", "taskReferenceName": "sub", "type": "SUB_WORKFLOW",
            "inputParameters": { "x": 2 },
            "subWorkflowParam": {
                "name": "child", "version": 1, "workflowDefinition": definition("child", &json!([inner])),
            },
        }]),
    ));
    let key = check.start_workflow("parent", &json!({ "x": 1 }));
    let inner = check.do_task("inner", &json!({}));
    assert_eq!(inner["inputData"], json!({ "x": 2 }));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn the_end_of_a_parent_ends_its_children_and_a_failed_child_its_parent() {
    let mut check = Check::new();
    let mut fails = simple("inner");
    fails["retryCount"] = json!(0);
    check.define(&definition("child", &json!([fails])));
    check.define(&definition(
        "parent",
        &json!([{ "name": "sub", "taskReferenceName": "sub", "type": "SUB_WORKFLOW",
                  "subWorkflowParam": { "name": "child" } }]),
    ));
    let key = check.start_workflow("parent", &json!({}));
    let inner = check.poll_one("inner");
    let child = id(&inner, "workflowInstanceId");
    check
        .control(
            key,
            windlass_record::workflow::WorkflowVerb::Terminate { reason: "enough".into() },
        )
        .expect("it runs");
    check.assert_status(key, "TERMINATED");
    check.assert_status(child, "TERMINATED");
    let reason = check.workflow(child)["reasonForIncompletion"].to_string();
    assert!(reason.contains("Parent workflow has been terminated with reason: enough"), "{reason}");

    let key = check.start_workflow("parent", &json!({}));
    check.fail_task("inner", "broken");
    check.assert_status(key, "FAILED");
    let reason = check.workflow(key)["reasonForIncompletion"].to_string();
    assert!(reason.contains("Sub workflow child.1/"), "{reason}");
    check.compare_rebuilt();
}
