//! What an event does to the state of workflows. Only assigns, as in [`crate::apply`].

mod definition;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use windlass_record::flow::{Key, NO_KEY};
use windlass_record::workflow::{
    TaskChanged, TaskScheduled, TaskStatus, WorkflowEvent, WorkflowRevived, WorkflowStarted,
    WorkflowStatus,
};

use super::lenient;
use super::plan::{Kind, Plan, TaskNode};
use super::state::{Task, Workflow};
use crate::graph::Text;
use crate::state::{FlowState, Todo, image};

impl FlowState {
    pub(crate) fn apply_workflow(&mut self, now_ms: u64, event: &WorkflowEvent<'_>) {
        match event {
            WorkflowEvent::TaskDefined { key, name, json } => {
                self.task_defined(now_ms, *key, name, json);
            }
            WorkflowEvent::TaskForgotten { key } => {
                self.touch(image::TASK_DEFINITION, *key);
                if let Some(known) = self.workflows.task_definitions.remove(key) {
                    self.workflows.task_names.remove(&known.name);
                }
            }
            WorkflowEvent::WorkflowDefined { key, name, version, listed, snapshot_of, json } => {
                self.workflow_defined(now_ms, *key, (name, *version), *listed, *snapshot_of, json);
            }
            WorkflowEvent::WorkflowForgotten { key } => self.definition_forgotten(*key),
            WorkflowEvent::HandlerDefined { key, name, json } => {
                self.handler_defined(*key, name, json);
            }
            WorkflowEvent::HandlerForgotten { key } => self.handler_forgotten(*key),
            WorkflowEvent::WorkflowStarted(started) => self.workflow_started(now_ms, started),
            WorkflowEvent::WorkflowRevived(revived) => self.workflow_revived(now_ms, revived),
            WorkflowEvent::WorkflowPaused { key, paused } => {
                let workflow = self.workflow_mut(*key, now_ms);
                workflow.status =
                    if *paused { WorkflowStatus::Paused } else { WorkflowStatus::Running };
                if !*paused {
                    workflow.retried_ms = now_ms;
                    self.queue(Todo::Workflow(*key));
                }
            }
            WorkflowEvent::WorkflowEnded { key, status, reason, output, compensate, by } => {
                self.set_workflow_due(*key, 0);
                let workflow = self.workflow_mut(*key, now_ms);
                workflow.status = *status;
                workflow.reason = (*reason).into();
                workflow.output = (*output).into();
                workflow.ended_ms = now_ms;
                workflow.closing = true;
                workflow.waits = false;
                workflow.compensate = *compensate;
                workflow.failed_by = *by;
                let name = workflow.plan.name.clone();
                let limit = workflow.rate_limit_key.clone();
                self.remove_running(&name, *key);
                self.take_place(&limit, *key);
                self.queue(Todo::Workflow(*key));
            }
            WorkflowEvent::WorkflowClosed { key, output } => {
                let workflow = self.workflow_mut(*key, now_ms);
                workflow.closing = false;
                if let Some(output) = output {
                    workflow.output = (*output).into();
                }
                let limit = workflow.rate_limit_key.clone();
                self.leave_limit(&limit, *key);
                self.link_ended(*key);
            }
            WorkflowEvent::WorkflowRemoved { key, forget: _ } => self.workflow_removed(*key),
            WorkflowEvent::WorkflowVariablesSet { key, variables } => {
                self.workflow_mut(*key, now_ms).variables = (*variables).into();
            }
            WorkflowEvent::WorkflowQueued { key } => {
                // One that waited for a place of its limit has it now.
                if self.workflows.known(*key).waits {
                    let workflow = self.workflow_mut(*key, now_ms);
                    workflow.waits = false;
                    let limit = workflow.rate_limit_key.clone();
                    self.take_place(&limit, *key);
                }
                self.queue(Todo::Workflow(*key));
            }
            WorkflowEvent::WorkflowDue { key, at_ms } => self.set_workflow_due(*key, *at_ms),
            WorkflowEvent::TasksAdded { .. }
            | WorkflowEvent::TaskScheduled(_)
            | WorkflowEvent::TaskChanged(_)
            | WorkflowEvent::TaskJobAttached { .. }
            | WorkflowEvent::TaskJobDetached { .. }
            | WorkflowEvent::TaskDue { .. }
            | WorkflowEvent::TaskQueued { .. }
            | WorkflowEvent::TaskAdvanced { .. }
            | WorkflowEvent::TaskActed { .. }
            | WorkflowEvent::TaskFollowed { .. }
            | WorkflowEvent::TasksDropped { .. }
            | WorkflowEvent::TaskLogged { .. } => self.apply_task(now_ms, event),
        }
    }

