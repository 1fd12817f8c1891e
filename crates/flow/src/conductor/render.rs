//! Workflows and tasks as Conductor's clients see them. Null fields are left out, numbers and empty
//! lists and maps are not.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::{TaskStatus, id_of};

use super::lenient;
use super::plan::{Kind, TaskNode};
use super::seen::{output_of, parsed};
use super::state::{Task, Workflow, Workflows};
use super::task::{self, do_while::round_of};

/// What is known of a task's job.
pub type JobNow = crate::kernel::TaskJobNow;

/// Asks what is known of a job.
pub type AskJob<'a> = dyn Fn(Key) -> Option<JobNow> + 'a;

/// Fields in their order; null ones are left out.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Text; empty is null.
fn text(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn id(key: Key) -> Value {
    if key == NO_KEY { Value::Null } else { id_of(key).into() }
}

/// A `Task`; of one at work with what its job knows.
pub fn task(state: &Workflows, key: Key, now: Option<&JobNow>) -> Option<Value> {
    let task = state.task(key)?;
    let workflow = state.workflow(task.workflow)?;
    let plan = state.plan_of(task);
    let node = task.node(&plan);
    let definition = task::definition(state, task);
    let as_written = written(&plan, task.node);
    let status = match now {
        Some(now) if now.active && !task.status.is_at_rest() => TaskStatus::InProgress,
        Some(_) | None => task.status,
    };
    let started_ms = now.map_or(task.started_ms, |now| now.started_ms);
    let polls = now.map_or(task.polls, |now| now.activations);
    let worker = match now {
        Some(now) if !now.worker.is_empty() => now.worker.clone(),
        Some(_) | None => task.worker.clone(),
    };
    let active = now.is_some_and(|now| now.active);
    let queue_wait_ms =
        if started_ms > 0 { started_ms.saturating_sub(task.scheduled_ms) } else { 0 };
    let embedded = as_written.get("taskDefinition").cloned().unwrap_or_default();
    let mut shown = object([
        ("taskType", (*task.task_type).into()),
        ("status", status.name().into()),
        ("inputData", parsed(&task.input)),
        ("referenceTaskName", (*task.reference).into()),
        ("retryCount", task.retry_count.into()),
        ("seq", task.seq.into()),
        ("correlationId", text(&workflow.correlation_id)),
        ("pollCount", polls.into()),
        ("taskDefName", (*task.name).into()),
        ("scheduledTime", task.scheduled_ms.into()),
        ("startTime", started_ms.into()),
        ("endTime", task.ended_ms.into()),
        ("updateTime", task.updated_ms.max(started_ms).into()),
        ("startDelayInSeconds", task.delay_s.into()),
        ("retriedTaskId", id(task.retry_of)),
        ("retried", task.retried.into()),
        ("executed", task.followed.into()),
        ("callbackFromWorker", true.into()),
        ("responseTimeoutSeconds", definition.response_timeout_seconds.into()),
        ("workflowInstanceId", id(task.workflow)),
        ("workflowType", (*workflow.plan.name).into()),
        ("taskId", id(key)),
        ("reasonForIncompletion", text(&task.reason)),
        ("callbackAfterSeconds", if active { 0.into() } else { task.callback_s.into() }),
        ("workerId", text(&worker)),
        ("outputData", output_of(state, key, task)),
        ("workflowTask", as_written),
        ("domain", text(&task.domain)),
        ("rateLimitPerFrequency", definition.rate_limit_per_frequency.unwrap_or(0).into()),
        (
            "rateLimitFrequencyInSeconds",
            definition.rate_limit_frequency_in_seconds.unwrap_or(0).into(),
        ),
        ("workflowPriority", workflow.priority.into()),
        ("iteration", round_of(state, task).into()),
        ("subWorkflowId", id(task.child)),
        ("subworkflowChanged", false.into()),
        ("firstStartTime", started_ms.into()),
        ("queueWaitTime", queue_wait_ms.into()),
        ("taskDefinition", embedded),
        ("loopOverTask", (round_of(state, task) > 0).into()),
    ]);
    if node.kind == Kind::Builtin {
        shown.extend(object([
            ("isolationGroupId", text(&definition.isolation_group_id)),
            ("executionNameSpace", text(&definition.execution_name_space)),
        ]));
    }
    Some(Value::Object(shown))
}

/// A workflow task as it was written, with the defaults that clients expect.
fn written(plan: &super::plan::Plan, number: TaskNode) -> Value {
    let mut json = plan.task_json(number).clone();
    if let Value::Object(task) = &mut json {
        task.remove(task::FORKED_INPUT);
        let node = plan.node(number);
        for (name, value) in [
            ("type", Value::from(&*node.type_name)),
            ("inputParameters", json!({})),
            ("startDelay", 0.into()),
            ("optional", false.into()),
            ("asyncComplete", false.into()),
        ] {
            if task.get(name).is_none_or(Value::is_null) {
                task.insert(name.to_owned(), value);
            }
        }
    }
    json
}

/// A `Workflow`.
pub fn workflow(state: &Workflows, key: Key, with_tasks: bool, ask: &AskJob<'_>) -> Option<Value> {
    let workflow = state.workflow(key)?;
    let parent = state.task(workflow.parent_task);
    let tasks: Vec<Value> = if with_tasks {
        let records = workflow.tasks.iter();
        records.filter_map(|key| task(state, *key, job_of(state, *key, ask).as_ref())).collect()
    } else {
        Vec::new()
    };
    let (failed_references, failed_names) = failed(state, workflow);
    let mut definition = workflow.plan.json.clone();
    if let (Some(known), Value::Object(object)) =
        (state.definitions.get(&workflow.definition), &mut definition)
    {
        fill_definition(object, known.created_ms, known.updated_ms);
    }
    let domains = lenient::parse_object(&workflow.task_to_domain);
    Some(Value::Object(object([
        ("ownerApp", definition.get("ownerApp").cloned().unwrap_or_default()),
        ("createTime", workflow.created_ms.into()),
        ("updateTime", workflow.updated_ms.into()),
        ("createdBy", text(&workflow.created_by)),
        ("status", workflow.status.name().into()),
        ("endTime", workflow.ended_ms.into()),
        ("workflowId", id(key)),
        ("parentWorkflowId", parent.map_or(Value::Null, |task| id(task.workflow))),
        ("parentWorkflowTaskId", parent.map_or(Value::Null, |_| id(workflow.parent_task))),
        ("tasks", tasks.into()),
        ("input", parsed(&workflow.input)),
        ("output", parsed(&workflow.output)),
        ("correlationId", text(&workflow.correlation_id)),
        ("reRunFromWorkflowId", if workflow.rerun { id(key) } else { Value::Null }),
        ("reasonForIncompletion", text(&workflow.reason)),
        ("event", text(&workflow.event)),
        ("taskToDomain", domains.into()),
        ("failedReferenceTaskNames", failed_references.into()),
        ("workflowDefinition", definition),
        ("priority", workflow.priority.into()),
        ("variables", parsed(&workflow.variables)),
        ("lastRetriedTime", workflow.retried_ms.into()),
        ("failedTaskNames", failed_names.into()),
        ("history", json!([])),
        ("idempotencyKey", text(&workflow.idempotency_key)),
        ("rateLimitKey", text(&workflow.rate_limit_key)),
        ("rateLimited", workflow.waits.into()),
        ("startTime", workflow.created_ms.into()),
        ("workflowName", (*workflow.plan.name).into()),
        ("workflowVersion", workflow.plan.version.into()),
    ])))
}

/// Reference names and names of the tasks that failed, each once, also of those that were tried
/// again and did better then.
fn failed(state: &Workflows, workflow: &Workflow) -> (Vec<Value>, Vec<Value>) {
    if !workflow.status.is_at_rest() {
        return (Vec::new(), Vec::new());
    }
    let failed = |task: &&Task| {
        matches!(task.status, TaskStatus::Failed | TaskStatus::FailedWithTerminalError)
    };
    let tasks: Vec<&Task> =
        workflow.tasks.iter().filter_map(|key| state.task(*key)).filter(failed).collect();
    (once(tasks.iter().map(|task| &*task.reference)), once(tasks.iter().map(|task| &*task.name)))
}

fn once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).map(Value::from).collect()
}

