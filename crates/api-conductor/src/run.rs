//! Workflows run and signalled, and answered with what became of them: the caller waits until the
//! workflow has ended, or until somebody else must act.

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use windlass_record::flow::Key;
use windlass_record::workflow::{
    SignalWorkflow, TaskReference, WorkflowCommand, WorkflowQuery, WorkflowVerb, id_of, key_of,
};

use crate::answer::{Empty, Shown};
use crate::extract::{
    At, MaybeObject, Object, ObjectText, Params, ill_typed, no_workflow, update_status,
    workflow_key,
};
use crate::face::{Face, is_task_at_rest, is_workflow_at_rest};
use crate::failure::{Answered, Failure};
use crate::limit::{
    CHILDREN_MAX, LOOK_PAUSE_MAX, LOOK_PAUSE_MIN, RUN_SECONDS_DEFAULT, RUN_WAIT_MAX,
};
use crate::task::TaskResult;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/workflow/execute/{a}/{b}", post(execute))
        .route("/workflow/{a}/state", post(change_state))
        .route("/tasks/{a}/{b}/signal", post(signal))
        .route("/tasks/{a}/{b}/signal/sync", post(signal_sync))
}

/// What the caller wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    TargetWorkflow,
    BlockingWorkflow,
    BlockingTask,
    BlockingTaskInput,
}

impl Strategy {
    const ALL: [Strategy; 4] = [
        Strategy::TargetWorkflow,
        Strategy::BlockingWorkflow,
        Strategy::BlockingTask,
        Strategy::BlockingTaskInput,
    ];

    fn name(self) -> &'static str {
        match self {
            Strategy::TargetWorkflow => "TARGET_WORKFLOW",
            Strategy::BlockingWorkflow => "BLOCKING_WORKFLOW",
            Strategy::BlockingTask => "BLOCKING_TASK",
            Strategy::BlockingTaskInput => "BLOCKING_TASK_INPUT",
        }
    }

    fn of(params: &Params) -> Answered<Strategy> {
        let Some(name) = params.find("returnStrategy") else { return Ok(Strategy::TargetWorkflow) };
        let named = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
        named.ok_or_else(|| ill_typed(name, "WorkflowSignalReturnStrategy"))
    }
}

/// What is waited for, and what is said then.
struct Wait {
    workflow: Key,
    /// Tasks whose end is enough.
    references: Vec<String>,
    at_most: Duration,
    strategy: Strategy,
    request_id: String,
}

impl Wait {
    fn of(workflow: Key, params: &Params, at_most: Duration) -> Answered<Wait> {
        let references = params.text("waitUntilTaskRef").split(',').map(str::trim);
        let request_id = params.text("requestId");
        Ok(Wait {
            workflow,
            references: references.filter(|it| !it.is_empty()).map(str::to_owned).collect(),
            at_most: at_most.min(RUN_WAIT_MAX),
            strategy: Strategy::of(params)?,
            request_id: if request_id.is_empty() { random_id() } else { request_id.to_owned() },
        })
    }
}

/// An id that nobody else has.
pub(crate) fn random_id() -> String {
    let bits = fastrand::u128(..);
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        (bits >> 96) & 0xffff_ffff,
        (bits >> 80) & 0xffff,
        (bits >> 68) & 0xfff,
        (bits >> 56) & 0xfff,
        bits & 0xffff_ffff_ffff
    )
}

/// How long a run may be waited for; nothing is the default.
fn seconds(params: &Params) -> Answered<Duration> {
    let given = params.number("waitForSeconds")?.filter(|seconds| *seconds != 0);
    let seconds = u64::try_from(given.unwrap_or(RUN_SECONDS_DEFAULT)).unwrap_or(0);
    Ok(Duration::from_secs(seconds))
}

async fn execute(
    State(face): State<Face>,
    At((name, version)): At<(String, i64)>,
    params: Params,
    Object(mut request): Object<Map<String, Value>>,
) -> Answered<Response> {
    request.insert("name".to_owned(), name.into());
    request.insert("version".to_owned(), if version == 0 { Value::Null } else { version.into() });
    let tasks = request.get("workflowDef").and_then(|definition| definition.get("tasks"));
    if tasks.and_then(Value::as_array).is_some_and(|tasks| !tasks.is_empty()) {
        mark_dynamic(&mut request);
    }
    let at_most = seconds(&params)?;
    Strategy::of(&params)?;
    let workflow = face.start(Value::Object(request).to_string().into_bytes()).await?;
    answer(&face, &Wait::of(workflow, &params, at_most)?).await
}

