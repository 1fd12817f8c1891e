//! TERMINATE: the workflow ends here.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, WorkflowEvent, WorkflowStatus, id_of};

use super::{emit, finish, lenient, workflows};
use crate::conductor::workflow::{End, end};
use crate::kernel::Port;

/// Looks whether it says how.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let input = lenient::parse_object(&workflows(port).known_task(key).input);
    let status = input.get("terminationStatus").and_then(Value::as_str).unwrap_or_default();
    if !matches!(status, "COMPLETED" | "FAILED" | "TERMINATED") {
        let problem = format!(
            "given termination status {status} is not valid: COMPLETED, FAILED or TERMINATED"
        );
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        return;
    }
    let output = match input.get("workflowOutput") {
        Some(Value::Object(output)) => Value::Object(output.clone()),
        Some(Value::Null) | None => json!({}),
        Some(other) => json!({ "output": other }),
    };
    finish(port, key, TaskStatus::Completed, Some(&output), "");
}

/// Ends the workflow.
pub(super) fn follow<P: Port>(port: &mut P, key: Key) {
    let task = workflows(port).known_task(key);
    let workflow = task.workflow;
    let input = lenient::parse_object(&task.input);
    let status = match input.get("terminationStatus").and_then(Value::as_str) {
        Some("COMPLETED") => WorkflowStatus::Completed,
        Some("TERMINATED") => WorkflowStatus::Terminated,
        Some(_) | None => WorkflowStatus::Failed,
    };
    let given = input.get("terminationReason").and_then(Value::as_str);
    let reason = given.map_or_else(
        || format!("Workflow is {} by TERMINATE task: {}", status.name(), id_of(key)),
        str::to_owned,
    );
    let output = input.get("workflowOutput").filter(|it| !it.is_null()).cloned();
    let compensate = status != WorkflowStatus::Completed;
    emit(port, WorkflowEvent::TaskFollowed { task: key, retried: false });
    end(port, workflow, &End { status, reason: &reason, output, compensate, by: key });
}
