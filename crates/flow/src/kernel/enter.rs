//! Entering an element: its input mappings, the listeners before its work, then the work itself.

use windlass_record::flow::{FlowEvent, JobRole, Key};

use super::{Port, Stuck, job, variables};
use crate::node;

/// Goes on with an element that is on its way in.
pub(super) fn enter<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    if element.is_loop() {
        return node::repeat::begin(port, key);
    }
    let (graph, id, listener) = (element.graph.clone(), element.node, element.listener);
    let node = graph.node(id);
    if listener == 0 {
        variables::inputs(port, key)?;
    }
    let next = usize::try_from(listener).unwrap_or(usize::MAX);
    if let Some(listener) = node.on_start.get(next) {
        let role = JobRole::StartListener;
        return job::create(port, key, &listener.job, role);
    }
    node::activate(port, key, node)
}

/// The element's work began, and there is nothing to wait for.
pub(crate) fn pass<P: Port>(port: &mut P, key: Key) {
    port.emit(&FlowEvent::ElementActivated { key });
    port.emit(&FlowEvent::ElementCompleting { key });
}
