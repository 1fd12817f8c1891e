//! A task of a workflow.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_record::workflow::TaskStatus;

use super::{key, named, time};
use crate::error::Result;
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct Task {
    pub(crate) workflow: u64,
    pub(crate) reference: Box<str>,
    pub(crate) task_type: Box<str>,
    pub(crate) name: Box<str>,
    /// As it is shown: at work while somebody has its job.
    pub(crate) status: TaskStatus,
    /// As its own events say, to go back to when its job is put back.
    pub(crate) own_status: TaskStatus,
    /// Whether another record took its place.
    pub(crate) retried: bool,
    /// Whether what follows its end has been done.
    pub(crate) followed: bool,
    pub(crate) seq: u32,
    pub(crate) retry_count: u32,
    pub(crate) retry_of: u64,
    pub(crate) iteration: u32,
    pub(crate) domain: Option<Box<str>>,
    pub(crate) scheduled_ms: u64,
    pub(crate) start_ms: Option<u64>,
    pub(crate) update_ms: u64,
    pub(crate) end_ms: Option<u64>,
    pub(crate) delay_s: u32,
    pub(crate) callback_s: u32,
    pub(crate) polls: u32,
    pub(crate) worker: Option<Box<str>>,
    pub(crate) child: u64,
    /// The job that does its work, or none.
    pub(crate) job: u64,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) input: Box<str>,
    pub(crate) output: Box<str>,
}

/// What [`Task::read`] reads.
const COLUMNS: &str = "workflow, reference, type, name, status, own_status, retried, followed, \
                       seq, retry_count, retry_of, iteration, domain, scheduled_ms, start_ms, \
                       update_ms, end_ms, delay_s, callback_s, polls, worker, child, job, reason, \
                       input, output";

impl Task {
    fn read(row: &Row<'_>) -> rusqlite::Result<Task> {
        Ok(Task {
            workflow: key(row, 0)?,
            reference: row.get(1)?,
            task_type: row.get(2)?,
            name: row.get(3)?,
            status: named(row, 4, TaskStatus::named)?,
            own_status: named(row, 5, TaskStatus::named)?,
            retried: row.get(6)?,
            followed: row.get(7)?,
            seq: row.get(8)?,
            retry_count: row.get(9)?,
            retry_of: key(row, 10)?,
            iteration: row.get(11)?,
            domain: row.get(12)?,
            scheduled_ms: key(row, 13)?,
            start_ms: time(row, 14)?,
            update_ms: key(row, 15)?,
            end_ms: time(row, 16)?,
            delay_s: row.get(17)?,
            callback_s: row.get(18)?,
            polls: row.get(19)?,
            worker: row.get(20)?,
            child: key(row, 21)?,
            job: key(row, 22)?,
            reason: row.get(23)?,
            input: row.get(24)?,
            output: row.get(25)?,
        })
    }

    /// The tasks of a workflow, in their order, with their keys.
    pub(crate) fn of_workflow(database: &Connection, workflow: u64) -> Result<Vec<(u64, Task)>> {
        let sql = format!("SELECT {COLUMNS}, key FROM tasks WHERE workflow = ?1 ORDER BY key");
        let mut statement = database.prepare_cached(&sql)?;
        let tasks =
            statement.query_map([stored(workflow)], |row| Ok((key(row, 26)?, Task::read(row)?)))?;
        Ok(tasks.collect::<rusqlite::Result<_>>()?)
    }
}

impl Stored for Task {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE key = ?1");
        let mut statement = database.prepare_cached(&sql)?;
        statement.query_row(params![stored(key)], Task::read).optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = format!(
            "INSERT OR REPLACE INTO tasks ({COLUMNS}, key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, \
             ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, \
             ?26, ?27)"
        );
        let mut statement = database.prepare_cached(&sql)?;
        statement.execute(params![
            stored(self.workflow),
            self.reference,
            self.task_type,
            self.name,
            self.status.name(),
            self.own_status.name(),
            self.retried,
            self.followed,
            self.seq,
            self.retry_count,
            stored_some(self.retry_of),
            self.iteration,
            self.domain,
            stored(self.scheduled_ms),
            self.start_ms.map(stored),
            stored(self.update_ms),
            self.end_ms.map(stored),
            self.delay_s,
            self.callback_s,
            self.polls,
            self.worker,
            stored_some(self.child),
            stored_some(self.job),
            self.reason,
            self.input,
            self.output,
            stored(key),
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE tasks SET status = ?2, own_status = ?3, retried = ?4, followed = ?5, \
                   start_ms = ?6, update_ms = ?7, end_ms = ?8, callback_s = ?9, polls = ?10, \
                   worker = ?11, child = ?12, job = ?13, reason = ?14, input = ?15, output = ?16, \
                   iteration = ?17 WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            self.status.name(),
            self.own_status.name(),
            self.retried,
            self.followed,
            self.start_ms.map(stored),
            stored(self.update_ms),
            self.end_ms.map(stored),
            self.callback_s,
            self.polls,
            self.worker,
            stored_some(self.child),
            stored_some(self.job),
            self.reason,
            self.input,
            self.output,
            self.iteration,
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.status.is_at_rest() && self.followed
    }
}
