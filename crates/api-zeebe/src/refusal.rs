//! What is said when something is refused: one status code per sort of refusal, and a sentence of
//! the shape that clients show and their users search for.

use tonic::{Code, Status};
use windlass_gateway::{Gateway, GatewayError};
use windlass_record::event::IncidentKind;
use windlass_record::flow::{FlowRejection, JobRole};
use windlass_record::id::JobKey;
use windlass_record::rejection::{Rejection, RejectionKind};

/// A command, as refusals name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    ActivateJobs,
    CompleteJob,
    FailJob,
    ThrowError,
    UpdateRetries,
    UpdateTimeout,
    UpdatePriority,
    ResolveIncident,
}

impl Asked {
    /// What clients know it as.
    fn intent(self) -> &'static str {
        match self {
            Asked::ActivateJobs => "ACTIVATE",
            Asked::CompleteJob => "COMPLETE",
            Asked::FailJob => "FAIL",
            Asked::ThrowError => "THROW_ERROR",
            Asked::UpdateRetries => "UPDATE_RETRIES",
            Asked::UpdateTimeout => "UPDATE_TIMEOUT",
            Asked::UpdatePriority => "UPDATE_PRIORITY",
            Asked::ResolveIncident => "RESOLVE",
        }
    }

    /// Whether it changes a job that goes on as it was.
    fn updates(self) -> bool {
        matches!(self, Asked::UpdateRetries | Asked::UpdateTimeout | Asked::UpdatePriority)
    }

    /// What was expected to happen.
    fn words(self) -> &'static str {
        match self {
            Asked::ActivateJobs => "activate jobs",
            Asked::CompleteJob => "complete job",
            Asked::FailJob => "fail job",
            Asked::ThrowError => "throw an error for job",
            Asked::UpdateRetries => "update retries for job",
            Asked::UpdateTimeout => "update the timeout of job",
            Asked::UpdatePriority => "update the priority of job",
            Asked::ResolveIncident => "resolve incident",
        }
    }
}

/// A request whose shape is wrong.
pub(crate) fn invalid(asked: Asked, reason: &str) -> Status {
    rejected(asked, RejectionKind::InvalidArgument, reason)
}

/// A call that is not there yet.
pub(crate) fn not_yet(rpc: &str, missing: &str) -> Status {
    Status::unimplemented(format!("{rpc} is not supported yet: {missing}"))
}

/// A command about `key` did not succeed.
pub(crate) async fn refused(
    gateway: &Gateway,
    asked: Asked,
    key: JobKey,
    error: GatewayError,
) -> Status {
    let rejection = match error {
        GatewayError::Rejected(rejection) => rejection,
        GatewayError::Overloaded { .. } | GatewayError::ShuttingDown | GatewayError::Stopped => {
            return not_taken(error);
        }
    };
    let why = match rejection {
        Rejection::Flow(ref refusal) => {
            if let FlowRejection::ListenerThrows { job, role } = **refusal {
                let (kind, job) = (listener_kind(role), job.raw().cast_signed());
                let reason = format!("Cannot throw BPMN error from {kind} job with key '{job}'");
                return rejected(asked, rejection.kind(), &reason);
            }
            if let FlowRejection::ListenerSaysTooMuch { why, .. } = **refusal {
                why.to_owned()
            } else {
                refusal.to_string()
            }
        }
        Rejection::JobInWrongState { .. } if asked == Asked::UpdateTimeout => {
            "it is not active".to_owned()
        }
        Rejection::JobInWrongState { state: INCIDENT, .. } => {
            in_state(incident_state(gateway, key).await)
        }
        Rejection::JobInWrongState { state, .. } => in_state(state_name(state)),
        Rejection::JobNotFound { .. } => "no such job was found".to_owned(),
        Rejection::IncidentNotFound { .. } => "no such incident was found".to_owned(),
        Rejection::LeaseEnded { .. } => {
            "its timeout has passed: a late failure does not count".to_owned()
        }
        Rejection::TokenMissing { .. } => {
            "it was activated with a lease, and no lease token was given".to_owned()
        }
        Rejection::TokenStale { .. } => "the given lease token is not the newest".to_owned(),
        Rejection::NoRetriesLeft { key } => {
            let key = key.raw().cast_signed();
            format!(
                "job with key '{key}' has no retries left. Please update the job retries and retry \
                 resolving the incident"
            )
        }
        Rejection::UniqueKeyHeld { .. }
        | Rejection::QueueOfOneType
        | Rejection::QueueNotFound
        | Rejection::DocumentVersion { .. }
        | Rejection::NameEmpty { .. }
        | Rejection::OutOfRange { .. }
        | Rejection::TooLarge { .. }
        | Rejection::Exhausted { .. }
        | Rejection::Schedule(_) => rejection.to_string(),
    };
    let not_found = matches!(rejection, Rejection::JobNotFound { .. });
    let words = if not_found && asked.updates() { "update job" } else { asked.words() };
    let reason = format!("Expected to {words} with key '{}', but {why}", key.raw().cast_signed());
    rejected(asked, rejection.kind(), &reason)
}

