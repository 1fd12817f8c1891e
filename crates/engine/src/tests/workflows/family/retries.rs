//! How long the next attempt of a task waits, and when there is none.

use windlass_record::workflow::TaskStatus;

use super::*;

/// A workflow of one task with this definition, started.
fn with(task: &Value) -> (Check, Key) {
    let mut check = Check::new();
    let mut task = task.clone();
    task["name"] = json!("t");
    check.define_task(&task);
    check.define(&definition("w", &json!([simple("t")])));
    let key = check.start_workflow("w", &json!({}));
    (check, key)
}

/// What the attempts after the first wait for (s), and what is added at most (ms).
struct Case {
    task: Value,
    waits_s: &'static [u64],
    jitter_ms: u64,
}

#[test]
fn the_next_attempt_waits_as_long_as_its_definition_says() {
    let cases = [
        Case {
            task: json!({ "retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 2,
                "maxRetryDelaySeconds": 3 }),
            waits_s: &[2, 3, 3],
            jitter_ms: 0,
        },
        Case {
            task: json!({ "retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 2 }),
            waits_s: &[2, 4, 8],
            jitter_ms: 0,
        },
        Case {
            task: json!({ "retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 2,
                "backoffScaleFactor": 2, "maxRetryDelaySeconds": 5 }),
            waits_s: &[4, 5, 5],
            jitter_ms: 0,
        },
        Case {
            task: json!({ "retryLogic": "LINEAR_BACKOFF", "retryDelaySeconds": 2,
                "backoffScaleFactor": 2 }),
            waits_s: &[4, 8, 12],
            jitter_ms: 0,
        },
        Case {
            task: json!({ "retryLogic": "FIXED", "retryDelaySeconds": 30, "backoffJitterMs": 0 }),
            waits_s: &[30, 30, 30],
            jitter_ms: 0,
        },
        Case {
            task: json!({ "retryLogic": "FIXED", "retryDelaySeconds": 9,
                "maxRetryDelaySeconds": 4 }),
            waits_s: &[4, 4, 4],
            jitter_ms: 0,
        },
        Case {
            task: json!({ "retryLogic": "FIXED", "retryDelaySeconds": 60,
                "backoffJitterMs": 5_000 }),
            waits_s: &[60, 60, 60],
            jitter_ms: 5_000,
        },
        // The cap comes before the jitter.
        Case {
            task: json!({ "retryLogic": "EXPONENTIAL_BACKOFF", "retryDelaySeconds": 2,
                "maxRetryDelaySeconds": 3, "backoffJitterMs": 2_000 }),
            waits_s: &[2, 3, 3],
            jitter_ms: 2_000,
        },
    ];
    for Case { mut task, waits_s, jitter_ms } in cases {
        task["retryCount"] = json!(waits_s.len());
        let (mut check, key) = with(&task);
        for (attempt, wait_s) in waits_s.iter().enumerate() {
            check.fail_task("t", "no");
            let next = check.task_named(key, "t");
            assert_eq!(next["retryCount"], attempt + 1, "{task}");
            assert_eq!(next["callbackAfterSeconds"], *wait_s, "{task}");
            assert_eq!(next["startDelayInSeconds"], *wait_s, "{task}");
            check.pass(wait_s * 1_000 - 1);
            assert!(check.poll_tasks("t", 1).is_empty(), "{task}: too early");
            check.pass(1 + jitter_ms);
        }
        check.fail_task("t", "no");
        assert_eq!(check.rows(key).len(), waits_s.len() + 1, "{task}");
        check.assert_status(key, "FAILED");
        check.compare_rebuilt();
    }
}

#[test]
fn jitter_is_not_the_same_for_all() {
    let (mut check, _) = with(&json!({ "retryDelaySeconds": 60, "backoffJitterMs": 5_000 }));
    for _ in 1..20 {
        check.start_workflow("w", &json!({}));
    }
    for task in check.poll_tasks("t", 20) {
        check.update_task(&task, TaskStatus::Failed, &json!({}), "no");
    }
    check.pass(62_500);
    let half = check.poll_tasks("t", 20).len();
    assert!(half > 0, "some are ready");
    check.pass(2_500);
    let rest = check.poll_tasks("t", 20).len();
    assert!(rest > 0, "some waited longer");
    assert_eq!(half + rest, 20);
    check.compare_rebuilt();
}

#[test]
fn a_total_time_of_nothing_is_none() {
    let mut task = json!({ "retryCount": 5, "retryDelaySeconds": 0, "timeoutSeconds": 3_600 });
    task["totalTimeoutSeconds"] = json!(0);
    let (mut check, key) = with(&task);
    for _ in 0..5 {
        check.pass(3_000_000);
        check.fail_task("t", "no");
        assert_eq!(check.task_named(key, "t")["status"], "SCHEDULED");
    }
    check.assert_status(key, "RUNNING");
}

#[test]
fn nothing_is_tried_again_when_the_total_time_is_over() {
    for (policy, delay_s) in [("TIME_OUT_WF", 0), ("RETRY", 0), ("TIME_OUT_WF", 3), ("RETRY", 3)] {
        let (mut check, key) = with(&json!({ "retryCount": 10, "retryDelaySeconds": delay_s,
            "timeoutPolicy": policy, "totalTimeoutSeconds": 5, "timeoutSeconds": 0,
            "responseTimeoutSeconds": 60 }));
        check.pass(4_000);
        check.fail_task("t", "no");
        assert_eq!(check.rows(key), ["t t FAILED again", "t t SCHEDULED #1 of 1"]);
        if delay_s == 0 {
            check.poll_one("t");
        }
        check.pass(1_000);
        check.settle();
        let rows = ["t t FAILED again", "t t TIMED_OUT #1 of 1"];
        check.assert_rows(key, "TIMED_OUT", &rows);
        check.compare_rebuilt();
    }
}

#[test]
fn a_retry_by_hand_waits_for_nothing_and_counts_on() {
    let (mut check, key) = with(&json!({ "retryCount": 1, "retryDelaySeconds": 30 }));
    check.fail_task("t", "one");
    check.pass(30_000);
    check.fail_task("t", "two");
    check.assert_status(key, "FAILED");
    check
        .control(key, windlass_record::workflow::WorkflowVerb::Retry { subworkflows: false })
        .expect("it failed");
    let rows = ["t t FAILED again", "t t FAILED again #1 of 1", "t t SCHEDULED #2 of 2"];
    check.assert_rows(key, "RUNNING", &rows);
    let again = check.task_named(key, "t");
    assert_eq!(again["callbackAfterSeconds"], 0);
    assert_eq!(again["reasonForIncompletion"], Value::Null, "{again}");
    // It was the last attempt already.
    check.fail_task("t", "three");
    check.assert_status(key, "FAILED");
    assert_eq!(check.workflow(key)["failedReferenceTaskNames"], json!(["t"]));
    check.compare_rebuilt();
}
