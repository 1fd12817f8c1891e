//! Tables: what each policy does at each time. The clock begins on 2027-01-15 at 08:00 UTC.

use std::sync::Arc;

use windlass_record::bound::{Bound, Bounds};
use windlass_record::command::{Bytes, Command, JobOptions};
use windlass_record::policy::CancelPolicy;
use windlass_record::schedule::{
    CatchUp, JobTemplate, Overlap, PutPause, PutSchedule, SCHEDULE_BYTES_MAX, SCHEDULE_RUNS_MAX,
    ScheduleAction, ScheduleSettings, ScheduleTime, ScheduleTimes, SkipReason,
};

use super::*;
use crate::lifecycle::JobState;
use crate::state::schedule::RunOutcome;
use crate::verb::check::{Check, START_MS};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

fn name(name: &str) -> ScheduleName {
    ScheduleName { tenant: "default".into(), name: name.into() }
}

fn template() -> JobTemplate {
    JobTemplate {
        queue: "q".into(),
        job_type: "t".into(),
        group: "g".into(),
        priority: 3,
        retries: 2,
        payload: Bytes::from(*b"{\"a\":1}"),
        options: None,
    }
}

fn at(expression: &str) -> ScheduleTimes {
    let time = ScheduleTime { expression: expression.into(), zone: "".into() };
    ScheduleTimes { expressions: vec![time], ..ScheduleTimes::default() }
}

/// At every full hour.
fn hourly() -> ScheduleSettings {
    ScheduleSettings {
        owner: "native".into(),
        spec: "{\"kept\":true}".into(),
        times: at("hourly"),
        overlap: Overlap::Skip,
        catch_up: CatchUp::One,
        action: ScheduleAction::Job(Box::new(template())),
    }
}

fn put(settings: ScheduleSettings, expected_version: Option<u64>) -> PutSchedule {
    PutSchedule { name: name("s"), expected_version, settings, pause: PutPause::AsItIs }
}

fn give(check: &mut Check, command: ScheduleCommand) -> Result<ScheduleAnswer, Rejection> {
    let answer = check.give(Command::Schedule(command))?;
    let Answer::Schedule(answer) = answer else { panic!("{answer:?}") };
    Ok(answer)
}

fn set(check: &mut Check, settings: ScheduleSettings) {
    give(check, ScheduleCommand::Put(Box::new(put(settings, None)))).expect("it is sound");
}

fn run_now(check: &mut Check) -> ScheduleAnswer {
    give(check, ScheduleCommand::RunNow(name("s"))).expect("it is there")
}

fn schedule(check: &Check) -> &Schedule {
    check.engine.state().schedules().named(&name("s")).expect("it is there")
}

fn live_jobs(check: &Check) -> u32 {
    check.engine.state().jobs().live()
}

/// Lets time pass all at once, as in an outage.
fn sleep(check: &mut Check, ms: u64) {
    check.now_ms += ms;
    check.fire();
}

/// What became of the times so far, short: the hour (from the start), and what was done.
fn story(check: &Check) -> Vec<String> {
    let hour = |ms: u64| (ms - START_MS) as f64 / HOUR_MS as f64;
    let tell = |run: &crate::state::schedule::Run| {
        let what = match &run.outcome {
            RunOutcome::Started(_) => match run.cause {
                FireCause::Due => "ran".to_owned(),
                FireCause::Asked => "ran as asked".to_owned(),
                FireCause::Queued => "ran after waiting".to_owned(),
            },
            RunOutcome::Skipped(why, count) => format!("{why:?} x{count}"),
            RunOutcome::Failed(message) => message.to_string(),
        };
        format!("{} {what}", hour(run.scheduled_for_ms))
    };
    schedule(check).runs.iter().map(tell).collect()
}