/// A request for jobs did not succeed.
pub(crate) fn no_jobs(error: GatewayError) -> Status {
    match error {
        GatewayError::Rejected(rejection) => {
            let reason = format!("Expected to {}, but {rejection}", Asked::ActivateJobs.words());
            rejected(Asked::ActivateJobs, rejection.kind(), &reason)
        }
        GatewayError::Overloaded { .. } | GatewayError::ShuttingDown | GatewayError::Stopped => {
            not_taken(error)
        }
    }
}

fn rejected(asked: Asked, kind: RejectionKind, reason: &str) -> Status {
    rejected_as(asked.intent(), kind, reason)
}

/// The shape that clients know, with the name that they know the command by.
pub(crate) fn rejected_as(intent: &str, kind: RejectionKind, reason: &str) -> Status {
    let (code, name) = match kind {
        RejectionKind::NotFound => (Code::NotFound, "NOT_FOUND"),
        RejectionKind::AlreadyExists => (Code::AlreadyExists, "ALREADY_EXISTS"),
        RejectionKind::FailedPrecondition => (Code::FailedPrecondition, "INVALID_STATE"),
        RejectionKind::InvalidArgument => (Code::InvalidArgument, "INVALID_ARGUMENT"),
        RejectionKind::ResourceExhausted => (Code::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    };
    Status::new(code, format!("Command '{intent}' rejected with code '{name}': {reason}"))
}

/// It did not get in, or nobody knows what became of it.
pub(crate) fn not_taken(error: GatewayError) -> Status {
    let code = match error {
        GatewayError::Overloaded { .. } => Code::ResourceExhausted,
        GatewayError::ShuttingDown | GatewayError::Stopped => Code::Unavailable,
        GatewayError::Rejected(_) => Code::Internal,
    };
    Status::new(code, error.to_string())
}

fn in_state(name: &str) -> String {
    format!("it is in state '{name}'")
}

fn listener_kind(role: JobRole) -> &'static str {
    if role.user_task_event().is_some() { "TASK_LISTENER" } else { "EXECUTION_LISTENER" }
}

/// The engine's name of a job that waits for a person.
const INCIDENT: &str = "incident";

/// The state that clients know a job to be in.
fn state_name(state: &'static str) -> &'static str {
    match state {
        "ready" => "ACTIVATABLE",
        "active" => "ACTIVATED",
        "backoff" | INCIDENT => "FAILED",
        "scheduled" => "SCHEDULED",
        other => other,
    }
}

/// A job that waits for a person failed for the last time, or threw an error that nobody caught.
async fn incident_state(gateway: &Gateway, key: JobKey) -> &'static str {
    let view = gateway.job(key).await.ok().flatten();
    let incident = view.and_then(|view| view.extra).and_then(|extra| extra.incident);
    match incident.map(|incident| incident.kind) {
        Some(IncidentKind::ErrorNotCaught) => "ERROR_THROWN",
        Some(IncidentKind::NoRetries | IncidentKind::Permanent | IncidentKind::TooLarge) | None => {
            state_name(INCIDENT)
        }
    }
}
