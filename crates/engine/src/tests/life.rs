//! Every state and every verb, against the table.

use windlass_record::command::{
    AppendLog, Bytes, Command, CompleteJob, CreateJob, ExtendLease, FailJob, JobOptions, Lease,
    ReleaseJob, ReportProgress, ResolveIncident, ReturnJob, ThrowError, UpdateJob,
};
use windlass_record::event::Outcome;
use windlass_record::id::{JobKey, Token};
use windlass_record::policy::{CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted};
use windlass_record::rejection::Rejection;

use crate::Answer;
use crate::lifecycle::{JobState, Transition, Verb, transition};
use crate::rights::rights;
use crate::verb::check::{Check, LEASE_MS, failure, job_with};

pub(super) const HOUR_MS: u64 = 60 * 60 * 1000;
/// Shorter than anything else that time does here.
pub(super) const DEADLINE_MS: u64 = 1000;

/// Brings a new job, whose first attempt has begun, into a state.
pub(super) fn bring(check: &mut Check, state: JobState, options: JobOptions) -> JobKey {
    let options = JobOptions { exhausted: Exhausted::Incident, ..options };
    let key = match state {
        JobState::Failed => check.create(CreateJob {
            retries: 0,
            ..job_with("q", "a", JobOptions { exhausted: Exhausted::Fail, ..options })
        }),
        JobState::Scheduled
        | JobState::Ready
        | JobState::Active
        | JobState::Backoff
        | JobState::Incident
        | JobState::Completed
        | JobState::Cancelled
        | JobState::Vacant => check.create(job_with("q", "a", options)),
    };
    assert_eq!(check.take("q"), Some(key));
    let lease = Lease { key, activation: None };
    let done = match state {
        JobState::Active => Ok(Answer::Done),
        JobState::Scheduled => {
            check.give(Command::ReleaseJob(ReleaseJob { lease, delay_ms: HOUR_MS }))
        }
        JobState::Ready => check.give(Command::ReleaseJob(ReleaseJob { lease, delay_ms: 0 })),
        JobState::Backoff => {
            check.give(Command::FailJob(FailJob { backoff_ms: Some(HOUR_MS), ..failure(key) }))
        }
        JobState::Incident => {
            check.give(Command::FailJob(FailJob { retries: Some(0), ..failure(key) }))
        }
        JobState::Failed => check.fail(key),
        JobState::Completed => check.complete(key),
        JobState::Cancelled => check.cancel(key, true),
        JobState::Vacant => unreachable!("no job is ever vacant"),
    };
    done.expect("that is how a job gets there");
    assert_eq!(state_of(check, key), state);
    key
}

/// The state of a job, at rest too.
pub(super) fn state_of(check: &mut Check, key: JobKey) -> JobState {
    match check.state_of(key) {
        Some(state) => state,
        None => match check.outcome(key).expect("it lived") {
            Outcome::Completed | Outcome::CompletedWithErrors => JobState::Completed,
            Outcome::Failed | Outcome::FailedForGood | Outcome::TimedOut => JobState::Failed,
            Outcome::Cancelled | Outcome::Skipped => JobState::Cancelled,
        },
    }
}

/// The deadline that a verb of time is about, ending the job.
fn deadlines(verb: Verb) -> Deadlines {
    let soon = Some((DEADLINE_MS, DeadlineOutcome::End));
    match verb {
        Verb::WaitingEnds => Deadlines { waiting: soon, ..Deadlines::default() },
        Verb::AttemptEnds => Deadlines { attempt: soon, ..Deadlines::default() },
        Verb::TotalEnds => Deadlines { total: soon, ..Deadlines::default() },
        Verb::Activate
        | Verb::Return
        | Verb::ExtendLease
        | Verb::Report
        | Verb::Complete
        | Verb::Fail
        | Verb::ThrowError
        | Verb::Release
        | Verb::LeaseEnds
        | Verb::Due
        | Verb::Cancel
        | Verb::Update
        | Verb::Resolve => Deadlines::default(),
    }
}

/// Does a verb to a job. Time is refused by nobody: it just does nothing.
fn act(check: &mut Check, key: JobKey, verb: Verb) -> Result<(), Rejection> {
    let lease = Lease { key, activation: None };
    let command = match verb {
        Verb::Activate => {
            check.take("q");
            return Ok(());
        }
        Verb::LeaseEnds => {
            check.pass(LEASE_MS);
            return Ok(());
        }
        Verb::Due => {
            // A lease that lives longer, so that nothing else becomes due.
            let _ = check.give(Command::ExtendLease(ExtendLease { lease, lease_ms: 2 * HOUR_MS }));
            check.pass(HOUR_MS);
            return Ok(());
        }
        Verb::WaitingEnds | Verb::AttemptEnds | Verb::TotalEnds => {
            check.pass(DEADLINE_MS);
            return Ok(());
        }
        Verb::Return => Command::ReturnJob(ReturnJob {
            token: Token { key, activation: 1 },
            turn: 1,
            scheme_count: 0,
        }),
        Verb::ExtendLease => Command::ExtendLease(ExtendLease { lease, lease_ms: 5 }),
        Verb::Report => {
            let log = AppendLog { lease, lines: vec!["line".into()] };
            let logged = check.give(Command::AppendLog(log));
            let report =
                ReportProgress { lease, percent: 5, note: "".into(), documents: Vec::new() };
            let reported = check.give(Command::ReportProgress(report));
            assert_eq!(logged.is_ok(), reported.is_ok(), "both are reports");
            return reported.map(|_| ());
        }
        Verb::Complete => Command::CompleteJob(CompleteJob {
            lease,
            result: Bytes::default(),
            documents: Vec::new(),
        }),
        Verb::Fail => Command::FailJob(failure(key)),
        Verb::ThrowError => Command::ThrowError(ThrowError {
            lease,
            code: "E".into(),
            message: "".into(),
            variables: Default::default(),
        }),
        Verb::Release => Command::ReleaseJob(ReleaseJob { lease, delay_ms: 0 }),
        Verb::Cancel => return check.cancel(key, false).map(|_| ()),
        Verb::Update => Command::UpdateJob(UpdateJob {
            key,
            activation: None,
            retries: Some(7),
            priority: Some(3),
            lease_ms: None,
            tenant: None,
        }),
        Verb::Resolve => {
            Command::ResolveIncident(ResolveIncident { key, retries: Some(1), tenant: None })
        }
    };
    check.give(command).map(|_| ())
}

