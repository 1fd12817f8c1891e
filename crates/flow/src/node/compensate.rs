//! Compensation: undoing what was completed. A throw event enters the compensation events of the
//! activities in its scope, the newest first; each of them enters its handler, and the throw event
//! goes on when no handler runs any more.

use windlass_record::flow::{FlowEvent, Key};

use crate::graph::{Action, Graph, Kind, Node, NodeId, Trigger};
use crate::kernel::{Port, Stuck, enter_node, variables};
use crate::state::FlowState;
use crate::state::element::{Kept, Phase};

pub(super) fn activate<P: Port>(
    port: &mut P,
    key: Key,
    activity: Option<NodeId>,
) -> Result<(), Stuck> {
    let graph = port.state().live(key).graph.clone();
    let wanted = |kept: &Kept| {
        activity.is_none_or(|activity| {
            activity == kept.node || graph.towards(activity, kept.node).is_some()
        })
    };
    port.emit(FlowEvent::ElementActivated { key });
    let mut begun = false;
    for scope in scopes(port.state(), key) {
        let kept = port.state().live(scope).kept.iter();
        let undone: Vec<Kept> = kept.filter(|kept| wanted(kept)).rev().cloned().collect();
        for kept in undone {
            port.emit(FlowEvent::CompensationTaken { scope, node: kept.node.0 });
            if let Some(event) = event_of(&graph, kept.node) {
                let event = enter_node(port, scope, event, Some(event));
                variables::set(port, event, &kept.variables);
                begun = true;
            }
        }
    }
    if !begun {
        port.emit(FlowEvent::ElementCompleting { key });
    }
    Ok(())
}

/// The scopes whose activities an element undoes: its own, and around event sub-processes theirs.
fn scopes(state: &FlowState, key: Key) -> Vec<Key> {
    let mut scopes = Vec::new();
    let mut at = state.live(key).scope;
    while let Some(scope) = state.element(at) {
        scopes.push(at);
        if !matches!(scope.node().kind, Kind::EventSubProcess) {
            break;
        }
        at = scope.scope;
    }
    scopes
}

fn event_of(graph: &Graph, activity: NodeId) -> Option<NodeId> {
    let is_compensation =
        |event: &&NodeId| matches!(graph.trigger(**event), Some(Trigger::Compensation));
    graph.node(activity).boundaries.iter().find(is_compensation).copied()
}

/// Remembers a completed activity for later, with its own variables; of a sub-process that cannot
/// be undone as a whole, what was completed in it.
pub(crate) fn keep<P: Port>(port: &mut P, key: Key) {
    let element = port.state().live(key);
    let (scope, node) = (element.scope, element.node());
    let own = || element.variables.iter().map(|(name, value)| (name.clone(), value.clone()));
    let kept: Vec<Kept> = if node.compensation.is_some() && element.loop_counter == 0 {
        vec![Kept { node: element.node, variables: own().collect() }]
    } else if matches!(node.kind, Kind::SubProcess) {
        let with_own = |kept: &Kept| Kept {
            node: kept.node,
            variables: own().chain(kept.variables.iter().cloned()).collect(),
        };
        element.kept.iter().map(with_own).collect()
    } else {
        return;
    };
    for kept in kept {
        let variables = variables::carried(&kept.variables).into();
        port.emit(FlowEvent::CompensationKept { scope, node: kept.node.0, variables });
    }
}

/// Enters the handler behind a compensation event that has just left, with its variables.
pub(crate) fn enter_handler<P: Port>(
    port: &mut P,
    scope: Key,
    activity: NodeId,
    own: &variables::Variables,
) {
    let graph = port.state().live(scope).graph.clone();
    if let Some(handler) = graph.node(activity).compensation {
        let handler = enter_node(port, scope, handler, None);
        variables::set(port, handler, own);
    }
}

/// A part of an undoing is over: when it was the last one, who threw goes on.
pub(crate) fn part_ended<P: Port>(port: &mut P, scope: Key, node: &Node) {
    if !is_part(node) || is_undoing(port.state(), scope) {
        return;
    }
    let state = port.state();
    let mut throwers = Vec::new();
    let mut within = vec![scope];
    while let Some(key) = within.pop() {
        let Some(element) = state.element(key) else { continue };
        for child in &element.children {
            let inner = state.live(*child);
            if is_thrower(inner.node()) && inner.phase == Phase::Active {
                throwers.push(*child);
            } else if matches!(inner.node().kind, Kind::EventSubProcess) {
                within.push(*child);
            }
        }
    }
    for key in throwers {
        if !scopes(port.state(), key).into_iter().any(|scope| is_undoing(port.state(), scope)) {
            port.emit(FlowEvent::ElementCompleting { key });
        }
    }
}

/// Whether a scope is being undone, wholly or in part.
fn is_undoing(state: &FlowState, scope: Key) -> bool {
    let mut children = state.live(scope).children.iter();
    children.any(|child| is_part(state.live(*child).node()))
}

/// Whether an element waits for handlers that run in its scope or around it.
pub(crate) fn waits_for_handlers(state: &FlowState, key: Key) -> bool {
    is_thrower(state.live(key).node())
        && scopes(state, key).into_iter().any(|scope| is_undoing(state, scope))
}

fn is_part(node: &Node) -> bool {
    let is_event =
        matches!(&node.kind, Kind::Boundary(it) if matches!(it.trigger, Trigger::Compensation));
    node.is_compensation || is_event
}

fn is_thrower(node: &Node) -> bool {
    matches!(node.kind, Kind::Throw(Action::Compensate(_)) | Kind::End(Action::Compensate(_)))
}
