//! Compensation: undoing what was completed, the newest first. A throw event enters the handlers
//! of the activities in its scope and goes on when all of them are done.

use windlass_record::flow::{FlowEvent, Key};

use crate::graph::NodeId;
use crate::kernel::{Port, Stuck, enter_node, variables};
use crate::state::element::Kept;

pub(super) fn activate<P: Port>(
    port: &mut P,
    key: Key,
    activity: Option<NodeId>,
) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let (graph, scope) = (element.graph.clone(), element.scope);
    let wanted = |kept: &&Kept| activity.is_none_or(|activity| activity == kept.node);
    let undone: Vec<Kept> =
        port.state().live(scope).kept.iter().filter(wanted).rev().cloned().collect();
    port.emit(&FlowEvent::ElementActivated { key });
    for kept in undone {
        port.emit(&FlowEvent::CompensationTaken { scope, node: kept.node.0 });
        if let Some(handler) = graph.node(kept.node).compensation {
            let handler = enter_node(port, scope, handler, None);
            variables::set(port, handler, &kept.variables);
        }
    }
    port.emit(&FlowEvent::ElementCompleting { key });
    Ok(())
}
