//! What the end of a job means to the task that waited for it.

use serde_json::Value;
use windlass_record::event::DeadlineKind;
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskChanged, TaskStatus, WorkflowEvent, WorkflowStatus, id_of};

use super::definition::TimeoutPolicy;
use super::state::Workflows;
use super::task::{self, change};
use super::workflow::{self, End, emit, workflows};
use super::{lenient, schema};
use crate::kernel::{Port, TaskJobNow};

/// How a job of a task ended.
#[derive(Clone, Copy, Debug)]
pub enum JobEnd<'a> {
    /// It is done, with a JSON object; empty is none.
    Completed(&'a [u8]),
    /// It failed; what it had to say, and whether trying again cannot help.
    Failed(&'a str, bool),
    /// A person ended it.
    Cancelled(&'a str),
}

/// A job has ended. `now` is what was known of it before.
pub fn job_ended<P: Port>(port: &mut P, job: Key, now: &TaskJobNow, end: JobEnd<'_>) {
    let Some(key) = workflows(port).task_of_job(job) else { return };
    let task = workflows(port).known_task(key);
    let evaluates = task.job.is_some_and(|(_, evaluates)| evaluates);
    if evaluates {
        emit(port, WorkflowEvent::TaskJobDetached { task: key });
        let answer = match end {
            JobEnd::Completed(result) => {
                serde_json::from_slice(result).map_err(|error| error.to_string())
            }
            JobEnd::Failed(problem, _) | JobEnd::Cancelled(problem) => Err(problem.to_owned()),
        };
        task::evaluated(port, key, answer);
        return;
    }
    let (status, reason, output) = match end {
        JobEnd::Completed(result) => (TaskStatus::Completed, "", result),
        JobEnd::Failed(reason, true) => (TaskStatus::FailedWithTerminalError, reason, &[][..]),
        JobEnd::Failed(reason, false) => (TaskStatus::Failed, reason, &[][..]),
        JobEnd::Cancelled(reason) => (TaskStatus::Canceled, reason, &[][..]),
    };
    let state = workflows(port);
    let task = state.known_task(key);
    let waits = task.node(&state.plan_of(task)).async_complete;
    let output = std::str::from_utf8(output).ok().filter(|it| !it.is_empty());
    // What the worker gave stays as it was, when it is an object.
    let is_object =
        |text: &&str| serde_json::from_str::<Value>(text).is_ok_and(|it| it.is_object());
    let output = output.filter(is_object);
    if waits && status == TaskStatus::Completed {
        // The worker has done its part; somebody else says when it is done.
        emit(port, WorkflowEvent::TaskJobDetached { task: key });
        let status = Some(TaskStatus::InProgress);
        let changed = TaskChanged { status, output, ..TaskChanged::of(key) };
        change(port, changed);
        task::limit::watch(port, key);
        return;
    }
    ended(port, key, now, status, output, reason);
}

/// What a worker brings with a failure becomes the task's output.
pub fn job_brought<P: Port>(port: &mut P, job: Key, output: &str) {
    let Some(key) = workflows(port).task_of_job(job) else { return };
    if !output.is_empty() {
        let changed = TaskChanged { output: Some(output), ..TaskChanged::of(key) };
        change(port, changed);
    }
}

/// A task that a worker had has ended.
pub(crate) fn ended<P: Port>(
    port: &mut P,
    key: Key,
    now: &TaskJobNow,
    status: TaskStatus,
    output: Option<&str>,
    reason: &str,
) {
    let started_ms = if now.started_ms == 0 { port.now_ms() } else { now.started_ms };
    let done = status == TaskStatus::Completed;
    let mismatch = if done { mismatch(workflows(port), key, output) } else { None };
    let (status, reason) = match &mismatch {
        Some(mismatch) => (TaskStatus::FailedWithTerminalError, &**mismatch),
        None => (status, reason),
    };
    let reason = windlass_record::bound::cut(reason, port.bounds().message_bytes_max);
    let changed = TaskChanged {
        status: Some(status),
        output,
        reason: Some(reason),
        worker: Some(&now.worker),
        started_ms: Some(started_ms),
        polls: Some(now.activations),
        ..TaskChanged::of(key)
    };
    change(port, changed);
}

/// How an output differs from what its task definition asks, if that is enforced.
fn mismatch(state: &Workflows, key: Key, output: Option<&str>) -> Option<String> {
    let task = state.known_task(key);
    let definition = task::definition(state, task);
    let schema = definition.output_schema.as_ref().filter(|_| definition.enforce_schema)?;
    let output = Value::Object(lenient::parse_object(output.unwrap_or(&task.output)));
    let mismatch = schema::check(schema, &output).err()?;
    Some(format!("The output of task {} does not match its schema: {mismatch}", task.name))
}

/// A job's time is over. True when that ends the job; while the workflow stands still it does not,
/// and [`overdue`] looks again when it goes on.
pub fn job_timed_out<P: Port>(
    port: &mut P,
    job: Key,
    now: &TaskJobNow,
    kind: DeadlineKind,
) -> bool {
    let state = workflows(port);
    let Some(key) = state.task_of_job(job) else { return true };
    let task = state.known_task(key);
    if state.known(task.workflow).status == WorkflowStatus::Paused {
        return false;
    }
    let evaluates = task.job.is_some_and(|(_, evaluates)| evaluates);
    if evaluates {
        emit(port, WorkflowEvent::TaskJobDetached { task: key });
        task::evaluated(port, key, Err("the script took too long".to_owned()));
        return true;
    }
    let definition = task::definition(state, task);
    let since = |from_ms: u64| port.now_ms().saturating_sub(from_ms) / 1_000;
    let policy = definition.timeout_policy.name();
    let reason = match kind {
        DeadlineKind::Lease => format!(
            "responseTimeout: {} exceeded for the taskId: {} with Task Definition: {}",
            definition.response_timeout_seconds,
            id_of(key),
            task.name
        ),
        DeadlineKind::Waiting => format!(
            "Task poll timed out after {} seconds. Poll timeout configured as {} seconds. Timeout \
             policy configured to {policy}",
            since(task.scheduled_ms),
            definition.poll_timeout_seconds.unwrap_or(0)
        ),
        DeadlineKind::Attempt => format!(
            "Task timed out after {} seconds. Timeout configured as {} seconds. Timeout policy \
             configured to {policy}",
            since(now.started_ms),
            definition.timeout_seconds
        ),
        DeadlineKind::Total => format!(
            "Task timed out after {} seconds. Timeout configured as {} seconds. Timeout policy \
             configured to {policy}",
            since(task.first_ms),
            definition.total_timeout_seconds
        ),
    };
    let ends_workflow =
        kind != DeadlineKind::Lease && definition.timeout_policy == TimeoutPolicy::TimeOutWf;
    let workflow = task.workflow;
    ended(port, key, now, TaskStatus::TimedOut, None, &reason);
    if ends_workflow {
        let status = WorkflowStatus::TimedOut;
        workflow::end(port, workflow, &End::failed(status, &reason, key));
    }
    true
}

/// A workflow goes on: what became overdue while it stood still is so now.
pub(crate) fn overdue<P: Port>(port: &mut P, workflow: Key) {
    let open: Vec<Key> = workflows(port).known(workflow).open.iter().copied().collect();
    for key in open {
        let Some((job, _)) = workflows(port).task(key).and_then(|task| task.job) else { continue };
        let Some(now) = port.task_job(job) else { continue };
        let Some(kind) = now.overdue else { continue };
        let state = workflows(port);
        let policy = task::definition(state, state.known_task(key)).timeout_policy;
        if kind != DeadlineKind::Lease && policy == TimeoutPolicy::AlertOnly {
            continue;
        }
        job_timed_out(port, job, &now, kind);
        // The task has let go of it.
        if workflows(port).task_of_job(job).is_none() {
            port.cancel_job(job);
        }
    }
}
