//! Who catches an error or an escalation: the nearest scope outwards that has an event for it, its
//! event sub-processes before its boundary events, an event for this code before one for all.

use windlass_record::flow::Key;

use super::Port;
use crate::graph::{NodeId, Text, Trigger};
use crate::state::FlowState;

/// What is looked for a catcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thrown {
    Error,
    Escalation,
}

/// Finds who catches what an element throws, at the element itself first.
pub(crate) fn catcher<P: Port>(
    port: &P,
    thrown: Thrown,
    code: &str,
    from: Key,
) -> Option<(Key, NodeId)> {
    let state = port.state();
    let mut at = from;
    let mut is_outside = false;
    loop {
        let element = state.elements.get(&at)?;
        let node = element.node();
        let boundaries: &[NodeId] = if element.loop_counter > 0 { &[] } else { &node.boundaries };
        // Event sub-processes of a scope see what is thrown inside it, not by it.
        let inside: &[NodeId] =
            if is_outside && !element.is_loop() { &node.event_scopes } else { &[] };
        for events in [inside, boundaries] {
            if let Some(event) = best(state, at, thrown, code, events) {
                return Some((at, event));
            }
        }
        is_outside = true;
        at = element.process.as_ref().map_or(element.scope, |process| process.parent);
    }
}

/// The codes that somebody would have caught, for the one who reads the incident.
pub(crate) fn available<P: Port>(port: &P, thrown: Thrown, from: Key) -> Vec<Text> {
    let state = port.state();
    let mut codes = Vec::new();
    let mut at = from;
    while let Some(element) = state.elements.get(&at) {
        let node = element.node();
        for event in node.boundaries.iter().chain(&node.event_scopes) {
            let code = match (thrown, element.graph.trigger(*event)) {
                (Thrown::Error, Some(Trigger::Error(Some(code))))
                | (Thrown::Escalation, Some(Trigger::Escalation(Some(code)))) => code.clone(),
                _ => continue,
            };
            codes.push(code);
        }
        at = element.process.as_ref().map_or(element.scope, |process| process.parent);
    }
    codes
}

fn best(
    state: &FlowState,
    at: Key,
    thrown: Thrown,
    code: &str,
    events: &[NodeId],
) -> Option<NodeId> {
    let element = state.elements.get(&at)?;
    if !element.listens() {
        return None;
    }
    let mut for_all = None;
    for event in events {
        let wanted = match (thrown, element.graph.trigger(*event)) {
            (Thrown::Error, Some(Trigger::Error(wanted)))
            | (Thrown::Escalation, Some(Trigger::Escalation(wanted))) => wanted,
            _ => continue,
        };
        match wanted {
            Some(wanted) if &**wanted == code => return Some(*event),
            Some(_) => {}
            None => for_all = for_all.or(Some(*event)),
        }
    }
    for_all
}
