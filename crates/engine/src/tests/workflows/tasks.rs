//! Tasks one behind the other, their input and output, and the kinds that need no worker.

use serde_json::json;
use windlass_record::workflow::{TaskReference, TaskStatus, TaskUpdate, WorkflowAnswer};

use super::{definition, id, simple, simple_with};
use crate::verb::check::Check;

#[test]
fn tasks_follow_each_other_and_hand_their_output_on() {
    let mut check = Check::new();
    let mut two = definition(
        "two",
        &json!([
            simple_with(
                "first",
                &json!({ "n": "${workflow.input.n}", "t": "n is ${workflow.input.n}" })
            ),
            simple_with(
                "second",
                &json!({ "all": "${first.output}", "gone": "${first.output.no}" })
            ),
        ]),
    );
    two["outputParameters"] = json!({ "sum": "${second.output.sum}" });
    check.define(&two);
    let key = check.start_workflow("two", &json!({ "n": 7 }));
    let first = check.do_task("first", &json!({ "a": [1, 2] }));
    assert_eq!(first["inputData"], json!({ "n": 7, "t": "n is 7" }));
    assert_eq!(first["status"], "IN_PROGRESS");
    assert_eq!(first["pollCount"], 1);
    let second = check.do_task("second", &json!({ "sum": 3 }));
    assert_eq!(second["inputData"], json!({ "all": { "a": [1, 2] }, "gone": null }));
    check.assert_status(key, "COMPLETED");
    let workflow = check.workflow(key);
    assert_eq!(workflow["output"], json!({ "sum": 3 }));
    assert_eq!(workflow["tasks"][1]["seq"], 2);
    check.compare_rebuilt();
}

#[test]
fn a_failed_task_is_tried_again_in_a_record_of_its_own() {
    let mut check = Check::new();
    check.define_task(&json!({
        "name": "work", "retryCount": 2, "retryLogic": "EXPONENTIAL_BACKOFF",
        "retryDelaySeconds": 10, "timeoutSeconds": 0, "responseTimeoutSeconds": 60
    }));
    check.define(&definition("w", &json!([simple("work")])));
    let key = check.start_workflow("w", &json!({}));
    check.fail_task("work", "one");
    assert_eq!(check.shown(key), ["work FAILED", "work SCHEDULED"]);
    assert!(check.poll_tasks("work", 1).is_empty(), "not before its time");
    check.pass(10_000);
    let second = check.fail_task("work", "two");
    assert_eq!(second["retryCount"], 1);
    assert_eq!(second["reasonForIncompletion"], "one");
    check.pass(19_999);
    assert!(check.poll_tasks("work", 1).is_empty(), "twice as long");
    check.pass(1);
    check.fail_task("work", "three");
    check.assert_status(key, "FAILED");
    let workflow = check.workflow(key);
    let reason = workflow["reasonForIncompletion"].as_str().expect("text");
    assert!(reason.contains("failed with status: FAILED and reason: 'three'"), "{reason}");
    assert_eq!(workflow["failedReferenceTaskNames"], json!(["work"]));
    check.compare_rebuilt();
}

#[test]
fn optional_and_permissive_tasks_do_not_stand_in_the_way() {
    let mut check = Check::new();
    let mut optional = simple("maybe");
    optional["optional"] = json!(true);
    optional["retryCount"] = json!(0);
    let mut permissive = simple("later");
    permissive["permissive"] = json!(true);
    permissive["retryCount"] = json!(0);
    check.define(&definition("w", &json!([optional, permissive, simple("last")])));
    let key = check.start_workflow("w", &json!({}));
    check.fail_task("maybe", "no");
    check.fail_task("later", "never");
    check.do_task("last", &json!({}));
    assert_eq!(check.shown(key), ["maybe COMPLETED_WITH_ERRORS", "later FAILED", "last COMPLETED"]);
    check.assert_status(key, "FAILED");
    check.compare_rebuilt();
}

