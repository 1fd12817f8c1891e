//! Rows as Conductor's clients see them. Null fields are left out, numbers and empty lists are not.
//!
//! The core says a workflow with all that it knows of its definition. From rows, definitions are as
//! they were written, without the defaults; a task that a dynamic fork added has no `workflowTask`;
//! there are no logs.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension};
use serde_json::{Map, Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, id_of};

use super::time::iso;
use crate::error::Result;
use crate::row;
use crate::schema::stored;
use crate::search::{Task, Workflow};
use crate::table::Stored;

impl Workflow {
    /// A `WorkflowSummary`.
    pub fn summary(&self) -> Value {
        let mut failed_names = self.failed_names.clone();
        failed_names.sort_unstable();
        let domains = self.task_to_domain.as_deref().map_or(Value::Null, parsed);
        object([
            ("workflowType", self.name.as_str().into()),
            ("version", self.version.into()),
            ("workflowId", id(self.key)),
            ("correlationId", text(self.correlation_id.as_deref())),
            ("startTime", iso(self.start_ms).into()),
            ("updateTime", iso(self.update_ms).into()),
            ("endTime", self.end_ms.map_or(Value::Null, |end_ms| iso(end_ms).into())),
            ("status", self.status.as_str().into()),
            ("input", self.input.as_str().into()),
            ("output", self.output.as_str().into()),
            ("inputSize", self.input_size.into()),
            ("outputSize", self.output_size.into()),
            ("reasonForIncompletion", text(self.reason.as_deref())),
            ("executionTime", between(Some(self.start_ms), self.end_ms).into()),
            ("event", text(self.event.as_deref())),
            ("failedReferenceTaskNames", self.failed_references.join(",").into()),
            ("failedTaskNames", failed_names.into()),
            ("priority", self.priority.into()),
            ("createdBy", text(self.created_by.as_deref())),
            ("taskToDomain", domains),
            ("idempotencyKey", text(self.idempotency_key.as_deref())),
            ("parentWorkflowId", self.parent.map_or_else(|| "".into(), id)),
        ])
    }
}

impl Task {
    /// A `TaskSummary`. A time that has not come is that of the epoch, as in the original.
    pub fn summary(&self) -> Value {
        object([
            ("workflowId", id(self.workflow)),
            ("workflowType", self.workflow_type.as_str().into()),
            ("correlationId", text(self.correlation_id.as_deref())),
            ("scheduledTime", iso(self.scheduled_ms).into()),
            ("startTime", iso(self.start_ms.unwrap_or(0)).into()),
            ("updateTime", iso(self.update_ms).into()),
            ("endTime", iso(self.end_ms.unwrap_or(0)).into()),
            ("status", self.status.as_str().into()),
            ("reasonForIncompletion", text(self.reason.as_deref())),
            ("executionTime", between(self.start_ms, self.end_ms).into()),
            ("queueWaitTime", between(Some(self.scheduled_ms), self.start_ms).into()),
            ("taskDefName", self.name.as_str().into()),
            ("taskType", self.task_type.as_str().into()),
            ("taskReferenceName", self.reference.as_str().into()),
            ("input", self.input.as_str().into()),
            ("output", self.output.as_str().into()),
            ("taskId", id(self.key)),
            ("workflowPriority", self.priority.into()),
            ("domain", text(self.domain.as_deref())),
        ])
    }
}

