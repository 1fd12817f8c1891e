//! Views to messages.

use std::sync::Arc;

use bytes::Bytes;
use windlass_gateway::request::{HandedJob, JobView, LimitView, QueueView, WhyView};
use windlass_record::command::JobOptions;
use windlass_record::event::DeadlineKind;
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Exhausted, JobOrder, PriorityRule, QueueSettings, RateWindow,
    RetryPolicy,
};

use crate::v1;
use crate::words::{incident_kind, outcome};

/// Shared bytes without a copy.
fn bytes(shared: Arc<[u8]>) -> Bytes {
    if shared.is_empty() { Bytes::new() } else { Bytes::from_owner(shared) }
}

pub(super) fn job(job: HandedJob) -> v1::Job {
    v1::Job {
        key: job.key.raw(),
        activation: job.activation,
        queue: String::from(&*job.queue),
        r#type: String::from(&*job.job_type),
        group: String::from(&*job.group),
        priority: job.priority,
        retries: job.retries,
        attempt: job.attempt,
        created_ms: job.created_ms,
        deadline_ms: job.deadline_ms,
        payload: bytes(job.payload),
        headers: bytes(job.headers),
        // Whoever asks for jobs of one tenant knows it.
        tenant: String::new(),
    }
}

pub(super) fn state(name: &str) -> v1::JobState {
    match name {
        "scheduled" => v1::JobState::Scheduled,
        "ready" => v1::JobState::Ready,
        "active" => v1::JobState::Active,
        "backoff" => v1::JobState::Backoff,
        "incident" => v1::JobState::Incident,
        "completed" => v1::JobState::Completed,
        "failed" => v1::JobState::Failed,
        "cancelled" => v1::JobState::Cancelled,
        _ => v1::JobState::Unspecified,
    }
}

pub(super) fn job_view(view: JobView) -> v1::JobView {
    let mut shown = v1::JobView {
        key: view.key.raw(),
        tenant: String::from(&*view.tenant),
        queue: String::from(&*view.queue),
        r#type: String::from(&*view.job_type),
        group: String::from(&*view.group),
        priority: view.priority,
        state: state(view.state).into(),
        outcome: view.outcome.map(outcome).unwrap_or_default().to_owned(),
        retries: view.retries,
        attempt: view.attempt,
        activation: view.activation,
        created_ms: view.created_ms,
        time_ms: view.time_ms,
        worker: view.worker.map(|worker| String::from(&*worker)).unwrap_or_default(),
        payload: bytes(view.payload),
        result: bytes(view.result),
        message: view.message.into(),
        cancel_asked: view.cancel_asked,
        alerts: alerts(&view.alerts),
        ..v1::JobView::default()
    };
    if let Some(extra) = view.extra {
        let extra = *extra;
        shown.percent = u32::from(extra.percent);
        shown.note = extra.note.into();
        shown.log = extra.log.into_iter().map(String::from).collect();
        shown.log_dropped = extra.log_dropped;
        shown.incident = extra.incident.map(|incident| v1::IncidentView {
            key: incident.key.raw(),
            kind: incident_kind(incident.kind).to_owned(),
            code: incident.code.into(),
            since_ms: incident.since_ms,
        });
        shown.options = Some(Box::new(options(extra.options)));
    }
    shown
}

fn options(options: JobOptions) -> v1::JobOptions {
    let deadlines = options.deadlines;
    let exhausted = match options.exhausted {
        Exhausted::Incident => v1::Exhausted::Incident,
        Exhausted::Fail => v1::Exhausted::Fail,
    };
    let cancel = match options.cancel {
        CancelPolicy::AtOnce => v1::CancelPolicy::AtOnce,
        CancelPolicy::Cooperative => v1::CancelPolicy::Cooperative,
        CancelPolicy::CooperativeCompletionCounts => v1::CancelPolicy::CooperativeCompletionCounts,
    };
    v1::JobOptions {
        headers: Bytes::from(options.headers),
        unique_key: options.unique_key.into(),
        unique_hold_ms: options.unique_hold_ms,
        request_id: options.request_id.into(),
        concurrency_key: options.concurrency_key.into(),
        rate_key: options.rate_key.into(),
        retry: Some(v1::RetryPolicy { policy: Some(retry_policy(options.retry)) }),
        exhausted: exhausted.into(),
        lease_outcome: deadline_outcome(deadlines.lease).into(),
        waiting: deadlines.waiting.map(deadline),
        attempt: deadlines.attempt.map(deadline),
        total: deadlines.total.map(deadline),
        cancel: cancel.into(),
    }
}

