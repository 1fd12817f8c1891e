//! What is remembered about workflows. Written by `apply` alone.
//!
//! A workflow keeps a record of each task it scheduled, by its key; `newest` finds the record that a
//! reference name means. A record is **followed** once what comes after it has been done; a workflow
//! with no record left to follow is done. Texts are JSON as they came or were made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskStatus, WorkflowStatus};

use super::definition::TaskDefinition;
use super::plan::{Node, Plan, TaskNode};
use crate::graph::Text;
use crate::state::Map;

/// Everything that is remembered about workflows.
#[derive(Debug, Default)]
pub struct Workflows {
    pub(crate) task_definitions: Map<KnownTask>,
    /// Task definitions by name. Derived.
    pub(crate) task_names: BTreeMap<Text, Key>,
    pub(crate) definitions: Map<Definition>,
    /// Listed definitions by name and version. Derived.
    pub(crate) listed: BTreeMap<Text, BTreeMap<u32, Key>>,
    /// How many definitions are listed, with their versions. Derived.
    pub(crate) listed_count: usize,
    /// The newest snapshot of each listed definition. Derived.
    pub(crate) snapshots: Map<Key>,
    pub(crate) handlers: Map<Handler>,
    /// Event handlers by name. Derived.
    pub(crate) handler_names: BTreeMap<Text, Key>,
    /// Active event handlers by event, oldest first. Derived.
    pub(crate) handlers_of: BTreeMap<Text, BTreeSet<Key>>,
    pub(crate) workflows: Map<Workflow>,
    pub(crate) tasks: Map<Task>,
    /// Which task waits for a job. Derived.
    pub(crate) jobs: Map<Key>,
    /// Workflows and tasks by the time at which they have something to do. Derived.
    pub(crate) due: BTreeSet<(u64, Key)>,
    /// Workflows that have not ended, by name. Derived.
    pub(crate) running: BTreeMap<Text, BTreeSet<Key>>,
    /// Workflows by their callers' names. Derived.
    pub(crate) correlated: BTreeMap<Text, BTreeSet<Key>>,
    /// Workflows by name and idempotency key. Derived.
    pub(crate) idempotent: BTreeMap<(Text, Text), BTreeSet<Key>>,
    /// Workflows by their rate limit key. Derived.
    pub(crate) limited: BTreeMap<Text, Limited>,
    /// Workflows that have ended, oldest first, and about how many bytes each takes. Derived.
    pub(crate) ended: BTreeMap<(u64, Key), usize>,
    /// Bytes of those, about. Derived.
    pub(crate) ended_bytes: usize,
    /// When workers last asked for a queue (ms since the epoch). Not part of what is saved.
    pub(crate) polls: BTreeMap<Box<str>, u64>,
}

/// A task definition.
#[derive(Debug)]
pub struct KnownTask {
    /// Its name.
    pub name: Text,
    /// As it was given.
    pub json: Text,
    /// When it was made first (ms since the epoch).
    pub created_ms: u64,
    /// When it was changed last (ms since the epoch).
    pub updated_ms: u64,
    /// What it says. Derived.
    pub(crate) definition: Arc<TaskDefinition>,
}

/// A workflow definition.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: u32,
    /// Whether it is found by its name.
    pub listed: bool,
    /// The definition that it is, with the task definitions of its time in it.
    pub snapshot_of: Key,
    /// As it was given; of a snapshot, with task definitions.
    pub json: Text,
    /// When it was made first (ms since the epoch).
    pub created_ms: u64,
    /// When it was changed last (ms since the epoch).
    pub updated_ms: u64,
    /// Of a snapshot: the task definitions in it, as they were.
    pub embedded: Vec<(Text, Key)>,
    /// Compiled. Derived.
    pub(crate) plan: Arc<Plan>,
    /// Workflows that run by it, or ended so. Derived.
    pub(crate) users: u32,
}

/// An event handler.
#[derive(Debug)]
pub struct Handler {
    /// Its name.
    pub name: Text,
    /// As it was given.
    pub json: Text,
    /// What it does, if it is active. Derived.
    pub(crate) acts: Option<Arc<Acts>>,
}

/// What an event handler does.
#[derive(Debug)]
pub(crate) struct Acts {
    /// The event that it waits for.
    pub event: Text,
    /// Over the message; empty always holds.
    pub condition: Text,
    /// In order.
    pub actions: Vec<Value>,
}

/// The workflows of a rate limit key.
#[derive(Debug, Default)]
pub(crate) struct Limited {
    /// Those that have a place.
    pub at_work: BTreeSet<Key>,
    /// Those that wait for one, oldest first.
    pub waiting: BTreeSet<Key>,
}