/// A `Workflow`, JSON text.
pub(crate) fn workflow_json(
    database: &Connection,
    key: u64,
    with_tasks: bool,
) -> Result<Option<String>> {
    let Some(row) = row::Workflow::load(database, key)? else { return Ok(None) };
    let definition = definition(database, row.definition)?;
    let tasks = row::Task::of_workflow(database, key)?;
    let mut shown = workflow(key, &row, &definition);
    let (references, names) = failed(&row, &tasks);
    let of = Of { workflow: &row, written: written(&definition) };
    let tasks: Vec<Value> = if with_tasks {
        tasks.iter().map(|(key, row)| task(*key, row, &of)).collect()
    } else {
        Vec::new()
    };
    if let Value::Object(shown) = &mut shown {
        shown.insert("tasks".to_owned(), tasks.into());
        shown.insert("failedReferenceTaskNames".to_owned(), references.into());
        shown.insert("failedTaskNames".to_owned(), names.into());
        shown.insert("workflowDefinition".to_owned(), definition);
    }
    Ok(Some(shown.to_string()))
}

/// A `Task`, JSON text.
pub(crate) fn task_json(database: &Connection, key: u64) -> Result<Option<String>> {
    let Some(row) = row::Task::load(database, key)? else { return Ok(None) };
    let Some(workflow) = row::Workflow::load(database, row.workflow)? else { return Ok(None) };
    let definition = definition(database, workflow.definition)?;
    let of = Of { workflow: &workflow, written: written(&definition) };
    Ok(Some(task(key, &row, &of).to_string()))
}

/// What tasks take from their workflow.
struct Of<'a> {
    workflow: &'a row::Workflow,
    /// The tasks of the definition, by their reference names.
    written: Map<String, Value>,
}

fn definition(database: &Connection, key: u64) -> Result<Value> {
    let sql = "SELECT json FROM workflow_definitions WHERE key = ?1 AND json IS NOT NULL";
    let mut statement = database.prepare_cached(sql)?;
    let json: Option<String> = statement.query_row([stored(key)], |row| row.get(0)).optional()?;
    Ok(json.as_deref().map_or_else(|| json!({}), parsed))
}

