//! Workflows through the engine: each scenario registers definitions, does what workers do, and
//! looks at what clients would see. At its end the state is rebuilt from the log, and from a
//! checkpoint, and compared.

mod control;
mod family;
mod forks;
mod large;
mod loops;
mod spec;
mod tasks;
mod timeouts;

use serde_json::{Value, json};
use windlass_record::bound::Bounds;
use windlass_record::command::{ActivateJobs, Command, QueueName};
use windlass_record::flow::{FlowAnswer, FlowCommand, Key};
use windlass_record::id::PartitionId;
use windlass_record::rejection::Rejection;
use windlass_record::workflow::{
    TaskReference, TaskStatus, TaskUpdate, WorkflowAnswer, WorkflowCommand, WorkflowQuery,
    WorkflowVerb, key_of, task_queue,
};

use super::digest::{assert_same, digest};
use super::store::{Store, Writing, replay};
use crate::verb::check::{Check, LEASE_MS, Shelf};
use crate::{Answer, Engine};

/// A task that a worker had: its JSON.
pub(super) type Task = Value;

impl Check {
    pub(super) fn workflow_command(
        &mut self,
        command: WorkflowCommand,
    ) -> Result<WorkflowAnswer, Rejection> {
        let answer = self.flow(FlowCommand::Workflow(command))?;
        let FlowAnswer::Workflow(answer) = answer else {
            panic!("a command on workflows was answered {answer:?}")
        };
        Ok(answer)
    }

    #[track_caller]
    pub(super) fn define(&mut self, definition: &Value) {
        self.workflow_command(WorkflowCommand::DefineWorkflow {
            workflow: definition.to_string().into_bytes().into(),
            overwrite: true,
            dry_run: false,
        })
        .expect("it is sound");
    }

    #[track_caller]
    pub(super) fn define_task(&mut self, definition: &Value) {
        let tasks = vec![definition.to_string().into_bytes().into()];
        self.workflow_command(WorkflowCommand::DefineTasks { tasks, must_exist: false })
            .expect("it is sound");
    }

    #[track_caller]
    pub(super) fn start_workflow(&mut self, name: &str, input: &Value) -> Key {
        self.request_workflow(&json!({ "name": name, "input": input })).expect("it is known")
    }

    pub(super) fn request_workflow(&mut self, request: &Value) -> Result<Key, Rejection> {
        let request = request.to_string().into_bytes().into();
        let answer = self.workflow_command(WorkflowCommand::Start { request })?;
        let WorkflowAnswer::Started { workflow, .. } = answer else {
            panic!("a start was answered {answer:?}")
        };
        Ok(workflow)
    }

    /// Takes tasks of a type, as JSON.
    pub(super) fn poll_tasks(&mut self, task_type: &str, count: u32) -> Vec<Task> {
        self.poll_domain("", task_type, count)
    }

    pub(super) fn poll_domain(&mut self, domain: &str, task_type: &str, count: u32) -> Vec<Task> {
        let queue = task_queue(domain, task_type, "", "");
        self.engine.note_poll(&queue, self.now_ms);
        let name = QueueName { tenant: "default".into(), queue: queue.into() };
        let Some(queue) = self.engine.state().queue_named(&name) else { return Vec::new() };
        let command = ActivateJobs {
            queues: vec![queue],
            worker: "w".into(),
            lease_ms: LEASE_MS,
            jobs_max: count,
            bytes_max: u64::MAX,
            with_token: false,
        };
        let handed = match self.give(Command::ActivateJobs(command)) {
            Ok(Answer::Activated(handed)) => handed,
            other => panic!("activate: {other:?}"),
        };
        let state = self.engine.state();
        let workflows = state.flow().workflows();
        handed
            .iter()
            .map(|handed| {
                let task = workflows.task_of_job(handed.key).expect("a job of a task");
                let now = state.task_job_now(handed.slot);
                crate::render::task(workflows, task, Some(&now)).expect("it is known")
            })
            .collect()
    }

