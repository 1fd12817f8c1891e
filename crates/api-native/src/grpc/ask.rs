//! Messages to commands.

use std::sync::Arc;

use bytes::Bytes;
use windlass_gateway::request::{JobFilter, Wanted};
use windlass_record::bound::Bound;
use windlass_record::command::{
    AppendLog, Command, CompleteJob, ConfigureLimit, ConfigureQueue, CreateJob, DocumentWrite,
    ExtendLease, FailJob, FailureKind, JobOptions, Lease, PauseQueue, QueueName, ReleaseJob,
    ReportProgress, ThrowError,
};
use windlass_record::id::JobKey;
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings,
    PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};
use windlass_record::rejection::Rejection;

use crate::error::ApiError;
use crate::limit::{LEASE_MS_DEFAULT, RETRIES_DEFAULT, TENANT_DEFAULT, WAIT_MS_MAX, page};
use crate::{v1, words};

type Asked<T> = Result<T, ApiError>;

pub(super) fn tenant(tenant: String) -> Box<str> {
    if tenant.is_empty() { TENANT_DEFAULT.into() } else { tenant.into_boxed_str() }
}

/// The tenant that a request about one key names.
pub(super) fn some_tenant(tenant: String) -> Option<Box<str>> {
    (!tenant.is_empty()).then(|| tenant.into_boxed_str())
}

fn queue_name(tenant_name: String, queue: String) -> QueueName {
    QueueName { tenant: tenant(tenant_name).into(), queue: queue.into() }
}

/// The same, shared with the job before where that has it, too.
fn shared_name(tenant: String, queue: String, last: &mut Option<QueueName>) -> QueueName {
    let said = if tenant.is_empty() { TENANT_DEFAULT } else { &tenant };
    match last {
        Some(last) if *last.queue == *queue && *last.tenant == *said => last.clone(),
        _ => last.insert(queue_name(tenant, queue)).clone(),
    }
}

/// Bytes as the engine's shell shares them. Empty ones cost nothing.
pub(super) fn shared(bytes: &Bytes) -> Arc<[u8]> {
    if bytes.is_empty() { Arc::default() } else { Arc::from(&**bytes) }
}

/// A count that the engine holds as a signed number.
fn retries(given: u32) -> Asked<i32> {
    i32::try_from(given).map_err(|_| {
        Rejection::OutOfRange { field: "retries", must: "from 0 to 2147483647" }.into()
    })
}

pub(super) fn some_retries(given: Option<u32>) -> Asked<Option<i32>> {
    given.map(retries).transpose()
}

pub(super) fn create(job: v1::NewJob) -> Asked<Command> {
    create_in(job, &mut None)
}

/// A whole batch, each job for itself; those of one queue that follow each other share its name.
pub(super) fn create_all(jobs: Vec<v1::NewJob>) -> Vec<Asked<Command>> {
    let mut last = None;
    jobs.into_iter().map(|job| create_in(job, &mut last)).collect()
}

/// A job; `last` is the queue of the one before it, named with its tenant.
fn create_in(job: v1::NewJob, last: &mut Option<QueueName>) -> Asked<Command> {
    if job.due_ms > words::DUE_MS_MAX {
        return Err(Rejection::OutOfRange { field: "due_ms", must: words::DUE_MUST }.into());
    }
    Ok(Command::CreateJob(CreateJob {
        queue: shared_name(job.tenant, job.queue, last),
        job_type: job.r#type.into_boxed_str(),
        group: job.group.into_boxed_str(),
        priority: job.priority,
        retries: some_retries(job.retries)?.unwrap_or(RETRIES_DEFAULT),
        due: words::due(job.due_ms, job.delay_ms),
        payload: shared(&job.payload),
        options: job.options.map(|given| options(*given)).transpose()?.map(Box::new),
    }))
}

