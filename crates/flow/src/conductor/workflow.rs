//! The life of a workflow: it begins with its first task, is done when no task is left to follow,
//! and is closed when all that its end asks for has been done.

use serde_json::{Map, Value, json};
use windlass_record::flow::{FlowEvent, Key, NO_KEY};
use windlass_record::workflow::{TaskChanged, TaskStatus, WorkflowEvent, WorkflowStatus, id_of};

use super::definition::TimeoutPolicy;
use super::plan::Plan;
use super::seen::{Seen, parsed};
use super::start::{self, Start};
use super::state::Workflows;
use super::{lenient, schema, task};
use crate::graph::Text;
use crate::kernel::{FAN_OUT_MAX, Port, STEP_BYTES_MAX};

/// Workflows that have ended and are kept, at most; the oldest go first.
const ENDED_MAX: usize = 100_000;
/// Bytes of those, about.
const ENDED_BYTES_MAX: usize = 256 << 20;

/// Bytes of the tasks that a failure workflow is told of.
const FAILED_BYTES_MAX: usize = 1 << 20;

/// And of what stands beside them in its input.
const FAILED_MORE: usize = 4 << 10;

/// Goes on with a workflow.
pub(crate) fn go_on<P: Port>(port: &mut P, key: Key) {
    let Some(workflow) = workflows(port).workflow(key) else { return };
    match workflow.status {
        _ if workflow.closing => close(port, key),
        WorkflowStatus::Running if workflow.waits => {}
        WorkflowStatus::Running if workflow.tasks.is_empty() => begin(port, key),
        WorkflowStatus::Running if workflow.open.is_empty() => complete(port, key),
        WorkflowStatus::Running => {
            let open: Vec<Key> = workflow.open.iter().copied().collect();
            for task in open {
                emit(port, WorkflowEvent::TaskQueued { task });
            }
            arm(port, key);
        }
        WorkflowStatus::Paused
        | WorkflowStatus::Completed
        | WorkflowStatus::Failed
        | WorkflowStatus::TimedOut
        | WorkflowStatus::Terminated => {}
    }
}

/// Something happened to a workflow or a task of one.
pub(crate) fn emit<P: Port>(port: &mut P, event: WorkflowEvent<'_>) {
    port.emit(FlowEvent::Workflow(event));
}

/// What is remembered.
pub(crate) fn workflows<P: Port>(port: &P) -> &Workflows {
    &port.state().workflows
}

fn begin<P: Port>(port: &mut P, key: Key) {
    arm(port, key);
    let plan = workflows(port).known(key).plan.clone();
    match plan.first.first() {
        Some(first) => task::schedule(port, key, *first, &task::Place::OUTSIDE),
        None => complete(port, key),
    }
}

/// Sets the time at which it takes too long.
fn arm<P: Port>(port: &mut P, key: Key) {
    let workflow = workflows(port).known(key);
    let plan = &workflow.plan;
    if plan.timeout_s == 0 || plan.timeout_policy == TimeoutPolicy::AlertOnly {
        return;
    }
    let from_ms = if workflow.retried_ms > 0 { workflow.retried_ms } else { workflow.created_ms };
    let at_ms = from_ms.saturating_add(plan.timeout_s.saturating_mul(1_000));
    if workflow.due_ms != at_ms {
        emit(port, WorkflowEvent::WorkflowDue { key, at_ms });
    }
}

/// Does what is due about a workflow.
pub(crate) fn fire<P: Port>(port: &mut P, key: Key) {
    emit(port, WorkflowEvent::WorkflowDue { key, at_ms: 0 });
    let workflow = workflows(port).known(key);
    if workflow.status.is_at_rest() {
        return;
    }
    let from_ms = if workflow.retried_ms > 0 { workflow.retried_ms } else { workflow.created_ms };
    let reason = format!(
        "Workflow timed out after {} seconds. Timeout configured as {} seconds. Timeout policy \
         configured to {}",
        port.now_ms().saturating_sub(from_ms) / 1_000,
        workflow.plan.timeout_s,
        workflow.plan.timeout_policy.name()
    );
    end(port, key, &End::failed(WorkflowStatus::TimedOut, &reason, NO_KEY));
}

/// How a workflow ends.
pub(crate) struct End<'a> {
    pub(crate) status: WorkflowStatus,
    pub(crate) reason: &'a str,
    /// Instead of what its definition says.
    pub(crate) output: Option<Value>,
    /// Whether its failure workflow is to run.
    pub(crate) compensate: bool,
    /// The task that it failed by, or none.
    pub(crate) by: Key,
}