fn is_time(verb: Verb) -> bool {
    match verb {
        Verb::LeaseEnds
        | Verb::Due
        | Verb::WaitingEnds
        | Verb::AttemptEnds
        | Verb::TotalEnds
        | Verb::Activate => true,
        Verb::Return
        | Verb::ExtendLease
        | Verb::Report
        | Verb::Complete
        | Verb::Fail
        | Verb::ThrowError
        | Verb::Release
        | Verb::Cancel
        | Verb::Update
        | Verb::Resolve => false,
    }
}

/// One cell of the table.
fn cell(state: JobState, verb: Verb, dialect: Dialect, cancel: CancelPolicy) {
    let mut check = Check::new();
    let options =
        JobOptions { dialect, cancel, deadlines: deadlines(verb), ..JobOptions::default() };
    let key = bring(&mut check, state, options);
    let result = act(&mut check, key, verb);
    let after = state_of(&mut check, key);
    let what =
        format!("{} {} ({dialect:?}) -> {result:?}, {}", verb.name(), state.name(), after.name());
    let allowed = match transition(state, verb) {
        Transition::To(states) => Some(states),
        Transition::WithoutLease(states) if rights(dialect).results_without_lease => Some(states),
        Transition::WithoutLease(_) | Transition::WrongState | Transition::NotFound => None,
    };
    match (allowed, transition(state, verb)) {
        (Some(states), _) => {
            assert_eq!(result, Ok(()), "{what}");
            assert!(states.contains(&after), "{what}");
        }
        (None, _) if is_time(verb) => assert_eq!(after, state, "{what}"),
        (None, Transition::NotFound) => {
            let found = matches!(
                result,
                Err(Rejection::JobNotFound { .. } | Rejection::IncidentNotFound { .. })
            );
            assert!(found, "{what}");
        }
        (None, Transition::To(_) | Transition::WithoutLease(_) | Transition::WrongState) => {
            let refused = matches!(
                result,
                Err(Rejection::JobInWrongState { .. }
                    | Rejection::LeaseEnded { .. }
                    | Rejection::IncidentNotFound { .. })
            );
            assert!(refused, "{what}");
            assert_eq!(after, state, "{what}");
        }
    }
}

#[test]
fn every_state_and_every_verb() {
    for state in JobState::ALL {
        for verb in Verb::ALL {
            for dialect in [Dialect::Native, Dialect::Zeebe, Dialect::Airbyte, Dialect::Conductor] {
                for cancel in [CancelPolicy::AtOnce, CancelPolicy::Cooperative] {
                    cell(state, verb, dialect, cancel);
                }
            }
        }
    }
}

/// Conductor's workers report without a lease, in every state that is not at rest but one.
#[test]
fn rights_by_dialect() {
    use JobState::{Active, Backoff, Incident, Ready, Scheduled};
    for (state, verb, native, conductor) in [
        (Scheduled, Verb::Complete, false, true),
        (Ready, Verb::Complete, true, true),
        (Active, Verb::Complete, true, true),
        (Backoff, Verb::Complete, false, true),
        (Incident, Verb::Complete, false, false),
        (Scheduled, Verb::Fail, false, true),
        (Ready, Verb::Fail, false, true),
        (Active, Verb::Fail, true, true),
        (Backoff, Verb::Fail, false, true),
        (Incident, Verb::Fail, false, false),
    ] {
        for (dialect, expected) in [(Dialect::Native, native), (Dialect::Conductor, conductor)] {
            let mut check = Check::new();
            let key = bring(&mut check, state, JobOptions { dialect, ..JobOptions::default() });
            let result = act(&mut check, key, verb);
            assert_eq!(result.is_ok(), expected, "{} {dialect:?} {state:?}", verb.name());
        }
    }
}

/// Conductor takes a failure after the lease ended as well: it has no lease to judge by.
#[test]
fn a_late_conductor_failure_counts() {
    let mut check = Check::new();
    let options = JobOptions { dialect: Dialect::Conductor, ..JobOptions::default() };
    let key = bring(&mut check, JobState::Active, options);
    check.now_ms += LEASE_MS;
    check.fail(key).expect("there is no lease to be late for");
    assert_eq!(check.job(key).attempt, 2);
}