    fn apply_task(&mut self, now_ms: u64, event: &WorkflowEvent<'_>) {
        match event {
            WorkflowEvent::TasksAdded { task, tasks } => {
                let added = self.task_mut(*task, now_ms);
                added.added = (*tasks).into();
                added.compile_added();
            }
            WorkflowEvent::TaskScheduled(scheduled) => self.task_scheduled(now_ms, scheduled),
            WorkflowEvent::TaskChanged(changed) => self.task_changed(now_ms, changed),
            WorkflowEvent::TaskJobAttached { task, job, evaluates } => {
                self.task_mut(*task, now_ms).job = Some((*job, *evaluates));
                self.workflows.jobs.insert(*job, *task);
            }
            WorkflowEvent::TaskJobDetached { task } => self.detach_job(*task, now_ms),
            WorkflowEvent::TaskDue { task, at_ms } => self.set_task_due(*task, *at_ms, now_ms),
            WorkflowEvent::TaskQueued { task } => self.queue(Todo::Task(*task)),
            WorkflowEvent::TaskAdvanced { task, to } => {
                self.task_advanced(*task, *to, now_ms);
                self.queue(Todo::Task(*task));
            }
            WorkflowEvent::TaskActed { task, handler, to } => {
                let record = self.task_mut(*task, now_ms);
                (record.acted, record.advanced) = (*handler, *to);
                self.queue(Todo::Task(*task));
            }
            WorkflowEvent::TaskFollowed { task, retried } => {
                let record = self.task_mut(*task, now_ms);
                let was_followed = std::mem::replace(&mut record.followed, true);
                record.retried = *retried;
                let (workflow, reference) = (record.workflow, record.reference.clone());
                self.close_task(workflow, *task);
                if !*retried {
                    self.tell_joins(workflow, &reference);
                } else if was_followed {
                    self.wait_again(workflow, &reference);
                }
            }
            WorkflowEvent::TasksDropped { tasks } => {
                let workflow = tasks.first().and_then(|task| self.workflows.task(*task));
                let workflow = workflow.map(|task| task.workflow);
                for task in tasks.iter() {
                    self.task_dropped(*task);
                }
                if let Some(workflow) = workflow {
                    self.watch_again(workflow);
                }
            }
            WorkflowEvent::TaskLogged { task, lines } => {
                self.task_mut(*task, now_ms).keep(now_ms, lines.iter().map(|line| &**line));
            }
            WorkflowEvent::TaskDefined { .. }
            | WorkflowEvent::TaskForgotten { .. }
            | WorkflowEvent::WorkflowDefined { .. }
            | WorkflowEvent::WorkflowForgotten { .. }
            | WorkflowEvent::HandlerDefined { .. }
            | WorkflowEvent::HandlerForgotten { .. }
            | WorkflowEvent::WorkflowStarted(_)
            | WorkflowEvent::WorkflowRevived(_)
            | WorkflowEvent::WorkflowPaused { .. }
            | WorkflowEvent::WorkflowEnded { .. }
            | WorkflowEvent::WorkflowClosed { .. }
            | WorkflowEvent::WorkflowRemoved { .. }
            | WorkflowEvent::WorkflowVariablesSet { .. }
            | WorkflowEvent::WorkflowQueued { .. }
            | WorkflowEvent::WorkflowDue { .. } => unreachable!("apply_workflow has those"),
        }
    }

