//! The same for many workflows: `/workflow/bulk`. Each is answered for itself.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{delete, post, put};
use serde::Serialize;
use serde_json::value::RawValue;
use windlass_record::workflow::{WorkflowCommand, WorkflowVerb};

use crate::answer::Shown;
use crate::extract::{Body, Params, no_workflow, workflow_key};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::limit::BULK_ITEMS_MAX;
use crate::past;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/workflow/bulk/pause", put(pause))
        .route("/workflow/bulk/resume", put(resume))
        .route("/workflow/bulk/restart", post(restart))
        .route("/workflow/bulk/retry", post(retry))
        .route("/workflow/bulk/terminate", post(terminate))
        .route("/workflow/bulk/remove", delete(remove))
        .route("/workflow/bulk/delete", post(remove))
        .route("/workflow/bulk/terminate-remove", delete(terminate_remove))
        .route("/workflow/bulk/search", post(search))
}

/// What became of many.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BulkResponse<T> {
    bulk_error_results: serde_json::Map<String, serde_json::Value>,
    bulk_successful_results: Vec<T>,
    message: &'static str,
}

impl<T> Default for BulkResponse<T> {
    fn default() -> BulkResponse<T> {
        BulkResponse {
            bulk_error_results: serde_json::Map::new(),
            bulk_successful_results: Vec::new(),
            message: "Bulk Request has been processed.",
        }
    }
}

impl<T> BulkResponse<T> {
    /// Tells of one more.
    pub(crate) fn add(&mut self, id: &str, became: Answered<T>) {
        match became {
            Ok(result) => self.bulk_successful_results.push(result),
            Err(failure) => {
                self.bulk_error_results.insert(id.to_owned(), failure.sentences().into());
            }
        }
    }
}

/// Does the same with many workflows.
async fn each(
    face: &Face,
    ids: &[String],
    verb: impl Fn() -> WorkflowVerb,
) -> Answered<Vec<Answered<()>>> {
    if ids.len() > BULK_ITEMS_MAX {
        return Err(Failure::validation(vec![format!(
            "Cannot process more than {BULK_ITEMS_MAX} workflows. Please use multiple requests."
        )]));
    }
    let keys: Vec<_> = ids.iter().map(|id| workflow_key(id)).collect();
    let known = keys.iter().filter_map(|key| key.as_ref().ok());
    let commands = known
        .map(|workflow| WorkflowCommand::Control { workflow: *workflow, verb: verb() })
        .collect();
    let mut answers = face.ask_all(commands).await.into_iter();
    let answered = keys.into_iter().map(|key| {
        key.and_then(|_| answers.next().expect("every command has one answer"))?;
        Ok(())
    });
    Ok(answered.collect())
}

async fn processed(
    face: &Face,
    ids: Vec<String>,
    verb: impl Fn() -> WorkflowVerb,
) -> Answered<Shown<BulkResponse<String>>> {
    let answers = each(face, &ids, verb).await?;
    let mut bulk = BulkResponse::default();
    for (id, answer) in ids.into_iter().zip(answers) {
        bulk.add(&id, answer.map(|()| id.clone()));
    }
    Ok(Shown(bulk))
}

type Ids = Body<Vec<String>>;

async fn pause(State(face): State<Face>, Body(ids): Ids) -> Answered<impl IntoResponse> {
    processed(&face, ids, || WorkflowVerb::Pause).await
}

async fn resume(State(face): State<Face>, Body(ids): Ids) -> Answered<impl IntoResponse> {
    processed(&face, ids, || WorkflowVerb::Resume).await
}

async fn restart(
    State(face): State<Face>,
    params: Params,
    Body(ids): Ids,
) -> Answered<impl IntoResponse> {
    let latest = params.flag("useLatestDefinitions", false)?;
    processed(&face, ids, || WorkflowVerb::Restart { latest }).await
}

async fn retry(
    State(face): State<Face>,
    params: Params,
    Body(ids): Ids,
) -> Answered<impl IntoResponse> {
    let subworkflows = params.flag("resumeSubworkflowTasks", false)?;
    processed(&face, ids, || WorkflowVerb::Retry { subworkflows }).await
}

async fn terminate(
    State(face): State<Face>,
    params: Params,
    Body(ids): Ids,
) -> Answered<impl IntoResponse> {
    let reason = params.text("reason");
    processed(&face, ids, || WorkflowVerb::Terminate { reason: reason.into() }).await
}

async fn remove(
    State(face): State<Face>,
    params: Params,
    Body(ids): Ids,
) -> Answered<impl IntoResponse> {
    let only_at_rest = params.flag("archiveWorkflow", true)?;
    processed(&face, ids, || WorkflowVerb::Remove { only_at_rest }).await
}

/// What cannot be ended is removed all the same.
async fn terminate_remove(
    State(face): State<Face>,
    params: Params,
    Body(ids): Ids,
) -> Answered<impl IntoResponse> {
    let reason = params.text("reason");
    let only_at_rest = params.flag("archiveWorkflow", true)?;
    let _ended = each(&face, &ids, || WorkflowVerb::Terminate { reason: reason.into() }).await?;
    processed(&face, ids, || WorkflowVerb::Remove { only_at_rest }).await
}

async fn search(
    State(face): State<Face>,
    params: Params,
    Body(ids): Ids,
) -> Answered<impl IntoResponse> {
    let tasks = params.flag("includeTasks", true)?;
    if ids.len() > BULK_ITEMS_MAX {
        let most = format!("Cannot process more than {BULK_ITEMS_MAX} workflows");
        return Err(Failure::validation(vec![most]));
    }
    let mut bulk = BulkResponse::default();
    for id in ids {
        let found = match workflow_key(&id) {
            Ok(key) => {
                let found = past::workflow(&face, key, tasks).await?;
                let found = found.and_then(|json| RawValue::from_string(json.to_string()).ok());
                found.ok_or_else(|| no_workflow(&id))
            }
            Err(failure) => Err(failure),
        };
        bulk.add(&id, found);
    }
    Ok(Shown(bulk))
}
