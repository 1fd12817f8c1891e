//! Deployments: all or none, versions, the same again; deletion.

use windlass_record::flow::{DefinitionKind, DeleteResource};

use super::*;

impl Check {
    pub(super) fn delete(&mut self, key: Key) -> Result<FlowAnswer, Rejection> {
        self.flow(FlowCommand::DeleteResource(DeleteResource { key }))
    }
}

#[test]
fn the_same_again_and_something_new() {
    let mut check = Check::new();
    let (one, two) = (process!("one-task.bpmn"), process!("no-task.bpmn"));
    let first = check.deployed(&[one, two]);
    assert_eq!(check.deployed(&[one, two]).definitions, first.definitions);
    assert_eq!(check.deployed(&[two]).definitions, first.definitions[1..]);
    // One changed file gives every file of the deployment a new version.
    let changed = one.1.replace("<bpmn:endEvent", "<!-- new --><bpmn:endEvent");
    let second = check.deployed(&[(one.0, &changed), two]);
    let versions: Vec<u32> = second.definitions.iter().map(|it| it.version).collect();
    assert_eq!(versions, [2, 2]);
    // The name is part of what it is, and going back is a new version.
    assert_eq!(check.deployed(&[("other.bpmn", &changed)]).definitions[0].version, 3);
    assert_eq!(check.deployed(&[one]).definitions[0].version, 4);
}

#[test]
fn all_or_none() {
    let mut check = Check::new();
    let bad = process!("one-task.bpmn").1.replace("type=\"one-task\"", "");
    match check.deploy(&[process!("no-task.bpmn"), ("bad.bpmn", &bad)]) {
        Err(refused) => assert!(refused.to_string().contains("'bad.bpmn'"), "{refused}"),
        other => panic!("{other:?}"),
    }
    assert!(check.try_start("no-task", "").is_err(), "nothing was deployed");
    assert!(check.deploy(&[]).is_err());
    let twice = [process!("one-task.bpmn"), ("again.bpmn", process!("one-task.bpmn").1)];
    assert!(check.deploy(&twice).is_err(), "two files with one process");
}

#[test]
fn several_processes_decisions_and_forms() {
    let mut check = Check::new();
    let deployed = check.deployed(&[
        process!("two-processes.bpmn"),
        process!("decision-requirements.dmn"),
        process!("form.form"),
    ]);
    let kinds: Vec<DefinitionKind> = deployed.definitions.iter().map(|it| it.kind).collect();
    let count = |kind| kinds.iter().filter(|it| **it == kind).count();
    assert_eq!(count(DefinitionKind::Process), 2);
    assert_eq!(count(DefinitionKind::DecisionRequirements), 1);
    assert!(count(DefinitionKind::Decision) >= 2);
    assert_eq!(count(DefinitionKind::Form), 1);
    for process in ["two-a", "two-b"] {
        let instance = check.start(process, "");
        check.assert_completed(instance, "{}");
    }
}

/// Versions by number and key; an instance stays with the version that it began with.
#[test]
fn versions_side_by_side() {
    let mut check = Check::with(&[process!("one-task.bpmn")]);
    let old = check.start("one-task", "");
    let text = process!("one-task.bpmn").1.replace("type=\"one-task\"", "type=\"two\"");
    let second = check.deployed(&[("one-task.bpmn", &text)]);
    check.start("one-task", "");
    check.do_one("two", "");
    let create = |process| {
        FlowCommand::CreateInstance(CreateInstance {
            tenant: TENANT.into(),
            process,
            variables: Default::default(),
            start_at: Vec::new(),
            business_id: "".into(),
            tags: Vec::new(),
            awaited: false,
        })
    };
    check.flow(create(ProcessReference::Version("one-task".into(), 1))).expect("it is there");
    assert!(check.flow(create(ProcessReference::Version("one-task".into(), 0))).is_err());
    assert!(check.flow(create(ProcessReference::Version("one-task".into(), 3))).is_err());
    check.flow(create(ProcessReference::Key(second.definitions[0].key))).expect("it is there");
    check.do_one("two", "");
    let jobs = check.work("one-task", 5);
    assert_eq!(jobs.len(), 2);
    check.done(jobs[0], "");
    check.assert_completed(old, "{}");
}

/// As the real broker in all but this: it begins a deleted decision or form again at version 1.
#[test]
fn deleted() {
    let mut check = Check::new();
    let text = process!("one-task.bpmn").1;
    let first = check.deployed(&[("a.bpmn", text)]).definitions[0].key;
    let second = check.deployed(&[("b.bpmn", text)]).definitions[0].key;
    let instance = check.start("one-task", "");
    assert!(check.delete(second).is_err(), "an instance runs by it");
    check.do_one("one-task", "");
    check.assert_completed(instance, "{}");
    check.delete(second).expect("nothing runs by it");
    assert!(check.delete(second).is_err(), "it is gone");
    let Ok(FlowAnswer::InstanceCreated { version, .. }) = check.try_start("one-task", "") else {
        panic!("the version before is the newest again");
    };
    assert_eq!(version, 1);
    check.do_one("one-task", "");
    check.delete(first).expect("nothing runs by it");
    assert!(check.try_start("one-task", "").is_err());
    let third = check.deployed(&[("a.bpmn", text)]);
    assert_eq!(third.definitions[0].version, 3, "numbers are never used again");
    assert!(check.delete(Key::from_raw(77)).is_err());
}

/// Message and signal starts belong to the newest version alone, and come back with an older one.
#[test]
fn starts_by_events_across_versions() {
    let mut check = Check::new();
    let text = process!("message-start.bpmn").1;
    check.deploy(&[("a.bpmn", text)]).expect("it is sound");
    let newer = text.replace("type=\"message-start\"", "type=\"newer\"");
    let second = check.deployed(&[("a.bpmn", &newer)]);
    check.publish("scenario-start", "", 0, "");
    assert!(check.work("message-start", 5).is_empty());
    check.do_one("newer", "");
    check.delete(second.definitions[0].key).expect("nothing runs by it");
    check.publish("scenario-start", "", 0, "");
    check.do_one("message-start", "");
}
