//! Events that are waited for in the flow: catch events, receive tasks, event-based gateways.

use windlass_record::flow::{FlowEvent, Key};

use crate::graph::Trigger;
use crate::kernel::{Port, Stuck, enter, waits};

pub(super) fn activate<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let node = element.node;
    let is_link = matches!(element.graph.trigger(node), Some(Trigger::Link(_)));
    if element.begin_at == Some(node) || is_link {
        // It has happened already: behind an event-based gateway, or at the end of a link, even of
        // one that was entered by hand.
        enter::pass(port, key);
        return Ok(());
    }
    let mut nodes = vec![node];
    if element.loop_counter == 0 {
        nodes.extend(element.node().boundaries.iter().copied());
    }
    let waits = waits::prepare(port, key, &nodes)?;
    port.emit(FlowEvent::ElementActivated { key });
    waits::open(port, key, waits);
    Ok(())
}

pub(super) fn activate_gateway<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let graph = &element.graph;
    let nodes: Vec<_> = element.node().outgoing.iter().map(|flow| graph.flow(*flow).to).collect();
    let waits = waits::prepare(port, key, &nodes)?;
    port.emit(FlowEvent::ElementActivated { key });
    waits::open(port, key, waits);
    Ok(())
}
