//! Restart, retry and rerun: a workflow that has ended runs again.

use windlass_record::flow::{FlowRejection, Key, NO_KEY};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{
    RerunWorkflow, TaskChanged, TaskStatus, WorkflowEvent, WorkflowRevived, WorkflowStatus, id_of,
};

use super::beside::Forks;
use super::{conflict, json, known};
use crate::conductor::plan::Kind;
use crate::conductor::state::Workflows;
use crate::conductor::task::change;
use crate::conductor::workflow::{emit, workflows};
use crate::conductor::{lenient, refuse, start, task};
use crate::kernel::Port;

fn revived<'a>(state: &Workflows, key: Key) -> WorkflowRevived<'a> {
    WorkflowRevived {
        key,
        definition: state.known(key).definition,
        input: None,
        variables: None,
        correlation_id: None,
        anew: false,
        rerun: false,
    }
}

/// Begins again.
pub(super) fn restart<P: Port>(port: &mut P, key: Key, latest: bool) -> Result<(), FlowRejection> {
    let status = known(port, key)?;
    if !status.is_at_rest() {
        return Err(conflict(format!(
            "Workflow: {} is in {} state, unable to restart",
            id_of(key),
            status.name()
        )));
    }
    let workflow = workflows(port).known(key);
    let plan = workflow.plan.clone();
    let mut runs_by = start::Snapshot::Known(workflow.definition);
    if latest {
        let listed = workflows(port).listed_definition(&plan.name, None).ok_or_else(|| {
            let message = format!("Unable to find latest definition for {}", plan.name);
            refuse(RejectionKind::NotFound, message)
        })?;
        runs_by = start::snapshot(workflows(port), listed)?;
    }
    if status == WorkflowStatus::Completed && !plan.restartable {
        let message = format!("Workflow: {} is non-restartable", id_of(key));
        return Err(refuse(RejectionKind::NotFound, message));
    }

    // Cannot fail from here.
    let definition = runs_by.keep(port);
    drop_all(port, key);
    let variables = variables(workflows(port), definition);
    let again = WorkflowRevived {
        definition,
        variables: Some(&variables),
        anew: true,
        ..revived(workflows(port), key)
    };
    emit(port, WorkflowEvent::WorkflowRevived(Box::new(again)));
    revive_parents(port, key);
    Ok(())
}

/// The variables that a workflow begins with.
fn variables(state: &Workflows, definition: Key) -> String {
    let plan = state.definitions.get(&definition).map(|it| it.plan.clone());
    let given = plan.and_then(|plan| lenient::object(&plan.json, "variables").cloned());
    serde_json::Value::Object(given.unwrap_or_default()).to_string()
}

fn drop_all<P: Port>(port: &mut P, key: Key) {
    let tasks: Vec<Key> = workflows(port).known(key).tasks.iter().copied().collect();
    drop_tasks(port, tasks);
}

/// Forgets tasks, and ends what still runs for them.
fn drop_tasks<P: Port>(port: &mut P, tasks: Vec<Key>) {
    for key in &tasks {
        if !workflows(port).known_task(*key).status.is_at_rest() {
            task::cancel(port, *key);
        }
    }
    if !tasks.is_empty() {
        emit(port, WorkflowEvent::TasksDropped { tasks: tasks.into() });
    }
}

/// Goes on with what failed.
pub(super) fn retry<P: Port>(
    port: &mut P,
    key: Key,
    subworkflows: bool,
) -> Result<(), FlowRejection> {
    let status = known(port, key)?;
    if !status.is_at_rest() {
        let message = format!("Workflow is still running.  status={}", status.name());
        return Err(refuse(RejectionKind::NotFound, message));
    }
    if workflows(port).known(key).tasks.is_empty() {
        return Err(conflict("Workflow has not started yet".to_owned()));
    }
    let mut target = key;
    if subworkflows {
        // Into the deepest child that failed.
        while let Some(child) = failed_child(workflows(port), target) {
            target = child;
        }
    }
    // One that took too long may have nothing but tasks that were done.
    let timed_out = workflows(port).known(target).status == WorkflowStatus::TimedOut;
    if failed(workflows(port), target).is_empty() && !timed_out {
        return Err(conflict(format!(
            "There are no retryable tasks! Use restart if you want to attempt entire workflow \
             execution again. workflow {}",
            id_of(target)
        )));
    }
    let bytes = bytes_again(workflows(port), target);
    fits_again(port, bytes)?;

    // Cannot fail from here.
    retry_one(port, target);
    revive_parents(port, target);
    Ok(())
}

/// Whether tasks with so much input (bytes) may be scheduled again at once.
fn fits_again<P: Port>(port: &P, bytes: usize) -> Result<(), FlowRejection> {
    task::fits(port, bytes).map_err(|problem| {
        let message = format!("too much failed to be retried at once, restart it. {problem}");
        refuse(RejectionKind::ResourceExhausted, message)
    })
}

