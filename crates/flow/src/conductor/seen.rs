//! What expressions of a workflow see: the workflow itself, and its tasks by reference name.

use serde_json::{Map, Value};
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::id_of;

use super::path::Budget;
use super::state::{Task, Workflow, Workflows};
use super::task::do_while;
use super::template::{self, Roots, TemplateError};

/// What one evaluation may do.
pub(crate) fn budget() -> Budget {
    Budget { steps_left: 1_000_000, size_left: 32 << 20 }
}

/// A workflow as expressions see it.
pub(crate) struct Seen<'a> {
    pub(crate) state: &'a Workflows,
    pub(crate) workflow: Key,
    /// The task that is being made or done, if any.
    pub(crate) task: Key,
    /// The input of that task, for a task that has no record yet.
    pub(crate) own_input: Option<&'a Map<String, Value>>,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(state: &'a Workflows, workflow: Key) -> Seen<'a> {
        Seen { state, workflow, task: NO_KEY, own_input: None }
    }

    /// Fills in a template.
    pub(crate) fn resolve(&self, template: &Value) -> Result<Value, TemplateError> {
        template::resolve(template, self, &mut budget())
    }

    fn of_workflow(&self, workflow: &Workflow, field: &str) -> Option<Option<Value>> {
        let parent = self.state.task(workflow.parent_task);
        let text = |text: &str| (!text.is_empty()).then(|| Value::from(text));
        Some(match field {
            "input" => Some(parsed(&workflow.input)),
            "output" => Some(parsed(&workflow.output)),
            "variables" => Some(parsed(&workflow.variables)),
            "status" => Some(workflow.status.name().into()),
            "workflowId" => Some(id_of(self.workflow).into()),
            "parentWorkflowId" => parent.map(|task| id_of(task.workflow).into()),
            "parentWorkflowTaskId" => parent.map(|_| id_of(workflow.parent_task).into()),
            "workflowType" => Some((*workflow.plan.name).into()),
            "version" => Some(workflow.plan.version.into()),
            "correlationId" => text(&workflow.correlation_id),
            "reasonForIncompletion" => text(&workflow.reason),
            "schemaVersion" => Some(2.into()),
            _ => return None,
        })
    }

    fn of_task(&self, key: Key, task: &Task, field: &str) -> Option<Option<Value>> {
        let time = |ms: u64| Some(Value::from(ms));
        let text = |text: &str| (!text.is_empty()).then(|| Value::from(text));
        Some(match field {
            "input" => Some(parsed(&task.input)),
            "output" => Some(output_of(self.state, key, task)),
            "status" => Some(task.status.name().into()),
            "taskType" => Some((*task.task_type).into()),
            "referenceTaskName" => Some((*task.reference).into()),
            "retryCount" => Some(task.retry_count.into()),
            "correlationId" => {
                let workflow = self.state.workflow(self.workflow);
                workflow.and_then(|workflow| text(&workflow.correlation_id))
            }
            "pollCount" => Some(task.polls.into()),
            "taskDefName" => Some((*task.name).into()),
            "scheduledTime" => time(task.scheduled_ms),
            "startTime" => time(task.started_ms),
            "endTime" => time(task.ended_ms),
            "workflowInstanceId" => Some(id_of(self.workflow).into()),
            "taskId" => Some(id_of(key).into()),
            "reasonForIncompletion" => text(&task.reason),
            "callbackAfterSeconds" => Some(task.callback_s.into()),
            "workerId" => text(&task.worker),
            "iteration" => Some(do_while::round_of(self.state, task).into()),
            _ => return None,
        })
    }
}

/// The output of a task; that of a loop under way is put together.
pub(crate) fn output_of(state: &Workflows, key: Key, task: &Task) -> Value {
    if task.advanced > 0 && !task.status.is_at_rest() && do_while::is_loop(state, task) {
        return Value::Object(do_while::output(state, key, task));
    }
    parsed(&task.output)
}

/// JSON in text; what is none is an empty object.
pub(crate) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::Object(Map::new()))
}

impl Roots for Seen<'_> {
    fn part(&self, root: &str, field: &str) -> Option<Option<Value>> {
        if root == "workflow" {
            return self.of_workflow(self.state.workflow(self.workflow)?, field);
        }
        let key = self.state.newest(self.workflow, root)?;
        self.of_task(key, self.state.task(key)?, field)
    }

    fn whole(&self, root: &str) -> Option<Value> {
        const WORKFLOW: [&str; 12] = [
            "input",
            "output",
            "status",
            "workflowId",
            "parentWorkflowId",
            "parentWorkflowTaskId",
            "workflowType",
            "version",
            "correlationId",
            "reasonForIncompletion",
            "schemaVersion",
            "variables",
        ];
        const TASK: [&str; 18] = [
            "input",
            "output",
            "status",
            "taskType",
            "referenceTaskName",
            "retryCount",
            "correlationId",
            "pollCount",
            "taskDefName",
            "scheduledTime",
            "startTime",
            "endTime",
            "workflowInstanceId",
            "taskId",
            "reasonForIncompletion",
            "callbackAfterSeconds",
            "workerId",
            "iteration",
        ];
        if root == "CPEWF_TASK_ID" {
            return (self.task != NO_KEY).then(|| id_of(self.task).into());
        }
        if let Some(own) = self.own_input.filter(|_| root.is_empty()) {
            return Some(Value::Object(own.clone()));
        }
        let is_task = self.state.newest(self.workflow, root).is_some();
        let names: &[&str] = match root {
            "workflow" => &WORKFLOW,
            _ if is_task => &TASK,
            _ => return None,
        };
        let field = |name: &&str| Some(((*name).to_owned(), self.part(root, name)??));
        Some(Value::Object(names.iter().filter_map(field).collect()))
    }
}
