//! The times of a task in each of its states, and what follows when one is over.

use serde_json::{Value, json};
use windlass_record::workflow::{
    EVALUATION_QUEUE, TaskReference, TaskStatus, TaskUpdate, WorkflowVerb,
};

use super::{definition, id, simple};
use crate::verb::check::{Check, LEASE_MS};

/// A workflow of one task with this definition, started.
fn with(task: &Value) -> (Check, windlass_record::flow::Key) {
    let mut check = Check::new();
    let mut task = task.clone();
    task["name"] = json!("t");
    check.define_task(&task);
    check.define(&definition("w", &json!([simple("t")])));
    let key = check.start_workflow("w", &json!({}));
    (check, key)
}

/// Which time is set, to 10 s, and by which policy.
fn timed(field: &str, policy: &str, retries: u32) -> Value {
    let mut task = json!({
        "retryCount": retries, "retryDelaySeconds": 0, "timeoutPolicy": policy,
        "timeoutSeconds": 0, "responseTimeoutSeconds": 3600
    });
    task[field] = json!(10);
    if field == "timeoutSeconds" {
        task["responseTimeoutSeconds"] = json!(10);
    }
    task
}

fn put_back(check: &mut Check, task: &Value, callback_s: u32, extend_lease: bool) {
    check.send_update(TaskUpdate {
        workflow: id(task, "workflowInstanceId"),
        task: TaskReference::Key(id(task, "taskId")),
        status: TaskStatus::InProgress,
        output: windlass_record::command::Bytes::default(),
        merge: false,
        reason: "".into(),
        callback_s,
        worker: "w".into(),
        log: Vec::new(),
        extend_lease,
    });
}

#[test]
fn a_task_that_nobody_takes_times_out_by_its_policy() {
    for (policy, workflow, first) in [
        ("RETRY", "RUNNING", "t TIMED_OUT"),
        ("TIME_OUT_WF", "TIMED_OUT", "t TIMED_OUT"),
        ("ALERT_ONLY", "RUNNING", "t SCHEDULED"),
    ] {
        let (mut check, key) = with(&timed("pollTimeoutSeconds", policy, 1));
        check.pass(9_999);
        check.settle();
        assert_eq!(check.shown(key), ["t SCHEDULED"], "{policy}");
        check.pass(1);
        check.settle();
        assert_eq!(check.shown(key)[0], first, "{policy}");
        check.assert_status(key, workflow);
        check.compare_rebuilt();
    }
    // Once it is taken, this time is over.
    let (mut check, key) = with(&timed("pollTimeoutSeconds", "TIME_OUT_WF", 0));
    check.poll_one("t");
    check.pass(60_000);
    check.settle();
    check.assert_status(key, "RUNNING");
}

#[test]
fn a_silent_worker_costs_an_attempt_whatever_the_policy() {
    for policy in ["RETRY", "TIME_OUT_WF", "ALERT_ONLY"] {
        let (mut check, key) = with(&timed("responseTimeoutSeconds", policy, 1));
        check.pass(60_000);
        check.poll_one("t");
        check.pass(9_999);
        check.settle();
        assert_eq!(check.shown(key), ["t IN_PROGRESS"], "{policy}");
        check.pass(1);
        check.settle();
        assert_eq!(check.shown(key), ["t TIMED_OUT", "t SCHEDULED"], "{policy}");
        check.poll_one("t");
        check.pass(10_000);
        check.settle();
        check.assert_status(key, "TIMED_OUT");
        let reason = check.workflow(key)["tasks"][1]["reasonForIncompletion"].to_string();
        assert!(reason.contains("responseTimeout: 10 exceeded for the taskId"), "{reason}");
        check.compare_rebuilt();
    }
}

#[test]
fn a_sign_of_life_moves_the_response_timeout_and_a_put_back_ends_it() {
    let (mut check, key) = with(&timed("responseTimeoutSeconds", "RETRY", 1));
    let task = check.poll_one("t");
    check.pass(9_000);
    put_back(&mut check, &task, 0, true);
    check.pass(9_999);
    check.settle();
    assert_eq!(check.shown(key), ["t IN_PROGRESS"], "the lease was extended");
    put_back(&mut check, &task, 60, false);
    check.pass(60_000);
    check.settle();
    assert_eq!(check.shown(key), ["t SCHEDULED"], "nobody has it");
    check.poll_one("t");
    check.pass(10_000);
    check.settle();
    assert_eq!(check.shown(key), ["t TIMED_OUT", "t SCHEDULED"]);
    check.compare_rebuilt();
}