/// What the tasks that a retry schedules again have as input (bytes).
fn bytes_again(state: &Workflows, key: Key) -> usize {
    let bytes =
        |tasks: Vec<Key>| tasks.iter().map(|task| state.known_task(*task).input.len()).sum();
    let mut sum: usize = bytes(failed(state, key));
    let mut child = key;
    while let Some((parent_task, parent)) = parent_of(state, child) {
        let beside = siblings(state, parent, parent_task).into_iter();
        let again = |task| match unfinished_child(state, task) {
            Some(child) => failed(state, child),
            None => vec![task],
        };
        sum += bytes(beside.flat_map(again).collect());
        child = parent;
    }
    sum
}

/// The newest records that can be tried again.
fn failed(state: &Workflows, key: Key) -> Vec<Key> {
    let workflow = state.known(key);
    let counts = |key: &Key| {
        state.task(*key).is_some_and(|task| {
            matches!(
                task.status,
                TaskStatus::Failed
                    | TaskStatus::TimedOut
                    | TaskStatus::FailedWithTerminalError
                    | TaskStatus::Canceled
            )
        })
    };
    let mut keys: Vec<Key> = workflow.newest.values().copied().filter(counts).collect();
    keys.sort_unstable();
    keys
}

fn failed_child(state: &Workflows, key: Key) -> Option<Key> {
    failed(state, key).into_iter().find_map(|task| {
        let child = state.task(task)?.child;
        let status = state.workflow(child)?.status;
        let failed = status.is_at_rest() && status != WorkflowStatus::Completed;
        (failed && state.task(task)?.status != TaskStatus::Canceled).then_some(child)
    })
}

fn retry_one<P: Port>(port: &mut P, key: Key) {
    let tasks = failed(workflows(port), key);
    let again = revived(workflows(port), key);
    emit(port, WorkflowEvent::WorkflowRevived(Box::new(again)));
    for task in tasks {
        try_again(port, task);
    }
}

/// A task that failed is scheduled again; joins and loops go on where they were.
fn try_again<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let record = state.known_task(key);
    let plan = state.plan_of(record);
    if !record.node(&plan).kind.goes_on_where_it_was() {
        task::retry(port, key, 0, "");
        return;
    }
    goes_on(port, key, None);
}

/// A task goes on where it was. If it has a time, that begins anew.
fn goes_on<P: Port>(port: &mut P, key: Key, output: Option<&str>) {
    let state = workflows(port);
    let started_ms = task::limit::is_set(state, state.known_task(key)).then_some(0);
    let (status, reason) = (Some(TaskStatus::InProgress), Some(""));
    change(port, TaskChanged { status, output, reason, started_ms, ..TaskChanged::of(key) });
}

/// Whatever a workflow runs for runs again, with the siblings that were cancelled.
fn revive_parents<P: Port>(port: &mut P, key: Key) {
    let mut child = key;
    while let Some((parent_task, parent)) = parent_of(workflows(port), child) {
        let state = workflows(port);
        let ended = state.known(parent).status.is_at_rest();
        let others = siblings(state, parent, parent_task);
        if ended {
            let again = revived(state, parent);
            emit(port, WorkflowEvent::WorkflowRevived(Box::new(again)));
        }
        goes_on(port, parent_task, None);
        if ended {
            for other in others {
                revive_beside(port, other);
            }
        }
        child = parent;
    }
}

/// The task that a workflow runs for, and the workflow of that; none if that has gone on without
/// it, or with another.
fn parent_of(state: &Workflows, child: Key) -> Option<(Key, Key)> {
    let parent_task = state.known(child).parent_task;
    let record = state.task(parent_task).filter(|task| task.child == child && !task.retried)?;
    let optional = record.node(&state.plan_of(record)).optional;
    (!optional).then_some((parent_task, record.workflow))
}

/// What ended with a task because that failed: cancelled ones, joins, and what others run for.
fn siblings(state: &Workflows, workflow: Key, task: Key) -> Vec<Key> {
    let ended_with_it = |other: &Key| {
        let record = state.known_task(*other);
        let is_join = record.node(&state.plan_of(record)).kind == Kind::Join;
        let goes_on = is_join || unfinished_child(state, *other).is_some();
        *other != task && (record.status == TaskStatus::Canceled || goes_on)
    };
    failed(state, workflow).into_iter().filter(ended_with_it).collect()
}

/// The workflow that ran for a task and can be tried again where it was.
fn unfinished_child(state: &Workflows, task: Key) -> Option<Key> {
    let child = state.task(task)?.child;
    let workflow = state.workflow(child)?;
    let ended = workflow.status.is_at_rest() && workflow.status != WorkflowStatus::Completed;
    (ended && !failed(state, child).is_empty()).then_some(child)
}

/// A sibling goes on: what ran for it where that was, so that nothing is done twice.
fn revive_beside<P: Port>(port: &mut P, task: Key) {
    let Some(child) = unfinished_child(workflows(port), task) else {
        try_again(port, task);
        return;
    };
    retry_one(port, child);
    goes_on(port, task, None);
}

