//! SWITCH and DECISION: one of the cases is gone on with.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskChanged, TaskStatus};

use super::script::{self, Evaluation};
use super::{change, finish, lenient, workflows};
use crate::conductor::plan::{Kind, Node, TaskNode};
use crate::conductor::state::Task;
use crate::kernel::Port;

/// Works out the case.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let (kind, json) = (task.node(&plan).kind, plan.task_json(task.node));
    let input = lenient::parse_object(&task.input);
    let (expression, is_script) = if kind == Kind::Switch {
        (lenient::text(json, "expression"), lenient::text(json, "evaluatorType") != "value-param")
    } else if lenient::text(json, "caseExpression").is_empty() {
        (lenient::text(json, "caseValueParam"), false)
    } else {
        (lenient::text(json, "caseExpression"), true)
    };
    if !is_script {
        let value = input.get(expression).cloned().unwrap_or_default();
        chosen(port, key, &value);
        return;
    }
    let input = Value::Object(input);
    match script::javascript(port, key, expression, &[("$", &input)]) {
        Evaluation::Done(value) => chosen(port, key, &value),
        Evaluation::Failed(problem) => finish(port, key, TaskStatus::Failed, None, &problem),
        Evaluation::Asked => {}
    }
}

/// The case is known.
pub(super) fn chosen<P: Port>(port: &mut P, key: Key, value: &Value) {
    let case = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let is_switch = task.node(&plan).kind == Kind::Switch;
    let mut input = lenient::parse_object(&task.input);
    input.insert("case".to_owned(), case.as_str().into());
    input.insert("hasChildren".to_owned(), "true".into());
    let input = Value::Object(input).to_string();
    let output = if is_switch {
        json!({ "evaluationResult": [case], "selectedCase": case })
    } else {
        json!({ "caseOutput": [case] })
    };
    let changed = TaskChanged {
        status: Some(TaskStatus::Completed),
        input: Some(&input),
        output: Some(&output.to_string()),
        ..TaskChanged::of(key)
    };
    change(port, changed);
}

/// Where the chosen case begins; `None` when it holds nothing.
pub(super) fn branch(task: &Task, node: &Node) -> Option<TaskNode> {
    let input = lenient::parse_object(&task.input);
    let case = input.get("case").and_then(Value::as_str).unwrap_or_default();
    let found = node.branches.iter().find(|(name, _)| **name == *case);
    match found {
        Some((_, first)) if node.kind == Kind::Switch || first.is_some() => *first,
        Some(_) | None => node.default_branch,
    }
}
