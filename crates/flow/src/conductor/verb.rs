//! One file per family of commands on workflows: what they mean, what refuses them, what follows.

mod beside;
pub(crate) mod define;
mod revive;
mod skip;
mod update;

use serde_json::Value;
use windlass_record::flow::{FlowRejection, Key, NO_KEY};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{
    WorkflowAnswer, WorkflowCommand, WorkflowEvent, WorkflowStatus, WorkflowVerb, id_of,
};

use super::start::{self, Start};
use super::task::set_variable::VARIABLES_BYTES_MAX;
use super::workflow::{self, End, emit, workflows};
use super::{job, lenient, refuse};
use crate::kernel::Port;

pub(crate) use update::{blocking, update};

/// Decides a command on workflows.
pub fn decide<P: Port>(
    port: &mut P,
    command: &WorkflowCommand,
) -> Result<WorkflowAnswer, FlowRejection> {
    match command {
        WorkflowCommand::DefineTasks { tasks, must_exist } => {
            define::tasks(port, tasks, *must_exist)
        }
        WorkflowCommand::ForgetTask { name } => define::forget_task(port, name),
        WorkflowCommand::DefineWorkflow { workflow, overwrite, dry_run } => {
            define::workflow(port, workflow, *overwrite, *dry_run)
        }
        WorkflowCommand::ForgetWorkflow { name, version } => {
            define::forget_workflow(port, name, *version)
        }
        WorkflowCommand::DefineHandler { handler, must_exist } => {
            define::handler(port, handler, *must_exist)
        }
        WorkflowCommand::ForgetHandler { name } => define::forget_handler(port, name),
        WorkflowCommand::Start { request } => {
            let request = Start::parse(&json(request)?)?;
            let (workflow, existing) =
                start::start(port, request).map_err(|start::NotStarted(refused)| refused)?;
            Ok(WorkflowAnswer::Started { workflow, existing })
        }
        WorkflowCommand::UpdateTask(command) => update(port, command),
        WorkflowCommand::LogTask { task, lines } => update::log(port, *task, lines),
        WorkflowCommand::RequeueTasks { task_type } => Ok(update::requeue(port, task_type)),
        WorkflowCommand::Control { workflow, verb } => control(port, *workflow, verb),
        WorkflowCommand::Signal(signal) => update::signal(port, signal),
    }
}

/// Starts a workflow for a schedule: `_scheduledTime` and `_executedTime` are in its input.
pub fn start_scheduled<P: Port>(
    port: &mut P,
    request: &str,
    schedule: &str,
    scheduled_for_ms: u64,
    now_ms: u64,
) -> Result<Key, FlowRejection> {
    let mut request = Start::parse(&json(request.as_bytes())?)?;
    let times = [
        ("_scheduledTime", Value::from(scheduled_for_ms)),
        ("_executedTime", now_ms.into()),
        ("_startedByScheduler", schedule.into()),
    ];
    request.input.extend(times.map(|(name, value)| (name.to_owned(), value)));
    let (workflow, _) =
        start::start(port, request).map_err(|start::NotStarted(refused)| refused)?;
    Ok(workflow)
}

/// JSON that came with a command.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, FlowRejection> {
    serde_json::from_slice(bytes)
        .map_err(|error| refuse(RejectionKind::InvalidArgument, error.to_string()))
}

fn known<P: Port>(port: &P, key: Key) -> Result<WorkflowStatus, FlowRejection> {
    let workflow = workflows(port).workflow(key);
    workflow.map(|workflow| workflow.status).ok_or_else(|| {
        refuse(RejectionKind::NotFound, format!("No such workflow found by id: {}", id_of(key)))
    })
}

fn conflict(message: String) -> FlowRejection {
    refuse(RejectionKind::AlreadyExists, message)
}

