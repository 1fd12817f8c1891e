//! Modify an instance: end element instances and enter elements by hand, all or nothing.

use std::collections::BTreeSet;

use windlass_record::flow::{
    ActivateInstruction, FlowAnswer, FlowEvent, FlowRejection, Key, ModifyInstance,
};

use super::create::enterable;
use crate::graph::{Graph, NodeId};
use crate::kernel::variables::{Variables, set, split};
use crate::kernel::{Port, enter_node};
use crate::state::element::Phase;

/// An element to enter, checked.
struct Entry {
    node: NodeId,
    /// The live element instance under which it is entered.
    ancestor: Key,
    /// Variables by the node whose scope gets them.
    variables: Vec<(NodeId, Variables)>,
}

/// Decides [`ModifyInstance`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &ModifyInstance,
) -> Result<FlowAnswer, FlowRejection> {
    let key = command.key;
    let instance = port
        .state()
        .element(key)
        .filter(|element| element.process.is_some() && element.phase == Phase::Active)
        .ok_or(FlowRejection::InstanceNotFound { key })?;
    let graph = instance.graph.clone();
    let mut entries = Vec::new();
    for instruction in &command.activate {
        entries.push(checked(port, key, &graph, instruction)?);
    }
    for instruction in &command.terminate {
        let is_of_instance =
            port.state().element(instruction.key).is_some_and(|element| element.instance == key);
        if !is_of_instance {
            return Err(FlowRejection::ScopeNotFound { key: instruction.key });
        }
    }

    if entries.is_empty() && ends_called(port, key, command) {
        return Err(FlowRejection::ElementUnsuitable {
            id: graph.id.clone(),
            why: "nothing of the instance would be left, but a call activity waits for it: modify \
                  the instance that called it",
        });
    }

    // Cannot fail from here. Entering comes first, so that no scope is empty in between.
    for entry in entries {
        enter(port, &graph, &entry);
    }
    for instruction in &command.terminate {
        if port.state().live(instruction.key).phase != Phase::Terminating {
            port.emit(FlowEvent::ElementTerminating { key: instruction.key });
        }
    }
    Ok(FlowAnswer::Done)
}

/// Whether nothing would be left of an instance that another one called.
fn ends_called<P: Port>(port: &P, instance: Key, command: &ModifyInstance) -> bool {
    let is_called = |key| {
        let process = port.state().live(key).process.as_ref();
        process.is_some_and(|process| process.parent != Key::NONE)
    };
    if command.terminate.is_empty() || !is_called(instance) {
        return false;
    }
    let mut gone: BTreeSet<Key> = command.terminate.iter().map(|it| it.key).collect();
    // From the inside out: a scope without anything in it is ended too.
    for key in members(port, instance).into_iter().rev() {
        let element = port.state().live(key);
        let was_full = !element.children.is_empty() && element.parked.is_empty();
        if was_full && element.children.iter().all(|child| gone.contains(child)) {
            gone.insert(key);
        }
    }
    gone.contains(&instance)
}

fn checked<P: Port>(
    port: &P,
    instance: Key,
    graph: &Graph,
    instruction: &ActivateInstruction,
) -> Result<Entry, FlowRejection> {
    let node = enterable(graph, &instruction.element_id)?;
    let unsuitable =
        |why| FlowRejection::ElementUnsuitable { id: (&*instruction.element_id).into(), why };
    let ancestor = if instruction.ancestor == Key::NONE {
        nearest(port, instance, graph, node).map_err(unsuitable)?
    } else {
        let ancestor = instruction.ancestor;
        let element = port
            .state()
            .element(ancestor)
            .filter(|element| element.instance == instance)
            .ok_or(FlowRejection::ScopeNotFound { key: ancestor })?;
        if graph.towards(element.node, node).is_none() {
            return Err(unsuitable("the ancestor is not one of its scopes"));
        }
        ancestor
    };
    let mut variables = Vec::new();
    for group in &instruction.variables {
        let scope = if group.scope_id.is_empty() {
            NodeId::PROCESS
        } else {
            graph
                .find(&group.scope_id)
                .ok_or_else(|| FlowRejection::ElementNotFound { id: (&*group.scope_id).into() })?
        };
        if scope != node && graph.towards(scope, node).is_none() {
            return Err(unsuitable("variables are for an element that does not contain it"));
        }
        variables.push((scope, split(&group.variables)?));
    }
    Ok(Entry { node, ancestor, variables })
}

/// The innermost scope of a node that is live; there must be just one instance of it.
fn nearest<P: Port>(
    port: &P,
    instance: Key,
    graph: &Graph,
    node: NodeId,
) -> Result<Key, &'static str> {
    let mut scope = graph.node(node).scope;
    loop {
        let mut live =
            members(port, instance).into_iter().filter(|key| port.state().live(*key).node == scope);
        match (live.next(), live.next()) {
            (Some(only), None) => return Ok(only),
            (Some(_), Some(_)) => return Err("its scope is active more than once: name one"),
            (None, _) if scope == NodeId::PROCESS => return Err("its process is not active"),
            (None, _) => scope = graph.node(scope).scope,
        }
    }
}

/// All live element instances of a process instance.
pub(super) fn members<P: Port>(port: &P, instance: Key) -> Vec<Key> {
    let mut members = vec![instance];
    let mut at = 0;
    while let Some(key) = members.get(at).copied() {
        at += 1;
        members.extend(port.state().live(key).children.iter().copied());
    }
    members
}

/// Enters an element, and the scopes around it that are not there yet.
fn enter<P: Port>(port: &mut P, graph: &Graph, entry: &Entry) {
    // Scopes that are there get their variables now; the others as they are entered.
    let mut at = entry.ancestor;
    while let Some(element) = port.state().element(at) {
        let (node, outer) = (element.node, element.scope);
        give(port, at, node, entry);
        at = outer;
    }
    let ancestor = port.state().live(entry.ancestor).node;
    if let Some(next) = graph.towards(ancestor, entry.node) {
        let begin_at = (next != entry.node).then_some(entry.node);
        let key = enter_node(port, entry.ancestor, next, begin_at);
        give(port, key, next, entry);
        if next != entry.node {
            give(port, key, entry.node, entry);
        }
    }
}

fn give<P: Port>(port: &mut P, scope: Key, node: NodeId, entry: &Entry) {
    for (wanted, variables) in &entry.variables {
        if *wanted == node {
            set(port, scope, variables);
        }
    }
}