#[test]
fn a_job_is_made_when_its_time_comes() {
    let mut check = Check::new();
    set(&mut check, hourly());
    assert_eq!(schedule(&check).next_due_ms, Some(START_MS + HOUR_MS));
    check.pass(HOUR_MS - 1);
    assert_eq!(live_jobs(&check), 0);
    check.pass(1);
    let key = check.take("q").expect("it is ready");
    let job = check.job(key);
    assert_eq!((job.created_ms, job.retries), (START_MS + HOUR_MS, 2));
    let slot = check.engine.state().find(key).expect("it lives");
    let state = check.engine.state();
    assert_eq!((&**state.type_name(slot), &**state.group_name(slot)), ("t", "g"));
    assert_eq!(state.priority(slot), 3);
    assert_eq!(schedule(&check).live, Some(key));
    check.complete(key).expect("nobody finished it");
    assert_eq!(schedule(&check).live, None);
    check.pass(HOUR_MS);
    assert_eq!(story(&check), ["1 ran", "2 ran"]);
    assert_eq!(schedule(&check).next_due_ms, Some(START_MS + 3 * HOUR_MS));
}

#[test]
fn what_a_policy_does_while_the_run_before_is_not_over() {
    // After three hours without a worker, and after that run has ended.
    type Row = (Overlap, u32, &'static [&'static str], &'static [&'static str]);
    let rows: [Row; 4] = [
        (Overlap::Skip, 1, &["1 ran", "2 Running x2"], &["1 ran", "2 Running x2"]),
        (Overlap::Queue, 1, &["1 ran"], &["1 ran", "2 ran after waiting"]),
        (Overlap::Replace, 1, &["1 ran", "2 ran", "3 ran"], &["1 ran", "2 ran", "3 ran"]),
        (Overlap::Allow, 3, &["1 ran", "2 ran", "3 ran"], &["1 ran", "2 ran", "3 ran"]),
    ];
    for (overlap, live, before, after) in rows {
        let mut check = Check::new();
        set(&mut check, ScheduleSettings { overlap, ..hourly() });
        check.pass(3 * HOUR_MS);
        assert_eq!(story(&check), before, "{overlap:?}");
        assert_eq!(live_jobs(&check), live, "{overlap:?}");
        let key = schedule(&check).live.expect("it is not over");
        check.cancel(key, true).expect("it lives");
        check.fire();
        assert_eq!(story(&check), after, "{overlap:?}");
    }
}

#[test]
fn runs_wait_in_order_and_up_to_a_bound() {
    let mut check = Check::with_bounds(Bounds { schedule_queued_max: 2, ..Bounds::default() });
    set(&mut check, ScheduleSettings { overlap: Overlap::Queue, ..hourly() });
    check.pass(5 * HOUR_MS);
    assert_eq!(story(&check), ["1 ran", "4 QueueFull x2"]);
    assert_eq!(schedule(&check).queued, [START_MS + 2 * HOUR_MS, START_MS + 3 * HOUR_MS]);
    for expected in ["2 ran after waiting", "3 ran after waiting"] {
        let key = check.take("q").expect("one at a time");
        assert_eq!(check.take("q"), None, "one at a time");
        check.complete(key).expect("nobody finished it");
        check.fire();
        assert_eq!(story(&check).last().map(String::as_str), Some(expected));
    }
}

#[test]
fn a_run_that_takes_its_time_to_stop_holds_back_the_newest() {
    let mut check = Check::new();
    let options = JobOptions { cancel: CancelPolicy::Cooperative, ..JobOptions::default() };
    let job = JobTemplate { options: Some(Box::new(options)), ..template() };
    let action = ScheduleAction::Job(Box::new(job));
    set(&mut check, ScheduleSettings { overlap: Overlap::Replace, action, ..hourly() });
    check.pass(HOUR_MS);
    let key = check.hand_out(&["q"], 1, false).first().expect("it is ready").key;
    let extend = |check: &mut Check| {
        let lease = windlass_record::command::Lease { key, activation: None };
        let command = windlass_record::command::ExtendLease { lease, lease_ms: 10 * HOUR_MS };
        check.give(Command::ExtendLease(command)).expect("it is leased");
    };
    extend(&mut check);
    check.pass(2 * HOUR_MS);
    assert!(check.job(key).cancel_asked());
    assert_eq!(schedule(&check).queued, [START_MS + 3 * HOUR_MS], "the newest alone");
    check.complete(key).expect("its worker stopped");
    check.fire();
    assert_eq!(story(&check), ["1 ran", "3 ran after waiting"]);
}