/// A workflow.
#[derive(Debug)]
pub struct Workflow {
    /// The definition that it runs by.
    pub definition: Key,
    /// Where it is in its life.
    pub status: WorkflowStatus,
    /// Why; may be empty.
    pub reason: Text,
    /// A JSON object.
    pub input: Text,
    /// A JSON object.
    pub output: Text,
    /// A JSON object.
    pub variables: Text,
    /// The caller's own name of it; may be empty.
    pub correlation_id: Text,
    /// Made a second start harmless; may be empty.
    pub idempotency_key: Text,
    /// Domains by task type, a JSON object; empty is none.
    pub task_to_domain: Text,
    /// 0..=99.
    pub priority: u32,
    /// Who started it; may be empty.
    pub created_by: Text,
    /// The event that started it; may be empty.
    pub event: Text,
    /// The task that it runs for, or none.
    pub parent_task: Key,
    /// The key of its rate limit; may be empty.
    pub rate_limit_key: Text,
    /// Whether it waits for others with that key.
    pub waits: bool,
    /// When it was started, or restarted (ms since the epoch).
    pub created_ms: u64,
    /// When it was changed last (ms since the epoch).
    pub updated_ms: u64,
    /// When it ended (ms since the epoch); 0 is not yet.
    pub ended_ms: u64,
    /// When it was retried or resumed last (ms since the epoch); 0 is never.
    pub retried_ms: u64,
    /// Whether it was rerun.
    pub rerun: bool,
    /// Whether its end has something left to do.
    pub closing: bool,
    /// Whether its failure workflow is to run then.
    pub compensate: bool,
    /// The task that it failed by, or none.
    pub failed_by: Key,
    /// When it has something to do (ms since the epoch); 0 is never.
    pub due_ms: u64,
    /// Compiled. Derived.
    pub(crate) plan: Arc<Plan>,
    /// Its tasks in the order in which they were scheduled. Derived.
    pub(crate) tasks: BTreeSet<Key>,
    /// Those that are not followed. Derived.
    pub(crate) open: BTreeSet<Key>,
    /// Joins among those. Derived.
    pub(crate) joins: BTreeSet<Key>,
    /// The newest record of each reference name. Derived.
    pub(crate) newest: BTreeMap<Text, Key>,
}

/// Lines of one task that are kept, however many an event has.
const LOG_LINES_MAX: usize = 1_000;

/// The record of a task.
#[derive(Debug)]
pub struct Task {
    /// Its workflow.
    pub workflow: Key,
    /// The fork whose added tasks it is one of, or none.
    pub among: Key,
    /// Its number there, or in the definition.
    pub node: TaskNode,
    /// The loop that it runs in, or none.
    pub loop_task: Key,
    /// The round of that loop, from 1; 0 outside of loops.
    pub iteration: u32,
    /// Its reference name, with the round behind it.
    pub reference: Text,
    /// What it is, as clients see it.
    pub task_type: Text,
    /// The name of its task definition.
    pub name: Text,
    /// How often it was tried before.
    pub retry_count: u32,
    /// The record that it is a retry of, or none.
    pub retry_of: Key,
    /// Whether another record took its place.
    pub retried: bool,
    /// Its place among the tasks of its workflow, from 1.
    pub seq: u32,
    /// Where it is in its life.
    pub status: TaskStatus,
    /// A JSON object.
    pub input: Text,
    /// A JSON object.
    pub output: Text,
    /// Why it is as it is; may be empty.
    pub reason: Text,
    /// The domain of its queue; may be empty.
    pub domain: Text,
    /// How long it waited before it was handed out (s).
    pub delay_s: u32,
    /// How long it was put back for (s).
    pub callback_s: u32,
    /// Who worked on it last; may be empty.
    pub worker: Text,
    /// How often it was handed out.
    pub polls: u32,
    /// When its first record was made (ms since the epoch).
    pub first_ms: u64,
    /// When it was scheduled (ms since the epoch).
    pub scheduled_ms: u64,
    /// When it was handed out first (ms since the epoch); 0 is not yet.
    pub started_ms: u64,
    /// When it was changed last (ms since the epoch).
    pub updated_ms: u64,
    /// When it ended (ms since the epoch); 0 is not yet.
    pub ended_ms: u64,
    /// When it has something to do (ms since the epoch); 0 is never.
    pub due_ms: u64,
    /// The workflow that runs for it, or none.
    pub child: Key,
    /// The job it waits for, and whether that evaluates a script.
    pub job: Option<(Key, bool)>,
    /// Of a fork: branches that were scheduled. Of a loop: rounds that were begun. Of an event:
    /// actions that the handler below has done.
    pub advanced: u32,
    /// Of an event: the handler that acted last, or none.
    pub acted: Key,
    /// Whether what comes after it has been done.
    pub followed: bool,
    /// Of a dynamic fork: the tasks that it added, a JSON list; may be empty.
    pub added: Text,
    /// What was said about it.
    pub log: Vec<(u64, Text)>,
    /// The tasks that it added, compiled. Derived.
    pub(crate) added_plan: Option<Arc<Plan>>,
    /// Of a join: reference names that it is on. Derived.
    pub(crate) joins_on: BTreeSet<Text>,
    /// Of a join: reference names that it still waits for. Derived.
    pub(crate) waits_for: BTreeSet<Text>,
}

