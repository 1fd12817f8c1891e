//! What the API answers, as text for people. [`crate::json`] is the same for programs.

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

/// Deadlines that have passed and only raised an alert.
pub(crate) fn alerts(passed: &[String]) -> String {
    let said: Vec<String> =
        passed.iter().map(|name| format!("its {name} deadline has passed")).collect();
    said.join("\n")
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
        ("alerts", alerts(&job.alerts)),
        ("progress", progress),
        ("payload", bytes_text(&job.payload)),
        ("result", bytes_text(&job.result)),
        ("log", log),
    ])
}