impl<'a> End<'a> {
    pub(crate) fn failed(status: WorkflowStatus, reason: &'a str, by: Key) -> End<'a> {
        End { status, reason, output: None, compensate: true, by }
    }
}

/// Ends a workflow.
pub(crate) fn end<P: Port>(port: &mut P, key: Key, end: &End<'_>) {
    let output = match &end.output {
        Some(Value::Object(object)) => Value::Object(object.clone()),
        Some(other) => json!({ "output": other }),
        None => output(workflows(port), key),
    };
    let mut problem = None;
    if end.status == WorkflowStatus::Completed
        && let Some(schema) =
            schema::enforced(&workflows(port).known(key).plan.json, "outputSchema")
        && let Err(mismatch) = schema::check(schema, &output)
    {
        problem = Some(format!("The output of the workflow does not match its schema: {mismatch}"));
    }
    let output = output.to_string();
    let (mut status, mut reason, mut compensate) = (end.status, end.reason, end.compensate);
    let too_large = task::fits(port, output.len()).err();
    let kept = if too_large.is_none() { &*output } else { "{}" };
    let problem = too_large.or(problem);
    if let Some(problem) = problem.as_ref().filter(|_| status == WorkflowStatus::Completed) {
        (status, reason, compensate) = (WorkflowStatus::Failed, problem, true);
    }
    emit(
        port,
        WorkflowEvent::WorkflowEnded {
            key,
            status,
            reason: windlass_record::bound::cut(reason, port.bounds().message_bytes_max),
            output: kept,
            compensate,
            by: end.by,
        },
    );
}

/// No task is left to follow.
fn complete<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    // Permissive tasks end it only now.
    let failed: Vec<String> = state
        .known(key)
        .tasks
        .iter()
        .filter_map(|task| Some((*task, state.task(*task)?)))
        .filter(|(_, task)| !task.retried && !task.status.is_success())
        .map(|(key, task)| task::permissive_reason(key, task))
        .collect();
    if failed.is_empty() {
        let (status, reason) = (WorkflowStatus::Completed, "");
        end(port, key, &End { status, reason, output: None, compensate: false, by: NO_KEY });
    } else {
        let by = last_failed(workflows(port), key);
        end(port, key, &End::failed(WorkflowStatus::Failed, &failed.join(". "), by));
    }
}

fn last_failed(state: &Workflows, key: Key) -> Key {
    let failed = |task: &&Key| state.task(**task).is_some_and(|task| !task.status.is_success());
    state.known(key).tasks.iter().rev().find(failed).copied().unwrap_or(NO_KEY)
}

/// Its output as its definition says, or that of its last task.
fn output(state: &Workflows, key: Key) -> Value {
    let workflow = state.known(key);
    let parameters = workflow.plan.json.get("outputParameters");
    if let Some(parameters) =
        parameters.filter(|it| it.as_object().is_some_and(|it| !it.is_empty()))
    {
        // What cannot be computed is left out, as in Conductor.
        return Seen::new(state, key).resolve(parameters).unwrap_or_else(|_| json!({}));
    }
    let last = workflow.tasks.last().and_then(|task| state.task(*task));
    last.map_or_else(|| json!({}), |task| parsed(&task.output))
}

/// Does what the end of a workflow asks for: its tasks are ended, a bounded number at a time, then
/// whoever waits for it is told.
fn close<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    // What follows a task that was done is still to come, if the workflow is tried again.
    let done = |task: &Key| {
        let status = state.known_task(*task).status;
        status.is_at_rest() && status.is_success()
    };
    let open = state.known(key).open.iter().copied();
    let open: Vec<Key> = open.filter(|task| !done(task)).collect();
    let mut followed = 0;
    for task in open.iter().take(FAN_OUT_MAX) {
        if !workflows(port).known_task(*task).status.is_at_rest() {
            task::cancel(port, *task);
        }
        emit(port, WorkflowEvent::TaskFollowed { task: *task, retried: false });
        followed += 1;
        if port.written() > STEP_BYTES_MAX {
            break;
        }
    }
    if followed < open.len() || (followed > 0 && port.written() > STEP_BYTES_MAX) {
        emit(port, WorkflowEvent::WorkflowQueued { key });
        return;
    }
    let output = compensate(port, key);
    emit(port, WorkflowEvent::WorkflowClosed { key, output: output.as_deref() });
    tell_parent(port, key);
    free_place(port, key);
    retire(port);
}

/// Starts the failure workflow, and names it in the output.
fn compensate<P: Port>(port: &mut P, key: Key) -> Option<String> {
    let state = workflows(port);
    let workflow = state.known(key);
    if !workflow.compensate || workflow.status == WorkflowStatus::Completed {
        return None;
    }
    let plan: std::sync::Arc<Plan> = workflow.plan.clone();
    let name = failure_workflow(state, key, &plan)?;
    let version = plan.json.get("failureWorkflowVersion").and_then(lenient::integer);
    let mut input = lenient::parse_object(&workflow.input);
    input.insert("workflowId".to_owned(), id_of(key).into());
    input.insert("reason".to_owned(), (*workflow.reason).into());
    input.insert("failureStatus".to_owned(), workflow.status.name().into());
    if workflow.failed_by != NO_KEY {
        input.insert("failureTaskId".to_owned(), id_of(workflow.failed_by).into());
    }
    // What it came to goes along while it is small.
    let bytes = workflow.tasks.iter().filter_map(|task| state.task(*task));
    let bytes = bytes.map(|task| task.input.len() + task.output.len()).sum::<usize>();
    let room = port.bounds().payload_bytes_max.saturating_sub(workflow.input.len() + FAILED_MORE);
    input.insert("failedWorkflow".to_owned(), told(state, key, bytes, room));
    let mut output = lenient::parse_object(&workflow.output);
    let start = Start {
        name: name.clone(),
        version: version.and_then(|version| u32::try_from(version).ok()),
        input,
        correlation_id: workflow.correlation_id.to_string(),
        task_to_domain: workflow.task_to_domain.to_string(),
        priority: workflow.priority,
        ..Start::default()
    };
    match start::start(port, start) {
        Ok((started, _)) => {
            output.insert("conductor.failure_workflow".to_owned(), id_of(started).into());
        }
        Err(refused) => {
            let message = format!("Error workflow {name} failed to start. reason: {refused}");
            output.insert("conductor.failure_workflow".to_owned(), message.into());
        }
    }
    Some(Value::Object(output).to_string())
}

