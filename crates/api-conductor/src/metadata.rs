//! Definitions of workflows and of tasks: `/metadata`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{delete, get, post};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_record::command::Bytes;
use windlass_record::workflow::{WorkflowCommand, WorkflowQuery};

use crate::answer::{Empty, Shown, Text};
use crate::bulk::BulkResponse;
use crate::extract::{At, Body, ObjectText, Params};
use crate::face::Face;
use crate::failure::{Answered, Failure};

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/metadata/workflow", get(workflows).post(create).put(replace))
        .route("/metadata/workflow/validate", post(validate))
        .route("/metadata/workflow/names-and-versions", get(names_and_versions))
        .route("/metadata/workflow/names", get(names))
        .route("/metadata/workflow/latest-versions", get(latest_versions))
        .route("/metadata/workflow/{a}", get(workflow))
        .route("/metadata/workflow/{a}/versions", get(versions))
        .route("/metadata/workflow/{a}/{b}", delete(forget_workflow))
        .route("/metadata/taskdefs", get(tasks).post(define_tasks).put(redefine_task))
        .route("/metadata/taskdefs/{a}", get(task).delete(forget_task))
}

async fn create(State(face): State<Face>, params: Params, body: ObjectText) -> Answered<Empty> {
    let overwrite = params.flag("overwrite", false)?;
    define(&face, body.required()?[..].into(), overwrite, false).await?;
    Ok(Empty)
}

async fn validate(State(face): State<Face>, body: ObjectText) -> Answered<Empty> {
    define(&face, body.required()?[..].into(), true, true).await?;
    Ok(Empty)
}

async fn define(face: &Face, workflow: Bytes, overwrite: bool, dry_run: bool) -> Answered<()> {
    let command = WorkflowCommand::DefineWorkflow { workflow, overwrite, dry_run };
    face.ask(command).await.map_err(Failure::into_validation)?;
    Ok(())
}

/// All are looked at before the first is taken.
async fn replace(
    State(face): State<Face>,
    Body(definitions): Body<Vec<Box<RawValue>>>,
) -> Answered<impl IntoResponse> {
    let commands = |dry_run: bool| -> Vec<WorkflowCommand> {
        let texts = definitions.iter().map(|definition| definition.get().as_bytes().into());
        texts
            .map(|workflow| WorkflowCommand::DefineWorkflow { workflow, overwrite: true, dry_run })
            .collect()
    };
    let looked_at = face.ask_all(commands(true)).await;
    let refused = looked_at.into_iter().filter_map(Result::err);
    let problems: Vec<String> =
        refused.flat_map(|failure| failure.into_validation().into_problems()).collect();
    if !problems.is_empty() {
        return Err(Failure::validation(problems));
    }
    let mut bulk = BulkResponse::default();
    let answers = face.ask_all(commands(false)).await;
    for (definition, answer) in definitions.iter().zip(answers) {
        let name = serde_json::from_str::<Head>(definition.get()).unwrap_or_default().name;
        bulk.add(&name, answer.map(|_defined| name.clone()));
    }
    Ok(Shown(bulk))
}

async fn forget_workflow(
    State(face): State<Face>,
    At((name, version)): At<(String, i64)>,
) -> Answered<Empty> {
    let Ok(version) = u32::try_from(version) else {
        let message = format!("No such workflow definition: {name} version: {version}");
        return Err(Failure::not_found(message));
    };
    face.ask(WorkflowCommand::ForgetWorkflow { name: name.into(), version }).await?;
    Ok(Empty)
}

async fn workflow(
    State(face): State<Face>,
    At(name): At<String>,
    params: Params,
) -> Answered<impl IntoResponse> {
    find_definition(&face, &name, params.number("version")?).await.map(Text)
}

/// A definition, or the sentence that there is none.
pub(crate) async fn find_definition(
    face: &Face,
    name: &str,
    version: Option<i64>,
) -> Answered<Arc<str>> {
    let known = match version.map(u32::try_from) {
        // There are no such versions.
        Some(Err(_)) => None,
        version => {
            let version = version.and_then(Result::ok);
            face.find(WorkflowQuery::WorkflowDefinition { name: name.into(), version }).await?
        }
    };
    known.ok_or_else(|| {
        let version = version.map_or_else(|| "null".to_owned(), |version| version.to_string());
        Failure::not_found(format!("No such workflow found by name: {name}, version: {version}"))
    })
}