/// Says in the input that the definition came with the request.
fn mark_dynamic(request: &mut Map<String, Value>) {
    let input = request.entry("input").or_insert_with(|| json!({}));
    let Value::Object(input) = input else { return };
    let metadata = input.entry("_systemMetadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        metadata.insert("dynamic".to_owned(), true.into());
    }
}

/// What is changed about a workflow that runs.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StateUpdate {
    task_reference_name: Option<String>,
    task_result: Option<TaskResult>,
    variables: Option<Map<String, Value>>,
}

async fn change_state(
    State(face): State<Face>,
    At(id): At<String>,
    params: Params,
    MaybeObject(change): MaybeObject<StateUpdate>,
) -> Answered<Response> {
    let workflow = workflow_key(&id)?;
    let wait = Wait::of(workflow, &params, seconds(&params)?)?;
    if let Some(variables) = change.variables.filter(|variables| !variables.is_empty()) {
        let variables = Value::Object(variables).to_string().into_bytes().into();
        face.control(workflow, WorkflowVerb::SetVariables { variables }).await?;
    }
    if let Some(name) = change.task_reference_name.filter(|name| !name.is_empty()) {
        let result = change.task_result.unwrap_or_default();
        let command = result.command(workflow, TaskReference::Name(name.as_str().into()))?;
        if face.update(command).await?.task.is_none() {
            let message = format!("Found no running task {name} of workflow {id} to update");
            return Err(Failure::not_found(message));
        }
    }
    answer(&face, &wait).await
}

async fn signal(
    State(face): State<Face>,
    At((id, status)): At<(String, String)>,
    ObjectText(output): ObjectText,
) -> Answered<Empty> {
    face.update(signal_command(&id, &status, &output)?).await?;
    Ok(Empty)
}

async fn signal_sync(
    State(face): State<Face>,
    At((id, status)): At<(String, String)>,
    params: Params,
    ObjectText(output): ObjectText,
) -> Answered<Response> {
    let given = params.number("timeoutMillis")?.unwrap_or(5_000);
    let at_most = Duration::from_millis(u64::try_from(given).unwrap_or(0));
    let wait = Wait::of(workflow_key(&id)?, &params, at_most)?;
    let wait = Wait { references: Vec::new(), ..wait };
    if face.update(signal_command(&id, &status, &output)?).await?.task.is_none() {
        let message = format!("Found no blocked task in workflow {id} to signal");
        return Err(Failure::not_found(message));
    }
    answer(&face, &wait).await
}

fn signal_command(id: &str, status: &str, output: &[u8]) -> Answered<WorkflowCommand> {
    Ok(WorkflowCommand::Signal(SignalWorkflow {
        workflow: workflow_key(id)?,
        status: update_status(status)?,
        output: output.into(),
    }))
}

/// Where a workflow stands.
#[derive(Default)]
struct Stand {
    /// The task that somebody must act on, or that was waited for.
    task: Option<Value>,
    /// It went on for longer than the caller wanted to wait.
    late: bool,
}

/// Waits, and says what became of it.
async fn answer(face: &Face, wait: &Wait) -> Answered<Response> {
    let stand = stand(face, wait).await?;
    let Some(target) = shown(face, wait.workflow).await? else {
        return Err(no_workflow(&id_of(wait.workflow)));
    };
    let said = match (wait.strategy, &stand.task) {
        (Strategy::TargetWorkflow, _) | (Strategy::BlockingWorkflow, None) => workflow_run(&target),
        (Strategy::BlockingWorkflow, Some(task)) => {
            let id = task.get("workflowInstanceId").and_then(Value::as_str);
            match id.and_then(key_of) {
                Some(key) if key != wait.workflow => {
                    workflow_run(shown(face, key).await?.as_ref().unwrap_or(&target))
                }
                Some(_) | None => workflow_run(&target),
            }
        }
        (Strategy::BlockingTask | Strategy::BlockingTaskInput, Some(task)) => task_run(task),
        (Strategy::BlockingTask | Strategy::BlockingTaskInput, None) => {
            return Ok(Empty.into_response());
        }
    };
    let mut said = said;
    for (name, value) in [
        ("responseType", wait.strategy.name().into()),
        ("targetWorkflowId", id_of(wait.workflow).into()),
        ("targetWorkflowStatus", target.get("status").cloned().unwrap_or_default()),
        ("requestId", wait.request_id.as_str().into()),
        ("signalTimeout", stand.late.into()),
    ] {
        said.insert(name.to_owned(), value);
    }
    Ok(Shown(said).into_response())
}

