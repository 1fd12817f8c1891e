//! What can be read about workflows, see [`WorkflowQuery`].

use serde_json::{Map, Value, json};
use windlass_record::flow::Key;
use windlass_record::workflow::{WorkflowQuery, id_of};

use super::render::{self, AskJob, fill_definition, fill_task_definition, job_of};
use super::seen::parsed;
use super::state::{Definition, KnownTask, Workflows};
use super::verb::blocking;

/// Answers a question; `None` when what it names is not there.
pub fn answer(state: &Workflows, query: &WorkflowQuery, ask: &AskJob<'_>) -> Option<Value> {
    match query {
        WorkflowQuery::Workflow { key, tasks } => render::workflow(state, *key, *tasks, ask),
        WorkflowQuery::Status { key, output, variables } => {
            status(state, *key, *output, *variables)
        }
        WorkflowQuery::TasksOf { key, start, count, statuses } => {
            let tasks = state.workflow(*key)?.tasks.iter();
            let matching: Vec<Value> = tasks
                .filter_map(|key| task(state, *key, ask))
                .filter(|task| {
                    let name = task.get("status").and_then(Value::as_str).unwrap_or_default();
                    statuses.is_empty() || statuses.iter().any(|status| status.name() == name)
                })
                .collect();
            let total = matching.len();
            let page: Vec<Value> = matching.into_iter().skip(*start).take(*count).collect();
            Some(json!({ "totalHits": total, "results": page }))
        }
        WorkflowQuery::Task(key) => task(state, *key, ask),
        WorkflowQuery::TaskLog(key) => {
            let lines = state.task(*key)?.log.iter().map(|(at_ms, line)| {
                json!({ "log": &**line, "taskId": id_of(*key), "createdTime": at_ms })
            });
            Some(lines.collect())
        }
        WorkflowQuery::PendingTasks { task_type, start, count } => {
            let mut keys: Vec<Key> = state
                .tasks
                .iter()
                .filter(|(_, task)| !task.status.is_at_rest() && *task.task_type == **task_type)
                .map(|(key, _)| *key)
                .collect();
            keys.sort_unstable();
            let page = keys.into_iter().skip(*start).take(*count);
            Some(page.filter_map(|key| task(state, key, ask)).collect())
        }
        WorkflowQuery::Running { name, version, from_ms, to_ms } => {
            let keys = state.running.get(&**name).into_iter().flatten();
            let matching = keys.filter(|key| {
                state.workflow(**key).is_some_and(|workflow| {
                    version.is_none_or(|version| version == workflow.plan.version)
                        && (*from_ms..=*to_ms).contains(&workflow.created_ms)
                })
            });
            Some(matching.map(|key| id_of(*key)).collect())
        }
        WorkflowQuery::Correlated { name, correlation_ids, closed, tasks } => {
            let of = |id: &str| -> Value {
                let keys = state.correlated.get(id).into_iter().flatten();
                let matching = keys.filter(|key| {
                    state.workflow(**key).is_some_and(|workflow| {
                        (name.is_empty() || *workflow.plan.name == **name)
                            && (*closed || !workflow.status.is_at_rest())
                    })
                });
                matching.filter_map(|key| render::workflow(state, *key, *tasks, ask)).collect()
            };
            let all: Map<String, Value> =
                correlation_ids.iter().map(|id| (id.to_string(), of(id))).collect();
            Some(Value::Object(all))
        }
        WorkflowQuery::Blocking(workflow) => task(state, blocking(state, *workflow)?, ask),
        WorkflowQuery::TaskDefinitions => {
            let keys = state.task_names.values();
            let known = keys.filter_map(|key| state.task_definitions.get(key));
            Some(known.map(task_definition).collect())
        }
        WorkflowQuery::TaskDefinition(name) => {
            let key = state.task_names.get(&**name)?;
            state.task_definitions.get(key).map(task_definition)
        }
        WorkflowQuery::WorkflowDefinitions => {
            let keys = state.listed.values().flat_map(|versions| versions.values());
            Some(keys.filter_map(|key| state.definitions.get(key)).map(definition).collect())
        }
        WorkflowQuery::WorkflowDefinition { name, version } => {
            let key = state.listed_definition(name, *version)?;
            state.definitions.get(&key).map(definition)
        }
        WorkflowQuery::Handlers => {
            let keys = state.handler_names.values();
            let known = keys.filter_map(|key| state.handlers.get(key));
            Some(known.map(|handler| parsed(&handler.json)).collect())
        }
    }
}

fn task(state: &Workflows, key: Key, ask: &AskJob<'_>) -> Option<Value> {
    render::task(state, key, job_of(state, key, ask).as_ref())
}

fn status(state: &Workflows, key: Key, output: bool, variables: bool) -> Option<Value> {
    let workflow = state.workflow(key)?;
    let mut shown = Map::new();
    shown.insert("workflowId".to_owned(), id_of(key).into());
    if !workflow.correlation_id.is_empty() {
        shown.insert("correlationId".to_owned(), (*workflow.correlation_id).into());
    }
    shown.insert("status".to_owned(), workflow.status.name().into());
    if output {
        shown.insert("output".to_owned(), parsed(&workflow.output));
    }
    if variables {
        shown.insert("variables".to_owned(), parsed(&workflow.variables));
    }
    Some(Value::Object(shown))
}

fn task_definition(known: &KnownTask) -> Value {
    let mut json = parsed(&known.json);
    if let Value::Object(object) = &mut json {
        object.retain(|_, value| !value.is_null());
        fill_task_definition(object, known.created_ms, known.updated_ms);
    }
    json
}

fn definition(known: &Definition) -> Value {
    let mut json = parsed(&known.json);
    if let Value::Object(object) = &mut json {
        object.retain(|_, value| !value.is_null());
        fill_definition(object, known.created_ms, known.updated_ms);
    }
    json
}