fn options(given: v1::JobOptions) -> Asked<JobOptions> {
    Ok(JobOptions {
        headers: Box::from(&*given.headers),
        unique_key: given.unique_key.into_boxed_str(),
        unique_hold_ms: given.unique_hold_ms,
        request_id: given.request_id.into_boxed_str(),
        concurrency_key: given.concurrency_key.into_boxed_str(),
        rate_key: given.rate_key.into_boxed_str(),
        retry: given.retry.map_or(RetryPolicy::default(), retry_policy),
        exhausted: match v1::Exhausted::try_from(given.exhausted) {
            Ok(v1::Exhausted::Incident) => Exhausted::Incident,
            Ok(v1::Exhausted::Fail) => Exhausted::Fail,
            Err(_) => return Err(ApiError::unknown_enum("exhausted", given.exhausted)),
        },
        deadlines: Deadlines {
            lease: deadline_outcome("lease_outcome", given.lease_outcome)?,
            waiting: given.waiting.map(deadline).transpose()?,
            attempt: given.attempt.map(deadline).transpose()?,
            total: given.total.map(deadline).transpose()?,
        },
        cancel: match v1::CancelPolicy::try_from(given.cancel) {
            Ok(v1::CancelPolicy::AtOnce) => CancelPolicy::AtOnce,
            Ok(v1::CancelPolicy::Cooperative) => CancelPolicy::Cooperative,
            Ok(v1::CancelPolicy::CooperativeCompletionCounts) => {
                CancelPolicy::CooperativeCompletionCounts
            }
            Err(_) => return Err(ApiError::unknown_enum("cancel", given.cancel)),
        },
        dialect: Dialect::Native,
    })
}

fn deadline(given: v1::Deadline) -> Asked<(u64, DeadlineOutcome)> {
    Ok((given.after_ms, deadline_outcome("outcome", given.outcome)?))
}

fn deadline_outcome(field: &'static str, number: i32) -> Asked<DeadlineOutcome> {
    match v1::DeadlineOutcome::try_from(number) {
        Ok(v1::DeadlineOutcome::Again) => Ok(DeadlineOutcome::Again),
        Ok(v1::DeadlineOutcome::FailAttempt) => Ok(DeadlineOutcome::FailAttempt),
        Ok(v1::DeadlineOutcome::End) => Ok(DeadlineOutcome::End),
        Ok(v1::DeadlineOutcome::Alert) => Ok(DeadlineOutcome::Alert),
        Err(_) => Err(ApiError::unknown_enum(field, number)),
    }
}

fn retry_policy(given: v1::RetryPolicy) -> RetryPolicy {
    use v1::retry_policy::Policy;
    match given.policy {
        None | Some(Policy::WorkerGiven(_)) => RetryPolicy::WorkerGiven,
        Some(Policy::Fixed(fixed)) => {
            RetryPolicy::Fixed { delay_ms: fixed.delay_ms, jitter_ms: fixed.jitter_ms }
        }
        Some(Policy::Linear(linear)) => RetryPolicy::Linear {
            delay_ms: linear.delay_ms,
            scale: linear.scale,
            cap_ms: linear.cap_ms,
            jitter_ms: linear.jitter_ms,
        },
        Some(Policy::Exponential(exponential)) => RetryPolicy::Exponential {
            delay_ms: exponential.delay_ms,
            base: exponential.base,
            cap_ms: exponential.cap_ms,
            jitter_ms: exponential.jitter_ms,
            from_start: exponential.from_start,
        },
        Some(Policy::Attempts(attempts)) => RetryPolicy::Attempts {
            complete_successive_max: attempts.complete_successive_max,
            complete_total_max: attempts.complete_total_max,
            partial_successive_max: attempts.partial_successive_max,
            partial_total_max: attempts.partial_total_max,
            delay_ms: attempts.delay_ms,
            base: attempts.base,
            cap_ms: attempts.cap_ms,
        },
    }
}

/// Names as messages have them.
pub(super) fn names(given: Vec<String>) -> Vec<Box<str>> {
    given.into_iter().map(String::into_boxed_str).collect()
}

