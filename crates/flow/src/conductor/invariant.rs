//! What always holds about workflows. Numbered on from those of [`crate::invariant`].
//!
//! - W1 A workflow that runs has a task that is not followed, stands on the to-do list, or waits for
//!   a place of its limit: none is stuck.
//! - W2 A task that is not followed, of a workflow that runs, waits for something that will come, or
//!   stands on the to-do list.
//! - W3 Jobs belong to tasks, which know them.
//! - W4 A workflow that has ended and is not closed stands on the to-do list.

use std::collections::BTreeSet;

use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, WorkflowStatus};

use super::plan::Kind;
use super::state::{Task, Workflows};
use crate::state::Todo;

/// Checks all of them; says which one does not hold and where.
pub(crate) fn check(state: &Workflows, todo: &BTreeSet<Todo>) -> Result<(), String> {
    for (key, workflow) in &state.workflows {
        let listed = todo.contains(&Todo::Workflow(*key));
        if workflow.closing && !listed {
            return Err(format!("W4: nobody closes workflow {key}"));
        }
        if workflow.status != WorkflowStatus::Running {
            continue;
        }
        if workflow.open.is_empty() && !workflow.waits && !listed {
            return Err(format!("W1: workflow {key} is stuck"));
        }
        for task in &workflow.open {
            let record = state.task(*task).ok_or_else(|| format!("W2: {task} has no record"))?;
            if !listed && !todo.contains(&Todo::Task(*task)) && !waits(state, *task, record) {
                return Err(format!(
                    "W2: task {task}, {} {}, waits for nothing",
                    record.reference,
                    record.status.name()
                ));
            }
        }
    }
    for (job, task) in &state.jobs {
        if state.task(*task).and_then(|task| task.job).map(|(job, _)| job) != Some(*job) {
            return Err(format!("W3: job {job} is not that of task {task}"));
        }
    }
    Ok(())
}

/// Whether something will come for a task.
fn waits(state: &Workflows, key: Key, task: &Task) -> bool {
    if task.job.is_some() || task.due_ms > 0 {
        return true;
    }
    if task.status != TaskStatus::InProgress {
        return false;
    }
    let plan = state.plan_of(task);
    let node = task.node(&plan);
    match node.kind {
        Kind::Human | Kind::Wait => true,
        Kind::Event | Kind::Simple | Kind::Dynamic | Kind::Builtin | Kind::UserDefined => {
            node.async_complete
        }
        Kind::Join => !task.waits_for.is_empty() || node.async_complete,
        Kind::ExclusiveJoin => !task.waits_for.is_empty(),
        Kind::SubWorkflow => state
            .workflow(task.child)
            .is_some_and(|child| !child.status.is_at_rest() || child.closing),
        Kind::DoWhile => {
            let open = &state.known(task.workflow).open;
            open.iter().any(|other| state.task(*other).is_some_and(|it| it.loop_task == key))
        }
        Kind::Switch
        | Kind::Decision
        | Kind::Fork
        | Kind::DynamicFork
        | Kind::StartWorkflow
        | Kind::Terminate
        | Kind::SetVariable
        | Kind::Inline
        | Kind::Lambda
        | Kind::Jq
        | Kind::Noop => false,
    }
}