#[test]
fn what_is_caught_up_after_an_outage() {
    let bounds = Bounds { schedule_catch_up_max: 3, ..Bounds::default() };
    // How long nobody was there, in minutes, and what follows.
    type Row = (CatchUp, u64, &'static [&'static str]);
    let rows: [Row; 9] = [
        (CatchUp::None, 60, &["1 ran"]),
        (CatchUp::None, 62, &["1 Missed x1"]),
        (CatchUp::None, 330, &["1 Missed x5"]),
        (CatchUp::None, 300, &["1 Missed x4", "5 ran"]),
        (CatchUp::One, 62, &["1 ran"]),
        (CatchUp::One, 330, &["1 Missed x4", "5 ran"]),
        (CatchUp::All, 62, &["1 ran"]),
        (CatchUp::All, 210, &["1 ran", "2 ran", "3 ran"]),
        (CatchUp::All, 390, &["1 ran", "2 ran", "3 ran", "4 Missed x3"]),
    ];
    for (catch_up, minutes, expected) in rows {
        let mut check = Check::with_bounds(bounds);
        set(&mut check, ScheduleSettings { catch_up, overlap: Overlap::Allow, ..hourly() });
        sleep(&mut check, minutes * MINUTE_MS);
        assert_eq!(story(&check), expected, "{catch_up:?} {minutes}");
        let next_ms = START_MS + (minutes / 60 + 1) * HOUR_MS;
        assert_eq!(schedule(&check).next_due_ms, Some(next_ms), "{catch_up:?} {minutes}");
        assert_eq!(schedule(&check).caught_up, 0, "{catch_up:?} {minutes}");
    }
}

#[test]
fn a_run_that_is_asked_for_leaves_the_times_alone() {
    let mut check = Check::new();
    set(&mut check, hourly());
    check.pass(30 * MINUTE_MS);
    let ScheduleAnswer::Started { run } = run_now(&mut check) else { panic!("it is free") };
    assert_eq!(run_now(&mut check), ScheduleAnswer::Skipped(SkipReason::Running));
    assert_eq!(schedule(&check).next_due_ms, Some(START_MS + HOUR_MS));
    check.complete(run).expect("nobody finished it");
    check.pass(30 * MINUTE_MS);
    assert_eq!(story(&check), ["0.5 ran as asked", "0.5 Running x1", "1 ran"]);
    let unknown = give(&mut check, ScheduleCommand::RunNow(name("x")));
    assert_eq!(unknown, Err(ScheduleRejection::NotFound { name: "x".into() }.into()));
}

#[test]
fn a_pause_stops_times_and_what_waits() {
    let mut check = Check::new();
    set(&mut check, ScheduleSettings { overlap: Overlap::Queue, ..hourly() });
    check.pass(2 * HOUR_MS);
    let pause = |reason: &str| {
        ScheduleCommand::Pause(PauseSchedule { name: name("s"), reason: reason.into() })
    };
    give(&mut check, pause("holidays")).expect("it is there");
    assert_eq!(schedule(&check).paused.as_deref(), Some("holidays"));
    let key = schedule(&check).live.expect("it is not over");
    check.complete(key).expect("nobody finished it");
    check.pass(3 * HOUR_MS);
    assert_eq!(story(&check), ["1 ran"], "what waits goes on waiting");
    // One that is asked for stands behind it.
    assert_eq!(run_now(&mut check), ScheduleAnswer::Queued);
    let logged = check.shelf.log.len();
    give(&mut check, pause("holidays")).expect("it is there");
    assert_eq!(check.shelf.log.len(), logged, "nothing is new");
    check.pass(90 * MINUTE_MS);
    give(&mut check, ScheduleCommand::Resume(name("s"))).expect("it is there");
    check.fire();
    assert_eq!(story(&check), ["1 ran", "2 ran after waiting"], "nothing is caught up");
    assert_eq!(schedule(&check).next_due_ms, Some(START_MS + 7 * HOUR_MS));
}