    /// Takes the one job of a queue that a worker of ours asks.
    #[track_caller]
    pub(super) fn take_built_in(&mut self, queue: &str) -> Key {
        let name = QueueName { tenant: "default".into(), queue: queue.into() };
        let queue = self.engine.state().queue_named(&name).expect("the queue is there");
        let command = ActivateJobs {
            queues: vec![queue],
            worker: "ours".into(),
            lease_ms: LEASE_MS,
            jobs_max: 2,
            bytes_max: u64::MAX,
            with_token: false,
        };
        match self.give(Command::ActivateJobs(command)) {
            Ok(Answer::Activated(handed)) if handed.len() == 1 => handed[0].key,
            other => panic!("one job: {other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn poll_one(&mut self, task_type: &str) -> Task {
        let mut tasks = self.poll_tasks(task_type, 2);
        assert_eq!(tasks.len(), 1, "tasks of type {task_type}");
        tasks.remove(0)
    }

    pub(super) fn update_task(
        &mut self,
        task: &Task,
        status: TaskStatus,
        output: &Value,
        reason: &str,
    ) -> WorkflowAnswer {
        self.send_update(TaskUpdate {
            workflow: id(task, "workflowInstanceId"),
            task: TaskReference::Key(id(task, "taskId")),
            status,
            output: output.to_string().into_bytes().into(),
            merge: false,
            reason: reason.into(),
            callback_s: 0,
            worker: "w".into(),
            log: Vec::new(),
            extend_lease: false,
        })
    }

    pub(super) fn send_update(&mut self, update: TaskUpdate) -> WorkflowAnswer {
        self.workflow_command(WorkflowCommand::UpdateTask(Box::new(update)))
            .expect("an update is taken")
    }

    /// Takes the one task of a type and completes it; gives it as it was handed out.
    #[track_caller]
    pub(super) fn do_task(&mut self, task_type: &str, output: &Value) -> Task {
        let task = self.poll_one(task_type);
        self.update_task(&task, TaskStatus::Completed, output, "");
        task
    }

    /// Takes the one task of a type and fails it.
    #[track_caller]
    pub(super) fn fail_task(&mut self, task_type: &str, reason: &str) -> Task {
        let task = self.poll_one(task_type);
        self.update_task(&task, TaskStatus::Failed, &json!({}), reason);
        task
    }

    pub(super) fn read(&self, query: &WorkflowQuery) -> Option<Value> {
        let state = self.engine.state();
        let ask = |job| state.find(job).map(|slot| state.task_job_now(slot));
        crate::workflows::answer(state.flow().workflows(), query, &ask)
    }

    #[track_caller]
    pub(super) fn workflow(&self, key: Key) -> Value {
        self.read(&WorkflowQuery::Workflow { key, tasks: true }).expect("it is known")
    }

    /// Reference names and statuses of all tasks, in order.
    #[track_caller]
    pub(super) fn shown(&self, key: Key) -> Vec<String> {
        let workflow = self.workflow(key);
        let tasks = workflow["tasks"].as_array().expect("a list");
        let shown = |task: &Value| {
            format!(
                "{} {}",
                task["referenceTaskName"].as_str().expect("text"),
                task["status"].as_str().expect("text")
            )
        };
        tasks.iter().map(shown).collect()
    }

    #[track_caller]
    pub(super) fn assert_status(&self, key: Key, status: &str) {
        let workflow = self.workflow(key);
        assert_eq!(workflow["status"], status, "{workflow:#}");
    }

    pub(super) fn control(&mut self, key: Key, verb: WorkflowVerb) -> Result<(), Rejection> {
        let command = WorkflowCommand::Control { workflow: key, verb };
        self.workflow_command(command).map(|_| ())
    }

    /// Rebuilds the state from the log, and from a checkpoint, and compares.
    #[track_caller]
    pub(super) fn compare_rebuilt(&mut self) {
        let live = digest(self.engine.state(), &self.shelf);
        let mut shelf = Shelf::default();
        let mut engine = Engine::new(PartitionId::FIRST, Bounds::default());
        replay(&mut engine, &mut shelf, &self.shelf.log);
        assert_same("from the log", &live, &digest(engine.state(), &shelf));
        let mut store = Store::default();
        engine.freeze(&mut Writing { store: &mut store, shelf: &shelf });
        while !engine.write_frozen(3, &mut Writing { store: &mut store, shelf: &shelf }) {}
        store.commit();
        assert_eq!(store.checksum(), engine.checksum(), "the checksum of all images");
        let mut shelf = Shelf::default();
        let engine = store.load(Bounds::default(), &mut shelf);
        assert_same("from a checkpoint", &live, &digest(engine.state(), &shelf));
    }
}

/// An id in a JSON object.
#[track_caller]
pub(super) fn id(object: &Value, field: &str) -> Key {
    key_of(object[field].as_str().expect("an id")).expect("an id of ours")
}

/// A definition with these tasks.
pub(super) fn definition(name: &str, tasks: &Value) -> Value {
    json!({ "name": name, "version": 1, "tasks": tasks, "schemaVersion": 2 })
}

/// A worker's task.
pub(super) fn simple(name: &str) -> Value {
    json!({ "name": name, "taskReferenceName": name, "type": "SIMPLE" })
}

/// A worker's task with input.
pub(super) fn simple_with(name: &str, input: &Value) -> Value {
    json!({
        "name": name, "taskReferenceName": name, "type": "SIMPLE", "inputParameters": input
    })
}
