//! What workers say about jobs, and what people change about them.
//!
//! Variables of a failure or an error belong to the scope of an element; a job that belongs to no
//! process instance has none, and they are checked and dropped.

use tonic::Status;
use windlass_gateway::Gateway;
use windlass_record::command::{
    Command, CompleteJob, CompleteListener, FailJob, FailureKind, ResolveIncident, ThrowError,
    UpdateJob,
};
use windlass_record::id::JobKey;

use crate::protocol as p;
use crate::refusal::{Asked, invalid, not_yet, refused};
use crate::{document, lease, listener};

/// Any number is a key; most name nothing.
fn key(given: i64) -> JobKey {
    JobKey::from_raw(given.cast_unsigned())
}

pub(crate) async fn complete(
    gateway: &Gateway,
    given: p::CompleteJobRequest,
) -> Result<p::CompleteJobResponse, Status> {
    if given.result.as_ref().is_some_and(is_of_ad_hoc) {
        let missing = "there are no ad-hoc sub-processes yet";
        return Err(not_yet("CompleteJob with a result for an ad-hoc sub-process", missing));
    }
    if given.business_id.is_some_and(|id| !id.is_empty()) {
        return Err(not_yet("CompleteJob with a business id", "there are no business ids yet"));
    }
    let key = key(given.job_key);
    let lease = lease::read(key, given.lease_token.as_deref());
    let brought = document::variables(&given.variables)?;
    let command = match given.result.map(listener::says).transpose()?.flatten() {
        Some(says) => Command::CompleteListener(CompleteListener { lease, result: brought, says }),
        None => Command::CompleteJob(CompleteJob { lease, result: brought, documents: Vec::new() }),
    };
    result(gateway, Asked::CompleteJob, key, command).await?;
    Ok(p::CompleteJobResponse {})
}

/// What only an ad-hoc sub-process may say. Some clients send an empty result with every completion.
fn is_of_ad_hoc(result: &p::JobResult) -> bool {
    !result.activate_elements.is_empty()
        || result.is_completion_condition_fulfilled.is_some()
        || result.is_cancel_remaining_instances.is_some()
}

/// What an incident says when the worker that failed for the last time said nothing.
const NO_RETRIES_LEFT: &str = "No more retries left.";

pub(crate) async fn fail(
    gateway: &Gateway,
    given: p::FailJobRequest,
) -> Result<p::FailJobResponse, Status> {
    let key = key(given.job_key);
    let variables = document::variables(&given.variables)?;
    let message = match given.error_message {
        message if message.is_empty() && given.retries < 1 => NO_RETRIES_LEFT.to_owned(),
        message => message,
    };
    let command = Command::FailJob(FailJob {
        lease: lease::read(key, given.lease_token.as_deref()),
        message: message.into(),
        retries: Some(given.retries),
        backoff_ms: Some(u64::try_from(given.retry_back_off).unwrap_or(0)),
        progressed: false,
        variables,
        kind: FailureKind::Usual,
    });
    result(gateway, Asked::FailJob, key, command).await?;
    Ok(p::FailJobResponse {})
}

pub(crate) async fn throw_error(
    gateway: &Gateway,
    given: p::ThrowErrorRequest,
) -> Result<p::ThrowErrorResponse, Status> {
    let key = key(given.job_key);
    let variables = document::variables(&given.variables)?;
    let command = Command::ThrowError(ThrowError {
        lease: lease::read(key, given.lease_token.as_deref()),
        code: given.error_code.into(),
        message: given.error_message.into(),
        variables,
    });
    result(gateway, Asked::ThrowError, key, command).await?;
    Ok(p::ThrowErrorResponse {})
}

pub(crate) async fn update_retries(
    gateway: &Gateway,
    given: p::UpdateJobRetriesRequest,
) -> Result<p::UpdateJobRetriesResponse, Status> {
    if given.retries < 1 {
        let why = format!(
            "Expected to update retries for job with key '{}' with a positive amount of retries, but \
             the amount given was '{}'",
            given.job_key, given.retries
        );
        return Err(invalid(Asked::UpdateRetries, &why));
    }
    let update = nothing(given.job_key, given.lease_token.as_deref());
    let update = UpdateJob { retries: Some(given.retries), ..update };
    result(gateway, Asked::UpdateRetries, update.key, Command::UpdateJob(update)).await?;
    Ok(p::UpdateJobRetriesResponse {})
}

pub(crate) async fn update_timeout(
    gateway: &Gateway,
    given: p::UpdateJobTimeoutRequest,
) -> Result<p::UpdateJobTimeoutResponse, Status> {
    let update = nothing(given.job_key, given.lease_token.as_deref());
    // A deadline that is now or past is the next millisecond.
    let lease_ms = u64::try_from(given.timeout).unwrap_or(0).max(1);
    let update = UpdateJob { lease_ms: Some(lease_ms), ..update };
    result(gateway, Asked::UpdateTimeout, update.key, Command::UpdateJob(update)).await?;
    Ok(p::UpdateJobTimeoutResponse {})
}

pub(crate) async fn update_priority(
    gateway: &Gateway,
    given: p::UpdateJobPriorityRequest,
) -> Result<p::UpdateJobPriorityResponse, Status> {
    if given.priority.is_none() {
        let why = "Expected to update priority of a job, but no priority was given";
        return Err(invalid(Asked::UpdatePriority, why));
    }
    let update = nothing(given.job_key, given.lease_token.as_deref());
    let update = UpdateJob { priority: given.priority, ..update };
    result(gateway, Asked::UpdatePriority, update.key, Command::UpdateJob(update)).await?;
    Ok(p::UpdateJobPriorityResponse {})
}

pub(crate) async fn resolve_incident(
    gateway: &Gateway,
    given: p::ResolveIncidentRequest,
) -> Result<p::ResolveIncidentResponse, Status> {
    let key = key(given.incident_key);
    let command = Command::ResolveIncident(ResolveIncident { key, retries: None, tenant: None });
    result(gateway, Asked::ResolveIncident, key, command).await?;
    Ok(p::ResolveIncidentResponse {})
}

fn nothing(job_key: i64, token: Option<&str>) -> UpdateJob {
    let key = key(job_key);
    let activation = lease::read(key, token).activation;
    UpdateJob { key, activation, retries: None, priority: None, lease_ms: None, tenant: None }
}

/// These are never refused for load.
async fn result(
    gateway: &Gateway,
    asked: Asked,
    key: JobKey,
    command: Command,
) -> Result<(), Status> {
    match gateway.result(command).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(gateway, asked, key, error).await),
    }
}
