//! A user task.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use crate::names::UserTaskState;
use crate::schema::{stored, stored_some};
use crate::table::Stored;

pub(crate) struct UserTask {
    pub(crate) element: u64,
    pub(crate) instance: u64,
    pub(crate) definition: u64,
    pub(crate) element_id: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) state: UserTaskState,
    pub(crate) assignee: Option<Box<str>>,
    pub(crate) candidate_groups: Box<str>,
    pub(crate) candidate_users: Box<str>,
    pub(crate) due_date: Option<Box<str>>,
    pub(crate) follow_up_date: Option<Box<str>>,
    pub(crate) priority: u32,
    pub(crate) form: u64,
    pub(crate) form_reference: Option<Box<str>>,
    pub(crate) headers: Box<str>,
    pub(crate) created_ms: u64,
    pub(crate) completed_ms: Option<u64>,
}

impl Stored for UserTask {
    fn load(database: &Connection, key: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT element, instance, definition, element_id, name, state, assignee, candidate_groups, candidate_users, due_date, follow_up_date, priority, form, form_reference, headers, created_ms, completed_ms FROM user_tasks WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        let found = statement.query_row(params![stored(key)], |row| {
            Ok(UserTask {
                element: row.get::<_, i64>(0)?.cast_unsigned(),
                instance: row.get::<_, i64>(1)?.cast_unsigned(),
                definition: row.get::<_, i64>(2)?.cast_unsigned(),
                element_id: row.get(3)?,
                name: row.get(4)?,
                state: row.get(5)?,
                assignee: row.get(6)?,
                candidate_groups: row.get(7)?,
                candidate_users: row.get(8)?,
                due_date: row.get(9)?,
                follow_up_date: row.get(10)?,
                priority: row.get(11)?,
                form: row.get::<_, Option<i64>>(12)?.unwrap_or(0).cast_unsigned(),
                form_reference: row.get(13)?,
                headers: row.get(14)?,
                created_ms: row.get::<_, i64>(15)?.cast_unsigned(),
                completed_ms: row.get::<_, Option<i64>>(16)?.map(i64::cast_unsigned),
            })
        });
        found.optional()
    }

    fn insert(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO user_tasks (key, element, instance, definition, element_id, name, state, assignee, candidate_groups, candidate_users, due_date, follow_up_date, priority, form, form_reference, headers, created_ms, completed_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.element),
            stored(self.instance),
            stored(self.definition),
            self.element_id,
            self.name,
            self.state,
            self.assignee,
            self.candidate_groups,
            self.candidate_users,
            self.due_date,
            self.follow_up_date,
            self.priority,
            stored_some(self.form),
            self.form_reference,
            self.headers,
            stored(self.created_ms),
            self.completed_ms.map(stored),
        ])?;
        Ok(())
    }

    fn update(&self, database: &Connection, key: u64) -> rusqlite::Result<()> {
        let sql = "UPDATE user_tasks SET definition = ?2, element_id = ?3, name = ?4, state = ?5, assignee = ?6, candidate_groups = ?7, candidate_users = ?8, due_date = ?9, follow_up_date = ?10, priority = ?11, completed_ms = ?12 WHERE key = ?1";
        let mut statement = database.prepare_cached(sql)?;
        statement.execute(params![
            stored(key),
            stored(self.definition),
            self.element_id,
            self.name,
            self.state,
            self.assignee,
            self.candidate_groups,
            self.candidate_users,
            self.due_date,
            self.follow_up_date,
            self.priority,
            self.completed_ms.map(stored),
        ])?;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.completed_ms.is_some()
    }
}
