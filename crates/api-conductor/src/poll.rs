//! Tasks handed out. A task on its way is JSON already.
//!
//! All tasks of an answer stand in one body. They go back, ready at once, when the transport has
//! not asked for the body: when the client went while it waited.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body as Sent, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_core::Stream;
use windlass_gateway::request::{HandedJob, Wanted};
use windlass_gateway::{Gateway, PollRequest};
use windlass_record::command::QueueName;
use windlass_record::workflow::{WORKFLOW_TENANT, task_queue};

use crate::extract::{At, Params};
use crate::face::Face;
use crate::failure::{Answered, Failure};
use crate::limit::{LEASE_MS_DEFAULT, POLL_BYTES_MAX, POLL_ONE_WAIT_MS, POLL_WAIT_MS_MAX};

/// Types of task that workers of ours do: what waits for them is not a task as this wire shows it.
const BUILT_IN: [&str; 2] = ["HTTP", "KAFKA_PUBLISH"];

pub(crate) fn routes() -> Router<Face> {
    Router::new().route("/tasks/poll/{a}", get(one)).route("/tasks/poll/batch/{a}", get(batch))
}

/// Who asks for what.
pub(crate) struct Asked<'a> {
    pub(crate) task_type: &'a str,
    pub(crate) domain: &'a str,
    pub(crate) worker: &'a str,
}

async fn one(
    State(face): State<Face>,
    At(task_type): At<String>,
    params: Params,
) -> Answered<Response> {
    let (worker, domain) = (params.text("workerid"), params.text("domain"));
    let asked = Asked { task_type: &task_type, domain, worker };
    next(&face, &asked, POLL_ONE_WAIT_MS).await
}

/// A task, or status 204.
pub(crate) async fn next(face: &Face, asked: &Asked<'_>, wait_ms: u64) -> Answered<Response> {
    let mut handed = poll(face, asked, 1, wait_ms).await?;
    match handed.pop() {
        Some(job) => {
            let body = job.payload.to_vec();
            Ok(sending(&face.gateway, body, vec![job]))
        }
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

async fn batch(
    State(face): State<Face>,
    At(task_type): At<String>,
    params: Params,
) -> Answered<Response> {
    let (worker, domain) = (params.text("workerid"), params.text("domain"));
    let count = params.number("count")?.unwrap_or(1);
    let wait_ms = params.number("timeout")?.unwrap_or(100);
    if wait_ms > POLL_WAIT_MS_MAX {
        return Err(Failure::invalid("Long Poll Timeout value cannot be more than 5 seconds"));
    }
    let asked = Asked { task_type: &task_type, domain, worker };
    let most = u32::try_from(count.max(0)).unwrap_or(u32::MAX);
    let wait_ms = u64::try_from(wait_ms).unwrap_or(0);
    let handed = poll(&face, &asked, most, wait_ms).await?;
    let size = handed.iter().map(|job| job.payload.len() + 1).sum::<usize>() + 1;
    let mut body = Vec::with_capacity(size);
    body.push(b'[');
    for (number, job) in handed.iter().enumerate() {
        if number > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&job.payload);
    }
    body.push(b']');
    Ok(sending(&face.gateway, body, handed))
}

/// Waits until there is one, and takes as many as there are then.
async fn poll(face: &Face, asked: &Asked<'_>, most: u32, wait_ms: u64) -> Answered<Vec<HandedJob>> {
    let Asked { task_type, domain, worker } = *asked;
    face.pollers.polled(task_type, domain, worker);
    if most == 0 || BUILT_IN.contains(&task_type) {
        return Ok(Vec::new());
    }
    let queue = task_queue(domain, task_type, "", "");
    let request = PollRequest {
        wanted: Wanted {
            queues: vec![QueueName { tenant: WORKFLOW_TENANT.into(), queue: queue.into() }],
            worker: worker.into(),
            lease_ms: LEASE_MS_DEFAULT,
            with_token: false,
        },
        jobs_max: most.min(face.gateway.limits().bounds.activation_jobs_max),
        bytes_max: POLL_BYTES_MAX,
        wait_ms,
    };
    Ok(face.gateway.poll(request).await?)
}

fn sending(gateway: &Gateway, body: Vec<u8>, handed: Vec<HandedJob>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_LENGTH, HeaderValue::from(body.len())),
    ];
    let sending = Sending { gateway: gateway.clone(), body: Some(body.into()), handed };
    (headers, Sent::from_stream(sending)).into_response()
}

/// A body, and the tasks in it until the transport takes it.
struct Sending {
    gateway: Gateway,
    body: Option<Bytes>,
    handed: Vec<HandedJob>,
}

impl Stream for Sending {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.handed.clear();
        Poll::Ready(self.body.take().map(Ok))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.gateway.give_back(&self.handed);
    }
}
