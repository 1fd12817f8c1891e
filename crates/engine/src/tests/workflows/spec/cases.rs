//! SWITCH and its old form DECISION, and EXCLUSIVE_JOIN behind them.

use serde_json::{Value, json};

use super::Step::{Done, Gives};
use super::{fork, join, simple, task};
use crate::verb::check::Check;

/// Both forms of a choice by a value of the input: how it is written, and where it says what it was.
const FORMS: [(&str, &str); 2] = [("SWITCH", "evaluationResult"), ("DECISION", "caseOutput")];

/// A choice by a value of the workflow's input.
fn choice(form: &str, name: &str, by: &str, cases: &Value, otherwise: &Value) -> Value {
    task(
        form,
        name,
        json!({ "inputParameters": { "by": format!("${{workflow.input.{by}}}") },
                "evaluatorType": "value-param", "expression": "by", "caseValueParam": "by",
                "decisionCases": cases, "defaultCase": otherwise }),
    )
}

#[test]
fn the_tasks_of_a_case_come_before_what_is_behind_the_choice() {
    for (form, _) in FORMS {
        let mut check = Check::new();
        let cases = json!({ "red": [simple("stop"), simple("look")], "green": [simple("go")] });
        let tasks = json!([choice(form, "light", "colour", &cases, &json!([])), simple("arrive")]);
        let key = check.start_tasks(&tasks, &json!({ "colour": "red" }));
        check.play(
            key,
            [
                (
                    Done("stop"),
                    &format!("RUNNING: light {form} COMPLETED, stop COMPLETED, look SCHEDULED"),
                ),
                (
                    Done("look"),
                    &format!(
                        "RUNNING: light {form} COMPLETED, stop COMPLETED, look COMPLETED, arrive \
                         SCHEDULED"
                    ),
                ),
                (
                    Done("arrive"),
                    &format!(
                        "COMPLETED: light {form} COMPLETED, stop COMPLETED, look COMPLETED, \
                         arrive COMPLETED"
                    ),
                ),
            ],
        );
        check.compare_rebuilt();
    }
}

#[test]
fn without_a_case_and_without_a_default_it_goes_on_behind_it() {
    for (form, output) in FORMS {
        let mut check = Check::new();
        let cases = json!({ "red": [simple("stop")] });
        let tasks = json!([choice(form, "light", "colour", &cases, &json!([])), simple("arrive")]);
        let key = check.start_tasks(&tasks, &json!({ "other": 1 }));
        check.assert_told(key, &format!("RUNNING: light {form} COMPLETED, arrive SCHEDULED"));
        // Nothing is a value too, and spelt out.
        assert_eq!(check.task(key, "light")["outputData"][output], json!(["null"]));
        check.step(key, Done("arrive"));
        check.assert_status(key, "COMPLETED");
        check.compare_rebuilt();
    }
}

#[test]
fn a_choice_in_a_branch_joins_by_the_last_task_of_its_case() {
    for (form, _) in FORMS {
        let mut check = Check::new();
        let cases = json!({ "red": [simple("stop"), simple("look"), simple("cross")] });
        let light = choice(form, "light", "colour", &cases, &json!([simple("ask")]));
        let key = check.start_tasks(
            &json!([
                fork("split", &json!([[light], [simple("hum")]])),
                join("merge", &json!(["cross", "hum"])),
            ]),
            &json!({ "colour": "red" }),
        );
        check.assert_told(
            key,
            &format!(
                "RUNNING: split FORK COMPLETED, light {form} COMPLETED, hum SCHEDULED, stop \
                 SCHEDULED, merge JOIN IN_PROGRESS"
            ),
        );
        for done in ["stop", "hum", "look"] {
            check.step(key, Done(done));
        }
        check.assert_told(
            key,
            &format!(
                "RUNNING: split FORK COMPLETED, light {form} COMPLETED, hum COMPLETED, stop \
                 COMPLETED, merge JOIN IN_PROGRESS, look COMPLETED, cross SCHEDULED"
            ),
        );
        check.step(key, Done("cross"));
        check.assert_told(
            key,
            &format!(
                "COMPLETED: split FORK COMPLETED, light {form} COMPLETED, hum COMPLETED, stop \
                 COMPLETED, merge JOIN COMPLETED, look COMPLETED, cross COMPLETED"
            ),
        );
        check.compare_rebuilt();
    }
}

