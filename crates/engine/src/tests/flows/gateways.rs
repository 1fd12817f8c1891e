//! Gateways: exclusive, inclusive, parallel; their orders, joins and loops.

use super::*;

#[test]
fn a_process_without_a_task() {
    let mut check = Check::with(&[process!("no-task.bpmn")]);
    let instance = check.start("no-task", r#"{"a":1}"#);
    check.assert_completed(instance, r#"{"a":1}"#);
    check.assert_path(
        instance,
        "no-task:activated start:activated start:completed end:activated end:completed \
         no-task:completed",
    );
}

#[test]
fn one_task() {
    let mut check = Check::with(&[process!("one-task.bpmn")]);
    let instance = check.start("one-task", r#"{"a":1}"#);
    let seen = check.do_one("one-task", r#"{"b":2}"#);
    assert_eq!(seen, r#"{"a":1}"#);
    check.assert_completed(instance, r#"{"a":1,"b":2}"#);
    assert_eq!(check.engine.state().flow().live_elements(), 0);
}

#[test]
fn ten_tasks_pools_lanes_and_what_passes_at_once() {
    let mut check = Check::with(&[
        process!("ten-tasks.bpmn"),
        process!("ornaments.bpmn"),
        process!("pass-through.bpmn"),
    ]);
    let instance = check.start("ten-tasks", "");
    for _ in 0..10 {
        check.do_one("ten-tasks", "");
    }
    check.assert_completed(instance, "{}");
    let instance = check.start("ornaments", "");
    check.do_one("ornaments", "");
    check.assert_completed(instance, "{}");
    let instance = check.start("pass-through", "");
    check.assert_path(
        instance,
        "pass-through:activated start:activated start:completed manual:activated \
         manual:completed undefined:activated undefined:completed reached:activated \
         reached:completed end:activated end:completed pass-through:completed",
    );
}

#[test]
fn exclusive() {
    for (amount, job) in [("101", "exclusive-big"), ("100", "exclusive-other"), ("null", "exclusive-other")] {
        let mut check = Check::with(&[process!("exclusive-gateway.bpmn")]);
        let variables = format!(r#"{{"amount":{amount}}}"#);
        if amount == "null" {
            // Null is no number to compare with: the condition is null, not false.
            check.start("exclusive-gateway", &variables);
            check.assert_incident("EXTRACT_VALUE_ERROR", "choose", "null");
            continue;
        }
        let instance = check.start("exclusive-gateway", &variables);
        check.do_one(job, "");
        check.assert_completed(instance, &variables);
    }
}

#[test]
fn the_last_of_two_true_flows_of_the_document_wins() {
    let mut check = Check::with(&[process!("exclusive-first-wins.bpmn")]);
    let instance = check.start("exclusive-first-wins", r#"{"x":1}"#);
    check.assert_completed(instance, r#"{"took":"second","x":1}"#);
}

#[test]
fn no_true_flow_and_no_default() {
    let mut check = Check::with(&[process!("exclusive-no-default.bpmn")]);
    let instance = check.start("exclusive-no-default", r#"{"x":3}"#);
    let incident = check.assert_incident(
        "CONDITION_ERROR",
        "choose",
        "Expected at least one condition to evaluate to true, or to have a default flow",
    );
    // The gateway has not begun yet.
    check.assert_path(
        instance,
        "exclusive-no-default:activated start:activated start:completed",
    );
    // Resolved without a change: a new incident.
    check.resolve(incident);
    let again = check.assert_incident("CONDITION_ERROR", "choose", "");
    assert_ne!(again, incident);
    check.set(instance, r#"{"x":2}"#, false);
    check.resolve(again);
    check.assert_completed(instance, r#"{"x":2}"#);
    check.assert_path(
        instance,
        "exclusive-no-default:activated start:activated start:completed choose:activated \
         choose:completed b:activated b:completed exclusive-no-default:completed",
    );
}

/// A missing variable compared is false; one of another type is an error, and so is no comparison.
#[test]
fn conditions_that_are_no_truth_values() {
    for (variables, kind) in [("{}", "CONDITION_ERROR"), (r#"{"x":"a"}"#, "EXTRACT_VALUE_ERROR")] {
        let mut check = Check::with(&[process!("exclusive-no-default.bpmn")]);
        check.start("exclusive-no-default", variables);
        check.assert_incident(kind, "choose", "");
    }
    let text = document(
        "P",
        "",
        "<startEvent id='s'/><exclusiveGateway id='g' default='g-e'/><endEvent id='e'/><endEvent id='f'/>
         s -> g
         g -> f if x
         g -> e",
    );
    for (variables, stuck) in [
        (r#"{"x":"a"}"#, true),
        (r#"{"x":null}"#, true),
        ("{}", true),
        (r#"{"x":false}"#, false),
        (r#"{"x":true}"#, false),
    ] {
        let mut check = Check::with(&[("p.bpmn", &text)]);
        let instance = check.start("P", variables);
        if stuck {
            check.assert_incident("EXTRACT_VALUE_ERROR", "g", "");
        } else {
            check.assert_completed(instance, variables);
        }
    }
}

#[test]
fn inclusive() {
    for (x, jobs, middle) in [
        ("0", &["inc-c"][..], "c:activated c:completed"),
        ("1.5", &["inc-a"], "a:activated a:completed"),
        ("5", &["inc-a", "inc-b"], "b:activated a:activated a:completed b:completed"),
    ] {
        let mut check = Check::with(&[process!("inclusive-gateway.bpmn")]);
        let variables = format!(r#"{{"x":{x}}}"#);
        let instance = check.start("inclusive-gateway", &variables);
        for (number, job) in jobs.iter().enumerate() {
            check.do_one(job, "");
            let last = number + 1 == jobs.len();
            assert_eq!(check.tokens(instance) == ["after"], last, "the join waits for all");
        }
        check.do_one("inc-after", "");
        check.assert_completed(instance, &variables);
        check.assert_path(
            instance,
            &format!(
                "inclusive-gateway:activated start:activated start:completed fork:activated \
                 fork:completed {middle} join:activated join:completed after:activated \
                 after:completed end:activated end:completed inclusive-gateway:completed"
            ),
        );
    }
}

#[test]
fn an_inclusive_join_waits_for_a_token_that_loops_back() {
    let mut check = Check::with(&[process!("inclusive-join-tail.bpmn")]);
    let instance = check.start("inclusive-join-tail", r#"{"again":true}"#);
    check.do_one("inct-b", "");
    assert_eq!(check.tokens(instance), ["a"]);
    check.do_one("inct-a", r#"{"again":true}"#);
    assert_eq!(check.tokens(instance), ["a"]);
    check.do_one("inct-a", r#"{"again":false}"#);
    check.assert_completed(instance, r#"{"again":false}"#);
    check.assert_path(
        instance,
        "inclusive-join-tail:activated start:activated start:completed fork:activated \
         fork:completed b:activated a:activated b:completed a:completed retry:activated \
         retry:completed a:activated a:completed retry:activated retry:completed join:activated \
         join:completed end:activated end:completed inclusive-join-tail:completed",
    );
}

/// A token behind the join that can only come back by a flow that has its token already, or
/// through the join itself, is not waited for.
#[test]
fn an_inclusive_join_in_a_loop_goes_on() {
    let text = document(
        "P",
        "",
        &format!(
            "<startEvent id='s'/><inclusiveGateway id='j'/>{}<exclusiveGateway id='x' default='x-e'/><endEvent id='e'/>
             s -> j
             j -> work
             work -> x
             x -> j if again
             x -> e",
            task("work")
        ),
    );
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("P", "");
    for _ in 0..3 {
        check.do_one("work", r#"{"again":true}"#);
    }
    check.do_one("work", r#"{"again":false}"#);
    check.assert_completed(instance, r#"{"again":false}"#);
}

#[test]
fn an_inclusive_fork_without_a_true_flow() {
    let text = include_str!("../../../../../tests/zeebe/processes/inclusive-join-tail.bpmn")
        .replace("=true<", "=false<");
    let mut check = Check::with(&[("p.bpmn", &text)]);
    check.start("inclusive-join-tail", "");
    check.assert_incident("CONDITION_ERROR", "fork", "Expected at least one condition");
}

/// The join waits for a token behind a boundary event, and no longer when its host was ended.
#[test]
fn an_inclusive_join_looks_at_boundary_events() {
    let text = document(
        "P",
        "<error id='E' errorCode='X'/>",
        &format!(
            "<startEvent id='s'/><inclusiveGateway id='f'/>{}{}{}
             <boundaryEvent id='b' attachedToRef='one'><errorEventDefinition errorRef='E'/></boundaryEvent>
             <inclusiveGateway id='j'/><endEvent id='e'/><endEvent id='away'/>
             s -> f
             f -> one if true
             f -> two if true
             one -> away
             b -> fix
             fix -> j
             two -> j
             j -> e",
            task("one"),
            task("two"),
            task("fix")
        ),
    );
    for throws in [true, false] {
        let mut check = Check::with(&[("p.bpmn", &text)]);
        let instance = check.start("P", "");
        check.do_one("two", "");
        assert_eq!(check.tokens(instance), ["one"], "the error may still come");
        let job = check.take_one("one");
        if throws {
            check.throw(job, "X", "", "");
            assert_eq!(check.tokens(instance), ["fix"]);
            check.do_one("fix", "");
        } else {
            check.done(job, "");
        }
        check.assert_completed(instance, "{}");
    }
}

#[test]
fn parallel() {
    let mut check = Check::with(&[process!("parallel-gateway.bpmn")]);
    let instance = check.start("parallel-gateway", "");
    check.do_one("par-right", r#"{"r":1}"#);
    assert_eq!(check.tokens(instance), ["left"]);
    check.do_one("par-left", r#"{"l":1}"#);
    check.assert_completed(instance, r#"{"l":1,"r":1}"#);
    check.assert_path(
        instance,
        "parallel-gateway:activated start:activated start:completed fork:activated fork:completed \
         right:activated left:activated right:completed left:completed join:activated \
         join:completed end:activated end:completed parallel-gateway:completed",
    );
}

/// As the real broker: a token too many waits at the join for good.
#[test]
fn two_tokens_by_one_flow_of_a_parallel_join() {
    let mut check = Check::with(&[process!("parallel-join-uneven.bpmn")]);
    let instance = check.start("parallel-join-uneven", "");
    check.do_one("uneven-a", "");
    check.do_one("uneven-b", "");
    assert_eq!(check.tokens(instance), ["c"]);
    check.do_one("uneven-c", "");
    assert_eq!(check.tokens(instance), Vec::<String>::new());
    assert!(check.engine.state().flow().element(instance).is_some(), "it never ends");
    check.assert_path(
        instance,
        "parallel-join-uneven:activated start:activated start:completed fork:activated \
         fork:completed c:activated b:activated a:activated a:completed merge:activated \
         merge:completed b:completed merge:activated merge:completed c:completed join:activated \
         join:completed end:activated end:completed",
    );
}

#[test]
fn a_task_with_two_flows_out_forks_and_no_end_event_is_an_end() {
    let text = document(
        "P",
        "",
        &format!(
            "<startEvent id='s'/><manualTask id='m'/>{}{}
             s -> m
             m -> a
             m -> b",
            task("a"),
            task("b")
        ),
    );
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("P", "");
    assert_eq!(check.tokens(instance), ["b", "a"], "the last flow first");
    check.do_one("a", "");
    check.do_one("b", "");
    check.assert_completed(instance, "{}");
}

#[test]
fn links() {
    let mut check = Check::with(&[process!("link-event.bpmn")]);
    let instance = check.start("link-event", "");
    check.do_one("link-work", "");
    check.assert_path(
        instance,
        "link-event:activated start:activated start:completed jump:activated jump:completed \
         land:activated land:completed work:activated work:completed end:activated end:completed \
         link-event:completed",
    );
}

#[test]
fn a_terminate_end_event_ends_the_rest_and_completes_the_process() {
    let mut check = Check::with(&[process!("terminate-end.bpmn")]);
    let instance = check.start("terminate-end", "");
    let slow = check.take_one("terminate-slow");
    check.do_one("terminate-quick", r#"{"q":1}"#);
    assert_eq!(check.state_of(slow), None);
    check.assert_completed(instance, r#"{"q":1}"#);
    check.assert_path(
        instance,
        "terminate-end:activated start:activated start:completed fork:activated fork:completed \
         quick:activated slow:activated quick:completed stop:activated stop:completed \
         slow:terminated terminate-end:completed",
    );
}
