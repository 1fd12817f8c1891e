//! What a person does with a user task: complete it, assign it, change it.

use windlass_record::flow::{
    FlowAnswer, FlowEvent, FlowRejection, Key, UpdateUserTask, UserTaskAction, UserTaskCreated,
};

use crate::kernel::Port;
use crate::kernel::variables::{deliver, split};
use crate::state::element::UserTask;

/// Decides [`UpdateUserTask`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &UpdateUserTask,
) -> Result<FlowAnswer, FlowRejection> {
    let key = command.key;
    let task = port.state().user_task(key).ok_or(FlowRejection::UserTaskNotFound { key })?;
    let element = task.element;
    if !port.state().live(element).listens() {
        return Err(FlowRejection::ElementInWrongState { key: element });
    }
    let mut changed = as_event(key, task);
    match &command.action {
        UserTaskAction::Complete(result) => {
            let result = split(result)?;
            port.emit(FlowEvent::UserTaskEnded { key, completed: true });
            deliver(port, element, &result);
            port.emit(FlowEvent::ElementCompleting { key: element });
            return Ok(FlowAnswer::Done);
        }
        UserTaskAction::Assign { assignee, replace } => {
            let taken = !task.assignee.is_empty() && *task.assignee != **assignee;
            if taken && !replace && !assignee.is_empty() {
                return Err(FlowRejection::UserTaskAssigned {
                    key,
                    assignee: task.assignee.clone(),
                });
            }
            changed.assignee = assignee.to_string().into();
        }
        UserTaskAction::Change {
            candidate_groups,
            candidate_users,
            due_date,
            follow_up_date,
            priority,
        } => {
            for (place, new) in [
                (&mut changed.candidate_groups, candidate_groups),
                (&mut changed.candidate_users, candidate_users),
                (&mut changed.due_date, due_date),
                (&mut changed.follow_up_date, follow_up_date),
            ] {
                if let Some(new) = new {
                    *place = new.to_string().into();
                }
            }
            changed.priority = priority.unwrap_or(changed.priority);
        }
    }

    // Cannot fail from here.
    port.emit(FlowEvent::UserTaskChanged(Box::new(changed)));
    Ok(FlowAnswer::Done)
}

fn as_event(key: Key, task: &UserTask) -> UserTaskCreated<'static> {
    UserTaskCreated {
        key,
        element: task.element,
        assignee: task.assignee.to_string().into(),
        candidate_groups: task.candidate_groups.to_string().into(),
        candidate_users: task.candidate_users.to_string().into(),
        due_date: task.due_date.to_string().into(),
        follow_up_date: task.follow_up_date.to_string().into(),
        priority: task.priority,
        form: task.form,
        form_reference: task.form_reference.to_string().into(),
        headers: task.headers.to_string().into(),
    }
}