/// What is known of the job of a task.
pub(crate) fn job_of(state: &Workflows, task: Key, ask: &AskJob<'_>) -> Option<JobNow> {
    let (job, evaluates) = state.task(task)?.job?;
    if evaluates { None } else { ask(job) }
}

/// Puts the times and defaults that clients expect into a workflow definition.
pub(crate) fn fill_definition(
    definition: &mut Map<String, Value>,
    created_ms: u64,
    updated_ms: u64,
) {
    definition.insert("createTime".to_owned(), created_ms.into());
    definition.insert("updateTime".to_owned(), updated_ms.into());
    for (name, value) in [
        ("version", Value::from(1)),
        ("inputParameters", json!([])),
        ("outputParameters", json!({})),
        ("schemaVersion", 2.into()),
        ("restartable", true.into()),
        ("workflowStatusListenerEnabled", false.into()),
        ("timeoutPolicy", "ALERT_ONLY".into()),
        ("timeoutSeconds", 0.into()),
        ("variables", json!({})),
        ("inputTemplate", json!({})),
        ("enforceSchema", true.into()),
    ] {
        if definition.get(name).is_none_or(Value::is_null) {
            definition.insert(name.to_owned(), value);
        }
    }
    definition.get_mut("tasks").map(fill_tasks);
}