impl Workflows {
    /// A workflow.
    pub fn workflow(&self, key: Key) -> Option<&Workflow> {
        self.workflows.get(&key)
    }

    /// A task.
    pub fn task(&self, key: Key) -> Option<&Task> {
        self.tasks.get(&key)
    }

    /// A workflow that an event or an index speaks of.
    pub(crate) fn known(&self, key: Key) -> &Workflow {
        self.workflows.get(&key).expect("events and indexes name known workflows")
    }

    /// A task that an event or an index speaks of.
    pub(crate) fn known_task(&self, key: Key) -> &Task {
        self.tasks.get(&key).expect("events and indexes name known tasks")
    }

    /// The task that waits for a job.
    pub fn task_of_job(&self, job: Key) -> Option<Key> {
        self.jobs.get(&job).copied()
    }

    /// The plan that a task's node is in.
    pub(crate) fn plan_of(&self, task: &Task) -> Arc<Plan> {
        let added = self.tasks.get(&task.among).and_then(|fork| fork.added_plan.clone());
        added.unwrap_or_else(|| self.known(task.workflow).plan.clone())
    }

    /// The task definition with this name.
    pub fn task_definition(&self, name: &str) -> Option<Arc<TaskDefinition>> {
        let key = self.task_names.get(name)?;
        Some(self.task_definitions.get(key)?.definition.clone())
    }

    /// The definition with this name, of this version or the newest.
    pub fn listed_definition(&self, name: &str, version: Option<u32>) -> Option<Key> {
        let versions = self.listed.get(name)?;
        match version {
            Some(version) => versions.get(&version).copied(),
            None => versions.last_key_value().map(|(_, key)| *key),
        }
    }

    /// The newest record that a reference name means; the round of a loop may be left out.
    pub(crate) fn newest(&self, workflow: Key, reference: &str) -> Option<Key> {
        let workflow = self.workflows.get(&workflow)?;
        if let Some(key) = workflow.newest.get(reference) {
            return Some(*key);
        }
        let prefix = format!("{reference}__");
        let of_rounds = workflow
            .newest
            .range::<str, _>((
                std::ops::Bound::Included(prefix.as_str()),
                std::ops::Bound::Unbounded,
            ))
            .take_while(|(name, _)| name.starts_with(&prefix))
            .filter(|(name, _)| name[prefix.len()..].bytes().all(|byte| byte.is_ascii_digit()));
        of_rounds.map(|(_, key)| *key).max()
    }

    /// When something is due next.
    pub(crate) fn next_due_ms(&self) -> Option<u64> {
        self.due.first().map(|(at_ms, _)| *at_ms)
    }

    /// Notes that a worker asked for a queue. Which domain a task goes to depends on it; the choice
    /// stands in the event.
    pub fn note_poll(&mut self, queue: &str, now_ms: u64) {
        const QUEUES_MAX: usize = 10_000;
        if let Some(last_ms) = self.polls.get_mut(queue) {
            *last_ms = now_ms;
        } else if self.polls.len() < QUEUES_MAX {
            self.polls.insert(queue.into(), now_ms);
        }
    }
}

impl Task {
    /// Keeps lines of its log, while there is room.
    pub(crate) fn keep<'a>(&mut self, now_ms: u64, lines: impl Iterator<Item = &'a str>) {
        let room = LOG_LINES_MAX.saturating_sub(self.log.len());
        self.log.extend(lines.take(room).map(|line| (now_ms, line.into())));
    }

    /// Its node.
    pub(crate) fn node<'a>(&self, plan: &'a Plan) -> &'a Node {
        plan.node(self.node)
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        const NUMBERS: usize = 512;
        NUMBERS + self.input.len() + self.output.len() + self.reason.len() + self.added.len()
    }
}

impl Workflow {
    /// About how many bytes it takes, without its tasks.
    pub(crate) fn bytes(&self) -> usize {
        const NUMBERS: usize = 512;
        NUMBERS + self.input.len() + self.output.len() + self.variables.len() + self.reason.len()
    }
}

impl Workflows {
    /// All workflows, in order.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.workflows.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    /// The tasks of a workflow, in order.
    pub fn tasks_of(&self, workflow: Key) -> Vec<Key> {
        self.workflow(workflow).map(|it| it.tasks.iter().copied().collect()).unwrap_or_default()
    }

    /// Those that are not followed yet, in order.
    pub fn open_tasks(&self, workflow: Key) -> Vec<Key> {
        self.workflow(workflow).map(|it| it.open.iter().copied().collect()).unwrap_or_default()
    }
}
