//! Cancel in every state: at once, cooperative, by force, and in a race with the job's own end.

use windlass_record::command::{
    Bytes, Command, CompleteJob, CreateJob, ExtendLease, JobOptions, Lease, ReleaseJob, ReturnJob,
    ThrowError,
};
use windlass_record::event::Outcome;
use windlass_record::id::{JobKey, Token};
use windlass_record::policy::{CancelPolicy, DeadlineOutcome, Deadlines};
use windlass_record::rejection::Rejection;

use super::life::{DEADLINE_MS, bring};
use crate::Answer;
use crate::lifecycle::JobState;
use crate::verb::check::{Check, LEASE_MS, active_max, job_with};

const POLICIES: [CancelPolicy; 3] =
    [CancelPolicy::AtOnce, CancelPolicy::Cooperative, CancelPolicy::CooperativeCompletionCounts];

#[test]
fn in_every_state() {
    let live = [
        JobState::Scheduled,
        JobState::Ready,
        JobState::Active,
        JobState::Backoff,
        JobState::Incident,
    ];
    for state in live {
        for cancel in POLICIES {
            for force in [false, true] {
                let mut check = Check::new();
                let key = bring(&mut check, state, JobOptions { cancel, ..JobOptions::default() });
                let waits = state == JobState::Active && cancel != CancelPolicy::AtOnce && !force;
                let answer = if waits { Answer::CancelPending } else { Answer::Done };
                assert_eq!(check.cancel(key, force), Ok(answer), "{state:?} {cancel:?} {force}");
                let outcome = (!waits).then_some(Outcome::Cancelled);
                assert_eq!(check.outcome(key), outcome, "{state:?} {cancel:?} {force}");
            }
        }
    }
    for state in [JobState::Completed, JobState::Failed, JobState::Cancelled] {
        let mut check = Check::new();
        let key = bring(&mut check, state, JobOptions::default());
        assert_eq!(check.cancel(key, true), Err(Rejection::JobNotFound { key }));
    }
}

/// What ends a job whose worker has been asked to stop.
#[derive(Clone, Copy, Debug)]
enum End {
    Complete,
    Fail,
    Throw,
    Release,
    Return,
    LeaseEnds,
    AttemptEnds,
    TotalEnds,
    Force,
}

fn end(check: &mut Check, key: JobKey, end: End) {
    let lease = Lease { key, activation: None };
    let result = match end {
        End::Complete => check.give(Command::CompleteJob(CompleteJob {
            lease,
            result: Bytes::default(),
            documents: Vec::new(),
        })),
        End::Fail => check.fail(key),
        End::Throw => check.give(Command::ThrowError(ThrowError {
            lease,
            code: "E".into(),
            message: "".into(),
            variables: Default::default(),
        })),
        End::Release => check.give(Command::ReleaseJob(ReleaseJob { lease, delay_ms: 5 })),
        End::Return => check.give(Command::ReturnJob(ReturnJob {
            token: Token { key, activation: 1 },
            turn: 1,
            scheme_count: 0,
        })),
        End::LeaseEnds => {
            check.pass(LEASE_MS);
            Ok(Answer::Done)
        }
        End::AttemptEnds | End::TotalEnds => {
            check.pass(DEADLINE_MS);
            Ok(Answer::Done)
        }
        End::Force => check.cancel(key, true),
    };
    assert_eq!(result, Ok(Answer::Done), "{end:?}");
}

#[test]
fn once_asked_any_end_is_a_cancel() {
    let ends = [
        End::Complete,
        End::Fail,
        End::Throw,
        End::Release,
        End::Return,
        End::LeaseEnds,
        End::AttemptEnds,
        End::TotalEnds,
        End::Force,
    ];
    for cancel in [CancelPolicy::Cooperative, CancelPolicy::CooperativeCompletionCounts] {
        for by in ends {
            let mut check = Check::new();
            let soon = Some((DEADLINE_MS, DeadlineOutcome::End));
            let deadlines = match by {
                End::AttemptEnds => Deadlines { attempt: soon, ..Deadlines::default() },
                End::TotalEnds => Deadlines { total: soon, ..Deadlines::default() },
                End::Complete
                | End::Fail
                | End::Throw
                | End::Release
                | End::Return
                | End::LeaseEnds
                | End::Force => Deadlines::default(),
            };
            let options = JobOptions { cancel, deadlines, ..JobOptions::default() };
            let key = bring(&mut check, JobState::Active, options);
            check.cancel(key, false).expect("a live job can be cancelled");
            end(&mut check, key, by);
            let expected = match (by, cancel) {
                (End::Complete, CancelPolicy::CooperativeCompletionCounts) => Outcome::Completed,
                (_, _) => Outcome::Cancelled,
            };
            assert_eq!(check.outcome(key), Some(expected), "{by:?} {cancel:?}");
        }
    }
}

/// Until its worker has stopped, the job keeps lease, slot and unique key; the worker learns of it
/// from its heartbeat, and once only is anything logged.
#[test]
fn a_job_that_was_asked_to_stop_keeps_what_it_has() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    let options = || JobOptions {
        cancel: CancelPolicy::Cooperative,
        unique_key: "u".into(),
        concurrency_key: "k".into(),
        ..JobOptions::default()
    };
    let create = || -> CreateJob { job_with("q", "a", options()) };
    let key = check.create(create());
    assert_eq!(check.take("q"), Some(key));
    assert_eq!(check.cancel(key, false), Ok(Answer::CancelPending));
    let logged = check.shelf.log.len();
    assert_eq!(check.cancel(key, false), Ok(Answer::CancelPending));
    assert_eq!(check.shelf.log.len(), logged, "it was asked already");
    assert_eq!(check.engine.effects().cancels, [key], "its worker is told");

    let lease = Lease { key, activation: None };
    let extend = Command::ExtendLease(ExtendLease { lease, lease_ms: LEASE_MS });
    let deadline_ms = check.now_ms + LEASE_MS;
    assert_eq!(check.give(extend), Ok(Answer::Held { deadline_ms, cancel_asked: true }));
    let refused = check.give(Command::CreateJob(create()));
    assert_eq!(refused, Err(Rejection::UniqueKeyHeld { holder: key }));
    let other = JobOptions { unique_key: "".into(), ..options() };
    let other = check.create(job_with("q", "b", other));
    assert_eq!(check.take("q"), None, "the slot is used");
    check.fail(key).expect("it is held");
    assert_eq!(check.take("q"), Some(other));
    check.create(create());
}

/// A lease whose end only raises an alert leaves the job with its worker. Asked to stop, a worker that
/// falls silent has stopped all the same, in whichever order that comes.
#[test]
fn a_silent_worker_does_not_keep_a_job_that_was_asked_to_stop() {
    for asked_first in [true, false] {
        let mut check = Check::new();
        let options = JobOptions {
            cancel: CancelPolicy::Cooperative,
            deadlines: Deadlines { lease: DeadlineOutcome::Alert, ..Deadlines::default() },
            ..JobOptions::default()
        };
        let key = bring(&mut check, JobState::Active, options);
        if asked_first {
            assert_eq!(check.cancel(key, false), Ok(Answer::CancelPending));
        }
        check.pass(LEASE_MS);
        if !asked_first {
            assert_eq!(check.state_of(key), Some(JobState::Active), "that alone ends nothing");
            assert_eq!(check.cancel(key, false), Ok(Answer::Done));
        }
        assert_eq!(check.outcome(key), Some(Outcome::Cancelled), "asked first: {asked_first}");
    }
}
