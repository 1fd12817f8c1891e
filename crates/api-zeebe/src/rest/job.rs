//! Jobs completed, failed and changed; incidents resolved.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{patch, post};
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_record::command::{Command, UpdateJob};
use windlass_record::id::JobKey;

use crate::protocol as p;
use crate::refusal::{Asked, refused};
use crate::rest::Face;
use crate::rest::extract::{Body, KeyPath, MaybeBody};
use crate::rest::problem::{Answered, Problem};
use crate::rest::shape::{out_of_range, required_text, text};
use crate::{job, lease};

pub(super) fn routes() -> Router<Face> {
    Router::new()
        .route("/jobs/{key}/completion", post(complete))
        .route("/jobs/{key}/failure", post(fail))
        .route("/jobs/{key}/error", post(error))
        .route("/jobs/{key}", patch(update))
        .route("/incidents/{key}/resolution", post(resolve))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Completion {
    variables: Option<Box<RawValue>>,
    result: Option<JobResult>,
    job_lease_token: Option<String>,
    business_id: Option<String>,
}

/// What a listener says. What else it may say makes no difference to whether it can be carried out.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobResult {
    r#type: Option<String>,
    denied: Option<bool>,
    denied_reason: Option<String>,
    corrections: Option<Corrections>,
    activate_elements: Option<Vec<ActivateElement>>,
    is_completion_condition_fulfilled: Option<bool>,
    is_cancel_remaining_instances: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Corrections {
    assignee: Option<String>,
    due_date: Option<String>,
    follow_up_date: Option<String>,
    candidate_users: Option<Vec<String>>,
    candidate_groups: Option<Vec<String>>,
    priority: Option<i32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ActivateElement {
    element_id: String,
    variables: Option<Box<RawValue>>,
}

impl From<JobResult> for p::JobResult {
    fn from(given: JobResult) -> p::JobResult {
        let elements = given.activate_elements.unwrap_or_default().into_iter();
        p::JobResult {
            denied: given.denied,
            corrections: given.corrections.map(Into::into),
            denied_reason: given.denied_reason,
            r#type: given.r#type,
            activate_elements: elements
                .map(|element| p::JobResultActivateElement {
                    element_id: element.element_id,
                    variables: text(element.variables),
                })
                .collect(),
            // Not said is the same as not so.
            is_completion_condition_fulfilled: given
                .is_completion_condition_fulfilled
                .filter(|is| *is),
            is_cancel_remaining_instances: given.is_cancel_remaining_instances.filter(|is| *is),
        }
    }
}

impl From<Corrections> for p::JobResultCorrections {
    fn from(given: Corrections) -> p::JobResultCorrections {
        let list = |values: Option<Vec<String>>| values.map(|values| p::StringList { values });
        p::JobResultCorrections {
            assignee: given.assignee,
            due_date: given.due_date,
            follow_up_date: given.follow_up_date,
            candidate_users: list(given.candidate_users),
            candidate_groups: list(given.candidate_groups),
            priority: given.priority,
        }
    }
}

async fn complete(
    State(face): State<Face>,
    KeyPath(job_key): KeyPath,
    MaybeBody(asked): MaybeBody<Completion>,
) -> Answered<StatusCode> {
    let given = p::CompleteJobRequest {
        job_key,
        variables: text(asked.variables),
        result: asked.result.map(Into::into),
        lease_token: asked.job_lease_token,
        business_id: asked.business_id,
    };
    job::complete(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Failure {
    retries: Option<i32>,
    error_message: Option<String>,
    retry_back_off: Option<i64>,
    variables: Option<Box<RawValue>>,
    job_lease_token: Option<String>,
}

async fn fail(
    State(face): State<Face>,
    KeyPath(job_key): KeyPath,
    MaybeBody(asked): MaybeBody<Failure>,
) -> Answered<StatusCode> {
    let given = p::FailJobRequest {
        job_key,
        retries: asked.retries.unwrap_or(0),
        error_message: asked.error_message.unwrap_or_default(),
        retry_back_off: asked.retry_back_off.unwrap_or(0),
        variables: text(asked.variables),
        lease_token: asked.job_lease_token,
    };
    job::fail(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobError {
    error_code: Option<String>,
    error_message: Option<String>,
    variables: Option<Box<RawValue>>,
    job_lease_token: Option<String>,
}

async fn error(
    State(face): State<Face>,
    KeyPath(job_key): KeyPath,
    Body(asked): Body<JobError>,
) -> Answered<StatusCode> {
    let given = p::ThrowErrorRequest {
        job_key,
        error_code: required_text("errorCode", asked.error_code)?,
        error_message: asked.error_message.unwrap_or_default(),
        variables: text(asked.variables),
        lease_token: asked.job_lease_token,
    };
    job::throw_error(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Update {
    changeset: Option<Changeset>,
    job_lease_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Changeset {
    retries: Option<i32>,
    timeout: Option<i64>,
    priority: Option<i32>,
}

/// All changes at once, or none.
async fn update(
    State(face): State<Face>,
    KeyPath(key): KeyPath,
    Body(asked): Body<Update>,
) -> Answered<StatusCode> {
    let Changeset { retries, timeout, priority } = asked.changeset.unwrap_or_default();
    // The refusal is told in the words of the change that can be refused most.
    let reason = match (timeout, retries, priority) {
        (Some(_), _, _) => Asked::UpdateTimeout,
        (None, Some(_), _) => Asked::UpdateRetries,
        (None, None, Some(_)) => Asked::UpdatePriority,
        (None, None, None) => {
            return Err(Problem::invalid(
                "At least one of [retries, timeout, priority] is required.",
            ));
        }
    };
    if let Some(retries) = retries.filter(|retries| *retries < 1) {
        return Err(out_of_range("retries", retries, "greater than 0"));
    }
    let key = JobKey::from_raw(key.cast_unsigned());
    let command = Command::UpdateJob(UpdateJob {
        key,
        activation: lease::read(key, asked.job_lease_token.as_deref()).activation,
        retries,
        priority,
        // A deadline that is now or past is the next millisecond.
        lease_ms: timeout.map(|timeout| u64::try_from(timeout).unwrap_or(0).max(1)),
        tenant: None,
    });
    match face.gateway.result(command).await {
        Ok(_) => Ok(StatusCode::NO_CONTENT),
        Err(error) => Err(refused(&face.gateway, reason, key, error).await.into()),
    }
}

/// What a request may carry that changes nothing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Nothing {}

async fn resolve(
    State(face): State<Face>,
    KeyPath(incident_key): KeyPath,
    MaybeBody(Nothing {}): MaybeBody<Nothing>,
) -> Answered<StatusCode> {
    let given = p::ResolveIncidentRequest { incident_key, operation_reference: None };
    job::resolve_incident(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}
