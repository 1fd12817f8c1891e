//! What is special about each kind of node, a file each: what it does when it is activated.

pub(crate) mod call;
pub(crate) mod compensate;
mod decision;
mod event;
pub(crate) mod gateway;
mod job;
pub(crate) mod repeat;
mod scope;
mod script;
pub(crate) mod task_listener;
mod throw;
mod user_task;

use windlass_record::flow::{FlowEvent, Key};

use crate::graph::{Kind, Node};
use crate::kernel::{Port, Stuck, enter};

/// Begins an element's work.
pub(crate) fn activate<P: Port>(port: &mut P, key: Key, node: &Node) -> Result<(), Stuck> {
    match &node.kind {
        Kind::Process | Kind::SubProcess | Kind::EventSubProcess => scope::activate(port, key),
        Kind::Start(_) | Kind::Boundary(_) | Kind::PassThrough => {
            enter::pass(port, key);
            Ok(())
        }
        Kind::Catch(_) | Kind::Receive(_) => event::activate(port, key),
        Kind::Throw(action) | Kind::End(action) => throw::activate(port, key, action),
        Kind::Job(spec) => job::activate(port, key, spec),
        Kind::UserTask(task) => user_task::activate(port, key, task),
        Kind::Script(script) => script::activate(port, key, script),
        Kind::Decision(decision) => decision::activate(port, key, decision),
        Kind::Call(call) => call::activate(port, key, call),
        Kind::Exclusive | Kind::Inclusive => {
            // One that cannot choose has not begun.
            gateway::chosen(port, key, node)?;
            enter::pass(port, key);
            Ok(())
        }
        Kind::Parallel => {
            enter::pass(port, key);
            Ok(())
        }
        Kind::EventBased => event::activate_gateway(port, key),
    }
}

/// The element waits, with its boundary events open.
fn wait_with_boundaries<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let boundaries =
        if element.loop_counter > 0 { Vec::new() } else { element.node().boundaries.clone() };
    let waits = crate::kernel::waits::prepare(port, key, &boundaries)?;
    port.emit(FlowEvent::ElementActivated { key });
    crate::kernel::waits::open(port, key, waits);
    Ok(())
}
