//! Queries, and tasks that somebody else completes. What a query gives is what the sandbox said.

use serde_json::{Value, json};
use windlass_record::command::{Bytes, Command, FailJob, FailureKind, Lease};
use windlass_record::workflow::{EVALUATION_QUEUE, WorkflowVerb};

use super::Step::{Completes, Done, Is};
use super::{definition, rerun_with, runs, simple, task};
use crate::verb::check::Check;

const QUERY: &str = ".of as $it | { out: ($it.a.list + $it.b.list) }";

fn query(name: &str, input: Value) -> Value {
    task("JSON_JQ_TRANSFORM", name, json!({ "inputParameters": input }))
}

fn lists() -> Value {
    json!([query("add", json!({ "of": "${workflow.input}", "queryExpression": QUERY }))])
}

#[test]
fn a_query_gives_its_first_result_and_all() {
    let mut check = Check::new();
    let input = json!({ "a": { "list": ["a"] }, "b": { "list": ["b"] } });
    let key = check.start_tasks(&lists(), &input);
    check.assert_told(key, "RUNNING: add JSON_JQ_TRANSFORM IN_PROGRESS");
    let out = json!({ "out": ["a", "b"] });
    check.evaluated(&json!({ "value": out, "values": [out] }));
    check.assert_told(key, "COMPLETED: add JSON_JQ_TRANSFORM COMPLETED");
    let output = &check.task(key, "add")["outputData"];
    assert_eq!(*output, json!({ "result": out, "resultList": [out] }));
    check.compare_rebuilt();
}

/// The sandbox says that a script failed.
fn refused(check: &mut Check, problem: &str) {
    let job = check.take_built_in(EVALUATION_QUEUE);
    let failed = FailJob {
        lease: Lease { key: job, activation: None },
        message: problem.into(),
        retries: None,
        backoff_ms: None,
        progressed: false,
        variables: Bytes::default(),
        kind: FailureKind::Permanent,
    };
    check.give(Command::FailJob(failed)).expect("it is at work");
    check.settle();
}

#[test]
fn a_query_that_fails_fails_its_task_and_a_rerun_gives_it_another_input() {
    let mut check = Check::new();
    let key = check.start_tasks(&lists(), &json!({ "a": "x", "b": "y" }));
    refused(&mut check, "cannot index \"x\" with \"list\"");
    check.assert_told(key, "FAILED: add JSON_JQ_TRANSFORM FAILED");
    let add = check.task(key, "add");
    assert_eq!(add["reasonForIncompletion"], "cannot index \"x\" with \"list\"");
    assert_eq!(add["outputData"]["error"], add["reasonForIncompletion"]);
    let better = json!({ "of": { "a": { "list": ["a"] }, "b": { "list": ["b"] } },
        "queryExpression": QUERY });
    check.step(key, rerun_with(&add, &better));
    check.evaluated(&json!({ "value": 1, "values": [1] }));
    check.assert_told(key, "COMPLETED: add JSON_JQ_TRANSFORM COMPLETED");
    let again = check.task(key, "add");
    assert_eq!((&again["inputData"], &again["taskId"]), (&better, &add["taskId"]));
    assert_eq!(again["outputData"], json!({ "result": 1, "resultList": [1] }));
    check.compare_rebuilt();
}

#[test]
fn a_query_may_come_out_of_another_one() {
    let mut check = Check::new();
    let tasks = json!([
        query("defaults", json!({ "of": "${workflow.input}", "queryExpression": ".of" })),
        query(
            "apply",
            json!({ "who": "${workflow.input.who}",
            "queryExpression": "${defaults.output.result.query}" })
        ),
    ]);
    let key =
        check.start_tasks(&tasks, &json!({ "who": { "name": "bear" }, "query": ".who.name" }));
    let first = json!({ "query": ".who.name", "how": "GET" });
    check.evaluated(&json!({ "value": first, "values": [first] }));
    let apply = check.task(key, "apply");
    assert_eq!(
        apply["inputData"],
        json!({ "who": { "name": "bear" }, "queryExpression": ".who.name" })
    );
    check.evaluated(&json!({ "value": "bear", "values": ["bear"] }));
    check.assert_told(
        key,
        "COMPLETED: defaults JSON_JQ_TRANSFORM COMPLETED, apply JSON_JQ_TRANSFORM COMPLETED",
    );
    check.compare_rebuilt();
}

#[test]
fn choices_go_by_what_queries_gave() {
    let mut check = Check::new();
    let names = query(
        "names",
        json!({ "of": [{ "name": "again" }], "queryExpression": ".of | map(.name)" }),
    );
    let inner = task(
        "DECISION",
        "inner",
        json!({ "inputParameters": { "asked": "${workflow.input.asked}",
                                     "known": "${names.output.result}" },
                "caseExpression": "if ($.known.indexOf($.asked) >= 0) { 'true' } else { 'false' }",
                "decisionCases": { "false": [simple("complain")] } }),
    );
    let outer = task(
        "DECISION",
        "outer",
        json!({ "inputParameters": { "way": "${first.output.result}" }, "caseValueParam": "way",
                "decisionCases": { "CREATE": [names, inner] } }),
    );
    let first = query("first", json!({ "queryExpression": "\"CREATE\"" }));
    let key = check.start_tasks(&json!([first, outer]), &json!({ "asked": "again" }));
    check.evaluated(&json!({ "value": "CREATE", "values": ["CREATE"] }));
    let all = json!(["again", "other", "third"]);
    check.evaluated(&json!({ "value": all, "values": [all] }));
    check.assert_told(
        key,
        "COMPLETED: first JSON_JQ_TRANSFORM COMPLETED, outer DECISION COMPLETED, names \
         JSON_JQ_TRANSFORM COMPLETED, inner DECISION COMPLETED",
    );
    assert_eq!(check.task(key, "outer")["inputData"]["case"], "CREATE");
    assert_eq!(check.task(key, "inner")["inputData"]["case"], "true");
    check.compare_rebuilt();
}

#[test]
fn a_system_task_that_somebody_else_completes_waits_for_that() {
    let mut check = Check::new();
    let call = json!({ "inputParameters": { "uri": "http://there", "method": "GET" },
                       "asyncComplete": true });
    let key = check.start_tasks(&json!([simple("one"), task("HTTP", "call", call)]), &json!({}));
    check.play(key, [(Done("one"), "RUNNING: one COMPLETED, call HTTP SCHEDULED")]);
    let job = check.take_built_in("conductor/HTTP");
    check.done(job, "{\"response\":{\"statusCode\":202}}");
    check.play(
        key,
        [
            (Is(WorkflowVerb::Decide), "RUNNING: one COMPLETED, call HTTP IN_PROGRESS"),
            (Completes("call"), "COMPLETED: one COMPLETED, call HTTP COMPLETED"),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn looking_at_a_workflow_again_and_again_starts_nothing_twice() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([simple("inner")])));
    let key = check.start_tasks(&json!([simple("one"), runs("below", "child")]), &json!({}));
    check.step(key, Done("one"));
    let child = check.child(key, "below");
    for _ in 0..5 {
        check.play(
            key,
            [(Is(WorkflowVerb::Decide), "RUNNING: one COMPLETED, below SUB_WORKFLOW IN_PROGRESS")],
        );
    }
    assert_eq!(check.child(key, "below"), child);
    assert_eq!(check.poll_tasks("inner", 9).len(), 1);
    check.assert_told(child, "RUNNING: inner IN_PROGRESS");
    check.compare_rebuilt();
}