async fn shown(face: &Face, key: Key) -> Answered<Option<Value>> {
    face.find_as(WorkflowQuery::Workflow { key, tasks: true }).await
}

/// Looks again and again until there is something to say.
async fn stand(face: &Face, wait: &Wait) -> Answered<Stand> {
    let looking = async {
        let mut pause = LOOK_PAUSE_MIN;
        loop {
            if let Some(stand) = look(face, wait).await? {
                return Ok(stand);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOK_PAUSE_MAX);
        }
    };
    let late = || Ok(Stand { task: None, late: true });
    tokio::select! {
        biased;
        stand = looking => stand,
        () = sleep(wait.at_most) => late(),
        () = face.gateway.until_shut_down() => late(),
    }
}

async fn look(face: &Face, wait: &Wait) -> Answered<Option<Stand>> {
    let key = wait.workflow;
    let status = WorkflowQuery::Status { key, output: false, variables: false };
    let Some(status) = face.find_as::<Value>(status).await? else {
        return Err(no_workflow(&id_of(key)));
    };
    let mut task = face.find_as(WorkflowQuery::Blocking(key)).await?;
    if task.is_none() && !wait.references.is_empty() {
        task = ended(face, key, &wait.references).await?;
    }
    let ended = status.get("status").and_then(Value::as_str).is_some_and(is_workflow_at_rest);
    Ok((ended || task.is_some()).then_some(Stand { task, late: false }))
}

/// A task of one of those names that has ended, also in workflows that run for tasks.
async fn ended(face: &Face, workflow: Key, references: &[String]) -> Answered<Option<Value>> {
    let mut open = vec![workflow];
    for _ in 0..CHILDREN_MAX {
        let Some(key) = open.pop() else { break };
        let Some(mut workflow) = shown(face, key).await? else { continue };
        let tasks = workflow.get_mut("tasks").and_then(Value::as_array_mut);
        for task in tasks.into_iter().flatten() {
            let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
            let at_rest = is_task_at_rest(text("status"));
            let reference = text("referenceTaskName");
            if at_rest && references.iter().any(|wanted| wanted == reference) {
                return Ok(Some(task.take()));
            }
            if !at_rest && text("taskType") == "SUB_WORKFLOW" {
                open.extend(key_of(text("subWorkflowId")));
            }
        }
    }
    Ok(None)
}

/// Fields of another object, by their names there and here; those that are not there are left out.
fn fields(of: &Value, names: &[(&str, &str)]) -> Map<String, Value> {
    let field = |(there, here): &(&str, &str)| {
        let value = of.get(*there).filter(|value| !value.is_null())?;
        Some(((*here).to_owned(), value.clone()))
    };
    names.iter().filter_map(field).collect()
}

fn workflow_run(workflow: &Value) -> Map<String, Value> {
    fields(
        workflow,
        &[
            ("workflowId", "workflowId"),
            ("correlationId", "correlationId"),
            ("input", "input"),
            ("output", "output"),
            ("priority", "priority"),
            ("variables", "variables"),
            ("tasks", "tasks"),
            ("createdBy", "createdBy"),
            ("createTime", "createTime"),
            ("status", "status"),
            ("updateTime", "updateTime"),
        ],
    )
}

fn task_run(task: &Value) -> Map<String, Value> {
    fields(
        task,
        &[
            ("taskType", "taskType"),
            ("taskId", "taskId"),
            ("referenceTaskName", "referenceTaskName"),
            ("retryCount", "retryCount"),
            ("taskDefName", "taskDefName"),
            ("retriedTaskId", "retriedTaskId"),
            ("workflowType", "workflowType"),
            ("reasonForIncompletion", "reasonForIncompletion"),
            ("workflowPriority", "priority"),
            ("workflowInstanceId", "workflowId"),
            ("correlationId", "correlationId"),
            ("status", "status"),
            ("inputData", "input"),
            ("outputData", "output"),
            ("workerId", "createdBy"),
            ("startTime", "createTime"),
            ("updateTime", "updateTime"),
        ],
    )
}