#[test]
fn a_put_replaces_and_keeps() {
    let mut check = Check::new();
    let give_put =
        |check: &mut Check, command| give(check, ScheduleCommand::Put(Box::new(command)));
    let said = give_put(&mut check, put(hourly(), Some(1)));
    let absent = ScheduleRejection::Version { name: "s".into(), actual: 0 };
    assert_eq!(said, Err(absent.into()));
    let said = give_put(&mut check, put(hourly(), Some(0))).expect("it is new");
    let ScheduleAnswer::Put { schedule: key, version: 1, next_due_ms } = said else {
        panic!("{said:?}")
    };
    assert_eq!(next_due_ms, Some(START_MS + HOUR_MS));
    let said = give_put(&mut check, put(hourly(), Some(0)));
    assert_eq!(said, Err(ScheduleRejection::Exists { name: "s".into() }.into()));
    check.pass(HOUR_MS);
    // Its time has come and it is put before the timer fires: it fires all the same.
    check.now_ms += HOUR_MS;
    let allow = ScheduleSettings { overlap: Overlap::Allow, ..hourly() };
    let said = give_put(&mut check, put(allow, Some(1))).expect("it has this version");
    let due_ms = Some(START_MS + 2 * HOUR_MS);
    assert_eq!(said, ScheduleAnswer::Put { schedule: key, version: 2, next_due_ms: due_ms });
    check.fire();
    assert_eq!(story(&check), ["1 ran", "2 ran"]);
    assert_eq!(schedule(&check).created_ms, START_MS);
    // New times count from now.
    let daily = ScheduleSettings { times: at("daily"), ..hourly() };
    let paused = PutSchedule { pause: PutPause::Paused("later".into()), ..put(daily, None) };
    give_put(&mut check, paused.clone()).expect("whatever it is");
    assert_eq!(schedule(&check).next_due_ms, None);
    give_put(&mut check, PutSchedule { pause: PutPause::AsItIs, ..paused.clone() })
        .expect("whatever it is");
    assert_eq!(schedule(&check).paused.as_deref(), Some("later"));
    give_put(&mut check, PutSchedule { pause: PutPause::Running, ..paused })
        .expect("whatever it is");
    assert_eq!(schedule(&check).next_due_ms, Some(START_MS + 16 * HOUR_MS));
    let delete = |expected_version| {
        let name = name("s");
        ScheduleCommand::Delete(DeleteSchedule { name, expected_version })
    };
    let stale = ScheduleRejection::Version { name: "s".into(), actual: 5 };
    assert_eq!(give(&mut check, delete(Some(4))), Err(stale.into()));
    give(&mut check, delete(Some(5))).expect("it has this version");
    assert_eq!(live_jobs(&check), 2, "its runs go on");
    check.pass(48 * HOUR_MS);
    assert_eq!(live_jobs(&check), 2);
}

#[test]
fn a_schedule_ends() {
    let mut check = Check::new();
    let mut times = at("hourly");
    times.starts_ms = Some(START_MS + 2 * HOUR_MS);
    times.ends_ms = Some(START_MS + 3 * HOUR_MS);
    set(&mut check, ScheduleSettings { times, overlap: Overlap::Allow, ..hourly() });
    check.pass(24 * HOUR_MS);
    assert_eq!(story(&check), ["2 ran", "3 ran"]);
    assert_eq!(schedule(&check).next_due_ms, None);
}

#[test]
fn a_run_that_cannot_be_started_is_remembered() {
    let mut check = Check::with_bounds(Bounds { live_jobs_max: 1, ..Bounds::default() });
    set(&mut check, ScheduleSettings { overlap: Overlap::Allow, ..hourly() });
    check.pass(2 * HOUR_MS);
    let full = "2 the limit of 1 live jobs of a partition is reached: try again later";
    assert_eq!(story(&check), ["1 ran", full]);
    assert_eq!(schedule(&check).failed, 1);
    let action = ScheduleAction::Workflow { request: "{}".into() };
    set(&mut check, ScheduleSettings { action, ..hourly() });
    assert_eq!(run_now(&mut check), ScheduleAnswer::Skipped(SkipReason::Running));
    let key = schedule(&check).live.expect("it is not over");
    check.complete(key).expect("nobody finished it");
    assert_eq!(run_now(&mut check), ScheduleAnswer::Failed);
}

#[test]
fn the_last_runs_are_remembered() {
    let mut check = Check::new();
    set(&mut check, ScheduleSettings { overlap: Overlap::Allow, ..hourly() });
    check.pass(30 * HOUR_MS);
    let runs = &schedule(&check).runs;
    assert_eq!(runs.len(), SCHEDULE_RUNS_MAX);
    assert_eq!(runs.back().map(|run| run.scheduled_for_ms), Some(START_MS + 30 * HOUR_MS));
    assert_eq!(schedule(&check).started, 30);
}