fn control<P: Port>(
    port: &mut P,
    key: Key,
    verb: &WorkflowVerb,
) -> Result<WorkflowAnswer, FlowRejection> {
    let status = known(port, key)?;
    match verb {
        WorkflowVerb::Pause => {
            if status.is_at_rest() {
                let message =
                    format!("Workflow {} has ended, status cannot be updated.", id_of(key));
                return Err(conflict(message));
            }
            if status == WorkflowStatus::Running {
                emit(port, WorkflowEvent::WorkflowPaused { key, paused: true });
            }
        }
        WorkflowVerb::Resume => {
            if status != WorkflowStatus::Paused {
                return Err(refuse(
                    RejectionKind::FailedPrecondition,
                    format!(
                        "The workflow {} is not PAUSED so cannot resume. Current status is {}",
                        id_of(key),
                        status.name()
                    ),
                ));
            }
            emit(port, WorkflowEvent::WorkflowPaused { key, paused: false });
            job::overdue(port, key);
        }
        WorkflowVerb::Terminate { reason } => terminate(port, key, reason)?,
        WorkflowVerb::Restart { latest } => revive::restart(port, key, *latest)?,
        WorkflowVerb::Retry { subworkflows } => revive::retry(port, key, *subworkflows)?,
        WorkflowVerb::Rerun(rerun) => revive::rerun(port, key, rerun)?,
        WorkflowVerb::Skip { reference, input, output } => {
            skip::decide(port, key, reference, input, output)?;
        }
        WorkflowVerb::ResetCallbacks => {
            if status.is_at_rest() {
                let message = format!("Workflow is in terminal state. Status = {}", status.name());
                return Err(conflict(message));
            }
            update::reset_callbacks(port, key);
        }
        WorkflowVerb::Decide => {
            // One that waits for a place of its rate limit goes on waiting.
            if !status.is_at_rest() && !workflows(port).known(key).waits {
                emit(port, WorkflowEvent::WorkflowQueued { key });
            }
        }
        WorkflowVerb::Remove { only_at_rest } => remove(port, key, *only_at_rest)?,
        WorkflowVerb::SetVariables { variables } => {
            set_variables(port, key, &json(variables)?)?;
        }
    }
    Ok(WorkflowAnswer::Done)
}

/// Ends a workflow by hand.
pub fn terminate<P: Port>(port: &mut P, key: Key, reason: &str) -> Result<(), FlowRejection> {
    match known(port, key)? {
        WorkflowStatus::Completed => {
            Err(conflict("Cannot terminate a COMPLETED workflow.".to_owned()))
        }
        WorkflowStatus::Terminated => Ok(()),
        WorkflowStatus::Failed | WorkflowStatus::TimedOut => {
            // It has ended; what it says from now on is that a person did it.
            let revived = windlass_record::workflow::WorkflowRevived {
                key,
                definition: workflows(port).known(key).definition,
                input: None,
                variables: None,
                correlation_id: None,
                anew: false,
                rerun: false,
            };
            emit(port, WorkflowEvent::WorkflowRevived(Box::new(revived)));
            end_by_hand(port, key, reason);
            Ok(())
        }
        WorkflowStatus::Running | WorkflowStatus::Paused => {
            end_by_hand(port, key, reason);
            Ok(())
        }
    }
}

fn end_by_hand<P: Port>(port: &mut P, key: Key, reason: &str) {
    let status = WorkflowStatus::Terminated;
    workflow::end(port, key, &End { status, reason, output: None, compensate: false, by: NO_KEY });
}

fn remove<P: Port>(port: &mut P, key: Key, only_at_rest: bool) -> Result<(), FlowRejection> {
    let status = known(port, key)?;
    if !status.is_at_rest() {
        if only_at_rest {
            return Err(refuse(
                RejectionKind::InvalidArgument,
                format!("Cannot archive workflow: {} with status: {}", id_of(key), status.name()),
            ));
        }
        end_by_hand(port, key, "the workflow was removed");
    }
    // Whoever waits for it, or for its place, goes on.
    workflow::tell_parent(port, key);
    workflow::free_place(port, key);
    // Its jobs go with it.
    let open: Vec<Key> = workflows(port).known(key).open.iter().copied().collect();
    for task in open {
        if !workflows(port).known_task(task).status.is_at_rest() {
            super::task::cancel(port, task);
        }
    }
    emit(port, WorkflowEvent::WorkflowRemoved { key, forget: true });
    Ok(())
}

/// Writes variables of a workflow.
pub(crate) fn set_variables<P: Port>(
    port: &mut P,
    key: Key,
    given: &Value,
) -> Result<(), FlowRejection> {
    let status = known(port, key)?;
    let invalid = |message: &str| refuse(RejectionKind::InvalidArgument, message.to_owned());
    let Value::Object(given) = given else {
        return Err(invalid("variables must be a JSON object"));
    };
    if status.is_at_rest() {
        let message = format!("Workflow {} has ended, status cannot be updated.", id_of(key));
        return Err(conflict(message));
    }
    let mut variables = lenient::parse_object(&workflows(port).known(key).variables);
    variables.extend(given.iter().map(|(name, value)| (name.clone(), value.clone())));
    let variables = Value::Object(variables).to_string();
    if variables.len() > VARIABLES_BYTES_MAX {
        return Err(invalid("the variables of a workflow are larger than they may be"));
    }
    emit(port, WorkflowEvent::WorkflowVariablesSet { key, variables: &variables });
    Ok(())
}
