//! One file per table whose rows change.

mod element;
mod incident;
mod instance;
mod job;
mod subscription;
mod task;
mod user_task;
mod workflow;

pub(crate) use element::Element;
pub(crate) use incident::Incident;
pub(crate) use instance::Instance;
pub(crate) use job::Job;
pub(crate) use subscription::Subscription;
pub(crate) use task::Task;
pub(crate) use user_task::UserTask;
pub(crate) use workflow::Workflow;

use rusqlite::Row;
use rusqlite::types::{FromSqlError, Type};

/// A key or a time that is always there; a key that is not is 0.
fn key(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(at)?.unwrap_or(0).cast_unsigned())
}

/// A time that may not have come.
fn time(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(at)?.map(i64::cast_unsigned))
}

/// One of the record's own enums, by its word.
fn named<T>(row: &Row<'_>, at: usize, find: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let word: String = row.get(at)?;
    find(&word).ok_or_else(|| {
        let error = Box::new(FromSqlError::InvalidType);
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, error)
    })
}
