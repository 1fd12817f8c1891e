//! Images of workflows in checkpoints, see [`crate::state::image`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_record::codec::{DecodeError, Decoder, Encoder};
use windlass_record::flow::{Key, NO_KEY};

use super::definition::TaskDefinition;
use super::plan::{Plan, TaskNode};
use super::state::{Definition, Handler, KnownTask, Task, Workflow, Workflows};
use crate::state::FlowState;
use crate::state::image::{self, Value, images};

images! {
    KnownTask { name, json, created_ms, updated_ms } + { definition: Arc::new(TaskDefinition::default()) }
    Definition { name, version, listed, snapshot_of, json, created_ms, updated_ms, embedded }
        + { plan: Arc::new(Plan::compile(serde_json::Value::Null)), users: 0 }
    Handler { name, json } + { acts: None }
    Task {
        workflow, among, node, loop_task, iteration, reference, task_type, name, retry_count,
        retry_of, retried, seq, status, input, output, reason, domain, delay_s, callback_s, worker,
        polls, first_ms, scheduled_ms, started_ms, updated_ms, ended_ms, due_ms, child, job,
        advanced, followed, added, log
    } | { acted: NO_KEY } + { added_plan: None, joins_on: BTreeSet::new(), waits_for: BTreeSet::new() }
    Workflow {
        definition, status, reason, input, output, variables, correlation_id, idempotency_key,
        task_to_domain, priority, created_by, event, parent_task, rate_limit_key, waits,
        created_ms, updated_ms, ended_ms, retried_ms, rerun, closing, compensate, failed_by, due_ms
    } + {
        plan: Arc::new(Plan::compile(serde_json::Value::Null)),
        tasks: BTreeSet::new(),
        open: BTreeSet::new(),
        joins: BTreeSet::new(),
        newest: BTreeMap::new()
    }
}

impl Value for TaskNode {
    fn put(&self, out: &mut Encoder<'_>) {
        out.u32(self.0);
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(TaskNode(input.u32()?))
    }
}

impl FlowState {
    pub(crate) fn load_definition(
        &mut self,
        key: Key,
        input: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        let mut definition = Definition::load(input)?;
        let json = serde_json::from_str(&definition.json).unwrap_or_default();
        definition.plan = Arc::new(Plan::compile(json));
        self.link_workflow_definition(key, definition);
        Ok(())
    }

    pub(crate) fn load_workflow(
        &mut self,
        key: Key,
        input: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        let mut workflow = Workflow::load(input)?;
        let definition = self.workflows.definitions.get(&workflow.definition);
        let missing = DecodeError::UnknownTag { field: "definition of a workflow", tag: 0 };
        workflow.plan = definition.ok_or(missing)?.plan.clone();
        self.link_workflow(key, workflow);
        Ok(())
    }

    /// After the last image: what joins wait for, and how large what has ended is.
    pub(crate) fn finish_load_of_workflows(&mut self) {
        // Those of definitions that were forgotten are nobody's newest.
        let definitions = &self.workflows.definitions;
        self.workflows.snapshots.retain(|listed, _| definitions.contains_key(listed));
        let open = self.workflows.tasks.iter().filter(|(_, task)| !task.followed);
        let joins: Vec<Key> = open
            .filter(|(_, task)| task.is_join(&self.workflows.plan_of(task)))
            .map(|(key, _)| *key)
            .collect();
        for join in joins {
            self.watch(join);
        }
        let ended: Vec<(u64, Key)> = self.workflows.ended.keys().copied().collect();
        for (ended_ms, key) in ended {
            let bytes = self.workflows.bytes_of(self.workflows.known(key));
            self.workflows.ended.insert((ended_ms, key), bytes);
        }
        self.workflows.ended_bytes = self.workflows.ended.values().sum();
    }
}

impl Workflows {
    /// What has an image.
    pub(crate) fn names(&self) -> Vec<(u8, Key)> {
        let names = |tag: u8, keys: Vec<Key>| keys.into_iter().map(move |key| (tag, key));
        names(image::TASK_DEFINITION, self.task_definitions.keys().copied().collect())
            .chain(names(image::WORKFLOW_DEFINITION, self.definitions.keys().copied().collect()))
            .chain(names(image::HANDLER, self.handlers.keys().copied().collect()))
            .chain(names(image::WORKFLOW, self.workflows.keys().copied().collect()))
            .chain(names(image::TASK, self.tasks.keys().copied().collect()))
            .collect()
    }

    /// The indexes in words.
    pub(crate) fn describe(&self, lines: &mut Vec<String>) {
        lines.push(format!("listed {:?} {:?}", self.listed, self.task_names));
        lines.push(format!("snapshots {:?}", self.snapshots.iter().collect::<BTreeMap<_, _>>()));
        lines.push(format!("listed definitions {}", self.listed_count));
        lines.push(format!("handlers {:?} {:?}", self.handler_names, self.handlers_of));
        lines.push(format!("task jobs {:?}", self.jobs.iter().collect::<BTreeMap<_, _>>()));
        lines.push(format!("workflows due {:?} running {:?}", self.due, self.running));
        lines.push(format!("workflows known as {:?} {:?}", self.correlated, self.idempotent));
        lines.push(format!("limited {:?}", self.limited));
        lines.push(format!("ended {:?} {}", self.ended, self.ended_bytes));
        for (key, it) in self.workflows.iter().collect::<BTreeMap<_, _>>() {
            lines.push(format!("workflow {key}: {:?} {:?} {:?}", it.open, it.joins, it.newest));
        }
        for (key, task) in self.tasks.iter().collect::<BTreeMap<_, _>>() {
            if !task.waits_for.is_empty() {
                lines.push(format!("join {key}: {:?}", task.waits_for));
            }
        }
        for (key, definition) in self.definitions.iter().collect::<BTreeMap<_, _>>() {
            lines.push(format!("definition {key}: {}", definition.users));
        }
    }
}
