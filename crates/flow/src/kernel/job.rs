//! Jobs of elements: made by them, and what follows when one is done or fails.

use std::collections::BTreeMap;

use windlass_record::command::ListenerSays;
use windlass_record::flow::{FlowEvent, JobRole, Key};

use super::catch::{Thrown, available, catcher};
use super::{NewJob, Port, Stuck, active, expression, variables};
use crate::graph::{JobSpec, Text};
use crate::node::task_listener;

/// Makes the job that an element wants done, and waits for it.
pub(crate) fn create<P: Port>(
    port: &mut P,
    element: Key,
    spec: &JobSpec,
    role: JobRole,
) -> Result<(), Stuck> {
    let job = prepare(port, element, spec)?;
    attach(port, element, &job, role);
    Ok(())
}

/// Computes a job.
pub(crate) fn prepare<P: Port>(port: &P, element: Key, spec: &JobSpec) -> Result<NewJob, Stuck> {
    let live = port.state().live(element);
    let graph = live.graph.clone();
    let job_type = expression::text(port, &spec.job_type, element, "job type")?;
    let retries = expression::integer(port, &spec.retries, element, "number of retries")?;
    let process = graph.node(crate::graph::NodeId::PROCESS);
    let priority = match spec.priority.as_ref().or(process.job_priority.as_ref()) {
        Some(template) => expression::integer(port, template, element, "priority")?,
        None => 0,
    };
    let tenant = port.state().tenant_of(element);
    let headers = headers(port, element, spec)?;
    Ok(NewJob { tenant, job_type, retries, priority, headers })
}

/// The static headers, and those that are computed.
fn headers<P: Port>(port: &P, element: Key, spec: &JobSpec) -> Result<Text, Stuck> {
    if spec.computed_headers.is_empty() {
        return Ok(spec.headers.clone());
    }
    let mut headers = variables::split(spec.headers.as_bytes()).unwrap_or_default();
    for (name, template) in &spec.computed_headers {
        let value = expression::text_of_any(port, template, element, name)?;
        if !value.is_empty() {
            let mut written = String::new();
            variables::write_text(&mut written, &value);
            headers.push((name.clone(), written.into()));
        }
    }
    Ok(variables::join(headers.iter().map(|(name, value)| (name, value))).into())
}

/// Makes a job that was computed.
pub(crate) fn attach<P: Port>(port: &mut P, element: Key, job: &NewJob, role: JobRole) {
    let job = port.create_job(job);
    port.emit(FlowEvent::JobAttached { element, job, role });
}

/// A job of an element is done, with a JSON object taken apart.
pub fn job_completed<P: Port>(port: &mut P, job: Key, result: &[(Text, Text)]) {
    let Some(element) = port.state().element_of_job(job) else { return };
    let live = port.state().live(element);
    let Some((_, role)) = live.job else { return };
    if role.user_task_event().is_some() {
        return task_listener::answered(port, job, role, None);
    }
    let next = live.listener.saturating_add(1);
    port.emit(FlowEvent::JobDetached { element, job });
    match role {
        // An event has already interrupted it.
        JobRole::Work if !port.state().live(element).listens() => {}
        JobRole::Work => {
            variables::deliver(port, element, result);
            port.emit(FlowEvent::ElementCompleting { key: element });
        }
        JobRole::StartListener => {
            variables::set(port, element, result);
            port.emit(FlowEvent::ListenerPassed { element, next });
        }
        JobRole::EndListener => {
            // The mappings have run: what comes now is for the scope around.
            match port.state().live(element).scope {
                Key::NONE => variables::set(port, element, result),
                scope => variables::merge(port, scope, result),
            }
            port.emit(FlowEvent::ListenerPassed { element, next });
        }
        JobRole::CreatingListener
        | JobRole::AssigningListener
        | JobRole::UpdatingListener
        | JobRole::CompletingListener
        | JobRole::CancelingListener => unreachable!("listeners of user tasks answered above"),
    }
}

/// A job of an element is done. The listener of a user task may have something to say, which was
/// checked, see [`check_listener`](super::check_listener).
pub fn listener_answered<P: Port>(port: &mut P, job: Key, says: Option<&ListenerSays>) {
    if let Some(role) = role_of(port, job) {
        task_listener::answered(port, job, role, says);
    }
}

/// An attempt at a job of an element failed and brought variables: they are the element's own.
pub fn job_failed<P: Port>(port: &mut P, job: Key, brought: &[(Text, Text)]) {
    if let Some(element) = port.state().element_of_job(job) {
        variables::set(port, element, brought);
    }
}

/// What a job does for its element.
pub fn role_of<P: Port>(port: &P, job: Key) -> Option<JobRole> {
    let element = port.state().element_of_job(job).and_then(|key| port.state().element(key));
    element?.job.map(|(_, role)| role)
}

/// Why an error was not caught.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// What to tell the one who reads the incident.
    pub message: String,
}

/// The worker of an element's job threw an error. When somebody catches it, the job is no longer
/// the element's: the caller ends it.
pub fn job_threw<P: Port>(
    port: &mut P,
    job: Key,
    code: &str,
    message: &str,
    brought: &[(Text, Text)],
) -> Result<(), JobError> {
    let Some(element) = port.state().element_of_job(job) else {
        return Err(JobError { message: message.to_owned() });
    };
    let role = port.state().live(element).job.map(|(_, role)| role);
    if role == Some(JobRole::Work) && !port.state().live(element).listens() {
        // An event has already interrupted it.
        port.emit(FlowEvent::JobDetached { element, job });
        return Ok(());
    }
    let found = match role {
        // A listener's error is not the element's own.
        Some(
            JobRole::StartListener
            | JobRole::EndListener
            | JobRole::CreatingListener
            | JobRole::AssigningListener
            | JobRole::UpdatingListener
            | JobRole::CompletingListener
            | JobRole::CancelingListener,
        )
        | None => None,
        Some(JobRole::Work) => catcher(port, Thrown::Error, code, element),
    };
    let Some((catcher, node)) = found else {
        return Err(JobError { message: not_caught(port, element, code, message) });
    };
    port.emit(FlowEvent::JobDetached { element, job });
    active::trigger(port, catcher, node, brought);
    Ok(())
}

/// The words of an error that nothing catches.
pub(crate) fn not_caught<P: Port>(port: &P, element: Key, code: &str, message: &str) -> String {
    let codes = available(port, Thrown::Error, element);
    let listed = if codes.is_empty() {
        "No error events are available in the scope.".to_owned()
    } else {
        format!("Available error events are [{}]", codes.join(", "))
    };
    let said =
        if message.is_empty() { String::new() } else { format!(" with message '{message}'") };
    format!(
        "Expected to throw an error event with the code '{code}'{said}, but it was not caught. {listed}"
    )
}

/// Nothing stands in front of an element's own variables.
pub(crate) fn no_front() -> BTreeMap<Text, crate::feel::Value> {
    BTreeMap::new()
}