    // ── workflows ───────────────────────────────────────────────────────────────────────────

    fn workflow_started(&mut self, now_ms: u64, started: &WorkflowStarted<'_>) {
        let definition = self.workflows.definitions.get(&started.definition);
        let plan = definition.expect("events name known definitions").plan.clone();
        let workflow = Workflow {
            definition: started.definition,
            status: WorkflowStatus::Running,
            reason: "".into(),
            input: started.input.into(),
            output: "{}".into(),
            variables: started.variables.into(),
            correlation_id: started.correlation_id.into(),
            idempotency_key: started.idempotency_key.into(),
            task_to_domain: started.task_to_domain.into(),
            priority: started.priority,
            created_by: started.created_by.into(),
            event: started.event.into(),
            parent_task: started.parent_task,
            rate_limit_key: started.rate_limit_key.into(),
            waits: started.waits,
            created_ms: now_ms,
            updated_ms: now_ms,
            ended_ms: 0,
            retried_ms: 0,
            rerun: false,
            closing: false,
            compensate: false,
            failed_by: NO_KEY,
            due_ms: 0,
            plan,
            tasks: BTreeSet::new(),
            open: BTreeSet::new(),
            joins: BTreeSet::new(),
            newest: BTreeMap::new(),
        };
        self.touch(image::WORKFLOW, started.key);
        self.link_workflow(started.key, workflow);
        self.queue(Todo::Workflow(started.key));
    }

    /// Puts a workflow into all indexes.
    pub(crate) fn link_workflow(&mut self, key: Key, workflow: Workflow) {
        if let Some(definition) = self.workflows.definitions.get_mut(&workflow.definition) {
            definition.users += 1;
        }
        let name = workflow.plan.name.clone();
        if !workflow.correlation_id.is_empty() {
            let id = workflow.correlation_id.clone();
            self.workflows.correlated.entry(id).or_default().insert(key);
        }
        if !workflow.idempotency_key.is_empty() {
            let id = (name.clone(), workflow.idempotency_key.clone());
            self.workflows.idempotent.entry(id).or_default().insert(key);
        }
        if !workflow.status.is_at_rest() {
            self.workflows.running.entry(name).or_default().insert(key);
        }
        if !workflow.rate_limit_key.is_empty()
            && (!workflow.status.is_at_rest() || workflow.closing)
        {
            let limit = workflow.rate_limit_key.clone();
            let limited = self.workflows.limited.entry(limit).or_default();
            let place = if workflow.waits { &mut limited.waiting } else { &mut limited.at_work };
            place.insert(key);
        }
        if workflow.due_ms > 0 {
            self.workflows.due.insert((workflow.due_ms, key));
        }
        let ended = workflow.status.is_at_rest() && !workflow.closing;
        self.workflows.workflows.insert(key, workflow);
        if ended {
            self.link_ended(key);
        }
    }

    fn link_ended(&mut self, key: Key) {
        let workflow = self.workflows.known(key);
        let bytes = self.workflows.bytes_of(workflow);
        self.workflows.ended.insert((workflow.ended_ms, key), bytes);
        self.workflows.ended_bytes = self.workflows.ended_bytes.saturating_add(bytes);
    }

    fn unlink_ended(&mut self, key: Key) {
        let ended_ms = self.workflows.known(key).ended_ms;
        if let Some(bytes) = self.workflows.ended.remove(&(ended_ms, key)) {
            self.workflows.ended_bytes = self.workflows.ended_bytes.saturating_sub(bytes);
        }
    }

    /// A workflow that is about to change.
    fn workflow_mut(&mut self, key: Key, now_ms: u64) -> &mut Workflow {
        self.touch(image::WORKFLOW, key);
        let workflow = self.workflows.workflows.get_mut(&key).expect("events name known workflows");
        workflow.updated_ms = now_ms;
        workflow
    }

