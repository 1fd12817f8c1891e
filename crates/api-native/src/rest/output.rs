//! What answers carry, and the views they are made of.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::value::RawValue;
use windlass_gateway::Gateway;
use windlass_gateway::request::{HandedJob, JobView, LimitView, QueueView, StatusView, WhyView};
use windlass_record::command::JobOptions;
use windlass_record::event::DeadlineKind;
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Exhausted, JobOrder, QueueSettings, RetryPolicy,
};

use super::input::{
    CancelName, ExhaustedName, OrderName, OutcomeName, RetryRule, Scheme, StateName, Window,
};
use super::problem::Problem;
use super::schema::{Key, Whole, object};
use crate::VERSION;
use crate::words::{incident_kind, outcome};

object! { out
    /// The new job, or the one that the same request made before.
    Created {
        /// Its key.
        key: Key,
        /// Whether the request was a repetition.
        existing: bool,
    }
}

object! { out
    /// What became of one job of a batch.
    BatchItem {
        /// The new job; null when it was refused.
        key: Option<Key>,
        /// Whether the request was a repetition.
        existing: bool,
        /// Why it was refused.
        problem: Option<Problem>,
    }
}

object! { out
    /// What became of a batch.
    BatchResults {
        /// One per job, in order.
        results: Vec<BatchItem>,
    }
}

object! { out
    /// Jobs for a worker.
    Activated {
        /// The jobs, none when the wait was over.
        jobs: Vec<ActiveJob>,
    }
}

object! { out
    /// A job as a worker gets it.
    ActiveJob {
        /// Its key.
        key: Key,
        /// With the key, the token of this activation.
        activation: u32,
        /// The wall of security.
        tenant: String,
        /// Its queue.
        queue: String,
        /// Its type.
        r#type: String,
        /// Its group.
        group: String,
        /// Its priority.
        priority: i32,
        /// Retries left.
        retries: i32,
        /// The attempt, from 1.
        attempt: u32,
        /// When it was created, in milliseconds since 1970.
        created_ms: u64,
        /// When the lease ends.
        deadline_ms: u64,
        /// The payload as it was given; null when there is none, or when it is not JSON.
        payload: Option<Box<RawValue>>,
        /// The payload when it is not JSON.
        payload_base64: Option<String>,
        /// Static metadata; null when there is none, or when it is not JSON.
        headers: Option<Box<RawValue>>,
    }
}

object! { out
    /// The worker still holds the job.
    Held {
        /// When its lease ends.
        deadline_ms: u64,
        /// Whether it should stop.
        cancel_asked: bool,
    }
}

object! { out
    /// What became of a cancel.
    CancelAnswer {
        /// The worker was asked to stop; the job ends when it has.
        pending: bool,
    }
}

object! { out
    /// A job.
    JobDetail {
        /// Its key.
        key: Key,
        /// The wall of security.
        tenant: String,
        /// Its queue.
        queue: String,
        /// Its type.
        r#type: String,
        /// Its group.
        group: String,
        /// Its priority.
        priority: i32,
        /// Its state.
        state: StateName,
        /// How it ended: completed, completed-with-errors, failed, failed-for-good, timed-out, cancelled, skipped.
        outcome: Option<&'static str>,
        /// Retries left.
        retries: i32,
        /// The attempt, from 1.
        attempt: u32,
        /// How often it was handed out.
        activation: u32,
        /// When it was created, in milliseconds since 1970.
        created_ms: u64,
        /// Scheduled, backoff: due. Ready: since. Active: end of the lease. At rest: when it ended.
        time_ms: u64,
        /// Who holds it.
        worker: Option<String>,
        /// The payload as it was given; null in lists, when there is none, or when it is not JSON.
        payload: Option<Box<RawValue>>,
        /// The payload when it is not JSON.
        payload_base64: Option<String>,
        /// The result as it was given; null in lists, when there is none, or when it is not JSON.
        result: Option<Box<RawValue>>,
        /// The result when it is not JSON.
        result_base64: Option<String>,
        /// The last error, or why it was cancelled.
        message: String,
        /// 0 to 100, of the running attempt.
        percent: u32,
        /// What the worker shows beside it.
        note: String,
        /// Log lines of the attempt.
        log: Vec<String>,
        /// Log lines that were dropped.
        log_dropped: u32,
        /// Whether its worker has been asked to stop.
        cancel_asked: bool,
        /// Deadlines with the outcome alert that have passed: lease, waiting, attempt, total. Those of an attempt end with it.
        alerts: Vec<&'static str>,
        /// The incident it waits in.
        incident: Option<IncidentDetail>,
        /// What was given at creation beyond the usual.
        options: Option<JobOptionsDetail>,
    }
}

