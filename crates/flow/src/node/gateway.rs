//! Gateways: which of the flows behind an element are taken, in which order: the last one of the
//! document first, as Zeebe does. A model notices only where several conditions hold.

use windlass_record::flow::{FlowIncidentKind, Key};

use crate::graph::{FlowId, Kind, Node};
use crate::kernel::job::no_front;
use crate::kernel::{Port, Stuck, expression};

/// The flows that are taken out of an element.
pub(crate) fn chosen<P: Port>(port: &P, key: Key, node: &Node) -> Result<Vec<FlowId>, Stuck> {
    if node.outgoing.len() > 1 || has_condition(port, key, node) {
        if matches!(node.kind, Kind::Exclusive) {
            return exclusive(port, key, node);
        }
        if matches!(node.kind, Kind::Inclusive) {
            return inclusive(port, key, node);
        }
    }
    Ok(node.outgoing.iter().rev().copied().collect())
}

fn has_condition<P: Port>(port: &P, key: Key, node: &Node) -> bool {
    let graph = &port.state().live(key).graph;
    node.outgoing.iter().any(|flow| graph.flow(*flow).condition.is_some())
}

fn exclusive<P: Port>(port: &P, key: Key, node: &Node) -> Result<Vec<FlowId>, Stuck> {
    for flow in node.outgoing.iter().rev() {
        if Some(*flow) != node.default_flow && holds(port, key, *flow)? {
            return Ok(vec![*flow]);
        }
    }
    or_default(node)
}

fn inclusive<P: Port>(port: &P, key: Key, node: &Node) -> Result<Vec<FlowId>, Stuck> {
    let mut taken = Vec::new();
    for flow in node.outgoing.iter().rev() {
        if Some(*flow) != node.default_flow && holds(port, key, *flow)? {
            taken.push(*flow);
        }
    }
    if taken.is_empty() { or_default(node) } else { Ok(taken) }
}

fn holds<P: Port>(port: &P, key: Key, flow: FlowId) -> Result<bool, Stuck> {
    let graph = port.state().live(key).graph.clone();
    let Some(condition) = &graph.flow(flow).condition else { return Ok(false) };
    expression::condition(port, condition, key, &no_front()).map_err(|problem| {
        let message = format!("sequence flow '{}': {problem}", graph.flow(flow).id);
        Stuck::new(FlowIncidentKind::ExtractValue, message)
    })
}

fn or_default(node: &Node) -> Result<Vec<FlowId>, Stuck> {
    match node.default_flow {
        Some(flow) => Ok(vec![flow]),
        None => Err(Stuck::new(
            FlowIncidentKind::Condition,
            "Expected at least one condition to evaluate to true, or to have a default flow",
        )),
    }
}
