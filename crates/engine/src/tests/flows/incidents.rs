//! Incidents of jobs and elements, and what follows their end. Those of one kind of element stand
//! with it.

use super::*;

#[test]
fn no_retries_left() {
    for retries in [0, -1] {
        let mut check = Check::with(&[process!("one-task.bpmn")]);
        let instance = check.start("one-task", "");
        let job = check.take_one("one-task");
        check.fail_with(job, retries, "");
        let incident = check.job(job).extra().and_then(|extra| extra.incident.clone());
        let incident = incident.expect("no retry is left");
        assert!(check.work("one-task", 1).is_empty());
        let resolve = ResolveIncident { key: incident.key, retries: None, tenant: None };
        assert!(check.give(Command::ResolveIncident(resolve)).is_err(), "there are still none");
        check.update_retries(job, 1);
        assert!(check.work("one-task", 1).is_empty(), "an update wakes nobody");
        check.resolve(incident.key);
        check.do_one("one-task", "");
        check.assert_completed(instance, "{}");
    }
}

/// Which mappings and expressions can fail, and at which element.
#[test]
fn an_assertion_in_a_mapping() {
    let text = process!("io-mapping.bpmn")
        .1
        .replace("source=\"=order.id\"", "source=\"=assert(order.id, order.id != null)\"");
    let mut check = Check::with(&[("p.bpmn", &text)]);
    let instance = check.start("io-mapping", "");
    let incident = check.assert_incident("IO_MAPPING_ERROR", "work", "");
    check.set(instance, r#"{"order":{"id":1,"total":1}}"#, false);
    check.resolve(incident);
    check.do_one("io-mapping", r#"{"result":{"ok":1}}"#);
    assert!(check.completed(instance).is_some());
}

/// Of an element and of a job of an element alike.
#[test]
fn another_tenants_incident_is_not_found() {
    let mut check =
        Check::with(&[process!("exclusive-no-default.bpmn"), process!("one-task.bpmn")]);
    check.start("exclusive-no-default", "");
    let (of_element, ..) = check.incident();
    check.start("one-task", "");
    let job = check.take_one("one-task");
    check.fail_with(job, 0, "");
    for key in [of_element, job] {
        let resolve = |tenant: &str| {
            let tenant = Some(tenant.into());
            Command::ResolveIncident(ResolveIncident { key, retries: Some(1), tenant })
        };
        let not_found = Rejection::IncidentNotFound { key };
        assert_eq!(check.give(resolve("somebody else")), Err(not_found));
        assert!(check.give(resolve(TENANT)).is_ok());
    }
}

#[test]
fn cancelled_while_it_waits_for_a_person() {
    let mut check =
        Check::with(&[process!("exclusive-no-default.bpmn"), process!("one-task.bpmn")]);
    let stuck = check.start("exclusive-no-default", "");
    check.assert_incident("CONDITION_ERROR", "choose", "");
    check.cancel_instance(stuck).expect("it lives");
    check.assert_no_incident();
    let instance = check.start("one-task", "");
    let job = check.take_one("one-task");
    check.fail_with(job, 0, "");
    check.cancel_instance(instance).expect("it lives");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
    assert_eq!(check.state_of(job), None);
}

/// A boundary event ends a task whose job waits for a person.
#[test]
fn a_boundary_event_of_a_stuck_task() {
    let mut check = Check::with(&[process!("timer-boundary.bpmn")]);
    let instance = check.start("timer-boundary", "");
    let job = check.take_one("timer-boundary");
    check.fail_with(job, 0, "");
    check.pass(500);
    check.settle();
    check.assert_completed(instance, "{}");
}

/// What an element says is bounded as what a worker says.
#[test]
fn a_long_message_is_cut() {
    let bounds = windlass_record::bound::Bounds { message_bytes_max: 12, ..Default::default() };
    let mut check = Check::with_bounds(bounds);
    check.deploy(&[process!("exclusive-no-default.bpmn")]).expect("it is sound");
    check.start("exclusive-no-default", "");
    let (_, _, _, message) = check.incident();
    assert_eq!(message.len(), 12, "{message}");
}
