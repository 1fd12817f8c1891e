//! Modify an instance: end element instances, enter elements and move tokens by hand, all or
//! nothing.

use std::collections::BTreeSet;

use windlass_record::flow::{
    ActivateInstruction, FlowAnswer, FlowEvent, FlowRejection, Key, ModifyInstance, MoveAncestor,
    MoveInstruction, TerminateInstruction, VariableInstruction,
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
    let (mut entries, mut ending) = (Vec::new(), Vec::new());
    for instruction in &command.activate {
        entries.push(checked(port, key, &graph, instruction)?);
    }
    for instruction in &command.terminate {
        ending.append(&mut meant(port, key, &graph, instruction)?);
    }
    for instruction in &command.moves {
        for source in meant(port, key, &graph, &instruction.source)? {
            entries.push(moved(port, key, &graph, (source, instruction))?);
            ending.push(source);
        }
    }

    if entries.is_empty() && ends_called(port, key, &ending) {
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
    for key in ending {
        if port.state().live(key).phase != Phase::Terminating {
            port.emit(FlowEvent::ElementTerminating { key });
        }
    }
    Ok(FlowAnswer::Done)
}

/// Whether nothing would be left of an instance that another one called.
fn ends_called<P: Port>(port: &P, instance: Key, ending: &[Key]) -> bool {
    let is_called = |key| {
        let process = port.state().live(key).process.as_ref();
        process.is_some_and(|process| process.parent != Key::NONE)
    };
    if ending.is_empty() || !is_called(instance) {
        return false;
    }
    let mut gone: BTreeSet<Key> = ending.iter().copied().collect();
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

/// The element instances that an instruction means.
fn meant<P: Port>(
    port: &P,
    instance: Key,
    graph: &Graph,
    instruction: &TerminateInstruction,
) -> Result<Vec<Key>, FlowRejection> {
    let id = match instruction {
        TerminateInstruction::Instance(key) => {
            let is_of_instance =
                port.state().element(*key).is_some_and(|element| element.instance == instance);
            return if is_of_instance {
                Ok(vec![*key])
            } else {
                Err(FlowRejection::ScopeNotFound { key: *key })
            };
        }
        TerminateInstruction::Element(id) => id,
    };
    let node =
        graph.find(id).ok_or_else(|| FlowRejection::ElementNotFound { id: (&**id).into() })?;
    // The instances of a multi-instance end with it.
    let is_meant = |key: &Key| {
        let element = port.state().live(*key);
        let around = port.state().element(element.scope);
        element.node == node && around.is_none_or(|around| around.node != node)
    };
    let found: Vec<Key> = members(port, instance).into_iter().filter(is_meant).collect();
    if found.is_empty() {
        let why = "it has no active instance";
        return Err(FlowRejection::ElementUnsuitable { id: (&**id).into(), why });
    }
    Ok(found)
}

/// What is entered in place of an element instance.
fn moved<P: Port>(
    port: &P,
    instance: Key,
    graph: &Graph,
    (source, instruction): (Key, &MoveInstruction),
) -> Result<Entry, FlowRejection> {
    let mut ancestor = match instruction.ancestor {
        MoveAncestor::Instance(key) => key,
        MoveAncestor::SourceParent | MoveAncestor::SourceHierarchy => {
            port.state().live(source).scope
        }
    };
    if instruction.ancestor == MoveAncestor::SourceHierarchy
        && let Some(target) = graph.find(&instruction.target_id)
    {
        while let Some(around) = port.state().element(ancestor)
            && graph.towards(around.node, target).is_none()
        {
            ancestor = around.scope;
        }
    }
    // A whole process stands in nothing, and is moved nowhere.
    if source == instance {
        return Err(FlowRejection::ElementUnsuitable {
            id: (&*instruction.target_id).into(),
            why: "its process as a whole cannot be moved to it",
        });
    }
    checked_entry(port, instance, graph, (&instruction.target_id, ancestor, &instruction.variables))
}

fn checked<P: Port>(
    port: &P,
    instance: Key,
    graph: &Graph,
    instruction: &ActivateInstruction,
) -> Result<Entry, FlowRejection> {
    let ActivateInstruction { element_id, ancestor, variables } = instruction;
    checked_entry(port, instance, graph, (element_id, *ancestor, variables))
}

/// An element's id, the element instance under which it is entered, and variables.
type Wanted<'a> = (&'a str, Key, &'a [VariableInstruction]);

fn checked_entry<P: Port>(
    port: &P,
    instance: Key,
    graph: &Graph,
    (id, ancestor, given): Wanted<'_>,
) -> Result<Entry, FlowRejection> {
    let node = enterable(graph, id)?;
    let unsuitable = |why| FlowRejection::ElementUnsuitable { id: id.into(), why };
    let ancestor = if ancestor == Key::NONE {
        nearest(port, instance, graph, node).map_err(unsuitable)?
    } else {
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
    for group in given {
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
