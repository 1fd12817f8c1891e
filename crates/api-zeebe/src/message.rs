//! What process instances wait for: messages, signals, conditions.

use tonic::Status;
use windlass_gateway::Gateway;
use windlass_record::flow::{BroadcastSignal, FlowCommand, PublishMessage};

use crate::flow::{AskedOfFlows, ask, key_of};
use crate::protocol as p;
use crate::queue::TENANT_DEFAULT;
use crate::refusal::not_yet;
use crate::{document, tenant};

pub(crate) async fn publish_message(
    gateway: &Gateway,
    given: p::PublishMessageRequest,
) -> Result<p::PublishMessageResponse, Status> {
    let tenant = tenant::one("PublishMessage", &given.tenant_id)?;
    if given.business_id.is_some_and(|id| !id.is_empty()) {
        let missing = "a message does not look for a business id";
        return Err(not_yet("PublishMessage with a business id", missing));
    }
    let command = PublishMessage {
        tenant: tenant.into(),
        name: given.name.into(),
        correlation_key: given.correlation_key.into(),
        message_id: given.message_id.into(),
        // A negative time is over.
        time_to_live_ms: u64::try_from(given.time_to_live).unwrap_or(0),
        variables: document::variables(&given.variables)?,
        must_correlate: false,
    };
    let answer = ask(gateway, AskedOfFlows::Publish, FlowCommand::PublishMessage(command)).await?;
    let tenant_id = TENANT_DEFAULT.to_owned();
    Ok(p::PublishMessageResponse { key: key_of(&answer)?, tenant_id })
}

pub(crate) async fn broadcast_signal(
    gateway: &Gateway,
    given: p::BroadcastSignalRequest,
) -> Result<p::BroadcastSignalResponse, Status> {
    let tenant = tenant::one("BroadcastSignal", &given.tenant_id)?;
    let command = BroadcastSignal {
        tenant: tenant.into(),
        name: given.signal_name.into(),
        variables: document::variables(&given.variables)?,
    };
    let command = FlowCommand::BroadcastSignal(command);
    let answer = ask(gateway, AskedOfFlows::Broadcast, command).await?;
    let tenant_id = TENANT_DEFAULT.to_owned();
    Ok(p::BroadcastSignalResponse { key: key_of(&answer)?, tenant_id })
}

pub(crate) async fn evaluate_conditional(
    _gateway: &Gateway,
    _given: p::EvaluateConditionalRequest,
) -> Result<p::EvaluateConditionalResponse, Status> {
    Err(not_yet("EvaluateConditional", "there are no conditional start events"))
}
