//! The four deadlines, in every state, with every outcome.

use std::collections::BTreeSet;

use windlass_record::command::{Command, CreateJob, ExtendLease, JobOptions, Lease, ReleaseJob};
use windlass_record::event::{DeadlineKind, Outcome};
use windlass_record::id::JobKey;
use windlass_record::policy::{DeadlineOutcome, Deadlines, Exhausted, RetryPolicy};

use super::life::{DEADLINE_MS, bring, state_of};
use crate::lifecycle::{JobState, Transition, Verb, transition};
use crate::verb::check::{Check, LEASE_MS, job_with};

const LIVE: [JobState; 5] =
    [JobState::Scheduled, JobState::Ready, JobState::Active, JobState::Backoff, JobState::Incident];
const KINDS: [DeadlineKind; 4] =
    [DeadlineKind::Lease, DeadlineKind::Waiting, DeadlineKind::Attempt, DeadlineKind::Total];
const OUTCOMES: [DeadlineOutcome; 4] = [
    DeadlineOutcome::Again,
    DeadlineOutcome::FailAttempt,
    DeadlineOutcome::End,
    DeadlineOutcome::Alert,
];

fn deadlines(kind: DeadlineKind, outcome: DeadlineOutcome) -> Deadlines {
    let soon = Some((DEADLINE_MS, outcome));
    match kind {
        DeadlineKind::Lease => Deadlines { lease: outcome, ..Deadlines::default() },
        DeadlineKind::Waiting => Deadlines { waiting: soon, ..Deadlines::default() },
        DeadlineKind::Attempt => Deadlines { attempt: soon, ..Deadlines::default() },
        DeadlineKind::Total => Deadlines { total: soon, ..Deadlines::default() },
    }
}

/// In which states a deadline runs.
fn runs(kind: DeadlineKind, state: JobState) -> bool {
    let states: &[JobState] = match kind {
        DeadlineKind::Lease => &[JobState::Active],
        DeadlineKind::Waiting => &[JobState::Ready],
        DeadlineKind::Attempt => &[JobState::Scheduled, JobState::Ready, JobState::Active],
        DeadlineKind::Total => &LIVE,
    };
    states.contains(&state)
}

/// What has become of a job.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    /// In this state, with this attempt and these retries, and alerted so often.
    Lives(JobState, u32, i32, usize),
    Ended(Outcome),
}

fn find(check: &mut Check, key: JobKey) -> Found {
    if let Some(outcome) = check.outcome(key) {
        return Found::Ended(outcome);
    }
    let alerts = check.engine.effects().alerts.len();
    let job = check.job(key);
    Found::Lives(job.state, job.attempt, job.retries, alerts)
}

fn expected(kind: DeadlineKind, outcome: DeadlineOutcome, before: &Found) -> Found {
    let Found::Lives(state, attempt, retries, _) = *before else { unreachable!("it lives") };
    match (kind, outcome) {
        (_, DeadlineOutcome::Alert) | (DeadlineKind::Waiting, DeadlineOutcome::Again) => {
            Found::Lives(state, attempt, retries, 1)
        }
        (_, DeadlineOutcome::End) => Found::Ended(Outcome::TimedOut),
        // There is no attempt after all of the time.
        (DeadlineKind::Total, DeadlineOutcome::Again | DeadlineOutcome::FailAttempt) => {
            Found::Ended(Outcome::TimedOut)
        }
        (DeadlineKind::Lease, DeadlineOutcome::Again) => {
            Found::Lives(JobState::Ready, attempt, retries, 0)
        }
        // The attempt begins anew with nothing counted.
        (DeadlineKind::Attempt, DeadlineOutcome::Again) => {
            Found::Lives(JobState::Ready, attempt + 1, retries, 0)
        }
        (
            DeadlineKind::Lease | DeadlineKind::Waiting | DeadlineKind::Attempt,
            DeadlineOutcome::FailAttempt,
        ) => Found::Lives(JobState::Ready, attempt + 1, retries - 1, 0),
    }
}

#[test]
fn four_deadlines_in_five_states_with_four_outcomes() {
    for kind in KINDS {
        for outcome in OUTCOMES {
            for state in LIVE {
                let mut check = Check::new();
                let options =
                    JobOptions { deadlines: deadlines(kind, outcome), ..JobOptions::default() };
                let key = bring(&mut check, state, options);
                let before = find(&mut check, key);
                let after_ms = if kind == DeadlineKind::Lease { LEASE_MS } else { DEADLINE_MS };
                check.pass(after_ms - 1);
                assert_eq!(find(&mut check, key), before, "too early: {kind:?} {outcome:?}");
                check.pass(1);
                let expected = match runs(kind, state) {
                    true => expected(kind, outcome, &before),
                    false => before,
                };
                let found = find(&mut check, key);
                assert_eq!(found, expected, "{kind:?} {outcome:?} {state:?}");
            }
        }
    }
}

