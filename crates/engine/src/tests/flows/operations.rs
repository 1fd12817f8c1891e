//! What operators do with instances: start in the middle, cancel, modify, migrate.

use windlass_record::flow::{
    ActivateInstruction, MigrateInstance, ModifyInstance, MoveAncestor, MoveInstruction,
    TerminateInstruction, VariableInstruction,
};

use super::*;

impl Check {
    fn modify(
        &mut self,
        key: Key,
        activate: &[(&str, &[(&str, &str)])],
        terminate: &[Key],
    ) -> Result<FlowAnswer, Rejection> {
        let activate = activate
            .iter()
            .map(|(id, variables)| ActivateInstruction {
                element_id: (*id).into(),
                ancestor: Key::NONE,
                variables: variables
                    .iter()
                    .map(|(scope, variables)| VariableInstruction {
                        scope_id: (*scope).into(),
                        variables: variables.as_bytes().into(),
                    })
                    .collect(),
            })
            .collect();
        let terminate = terminate.iter().map(|key| TerminateInstruction::Instance(*key)).collect();
        let moves = Vec::new();
        self.flow(FlowCommand::ModifyInstance(ModifyInstance { key, activate, terminate, moves }))
    }

    /// Moves all tokens of an element to another one.
    fn move_all(
        &mut self,
        key: Key,
        (from, to): (&str, &str),
        ancestor: MoveAncestor,
    ) -> Result<FlowAnswer, Rejection> {
        let moves = vec![MoveInstruction {
            source: TerminateInstruction::Element(from.into()),
            target_id: to.into(),
            ancestor,
            variables: Vec::new(),
        }];
        let (activate, terminate) = (Vec::new(), Vec::new());
        self.flow(FlowCommand::ModifyInstance(ModifyInstance { key, activate, terminate, moves }))
    }

    fn terminate_all(&mut self, key: Key, id: &str) -> Result<FlowAnswer, Rejection> {
        let terminate = vec![TerminateInstruction::Element(id.into())];
        let (activate, moves) = (Vec::new(), Vec::new());
        self.flow(FlowCommand::ModifyInstance(ModifyInstance { key, activate, terminate, moves }))
    }

    fn migrate(
        &mut self,
        key: Key,
        definition: Key,
        mappings: &[(&str, &str)],
    ) -> Result<FlowAnswer, Rejection> {
        let mappings = mappings.iter().map(|(from, to)| ((*from).into(), (*to).into())).collect();
        self.flow(FlowCommand::MigrateInstance(MigrateInstance { key, definition, mappings }))
    }

    fn start_at(&mut self, process: &str, elements: &[&str]) -> Result<FlowAnswer, Rejection> {
        self.flow(FlowCommand::CreateInstance(CreateInstance {
            tenant: TENANT.into(),
            process: ProcessReference::Latest(process.into()),
            variables: Default::default(),
            start_at: elements.iter().map(|id| (*id).into()).collect(),
            business_id: "".into(),
            tags: Vec::new(),
            awaited: true,
        }))
    }
}

#[test]
fn start_in_the_middle() {
    let mut check = Check::with(&[
        process!("subprocess.bpmn"),
        process!("multi-subprocess.bpmn"),
        process!("timer-boundary.bpmn"),
        process!("message-start.bpmn"),
    ]);
    let Ok(FlowAnswer::InstanceCreated { key, .. }) =
        check.start_at("subprocess", &["work", "work"])
    else {
        panic!("it can be started there");
    };
    let jobs = check.work("subprocess", 5);
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        check.done(job, "");
    }
    check.assert_completed(key, "{}");
    for (process, element) in [
        ("subprocess", "zip"),
        ("subprocess", "start"),
        ("timer-boundary", "late"),
        ("multi-subprocess", "work"),
    ] {
        assert!(check.start_at(process, &[element]).is_err(), "{process} at {element}");
    }
    check.start_at("message-start", &["work"]).expect("no none start event is needed");
    assert!(check.try_start("message-start", "").is_err());
}

/// Terminating goes from the outside in, gone from the inside out.
#[test]
fn cancel() {
    let mut check = Check::with(&[process!("subprocess.bpmn")]);
    let instance = check.start("subprocess", "");
    let inner = check.element(instance, "inner");
    assert!(check.cancel_instance(inner).is_err(), "only an instance");
    check.cancel_instance(instance).expect("it lives");
    assert!(check.cancel_instance(instance).is_err(), "it is over");
    let path = check.path(instance);
    assert!(path.ends_with("work:terminated inner:terminated subprocess:terminated"), "{path}");
}

