//! Going on with an active element: events that happened to it, instances of a loop.

use windlass_record::flow::{FlowEvent, Key};

use super::{FAN_OUT_MAX, Port, Stuck, enter_event, enter_node, leave, variables, waits};
use crate::graph::{Action, Kind};
use crate::node::{self, task_listener};
use crate::state::element::{Phase, Triggered};

/// Goes on with an active element.
pub(super) fn go_on<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    if let Some(event) = element.triggered.front().cloned() {
        follow_up(port, key, &event);
        return go_on_with_user_task(port, key);
    }
    if element.is_loop() {
        return node::repeat::go_on(port, key);
    }
    if element.node().kind.is_scope() {
        // The last child may have ended while an event was still to be followed up.
        leave::complete_if_empty(port, key);
    }
    go_on_with_user_task(port, key)
}

/// Goes on with what is about to happen to the element's user task, if nothing interrupted that.
fn go_on_with_user_task<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let listens = port.state().element(key).is_some_and(|element| element.listens());
    if listens { task_listener::go_on(port, key) } else { Ok(()) }
}

/// Events that happened just before an element was done and that do not interrupt it. True when
/// there were some: then the element is on the to-do list again.
pub(super) fn follow_up_late<P: Port>(port: &mut P, key: Key) -> bool {
    let element = port.state().live(key);
    let Some(event) = element.triggered.front().cloned() else { return false };
    let is_boundary = matches!(element.graph.node(event.node).kind, Kind::Boundary(_));
    if !is_boundary || element.graph.interrupts(event.node) {
        return false;
    }
    follow_up(port, key, &event);
    port.emit(FlowEvent::ElementQueued { key });
    true
}

/// An event happened to an element.
pub(crate) fn trigger<P: Port>(
    port: &mut P,
    element: Key,
    node: crate::graph::NodeId,
    with: &[(crate::graph::Text, crate::graph::Text)],
) {
    let variables = variables::carried(with).into();
    port.emit(FlowEvent::EventTriggered { element, node: node.0, variables });
}

fn follow_up<P: Port>(port: &mut P, key: Key, event: &Triggered) {
    let element = port.state().live(key);
    let (graph, scope, own) = (element.graph.clone(), element.scope, element.node);
    let kind = &graph.node(event.node).kind;
    let interrupts = graph.interrupts(event.node);
    if matches!(kind, Kind::Boundary(_)) && interrupts {
        // The event stays with the element; it is entered when the element is gone.
        port.emit(FlowEvent::ElementTerminating { key });
    } else if matches!(kind, Kind::Boundary(_)) {
        port.emit(FlowEvent::EventTaken { element: key });
        enter_event(port, scope, event.node, &event.variables);
    } else if matches!(kind, Kind::EventSubProcess) {
        if interrupts && !end_children(port, key) {
            return;
        }
        port.emit(FlowEvent::EventTaken { element: key });
        if interrupts {
            waits::close_inside(port, key);
        }
        let inner = enter_node(port, key, event.node, None);
        if let Some(start) = graph.node(event.node).start {
            trigger(port, inner, start, &event.variables);
        }
    } else if matches!(kind, Kind::End(Action::Terminate)) {
        if end_children(port, key) {
            port.emit(FlowEvent::EventTaken { element: key });
            port.emit(FlowEvent::ElementCompleting { key });
        }
    } else if event.node == own {
        port.emit(FlowEvent::EventTaken { element: key });
        variables::deliver(port, key, &event.variables);
        port.emit(FlowEvent::ElementCompleting { key });
    } else {
        // One of the events behind an event-based gateway.
        port.emit(FlowEvent::EventTaken { element: key });
        waits::close(port, key);
        enter_event(port, scope, event.node, &event.variables);
        port.emit(FlowEvent::ElementCompleted { key });
    }
}

/// Ends what runs in a scope, a bounded number at a time. True when nothing does.
pub(crate) fn end_children<P: Port>(port: &mut P, key: Key) -> bool {
    let element = port.state().live(key);
    if element.children.is_empty() {
        return true;
    }
    let running = |child: &&Key| port.state().live(**child).phase != Phase::Terminating;
    let ending: Vec<Key> =
        element.children.iter().filter(running).take(FAN_OUT_MAX + 1).copied().collect();
    let more = ending.len() > FAN_OUT_MAX;
    for child in ending.into_iter().take(FAN_OUT_MAX) {
        port.emit(FlowEvent::ElementTerminating { key: child });
    }
    if more {
        port.emit(FlowEvent::ElementQueued { key });
    }
    false
}
