//! What time asks for: timers that are due, messages that are no longer buffered.

use windlass_record::flow::{FlowEvent, Key};

use super::{Port, active, expression, message};
use crate::conductor;
use crate::graph::{Template, Text, Timer, TimerKind, Trigger};
use crate::schedule;

/// Does one thing that is due. False when nothing is.
pub fn fire<P: Port>(port: &mut P) -> bool {
    let now_ms = port.now_ms();
    if let Some((due_ms, key)) = port.state().due.first().copied()
        && due_ms <= now_ms
    {
        fire_timer(port, key);
        return true;
    }
    if let Some((until_ms, key)) = port.state().expiring.first().copied()
        && until_ms <= now_ms
    {
        port.emit(FlowEvent::MessageExpired { key });
        return true;
    }
    if let Some((due_ms, key)) = port.state().workflows.due.first().copied()
        && due_ms <= now_ms
    {
        if port.state().workflows.task(key).is_some() {
            conductor::task::fire(port, key);
        } else {
            conductor::workflow::fire(port, key);
        }
        return true;
    }
    false
}

fn fire_timer<P: Port>(port: &mut P, key: Key) {
    let Some(timer) = port.state().timers.get(&key) else { return };
    let (owner, node, due_ms) = (timer.owner, timer.node, timer.due_ms);
    let repetitions = timer.repetitions;
    let graph = match port.state().element(owner) {
        Some(element) => Some(element.graph.clone()),
        None => port.state().definition(owner).and_then(|definition| definition.graph.clone()),
    };
    port.emit(FlowEvent::TimerGone { key });
    let Some(graph) = graph else { return };
    let next_ms = match graph.trigger(node) {
        Some(Trigger::Timer(timer)) if repetitions != Some(0) => {
            next_due(port, timer, owner, due_ms)
        }
        Some(_) | None => None,
    };
    match port.state().element(owner).map(crate::state::element::Element::listens) {
        Some(true) => active::trigger(port, owner, node, &[]),
        Some(false) => return,
        None => {
            message::start(port, owner, node, "", &[]);
        }
    }
    if let Some(due_ms) = next_ms {
        port.emit(FlowEvent::TimerArmed {
            key: port.next_key(),
            owner,
            node: node.0,
            due_ms,
            repetitions: repetitions.map(|left| left.saturating_sub(1)),
        });
    }
}

/// When a repeated timer fires again.
fn next_due<P: Port>(port: &P, timer: &Timer, owner: Key, due_ms: u64) -> Option<u64> {
    if timer.kind != TimerKind::Cycle {
        return None;
    }
    let value: Text = match &timer.value {
        Template::Static(text) => text.clone(),
        template @ Template::Feel(_) => {
            expression::text_of_any(port, template, owner, "timer").ok()?
        }
    };
    schedule::parse_cycle(&value).ok()?.next(due_ms, port.now_ms())
}
