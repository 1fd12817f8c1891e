//! Processes, sub-processes and event sub-processes: what stands in them runs.

use windlass_record::flow::{FlowEvent, Key};

use crate::graph::NodeId;
use crate::kernel::{Port, Stuck, enter_event, enter_node, enter_towards, waits};
use crate::state::element::Triggered;

pub(super) fn activate<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let node = element.node();
    let mut events = node.event_scopes.clone();
    if element.loop_counter == 0 {
        events.extend(node.boundaries.iter().copied());
    }
    let begin_at = element.begin_at;
    let starts: Vec<NodeId> = match (&element.process, begin_at) {
        (Some(process), _) => process.starts.to_vec(),
        (None, Some(begin_at)) => vec![begin_at],
        (None, None) => node.start.into_iter().collect(),
    };
    let began_by = element.triggered.front().cloned();
    let waits = waits::prepare(port, key, &events)?;
    port.emit(FlowEvent::ElementActivated { key });
    for start in starts {
        begin(port, key, start, began_by.as_ref());
    }
    waits::open(port, key, waits);
    Ok(())
}

/// Enters where the scope begins, with what came with the event that began it.
fn begin<P: Port>(port: &mut P, key: Key, start: NodeId, began_by: Option<&Triggered>) {
    if let Some(event) = began_by.filter(|event| event.node == start) {
        port.emit(FlowEvent::EventTaken { element: key });
        enter_event(port, key, start, &event.variables);
        return;
    }
    let own = port.state().live(key);
    if own.graph.node(start).scope == own.node {
        enter_node(port, key, start, None);
    } else {
        enter_towards(port, key, start);
    }
}
