//! DO_WHILE: what its rounds consist of, and when there is another one.

use serde_json::{Value, json};

use super::Step::{Completes, Done};
use super::{definition, fork, join, rounds, runs, simple, task, wait};
use crate::tests::workflows::simple_with;
use crate::verb::check::Check;

/// `first`, then `left` beside `right`.
fn body() -> Value {
    json!([
        simple("first"),
        fork("split", &json!([[simple("left")], [simple("right")]])),
        join("merge", &json!(["left", "right"])),
    ])
}

fn lambda(name: &str, input: Value, script: &str) -> Value {
    let mut input = input;
    input["scriptExpression"] = json!(script);
    task("LAMBDA", name, json!({ "inputParameters": input }))
}

fn jq(name: &str, of: &str, query: &str) -> Value {
    let input = json!({ "of": of, "queryExpression": query });
    task("JSON_JQ_TRANSFORM", name, json!({ "inputParameters": input }))
}

#[test]
fn a_round_is_all_its_tasks() {
    let mut check = Check::new();
    let key = check.start_tasks(&json!([rounds("loop", &body())]), &json!({ "rounds": 1 }));
    check.assert_told(key, "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 SCHEDULED");
    check.play(
        key,
        [
            (
                Done("first"),
                "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 COMPLETED, split__1 FORK COMPLETED, \
                 left__1 SCHEDULED, right__1 SCHEDULED, merge__1 JOIN IN_PROGRESS",
            ),
            (
                Done("left"),
                "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 COMPLETED, split__1 FORK COMPLETED, \
                 left__1 COMPLETED, right__1 SCHEDULED, merge__1 JOIN IN_PROGRESS",
            ),
            (
                Done("right"),
                "COMPLETED: loop DO_WHILE COMPLETED, first__1 COMPLETED, split__1 FORK COMPLETED, \
                 left__1 COMPLETED, right__1 COMPLETED, merge__1 JOIN COMPLETED",
            ),
        ],
    );
    check.compare_rebuilt();
}

#[test]
fn loops_follow_each_other() {
    let mut check = Check::new();
    let second = task(
        "DO_WHILE",
        "again",
        json!({ "loopCondition": "$.again['iteration'] < 1", "loopOver": [simple("last")] }),
    );
    let key = check.start_tasks(&json!([rounds("loop", &body()), second]), &json!({ "rounds": 2 }));
    for round in 1..=2 {
        for name in ["first", "left", "right"] {
            let task = check.do_task(name, &json!({}));
            assert_eq!(task["referenceTaskName"], format!("{name}__{round}"));
            assert_eq!((&task["iteration"], &task["loopOverTask"]), (&json!(round), &json!(true)));
        }
    }
    let of_round = |round: u32| {
        let tasks = ["first", "split FORK", "left", "right", "merge JOIN"];
        let shown = tasks.map(|task| match task.split_once(' ') {
            Some((name, kind)) => format!("{name}__{round} {kind} COMPLETED"),
            None => format!("{task}__{round} COMPLETED"),
        });
        shown.join(", ")
    };
    let before = format!("loop DO_WHILE COMPLETED, {}, {}", of_round(1), of_round(2));
    check.assert_told(
        key,
        &format!("RUNNING: {before}, again DO_WHILE IN_PROGRESS, last__1 SCHEDULED"),
    );
    check.step(key, Done("last"));
    check.assert_told(
        key,
        &format!("COMPLETED: {before}, again DO_WHILE COMPLETED, last__1 COMPLETED"),
    );
    check.compare_rebuilt();
}

