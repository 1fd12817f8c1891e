//! Workflows started, read and controlled: `/workflow`.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{delete, get, post, put};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::{
    RerunWorkflow, TaskStatus, WorkflowQuery, WorkflowVerb, id_of, key_of,
};

use crate::answer::{Either, Empty, NoContent, Plain, Shown, Text};
use crate::extract::{
    At, Body, MaybeObject, Object, ObjectText, Params, no_workflow, object_text, workflow_key,
};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::metadata::find_definition;
use crate::past;
use crate::search::SearchResult;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/workflow", post(start))
        .route("/workflow/start/{a}", post(start_named))
        .route("/workflow/start/{a}/{b}", post(start_version))
        .route("/workflow/running/{a}", get(running))
        .route("/workflow/decide/{a}", put(decide))
        .route("/workflow/correlated/batch", post(correlated_batch))
        .route("/workflow/externalstoragelocation", get(external_storage))
        .route("/workflow/external-storage-location", get(external_storage))
        .route("/workflow/{a}", get(whole).post(start_named).delete(terminate))
        .route("/workflow/{a}/status", get(status))
        .route("/workflow/{a}/tasks", get(tasks))
        .route("/workflow/{a}/correlated", post(correlated_many))
        .route("/workflow/{a}/correlated/{b}", get(correlated))
        .route("/workflow/{a}/pause", put(pause))
        .route("/workflow/{a}/resume", put(resume))
        .route("/workflow/{a}/skiptask/{b}", put(skip))
        .route("/workflow/{a}/rerun", post(rerun))
        .route("/workflow/{a}/restart", post(restart))
        .route("/workflow/{a}/retry", post(retry))
        .route("/workflow/{a}/resetcallbacks", post(reset_callbacks))
        .route("/workflow/{a}/remove", delete(remove))
        .route("/workflow/{a}/terminate-remove", delete(terminate_remove))
        .route("/workflow/{a}/variables", post(set_variables))
}

async fn start(State(face): State<Face>, body: ObjectText) -> Answered<Plain> {
    face.start(&body.required()?[..]).await.map(Plain::id)
}

async fn start_named(
    State(face): State<Face>,
    At(name): At<String>,
    params: Params,
    MaybeObject(input): MaybeObject<Map<String, Value>>,
) -> Answered<Plain> {
    let version = params.number("version")?;
    start_by_name(&face, &name, version, &params, input).await
}

async fn start_version(
    State(face): State<Face>,
    At((name, version)): At<(String, i64)>,
    params: Params,
    MaybeObject(input): MaybeObject<Map<String, Value>>,
) -> Answered<Plain> {
    start_by_name(&face, &name, Some(version), &params, input).await
}

async fn start_by_name(
    face: &Face,
    name: &str,
    version: Option<i64>,
    params: &Params,
    input: Map<String, Value>,
) -> Answered<Plain> {
    // Here the sentence about a definition that is missing is another one.
    let _known = find_definition(face, name, version).await?;
    let request = json!({
        "name": name,
        "version": version,
        "correlationId": params.text("correlationId"),
        "priority": params.number("priority")?.unwrap_or(0),
        "input": input,
    });
    face.start(request.to_string().into_bytes()).await.map(Plain::id)
}

async fn whole(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
) -> Answered<impl IntoResponse> {
    let tasks = params.flag("includeTasks", true)?;
    past::workflow(&face, workflow_key(&id)?, tasks)
        .await?
        .map(Text)
        .ok_or_else(|| no_workflow(&id))
}

/// A `Workflow` with its tasks.
pub(crate) async fn shown(face: &Face, key: Key) -> Answered<Text> {
    let shown = face.find(WorkflowQuery::Workflow { key, tasks: true }).await?;
    shown.map(Text).ok_or_else(|| no_workflow(&id_of(key)))
}

async fn status(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
) -> Answered<impl IntoResponse> {
    let key = workflow_key(&id)?;
    let output = params.flag("includeOutput", false)?;
    let variables = params.flag("includeVariables", false)?;
    if let Some(now) = face.find(WorkflowQuery::Status { key, output, variables }).await? {
        return Ok(Either::First(Text(now)));
    }
    let then = past::workflow(&face, key, false).await?.ok_or_else(|| no_workflow(&id))?;
    let mut then: Map<String, Value> = serde_json::from_str(&then).unwrap_or_default();
    then.retain(|name, _| match name.as_str() {
        "workflowId" | "correlationId" | "status" => true,
        "output" => output,
        "variables" => variables,
        _ => false,
    });
    Ok(Either::Second(Shown(then)))
}

