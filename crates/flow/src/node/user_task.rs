//! Native user tasks: they wait for a person.

use windlass_record::flow::{
    DefinitionKind, FlowEvent, FlowIncidentKind, Key, USER_TASK_PRIORITY_MAX, UserTaskCreated,
    UserTaskEvent,
};

use super::task_listener::{self, has_listeners};
use crate::feel::Value;
use crate::graph::{Template, Text, UserTask};
use crate::kernel::job::no_front;
use crate::kernel::{Port, Stuck, expression};

const PRIORITY_DEFAULT: u32 = 50;

pub(super) fn activate<P: Port>(port: &mut P, key: Key, task: &UserTask) -> Result<(), Stuck> {
    let text = |port: &P, template: &Option<Template>, what: &str| match template {
        Some(template) => expression::text_of_any(port, template, key, what),
        None => Ok(Text::default()),
    };
    let assignee = text(port, &task.assignee, "assignee")?;
    let candidate_groups = list(port, task.candidate_groups.as_ref(), key, "candidate groups")?;
    let candidate_users = list(port, task.candidate_users.as_ref(), key, "candidate users")?;
    let due_date = text(port, &task.due_date, "due date")?;
    let follow_up_date = text(port, &task.follow_up_date, "follow-up date")?;
    let form_reference = text(port, &task.form_key, "form")?;
    let priority = match &task.priority {
        Some(template) => {
            let priority = expression::integer(port, template, key, "priority")?;
            u32::try_from(priority).ok().filter(|it| *it <= USER_TASK_PRIORITY_MAX).ok_or_else(
                || {
                    let message = format!("the priority must be 0 to 100, but it is {priority}");
                    Stuck::new(FlowIncidentKind::ExtractValue, message)
                },
            )?
        }
        None => PRIORITY_DEFAULT,
    };
    let form = match &task.form_id {
        Some(template) => {
            let id = expression::text(port, template, key, "form")?;
            let found =
                super::call::bound(port, key, DefinitionKind::Form, &id, &task.form_binding);
            found.ok_or_else(|| {
                let message = format!(
                    "Expected to find a form with id '{id}', but no form with this id is found"
                );
                Stuck::new(FlowIncidentKind::FormNotFound, message)
            })?
        }
        None => Key::NONE,
    };
    super::wait_with_boundaries(port, key)?;
    let created = UserTaskCreated {
        key: port.next_key(),
        element: key,
        assignee: assignee.to_string().into(),
        candidate_groups: candidate_groups.into(),
        candidate_users: candidate_users.into(),
        due_date: due_date.to_string().into(),
        follow_up_date: follow_up_date.to_string().into(),
        priority,
        form,
        form_reference: form_reference.to_string().into(),
        headers: task.headers.to_string().into(),
    };
    create(port, task, created);
    Ok(())
}

/// The user task is there. Listeners are asked before it can be worked on, and before it is whose
/// the process says.
fn create<P: Port>(port: &mut P, task: &UserTask, wanted: UserTaskCreated<'static>) {
    let asks = has_listeners(task, UserTaskEvent::Creating);
    let asks_who = !wanted.assignee.is_empty() && has_listeners(task, UserTaskEvent::Assigning);
    let mut created = wanted.clone();
    if asks_who {
        created.assignee = "".into();
    }
    port.emit(FlowEvent::UserTaskCreated(Box::new(created.clone())));
    if asks {
        let mut creating = task_listener::plain(UserTaskEvent::Creating, created);
        if asks_who {
            creating.assignee = wanted.assignee;
        }
        task_listener::start(port, creating);
    } else if asks_who {
        task_listener::start(port, task_listener::plain(UserTaskEvent::Assigning, wanted));
    }
}

/// A list of text, or text with commas, as a JSON list.
fn list<P: Port>(
    port: &P,
    template: Option<&Template>,
    key: Key,
    what: &str,
) -> Result<String, Stuck> {
    let Some(template) = template else { return Ok("[]".to_owned()) };
    let value = expression::template_value(port, template, key, &no_front())
        .map_err(|problem| Stuck::new(FlowIncidentKind::ExtractValue, problem))?;
    if let Value::Text(text) = &value {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        return Ok(serde_json::Value::from(names.collect::<Vec<_>>()).to_string());
    }
    if matches!(value, Value::List(_)) {
        return Ok(value.to_json());
    }
    if matches!(value, Value::Null) {
        return Ok("[]".to_owned());
    }
    let message = format!("the {what} must be a list of text, but it is {}", value.to_json());
    Err(Stuck::new(FlowIncidentKind::ExtractValue, message))
}
