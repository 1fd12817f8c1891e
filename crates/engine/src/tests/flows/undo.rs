//! Compensation.

use super::*;

#[test]
fn the_throw_event_waits_for_the_handler() {
    let mut check = Check::with(&[process!("compensation.bpmn")]);
    let instance = check.start("compensation", "");
    check.do_one("compensation-book", r#"{"b":1}"#);
    assert_eq!(check.tokens(instance), ["undo_all", "undo"]);
    assert_eq!(check.do_one("compensation-undo", r#"{"u":1}"#), r#"{"b":1}"#);
    check.assert_completed(instance, r#"{"b":1,"u":1}"#);
    check.assert_path(
        instance,
        "compensation:activated start:activated start:completed book:activated book:completed \
         undo_all:activated undo_event:activated undo_event:completed undo:activated \
         undo:completed undo_all:completed end:activated end:completed compensation:completed",
    );
}

/// A task with a compensation event and its handler.
fn undoable(id: &str) -> String {
    format!(
        "{}<boundaryEvent id='{id}_event' attachedToRef='{id}'><compensateEventDefinition/></boundaryEvent>\
         <serviceTask id='undo_{id}' isForCompensation='true'><extensionElements>\
         <z:taskDefinition type='undo_{id}'/></extensionElements></serviceTask>\
         <association id='{id}_assoc' sourceRef='{id}_event' targetRef='undo_{id}'/>",
        task(id)
    )
}

#[test]
fn only_what_was_completed_is_undone_and_only_once() {
    let text = document(
        "P",
        "",
        &format!(
            "<startEvent id='s'/><parallelGateway id='f'/>{}{}{}
             <intermediateThrowEvent id='back'><compensateEventDefinition/></intermediateThrowEvent>
             <endEvent id='again'><compensateEventDefinition/></endEvent><endEvent id='e'/>
             s -> a
             a -> f
             f -> b
             f -> c
             c -> back
             back -> again
             b -> e",
            undoable("a"),
            undoable("b"),
            task("c")
        ),
    );
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("P", "");
    check.do_one("a", "");
    check.do_one("c", "");
    assert!(check.work("undo_b", 1).is_empty(), "b still runs");
    check.do_one("undo_a", "");
    assert!(check.work("undo_a", 1).is_empty());
    assert_eq!(check.tokens(instance), ["b"]);
    check.do_one("b", "");
    check.assert_completed(instance, "{}");
}

/// What was completed in a sub-process can be undone from outside; one activity alone, too.
#[test]
fn a_sub_process_and_one_activity_of_several() {
    for (reference, undone) in [
        ("", &["undo_a", "undo_b", "undo_c"][..]),
        (" activityRef='c'", &["undo_c"]),
        (" activityRef='sub'", &["undo_a", "undo_b"]),
    ] {
        let text = document(
            "P",
            "",
            &format!(
                "<startEvent id='s'/><subProcess id='sub'><startEvent id='s2'/>{}{}<endEvent id='e2'/>
                 s2 -> a
                 a -> b
                 b -> e2
                 </subProcess>{}
                 <intermediateThrowEvent id='back'><compensateEventDefinition{reference}/></intermediateThrowEvent><endEvent id='e'/>
                 s -> sub
                 sub -> c
                 c -> back
                 back -> e",
                undoable("a"),
                undoable("b"),
                undoable("c")
            ),
        );
        let mut check = Check::with(&[("p.bpmn", &text)]);
        let instance = check.start("P", "");
        for job in ["a", "b", "c"] {
            check.do_one(job, "");
        }
        for job in undone {
            assert!(check.engine.state().flow().element(instance).is_some());
            check.do_one(job, "");
        }
        check.assert_completed(instance, "{}");
    }
}

/// An error event sub-process may undo what its scope had done.
#[test]
fn from_an_event_sub_process() {
    let text = document(
        "P",
        "<error id='E' errorCode='X'/>",
        &format!(
            "<startEvent id='s'/>{}{}<endEvent id='e'/>
             <subProcess id='on_error' triggeredByEvent='true'>
             <startEvent id='s2'><errorEventDefinition errorRef='E'/></startEvent>
             <endEvent id='back'><compensateEventDefinition/></endEvent>
             s2 -> back
             </subProcess>
             s -> a
             a -> work
             work -> e",
            undoable("a"),
            task("work")
        ),
    );
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("P", "");
    check.do_one("a", "");
    let job = check.take_one("work");
    check.throw(job, "X", "", "");
    check.do_one("undo_a", "");
    check.assert_completed(instance, "{}");
}

#[test]
fn nothing_to_undo_and_a_cancelled_undoing() {
    let text = process!("compensation.bpmn").1;
    let mut check = Check::with(&[("p.bpmn", text)]);
    let instance = check.start("compensation", "");
    check.do_one("compensation-book", "");
    check.cancel_instance(instance).expect("it lives");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
    let text = document(
        "P",
        "",
        "<startEvent id='s'/><endEvent id='e'><compensateEventDefinition/></endEvent>
         s -> e",
    );
    check.deploy(&[("p.bpmn", &text)]).expect("it is sound");
    let instance = check.start("P", "");
    check.assert_completed(instance, "{}");
}
