//! Behaviours of Conductor that its users count on: workflows that run for tasks of others, retries,
//! limits, waits and signals. `docs/conductor-behaviours-family.md` says which test holds what.

mod children;
mod events;
mod limits;
mod retries;
mod starts;
mod tree;
mod waits;

use serde_json::{Value, json};
use windlass_record::flow::Key;

use super::{definition, id, simple, simple_with};
use crate::verb::check::Check;

impl Check {
    /// All tasks of a workflow: type, reference name, status; behind that `again` when another
    /// record took its place, the number of the attempt, and the place of the record it stands for.
    #[track_caller]
    fn rows(&self, key: Key) -> Vec<String> {
        let workflow = self.workflow(key);
        let tasks = workflow["tasks"].as_array().expect("a list");
        let seqs: Vec<u64> = tasks.iter().map(|task| task["seq"].as_u64().expect("it")).collect();
        assert!(seqs.is_sorted_by(|one, next| one < next), "in order: {seqs:?}");
        let row = |task: &Value| {
            let text = |field: &str| task[field].as_str().expect("text").to_owned();
            let mut row =
                format!("{} {} {}", text("taskType"), text("referenceTaskName"), text("status"));
            if task["retried"] == true {
                row += " again";
            }
            if task["retryCount"] != 0 {
                row += &format!(" #{}", task["retryCount"]);
            }
            if let Some(before) = task["retriedTaskId"].as_str() {
                let place = tasks.iter().position(|task| task["taskId"] == before);
                row += &format!(" of {}", place.expect("it is kept") + 1);
            }
            row
        };
        tasks.iter().map(row).collect()
    }

    #[track_caller]
    fn assert_rows(&self, key: Key, status: &str, rows: &[&str]) {
        assert_eq!(self.rows(key), rows);
        self.assert_status(key, status);
    }

    /// The newest task with this reference name.
    #[track_caller]
    fn task_named(&self, key: Key, reference: &str) -> Value {
        let workflow = self.workflow(key);
        let tasks = workflow["tasks"].as_array().expect("a list");
        let is_it = |task: &&Value| task["referenceTaskName"] == reference;
        tasks.iter().rev().find(is_it).expect("it was scheduled").clone()
    }

    /// The workflow that runs for the newest task with this reference name.
    #[track_caller]
    fn child_of(&self, key: Key, reference: &str) -> Key {
        id(&self.task_named(key, reference), "subWorkflowId")
    }
}

fn once(name: &str) -> Value {
    let mut task = simple(name);
    task["retryCount"] = json!(0);
    task
}

/// A task that another workflow runs for.
fn sub(reference: &str, param: &Value) -> Value {
    json!({ "name": reference, "taskReferenceName": reference, "type": "SUB_WORKFLOW",
            "subWorkflowParam": param })
}
