//! Errors and escalations: who catches them, what is ended, where variables go.

use super::*;

const PROCESS: &str =
    "error-boundary:activated start:activated start:completed work:activated work:terminated";

#[test]
fn a_boundary_event_for_the_code_before_one_for_all() {
    for (code, event, fix, end) in [
        ("BROKEN", "broken", "fix", "e1"),
        ("SOMETHING", "anything", "fix_any", "e2"),
        ("", "anything", "fix_any", "e2"),
    ] {
        let mut check = Check::with(&[process!("error-boundary.bpmn")]);
        let instance = check.start("error-boundary", r#"{"a":1}"#);
        let job = check.take_one("error-boundary");
        check.throw(job, code, "m", r#"{"ev":1}"#);
        assert_eq!(check.state_of(job), None);
        let seen = check.do_one(if fix == "fix" { "error-fix" } else { "error-fix-any" }, "");
        assert_eq!(seen, r#"{"a":1}"#, "what came with the error stays at the event");
        check.assert_completed(instance, r#"{"a":1}"#);
        check.assert_path(
            instance,
            &format!(
                "{PROCESS} {event}:activated {event}:completed {fix}:activated {fix}:completed \
                 {end}:activated {end}:completed error-boundary:completed"
            ),
        );
    }
}

#[test]
fn an_output_mapping_of_the_event_picks_from_what_came() {
    let text = document(
        "P",
        "<error id='E' errorCode='BROKEN'/>",
        &format!(
            "<startEvent id='s'/>{}
             <boundaryEvent id='b' attachedToRef='work'><extensionElements><z:ioMapping>
             <z:output source='=ev' target='seen'/></z:ioMapping></extensionElements>
             <errorEventDefinition errorRef='E'/></boundaryEvent><endEvent id='e'/><endEvent id='f'/>
             s -> work
             work -> e
             b -> f",
            task("work")
        ),
    );
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("P", r#"{"a":1}"#);
    let job = check.take_one("work");
    check.throw(job, "BROKEN", "", r#"{"ev":1,"a":2}"#);
    check.assert_completed(instance, r#"{"a":1,"seen":1}"#);
}

#[test]
fn an_error_end_event() {
    let mut check = Check::with(&[process!("error-end.bpmn")]);
    let instance = check.start("error-end", "");
    check.do_one("error-end-fix", "");
    check.assert_completed(instance, "{}");
    check.assert_path(
        instance,
        "error-end:activated start:activated start:completed inner:activated s2:activated \
         s2:completed fail:activated fail:terminated inner:terminated broken:activated \
         broken:completed fix:activated fix:completed e1:activated e1:completed \
         error-end:completed",
    );
}

#[test]
fn an_error_end_event_that_nothing_catches() {
    let text = include_str!("../../../../../tests/zeebe/processes/error-end.bpmn")
        .replace("<bpmn:error id=\"e\"", "<bpmn:error id=\"x\" errorCode=\"ELSE\"/><bpmn:error id=\"e\"");
    let at = text.find("attachedToRef").expect("a boundary event");
    let (before, behind) = text.split_at(at);
    let text = format!("{before}{}", behind.replacen("errorRef=\"e\"", "errorRef=\"x\"", 1));
    let mut check = Check::with(&[("p.bpmn", &text)]);
    check.start("error-end", "");
    check.assert_incident(
        "UNHANDLED_ERROR_EVENT",
        "fail",
        "Expected to throw an error event with the code 'BROKEN', but it was not caught. \
         Available error events are [ELSE]",
    );
}

#[test]
fn an_error_event_sub_process() {
    let mut check = Check::with(&[process!("error-event-subprocess.bpmn")]);
    let instance = check.start("error-event-subprocess", "");
    let job = check.take_one("error-esp");
    check.throw(job, "BROKEN", "msg", r#"{"ev":1}"#);
    let seen = check.do_one("error-esp-fix", r#"{"fx":2}"#);
    assert_eq!(seen, r#"{"ev":1}"#);
    check.assert_completed(instance, r#"{"ev":1,"fx":2}"#);
    check.assert_path(
        instance,
        "error-event-subprocess:activated start:activated start:completed work:activated \
         work:terminated on_error:activated s2:activated s2:completed fix:activated fix:completed \
         e2:activated e2:completed on_error:completed error-event-subprocess:completed",
    );
}

#[test]
fn an_error_in_a_called_process() {
    let mut check =
        Check::with(&[process!("error-call-child.bpmn"), process!("error-call-parent.bpmn")]);
    let instance = check.start("error-call-parent", r#"{"a":1}"#);
    let job = check.take_one("error-call-work");
    let child = check.engine.state().flow().element_of_job(job).expect("an element");
    let child = check.engine.state().flow().element(child).expect("it lives").instance;
    check.throw(job, "CHILD-BROKEN", "", r#"{"ev":1}"#);
    let seen = check.do_one("error-call-fix", "");
    assert_eq!(seen, r#"{"a":1}"#);
    check.assert_completed(instance, r#"{"a":1}"#);
    check.assert_path(
        instance,
        "error-call-parent:activated start:activated start:completed child:activated \
         child:terminated broken:activated broken:completed fix:activated fix:completed \
         e1:activated e1:completed error-call-parent:completed",
    );
    check.assert_path(
        child,
        "error-call-child:activated start:activated start:completed work:activated \
         work:terminated error-call-child:terminated",
    );
}

/// The job waits for a person, and goes on when told to.
#[test]
fn an_error_of_a_job_that_nothing_catches() {
    let mut check =
        Check::with(&[process!("error-call-child.bpmn"), process!("error-call-parent.bpmn")]);
    let instance = check.start("error-call-parent", "");
    let job = check.take_one("error-call-work");
    check.throw(job, "OTHER", "m", "");
    let incident = check.job(job).extra().and_then(|extra| extra.incident.clone());
    let incident = incident.expect("it waits for a person");
    assert_eq!(
        &*incident.message,
        "Expected to throw an error event with the code 'OTHER' with message 'm', but it was not \
         caught. Available error events are [CHILD-BROKEN]"
    );
    check.resolve(incident.key);
    check.do_one("error-call-work", "");
    check.assert_completed(instance, "{}");
}

#[test]
fn an_escalation_goes_on_beside() {
    let mut check = Check::with(&[process!("escalation-boundary-open.bpmn")]);
    let instance = check.start("escalation-boundary-open", r#"{"a":1}"#);
    assert_eq!(check.do_one("escalation-react", ""), r#"{"a":1}"#);
    assert_eq!(check.do_one("escalation-work", ""), r#"{"a":1}"#);
    check.assert_completed(instance, r#"{"a":1}"#);
    let path = check.path(instance);
    assert!(path.contains("shout:activated") && path.contains("shout:completed"), "{path}");
    assert!(path.contains("heard:activated heard:completed"), "{path}");
}

#[test]
fn an_escalation_that_interrupts() {
    let mut check = Check::with(&[process!("escalation-boundary.bpmn")]);
    let instance = check.start("escalation-boundary", "");
    check.do_one("escalation-int-work", r#"{"z":1}"#);
    assert_eq!(check.do_one("escalation-int-react", ""), r#"{"z":1}"#);
    check.assert_completed(instance, r#"{"z":1}"#);
    check.assert_path(
        instance,
        "escalation-boundary:activated start:activated start:completed inner:activated \
         s2:activated s2:completed work:activated work:completed shout:activated shout:terminated \
         inner:terminated heard:activated heard:completed react:activated react:completed \
         e1:activated e1:completed escalation-boundary:completed",
    );
}

#[test]
fn an_escalation_that_nobody_hears() {
    let mut check = Check::with(&[process!("escalation-uncaught.bpmn")]);
    let instance = check.start("escalation-uncaught", "");
    check.assert_no_incident();
    check.assert_completed(instance, "{}");
}
