//! Call activities: variables there and back, ends, depth.

use super::*;

#[test]
fn all_variables_there_and_back() {
    let mut check = Check::with(&[process!("call-child.bpmn"), process!("call-activity.bpmn")]);
    let instance = check.start("call-activity", r#"{"a":1,"o":{"x":1}}"#);
    let seen = check.do_one("call-work", r#"{"a":2,"made":5}"#);
    assert_eq!(seen, r#"{"a":1,"o":{"x":1}}"#);
    let seen = check.do_one("call-after", "");
    assert_eq!(seen, r#"{"a":2,"made":5,"o":{"x":1}}"#);
    check.assert_completed(instance, &seen);
    check.assert_path(
        instance,
        "call-activity:activated start:activated start:completed child:activated child:completed \
         after:activated after:completed end:activated end:completed call-activity:completed",
    );
}

#[test]
fn only_what_mappings_say() {
    let mut check =
        Check::with(&[process!("call-child.bpmn"), process!("call-no-propagation.bpmn")]);
    let instance = check.start("call-no-propagation", r#"{"a":1,"z":2}"#);
    assert_eq!(check.do_one("call-work", r#"{"made":5,"other":6}"#), r#"{"given":1}"#);
    assert_eq!(check.do_one("call-after", ""), r#"{"a":1,"taken":5,"z":2}"#);
    check.assert_completed(instance, r#"{"a":1,"taken":5,"z":2}"#);
}

#[test]
fn nothing_back() {
    let mut check =
        Check::with(&[process!("call-child.bpmn"), process!("call-child-off-no-output.bpmn")]);
    let instance = check.start("call-child-off-no-output", r#"{"a":1}"#);
    assert_eq!(check.do_one("call-work", r#"{"a":2,"made":5}"#), r#"{"a":1}"#);
    assert_eq!(check.do_one("call-after", ""), r#"{"a":1}"#);
    check.assert_completed(instance, r#"{"a":1}"#);
}

#[test]
fn a_process_that_is_not_there_yet() {
    let mut check = Check::with(&[process!("call-unknown.bpmn")]);
    let instance = check.start("call-unknown", "");
    let incident = check.assert_incident(
        "CALLED_ELEMENT_ERROR",
        "child",
        "Expected process with BPMN process id 'no-such-process' to be deployed, but not found.",
    );
    let text = process!("no-task.bpmn").1.replace("\"no-task\"", "\"no-such-process\"");
    check.deploy(&[("late.bpmn", &text)]).expect("it is sound");
    check.resolve(incident);
    check.assert_completed(instance, "{}");
}

/// A called instance is ended with its caller, never alone.
#[test]
fn cancelled() {
    let mut check = Check::with(&[process!("call-child.bpmn"), process!("call-activity.bpmn")]);
    let instance = check.start("call-activity", "");
    let job = check.take_one("call-work");
    let element = check.engine.state().flow().element_of_job(job).expect("its element");
    let child = check.engine.state().flow().element(element).expect("it lives").instance;
    assert!(check.cancel_instance(child).is_err());
    check.cancel_instance(instance).expect("it is the outermost");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
    assert_eq!(check.state_of(job), None);
    assert_eq!(check.completed(instance), None, "a cancelled instance has no result");
}

/// The newest version when it is called, not when the caller was deployed.
#[test]
fn the_newest_version() {
    let mut check = Check::with(&[process!("call-child.bpmn"), process!("call-activity.bpmn")]);
    check.start("call-activity", "");
    let text = process!("call-child.bpmn").1.replace("call-work", "call-work-two");
    check.deploy(&[("call-child.bpmn", &text)]).expect("it is sound");
    check.start("call-activity", "");
    check.do_one("call-work", "");
    check.do_one("call-work-two", "");
}