fn deadline((after_ms, outcome): (u64, DeadlineOutcome)) -> v1::Deadline {
    v1::Deadline { after_ms, outcome: deadline_outcome(outcome).into() }
}

fn deadline_outcome(outcome: DeadlineOutcome) -> v1::DeadlineOutcome {
    match outcome {
        DeadlineOutcome::Again => v1::DeadlineOutcome::Again,
        DeadlineOutcome::FailAttempt => v1::DeadlineOutcome::FailAttempt,
        DeadlineOutcome::End => v1::DeadlineOutcome::End,
        DeadlineOutcome::Alert => v1::DeadlineOutcome::Alert,
    }
}

fn retry_policy(policy: RetryPolicy) -> v1::retry_policy::Policy {
    use v1::retry_policy::{Attempts, Exponential, Fixed, Linear, Policy, WorkerGiven};
    match policy {
        RetryPolicy::WorkerGiven => Policy::WorkerGiven(WorkerGiven {}),
        RetryPolicy::Fixed { delay_ms, jitter_ms } => Policy::Fixed(Fixed { delay_ms, jitter_ms }),
        RetryPolicy::Linear { delay_ms, scale, cap_ms, jitter_ms } => {
            Policy::Linear(Linear { delay_ms, scale, cap_ms, jitter_ms })
        }
        RetryPolicy::Exponential { delay_ms, base, cap_ms, jitter_ms, from_start } => {
            Policy::Exponential(Exponential { delay_ms, base, cap_ms, jitter_ms, from_start })
        }
        RetryPolicy::Attempts {
            complete_successive_max,
            complete_total_max,
            partial_successive_max,
            partial_total_max,
            delay_ms,
            base,
            cap_ms,
        } => Policy::Attempts(Attempts {
            complete_successive_max,
            complete_total_max,
            partial_successive_max,
            partial_total_max,
            delay_ms,
            base,
            cap_ms,
        }),
    }
}

pub(super) fn why_view(view: WhyView) -> v1::WhyJobResponse {
    let (limit_key, limit_max, limit_used) = match view.limit {
        Some((name, max, used)) => (String::from(&*name), max, used),
        None => (String::new(), 0, 0),
    };
    v1::WhyJobResponse {
        state: state(view.state).into(),
        reason: view.reason.to_owned(),
        text: view.text,
        position: view.position,
        lane_rank: view.lane_rank,
        until_ms: view.until_ms,
        worker: view.worker.map(|worker| String::from(&*worker)).unwrap_or_default(),
        waiting_workers: view.waiting_workers,
        limit_key,
        limit_max,
        limit_used,
        alerts: alerts(&view.alerts),
    }
}

fn alerts(passed: &[DeadlineKind]) -> Vec<String> {
    passed.iter().map(|deadline| deadline.name().to_owned()).collect()
}

pub(super) fn limit_view(view: &LimitView) -> v1::LimitView {
    v1::LimitView {
        tenant: String::from(&*view.tenant),
        name: String::from(&*view.name),
        active_max: view.settings.active_max,
        rate: view.settings.rate.map(rate_window),
        of_queue: view.of_queue,
        active: view.active,
        activated: view.activated,
    }
}

pub(super) fn queue_view(view: &QueueView) -> v1::QueueView {
    let [completed, failed, cancelled] = view.finished;
    v1::QueueView {
        tenant: String::from(&*view.tenant),
        name: String::from(&*view.name),
        paused: view.paused,
        settings: Some(queue_settings(&view.settings)),
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

fn queue_settings(settings: &QueueSettings) -> v1::QueueSettings {
    let (scheme_high, scheme_low) = match settings.priority {
        PriorityRule::Strict => (0, 0),
        PriorityRule::Scheme { high, low } => (high, low),
    };
    v1::QueueSettings {
        scheme_high,
        scheme_low,
        creation_order: settings.order == JobOrder::Creation,
        retries_first: settings.retries_first,
        aging_ms: settings.aging_ms,
        one_type: settings.one_type,
        key_active_max: settings.key_active_max,
        key_rate: settings.key_rate.map(rate_window),
        finished_max: Some(settings.finished_max),
        finished_ms: Some(settings.finished_ms),
    }
}

fn rate_window(rate: RateWindow) -> v1::RateWindow {
    v1::RateWindow { max: rate.max, window_ms: rate.window_ms }
}
