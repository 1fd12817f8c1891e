//! Pass over a task that was not scheduled yet: a record of it stands there already when its turn
//! comes.

use serde_json::Value;
use windlass_record::flow::{FlowRejection, Key, NO_KEY};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{
    TaskChanged, TaskScheduled, TaskStatus, WorkflowEvent, WorkflowStatus, id_of,
};

use super::{json, known};
use crate::conductor::refuse;
use crate::conductor::task::change;
use crate::conductor::workflow::{emit, workflows};
use crate::kernel::Port;

/// Decides it. What the caller gives is the task's input and output.
pub(super) fn decide<P: Port>(
    port: &mut P,
    workflow: Key,
    reference: &str,
    input: &[u8],
    output: &[u8],
) -> Result<(), FlowRejection> {
    let state = |message: String| refuse(RejectionKind::FailedPrecondition, message);
    if known(port, workflow)? != WorkflowStatus::Running {
        let message = format!(
            "The workflow {} is not running so the task referenced by {reference} cannot be \
             skipped",
            id_of(workflow)
        );
        return Err(state(message));
    }
    let plan = workflows(port).known(workflow).plan.clone();
    let Some(number) = plan.find(reference) else {
        return Err(state(format!(
            "The task referenced by {reference} does not exist in the WorkflowDefinition {}",
            plan.name
        )));
    };
    if workflows(port).known(workflow).newest.contains_key(reference) {
        return Err(state(format!(
            "The task referenced {reference} has already been processed, cannot be skipped"
        )));
    }
    let given = |bytes: &[u8]| if bytes.is_empty() { Ok(Value::Null) } else { json(bytes) };
    let object = |value: Value| if value.is_object() { value.to_string() } else { "{}".to_owned() };
    let (input, output) = (object(given(input)?), object(given(output)?));

    // Cannot fail from here.
    let node = plan.node(number);
    let key = port.next_key();
    emit(
        port,
        WorkflowEvent::TaskScheduled(Box::new(TaskScheduled {
            key,
            workflow,
            among: NO_KEY,
            node: number.0,
            loop_task: NO_KEY,
            iteration: 0,
            reference,
            task_type: &node.name,
            name: &node.name,
            retry_count: 0,
            retry_of: NO_KEY,
            first_ms: 0,
            status: TaskStatus::Skipped,
            input: &input,
            reason: "",
            domain: "",
            delay_s: 0,
        })),
    );
    let changed = TaskChanged { output: Some(&output), ..TaskChanged::of(key) };
    change(port, changed);
    Ok(())
}
