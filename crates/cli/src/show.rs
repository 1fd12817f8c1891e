//! What the API answers, as JSON for programs and as text for people.
//!
//! Keys are numbers of 64 bits; payloads stand in the JSON as what they are when they are JSON, as
//! text when they are text, else as `{"hex": "…"}`.

use serde_json::{Map, Value, json};
use windlass_worker::v1;

use crate::output::fields;
use crate::units::{moment, seen_from_now};

/// Text of a payload that people see in lists of fields.
const SHOWN_CHARS_MAX: usize = 2_000;

pub(crate) fn state(state: v1::JobState) -> &'static str {
    match state {
        v1::JobState::Unspecified => "unknown",
        v1::JobState::Scheduled => "scheduled",
        v1::JobState::Ready => "ready",
        v1::JobState::Active => "active",
        v1::JobState::Backoff => "backoff",
        v1::JobState::Incident => "incident",
        v1::JobState::Completed => "completed",
        v1::JobState::Failed => "failed",
        v1::JobState::Cancelled => "cancelled",
    }
}

pub(crate) fn is_at_rest(state: v1::JobState) -> bool {
    match state {
        v1::JobState::Completed | v1::JobState::Failed | v1::JobState::Cancelled => true,
        v1::JobState::Unspecified
        | v1::JobState::Scheduled
        | v1::JobState::Ready
        | v1::JobState::Active
        | v1::JobState::Backoff
        | v1::JobState::Incident => false,
    }
}

pub(crate) fn bytes_json(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    if let Ok(value) = serde_json::from_slice(bytes) {
        return value;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "hex": hex })
        }
    }
}

pub(crate) fn bytes_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().count() <= SHOWN_CHARS_MAX => text.to_owned(),
        Ok(text) => {
            let start: String = text.chars().take(SHOWN_CHARS_MAX).collect();
            format!("{start}… ({} bytes; --json shows all)", bytes.len())
        }
        Err(_) => format!("{} bytes that are not text", bytes.len()),
    }
}

pub(crate) fn job_json(job: &v1::JobView) -> Value {
    let mut value = json!({
        "key": job.key,
        "tenant": job.tenant,
        "queue": job.queue,
        "type": job.r#type,
        "group": job.group,
        "priority": job.priority,
        "state": state(job.state()),
        "outcome": job.outcome,
        "retries": job.retries,
        "attempt": job.attempt,
        "activation": job.activation,
        "created_ms": job.created_ms,
        "time_ms": job.time_ms,
        "worker": job.worker,
        "payload": bytes_json(&job.payload),
        "result": bytes_json(&job.result),
        "message": job.message,
        "percent": job.percent,
        "note": job.note,
        "log": job.log,
        "log_dropped": job.log_dropped,
        "cancel_asked": job.cancel_asked,
        "incident": job.incident.as_ref().map(incident_json),
    });
    if let (Some(options), Value::Object(value)) = (&job.options, &mut value) {
        value.insert("options".to_owned(), options_json(options));
    }
    value
}

pub(crate) fn incident_json(incident: &v1::IncidentView) -> Value {
    json!({
        "key": incident.key,
        "kind": incident.kind,
        "code": incident.code,
        "since_ms": incident.since_ms,
    })
}

/// Only what was set.
fn options_json(options: &v1::JobOptions) -> Value {
    let mut value = Map::new();
    let mut text = |name: &str, text: &str| {
        if !text.is_empty() {
            value.insert(name.to_owned(), json!(text));
        }
    };
    text("unique_key", &options.unique_key);
    text("request_id", &options.request_id);
    text("concurrency_key", &options.concurrency_key);
    text("rate_key", &options.rate_key);
    if !options.headers.is_empty() {
        value.insert("headers".to_owned(), bytes_json(&options.headers));
    }
    let deadlines =
        [("waiting", options.waiting), ("attempt", options.attempt), ("total", options.total)];
    for (name, deadline) in deadlines {
        if let Some(deadline) = deadline {
            value.insert(format!("{name}_deadline_ms"), json!(deadline.after_ms));
        }
    }
    Value::Object(value)
}

pub(crate) fn job_text(job: &v1::JobView) -> String {
    let when = match job.state() {
        v1::JobState::Scheduled | v1::JobState::Backoff => "due",
        v1::JobState::Ready => "ready since",
        v1::JobState::Active => "lease ends",
        v1::JobState::Unspecified | v1::JobState::Incident => "since",
        v1::JobState::Completed | v1::JobState::Failed | v1::JobState::Cancelled => "ended",
    };
    let mut state = state(job.state()).to_owned();
    if !job.outcome.is_empty() && job.outcome != state {
        state = format!("{state} ({})", job.outcome);
    }
    if job.cancel_asked {
        state.push_str(", cancel asked");
    }
    let incident = job.incident.as_ref().map(|incident| {
        let code =
            if incident.code.is_empty() { String::new() } else { format!(" {}", incident.code) };
        format!("{}{code} since {}", incident.kind, seen_from_now(incident.since_ms))
    });
    let progress = match (job.percent, job.note.as_str()) {
        (0, "") => String::new(),
        (percent, note) => format!("{percent} % {note}"),
    };
    let mut log = job.log.join("\n");
    if job.log_dropped > 0 {
        log.push_str(&format!("\n({} lines were dropped)", job.log_dropped));
    }
    let time_ms = job.incident.as_ref().map_or(job.time_ms, |incident| incident.since_ms);
    fields(&[
        ("key", job.key.to_string()),
        ("state", state),
        (when, moment(time_ms)),
        ("queue", job.queue.clone()),
        ("type", if job.r#type == job.queue { String::new() } else { job.r#type.clone() }),
        ("group", job.group.clone()),
        ("priority", if job.priority == 0 { String::new() } else { job.priority.to_string() }),
        ("attempt", job.attempt.to_string()),
        ("retries left", job.retries.to_string()),
        ("worker", job.worker.clone()),
        ("created", moment(job.created_ms)),
        ("incident", incident.unwrap_or_default()),
        ("message", job.message.clone()),
        ("progress", progress),
        ("payload", bytes_text(&job.payload)),
        ("result", bytes_text(&job.result)),
        ("log", log),
    ])
}

pub(crate) fn queue_json(queue: &v1::QueueView) -> Value {
    let settings = queue.settings.unwrap_or_default();
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
            "scheme": [settings.scheme_high, settings.scheme_low],
            "creation_order": settings.creation_order,
            "retries_first": settings.retries_first,
            "aging_ms": settings.aging_ms,
            "one_type": settings.one_type,
            "key_active_max": settings.key_active_max,
            "key_rate": settings.key_rate.map(|rate| {
                json!({ "max": rate.max, "window_ms": rate.window_ms })
            }),
            "finished_max": settings.finished_max,
            "finished_ms": settings.finished_ms,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_what_they_are() {
        assert_eq!(bytes_json(b""), Value::Null);
        assert_eq!(bytes_json(b"{\"a\":1}"), json!({ "a": 1 }));
        assert_eq!(bytes_json(b"plain words"), json!("plain words"));
        assert_eq!(bytes_json(&[0xff, 0x00]), json!({ "hex": "ff00" }));
    }
}
