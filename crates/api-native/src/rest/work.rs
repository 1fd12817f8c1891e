//! Work: jobs taken, and what their workers say about them.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::post;
use windlass_gateway::request::{Answer, Wanted};
use windlass_gateway::{Gateway, PollRequest};
use windlass_record::command::{
    AppendLog, Command, CompleteJob, ExtendLease, FailJob, FailureKind, Lease, ReleaseJob,
    ReportProgress, ThrowError,
};

use super::MISMATCH;
use super::extract::{Body, KeyPath, Shown};
use super::input::{
    Activation, Completion, Extension, JobError, JobFailure, LogLines, NewProgress, PutBack,
    narrow, shared, text, writes,
};
use super::operation::{At, Operation};
use super::output::{Activated, ActiveJob, Held};
use super::problem::Answered;
use super::schema::{Key, Name, Whole};
use crate::activation;
use crate::limit::{LEASE_MS_DEFAULT, POLL_BYTES_MAX};

/// The operations of this file.
pub(super) fn operations() -> Vec<Operation> {
    let at = |path, id| At { method: Method::POST, path, id, tag: "work" };
    let done = |at, summary, handler| {
        Operation::new(at, summary, handler)
            .path::<Key>("key", "The job.")
            .done("It counts, and is durable.")
            .problems(&[404, 409])
    };
    vec![
        Operation::new(
            at("/jobs/activate", "activateJobs"),
            "Takes jobs, waiting for the first.",
            post(activate),
        )
        .body::<Activation>(true)
        .answer::<Activated>(200, "The jobs, none when the wait was over.")
        .problems(&[429]),
        done(at("/jobs/{key}/complete", "completeJob"), "Completes a job.", post(complete))
            .body::<Completion>(false)
            .problems(&[412]),
        done(at("/jobs/{key}/fail", "failJob"), "Fails an attempt.", post(fail))
            .body::<JobFailure>(false),
        done(
            at("/jobs/{key}/error", "throwError"),
            "Throws a business error, which is not retried.",
            post(error),
        )
        .body::<JobError>(true),
        done(at("/jobs/{key}/release", "releaseJob"), "Puts a job back.", post(release))
            .body::<PutBack>(false),
        held(at("/jobs/{key}/extend", "extendLease"), "Moves the end of a lease.", post(extend))
            .body::<Extension>(false),
        held(at("/jobs/{key}/progress", "reportProgress"), "Reports progress.", post(progress))
            .body::<NewProgress>(false)
            .problems(&[412]),
        held(at("/jobs/{key}/log", "appendLog"), "Adds log lines.", post(append_log))
            .body::<LogLines>(true),
    ]
}

fn held(at: At, summary: &'static str, handler: axum::routing::MethodRouter<Gateway>) -> Operation {
    Operation::new(at, summary, handler)
        .path::<Key>("key", "The job.")
        .answer::<Held>(200, "The worker still holds the job.")
        .problems(&[404, 409])
}

async fn activate(
    State(gateway): State<Gateway>,
    Body(asked): Body<Activation>,
) -> Answered<Shown<Activated>> {
    let names = |given: Vec<Name>| given.into_iter().map(|Name(name)| name.into()).collect();
    let (tenants, queues) = (names(asked.tenants.unwrap_or_default()), names(asked.queues.0));
    let tenant = text("tenant", asked.tenant)?;
    let wanted = Wanted {
        queues: activation::queues(gateway.limits(), tenant, tenants, queues)?,
        worker: asked.worker.map(|worker| worker.0).unwrap_or_default().into(),
        lease_ms: asked.lease_ms.map_or(LEASE_MS_DEFAULT, |lease| lease.0),
        with_token: !asked.without_token.unwrap_or(false),
    };
    let jobs = gateway
        .poll(PollRequest {
            wanted,
            jobs_max: asked.jobs_max.map_or(1, |max| narrow(max.0)),
            bytes_max: POLL_BYTES_MAX,
            wait_ms: asked.wait_ms.map_or(0, |wait| wait.0),
        })
        .await?;
    Ok(Shown(Activated { jobs: jobs.iter().map(ActiveJob::from).collect() }))
}

/// The number of the activation that a request names.
fn token(activation: Option<Whole<u32>>) -> Option<u32> {
    activation.map(|number| number.0)
}

async fn done(gateway: Gateway, command: Command) -> Answered<StatusCode> {
    gateway.result(command).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn complete(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Body(asked): Body<Completion>,
) -> Answered<StatusCode> {
    let lease = Lease { key, activation: token(asked.activation) };
    let (result, documents) = (shared(asked.result), writes(asked.documents)?);
    done(gateway, Command::CompleteJob(CompleteJob { lease, result, documents })).await
}

async fn fail(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Body(asked): Body<JobFailure>,
) -> Answered<StatusCode> {
    let command = Command::FailJob(FailJob {
        lease: Lease { key, activation: token(asked.activation) },
        message: asked.message.unwrap_or_default().into(),
        retries: asked.retries.map(|retries| retries.0),
        backoff_ms: asked.backoff_ms.map(|backoff| backoff.0),
        progressed: asked.progressed.unwrap_or(false),
        variables: shared(asked.variables),
        kind: FailureKind::of(asked.permanent.unwrap_or(false)),
    });
    done(gateway, command).await
}

async fn error(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Body(asked): Body<JobError>,
) -> Answered<StatusCode> {
    let command = Command::ThrowError(ThrowError {
        lease: Lease { key, activation: token(asked.activation) },
        code: asked.code.0.into(),
        message: asked.message.unwrap_or_default().into(),
        variables: Default::default(),
    });
    done(gateway, command).await
}

async fn release(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Body(asked): Body<PutBack>,
) -> Answered<StatusCode> {
    let lease = Lease { key, activation: token(asked.activation) };
    let delay_ms = asked.delay_ms.map_or(0, |delay| delay.0);
    done(gateway, Command::ReleaseJob(ReleaseJob { lease, delay_ms })).await
}

async fn still_held(gateway: Gateway, command: Command) -> Answered<Shown<Held>> {
    let Answer::Held { deadline_ms, cancel_asked } = gateway.result(command).await? else {
        unreachable!("{MISMATCH}")
    };
    Ok(Shown(Held { deadline_ms, cancel_asked }))
}

async fn extend(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Body(asked): Body<Extension>,
) -> Answered<Shown<Held>> {
    let lease = Lease { key, activation: token(asked.activation) };
    let lease_ms = asked.lease_ms.map_or(LEASE_MS_DEFAULT, |lease| lease.0);
    still_held(gateway, Command::ExtendLease(ExtendLease { lease, lease_ms })).await
}

async fn progress(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Body(asked): Body<NewProgress>,
) -> Answered<Shown<Held>> {
    let command = Command::ReportProgress(ReportProgress {
        lease: Lease { key, activation: token(asked.activation) },
        percent: u8::try_from(asked.percent.map_or(0, |percent| percent.0)).unwrap_or(u8::MAX),
        note: asked.note.unwrap_or_default().into(),
        documents: writes(asked.documents)?,
    });
    still_held(gateway, command).await
}

async fn append_log(
    State(gateway): State<Gateway>,
    KeyPath(key): KeyPath,
    Body(asked): Body<LogLines>,
) -> Answered<Shown<Held>> {
    let lease = Lease { key, activation: token(asked.activation) };
    let lines = asked.lines.into_iter().map(String::into_boxed_str).collect();
    still_held(gateway, Command::AppendLog(AppendLog { lease, lines })).await
}
