//! Deletes what ended long ago, in small slices: one with every flush, and more when idle.

use rusqlite::{Connection, params};

use crate::options::Options;
use crate::schema::stored;

/// Instances, and plain jobs, deleted in one slice.
const SLICE: u32 = 200;

/// What belongs to an instance and goes with it.
const CHILDREN: [&str; 6] =
    ["element_instances", "variables", "jobs", "incidents", "user_tasks", "subscriptions"];

/// Deletes a slice and says how many instances and plain jobs it was; `finished` is how many
/// there are.
pub(crate) fn delete_slice(
    database: &Connection,
    options: &Options,
    now_ms: u64,
    finished: u64,
) -> rusqlite::Result<u64> {
    let kept_from_ms = stored(now_ms.saturating_sub(options.retention_ms));
    let surplus = finished.saturating_sub(options.finished_max);
    let surplus = u32::try_from(surplus).unwrap_or(u32::MAX).min(SLICE);
    let instances = oldest(database, INSTANCES, kept_from_ms, surplus)?;
    for key in &instances {
        for table in CHILDREN {
            let sql = format!("DELETE FROM {table} WHERE instance = ?1");
            database.prepare_cached(&sql)?.execute([key])?;
        }
        database.prepare_cached("DELETE FROM process_instances WHERE key = ?1")?.execute([key])?;
    }
    let deleted = u32::try_from(instances.len()).unwrap_or(u32::MAX);
    let jobs = oldest(database, PLAIN_JOBS, kept_from_ms, surplus.saturating_sub(deleted))?;
    for key in &jobs {
        database
            .prepare_cached("DELETE FROM incidents WHERE job = ?1 AND instance IS NULL")?
            .execute([key])?;
        database.prepare_cached("DELETE FROM jobs WHERE key = ?1")?.execute([key])?;
    }
    let deleted = instances.len() + jobs.len();
    Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
}

const INSTANCES: &str = "SELECT key FROM process_instances INDEXED BY instances_by_end \
                         WHERE end_ms IS NOT NULL";
const PLAIN_JOBS: &str = "SELECT key FROM jobs INDEXED BY plain_jobs_by_end \
                          WHERE instance IS NULL AND end_ms IS NOT NULL";

/// The oldest: those from before a time, and as many as are too many.
fn oldest(
    database: &Connection,
    select: &str,
    kept_from_ms: i64,
    surplus: u32,
) -> rusqlite::Result<Vec<i64>> {
    let sql = format!("{select} AND end_ms < ?1 ORDER BY end_ms LIMIT ?2");
    let mut statement = database.prepare_cached(&sql)?;
    let (kept_from_ms, limit) =
        if surplus > 0 { (i64::MAX, surplus) } else { (kept_from_ms, SLICE) };
    let keys = statement.query_map(params![kept_from_ms, limit], |row| row.get(0))?;
    keys.collect()
}