#[test]
fn a_loop_says_which_round_it_is_in() {
    let mut check = Check::new();
    let body = json!([simple_with(
        "work",
        &json!({
            "round": "${loop['iteration']}", "also": "${loop.iteration}",
            "output": "${loop.output.iteration}"
        })
    )]);
    let after = simple_with("after", &json!({ "rounds": "${loop.iteration}" }));
    let key = check.start_tasks(&json!([rounds("loop", &body), after]), &json!({ "rounds": 3 }));
    for round in 1..=3 {
        let looping = check.task(key, "loop");
        assert_eq!(looping["iteration"], round);
        assert_eq!(looping["loopOverTask"], true);
        let work = check.do_task("work", &json!({}));
        assert_eq!(work["inputData"], json!({ "round": round, "also": round, "output": round }));
    }
    assert_eq!(check.task(key, "loop")["iteration"], 3);
    let after = check.do_task("after", &json!({}));
    assert_eq!(after["inputData"], json!({ "rounds": 3 }));
    assert_eq!((&after["iteration"], &after["loopOverTask"]), (&json!(0), &json!(false)));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn scripts_queries_and_workers_take_their_turns_in_a_round() {
    let mut check = Check::new();
    let body = json!([
        lambda("place", json!({}), "return { at: 'here' };"),
        jq("frame", "${place.output.result.at}", "{ framed: .of }"),
        simple("one"),
        jq("shrink", "${frame.output.result.framed}", ".of"),
        simple_with("two", &json!({ "shrunk": "${shrink.output.result}" })),
    ]);
    let key = check
        .start_tasks(&json!([rounds("loop", &body), simple("after")]), &json!({ "rounds": 2 }));
    for _ in 0..2 {
        check
            .evaluated(&json!({ "value": { "framed": "here" }, "values": [{ "framed": "here" }] }));
        check.step(key, Done("one"));
        check.evaluated(&json!({ "value": "here", "values": ["here"] }));
        assert_eq!(check.do_task("two", &json!({}))["inputData"], json!({ "shrunk": "here" }));
    }
    check.assert_told(
        key,
        "RUNNING: loop DO_WHILE COMPLETED, place__1 LAMBDA COMPLETED, frame__1 JSON_JQ_TRANSFORM \
         COMPLETED, one__1 COMPLETED, shrink__1 JSON_JQ_TRANSFORM COMPLETED, two__1 COMPLETED, \
         place__2 LAMBDA COMPLETED, frame__2 JSON_JQ_TRANSFORM COMPLETED, one__2 COMPLETED, \
         shrink__2 JSON_JQ_TRANSFORM COMPLETED, two__2 COMPLETED, after SCHEDULED",
    );
    let frame = check.task(key, "frame__2");
    assert_eq!(frame["inputData"]["of"], "here");
    assert_eq!(frame["outputData"]["resultList"], json!([{ "framed": "here" }]));
    check.step(key, Done("after"));
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn rounds_that_need_no_worker_follow_each_other_at_once_however_many() {
    for count in [2, 500] {
        let mut check = Check::new();
        let index = json!({ "index": "${loop['iteration']}" });
        let body = json!([lambda("count", index, "return $.index - 1;")]);
        let tasks = json!([rounds("loop", &body), simple("after")]);
        let key = check.start_tasks(&tasks, &json!({ "rounds": count }));
        let workflow = check.workflow(key);
        let tasks = workflow["tasks"].as_array().expect("a list");
        assert_eq!(tasks.len(), count + 2);
        assert_eq!(
            (&tasks[0]["status"], &tasks[0]["iteration"]),
            (&json!("COMPLETED"), &json!(count))
        );
        for (round, task) in tasks.iter().enumerate().skip(1).take(count) {
            assert_eq!(task["status"], "COMPLETED");
            assert_eq!(task["iteration"], round);
            assert_eq!(task["outputData"]["result"], round - 1);
        }
        assert_eq!(tasks[count + 1]["iteration"], 0);
        check.step(key, Done("after"));
        check.assert_status(key, "COMPLETED");
        check.compare_rebuilt();
    }
}

#[test]
fn a_workflow_in_a_round_is_waited_for() {
    let mut check = Check::new();
    check.define(&definition("child", &json!([simple("inner")])));
    let mut tasks = body();
    tasks.as_array_mut().expect("a list").push(runs("below", "child"));
    let key = check.start_tasks(&json!([rounds("loop", &tasks)]), &json!({ "rounds": 1 }));
    for done in ["first", "left", "right"] {
        check.step(key, Done(done));
    }
    check.assert_told(
        key,
        "RUNNING: loop DO_WHILE IN_PROGRESS, first__1 COMPLETED, split__1 FORK COMPLETED, left__1 \
         COMPLETED, right__1 COMPLETED, merge__1 JOIN COMPLETED, below__1 SUB_WORKFLOW IN_PROGRESS",
    );
    let child = check.child(key, "below__1");
    check.assert_told(child, "RUNNING: inner SCHEDULED");
    check.step(key, Done("inner"));
    check.assert_told(child, "COMPLETED: inner COMPLETED");
    assert_eq!(check.task(key, "below__1")["status"], "COMPLETED");
    check.assert_status(key, "COMPLETED");
    check.compare_rebuilt();
}

#[test]
fn a_loop_in_a_branch_is_joined() {
    let mut check = Check::new();
    let key = check.start_tasks(
        &json!([
            fork(
                "split",
                &json!([
                    [rounds("loop", &json!([simple("one"), simple("two")]))],
                    [simple("beside")]
                ])
            ),
            join("merge", &json!(["loop", "beside"])),
        ]),
        &json!({ "rounds": 1 }),
    );
    let shown = |check: &Check| {
        let names = ["split", "loop", "beside", "merge", "one__1"];
        names.map(|name| check.task(key, name)["status"].as_str().expect("text").to_owned())
    };
    assert_eq!(
        shown(&check),
        ["COMPLETED", "IN_PROGRESS", "SCHEDULED", "IN_PROGRESS", "SCHEDULED"]
    );
    check.step(key, Done("one"));
    check.step(key, Done("two"));
    assert_eq!(shown(&check), ["COMPLETED", "COMPLETED", "SCHEDULED", "IN_PROGRESS", "COMPLETED"]);
    check.step(key, Done("beside"));
    assert_eq!(shown(&check), ["COMPLETED"; 5]);
    check.assert_status(key, "COMPLETED");
    assert_eq!(check.workflow(key)["tasks"].as_array().map(Vec::len), Some(6));
    check.compare_rebuilt();
}

#[test]
fn a_condition_sees_what_the_loop_was_given_when_it_began() {
    let mut check = Check::new();
    let value = json!({ "value": "${workflow.variables.value}" });
    let set = task("SET_VARIABLE", "set", json!({ "inputParameters": { "value": "0" } }));
    let tasks = json!([task(
        "DO_WHILE",
        "loop",
        json!({ "inputParameters": value, "loopOver": [set],
                "loopCondition": "if ($.value > 0) { true; } else { false; }" }),
    )]);
    let key = check.start_tasks(&tasks, &json!({ "value": 2 }));
    check.assert_told(key, "COMPLETED: loop DO_WHILE COMPLETED, set__1 SET_VARIABLE COMPLETED");
    assert_eq!(check.task(key, "set__1")["inputData"], json!({ "value": "0" }));
    assert_eq!(check.workflow(key)["variables"], json!({ "value": "0" }));
    check.compare_rebuilt();
}

#[test]
fn a_case_in_a_round_is_done_to_its_end_before_the_next_round() {
    let mut check = Check::new();
    let inline = |name: &str, input: Value| {
        let mut input = input;
        input["evaluatorType"] = json!("javascript");
        task("INLINE", name, json!({ "inputParameters": input }))
    };
    let read = inline(
        "read",
        json!({ "list": "${workflow.input.list}", "round": "${loop.output.iteration}",
                "expression": "$.list[$.round - 1]" }),
    );
    let add = inline("add", json!({ "it": "${read.output.result}", "expression": "$.it + 10" }));
    let choose = task(
        "SWITCH",
        "choose",
        json!({ "inputParameters": { "it": "${read.output.result}" },
                "evaluatorType": "javascript", "expression": "$.it > 0",
                "decisionCases": { "true": [wait("hold"), add] } }),
    );
    let tasks = json!([task(
        "DO_WHILE",
        "loop",
        json!({ "inputParameters": { "list": "${workflow.input.list}" },
                "loopCondition": "$.loop['iteration'] < $.list.length",
                "loopOver": [read, choose] }),
    )]);
    let key = check.start_tasks(&tasks, &json!({ "list": [1, 2] }));
    let first = "read__1 INLINE COMPLETED, choose__1 SWITCH COMPLETED";
    let second = "add__1 INLINE COMPLETED, read__2 INLINE COMPLETED, choose__2 SWITCH COMPLETED";
    check.assert_told(
        key,
        &format!("RUNNING: loop DO_WHILE IN_PROGRESS, {first}, hold__1 WAIT IN_PROGRESS"),
    );
    check.play(
        key,
        [
            (
                Completes("hold__1"),
                &format!(
                    "RUNNING: loop DO_WHILE IN_PROGRESS, {first}, hold__1 WAIT COMPLETED, \
                     {second}, hold__2 WAIT IN_PROGRESS"
                ),
            ),
            (
                Completes("hold"),
                &format!(
                    "COMPLETED: loop DO_WHILE COMPLETED, {first}, hold__1 WAIT COMPLETED, \
                     {second}, hold__2 WAIT COMPLETED, add__2 INLINE COMPLETED"
                ),
            ),
        ],
    );
    assert_eq!(check.task(key, "loop")["iteration"], 2);
    assert_eq!(check.task(key, "add__2")["outputData"], json!({ "result": 12 }));
    check.compare_rebuilt();
}