/// A job that was put back until later is in its attempt still: each arrow of the table's row from
/// Scheduled is met, and none besides.
#[test]
fn an_attempt_ends_while_the_job_is_scheduled() {
    let again = |wait_ms| RetryPolicy::Fixed { delay_ms: wait_ms, jitter_ms: 0 };
    let rows = [
        (DeadlineOutcome::Alert, again(0), 1, Exhausted::Incident, JobState::Scheduled),
        (DeadlineOutcome::Again, again(0), 1, Exhausted::Incident, JobState::Ready),
        (DeadlineOutcome::FailAttempt, again(0), 1, Exhausted::Incident, JobState::Ready),
        (DeadlineOutcome::FailAttempt, again(5), 1, Exhausted::Incident, JobState::Backoff),
        (DeadlineOutcome::FailAttempt, again(0), 0, Exhausted::Incident, JobState::Incident),
        (DeadlineOutcome::FailAttempt, again(0), 0, Exhausted::Fail, JobState::Failed),
        (DeadlineOutcome::End, again(0), 1, Exhausted::Incident, JobState::Failed),
    ];
    let mut met = BTreeSet::new();
    for (outcome, retry, retries, exhausted, expected) in rows {
        let mut check = Check::new();
        let deadlines = deadlines(DeadlineKind::Attempt, outcome);
        let options = JobOptions { deadlines, retry, exhausted, ..JobOptions::default() };
        let key = check.create(CreateJob { retries, ..job_with("q", "a", options) });
        check.take("q");
        let lease = Lease { key, activation: None };
        let release = ReleaseJob { lease, delay_ms: 2 * DEADLINE_MS };
        check.give(Command::ReleaseJob(release)).expect("it is held");
        check.pass(DEADLINE_MS - 1);
        assert_eq!(state_of(&mut check, key), JobState::Scheduled, "too early: {outcome:?}");
        check.pass(1);
        assert_eq!(state_of(&mut check, key), expected, "{outcome:?} {retry:?} {retries}");
        met.insert(expected);
    }
    let Transition::To(targets) = transition(JobState::Scheduled, Verb::AttemptEnds) else {
        panic!("it is allowed")
    };
    assert_eq!(met, targets.iter().copied().collect());
}

/// An alert is told once, and the deadline does not fire again and again.
#[test]
fn an_alert_is_told_once() {
    for kind in [DeadlineKind::Waiting, DeadlineKind::Attempt, DeadlineKind::Total] {
        let mut check = Check::new();
        let deadlines = deadlines(kind, DeadlineOutcome::Alert);
        bring(&mut check, JobState::Ready, JobOptions { deadlines, ..JobOptions::default() });
        check.pass(100 * DEADLINE_MS);
        assert_eq!(check.engine.effects().alerts.len(), 1, "{kind:?}");
        assert_eq!(check.engine.next_due_ms(), None, "{kind:?}");
    }
}

/// The attempt's time runs from its first start, put-backs included, and anew with each attempt.
#[test]
fn an_attempt_survives_put_backs() {
    let mut check = Check::new();
    let deadlines = deadlines(DeadlineKind::Attempt, DeadlineOutcome::FailAttempt);
    let key = check.create(job_with("q", "a", JobOptions { deadlines, ..JobOptions::default() }));
    check.pass(10 * DEADLINE_MS);
    assert_eq!(check.job(key).attempt, 1, "it has not begun");
    check.take("q");
    check.pass(DEADLINE_MS / 2);
    let lease = Lease { key, activation: None };
    check.give(Command::ReleaseJob(ReleaseJob { lease, delay_ms: 0 })).expect("it is held");
    check.take("q");
    check.pass(DEADLINE_MS / 2 - 1);
    assert_eq!(check.job(key).attempt, 1);
    check.pass(1);
    assert_eq!((check.job(key).attempt, check.job(key).state), (2, JobState::Ready));
    check.take("q");
    check.pass(DEADLINE_MS - 1);
    assert_eq!(check.job(key).attempt, 2);
    check.pass(1);
    assert_eq!(check.job(key).attempt, 3);
}

/// A hand-out that was never sent does not begin the attempt.
#[test]
fn an_unsent_hand_out_starts_no_attempt() {
    let mut check = Check::new();
    let deadlines = deadlines(DeadlineKind::Attempt, DeadlineOutcome::End);
    let key = check.create(job_with("q", "a", JobOptions { deadlines, ..JobOptions::default() }));
    let handed = check.hand_out(&["q"], 1, true);
    check.take_back(handed.first().expect("a job was ready")).expect("it was never sent");
    check.pass(10 * DEADLINE_MS);
    assert_eq!(check.state_of(key), Some(JobState::Ready));
}

/// An extended lease ends at its new time: later, or sooner.
#[test]
fn an_extended_lease_moves() {
    for lease_ms in [10, LEASE_MS, 3 * LEASE_MS] {
        let mut check = Check::new();
        let key = bring(&mut check, JobState::Active, JobOptions::default());
        check.pass(LEASE_MS / 2);
        let lease = Lease { key, activation: None };
        check.give(Command::ExtendLease(ExtendLease { lease, lease_ms })).expect("it is held");
        check.pass(lease_ms - 1);
        assert_eq!(check.state_of(key), Some(JobState::Active));
        check.pass(1);
        assert_eq!(check.state_of(key), Some(JobState::Ready));
    }
}

/// An outage does not expire every job before its worker can reconnect, and a jump of the clock
/// moves leases along.
#[test]
fn leases_outlive_an_outage_and_a_jump() {
    let mut check = Check::new();
    let key = bring(&mut check, JobState::Active, JobOptions::default());
    check.now_ms += 10 * LEASE_MS;
    let context = check.context();
    check.engine.open(context, context.now_ms + 10_000, &mut check.shelf);
    check.pass(9_999);
    assert_eq!(check.state_of(key), Some(JobState::Active));
    let context = check.context();
    check.engine.move_leases(context, 5_000, &mut check.shelf);
    check.pass(5_000);
    assert_eq!(check.state_of(key), Some(JobState::Active));
    check.pass(1);
    assert_eq!(check.state_of(key), Some(JobState::Ready));
}
