//! Timers and subscriptions of an element: computed all, then opened all.

use windlass_record::flow::{
    FlowEvent, FlowIncidentKind, Key, SubscriptionKind, SubscriptionOpened,
};

use super::{Port, Stuck, expression, message};
use crate::graph::{Kind, MessageCatch, NodeId, Text, Timer, TimerKind, Trigger};
use crate::schedule;

/// Something that an element is about to wait for.
pub(crate) struct Wait {
    node: NodeId,
    what: What,
}

enum What {
    Timer { due_ms: u64, repetitions: Option<u32> },
    Message { name: Text, correlation_key: Text },
    Signal { name: Text },
}

/// Computes what an element waits for at these nodes.
pub(crate) fn prepare<P: Port>(port: &P, scope: Key, nodes: &[NodeId]) -> Result<Vec<Wait>, Stuck> {
    let graph = port.state().live(scope).graph.clone();
    let mut waits = Vec::new();
    for &node in nodes {
        if let Kind::Receive(message) = &graph.node(node).kind {
            let what = message_of(port, scope, message)?;
            waits.push(Wait { node, what });
            continue;
        }
        let what = match graph.trigger(node) {
            Some(Trigger::Timer(timer)) => {
                let (due_ms, repetitions) = due(port, scope, timer)?;
                What::Timer { due_ms, repetitions }
            }
            Some(Trigger::Message(message)) => message_of(port, scope, message)?,
            Some(Trigger::Signal(name)) => {
                What::Signal { name: expression::text(port, name, scope, "name of the signal")? }
            }
            Some(
                Trigger::Error(_)
                | Trigger::Escalation(_)
                | Trigger::Link(_)
                | Trigger::Compensation,
            )
            | None => continue,
        };
        waits.push(Wait { node, what });
    }
    Ok(waits)
}

fn message_of<P: Port>(port: &P, scope: Key, message: &MessageCatch) -> Result<What, Stuck> {
    let name = expression::text(port, &message.name, scope, "name of the message")?;
    let correlation_key = match &message.correlation_key {
        Some(template) => expression::text_or_number(port, template, scope, "correlation key")?,
        None => Text::default(),
    };
    Ok(What::Message { name, correlation_key })
}

/// When a timer fires, and how often after that.
fn due<P: Port>(port: &P, scope: Key, timer: &Timer) -> Result<(u64, Option<u32>), Stuck> {
    let value = expression::text_of_any(port, &timer.value, scope, "timer")?;
    due_of(timer.kind, &value, port.now_ms()).ok_or_else(|| {
        let message = format!("the timer cannot be read: '{value}'");
        Stuck::new(FlowIncidentKind::ExtractValue, message)
    })
}

/// When a timer fires first, and how often after that; `None` is for ever.
pub(crate) fn due_of(kind: TimerKind, value: &str, now_ms: u64) -> Option<(u64, Option<u32>)> {
    match kind {
        TimerKind::Duration => Some((schedule::parse_delay(value).ok()?.after(now_ms)?, Some(0))),
        TimerKind::Date => Some((schedule::parse_date(value).ok()?, Some(0))),
        TimerKind::Cycle => {
            let cycle = schedule::parse_cycle(value).ok()?;
            let left = cycle.repetitions().map(|times| times.saturating_sub(1));
            Some((cycle.first(now_ms)?, left))
        }
    }
}

/// Opens what was computed.
pub(crate) fn open<P: Port>(port: &mut P, owner: Key, waits: Vec<Wait>) {
    for Wait { node, what } in waits {
        let key = port.next_key();
        let (kind, name, correlation_key) = match &what {
            What::Timer { due_ms, repetitions } => {
                port.emit(FlowEvent::TimerArmed {
                    key,
                    owner,
                    node: node.0,
                    due_ms: *due_ms,
                    repetitions: *repetitions,
                });
                continue;
            }
            What::Message { name, correlation_key } => {
                (SubscriptionKind::Message, name, &**correlation_key)
            }
            What::Signal { name } => (SubscriptionKind::Signal, name, ""),
        };
        port.emit(FlowEvent::SubscriptionOpened(SubscriptionOpened {
            key,
            owner,
            node: node.0,
            kind,
            name,
            correlation_key,
        }));
        if kind == SubscriptionKind::Message {
            message::take_buffered(port, key);
        }
    }
}

/// Closes all that an element waits for.
pub(crate) fn close<P: Port>(port: &mut P, owner: Key) {
    let waits: Vec<Key> = port.state().live(owner).waits.iter().copied().collect();
    for key in waits {
        close_one(port, key);
    }
}

/// Closes what an element waits for on behalf of the event sub-processes in it.
pub(crate) fn close_inside<P: Port>(port: &mut P, owner: Key) {
    let element = port.state().live(owner);
    let graph = element.graph.clone();
    let inside: Vec<Key> = element
        .waits
        .iter()
        .copied()
        .filter(|wait| {
            let state = port.state();
            let node = match (state.timers.get(wait), state.subscriptions.get(wait)) {
                (Some(timer), _) => timer.node,
                (None, Some(subscription)) => subscription.node,
                (None, None) => return false,
            };
            matches!(graph.node(node).kind, Kind::EventSubProcess)
        })
        .collect();
    for key in inside {
        close_one(port, key);
    }
}

/// Closes a timer or a subscription.
pub(crate) fn close_one<P: Port>(port: &mut P, key: Key) {
    if port.state().timers.contains_key(&key) {
        port.emit(FlowEvent::TimerGone { key });
    } else {
        port.emit(FlowEvent::SubscriptionClosed { key });
    }
}
