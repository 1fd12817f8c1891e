//! The sixteen defects of Docspell's scheduler, `reference/queues.md` A7: what must be impossible
//! here. Where a defect is about pages, names or notifications, the engine's part is tested and the
//! rest is said to be elsewhere.

use windlass_record::command::{
    ActivateJobs, AppendLog, Bytes, Command, CompleteJob, JobOptions, Lease,
};
use windlass_record::event::Outcome;
use windlass_record::policy::{CancelPolicy, JobOrder, QueueSettings, RetryPolicy};
use windlass_record::rejection::Rejection;

use crate::Answer;
use crate::lifecycle::JobState;
use crate::verb::check::{Check, LEASE_MS, active_max, job, job_with, queue_name};
use crate::why::{Pollers, Reason};

fn docspell() -> JobOptions {
    JobOptions { retry: RetryPolicy::docspell(1000), ..JobOptions::default() }
}

/// A stuck job kept its worker; with the node gone nobody could run it, and tries to take it burnt
/// its retries. Here a lease belongs to a hand-out, and asking in vain changes nothing.
#[test]
fn d01_a_job_is_not_bound_to_the_worker_that_failed_it() {
    let mut check = Check::new();
    let key = check.create(job_with("q", "a", docspell()));
    take_as(&mut check, "gone for ever");
    check.fail(key).expect("it is held");
    let logged = check.shelf.log.len();
    for _ in 0..10 {
        assert_eq!(take_as(&mut check, "another"), 0);
    }
    assert_eq!(check.shelf.log.len(), logged);
    check.pass(1000);
    assert_eq!(take_as(&mut check, "another"), 1);
    assert_eq!((check.job(key).attempt, check.job(key).retries), (2, 2));
    check.pass(LEASE_MS);
    assert_eq!(take_as(&mut check, "a third"), 1, "within the lease time");
    assert_eq!((check.job(key).attempt, check.job(key).retries), (2, 2));
}

fn take_as(check: &mut Check, worker: &str) -> usize {
    let queue = check.engine.state().queue_named(&queue_name("q")).expect("the queue exists");
    let command = ActivateJobs {
        queues: vec![queue],
        worker: worker.into(),
        lease_ms: LEASE_MS,
        jobs_max: 1,
        bytes_max: u64::MAX,
        with_token: false,
    };
    match check.give(Command::ActivateJobs(command)) {
        Ok(Answer::Activated(handed)) => handed.len(),
        other => panic!("activate: {other:?}"),
    }
}

/// Jobs of a dead node stayed in work for ever, and cancel needed the node. Here leases end, and
/// force needs no worker.
#[test]
fn d02_leases_end_and_force_needs_no_worker() {
    let mut check = Check::new();
    let key = check.create(job("q", "a", 0));
    check.take("q");
    check.pass(LEASE_MS);
    assert_eq!(check.state_of(key), Some(JobState::Ready));
    let options = JobOptions { cancel: CancelPolicy::Cooperative, ..JobOptions::default() };
    let key = check.create(job_with("p", "a", options));
    check.take("p");
    assert_eq!(check.cancel(key, false), Ok(Answer::CancelPending));
    assert_eq!(check.cancel(key, true), Ok(Answer::Done));
    assert_eq!(check.outcome(key), Some(Outcome::Cancelled));
}

/// A job of an unknown task was taken, held its slot and hung. Here nobody takes what he did not
/// ask for, and the job says that it has no worker.
#[test]
fn d03_a_type_that_nobody_serves_is_told_and_holds_nothing() {
    let mut check = Check::new();
    let key = check.create(job("nobody", "a", 0));
    check.create(job("q", "a", 0));
    assert_eq!(check.take_many(&["q"], 5).len(), 1);
    let state = check.engine.state();
    let slot = state.find(key).expect("it waits");
    assert_eq!(state.why(slot, check.now_ms, Pollers::Absent).reason, Reason::NoWorker);
}

/// A wake-up between "no job" and "wait" was lost. Here each event that makes a job eligible names
/// its queue to the shell, once; that the shell loses none is tested with the gateway and in the
/// simulator.
#[test]
fn d04_every_way_to_become_eligible_is_told() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    let options = || JobOptions { concurrency_key: "k".into(), ..docspell() };
    let first = check.create(job_with("q", "a", options()));
    let queue = check.engine.state().queue_named(&queue_name("q")).expect("the queue exists");
    let told = |check: &mut Check| {
        let mut served = Vec::new();
        check.engine.take_served(&mut served);
        served == [queue]
    };
    assert!(told(&mut check), "created");
    check.take("q");
    check.create(job_with("q", "b", options()));
    assert!(!told(&mut check), "parked");
    check.fail(first).expect("it is held");
    assert!(told(&mut check), "the slot is free");
    check.pass(1000);
    assert!(told(&mut check), "ready, and the slot is free for both");
    let second = check.take("q").expect("the slot is free");
    check.complete(second).expect("it is held");
    assert!(told(&mut check), "woken");
    check.take("q");
    check.pass(LEASE_MS);
    assert!(told(&mut check), "timed out");
    check.pause("q", true);
    let _ = told(&mut check);
    check.pause("q", false);
    assert!(told(&mut check), "resumed");
}

