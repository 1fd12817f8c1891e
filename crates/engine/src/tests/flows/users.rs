//! User tasks: those that are jobs, and those of a person.

use windlass_record::flow::{UpdateUserTask, UserTaskAction};

use super::*;

impl Check {
    fn user(&mut self, key: Key, action: UserTaskAction) -> Result<FlowAnswer, Rejection> {
        self.flow(FlowCommand::UpdateUserTask(UpdateUserTask { key, action, name: "".into() }))
    }
}

#[test]
fn a_user_task_that_is_a_job() {
    let mut check = Check::with(&[process!("user-task-job.bpmn")]);
    let instance = check.start("user-task-job", r#"{"owner":"ann"}"#);
    let job = check.take_one("io.camunda.zeebe:userTask");
    assert_eq!(check.job(job).retries, 1);
    check.done(job, r#"{"ok":true}"#);
    check.assert_completed(instance, r#"{"ok":true,"owner":"ann"}"#);
}

#[test]
fn the_life_of_a_native_user_task() {
    let mut check = Check::with(&[process!("user-task-native.bpmn")]);
    let instance = check.start("user-task-native", r#"{"owner":"ann"}"#);
    let missing = check.assert_incident("FORM_NOT_FOUND", "approve", "'scenario-form'");
    check.deploy(&[process!("form.form")]).expect("it is sound");
    check.resolve(missing);
    let element = check.element(instance, "approve");
    let flow = check.engine.state().flow();
    let key = flow.element(element).and_then(|it| it.user_task).expect("it waits");
    let task = flow.user_task(key).expect("it waits");
    assert_eq!(
        (&*task.assignee, &*task.candidate_groups, task.priority),
        ("ann", r#"["clerks"]"#, 70)
    );
    assert_ne!(task.form, Key::NONE);

    let assign =
        |assignee: &str, replace| UserTaskAction::Assign { assignee: assignee.into(), replace };
    assert!(check.user(key, assign("bob", false)).is_err(), "ann has it");
    check.user(key, assign("bob", true)).expect("taken over");
    check.user(key, assign("", false)).expect("given back");
    check.user(key, assign("ann", false)).expect("nobody has it");
    let change = UserTaskAction::Change {
        candidate_groups: None,
        candidate_users: Some(r#"["eve"]"#.into()),
        due_date: Some("2030-01-01T00:00:00Z".into()),
        follow_up_date: None,
        priority: Some(9),
    };
    check.user(key, change).expect("it waits");
    let task = check.engine.state().flow().user_task(key).expect("it waits");
    assert_eq!((&*task.assignee, &*task.candidate_users, task.priority), ("ann", r#"["eve"]"#, 9));
    let complete = || UserTaskAction::Complete(br#"{"ok":true}"#.as_slice().into());
    check.user(key, complete()).expect("it waits");
    assert!(check.user(key, complete()).is_err(), "it is done");
    check.assert_completed(instance, r#"{"ok":true,"owner":"ann"}"#);
}

#[test]
fn a_user_task_is_over_with_its_instance() {
    let mut check = Check::with(&[process!("form.form"), process!("user-task-native.bpmn")]);
    let instance = check.start("user-task-native", r#"{"owner":"ann"}"#);
    let element = check.element(instance, "approve");
    let key = check.engine.state().flow().element(element).and_then(|it| it.user_task);
    check.cancel_instance(instance).expect("it lives");
    let complete = UserTaskAction::Complete(Default::default());
    assert!(check.user(key.expect("it waited"), complete).is_err());
}