pub(super) fn wanted(queues: Vec<QueueName>, worker: String, lease_ms: Option<u64>) -> Wanted {
    Wanted {
        queues,
        worker: worker.into(),
        lease_ms: lease_ms.unwrap_or(LEASE_MS_DEFAULT),
        with_token: true,
    }
}

/// How long a poll waits.
pub(super) fn wait(given: u64) -> Asked<u64> {
    if given > WAIT_MS_MAX {
        return Err(
            Rejection::TooLarge { bound: Bound::DurationMs, max: WAIT_MS_MAX, given }.into()
        );
    }
    Ok(given)
}

// ── a worker's word ─────────────────────────────────────────────────────────────────────────────

pub(super) fn lease(key: u64, activation: Option<u32>) -> Lease {
    Lease { key: JobKey::from_raw(key), activation }
}

pub(super) fn complete(lease: Lease, given: v1::Complete) -> Command {
    let documents = given.documents.into_iter().map(document_write).collect();
    Command::CompleteJob(CompleteJob { lease, result: shared(&given.result), documents })
}

pub(super) fn fail(lease: Lease, given: v1::Fail) -> Command {
    Command::FailJob(FailJob {
        lease,
        message: given.message.into(),
        retries: given.retries,
        backoff_ms: given.backoff_ms,
        progressed: given.progressed,
        variables: shared(&given.variables),
        kind: FailureKind::of(given.permanent),
    })
}

pub(super) fn throw(lease: Lease, given: v1::Throw) -> Command {
    let (code, message) = (given.code.into(), given.message.into());
    Command::ThrowError(ThrowError { lease, code, message, variables: Default::default() })
}

pub(super) fn release(lease: Lease, delay_ms: u64) -> Command {
    Command::ReleaseJob(ReleaseJob { lease, delay_ms })
}

pub(super) fn extend(lease: Lease, lease_ms: u64) -> Command {
    Command::ExtendLease(ExtendLease { lease, lease_ms })
}

pub(super) fn progress(lease: Lease, given: v1::Progress) -> Command {
    Command::ReportProgress(ReportProgress {
        lease,
        percent: u8::try_from(given.percent).unwrap_or(u8::MAX),
        note: given.note.into(),
        documents: given.documents.into_iter().map(document_write).collect(),
    })
}

pub(super) fn append_log(lease: Lease, lines: Vec<String>) -> Command {
    let lines = lines.into_iter().map(String::into_boxed_str).collect();
    Command::AppendLog(AppendLog { lease, lines })
}

/// One result of a stream.
pub(super) fn result(given: v1::Result) -> Asked<Command> {
    use v1::result::Outcome;
    let lease = lease(given.key, Some(given.activation));
    match given.outcome {
        Some(Outcome::Complete(given)) => Ok(complete(lease, given)),
        Some(Outcome::Fail(given)) => Ok(fail(lease, given)),
        Some(Outcome::Throw(given)) => Ok(throw(lease, given)),
        Some(Outcome::Release(given)) => Ok(release(lease, given.delay_ms)),
        Some(Outcome::Progress(given)) => Ok(progress(lease, given)),
        Some(Outcome::Log(given)) => Ok(append_log(lease, given.lines)),
        None => Err(ApiError::missing("outcome of a result")),
    }
}

// ── settings ────────────────────────────────────────────────────────────────────────────────────

pub(super) fn configure_queue(given: v1::ConfigureQueueRequest) -> Command {
    Command::ConfigureQueue(ConfigureQueue {
        queue: queue_name(given.tenant, given.queue),
        settings: given
            .settings
            .map_or(QueueSettings::DEFAULT, |settings| queue_settings(&settings)),
        seed_only: false,
    })
}

