//! The tables, and how the database is opened.
//!
//! Keys are the entities' own, stored as SQLite's signed integers ([`stored`]); times are
//! milliseconds since the epoch; what is absent is NULL and never an empty text, so that filters
//! can ask whether it exists.
//!
//! The version rule: the format is not promised. A database of another format is put aside and
//! begun anew, for it is only what the log said, told in another way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags};
use windlass_record::flow::Key;
use windlass_record::workflow::id_of;

use crate::error::{HistoryError, Result};

/// Changes with the tables.
pub(crate) const FORMAT: i64 = 2;

/// How long a statement waits for another connection: only a checkpoint of the WAL can make it.
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Prepared statements that a connection keeps.
const STATEMENTS_KEPT: usize = 128;

const TABLES: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE queues (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE gaps (first_lsn INTEGER PRIMARY KEY, last_lsn INTEGER NOT NULL,
    reason TEXT NOT NULL, noted_ms INTEGER NOT NULL);
CREATE TABLE resources (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL,
    bytes BLOB NOT NULL);
CREATE TABLE definitions (key INTEGER PRIMARY KEY, deployment INTEGER NOT NULL,
    resource INTEGER NOT NULL, tenant TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
    version INTEGER NOT NULL, version_tag TEXT, name TEXT, requirements INTEGER,
    deployed_ms INTEGER NOT NULL, deleted_ms INTEGER);
CREATE INDEX definitions_by_id ON definitions (kind, id, version);
CREATE TABLE nodes (definition INTEGER NOT NULL, node INTEGER NOT NULL, id TEXT NOT NULL,
    name TEXT, type TEXT NOT NULL, PRIMARY KEY (definition, node)) WITHOUT ROWID;
CREATE TABLE process_instances (key INTEGER PRIMARY KEY, definition INTEGER NOT NULL,
    tenant TEXT NOT NULL, parent_element INTEGER, parent INTEGER, root INTEGER NOT NULL,
    state TEXT NOT NULL, start_ms INTEGER NOT NULL, end_ms INTEGER, incidents INTEGER NOT NULL,
    business_id TEXT, tags TEXT NOT NULL);
CREATE INDEX instances_by_definition ON process_instances (definition);
CREATE INDEX instances_by_parent ON process_instances (parent) WHERE parent IS NOT NULL;
CREATE INDEX instances_by_end ON process_instances (end_ms) WHERE end_ms IS NOT NULL;
CREATE INDEX instances_by_business_id ON process_instances (business_id)
    WHERE business_id IS NOT NULL;
CREATE INDEX instances_with_incidents ON process_instances (incidents) WHERE incidents > 0;
CREATE TABLE element_instances (key INTEGER PRIMARY KEY, scope INTEGER NOT NULL,
    instance INTEGER NOT NULL, definition INTEGER NOT NULL, node INTEGER NOT NULL,
    element_id TEXT NOT NULL, name TEXT, type TEXT NOT NULL, state TEXT NOT NULL,
    start_ms INTEGER NOT NULL, end_ms INTEGER, incident INTEGER);
CREATE INDEX elements_by_instance ON element_instances (instance);
CREATE TABLE variables (key INTEGER PRIMARY KEY, instance INTEGER NOT NULL,
    scope INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL);
CREATE UNIQUE INDEX variables_by_name ON variables (instance, scope, name);
CREATE TABLE jobs (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, queue TEXT NOT NULL,
    type TEXT NOT NULL, kind TEXT NOT NULL, listener TEXT, state TEXT NOT NULL, worker TEXT,
    retries INTEGER NOT NULL, priority INTEGER NOT NULL, deadline_ms INTEGER, error_code TEXT,
    error_message TEXT, headers TEXT NOT NULL, failed INTEGER NOT NULL, element INTEGER,
    element_id TEXT, instance INTEGER, definition INTEGER, incident INTEGER,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, end_ms INTEGER);
CREATE INDEX jobs_by_instance ON jobs (instance) WHERE instance IS NOT NULL;
CREATE INDEX plain_jobs_by_end ON jobs (end_ms) WHERE instance IS NULL AND end_ms IS NOT NULL;
CREATE TABLE incidents (key INTEGER PRIMARY KEY, tenant TEXT NOT NULL, type TEXT NOT NULL,
    message TEXT NOT NULL, state TEXT NOT NULL, created_ms INTEGER NOT NULL,
    resolved_ms INTEGER, element INTEGER, element_id TEXT, instance INTEGER, definition INTEGER,
    job INTEGER);
CREATE INDEX incidents_by_instance ON incidents (instance) WHERE instance IS NOT NULL;
CREATE INDEX incidents_active ON incidents (state) WHERE state = 'ACTIVE';
CREATE TABLE user_tasks (key INTEGER PRIMARY KEY, element INTEGER NOT NULL,
    instance INTEGER NOT NULL, definition INTEGER NOT NULL, element_id TEXT NOT NULL, name TEXT,
    state TEXT NOT NULL, assignee TEXT, candidate_groups TEXT NOT NULL,
    candidate_users TEXT NOT NULL, due_date TEXT, follow_up_date TEXT,
    priority INTEGER NOT NULL, form INTEGER, form_reference TEXT, headers TEXT NOT NULL,
    created_ms INTEGER NOT NULL, completed_ms INTEGER);
CREATE INDEX user_tasks_by_instance ON user_tasks (instance);
CREATE TABLE subscriptions (key INTEGER PRIMARY KEY, type TEXT NOT NULL, element INTEGER,
    instance INTEGER, definition INTEGER NOT NULL, element_id TEXT NOT NULL, name TEXT NOT NULL,
    correlation_key TEXT, state TEXT NOT NULL, updated_ms INTEGER NOT NULL);
CREATE INDEX subscriptions_by_instance ON subscriptions (instance) WHERE instance IS NOT NULL;
CREATE INDEX subscriptions_by_element ON subscriptions (element) WHERE element IS NOT NULL;
CREATE TABLE workflow_definitions (key INTEGER PRIMARY KEY, name TEXT NOT NULL,
    version INTEGER NOT NULL, listed INTEGER NOT NULL, snapshot_of INTEGER, json TEXT);
CREATE INDEX listed_workflow_definitions ON workflow_definitions (name, version) WHERE listed;
CREATE INDEX workflow_definitions_by_listed ON workflow_definitions (snapshot_of)
    WHERE snapshot_of IS NOT NULL;
CREATE TABLE workflows (key INTEGER PRIMARY KEY, definition INTEGER NOT NULL, name TEXT NOT NULL,
    version INTEGER NOT NULL, status TEXT NOT NULL, start_ms INTEGER NOT NULL,
    update_ms INTEGER NOT NULL, end_ms INTEGER, correlation_id TEXT, parent INTEGER,
    parent_task INTEGER, priority INTEGER NOT NULL, reason TEXT, created_by TEXT, event TEXT,
    idempotency_key TEXT, rate_limit_key TEXT, task_to_domain TEXT, retried_ms INTEGER,
    rerun INTEGER NOT NULL, input TEXT NOT NULL, output TEXT NOT NULL, variables TEXT NOT NULL);
CREATE INDEX workflows_by_definition ON workflows (definition);
CREATE INDEX workflows_by_name ON workflows (name, status, start_ms);
CREATE INDEX workflows_by_status ON workflows (status, start_ms);
CREATE INDEX workflows_by_start ON workflows (start_ms);
CREATE INDEX workflows_by_end ON workflows (end_ms) WHERE end_ms IS NOT NULL;
CREATE INDEX workflows_by_correlation ON workflows (correlation_id)
    WHERE correlation_id IS NOT NULL;
CREATE INDEX workflows_by_parent ON workflows (parent) WHERE parent IS NOT NULL;
CREATE TABLE tasks (key INTEGER PRIMARY KEY, workflow INTEGER NOT NULL, reference TEXT NOT NULL,
    type TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, own_status TEXT NOT NULL,
    retried INTEGER NOT NULL, followed INTEGER NOT NULL, seq INTEGER NOT NULL,
    retry_count INTEGER NOT NULL, retry_of INTEGER, iteration INTEGER NOT NULL, domain TEXT,
    scheduled_ms INTEGER NOT NULL, start_ms INTEGER, update_ms INTEGER NOT NULL, end_ms INTEGER,
    delay_s INTEGER NOT NULL, callback_s INTEGER NOT NULL, polls INTEGER NOT NULL, worker TEXT,
    child INTEGER, job INTEGER, reason TEXT, input TEXT NOT NULL, output TEXT NOT NULL);
CREATE INDEX tasks_by_workflow ON tasks (workflow);
CREATE INDEX tasks_by_name ON tasks (name, status);
CREATE INDEX tasks_by_status ON tasks (status);
CREATE INDEX tasks_by_start ON tasks (start_ms);
CREATE INDEX tasks_with_jobs ON tasks (job) WHERE job IS NOT NULL;
";

/// The name, in searches, of the function from a key to Conductor's id of it.
pub(crate) const ID_OF: &str = "workflow_id_of";

/// A key, or any other large number, as SQLite stores it.
pub(crate) fn stored(key: u64) -> i64 {
    key.cast_signed()
}

/// The same, and 0 is no key.
pub(crate) fn stored_some(key: u64) -> Option<i64> {
    (key != 0).then(|| stored(key))
}

/// How an opening found the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// There was none.
    New,
    /// It was whole.
    Whole,
    /// It could not be used, and was put aside.
    PutAside(String),
}