/// Every object within that has a reference name.
fn written(definition: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    let mut within = vec![definition];
    while let Some(value) = within.pop() {
        match value {
            Value::Object(object) => {
                if let Some(Value::String(name)) = object.get("taskReferenceName") {
                    found.insert(name.clone(), value.clone());
                }
                within.extend(object.values());
            }
            Value::Array(list) => within.extend(list),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

fn workflow(key: u64, row: &row::Workflow, definition: &Value) -> Value {
    let some_id = |key: u64| if key == 0 { Value::Null } else { id(key) };
    let domains = row.task_to_domain.as_deref().map_or_else(|| json!({}), parsed);
    object([
        ("ownerApp", definition.get("ownerApp").cloned().unwrap_or_default()),
        ("createTime", row.start_ms.into()),
        ("updateTime", row.update_ms.into()),
        ("createdBy", text(row.created_by.as_deref())),
        ("status", row.status.name().into()),
        ("endTime", row.end_ms.unwrap_or(0).into()),
        ("workflowId", id(key)),
        ("parentWorkflowId", some_id(row.parent)),
        ("parentWorkflowTaskId", some_id(row.parent_task)),
        ("input", parsed(&row.input)),
        ("output", parsed(&row.output)),
        ("correlationId", text(row.correlation_id.as_deref())),
        ("reRunFromWorkflowId", if row.rerun { id(key) } else { Value::Null }),
        ("reasonForIncompletion", text(row.reason.as_deref())),
        ("event", text(row.event.as_deref())),
        ("taskToDomain", domains),
        ("priority", row.priority.into()),
        ("variables", parsed(&row.variables)),
        ("lastRetriedTime", row.retried_ms.unwrap_or(0).into()),
        ("history", json!([])),
        ("idempotencyKey", text(row.idempotency_key.as_deref())),
        ("rateLimitKey", text(row.rate_limit_key.as_deref())),
        ("rateLimited", false.into()),
        ("startTime", row.start_ms.into()),
        ("workflowName", (*row.name).into()),
        ("workflowVersion", row.version.into()),
    ])
}

/// Reference names and names of the tasks that failed, each once, also of those that were tried
/// again and did better then.
fn failed(workflow: &row::Workflow, tasks: &[(u64, row::Task)]) -> (Vec<Value>, Vec<Value>) {
    if workflow.end_ms.is_none() {
        return (Vec::new(), Vec::new());
    }
    let failed = |task: &&row::Task| {
        matches!(task.status, TaskStatus::Failed | TaskStatus::FailedWithTerminalError)
    };
    let tasks: Vec<&row::Task> = tasks.iter().map(|(_, task)| task).filter(failed).collect();
    (once(tasks.iter().map(|task| &*task.reference)), once(tasks.iter().map(|task| &*task.name)))
}

fn once<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).map(Value::from).collect()
}

fn task(key: u64, row: &row::Task, of: &Of<'_>) -> Value {
    let reference = match row.iteration {
        0 => &*row.reference,
        _ => row.reference.rsplit_once("__").map_or(&*row.reference, |(name, _)| name),
    };
    let written = of.written.get(reference).cloned().unwrap_or_default();
    let definition = written.get("taskDefinition").cloned().unwrap_or_default();
    let number = |name: &str| definition.get(name).cloned().unwrap_or_else(|| 0.into());
    let start_ms = row.start_ms.unwrap_or(0);
    let at_work = row.status != row.own_status;
    let some_id = |key: u64| if key == 0 { Value::Null } else { id(key) };
    object([
        ("taskType", (*row.task_type).into()),
        ("status", row.status.name().into()),
        ("inputData", parsed(&row.input)),
        ("referenceTaskName", (*row.reference).into()),
        ("retryCount", row.retry_count.into()),
        ("seq", row.seq.into()),
        ("correlationId", text(of.workflow.correlation_id.as_deref())),
        ("pollCount", row.polls.into()),
        ("taskDefName", (*row.name).into()),
        ("scheduledTime", row.scheduled_ms.into()),
        ("startTime", start_ms.into()),
        ("endTime", row.end_ms.unwrap_or(0).into()),
        ("updateTime", row.update_ms.into()),
        ("startDelayInSeconds", row.delay_s.into()),
        ("retriedTaskId", some_id(row.retry_of)),
        ("retried", row.retried.into()),
        ("executed", row.followed.into()),
        ("callbackFromWorker", true.into()),
        ("responseTimeoutSeconds", number("responseTimeoutSeconds")),
        ("workflowInstanceId", id(row.workflow)),
        ("workflowType", (*of.workflow.name).into()),
        ("taskId", id(key)),
        ("reasonForIncompletion", text(row.reason.as_deref())),
        ("callbackAfterSeconds", if at_work { 0.into() } else { row.callback_s.into() }),
        ("workerId", text(row.worker.as_deref())),
        ("outputData", parsed(&row.output)),
        ("workflowTask", written),
        ("domain", text(row.domain.as_deref())),
        ("rateLimitPerFrequency", number("rateLimitPerFrequency")),
        ("rateLimitFrequencyInSeconds", number("rateLimitFrequencyInSeconds")),
        ("workflowPriority", of.workflow.priority.into()),
        ("iteration", row.iteration.into()),
        ("subWorkflowId", some_id(row.child)),
        ("subworkflowChanged", false.into()),
        ("firstStartTime", start_ms.into()),
        ("queueWaitTime", between(Some(row.scheduled_ms), row.start_ms).into()),
        ("taskDefinition", definition),
        ("loopOverTask", (row.iteration > 0).into()),
    ])
}

/// Fields in their order; null ones are left out.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

fn id(key: u64) -> Value {
    id_of(Key::from_raw(key)).into()
}

/// JSON in text; what is none is an empty object.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({}))
}

/// How long it took (ms); 0 when it is not over.
fn between(from_ms: Option<u64>, to_ms: Option<u64>) -> u64 {
    let (Some(from_ms), Some(to_ms)) = (from_ms, to_ms) else { return 0 };
    to_ms.saturating_sub(from_ms)
}
