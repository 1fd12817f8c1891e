//! Jobs handed out.
//!
//! All jobs of an answer stand in one body, so there are as many as one look into the queue may
//! hand out. They go back, ready at once, when the transport has not asked for the body: when the
//! client went while it waited.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body as Sent, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_gateway::request::HandedJob;
use windlass_gateway::{Gateway, PollRequest};

use crate::activate::wait_ms;
use crate::handing::Given;
use crate::limit::POLL_BYTES_MAX;
use crate::protocol::{ActivatedJob, TenantFilter, UserTaskProperties};
use crate::refusal::{Asked, invalid, no_jobs};
use crate::rest::Face;
use crate::rest::extract::{Body, Key};
use crate::rest::problem::Answered;
use crate::rest::shape::{object, out_of_range, required, required_text, some_text};
use crate::tenant;

pub(super) fn routes() -> Router<Face> {
    Router::new().route("/jobs/activation", post(activate))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Activation {
    r#type: Option<String>,
    worker: Option<String>,
    timeout: Option<i64>,
    max_jobs_to_activate: Option<i32>,
    fetch_variable: Option<Vec<String>>,
    request_timeout: Option<i64>,
    tenant_ids: Option<Vec<String>>,
    tenant_filter: Option<Filter>,
    with_lease: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Filter {
    Provided,
    Assigned,
}

impl From<Filter> for TenantFilter {
    fn from(filter: Filter) -> TenantFilter {
        match filter {
            Filter::Provided => TenantFilter::Provided,
            Filter::Assigned => TenantFilter::Assigned,
        }
    }
}

async fn activate(State(face): State<Face>, Body(asked): Body<Activation>) -> Answered<Response> {
    let gateway = face.gateway;
    let job_type = required_text("type", asked.r#type)?;
    let timeout = required("timeout", asked.timeout)?;
    if timeout < 1 {
        return Err(out_of_range("timeout", timeout, "greater than 0"));
    }
    let jobs_max = required("maxJobsToActivate", asked.max_jobs_to_activate)?;
    let Some(wanted_max) = u32::try_from(jobs_max).ok().filter(|max| *max > 0) else {
        return Err(out_of_range("maxJobsToActivate", jobs_max, "greater than 0"));
    };
    let filter = asked.tenant_filter.unwrap_or(Filter::Provided).into();
    let tenants = asked.tenant_ids.unwrap_or_default();
    let tenant = tenant::of_worker("ActivateJobs", &tenants, filter)?;
    let given = Given {
        job_type,
        worker: asked.worker.unwrap_or_default(),
        timeout,
        fetch: asked.fetch_variable.unwrap_or_default(),
        with_lease: asked.with_lease.unwrap_or(false),
    };
    let handing = given.handing(tenant).map_err(|why| invalid(Asked::ActivateJobs, why))?;
    let request = PollRequest {
        wanted: handing.wanted(),
        jobs_max: wanted_max.min(gateway.limits().bounds.activation_jobs_max),
        bytes_max: POLL_BYTES_MAX,
        wait_ms: wait_ms(asked.request_timeout.unwrap_or(0)),
    };
    let found = gateway.poll(request).await.map_err(no_jobs)?;
    let (mut jobs, mut handed) = (Vec::new(), Vec::new());
    for job in found {
        if let Some(shown) = handing.job(&gateway, &job) {
            jobs.push(Activated::new(shown, &job));
            handed.push(job);
        }
    }
    let body = serde_json::to_vec(&Jobs { jobs }).expect("answers are plain data");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_LENGTH, HeaderValue::from(body.len())),
    ];
    let sending = Sending { gateway, body: Some(body.into()), handed };
    Ok((headers, Sent::from_stream(sending)).into_response())
}

/// A body, and the jobs in it until the transport takes it.
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

#[derive(Serialize)]
struct Jobs {
    jobs: Vec<Activated>,
}

/// Who reads strictly wants all of these to be there.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Activated {
    r#type: String,
    process_definition_id: String,
    process_definition_version: i32,
    element_id: String,
    custom_headers: Box<RawValue>,
    worker: String,
    retries: i32,
    deadline: i64,
    variables: Box<RawValue>,
    tenant_id: String,
    physical_tenant_id: &'static str,
    job_key: Key,
    process_instance_key: Key,
    process_definition_key: Key,
    element_instance_key: Key,
    kind: &'static str,
    listener_event_type: &'static str,
    /// Of the listener of a user task.
    user_task: Option<UserTask>,
    tags: Vec<String>,
    /// The other wire has no place for it.
    root_process_instance_key: Option<Key>,
    business_id: Option<String>,
    priority: i32,
    job_lease_token: Option<String>,
}

/// The user task that a listener is asked about.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UserTask {
    /// Empty where nobody named one: this wire has it always.
    action: String,
    assignee: Option<String>,
    candidate_groups: Vec<String>,
    candidate_users: Vec<String>,
    changed_attributes: Vec<String>,
    due_date: Option<String>,
    follow_up_date: Option<String>,
    form_key: Option<Key>,
    priority: Option<i32>,
    user_task_key: Option<Key>,
}

impl From<UserTaskProperties> for UserTask {
    fn from(of: UserTaskProperties) -> UserTask {
        UserTask {
            action: of.action.unwrap_or_default(),
            assignee: of.assignee,
            candidate_groups: of.candidate_groups,
            candidate_users: of.candidate_users,
            changed_attributes: of.changed_attributes,
            due_date: of.due_date,
            follow_up_date: of.follow_up_date,
            form_key: of.form_key.map(Key),
            priority: of.priority,
            user_task_key: of.user_task_key.map(Key),
        }
    }
}

/// There is one, and this is its name where nothing else was said.
const PHYSICAL_TENANT: &str = "default";

impl Activated {
    fn new(job: ActivatedJob, handed: &HandedJob) -> Activated {
        let (kind, event) = (job.kind(), job.listener_event_type());
        Activated {
            r#type: job.r#type,
            process_definition_id: job.bpmn_process_id,
            process_definition_version: job.process_definition_version,
            element_id: job.element_id,
            custom_headers: object(job.custom_headers),
            worker: job.worker,
            retries: job.retries,
            deadline: job.deadline,
            variables: object(job.variables),
            tenant_id: job.tenant_id,
            physical_tenant_id: PHYSICAL_TENANT,
            job_key: Key(job.key),
            process_instance_key: Key(job.process_instance_key),
            process_definition_key: Key(job.process_definition_key),
            element_instance_key: Key(job.element_instance_key),
            kind: kind.as_str_name(),
            listener_event_type: event.as_str_name(),
            user_task: job.user_task.map(Into::into),
            tags: job.tags,
            root_process_instance_key: handed
                .flow
                .as_ref()
                .map(|facts| Key(facts.root.raw().cast_signed())),
            business_id: some_text(job.business_id),
            priority: job.priority,
            job_lease_token: job.lease_token,
        }
    }
}
