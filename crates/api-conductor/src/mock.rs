//! Workflows run with made-up results: `/workflow/test`. The workflow is a real one, in a domain
//! that no worker asks for; its tasks are given the results of the request, in order.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::post;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskReference, WorkflowQuery, key_of};

use crate::extract::{Object, not_json, object_text};
use crate::face::{Face, is_task_at_rest, is_workflow_at_rest};
use crate::failure::Answered;
use crate::limit::{
    LOOK_PAUSE_MAX, LOOK_PAUSE_MIN, TEST_DEPTH_MAX, TEST_LOOKS_MAX, TEST_QUIET_MAX,
};
use crate::run::random_id;
use crate::task::named_update;
use crate::workflow::shown;

pub(crate) fn routes() -> Router<Face> {
    Router::new().route("/workflow/test", post(test))
}

/// Types of task that end by themselves.
const OPERATORS: [&str; 18] = [
    "DECISION",
    "DO_WHILE",
    "DYNAMIC",
    "EVENT",
    "EXCLUSIVE_JOIN",
    "FORK",
    "FORK_JOIN",
    "FORK_JOIN_DYNAMIC",
    "INLINE",
    "JOIN",
    "JSON_JQ_TRANSFORM",
    "LAMBDA",
    "NOOP",
    "SET_VARIABLE",
    "START_WORKFLOW",
    SUB_WORKFLOW,
    "SWITCH",
    "TERMINATE",
];

const SUB_WORKFLOW: &str = "SUB_WORKFLOW";

/// Results for the tasks of a workflow, and for those of the workflows that run for its tasks.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Mocks {
    task_ref_to_mock_output: Option<HashMap<String, VecDeque<Mock>>>,
    sub_workflow_test_request: Option<HashMap<String, Mocks>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Mock {
    status: Option<String>,
    output: Option<Box<RawValue>>,
}

async fn test(
    State(face): State<Face>,
    Object(mut request): Object<Map<String, Value>>,
) -> Answered<impl IntoResponse> {
    let mut mocks = Map::new();
    for name in ["taskRefToMockOutput", "subWorkflowTestRequest"] {
        mocks.extend(request.remove_entry(name));
    }
    let mocks = Value::Object(mocks).to_string();
    let mut mocks: Mocks = serde_json::from_str(&mocks).map_err(|error| not_json(&error))?;
    let domains = request.entry("taskToDomain").or_insert_with(|| json!({}));
    if !domains.is_object() {
        *domains = json!({});
    }
    if let Value::Object(domains) = domains {
        domains.insert("*".to_owned(), random_id().into());
    }
    let workflow = face.start(Value::Object(request).to_string().into_bytes()).await?;
    let mut looks = 0;
    feed(&face, workflow, &mut mocks, &mut looks, 0).await?;
    shown(&face, workflow).await
}

/// Gives results until the workflow has ended, or until one is missing.
fn feed<'a>(
    face: &'a Face,
    workflow: Key,
    mocks: &'a mut Mocks,
    looks: &'a mut u32,
    depth: u32,
) -> Pin<Box<dyn Future<Output = Answered<()>> + Send + 'a>> {
    Box::pin(async move {
        let (mut since, mut pause) = (Instant::now(), LOOK_PAUSE_MIN);
        while *looks < TEST_LOOKS_MAX && depth < TEST_DEPTH_MAX {
            *looks += 1;
            let Some(open) = open_tasks(face, workflow).await? else { break };
            if open.iter().any(|task| mocks.lack(task)) {
                break;
            }
            let mut fed = false;
            for task in &open {
                fed |= step(face, workflow, mocks, task, looks, depth).await?;
            }
            if fed {
                (since, pause) = (Instant::now(), LOOK_PAUSE_MIN);
            } else if since.elapsed() > TEST_QUIET_MAX {
                break;
            } else {
                sleep(pause).await;
                pause = (pause * 2).min(LOOK_PAUSE_MAX);
            }
        }
        Ok(())
    })
}

/// A task under test that has not ended.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Open {
    task_id: String,
    task_type: String,
    reference_task_name: String,
    status: String,
    sub_workflow_id: Option<String>,
}

impl Open {
    fn ends_by_itself(&self) -> bool {
        OPERATORS.contains(&&*self.task_type)
    }
}

impl Mocks {
    /// Whether a task waits for a result that is not there.
    fn lack(&self, task: &Open) -> bool {
        let results = self.task_ref_to_mock_output.as_ref();
        let result = results.and_then(|results| results.get(&task.reference_task_name));
        !task.ends_by_itself() && result.is_none_or(VecDeque::is_empty)
    }

    fn take(&mut self, task: &Open) -> Option<Mock> {
        let results = self.task_ref_to_mock_output.as_mut()?;
        results.get_mut(&task.reference_task_name)?.pop_front()
    }
}

/// The tasks that have not ended; `None` when the workflow has.
async fn open_tasks(face: &Face, key: Key) -> Answered<Option<Vec<Open>>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Run {
        status: String,
        tasks: Vec<Open>,
    }
    let run: Option<Run> = face.find_as(WorkflowQuery::Workflow { key, tasks: true }).await?;
    let running = run.filter(|run| !is_workflow_at_rest(&run.status));
    Ok(running.map(|mut run| {
        run.tasks.retain(|task| !is_task_at_rest(&task.status));
        run.tasks
    }))
}

/// Gives one task its result, or the workflow that runs for it; whether anything was done.
async fn step(
    face: &Face,
    workflow: Key,
    mocks: &mut Mocks,
    task: &Open,
    looks: &mut u32,
    depth: u32,
) -> Answered<bool> {
    if task.task_type == SUB_WORKFLOW {
        let child = task.sub_workflow_id.as_deref().and_then(key_of);
        let below = mocks.sub_workflow_test_request.as_mut();
        let below = below.and_then(|below| below.get_mut(&task.reference_task_name));
        if let (Some(child), Some(below)) = (child, below) {
            feed(face, child, below, looks, depth + 1).await?;
        }
        return Ok(false);
    }
    if task.ends_by_itself() {
        return Ok(false);
    }
    let (Some(key), Some(mock)) = (key_of(&task.task_id), mocks.take(task)) else {
        return Ok(false);
    };
    let output = object_text(mock.output.as_deref())?;
    let status = mock.status.as_deref().unwrap_or("COMPLETED");
    let command = named_update(workflow, TaskReference::Key(key), status, &output, "")?;
    face.update(command).await?;
    Ok(true)
}
