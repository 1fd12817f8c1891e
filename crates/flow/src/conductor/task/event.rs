//! EVENT: something is published, and every handler of it acts, a bounded number at a time.

use serde_json::{Map, Value, json};
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::{TaskChanged, TaskStatus, WorkflowEvent, id_of};

use super::{change, emit, finish, lenient, workflows};
use crate::conductor::state::Workflows;
use crate::conductor::{handler, start};
use crate::kernel::{FAN_OUT_MAX, Port, STEP_BYTES_MAX};

/// No action has been done yet, of the handler that acts. A task with 0 began when all handlers
/// acted at once.
const FIRST: u32 = 1;
/// All handlers have acted.
const ALL: u32 = u32::MAX;

/// Publishes it.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let name = match name(state, key) {
        Ok(name) => name,
        Err(problem) => {
            finish(port, key, TaskStatus::Failed, None, &problem);
            return;
        }
    };
    let mut output = message(state, key);
    output.insert("event_produced".to_owned(), name.into());
    let output = Value::Object(output).to_string();
    let status = Some(TaskStatus::InProgress);
    change(port, TaskChanged { status, output: Some(&output), ..TaskChanged::of(key) });
    emit(port, WorkflowEvent::TaskActed { task: key, handler: NO_KEY, to: FIRST });
}

/// What it is called.
fn name(state: &Workflows, key: Key) -> Result<String, String> {
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let sink = plan.task_json(task.node).get("sink").cloned().unwrap_or_default();
    let sink = start::resolve_in(state, task.workflow, &sink);
    let sink = sink.as_str().unwrap_or_default();
    let workflow = &state.known(task.workflow).plan.name;
    match sink.split_once(':') {
        None if sink == "conductor" => {
            Ok(format!("conductor:{workflow}:{}", task.node(&plan).reference))
        }
        Some(("conductor", name)) => Ok(format!("conductor:{workflow}:{name}")),
        Some(_) | None => Err(format!("Error when trying to access sink: {sink} is not built in")),
    }
}

/// What it says.
fn message(state: &Workflows, key: Key) -> Map<String, Value> {
    let task = state.known_task(key);
    let workflow = state.known(task.workflow);
    let mut message = lenient::parse_object(&task.input);
    message.insert("workflowInstanceId".to_owned(), id_of(task.workflow).into());
    message.insert("workflowType".to_owned(), (*workflow.plan.name).into());
    message.insert("workflowVersion".to_owned(), workflow.plan.version.into());
    message.insert("correlationId".to_owned(), (*workflow.correlation_id).into());
    let domains = lenient::parse_object(&workflow.task_to_domain);
    message.insert("taskToDomain".to_owned(), Value::Object(domains));
    message
}

/// Lets some handlers act; when all have, it is done, unless somebody else is to say so.
pub(super) fn proceed<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let (begun, waits) = (task.advanced, task.node(&state.plan_of(task)).async_complete);
    if begun < FIRST || begun == ALL {
        return;
    }
    // As it was published, whatever has changed since.
    let mut message = lenient::parse_object(&task.output);
    let name = message.remove("event_produced").unwrap_or_default();
    let name = name.as_str().unwrap_or_default();
    let message = Value::Object(message);
    // Where it is stands by the handler, not by a number of actions: others may come and go.
    let (last, begun) = (task.acted, begun - FIRST);
    let acting = handler::acting(state, name, &message, last..key);
    let same = acting.first().is_some_and(|(handler, _)| *handler == last);
    // One that began when actions were counted through all handlers goes on so.
    let already = if same || last == NO_KEY { begun } else { 0 };
    let mut actions = acting
        .iter()
        .flat_map(|(handler, acts)| (FIRST + 1..).zip(&acts.actions).map(|it| (*handler, it)))
        .skip(usize::try_from(already).unwrap_or(usize::MAX))
        .peekable();
    let mut acted = None;
    for (handler, (to, action)) in actions.by_ref().take(FAN_OUT_MAX) {
        handler::act(port, action, name, &message, &json!(id_of(key)));
        acted = Some(WorkflowEvent::TaskActed { task: key, handler, to });
        if port.written() > STEP_BYTES_MAX {
            break;
        }
    }
    // One of them may have ended it.
    if workflows(port).known_task(key).status.is_at_rest() {
        return;
    }
    if let Some(acted) = acted.filter(|_| actions.peek().is_some()) {
        emit(port, acted);
    } else if waits {
        emit(port, WorkflowEvent::TaskAdvanced { task: key, to: ALL });
    } else {
        finish(port, key, TaskStatus::Completed, None, "");
    }
}
