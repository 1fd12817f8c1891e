//! Set variables: of exactly one scope, or each where it is.

use windlass_record::flow::{FlowAnswer, FlowEvent, FlowRejection, SetVariables};

use crate::kernel::Port;
use crate::kernel::variables::{merge, set, split};

/// Decides [`SetVariables`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &SetVariables,
) -> Result<FlowAnswer, FlowRejection> {
    let variables = split(&command.variables)?;
    if port.state().element(command.scope).is_none() {
        return Err(FlowRejection::ScopeNotFound { key: command.scope });
    }

    // Cannot fail from here.
    let key = port.next_key();
    port.emit(FlowEvent::KeyUsed { key });
    if command.local {
        set(port, command.scope, &variables);
    } else {
        merge(port, command.scope, &variables);
    }
    Ok(FlowAnswer::Key(key))
}
