//! What workers, and people, say about tasks.

use serde_json::Value;
use windlass_record::flow::{FlowRejection, Key, NO_KEY};
use windlass_record::rejection::RejectionKind;
use windlass_record::workflow::{
    SignalWorkflow, TaskChanged, TaskReference, TaskStatus, TaskUpdate, WorkflowAnswer,
    WorkflowEvent, WorkflowStatus, id_of,
};

use super::{json, known};
use crate::conductor::plan::Kind;
use crate::conductor::state::{Task, Workflows};
use crate::conductor::task::{self, change};
use crate::conductor::workflow::{emit, workflows};
use crate::conductor::{job, lenient, refuse};
use crate::kernel::{Port, TaskJobNow};

/// Tasks that one request makes ready.
const REQUEUED_MAX: usize = 100_000;

/// Decides [`TaskUpdate`].
pub(crate) fn update<P: Port>(
    port: &mut P,
    command: &TaskUpdate,
) -> Result<WorkflowAnswer, FlowRejection> {
    let status = known(port, command.workflow)?;
    let found = find(workflows(port), command.workflow, &command.task);
    let Some(key) = found else {
        return match &command.task {
            TaskReference::Key(key) => Err(no_task(*key)),
            TaskReference::Name(_) => Ok(nothing()),
        };
    };
    let output = output(port, key, command)?;
    let task = workflows(port).known_task(key);
    // What has ended stays as it is.
    if task.status.is_at_rest() || status.is_at_rest() {
        return Ok(updated(task, key, false));
    }
    if command.extend_lease {
        if let Some((job, _)) = task.job {
            port.extend_task_job(job);
        }
        return Ok(updated(workflows(port).known_task(key), key, false));
    }

    // Cannot fail from here.
    write_log(port, key, &command.log);
    if command.status.is_at_rest() {
        end(port, key, command, output.as_deref());
    } else {
        put_back(port, key, command, output.as_deref());
    }
    let task = workflows(port).known_task(key);
    Ok(updated(task, key, task.status.is_at_rest()))
}

fn updated(task: &Task, key: Key, ended: bool) -> WorkflowAnswer {
    WorkflowAnswer::Updated {
        task: key,
        status: task.status,
        ended,
        task_type: task.task_type.clone(),
        domain: task.domain.clone(),
    }
}

fn nothing() -> WorkflowAnswer {
    WorkflowAnswer::Updated {
        task: NO_KEY,
        status: TaskStatus::Scheduled,
        ended: false,
        task_type: "".into(),
        domain: "".into(),
    }
}

fn no_task(key: Key) -> FlowRejection {
    refuse(RejectionKind::NotFound, format!("No such task found by id: {}", id_of(key)))
}

/// The task that is meant; by name the newest that has not ended.
fn find(state: &Workflows, workflow: Key, reference: &TaskReference) -> Option<Key> {
    match reference {
        TaskReference::Key(key) => {
            state.task(*key).filter(|task| task.workflow == workflow).map(|_| *key)
        }
        TaskReference::Name(name) => {
            state.newest(workflow, name).filter(|key| !state.known_task(*key).status.is_at_rest())
        }
    }
}

/// The output from now on; `None` is "as it is".
fn output<P: Port>(
    port: &P,
    key: Key,
    command: &TaskUpdate,
) -> Result<Option<String>, FlowRejection> {
    if command.output.is_empty() {
        return Ok(None);
    }
    let fits = |bytes| {
        let refused = |message| refuse(RejectionKind::InvalidArgument, message);
        task::fits(port, bytes).map_err(refused)
    };
    fits(command.output.len())?;
    let Value::Object(given) = json(&command.output)? else { return Ok(None) };
    let mut output = given;
    if command.merge {
        let mut merged = lenient::parse_object(&workflows(port).known_task(key).output);
        merged.extend(output);
        output = merged;
    }
    let output = Value::Object(output).to_string();
    fits(output.len())?;
    Ok(Some(output))
}

fn end<P: Port>(port: &mut P, key: Key, command: &TaskUpdate, output: Option<&str>) {
    let job = workflows(port).known_task(key).job.map(|(job, _)| job);
    let known = job.and_then(|job| port.task_job(job));
    let started_ms = workflows(port).known_task(key).started_ms;
    let mut now = known.unwrap_or(TaskJobNow { started_ms, ..TaskJobNow::default() });
    if !command.worker.is_empty() {
        now.worker = (&*command.worker).into();
    }
    if let Some(job) = job {
        emit(port, WorkflowEvent::TaskJobDetached { task: key });
        port.complete_task_job(job);
    }
    job::ended(port, key, &now, command.status, output, &command.reason);
}

