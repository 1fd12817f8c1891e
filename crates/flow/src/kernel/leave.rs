//! Leaving an element: its output mappings, the listeners after its work, then the flows behind it.

use windlass_record::flow::{FlowEvent, JobRole, Key};

use super::{Port, Stuck, enter_node, job, variables, waits};
use crate::graph::{Action, FlowId, Graph, Kind, NodeId, Trigger};
use crate::node;
use crate::state::element::Phase;

/// Goes on with an element that is on its way out.
pub(super) fn leave<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, id, scope) = (element.graph.clone(), element.node, element.scope);
    let (listener, is_loop) = (element.listener, element.is_loop());
    let is_instance_of_loop = element.loop_counter > 0;
    let node = graph.node(id);
    if super::active::follow_up_late(port, key) {
        return Ok(());
    }
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
    if scope == Key::NONE && element_parent(port, key) != Key::NONE {
        // All of it goes to the caller.
        variables::check_fits(port, &variables::own(port, key))?;
    }
    waits::close(port, key);
    if scope == Key::NONE {
        node::call::instance_completed(port, key);
        return Ok(());
    }
    node::compensate::keep(port, key);
    let mut undoes = None;
    if let Kind::Boundary(event) = &node.kind
        && matches!(event.trigger, Trigger::Compensation)
    {
        undoes = Some((event.host, variables::own(port, key)));
    }
    if let Kind::End(Action::Terminate) = &node.kind {
        super::active::trigger(port, scope, id, &[]);
    }
    port.emit(FlowEvent::ElementCompleted { key });
    if let Kind::Throw(Action::Link(target)) = &node.kind {
        enter_node(port, scope, *target, Some(*target));
        return Ok(());
    }
    if let Some((activity, own)) = undoes {
        node::compensate::enter_handler(port, scope, activity, &own);
    }
    node::compensate::part_ended(port, scope, node);
    go_by(port, &graph, scope, &flows);
    Ok(())
}

fn element_parent<P: Port>(port: &P, key: Key) -> Key {
    port.state().live(key).process.as_ref().map_or(Key::NONE, |process| process.parent)
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
    port.emit(FlowEvent::TokenParked { scope, flow: flow.0 });
    let parked = &port.state().live(scope).parked;
    // The count is looked at first, so that a join of ten thousand flows stays cheap.
    let may_be_all = parked.len() >= node.incoming.len();
    if may_be_all && node.incoming.iter().all(|flow| parked.contains_key(&flow.0)) {
        enter_node(port, scope, target, None);
    }
}

/// Inclusive gateways go on when no token that still runs in the scope can come to them by a flow
/// by which none has come yet.
pub(crate) fn join_inclusive<P: Port>(port: &mut P, graph: &Graph, scope: Key) {
    let Some(element) = port.state().element(scope) else { return };
    if element.parked.is_empty() {
        return;
    }
    for gateway in &element.node().inclusive_joins.clone() {
        let element = port.state().live(scope);
        if !element.parked.keys().any(|flow| graph.flow(FlowId(*flow)).to == *gateway) {
            continue;
        }
        let is_missing = |flow: &&FlowId| !element.parked.contains_key(&flow.0);
        let missing: Vec<FlowId> =
            graph.node(*gateway).incoming.iter().filter(is_missing).copied().collect();
        let sources = graph.sources(*gateway, &missing);
        let comes = |node: NodeId| {
            usize::try_from(node.0).ok().and_then(|at| sources.get(at)).copied().unwrap_or(false)
        };
        let mut running = element.children.iter().map(|child| port.state().live(*child).node);
        let mut parked = element.parked.keys().map(|flow| graph.flow(FlowId(*flow)).to);
        if !running.any(|node| node == *gateway || comes(node)) && !parked.any(comes) {
            enter_node(port, scope, *gateway, None);
        }
    }
}

/// A scope in which nothing runs and no token waits is on its way out.
pub(crate) fn complete_if_empty<P: Port>(port: &mut P, scope: Key) {
    let Some(element) = port.state().element(scope) else { return };
    let is_empty = element.children.is_empty() && element.parked.is_empty();
    if element.phase == Phase::Active && is_empty && element.triggered.is_empty() {
        port.emit(FlowEvent::ElementCompleting { key: scope });
    }
}