async fn tasks(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
) -> Answered<impl IntoResponse> {
    let key = workflow_key(&id)?;
    let start = params.count("start", 0)?;
    let count = params.count("count", 15)?;
    let wanted: Vec<String> = params.all("status").map(str::to_ascii_uppercase).collect();
    let statuses: Vec<TaskStatus> =
        wanted.iter().filter_map(|name| TaskStatus::named(name)).collect();
    // Of words that are no status alone, nothing has any.
    let none = statuses.is_empty() && !wanted.is_empty();
    let now = WorkflowQuery::TasksOf { key, start, count, statuses };
    if !none && let Some(now) = face.find(now).await? {
        return Ok(Either::First(Text(now)));
    }
    let then = past::workflow(&face, key, true).await?.ok_or_else(|| no_workflow(&id))?;
    Ok(Either::Second(Shown(tasks_in(&then, &wanted, start, count))))
}

/// A page of the tasks of a `Workflow`, with those statuses if there are any.
fn tasks_in(
    workflow: &str,
    statuses: &[String],
    start: usize,
    count: usize,
) -> SearchResult<Value> {
    #[derive(Default, Deserialize)]
    struct Tasks {
        tasks: Vec<Value>,
    }
    let Tasks { mut tasks } = serde_json::from_str(workflow).unwrap_or_default();
    let status = |task: &Value| task.get("status").and_then(Value::as_str).map(str::to_owned);
    tasks.retain(|task| {
        statuses.is_empty() || status(task).is_some_and(|status| statuses.contains(&status))
    });
    SearchResult {
        total_hits: u64::try_from(tasks.len()).unwrap_or(u64::MAX),
        results: tasks.into_iter().skip(start).take(count).collect(),
    }
}

async fn running(
    State(face): State<Face>,
    At(name): At<String>,
    params: Params,
) -> Answered<impl IntoResponse> {
    let version = u32::try_from(params.number("version")?.unwrap_or(1)).ok();
    let time =
        |given: Option<i64>, default| given.map_or(default, |ms| u64::try_from(ms).unwrap_or(0));
    let query = WorkflowQuery::Running {
        name: name.into(),
        // No workflow has a negative version.
        version: Some(version.unwrap_or(u32::MAX)),
        from_ms: time(params.number("startTime")?, 0),
        to_ms: time(params.number("endTime")?, u64::MAX),
    };
    face.listed(query).await
}

type Correlated = BTreeMap<String, Vec<Box<RawValue>>>;

async fn with_correlation(
    face: &Face,
    name: &str,
    correlation_ids: &[String],
    params: &Params,
) -> Answered<Correlated> {
    let query = WorkflowQuery::Correlated {
        name: name.into(),
        correlation_ids: correlation_ids.iter().map(|id| id.as_str().into()).collect(),
        closed: params.flag("includeClosed", false)?,
        tasks: params.flag("includeTasks", false)?,
    };
    Ok(face.find_as(query).await?.unwrap_or_default())
}

async fn correlated(
    State(face): State<Face>,
    At((name, id)): At<(String, String)>,
    params: Params,
) -> Answered<impl IntoResponse> {
    let mut found = with_correlation(&face, &name, std::slice::from_ref(&id), &params).await?;
    Ok(Shown(found.remove(&id).unwrap_or_default()))
}