/// The name of the failure workflow. `$workflow.input.x` is Conductor's own way to take it from the
/// input; expressions do as well.
fn failure_workflow(state: &Workflows, key: Key, plan: &Plan) -> Option<String> {
    let named = plan.json.get("failureWorkflow").and_then(Value::as_str);
    let named = named.filter(|name| !name.is_empty())?;
    let name = match named.strip_prefix('$').filter(|rest| !rest.starts_with('{')) {
        Some(path) => {
            let field = path.split('.').nth(2)?;
            lenient::parse_object(&state.known(key).input).remove(field)?
        }
        None => Seen::new(state, key).resolve(&named.into()).ok()?,
    };
    name.as_str().map(str::to_owned)
}

/// What a failure workflow is told of the one that failed: what there is room for.
fn told(state: &Workflows, key: Key, tasks_bytes: usize, room: usize) -> Value {
    /// The largest ones.
    const LARGE: [&str; 4] = ["input", "output", "variables", "workflowDefinition"];
    let shown =
        |tasks| super::render::workflow(state, key, tasks, &|_| None).unwrap_or(Value::Null);
    let whole = shown(tasks_bytes <= FAILED_BYTES_MAX);
    if whole.to_string().len() <= room {
        return whole;
    }
    let mut told = shown(false);
    if let Value::Object(fields) = &mut told {
        LARGE.iter().for_each(|name| drop(fields.remove(*name)));
    }
    told
}

/// The task that the workflow ran for ends with it.
pub(crate) fn tell_parent<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let workflow = state.known(key);
    let parent = workflow.parent_task;
    let Some(task) = state.task(parent).filter(|task| task.child == key) else { return };
    if task.status.is_at_rest() {
        return;
    }
    let status = match workflow.status {
        WorkflowStatus::Completed => TaskStatus::Completed,
        WorkflowStatus::Failed => TaskStatus::Failed,
        WorkflowStatus::TimedOut => TaskStatus::TimedOut,
        WorkflowStatus::Terminated => TaskStatus::Canceled,
        WorkflowStatus::Running | WorkflowStatus::Paused => return,
    };
    let mut output: Map<String, Value> = lenient::parse_object(&workflow.output);
    output.insert("subWorkflowId".to_owned(), id_of(key).into());
    let mut output = Value::Object(output).to_string();
    if task::fits(port, output.len()).is_err() {
        // What it came to is no reason for another end than it had.
        output = json!({ "subWorkflowId": id_of(key) }).to_string();
    }
    let reason = if status.is_success() {
        String::new()
    } else {
        let (name, version) = (&workflow.plan.name, workflow.plan.version);
        format!("Sub workflow {name}.{version}/{} failure reason: {}", id_of(key), workflow.reason)
    };
    let changed = TaskChanged {
        status: Some(status),
        output: Some(&output),
        reason: Some(&reason),
        ..TaskChanged::of(parent)
    };
    task::change(port, changed);
}

/// The next workflow that waits for a place of the same rate limit key has it, if one is free.
pub(crate) fn free_place<P: Port>(port: &mut P, key: Key) {
    let state = workflows(port);
    let limit: Text = state.known(key).rate_limit_key.clone();
    let Some(limited) = state.limited.get(&limit) else { return };
    let at_work = limited.at_work.len() - usize::from(limited.at_work.contains(&key));
    let Some(next) = limited.waiting.iter().find(|other| **other != key).copied() else { return };
    if at_work < start::places(&state.known(next).plan) {
        emit(port, WorkflowEvent::WorkflowQueued { key: next });
    }
}

/// Forgets what ended long ago, when there is too much of it.
fn retire<P: Port>(port: &mut P) {
    for _ in 0..4 {
        let state = workflows(port);
        if state.ended.len() <= ENDED_MAX && state.ended_bytes <= ENDED_BYTES_MAX {
            return;
        }
        let Some((_, key)) = state.ended.keys().next().copied() else { return };
        emit(port, WorkflowEvent::WorkflowRemoved { key, forget: false });
    }
}
