//! Listeners of user tasks. Before a user task is made, assigned, updated, completed or cancelled,
//! its listeners of that event are asked, one job after the other; meanwhile the user task is in a
//! **transition**: what it is to be is known and stands beside what it is. A listener may correct
//! what it is to be, or deny the transition, and then nothing has changed.
//!
//! Where nobody listens there is no transition: what is asked for happens at once.

use std::collections::BTreeMap;

use windlass_record::bound::{Bound, cut};
use windlass_record::command::ListenerSays;
use windlass_record::flow::{
    FlowEvent, FlowIncidentKind, FlowRejection, JobRole, Key, USER_TASK_PRIORITY_MAX,
    UserTaskCorrections, UserTaskCreated, UserTaskEvent, UserTaskTransitionStarted,
};

use crate::graph::{Kind, Node, TaskListener, Text, UserTask as UserTaskNode};
use crate::kernel::{Port, Stuck, job, variables};
use crate::state::element::{Phase, UserTask};
use crate::state::transition::Transition;

/// Whether a user task's element has listeners of an event.
pub(crate) fn listens_to<P: Port>(port: &P, element: Key, event: UserTaskEvent) -> bool {
    listener(port.state().live(element).node(), event, 0).is_some()
}

/// Whether a node of this kind has listeners of an event.
pub(crate) fn has_listeners(task: &UserTaskNode, event: UserTaskEvent) -> bool {
    task.listeners.iter().any(|listener| listener.event == event)
}

/// A transition in which nothing is asked for but what `task` says.
pub(crate) fn plain<'a>(
    event: UserTaskEvent,
    task: UserTaskCreated<'a>,
) -> UserTaskTransitionStarted<'a> {
    UserTaskTransitionStarted {
        task,
        event,
        action: "".into(),
        assignee: "".into(),
        variables: Vec::new().into(),
        local: false,
    }
}

/// Begins a transition.
pub(crate) fn start<P: Port>(port: &mut P, started: UserTaskTransitionStarted<'_>) {
    port.emit(FlowEvent::UserTaskTransitionStarted(Box::new(started)));
}

/// Goes on with the transition of a user task that is not to end: the next listener is asked, and
/// behind the last one it happens.
pub(crate) fn go_on<P: Port>(port: &mut P, key: Key) -> Result<(), Stuck> {
    let element = port.state().live(key);
    let Some(task) = element.user_task else { return Ok(()) };
    let Some(transition) = port.state().transition(task) else { return Ok(()) };
    if element.job.is_some() || element.incident.is_some() {
        return Ok(());
    }
    let (event, next) = (transition.event, element.listener);
    if ask(port, key, event, next)? {
        return Ok(());
    }
    happen(port, key, task);
    Ok(())
}

/// Asks the listeners before a user task is no longer wanted. True while they hold up its end.
pub(crate) fn hold_end<P: Port>(port: &mut P, key: Key) -> Result<bool, Stuck> {
    let element = port.state().live(key);
    let Some(task) = element.user_task else { return Ok(false) };
    let is_asked = port.state().transition(task).is_some_and(Transition::is_canceling);
    if !is_asked {
        if !listens_to(port, key, UserTaskEvent::Canceling) {
            return Ok(false);
        }
        let (incident, job) = (element.incident, element.job);
        if let Some(incident) = incident {
            port.emit(FlowEvent::IncidentResolved { key: incident });
        }
        if let Some((job, _)) = job {
            port.cancel_job(job);
            port.emit(FlowEvent::JobDetached { element: key, job });
        }
        let Some(now) = port.state().user_task(task).map(|it| it.as_event(task)) else {
            return Ok(false);
        };
        start(port, plain(UserTaskEvent::Canceling, now));
        return Ok(true);
    }
    if element.job.is_some() || element.incident.is_some() {
        return Ok(true);
    }
    let next = element.listener;
    if ask(port, key, UserTaskEvent::Canceling, next)? {
        return Ok(true);
    }
    change(port, task, false);
    Ok(false)
}