    fn remove_running(&mut self, name: &str, key: Key) {
        if let Some(running) = self.workflows.running.get_mut(name) {
            running.remove(&key);
            if running.is_empty() {
                self.workflows.running.remove(name);
            }
        }
    }

    /// One that waited waits no more; one that ends keeps its place until it is closed.
    fn take_place(&mut self, limit: &str, key: Key) {
        if let Some(limited) = self.workflows.limited.get_mut(limit)
            && limited.waiting.remove(&key)
        {
            limited.at_work.insert(key);
        }
    }

    fn leave_limit(&mut self, limit: &str, key: Key) {
        if let Some(limited) = self.workflows.limited.get_mut(limit) {
            limited.at_work.remove(&key);
            limited.waiting.remove(&key);
            if limited.at_work.is_empty() && limited.waiting.is_empty() {
                self.workflows.limited.remove(limit);
            }
        }
    }

    fn set_workflow_due(&mut self, key: Key, at_ms: u64) {
        let before_ms = self.workflows.known(key).due_ms;
        if before_ms == at_ms {
            return;
        }
        self.workflows.due.remove(&(before_ms, key));
        if at_ms > 0 {
            self.workflows.due.insert((at_ms, key));
        }
        self.touch(image::WORKFLOW, key);
        if let Some(workflow) = self.workflows.workflows.get_mut(&key) {
            workflow.due_ms = at_ms;
        }
    }

    fn workflow_revived(&mut self, now_ms: u64, revived: &WorkflowRevived<'_>) {
        let key = revived.key;
        if self.workflows.known(key).status.is_at_rest() && !self.workflows.known(key).closing {
            self.unlink_ended(key);
        }
        self.touch(image::WORKFLOW, key);
        let workflow = self.workflows.workflows.remove(&key).expect("events name known workflows");
        let before = workflow.definition;
        let mut workflow = workflow;
        if let Some(definition) = self.workflows.definitions.get(&revived.definition) {
            workflow.plan = definition.plan.clone();
            workflow.definition = revived.definition;
        }
        workflow.status = WorkflowStatus::Running;
        workflow.reason = "".into();
        workflow.output = "{}".into();
        workflow.updated_ms = now_ms;
        workflow.ended_ms = 0;
        workflow.closing = false;
        workflow.failed_by = NO_KEY;
        workflow.rerun = revived.rerun;
        if revived.anew {
            workflow.created_ms = now_ms;
            workflow.retried_ms = 0;
        } else {
            workflow.retried_ms = now_ms;
        }
        if let Some(input) = revived.input {
            workflow.input = input.into();
        }
        if let Some(variables) = revived.variables {
            workflow.variables = variables.into();
        }
        if let Some(correlation_id) = revived.correlation_id {
            self.uncorrelate(&workflow.correlation_id, key);
            workflow.correlation_id = correlation_id.into();
        }
        // In this order: it may be the same one.
        self.link_workflow(key, workflow);
        self.release_definition(before);
        self.queue(Todo::Workflow(key));
    }

    fn uncorrelate(&mut self, id: &str, key: Key) {
        if let Some(keys) = self.workflows.correlated.get_mut(id) {
            keys.remove(&key);
            if keys.is_empty() {
                self.workflows.correlated.remove(id);
            }
        }
    }

    fn release_definition(&mut self, key: Key) {
        if let Some(definition) = self.workflows.definitions.get_mut(&key) {
            definition.users = definition.users.saturating_sub(1);
        }
        self.drop_unused(key);
    }

    fn workflow_removed(&mut self, key: Key) {
        self.unlink_ended(key);
        let tasks: Vec<Key> = self.workflows.known(key).tasks.iter().copied().collect();
        for task in tasks {
            self.task_dropped(task);
        }
        self.set_workflow_due(key, 0);
        self.touch(image::WORKFLOW, key);
        let workflow = self.workflows.workflows.remove(&key).expect("events name known workflows");
        let name = workflow.plan.name.clone();
        self.remove_running(&name, key);
        self.leave_limit(&workflow.rate_limit_key, key);
        self.uncorrelate(&workflow.correlation_id, key);
        let id = (name, workflow.idempotency_key.clone());
        if let Some(keys) = self.workflows.idempotent.get_mut(&id) {
            keys.remove(&key);
            if keys.is_empty() {
                self.workflows.idempotent.remove(&id);
            }
        }
        self.release_definition(workflow.definition);
    }

