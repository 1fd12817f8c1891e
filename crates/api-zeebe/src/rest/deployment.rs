//! Files deployed, and deleted.

use axum::Router;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{Multipart, State};
use axum::http::StatusCode;
use axum::routing::post;
use serde::{Deserialize, Serialize};

use crate::protocol as p;
use crate::protocol::deployment::Metadata;
use crate::resource;
use crate::rest::Face;
use crate::rest::extract::{Key, KeyPath, MaybeBody, Shown, too_large};
use crate::rest::problem::{Answered, Problem};

pub(super) fn routes() -> Router<Face> {
    Router::new()
        .route("/deployments", post(deploy))
        .route("/resources/{key}/deletion", post(delete))
}

/// The name of a part that is a file.
const RESOURCES: &str = "resources";
/// The name of the part that says whose they are.
const TENANT: &str = "tenantId";

async fn deploy(
    State(face): State<Face>,
    parts: Result<Multipart, axum::extract::multipart::MultipartRejection>,
) -> Answered<Shown<Deployed>> {
    let mut parts = parts.map_err(|rejection| {
        let detail =
            "A deployment is sent as multipart/form-data, with a part 'resources' per file";
        match rejection.status() {
            StatusCode::BAD_REQUEST => Problem::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail),
            status => Problem::plain(status, detail),
        }
    })?;
    let mut given = p::DeployResourceRequest::default();
    while let Some(part) = parts.next_field().await.map_err(|error| broken(&error))? {
        take(&mut given, part).await?;
    }
    if given.resources.is_empty() {
        return Err(Problem::unreadable("Required part 'resources' is not present."));
    }
    let deployed = resource::deploy_resource(&face.gateway, given).await?;
    Ok(Shown(Deployed {
        deployment_key: Key(deployed.key),
        tenant_id: deployed.tenant_id,
        deployments: deployed.deployments.into_iter().filter_map(show).collect(),
    }))
}

async fn take(given: &mut p::DeployResourceRequest, part: Field<'_>) -> Answered<()> {
    match part.name() {
        Some(RESOURCES) => {
            let name = part.file_name().unwrap_or_default().to_owned();
            let content = part.bytes().await.map_err(|error| broken(&error))?;
            given.resources.push(p::Resource { name, content });
        }
        Some(TENANT) => {
            given.tenant_id = part.text().await.map_err(|error| broken(&error))?;
        }
        // Not known, so not read.
        Some(_) | None => {}
    }
    Ok(())
}

fn broken(error: &MultipartError) -> Problem {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return too_large();
    }
    Problem::unreadable(format!("The request body cannot be parsed: {}", error.body_text()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deployed {
    deployment_key: Key,
    tenant_id: String,
    deployments: Vec<Item>,
}

/// One of these is there, the others are `null`.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    process_definition: Option<Process>,
    decision_definition: Option<Decision>,
    decision_requirements: Option<Requirements>,
    form: Option<Form>,
    /// Other files have no place in the answer of the other wire.
    resource: Option<()>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    process_definition_id: String,
    process_definition_version: i32,
    resource_name: String,
    tenant_id: String,
    process_definition_key: Key,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    decision_definition_id: String,
    version: i32,
    name: String,
    tenant_id: String,
    decision_requirements_id: String,
    decision_definition_key: Key,
    decision_requirements_key: Key,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Requirements {
    decision_requirements_id: String,
    decision_requirements_name: String,
    version: i32,
    resource_name: String,
    tenant_id: String,
    decision_requirements_key: Key,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    form_id: String,
    version: i32,
    resource_name: String,
    tenant_id: String,
    form_key: Key,
}

fn show(deployment: p::Deployment) -> Option<Item> {
    Some(match deployment.metadata? {
        Metadata::Process(of) => {
            let process_definition = Some(Process {
                process_definition_id: of.bpmn_process_id,
                process_definition_version: of.version,
                resource_name: of.resource_name,
                tenant_id: of.tenant_id,
                process_definition_key: Key(of.process_definition_key),
            });
            Item { process_definition, ..Item::default() }
        }
        Metadata::Decision(of) => {
            let decision_definition = Some(Decision {
                decision_definition_id: of.dmn_decision_id,
                version: of.version,
                name: of.dmn_decision_name,
                tenant_id: of.tenant_id,
                decision_requirements_id: of.dmn_decision_requirements_id,
                decision_definition_key: Key(of.decision_key),
                decision_requirements_key: Key(of.decision_requirements_key),
            });
            Item { decision_definition, ..Item::default() }
        }
        Metadata::DecisionRequirements(of) => {
            let decision_requirements = Some(Requirements {
                decision_requirements_id: of.dmn_decision_requirements_id,
                decision_requirements_name: of.dmn_decision_requirements_name,
                version: of.version,
                resource_name: of.resource_name,
                tenant_id: of.tenant_id,
                decision_requirements_key: Key(of.decision_requirements_key),
            });
            Item { decision_requirements, ..Item::default() }
        }
        Metadata::Form(of) => {
            let form = Some(Form {
                form_id: of.form_id,
                version: of.version,
                resource_name: of.resource_name,
                tenant_id: of.tenant_id,
                form_key: Key(of.form_key),
            });
            Item { form, ..Item::default() }
        }
    })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Deletion {
    delete_history: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    resource_key: Key,
    /// What is remembered is not deleted, so nothing goes on in the background.
    batch_operation: Option<()>,
}

async fn delete(
    State(face): State<Face>,
    KeyPath(resource_key): KeyPath,
    MaybeBody(asked): MaybeBody<Deletion>,
) -> Answered<Shown<Deleted>> {
    let delete_history = asked.delete_history;
    let given =
        p::DeleteResourceRequest { resource_key, operation_reference: None, delete_history };
    resource::delete_resource(&face.gateway, given).await?;
    Ok(Shown(Deleted { resource_key: Key(resource_key), batch_operation: None }))
}