/// Makes the job of a listener. False when there is none with this number.
fn ask<P: Port>(port: &mut P, key: Key, event: UserTaskEvent, next: u32) -> Result<bool, Stuck> {
    let graph = port.state().live(key).graph.clone();
    let node = graph.node(port.state().live(key).node);
    let Some(listener) = listener(node, event, next) else { return Ok(false) };
    let mut job = job::prepare(port, key, &listener.job)?;
    job.headers = headers(port, key, node, &job.headers);
    let max = port.bounds().payload_bytes_max;
    if job.headers.len() > max {
        let what = "bytes of the user task in the headers of its listener";
        return Err(Stuck::past(FlowIncidentKind::MessageSize, what, Bound::PayloadBytes, max));
    }
    job::attach(port, key, &job, event.role());
    Ok(true)
}

fn listener(node: &Node, event: UserTaskEvent, number: u32) -> Option<&TaskListener> {
    let Kind::UserTask(task) = &node.kind else { return None };
    let number = usize::try_from(number).ok()?;
    task.listeners.iter().filter(|listener| listener.event == event).nth(number)
}

/// Nobody denied it.
fn happen<P: Port>(port: &mut P, key: Key, task: Key) {
    let Some(transition) = port.state().transition(task) else { return };
    let (event, local) = (transition.event, transition.local);
    let (assignee, brought) = (transition.assignee.clone(), transition.variables.clone());
    match event {
        UserTaskEvent::Creating => {
            change(port, task, false);
            end(port, task, None);
            if !assignee.is_empty() {
                assign(port, task, &assignee);
            }
        }
        UserTaskEvent::Assigning => {
            change(port, task, true);
            end(port, task, None);
        }
        UserTaskEvent::Updating => {
            change(port, task, brought.is_empty());
            end(port, task, None);
            if local {
                variables::set(port, key, &brought);
            } else {
                variables::merge(port, key, &brought);
            }
        }
        UserTaskEvent::Completing => {
            change(port, task, false);
            port.emit(FlowEvent::UserTaskEnded { key: task, completed: true });
            variables::deliver(port, key, &brought);
            port.emit(FlowEvent::ElementCompleting { key });
        }
        // That is for the one who ends the element.
        UserTaskEvent::Canceling => {}
    }
}

/// The user task is there, and its process says whose it is to be.
fn assign<P: Port>(port: &mut P, task: Key, assignee: &str) {
    let Some(now) = port.state().user_task(task) else { return };
    let mut wanted = now.as_event(task);
    wanted.assignee = assignee.to_owned().into();
    start(port, plain(UserTaskEvent::Assigning, wanted));
}

/// The user task becomes what it was to be. Without need it is only said when somebody asked for it.
fn change<P: Port>(port: &mut P, task: Key, was_asked: bool) {
    let (Some(now), Some(transition)) =
        (port.state().user_task(task), port.state().transition(task))
    else {
        return;
    };
    if was_asked || *now != transition.task {
        let wanted = transition.task.as_event(task);
        port.emit(FlowEvent::UserTaskChanged(Box::new(wanted)));
    }
}

fn end<P: Port>(port: &mut P, task: Key, denied: Option<&str>) {
    let reason = cut(denied.unwrap_or_default(), port.bounds().message_bytes_max);
    port.emit(FlowEvent::UserTaskTransitionEnded { key: task, denied: denied.is_some(), reason });
}

// ── what a listener says ────────────────────────────────────────────────────────────────────

/// Refuses what the listener of a user task must not say, and any word from others.
pub fn check<P: Port>(
    port: &P,
    job: Key,
    brought: &[(Text, Text)],
    says: Option<&ListenerSays>,
) -> Result<(), FlowRejection> {
    let refuse = |why| Err(FlowRejection::ListenerSaysTooMuch { job, why });
    let Some((event, transition)) = asked_by(port, job) else {
        let why = "only the listener of a user task denies or corrects";
        return if says.is_some() { refuse(why) } else { Ok(()) };
    };
    if !brought.is_empty() {
        return refuse("the listener of a user task brings no variables");
    }
    match says {
        None => Ok(()),
        Some(ListenerSays::Denied(_)) if event.may_be_denied() => Ok(()),
        Some(ListenerSays::Denied(_)) => {
            refuse("that a user task is made or cancelled cannot be denied")
        }
        Some(ListenerSays::Corrected(given)) => {
            if given.priority.is_some_and(|priority| priority > USER_TASK_PRIORITY_MAX) {
                return refuse("the priority must be 0 to 100");
            }
            let is_given = given.assignee.is_some() && event == UserTaskEvent::Creating;
            if is_given && transition.has_model_assignee(port.state()) {
                return refuse(
                    "the process says whose the user task is: correct that when it is assigned",
                );
            }
            Ok(())
        }
    }
}

