//! Cancel an instance with all that it called. One that was called cannot be cancelled alone.

use windlass_record::flow::{CancelInstance, FlowAnswer, FlowEvent, FlowRejection, Key};

use crate::kernel::Port;
use crate::state::element::Phase;

/// Decides [`CancelInstance`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &CancelInstance,
) -> Result<FlowAnswer, FlowRejection> {
    let key = command.key;
    let not_found = FlowRejection::InstanceNotFound { key };
    let element = port.state().element(key).ok_or(not_found.clone())?;
    let process = element.process.as_ref().ok_or(not_found)?;
    if process.parent != Key::NONE {
        return Err(FlowRejection::InstanceIsChild { key, root: process.root });
    }

    // Cannot fail from here.
    if element.phase != Phase::Terminating {
        port.emit(FlowEvent::ElementTerminating { key });
    }
    Ok(FlowAnswer::Done)
}