/// What lists and summaries need of a definition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    name: String,
    version: u32,
    create_time: u64,
    update_time: u64,
}

fn head(definition: &RawValue) -> Head {
    serde_json::from_str(definition.get()).unwrap_or_default()
}

async fn workflows(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let mut all: Vec<Box<RawValue>> = face.list(WorkflowQuery::WorkflowDefinitions).await?;
    let wanted = params.text("classifier").trim().to_ascii_lowercase();
    if !wanted.is_empty() {
        all.retain(|definition| classifier(definition).eq_ignore_ascii_case(&wanted));
    }
    Ok(Shown(all))
}

/// What sort of workflow it is, by its metadata.
fn classifier(definition: &RawValue) -> String {
    #[derive(Default, Deserialize)]
    struct Tagged {
        #[serde(default)]
        metadata: Value,
    }
    let tagged: Tagged = serde_json::from_str(definition.get()).unwrap_or_default();
    let given = |name: &str| tagged.metadata.get(name).filter(|value| !value.is_null());
    match given("classifier").and_then(Value::as_str).filter(|name| !name.trim().is_empty()) {
        Some(name) => name.to_owned(),
        None if given("agent_sdk").or(given("agentDef")).is_some() => "agent".to_owned(),
        None => "workflow".to_owned(),
    }
}

/// All versions, by name and in order.
async fn by_name(face: &Face) -> Answered<BTreeMap<String, Vec<Head>>> {
    let mut by_name: BTreeMap<String, Vec<Head>> = BTreeMap::new();
    for head in face.list::<Head>(WorkflowQuery::WorkflowDefinitions).await? {
        by_name.entry(head.name.clone()).or_default().push(head);
    }
    for versions in by_name.values_mut() {
        versions.sort_by_key(|head| head.version);
    }
    Ok(by_name)
}

async fn names_and_versions(State(face): State<Face>) -> Answered<impl IntoResponse> {
    by_name(&face).await.map(Shown)
}

async fn names(State(face): State<Face>) -> Answered<impl IntoResponse> {
    let names: Vec<String> = by_name(&face).await?.into_keys().collect();
    Ok(Shown(names))
}

async fn versions(State(face): State<Face>, At(name): At<String>) -> Answered<impl IntoResponse> {
    Ok(Shown(by_name(&face).await?.remove(&name).unwrap_or_default()))
}

async fn latest_versions(State(face): State<Face>) -> Answered<impl IntoResponse> {
    let all: Vec<Box<RawValue>> = face.list(WorkflowQuery::WorkflowDefinitions).await?;
    let mut latest: BTreeMap<String, (u32, Box<RawValue>)> = BTreeMap::new();
    for definition in all {
        let Head { name, version, .. } = head(&definition);
        if latest.get(&name).is_none_or(|(newest, _)| *newest <= version) {
            latest.insert(name, (version, definition));
        }
    }
    let latest: Vec<Box<RawValue>> = latest.into_values().map(|(_, it)| it).collect();
    Ok(Shown(latest))
}

async fn define_tasks(
    State(face): State<Face>,
    Body(definitions): Body<Vec<Box<RawValue>>>,
) -> Answered<Empty> {
    let tasks = definitions.iter().map(|task| task.get().as_bytes().into()).collect();
    let command = WorkflowCommand::DefineTasks { tasks, must_exist: false };
    face.ask(command).await.map_err(Failure::into_validation)?;
    Ok(Empty)
}

async fn redefine_task(State(face): State<Face>, body: ObjectText) -> Answered<Empty> {
    let tasks = vec![body.required()?[..].into()];
    let command = WorkflowCommand::DefineTasks { tasks, must_exist: true };
    face.ask(command).await.map_err(Failure::into_validation)?;
    Ok(Empty)
}

async fn tasks(State(face): State<Face>) -> Answered<impl IntoResponse> {
    face.listed(WorkflowQuery::TaskDefinitions).await
}

async fn task(State(face): State<Face>, At(name): At<String>) -> Answered<impl IntoResponse> {
    let found = face.find(WorkflowQuery::TaskDefinition(name.as_str().into())).await?;
    found
        .map(Text)
        .ok_or_else(|| Failure::not_found(format!("No such taskType found by name: {name}")))
}

async fn forget_task(State(face): State<Face>, At(name): At<String>) -> Answered<Empty> {
    face.ask(WorkflowCommand::ForgetTask { name: name.into() }).await?;
    Ok(Empty)
}
