//! Jobs: asked for, looked at, cancelled. They are jobs of the engine; `docs/airbyte.md` has their queues
//! and payloads.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_gateway::GatewayError;
use windlass_gateway::request::{Answer, JobView};
use windlass_record::command::{CancelJob, Command, CreateJob, Due, JobOptions, QueueName};
use windlass_record::event::Outcome;
use windlass_record::id::JobKey;
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, RetryPolicy,
};
use windlass_record::rejection::Rejection;
use windlass_record::schedule::JobTemplate;

use crate::answer::{Shown, duration, moment};
use crate::document::{ATTEMPT, Attempt, Connection, Definition, Status, Totals, attempt_id};
use crate::extract::{At, Object};
use crate::face::{Face, parsed};
use crate::failure::{Answered, Failure};
use crate::job_list::list;
use crate::limit::{ATTEMPTS_MAX, CANCEL_WAIT_MAX};
use crate::timing;
use crate::token::Caller;

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/jobs", get(list).post(create))
        .route("/jobs/{id}", get(show).delete(cancel))
}

/// What goes from sources to destinations.
pub(crate) const SYNC_QUEUE: &str = "airbyte.sync";
/// What a source has.
pub(crate) const DISCOVER_QUEUE: &str = "airbyte.discover";
/// Whether a source or destination can be reached. Asked for by the command line, with the native API.
pub(crate) const CHECK_QUEUE: &str = "airbyte.check";
/// What a connector wants to know.
pub(crate) const SPEC_QUEUE: &str = "airbyte.spec";

/// Of what somebody waits for.
const PRIORITY_ASKED: i32 = 10;
/// Of what a schedule made.
const PRIORITY_ON_TIME: i32 = 0;

/// What a job does to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JobType {
    Sync,
    Reset,
    Refresh,
    Clear,
}

impl JobType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            JobType::Sync => "sync",
            JobType::Reset => "reset",
            JobType::Refresh => "refresh",
            JobType::Clear => "clear",
        }
    }
}

/// How far a job is, in this wire's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobStatus {
    Pending,
    Running,
    Incomplete,
    Failed,
    Succeeded,
    Cancelled,
}

impl JobStatus {
    pub(crate) fn of(job: &JobView) -> JobStatus {
        match job.outcome {
            Some(Outcome::Completed | Outcome::CompletedWithErrors) => JobStatus::Succeeded,
            Some(Outcome::Failed | Outcome::FailedForGood | Outcome::TimedOut) => JobStatus::Failed,
            Some(Outcome::Cancelled | Outcome::Skipped) => JobStatus::Cancelled,
            None if job.state == "active" => JobStatus::Running,
            None if job.attempt > 1 || matches!(job.state, "backoff" | "incident") => {
                JobStatus::Incomplete
            }
            None => JobStatus::Pending,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            JobStatus::Pending => "pending",
            JobStatus::Running => "running",
            JobStatus::Incomplete => "incomplete",
            JobStatus::Failed => "failed",
            JobStatus::Succeeded => "succeeded",
            JobStatus::Cancelled => "cancelled",
        }
    }
}

/// What most jobs do not have: the rules of this dialect.
fn options(unique_key: &str, retry: RetryPolicy) -> Option<Box<JobOptions>> {
    Some(Box::new(JobOptions {
        unique_key: unique_key.into(),
        retry,
        exhausted: Exhausted::Fail,
        deadlines: Deadlines { lease: DeadlineOutcome::FailAttempt, ..Deadlines::default() },
        cancel: CancelPolicy::Cooperative,
        dialect: Dialect::Airbyte,
        ..JobOptions::default()
    }))
}

/// The job that a schedule of a connection makes.
pub(crate) fn on_time(connection: &Connection, retry: RetryPolicy) -> JobTemplate {
    let payload = json!({
        "jobType": JobType::Sync,
        "connectionId": connection.connection_id,
        "workspaceId": connection.workspace_id,
        "scheduled": true,
    });
    JobTemplate {
        queue: SYNC_QUEUE.into(),
        job_type: JobType::Sync.name().into(),
        group: connection.workspace_id.as_str().into(),
        priority: PRIORITY_ON_TIME,
        retries: 0,
        payload: payload.to_string().into_bytes().into(),
        options: options(&connection.connection_id, retry),
    }
}

/// A job of a queue that one thing has one of.
struct Wanted<'w> {
    queue: &'static str,
    job_type: &'static str,
    workspace: &'w str,
    unique_key: &'w str,
    payload: Value,
    retry: RetryPolicy,
}