async fn correlated_many(
    State(face): State<Face>,
    At(name): At<String>,
    params: Params,
    Body(ids): Body<Vec<String>>,
) -> Answered<impl IntoResponse> {
    with_correlation(&face, &name, &ids, &params).await.map(Shown)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CorrelationIds {
    correlation_ids: Vec<String>,
    workflow_names: Vec<String>,
}

async fn correlated_batch(
    State(face): State<Face>,
    params: Params,
    Object(asked): Object<CorrelationIds>,
) -> Answered<impl IntoResponse> {
    let mut all = Correlated::new();
    for name in &asked.workflow_names {
        let found = with_correlation(&face, name, &asked.correlation_ids, &params).await?;
        for (id, workflows) in found {
            all.entry(id).or_default().extend(workflows);
        }
    }
    Ok(Shown(all))
}

async fn decide(State(face): State<Face>, At(id): At<String>) -> Answered<Empty> {
    face.control(workflow_key(&id)?, WorkflowVerb::Decide).await?;
    Ok(Empty)
}

async fn pause(State(face): State<Face>, At(id): At<String>) -> Answered<Empty> {
    face.control(workflow_key(&id)?, WorkflowVerb::Pause).await?;
    Ok(Empty)
}

async fn resume(State(face): State<Face>, At(id): At<String>) -> Answered<Empty> {
    face.control(workflow_key(&id)?, WorkflowVerb::Resume).await?;
    Ok(Empty)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SkipTask {
    task_input: Option<Box<RawValue>>,
    task_output: Option<Box<RawValue>>,
}

async fn skip(
    State(face): State<Face>,
    At((id, reference)): At<(String, String)>,
    MaybeObject(asked): MaybeObject<SkipTask>,
) -> Answered<Empty> {
    let verb = WorkflowVerb::Skip {
        reference: reference.into(),
        input: object_text(asked.task_input.as_deref())?,
        output: object_text(asked.task_output.as_deref())?,
    };
    face.control(workflow_key(&id)?, verb).await?;
    Ok(Empty)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rerun {
    workflow_input: Option<Box<RawValue>>,
    re_run_from_task_id: Option<String>,
    task_input: Option<Box<RawValue>>,
    correlation_id: Option<String>,
}

async fn rerun(
    State(face): State<Face>,
    At(id): At<String>,
    MaybeObject(asked): MaybeObject<Rerun>,
) -> Answered<Plain> {
    let task = asked.re_run_from_task_id.filter(|task| !task.is_empty());
    // Any other text names no task, as this key does not.
    let from = task.as_deref().map(|task| key_of(task).unwrap_or(NO_KEY));
    let command = RerunWorkflow {
        from,
        workflow_input: object_text(asked.workflow_input.as_deref())?,
        task_input: object_text(asked.task_input.as_deref())?,
        correlation_id: asked.correlation_id.unwrap_or_default().into(),
    };
    let key = workflow_key(&id)?;
    let done = face.control(key, WorkflowVerb::Rerun(command)).await;
    done.map_err(|failure| match task {
        Some(task) if from == Some(NO_KEY) && failure.is_invalid() => {
            Failure::invalid(format!("Task {task} not found"))
        }
        Some(_) | None => failure,
    })?;
    Ok(Plain::id(key))
}

async fn restart(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
) -> Answered<NoContent> {
    let latest = params.flag("useLatestDefinitions", false)?;
    face.control(workflow_key(&id)?, WorkflowVerb::Restart { latest }).await?;
    Ok(NoContent)
}

async fn retry(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
) -> Answered<NoContent> {
    let subworkflows = params.flag("resumeSubworkflowTasks", false)?;
    face.control(workflow_key(&id)?, WorkflowVerb::Retry { subworkflows }).await?;
    Ok(NoContent)
}

async fn reset_callbacks(State(face): State<Face>, At(id): At<String>) -> Answered<NoContent> {
    face.control(workflow_key(&id)?, WorkflowVerb::ResetCallbacks).await?;
    Ok(NoContent)
}

async fn terminate(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
) -> Answered<Empty> {
    let reason = params.text("reason").into();
    face.control(workflow_key(&id)?, WorkflowVerb::Terminate { reason }).await?;
    Ok(Empty)
}

async fn remove(State(face): State<Face>, At(id): At<String>, params: Params) -> Answered<Empty> {
    let only_at_rest = params.flag("archiveWorkflow", true)?;
    face.control(workflow_key(&id)?, WorkflowVerb::Remove { only_at_rest }).await?;
    Ok(Empty)
}

async fn terminate_remove(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
) -> Answered<Empty> {
    let key = workflow_key(&id)?;
    let only_at_rest = params.flag("archiveWorkflow", true)?;
    let reason = params.text("reason").into();
    face.control(key, WorkflowVerb::Terminate { reason }).await?;
    face.control(key, WorkflowVerb::Remove { only_at_rest }).await?;
    Ok(Empty)
}

async fn set_variables(
    State(face): State<Face>,
    At(id): At<String>,
    body: ObjectText,
) -> Answered<Text> {
    let key = workflow_key(&id)?;
    let variables = body.required()?[..].into();
    face.control(key, WorkflowVerb::SetVariables { variables }).await?;
    shown(&face, key).await
}

/// Where large payloads would be kept, outside. They are kept here.
#[derive(Serialize)]
struct Location {
    uri: &'static str,
    path: &'static str,
}

pub(crate) async fn external_storage(params: Params) -> Answered<impl IntoResponse> {
    for name in ["path", "operation", "payloadType"] {
        params.required(name)?;
    }
    Ok(Shown(Location { uri: "", path: "" }))
}
