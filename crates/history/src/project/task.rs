//! Tasks of workflows. One that a worker has is at work: only its job says so.

use rusqlite::{OptionalExtension, params};
use windlass_record::event::JobActivated;
use windlass_record::flow::Key;
use windlass_record::workflow::{TaskChanged, TaskScheduled, TaskStatus};

use super::{Projection, some_text};
use crate::row::Task;
use crate::schema::stored;

impl Projection {
    pub(super) fn task_scheduled(&mut self, scheduled: &TaskScheduled<'_>) -> rusqlite::Result<()> {
        let workflow = scheduled.workflow.raw();
        // Of a workflow that began in a gap, nothing is known.
        if self.workflows.get(&self.database, workflow)?.is_none() {
            return Ok(());
        }
        let row = Task {
            workflow,
            reference: scheduled.reference.into(),
            task_type: scheduled.task_type.into(),
            name: scheduled.name.into(),
            status: scheduled.status,
            own_status: scheduled.status,
            retried: false,
            followed: false,
            seq: self.next_seq(workflow)?,
            retry_count: scheduled.retry_count,
            retry_of: scheduled.retry_of.raw(),
            iteration: scheduled.iteration,
            domain: some_text(scheduled.domain),
            scheduled_ms: self.now_ms,
            start_ms: None,
            update_ms: self.now_ms,
            end_ms: None,
            delay_s: scheduled.delay_s,
            callback_s: scheduled.delay_s,
            polls: 0,
            worker: None,
            child: 0,
            job: 0,
            reason: some_text(scheduled.reason),
            input: scheduled.input.into(),
            output: "{}".into(),
        };
        self.tasks.add(scheduled.key.raw(), row);
        Ok(())
    }

    /// The number of a workflow's next task: one more than that of its newest.
    fn next_seq(&mut self, workflow: u64) -> rusqlite::Result<u32> {
        let before = match self.task_seqs.get(&workflow) {
            Some(before) => *before,
            None => {
                self.begin()?;
                self.tasks.write(&self.database)?;
                let sql = "SELECT seq FROM tasks WHERE workflow = ?1 ORDER BY key DESC LIMIT 1";
                let mut statement = self.database.prepare_cached(sql)?;
                let newest = statement.query_row(params![stored(workflow)], |row| row.get(0));
                newest.optional()?.unwrap_or(0)
            }
        };
        let seq = before.saturating_add(1);
        self.task_seqs.insert(workflow, seq);
        Ok(seq)
    }

