//! Definitions that tasks make, workflows that tasks start, and those that follow a failure.

use super::*;

#[test]
fn a_definition_may_be_what_another_task_made() {
    let mut check = Check::new();
    let inline = |name: &str, expression: &str, input: Value| {
        let mut input = input;
        input["evaluatorType"] = json!("javascript");
        input["expression"] = json!(expression);
        json!({ "name": name, "taskReferenceName": name, "type": "INLINE",
                "inputParameters": input })
    };
    let product = inline(
        "product",
        "(function () { return $.round * $.size; })();",
        json!({ "round": "${rounds.output.iteration}", "size": "${workflow.input.size}" }),
    );
    let route = json!({ "name": "route", "taskReferenceName": "route", "type": "SWITCH",
        "evaluatorType": "javascript", "expression": "$.product > $.size",
        "inputParameters": { "product": "${product.output.result}",
            "size": "${workflow.input.size}" },
        "decisionCases": { "true": [simple_with("inspect", &json!({ "n": "${product.output.result}" }))] },
        "defaultCase": [inline("small", "'small'", json!({}))] });
    let rounds = json!({ "name": "rounds", "taskReferenceName": "rounds", "type": "DO_WHILE",
        "inputParameters": { "count": "${workflow.input.count}" },
        "loopCondition": "$.rounds['iteration'] < $.count", "loopOver": [product, route] });
    let last = inline(
        "last",
        "(function () { return { rounds: $.rounds, all: true }; })();",
        json!({ "rounds": "${rounds.output.iteration}" }),
    );
    let mut made = definition("made", &json!([rounds, last]));
    made["outputParameters"] =
        json!({ "rounds": "${last.output.result.rounds}", "all": "${last.output.result.all}" });
    let mut run = sub(
        "run",
        &json!({ "name": "made", "version": 1,
        "workflowDefinition": "${plan.output.made}" }),
    );
    run["inputParameters"] = json!({ "count": "${workflow.input.count}", "size": 5 });
    let mut parent = definition("parent", &json!([simple("plan"), run]));
    parent["outputParameters"] =
        json!({ "rounds": "${run.output.rounds}", "all": "${run.output.all}" });
    check.define(&parent);
    // As an object, and as text.
    for made in [made.clone(), json!(made.to_string())] {
        let key = check.start_workflow("parent", &json!({ "count": 2 }));
        check.assert_rows(key, "RUNNING", &["plan plan SCHEDULED"]);
        check.do_task("plan", &json!({ "made": made }));
        let rows = ["plan plan COMPLETED", "SUB_WORKFLOW run IN_PROGRESS"];
        check.assert_rows(key, "RUNNING", &rows);
        let child = check.child_of(key, "run");
        let rows = [
            "DO_WHILE rounds IN_PROGRESS",
            "INLINE product__1 COMPLETED",
            "SWITCH route__1 COMPLETED",
            "INLINE small__1 COMPLETED",
            "INLINE product__2 COMPLETED",
            "SWITCH route__2 COMPLETED",
            "inspect inspect__2 SCHEDULED",
        ];
        check.assert_rows(child, "RUNNING", &rows);
        let input = check.workflow(child)["input"].clone();
        assert_eq!(input["_systemMetadata"], json!({ "dynamic": true }));
        assert_eq!(check.do_task("inspect", &json!({}))["inputData"], json!({ "n": 10 }));
        check.assert_status(child, "COMPLETED");
        assert_eq!(check.workflow(key)["output"], json!({ "rounds": 2, "all": true }));
        check.assert_status(key, "COMPLETED");
        check.compare_rebuilt();
    }
}

#[test]
fn a_workflow_is_started_by_name_or_with_its_definition() {
    let mut check = Check::new();
    check.define(&definition("known", &json!([simple("t")])));
    let start = json!({ "name": "start", "taskReferenceName": "start", "type": "START_WORKFLOW",
        "inputParameters": { "startWorkflow": "${workflow.input.startWorkflow}" } });
    check.define(&definition("starter", &json!([start])));
    let task = simple_with("t", &json!({ "n": "${workflow.input.n}", "id": "${CPEWF_TASK_ID}" }));
    let unknown = definition("unknown", &json!([task]));
    for (request, correlation_id, domain) in [
        (json!({ "name": "known", "input": { "n": 1 } }), "mine", "blue"),
        (json!({ "name": "unknown", "workflowDef": unknown, "input": { "n": 1 } }), "mine", "blue"),
        (
            json!({ "name": "known", "correlationId": "its own", "input": { "n": 1 },
            "taskToDomain": { "t": "red" } }),
            "its own",
            "red",
        ),
    ] {
        let starter = json!({ "name": "starter", "correlationId": "mine",
            "input": { "startWorkflow": request }, "taskToDomain": { "t": "blue" } });
        let key = check.request_workflow(&starter).expect("it is known");
        check.assert_rows(key, "COMPLETED", &["START_WORKFLOW start COMPLETED"]);
        let started = id(&check.task_named(key, "start")["outputData"], "workflowId");
        let workflow = check.workflow(started);
        assert_eq!((&workflow["status"], &workflow["input"]["n"]), (&json!("RUNNING"), &json!(1)));
        assert_eq!(workflow["correlationId"], correlation_id);
        assert_eq!(workflow["parentWorkflowId"], Value::Null, "it stands for itself");
        assert_eq!(check.poll_domain(domain, "t", 1).len(), 1);
        check.compare_rebuilt();
    }
}