#[test]
fn a_task_put_back_is_handed_out_again_with_its_new_output() {
    let mut check = Check::new();
    check.define(&definition("w", &json!([simple("slow")])));
    let key = check.start_workflow("w", &json!({}));
    let task = check.poll_one("slow");
    check.send_update(TaskUpdate {
        workflow: key,
        task: TaskReference::Key(id(&task, "taskId")),
        status: TaskStatus::InProgress,
        output: b"{\"half\":true}".as_slice().into(),
        merge: false,
        reason: "".into(),
        callback_s: 30,
        worker: "w".into(),
        log: vec!["half done".into()],
        extend_lease: false,
    });
    let shown = &check.workflow(key)["tasks"][0];
    assert_eq!(shown["status"], "SCHEDULED");
    assert_eq!(shown["callbackAfterSeconds"], 30);
    check.pass(29_999);
    assert!(check.poll_tasks("slow", 1).is_empty());
    check.pass(1);
    let again = check.poll_one("slow");
    assert_eq!(again["taskId"], task["taskId"]);
    assert_eq!(again["pollCount"], 2);
    assert_eq!(again["outputData"], json!({ "half": true }));
    check.update_task(&again, TaskStatus::Completed, &json!({}), "");
    check.assert_status(key, "COMPLETED");
    // What has ended stays as it is, and nobody is told off.
    let late = check.update_task(&again, TaskStatus::Failed, &json!({}), "late");
    assert!(matches!(late, WorkflowAnswer::Updated { ended: false, .. }));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_switch_takes_its_case() {
    let mut check = Check::new();
    let switch = |evaluator: &str, expression: &str| {
        json!({
            "name": "s", "taskReferenceName": "s", "type": "SWITCH",
            "inputParameters": { "way": "${workflow.input.way}" },
            "evaluatorType": evaluator, "expression": expression,
            "decisionCases": { "a": [simple("in_a"), simple("in_a_too")], "b": [] },
            "defaultCase": [simple("otherwise")]
        })
    };
    check.define(&definition("value", &json!([switch("value-param", "way"), simple("end")])));
    let script = "$.way == 'x' ? 'a' : 'z'";
    check.define(&definition("script", &json!([switch("javascript", script), simple("end")])));
    let a = check.start_workflow("value", &json!({ "way": "a" }));
    check.do_task("in_a", &json!({}));
    check.do_task("in_a_too", &json!({}));
    check.do_task("end", &json!({}));
    check.assert_status(a, "COMPLETED");
    assert_eq!(check.workflow(a)["tasks"][0]["outputData"]["selectedCase"], "a");
    let b = check.start_workflow("value", &json!({ "way": "b" }));
    check.do_task("end", &json!({}));
    check.assert_status(b, "COMPLETED");
    let c = check.start_workflow("value", &json!({ "way": 3 }));
    check.do_task("otherwise", &json!({}));
    check.do_task("end", &json!({}));
    check.assert_status(c, "COMPLETED");
    let x = check.start_workflow("script", &json!({ "way": "x" }));
    check.do_task("in_a", &json!({}));
    check.do_task("in_a_too", &json!({}));
    check.do_task("end", &json!({}));
    check.assert_status(x, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn what_needs_no_worker_is_done_at_once() {
    let mut check = Check::new();
    let mut all = definition(
        "all",
        &json!([
            { "name": "v", "taskReferenceName": "v", "type": "SET_VARIABLE",
              "inputParameters": { "count": 3 } },
            { "name": "i", "taskReferenceName": "i", "type": "INLINE",
              "inputParameters": { "n": "${workflow.variables.count}", "evaluatorType": "javascript",
                "expression": "(function () { return $.n + 1; })();" } },
            { "name": "l", "taskReferenceName": "l", "type": "LAMBDA",
              "inputParameters": { "n": "${i.output.result}",
                "scriptExpression": "if ($.n > 3) { return {big: true}; } else { return {big: false}; }" } },
            { "name": "n", "taskReferenceName": "n", "type": "NOOP" },
            { "name": "t", "taskReferenceName": "t", "type": "TERMINATE",
              "inputParameters": { "terminationStatus": "COMPLETED",
                "workflowOutput": { "big": "${l.output.result.big}" } } },
            simple("never"),
        ]),
    );
    all["variables"] = json!({ "count": 1 });
    check.define(&all);
    let key = check.start_workflow("all", &json!({}));
    check.assert_status(key, "COMPLETED");
    let workflow = check.workflow(key);
    assert_eq!(workflow["output"], json!({ "big": true }), "{workflow:#}");
    assert_eq!(workflow["variables"], json!({ "count": 3 }));
    check.compare_rebuilt();
}

#[test]
fn waits_end_by_time_and_by_hand() {
    let mut check = Check::new();
    let wait = |name: &str, input| json!({ "name": name, "taskReferenceName": name, "type": "WAIT", "inputParameters": input });
    let human = json!({ "name": "h", "taskReferenceName": "h", "type": "HUMAN" });
    check.define(&definition(
        "w",
        &json!([wait("short", json!({ "duration": "2 m" })), wait("open", json!({})), human]),
    ));
    let key = check.start_workflow("w", &json!({}));
    check.pass(119_999);
    assert_eq!(check.shown(key), ["short IN_PROGRESS"]);
    check.pass(1);
    check.settle();
    assert_eq!(check.shown(key), ["short COMPLETED", "open IN_PROGRESS"]);
    for reference in ["open", "h"] {
        check.send_update(TaskUpdate {
            workflow: key,
            task: TaskReference::Name(reference.into()),
            status: TaskStatus::Completed,
            output: b"{\"by\":\"me\"}".as_slice().into(),
            merge: false,
            reason: "".into(),
            callback_s: 0,
            worker: "".into(),
            log: Vec::new(),
            extend_lease: false,
        });
    }
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.workflow(key)["output"], json!({ "by": "me" }));
    check.compare_rebuilt();
}

#[test]
fn a_dynamic_task_is_what_its_input_names() {
    let mut check = Check::new();
    check.define(&definition(
        "d",
        &json!([{
            "name": "any", "taskReferenceName": "any", "type": "DYNAMIC",
            "inputParameters": { "which": "${workflow.input.which}" },
            "dynamicTaskNameParam": "which"
        }]),
    ));
    let key = check.start_workflow("d", &json!({ "which": "resize" }));
    check.do_task("resize", &json!({}));
    check.assert_status(key, "COMPLETED");
    let lost = check.start_workflow("d", &json!({}));
    check.assert_status(lost, "FAILED");
    check.compare_rebuilt();
}

#[test]
fn a_task_goes_to_the_domain_that_somebody_serves() {
    let mut check = Check::new();
    check.define(&definition("d", &json!([simple("work")])));
    let start = |check: &mut Check, domains: &str| {
        let request = json!({ "name": "d", "input": {}, "taskToDomain": { "*": domains } });
        check.request_workflow(&request).expect("it is known")
    };
    start(&mut check, "blue,green");
    assert!(check.poll_tasks("work", 1).is_empty());
    assert_eq!(check.poll_domain("green", "work", 1).len(), 1, "nobody asked: the last one");
    check.poll_domain("blue", "work", 1);
    start(&mut check, "blue,green");
    assert_eq!(check.poll_domain("blue", "work", 1).len(), 1, "somebody asks for the first one");
    check.pass(60_000);
    start(&mut check, "blue,NO_DOMAIN");
    assert_eq!(check.poll_tasks("work", 1).len(), 1);
    check.compare_rebuilt();
}

#[test]
fn limits_of_a_definition_hold_for_all_workflows() {
    let mut check = Check::new();
    check.define_task(&json!({ "name": "few", "concurrentExecLimit": 2 }));
    check.define(&definition("l", &json!([simple("few")])));
    for _ in 0..4 {
        check.start_workflow("l", &json!({}));
    }
    let at_work = check.poll_tasks("few", 10);
    assert_eq!(at_work.len(), 2);
    assert!(check.poll_tasks("few", 10).is_empty());
    check.update_task(&at_work[0], TaskStatus::Completed, &json!({}), "");
    assert_eq!(check.poll_tasks("few", 10).len(), 1, "released at once");
    check.compare_rebuilt();
}

#[test]
fn schemas_are_enforced_when_asked() {
    let schema = |field: &str| {
        let data = json!({ "type": "object", "required": [field] });
        json!({ "name": "s", "version": 1, "type": "JSON", "data": data })
    };
    let mut check = Check::new();
    check.define_task(&json!({ "name": "t", "enforceSchema": true,
        "inputSchema": schema("given"), "outputSchema": schema("made") }));
    let mut strict = definition("w", &json!([simple_with("t", &json!({ "given": 1 }))]));
    strict["inputSchema"] = schema("asked");
    strict["outputSchema"] = schema("told");
    strict["outputParameters"] = json!({ "told": "${t.output.made}" });
    check.define(&strict);
    let refused = check.request_workflow(&json!({ "name": "w", "input": { "other": 1 } }));
    let refused = refused.expect_err("its input does not match").to_string();
    assert!(refused.contains("does not match its schema: /: 'asked' is missing"), "{refused}");

    let key = check.start_workflow("w", &json!({ "asked": 1 }));
    check.do_task("t", &json!({ "else": 1 }));
    check.assert_status(key, "FAILED");
    assert_eq!(check.shown(key), ["t FAILED_WITH_TERMINAL_ERROR"]);
    let reason = check.workflow(key)["tasks"][0]["reasonForIncompletion"].clone();
    assert_eq!(reason, "The output of task t does not match its schema: /: 'made' is missing");
    let key = check.start_workflow("w", &json!({ "asked": 1 }));
    check.do_task("t", &json!({ "made": 1 }));
    check.assert_status(key, "COMPLETED");

    strict["tasks"] = json!([simple_with("t", &json!({ "else": 1 }))]);
    check.define(&strict);
    let key = check.start_workflow("w", &json!({ "asked": 1 }));
    assert_eq!(check.shown(key), ["t FAILED_WITH_TERMINAL_ERROR"]);

    // What comes out of a workflow is held against its schema; unless nobody asks.
    strict["tasks"] = json!([simple("u")]);
    strict["outputParameters"] = json!({ "else": 1 });
    for (enforced, status) in [(true, "FAILED"), (false, "COMPLETED")] {
        strict["enforceSchema"] = json!(enforced);
        check.define(&strict);
        let key = check.start_workflow("w", &json!({ "asked": 1 }));
        check.do_task("u", &json!({}));
        check.assert_status(key, status);
    }
    check.compare_rebuilt();
}
