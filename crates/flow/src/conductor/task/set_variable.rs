//! SET_VARIABLE: its input becomes variables of the workflow.

use serde_json::{Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, WorkflowEvent, id_of};

use super::{emit, finish, lenient, workflows};
use crate::kernel::Port;

/// Bytes of all variables of one workflow.
pub(crate) const VARIABLES_BYTES_MAX: usize = 256 << 10;

/// Writes the variables.
pub(super) fn begin<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let task = state.known_task(key);
    let workflow = task.workflow;
    let mut variables = lenient::parse_object(&state.known(workflow).variables);
    variables.extend(lenient::parse_object(&task.input));
    let variables = Value::Object(variables).to_string();
    if variables.len() > VARIABLES_BYTES_MAX {
        let problem = format!(
            "The variables payload size: {} of workflow: {} is greater than the permissible \
             limit: {} kilobytes",
            variables.len(),
            id_of(workflow),
            VARIABLES_BYTES_MAX >> 10
        );
        finish(port, key, TaskStatus::FailedWithTerminalError, None, &problem);
        return;
    }
    emit(port, WorkflowEvent::WorkflowVariablesSet { key: workflow, variables: &variables });
    finish(port, key, TaskStatus::Completed, Some(&json!({})), "");
}
