//! A workflow.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_record::workflow::WorkflowStatus;

use super::{key, named, time};
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct Workflow {
    pub(crate) definition: u64,
    /// Empty when its definition came in a gap; then its version is 0.
    pub(crate) name: Box<str>,
    pub(crate) version: u32,
    pub(crate) status: WorkflowStatus,
    pub(crate) start_ms: u64,
    pub(crate) update_ms: u64,
    pub(crate) end_ms: Option<u64>,
    pub(crate) correlation_id: Option<Box<str>>,
    pub(crate) parent: u64,
    pub(crate) parent_task: u64,
    pub(crate) priority: u32,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) created_by: Option<Box<str>>,
    pub(crate) event: Option<Box<str>>,
    pub(crate) idempotency_key: Option<Box<str>>,
    pub(crate) rate_limit_key: Option<Box<str>>,
    pub(crate) task_to_domain: Option<Box<str>>,
    pub(crate) retried_ms: Option<u64>,
    pub(crate) rerun: bool,
    pub(crate) input: Box<str>,
    pub(crate) output: Box<str>,
    pub(crate) variables: Box<str>,
}

impl Workflow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Workflow> {
        Ok(Workflow {
            definition: key(row, 0)?,
            name: row.get(1)?,
            version: row.get(2)?,
            status: named(row, 3, WorkflowStatus::named)?,
            start_ms: key(row, 4)?,
            update_ms: key(row, 5)?,
            end_ms: time(row, 6)?,
            correlation_id: row.get(7)?,
            parent: key(row, 8)?,
            parent_task: key(row, 9)?,
            priority: row.get(10)?,
            reason: row.get(11)?,
            created_by: row.get(12)?,
            event: row.get(13)?,
            idempotency_key: row.get(14)?,
            rate_limit_key: row.get(15)?,
            task_to_domain: row.get(16)?,
            retried_ms: time(row, 17)?,
            rerun: row.get(18)?,
            input: row.get(19)?,
            output: row.get(20)?,
            variables: row.get(21)?,
        })
    }
}

impl Stored for Workflow {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT definition, name, version, status, start_ms, update_ms, end_ms, \
                   correlation_id, parent, parent_task, priority, reason, created_by, event, \
                   idempotency_key, rate_limit_key, task_to_domain, retried_ms, rerun, input, \
                   output, variables FROM workflows WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.query_row(params![stored(key)], Workflow::read).optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO workflows (key, definition, name, version, status, \
                   start_ms, update_ms, end_ms, correlation_id, parent, parent_task, priority, \
                   reason, created_by, event, idempotency_key, rate_limit_key, task_to_domain, \
                   retried_ms, rerun, input, output, variables) VALUES (?1, ?2, ?3, ?4, ?5, ?6, \
                   ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, \
                   ?23)";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.definition),
            self.name,
            self.version,
            self.status.name(),
            stored(self.start_ms),
            stored(self.update_ms),
            self.end_ms.map(stored),
            self.correlation_id,
            stored_some(self.parent),
            stored_some(self.parent_task),
            self.priority,
            self.reason,
            self.created_by,
            self.event,
            self.idempotency_key,
            self.rate_limit_key,
            self.task_to_domain,
            self.retried_ms.map(stored),
            self.rerun,
            self.input,
            self.output,
            self.variables,
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE workflows SET definition = ?2, name = ?3, version = ?4, status = ?5, \
                   start_ms = ?6, update_ms = ?7, end_ms = ?8, correlation_id = ?9, reason = ?10, \
                   retried_ms = ?11, rerun = ?12, input = ?13, output = ?14, variables = ?15 \
                   WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.definition),
            self.name,
            self.version,
            self.status.name(),
            stored(self.start_ms),
            stored(self.update_ms),
            self.end_ms.map(stored),
            self.correlation_id,
            self.reason,
            self.retried_ms.map(stored),
            self.rerun,
            self.input,
            self.output,
            self.variables,
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.end_ms.is_some()
    }
}
