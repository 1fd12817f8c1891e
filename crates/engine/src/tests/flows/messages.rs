//! Messages: who gets one, buffering, starts.

use super::*;

#[test]
fn a_catch_event_and_a_receive_task() {
    for (process, name) in [("message-catch", "scenario-catch"), ("receive-task", "scenario-receive")] {
        for (variables, key) in [
            (r#"{"key":"k"}"#, "k"),
            (r#"{"key":7}"#, "7"),
            (r#"{"key":1.5}"#, "1.5"),
            (r#"{"key":""}"#, ""),
        ] {
            let mut check =
                Check::with(&[process!("message-catch.bpmn"), process!("receive-task.bpmn")]);
            let instance = check.start(process, variables);
            check.publish(name, "other", 0, r#"{"n":1}"#);
            check.publish("other", key, 0, r#"{"n":2}"#);
            assert_eq!(check.tokens(instance), ["wait"]);
            check.publish(name, key, 0, r#"{"n":3}"#);
            let left = variables.replace('}', r#","n":3}"#);
            check.assert_completed(instance, &left);
        }
    }
}

#[test]
fn a_correlation_key_must_be_text_or_a_number() {
    for variables in ["{}", r#"{"key":null}"#, r#"{"key":true}"#, r#"{"key":[1]}"#] {
        let mut check = Check::with(&[process!("message-catch.bpmn")]);
        let instance = check.start("message-catch", variables);
        let incident = check.assert_incident("EXTRACT_VALUE_ERROR", "wait", "correlation key");
        check.set(instance, r#"{"key":"now"}"#, false);
        check.resolve(incident);
        check.publish("scenario-catch", "now", 0, "");
        assert!(check.completed(instance).is_some());
    }
}

#[test]
fn an_output_mapping_picks_from_the_payload() {
    let mut check = Check::with(&[process!("message-catch-mapping.bpmn")]);
    let instance = check.start("message-catch-mapping", r#"{"key":"mm"}"#);
    check.publish("scenario-catch-mapping", "mm", 0, r#"{"answer":{"text":"hi"},"other":1}"#);
    check.assert_completed(instance, r#"{"key":"mm","text":"hi"}"#);
}

/// Each process gets a message once: of two instances the older one, of two processes both.
#[test]
fn one_instance_of_each_process() {
    let other = include_str!("../../../../../tests/zeebe/processes/message-catch.bpmn")
        .replace("message-catch", "message-catch-two");
    let mut check = Check::with(&[process!("message-catch.bpmn"), ("two.bpmn", &other)]);
    let first = check.start("message-catch", r#"{"key":"same"}"#);
    let second = check.start("message-catch", r#"{"key":"same"}"#);
    let third = check.start("message-catch-two", r#"{"key":"same"}"#);
    check.publish("scenario-catch", "same", 0, "");
    let live = |check: &Check, key| check.engine.state().flow().element(key).is_some();
    assert!(!live(&check, first) && live(&check, second) && !live(&check, third));
    check.publish("scenario-catch", "same", 0, "");
    assert!(!live(&check, second));
}

#[test]
fn buffered_messages_come_in_order_and_each_once() {
    let mut check = Check::with(&[process!("message-catch.bpmn")]);
    check.publish("scenario-catch", "b", 60_000, r#"{"n":1}"#);
    check.publish("scenario-catch", "b", 60_000, r#"{"n":2}"#);
    check.publish("scenario-catch", "b", 0, r#"{"n":3}"#);
    for n in [1, 2] {
        let instance = check.start("message-catch", r#"{"key":"b"}"#);
        check.assert_completed(instance, &format!(r#"{{"key":"b","n":{n}}}"#));
    }
    let third = check.start("message-catch", r#"{"key":"b"}"#);
    assert_eq!(check.tokens(third), ["wait"], "no message is given to a process twice");
}

#[test]
fn a_message_is_over_when_its_time_is() {
    for (ttl_ms, wait_ms, reached) in [(1_000, 999, true), (1_000, 1_000, false), (0, 0, false)] {
        let mut check = Check::with(&[process!("message-catch.bpmn")]);
        check.publish("scenario-catch", "t", ttl_ms, "");
        check.now_ms += wait_ms;
        let instance = check.start("message-catch", r#"{"key":"t"}"#);
        assert_eq!(check.tokens(instance).is_empty(), reached, "{ttl_ms} {wait_ms}");
        check.pass(2_000);
        check.settle();
    }
}

#[test]
fn a_message_id_is_taken_once_while_it_is_buffered() {
    let mut check = Check::with(&[process!("message-catch.bpmn")]);
    let publish = |check: &mut Check, key: &str, id: &str, ttl_ms| {
        check.flow(FlowCommand::PublishMessage(PublishMessage {
            tenant: TENANT.into(),
            name: "m".into(),
            correlation_key: key.into(),
            message_id: id.into(),
            time_to_live_ms: ttl_ms,
            variables: Default::default(),
            must_correlate: false,
        }))
    };
    publish(&mut check, "a", "id", 1_000).expect("the first");
    assert!(publish(&mut check, "a", "id", 1_000).is_err(), "the same again");
    publish(&mut check, "b", "id", 1_000).expect("another key");
    publish(&mut check, "a", "", 1_000).expect("no id");
    check.pass(1_001);
    publish(&mut check, "a", "id", 0).expect("the first is over");
    publish(&mut check, "a", "id", 0).expect("one that is not buffered leaves no trace");
}

#[test]
fn a_message_must_reach_somebody_when_asked_to() {
    let mut check = Check::with(&[process!("message-catch.bpmn"), process!("message-start.bpmn")]);
    let correlate = |check: &mut Check, name: &str| {
        check.flow(FlowCommand::PublishMessage(PublishMessage {
            tenant: TENANT.into(),
            name: name.into(),
            correlation_key: "k".into(),
            message_id: "".into(),
            time_to_live_ms: 0,
            variables: Default::default(),
            must_correlate: true,
        }))
    };
    assert!(correlate(&mut check, "scenario-catch").is_err());
    let waiting = check.start("message-catch", r#"{"key":"k"}"#);
    match correlate(&mut check, "scenario-catch") {
        Ok(FlowAnswer::Correlated { instance, .. }) => assert_eq!(instance, waiting),
        other => panic!("{other:?}"),
    }
    assert!(matches!(correlate(&mut check, "scenario-start"), Ok(FlowAnswer::Correlated { .. })));
}

#[test]
fn instances_started_with_one_key_follow_one_another() {
    let mut check = Check::with(&[process!("message-start.bpmn")]);
    check.publish("scenario-start", "c1", 0, r#"{"n":1}"#);
    check.publish("scenario-start", "c1", 60_000, r#"{"n":2}"#);
    check.publish("scenario-start", "c1", 0, r#"{"n":3}"#);
    assert_eq!(check.do_one("message-start", ""), r#"{"n":1}"#);
    assert_eq!(check.do_one("message-start", ""), r#"{"n":2}"#);
    assert!(check.work("message-start", 1).is_empty(), "the third was not kept");
    // No key: no limit.
    check.publish("scenario-start", "", 0, r#"{"n":4}"#);
    check.publish("scenario-start", "", 0, r#"{"n":5}"#);
    assert_eq!(check.work("message-start", 5).len(), 2);
    // One that was ended frees the next too.
    check.publish("scenario-start", "d", 60_000, "");
    check.publish("scenario-start", "d", 60_000, "");
    let job = check.take_one("message-start");
    let element = check.engine.state().flow().element_of_job(job).expect("it lives");
    let instance = check.engine.state().flow().element(element).expect("it lives").instance;
    check.cancel_instance(instance).expect("it lives");
    check.take_one("message-start");
}

#[test]
fn a_message_that_somebody_waits_for_may_start_another_process_too() {
    let text = include_str!("../../../../../tests/zeebe/processes/message-catch.bpmn")
        .replace("name=\"scenario-catch\"", "name=\"scenario-start\"");
    let mut check = Check::with(&[process!("message-start.bpmn"), ("both.bpmn", &text)]);
    let instance = check.start("message-catch", r#"{"key":"both"}"#);
    check.publish("scenario-start", "both", 0, r#"{"n":1}"#);
    check.assert_completed(instance, r#"{"key":"both","n":1}"#);
    check.take_one("message-start");
}

#[test]
fn an_interrupting_boundary_event() {
    let mut check = Check::with(&[process!("message-boundary.bpmn")]);
    let instance = check.start("message-boundary", r#"{"key":"mb"}"#);
    let job = check.take_one("message-boundary");
    check.publish("scenario-stop", "mb", 0, r#"{"v":1}"#);
    assert_eq!(check.state_of(job), None);
    assert_eq!(check.do_one("message-boundary-stopped", ""), r#"{"key":"mb","v":1}"#);
    check.assert_path(
        instance,
        "message-boundary:activated start:activated start:completed slow:activated \
         slow:terminated stop:activated stop:completed stopped:activated stopped:completed \
         end2:activated end2:completed message-boundary:completed",
    );
}

#[test]
fn a_boundary_event_that_stays_open() {
    let mut check = Check::with(&[process!("message-boundary-open.bpmn")]);
    let instance = check.start("message-boundary-open", r#"{"key":"o1"}"#);
    check.publish("scenario-ping", "o1", 0, r#"{"i":0}"#);
    check.publish("scenario-ping", "o1", 0, r#"{"i":1}"#);
    let pinged = check.work("message-boundary-pinged", 5);
    assert_eq!(pinged.len(), 2);
    assert_eq!(check.seen_by(pinged[0]), r#"{"i":1,"key":"o1"}"#);
    check.do_one("message-boundary-open", "");
    for job in pinged {
        check.done(job, "");
    }
    check.assert_completed(instance, r#"{"i":1,"key":"o1"}"#);
    check.assert_path(
        instance,
        "message-boundary-open:activated start:activated start:completed slow:activated \
         ping:activated ping:completed pinged:activated ping:activated ping:completed \
         pinged:activated slow:completed end:activated end:completed pinged:completed \
         end2:activated end2:completed pinged:completed end2:activated end2:completed \
         message-boundary-open:completed",
    );
}

/// It takes one buffered message, once; and no other instance of the process gets that one.
#[test]
fn a_boundary_event_that_stays_open_takes_a_buffered_message() {
    let mut check = Check::with(&[process!("message-boundary-open.bpmn")]);
    check.publish("scenario-ping", "o", 60_000, "");
    check.start("message-boundary-open", r#"{"key":"o"}"#);
    assert_eq!(check.work("message-boundary-pinged", 5).len(), 1);
    let second = check.start("message-boundary-open", r#"{"key":"o"}"#);
    assert!(check.work("message-boundary-pinged", 5).is_empty());
    check.cancel_instance(second).expect("it lives");
    check.start("message-boundary-open", r#"{"key":"o"}"#);
    assert!(check.work("message-boundary-pinged", 5).is_empty());
}

/// A message that came just before its task was done is not lost.
#[test]
fn a_message_and_a_completion_in_one_breath() {
    let mut check = Check::with(&[process!("message-boundary-open.bpmn")]);
    let instance = check.start("message-boundary-open", r#"{"key":"o"}"#);
    let job = check.take_one("message-boundary-open");
    let element = check.engine.state().flow().element_of_job(job).expect("its element");
    // Many others have something to do first, so that the event waits its turn.
    for _ in 0..3 {
        check.publish_without_steps("scenario-ping", "o", element);
    }
    check.done(job, "");
    assert_eq!(check.work("message-boundary-pinged", 5).len(), 3);
    assert_eq!(check.tokens(instance), ["pinged", "pinged", "pinged"]);
}
