//! The golden traces of Docspell's scheduler, `reference/queues.md` A2: one worker, everything
//! submitted up front in the order as listed. Names say group, number, and High or Low.

use windlass_record::command::{Command, CreateJob, FailJob, FailureKind, JobOptions};
use windlass_record::event::Outcome;
use windlass_record::policy::{
    CancelPolicy, Exhausted, JobOrder, PriorityRule, QueueSettings, RetryPolicy,
};

use crate::lifecycle::JobState;
use crate::verb::check::{Check, failure, job, job_with};

const HIGH: i32 = 10;
const LOW: i32 = 0;

/// Submits jobs as `group` and `priority`, takes them all, and compares with the trace, in which
/// each job is named by its place in the submission.
fn trace(priority: PriorityRule, jobs: &[(&str, i32)], order: &[usize]) {
    let mut check = Check::new();
    let settings = QueueSettings {
        priority,
        order: JobOrder::Creation,
        retries_first: true,
        ..QueueSettings::DEFAULT
    };
    check.configure("joex", settings);
    let keys: Vec<_> = jobs
        .iter()
        .map(|(group, priority)| check.create(CreateJob { ..job("joex", group, *priority) }))
        .collect();
    let mut taken = Vec::new();
    while let Some(key) = check.take("joex") {
        taken.push(keys.iter().position(|other| *other == key).expect("one of ours"));
    }
    assert_eq!(taken, order);
}

fn scheme(high: u32, low: u32) -> PriorityRule {
    PriorityRule::Scheme { high, low }
}

/// a1 b1 c1 a2 c2 a3
#[test]
fn t1_groups_take_turns() {
    let (a, b, c) = (("a", HIGH), ("b", HIGH), ("c", HIGH));
    trace(PriorityRule::Strict, &[a, a, a, b, c, c], &[0, 3, 4, 1, 5, 2]);
}

/// H1 H2 L1 H3 H4 L2
#[test]
fn t2_two_high_one_low() {
    let (high, low) = (("a", HIGH), ("a", LOW));
    trace(scheme(2, 1), &[high, high, high, high, low, low], &[0, 1, 4, 2, 3, 5]);
}

/// H1 L1 L2 L3: a turn that falls back is used up all the same.
#[test]
fn t3_falls_back_to_low() {
    let (high, low) = (("a", HIGH), ("a", LOW));
    trace(scheme(2, 1), &[high, low, low, low], &[0, 1, 2, 3]);
}

/// H1 H2 H3 H4 L1 H5 H6 H7 L2 L3: the order of submission does not matter between priorities.
#[test]
fn t4_low_submitted_first() {
    let (high, low) = (("a", HIGH), ("a", LOW));
    trace(
        scheme(4, 1),
        &[low, low, low, high, high, high, high, high, high, high],
        &[3, 4, 5, 6, 0, 7, 8, 9, 1, 2],
    );
}

/// a1H b1L a2H b2L a3H a4H a1L a5H a6H a2L: each group counts for itself.
#[test]
fn t5_two_groups_with_a_scheme_each() {
    let (high, low, other) = (("a", HIGH), ("a", LOW), ("b", LOW));
    trace(
        scheme(4, 1),
        &[high, high, high, high, high, high, low, low, other, other],
        &[0, 8, 1, 9, 2, 3, 6, 4, 5, 7],
    );
}

fn docspell(retries: i32) -> CreateJob {
    let options = JobOptions {
        retry: RetryPolicy::docspell(60_000),
        exhausted: Exhausted::Fail,
        ..JobOptions::default()
    };
    CreateJob { retries, ..job_with("joex", "a", options) }
}

/// Delay 60 s, two retries: due 60 s and 120 s after the start of the attempt that failed, and at
/// once when the attempt took longer than that; the third failure is the last.
#[test]
fn t6_retries_double_and_count_from_the_start() {
    let mut check = Check::new();
    let key = check.create(docspell(2));
    assert_eq!(check.take("joex"), Some(key));
    check.pass(10_000);
    check.fail(key).expect("it is held");
    assert_eq!(check.state_of(key), Some(JobState::Backoff));
    check.pass(49_999);
    assert_eq!(check.take("joex"), None);
    check.pass(1);
    assert_eq!(check.take("joex"), Some(key), "due at its time, not at a sweep");
    check.fail(key).expect("it is held");
    check.pass(119_999);
    assert_eq!(check.take("joex"), None);
    check.pass(1);
    assert_eq!(check.take("joex"), Some(key));
    assert_eq!(check.job(key).attempt, 3, "attempts = retries + 1");
    check.fail(key).expect("it is held");
    assert_eq!(check.outcome(key), Some(Outcome::Failed));

    let key = check.create(docspell(2));
    check.take("joex");
    check.pass(59_000);
    let lease = windlass_record::command::Lease { key, activation: None };
    let extend = windlass_record::command::ExtendLease { lease, lease_ms: 60_000 };
    check.give(Command::ExtendLease(extend)).expect("it is held");
    check.pass(2_000);
    check.fail(key).expect("it is held");
    assert_eq!(check.state_of(key), Some(JobState::Ready), "it ran longer than its wait");
}

/// A permanent error ends it whatever is left; a failure after cancel was asked is a cancel.
#[test]
fn t7_permanent_errors_and_cancelled_failures() {
    let mut check = Check::new();
    let key = check.create(docspell(2));
    check.take("joex");
    check
        .give(Command::FailJob(FailJob { kind: FailureKind::Permanent, ..failure(key) }))
        .expect("it is held");
    assert_eq!(check.outcome(key), Some(Outcome::FailedForGood));

    let options = JobOptions {
        retry: RetryPolicy::docspell(60_000),
        cancel: CancelPolicy::Cooperative,
        ..JobOptions::default()
    };
    let key = check.create(job_with("joex", "a", options));
    check.take("joex");
    check.cancel(key, false).expect("a live job can be cancelled");
    check.fail(key).expect("it is held");
    assert_eq!(check.outcome(key), Some(Outcome::Cancelled));
}
