//! What process instances wait for: messages, signals, conditions.

use tonic::Status;
use windlass_gateway::Gateway;

use crate::protocol as p;
use crate::refusal::not_yet;

/// Why all of them are refused for now.
const MISSING: &str = "processes are not executed yet";

pub(crate) async fn publish_message(
    _gateway: &Gateway,
    _given: p::PublishMessageRequest,
) -> Result<p::PublishMessageResponse, Status> {
    Err(not_yet("PublishMessage", MISSING))
}

pub(crate) async fn broadcast_signal(
    _gateway: &Gateway,
    _given: p::BroadcastSignalRequest,
) -> Result<p::BroadcastSignalResponse, Status> {
    Err(not_yet("BroadcastSignal", MISSING))
}

pub(crate) async fn evaluate_conditional(
    _gateway: &Gateway,
    _given: p::EvaluateConditionalRequest,
) -> Result<p::EvaluateConditionalResponse, Status> {
    Err(not_yet("EvaluateConditional", MISSING))
}
