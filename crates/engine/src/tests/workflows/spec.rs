//! Behaviours of Conductor's server, as scenarios: what is started, what workers and people do, and
//! what the tasks are after each of it. docs/conductor-behaviours.md says which are held where.

mod branches;
mod cases;
mod computed;
mod ends;
mod lines;
mod loops;
mod nested;
mod rounds;
mod scripts;
mod settings;
mod times;

use serde_json::{Value, json};
use windlass_record::command::Bytes;
use windlass_record::flow::Key;
use windlass_record::workflow::{
    EVALUATION_QUEUE, RerunWorkflow, TaskReference, TaskStatus, TaskUpdate, WorkflowAnswer,
    WorkflowVerb,
};

use super::{Task, definition, id, simple};
use crate::verb::check::Check;

/// What somebody does.
pub(super) enum Step {
    /// A worker completes the one task of this type.
    Done(&'static str),
    /// The same, with this output.
    Gives(&'static str, Value),
    /// A worker fails the one task of this type.
    Fails(&'static str),
    /// The same, and trying again cannot help.
    Dies(&'static str),
    /// A worker takes the one task of this type, and is silent.
    Takes(&'static str),
    /// Somebody completes the task with this reference name.
    Completes(&'static str),
    /// Seconds pass.
    Waits(u64),
    /// Somebody does this with the workflow.
    Is(WorkflowVerb),
}

use Step::{Completes, Dies, Done, Fails, Gives, Is, Takes, Waits};

/// The workflow goes on with what failed.
pub(super) const RETRIED: Step = Is(WorkflowVerb::Retry { subworkflows: false });

/// The workflow begins again with the definition that it has.
pub(super) const RESTARTED: Step = Is(WorkflowVerb::Restart { latest: false });

impl Check {
    /// Starts a workflow of these tasks.
    #[track_caller]
    fn start_tasks(&mut self, tasks: &Value, input: &Value) -> Key {
        self.define(&definition("w", tasks));
        self.start_workflow("w", input)
    }

    /// The status of a workflow and its tasks, in order: reference name, type when that is another
    /// word, status, and the number of the retry.
    #[track_caller]
    fn told(&self, key: Key) -> String {
        let workflow = self.workflow(key);
        let tasks = workflow["tasks"].as_array().expect("a list");
        let seqs: Vec<u64> = tasks.iter().map(|task| task["seq"].as_u64().expect("one")).collect();
        assert!(seqs.windows(2).all(|two| two[0] < two[1]), "{seqs:?} is in order");
        let row = |task: &Value| {
            let text = |field: &str| task[field].as_str().expect("text").to_owned();
            let (reference, kind) = (text("referenceTaskName"), text("taskType"));
            let bare = reference.split("__").next().expect("there is one").to_owned();
            let kind = if bare == kind { String::new() } else { format!(" {kind}") };
            let retry = match task["retryCount"].as_u64() {
                Some(0) => String::new(),
                count => format!(" #{}", count.expect("a number")),
            };
            format!("{reference}{kind} {}{retry}", text("status"))
        };
        let rows: Vec<String> = tasks.iter().map(row).collect();
        format!("{}: {}", workflow["status"].as_str().expect("text"), rows.join(", "))
    }

    #[track_caller]
    fn assert_told(&self, key: Key, expected: &str) {
        assert_eq!(self.told(key), expected);
    }

    /// Does each of these, and looks at what is told then.
    #[track_caller]
    fn play<const N: usize>(&mut self, key: Key, scenes: [(Step, &str); N]) {
        for (step, expected) in scenes {
            self.step(key, step);
            self.assert_told(key, expected);
        }
    }

    #[track_caller]
    fn step(&mut self, key: Key, step: Step) {
        match step {
            Done(task) => drop(self.do_task(task, &json!({}))),
            Gives(task, output) => drop(self.do_task(task, &output)),
            Fails(task) => drop(self.fail_task(task, "no")),
            Dies(task) => {
                let task = self.poll_one(task);
                self.update_task(&task, TaskStatus::FailedWithTerminalError, &json!({}), "never");
            }
            Takes(task) => drop(self.poll_one(task)),
            Completes(reference) => drop(self.complete_named(key, reference, &json!({}))),
            Waits(seconds) => {
                self.pass(seconds * 1_000);
                self.settle();
            }
            Is(verb) => self.control(key, verb).expect("it may be"),
        }
    }

    /// Completes a task by its reference name, as a person does.
    fn complete_named(&mut self, workflow: Key, reference: &str, output: &Value) -> WorkflowAnswer {
        self.send_update(TaskUpdate {
            workflow,
            task: TaskReference::Name(reference.into()),
            status: TaskStatus::Completed,
            output: output.to_string().into_bytes().into(),
            merge: false,
            reason: "".into(),
            callback_s: 0,
            worker: "".into(),
            log: Vec::new(),
            extend_lease: false,
        })
    }

    /// The newest task with a reference name.
    #[track_caller]
    fn task(&self, workflow: Key, reference: &str) -> Task {
        let workflow = self.workflow(workflow);
        let tasks = workflow["tasks"].as_array().expect("a list").iter();
        tasks
            .rev()
            .find(|task| task["referenceTaskName"] == reference)
            .expect("it is there")
            .clone()
    }

    /// The workflow that runs for a task.
    #[track_caller]
    fn child(&self, workflow: Key, reference: &str) -> Key {
        id(&self.task(workflow, reference), "subWorkflowId")
    }

    /// Answers the one script that waits for the sandbox.
    #[track_caller]
    fn evaluated(&mut self, answer: &Value) {
        let job = self.take_built_in(EVALUATION_QUEUE);
        self.done(job, &answer.to_string());
    }
}

/// A worker's task that is tried once.
fn once(name: &str) -> Value {
    with(simple(name), "retryCount", json!(0))
}

/// A task with one more field.
fn with(mut task: Value, field: &str, value: Value) -> Value {
    task[field] = value;
    task
}

/// A task of a kind that is more than its name.
fn task(kind: &str, name: &str, more: Value) -> Value {
    let mut task = more;
    task["name"] = json!(name);
    task["taskReferenceName"] = json!(name);
    task["type"] = json!(kind);
    task
}

fn fork(name: &str, branches: &Value) -> Value {
    task("FORK_JOIN", name, json!({ "forkTasks": branches }))
}

fn join(name: &str, on: &Value) -> Value {
    task("JOIN", name, json!({ "joinOn": on }))
}

/// A workflow as a task.
fn runs(name: &str, workflow: &str) -> Value {
    task("SUB_WORKFLOW", name, json!({ "subWorkflowParam": { "name": workflow } }))
}

/// A loop that goes on for as many rounds as the input `rounds` says.
fn rounds(name: &str, body: &Value) -> Value {
    task(
        "DO_WHILE",
        name,
        json!({ "inputParameters": { "rounds": "${workflow.input.rounds}" },
                "loopCondition": format!("$.{name}['iteration'] < $.rounds"), "loopOver": body }),
    )
}

fn wait(name: &str) -> Value {
    task("WAIT", name, json!({}))
}

/// Begin again from a task.
fn rerun(task: &Task) -> Step {
    rerun_with(task, &json!({}))
}

/// The same, with another input.
fn rerun_with(task: &Task, input: &Value) -> Step {
    Is(WorkflowVerb::Rerun(RerunWorkflow {
        from: Some(id(task, "taskId")),
        task_input: match input.as_object().is_some_and(|it| it.is_empty()) {
            true => Bytes::default(),
            false => input.to_string().into_bytes().into(),
        },
        ..RerunWorkflow::default()
    }))
}
