//! Fail an attempt: the job's retry policy decides what follows. A late failure is refused: without
//! a live lease somebody else may have the job, and a worker that always overruns uses up no retry.

use windlass_record::bound::Bound;
use windlass_record::command::{FailJob, FailureKind};
use windlass_record::event::{Event, IncidentKind, Outcome};
use windlass_record::id::Payload;
use windlass_record::policy::Exhausted;
use windlass_record::rejection::Rejection;

use super::guard::at_most;
use crate::lifecycle::Verb;
use crate::retry::{Failure, Verdict, after_failure, jitter};
use crate::state::job::Slot;
use crate::{Answer, Sink, Step};

/// Decides [`FailJob`].
pub(super) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &FailJob,
) -> Result<Answer, Rejection> {
    at_most(Bound::PayloadBytes, command.variables.len(), step.bounds.payload_bytes_max)?;
    if let Some(backoff_ms) = command.backoff_ms {
        step.duration(backoff_ms)?;
    }
    let slot = step.job_held(command.lease, Verb::Fail)?;
    step.lease_lives(slot)?;
    let brought = windlass_flow::kernel::split(&command.variables)?;

    // Cannot fail from here.
    windlass_flow::kernel::job_failed(step, command.lease.key, &brought);
    if !command.variables.is_empty() {
        let output = std::str::from_utf8(&command.variables).unwrap_or_default();
        windlass_flow::conductor::job::job_brought(step, command.lease.key, output);
    }
    step.attempt_failed(
        slot,
        AttemptFailed {
            message: step.message(&command.message),
            retries_given: command.retries,
            backoff_given_ms: command.backoff_ms,
            progressed: command.progressed,
            kind: command.kind,
        },
    );
    Ok(Answer::Done)
}

/// What is said about a failed attempt.
pub(super) struct AttemptFailed<'a> {
    pub(super) message: &'a str,
    pub(super) retries_given: Option<i32>,
    pub(super) backoff_given_ms: Option<u64>,
    pub(super) progressed: bool,
    pub(super) kind: FailureKind,
}

impl<'a> AttemptFailed<'a> {
    /// A deadline did it.
    pub(super) fn by_deadline(message: &'a str) -> AttemptFailed<'a> {
        AttemptFailed {
            message,
            retries_given: None,
            backoff_given_ms: None,
            progressed: false,
            kind: FailureKind::Usual,
        }
    }
}

impl<S: Sink> Step<'_, S> {
    /// Emits what follows a failed attempt.
    pub(super) fn attempt_failed(&mut self, slot: Slot, failed: AttemptFailed<'_>) {
        let job = self.state.job(slot);
        let key = job.key;
        if job.cancel_asked() {
            self.end(slot, Outcome::Cancelled, failed.message);
            return;
        }
        let started_ms = job.extra().map_or(0, |extra| extra.attempt_started_ms);
        let failure = Failure {
            now_ms: self.context.now_ms,
            started_ms: if started_ms == 0 { self.context.now_ms } else { started_ms },
            attempt: job.attempt,
            retries: job.retries,
            failures: job.failures(),
            retries_given: failed.retries_given,
            backoff_given_ms: failed.backoff_given_ms,
            progressed: failed.progressed,
            permanent: failed.kind != FailureKind::Usual,
            jitter: jitter(self.context.seed, key.raw(), job.attempt),
        };
        let (attempt, on_exhausted) = (job.attempt.saturating_add(1), job.exhausted());
        match after_failure(&job.retry_policy(), &failure) {
            Verdict::Again { due_ms, retries, failures } => self.emit(&Event::JobRetried {
                key,
                due_ms,
                retries,
                attempt,
                failures,
                message: failed.message,
            }),
            Verdict::Exhausted { retries, failures } => match on_exhausted {
                Exhausted::Incident => self.emit(&Event::IncidentRaised {
                    key,
                    incident: self.next_key(),
                    kind: match failed.kind {
                        FailureKind::Usual => IncidentKind::NoRetries,
                        FailureKind::Permanent => IncidentKind::Permanent,
                        FailureKind::TooLarge => IncidentKind::TooLarge,
                    },
                    retries,
                    failures,
                    code: "",
                    message: failed.message,
                }),
                Exhausted::Fail => {
                    let outcome = match failed.kind {
                        FailureKind::Usual => Outcome::Failed,
                        FailureKind::Permanent | FailureKind::TooLarge => Outcome::FailedForGood,
                    };
                    self.end(slot, outcome, failed.message);
                }
            },
        }
    }

    /// Emits the end of a job without a result.
    pub(super) fn end(&mut self, slot: Slot, outcome: Outcome, message: &str) {
        let key = self.state.job(slot).key;
        super::flow::task_job_ends(self, slot, outcome, message);
        self.emit(&Event::JobEnded { key, outcome, result: Payload::EMPTY, message });
    }
}