/// Opens the database for writing; one that cannot be used is put aside and begun anew.
pub(crate) fn open_or_begin(path: &Path) -> Result<(Connection, Found)> {
    let existed = path.exists();
    match open(path) {
        Ok(database) => Ok((database, if existed { Found::Whole } else { Found::New })),
        Err(error) if existed => {
            let reason = words(&error);
            put_aside(path);
            Ok((open(path)?, Found::PutAside(reason)))
        }
        Err(error) => Err(error),
    }
}

fn words(error: &HistoryError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn open(path: &Path) -> Result<Connection> {
    let database = Connection::open(path)?;
    database.busy_timeout(BUSY_WAIT)?;
    database.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    // The log is the truth: what a power failure takes from here is given again.
    database.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -8000; PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;",
    )?;
    let format: i64 = database.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if format == 0 {
        let begun = format!("BEGIN; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT;");
        database.execute_batch(&begun)?;
    } else if format != FORMAT {
        return Err(HistoryError::Newer { format });
    }
    // Reads the first pages of every table: what is not a database shows here.
    for table in [
        "meta",
        "gaps",
        "definitions",
        "process_instances",
        "element_instances",
        "jobs",
        "workflows",
    ] {
        database.execute_batch(&format!("SELECT * FROM {table} LIMIT 1"))?;
    }
    Ok(database)
}

/// Puts the database aside, whole as it may be, and begins a new one.
pub(crate) fn begin_anew(path: &Path) -> Result<Connection> {
    put_aside(path);
    open(path)
}

/// Moves the database away; a second one put aside replaces the first.
fn put_aside(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let (from, to) = (with(path, suffix), with(path, &format!(".damaged{suffix}")));
        // What cannot be moved fails again when it is opened, and that is told.
        let _ = std::fs::rename(from, to);
    }
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Opens the database for searches.
pub(crate) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    database.busy_timeout(BUSY_WAIT)?;
    database.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    database.create_scalar_function(ID_OF, 1, flags, |context| {
        let key: Option<i64> = context.get(0)?;
        Ok(key.map(|key| id_of(Key::from_raw(key.cast_unsigned()))))
    })?;
    database.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -4000;")?;
    Ok(database)
}
