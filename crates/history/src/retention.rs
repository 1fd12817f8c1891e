//! Deletes what ended long ago, in small slices: one with every flush, and more when idle.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension, params};

use crate::options::Options;
use crate::schema::stored;

/// Instances, workflows and plain jobs, deleted in one slice.
const SLICE: u32 = 200;

/// What belongs to an instance and goes with it.
const CHILDREN: [&str; 6] =
    ["element_instances", "variables", "jobs", "incidents", "user_tasks", "subscriptions"];

/// What is deleted as one.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Instance,
    PlainJob,
    Workflow,
}

impl FromSql for Kind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Kind> {
        match value.as_i64()? {
            0 => Ok(Kind::Instance),
            1 => Ok(Kind::PlainJob),
            2 => Ok(Kind::Workflow),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

/// Deletes a slice and says how many instances, workflows and plain jobs it was; `finished` is how
/// many there are. What changed must have been written.
pub(crate) fn delete_slice(
    database: &Connection,
    options: &Options,
    now_ms: u64,
    finished: u64,
) -> rusqlite::Result<u64> {
    let kept_from_ms = stored(now_ms.saturating_sub(options.retention_ms));
    let surplus = finished.saturating_sub(options.finished_max);
    let surplus = u32::try_from(surplus).unwrap_or(u32::MAX).min(SLICE);
    let old = oldest(database, kept_from_ms, surplus)?;
    for (kind, key) in &old {
        match kind {
            Kind::Instance => delete_instance(database, *key)?,
            Kind::PlainJob => delete_plain_job(database, *key)?,
            Kind::Workflow => {
                let definition = delete_workflow(database, *key)?;
                definition.map_or(Ok(()), |key| drop_definition(database, key))?;
            }
        }
    }
    Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
}

/// The oldest of all kinds: those from before a time, and as many as are too many.
fn oldest(
    database: &Connection,
    kept_from_ms: i64,
    surplus: u32,
) -> rusqlite::Result<Vec<(Kind, i64)>> {
    const OLDEST: &str = "
        SELECT 0, key, end_ms FROM process_instances INDEXED BY instances_by_end
            WHERE end_ms IS NOT NULL AND end_ms < ?1
        UNION ALL
        SELECT 1, key, end_ms FROM jobs INDEXED BY plain_jobs_by_end
            WHERE instance IS NULL AND end_ms IS NOT NULL AND end_ms < ?1
        UNION ALL
        SELECT 2, key, end_ms FROM workflows INDEXED BY workflows_by_end
            WHERE end_ms IS NOT NULL AND end_ms < ?1
        ORDER BY end_ms LIMIT ?2";
    let mut statement = database.prepare_cached(OLDEST)?;
    let (kept_from_ms, limit) =
        if surplus > 0 { (i64::MAX, surplus) } else { (kept_from_ms, SLICE) };
    let old =
        statement.query_map(params![kept_from_ms, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    old.collect()
}

fn delete_instance(database: &Connection, key: i64) -> rusqlite::Result<()> {
    for table in CHILDREN {
        let sql = format!("DELETE FROM {table} WHERE instance = ?1");
        database.prepare_cached(&sql)?.execute([key])?;
    }
    database.prepare_cached("DELETE FROM process_instances WHERE key = ?1")?.execute([key])?;
    Ok(())
}

fn delete_plain_job(database: &Connection, key: i64) -> rusqlite::Result<()> {
    let incidents = "DELETE FROM incidents WHERE job = ?1 AND instance IS NULL";
    database.prepare_cached(incidents)?.execute([key])?;
    database.prepare_cached("DELETE FROM jobs WHERE key = ?1")?.execute([key])?;
    Ok(())
}

/// Deletes a workflow with its tasks, and says by which definition it ran.
pub(crate) fn delete_workflow(database: &Connection, key: i64) -> rusqlite::Result<Option<i64>> {
    database.prepare_cached("DELETE FROM tasks WHERE workflow = ?1")?.execute([key])?;
    let sql = "DELETE FROM workflows WHERE key = ?1 RETURNING definition";
    let mut statement = database.prepare_cached(sql)?;
    statement.query_row([key], |row| row.get(0)).optional()
}

/// Of a definition's snapshots, the newest is kept while the definition is listed, because the next
/// workflow may run by it; any other goes with the last workflow that ran by it.
const UNUSED: &str = "NOT d.listed \
    AND NOT EXISTS (SELECT 1 FROM workflows w WHERE w.definition = d.key) \
    AND NOT (EXISTS (SELECT 1 FROM workflow_definitions l WHERE l.key = d.snapshot_of) \
        AND NOT EXISTS (SELECT 1 FROM workflow_definitions n \
            WHERE n.snapshot_of = d.snapshot_of AND n.key > d.key))";

/// Deletes a definition of workflows if nothing needs it.
pub(crate) fn drop_definition(database: &Connection, key: i64) -> rusqlite::Result<()> {
    let sql = format!("DELETE FROM workflow_definitions AS d WHERE d.key = ?1 AND {UNUSED}");
    database.prepare_cached(&sql)?.execute([key])?;
    Ok(())
}

/// Deletes the snapshots of a definition that nothing needs.
pub(crate) fn drop_snapshots(database: &Connection, listed: u64) -> rusqlite::Result<()> {
    let sql =
        format!("DELETE FROM workflow_definitions AS d WHERE d.snapshot_of = ?1 AND {UNUSED}");
    database.prepare_cached(&sql)?.execute([stored(listed)])?;
    Ok(())
}
