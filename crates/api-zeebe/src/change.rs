//! Changes of user tasks: they are answered when the user task's listeners are through, and said to
//! be denied when one of them denied it.

use tonic::{Code, Status};
use windlass_gateway::request::{Answer, Changed};
use windlass_gateway::{Gateway, GatewayError};
use windlass_record::flow::{FlowAnswer, FlowCommand};
use windlass_record::rejection::RejectionKind;

use crate::flow::other_answer;
use crate::limit::REQUEST_MS_DEFAULT;
use crate::refusal::rejected_as;

/// What is asked, as refusals name it.
pub(crate) struct Change {
    pub(crate) command: FlowCommand,
    /// What clients know the command as.
    pub(crate) intent: &'static str,
    /// What was expected to happen: "complete user task with key '7'".
    pub(crate) what: String,
}

/// Asks, and waits for the listeners if there are some. `refused` has the words for what the engine
/// refuses.
pub(crate) async fn change(
    gateway: &Gateway,
    change: Change,
    refused: impl FnOnce(GatewayError) -> Status,
) -> Result<FlowAnswer, Status> {
    let Change { command, intent, what } = change;
    let in_state = |why: &str| {
        let reason = format!("Expected to {what}, but {why}");
        rejected_as(intent, RejectionKind::FailedPrecondition, &reason)
    };
    match gateway.change(command, REQUEST_MS_DEFAULT).await {
        Ok(Changed::Answered(Answer::Flow(answer))) => Ok(answer),
        Ok(Changed::Answered(
            Answer::Done
            | Answer::Created { .. }
            | Answer::Held { .. }
            | Answer::CancelPending
            | Answer::Versions(_)
            | Answer::Schedule(_),
        )) => Err(other_answer()),
        Ok(Changed::Denied(reason)) if reason.is_empty() => {
            Err(in_state("a task listener denied it"))
        }
        Ok(Changed::Denied(reason)) => {
            Err(in_state(&format!("a task listener denied it. Reason to deny: '{reason}'")))
        }
        Ok(Changed::Cancelled) => Err(in_state("it was canceled meanwhile")),
        Ok(Changed::TimedOut) => Err(Status::new(
            Code::DeadlineExceeded,
            format!(
                "Time out between gateway and broker: expected to {what}, but its task listeners \
                 are not through within {REQUEST_MS_DEFAULT} ms; they go on"
            ),
        )),
        Err(error) => Err(refused(error)),
    }
}