#[test]
fn the_time_of_an_attempt_runs_from_its_first_hand_out_through_put_backs() {
    for (policy, workflow, shown) in [
        ("RETRY", "RUNNING", vec!["t TIMED_OUT", "t SCHEDULED"]),
        ("TIME_OUT_WF", "TIMED_OUT", vec!["t TIMED_OUT"]),
        ("ALERT_ONLY", "RUNNING", vec!["t SCHEDULED"]),
    ] {
        let (mut check, key) = with(&timed("timeoutSeconds", policy, 1));
        check.pass(60_000);
        check.settle();
        assert_eq!(check.shown(key), ["t SCHEDULED"], "it does not run before the hand-out");
        let task = check.poll_one("t");
        check.pass(5_000);
        put_back(&mut check, &task, 0, false);
        check.pass(5_000);
        check.settle();
        assert_eq!(check.shown(key), shown, "{policy}");
        check.assert_status(key, workflow);
        check.compare_rebuilt();
    }
}

#[test]
fn the_total_time_runs_across_attempts() {
    let mut task = timed("totalTimeoutSeconds", "RETRY", 9);
    task["retryDelaySeconds"] = json!(4);
    let (mut check, key) = with(&task);
    check.fail_task("t", "one");
    check.pass(4_000);
    check.fail_task("t", "two");
    check.pass(4_000);
    check.poll_one("t");
    check.pass(2_000);
    check.settle();
    check.assert_status(key, "TIMED_OUT");
    assert_eq!(check.shown(key), ["t FAILED", "t FAILED", "t TIMED_OUT"]);
    check.compare_rebuilt();
}

#[test]
fn a_paused_workflow_defers_the_times_of_its_tasks() {
    for field in ["responseTimeoutSeconds", "timeoutSeconds", "totalTimeoutSeconds"] {
        let (mut check, key) = with(&timed(field, "RETRY", 0));
        check.poll_one("t");
        check.control(key, WorkflowVerb::Pause).expect("it runs");
        check.pass(60_000);
        check.settle();
        assert_eq!(check.shown(key), ["t IN_PROGRESS"], "{field}");
        check.assert_status(key, "PAUSED");
        check.compare_rebuilt();
        check.control(key, WorkflowVerb::Resume).expect("it is paused");
        assert_eq!(check.shown(key), ["t TIMED_OUT"], "{field}");
        check.assert_status(key, "TIMED_OUT");
        check.compare_rebuilt();
    }
}

#[test]
fn the_time_of_a_workflow_ends_it_also_while_it_is_paused() {
    for pause in [false, true] {
        let mut check = Check::new();
        let mut timed = definition("w", &json!([simple("t")]));
        timed["timeoutSeconds"] = json!(30);
        timed["timeoutPolicy"] = json!("TIME_OUT_WF");
        check.define(&timed);
        let key = check.start_workflow("w", &json!({}));
        if pause {
            check.control(key, WorkflowVerb::Pause).expect("it runs");
        }
        check.pass(29_999);
        check.settle();
        assert_ne!(check.workflow(key)["status"], "TIMED_OUT");
        check.pass(1);
        check.settle();
        check.assert_status(key, "TIMED_OUT");
        assert_eq!(check.shown(key), ["t CANCELED"]);
        check.compare_rebuilt();
    }
}

#[test]
fn a_worker_of_ours_that_died_costs_no_attempt() {
    let script = json!({ "name": "i", "taskReferenceName": "i", "type": "INLINE",
        "inputParameters": { "evaluatorType": "javascript", "expression": "new Date(0).getTime()" } });
    let http = json!({ "name": "h", "taskReferenceName": "h", "type": "HTTP",
        "inputParameters": { "uri": "http://nowhere", "method": "GET" } });
    for (task, queue, result) in [
        (script, EVALUATION_QUEUE, "{\"value\":0}"),
        (http, "conductor/HTTP", "{\"response\":{\"statusCode\":200}}"),
    ] {
        let mut check = Check::new();
        check.define(&definition("w", &json!([task])));
        let key = check.start_workflow("w", &json!({}));
        let lost = check.take_built_in(queue);
        check.pass(LEASE_MS);
        check.settle();
        check.assert_status(key, "RUNNING");
        let again = check.take_built_in(queue);
        assert_eq!(again, lost, "the same job");
        check.done(again, result);
        check.assert_status(key, "COMPLETED");
        check.compare_rebuilt();
    }
}
