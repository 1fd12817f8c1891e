//! An incident.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::names::IncidentState;
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct Incident {
    pub(crate) tenant: Arc<str>,
    pub(crate) kind: Box<str>,
    pub(crate) message: Box<str>,
    pub(crate) state: IncidentState,
    pub(crate) created_ms: u64,
    pub(crate) resolved_ms: Option<u64>,
    pub(crate) element: u64,
    pub(crate) element_id: Option<Arc<str>>,
    pub(crate) instance: u64,
    pub(crate) definition: u64,
    pub(crate) job: u64,
}

impl Stored for Incident {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT tenant, type, message, state, created_ms, resolved_ms, element, element_id, instance, definition, job FROM incidents WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        let found = statement.query_row(params![stored(key)], |row| {
            Ok(Incident {
                tenant: row.get(0)?,
                kind: row.get(1)?,
                message: row.get(2)?,
                state: row.get(3)?,
                created_ms: row.get::<_, i64>(4)?.cast_unsigned(),
                resolved_ms: row.get::<_, Option<i64>>(5)?.map(i64::cast_unsigned),
                element: row.get::<_, Option<i64>>(6)?.unwrap_or(0).cast_unsigned(),
                element_id: row.get(7)?,
                instance: row.get::<_, Option<i64>>(8)?.unwrap_or(0).cast_unsigned(),
                definition: row.get::<_, Option<i64>>(9)?.unwrap_or(0).cast_unsigned(),
                job: row.get::<_, Option<i64>>(10)?.unwrap_or(0).cast_unsigned(),
            })
        });
        found.optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO incidents (key, tenant, type, message, state, created_ms, resolved_ms, element, element_id, instance, definition, job) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            self.tenant,
            self.kind,
            self.message,
            self.state,
            stored(self.created_ms),
            self.resolved_ms.map(stored),
            stored_some(self.element),
            self.element_id,
            stored_some(self.instance),
            stored_some(self.definition),
            stored_some(self.job),
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE incidents SET state = ?2, resolved_ms = ?3, element_id = ?4, definition = ?5 WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            self.state,
            self.resolved_ms.map(stored),
            self.element_id,
            stored_some(self.definition),
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.resolved_ms.is_some()
    }
}
