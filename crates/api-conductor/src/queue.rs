//! How much waits, and who asks for it: `/tasks/queue`.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Serialize;
use windlass_gateway::request::QueueView;
use windlass_record::workflow::{WORKFLOW_TENANT, task_queue};

use crate::answer::Shown;
use crate::extract::Params;
use crate::face::Face;
use crate::failure::Answered;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/tasks/queue/sizes", get(sizes))
        .route("/tasks/queue/size", get(size))
        .route("/tasks/queue/all", get(all))
        .route("/tasks/queue/all/verbose", get(all_verbose))
        .route("/tasks/queue/polldata", get(poll_data))
        .route("/tasks/queue/polldata/all", get(all_poll_data))
}

/// What waits, and what is at work.
#[derive(Clone, Copy, Default, Serialize)]
struct Depth {
    size: u32,
    uacked: u32,
}

/// Queues of tasks by their names on this wire.
async fn depths(face: &Face) -> Answered<BTreeMap<String, Depth>> {
    let prefix = task_queue("", "", "", "");
    let depth = |queue: QueueView| {
        let name = queue.name.strip_prefix(&*prefix)?.to_owned();
        let counts = queue.counts;
        let size = counts.ready + counts.scheduled + counts.backoff;
        Some((name, Depth { size, uacked: counts.active }))
    };
    let queues = face.gateway.queues(Some(WORKFLOW_TENANT.into())).await?;
    Ok(queues.into_iter().filter_map(depth).collect())
}

/// Without types there are none.
async fn sizes(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let depths = depths(&face).await?;
    // Several in one parameter count too.
    let types = params.all("taskType").flat_map(|list| list.split(','));
    let sizes: BTreeMap<&str, u32> = types
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| (name, depths.get(name).map_or(0, |depth| depth.size)))
        .collect();
    Ok(Shown(serde_json::to_value(sizes).expect("names and numbers")))
}

async fn size(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let task_type = params.required("taskType")?;
    let (domain, namespace) = (params.text("domain"), params.text("executionNamespace"));
    let name = task_queue(domain, task_type, namespace, params.text("isolationGroupId"));
    let prefix = task_queue("", "", "", "");
    let name = name.strip_prefix(&*prefix).unwrap_or_default();
    Ok(Shown(depths(&face).await?.get(name).map_or(0, |depth| depth.size)))
}

async fn all(State(face): State<Face>) -> Answered<impl IntoResponse> {
    let depths = depths(&face).await?.into_iter();
    let all: BTreeMap<String, u32> = depths.map(|(name, depth)| (name, depth.size)).collect();
    Ok(Shown(all))
}

async fn all_verbose(State(face): State<Face>) -> Answered<impl IntoResponse> {
    let depths = depths(&face).await?.into_iter();
    // There is one shard.
    let all: BTreeMap<String, BTreeMap<&str, Depth>> =
        depths.map(|(name, depth)| (name, BTreeMap::from([("a", depth)]))).collect();
    Ok(Shown(all))
}

async fn poll_data(State(face): State<Face>, params: Params) -> Answered<impl IntoResponse> {
    let task_type = params.required("taskType")?;
    Ok(Shown(face.pollers.of(Some(task_type))))
}

async fn all_poll_data(State(face): State<Face>) -> Answered<impl IntoResponse> {
    Ok(Shown(face.pollers.of(None)))
}