/// Begins again, or from a task.
pub(super) fn rerun<P: Port>(
    port: &mut P,
    key: Key,
    command: &RerunWorkflow,
) -> Result<(), FlowRejection> {
    let status = known(port, key)?;
    if !status.is_at_rest() {
        return Err(conflict(format!(
            "Workflow: {} is in {} state, unable to rerun",
            id_of(key),
            status.name()
        )));
    }
    let object = |bytes: &[u8]| -> Result<Option<String>, FlowRejection> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let given = json(bytes)?;
        Ok(given.as_object().filter(|it| !it.is_empty()).map(|_| given.to_string()))
    };
    let workflow_input = object(&command.workflow_input)?;
    let task_input = object(&command.task_input)?;
    let correlation_id = (!command.correlation_id.is_empty()).then_some(&*command.correlation_id);
    let (target, from) = match command.from {
        None => (key, None),
        Some(task) => {
            let found = find_below(workflows(port), key, task).ok_or_else(|| {
                let message = format!("Task {} not found", id_of(task));
                refuse(RejectionKind::InvalidArgument, message)
            })?;
            (found, Some((task, Forks::around(workflows(port), task))))
        }
    };

    let beside = from.as_ref().map(|(_, forks)| failed_beside(workflows(port), target, forks));
    let beside = beside.unwrap_or_default();
    let bytes = beside.iter().map(|task| workflows(port).known_task(*task).input.len()).sum();
    fits_again(port, bytes)?;

    // Cannot fail from here.
    let Some((task, forks)) = from else {
        drop_all(port, key);
        let variables = variables(workflows(port), workflows(port).known(key).definition);
        let again = WorkflowRevived {
            input: workflow_input.as_deref(),
            variables: Some(&variables),
            correlation_id,
            anew: true,
            rerun: true,
            ..revived(workflows(port), key)
        };
        emit(port, WorkflowEvent::WorkflowRevived(Box::new(again)));
        revive_parents(port, key);
        return Ok(());
    };
    rerun_from(port, target, (task, &forks), task_input.as_deref());
    let again = WorkflowRevived {
        input: workflow_input.as_deref().filter(|_| target == key),
        correlation_id: correlation_id.filter(|_| target == key),
        rerun: true,
        ..revived(workflows(port), target)
    };
    emit(port, WorkflowEvent::WorkflowRevived(Box::new(again)));
    for task in beside {
        try_again(port, task);
    }
    revive_parents(port, target);
    Ok(())
}

/// What failed, or was cancelled, in other branches of the forks around a task: without it their
/// JOINs would fail again.
fn failed_beside(state: &Workflows, workflow: Key, forks: &Forks) -> Vec<Key> {
    let mut failed = failed(state, workflow);
    failed
        .retain(|other| forks.are_around(state, *other) || forks.keys().any(|fork| fork == *other));
    failed
}

/// The workflow that a task is of: this one, or one that runs for its tasks.
fn find_below(state: &Workflows, key: Key, task: Key) -> Option<Key> {
    let mut at = state.task(task)?.workflow;
    let found = at;
    while at != key {
        at = state.task(state.workflow(at)?.parent_task)?.workflow;
    }
    Some(found)
}

/// Forgets what came after a task, but for what stands beside it, and lets it begin again.
fn rerun_from<P: Port>(
    port: &mut P,
    workflow: Key,
    (key, forks): (Key, &Forks),
    input: Option<&str>,
) {
    let state = workflows(port);
    let record = state.known_task(key);
    let seq = record.seq;
    let mut round = (record.loop_task, record.iteration);
    let joins = forks.joins(state);
    let is_later = |other: &Key| {
        state.known_task(*other).seq > seq
            && !joins.contains(other)
            && !forks.are_around(state, *other)
    };
    let later: Vec<Key> = state.known(workflow).tasks.iter().copied().filter(is_later).collect();
    drop_tasks(port, later);
    for join in joins {
        goes_on(port, join, Some("{}"));
    }
    // The loops around it go on, in the rounds that it is in.
    while let Some(outer) = workflows(port).task(round.0) {
        let (task, iteration) = round;
        let (at_rest, advanced) = (outer.status.is_at_rest(), outer.advanced);
        round = (outer.loop_task, outer.iteration);
        if at_rest {
            goes_on(port, task, None);
        }
        if advanced != iteration {
            emit(port, WorkflowEvent::TaskAdvanced { task, to: iteration });
        }
    }
    let changed = TaskChanged {
        status: Some(TaskStatus::Scheduled),
        input,
        output: Some("{}"),
        reason: Some(""),
        worker: Some(""),
        started_ms: Some(0),
        polls: Some(0),
        callback_s: Some(0),
        child: Some(NO_KEY),
        ..TaskChanged::of(key)
    };
    change(port, changed);
}
