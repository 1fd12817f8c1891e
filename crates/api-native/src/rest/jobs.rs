//! Jobs: made, looked at, steered.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use windlass_gateway::Gateway;
use windlass_gateway::request::Answer;
use windlass_record::command::{CancelJob, Command, ResolveIncident, UpdateJob};
use windlass_record::rejection::Rejection;

use super::MISMATCH;
use super::extract::{Asked, Body, KeyPath, Shown};
use super::input::{
    Cancellation, Change, JobsQuery, NewJob, NewJobs, Resolution, StateName, TenantQuery, retries,
};
use super::operation::{At, Operation};
use super::output::{BatchItem, BatchResults, CancelAnswer, Created, JobDetail, JobPage, Why};
use super::problem::{Answered, Failure};
use super::schema::{Key, MaybeName, Object};
use crate::batch::give_each;
use crate::words::of_tenant;

/// The operations of this file.
pub(super) fn operations() -> Vec<Operation> {
    let at = |method, path, id| At { method, path, id, tag: "jobs" };
    let key = "The job.";
    vec![
        Operation::new(at(Method::POST, "/jobs", "createJob"), "Creates a job.", post(create))
            .body::<NewJob>(true)
            .answer::<Created>(201, "The new job.")
            .answer::<Created>(200, "The same request made this job before.")
            .problems(&[409, 429]),
        Operation::new(
            at(Method::POST, "/jobs/batch", "createJobs"),
            "Creates many jobs, each for itself.",
            post(create_many),
        )
        .body::<NewJobs>(true)
        .answer::<BatchResults>(200, "A result per job, in order."),
        Operation::new(at(Method::GET, "/jobs", "listJobs"), "Lists jobs.", get(list))
            .tenant()
            .query::<MaybeName>("queue", "In this queue.")
            .query::<MaybeName>("group", "In this group.")
            .query::<StateName>("state", "In this state; live jobs when absent.")
            .query::<u64>("cursor", "Where the last page ended.")
            .query::<PageLimit>("limit", "Jobs of a page; 100 when absent.")
            .answer::<JobPage>(200, "A page. It may be shorter than the limit and not the last."),
        Operation::new(at(Method::GET, "/jobs/{key}", "getJob"), "Shows a job.", get(show))
            .path::<Key>("key", key)
            .owner()
            .answer::<JobDetail>(200, "The job, live or recently finished.")
            .problems(&[404]),
        Operation::new(
            at(Method::GET, "/jobs/{key}/why", "whyJob"),
            "Says where a job is in its queue and why it is not running.",
            get(why),
        )
        .path::<Key>("key", key)
        .owner()
        .answer::<Why>(200, "Where and why.")
        .problems(&[404]),
        Operation::new(
            at(Method::PATCH, "/jobs/{key}", "updateJob"),
            "Changes retries, priority or the end of the lease.",
            patch(change),
        )
        .path::<Key>("key", key)
        .owner()
        .body::<Change>(false)
        .done("Changed.")
        .problems(&[404, 409]),
        Operation::new(
            at(Method::POST, "/jobs/{key}/cancel", "cancelJob"),
            "Cancels a job, at once or by asking its worker.",
            post(cancel),
        )
        .path::<Key>("key", key)
        .owner()
        .body::<Cancellation>(false)
        .answer::<CancelAnswer>(200, "It is cancelled, or its worker was asked.")
        .problems(&[404, 409]),
        Operation::new(
            at(Method::POST, "/incidents/{key}/resolve", "resolveIncident"),
            "Lets a job that waits for a person be tried again.",
            post(resolve),
        )
        .path::<Key>("key", "The incident, or its job.")
        .owner()
        .body::<Resolution>(false)
        .done("The job is ready.")
        .problems(&[404, 409]),
    ]
}

/// Items of a page.
pub(super) struct PageLimit;

impl super::schema::Schema for PageLimit {
    fn schema() -> serde_json::Value {
        serde_json::json!({
            "type": "integer",
            "minimum": 0,
            "maximum": crate::limit::PAGE_ITEMS_MAX,
        })
    }
}

async fn create(State(gateway): State<Gateway>, Body(job): Body<NewJob>) -> Answered<Response> {
    let Answer::Created { key, existing } = gateway.command(job.command()?).await? else {
        unreachable!("{MISMATCH}")
    };
    let status = if existing { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Shown(Created { key: Key(key.raw()), existing })).into_response())
}

async fn create_many(
    State(gateway): State<Gateway>,
    Body(NewJobs { jobs }): Body<NewJobs>,
) -> Answered<Shown<BatchResults>> {
    let commands = jobs.into_iter().map(|Object(job)| job.command());
    let refuse =
        |error: Failure| BatchItem { key: None, existing: false, problem: Some(error.problem()) };
    let answered = |answer| match answer {
        Ok(Answer::Created { key, existing }) => {
            BatchItem { key: Some(Key(key.raw())), existing, problem: None }
        }
        Ok(_) => unreachable!("{MISMATCH}"),
        Err(refused) => refuse(Failure::from(refused)),
    };
    let results = give_each(&gateway, commands, |error| refuse(error.into()), answered).await?;
    Ok(Shown(BatchResults { results }))
}

async fn list(
    State(gateway): State<Gateway>,
    Asked(query): Asked<JobsQuery>,
) -> Answered<Shown<JobPage>> {
    let (jobs, next_cursor) = gateway.jobs(query.filter()?).await?;
    Ok(Shown(JobPage { jobs: jobs.into_iter().map(JobDetail::from).collect(), next_cursor }))
}

async fn show(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<Shown<JobDetail>> {
    let tenant = query.named()?;
    let view = of_tenant(gateway.job(key).await?, tenant.as_deref(), |view| &view.tenant);
    let view = view.ok_or(Rejection::JobNotFound { key })?;
    Ok(Shown(JobDetail::from(*view)))
}

async fn why(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Asked(query): Asked<TenantQuery>,
) -> Answered<Shown<Why>> {
    let tenant = query.named()?;
    let view = of_tenant(gateway.why(key).await?, tenant.as_deref(), |view| &view.tenant);
    let view = view.ok_or(Rejection::JobNotFound { key })?;
    Ok(Shown(Why::from(*view)))
}

async fn change(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Asked(query): Asked<TenantQuery>,
    Body(change): Body<Change>,
) -> Answered<StatusCode> {
    let command = Command::UpdateJob(UpdateJob {
        key,
        activation: change.activation.map(|number| number.0),
        retries: retries(change.retries)?,
        priority: change.priority.map(|priority| priority.0),
        lease_ms: change.lease_ms.map(|lease| lease.0),
        tenant: query.named()?,
    });
    gateway.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn cancel(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Asked(query): Asked<TenantQuery>,
    Body(asked): Body<Cancellation>,
) -> Answered<Shown<CancelAnswer>> {
    let command = Command::CancelJob(CancelJob {
        key,
        force: asked.force.unwrap_or(false),
        reason: asked.reason.unwrap_or_default().into(),
        tenant: query.named()?,
    });
    let pending = gateway.result(command).await? == Answer::CancelPending;
    Ok(Shown(CancelAnswer { pending }))
}

async fn resolve(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Asked(query): Asked<TenantQuery>,
    Body(resolution): Body<Resolution>,
) -> Answered<StatusCode> {
    let (retries, tenant) = (retries(resolution.retries)?, query.named()?);
    gateway.command(Command::ResolveIncident(ResolveIncident { key, retries, tenant })).await?;
    Ok(StatusCode::NO_CONTENT)
}
