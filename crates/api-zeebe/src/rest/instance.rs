//! Process instances created and changed; variables set.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{post, put};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::instance;
use crate::protocol as p;
use crate::protocol::modify_process_instance_request as modify;
use crate::protocol::process_instance_creation_runtime_instruction::Instruction;
use crate::rest::Face;
use crate::rest::extract::{Body, Key, KeyPath, MaybeBody, Shown};
use crate::rest::problem::Answered;
use crate::rest::shape::{Either, object, one_of, required, required_text, some_text, text};

pub(super) fn routes() -> Router<Face> {
    Router::new()
        .route("/process-instances", post(create))
        .route("/process-instances/{key}/cancellation", post(cancel))
        .route("/process-instances/{key}/modification", post(modify))
        .route("/process-instances/{key}/migration", post(migrate))
        .route("/element-instances/{key}/variables", put(set_variables))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Creation {
    process_definition_key: Option<Key>,
    process_definition_id: Option<String>,
    process_definition_version: Option<i32>,
    variables: Option<Box<RawValue>>,
    start_instructions: Option<Vec<StartAt>>,
    runtime_instructions: Option<Vec<EndBehind>>,
    tenant_id: Option<String>,
    await_completion: Option<bool>,
    request_timeout: Option<i64>,
    fetch_variables: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    business_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StartAt {
    element_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EndBehind {
    after_element_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    process_definition_id: String,
    process_definition_version: i32,
    tenant_id: String,
    variables: Box<RawValue>,
    process_definition_key: Key,
    process_instance_key: Key,
    tags: Vec<String>,
    business_id: Option<String>,
}

/// The version that clients do not name.
const LATEST: i32 = -1;

async fn create(State(face): State<Face>, Body(asked): Body<Creation>) -> Answered<Shown<Created>> {
    let awaited = asked.await_completion.unwrap_or(false);
    let request_timeout = asked.request_timeout.unwrap_or(0);
    let fetch_variables = asked.fetch_variables.clone().unwrap_or_default();
    let request = creation(asked)?;
    if !awaited {
        let of = instance::create_process_instance(&face.gateway, request).await?;
        return Ok(Shown(Created {
            process_definition_id: of.bpmn_process_id,
            process_definition_version: of.version,
            tenant_id: of.tenant_id,
            variables: object(String::new()),
            process_definition_key: Key(of.process_definition_key),
            process_instance_key: Key(of.process_instance_key),
            tags: of.tags,
            business_id: of.business_id.and_then(some_text),
        }));
    }
    let given = p::CreateProcessInstanceWithResultRequest {
        request: Some(request),
        request_timeout,
        fetch_variables,
    };
    let of = instance::create_process_instance_with_result(&face.gateway, given).await?;
    Ok(Shown(Created {
        process_definition_id: of.bpmn_process_id,
        process_definition_version: of.version,
        tenant_id: of.tenant_id,
        variables: object(of.variables),
        process_definition_key: Key(of.process_definition_key),
        process_instance_key: Key(of.process_instance_key),
        tags: of.tags,
        business_id: of.business_id.and_then(some_text),
    }))
}

fn creation(asked: Creation) -> Answered<p::CreateProcessInstanceRequest> {
    let names = ["processDefinitionId", "processDefinitionKey"];
    let id = asked.process_definition_id.and_then(some_text);
    let (id, key) = match one_of(names, id, asked.process_definition_key)? {
        Either::First(id) => (id, 0),
        Either::Second(Key(key)) => (String::new(), key),
    };
    let start_at = asked.start_instructions.unwrap_or_default().into_iter();
    let start_instructions: Answered<Vec<_>> = start_at
        .map(|at| required_text("elementId", at.element_id))
        .map(|at| Ok(p::ProcessInstanceCreationStartInstruction { element_id: at? }))
        .collect();
    let end_behind = asked.runtime_instructions.unwrap_or_default().into_iter();
    let runtime_instructions = end_behind.map(|given| {
        let after_element_id = given.after_element_id.unwrap_or_default();
        let instruction = p::TerminateProcessInstanceInstruction { after_element_id };
        let instruction = Some(Instruction::Terminate(instruction));
        p::ProcessInstanceCreationRuntimeInstruction { instruction }
    });
    Ok(p::CreateProcessInstanceRequest {
        process_definition_key: key,
        bpmn_process_id: id,
        version: asked.process_definition_version.unwrap_or(LATEST),
        variables: text(asked.variables),
        start_instructions: start_instructions?,
        tenant_id: asked.tenant_id.unwrap_or_default(),
        operation_reference: None,
        runtime_instructions: runtime_instructions.collect(),
        tags: asked.tags.unwrap_or_default(),
        business_id: asked.business_id,
    })
}

/// What a request may carry that changes nothing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Nothing {}

async fn cancel(
    State(face): State<Face>,
    KeyPath(process_instance_key): KeyPath,
    MaybeBody(Nothing {}): MaybeBody<Nothing>,
) -> Answered<StatusCode> {
    let given = p::CancelProcessInstanceRequest { process_instance_key, operation_reference: None };
    instance::cancel_process_instance(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Modification {
    activate_instructions: Option<Vec<Activate>>,
    move_instructions: Option<Vec<Move>>,
    terminate_instructions: Option<Vec<Terminate>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Activate {
    element_id: Option<String>,
    ancestor_element_instance_key: Option<Key>,
    variable_instructions: Option<Vec<Variables>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Variables {
    variables: Option<Box<RawValue>>,
    scope_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminate {
    element_id: Option<String>,
    element_instance_key: Option<Key>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Move {
    source_element_instruction: Option<Source>,
    target_element_id: Option<String>,
    ancestor_scope_instruction: Option<AncestorScope>,
    variable_instructions: Option<Vec<Variables>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    source_element_id: Option<String>,
    source_element_instance_key: Option<Key>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AncestorScope {
    ancestor_scope_type: Option<String>,
    ancestor_element_instance_key: Option<Key>,
}

async fn modify(
    State(face): State<Face>,
    KeyPath(process_instance_key): KeyPath,
    Body(asked): Body<Modification>,
) -> Answered<StatusCode> {
    let activate: Answered<Vec<_>> =
        asked.activate_instructions.unwrap_or_default().into_iter().map(activation).collect();
    let terminate: Answered<Vec<_>> =
        asked.terminate_instructions.unwrap_or_default().into_iter().map(termination).collect();
    let moves: Answered<Vec<_>> =
        asked.move_instructions.unwrap_or_default().into_iter().map(movement).collect();
    let given = p::ModifyProcessInstanceRequest {
        process_instance_key,
        activate_instructions: activate?,
        terminate_instructions: terminate?,
        operation_reference: None,
        move_instructions: moves?,
    };
    instance::modify_process_instance(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn activation(given: Activate) -> Answered<modify::ActivateInstruction> {
    Ok(modify::ActivateInstruction {
        element_id: required_text("elementId", given.element_id)?,
        ancestor_element_instance_key: number(given.ancestor_element_instance_key),
        variable_instructions: variables(given.variable_instructions),
    })
}

fn termination(given: Terminate) -> Answered<modify::TerminateInstruction> {
    let names = ["elementId", "elementInstanceKey"];
    let id = given.element_id.and_then(some_text);
    let (element_id, element_instance_key) = match one_of(names, id, given.element_instance_key)? {
        Either::First(id) => (id, 0),
        Either::Second(Key(key)) => (String::new(), key),
    };
    Ok(modify::TerminateInstruction { element_instance_key, element_id })
}

fn movement(given: Move) -> Answered<modify::MoveInstruction> {
    let source = required("sourceElementInstruction", given.source_element_instruction)?;
    let scope = given.ancestor_scope_instruction.unwrap_or_default();
    let scope_type = scope.ancestor_scope_type.unwrap_or_default();
    Ok(modify::MoveInstruction {
        source_element_instance_key: number(source.source_element_instance_key),
        source_element_id: source.source_element_id.unwrap_or_default(),
        target_element_id: required_text("targetElementId", given.target_element_id)?,
        variable_instructions: variables(given.variable_instructions),
        ancestor_element_instance_key: number(scope.ancestor_element_instance_key),
        infer_ancestor_scope_from_source_hierarchy: scope_type == "inferred",
        use_source_parent_key_as_ancestor_scope_key: scope_type == "sourceParent",
    })
}

fn variables(given: Option<Vec<Variables>>) -> Vec<modify::VariableInstruction> {
    let given = given.unwrap_or_default().into_iter();
    given
        .map(|given| modify::VariableInstruction {
            variables: text(given.variables),
            scope_id: given.scope_id.unwrap_or_default(),
        })
        .collect()
}

/// The other wire's "none" is 0.
fn number(key: Option<Key>) -> i64 {
    key.map_or(0, |Key(key)| key)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Migration {
    target_process_definition_key: Option<Key>,
    mapping_instructions: Option<Vec<Mapping>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mapping {
    source_element_id: Option<String>,
    target_element_id: Option<String>,
}

async fn migrate(
    State(face): State<Face>,
    KeyPath(process_instance_key): KeyPath,
    Body(asked): Body<Migration>,
) -> Answered<StatusCode> {
    use p::migrate_process_instance_request::{MappingInstruction, MigrationPlan};
    let Key(target) = required("targetProcessDefinitionKey", asked.target_process_definition_key)?;
    let mappings = required("mappingInstructions", asked.mapping_instructions)?.into_iter();
    let mapping_instructions: Answered<Vec<_>> = mappings
        .map(|given| {
            Ok(MappingInstruction {
                source_element_id: required_text("sourceElementId", given.source_element_id)?,
                target_element_id: required_text("targetElementId", given.target_element_id)?,
            })
        })
        .collect();
    let plan = MigrationPlan {
        target_process_definition_key: target,
        mapping_instructions: mapping_instructions?,
    };
    let given = p::MigrateProcessInstanceRequest {
        process_instance_key,
        migration_plan: Some(plan),
        operation_reference: None,
    };
    instance::migrate_process_instance(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NewVariables {
    variables: Option<Box<RawValue>>,
    local: Option<bool>,
}

async fn set_variables(
    State(face): State<Face>,
    KeyPath(element_instance_key): KeyPath,
    Body(asked): Body<NewVariables>,
) -> Answered<StatusCode> {
    let given = p::SetVariablesRequest {
        element_instance_key,
        variables: text(Some(required("variables", asked.variables)?)),
        local: asked.local.unwrap_or(false),
        operation_reference: None,
    };
    instance::set_variables(&face.gateway, given).await?;
    Ok(StatusCode::NO_CONTENT)
}
