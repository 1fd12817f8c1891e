//! Event sub-processes, event-based gateways, execution listeners.

use super::*;

#[test]
fn an_event_sub_process_beside_the_rest() {
    let mut check = Check::with(&[process!("event-subprocess-message.bpmn")]);
    let instance = check.start("event-subprocess-message", r#"{"key":"e1"}"#);
    check.publish("scenario-esp", "e1", 0, r#"{"p":1}"#);
    check.publish("scenario-esp", "e1", 0, r#"{"p":2}"#);
    let notes = check.work("esp-note", 5);
    assert_eq!(notes.len(), 2);
    assert_eq!(check.seen_by(notes[0]), r#"{"key":"e1","p":2}"#);
    check.do_one("esp-message", r#"{"done":1}"#);
    assert_eq!(check.tokens(instance), ["on_message", "note", "on_message", "note"]);
    check.done(notes[0], r#"{"n":1}"#);
    check.done(notes[1], r#"{"n":2}"#);
    check.assert_completed(instance, r#"{"done":1,"key":"e1","n":2,"p":2}"#);
    check.assert_path(
        instance,
        "event-subprocess-message:activated start:activated start:completed work:activated \
         on_message:activated s2:activated s2:completed note:activated on_message:activated \
         s2:activated s2:completed note:activated work:completed end:activated end:completed \
         note:completed e2:activated e2:completed on_message:completed note:completed e2:activated \
         e2:completed on_message:completed event-subprocess-message:completed",
    );
}

#[test]
fn an_event_sub_process_instead_of_the_rest() {
    let mut check = Check::with(&[process!("event-subprocess-timer.bpmn")]);
    let instance = check.start("event-subprocess-timer", r#"{"a":1}"#);
    let job = check.take_one("esp-timer");
    check.pass(499);
    assert_eq!(check.tokens(instance), ["work"]);
    check.pass(1);
    check.settle();
    assert_eq!(check.state_of(job), None);
    assert_eq!(check.do_one("esp-late", r#"{"z":1}"#), r#"{"a":1}"#);
    check.assert_completed(instance, r#"{"a":1,"z":1}"#);
    check.assert_path(
        instance,
        "event-subprocess-timer:activated start:activated start:completed work:activated \
         work:terminated on_time:activated s2:activated s2:completed late:activated late:completed \
         e2:activated e2:completed on_time:completed event-subprocess-timer:completed",
    );
}

/// Tokens that wait at a join are gone with the rest of the scope.
#[test]
fn an_interrupting_event_sub_process_forgets_parked_tokens() {
    let text = document(
        "P",
        "<signal id='S' name='stop'/>",
        &format!(
            "<startEvent id='s'/><parallelGateway id='f'/>{}{}<parallelGateway id='j'/><endEvent id='e'/>
             <subProcess id='sub' triggeredByEvent='true'>
             <startEvent id='s2'><signalEventDefinition signalRef='S'/></startEvent><endEvent id='e2'/>
             s2 -> e2
             </subProcess>
             s -> f
             f -> a
             f -> b
             a -> j
             b -> j
             j -> e",
            task("a"),
            task("b")
        ),
    );
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("P", "");
    check.do_one("a", "");
    check.signal("stop");
    check.settle();
    check.assert_completed(instance, "{}");
}

#[test]
fn an_event_based_gateway_takes_the_first_event() {
    for by_message in [true, false] {
        let mut check = Check::with(&[process!("event-gateway.bpmn")]);
        let instance = check.start("event-gateway", r#"{"key":"g","limit":"PT0.5S"}"#);
        let (event, end, left) = if by_message {
            check.publish("event-gateway-told", "g", 0, r#"{"m":1}"#);
            ("told", "by_message", r#"{"key":"g","limit":"PT0.5S","m":1}"#)
        } else {
            check.pass(500);
            check.settle();
            ("late", "by_timer", r#"{"key":"g","limit":"PT0.5S"}"#)
        };
        check.assert_completed(instance, left);
        check.assert_path(
            instance,
            &format!(
                "event-gateway:activated start:activated start:completed wait:activated \
                 wait:completed {event}:activated {event}:completed {end}:activated \
                 {end}:completed event-gateway:completed"
            ),
        );
        assert_eq!(check.engine.state().flow().next_due_ms(), None, "the other one is closed");
    }
}

#[test]
fn an_event_based_gateway_takes_a_buffered_message() {
    let mut check = Check::with(&[process!("event-gateway.bpmn")]);
    check.publish("event-gateway-told", "g", 60_000, r#"{"m":1}"#);
    let instance = check.start("event-gateway", r#"{"key":"g","limit":"PT1S"}"#);
    check.assert_completed(instance, r#"{"key":"g","limit":"PT1S","m":1}"#);
}

#[test]
fn listeners_of_a_task() {
    let mut check = Check::with(&[process!("execution-listeners.bpmn")]);
    let instance = check.start("execution-listeners", r#"{"a":1}"#);
    for (job, retries, brings, sees) in [
        ("listen-start-1", 3, r#"{"s1":1}"#, r#"{"a":1,"localA":1}"#),
        ("listen-start-2", 2, r#"{"s2":2}"#, r#"{"a":1,"localA":1,"s1":1}"#),
        ("listen-work", 3, r#"{"made":3,"other":4}"#, r#"{"a":1,"localA":1,"s1":1,"s2":2}"#),
        (
            "listen-end-1",
            3,
            r#"{"e1":5}"#,
            r#"{"a":1,"kept":3,"localA":1,"made":3,"other":4,"s1":1,"s2":2}"#,
        ),
        (
            "listen-end-2",
            3,
            r#"{"made":99}"#,
            r#"{"a":1,"e1":5,"kept":3,"localA":1,"made":3,"other":4,"s1":1,"s2":2}"#,
        ),
    ] {
        let key = check.take_one(job);
        assert_eq!(check.job(key).retries, retries, "{job}");
        assert_eq!(check.seen_by(key), sees, "{job}");
        check.done(key, brings);
    }
    check.assert_completed(instance, r#"{"a":1,"e1":5,"kept":3,"made":99}"#);
    check.assert_path(
        instance,
        "execution-listeners:activated start:activated start:completed work:activated \
         work:completed end:activated end:completed execution-listeners:completed",
    );
}

#[test]
fn a_listener_throws_nothing_and_may_run_out_of_retries() {
    let mut check = Check::with(&[process!("execution-listeners.bpmn")]);
    let instance = check.start("execution-listeners", r#"{"a":1}"#);
    let job = check.take_one("listen-start-1");
    let throw = ThrowError {
        lease: Lease { key: job, activation: None },
        code: "X".into(),
        message: "".into(),
        variables: Default::default(),
    };
    assert!(check.give(Command::ThrowError(throw)).is_err());
    check.fail_with(job, 0, "");
    let incident = check.job(job).extra().and_then(|extra| extra.incident.clone());
    check.update_retries(job, 1);
    check.resolve(incident.expect("no retry is left").key);
    check.do_one("listen-start-1", "");
    check.assert_path(instance, "execution-listeners:activated start:activated start:completed");
}

#[test]
fn listeners_of_a_process() {
    let mut check = Check::with(&[process!("execution-listeners-process.bpmn")]);
    let instance = check.start("execution-listeners-process", r#"{"a":1}"#);
    assert_eq!(check.do_one("listen-process-start", r#"{"s1":1}"#), r#"{"a":1}"#);
    assert_eq!(check.do_one("listen-process-work", r#"{"made":3}"#), r#"{"a":1,"s1":1}"#);
    let seen = check.do_one("listen-process-end", r#"{"e1":5}"#);
    assert_eq!(seen, r#"{"a":1,"made":3,"s1":1}"#);
    check.assert_completed(instance, r#"{"a":1,"e1":5,"made":3,"s1":1}"#);
}

/// The surroundings of a listener's job end: so does the job.
#[test]
fn cancelled_during_a_listener() {
    for so_far in 0..5 {
        let mut check = Check::with(&[process!("execution-listeners.bpmn")]);
        let instance = check.start("execution-listeners", r#"{"a":1}"#);
        let jobs = ["listen-start-1", "listen-start-2", "listen-work", "listen-end-1"];
        for job in jobs.iter().take(so_far) {
            check.do_one(job, "");
        }
        check.cancel_instance(instance).expect("it lives");
        assert_eq!(check.engine.state().flow().live_elements(), 0);
        assert_eq!(check.engine.state().jobs().iter().count(), 0);
    }
}
