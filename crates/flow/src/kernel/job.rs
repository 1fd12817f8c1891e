//! Jobs of elements: made by them, and what follows when one is done or fails.

use std::collections::BTreeMap;

use windlass_record::flow::{FlowEvent, JobRole, Key};

use super::catch::{Thrown, available, catcher};
use super::{NewJob, Port, Stuck, active, expression, variables};
use crate::graph::{JobSpec, Text};

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
    Ok(NewJob { tenant, job_type, retries, priority, headers: spec.headers.clone() })
}

/// Makes a job that was computed.
pub(crate) fn attach<P: Port>(port: &mut P, element: Key, job: &NewJob, role: JobRole) {
    let job = port.create_job(job);
    port.emit(&FlowEvent::JobAttached { element, job, role });
}

/// A job of an element is done, with a JSON object taken apart.
pub fn job_completed<P: Port>(port: &mut P, job: Key, result: &[(Text, Text)]) {
    let Some(element) = port.state().element_of_job(job) else { return };
    let live = port.state().live(element);
    let Some((_, role)) = live.job else { return };
    let next = live.listener.saturating_add(1);
    port.emit(&FlowEvent::JobDetached { element, job });
    match role {
        JobRole::Work => {
            variables::deliver(port, element, result);
            port.emit(&FlowEvent::ElementCompleting { key: element });
        }
        JobRole::StartListener | JobRole::EndListener => {
            variables::set(port, element, result);
            port.emit(&FlowEvent::ListenerPassed { element, next });
        }
    }
}

/// An attempt at a job of an element failed and brought variables: they are the element's own.
pub fn job_failed<P: Port>(port: &mut P, job: Key, brought: &[(Text, Text)]) {
    if let Some(element) = port.state().element_of_job(job) {
        variables::set(port, element, brought);
    }
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
    let found = match role {
        // A listener's error is not the element's own.
        Some(JobRole::StartListener | JobRole::EndListener) | None => None,
        Some(JobRole::Work) => catcher(port, Thrown::Error, code, element),
    };
    let Some((catcher, node)) = found else {
        return Err(JobError { message: not_caught(port, element, code, message) });
    };
    port.emit(&FlowEvent::JobDetached { element, job });
    active::trigger(port, catcher, node, brought);
    Ok(())
}

/// The words of an error that nothing catches.
pub(crate) fn not_caught<P: Port>(port: &P, element: Key, code: &str, message: &str) -> String {
    let codes = available(port, Thrown::Error, element);
    let listed = if codes.is_empty() {
        "No error catch events are available in the scope.".to_owned()
    } else {
        format!("Available error catch events are [{}]", codes.join(", "))
    };
    let said = if message.is_empty() { String::new() } else { format!(" ({message})") };
    format!("An error was thrown with the code '{code}'{said}, but not caught. {listed}")
}

/// Nothing stands in front of an element's own variables.
pub(crate) fn no_front() -> BTreeMap<Text, crate::feel::Value> {
    BTreeMap::new()
}