    // ── tasks ───────────────────────────────────────────────────────────────────────────────

    fn task_scheduled(&mut self, now_ms: u64, scheduled: &TaskScheduled<'_>) {
        let last = self.workflows.known(scheduled.workflow).tasks.last();
        let seq = last.map_or(0, |last| self.workflows.known_task(*last).seq);
        let task = Task {
            workflow: scheduled.workflow,
            among: scheduled.among,
            node: TaskNode(scheduled.node),
            loop_task: scheduled.loop_task,
            iteration: scheduled.iteration,
            reference: scheduled.reference.into(),
            task_type: scheduled.task_type.into(),
            name: scheduled.name.into(),
            retry_count: scheduled.retry_count,
            retry_of: scheduled.retry_of,
            retried: false,
            seq: seq.saturating_add(1),
            status: scheduled.status,
            input: scheduled.input.into(),
            output: "{}".into(),
            reason: scheduled.reason.into(),
            domain: scheduled.domain.into(),
            delay_s: scheduled.delay_s,
            callback_s: scheduled.delay_s,
            worker: "".into(),
            polls: 0,
            first_ms: if scheduled.first_ms == 0 { now_ms } else { scheduled.first_ms },
            scheduled_ms: now_ms,
            started_ms: 0,
            updated_ms: now_ms,
            ended_ms: 0,
            due_ms: 0,
            child: NO_KEY,
            job: None,
            advanced: 0,
            acted: NO_KEY,
            followed: false,
            added: "".into(),
            log: Vec::new(),
            added_plan: None,
            joins_on: BTreeSet::new(),
            waits_for: BTreeSet::new(),
        };
        let is_join = task.is_join(&self.workflows.plan_of(&task));
        self.touch(image::TASK, scheduled.key);
        self.link_task(scheduled.key, task);
        if is_join {
            self.watch(scheduled.key);
        }
        self.touch(image::WORKFLOW, scheduled.workflow);
        self.queue(Todo::Task(scheduled.key));
    }

    fn task_advanced(&mut self, key: Key, to: u32, now_ms: u64) {
        let task = self.task_mut(key, now_ms);
        task.advanced = to;
        // The turn of one that was skipped beforehand has come.
        if task.status == TaskStatus::Skipped {
            let workflow = task.workflow;
            if let Some(workflow) = self.workflows.workflows.get_mut(&workflow) {
                workflow.open.insert(key);
            }
        }
    }

    /// Puts a task into all indexes but that of what joins wait for.
    pub(crate) fn link_task(&mut self, key: Key, mut task: Task) {
        task.compile_added();
        if let Some(workflow) = self.workflows.workflows.get_mut(&task.workflow) {
            workflow.tasks.insert(key);
            let newest = workflow.newest.entry(task.reference.clone()).or_insert(key);
            *newest = (*newest).max(key);
            if !task.followed && !task.awaits_its_turn() {
                workflow.open.insert(key);
            }
        }
        if let Some((job, _)) = task.job {
            self.workflows.jobs.insert(job, key);
        }
        if task.due_ms > 0 {
            self.workflows.due.insert((task.due_ms, key));
        }
        self.workflows.tasks.insert(key, task);
    }