/// The transition that a listener's job holds.
fn asked_by<P: Port>(port: &P, job: Key) -> Option<(UserTaskEvent, &Transition)> {
    let element = port.state().element(port.state().element_of_job(job)?)?;
    let event = element.job.and_then(|(_, role)| role.user_task_event())?;
    Some((event, port.state().transition(element.user_task?)?))
}

/// The job of a listener is done. Its word was checked.
pub(crate) fn answered<P: Port>(
    port: &mut P,
    job: Key,
    role: JobRole,
    says: Option<&ListenerSays>,
) {
    let Some(key) = port.state().element_of_job(job) else { return };
    let element = port.state().live(key);
    let (task, next) = (element.user_task, element.listener.saturating_add(1));
    // An event may have interrupted it, or somebody ended it.
    let goes_on = if role == JobRole::CancelingListener {
        element.phase == Phase::Terminating
    } else {
        element.listens()
    };
    port.emit(FlowEvent::JobDetached { element: key, job });
    let Some(task) = task.filter(|_| goes_on) else { return };
    match says {
        Some(ListenerSays::Denied(reason)) => return end(port, task, Some(reason)),
        Some(ListenerSays::Corrected(given)) => correct(port, task, given),
        None => {}
    }
    port.emit(FlowEvent::ListenerPassed { element: key, next });
}

fn correct<P: Port>(port: &mut P, task: Key, given: &UserTaskCorrections) {
    let Some(transition) = port.state().transition(task) else { return };
    let mut wanted = transition.task.as_event(task);
    for (place, new) in [
        (&mut wanted.assignee, &given.assignee),
        (&mut wanted.candidate_groups, &given.candidate_groups),
        (&mut wanted.candidate_users, &given.candidate_users),
        (&mut wanted.due_date, &given.due_date),
        (&mut wanted.follow_up_date, &given.follow_up_date),
    ] {
        if let Some(new) = new {
            *place = new.to_string().into();
        }
    }
    wanted.priority = given.priority.unwrap_or(wanted.priority);
    port.emit(FlowEvent::UserTaskCorrected(Box::new(wanted)));
}

// ── headers ─────────────────────────────────────────────────────────────────────────────────

/// The headers of the user task, those of the listener, and what the user task is to be.
fn headers<P: Port>(port: &P, key: Key, node: &Node, own: &str) -> Text {
    let mut all: BTreeMap<Text, Text> = BTreeMap::new();
    let of_task = if let Kind::UserTask(task) = &node.kind { &*task.headers } else { "" };
    for given in [of_task, own] {
        all.extend(variables::split(given.as_bytes()).unwrap_or_default());
    }
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            let mut written = String::new();
            variables::write_text(&mut written, value);
            all.insert(format!("io.camunda.zeebe:{name}").into(), written.into());
        }
    };
    let shown = port.state().user_task_of(key);
    let Some(shown) = shown else { return variables::join(&all).into() };
    let list = |list: &str| if list == "[]" { String::new() } else { list.to_owned() };
    put("action", &shown.action);
    put("assignee", &shown.task.assignee);
    put("candidateGroups", &list(&shown.task.candidate_groups));
    put("candidateUsers", &list(&shown.task.candidate_users));
    put("changedAttributes", &list(&serde_json::Value::from(&*shown.changed).to_string()));
    put("dueDate", &shown.task.due_date);
    put("followUpDate", &shown.task.follow_up_date);
    if shown.task.form != Key::NONE {
        put("formKey", &shown.task.form.raw().to_string());
    }
    put("priority", &shown.task.priority.to_string());
    put("userTaskKey", &shown.key.raw().to_string());
    variables::join(&all).into()
}

impl UserTask {
    /// As events have it.
    pub(crate) fn as_event(&self, key: Key) -> UserTaskCreated<'static> {
        let owned = |text: &Text| text.to_string().into();
        UserTaskCreated {
            key,
            element: self.element,
            assignee: owned(&self.assignee),
            candidate_groups: owned(&self.candidate_groups),
            candidate_users: owned(&self.candidate_users),
            due_date: owned(&self.due_date),
            follow_up_date: owned(&self.follow_up_date),
            priority: self.priority,
            form: self.form,
            form_reference: owned(&self.form_reference),
            headers: owned(&self.headers),
        }
    }
}
