//! EVENT: something is published for event handlers.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskChanged, TaskStatus, WorkflowEvent, id_of};

use super::{emit, finish, lenient, workflows};
use crate::conductor::{handler, start};
use crate::kernel::Port;

/// Publishes it.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let workflow = state.known(task.workflow);
    let plan = state.plan_of(task);
    let node = task.node(&plan);
    let waits = node.async_complete;
    let sink = plan.task_json(task.node).get("sink").cloned().unwrap_or_default();
    let sink = start::resolve_in(state, task.workflow, &sink);
    let sink = sink.as_str().unwrap_or_default().to_owned();
    let name = match sink.split_once(':') {
        None if sink == "conductor" => {
            format!("conductor:{}:{}", workflow.plan.name, node.reference)
        }
        Some(("conductor", name)) => format!("conductor:{}:{name}", workflow.plan.name),
        Some(_) | None => {
            let problem = format!("Error when trying to access sink: {sink} is not built in");
            finish(port, key, TaskStatus::Failed, None, &problem);
            return;
        }
    };
    let mut message = lenient::parse_object(&task.input);
    message.insert("workflowInstanceId".to_owned(), id_of(task.workflow).into());
    message.insert("workflowType".to_owned(), (*workflow.plan.name).into());
    message.insert("workflowVersion".to_owned(), workflow.plan.version.into());
    message.insert("correlationId".to_owned(), (*workflow.correlation_id).into());
    let mut output = message.clone();
    output.insert("event_produced".to_owned(), name.as_str().into());
    let message = Value::Object(message);
    let output = Value::Object(output);
    if waits {
        let changed = TaskChanged {
            status: Some(TaskStatus::InProgress),
            output: Some(&output.to_string()),
            ..TaskChanged::of(key)
        };
        emit(port, WorkflowEvent::TaskChanged(Box::new(changed)));
    } else {
        finish(port, key, TaskStatus::Completed, Some(&output), "");
    }
    handler::publish(port, &name, &message, &json!(id_of(key)));
}