/// A task that goes on: that of a worker waits to be handed out again.
fn put_back<P: Port>(port: &mut P, key: Key, command: &TaskUpdate, output: Option<&str>) {
    let state = workflows(port);
    let task = state.known_task(key);
    let plan = state.plan_of(task);
    let works = task.node(&plan).kind.is_work() && task.node(&plan).kind != Kind::Builtin;
    let job = task.job.map(|(job, _)| job);
    let worker = (!command.worker.is_empty()).then_some(&*command.worker);
    let changed = TaskChanged {
        // One that has not begun yet begins as it would have.
        status: (!works && task.status == TaskStatus::InProgress).then_some(command.status),
        output,
        reason: (!command.reason.is_empty()).then_some(&*command.reason),
        worker,
        callback_s: Some(command.callback_s),
        ..TaskChanged::of(key)
    };
    change(port, changed);
    if let Some(job) = job.filter(|_| works) {
        port.put_back_task_job(job, u64::from(command.callback_s) * 1_000);
    }
}

/// Lines for a task's log.
pub(super) fn log<P: Port>(
    port: &mut P,
    key: Key,
    lines: &[Box<str>],
) -> Result<WorkflowAnswer, FlowRejection> {
    if workflows(port).task(key).is_none() {
        return Err(no_task(key));
    }
    write_log(port, key, lines);
    Ok(WorkflowAnswer::Done)
}

/// Lines beyond what an attempt may say are dropped, and long ones are cut.
fn write_log<P: Port>(port: &mut P, key: Key, lines: &[Box<str>]) {
    let bounds = port.bounds();
    let lines_max = usize::try_from(bounds.log_lines_per_attempt_max).unwrap_or(usize::MAX);
    let line_bytes_max = bounds.log_line_bytes_max;
    let room = lines_max.saturating_sub(workflows(port).known_task(key).log.len());
    let cut = |line| windlass_record::bound::cut(line, line_bytes_max).to_owned();
    let lines: Vec<_> = lines.iter().take(room).map(|line| cut(line).into()).collect();
    if !lines.is_empty() {
        emit(port, WorkflowEvent::TaskLogged { task: key, lines: lines.into() });
    }
}

/// Tasks of a type that were put back are ready now; says how many.
pub(super) fn requeue<P: Port>(port: &mut P, task_type: &str) -> WorkflowAnswer {
    let state = workflows(port);
    let mut jobs: Vec<Key> = state
        .jobs
        .iter()
        .filter(|(_, task)| *state.known_task(**task).task_type == *task_type)
        .map(|(job, _)| *job)
        .collect();
    jobs.sort_unstable();
    jobs.truncate(REQUEUED_MAX);
    let mut count = 0;
    for job in jobs {
        count += u32::from(port.ready_task_job(job));
    }
    WorkflowAnswer::Count(count)
}

/// Tasks of a workflow that were put back are ready now.
pub(super) fn reset_callbacks<P: Port>(port: &mut P, workflow: Key) {
    let state = workflows(port);
    let open = state.known(workflow).open.iter();
    let jobs: Vec<Key> = open.filter_map(|task| Some(state.task(*task)?.job?.0)).collect();
    for job in jobs {
        port.ready_task_job(job);
    }
}

/// The task that blocks a workflow: its first WAIT without a time, or that of what runs for its
/// tasks.
pub(crate) fn blocking(state: &Workflows, workflow: Key) -> Option<Key> {
    first_wait(state, workflow, task::waits_for_somebody)
}

/// The first WAIT of a workflow that counts; then that of what runs for its tasks, in order.
fn first_wait(state: &Workflows, workflow: Key, counts: fn(&Task) -> bool) -> Option<Key> {
    const LOOKED_AT_MAX: usize = 1_000;
    let mut found = Vec::from([workflow]);
    for _ in 0..LOOKED_AT_MAX {
        let Some(workflow) = state.workflow(found.pop()?) else { continue };
        let mut below = Vec::new();
        for key in &workflow.open {
            let Some(task) = state.task(*key).filter(|task| !task.status.is_at_rest()) else {
                continue;
            };
            let kind = task.node(&state.plan_of(task)).kind;
            if kind == Kind::Wait && counts(task) {
                return Some(*key);
            }
            if kind == Kind::SubWorkflow {
                below.push(task.child);
            }
        }
        // The first one's own, and what is below it, before the second one's.
        found.extend(below.into_iter().rev());
    }
    None
}

/// Decides [`SignalWorkflow`].
pub(super) fn signal<P: Port>(
    port: &mut P,
    signal: &SignalWorkflow,
) -> Result<WorkflowAnswer, FlowRejection> {
    known(port, signal.workflow)?;
    let found = first_wait(workflows(port), signal.workflow, |_| true);
    let Some(key) = found else { return Ok(nothing()) };
    let workflow = workflows(port).known_task(key).workflow;
    debug_assert_ne!(workflows(port).known(workflow).status, WorkflowStatus::Completed);
    update(
        port,
        &TaskUpdate {
            workflow,
            task: TaskReference::Key(key),
            status: signal.status,
            output: signal.output.clone(),
            merge: false,
            reason: "".into(),
            callback_s: 0,
            worker: "".into(),
            log: Vec::new(),
            extend_lease: false,
        },
    )
}