/// The guard against overlapping runs compared the wrong id. Here the guard is the unique key,
/// which holds as long as the job lives; schedules, which will use it, come later.
#[test]
fn d05_a_unique_key_guards_as_long_as_the_job_lives() {
    let mut check = Check::new();
    let create = || job_with("q", "a", JobOptions { unique_key: "task 7".into(), ..docspell() });
    let key = check.create(create());
    let refused = Err(Rejection::UniqueKeyHeld { holder: key });
    assert_eq!(check.give(Command::CreateJob(create())), refused);
    check.take("q");
    assert_eq!(check.give(Command::CreateJob(create())), refused);
    check.fail(key).expect("it is held");
    assert_eq!(check.give(Command::CreateJob(create())), refused);
    check.pass(1000);
    check.take("q");
    check.complete(key).expect("it is held");
    assert_ne!(check.create(create()), key);
}

/// Look-up and insert were two transactions. Of a hundred creates one wins.
#[test]
fn d06_one_of_a_hundred_creates_wins() {
    let mut check = Check::new();
    let options = || JobOptions { unique_key: "u".into(), ..JobOptions::default() };
    let key = check.create(job_with("q", "a", options()));
    for _ in 1..100 {
        let refused = check.give(Command::CreateJob(job_with("q", "a", options())));
        assert_eq!(refused, Err(Rejection::UniqueKeyHeld { holder: key }));
    }
    assert_eq!(check.engine.state().jobs().live(), 1);
}

/// Cancelling a job that did not run released a permit that was never taken. Here slots are counted
/// by the jobs that use them (I9 after each step).
#[test]
fn d07_cancelling_a_waiting_job_frees_no_slot() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    let options = || JobOptions { concurrency_key: "k".into(), ..JobOptions::default() };
    let keys: Vec<_> = (0..5).map(|_| check.create(job_with("q", "a", options()))).collect();
    check.take("q");
    check.cancel(keys[1], false).expect("it waits");
    check.cancel(keys[2], true).expect("it waits");
    assert_eq!(check.take("q"), None);
    check.complete(keys[0]).expect("it is held");
    assert_eq!(check.take_many(&["q"], 5), [keys[3]]);
}

/// A task that ended before it was registered stayed on the list of running ones. Here one state
/// says both, and a job that has ended is nowhere.
#[test]
fn d08_no_ghosts() {
    let mut check = Check::new();
    let key = check.create(job("q", "a", 0));
    check.complete(key).expect("nobody has it, and nobody finished it");
    assert_eq!(check.state_of(key), None);
    assert_eq!(check.take("q"), None);
    let (_, queue) = check.engine.state().queues().next().expect("one queue");
    assert_eq!(queue.counts.live(), 0);
}

/// Old jobs vanished from the page, and there were no more than forty. The engine's part: its
/// counts are exact whatever the age; paging is tested with the API.
#[test]
fn d09_counts_are_exact_and_nothing_vanishes() {
    let mut check = Check::new();
    for number in 0..500 {
        check.create(job("q", if number % 2 == 0 { "a" } else { "b" }, 0));
    }
    check.pass(7 * 24 * 60 * 60 * 1000);
    let state = check.engine.state();
    let (id, queue) = state.queues().next().expect("one queue");
    assert_eq!((queue.counts.ready, state.eligible_jobs(id, false)), (500, 500));
    assert_eq!(state.jobs().iter().count(), 500);
}

/// One side said `canceled`, the other `cancelled`. The engine's part: names come from one place;
/// that the API's schema has them is tested there.
#[test]
fn d10_names_of_states_are_made_in_one_place() {
    let names: Vec<&str> = JobState::ALL.iter().map(|state| state.name()).collect();
    let expected =
        ["scheduled", "ready", "active", "backoff", "incident", "completed", "failed", "cancelled"];
    assert_eq!(names, expected);
}

