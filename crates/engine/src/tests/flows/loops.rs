//! Multi-instances.

use super::*;

const THREE: &str = r#"{"items":["x","y","z"]}"#;

#[test]
fn parallel() {
    let mut check = Check::with(&[process!("multi-parallel.bpmn")]);
    let instance = check.start("multi-parallel", THREE);
    let jobs = check.work("multi-parallel", 5);
    assert_eq!(jobs.len(), 3);
    for (job, (item, counter)) in jobs.iter().zip([("x", 1), ("y", 2), ("z", 3)]) {
        let expected = format!(
            r#"{{"item":"{item}","items":["x","y","z"],"loopCounter":{counter},"result":null,"results":[null,null,null]}}"#
        );
        assert_eq!(check.seen_by(*job), expected);
    }
    check.done(jobs[1], r#"{"result":"R1","extra":7}"#);
    check.done(jobs[0], "");
    check.done(jobs[2], r#"{"result":"R2"}"#);
    let seen = check.do_one("multi-after", "");
    assert_eq!(seen, r#"{"extra":7,"items":["x","y","z"],"results":[null,"R1","R2"]}"#);
    check.assert_completed(instance, &seen);
    check.assert_path(
        instance,
        "multi-parallel:activated start:activated start:completed each:activated each:activated \
         each:activated each:activated each:completed each:completed each:completed \
         each:completed after:activated after:completed end:activated end:completed \
         multi-parallel:completed",
    );
}

#[test]
fn sequential() {
    let mut check = Check::with(&[process!("multi-sequential.bpmn")]);
    let instance = check.start("multi-sequential", r#"{"items":["x","y"]}"#);
    let seen = check.do_one("multi-sequential", r#"{"result":1}"#);
    assert_eq!(
        seen,
        r#"{"item":"x","items":["x","y"],"loopCounter":1,"result":null,"results":[null,null]}"#
    );
    let seen = check.do_one("multi-sequential", "");
    assert_eq!(
        seen,
        r#"{"item":"y","items":["x","y"],"loopCounter":2,"result":null,"results":[1,null]}"#
    );
    assert_eq!(check.do_one("multi-after", ""), r#"{"items":["x","y"],"results":[1,null]}"#);
    check.assert_path(
        instance,
        "multi-sequential:activated start:activated start:completed each:activated each:activated \
         each:completed each:activated each:completed each:completed after:activated \
         after:completed end:activated end:completed multi-sequential:completed",
    );
}

#[test]
fn nothing_to_do_and_no_list() {
    for process in ["multi-parallel", "multi-sequential"] {
        let mut check =
            Check::with(&[process!("multi-parallel.bpmn"), process!("multi-sequential.bpmn")]);
        check.start(process, r#"{"items":[]}"#);
        assert_eq!(check.do_one("multi-after", ""), r#"{"items":[],"results":[]}"#);
    }
    for items in [r#"{"items":null}"#, "{}", r#"{"items":"abc"}"#, r#"{"items":{"a":1}}"#] {
        let mut check = Check::with(&[process!("multi-parallel.bpmn")]);
        let instance = check.start("multi-parallel", items);
        let incident = check.assert_incident("EXTRACT_VALUE_ERROR", "each", "");
        check.set(instance, r#"{"items":[1]}"#, false);
        check.resolve(incident);
        check.do_one("multi-parallel", "");
        check.do_one("multi-after", "");
        assert!(check.completed(instance).is_some());
    }
}

#[test]
fn a_completion_condition_ends_the_rest() {
    let mut check = Check::with(&[process!("multi-condition.bpmn")]);
    let instance = check.start("multi-condition", r#"{"items":[1,2,3,4]}"#);
    let jobs = check.work("multi-condition", 5);
    check.done(jobs[3], r#"{"result":"d"}"#);
    check.done(jobs[0], r#"{"result":"a"}"#);
    assert_eq!(check.state_of(jobs[1]), None);
    let seen = check.do_one("multi-after", "");
    assert_eq!(seen, r#"{"items":[1,2,3,4],"results":["a",null,null,"d"]}"#);
    check.assert_path(
        instance,
        "multi-condition:activated start:activated start:completed each:activated each:activated \
         each:activated each:activated each:activated each:completed each:completed \
         each:terminated each:terminated each:completed after:activated after:completed \
         end:activated end:completed multi-condition:completed",
    );
}

/// What the condition may look at: the four counts, and the results with the newest.
#[test]
fn a_completion_condition_over_counts_and_results() {
    for (condition, after) in [
        ("numberOfInstances = 4 and numberOfActiveInstances = 2 and numberOfCompletedInstances = 2 \
          and numberOfTerminatedInstances = 0", 2),
        ("some r in results satisfies r = \"stop\"", 3),
        ("result = \"stop\"", 3),
        ("loopCounter = 2", 2),
    ] {
        let text = include_str!("../../../../../tests/zeebe/processes/multi-condition.bpmn")
            .replace("=numberOfCompletedInstances &gt;= 2", &format!("={}", condition.replace('"', "&quot;")));
        assert!(!text.contains("&gt;= 2"), "the condition was replaced");
        let mut check = Check::with(&[("p.bpmn", &text)]);
        check.start("multi-condition", r#"{"items":[1,2,3,4]}"#);
        let jobs = check.work("multi-condition", 5);
        for (number, job) in jobs.iter().enumerate() {
            let result = if number == 2 { r#"{"result":"stop"}"# } else { r#"{"result":0}"# };
            check.done(*job, result);
            let is_over = !check.work("multi-after", 1).is_empty();
            assert_eq!(is_over, number + 1 == after, "{condition} after {number}");
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_boundary_message_ends_all() {
    let mut check = Check::with(&[process!("multi-boundary.bpmn")]);
    let instance = check.start("multi-boundary", r#"{"items":[1,2,3],"key":"mb1"}"#);
    let jobs = check.work("multi-boundary", 5);
    check.done(jobs[0], r#"{"result":1}"#);
    check.publish("scenario-multi-stop", "mb1", 0, r#"{"why":"x"}"#);
    let seen = check.do_one("multi-stopped", "");
    assert_eq!(seen, r#"{"items":[1,2,3],"key":"mb1","why":"x"}"#);
    assert_eq!(check.state_of(jobs[1]), None);
    check.assert_path(
        instance,
        "multi-boundary:activated start:activated start:completed each:activated each:activated \
         each:activated each:activated each:completed each:terminated each:terminated \
         each:terminated stop:activated stop:completed stopped:activated stopped:completed \
         e1:activated e1:completed multi-boundary:completed",
    );
}

#[test]
fn a_boundary_error_ends_all() {
    let mut check = Check::with(&[process!("multi-error.bpmn")]);
    let instance = check.start("multi-error", r#"{"items":[1,2,3]}"#);
    let jobs = check.work("multi-error", 5);
    check.done(jobs[0], r#"{"result":1}"#);
    check.throw(jobs[1], "BROKEN", "", r#"{"ev":1}"#);
    assert_eq!(check.do_one("multi-error-stopped", ""), r#"{"items":[1,2,3]}"#);
    check.assert_completed(instance, r#"{"items":[1,2,3]}"#);
    check.assert_path(
        instance,
        "multi-error:activated start:activated start:completed each:activated each:activated \
         each:activated each:activated each:completed each:terminated each:terminated \
         each:terminated broken:activated broken:completed stopped:activated stopped:completed \
         e1:activated e1:completed multi-error:completed",
    );
}

#[test]
fn sub_processes() {
    let mut check = Check::with(&[process!("multi-subprocess.bpmn")]);
    let instance = check.start("multi-subprocess", r#"{"items":["x","y"]}"#);
    let jobs = check.work("multi-subprocess", 5);
    check.done(jobs[0], r#"{"result":"r0"}"#);
    check.done(jobs[1], r#"{"result":"r1"}"#);
    check.assert_completed(instance, r#"{"items":["x","y"],"results":["r0","r1"]}"#);
    check.assert_path(
        instance,
        "multi-subprocess:activated start:activated start:completed each:activated each:activated \
         each:activated s2:activated s2:activated s2:completed s2:completed work:activated \
         work:activated work:completed e2:activated e2:completed each:completed work:completed \
         e2:activated e2:completed each:completed each:completed end:activated end:completed \
         multi-subprocess:completed",
    );
}

/// The real broker lets the children's copies of the loop's own variables clobber the results; we
/// leave those out.
#[test]
fn called_processes() {
    let mut check = Check::with(&[process!("call-child.bpmn"), process!("multi-call.bpmn")]);
    let instance = check.start("multi-call", r#"{"items":["x","y"]}"#);
    let jobs = check.work("call-work", 5);
    assert_eq!(
        check.seen_by(jobs[0]),
        r#"{"item":"x","items":["x","y"],"loopCounter":1,"made":null,"results":[null,null]}"#
    );
    check.done(jobs[0], r#"{"made":"m0"}"#);
    check.done(jobs[1], r#"{"made":"m1"}"#);
    check.assert_completed(instance, r#"{"items":["x","y"],"results":["m0","m1"]}"#);
}

#[test]
fn cancelled_in_the_middle() {
    for process in ["multi-parallel", "multi-sequential", "multi-subprocess", "multi-call"] {
        let mut check = Check::with(&[
            process!("multi-parallel.bpmn"),
            process!("multi-sequential.bpmn"),
            process!("multi-subprocess.bpmn"),
            process!("multi-call.bpmn"),
            process!("call-child.bpmn"),
        ]);
        let instance = check.start(process, THREE);
        check.cancel_instance(instance).expect("it lives");
        assert_eq!(check.engine.state().flow().live_elements(), 0, "{process}");
        assert_eq!(check.engine.state().jobs().iter().count(), 0, "{process}");
    }
}