    /// Changes the row of a task, if it has one.
    fn with_task(&mut self, key: u64, change: impl FnOnce(&mut Task)) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        if let Some(row) = self.tasks.change(&self.database, key)? {
            row.update_ms = now_ms;
            change(row);
        }
        Ok(())
    }

    pub(super) fn task_changed(&mut self, changed: &TaskChanged<'_>) -> rusqlite::Result<()> {
        let now_ms = self.now_ms;
        let mut job = 0;
        self.with_task(changed.key.raw(), |row| {
            change(row, changed);
            let Some(status) = changed.status else { return };
            row.set_status(status, now_ms);
            if status.is_at_rest() {
                job = std::mem::take(&mut row.job);
            }
        })?;
        self.task_jobs.remove(&job);
        Ok(())
    }

    /// A loop stands in the round that it is in.
    pub(super) fn task_advanced(&mut self, task: Key, to: u32) -> rusqlite::Result<()> {
        self.with_task(task.raw(), |row| {
            if &*row.task_type == "DO_WHILE" {
                row.iteration = to;
            }
        })
    }

    pub(super) fn task_followed(&mut self, task: Key, retried: bool) -> rusqlite::Result<()> {
        self.with_task(task.raw(), |row| {
            row.followed = true;
            row.retried = retried;
        })
    }

    pub(super) fn tasks_dropped(&mut self, tasks: &[Key]) -> rusqlite::Result<()> {
        self.begin()?;
        for key in tasks {
            let key = key.raw();
            let Some(row) = self.tasks.get(&self.database, key)? else { continue };
            let (workflow, job) = (row.workflow, row.job);
            self.task_seqs.remove(&workflow);
            self.task_jobs.remove(&job);
            if !self.tasks.drop_new(key) {
                let sql = "DELETE FROM tasks WHERE key = ?1";
                self.database.prepare_cached(sql)?.execute([stored(key)])?;
            }
        }
        Ok(())
    }

    // ── jobs ────────────────────────────────────────────────────────────────────────────────

    pub(super) fn task_job_attached(&mut self, task: Key, job: Key) -> rusqlite::Result<()> {
        let (task, job) = (task.raw(), job.raw());
        if self.tasks.get(&self.database, task)?.is_some() {
            self.task_jobs.insert(job, task);
        }
        self.with_task(task, |row| row.job = job)
    }

    pub(super) fn task_job_detached(&mut self, task: Key) -> rusqlite::Result<()> {
        let mut job = 0;
        self.with_task(task.raw(), |row| {
            job = std::mem::take(&mut row.job);
            row.status = row.own_status;
        })?;
        self.task_jobs.remove(&job);
        Ok(())
    }

    /// The jobs of a workflow's tasks, all of which are written, are of no interest any more.
    pub(super) fn task_jobs_gone(&mut self, workflow: u64) -> rusqlite::Result<()> {
        let sql = "SELECT job FROM tasks WHERE workflow = ?1 AND job IS NOT NULL";
        let mut statement = self.database.prepare_cached(sql)?;
        let jobs = statement.query_map([stored(workflow)], |row| row.get::<_, i64>(0))?;
        for job in jobs {
            self.task_jobs.remove(&job?.cast_unsigned());
        }
        Ok(())
    }

    /// A job was handed out: the task that it is of, if any, is at work.
    pub(super) fn task_activated(&mut self, activated: &JobActivated<'_>) -> rusqlite::Result<()> {
        let Some(task) = self.task_jobs.get(&activated.key.raw()).copied() else { return Ok(()) };
        let now_ms = self.now_ms;
        self.with_task(task, |row| {
            row.status = TaskStatus::InProgress;
            row.polls = activated.activation;
            row.worker = some_text(activated.worker);
            row.start_ms = row.start_ms.or(Some(now_ms));
        })
    }

    /// A job waits again. One that never reached its worker was not begun.
    pub(super) fn task_put_back(&mut self, job: u64, unseen: bool) -> rusqlite::Result<()> {
        let Some(task) = self.task_jobs.get(&job).copied() else { return Ok(()) };
        self.with_task(task, |row| {
            row.status = row.own_status;
            if unseen && row.polls <= 1 {
                row.start_ms = None;
            }
        })
    }
}

/// Takes over what changed, but for the status.
fn change(row: &mut Task, changed: &TaskChanged<'_>) {
    let TaskChanged {
        key: _,
        status: _,
        input,
        output,
        reason,
        worker,
        started_ms,
        polls,
        callback_s,
        child,
    } = changed;
    if let Some(input) = input {
        row.input = (*input).into();
    }
    if let Some(output) = output {
        row.output = (*output).into();
    }
    if let Some(reason) = reason {
        row.reason = some_text(reason);
    }
    if let Some(worker) = worker {
        row.worker = some_text(worker);
    }
    if let Some(started_ms) = started_ms {
        row.start_ms = (*started_ms != 0).then_some(*started_ms);
    }
    row.polls = polls.unwrap_or(row.polls);
    row.callback_s = callback_s.unwrap_or(row.callback_s);
    row.child = child.map_or(row.child, Key::raw);
}

impl Task {
    fn set_status(&mut self, status: TaskStatus, now_ms: u64) {
        self.status = status;
        self.own_status = status;
        if status.is_at_rest() {
            self.end_ms = Some(now_ms);
            if status != TaskStatus::Canceled {
                self.start_ms = self.start_ms.or(Some(now_ms));
            }
            return;
        }
        if status == TaskStatus::InProgress {
            self.start_ms = self.start_ms.or(Some(now_ms));
        }
        self.end_ms = None;
        self.followed = false;
    }
}
