//! Decisions.

use tonic::Status;
use windlass_gateway::Gateway;

use crate::protocol as p;
use crate::refusal::not_yet;

/// Why all of them are refused for now.
const MISSING: &str = "decisions are not evaluated yet";

pub(crate) async fn evaluate_decision(
    _gateway: &Gateway,
    _given: p::EvaluateDecisionRequest,
) -> Result<p::EvaluateDecisionResponse, Status> {
    Err(not_yet("EvaluateDecision", MISSING))
}
