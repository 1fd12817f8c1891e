//! Listeners of user tasks: who is asked before one changes, and what may be said.

use windlass_record::command::{CompleteListener, ListenerSays};
use windlass_record::flow::{
    FlowRejection, JobRole, UpdateUserTask, UserTaskAction, UserTaskCorrections,
};
use windlass_record::rejection::RejectionKind;

use super::*;
use crate::{JobFacts, TransitionOutcome};

impl Check {
    fn ask(&mut self, key: Key, action: UserTaskAction) -> Result<FlowAnswer, Rejection> {
        self.flow(FlowCommand::UpdateUserTask(UpdateUserTask { key, action, name: "go".into() }))
    }

    fn assign(&mut self, key: Key, assignee: &str) -> Result<FlowAnswer, Rejection> {
        self.ask(key, UserTaskAction::Assign { assignee: assignee.into(), replace: true })
    }

    fn finish(&mut self, key: Key) -> Result<FlowAnswer, Rejection> {
        self.ask(key, UserTaskAction::Complete(br#"{"ok":true}"#.as_slice().into()))
    }

    /// The only user task of an instance.
    fn user_task(&self, instance: Key) -> Key {
        let element = self.element(instance, "approve");
        self.engine.state().flow().user_task_at(element).expect("it is there")
    }

    fn assignee(&self, task: Key) -> String {
        let task = self.engine.state().flow().user_task(task).expect("it is there");
        task.assignee.to_string()
    }

    fn say(&mut self, job: Key, says: ListenerSays) -> Result<(), Rejection> {
        let lease = Lease { key: job, activation: None };
        let command = CompleteListener { lease, result: Default::default(), says };
        self.give(Command::CompleteListener(command))?;
        self.settle();
        Ok(())
    }

    fn deny(&mut self, job: Key, reason: &str) {
        self.say(job, ListenerSays::Denied(reason.into())).expect("it may");
    }

    fn correct(
        &mut self,
        job: Key,
        change: impl FnOnce(&mut UserTaskCorrections),
    ) -> Result<(), Rejection> {
        let mut corrections = UserTaskCorrections::default();
        change(&mut corrections);
        self.say(job, ListenerSays::Corrected(Box::new(corrections)))
    }

    fn facts(&self, job: Key) -> JobFacts {
        self.engine.state().flow().facts_of_job(job).expect("a job of a flow")
    }

    fn changed(&self, job: Key) -> Vec<&'static str> {
        self.facts(job).user_task.expect("a user task's").changed
    }

    fn outcomes(&mut self) -> Vec<TransitionOutcome> {
        self.engine.take_ended_transitions().into_iter().map(|it| it.outcome).collect()
    }

    /// An instance whose user task waits for a person.
    fn waiting() -> (Check, Key, Key) {
        let mut check = Check::with(&[process!("task-listeners.bpmn")]);
        let instance = check.start("task-listeners", r#"{"b":"ann","flag":true}"#);
        check.do_one("listen-creating", "");
        check.do_one("listen-assigning-1", "");
        check.do_one("listen-assigning-2", "");
        check.outcomes();
        let task = check.user_task(instance);
        assert_eq!(check.assignee(task), "ann");
        (check, instance, task)
    }
}

/// A process around a user task with these listeners: event and job type.
fn with_listeners(listeners: &[(&str, &str)]) -> String {
    let listeners: String = listeners
        .iter()
        .map(|(event, kind)| format!("<z:taskListener eventType='{event}' type='{kind}'/>"))
        .collect();
    let elements = format!(
        "<startEvent id='s'/>
        <userTask id='approve'><extensionElements><z:userTask/><z:taskListeners>{listeners}</z:taskListeners></extensionElements></userTask>
        <endEvent id='e'/>
        s -> approve
        approve -> e"
    );
    document("p", "", &elements)
}

#[test]
fn the_whole_life_is_listened_to() {
    let mut check = Check::with(&[process!("task-listeners.bpmn")]);
    let instance = check.start("task-listeners", r#"{"b":"ann","flag":true}"#);
    let task = check.user_task(instance);
    assert!(check.finish(task).is_err(), "it is being made");
    let job = check.take_one("listen-creating");
    let shown = check.facts(job).user_task.expect("a user task's");
    assert_eq!((shown.key, &*shown.task.assignee, shown.changed.len()), (task, "ann", 0));
    check.done(job, "");
    let job = check.take_one("listen-assigning-1");
    assert_eq!((check.job(job).retries, check.changed(job)), (2, vec!["assignee"]));
    assert_eq!(check.assignee(task), "", "it is not hers yet");
    check.done(job, "");
    check.do_one("listen-assigning-2", "");
    assert_eq!(check.assignee(task), "ann");

    let change = UserTaskAction::Change {
        candidate_groups: None,
        candidate_users: Some(r#"["eve"]"#.into()),
        due_date: None,
        follow_up_date: None,
        priority: Some(9),
    };
    let pending = FlowAnswer::UserTaskPending { task, key: task };
    assert_eq!(check.ask(task, change).expect("it waits"), pending);
    let job = check.take_one("listen-updating");
    assert_eq!(check.changed(job), ["candidateUsersList", "priority"]);
    check.done(job, "");
    assert_eq!(check.finish(task).expect("it waits"), pending);
    let seen = check.do_one("listen-completing-1", "");
    assert_eq!(seen, r#"{"b":"ann","flag":true,"ok":true}"#, "what is about to be written");
    assert_eq!(check.own(instance, "ok"), None);
    check.do_one("listen-completing-2", "");
    check.assert_completed(instance, r#"{"b":"ann","flag":true,"ok":true}"#);
    assert!(check.outcomes().iter().all(|outcome| *outcome == TransitionOutcome::Done));
}

#[test]
fn headers_tell_about_the_user_task() {
    let (mut check, _, task) = Check::waiting();
    check.assign(task, "bob").expect("it waits");
    let job = check.take_one("listen-assigning-1");
    let options = check.job(job).options().expect("it has headers");
    let headers = std::str::from_utf8(&options.headers).expect("text").to_owned();
    let key = task.raw();
    assert_eq!(
        headers,
        [
            r#"{"io.camunda.zeebe:action":"go""#,
            r#""io.camunda.zeebe:assignee":"bob""#,
            r#""io.camunda.zeebe:candidateGroups":"[\"clerks\",\"bosses\"]""#,
            r#""io.camunda.zeebe:changedAttributes":"[\"assignee\"]""#,
            r#""io.camunda.zeebe:priority":"50""#,
            &format!(r#""io.camunda.zeebe:userTaskKey":"{key}""#),
            r#""lane":"b"}"#,
        ]
        .join(",")
    );
}

#[test]
fn what_is_denied_has_not_happened() {
    let (mut check, instance, task) = Check::waiting();
    check.assign(task, "bob").expect("it waits");
    let job = check.take_one("listen-assigning-1");
    check.correct(job, |it| it.priority = Some(1)).expect("it may");
    let job = check.take_one("listen-assigning-2");
    assert_eq!(check.changed(job), ["assignee", "priority"]);
    check.deny(job, "bob is away");
    assert_eq!(check.outcomes(), [TransitionOutcome::Denied("bob is away".into())]);
    assert_eq!(check.assignee(task), "ann");
    let priority =
        |check: &Check| check.engine.state().flow().user_task(task).map(|it| it.priority);
    assert_eq!(priority(&check), Some(50), "its corrections are gone with it");

    check.finish(task).expect("it waits again");
    let job = check.take_one("listen-completing-1");
    check.deny(job, "");
    assert_eq!(check.own(instance, "ok"), None);
    check.finish(task).expect("it waits again");
    check.do_one("listen-completing-1", "");
    check.do_one("listen-completing-2", "");
    assert!(check.completed(instance).is_some());
}

#[test]
fn whose_it_is_from_the_beginning_can_be_denied() {
    let mut check = Check::with(&[process!("task-listeners.bpmn")]);
    let instance = check.start("task-listeners", r#"{"b":"ann","flag":true}"#);
    check.do_one("listen-creating", "");
    let job = check.take_one("listen-assigning-1");
    check.deny(job, "");
    let task = check.user_task(instance);
    assert_eq!(check.assignee(task), "");
    check.assign(task, "bob").expect("it waits");
    let job = check.take_one("listen-assigning-1");
    check.correct(job, |it| it.assignee = Some("eve".into())).expect("it may");
    check.do_one("listen-assigning-2", "");
    assert_eq!(check.assignee(task), "eve");
}

/// What is corrected and then put right again is not changed.
#[test]
fn corrections_are_seen_by_the_next_and_applied_behind_the_last() {
    let listeners = [("updating", "a"), ("updating", "b"), ("updating", "c")];
    let mut check = Check::with(&[("p.bpmn", &with_listeners(&listeners))]);
    let instance = check.start("p", "");
    let task = check.user_task(instance);
    let change = UserTaskAction::Change {
        candidate_groups: None,
        candidate_users: None,
        due_date: Some("2030-01-01T00:00:00Z".into()),
        follow_up_date: None,
        priority: None,
    };
    check.ask(task, change).expect("it waits");
    let job = check.take_one("a");
    check
        .correct(job, |it| {
            *it = UserTaskCorrections {
                assignee: Some("ann".into()),
                candidate_groups: Some(r#"["g"]"#.into()),
                candidate_users: Some(r#"["u"]"#.into()),
                due_date: Some("".into()),
                follow_up_date: Some("2031-01-01T00:00:00Z".into()),
                priority: Some(100),
            }
        })
        .expect("it may");
    let job = check.take_one("b");
    let all = ["assignee", "candidateGroupsList", "candidateUsersList", "followUpDate", "priority"];
    assert_eq!(check.changed(job), all, "the date is as it was");
    check.correct(job, |it| it.priority = Some(50)).expect("it may");
    let job = check.take_one("c");
    assert_eq!(check.changed(job), all[..4]);
    check.done(job, "");
    let task = check.engine.state().flow().user_task(task).expect("it waits").clone();
    assert_eq!((&*task.assignee, &*task.due_date, task.priority), ("ann", "", 50));
    assert_eq!((&*task.candidate_groups, &*task.candidate_users), (r#"["g"]"#, r#"["u"]"#));
    assert_eq!(&*task.follow_up_date, "2031-01-01T00:00:00Z");
}

#[test]
fn a_listener_must_not_say_everything() {
    #[track_caller]
    fn check_refused(said: Result<(), Rejection>, part: &str) {
        let rejection = said.expect_err("it is refused");
        assert_eq!(rejection.kind(), RejectionKind::InvalidArgument, "{rejection}");
        assert!(rejection.to_string().contains(part), "{rejection} says {part}");
    }
    let mut check = Check::with(&[process!("task-listeners.bpmn"), process!("one-task.bpmn")]);
    let instance = check.start("task-listeners", r#"{"b":"ann","flag":true}"#);
    let job = check.take_one("listen-creating");
    let deny = || ListenerSays::Denied("".into());
    check_refused(check.say(job, deny()), "cannot be denied");
    check_refused(check.correct(job, |it| it.assignee = Some("eve".into())), "the process says");
    check_refused(check.correct(job, |it| it.priority = Some(101)), "0 to 100");
    let lease = Lease { key: job, activation: None };
    let brings =
        CompleteJob { lease, result: br#"{"x":1}"#.as_slice().into(), documents: Vec::new() };
    check_refused(check.give(Command::CompleteJob(brings)).map(|_| ()), "no variables");
    check.correct(job, |it| it.priority = Some(3)).expect("it may");
    assert!(check.say(job, deny()).is_err(), "it is done");
    check.cancel_instance(instance).expect("it lives");
    let job = check.take_one("listen-canceling");
    check_refused(check.say(job, deny()), "cannot be denied");

    check.start("one-task", "");
    let job = check.take_one("one-task");
    check_refused(check.say(job, deny()), "only the listener of a user task");
    check.done(job, "");
}

#[test]
fn one_thing_at_a_time() {
    let (mut check, _, task) = Check::waiting();
    check.assign(task, "bob").expect("it waits");
    for said in [check.assign(task, "eve"), check.finish(task)] {
        let rejection = said.expect_err("bob is on his way");
        assert_eq!(rejection.kind(), RejectionKind::FailedPrecondition);
        assert!(rejection.to_string().contains("'ASSIGNING'"), "{rejection}");
    }
    check.do_one("listen-assigning-1", "");
    check.do_one("listen-assigning-2", "");
    check.finish(task).expect("it waits again");
}

#[test]
fn variables_of_a_user_task_are_an_update() {
    for local in [true, false] {
        let (mut check, instance, task) = Check::waiting();
        let scope = check.element(instance, "approve");
        let set = |variables: &str| {
            FlowCommand::SetVariables(SetVariables {
                scope,
                variables: variables.as_bytes().into(),
                local,
            })
        };
        let answer = check.flow(set(r#"{"note":1}"#)).expect("it waits");
        assert!(matches!(answer, FlowAnswer::UserTaskPending { task: asked, .. } if asked == task));
        assert!(check.flow(set(r#"{"note":2}"#)).is_err(), "one thing at a time");
        let job = check.take_one("listen-updating");
        assert_eq!(check.changed(job), ["variables"]);
        assert_eq!((check.own(scope, "note"), check.own(instance, "note")), (None, None));
        check.done(job, "");
        let written = Some("1".to_owned());
        let expected = if local { (written, None) } else { (None, written) };
        assert_eq!((check.own(scope, "note"), check.own(instance, "note")), expected);
        // The scope around it is nobody's task.
        check.set(instance, r#"{"x":1}"#, true);
        assert!(check.work("listen-updating", 1).is_empty());
    }
}

#[test]
fn a_listener_without_retries_waits_for_a_person_and_throws_nothing() {
    let (mut check, _, task) = Check::waiting();
    check.assign(task, "bob").expect("it waits");
    let job = check.take_one("listen-assigning-1");
    let throw = ThrowError {
        lease: Lease { key: job, activation: None },
        code: "X".into(),
        message: "".into(),
        variables: Default::default(),
    };
    let refused = check.give(Command::ThrowError(throw)).expect_err("it cannot");
    let role = JobRole::AssigningListener;
    assert_eq!(refused, FlowRejection::ListenerThrows { job, role }.into());
    check.fail_with(job, 0, "");
    check.update_retries(job, 1);
    check.resolve(job);
    check.do_one("listen-assigning-1", "");
    check.do_one("listen-assigning-2", "");
    assert_eq!(check.assignee(task), "bob");
}

#[test]
fn a_listener_that_cannot_be_asked_waits_for_a_person() {
    let mut check = Check::with(&[process!("task-listeners.bpmn")]);
    let instance = check.start("task-listeners", r#"{"b":"ann"}"#);
    check.do_one("listen-creating", "");
    check.do_one("listen-assigning-1", "");
    let incident = check.assert_incident("EXTRACT_VALUE_ERROR", "approve", "job type");
    check.resolve(incident);
    let incident = check.assert_incident("EXTRACT_VALUE_ERROR", "approve", "job type");
    // Who mends it is not kept from it by the listeners that cannot be asked.
    let scope = check.element(instance, "approve");
    check.set(scope, r#"{"flag":true}"#, true);
    check.resolve(incident);
    assert!(check.work("listen-assigning-1", 1).is_empty(), "it has answered");
    check.do_one("listen-assigning-2", "");
    let task = check.user_task(instance);
    assert_eq!(check.assignee(task), "ann");
}

#[test]
fn the_end_of_an_instance_waits_for_listeners() {
    let (mut check, instance, task) = Check::waiting();
    check.finish(task).expect("it waits");
    let held = check.take_one("listen-completing-1");
    check.cancel_instance(instance).expect("it lives");
    assert_eq!(check.outcomes(), [TransitionOutcome::Cancelled]);
    assert_eq!(check.state_of(held), None, "nobody wants to know any more");
    let rejection = check.finish(task).expect_err("it ends");
    assert!(rejection.to_string().contains("'CANCELING'"), "{rejection}");
    let job = check.take_one("listen-canceling");
    check.fail_with(job, 0, "");
    assert_eq!(check.tokens(instance), ["approve"], "it waits for a person, and so does the end");
    check.update_retries(job, 1);
    check.resolve(job);
    check.do_one("listen-canceling", "");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
}

#[test]
fn nobody_is_asked_about_an_end_that_nobody_listens_to() {
    for cancelled_in in ["creating", "assigning", "completing"] {
        let text = with_listeners(&[(cancelled_in, "held")]);
        let mut check = Check::with(&[("p.bpmn", &text)]);
        let instance = check.start("p", "");
        let task = check.user_task(instance);
        match cancelled_in {
            "assigning" => drop(check.assign(task, "bob").expect("it waits")),
            "completing" => drop(check.finish(task).expect("it waits")),
            _ => {}
        }
        let held = check.take_one("held");
        check.cancel_instance(instance).expect("it lives");
        assert_eq!(check.state_of(held), None);
        assert_eq!(check.outcomes(), [TransitionOutcome::Cancelled]);
        assert_eq!(check.engine.state().flow().live_elements(), 0);
    }
}

/// A boundary event ends a user task in whatever is about to happen to it, incidents included.
#[test]
fn a_boundary_event_interrupts_and_listeners_are_asked() {
    for flag in [true, false] {
        let mut check = Check::with(&[process!("task-listeners.bpmn")]);
        let variables = format!(r#"{{"b":"ann","flag":{flag}}}"#);
        let instance = check.start("task-listeners", &variables);
        check.do_one("listen-creating", "");
        check.do_one("listen-assigning-1", "");
        check.pass(60_000);
        check.settle();
        check.assert_no_incident();
        assert!(check.work("listen-assigning-2", 1).is_empty());
        check.do_one("listen-canceling", "");
        assert!(check.completed(instance).is_some());
        let path = check.path(instance);
        assert!(path.contains("approve:terminated late:activated"), "{path}");
    }
}

/// A listener of the end that cannot be asked; before it the user task waited in another incident.
#[test]
fn an_end_in_an_incident() {
    let elements = "<startEvent id='s'/>
        <userTask id='approve'><extensionElements><z:userTask/><z:taskListeners>
        <z:taskListener eventType='creating' type='=made'/>
        <z:taskListener eventType='canceling' type='=gone'/>
        </z:taskListeners></extensionElements></userTask>
        <endEvent id='e'/>
        s -> approve
        approve -> e";
    let mut check = Check::with(&[("p.bpmn", &document("p", "", elements))]);
    let instance = check.start("p", "");
    let first = check.assert_incident("EXTRACT_VALUE_ERROR", "approve", "");
    check.cancel_instance(instance).expect("it lives");
    let second = check.assert_incident("EXTRACT_VALUE_ERROR", "approve", "");
    assert_ne!(first, second);
    check.set(instance, r#"{"gone":"gone"}"#, true);
    check.resolve(second);
    check.do_one("gone", "");
    assert_eq!(check.engine.state().flow().live_elements(), 0);
    check.assert_no_incident();
}

#[test]
fn a_creating_listener_may_say_whose_it_is() {
    let listeners = [("creating", "a"), ("creating", "b"), ("assigning", "c")];
    let mut check = Check::with(&[("p.bpmn", &with_listeners(&listeners))]);
    let instance = check.start("p", "");
    for (kind, who) in [("a", "ann"), ("b", "bob")] {
        let job = check.take_one(kind);
        check.correct(job, |it| it.assignee = Some(who.into())).expect("nobody else did");
    }
    assert!(check.work("c", 1).is_empty(), "that is no assignment of its own");
    let task = check.user_task(instance);
    assert_eq!(check.assignee(task), "bob");
    check.finish(task).expect("it waits");
    assert!(check.completed(instance).is_some());
}

/// The new version has fewer listeners: those that are left are asked.
#[test]
fn migrated_while_listeners_are_asked() {
    let (mut check, instance, task) = Check::waiting();
    check.finish(task).expect("it waits");
    let text = process!("task-listeners.bpmn")
        .1
        .replace(r#"<zeebe:taskListener eventType="completing" type="listen-completing-2" />"#, "");
    let deployed = check.deployed(&[("task-listeners.bpmn", &text)]);
    let definition = deployed.definitions.first().expect("a process").key;
    check
        .flow(FlowCommand::MigrateInstance(windlass_record::flow::MigrateInstance {
            key: instance,
            definition,
            mappings: vec![("approve".into(), "approve".into())],
        }))
        .expect("it may");
    check.do_one("listen-completing-1", "");
    assert!(check.completed(instance).is_some());
}

/// Each instance of a loop has a user task of its own.
#[test]
fn user_tasks_of_a_loop() {
    let elements = "<startEvent id='s'/>
        <userTask id='approve'><extensionElements><z:userTask/><z:taskListeners>
        <z:taskListener eventType='creating' type='made'/>
        <z:taskListener eventType='canceling' type='gone'/>
        </z:taskListeners></extensionElements>
        <multiInstanceLoopCharacteristics><extensionElements>
        <z:loopCharacteristics inputCollection='=[1,2,3]'/></extensionElements>
        <completionCondition>=true</completionCondition></multiInstanceLoopCharacteristics>
        </userTask>
        <endEvent id='e'/>
        s -> approve
        approve -> e";
    let mut check = Check::with(&[("p.bpmn", &document("p", "", elements))]);
    let instance = check.start("p", "");
    for job in check.work("made", 3) {
        check.done(job, "");
    }
    let flow = check.engine.state().flow();
    let task = flow.elements().filter_map(|(_, element)| element.user_task).min();
    check.finish(task.expect("three wait")).expect("it waits");
    let jobs = check.work("gone", 9);
    assert_eq!(jobs.len(), 2, "the others are no longer wanted");
    for job in jobs {
        check.done(job, "");
    }
    assert!(check.completed(instance).is_some());
}
