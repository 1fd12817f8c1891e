//! Definitions of tasks, of workflows, and of event handlers.

use serde_json::Value;
use windlass_record::command::Bytes;
use windlass_record::flow::{FlowRejection, NO_KEY};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{WorkflowAnswer, WorkflowEvent};

use super::json;
use crate::conductor::definition::TaskDefinition;
use crate::conductor::start::checked;
use crate::conductor::task::limit_key;
use crate::conductor::workflow::{emit, workflows};
use crate::conductor::{lenient, refuse};
use crate::kernel::Port;

/// Definitions of one kind that are kept: of tasks, of workflows with their versions, of event handlers.
const DEFINITIONS_MAX: usize = 100_000;

/// Refuses another definition where there are as many as there may be.
fn has_room(known: usize, more: usize, what: &str) -> Result<(), FlowRejection> {
    if known + more <= DEFINITIONS_MAX {
        return Ok(());
    }
    let message = format!("{what}: there are {known}, and no more than {DEFINITIONS_MAX} are kept");
    Err(refuse(RejectionKind::ResourceExhausted, message))
}

/// New task definitions, all or none.
pub(super) fn tasks<P: Port>(
    port: &mut P,
    tasks: &[Bytes],
    must_exist: bool,
) -> Result<WorkflowAnswer, FlowRejection> {
    let mut read = Vec::new();
    for task in tasks {
        let json = json(task)?;
        let invalid = |message: String| refuse(RejectionKind::InvalidArgument, message);
        let definition = TaskDefinition::parse(&json).map_err(invalid)?;
        let mut problems = definition.problems();
        problems.sort();
        if !problems.is_empty() {
            return Err(invalid(problems.join("\n")));
        }
        if must_exist && workflows(port).task_definition(&definition.name).is_none() {
            let message = format!("No such task by name {}", definition.name);
            return Err(refuse(RejectionKind::NotFound, message));
        }
        read.push((definition, json));
    }
    let state = workflows(port);
    let is_new = |(definition, _): &&(TaskDefinition, Value)| {
        !state.task_names.contains_key(definition.name.as_str())
    };
    let more = read.iter().filter(is_new).count();
    has_room(state.task_definitions.len(), more, "task definitions")?;

    // Cannot fail from here.
    for (definition, json) in read {
        let key = port.next_key();
        let (name, json) = (definition.name.as_str(), json.to_string());
        emit(port, WorkflowEvent::TaskDefined { key, name, json: &json });
        set_limits(port, &definition);
    }
    Ok(WorkflowAnswer::Done)
}

/// The limits of a task definition are limit keys of the engine.
pub(crate) fn set_limits<P: Port>(port: &mut P, definition: &TaskDefinition) {
    let positive = |limit: Option<i64>| {
        limit.filter(|limit| *limit > 0).and_then(|limit| u32::try_from(limit).ok())
    };
    let active_max = positive(definition.concurrent_exec_limit);
    let window_s = positive(definition.rate_limit_frequency_in_seconds).unwrap_or(1);
    let rate = positive(definition.rate_limit_per_frequency)
        .map(|count| (count, u64::from(window_s) * 1_000));
    port.set_limit(&limit_key(&definition.name), active_max, rate);
}

/// A task definition is no longer wanted.
pub(super) fn forget_task<P: Port>(
    port: &mut P,
    name: &str,
) -> Result<WorkflowAnswer, FlowRejection> {
    let Some(key) = workflows(port).task_names.get(name).copied() else {
        return Err(refuse(RejectionKind::NotFound, "No such task definition".to_owned()));
    };
    emit(port, WorkflowEvent::TaskForgotten { key });
    Ok(WorkflowAnswer::Done)
}

/// A new workflow definition.
pub(super) fn workflow<P: Port>(
    port: &mut P,
    given: &[u8],
    overwrite: bool,
    dry_run: bool,
) -> Result<WorkflowAnswer, FlowRejection> {
    let plan = checked(json(given)?)?;
    if dry_run {
        return Ok(WorkflowAnswer::Done);
    }
    let (name, version) = (plan.name.clone(), plan.version);
    let listed = true;
    let is_known = workflows(port).listed_definition(&name, Some(version)).is_some();
    if is_known && !overwrite {
        let message = format!("Workflow with {name}.{version} already exists!");
        return Err(refuse(RejectionKind::AlreadyExists, message));
    }
    has_room(workflows(port).listed_count, usize::from(!is_known), "workflow definitions")?;
    let json = plan.json.to_string();
    let key = port.next_key();
    let (name, snapshot_of, json) = (&*name, NO_KEY, json.as_str());
    emit(port, WorkflowEvent::WorkflowDefined { key, name, version, listed, snapshot_of, json });
    Ok(WorkflowAnswer::Done)
}

/// A workflow definition is no longer wanted.
pub(super) fn forget_workflow<P: Port>(
    port: &mut P,
    name: &str,
    version: u32,
) -> Result<WorkflowAnswer, FlowRejection> {
    let Some(key) = workflows(port).listed_definition(name, Some(version)) else {
        let message = format!("No such workflow definition: {name} version: {version}");
        return Err(refuse(RejectionKind::NotFound, message));
    };
    emit(port, WorkflowEvent::WorkflowForgotten { key });
    Ok(WorkflowAnswer::Done)
}

/// A new event handler.
pub(super) fn handler<P: Port>(
    port: &mut P,
    given: &[u8],
    must_exist: bool,
) -> Result<WorkflowAnswer, FlowRejection> {
    let handler = json(given)?;
    let name = lenient::text(&handler, "name");
    let invalid = |message: &str| refuse(RejectionKind::InvalidArgument, message.to_owned());
    if name.is_empty() {
        return Err(invalid("Missing event handler name"));
    }
    if lenient::text(&handler, "event").is_empty() {
        return Err(invalid("Missing event location"));
    }
    if lenient::list(&handler, "actions").is_empty() {
        return Err(invalid("No actions specified. Please specify at-least one action"));
    }
    let exists = workflows(port).handler_names.contains_key(name);
    if must_exist && !exists {
        let message = format!("EventHandler with name {name} not found!");
        return Err(refuse(RejectionKind::NotFound, message));
    }
    if !must_exist && exists {
        let message = format!("EventHandler with name {name} already exists!");
        return Err(refuse(RejectionKind::AlreadyExists, message));
    }
    has_room(workflows(port).handlers.len(), usize::from(!exists), "event handlers")?;
    let key = port.next_key();
    let json = Value::to_string(&handler);
    emit(port, WorkflowEvent::HandlerDefined { key, name, json: &json });
    Ok(WorkflowAnswer::Done)
}

/// An event handler is no longer wanted.
pub(super) fn forget_handler<P: Port>(
    port: &mut P,
    name: &str,
) -> Result<WorkflowAnswer, FlowRejection> {
    let Some(key) = workflows(port).handler_names.get(name).copied() else {
        let message = format!("EventHandler with name {name} not found!");
        return Err(refuse(RejectionKind::NotFound, message));
    };
    emit(port, WorkflowEvent::HandlerForgotten { key });
    Ok(WorkflowAnswer::Done)
}
