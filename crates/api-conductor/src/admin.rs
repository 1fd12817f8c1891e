//! What else there is: `/admin`, `/queue`, `/environment`, `/secrets`, versions and health.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use windlass_record::workflow::{TaskReference, WorkflowQuery, WorkflowVerb};

use crate::answer::{Empty, Plain, Shown};
use crate::extract::{At, ObjectText, Params, no_workflow, task_key, workflow_key};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::task::named_update;

/// The version that answers carry.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/admin/config", get(config))
        .route("/admin/task/{a}", get(pending))
        .route("/admin/sweep/requeue/{a}", post(sweep))
        .route("/admin/consistency/verifyAndRepair/{a}", post(verify))
        .route("/admin/queues", get(none_by_name))
        .route("/queue", get(none_by_name))
        .route("/queue/", get(none_by_name))
        .route("/queue/size", get(none_by_name))
        .route("/queue/update/{a}/{b}/{c}", post(wake))
        .route("/queue/update/{a}/task/{c}/{d}", post(wake_task))
        .route("/environment", get(empty_list))
        .route("/environment/{a}", get(no_variable))
        .route("/secrets", get(empty_list))
        .route("/version", get(version))
        .route("/health", get(health))
}

/// What stands beside the prefix.
pub(crate) fn pages() -> Router<Face> {
    Router::new()
        .route("/actuator/health", get(up))
        .route("/actuator/info", get(info))
        .route("/api-docs", get(docs))
}

async fn config() -> impl IntoResponse {
    Shown(json!({ "version": VERSION }))
}

async fn pending(
    State(face): State<Face>,
    At(task_type): At<String>,
    params: Params,
) -> Answered<impl IntoResponse> {
    let start = params.count("start", 0)?;
    let count = params.count("count", 100)?;
    let query = WorkflowQuery::PendingTasks { task_type: task_type.into(), start, count };
    face.listed(query).await
}

async fn sweep(State(face): State<Face>, At(id): At<String>) -> Answered<Plain> {
    face.control(workflow_key(&id)?, WorkflowVerb::Decide).await?;
    Ok(Plain(format!("true.{id}")))
}

/// State and queue are one here: there is nothing to repair.
async fn verify(State(face): State<Face>, At(id): At<String>) -> Answered<Plain> {
    let key = workflow_key(&id)?;
    let query = WorkflowQuery::Status { key, output: false, variables: false };
    face.find(query).await?.ok_or_else(|| no_workflow(&id))?;
    Ok(Plain("false".to_owned()))
}

async fn none_by_name() -> impl IntoResponse {
    Shown(json!({}))
}

async fn empty_list() -> impl IntoResponse {
    Shown(json!([]))
}

async fn no_variable() -> Empty {
    Empty
}

async fn wake(
    State(face): State<Face>,
    At((id, name, status)): At<(String, String, String)>,
    ObjectText(output): ObjectText,
) -> Answered<Empty> {
    let task = TaskReference::Name(name.as_str().into());
    let command = named_update(workflow_key(&id)?, task, &status, &output, "")?;
    if face.update(command).await?.task.is_none() {
        let message = format!("No task of workflow {id} waits under the name {name}");
        return Err(Failure::invalid(message));
    }
    Ok(Empty)
}

async fn wake_task(
    State(face): State<Face>,
    At((id, task, status)): At<(String, String, String)>,
    ObjectText(output): ObjectText,
) -> Answered<Empty> {
    let task = TaskReference::Key(task_key(&task)?);
    let command = named_update(workflow_key(&id)?, task, &status, &output, "")?;
    face.update(command).await?;
    Ok(Empty)
}

async fn version() -> Plain {
    Plain(VERSION.to_owned())
}

async fn health(State(face): State<Face>) -> Response {
    let healthy = is_well(&face).await;
    let body = json!({ "healthy": healthy, "healthResults": [], "suppressedHealthResults": [] });
    (status_of(healthy), Shown(body)).into_response()
}

async fn up(State(face): State<Face>) -> Response {
    let healthy = is_well(&face).await;
    let body = json!({ "status": if healthy { "UP" } else { "DOWN" } });
    (status_of(healthy), Shown(body)).into_response()
}

async fn is_well(face: &Face) -> bool {
    !face.gateway.is_shutting_down() && face.gateway.status().await.is_ok()
}

fn status_of(healthy: bool) -> StatusCode {
    if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

async fn info() -> impl IntoResponse {
    Shown(json!({ "build": { "name": "windlass", "version": VERSION } }))
}

/// Enough for who looks for it: the API is described elsewhere.
async fn docs() -> impl IntoResponse {
    let info = json!({ "title": "Windlass", "description": "Conductor's API", "version": VERSION });
    Shown(json!({ "openapi": "3.0.1", "info": info, "paths": {} }))
}
