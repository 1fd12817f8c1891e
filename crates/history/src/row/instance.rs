//! A process instance.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::names::FlowState;
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct Instance {
    pub(crate) definition: u64,
    pub(crate) tenant: Arc<str>,
    pub(crate) parent_element: u64,
    pub(crate) parent: u64,
    pub(crate) root: u64,
    pub(crate) state: FlowState,
    pub(crate) start_ms: u64,
    pub(crate) end_ms: Option<u64>,
    pub(crate) incidents: u32,
    pub(crate) business_id: Option<Box<str>>,
    pub(crate) tags: Box<str>,
}

impl Stored for Instance {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT definition, tenant, parent_element, parent, root, state, start_ms, end_ms, incidents, business_id, tags FROM process_instances WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        let found = statement.query_row(params![stored(key)], |row| {
            Ok(Instance {
                definition: row.get::<_, i64>(0)?.cast_unsigned(),
                tenant: row.get(1)?,
                parent_element: row.get::<_, Option<i64>>(2)?.unwrap_or(0).cast_unsigned(),
                parent: row.get::<_, Option<i64>>(3)?.unwrap_or(0).cast_unsigned(),
                root: row.get::<_, i64>(4)?.cast_unsigned(),
                state: row.get(5)?,
                start_ms: row.get::<_, i64>(6)?.cast_unsigned(),
                end_ms: row.get::<_, Option<i64>>(7)?.map(i64::cast_unsigned),
                incidents: row.get(8)?,
                business_id: row.get(9)?,
                tags: row.get(10)?,
            })
        });
        found.optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO process_instances (key, definition, tenant, parent_element, parent, root, state, start_ms, end_ms, incidents, business_id, tags) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.definition),
            self.tenant,
            stored_some(self.parent_element),
            stored_some(self.parent),
            stored(self.root),
            self.state,
            stored(self.start_ms),
            self.end_ms.map(stored),
            self.incidents,
            self.business_id,
            self.tags,
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE process_instances SET definition = ?2, state = ?3, end_ms = ?4, incidents = ?5 WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.definition),
            self.state,
            self.end_ms.map(stored),
            self.incidents,
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.end_ms.is_some()
    }
}
