//! The SQL read model: what happened, searchable.
//!
//! The core forgets what is done. Here the log's records are projected into a SQLite database,
//! behind the partition and never in its way: finished process instances with their elements,
//! variables, jobs and incidents stay for a retention time, and live ones can be searched.
//!
//! The contract:
//! * The database says the lsn up to which it has everything, in the transaction that wrote it. So
//!   a restart neither loses nor doubles a row.
//! * Where it has not everything, it says so: a [`Gap`] is a range of lsns that never came.
//! * It is not the truth. It may be deleted while the server is down; one that is damaged is put
//!   aside and begun anew from what the log still has. Backups do not hold it.
//!
//! Reading order: [`history`] is the way in, for who feeds it and for who asks; [`search`] is what
//! can be asked; `project` turns records into rows, `row` and `table` are rows in memory, `schema`
//! the tables; [`workflow`] is what Conductor's clients ask; `retention` deletes what is old; [`names`] are the words of states.
//!
//! Absent on purpose: any crate of ours but `record`; a clock (the time is the newest record's);
//! threads (the feed's own thread projects, searches run on the caller's); rules of the domain.

mod error;
pub mod history;
pub mod names;
mod options;
mod project;
mod retention;
mod row;
mod schema;
pub mod search;
mod table;
pub mod workflow;

pub use error::{HistoryError, Result};
pub use history::{Gap, History, Origin, Status};
pub use options::{JobLevel, Options};
pub use search::{
    Entity, Field, FieldKind, Filter, Found, Order, Page, Search, Start, Test, Value, VariableScope,
};
pub use workflow::{QueryError, WorkflowSearch};
