//! Where a job is and why it is not running, in words. The engine knows the reason; the sentence is
//! made here and nowhere else.

use std::sync::Arc;

use windlass_engine::lifecycle::JobState;
use windlass_engine::why::{Place, Pollers, Reason};
use windlass_record::event::{IncidentKind, Outcome};
use windlass_record::id::JobKey;

use crate::core::Core;
use crate::request::WhyView;

/// A queue that was asked this recently has workers, even if none waits at this moment.
const ASKED_LATELY_MS: u64 = 60_000;

impl Core {
    pub(crate) fn why_view(&self, key: JobKey) -> Option<Box<WhyView>> {
        let state = self.engine.state();
        let Some(slot) = state.find(key) else { return self.why_at_rest(key) };
        let queue = state.queue_of(slot);
        let lately_ms = self.now_ms().saturating_sub(ASKED_LATELY_MS);
        let watched = self.waiters.watched(queue, state.wants_token(slot), lately_ms);
        let pollers = if watched { Pollers::Waiting } else { Pollers::Absent };
        let why = state.why(slot, self.now_ms(), pollers);
        let (position, lane_rank) = match why.place {
            Place::Position(position) => (Some(position), None),
            Place::LaneRank(rank) => (None, Some(u64::from(rank))),
        };
        let mut view = WhyView {
            state: state.job(slot).state.name(),
            reason: "",
            text: String::new(),
            position,
            lane_rank,
            until_ms: None,
            worker: None,
            waiting_workers: self.waiters.in_line(queue),
            limit: None,
            tenant: state.queue(queue).tenant.clone(),
            alerts: state.job(slot).alerts().collect(),
        };
        view.explain(&why.reason, self.now_ms());
        if why.queue_paused && !matches!(why.reason, Reason::QueuePaused) {
            view.text.push_str("; its queue is paused");
        }
        for alert in &view.alerts {
            view.text.push_str(&format!("; its {} deadline has passed", alert.name()));
        }
        Some(Box::new(view))
    }

    fn why_at_rest(&self, key: JobKey) -> Option<Box<WhyView>> {
        let ended = self.finished.get(key)?;
        let (state, words) = match ended.outcome {
            Outcome::Completed => (JobState::Completed, "it is done"),
            Outcome::CompletedWithErrors => (JobState::Completed, "it is done, with errors"),
            Outcome::Failed => (JobState::Failed, "its last retry failed"),
            Outcome::FailedForGood => (JobState::Failed, "it failed and retrying cannot help"),
            Outcome::TimedOut => (JobState::Failed, "a deadline ended it"),
            Outcome::Cancelled => (JobState::Cancelled, "it was cancelled"),
            Outcome::Skipped => (JobState::Cancelled, "it was skipped"),
        };
        let because =
            if ended.message.is_empty() { String::new() } else { format!(": {}", ended.message) };
        Some(Box::new(WhyView {
            state: state.name(),
            reason: "at-rest",
            text: format!("{words}{because}"),
            position: None,
            lane_rank: None,
            until_ms: None,
            worker: None,
            waiting_workers: 0,
            limit: None,
            tenant: self.engine.state().queue(ended.queue).tenant.clone(),
            alerts: Vec::new(),
        }))
    }
}

fn full(key: &str, max: u32, active: u32, ahead: u64) -> String {
    if max == 0 {
        return format!("the limit of the concurrency key {key} is 0: none may start");
    }
    format!(
        "{active} of {max} jobs with the concurrency key {key} are active, and {ahead} others wait for \
         a place before it"
    )
}

impl WhyView {
    fn explain(&mut self, reason: &Reason<'_>, now_ms: u64) {
        let in_words = |until_ms: u64| seconds(until_ms.saturating_sub(now_ms));
        (self.reason, self.text) = match *reason {
            Reason::Turn if self.position == Some(0) => {
                ("next", "it is the next to be handed out".to_owned())
            }
            Reason::Turn => {
                let position = self.position.unwrap_or(0);
                ("waiting-turn", format!("{position} jobs are handed out before it"))
            }
            Reason::NoWorker => ("no-worker", "no worker asks its queue for jobs".to_owned()),
            Reason::QueuePaused => ("paused", "its queue is paused".to_owned()),
            Reason::ConcurrencyFull { key, max, active, ahead } => {
                let max = max.unwrap_or(u32::MAX);
                self.limit = Some((Arc::from(key), max, active));
                ("concurrency-full", full(key, max, active, ahead))
            }
            Reason::RateFull { key, max, window_ms, frees_ms, ahead } => {
                self.limit = Some((Arc::from(key), max, max));
                self.until_ms = Some(frees_ms);
                let text = format!(
                    "{max} jobs with the rate key {key} were handed out within {}; the next may be \
                     in {}, and {ahead} others wait before it",
                    seconds(window_ms),
                    in_words(frees_ms)
                );
                ("rate-full", text)
            }
            Reason::Scheduled { until_ms } => {
                self.until_ms = Some(until_ms);
                ("scheduled", format!("it is not due for another {}", in_words(until_ms)))
            }
            Reason::Backoff { until_ms, attempt, message } => {
                self.until_ms = Some(until_ms);
                let text = format!(
                    "attempt {attempt} begins in {}; before: {message}",
                    in_words(until_ms)
                );
                ("backoff", text)
            }
            Reason::Active { worker, until_ms, activation, cancel_asked } => {
                self.until_ms = Some(until_ms);
                self.worker = worker.map(Arc::from);
                let worker = worker.unwrap_or("a worker without a name");
                let asked = if cancel_asked { "; it was asked to stop" } else { "" };
                let text = format!(
                    "{worker} holds it (activation {activation}) for another {}{asked}",
                    in_words(until_ms)
                );
                ("active", text)
            }
            Reason::Incident { key, kind, since_ms, message } => {
                let kind = match kind {
                    IncidentKind::NoRetries => "its retries are used up",
                    IncidentKind::ErrorNotCaught => "its worker threw an error nobody catches",
                    IncidentKind::Permanent => "its worker said that retrying cannot help",
                    IncidentKind::TooLarge => "it is larger than a message to a worker may be",
                };
                let since = seconds(now_ms.saturating_sub(since_ms));
                (
                    "incident",
                    format!("incident {key} waits for a person since {since}: {kind}: {message}"),
                )
            }
        };
    }
}

fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1} s", Decimal(ms)),
        10_000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// Milliseconds as seconds with one decimal.
struct Decimal(u64);

impl std::fmt::Display for Decimal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 100)
    }
}