    /// Lets a join wait for what it names.
    pub(crate) fn watch(&mut self, key: Key) {
        let task = self.workflows.known_task(key);
        let Some(workflow) = self.workflows.workflows.get(&task.workflow) else { return };
        let input = lenient::parse_object(&task.input);
        let settled = |reference: &str| {
            let newest = workflow.newest.get(reference).and_then(|key| self.workflows.task(*key));
            newest.is_some_and(|task| task.followed && !task.retried && task.status.is_at_rest())
        };
        let references = input.get("joinOn").and_then(Value::as_array);
        let joins_on: BTreeSet<Text> =
            references.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect();
        let waits_for = joins_on.iter().filter(|reference| !settled(reference)).cloned().collect();
        if let Some(task) = self.workflows.tasks.get_mut(&key) {
            task.joins_on = joins_on;
            task.waits_for = waits_for;
            if let Some(workflow) = self.workflows.workflows.get_mut(&task.workflow) {
                workflow.joins.insert(key);
            }
        }
    }

    /// A task that had ended goes on: joins wait for it again.
    fn wait_again(&mut self, workflow: Key, reference: &Text) {
        let Some(workflow) = self.workflows.workflows.get(&workflow) else { return };
        for join in &workflow.joins {
            let Some(join) = self.workflows.tasks.get_mut(join) else { continue };
            if join.joins_on.contains(reference) {
                join.waits_for.insert(reference.clone());
            }
        }
    }

    /// Tasks were forgotten: joins wait for them again.
    fn watch_again(&mut self, workflow: Key) {
        let joins = self.workflows.workflows.get(&workflow).map(|it| it.joins.clone());
        for join in joins.into_iter().flatten() {
            self.watch(join);
        }
    }

    /// A task that is about to change.
    fn task_mut(&mut self, key: Key, now_ms: u64) -> &mut Task {
        self.touch(image::TASK, key);
        let task = self.workflows.tasks.get_mut(&key).expect("events name known tasks");
        task.updated_ms = now_ms;
        task
    }

    fn task_changed(&mut self, now_ms: u64, changed: &TaskChanged<'_>) {
        let task = self.task_mut(changed.key, now_ms);
        let TaskChanged {
            key,
            status,
            input,
            output,
            reason,
            worker,
            started_ms,
            polls,
            callback_s,
            child,
        } = changed;
        task.input = input.map_or_else(|| task.input.clone(), Into::into);
        task.output = output.map_or_else(|| task.output.clone(), Into::into);
        task.reason = reason.map_or_else(|| task.reason.clone(), Into::into);
        task.worker = worker.map_or_else(|| task.worker.clone(), Into::into);
        task.started_ms = started_ms.unwrap_or(task.started_ms);
        task.polls = polls.unwrap_or(task.polls);
        task.callback_s = callback_s.unwrap_or(task.callback_s);
        task.child = child.unwrap_or(task.child);
        let Some(status) = *status else { return };
        let (was_at_rest, workflow) = (task.status.is_at_rest(), task.workflow);
        task.status = status;
        if status.is_at_rest() {
            task.ended_ms = now_ms;
            if task.started_ms == 0 && status != TaskStatus::Canceled {
                task.started_ms = now_ms;
            }
            self.detach_job(*key, now_ms);
            self.set_task_due(*key, 0, now_ms);
            self.queue(Todo::Task(*key));
        } else {
            if status == TaskStatus::InProgress && task.started_ms == 0 {
                task.started_ms = now_ms;
            }
            task.ended_ms = 0;
            if was_at_rest {
                self.reopen(*key, workflow);
            }
        }
    }

    /// A task that had ended goes on.
    fn reopen(&mut self, key: Key, workflow: Key) {
        let Some(task) = self.workflows.tasks.get_mut(&key) else { return };
        task.followed = false;
        let reference = task.reference.clone();
        let is_join = {
            let task = self.workflows.known_task(key);
            task.is_join(&self.workflows.plan_of(task))
        };
        if let Some(workflow) = self.workflows.workflows.get_mut(&workflow) {
            workflow.open.insert(key);
        }
        if is_join {
            self.watch(key);
        }
        self.wait_again(workflow, &reference);
        self.queue(Todo::Task(key));
    }

    fn detach_job(&mut self, task: Key, now_ms: u64) {
        if let Some((job, _)) = self.workflows.known_task(task).job {
            self.workflows.jobs.remove(&job);
            self.task_mut(task, now_ms).job = None;
        }
    }

