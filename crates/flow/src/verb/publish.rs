//! Publish a message.

use windlass_record::flow::{
    FlowAnswer, FlowEvent, FlowRejection, MessagePublished, PublishMessage,
};

use crate::kernel::Port;
use crate::kernel::message::reach_one;
use crate::kernel::variables::{join, split};

/// Decides [`PublishMessage`].
pub(super) fn decide<P: Port>(
    port: &mut P,
    command: &PublishMessage,
) -> Result<FlowAnswer, FlowRejection> {
    let variables = split(&command.variables)?;
    let topic =
        ((&*command.tenant).into(), (&*command.name).into(), (&*command.correlation_key).into());
    if !command.message_id.is_empty() {
        let named = (topic, (&*command.message_id).into());
        if port.state().message_ids.contains_key(&named) {
            return Err(FlowRejection::MessageExists { id: named.1 });
        }
    }
    if command.must_correlate && !crate::kernel::message::somebody_waits(port, command) {
        return Err(FlowRejection::NotCorrelated {
            name: (&*command.name).into(),
            correlation_key: (&*command.correlation_key).into(),
        });
    }

    // Cannot fail from here.
    let key = port.next_key();
    let now_ms = port.now_ms();
    let until_ms = if command.time_to_live_ms == 0 {
        0
    } else {
        now_ms.saturating_add(command.time_to_live_ms)
    };
    let object = join(variables.iter().map(|(name, value)| (name, value)));
    port.emit(FlowEvent::MessagePublished(MessagePublished {
        key,
        tenant: &command.tenant,
        name: &command.name,
        correlation_key: &command.correlation_key,
        message_id: &command.message_id,
        until_ms,
        variables: &object,
    }));
    if command.must_correlate
        && let Some(instance) = reach_one(port, key, &variables)
    {
        return Ok(FlowAnswer::Correlated { message: key, instance });
    }
    Ok(FlowAnswer::Key(key))
}
