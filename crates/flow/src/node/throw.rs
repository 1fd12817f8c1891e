//! Throw and end events: they do something; throw events go on, end events end their token.

use windlass_record::flow::{FlowEvent, FlowIncidentKind, JobRole, Key, MessagePublished};

use crate::graph::{Action, MessageThrow, Template, Text};
use crate::kernel::catch::{Thrown, catcher};
use crate::kernel::{Port, Stuck, active, enter, expression, job, variables};
use crate::schedule;

pub(super) fn activate<P: Port>(port: &mut P, key: Key, action: &Action) -> Result<(), Stuck> {
    match action {
        Action::None | Action::Link(_) | Action::Terminate => {
            enter::pass(port, key);
            Ok(())
        }
        Action::Job(spec) => {
            let job = job::prepare(port, key, spec)?;
            port.emit(FlowEvent::ElementActivated { key });
            job::attach(port, key, &job, JobRole::Work);
            Ok(())
        }
        Action::Message(message) => publish(port, key, message),
        Action::Signal(name) => broadcast(port, key, name),
        Action::Error(code) => throw_error(port, key, code),
        Action::Escalation(code) => escalate(port, key, code),
        Action::Compensate(activity) => super::compensate::activate(port, key, *activity),
    }
}

fn publish<P: Port>(port: &mut P, key: Key, message: &MessageThrow) -> Result<(), Stuck> {
    let name = expression::text(port, &message.name, key, "name of the message")?;
    let correlation_key =
        expression::text_or_number(port, &message.correlation_key, key, "correlation key")?;
    let message_id = match &message.message_id {
        Some(template) => expression::text_of_any(port, template, key, "message id")?,
        None => Text::default(),
    };
    let now_ms = port.now_ms();
    let until_ms = match &message.time_to_live {
        Some(template) => {
            let value = expression::text_of_any(port, template, key, "time to live")?;
            schedule::parse_duration(&value)
                .ok()
                .and_then(|span| span.after(now_ms))
                .filter(|until_ms| *until_ms > now_ms)
                .unwrap_or(0)
        }
        None => 0,
    };
    let own = own_variables(port, key);
    let tenant = port.state().tenant_of(key);
    port.emit(FlowEvent::ElementActivated { key });
    port.emit(FlowEvent::MessagePublished(MessagePublished {
        key: port.next_key(),
        tenant: &tenant,
        name: &name,
        correlation_key: &correlation_key,
        message_id: &message_id,
        until_ms,
        variables: &own,
    }));
    port.emit(FlowEvent::ElementCompleting { key });
    Ok(())
}

fn broadcast<P: Port>(port: &mut P, key: Key, name: &Template) -> Result<(), Stuck> {
    let name = expression::text(port, name, key, "name of the signal")?;
    let tenant = port.state().tenant_of(key);
    let own = own_variables(port, key);
    port.emit(FlowEvent::ElementActivated { key });
    port.emit(FlowEvent::SignalBroadcast {
        key: port.next_key(),
        tenant: &tenant,
        name: &name,
        variables: &own,
    });
    port.emit(FlowEvent::ElementCompleting { key });
    Ok(())
}

/// What the input mappings made, and nothing else, goes with a message or a signal.
fn own_variables<P: Port>(port: &P, key: Key) -> String {
    variables::join(&port.state().live(key).variables)
}

fn throw_error<P: Port>(port: &mut P, key: Key, code: &Template) -> Result<(), Stuck> {
    let code = expression::text(port, code, key, "error code")?;
    // The event itself catches nothing, so its scope is seen from the inside.
    let Some((owner, node)) = catcher(port, Thrown::Error, &code, key) else {
        let message = job::not_caught(port, key, &code, "");
        return Err(Stuck::new(FlowIncidentKind::UnhandledError, message));
    };
    let own = variables::own(port, key);
    port.emit(FlowEvent::ElementActivated { key });
    active::trigger(port, owner, node, &own);
    Ok(())
}

fn escalate<P: Port>(port: &mut P, key: Key, code: &Template) -> Result<(), Stuck> {
    let code = expression::text(port, code, key, "escalation code")?;
    let found = catcher(port, Thrown::Escalation, &code, key);
    let own = variables::own(port, key);
    port.emit(FlowEvent::ElementActivated { key });
    if let Some((owner, node)) = found {
        let interrupts = port.state().live(owner).graph.interrupts(node);
        active::trigger(port, owner, node, &own);
        if interrupts {
            // It ends with the scope that is interrupted.
            return Ok(());
        }
    }
    port.emit(FlowEvent::ElementCompleting { key });
    Ok(())
}