    fn set_task_due(&mut self, key: Key, at_ms: u64, now_ms: u64) {
        let before_ms = self.workflows.known_task(key).due_ms;
        if before_ms == at_ms {
            return;
        }
        self.workflows.due.remove(&(before_ms, key));
        if at_ms > 0 {
            self.workflows.due.insert((at_ms, key));
        }
        self.task_mut(key, now_ms).due_ms = at_ms;
    }

    fn close_task(&mut self, workflow: Key, task: Key) {
        if let Some(task) = self.workflows.tasks.get_mut(&task) {
            task.waits_for.clear();
        }
        if let Some(workflow) = self.workflows.workflows.get_mut(&workflow) {
            workflow.open.remove(&task);
            workflow.joins.remove(&task);
            if workflow.open.is_empty() && !workflow.status.is_at_rest() {
                self.queue(Todo::Workflow(self.workflows.known_task(task).workflow));
            }
        }
    }

    /// Nothing more happens to a task with this reference name: joins may have waited for it.
    fn tell_joins(&mut self, workflow: Key, reference: &str) {
        let Some(workflow) = self.workflows.workflows.get(&workflow) else { return };
        for join in workflow.joins.clone() {
            let Some(task) = self.workflows.tasks.get_mut(&join) else { continue };
            let exclusive = &*task.task_type == "EXCLUSIVE_JOIN";
            if task.waits_for.remove(reference) && (exclusive || task.waits_for.is_empty()) {
                self.queue(Todo::Task(join));
            }
        }
    }

    fn task_dropped(&mut self, key: Key) {
        let Some(task) = self.workflows.tasks.get(&key) else { return };
        let (workflow, due_ms, job) = (task.workflow, task.due_ms, task.job);
        let reference = task.reference.clone();
        self.touch(image::TASK, key);
        self.workflows.tasks.remove(&key);
        self.workflows.due.remove(&(due_ms, key));
        if let Some((job, _)) = job {
            self.workflows.jobs.remove(&job);
        }
        let Some(workflow) = self.workflows.workflows.get_mut(&workflow) else { return };
        workflow.tasks.remove(&key);
        workflow.open.remove(&key);
        workflow.joins.remove(&key);
        if workflow.newest.get(&reference) == Some(&key) {
            let tasks = &self.workflows.tasks;
            let before = workflow
                .tasks
                .iter()
                .rev()
                .copied()
                .find(|key| tasks.get(key).is_some_and(|task| task.reference == reference));
            match before {
                Some(before) => workflow.newest.insert(reference, before),
                None => workflow.newest.remove(&reference),
            };
        }
    }
}

impl Task {
    fn compile_added(&mut self) {
        self.added_plan = (!self.added.is_empty()).then(|| {
            Arc::new(Plan::compile_added(serde_json::from_str(&self.added).unwrap_or_default()))
        });
    }

    /// Whether it was skipped by hand before its turn came.
    pub(crate) fn awaits_its_turn(&self) -> bool {
        self.status == TaskStatus::Skipped && self.advanced == 0
    }

    pub(crate) fn is_join(&self, plan: &Plan) -> bool {
        matches!(self.node(plan).kind, Kind::Join | Kind::ExclusiveJoin)
    }
}

impl super::state::Workflows {
    /// The task definitions that a plan's tasks have now.
    pub(crate) fn task_definitions_of(&self, plan: &Plan) -> Vec<(Text, Key)> {
        let mut names: Vec<_> = plan.nodes.iter().map(|node| node.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        let known = |name: Text| Some((name.clone(), *self.task_names.get(&name)?));
        names.into_iter().filter_map(known).collect()
    }

    pub(crate) fn bytes_of(&self, workflow: &Workflow) -> usize {
        let tasks = workflow.tasks.iter().filter_map(|key| self.task(*key));
        workflow.bytes() + tasks.map(Task::bytes).sum::<usize>()
    }
}
