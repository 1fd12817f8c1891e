//! A message subscription.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::names::{SubscriptionKind, SubscriptionState};
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct Subscription {
    pub(crate) kind: SubscriptionKind,
    pub(crate) element: u64,
    pub(crate) instance: u64,
    pub(crate) definition: u64,
    pub(crate) element_id: Arc<str>,
    pub(crate) name: Box<str>,
    pub(crate) correlation_key: Option<Box<str>>,
    pub(crate) state: SubscriptionState,
    pub(crate) updated_ms: u64,
}

impl Stored for Subscription {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT type, element, instance, definition, element_id, name, correlation_key, state, updated_ms FROM subscriptions WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        let found = statement.query_row(params![stored(key)], |row| {
            Ok(Subscription {
                kind: row.get(0)?,
                element: row.get::<_, Option<i64>>(1)?.unwrap_or(0).cast_unsigned(),
                instance: row.get::<_, Option<i64>>(2)?.unwrap_or(0).cast_unsigned(),
                definition: row.get::<_, i64>(3)?.cast_unsigned(),
                element_id: row.get(4)?,
                name: row.get(5)?,
                correlation_key: row.get(6)?,
                state: row.get(7)?,
                updated_ms: row.get::<_, i64>(8)?.cast_unsigned(),
            })
        });
        found.optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO subscriptions (key, type, element, instance, definition, element_id, name, correlation_key, state, updated_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            self.kind,
            stored_some(self.element),
            stored_some(self.instance),
            stored(self.definition),
            self.element_id,
            self.name,
            self.correlation_key,
            self.state,
            stored(self.updated_ms),
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE subscriptions SET definition = ?2, element_id = ?3, state = ?4, updated_ms = ?5 WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.definition),
            self.element_id,
            self.state,
            stored(self.updated_ms),
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        matches!(self.state, SubscriptionState::Deleted)
    }
}
