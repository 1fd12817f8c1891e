//! What the API answers, for programs: the same JSON as that of REST, field by field, so that a script
//! that reads one reads the other.
//!
//! Keys are text: a number of 64 bits is not safe in every reader of JSON. A payload stands there as what
//! it is when it is JSON, else as base64 in a field of its own.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use windlass_worker::v1::{self, retry_policy::Policy};

use crate::show::state;

pub(crate) fn key(key: u64) -> Value {
    json!(key.to_string())
}

/// `null` for a text that says nothing.
pub(crate) fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Bytes in the field `name`, or in `name_base64` when they are not JSON. The other one is null.
pub(crate) fn bytes(fields: &mut Value, name: &str, bytes: &[u8]) {
    let (value, base64) = match serde_json::from_slice::<Value>(bytes) {
        _ if bytes.is_empty() => (Value::Null, Value::Null),
        Ok(value) => (value, Value::Null),
        Err(_) => (Value::Null, json!(BASE64_STANDARD.encode(bytes))),
    };
    fields[name] = value;
    fields[format!("{name}_base64")] = base64;
}

pub(crate) fn job(job: &v1::JobView) -> Value {
    let mut value = json!({
        "key": key(job.key),
        "tenant": job.tenant,
        "queue": job.queue,
        "type": job.r#type,
        "group": job.group,
        "priority": job.priority,
        "state": state(job.state()),
        "outcome": some(&job.outcome),
        "retries": job.retries,
        "attempt": job.attempt,
        "activation": job.activation,
        "created_ms": job.created_ms,
        "time_ms": job.time_ms,
        "worker": some(&job.worker),
        "message": job.message,
        "percent": job.percent,
        "note": job.note,
        "log": job.log,
        "log_dropped": job.log_dropped,
        "cancel_asked": job.cancel_asked,
        "alerts": job.alerts,
        "incident": job.incident.as_ref().map(incident),
        "options": job.options.as_deref().filter(|options| !is_usual(options)).map(options),
    });
    bytes(&mut value, "payload", &job.payload);
    bytes(&mut value, "result", &job.result);
    value
}

pub(crate) fn incident(incident: &v1::IncidentView) -> Value {
    json!({
        "key": key(incident.key),
        "kind": incident.kind,
        "code": incident.code,
        "since_ms": incident.since_ms,
    })
}

/// Whether nothing was given at creation beyond the usual.
fn is_usual(options: &v1::JobOptions) -> bool {
    let usual = v1::JobOptions { retry: options.retry, ..v1::JobOptions::default() };
    *options == usual && matches!(policy(options), Policy::WorkerGiven(_))
}

fn policy(options: &v1::JobOptions) -> Policy {
    let worker_given = Policy::WorkerGiven(v1::retry_policy::WorkerGiven {});
    options.retry.and_then(|retry| retry.policy).unwrap_or(worker_given)
}

fn options(options: &v1::JobOptions) -> Value {
    let exhausted = match options.exhausted() {
        v1::Exhausted::Incident => "incident",
        v1::Exhausted::Fail => "fail",
    };
    let cancel = match options.cancel() {
        v1::CancelPolicy::AtOnce => "at-once",
        v1::CancelPolicy::Cooperative => "cooperative",
        v1::CancelPolicy::CooperativeCompletionCounts => "cooperative-completion-counts",
    };
    let deadline = |deadline: v1::Deadline| json!({ "after_ms": deadline.after_ms, "outcome": outcome(deadline.outcome()) });
    json!({
        "headers": serde_json::from_slice::<Value>(&options.headers).ok(),
        "unique_key": options.unique_key,
        "unique_hold_ms": options.unique_hold_ms,
        "request_id": options.request_id,
        "concurrency_key": options.concurrency_key,
        "rate_key": options.rate_key,
        "retry": retry(policy(options)),
        "exhausted": exhausted,
        "lease_outcome": outcome(options.lease_outcome()),
        "waiting": options.waiting.map(deadline),
        "attempt": options.attempt.map(deadline),
        "total": options.total.map(deadline),
        "cancel": cancel,
    })
}

fn outcome(outcome: v1::DeadlineOutcome) -> &'static str {
    match outcome {
        v1::DeadlineOutcome::Again => "again",
        v1::DeadlineOutcome::FailAttempt => "fail-attempt",
        v1::DeadlineOutcome::End => "end",
        v1::DeadlineOutcome::Alert => "alert",
    }
}

