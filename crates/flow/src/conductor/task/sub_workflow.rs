//! SUB_WORKFLOW and START_WORKFLOW: another workflow runs for a task, or by itself.

use serde_json::{Map, Value, json};
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::{TaskChanged, TaskStatus, id_of};

use super::{change, finish, lenient, workflows};
use crate::conductor::plan::Kind;
use crate::conductor::start::{self, Start, resolve_in};
use crate::conductor::state::Workflows;
use crate::kernel::Port;

/// Puts what is started, and with what, into the input.
pub(super) fn prepare(
    state: &Workflows,
    workflow: Key,
    json: &Value,
    input: &mut Map<String, Value>,
    kind: Kind,
) {
    if kind != Kind::SubWorkflow {
        return;
    }
    let mut param = json.get("subWorkflowParam").cloned().unwrap_or_default();
    // What is written out is the child's: its expressions are not the parent's to resolve.
    let written = param
        .as_object_mut()
        .filter(|param| param.get("workflowDefinition").is_some_and(Value::is_object))
        .and_then(|param| param.remove("workflowDefinition"));
    let mut param = resolve_in(state, workflow, &param);
    if let (Some(written), Value::Object(param)) = (written, &mut param) {
        param.insert("workflowDefinition".to_owned(), written);
    }
    let own = std::mem::take(input);
    input.insert("subWorkflowName".to_owned(), param.get("name").cloned().unwrap_or_default());
    input
        .insert("subWorkflowVersion".to_owned(), param.get("version").cloned().unwrap_or_default());
    for (from, to) in [
        ("taskToDomain", "subWorkflowTaskToDomain"),
        ("workflowDefinition", "subWorkflowDefinition"),
        ("priority", "priority"),
    ] {
        if let Some(value) = param.get(from).filter(|value| !value.is_null()) {
            input.insert(to.to_owned(), value.clone());
        }
    }
    input.insert("workflowInput".to_owned(), Value::Object(own));
}

/// Starts the workflow that the task waits for.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let parent = state.known(task.workflow);
    let input = Value::Object(lenient::parse_object(&task.input));
    let definition = match input.get("subWorkflowDefinition") {
        Some(Value::Object(definition)) => Some(Value::Object(definition.clone())),
        Some(Value::String(text)) => serde_json::from_str(text).ok(),
        Some(_) | None => None,
    };
    let version = input.get("subWorkflowVersion").and_then(lenient::integer);
    let domains = input
        .get("subWorkflowTaskToDomain")
        .filter(|it| it.is_object())
        .map_or_else(|| parent.task_to_domain.to_string(), Value::to_string);
    let named = lenient::text(&input, "subWorkflowName");
    let of_definition = definition.as_ref().map(|it| lenient::text(it, "name"));
    let name = match of_definition {
        Some(name) if named.is_empty() => name,
        Some(_) | None => named,
    };
    let mut child_input = lenient::object(&input, "workflowInput").cloned().unwrap_or_default();
    if definition.is_some() {
        child_input.insert("_systemMetadata".to_owned(), json!({ "dynamic": true }));
    }
    let priority = input.get("priority").and_then(lenient::integer);
    let request = Start {
        name: name.to_owned(),
        version: version.filter(|it| *it > 0).and_then(|it| u32::try_from(it).ok()),
        definition,
        input: child_input,
        correlation_id: parent.correlation_id.to_string(),
        task_to_domain: domains,
        priority: priority.and_then(|it| u32::try_from(it).ok()).unwrap_or(parent.priority),
        parent_task: Some(key),
        ..Start::default()
    };
    match start::start(port, request) {
        Ok((child, _)) => {
            let output = json!({ "subWorkflowId": id_of(child) }).to_string();
            let changed = TaskChanged {
                status: Some(TaskStatus::InProgress),
                child: Some(child),
                output: Some(&output),
                ..TaskChanged::of(key)
            };
            change(port, changed);
        }
        Err(refused) => finish(port, key, TaskStatus::Failed, None, &refused.to_string()),
    }
}

/// A child that ended while its parent stood still has told nobody.
pub(super) fn proceed<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let child = state.known_task(key).child;
    let ended = state.workflow(child).is_some_and(|it| it.status.is_at_rest() && !it.closing);
    if child != NO_KEY && ended {
        crate::conductor::workflow::tell_parent(port, child);
    }
}

/// Starts a workflow and does not wait for it.
pub(super) fn begin_and_forget<P: Port>(port: &mut P, key: Key) {
    let started = request(workflows(port), key)
        .and_then(|request| start::start(port, request).map_err(|refused| refused.to_string()));
    match started {
        Ok((started, _)) => {
            let output = json!({ "workflowId": id_of(started) });
            finish(port, key, TaskStatus::Completed, Some(&output), "");
        }
        Err(problem) => finish(port, key, TaskStatus::Failed, None, &problem),
    }
}

/// What is to be started; what it does not say is as with the workflow that starts it.
fn request(state: &Workflows, key: Key) -> Result<Start, String> {
    let task = state.known_task(key);
    let starter = state.known(task.workflow);
    let input = lenient::parse_object(&task.input);
    let given = input.get("startWorkflow").filter(|given| !given.is_null());
    let given = given.ok_or("Missing 'startWorkflow' in input data.")?;
    let mut request = Start::parse(given).map_err(|refused| refused.to_string())?;
    if request.correlation_id.trim().is_empty() {
        request.correlation_id = starter.correlation_id.to_string();
    }
    if request.task_to_domain.is_empty() {
        request.task_to_domain = starter.task_to_domain.to_string();
    }
    Ok(request)
}
