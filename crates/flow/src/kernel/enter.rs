//! Entering an element: its input mappings, the listeners before its work, then the work itself.

use windlass_record::bound::Bound;
use windlass_record::flow::{FlowEvent, FlowIncidentKind, JobRole, Key};

use super::{Port, Stuck, job, variables};
use crate::node;

/// Goes on with an element that is on its way in.
pub(super) fn enter<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    if element.is_loop() {
        check_rests(port, key)?;
        return node::repeat::begin(port, key);
    }
    let (graph, id, listener) = (element.graph.clone(), element.node, element.listener);
    let node = graph.node(id);
    if listener == 0 {
        check_rests(port, key)?;
        variables::inputs(port, key)?;
    }
    let next = usize::try_from(listener).unwrap_or(usize::MAX);
    if let Some(listener) = node.on_start.get(next) {
        let role = JobRole::StartListener;
        return job::create(port, key, &listener.job, role);
    }
    node::activate(port, key, node)
}

/// A scope whose elements never wait goes round in a circle.
fn check_rests<P: Port>(port: &P, key: Key) -> Result<(), Stuck> {
    let max = port.bounds().elements_without_wait_max;
    let scope = port.state().element(port.state().live(key).scope);
    if scope.is_none_or(|scope| scope.entered <= max) {
        return Ok(());
    }
    let what = "the process seems to go round in a circle without ever waiting";
    Err(Stuck::past(FlowIncidentKind::ExtractValue, what, Bound::ElementsWithoutWait, max))
}

/// The element's work began, and there is nothing to wait for.
pub(crate) fn pass<P: Port>(port: &mut P, key: Key) {
    port.emit(FlowEvent::ElementActivated { key });
    port.emit(FlowEvent::ElementCompleting { key });
}
