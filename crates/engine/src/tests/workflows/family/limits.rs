//! How many tasks of a definition may be at work, and how many may begin in a time.

use windlass_record::command::{ActivateJobs, Command, QueueName};
use windlass_record::workflow::TaskStatus;

use super::*;
use crate::Answer;
use crate::verb::check::LEASE_MS;

#[test]
fn only_so_many_tasks_begin_in_a_window() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "t", "rateLimitPerFrequency": 1,
        "rateLimitFrequencyInSeconds": 10 }));
    check.define(&definition("w", &json!([simple("t")])));
    let first = check.start_workflow("w", &json!({}));
    check.do_task("t", &json!({}));
    check.assert_rows(first, "COMPLETED", &["t t COMPLETED"]);
    let second = check.start_workflow("w", &json!({}));
    check.assert_rows(second, "RUNNING", &["t t SCHEDULED"]);
    check.pass(9_999);
    assert!(check.poll_tasks("t", 9).is_empty(), "the window holds one already");
    check.assert_rows(second, "RUNNING", &["t t SCHEDULED"]);
    assert_eq!(check.task_named(second, "t")["pollCount"], 0, "a refused poll costs nothing");
    check.pass(1);
    check.do_task("t", &json!({}));
    check.assert_rows(second, "COMPLETED", &["t t COMPLETED"]);
    check.compare_rebuilt();
}

#[test]
fn a_rate_holds_for_the_tasks_that_the_server_does_itself() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "call", "rateLimitPerFrequency": 1,
        "rateLimitFrequencyInSeconds": 10 }));
    let call = json!({ "name": "call", "taskReferenceName": "call", "type": "HTTP",
        "inputParameters": { "uri": "http://nowhere", "method": "GET" } });
    check.define(&definition("w", &json!([call])));
    let first = check.start_workflow("w", &json!({}));
    let job = check.take_built_in("conductor/HTTP");
    check.done(job, "{\"response\":{\"statusCode\":200}}");
    check.assert_rows(first, "COMPLETED", &["HTTP call COMPLETED"]);
    let second = check.start_workflow("w", &json!({}));
    assert_eq!(jobs_ready(&mut check, "conductor/HTTP"), 0);
    check.assert_rows(second, "RUNNING", &["HTTP call SCHEDULED"]);
    check.pass(10_000);
    let job = check.take_built_in("conductor/HTTP");
    check.done(job, "{\"response\":{\"statusCode\":200}}");
    check.assert_rows(second, "COMPLETED", &["HTTP call COMPLETED"]);
    check.compare_rebuilt();
}

/// How many jobs of a queue a worker of ours is given.
fn jobs_ready(check: &mut Check, queue: &str) -> usize {
    let name = QueueName { tenant: "default".into(), queue: queue.into() };
    let queue = check.engine.state().queue_named(&name).expect("the queue is there");
    let command = ActivateJobs {
        queues: vec![queue],
        worker: "ours".into(),
        lease_ms: LEASE_MS,
        jobs_max: 9,
        bytes_max: u64::MAX,
        with_token: false,
    };
    match check.give(Command::ActivateJobs(command)) {
        Ok(Answer::Activated(handed)) => handed.len(),
        other => panic!("activate: {other:?}"),
    }
}

#[test]
fn a_place_is_free_when_its_task_ends_or_is_put_back() {
    for (status, left) in [
        (TaskStatus::Completed, 1),
        (TaskStatus::Failed, 1),
        (TaskStatus::FailedWithTerminalError, 1),
        // It is ready again itself, and the older one.
        (TaskStatus::InProgress, 2),
    ] {
        let mut check = Check::new();
        check.define_task(&json!({ "name": "t", "concurrentExecLimit": 1, "retryCount": 0 }));
        check.define(&definition("w", &json!([simple("t")])));
        let first = check.start_workflow("w", &json!({}));
        let at_work = check.poll_one("t");
        assert_eq!(id(&at_work, "workflowInstanceId"), first);
        let second = check.start_workflow("w", &json!({}));
        assert!(check.poll_tasks("t", 9).is_empty(), "one is at work");
        check.assert_rows(second, "RUNNING", &["t t SCHEDULED"]);
        check.update_task(&at_work, status, &json!({}), "");
        let mut seen = Vec::new();
        for _ in 0..left {
            let task = check.poll_one("t");
            seen.push(id(&task, "workflowInstanceId"));
            assert!(check.poll_tasks("t", 9).is_empty(), "{status:?}: one is at work");
            check.update_task(&task, TaskStatus::Completed, &json!({}), "");
        }
        assert!(seen.contains(&second), "{status:?}");
        check.assert_status(second, "COMPLETED");
        check.compare_rebuilt();
    }
}