object! { out
    /// A job that waits for a person.
    IncidentDetail {
        /// The incident's own key.
        key: Key,
        /// no-retries, error-not-caught, permanent or too-large.
        kind: &'static str,
        /// The error code, when the worker threw one.
        code: String,
        /// Since when.
        since_ms: u64,
    }
}

object! { out
    /// What was given at creation beyond the usual.
    JobOptionsDetail {
        /// Static metadata; null when there is none, or when it is not JSON.
        headers: Option<Box<RawValue>>,
        /// Its unique key.
        unique_key: String,
        /// How long the unique key stays held.
        unique_hold_ms: u64,
        /// The id of the request that made it.
        request_id: String,
        /// Its concurrency key.
        concurrency_key: String,
        /// Its rate key.
        rate_key: String,
        /// What follows a failure.
        retry: RetryRule,
        /// What happens when no retry is left.
        exhausted: ExhaustedName,
        /// What the end of a lease does.
        lease_outcome: OutcomeName,
        /// The deadline of standing ready.
        waiting: Option<DeadlineDetail>,
        /// The deadline of an attempt.
        attempt: Option<DeadlineDetail>,
        /// The deadline in all.
        total: Option<DeadlineDetail>,
        /// How a cancel treats it.
        cancel: CancelName,
    }
}

object! { out
    /// A deadline.
    DeadlineDetail {
        /// After this long.
        after_ms: u64,
        /// What it does.
        outcome: OutcomeName,
    }
}

object! { out
    /// A page of jobs.
    JobPage {
        /// Live jobs in no particular order, each once; jobs at rest newest first.
        jobs: Vec<JobDetail>,
        /// Pass as cursor to go on; 0 is the end.
        next_cursor: u64,
    }
}

object! { out
    /// Where a job is and why it is not running.
    Why {
        /// Its state.
        state: StateName,
        /// A stable name: next, waiting-turn, no-worker, paused, scheduled, backoff, active, incident, concurrency-full, rate-full, at-rest.
        reason: &'static str,
        /// One sentence for people.
        text: String,
        /// Jobs that would be handed out before it; null unless it stands in line.
        position: Option<u64>,
        /// Jobs before it in its lane.
        lane_rank: Option<u64>,
        /// When the reason ends by itself.
        until_ms: Option<u64>,
        /// Who holds it.
        worker: Option<String>,
        /// Polls and streams that wait on its queue.
        waiting_workers: u32,
        /// The limit key it is parked on.
        limit: Option<LimitDetail>,
        /// Deadlines with the outcome alert that have passed: lease, waiting, attempt, total.
        alerts: Vec<&'static str>,
    }
}

object! { out
    /// A limit key that lets nothing pass now.
    LimitDetail {
        /// Its name.
        name: String,
        /// How many it lets pass.
        max: u32,
        /// How many have passed.
        used: u32,
    }
}

object! { out
    /// A limit key, and how much of it is used.
    LimitKeyDetail {
        /// The wall of security.
        tenant: String,
        /// Its name, as jobs have it.
        name: String,
        /// Jobs of it that may be active at once; 0 lets none start, null any number.
        active_max: Option<u32>,
        /// Activations in a span of time; null is any number.
        rate: Option<Window>,
        /// It was not set for the key: it is what the key's queue says, and goes when no job uses it.
        of_queue: bool,
        /// Jobs of it that are active.
        active: u32,
        /// Activations within the window that ends now.
        activated: u32,
    }
}

object! { out
    /// A page of limit keys.
    LimitPage {
        /// In order of their names.
        limits: Vec<LimitKeyDetail>,
        /// Pass as after to go on; null is the end.
        next: Option<String>,
    }
}

object! { out
    /// The queues of a tenant.
    QueueList {
        /// In order of creation.
        queues: Vec<QueueDetail>,
    }
}

