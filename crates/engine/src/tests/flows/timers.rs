//! Timers: catch and boundary events, cycles, starts of processes.

use super::*;
use crate::verb::check::START_MS;

#[test]
fn catch_events() {
    // 2027-01-15T08:00:00Z is where the clock of the tests begins.
    for (process, variables, ms) in [
        ("timer-catch", "{}", 500),
        ("timer-feel", r#"{"wait":"PT0.2S"}"#, 200),
        ("timer-date", r#"{"at":"2027-01-15T08:00:01Z"}"#, 1_000),
        ("timer-date", r#"{"at":"2020-01-01T00:00:00Z"}"#, 0),
    ] {
        let mut check = Check::with(&[
            process!("timer-catch.bpmn"),
            process!("timer-feel.bpmn"),
            process!("timer-date.bpmn"),
        ]);
        let instance = check.start(process, variables);
        if ms > 0 {
            check.pass(ms - 1);
            check.settle();
            assert_eq!(check.tokens(instance), ["pause"], "{process}");
        }
        check.pass(1);
        check.settle();
        check.assert_completed(instance, variables);
    }
}

#[test]
fn what_is_no_time() {
    for (process, variables) in [
        ("timer-feel", r#"{"wait":"nonsense"}"#),
        ("timer-feel", "{}"),
        ("timer-date", r#"{"at":"x"}"#),
    ] {
        let mut check = Check::with(&[process!("timer-feel.bpmn"), process!("timer-date.bpmn")]);
        let instance = check.start(process, variables);
        let incident = check.assert_incident("EXTRACT_VALUE_ERROR", "pause", "timer");
        let mended = r#"{"wait":"PT1S","at":"2020-01-01T00:00:00Z"}"#;
        check.set(instance, mended, false);
        check.resolve(incident);
        check.pass(1_000);
        check.settle();
        assert!(check.completed(instance).is_some(), "{process}");
    }
}

#[test]
fn an_interrupting_boundary_event() {
    let mut check = Check::with(&[process!("timer-boundary.bpmn")]);
    let instance = check.start("timer-boundary", "");
    let job = check.take_one("timer-boundary");
    check.pass(500);
    check.settle();
    assert_eq!(check.state_of(job), None);
    check.assert_completed(instance, "{}");
    let second = check.start("timer-boundary", "");
    check.do_one("timer-boundary", "");
    check.assert_completed(second, "{}");
    assert_eq!(check.engine.next_due_ms().filter(|due_ms| *due_ms < START_MS + 60_000), None);
}

/// Three times, each counted from when the one before was due, not from when it was late.
#[test]
fn a_cycle_of_a_boundary_event() {
    for late_ms in [0, 700] {
        let mut check = Check::with(&[process!("timer-boundary-cycle.bpmn")]);
        let instance = check.start("timer-boundary-cycle", "");
        for number in 1..=3 {
            let due_ms = START_MS + number * 1_000;
            assert_eq!(check.engine.state().flow().next_due_ms(), Some(due_ms));
            check.now_ms = due_ms - 1;
            check.fire();
            check.settle();
            assert!(check.work("timer-remind", 1).is_empty());
            check.now_ms = due_ms + late_ms;
            check.fire();
            check.settle();
            check.do_one("timer-remind", "");
        }
        assert_eq!(check.engine.state().flow().next_due_ms(), None);
        check.do_one("timer-cycle", "");
        check.assert_completed(instance, "{}");
        let once = "tick:activated tick:completed remind:activated remind:completed \
                    reminded:activated reminded:completed";
        check.assert_path(
            instance,
            &format!(
                "timer-boundary-cycle:activated start:activated start:completed slow:activated \
                 {once} {once} {once} slow:completed end:activated end:completed \
                 timer-boundary-cycle:completed"
            ),
        );
    }
}

#[test]
fn a_cycle_without_end_is_over_with_its_task() {
    let text = include_str!("../../../../../tests/zeebe/processes/timer-boundary-cycle.bpmn")
        .replace("R3/PT1S", "R/PT1S");
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("timer-boundary-cycle", "");
    check.pass(10_500);
    check.settle();
    let reminders = check.work("timer-remind", 20);
    assert_eq!(reminders.len(), 10);
    check.do_one("timer-cycle", "");
    assert_eq!(check.engine.state().flow().next_due_ms(), None);
    for job in reminders {
        check.done(job, "");
    }
    check.assert_completed(instance, "{}");
}

#[test]
fn a_start_twice() {
    let mut check = Check::with(&[process!("timer-start.bpmn")]);
    for expected in [0, 1, 2, 2] {
        assert_eq!(check.engine.state().flow().live_elements() / 2, expected);
        check.pass(1_000);
        check.settle();
    }
}

/// The newest version's timers run, from when it was deployed; after its deletion those of the one
/// before begin anew.
#[test]
fn a_start_across_versions() {
    let mut check = Check::new();
    let text = process!("timer-start.bpmn").1;
    check.deploy(&[("a.bpmn", &text.replace("R2/PT1S", "R/PT10S"))]).expect("it is sound");
    check.pass(9_000);
    let second = check.deployed(&[("a.bpmn", &text.replace("R2/PT1S", "R/PT20S"))]);
    check.pass(19_000);
    check.settle();
    assert_eq!(check.work("timer-start", 9).len(), 0);
    check.pass(1_000);
    check.settle();
    let jobs = check.work("timer-start", 9);
    assert_eq!(jobs.len(), 1, "the new version alone");
    check.done(jobs[0], "");
    check.delete(second.definitions[0].key).expect("nothing runs by it");
    check.pass(10_000);
    check.settle();
    assert_eq!(check.work("timer-start", 9).len(), 1, "the old version again");
}
