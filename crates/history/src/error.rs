//! What can go wrong behind the read model.

use crate::workflow::QueryError;

/// The database, or what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The database failed.
    #[error("failed to use the history database")]
    Database(#[from] rusqlite::Error),
    /// The cursor of a page was not made by us, or for another order.
    #[error("the cursor does not belong to this search")]
    Cursor,
    /// A test names more values than one statement can hold.
    #[error("a filter may name at most {max} values")]
    TooManyValues {
        /// How many it may.
        max: usize,
    },
    /// A search in Conductor's words was refused.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The history did not get so far in time.
    #[error("the history covers lsn {covered} and not yet {wanted}")]
    NotYet {
        /// What was waited for.
        wanted: u64,
        /// What it covers.
        covered: u64,
    },
    /// The database was made by a later version of this program.
    #[error("the history database has format {format}, which is newer than this program")]
    Newer {
        /// Its format.
        format: i64,
    },
}

/// What most of this crate returns.
pub type Result<T> = std::result::Result<T, HistoryError>;
