//! What `why` says, and how fast. Positions are held against the naive scheduler in
//! `against_naive`.

use std::time::Instant;

use windlass_record::bound::Bounds;
use windlass_record::command::{Bytes, Command, FailJob, JobOptions, ReleaseJob};
use windlass_record::event::{Event, IncidentKind};
use windlass_record::id::{PartitionId, Payload, QueueId};
use windlass_record::policy::{PriorityRule, QueueSettings};

use crate::verb::check::{Check, LEASE_MS, START_MS, active_max, failure, job, job_with, rate};
use crate::why::{Place, Pollers, Reason};
use crate::{Context, Engine, Sink};

fn why(check: &Check, key: windlass_record::id::JobKey, pollers: Pollers) -> (Reason<'_>, Place) {
    let state = check.engine.state();
    let why = state.why(state.find(key).expect("it lives"), check.now_ms, pollers);
    (why.reason, why.place)
}

#[test]
fn every_reason() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    check.limit("r", rate(1, 500));
    let first = check.create(job("q", "a", 0));
    let second = check.create(job("q", "b", 0));
    assert_eq!(why(&check, first, Pollers::Waiting), (Reason::Turn, Place::Position(0)));
    assert_eq!(why(&check, second, Pollers::Absent), (Reason::NoWorker, Place::Position(1)));
    check.pause("q", true);
    let paused = (Reason::QueuePaused, Place::Position(1));
    assert_eq!(why(&check, second, Pollers::Absent), paused);
    check.pause("q", false);

    let token = check.take_fenced("q");
    let until_ms = check.now_ms + LEASE_MS;
    let held = Reason::Active { worker: Some("w"), until_ms, activation: 1, cancel_asked: false };
    assert_eq!(why(&check, first, Pollers::Waiting), (held, Place::LaneRank(0)));
    let fail = FailJob { lease: token.into(), backoff_ms: Some(70), ..failure(first) };
    check.give(Command::FailJob(fail)).expect("it is held");
    let until_ms = check.now_ms + 70;
    let backoff = Reason::Backoff { until_ms, attempt: 2, message: "it broke" };
    assert_eq!(why(&check, first, Pollers::Waiting).0, backoff);

    let token = check.take_fenced("q");
    assert_eq!(token.key, second);
    let release = ReleaseJob { lease: token.into(), delay_ms: 30 };
    check.give(Command::ReleaseJob(release)).expect("it is held");
    let until_ms = check.now_ms + 30;
    assert_eq!(why(&check, second, Pollers::Waiting).0, Reason::Scheduled { until_ms });

    check.pass(100);
    let token = check.take_fenced("q");
    let fail = FailJob { lease: token.into(), retries: Some(0), ..failure(token.key) };
    check.give(Command::FailJob(fail)).expect("it is held");
    let (reason, _) = why(&check, token.key, Pollers::Waiting);
    let Reason::Incident { kind, since_ms, message, .. } = reason else { panic!("{reason:?}") };
    assert_eq!((kind, since_ms, message), (IncidentKind::NoRetries, check.now_ms, "it broke"));
}

#[test]
fn parked_jobs_know_their_key_and_their_rank() {
    let mut check = Check::new();
    check.limit("k", active_max(1));
    check.limit("r", rate(1, 500));
    let by = |concurrency: &str, rate: &str| JobOptions {
        concurrency_key: concurrency.into(),
        rate_key: rate.into(),
        ..JobOptions::default()
    };
    for group in ["a", "b", "c", "c"] {
        check.create(job_with("q", group, by("k", "")));
    }
    check.take("q");
    let last = check.engine.state().jobs().iter().map(|(_, job)| job.key).max().expect("four");
    let full = Reason::ConcurrencyFull { key: "k", max: Some(1), active: 1, ahead: 1 };
    assert_eq!(why(&check, last, Pollers::Waiting), (full, Place::LaneRank(1)));

    check.create(job_with("p", "a", by("", "r")));
    check.take("p");
    check.pass(100);
    let key = check.create(job_with("p", "a", by("", "r")));
    let full = Reason::RateFull {
        key: "r",
        max: 1,
        window_ms: 500,
        frees_ms: check.now_ms + 400,
        ahead: 0,
    };
    assert_eq!(why(&check, key, Pollers::Waiting), (full, Place::LaneRank(0)));
}

/// A maximum that was lowered under what the window holds: the job waits until all but one less than
/// that have left.
#[test]
fn a_full_rate_says_when_it_has_room() {
    let mut check = Check::new();
    check.limit("r", rate(3, 500));
    let job = || {
        let options = JobOptions { rate_key: "r".into(), ..JobOptions::default() };
        job_with("q", "a", options)
    };
    for _ in 0..3 {
        check.create(job());
        assert!(check.take("q").is_some());
        check.pass(10);
    }
    let third_ms = check.now_ms - 10;
    check.limit("r", rate(1, 500));
    let key = check.create(job());
    let (reason, _) = why(&check, key, Pollers::Waiting);
    let Reason::RateFull { frees_ms, .. } = reason else { panic!("{reason:?}") };
    assert_eq!(frees_ms, third_ms + 500);
    check.pass(frees_ms - check.now_ms - 1);
    assert_eq!(check.take("q"), None);
    check.pass(1);
    assert_eq!(check.take("q"), Some(key));
}

struct Nowhere;

impl Sink for Nowhere {
    fn keep(&mut self, _: &Bytes) -> Payload {
        Payload::EMPTY
    }

    fn record(&mut self, _: &Event<'_>) {}
}

/// A million jobs in ten thousand groups. The bound is that of a test build on a busy machine; the
/// figure for release builds stands in `docs/performance.md`.
#[test]
fn a_position_costs_groups_and_not_jobs() {
    let mut engine = Engine::new(PartitionId::FIRST, Bounds::default());
    let context = Context { now_ms: START_MS, seed: 1 };
    let settings = QueueSettings {
        priority: PriorityRule::Scheme { high: 4, low: 1 },
        ..QueueSettings::DEFAULT
    };
    let configure = windlass_record::command::ConfigureQueue {
        queue: crate::verb::check::queue_name("q"),
        settings,
        seed_only: false,
    };
    engine.decide(&Command::ConfigureQueue(configure), context, &mut Nowhere).expect("good");
    let jobs: u32 = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };
    for number in 0..jobs {
        // Every second job is of one big group.
        let group = if number % 2 == 0 { 0 } else { number / 2 % 10_000 };
        let create = job("q", &format!("group {group}"), (number % 3) as i32);
        engine.decide(&Command::CreateJob(create), context, &mut Nowhere).expect("good");
    }
    let state = engine.state();
    assert_eq!(state.eligible_jobs(QueueId(0), false), jobs);
    let slots: Vec<_> =
        state.jobs().iter().map(|(slot, _)| slot).step_by(jobs as usize / 100).collect();
    let began = Instant::now();
    let mut sum = 0;
    for &slot in &slots {
        if let Place::Position(position) = state.why(slot, START_MS, Pollers::Waiting).place {
            sum += position;
        }
    }
    let each = began.elapsed() / slots.len() as u32;
    assert!(sum > 0);
    println!("a position among {jobs} jobs: {each:?}");
    assert!(each.as_millis() < 10, "a position took {each:?}");
}
