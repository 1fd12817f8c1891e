//! The time of tasks that no job keeps: they wait for a time, for somebody, or for other tasks. What
//! a job waits for has the deadlines of the job. A response timeout is for workers alone: nobody
//! else owes a sign of life.

use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, WorkflowEvent, WorkflowStatus};

use super::{definition, emit, end_child, finish, wait, workflows};
use crate::conductor::definition::TimeoutPolicy;
use crate::conductor::plan::Kind;
use crate::conductor::state::{Task, Workflows};
use crate::conductor::workflow::{self, End};
use crate::kernel::Port;

/// Whether a task is under way, and no job keeps its time.
fn is_kept_here(task: &Task) -> bool {
    task.status == TaskStatus::InProgress && task.job.is_none()
}

/// A time that ends a task.
struct Limit {
    at_ms: u64,
    from_ms: u64,
    seconds: i64,
}

/// The first time that ends a task, if its definition sets one.
fn limit(state: &Workflows, task: &Task) -> Option<Limit> {
    let definition = definition(state, task);
    if definition.timeout_policy == TimeoutPolicy::AlertOnly {
        return None;
    }
    let after = |from_ms: u64, seconds: i64| {
        let ms = u64::try_from(seconds).ok().filter(|it| *it > 0)?.saturating_mul(1_000);
        Some(Limit { at_ms: from_ms.saturating_add(ms), from_ms, seconds })
    };
    let attempt = after(task.started_ms, definition.timeout_seconds);
    let total = after(task.first_ms, definition.total_timeout_seconds);
    [attempt, total].into_iter().flatten().min_by_key(|it| it.at_ms)
}

/// Whether a time ends a task.
pub(crate) fn is_set(state: &Workflows, task: &Task) -> bool {
    limit(state, task).is_some()
}

/// When a WAIT is over by itself (ms since the epoch).
fn own_ms(state: &Workflows, task: &Task, now_ms: u64) -> Option<u64> {
    let is_wait = task.node(&state.plan_of(task)).kind == Kind::Wait;
    if is_wait { wait::due_ms(task, now_ms).ok().flatten() } else { None }
}

/// Sets the time at which a task that is under way has something to do.
pub(crate) fn watch<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let Some(task) = state.task(key).filter(|task| is_kept_here(task)) else { return };
    let limit_ms = limit(state, task).map(|it| it.at_ms);
    let at_ms = own_ms(state, task, port.now_ms()).into_iter().chain(limit_ms).min();
    if let Some(at_ms) = at_ms.filter(|at_ms| *at_ms != task.due_ms) {
        emit(port, WorkflowEvent::TaskDue { task: key, at_ms });
    }
}

/// Ends a task that has taken too long; says whether it has.
pub(super) fn is_over<P: Port>(port: &mut P, key: Key) -> bool {
    let (state, now_ms) = (workflows(port), port.now_ms());
    let task = state.known_task(key);
    let limit = limit(state, task).filter(|it| it.at_ms <= now_ms && is_kept_here(task));
    let Some(limit) = limit else { return false };
    if own_ms(state, task, now_ms).is_some_and(|own_ms| own_ms <= limit.at_ms) {
        return false;
    }
    let policy = definition(state, task).timeout_policy;
    let reason = format!(
        "Task timed out after {} seconds. Timeout configured as {} seconds. Timeout policy \
         configured to {}",
        now_ms.saturating_sub(limit.from_ms) / 1_000,
        limit.seconds,
        policy.name()
    );
    let workflow = task.workflow;
    finish(port, key, TaskStatus::TimedOut, None, &reason);
    end_child(port, key, &reason);
    if policy == TimeoutPolicy::TimeOutWf {
        let status = WorkflowStatus::TimedOut;
        workflow::end(port, workflow, &End::failed(status, &reason, key));
    }
    true
}
