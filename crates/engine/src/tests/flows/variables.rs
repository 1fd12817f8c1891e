//! Variables: mappings, scopes, where results go.

use windlass_record::flow::{DecisionReference, EvaluateDecision};

use super::*;

#[test]
fn mappings_in_and_out() {
    let mut check = Check::with(&[process!("io-mapping.bpmn")]);
    let instance = check.start("io-mapping", r#"{"order":{"id":7,"total":21}}"#);
    let seen = check.do_one("io-mapping", r#"{"result":{"ok":true},"noise":1}"#);
    assert_eq!(
        seen,
        r#"{"order":{"id":7,"total":21},"orderId":7,"price":{"amount":42,"currency":"EUR"}}"#
    );
    let left = r#"{"order":{"id":7,"total":21},"outcome":{"ok":true,"order":7}}"#;
    check.assert_completed(instance, left);
    // What is missing is null, without an incident.
    let instance = check.start("io-mapping", "{}");
    let seen = check.do_one("io-mapping", "{}");
    assert_eq!(seen, r#"{"orderId":null,"price":{"amount":null,"currency":"EUR"}}"#);
    check.assert_completed(instance, r#"{"outcome":{"ok":null,"order":null}}"#);
}

/// An object keeps its other members. Text in its place is replaced; the real broker makes null of
/// it.
#[test]
fn a_target_path_in_what_is_there_already() {
    for (before, after) in [
        (r#"{"keep":1}"#, r#"{"keep":1,"ok":1,"order":7}"#),
        (r#""text""#, r#"{"ok":1,"order":7}"#),
    ] {
        let mut check = Check::with(&[process!("io-mapping.bpmn")]);
        let variables = format!(r#"{{"order":{{"id":7,"total":2}},"outcome":{before}}}"#);
        let instance = check.start("io-mapping", &variables);
        check.do_one("io-mapping", r#"{"result":{"ok":1}}"#);
        let left = format!(r#"{{"order":{{"id":7,"total":2}},"outcome":{after}}}"#);
        check.assert_completed(instance, &left);
    }
}

/// Each variable goes to the nearest scope that has it, else to the outermost.
#[test]
fn without_output_mappings() {
    let mut check =
        Check::with(&[process!("output-none.bpmn"), process!("subprocess-input-only.bpmn")]);
    let instance = check.start("output-none", r#"{"a":1}"#);
    let seen = check.do_one("output-none", r#"{"localA":9,"a":2,"fresh":3}"#);
    assert_eq!(seen, r#"{"a":1,"localA":1}"#);
    check.assert_completed(instance, r#"{"a":2,"fresh":3}"#);
    let instance = check.start("subprocess-input-only", r#"{"a":1}"#);
    let seen = check.do_one("subprocess-input-only", r#"{"b":9,"a":2,"fresh":3}"#);
    assert_eq!(seen, r#"{"a":1,"b":1}"#);
    check.assert_completed(instance, r#"{"a":2,"fresh":3}"#);
}

/// Output mappings of a sub-process hold back only what its own scope has.
#[test]
fn a_sub_process_with_mappings() {
    let mut check =
        Check::with(&[process!("subprocess-mapping.bpmn"), process!("subprocess.bpmn")]);
    let instance = check.start("subprocess-mapping", r#"{"a":1}"#);
    let seen = check.do_one("subprocess-mapping", r#"{"b":6,"c":5,"a":7}"#);
    assert_eq!(seen, r#"{"a":1,"b":1}"#);
    let seen = check.do_one("subprocess-after", "");
    assert_eq!(seen, r#"{"a":7,"c":5,"d":5}"#);
    check.assert_completed(instance, &seen);
    check.assert_path(
        instance,
        "subprocess-mapping:activated start:activated start:completed inner:activated \
         s2:activated s2:completed work:activated work:completed e2:activated e2:completed \
         inner:completed after:activated after:completed end:activated end:completed \
         subprocess-mapping:completed",
    );
    let instance = check.start("subprocess", "");
    check.do_one("subprocess", r#"{"x":1}"#);
    check.assert_completed(instance, r#"{"x":1}"#);
}

/// A key in an answer names nothing else, whether or not anything is left of what it names.
#[test]
fn keys_that_were_answered_are_used_up() {
    let mut check = Check::with(&[process!("one-task.bpmn"), process!("decision-first.dmn")]);
    let instance = check.start("one-task", "");
    let mut seen = std::collections::BTreeSet::from([instance]);
    for command in [
        FlowCommand::SetVariables(SetVariables {
            scope: instance,
            variables: Default::default(),
            local: true,
        }),
        FlowCommand::EvaluateDecision(EvaluateDecision {
            tenant: TENANT.into(),
            decision: DecisionReference::Latest("d-first".into()),
            variables: Default::default(),
        }),
    ] {
        for _ in 0..2 {
            let key = match check.flow(command.clone()) {
                Ok(FlowAnswer::Key(key)) => key,
                Ok(FlowAnswer::Evaluated(evaluated)) => evaluated.instance,
                other => panic!("{other:?}"),
            };
            assert!(seen.insert(key), "{command:?}");
            assert!(seen.insert(check.start("one-task", "")), "{command:?}");
        }
    }
}

#[test]
fn set_by_hand() {
    let mut check = Check::with(&[process!("subprocess-mapping.bpmn")]);
    let instance = check.start("subprocess-mapping", r#"{"a":1}"#);
    let (inner, work) = (check.element(instance, "inner"), check.element(instance, "work"));
    check.set(work, r#"{"b":20,"a":10,"n":30}"#, false);
    check.set(work, r#"{"l":1}"#, true);
    check.set(inner, r#"{"s":1}"#, true);
    check.set(work, r#"{"s":2,"t":3}"#, false);
    let own = |scope, name| check.own(scope, name);
    assert_eq!(own(inner, "b").as_deref(), Some("20"));
    assert_eq!(own(instance, "a").as_deref(), Some("10"));
    assert_eq!(own(instance, "n").as_deref(), Some("30"));
    assert_eq!(own(work, "l").as_deref(), Some("1"));
    assert_eq!(own(inner, "s").as_deref(), Some("2"));
    assert_eq!(own(instance, "t").as_deref(), Some("3"));
    check.do_one("subprocess-mapping", "");
    check.do_one("subprocess-after", "");
    check.assert_completed(instance, r#"{"a":10,"d":null,"n":30,"t":3}"#);
    let gone = check.flow(FlowCommand::SetVariables(SetVariables {
        scope: work,
        variables: Default::default(),
        local: true,
    }));
    assert!(gone.is_err(), "its scope is over");
}

/// What a failed attempt brings is the task's own, and gone with it.
#[test]
fn variables_of_a_failure() {
    let mut check = Check::with(&[process!("one-task.bpmn")]);
    let instance = check.start("one-task", r#"{"a":1}"#);
    let job = check.take_one("one-task");
    check.fail_with(job, 2, r#"{"a":5,"b":6}"#);
    let seen = check.do_one("one-task", r#"{"c":1}"#);
    assert_eq!(seen, r#"{"a":5,"b":6}"#);
    check.assert_completed(instance, r#"{"a":1,"c":1}"#);
}

#[test]
fn scripts() {
    let mut check =
        Check::with(&[process!("script-task.bpmn"), process!("script-task-output.bpmn")]);
    for (variables, left) in [
        (r#"{"x":4}"#, r#"{"x":4,"y":9}"#),
        ("{}", r#"{"y":null}"#),
        (r#"{"x":"s"}"#, r#"{"x":"s","y":null}"#),
    ] {
        let instance = check.start("script-task", variables);
        check.assert_completed(instance, left);
    }
    let instance = check.start("script-task-output", r#"{"x":1}"#);
    check.assert_completed(instance, r#"{"picked":2,"x":1}"#);
}

/// Type, retries and headers of a job, and what cannot be computed.
#[test]
fn jobs_as_they_are_made() {
    let mut check = Check::with(&[process!("service-task.bpmn"), process!("task-feel-type.bpmn")]);
    check.start("service-task", r#"{"a":1}"#);
    let job = check.take_one("work");
    assert_eq!(check.job(job).retries, 5);
    check.start("task-feel-type", r#"{"kind":"a","tries":7}"#);
    let job = check.take_one("a-job");
    assert_eq!(check.job(job).retries, 7);
    for variables in [
        r#"{"kind":null,"tries":1}"#,
        r#"{"tries":1}"#,
        r#"{"kind":"a","tries":"x"}"#,
        r#"{"kind":"a"}"#,
        r#"{"kind":3,"tries":1}"#,
    ] {
        let mut check = Check::with(&[process!("task-feel-type.bpmn")]);
        let instance = check.start("task-feel-type", variables);
        let incident = check.assert_incident("EXTRACT_VALUE_ERROR", "work", "");
        check.set(instance, r#"{"kind":"b","tries":2}"#, false);
        check.resolve(incident);
        check.do_one("b-job", "");
        assert!(check.completed(instance).is_some());
    }
    // A job without retries is made and given out.
    check.start("task-feel-type", r#"{"kind":"z","tries":0}"#);
    let job = check.take_one("z-job");
    assert_eq!(check.job(job).retries, 0);
}

#[test]
fn send_and_message_throw_events_are_jobs() {
    let mut check = Check::with(&[
        process!("send-task.bpmn"),
        process!("message-throw.bpmn"),
        process!("script-task-job.bpmn"),
        process!("business-rule-job.bpmn"),
    ]);
    for (process, jobs) in [
        ("send-task", &["send"][..]),
        ("message-throw", &["publish", "publish-end"]),
        ("script-task-job", &["script"]),
        ("business-rule-job", &["rule"]),
    ] {
        let instance = check.start(process, "");
        for job in jobs {
            check.do_one(job, "");
        }
        check.assert_completed(instance, "{}");
    }
}