#[test]
fn a_start_of_nothing_fails_and_may_be_tried_again() {
    let mut check = Check::new();
    let start = json!({ "name": "start", "taskReferenceName": "start", "type": "START_WORKFLOW",
        "inputParameters": { "startWorkflow": "${workflow.input.startWorkflow}" } });
    check.define(&definition("starter", &json!([start])));
    for (request, reason) in [
        (json!({}), "Missing 'startWorkflow' in input data."),
        (json!({ "startWorkflow": { "what": 1 } }), "Workflow name cannot be null or empty"),
        (
            json!({ "startWorkflow": { "name": "later" } }),
            "No such workflow defined. name=later, version=null",
        ),
    ] {
        let key = check.start_workflow("starter", &request);
        check.assert_rows(key, "FAILED", &["START_WORKFLOW start FAILED"]);
        let why = check.task_named(key, "start")["reasonForIncompletion"].clone();
        assert!(why.as_str().is_some_and(|why| why.contains(reason)), "{why}");
        check.compare_rebuilt();
    }
    // With retries, by the definition of its name.
    check.define_task(&json!({ "name": "start", "retryCount": 1, "retryDelaySeconds": 5 }));
    let key = check.start_workflow("starter", &json!({ "startWorkflow": { "name": "later" } }));
    let rows = ["START_WORKFLOW start FAILED again", "START_WORKFLOW start SCHEDULED #1 of 1"];
    check.assert_rows(key, "RUNNING", &rows);
    check.define(&definition("later", &json!([simple("t")])));
    check.pass(5_000);
    check.settle();
    check.assert_status(key, "COMPLETED");
    check.do_task("t", &json!({}));
    check.compare_rebuilt();
}

#[test]
fn a_failure_workflow_is_told_what_failed() {
    let look = json!({ "name": "look", "taskReferenceName": "look", "type": "LAMBDA",
        "inputParameters": { "n": "${workflow.input.n}",
            "scriptExpression": "if ($.n == 1) { return { one: true }; } else { return { one: false }; }" } });
    let end = json!({ "name": "end", "taskReferenceName": "end", "type": "TERMINATE",
        "inputParameters": { "terminationStatus": "FAILED", "terminationReason": "enough",
            "workflowOutput": "${look.output}" } });
    let mut end_silently = end.clone();
    end_silently["inputParameters"]["terminationReason"] = Value::Null;
    let mut check = Check::new();
    check.define(&definition("mourn", &json!([look])));
    check.define(&definition("child", &json!([look, end_silently, simple("never")])));
    let below = sub("below", &json!({ "name": "child" }));
    for (tasks, rows, by, reason, output) in [
        (
            json!([look, end, simple("never")]),
            ["LAMBDA look COMPLETED", "TERMINATE end COMPLETED"],
            "end",
            "enough",
            json!({ "result": { "one": true } }),
        ),
        (
            json!([look, below, simple("never")]),
            ["LAMBDA look COMPLETED", "SUB_WORKFLOW below FAILED"],
            "below",
            "Workflow is FAILED by TERMINATE task",
            json!({}),
        ),
    ] {
        let mut fails = definition("w", &tasks);
        fails["failureWorkflow"] = json!("mourn");
        check.define(&fails);
        let request = json!({ "name": "w", "correlationId": "mine", "input": { "n": 1 } });
        let key = check.request_workflow(&request).expect("it is known");
        check.assert_rows(key, "FAILED", &rows);
        let workflow = check.workflow(key);
        let why = workflow["reasonForIncompletion"].to_string();
        assert!(why.contains(reason), "{why}");
        for (name, value) in output.as_object().expect("an object") {
            assert_eq!(workflow["output"][name], *value);
        }
        let mourning = id(&workflow["output"], "conductor.failure_workflow");
        check.assert_rows(mourning, "COMPLETED", &["LAMBDA look COMPLETED"]);
        let mourning = check.workflow(mourning);
        assert_eq!(mourning["correlationId"], "mine");
        let told = &mourning["input"];
        assert_eq!(told["workflowId"], workflow["workflowId"]);
        assert_eq!(told["failureTaskId"], check.task_named(key, by)["taskId"]);
        assert_eq!(told["failureStatus"], "FAILED");
        assert_eq!(told["reason"], workflow["reasonForIncompletion"]);
        assert_eq!(told["failedWorkflow"]["workflowId"], workflow["workflowId"]);
        check.compare_rebuilt();
    }
    // The output of the one below is that of its TERMINATE, and that it failed stands with it.
    let key = check.start_workflow("child", &json!({ "n": 1 }));
    check.assert_rows(key, "FAILED", &["LAMBDA look COMPLETED", "TERMINATE end COMPLETED"]);
    assert_eq!(check.workflow(key)["output"], json!({ "result": { "one": true } }));
}