/// The notification carried the state at the time of taking. Here what the shell is told is the job
/// as it was last, and how it ended.
#[test]
fn d11_the_end_is_told_as_it_was() {
    let mut check = Check::new();
    let key = check.create(job_with("q", "a", docspell()));
    check.take("q");
    check.fail(key).expect("it is held");
    check.pass(1000);
    check.take("q");
    check.complete(key).expect("it is held");
    let ended = &check.engine.effects().ended;
    let [ended] = ended.as_slice() else { panic!("one job ended") };
    assert_eq!((ended.outcome, ended.job.attempt), (Outcome::Completed, 2));
    assert_eq!((&*ended.group, &*ended.job_type), ("a", "q"));
}

/// A mark of a dead node made others spin. Here a job in work is not offered to anybody, and the
/// timer is silent until something is due.
#[test]
fn d12_nobody_spins_on_what_another_holds() {
    let mut check = Check::new();
    check.create(job("q", "a", 0));
    check.take("q");
    assert_eq!(check.take("q"), None);
    check.fire();
    let due_ms = check.engine.next_due_ms().expect("a lease runs");
    assert!(due_ms > check.now_ms, "nothing is due before");
    check.pass(LEASE_MS - 1);
    assert_eq!(check.take("q"), None);
}

/// The log dropped its oldest lines silently. Here the first are kept, and how many were dropped is
/// part of the record.
#[test]
fn d13_dropped_log_lines_are_counted() {
    let bounds = windlass_record::bound::Bounds {
        log_lines_per_attempt_max: 3,
        ..windlass_record::bound::Bounds::default()
    };
    let mut check = Check::with_bounds(bounds);
    let key = check.create(job("q", "a", 0));
    check.take("q");
    let lease = Lease { key, activation: None };
    for lines in [vec!["1".into(), "2".into()], vec!["3".into(), "4".into(), "5".into()]] {
        check.give(Command::AppendLog(AppendLog { lease, lines })).expect("it is held");
    }
    check.give(Command::AppendLog(AppendLog { lease, lines: vec!["6".into()] })).expect("held");
    let extra = check.job(key).extra().expect("it has a log");
    let lines: Vec<&str> = extra.log.iter().map(|line| &**line).collect();
    assert_eq!((lines, extra.log_dropped), (vec!["1", "2", "3"], 3));
}

/// The cursor was one per node, in the order of names. Here it is one for all workers and all their
/// mixes of queues, in the order of joining.
#[test]
fn d14_one_cursor_for_all_workers() {
    let mut check = Check::new();
    for group in ["z", "z", "a", "a"] {
        check.create(job("q", group, 0));
    }
    for group in ["m", "m"] {
        check.create(job("p", group, 0));
    }
    let mut groups = Vec::new();
    for (worker, queues) in
        [["q", "p"], ["q", "q"], ["p", "q"], ["q", "p"], ["q", "p"], ["q", "p"]].iter().enumerate()
    {
        let _ = worker;
        let key = check.take_many(queues, 1);
        let slot = check.engine.state().find(key[0]).expect("it lives");
        groups.push(check.engine.state().group_name(slot).to_string());
    }
    assert_eq!(groups, ["z", "a", "m", "z", "a", "m"]);
}

/// Counter and state changed in separate transactions. Here a command is decided whole: refused, it
/// leaves no trace (the helper checks each); taken, its events stand in one frame.
#[test]
fn d15_a_transition_is_whole() {
    let mut check = Check::new();
    let key = check.create(job("q", "a", 0));
    check.take("q");
    let write = windlass_record::command::DocumentWrite {
        tenant: "t".into(),
        kind: "k".into(),
        id: "d".into(),
        expected_version: Some(1),
        bytes: Some(Bytes::from(&b"state"[..])),
    };
    let complete = CompleteJob {
        lease: Lease { key, activation: None },
        result: Bytes::default(),
        documents: vec![write],
    };
    let refused = check.give(Command::CompleteJob(complete));
    assert_eq!(
        refused,
        Err(Rejection::DocumentVersion {
            kind: "k".into(),
            id: "d".into(),
            expected: 1,
            actual: 0,
        })
    );
    assert_eq!(check.state_of(key), Some(JobState::Active));
}

/// Nothing told jobs of the same instant apart. Here the order is a number.
#[test]
fn d16_jobs_of_one_instant_have_an_order() {
    for order in [JobOrder::Ready, JobOrder::Creation] {
        let mut check = Check::new();
        check.configure("q", QueueSettings { order, ..QueueSettings::DEFAULT });
        let keys: Vec<_> = (0..600).map(|_| check.create(job("q", "a", 0))).collect();
        let mut taken = Vec::new();
        while let Some(key) = check.take("q") {
            taken.push(key);
        }
        assert_eq!(taken, keys);
    }
}
