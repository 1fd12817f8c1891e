//! A job.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::names::{JobKind, JobState, ListenerEvent};
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct Job {
    pub(crate) tenant: Arc<str>,
    pub(crate) queue: Arc<str>,
    pub(crate) job_type: Box<str>,
    pub(crate) kind: JobKind,
    pub(crate) listener: Option<ListenerEvent>,
    pub(crate) state: JobState,
    pub(crate) worker: Option<Box<str>>,
    pub(crate) retries: i32,
    pub(crate) priority: i32,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) error_code: Option<Box<str>>,
    pub(crate) error_message: Option<Box<str>>,
    pub(crate) headers: Box<str>,
    pub(crate) failed: bool,
    pub(crate) element: u64,
    pub(crate) element_id: Option<Arc<str>>,
    pub(crate) instance: u64,
    pub(crate) definition: u64,
    pub(crate) incident: u64,
    pub(crate) created_ms: u64,
    pub(crate) updated_ms: u64,
    pub(crate) end_ms: Option<u64>,
}

impl Stored for Job {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT tenant, queue, type, kind, listener, state, worker, retries, priority, deadline_ms, error_code, error_message, headers, failed, element, element_id, instance, definition, incident, created_ms, updated_ms, end_ms FROM jobs WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        let found = statement.query_row(params![stored(key)], |row| {
            Ok(Job {
                tenant: row.get(0)?,
                queue: row.get(1)?,
                job_type: row.get(2)?,
                kind: row.get(3)?,
                listener: row.get(4)?,
                state: row.get(5)?,
                worker: row.get(6)?,
                retries: row.get(7)?,
                priority: row.get(8)?,
                deadline_ms: row.get::<_, Option<i64>>(9)?.map(i64::cast_unsigned),
                error_code: row.get(10)?,
                error_message: row.get(11)?,
                headers: row.get(12)?,
                failed: row.get(13)?,
                element: row.get::<_, Option<i64>>(14)?.unwrap_or(0).cast_unsigned(),
                element_id: row.get(15)?,
                instance: row.get::<_, Option<i64>>(16)?.unwrap_or(0).cast_unsigned(),
                definition: row.get::<_, Option<i64>>(17)?.unwrap_or(0).cast_unsigned(),
                incident: row.get::<_, Option<i64>>(18)?.unwrap_or(0).cast_unsigned(),
                created_ms: row.get::<_, i64>(19)?.cast_unsigned(),
                updated_ms: row.get::<_, i64>(20)?.cast_unsigned(),
                end_ms: row.get::<_, Option<i64>>(21)?.map(i64::cast_unsigned),
            })
        });
        found.optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO jobs (key, tenant, queue, type, kind, listener, state, worker, retries, priority, deadline_ms, error_code, error_message, headers, failed, element, element_id, instance, definition, incident, created_ms, updated_ms, end_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            self.tenant,
            self.queue,
            self.job_type,
            self.kind,
            self.listener,
            self.state,
            self.worker,
            self.retries,
            self.priority,
            self.deadline_ms.map(stored),
            self.error_code,
            self.error_message,
            self.headers,
            self.failed,
            stored_some(self.element),
            self.element_id,
            stored_some(self.instance),
            stored_some(self.definition),
            stored_some(self.incident),
            stored(self.created_ms),
            stored(self.updated_ms),
            self.end_ms.map(stored),
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE jobs SET state = ?2, worker = ?3, retries = ?4, priority = ?5, deadline_ms = ?6, error_code = ?7, error_message = ?8, failed = ?9, element_id = ?10, definition = ?11, incident = ?12, updated_ms = ?13, end_ms = ?14 WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            self.state,
            self.worker,
            self.retries,
            self.priority,
            self.deadline_ms.map(stored),
            self.error_code,
            self.error_message,
            self.failed,
            self.element_id,
            stored_some(self.definition),
            stored_some(self.incident),
            stored(self.updated_ms),
            self.end_ms.map(stored),
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.end_ms.is_some()
    }
}