fn queue_settings(given: &v1::QueueSettings) -> QueueSettings {
    let priority = match (given.scheme_high, given.scheme_low) {
        (0, 0) => PriorityRule::Strict,
        (high, low) => PriorityRule::Scheme { high, low },
    };
    QueueSettings {
        priority,
        order: if given.creation_order { JobOrder::Creation } else { JobOrder::Ready },
        retries_first: given.retries_first,
        aging_ms: given.aging_ms,
        one_type: given.one_type,
        key_active_max: given.key_active_max,
        key_rate: given.key_rate.map(rate_window),
        finished_max: given.finished_max.unwrap_or(QueueSettings::DEFAULT.finished_max),
        finished_ms: given.finished_ms.unwrap_or(QueueSettings::DEFAULT.finished_ms),
    }
}

fn rate_window(given: v1::RateWindow) -> RateWindow {
    RateWindow { max: given.max, window_ms: given.window_ms }
}

pub(super) fn pause_queue(given: v1::PauseQueueRequest) -> Command {
    let queue = queue_name(given.tenant, given.queue);
    Command::PauseQueue(PauseQueue { queue, paused: given.paused })
}

pub(super) fn configure_limit(given: v1::ConfigureLimitRequest) -> Command {
    let settings =
        LimitSettings { active_max: given.active_max, rate: given.rate.map(rate_window) };
    Command::ConfigureLimit(ConfigureLimit {
        tenant: tenant(given.tenant),
        name: given.name.into(),
        settings,
    })
}

pub(super) fn document_write(given: v1::DocumentWrite) -> DocumentWrite {
    DocumentWrite {
        tenant: tenant(given.tenant),
        kind: given.kind.into(),
        id: given.id.into(),
        expected_version: given.expected_version,
        bytes: given.value.as_ref().map(shared),
    }
}

// ── questions ───────────────────────────────────────────────────────────────────────────────────

pub(super) fn job_filter(given: v1::ListJobsRequest) -> Asked<JobFilter> {
    let state = v1::JobState::try_from(given.state)
        .map_err(|_| ApiError::unknown_enum("state", given.state))?;
    Ok(JobFilter {
        tenant: Some(tenant(given.tenant)),
        queue: (!given.queue.is_empty()).then(|| given.queue.into()),
        group: (!given.group.is_empty()).then(|| given.group.into()),
        state: state_name(state),
        cursor: given.cursor,
        limit: page(given.limit)?,
    })
}

/// How the partition names a state.
fn state_name(state: v1::JobState) -> Option<&'static str> {
    match state {
        v1::JobState::Unspecified => None,
        v1::JobState::Scheduled => Some("scheduled"),
        v1::JobState::Ready => Some("ready"),
        v1::JobState::Active => Some("active"),
        v1::JobState::Backoff => Some("backoff"),
        v1::JobState::Incident => Some("incident"),
        v1::JobState::Completed => Some("completed"),
        v1::JobState::Failed => Some("failed"),
        v1::JobState::Cancelled => Some("cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_a_batch_share_the_name_of_their_queue() {
        let said = [("", "q"), ("default", "q"), ("other", "q"), ("other", "r"), ("other", "r")];
        let jobs = said.map(|(tenant, queue)| v1::NewJob {
            tenant: tenant.to_owned(),
            queue: queue.to_owned(),
            ..v1::NewJob::default()
        });
        let names: Vec<QueueName> = create_all(jobs.to_vec())
            .into_iter()
            .map(|command| {
                let Ok(Command::CreateJob(create)) = command else { panic!("no job is made") };
                create.queue
            })
            .collect();
        let texts: Vec<_> = names.iter().map(|name| (&*name.tenant, &*name.queue)).collect();
        assert_eq!(
            texts,
            [("default", "q"), ("default", "q"), ("other", "q"), ("other", "r"), ("other", "r")]
        );
        let shared: Vec<_> =
            names.windows(2).map(|two| Arc::ptr_eq(&two[0].queue, &two[1].queue)).collect();
        assert_eq!(shared, [true, false, false, true]);
    }
}
