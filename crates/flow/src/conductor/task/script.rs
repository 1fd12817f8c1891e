//! INLINE, LAMBDA and JSON_JQ_TRANSFORM, and the scripts of SWITCH and DO_WHILE. What is simple is
//! evaluated here; the rest is asked of a sandbox, as a job of a queue that no face shows, and the
//! task waits for it.

use serde_json::{Map, Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{EVALUATION_QUEUE, TaskStatus, WorkflowEvent};

use super::{do_while, emit, finish, fits, lenient, switch, under_way, workflows};
use crate::conductor::plan::Kind;
use crate::conductor::script::{self, STEPS_DEFAULT, ScriptError};
use crate::kernel::{NewTaskJob, Port};

/// What came of a script.
pub(super) enum Evaluation {
    /// A value.
    Done(Value),
    /// It failed, for good.
    Failed(String),
    /// A sandbox was asked; [`evaluated`] has the answer.
    Asked,
}

/// Evaluates JavaScript.
pub(super) fn javascript<P: Port>(
    port: &mut P,
    task: Key,
    source: &str,
    bindings: &[(&str, &Value)],
) -> Evaluation {
    match script::evaluate(source, bindings, STEPS_DEFAULT) {
        Ok(value) => Evaluation::Done(value),
        Err(ScriptError::Failed(problem)) => Evaluation::Failed(problem),
        // What takes long here may be quick there.
        Err(ScriptError::Unsupported | ScriptError::Budget) => {
            ask(port, task, "javascript", source, bindings)
        }
    }
}

fn ask<P: Port>(
    port: &mut P,
    task: Key,
    language: &str,
    source: &str,
    bindings: &[(&str, &Value)],
) -> Evaluation {
    let bindings: Map<String, Value> =
        bindings.iter().map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect();
    let payload = json!({
        "language": language, "form": "expression", "script": source, "bindings": bindings
    });
    let payload = payload.to_string().into_bytes();
    if let Err(problem) = fits(port, payload.len()) {
        return Evaluation::Failed(problem);
    }
    let job = port.create_task_job(&NewTaskJob {
        queue: EVALUATION_QUEUE.into(),
        job_type: EVALUATION_QUEUE.into(),
        payload: payload.into(),
        ..NewTaskJob::default()
    });
    emit(port, WorkflowEvent::TaskJobAttached { task, job, evaluates: true });
    Evaluation::Asked
}

/// Evaluates what the task is about.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let (kind, json) = (task.node(&plan).kind, plan.task_json(task.node));
    let input = Value::Object(lenient::parse_object(&task.input));
    let written = |field: &str| {
        let given = lenient::text(&input, field);
        if given.is_empty() { lenient::text(json, field).to_owned() } else { given.to_owned() }
    };
    if kind == Kind::Jq {
        let asked = ask(port, key, "jq", &written("queryExpression"), &[("$", &input)]);
        came(port, key, asked);
        return;
    }
    if kind == Kind::Lambda {
        let body = script::function(&written("scriptExpression"));
        run(port, key, &body, &input);
        return;
    }
    match lenient::text(&input, "evaluatorType") {
        "value-param" => {
            let value = input.get(written("expression")).cloned().unwrap_or_default();
            finish(port, key, TaskStatus::Completed, Some(&json!({ "result": value })), "");
        }
        "" | "javascript" | "graaljs" => run(port, key, &written("expression"), &input),
        other => {
            let problem = format!("the evaluator '{other}' is not built in");
            finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        }
    }
}

fn run<P: Port>(port: &mut P, key: Key, source: &str, input: &Value) {
    let came_of_it = javascript(port, key, source, &[("$", input)]);
    came(port, key, came_of_it);
}

fn came<P: Port>(port: &mut P, key: Key, evaluation: Evaluation) {
    match evaluation {
        Evaluation::Done(value) => done(port, key, Ok(json!({ "value": value }))),
        Evaluation::Failed(problem) => done(port, key, Err(problem)),
        Evaluation::Asked => under_way(port, key),
    }
}

/// A sandbox has answered: `{"value"}`, for jq also `{"values"}`, or why it failed.
pub(crate) fn evaluated<P: Port>(port: &mut P, key: Key, answer: Result<Value, String>) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let kind = task.node(&plan).kind;
    match (kind, answer) {
        (Kind::Switch | Kind::Decision, Ok(answer)) => {
            let value = answer.get("value").cloned().unwrap_or_default();
            switch::chosen(port, key, &value);
        }
        (Kind::DoWhile, Ok(answer)) => {
            do_while::decided(port, key, &answer.get("value").cloned().unwrap_or_default());
        }
        (Kind::Switch | Kind::Decision, Err(problem)) => {
            finish(port, key, TaskStatus::Failed, None, &problem);
        }
        (Kind::DoWhile, Err(problem)) => {
            finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        }
        (_, answer) => done(port, key, answer),
    }
}

fn done<P: Port>(port: &mut P, key: Key, answer: Result<Value, String>) {
    let state = workflows(port);
    let task = state.known_task(key);
    let kind = task.node(&state.plan_of(task)).kind;
    match answer {
        Ok(answer) => {
            let mut output = json!({ "result": answer.get("value").cloned().unwrap_or_default() });
            if let (Kind::Jq, Value::Object(output)) = (kind, &mut output) {
                let all = answer.get("values").cloned().unwrap_or_default();
                output.insert("resultList".to_owned(), all);
            }
            finish(port, key, TaskStatus::Completed, Some(&output), "");
        }
        Err(problem) => {
            let status = if kind == Kind::Inline {
                TaskStatus::FailedWithTerminalError
            } else {
                TaskStatus::Failed
            };
            finish(port, key, status, Some(&json!({ "error": problem })), &problem);
        }
    }
}
