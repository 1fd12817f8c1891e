//! Set variables: of exactly one scope, or each where it is. Those of a user task are an update of it,
//! before which its listeners are asked.

use windlass_record::flow::{
    FlowAnswer, FlowEvent, FlowRejection, Key, SetVariables, UserTaskEvent,
};

use crate::kernel::Port;
use crate::kernel::variables::{Variables, merge, set, split};
use crate::node::task_listener;

/// Decides [`SetVariables`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &SetVariables,
) -> Result<FlowAnswer, FlowRejection> {
    let variables = split(&command.variables)?;
    if port.state().element(command.scope).is_none() {
        return Err(FlowRejection::ScopeNotFound { key: command.scope });
    }
    let asked = asked(port, command.scope)?;

    // Cannot fail from here.
    let key = port.next_key();
    port.emit(FlowEvent::KeyUsed { key });
    if let Some(task) = asked {
        start(port, task, &variables, command.local);
        return Ok(FlowAnswer::UserTaskPending { task, key });
    }
    if command.local {
        set(port, command.scope, &variables);
    } else {
        merge(port, command.scope, &variables);
    }
    Ok(FlowAnswer::Key(key))
}

/// The user task whose listeners are asked before variables of its element are written.
fn asked<P: Port>(port: &P, scope: Key) -> Result<Option<Key>, FlowRejection> {
    let element = port.state().live(scope);
    let Some(key) = element.user_task else { return Ok(None) };
    // Who mends an element is not asked: a listener may be what cannot be asked.
    if element.incident.is_some() {
        return Ok(None);
    }
    if let Some(transition) = port.state().transition(key) {
        return Err(FlowRejection::UserTaskInTransition { key, event: transition.event });
    }
    let asks = element.listens() && task_listener::listens_to(port, scope, UserTaskEvent::Updating);
    Ok(asks.then_some(key))
}

fn start<P: Port>(port: &mut P, task: Key, variables: &Variables, local: bool) {
    let Some(now) = port.state().user_task(task).map(|now| now.as_event(task)) else { return };
    let mut started = task_listener::plain(UserTaskEvent::Updating, now);
    started.variables = variables
        .iter()
        .map(|(name, value)| (name.to_string().into(), value.to_string().into()))
        .collect();
    started.local = local;
    task_listener::start(port, started);
}
