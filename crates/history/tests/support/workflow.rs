//! Events of workflows.

use windlass_record::event::Event;
use windlass_record::flow::{FlowEvent, Key};
use windlass_record::workflow::{
    TaskChanged, TaskScheduled, TaskStatus, WorkflowEvent, WorkflowRevived, WorkflowStarted,
    WorkflowStatus, id_of,
};

use super::key;

/// The listed definition, and the snapshot that workflows run by.
pub(crate) const LISTED: u64 = 10;
pub(crate) const SNAPSHOT: u64 = 11;

pub(crate) fn event(event: WorkflowEvent<'_>) -> Event<'_> {
    Event::Flow(FlowEvent::Workflow(event))
}

pub(crate) fn id(of: u64) -> String {
    id_of(key(of))
}

pub(crate) fn definition(
    of: u64,
    name: &'static str,
    version: u32,
    snapshot_of: u64,
) -> Event<'static> {
    event(WorkflowEvent::WorkflowDefined {
        key: key(of),
        name,
        version,
        listed: snapshot_of == 0,
        snapshot_of: key(snapshot_of),
        json: r#"{"name":"order","version":1,"ownerApp":"shop","tasks":[{"name":"pay",
            "taskReferenceName":"pay_ref","type":"SIMPLE",
            "taskDefinition":{"responseTimeoutSeconds":30}}]}"#,
    })
}

/// `order`, version 1.
pub(crate) fn defined() -> Vec<Event<'static>> {
    vec![definition(LISTED, "order", 1, 0), definition(SNAPSHOT, "order", 1, LISTED)]
}

pub(crate) fn start(of: u64) -> WorkflowStarted<'static> {
    WorkflowStarted {
        key: key(of),
        definition: key(SNAPSHOT),
        parent_task: Key::NONE,
        input: "{\"n\":1}",
        variables: "{}",
        correlation_id: "",
        idempotency_key: "",
        task_to_domain: "",
        priority: 0,
        created_by: "",
        event: "",
        rate_limit_key: "",
        waits: false,
    }
}

pub(crate) fn begun(started: WorkflowStarted<'_>) -> Event<'_> {
    event(WorkflowEvent::WorkflowStarted(Box::new(started)))
}

pub(crate) fn over(of: u64, status: WorkflowStatus, reason: &'static str) -> Event<'static> {
    event(WorkflowEvent::WorkflowEnded {
        key: key(of),
        status,
        reason,
        output: "{\"sum\":3}",
        compensate: false,
        by: Key::NONE,
    })
}

pub(crate) fn closed(of: u64) -> Event<'static> {
    event(WorkflowEvent::WorkflowClosed { key: key(of), output: None })
}

pub(crate) fn removed(of: u64, forget: bool) -> Event<'static> {
    event(WorkflowEvent::WorkflowRemoved { key: key(of), forget })
}

pub(crate) fn revived(of: u64, anew: bool) -> Event<'static> {
    event(WorkflowEvent::WorkflowRevived(Box::new(WorkflowRevived {
        key: key(of),
        definition: key(SNAPSHOT),
        input: None,
        variables: None,
        correlation_id: Some("again"),
        anew,
        rerun: false,
    })))
}

pub(crate) fn schedule(of: u64, workflow: u64) -> TaskScheduled<'static> {
    TaskScheduled {
        key: key(of),
        workflow: key(workflow),
        among: Key::NONE,
        node: 0,
        loop_task: Key::NONE,
        iteration: 0,
        reference: "pay_ref",
        task_type: "pay",
        name: "pay",
        retry_count: 0,
        retry_of: Key::NONE,
        first_ms: 0,
        status: TaskStatus::Scheduled,
        input: "{\"amount\":17}",
        reason: "",
        domain: "",
        delay_s: 0,
    }
}

pub(crate) fn scheduled(task: TaskScheduled<'_>) -> Event<'_> {
    event(WorkflowEvent::TaskScheduled(Box::new(task)))
}

pub(crate) fn changed(of: u64, status: TaskStatus) -> Event<'static> {
    event(WorkflowEvent::TaskChanged(Box::new(TaskChanged {
        status: Some(status),
        output: Some("{\"paid\":true}"),
        ..TaskChanged::of(key(of))
    })))
}

pub(crate) fn followed(of: u64, retried: bool) -> Event<'static> {
    event(WorkflowEvent::TaskFollowed { task: key(of), retried })
}

pub(crate) fn job_of(task: u64, job: u64) -> Event<'static> {
    event(WorkflowEvent::TaskJobAttached { task: key(task), job: key(job), evaluates: false })
}
