//! Leaving an element: its output mappings, the listeners after its work, then the flows behind it.

use windlass_record::flow::{FlowEvent, JobRole, Key};

use super::{Port, Stuck, enter_node, job, variables, waits};
use crate::graph::{Action, FlowId, Graph, Kind, NodeId, Text};
use crate::node;
use crate::state::element::Phase;

/// Goes on with an element that is on its way out.
pub(super) fn leave<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, id, scope) = (element.graph.clone(), element.node, element.scope);
    let (listener, is_loop) = (element.listener, element.is_loop());
    let is_instance_of_loop = element.loop_counter > 0;
    let node = graph.node(id);
    if is_loop {
        node::repeat::publish(port, key);
    } else {
        if listener == 0 {
            variables::outputs(port, key)?;
        }
        let next = usize::try_from(listener).unwrap_or(usize::MAX);
        if let Some(listener) = node.on_end.get(next) {
            return job::create(port, key, &listener.job, JobRole::EndListener);
        }
        if is_instance_of_loop {
            return node::repeat::collect(port, key);
        }
    }
    let flows = node::gateway::chosen(port, key, node)?;
    waits::close(port, key);
    if scope == Key::NONE {
        node::call::instance_completed(port, key);
        return Ok(());
    }
    if node.compensation.is_some() {
        keep(port, key, scope, id);
    }
    if let Kind::End(Action::Terminate) = &node.kind {
        super::active::trigger(port, scope, id, &[]);
    }
    port.emit(&FlowEvent::ElementCompleted { key });
    if let Kind::Throw(Action::Link(target)) = &node.kind {
        enter_node(port, scope, *target, Some(*target));
        return Ok(());
    }
    go_by(port, &graph, scope, &flows);
    Ok(())
}

/// Takes flows out of an element that is gone, and looks whether its scope has come to its end.
fn go_by<P: Port>(port: &mut P, graph: &Graph, scope: Key, flows: &[FlowId]) {
    for flow in flows {
        take(port, graph, scope, *flow);
    }
    join_inclusive(port, graph, scope);
    complete_if_empty(port, scope);
}

fn take<P: Port>(port: &mut P, graph: &Graph, scope: Key, flow: FlowId) {
    let target = graph.flow(flow).to;
    let node = graph.node(target);
    let joins = matches!(node.kind, Kind::Parallel | Kind::Inclusive) && node.incoming.len() > 1;
    if !joins {
        enter_node(port, scope, target, None);
        return;
    }
    port.emit(&FlowEvent::TokenParked { scope, flow: flow.0 });
    let parked = &port.state().live(scope).parked;
    if node.incoming.iter().all(|flow| parked.contains_key(&flow.0)) {
        enter_node(port, scope, target, None);
    }
}

/// Inclusive gateways go on when no token that still runs in the scope can come to them.
pub(crate) fn join_inclusive<P: Port>(port: &mut P, graph: &Graph, scope: Key) {
    let Some(element) = port.state().element(scope) else { return };
    if element.parked.is_empty() {
        return;
    }
    let mut waiting: Vec<NodeId> = element
        .parked
        .keys()
        .map(|flow| graph.flow(FlowId(*flow)).to)
        .filter(|node| matches!(graph.node(*node).kind, Kind::Inclusive))
        .collect();
    waiting.sort_unstable();
    waiting.dedup();
    for gateway in waiting {
        let element = port.state().live(scope);
        let running = element.children.iter().map(|child| port.state().live(*child).node);
        let parked = element.parked.keys().map(|flow| graph.flow(FlowId(*flow)).to);
        let mut tokens = running.chain(parked.filter(|node| *node != gateway));
        if !tokens.any(|node| node == gateway || graph.reaches(node, gateway)) {
            enter_node(port, scope, gateway, None);
        }
    }
}

/// A scope in which nothing runs and no token waits is on its way out.
pub(crate) fn complete_if_empty<P: Port>(port: &mut P, scope: Key) {
    let Some(element) = port.state().element(scope) else { return };
    let is_empty = element.children.is_empty() && element.parked.is_empty();
    if element.phase == Phase::Active && is_empty && element.triggered.is_empty() {
        port.emit(&FlowEvent::ElementCompleting { key: scope });
    }
}

/// The activity can be undone later, with its own variables.
fn keep<P: Port>(port: &mut P, key: Key, scope: Key, node: NodeId) {
    let own: Vec<(Text, Text)> = port
        .state()
        .live(key)
        .variables
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let variables = variables::carried(&own).into();
    port.emit(&FlowEvent::CompensationKept { scope, node: node.0, variables });
}
