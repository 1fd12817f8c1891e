//! Workflows in the way of Conductor, and their tasks.
//!
//! The core forgets a workflow that ended when there are too many of them; its rows stay. They go
//! when somebody asked for it, which the event says, and after their retention.

use rusqlite::{OptionalExtension, params};
use windlass_record::event::JobCreated;
use windlass_record::flow::Key;
use windlass_record::workflow::{WorkflowEvent, WorkflowRevived, WorkflowStarted, WorkflowStatus};

use super::{Projection, some_text};
use crate::retention;
use crate::row::Workflow;
use crate::schema::{stored, stored_some};

impl Projection {
    pub(super) fn workflow(
        &mut self,
        event: &WorkflowEvent<'_>,
        made: &mut Vec<JobCreated<'_>>,
    ) -> rusqlite::Result<()> {
        match event {
            WorkflowEvent::WorkflowDefined { .. } => self.workflow_defined(event),
            WorkflowEvent::WorkflowForgotten { key } => self.workflow_unlisted(key.raw()),
            WorkflowEvent::WorkflowStarted(started) => self.workflow_started(started),
            WorkflowEvent::WorkflowRevived(revived) => self.workflow_revived(revived),
            WorkflowEvent::WorkflowPaused { key, paused } => self.workflow_paused(*key, *paused),
            WorkflowEvent::WorkflowEnded { key, status, reason, output, .. } => {
                self.workflow_ended(*key, *status, reason, output)
            }
            WorkflowEvent::WorkflowClosed { key, output } => self.workflow_closed(*key, *output),
            WorkflowEvent::WorkflowRemoved { key, forget: true } => self.workflow_removed(*key),
            WorkflowEvent::WorkflowVariablesSet { key, variables } => {
                self.with_workflow(*key, |row| row.variables = (*variables).into())
            }
            WorkflowEvent::TaskScheduled(scheduled) => self.task_scheduled(scheduled),
            WorkflowEvent::TaskChanged(changed) => self.task_changed(changed),
            WorkflowEvent::TaskJobAttached { task, job, evaluates } => {
                // It is no plain job.
                made.retain(|created| created.key != *job);
                if *evaluates { Ok(()) } else { self.task_job_attached(*task, *job) }
            }
            WorkflowEvent::TaskJobDetached { task } => self.task_job_detached(*task),
            WorkflowEvent::TaskAdvanced { task, to } => self.task_advanced(*task, *to),
            WorkflowEvent::TaskFollowed { task, retried } => self.task_followed(*task, *retried),
            WorkflowEvent::TasksDropped { tasks } => self.tasks_dropped(tasks),
            WorkflowEvent::WorkflowRemoved { forget: false, .. }
            | WorkflowEvent::TaskDefined { .. }
            | WorkflowEvent::TaskForgotten { .. }
            | WorkflowEvent::HandlerDefined { .. }
            | WorkflowEvent::HandlerForgotten { .. }
            | WorkflowEvent::WorkflowQueued { .. }
            | WorkflowEvent::WorkflowDue { .. }
            | WorkflowEvent::TasksAdded { .. }
            | WorkflowEvent::TaskDue { .. }
            | WorkflowEvent::TaskQueued { .. }
            | WorkflowEvent::TaskActed { .. }
            | WorkflowEvent::TaskLogged { .. } => Ok(()),
        }
    }

    // ── definitions ─────────────────────────────────────────────────────────────────────────

    fn workflow_defined(&mut self, event: &WorkflowEvent<'_>) -> rusqlite::Result<()> {
        let WorkflowEvent::WorkflowDefined { key, name, version, listed, snapshot_of, json } =
            event
        else {
            return Ok(());
        };
        self.begin()?;
        if *listed {
            let sql = "SELECT key FROM workflow_definitions \
                       WHERE name = ?1 AND version = ?2 AND listed";
            let mut statement = self.database.prepare_cached(sql)?;
            let before: Option<i64> =
                statement.query_row(params![name, version], |row| row.get(0)).optional()?;
            drop(statement);
            if let Some(before) = before {
                self.workflow_unlisted(before.cast_unsigned())?;
            }
        }
        // Workflows run by snapshots, so of a listed one nobody asks the history for more.
        let json = (!*listed).then_some(*json);
        let sql = "INSERT OR REPLACE INTO workflow_definitions \
                   (key, name, version, listed, snapshot_of, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (key, snapshot_of) = (key.raw(), snapshot_of.raw());
        let columns = params![stored(key), name, version, listed, stored_some(snapshot_of), json];
        self.database.prepare_cached(sql)?.execute(columns)?;
        if snapshot_of == 0 { Ok(()) } else { self.drop_snapshots(snapshot_of) }
    }

    fn workflow_unlisted(&mut self, key: u64) -> rusqlite::Result<()> {
        self.begin()?;
        let sql = "DELETE FROM workflow_definitions WHERE key = ?1 AND listed";
        self.database.prepare_cached(sql)?.execute([stored(key)])?;
        self.drop_snapshots(key)
    }

    /// Drops the snapshots of a listed definition that nothing needs any more.
    fn drop_snapshots(&mut self, listed: u64) -> rusqlite::Result<()> {
        self.workflows.write(&self.database)?;
        retention::drop_snapshots(&self.database, listed)
    }