/// The defaults of the tasks of a definition, and of those within them.
fn fill_tasks(tasks: &mut Value) {
    for task in tasks.as_array_mut().into_iter().flatten() {
        if let Some(task) = task.as_object_mut() {
            fill_task(task);
        }
    }
}

fn fill_task(task: &mut Map<String, Value>) {
    for (name, value) in [
        ("type", Value::from("SIMPLE")),
        ("inputParameters", json!({})),
        ("startDelay", 0.into()),
        ("optional", false.into()),
        ("permissive", false.into()),
        ("asyncComplete", false.into()),
        ("decisionCases", json!({})),
        ("defaultCase", json!([])),
        ("forkTasks", json!([])),
        ("joinOn", json!([])),
        ("defaultExclusiveJoinTask", json!([])),
        ("loopOver", json!([])),
        ("onStateChange", json!({})),
    ] {
        if task.get(name).is_none_or(Value::is_null) {
            task.insert(name.to_owned(), value);
        }
    }
    for list in ["defaultCase", "loopOver"] {
        task.get_mut(list).map(fill_tasks);
    }
    let cases = task.get_mut("decisionCases").and_then(Value::as_object_mut);
    cases.into_iter().flat_map(Map::values_mut).for_each(fill_tasks);
    let branches = task.get_mut("forkTasks").and_then(Value::as_array_mut);
    branches.into_iter().flatten().for_each(fill_tasks);
}

/// Puts the times and defaults that clients expect into a task definition.
pub(crate) fn fill_task_definition(
    definition: &mut Map<String, Value>,
    created_ms: u64,
    updated_ms: u64,
) {
    definition.insert("createTime".to_owned(), created_ms.into());
    definition.insert("updateTime".to_owned(), updated_ms.into());
    for (name, value) in [
        ("retryCount", Value::from(3)),
        ("timeoutSeconds", 0.into()),
        ("inputKeys", json!([])),
        ("outputKeys", json!([])),
        ("timeoutPolicy", "TIME_OUT_WF".into()),
        ("retryLogic", "FIXED".into()),
        ("retryDelaySeconds", 60.into()),
        ("responseTimeoutSeconds", 3600.into()),
        ("inputTemplate", json!({})),
        ("rateLimitPerFrequency", 0.into()),
        ("rateLimitFrequencyInSeconds", 1.into()),
        ("backoffScaleFactor", 1.into()),
        ("totalTimeoutSeconds", 0.into()),
        ("enforceSchema", false.into()),
    ] {
        if definition.get(name).is_none_or(Value::is_null) {
            definition.insert(name.to_owned(), value);
        }
    }
}
