//! Event handlers: what follows when something is published.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskReference, TaskStatus, TaskUpdate, key_of};

use super::start::{self, Start};
use super::state::{Acts, Workflows};
use super::{lenient, script, template, verb};
use crate::kernel::Port;

impl Acts {
    /// What the definition of an active handler says.
    pub(crate) fn of(json: &str) -> Option<Acts> {
        let handler: Value = serde_json::from_str(json).ok()?;
        lenient::flag(&handler, "active").then(|| Acts {
            event: lenient::text(&handler, "event").into(),
            condition: lenient::text(&handler, "condition").into(),
            actions: lenient::list(&handler, "actions").to_vec(),
        })
    }
}

/// What the active handlers of an event among these do, oldest first.
pub(crate) fn acting(
    state: &Workflows,
    event: &str,
    message: &Value,
    among: Range<Key>,
) -> Vec<(Key, Arc<Acts>)> {
    let Some(keys) = state.handlers_of.get(event) else { return Vec::new() };
    keys.range(among)
        .filter_map(|key| Some((*key, state.handlers.get(key)?.acts.clone()?)))
        .filter(|(_, acts)| holds(&acts.condition, message))
        .collect()
}

/// Whether the handler's condition holds; a condition that is more than simple does not.
fn holds(condition: &str, message: &Value) -> bool {
    if condition.is_empty() {
        return true;
    }
    let result = script::evaluate(condition, &[("$", message)], script::STEPS_DEFAULT);
    result.is_ok_and(|value| script::truthy(&value))
}

/// What `${...}` in an action names: the message.
struct OfMessage<'a>(&'a Value);

impl template::Roots for OfMessage<'_> {
    fn part(&self, _root: &str, _field: &str) -> Option<Option<Value>> {
        None
    }

    fn whole(&self, root: &str) -> Option<Value> {
        self.0.get(root).cloned()
    }
}

/// Does one of the actions. What fails is passed over, as nobody waits for it.
pub(crate) fn act<P: Port>(port: &mut P, action: &Value, event: &str, message: &Value, id: &Value) {
    let kind = lenient::text(action, "action");
    let payload = action.get(kind).cloned().unwrap_or_default();
    let resolved = template::resolve(&payload, &OfMessage(message), &mut super::seen::budget());
    let Ok(payload) = resolved else { return };
    let with_origin = |field: &str| {
        let mut object = lenient::object(&payload, field).cloned().unwrap_or_default();
        object.insert("conductor.event.messageId".to_owned(), id.clone());
        object.insert("conductor.event.name".to_owned(), event.into());
        object
    };
    match kind {
        "start_workflow" => {
            let mut request = payload.clone();
            if let Value::Object(request) = &mut request {
                request.insert("input".to_owned(), Value::Object(with_origin("input")));
                request.insert("event".to_owned(), event.into());
            }
            if let Ok(request) = Start::parse(&request) {
                // Nobody can be told of a failure; the handler's other actions go on.
                drop(start::start(port, request));
            }
        }
        "complete_task" | "fail_task" => {
            let Some(workflow) = key_of(lenient::text(&payload, "workflowId")) else { return };
            let task = match key_of(lenient::text(&payload, "taskId")) {
                Some(task) => TaskReference::Key(task),
                None => TaskReference::Name(lenient::text(&payload, "taskRefName").into()),
            };
            let status = match kind {
                "complete_task" => TaskStatus::Completed,
                _ => TaskStatus::Failed,
            };
            let update = TaskUpdate {
                workflow,
                task,
                status,
                output: Value::Object(with_origin("output")).to_string().into_bytes().into(),
                merge: false,
                reason: lenient::text(&payload, "reasonForIncompletion").into(),
                callback_s: 0,
                worker: "".into(),
                log: Vec::new(),
                extend_lease: false,
            };
            drop(verb::update(port, &update));
        }
        "terminate_workflow" => {
            if let Some(workflow) = key_of(lenient::text(&payload, "workflowId")) {
                drop(verb::terminate(port, workflow, lenient::text(&payload, "terminationReason")));
            }
        }
        "update_workflow_variables" => {
            if let Some(workflow) = key_of(lenient::text(&payload, "workflowId")) {
                let variables = lenient::object(&payload, "variables").cloned();
                let variables = Value::Object(variables.unwrap_or_default());
                drop(verb::set_variables(port, workflow, &variables));
            }
        }
        _ => {}
    }
}