fn retry(policy: Policy) -> Value {
    match policy {
        Policy::WorkerGiven(_) => json!({ "kind": "worker-given" }),
        Policy::Fixed(fixed) => json!({
            "kind": "fixed", "delay_ms": fixed.delay_ms, "jitter_ms": fixed.jitter_ms,
        }),
        Policy::Linear(linear) => json!({
            "kind": "linear",
            "delay_ms": linear.delay_ms,
            "scale": linear.scale,
            "cap_ms": linear.cap_ms,
            "jitter_ms": linear.jitter_ms,
        }),
        Policy::Exponential(exponential) => json!({
            "kind": "exponential",
            "delay_ms": exponential.delay_ms,
            "base": exponential.base,
            "cap_ms": exponential.cap_ms,
            "jitter_ms": exponential.jitter_ms,
            "from_start": exponential.from_start,
        }),
        Policy::Attempts(attempts) => json!({
            "kind": "attempts",
            "complete_successive_max": attempts.complete_successive_max,
            "complete_total_max": attempts.complete_total_max,
            "partial_successive_max": attempts.partial_successive_max,
            "partial_total_max": attempts.partial_total_max,
            "delay_ms": attempts.delay_ms,
            "base": attempts.base,
            "cap_ms": attempts.cap_ms,
        }),
    }
}

pub(crate) fn why(why: &v1::WhyJobResponse) -> Value {
    let limit = some(&why.limit_key)
        .map(|name| json!({ "name": name, "max": why.limit_max, "used": why.limit_used }));
    json!({
        "state": state(why.state()),
        "reason": why.reason,
        "text": why.text,
        "position": why.position,
        "lane_rank": why.lane_rank,
        "until_ms": why.until_ms,
        "worker": some(&why.worker),
        "waiting_workers": why.waiting_workers,
        "limit": limit,
        "alerts": why.alerts,
    })
}

pub(crate) fn queue(queue: &v1::QueueView) -> Value {
    let settings = queue.settings.unwrap_or_default();
    let scheme = match (settings.scheme_high, settings.scheme_low) {
        (0, 0) => None,
        (high, low) => Some(json!({ "high": high, "low": low })),
    };
    json!({
        "tenant": queue.tenant,
        "name": queue.name,
        "paused": queue.paused,
        "scheduled": queue.scheduled,
        "ready": queue.ready,
        "active": queue.active,
        "backoff": queue.backoff,
        "incident": queue.incident,
        "groups": queue.groups,
        "waiting_workers": queue.waiting_workers,
        "completed": queue.completed,
        "failed": queue.failed,
        "cancelled": queue.cancelled,
        "settings": {
            "scheme": scheme,
            "order": if settings.creation_order { "creation" } else { "ready" },
            "retries_first": settings.retries_first,
            "aging_ms": settings.aging_ms,
            "one_type": settings.one_type,
            "key_active_max": settings.key_active_max,
            "key_rate": settings.key_rate.map(rate),
            "finished_max": settings.finished_max,
            "finished_ms": settings.finished_ms,
        },
    })
}

pub(crate) fn limit(limit: &v1::LimitView) -> Value {
    json!({
        "tenant": limit.tenant,
        "name": limit.name,
        "active_max": limit.active_max,
        "rate": limit.rate.map(rate),
        "of_queue": limit.of_queue,
        "active": limit.active,
        "activated": limit.activated,
    })
}

fn rate(rate: v1::RateWindow) -> Value {
    json!({ "max": rate.max, "window_ms": rate.window_ms })
}

/// An object without the fields that say nothing, for one line of a stream.
pub(crate) fn terse(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        let said = std::mem::take(fields).into_iter().filter(|(_, value)| !value.is_null());
        *fields = said.collect::<Map<_, _>>();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_what_they_are() {
        let shown = |given: &[u8]| {
            let mut value = json!({});
            bytes(&mut value, "payload", given);
            value
        };
        assert_eq!(shown(b""), json!({ "payload": null, "payload_base64": null }));
        assert_eq!(shown(b"{\"a\":1}"), json!({ "payload": { "a": 1 }, "payload_base64": null }));
        assert_eq!(shown(b"words"), json!({ "payload": null, "payload_base64": "d29yZHM=" }));
    }
}
