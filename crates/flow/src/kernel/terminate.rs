//! Ending an element and all that is in it, from the inside out.

use windlass_record::flow::{FlowEvent, Key};

use super::active::end_children;
use super::{Port, Stuck, enter_event, leave, message, waits};
use crate::graph::Kind;
use crate::node::{self, task_listener};
use crate::state::element::Phase;

/// Goes on with an element that is to end.
pub(super) fn terminate<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    if task_listener::hold_end(port, key)? {
        return Ok(());
    }
    let element = port.state().live(key);
    let (job, user_task, called) = (element.job, element.user_task, element.called);
    if let Some((job, _)) = job {
        port.cancel_job(job);
        port.emit(FlowEvent::JobDetached { element: key, job });
    }
    if let Some(user_task) = user_task {
        port.emit(FlowEvent::UserTaskEnded { key: user_task, completed: false });
    }
    if let Some(called) = called {
        if port.state().live(called).phase != Phase::Terminating {
            port.emit(FlowEvent::ElementTerminating { key: called });
        }
        return Ok(());
    }
    if !end_children(port, key) {
        return Ok(());
    }
    waits::close(port, key);
    gone(port, key);
    Ok(())
}

/// Nothing of the element is left: what follows from that.
fn gone<P: Port>(port: &mut P, key: Key) {
    let element = port.state().live(key);
    let (graph, scope, process) = (element.graph.clone(), element.scope, element.process.is_some());
    let id = element.node;
    let parent = element.process.as_ref().map_or(Key::NONE, |process| process.parent);
    let cause = element
        .triggered
        .iter()
        .find(|event| matches!(graph.node(event.node).kind, Kind::Boundary(_)))
        .cloned();
    let freed = process.then(|| message::lock_of(port, key)).flatten();
    port.emit(FlowEvent::ElementTerminated { key });
    if let Some(freed) = freed {
        message::start_next(port, &freed);
    }
    if let Some(caller) = port.state().element(parent)
        && caller.phase == Phase::Active
        && caller.listens()
    {
        // It was ended by hand: its call activity has nothing to wait for.
        port.emit(FlowEvent::ElementTerminating { key: parent });
    }
    let Some(outer) = port.state().element(scope) else { return };
    if outer.phase != Phase::Active {
        return;
    }
    if let Some(event) = cause {
        enter_event(port, scope, event.node, &event.variables);
        return;
    }
    if outer.is_loop() {
        port.emit(FlowEvent::ElementQueued { key: scope });
        return;
    }
    node::compensate::part_ended(port, scope, graph.node(id));
    leave::join_inclusive(port, &graph, scope);
    let outer = port.state().live(scope);
    let is_empty = outer.children.is_empty() && outer.parked.is_empty();
    if is_empty && outer.triggered.is_empty() {
        // Somebody ended the last thing that ran here by hand.
        port.emit(FlowEvent::ElementTerminating { key: scope });
    }
}
