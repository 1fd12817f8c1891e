//! An element instance.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::names::FlowState;
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct Element {
    pub(crate) scope: u64,
    pub(crate) instance: u64,
    pub(crate) definition: u64,
    pub(crate) node: u32,
    pub(crate) element_id: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) kind: Arc<str>,
    pub(crate) state: FlowState,
    pub(crate) start_ms: u64,
    pub(crate) end_ms: Option<u64>,
    pub(crate) incident: u64,
}

impl Stored for Element {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT scope, instance, definition, node, element_id, name, type, state, start_ms, end_ms, incident FROM element_instances WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        let found = statement.query_row(params![stored(key)], |row| {
            Ok(Element {
                scope: row.get::<_, i64>(0)?.cast_unsigned(),
                instance: row.get::<_, i64>(1)?.cast_unsigned(),
                definition: row.get::<_, i64>(2)?.cast_unsigned(),
                node: row.get(3)?,
                element_id: row.get(4)?,
                name: row.get(5)?,
                kind: row.get(6)?,
                state: row.get(7)?,
                start_ms: row.get::<_, i64>(8)?.cast_unsigned(),
                end_ms: row.get::<_, Option<i64>>(9)?.map(i64::cast_unsigned),
                incident: row.get::<_, Option<i64>>(10)?.unwrap_or(0).cast_unsigned(),
            })
        });
        found.optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO element_instances (key, scope, instance, definition, node, element_id, name, type, state, start_ms, end_ms, incident) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.scope),
            stored(self.instance),
            stored(self.definition),
            self.node,
            self.element_id,
            self.name,
            self.kind,
            self.state,
            stored(self.start_ms),
            self.end_ms.map(stored),
            stored_some(self.incident),
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE element_instances SET definition = ?2, node = ?3, element_id = ?4, name = ?5, type = ?6, state = ?7, end_ms = ?8, incident = ?9 WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.definition),
            self.node,
            self.element_id,
            self.name,
            self.kind,
            self.state,
            self.end_ms.map(stored),
            stored_some(self.incident),
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.end_ms.is_some()
    }
}
