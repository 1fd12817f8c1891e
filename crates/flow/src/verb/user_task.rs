//! What a person does with a user task: complete it, assign it, change it. Where its process has
//! listeners for that, they are asked first, and the answer says that it is pending.

use windlass_record::flow::{
    FlowAnswer, FlowEvent, FlowRejection, USER_TASK_PRIORITY_MAX, UpdateUserTask, UserTaskAction,
    UserTaskCreated, UserTaskEvent,
};

use crate::kernel::Port;
use crate::kernel::variables::{carried, deliver, split};
use crate::node::task_listener;
use crate::state::element::UserTask;

/// Decides [`UpdateUserTask`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &UpdateUserTask,
) -> Result<FlowAnswer, FlowRejection> {
    let key = command.key;
    let task = port.state().user_task(key).ok_or(FlowRejection::UserTaskNotFound { key })?;
    let element = task.element;
    if let Some(transition) = port.state().transition(key) {
        return Err(FlowRejection::UserTaskInTransition { key, event: transition.event });
    }
    if !port.state().live(element).listens() {
        return Err(FlowRejection::ElementInWrongState { key: element });
    }
    let (event, wanted) = wanted(command, task)?;
    let result = match &command.action {
        UserTaskAction::Complete(result) => split(result)?,
        UserTaskAction::Assign { .. } | UserTaskAction::Change { .. } => Vec::new(),
    };

    // Cannot fail from here.
    if task_listener::listens_to(port, element, event) {
        let mut started = task_listener::plain(event, wanted);
        started.action = (&*command.name).into();
        started.variables = carried(&result).into();
        task_listener::start(port, started);
        return Ok(FlowAnswer::UserTaskPending { task: key, key });
    }
    match &command.action {
        UserTaskAction::Complete(_) => {
            port.emit(FlowEvent::UserTaskEnded { key, completed: true });
            deliver(port, element, &result);
            port.emit(FlowEvent::ElementCompleting { key: element });
        }
        UserTaskAction::Assign { .. } | UserTaskAction::Change { .. } => {
            port.emit(FlowEvent::UserTaskChanged(Box::new(wanted)));
        }
    }
    Ok(FlowAnswer::Done)
}

/// What is about to happen, and what the user task is to be.
fn wanted(
    command: &UpdateUserTask,
    task: &UserTask,
) -> Result<(UserTaskEvent, UserTaskCreated<'static>), FlowRejection> {
    let key = command.key;
    let mut changed = task.as_event(key);
    let event = match &command.action {
        UserTaskAction::Complete(_) => UserTaskEvent::Completing,
        UserTaskAction::Assign { assignee, replace } => {
            let taken = !task.assignee.is_empty() && *task.assignee != **assignee;
            if taken && !replace && !assignee.is_empty() {
                let assignee = task.assignee.clone();
                return Err(FlowRejection::UserTaskAssigned { key, assignee });
            }
            changed.assignee = assignee.to_string().into();
            UserTaskEvent::Assigning
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
            if let Some(given) = priority.filter(|given| *given > USER_TASK_PRIORITY_MAX) {
                return Err(FlowRejection::UserTaskPriority { key, given });
            }
            changed.priority = priority.unwrap_or(changed.priority);
            UserTaskEvent::Updating
        }
    };
    Ok((event, changed))
}