object! { out
    /// A queue.
    QueueDetail {
        /// The wall of security.
        tenant: String,
        /// Its name.
        name: String,
        /// Whether hand-out is stopped.
        paused: bool,
        /// Its settings.
        settings: QueueSettingsDetail,
        /// Jobs not before a time.
        scheduled: u32,
        /// Jobs that wait.
        ready: u32,
        /// Jobs in work.
        active: u32,
        /// Jobs that wait for their next attempt.
        backoff: u32,
        /// Jobs that wait for a person.
        incident: u32,
        /// Groups with live jobs, or remembered.
        groups: u32,
        /// Polls and streams that wait on it.
        waiting_workers: u32,
        /// Jobs completed since the partition came up.
        completed: u64,
        /// Jobs failed since then.
        failed: u64,
        /// Jobs cancelled since then.
        cancelled: u64,
    }
}

object! { out
    /// The settings of a queue.
    QueueSettingsDetail {
        /// The counting scheme; null is strict priority.
        scheme: Option<Scheme>,
        /// The order of jobs with equal priority.
        order: OrderName,
        /// Retries that are due go first in their group.
        retries_first: bool,
        /// A job that waited this long goes before higher priorities; 0 is off.
        aging_ms: u64,
        /// The queue takes only jobs whose type is its name.
        one_type: bool,
        /// Active jobs per concurrency key; 0 is no limit.
        key_active_max: u32,
        /// Activations per rate key.
        key_rate: Option<Window>,
        /// Finished jobs that are kept for look-ups.
        finished_max: u32,
        /// How long they are kept.
        finished_ms: u64,
    }
}

object! { out
    /// A document without its value.
    DocumentDetail {
        /// Which one.
        id: String,
        /// Its version.
        version: u64,
    }
}

object! { out
    /// A page of documents.
    DocumentPage {
        /// In order of their ids.
        documents: Vec<DocumentDetail>,
        /// Pass as after to go on; null is the end.
        next: Option<String>,
    }
}

object! { out
    /// The new version of a document.
    DocumentVersion {
        /// From 1.
        version: u64,
    }
}

object! { out
    /// The installation.
    Status {
        /// Of the server.
        version: &'static str,
        /// Which partition.
        partition: u32,
        /// Who appends.
        epoch: u32,
        /// The newest record.
        lsn: u64,
        /// The newest durable record.
        durable_lsn: u64,
        /// What the newest checkpoint covers.
        checkpoint_lsn: u64,
        /// What an acknowledgement means, in words.
        durability: String,
        /// When the last sync ended; 0 is none yet.
        last_sync_ms: u64,
        /// Jobs that are not finished.
        live_jobs: u32,
        /// Polls and streams that wait.
        waiting_requests: u32,
        /// How long the server has been up.
        uptime_ms: u64,
        /// serving or refusing-creates.
        health: &'static str,
        /// Why creates are refused.
        health_reason: Option<String>,
    }
}

// ── from views ──────────────────────────────────────────────────────────────────────────────────

/// Bytes as JSON, or as base64 when they are not JSON.
pub(crate) fn json(bytes: &[u8]) -> (Option<Box<RawValue>>, Option<String>) {
    if bytes.is_empty() {
        return (None, None);
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => (Some(value), None),
        Err(_) => (None, Some(BASE64_STANDARD.encode(bytes))),
    }
}

fn text(shared: &Arc<str>) -> String {
    String::from(&**shared)
}

impl From<&HandedJob> for ActiveJob {
    fn from(job: &HandedJob) -> ActiveJob {
        let (payload, payload_base64) = json(&job.payload);
        ActiveJob {
            key: Key(job.key.raw()),
            activation: job.activation,
            tenant: text(&job.tenant),
            queue: text(&job.queue),
            r#type: text(&job.job_type),
            group: text(&job.group),
            priority: job.priority,
            retries: job.retries,
            attempt: job.attempt,
            created_ms: job.created_ms,
            deadline_ms: job.deadline_ms,
            payload,
            payload_base64,
            headers: json(&job.headers).0,
        }
    }
}

