//! FORK_JOIN and FORK_JOIN_DYNAMIC: branches begin, a bounded number at a time, and then the JOIN.

use serde_json::{Map, Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskChanged, TaskStatus, WorkflowEvent};

use super::{Place, change, emit, finish, fits, lenient, schedule, under_way, workflows};
use crate::conductor::plan::{Plan, TaskNode, problems};
use crate::conductor::state::Workflows;
use crate::kernel::{FAN_OUT_MAX, Port, STEP_BYTES_MAX};

/// The field of an added task with what its fork gives it.
pub(crate) const FORKED_INPUT: &str = "_forkedInput";

/// Begins the branches that are written down.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    under_way(port, key);
    emit(port, WorkflowEvent::TaskQueued { task: key });
}

/// Begins branches that the input names.
pub(super) fn begin_dynamic<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let input = lenient::parse_object(&task.input);
    let bound = usize::try_from(port.bounds().loop_items_max).unwrap_or(usize::MAX);
    let added = branches(state, key, plan.task_json(task.node), &input, bound);
    let added = added.and_then(|added| compiled(port, added));
    let (added, compiled) = match added {
        Ok(added) => added,
        Err(problem) => {
            finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
            return;
        }
    };
    let references = references(&compiled, &Place::of(workflows(port).known_task(key)));
    emit(port, WorkflowEvent::TasksAdded { task: key, tasks: &added });
    let input = json!({ "forkedTasks": references }).to_string();
    let status = Some(TaskStatus::InProgress);
    change(port, TaskChanged { status, input: Some(&input), ..TaskChanged::of(key) });
    emit(port, WorkflowEvent::TaskQueued { task: key });
}

/// Added tasks as they are kept, and what they mean.
fn compiled<P: Port>(port: &P, added: Vec<Value>) -> Result<(String, Plan), String> {
    let added = Value::Array(added);
    let text = added.to_string();
    fits(port, text.len())?;
    let compiled = Plan::compile_added(added);
    match problems(&compiled).into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok((text, compiled)),
    }
}

/// The reference names of added branches.
fn references(added: &Plan, place: &Place) -> Vec<String> {
    added.first.iter().map(|first| place.reference(&added.node(*first).reference)).collect()
}

/// The reference names of the branches of a dynamic fork, which its JOIN waits for.
pub(super) fn added_references(state: &Workflows, key: Key) -> Vec<String> {
    let Some(task) = state.task(key) else { return Vec::new() };
    let place = Place::of(task);
    task.added_plan.as_ref().map(|added| references(added, &place)).unwrap_or_default()
}

/// The tasks of the branches, in any of the three forms.
fn branches(
    state: &Workflows,
    key: Key,
    json: &Value,
    input: &Map<String, Value>,
    bound: usize,
) -> Result<Vec<Value>, String> {
    let within = |list: Option<&Value>| {
        let count = list.and_then(Value::as_array).map_or(0, Vec::len);
        if count <= bound {
            return Ok(());
        }
        Err(format!("{count} branches of a dynamic fork: more than the bound of {bound}"))
    };
    let task = state.known_task(key);
    let tasks_parameter = lenient::text(json, "dynamicForkTasksParam");
    if !tasks_parameter.is_empty() {
        let inputs_parameter = lenient::text(json, "dynamicForkTasksInputParamName");
        within(input.get(tasks_parameter))?;
        return written(input.get(tasks_parameter), input.get(inputs_parameter));
    }
    let name = input.get("forkTaskName").and_then(Value::as_str);
    let workflow = input.get("forkTaskWorkflow").and_then(Value::as_str);
    if name.is_some() || workflow.is_some() {
        // Another dynamic fork may have run already: names are told apart.
        let forks = state.known(task.workflow).tasks.iter().filter(|other| {
            **other != key && state.task(**other).is_some_and(|it| !it.added.is_empty())
        });
        let prefix = if forks.count() > 0 { format!("_{}", task.reference) } else { String::new() };
        within(input.get("forkTaskInputs"))?;
        return one_for_each(&prefix, name, workflow, input);
    }
    let parameter = lenient::text(json, "dynamicForkJoinTasksParam");
    let list = input.get(parameter).and_then(|list| list.get("dynamicTasks").or(Some(list)));
    within(list)?;
    match list {
        Some(Value::Array(list)) => Ok(list.iter().map(legacy).collect()),
        Some(_) | None => Err(format!(
            "Input '{parameter}' is invalid. Cannot create a dynamic fork: a list is expected"
        )),
    }
}

