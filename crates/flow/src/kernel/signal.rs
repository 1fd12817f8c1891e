//! Signals: a signal reaches everybody who waited for it when it came.

use windlass_record::flow::{FlowEvent, Key, SubscriptionKind};

use super::{Port, active, message, variables};
use crate::graph::{NodeId, Text};

/// Lets a signal reach the next ones, a bounded number at a time.
pub(super) fn deliver<P: Port>(port: &mut P, key: Key) {
    let Some(signal) = port.state().signals.get(&key) else { return };
    let payload = variables::split(signal.variables.as_bytes()).unwrap_or_default();
    let topic = (signal.tenant.clone(), signal.name.clone(), Text::default());
    let after = signal.through;
    let room = message::fan_out(signal.variables.len());
    let waiting: Vec<(Key, Key, NodeId)> = port
        .state()
        .topics
        .get(&(SubscriptionKind::Signal, topic))
        .into_iter()
        .flatten()
        .filter(|subscription| **subscription > after && **subscription < key)
        .take(room)
        .filter_map(|subscription| {
            let waiting = port.state().subscriptions.get(subscription)?;
            Some((*subscription, waiting.owner, waiting.node))
        })
        .collect();
    for (_, owner, node) in &waiting {
        match port.state().element(*owner).map(crate::state::element::Element::listens) {
            Some(true) => active::trigger(port, *owner, *node, &payload),
            Some(false) => {}
            None => {
                message::start(port, *owner, *node, "", &payload);
            }
        }
    }
    match waiting.last() {
        Some((through, ..)) if waiting.len() == room => {
            port.emit(FlowEvent::SignalProgressed { key, through: *through });
        }
        Some(_) | None => port.emit(FlowEvent::SignalEnded { key }),
    }
}