fn state(name: &str) -> StateName {
    match name {
        "scheduled" => StateName::Scheduled,
        "ready" => StateName::Ready,
        "active" => StateName::Active,
        "backoff" => StateName::Backoff,
        "incident" => StateName::Incident,
        "completed" => StateName::Completed,
        "failed" => StateName::Failed,
        "cancelled" => StateName::Cancelled,
        _ => unreachable!("a job that is shown has one of eight states"),
    }
}

impl From<JobView> for JobDetail {
    fn from(view: JobView) -> JobDetail {
        let (payload, payload_base64) = json(&view.payload);
        let (result, result_base64) = json(&view.result);
        let extra = view.extra.map(|extra| *extra).unwrap_or_default();
        JobDetail {
            key: Key(view.key.raw()),
            tenant: text(&view.tenant),
            queue: text(&view.queue),
            r#type: text(&view.job_type),
            group: text(&view.group),
            priority: view.priority,
            state: state(view.state),
            outcome: view.outcome.map(outcome),
            retries: view.retries,
            attempt: view.attempt,
            activation: view.activation,
            created_ms: view.created_ms,
            time_ms: view.time_ms,
            worker: view.worker.as_ref().map(text),
            payload,
            payload_base64,
            result,
            result_base64,
            message: view.message.into(),
            percent: extra.percent.into(),
            note: extra.note.into(),
            log: extra.log.into_iter().map(String::from).collect(),
            log_dropped: extra.log_dropped,
            cancel_asked: view.cancel_asked,
            alerts: alerts(&view.alerts),
            incident: extra.incident.map(|incident| IncidentDetail {
                key: Key(incident.key.raw()),
                kind: incident_kind(incident.kind),
                code: incident.code.into(),
                since_ms: incident.since_ms,
            }),
            options: (extra.options != JobOptions::default()).then(|| extra.options.into()),
        }
    }
}

impl From<JobOptions> for JobOptionsDetail {
    fn from(options: JobOptions) -> JobOptionsDetail {
        let deadlines = options.deadlines;
        JobOptionsDetail {
            headers: json(&options.headers).0,
            unique_key: options.unique_key.into(),
            unique_hold_ms: options.unique_hold_ms,
            request_id: options.request_id.into(),
            concurrency_key: options.concurrency_key.into(),
            rate_key: options.rate_key.into(),
            retry: options.retry.into(),
            exhausted: match options.exhausted {
                Exhausted::Incident => ExhaustedName::Incident,
                Exhausted::Fail => ExhaustedName::Fail,
            },
            lease_outcome: deadlines.lease.into(),
            waiting: deadlines.waiting.map(DeadlineDetail::from),
            attempt: deadlines.attempt.map(DeadlineDetail::from),
            total: deadlines.total.map(DeadlineDetail::from),
            cancel: match options.cancel {
                CancelPolicy::AtOnce => CancelName::AtOnce,
                CancelPolicy::Cooperative => CancelName::Cooperative,
                CancelPolicy::CooperativeCompletionCounts => {
                    CancelName::CooperativeCompletionCounts
                }
            },
        }
    }
}

impl From<(u64, DeadlineOutcome)> for DeadlineDetail {
    fn from((after_ms, outcome): (u64, DeadlineOutcome)) -> DeadlineDetail {
        DeadlineDetail { after_ms, outcome: outcome.into() }
    }
}

impl From<DeadlineOutcome> for OutcomeName {
    fn from(outcome: DeadlineOutcome) -> OutcomeName {
        match outcome {
            DeadlineOutcome::Again => OutcomeName::Again,
            DeadlineOutcome::FailAttempt => OutcomeName::FailAttempt,
            DeadlineOutcome::End => OutcomeName::End,
            DeadlineOutcome::Alert => OutcomeName::Alert,
        }
    }
}

