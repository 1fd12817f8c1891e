//! Loops, with conditions and with items.

use serde_json::json;
use windlass_record::workflow::TaskStatus;

use super::{definition, simple, simple_with};
use crate::verb::check::Check;

#[test]
fn a_loop_goes_on_while_its_condition_holds() {
    let mut check = Check::new();
    check.define(&definition(
        "l",
        &json!([
            { "name": "loop", "taskReferenceName": "loop", "type": "DO_WHILE",
              "inputParameters": { "max": "${workflow.input.max}" },
              "loopCondition": "if ($.loop['iteration'] < $.max) { true; } else { false; }",
              "loopOver": [simple_with("body", &json!({ "round": "${loop.output.iteration}" }))] },
            simple("end"),
        ]),
    ));
    let key = check.start_workflow("l", &json!({ "max": 3 }));
    for round in 1..=3 {
        let task = check.do_task("body", &json!({ "n": round }));
        assert_eq!(task["referenceTaskName"], format!("body__{round}"));
        assert_eq!(task["iteration"], round);
        assert_eq!(task["inputData"]["round"], round);
    }
    check.do_task("end", &json!({}));
    check.assert_status(key, "COMPLETED");
    let output = check.workflow(key)["tasks"][0]["outputData"].clone();
    assert_eq!(
        output,
        json!({ "iteration": 3, "1": { "body": { "n": 1 } }, "2": { "body": { "n": 2 } },
                "3": { "body": { "n": 3 } } })
    );
    check.compare_rebuilt();
}

#[test]
fn a_loop_over_items_gives_each_to_its_round() {
    let mut check = Check::new();
    check.define(&definition(
        "l",
        &json!([{
            "name": "loop", "taskReferenceName": "loop", "type": "DO_WHILE",
            "inputParameters": { "_items": "${workflow.input.items}" },
            "loopOver": [simple("first"), simple("second")]
        }]),
    ));
    let key = check.start_workflow("l", &json!({ "items": ["a", "b"] }));
    for item in ["a", "b"] {
        let task = check.do_task("first", &json!({}));
        assert_eq!(task["inputData"]["loopItem"], item);
        check.do_task("second", &json!({}));
    }
    check.assert_status(key, "COMPLETED");
    let none = check.start_workflow("l", &json!({ "items": [] }));
    check.assert_status(none, "COMPLETED");
    assert_eq!(check.workflow(none)["tasks"][0]["outputData"]["iteration"], 0);
    let bad = check.start_workflow("l", &json!({ "items": 5 }));
    check.assert_status(bad, "FAILED");
    check.compare_rebuilt();
}

#[test]
fn a_fork_in_a_loop_joins_in_every_round_and_old_rounds_are_forgotten() {
    let mut check = Check::new();
    check.define(&definition(
        "l",
        &json!([{
            "name": "loop", "taskReferenceName": "loop", "type": "DO_WHILE",
            "inputParameters": { "keepLastN": 1 },
            "loopCondition": "$.loop['iteration'] < 3",
            "loopOver": [
                { "name": "fork", "taskReferenceName": "fork", "type": "FORK_JOIN",
                  "forkTasks": [[simple("a")], [simple("b")]] },
                { "name": "join", "taskReferenceName": "join", "type": "JOIN", "joinOn": ["a", "b"] },
            ]
        }]),
    ));
    let key = check.start_workflow("l", &json!({}));
    for round in 1..=3 {
        check.do_task("b", &json!({ "round": round }));
        check.do_task("a", &json!({ "round": round }));
    }
    check.assert_status(key, "COMPLETED");
    let workflow = check.workflow(key);
    let rounds = workflow["tasks"][0]["outputData"].as_object().expect("an object");
    assert!(!rounds.contains_key("1") && !rounds.contains_key("2"), "{rounds:?}");
    assert_eq!(rounds["3"]["a"], json!({ "round": 3 }));
    check.compare_rebuilt();
}

#[test]
fn a_failure_in_a_loop_is_retried_there_and_then_ends_it() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "body", "retryCount": 1, "retryDelaySeconds": 0 }));
    check.define(&definition(
        "l",
        &json!([{
            "name": "loop", "taskReferenceName": "loop", "type": "DO_WHILE",
            "loopCondition": "$.loop['iteration'] < 2", "loopOver": [simple("body")]
        }]),
    ));
    let key = check.start_workflow("l", &json!({}));
    check.fail_task("body", "once");
    let again = check.poll_one("body");
    assert_eq!(again["referenceTaskName"], "body__1");
    check.update_task(&again, TaskStatus::Completed, &json!({}), "");
    check.fail_task("body", "twice");
    check.fail_task("body", "thrice");
    check.assert_status(key, "FAILED");
    check.compare_rebuilt();
}