#[test]
fn a_unique_key_of_the_template_is_a_rule_of_its_own() {
    let mut check = Check::new();
    let options = JobOptions { unique_key: "one".into(), ..JobOptions::default() };
    let job = JobTemplate { options: Some(Box::new(options)), ..template() };
    let action = ScheduleAction::Job(Box::new(job));
    set(&mut check, ScheduleSettings { overlap: Overlap::Allow, action, ..hourly() });
    check.pass(2 * HOUR_MS);
    let key = schedule(&check).runs.front().map(|run| run.outcome.clone());
    let Some(RunOutcome::Started(key)) = key else { panic!("the first one ran") };
    assert_eq!(check.state_of(key), Some(JobState::Ready));
    assert_eq!(
        story(&check),
        ["1 ran".to_owned(), format!("2 the unique key is held by job {key}")]
    );
}

#[test]
fn schedules_are_listed_by_name() {
    let mut check = Check::new();
    for (tenant, name) in [("t", "b/1"), ("t", "a"), ("t", "b/2"), ("u", "b/3"), ("t", "c")] {
        let name = ScheduleName { tenant: tenant.into(), name: name.into() };
        let command = PutSchedule { name, ..put(hourly(), Some(0)) };
        give(&mut check, ScheduleCommand::Put(Box::new(command))).expect("it is new");
    }
    let list = |prefix: &str, after: &str| -> Vec<String> {
        let schedules = check.engine.state().schedules();
        schedules.list("t", prefix, after).map(|one| one.name.name.to_string()).collect()
    };
    assert_eq!(list("", ""), ["a", "b/1", "b/2", "c"]);
    assert_eq!(list("b/", ""), ["b/1", "b/2"]);
    assert_eq!(list("b/", "b/1"), ["b/2"]);
    assert_eq!(list("b/", "a"), ["b/1", "b/2"]);
    assert_eq!(list("", "b/2"), ["c"]);
    assert!(list("x", "").is_empty());
}

#[test]
fn what_is_refused() {
    let bounds = Bounds { schedules_max: 0, schedule_expressions_max: 1, ..Bounds::default() };
    let mut check = Check::with_bounds(bounds);
    let job = |job| {
        put(ScheduleSettings { action: ScheduleAction::Job(Box::new(job)), ..hourly() }, None)
    };
    let times = |times| put(ScheduleSettings { times, ..hourly() }, None);
    let mut two = at("hourly");
    two.expressions.extend(at("daily").expressions);
    let again = JobOptions { request_id: "r".into(), ..JobOptions::default() };
    let long: Arc<str> = "x".repeat(SCHEDULE_BYTES_MAX).into();
    let request = ScheduleAction::Workflow { request: "".into() };
    for (command, expected) in [
        (PutSchedule { name: name(""), ..put(hourly(), None) }, "schedule must not be empty"),
        (job(JobTemplate { queue: "".into(), ..template() }), "queue must not be empty"),
        (job(JobTemplate { retries: -1, ..template() }), "retries must be from 0 to 2147483647"),
        (
            job(JobTemplate { options: Some(Box::new(again)), ..template() }),
            "request id must be absent: the second run would be answered with the first",
        ),
        (put(ScheduleSettings { action: request, ..hourly() }, None), "request must not be empty"),
        (times(ScheduleTimes::default()), "a schedule needs at least one expression"),
        (times(two), "2 expressions of a schedule is over the limit of 1"),
        (
            times(at("now and then")),
            "'now and then' is not a calendar event: no time zone is named 'then'",
        ),
        (
            put(hourly(), None),
            "the limit of 0 schedules of a partition is reached: try again later",
        ),
    ] {
        let said = give(&mut check, ScheduleCommand::Put(Box::new(command))).expect_err(expected);
        assert_eq!(said.to_string(), expected);
    }
    let command = put(ScheduleSettings { spec: (*long).into(), ..hourly() }, None);
    let said = give(&mut check, ScheduleCommand::Put(Box::new(command)));
    assert!(matches!(said, Err(Rejection::TooLarge { bound: Bound::ScheduleBytes, .. })));
}
