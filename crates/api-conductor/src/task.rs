//! Tasks read and updated: `/tasks`.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_record::flow::Key;
use windlass_record::workflow::{
    TaskReference, TaskStatus, TaskUpdate, WorkflowAnswer, WorkflowCommand, WorkflowQuery, key_of,
};

use crate::answer::{Either, Empty, NoContent, Plain, Text};
use crate::extract::{
    At, Object, ObjectText, Params, TextBody, object_text, task_key, update_status, workflow_key,
};
use crate::face::{Face, Updated};
use crate::failure::{Answered, Failure};
use crate::past;
use crate::poll::{Asked, next};
use crate::workflow::{external_storage, shown};

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/tasks", post(update))
        .route("/tasks/update-v2", post(update_and_poll))
        .route("/tasks/externalstoragelocation", get(external_storage))
        .route("/tasks/external-storage-location", get(external_storage))
        .route("/tasks/queue/requeue/{a}", post(requeue))
        .route("/tasks/{a}", get(task))
        .route("/tasks/{a}/log", get(lines).post(log))
        .route("/tasks/{a}/{b}/{c}", post(update_named))
        .route("/tasks/{a}/{b}/{c}/sync", post(update_named_sync))
}

/// What a worker reports.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TaskResult {
    pub(crate) workflow_instance_id: Option<String>,
    pub(crate) task_id: Option<String>,
    status: Option<String>,
    output_data: Option<Box<RawValue>>,
    reason_for_incompletion: Option<String>,
    callback_after_seconds: Option<i64>,
    worker_id: Option<String>,
    logs: Option<Vec<Line>>,
    extend_lease: Option<bool>,
}

/// A line of a task's log.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    log: Option<Box<str>>,
}

impl TaskResult {
    /// The command for a task of a workflow.
    pub(crate) fn command(self, workflow: Key, task: TaskReference) -> Answered<WorkflowCommand> {
        let extend_lease = self.extend_lease.unwrap_or(false);
        let status = match self.status.as_deref() {
            Some(name) => update_status(name)?,
            None if extend_lease => TaskStatus::InProgress,
            None => return Err(Failure::invalid("TaskResult status cannot be null")),
        };
        let callback_s = self.callback_after_seconds.unwrap_or(0).max(0);
        let lines = self.logs.unwrap_or_default().into_iter();
        Ok(WorkflowCommand::UpdateTask(Box::new(TaskUpdate {
            workflow,
            task,
            status,
            output: object_text(self.output_data.as_deref())?,
            merge: false,
            reason: self.reason_for_incompletion.unwrap_or_default().into(),
            callback_s: u32::try_from(callback_s).unwrap_or(u32::MAX),
            worker: self.worker_id.unwrap_or_default().into(),
            log: lines.filter_map(|line| line.log).collect(),
            extend_lease,
        })))
    }
}

/// The ids of a result, which must be there.
fn ids(result: &TaskResult) -> Answered<(Key, Key)> {
    let workflow = result.workflow_instance_id.as_deref().unwrap_or_default();
    let task = result.task_id.as_deref().unwrap_or_default();
    let mut problems = Vec::new();
    if workflow.is_empty() {
        problems.push("Workflow Id cannot be null or empty".to_owned());
    }
    if task.is_empty() {
        problems.push("Task ID cannot be null or empty".to_owned());
    }
    if !problems.is_empty() {
        return Err(Failure::validation(problems));
    }
    Ok((workflow_key(workflow)?, task_key(task)?))
}

async fn apply(face: &Face, result: TaskResult) -> Answered<Updated> {
    let (workflow, task) = ids(&result)?;
    face.update(result.command(workflow, TaskReference::Key(task))?).await
}

async fn update(State(face): State<Face>, Object(result): Object<TaskResult>) -> Answered<Plain> {
    let id = result.task_id.clone().unwrap_or_default();
    apply(&face, result).await?;
    Ok(Plain(id))
}

/// A worker that is done with one gets the next.
async fn update_and_poll(
    State(face): State<Face>,
    Object(result): Object<TaskResult>,
) -> Answered<Response> {
    let worker = result.worker_id.clone().unwrap_or_default();
    let updated = apply(&face, result).await?;
    if !updated.ended {
        return Ok(NoContent.into_response());
    }
    let Updated { task_type, domain, .. } = updated;
    let asked = Asked { task_type: &task_type, domain: &domain, worker: &worker };
    next(&face, &asked, 0).await
}

/// An update of the newest task of a name: what it is given is added to its output.
pub(crate) fn named_update(
    workflow: Key,
    task: TaskReference,
    status: &str,
    output: &[u8],
    worker: &str,
) -> Answered<WorkflowCommand> {
    Ok(WorkflowCommand::UpdateTask(Box::new(TaskUpdate {
        workflow,
        task,
        status: update_status(status)?,
        output: output.into(),
        merge: true,
        reason: "".into(),
        callback_s: 0,
        worker: worker.into(),
        log: Vec::new(),
        extend_lease: false,
    })))
}

type Named = At<(String, String, String)>;

async fn update_named(
    State(face): State<Face>,
    At((id, name, status)): Named,
    params: Params,
    ObjectText(output): ObjectText,
) -> Answered<impl IntoResponse> {
    let task = TaskReference::Name(name.into());
    let worker = params.text("workerid");
    let command = named_update(workflow_key(&id)?, task, &status, &output, worker)?;
    match face.update(command).await?.task {
        Some(task) => Ok(Either::First(Plain::id(task))),
        None => Ok(Either::Second(Empty)),
    }
}

async fn update_named_sync(
    State(face): State<Face>,
    At((id, name, status)): Named,
    params: Params,
    ObjectText(output): ObjectText,
) -> Answered<impl IntoResponse> {
    let task = TaskReference::Name(name.as_str().into());
    let worker = params.text("workerid");
    let workflow = workflow_key(&id)?;
    let command = named_update(workflow, task, &status, &output, worker)?;
    if face.update(command).await?.task.is_none() {
        let message = format!("Found no running task {name} of workflow {id} to update");
        return Err(Failure::not_found(message));
    }
    shown(&face, workflow).await
}

async fn task(State(face): State<Face>, At(id): At<String>) -> Answered<impl IntoResponse> {
    let none = || Failure::not_found(format!("Task not found for taskId: {id}"));
    let key = key_of(&id).ok_or_else(none)?;
    past::task(&face, key).await?.map(Text).ok_or_else(none)
}

async fn log(
    State(face): State<Face>,
    At(id): At<String>,
    TextBody(line): TextBody,
) -> Answered<Empty> {
    let task = task_key(&id)?;
    face.ask(WorkflowCommand::LogTask { task, lines: vec![line.into()] }).await?;
    Ok(Empty)
}

async fn lines(State(face): State<Face>, At(id): At<String>) -> Answered<impl IntoResponse> {
    let found = match key_of(&id) {
        Some(key) => face.find(WorkflowQuery::TaskLog(key)).await?,
        None => None,
    };
    match found.filter(|lines| &**lines != "[]") {
        Some(lines) => Ok(Either::First(Text(lines))),
        None => Ok(Either::Second(NoContent)),
    }
}

async fn requeue(State(face): State<Face>, At(task_type): At<String>) -> Answered<Plain> {
    match face.ask(WorkflowCommand::RequeueTasks { task_type: task_type.into() }).await? {
        WorkflowAnswer::Count(count) => Ok(Plain(count.to_string())),
        WorkflowAnswer::Done | WorkflowAnswer::Started { .. } | WorkflowAnswer::Updated { .. } => {
            Ok(Plain("0".to_owned()))
        }
    }
}