#[test]
fn choices_nest_and_follow_each_other() {
    for (form, output) in FORMS {
        // The input; the task of the case; what each choice says it was; whether `tell` comes.
        for (input, done, results, tells) in [
            (json!({ "first": "else", "second": "two" }), "fallback", vec!["else", "null"], false),
            (json!({ "first": "more", "second": "two" }), "b", vec!["more", "two", "null"], false),
            (json!({ "first": "more", "second": "one" }), "a", vec!["more", "one", "null"], false),
            (json!({ "first": "three", "last": "tell" }), "c", vec!["three", "tell"], true),
        ] {
            let mut check = Check::new();
            let inner = json!({ "one": [simple("a")], "two": [simple("b")] });
            let inner = choice(form, "inner", "second", &inner, &json!([]));
            let outer = json!({ "more": [inner], "three": [simple("c")] });
            let tasks = json!([
                choice(form, "outer", "first", &outer, &json!([simple("fallback")])),
                choice(form, "last", "last", &json!({ "tell": [simple("tell")] }), &json!([])),
            ]);
            let key = check.start_tasks(&tasks, &input);
            check.step(key, Done(done));
            if tells {
                check.step(key, Done("tell"));
            }
            check.assert_status(key, "COMPLETED");
            let workflow = check.workflow(key);
            let tasks = workflow["tasks"].as_array().expect("a list");
            let said: Vec<&str> = tasks
                .iter()
                .filter(|task| task["taskType"] == form)
                .map(|task| task["outputData"][output][0].as_str().expect("text"))
                .collect();
            assert_eq!(said, results, "{input}");
            assert_eq!(tasks.len(), results.len() + 1 + usize::from(tells), "{input}");
            check.compare_rebuilt();
        }
    }
}

/// `ask`, then along a tree of choices; the join takes over what the last task on the way gave.
fn tree() -> Value {
    let branch = |first: &str, by: &str, second: &str| {
        let deeper = json!({ "true": [simple(second)] });
        json!([simple(first), choice("DECISION", by, by, &deeper, &json!([]))])
    };
    let cases =
        json!({ "true": branch("walk", "far", "ride"), "false": branch("wait", "long", "sit") });
    let meet =
        json!({ "joinOn": ["ride", "sit"], "defaultExclusiveJoinTask": ["walk", "wait", "ask"] });
    json!([
        simple("ask"),
        choice("DECISION", "leave", "leave", &cases, &json!([])),
        task("EXCLUSIVE_JOIN", "meet", meet),
    ])
}

#[test]
fn an_exclusive_join_takes_the_one_way_that_was_gone() {
    for (input, way, choices) in [
        (json!({ "leave": "no idea" }), vec!["ask"], 1),
        (json!({ "leave": "true", "far": "no idea" }), vec!["ask", "walk"], 2),
        (json!({ "leave": "true", "far": "true" }), vec!["ask", "walk", "ride"], 2),
        (json!({ "leave": "false", "long": "no idea" }), vec!["ask", "wait"], 2),
        (json!({ "leave": "false", "long": "true" }), vec!["ask", "wait", "sit"], 2),
    ] {
        let mut check = Check::new();
        let key = check.start_tasks(&tree(), &input);
        for done in way.iter().copied() {
            check.assert_status(key, "RUNNING");
            check.step(key, Gives(done, json!({ "was": done })));
        }
        check.assert_status(key, "COMPLETED");
        let meet = check.task(key, "meet");
        assert_eq!(meet["status"], "COMPLETED");
        assert_eq!(meet["outputData"], json!({ "was": way.last() }), "{input}");
        assert_eq!(meet["seq"], way.len() + choices + 1, "{input}");
        check.compare_rebuilt();
    }
}