impl Wanted<'_> {
    fn command(self, tenant: &str) -> Command {
        Command::CreateJob(CreateJob {
            queue: QueueName { tenant: tenant.into(), queue: self.queue.into() },
            job_type: self.job_type.into(),
            group: self.workspace.into(),
            priority: PRIORITY_ASKED,
            retries: 0,
            due: Due::Now,
            payload: self.payload.to_string().into_bytes().into(),
            options: options(self.unique_key, self.retry),
        })
    }
}

/// A job, or the one that has its place.
pub(crate) enum Made {
    New(JobKey),
    Held(JobKey),
}

impl Face {
    async fn make_job(&self, tenant: &str, wanted: Wanted<'_>) -> Answered<Made> {
        match self.gateway.command(wanted.command(tenant)).await {
            Ok(Answer::Created { key, .. }) => Ok(Made::New(key)),
            Ok(_) => Err(Failure::internal("a create was answered with another's answer")),
            Err(GatewayError::Rejected(Rejection::UniqueKeyHeld { holder })) => {
                Ok(Made::Held(holder))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A job in the queue of syncs, of this tenant.
    async fn sync_job(&self, tenant: &str, key: u64) -> Answered<Option<Box<JobView>>> {
        let found = self.job(JobKey::from_raw(key)).await?;
        Ok(found.filter(|job| &*job.tenant == tenant && &*job.queue == SYNC_QUEUE))
    }
}

/// Asks what a connector wants to know, unless somebody has. The answer for an earlier definition is another
/// job's, and is not kept.
pub(crate) async fn ask_for_spec(
    face: &Face,
    tenant: &str,
    definition: &Definition,
) -> Answered<()> {
    let id = &definition.definition_id;
    let wanted = Wanted {
        queue: SPEC_QUEUE,
        job_type: "",
        workspace: &definition.workspace_id,
        unique_key: &format!("{id}.{}", definition.updated_at),
        payload: json!({ "definitionId": id }),
        retry: RetryPolicy::default(),
    };
    face.make_job(tenant, wanted).await.map(|_| ())
}

/// Asks a source which streams it has; the job that does it.
pub(crate) async fn ask_for_streams(
    face: &Face,
    tenant: &str,
    workspace: &str,
    source: &str,
) -> Answered<Made> {
    let wanted = Wanted {
        queue: DISCOVER_QUEUE,
        job_type: "",
        workspace,
        unique_key: source,
        payload: json!({ "sourceId": source, "workspaceId": workspace }),
        retry: RetryPolicy::default(),
    };
    face.make_job(tenant, wanted).await
}

/// What is asked for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    connection_id: String,
    job_type: JobType,
    /// Of a clear or a reset: these only.
    streams: Option<Vec<StreamName>>,
}

/// Names a stream.
#[derive(Clone, Deserialize, Serialize)]
struct StreamName {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

async fn create(
    State(face): State<Face>,
    caller: Caller,
    Object(given): Object<Given>,
) -> Answered<Shown<Value>> {
    let tenant = &caller.tenant;
    if given.job_type == JobType::Refresh {
        return Err(Failure::unprocessable("Jobs of the type refresh cannot be asked for."));
    }
    if given.job_type == JobType::Sync && given.streams.is_some() {
        return Err(Failure::invalid("A sync is of all streams of its connection."));
    }
    let connection = face.find::<Connection>(tenant, &given.connection_id).await?.is;
    if connection.status != Status::Active {
        return Err(Failure::conflict("The connection is not active."));
    }
    let key = match start(&face, tenant, &connection, given.job_type, given.streams).await? {
        Made::New(key) => key,
        Made::Held(_) => {
            return Err(Failure::try_again_later("A job of this connection is running already."));
        }
    };
    // The job is made whatever becomes of this: then an interval counts from the run before.
    let _late = timing::ran(&face, tenant, &connection).await;
    let job = face.sync_job(tenant, key.raw()).await?;
    let job = job.ok_or_else(|| Failure::internal("a job that was just made is not there"))?;
    Ok(Shown(shown(&face, &job, face.now_ms().await?).await?))
}

async fn start(
    face: &Face,
    tenant: &str,
    connection: &Connection,
    job_type: JobType,
    streams: Option<Vec<StreamName>>,
) -> Answered<Made> {
    let mut payload = json!({
        "jobType": job_type,
        "connectionId": connection.connection_id,
        "workspaceId": connection.workspace_id,
    });
    if let (Some(streams), Some(fields)) = (streams, payload.as_object_mut()) {
        fields.insert("streams".to_owned(), json!(streams));
    }
    let wanted = Wanted {
        queue: SYNC_QUEUE,
        job_type: job_type.name(),
        workspace: &connection.workspace_id,
        unique_key: &connection.connection_id,
        payload,
        retry: face.settings.retry,
    };
    face.make_job(tenant, wanted).await
}

/// The key of an id. Any other text names no job.
fn key_of(id: &str) -> Answered<u64> {
    id.parse().map_err(|_| Failure::invalid(format!("A job's id is a number, not {id}.")))
}

async fn found(face: &Face, tenant: &str, id: &str) -> Answered<Box<JobView>> {
    let job = face.sync_job(tenant, key_of(id)?).await?;
    job.ok_or_else(|| Failure::not_found("job", id))
}

async fn show(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<Shown<Value>> {
    let job = found(&face, &caller.tenant, &id).await?;
    Ok(Shown(shown(&face, &job, face.now_ms().await?).await?))
}

/// Answers when the job has ended, or after a while with how far it is.
async fn cancel(
    State(face): State<Face>,
    caller: Caller,
    At(id): At<String>,
) -> Answered<Shown<Value>> {
    let job = found(&face, &caller.tenant, &id).await?;
    let ended = || Failure::conflict("The job is not running: it has ended.");
    if job.outcome.is_some() {
        return Err(ended());
    }
    match ask_to_end(&face, job.key, "cancelled by a client").await {
        Ok(()) => {}
        Err(GatewayError::Rejected(Rejection::JobNotFound { .. })) => return Err(ended()),
        Err(error) => return Err(error.into()),
    }
    face.job_ended(job.key, Instant::now() + CANCEL_WAIT_MAX).await?;
    let job = found(&face, &caller.tenant, &id).await?;
    Ok(Shown(shown(&face, &job, face.now_ms().await?).await?))
}

/// Asks a job to end.
pub(crate) async fn ask_to_end(face: &Face, key: JobKey, why: &str) -> Result<(), GatewayError> {
    let command =
        Command::CancelJob(CancelJob { key, force: false, reason: why.into(), tenant: None });
    face.gateway.result(command).await.map(|_| ())
}

/// A job as clients see it at this time.
pub(crate) async fn shown(face: &Face, job: &JobView, now_ms: u64) -> Answered<Value> {
    let status = JobStatus::of(job);
    let mut shown = json!({
        "jobId": job.key.raw(),
        "status": status.name(),
        "jobType": if job.job_type.is_empty() { JobType::Sync.name() } else { &*job.job_type },
        "startTime": moment(job.created_ms),
        "connectionId": &*job.unique_key,
    });
    let Some(fields) = shown.as_object_mut() else { return Ok(shown) };
    if job.outcome.is_some() {
        fields.insert("lastUpdatedAt".to_owned(), moment(job.time_ms).into());
    }
    if status != JobStatus::Pending {
        let until_ms = if job.outcome.is_some() { job.time_ms } else { now_ms };
        let took_ms = until_ms.saturating_sub(job.created_ms);
        fields.insert("duration".to_owned(), duration(took_ms).into());
    }
    if let Some(totals) = totals(face, job).await? {
        fields.insert("bytesSynced".to_owned(), totals.bytes_committed.into());
        fields.insert("rowsSynced".to_owned(), totals.records_committed.into());
    }
    Ok(shown)
}

/// What all attempts of a job committed; `None` if nobody counted.
async fn totals(face: &Face, job: &JobView) -> Answered<Option<Totals>> {
    let attempts = attempts(face, job).await?;
    if attempts.is_empty() {
        return of_result(face, job).await;
    }
    let sum = |count: fn(&Totals) -> u64| {
        attempts.iter().fold(0, |sum: u64, attempt| sum.saturating_add(count(&attempt.totals)))
    };
    Ok(Some(Totals {
        records_committed: sum(|totals| totals.records_committed),
        bytes_committed: sum(|totals| totals.bytes_committed),
    }))
}

/// What the runner said of each attempt.
pub(crate) async fn attempts(face: &Face, job: &JobView) -> Answered<Vec<Attempt>> {
    let first = job.attempt.saturating_sub(ATTEMPTS_MAX) + 1;
    let mut attempts = Vec::new();
    for attempt in first..=job.attempt {
        let id = attempt_id(&job.unique_key, job.key.raw(), attempt);
        if let Some((version, bytes)) = face.raw(&job.tenant, ATTEMPT, &id).await? {
            attempts.push(parsed::<Attempt>(version, &bytes, ATTEMPT, &id)?.is);
        }
    }
    Ok(attempts)
}

/// What the job's own summary says, for whoever has no attempts, or had.
async fn of_result(face: &Face, job: &JobView) -> Answered<Option<Totals>> {
    #[derive(Deserialize)]
    struct Summary {
        totals: Totals,
    }
    if job.outcome.is_none() {
        return Ok(None);
    }
    let Some(whole) = face.job(job.key).await? else { return Ok(None) };
    let summary: Option<Summary> = serde_json::from_slice(&whole.result).ok();
    Ok(summary.map(|summary| summary.totals))
}
