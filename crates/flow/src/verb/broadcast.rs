//! Broadcast a signal.

use windlass_record::flow::{BroadcastSignal, FlowAnswer, FlowEvent, FlowRejection};

use crate::kernel::Port;
use crate::kernel::variables::{join, split};

/// Decides [`BroadcastSignal`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &BroadcastSignal,
) -> Result<FlowAnswer, FlowRejection> {
    let variables = split(&command.variables)?;

    // Cannot fail from here.
    let key = port.next_key();
    let variables = join(variables.iter().map(|(name, value)| (name, value)));
    port.emit(FlowEvent::SignalBroadcast {
        key,
        tenant: &command.tenant,
        name: &command.name,
        variables: &variables,
    });
    Ok(FlowAnswer::Key(key))
}
