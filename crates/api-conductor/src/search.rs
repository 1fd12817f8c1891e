//! Searches for workflows and tasks. Summaries are the history's; the newer kind answers with the
//! things themselves, workflows without their tasks.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use windlass_gateway::read_model::WorkflowSearch;
use windlass_gateway::read_model::search::{Task, Workflow};
use windlass_record::flow::Key;

use crate::answer::Shown;
use crate::extract::Params;
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::past;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/workflow/search", get(workflows))
        .route("/workflow/search-v2", get(workflows_whole))
        .route("/workflow/search-by-tasks", get(workflows_by_tasks))
        .route("/workflow/search-by-tasks-v2", get(workflows_whole_by_tasks))
        .route("/tasks/search", get(tasks))
        .route("/tasks/search-v2", get(tasks_whole))
}

/// A page of what was found, and how much there is in all.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SearchResult<T> {
    pub(crate) total_hits: u64,
    pub(crate) results: Vec<T>,
}

fn asked(params: &Params) -> Answered<WorkflowSearch> {
    let number = |name: &str, default: usize| {
        let given = params.count(name, default)?;
        Ok::<u32, Failure>(u32::try_from(given).unwrap_or(u32::MAX))
    };
    let terms = params.all("sort").flat_map(|sort| sort.split('|'));
    let terms = terms.map(str::trim).filter(|term| !term.is_empty());
    let ordered =
        terms.map(|term| if term.contains(':') { term.to_owned() } else { format!("{term}:ASC") });
    Ok(WorkflowSearch {
        query: params.text("query").to_owned(),
        free_text: params.text("freeText").to_owned(),
        sort: ordered.collect::<Vec<_>>().join("|"),
        start: number("start", 0)?,
        size: number("size", 100)?,
        classifier: params.find("classifier").map(str::to_owned),
        top_level_only: params.flag("topLevelOnly", false)?,
    })
}

async fn find_workflows(
    face: &Face,
    params: &Params,
    by_tasks: bool,
) -> Answered<(u64, Vec<Workflow>)> {
    let asked = asked(params)?;
    // Without a history nothing is found, as in the original without an index.
    let Some(searches) = past::searches(face).await? else { return Ok((0, Vec::new())) };
    let found = if by_tasks {
        searches.search_workflows_by_tasks(asked).await
    } else {
        searches.search_workflows(asked).await
    };
    found.map_err(past::refused)
}

async fn find_tasks(face: &Face, params: &Params) -> Answered<(u64, Vec<Task>)> {
    let asked = asked(params)?;
    let Some(searches) = past::searches(face).await? else { return Ok((0, Vec::new())) };
    searches.search_tasks(asked).await.map_err(past::refused)
}

async fn workflow_summaries(
    face: &Face,
    params: &Params,
    by_tasks: bool,
) -> Answered<Shown<SearchResult<Value>>> {
    let (total_hits, found) = find_workflows(face, params, by_tasks).await?;
    let results = found.iter().map(Workflow::summary).collect();
    Ok(Shown(SearchResult { total_hits, results }))
}

async fn whole_workflows(
    face: &Face,
    params: &Params,
    by_tasks: bool,
) -> Answered<Shown<SearchResult<Box<RawValue>>>> {
    let (total_hits, found) = find_workflows(face, params, by_tasks).await?;
    let mut results = Vec::with_capacity(found.len());
    for workflow in found {
        let json = past::workflow(face, Key::from_raw(workflow.key), false).await?;
        results.extend(json.as_deref().and_then(raw));
    }
    Ok(Shown(SearchResult { total_hits, results }))
}

fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok()
}

async fn workflows(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    workflow_summaries(&face, &params, false).await
}

async fn workflows_by_tasks(
    State(face): State<Face>,
    params: Params,
) -> Answered<impl IntoResponse> {
    workflow_summaries(&face, &params, true).await
}

async fn workflows_whole(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    whole_workflows(&face, &params, false).await
}

async fn workflows_whole_by_tasks(
    State(face): State<Face>,
    params: Params,
) -> Answered<impl IntoResponse> {
    whole_workflows(&face, &params, true).await
}

async fn tasks(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let (total_hits, found) = find_tasks(&face, &params).await?;
    let results = found.iter().map(Task::summary).collect::<Vec<Value>>();
    Ok(Shown(SearchResult { total_hits, results }))
}

async fn tasks_whole(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let (total_hits, found) = find_tasks(&face, &params).await?;
    let mut results = Vec::with_capacity(found.len());
    for task in found {
        let json = past::task(&face, Key::from_raw(task.key)).await?;
        results.extend(json.as_deref().and_then(raw));
    }
    Ok(Shown(SearchResult { total_hits, results }))
}