fn written(tasks: Option<&Value>, inputs: Option<&Value>) -> Result<Vec<Value>, String> {
    let Some(Value::Array(tasks)) = tasks else {
        return Err("The dynamic tasks of a fork must be a list of tasks".to_owned());
    };
    let Some(Value::Object(inputs)) = inputs else {
        let found = inputs.unwrap_or(&Value::Null);
        return Err(format!(
            "Input to the dynamically forked tasks is not a map -> expecting a map of K,V  but \
             found {found}"
        ));
    };
    let with_input = |task: &Value| {
        let reference = lenient::text(task, "taskReferenceName");
        let own = match inputs.get(reference) {
            Some(Value::Object(own)) => own.clone(),
            Some(Value::Null) | None => Map::new(),
            Some(other) => {
                return Err(format!(
                    "Tasks could not be dynamically forked due to invalid input: that of \
                     {reference} is {other}"
                ));
            }
        };
        let mut task = task.clone();
        if let Value::Object(task) = &mut task {
            task.insert(FORKED_INPUT.to_owned(), Value::Object(own));
        }
        Ok(task)
    };
    tasks.iter().map(with_input).collect()
}

/// The same task, or workflow, for each input of a list.
fn one_for_each(
    prefix: &str,
    name: Option<&str>,
    workflow: Option<&str>,
    input: &Map<String, Value>,
) -> Result<Vec<Value>, String> {
    let items = match input.get("forkTaskInputs") {
        Some(Value::Array(items)) => items.as_slice(),
        Some(Value::Null) | None => &[],
        Some(_) => return Err("forkTaskInputs must be a list".to_owned()),
    };
    let kind = input.get("forkTaskType").and_then(Value::as_str).unwrap_or("SIMPLE");
    let task = |(index, item): (usize, &Value)| {
        let mut own = match item.as_object() {
            Some(own) => own.clone(),
            None => Map::from_iter([("input".to_owned(), item.clone())]),
        };
        own.insert("__index".to_owned(), index.into());
        let named = workflow.or(name).unwrap_or_default();
        let reference = format!("{prefix}_{named}_{index}");
        let mut task = match workflow {
            Some(workflow) => {
                let mut param = json!({ "name": workflow });
                if let (Some(version), Value::Object(param)) =
                    (input.get("forkTaskWorkflowVersion"), &mut param)
                {
                    param.insert("version".to_owned(), version.clone());
                }
                json!({ "name": workflow, "type": "SUB_WORKFLOW", "subWorkflowParam": param })
            }
            None => json!({ "name": named, "type": kind }),
        };
        if let Value::Object(task) = &mut task {
            task.insert("taskReferenceName".to_owned(), reference.into());
            task.insert(FORKED_INPUT.to_owned(), Value::Object(own));
        }
        task
    };
    Ok(items.iter().enumerate().map(task).collect())
}

fn legacy(task: &Value) -> Value {
    let kind = lenient::text(task, "type");
    let mut made = json!({
        "name": lenient::text(task, "taskName"),
        "taskReferenceName": lenient::text(task, "referenceName"),
        "type": if kind.is_empty() { "SIMPLE" } else { kind },
        FORKED_INPUT: task.get("input").filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({})),
    });
    if let (Value::Object(made), Some(name)) = (&mut made, task.get("workflowName")) {
        made.insert("subWorkflowParam".to_owned(), json!({ "name": name }));
    }
    made
}

/// Schedules some branches; when all are there, the fork is done.
pub(super) fn proceed<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let (workflow, mut place, from) = (task.workflow, Place::of(task), task.advanced);
    let starts: Vec<TaskNode> = match &task.added_plan {
        Some(added) => {
            place.among = key;
            added.first.clone()
        }
        None => {
            let plan = state.plan_of(task);
            task.node(&plan).branches.iter().filter_map(|(_, first)| *first).collect()
        }
    };
    let begun = usize::try_from(from).unwrap_or(usize::MAX);
    let mut to = from;
    for first in starts.iter().skip(begun).take(FAN_OUT_MAX) {
        schedule(port, workflow, *first, &place);
        to += 1;
        if port.written() > STEP_BYTES_MAX {
            break;
        }
    }
    if to == from {
        finish(port, key, TaskStatus::Completed, None, "");
        return;
    }
    emit(port, WorkflowEvent::TaskAdvanced { task: key, to });
}