impl From<RetryPolicy> for RetryRule {
    fn from(policy: RetryPolicy) -> RetryRule {
        match policy {
            RetryPolicy::WorkerGiven => RetryRule::WorkerGiven {},
            RetryPolicy::Fixed { delay_ms, jitter_ms } => {
                RetryRule::Fixed { delay_ms: Whole(delay_ms), jitter_ms: Whole(jitter_ms) }
            }
            RetryPolicy::Linear { delay_ms, scale, cap_ms, jitter_ms } => RetryRule::Linear {
                delay_ms: Whole(delay_ms),
                scale: Whole(scale),
                cap_ms: Whole(cap_ms),
                jitter_ms: Whole(jitter_ms),
            },
            RetryPolicy::Exponential { delay_ms, base, cap_ms, jitter_ms, from_start } => {
                RetryRule::Exponential {
                    delay_ms: Whole(delay_ms),
                    base: Whole(base),
                    cap_ms: Whole(cap_ms),
                    jitter_ms: Whole(jitter_ms),
                    from_start,
                }
            }
            RetryPolicy::Attempts {
                complete_successive_max,
                complete_total_max,
                partial_successive_max,
                partial_total_max,
                delay_ms,
                base,
                cap_ms,
            } => RetryRule::Attempts {
                complete_successive_max: Whole(complete_successive_max),
                complete_total_max: Whole(complete_total_max),
                partial_successive_max: Whole(partial_successive_max),
                partial_total_max: Whole(partial_total_max),
                delay_ms: Whole(delay_ms),
                base: Whole(base),
                cap_ms: Whole(cap_ms),
            },
        }
    }
}

impl From<WhyView> for Why {
    fn from(view: WhyView) -> Why {
        Why {
            state: state(view.state),
            reason: view.reason,
            text: view.text,
            position: view.position,
            lane_rank: view.lane_rank,
            until_ms: view.until_ms,
            worker: view.worker.as_ref().map(text),
            waiting_workers: view.waiting_workers,
            limit: view.limit.map(|(name, max, used)| LimitDetail { name: text(&name), max, used }),
            alerts: alerts(&view.alerts),
        }
    }
}

fn alerts(passed: &[DeadlineKind]) -> Vec<&'static str> {
    passed.iter().map(|deadline| deadline.name()).collect()
}

impl From<&LimitView> for LimitKeyDetail {
    fn from(view: &LimitView) -> LimitKeyDetail {
        LimitKeyDetail {
            tenant: text(&view.tenant),
            name: text(&view.name),
            active_max: view.settings.active_max,
            rate: view.settings.rate.map(Window::from),
            of_queue: view.of_queue,
            active: view.active,
            activated: view.activated,
        }
    }
}

impl From<&QueueView> for QueueDetail {
    fn from(view: &QueueView) -> QueueDetail {
        let [completed, failed, cancelled] = view.finished;
        QueueDetail {
            tenant: text(&view.tenant),
            name: text(&view.name),
            paused: view.paused,
            settings: QueueSettingsDetail::from(&view.settings),
            scheduled: view.counts.scheduled,
            ready: view.counts.ready,
            active: view.counts.active,
            backoff: view.counts.backoff,
            incident: view.counts.incident,
            groups: view.groups,
            waiting_workers: view.waiting_workers,
            completed,
            failed,
            cancelled,
        }
    }
}

impl From<&QueueSettings> for QueueSettingsDetail {
    fn from(settings: &QueueSettings) -> QueueSettingsDetail {
        QueueSettingsDetail {
            scheme: Scheme::of(settings.priority),
            order: match settings.order {
                JobOrder::Ready => OrderName::Ready,
                JobOrder::Creation => OrderName::Creation,
            },
            retries_first: settings.retries_first,
            aging_ms: settings.aging_ms,
            one_type: settings.one_type,
            key_active_max: settings.key_active_max,
            key_rate: settings.key_rate.map(Window::from),
            finished_max: settings.finished_max,
            finished_ms: settings.finished_ms,
        }
    }
}

impl Status {
    pub(crate) fn of(gateway: &Gateway, view: &StatusView) -> Status {
        Status {
            version: VERSION,
            partition: view.partition.into(),
            epoch: view.epoch,
            lsn: view.lsn,
            durable_lsn: view.durable_lsn,
            checkpoint_lsn: view.checkpoint_lsn,
            durability: gateway.durability().to_string(),
            last_sync_ms: view.last_sync_ms,
            live_jobs: view.live_jobs,
            waiting_requests: view.waiters,
            uptime_ms: u64::try_from(gateway.uptime().as_millis()).unwrap_or(u64::MAX),
            health: if view.refusing.is_some() { "refusing-creates" } else { "serving" },
            health_reason: view.refusing.as_ref().map(ToString::to_string),
        }
    }
}