    /// The name and version of a definition; empty and 0 when it came in a gap.
    fn workflow_definition(&self, key: u64) -> rusqlite::Result<(Box<str>, u32)> {
        let sql = "SELECT name, version FROM workflow_definitions WHERE key = ?1";
        let mut statement = self.database.prepare_cached(sql)?;
        let found = statement.query_row([stored(key)], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(found.optional()?.unwrap_or_else(|| ("".into(), 0)))
    }

    // ── workflows ───────────────────────────────────────────────────────────────────────────

    fn workflow_started(&mut self, started: &WorkflowStarted<'_>) -> rusqlite::Result<()> {
        let (name, version) = self.workflow_definition(started.definition.raw())?;
        let parent = self.tasks.get(&self.database, started.parent_task.raw())?;
        let row = Workflow {
            definition: started.definition.raw(),
            name,
            version,
            status: WorkflowStatus::Running,
            start_ms: self.now_ms,
            update_ms: self.now_ms,
            end_ms: None,
            correlation_id: some_text(started.correlation_id),
            parent: parent.map_or(0, |task| task.workflow),
            parent_task: started.parent_task.raw(),
            priority: started.priority,
            reason: None,
            created_by: some_text(started.created_by),
            event: some_text(started.event),
            idempotency_key: some_text(started.idempotency_key),
            rate_limit_key: some_text(started.rate_limit_key),
            task_to_domain: some_text(started.task_to_domain),
            retried_ms: None,
            rerun: false,
            input: started.input.into(),
            output: "{}".into(),
            variables: started.variables.into(),
        };
        self.workflows.add(started.key.raw(), row);
        Ok(())
    }

    /// Changes the row of a workflow, if it has one: one that began in a gap has none.
    fn with_workflow(
        &mut self,
        key: Key,
        change: impl FnOnce(&mut Workflow),
    ) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        if let Some(row) = self.workflows.change(&self.database, key.raw())? {
            row.update_ms = now_ms;
            change(row);
        }
        Ok(())
    }

    fn workflow_paused(&mut self, key: Key, paused: bool) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        self.with_workflow(key, |row| {
            if paused {
                row.status = WorkflowStatus::Paused;
            } else {
                row.status = WorkflowStatus::Running;
                row.retried_ms = Some(now_ms);
            }
        })
    }

    fn workflow_ended(
        &mut self,
        key: Key,
        status: WorkflowStatus,
        reason: &str,
        output: &str,
    ) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        let mut was_live = false;
        self.with_workflow(key, |row| {
            was_live = row.end_ms.is_none();
            row.status = status;
            row.reason = some_text(reason);
            row.output = output.into();
            row.end_ms = Some(now_ms);
        })?;
        self.finished += u64::from(was_live);
        Ok(())
    }

    fn workflow_closed(&mut self, key: Key, output: Option<&str>) -> rusqlite::Result<()> {
        self.task_seqs.remove(&key.raw());
        self.with_workflow(key, |row| {
            if let Some(output) = output {
                row.output = output.into();
            }
        })
    }

    fn workflow_revived(&mut self, revived: &WorkflowRevived<'_>) -> rusqlite::Result<()> {
        let definition = self.workflow_definition(revived.definition.raw())?;
        let now_ms = self.now_ms;
        let mut was_ended = false;
        self.with_workflow(revived.key, |row| {
            was_ended = row.end_ms.is_some();
            row.definition = revived.definition.raw();
            // One from a gap says nothing; then the names of before are better.
            if !definition.0.is_empty() {
                (row.name, row.version) = definition;
            }
            row.status = WorkflowStatus::Running;
            row.reason = None;
            row.output = "{}".into();
            row.end_ms = None;
            row.rerun = revived.rerun;
            if revived.anew {
                row.start_ms = now_ms;
                row.retried_ms = None;
            } else {
                row.retried_ms = Some(now_ms);
            }
            if let Some(input) = revived.input {
                row.input = input.into();
            }
            if let Some(variables) = revived.variables {
                row.variables = variables.into();
            }
            if let Some(correlation_id) = revived.correlation_id {
                row.correlation_id = some_text(correlation_id);
            }
        })?;
        self.finished = self.finished.saturating_sub(u64::from(was_ended));
        Ok(())
    }

    /// Somebody wanted it gone: nothing of it stays.
    fn workflow_removed(&mut self, key: Key) -> rusqlite::Result<()> {
        let key = key.raw();
        let Some(row) = self.workflows.get(&self.database, key)? else { return Ok(()) };
        let (was_ended, definition) = (row.end_ms.is_some(), row.definition);
        // It touches rows that memory finds by their own keys only: done in the database.
        self.begin()?;
        self.workflows.write(&self.database)?;
        self.tasks.write(&self.database)?;
        self.workflows.forget();
        self.tasks.forget();
        self.task_seqs.remove(&key);
        self.task_jobs_gone(key)?;
        retention::delete_workflow(&self.database, stored(key))?;
        retention::drop_definition(&self.database, stored(definition))?;
        self.finished = self.finished.saturating_sub(u64::from(was_ended));
        Ok(())
    }
}