#[test]
fn modify() {
    let mut check = Check::with(&[process!("subprocess-mapping.bpmn")]);
    let instance = check.start("subprocess-mapping", r#"{"a":1}"#);
    let work = check.element(instance, "work");
    check.modify(instance, &[], &[]).expect("nothing to do is fine");
    check
        .modify(instance, &[("after", &[("", r#"{"g":1}"#), ("after", r#"{"l":2}"#)])], &[work])
        .expect("it is sound");
    // The sub-process that was left without anything is ended.
    assert_eq!(check.tokens(instance), ["after"]);
    let seen = check.do_one("subprocess-after", "");
    assert_eq!(seen, r#"{"a":1,"g":1,"l":2}"#);
    check.assert_completed(instance, r#"{"a":1,"g":1}"#);
}

/// Each token of the source becomes one at the target, wherever that stands.
#[test]
fn move_tokens() {
    let mut check =
        Check::with(&[process!("subprocess-mapping.bpmn"), process!("multi-subprocess.bpmn")]);
    let Ok(FlowAnswer::InstanceCreated { key, .. }) =
        check.start_at("subprocess-mapping", &["after", "after"])
    else {
        panic!("it can be started there");
    };
    check.move_all(key, ("after", "work"), MoveAncestor::SourceHierarchy).expect("it is sound");
    assert_eq!(check.tokens(key), ["inner", "inner", "work", "work"]);
    // There are two of the target's scope by now.
    let there = MoveAncestor::Instance(Key::NONE);
    check.move_all(key, ("work", "work"), there).expect_err("which scope is not said");
    check.move_all(key, ("work", "work"), MoveAncestor::SourceParent).expect("it is sound");
    assert_eq!(check.tokens(key), ["inner", "inner", "work", "work"]);
    let out = MoveAncestor::SourceParent;
    check.move_all(key, ("work", "after"), out).expect_err("the sub-process does not contain it");
    check.move_all(key, ("work", "after"), there).expect("it is sound");
    assert_eq!(check.tokens(key), ["after", "after"], "what was left empty is ended");
    for (from, to) in [("zip", "after"), ("work", "after"), ("after", "zip"), ("after", "start")] {
        check.move_all(key, (from, to), there).expect_err("no such token or no such place");
    }
    let whole = check.move_all(key, ("subprocess-mapping", "after"), there);
    whole.expect_err("a process is moved nowhere");
    check.terminate_all(key, "after").expect("it is sound");
    assert_eq!(check.engine.state().flow().live_elements(), 0, "nothing was left of it");

    // A multi-instance ends as one; what stands in it one by one.
    let instance = check.start("multi-subprocess", r#"{"items":[1,2,3]}"#);
    let live = check.engine.state().flow().live_elements();
    assert!(live > 4, "{live}");
    check.terminate_all(instance, "each").expect("it is sound");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
}

/// Nothing throws it: a link's catch event that is entered by hand goes on.
#[test]
fn modify_into_a_link() {
    let mut check = Check::with(&[process!("link-event.bpmn")]);
    let instance = check.start("link-event", "");
    let work = check.element(instance, "work");
    check.modify(instance, &[("land", &[])], &[work]).expect("it is sound");
    check.do_one("link-work", "");
    check.assert_completed(instance, "{}");
}

/// Entering an element enters the scopes around it that are not there.
#[test]
fn modify_into_a_scope() {
    let mut check = Check::with(&[process!("subprocess-mapping.bpmn")]);
    let instance = check.start("subprocess-mapping", r#"{"a":1}"#);
    check.do_one("subprocess-mapping", "");
    let after = check.element(instance, "after");
    check.modify(instance, &[("work", &[])], &[after]).expect("it is sound");
    assert_eq!(check.tokens(instance), ["inner", "work"]);
    assert_eq!(check.do_one("subprocess-mapping", ""), r#"{"a":1,"b":1,"d":null}"#);
    check.do_one("subprocess-after", "");
    assert!(check.completed(instance).is_some());
}

#[test]
fn modify_to_the_end_and_what_is_refused() {
    let mut check = Check::with(&[process!("one-task.bpmn"), process!("subprocess-mapping.bpmn")]);
    let instance = check.start("one-task", "");
    let task = check.element(instance, "task");
    for activate in ["zip", "start"] {
        assert!(check.modify(instance, &[(activate, &[])], &[]).is_err(), "{activate}");
    }
    assert!(check.modify(instance, &[], &[Key::from_raw(7)]).is_err());
    assert!(check.modify(Key::from_raw(7), &[], &[]).is_err());
    assert!(check.modify(task, &[], &[]).is_err(), "no instance");
    assert!(check.modify(instance, &[("task", &[("zip", "{}")])], &[]).is_err());
    assert_eq!(check.tokens(instance), ["task"], "nothing was changed");
    check.modify(instance, &[], &[task]).expect("it is sound");
    assert!(check.engine.state().flow().element(instance).is_none(), "it was the last one");
    assert_eq!(check.completed(instance), None);
    let other = check.start("subprocess-mapping", "");
    let work = check.element(other, "work");
    assert!(check.modify(other, &[("after", &[("inner", "{}")])], &[work]).is_err());
    check.modify(other, &[], &[other]).expect("the instance itself may be ended");
    assert!(check.engine.state().flow().element(other).is_none());
}

/// All of a called instance cannot be ended from within: its caller would never hear of it.
#[test]
fn modify_a_called_instance() {
    let mut check = Check::with(&[process!("call-child.bpmn"), process!("call-activity.bpmn")]);
    let instance = check.start("call-activity", "");
    let job = check.take_one("call-work");
    let work = check.engine.state().flow().element_of_job(job).expect("its element");
    let child = check.engine.state().flow().element(work).expect("it lives").instance;
    assert!(check.modify(child, &[], &[work]).is_err());
    assert!(check.modify(child, &[], &[child]).is_err());
    check.modify(child, &[("work", &[])], &[work]).expect("something is left");
    check.do_one("call-work", "");
    check.do_one("call-after", "");
    check.assert_completed(instance, "{}");
}

#[test]
fn migrate() {
    let mut check = Check::with(&[process!("version-two-migrate-a.bpmn")]);
    let target = check.deployed(&[process!("version-two-migrate-b.bpmn")]).definitions[0].key;
    let instance = check.start("migrate-a", "");
    let job = check.take_one("migrate-job");
    for (mappings, why) in [
        (&[][..], "no mapping"),
        (&[("zip", "fresh")], "no such source"),
        (&[("old", "zip")], "no such target"),
        (&[("old", "fresh"), ("old", "extra")], "twice"),
        (&[("old", "end")], "another type"),
    ] {
        assert!(check.migrate(instance, target, mappings).is_err(), "{why}");
    }
    assert!(check.migrate(instance, Key::from_raw(7), &[("old", "fresh")]).is_err());
    assert!(check.migrate(Key::from_raw(7), target, &[]).is_err());
    check.migrate(instance, target, &[("old", "fresh")]).expect("it is sound");
    let facts = check.engine.state().flow().facts_of_job(job).expect("it lives");
    assert_eq!((&*facts.element_id, &*facts.process_id), ("fresh", "migrate-b"));
    // The job keeps its type, and what comes after is the target's.
    check.done(job, "");
    check.do_one("migrate-extra", "");
    check.assert_completed(instance, "{}");
}

/// An open incident, the same definition: both are fine for the real broker.
#[test]
fn migrate_with_an_incident_and_to_itself() {
    let mut check = Check::with(&[process!("task-feel-type.bpmn")]);
    let text = process!("task-feel-type.bpmn").1.replace("-job", "-work");
    let instance = check.start("task-feel-type", "");
    let incident = check.assert_incident("EXTRACT_VALUE_ERROR", "work", "");
    let target = check.deployed(&[("two.bpmn", &text)]).definitions[0].key;
    check.migrate(instance, target, &[("work", "work")]).expect("an incident hinders nothing");
    check.migrate(instance, target, &[("work", "work")]).expect("nor does the same definition");
    check.set(instance, r#"{"kind":"a","tries":1}"#, false);
    check.resolve(incident);
    check.do_one("a-work", "");
    assert!(check.completed(instance).is_some());
}

/// Open events go on under the target: a message reaches the boundary event of the new version.
#[test]
fn migrate_open_events() {
    let text = process!("message-boundary.bpmn").1;
    let mut check = Check::with(&[("a.bpmn", text)]);
    let instance = check.start("message-boundary", r#"{"key":"k"}"#);
    let text = text.replace("message-boundary-stopped", "stopped-two");
    let target = check.deployed(&[("a.bpmn", &text)]).definitions[0].key;
    check.migrate(instance, target, &[("slow", "slow")]).expect("it is sound");
    check.publish("scenario-stop", "k", 0, "");
    check.do_one("stopped-two", "");
    assert!(check.completed(instance).is_some());
}

/// One business id, one live instance.
#[test]
fn business_ids() {
    let mut check = Check::with(&[process!("one-task.bpmn")]);
    let create = |check: &mut Check| {
        check.flow(FlowCommand::CreateInstance(CreateInstance {
            tenant: TENANT.into(),
            process: ProcessReference::Latest("one-task".into()),
            variables: Default::default(),
            start_at: Vec::new(),
            business_id: "order-7".into(),
            tags: vec!["red".into()],
            awaited: false,
        }))
    };
    create(&mut check).expect("the first");
    assert!(create(&mut check).is_err());
    let job = check.take_one("one-task");
    let facts = check.engine.state().flow().facts_of_job(job).expect("it lives");
    assert_eq!((&*facts.business_id, facts.tags.len()), ("order-7", 1));
    check.done(job, "");
    create(&mut check).expect("the first is over");
}
