//! Airbyte connectors, run as processes: what they say, the pipe between a source and a destination,
//! and one attempt of a sync from its first process to its summary.
//!
//! In reading order:
//!
//! * [`protocol`] is what connectors say: lines of JSON, of which only the envelope is read;
//! * [`process`] is a connector as a process group with limits, its end, and that nothing of it is left;
//! * [`docker`] is the same as a container; [`package`] installs what is a package of Python;
//! * [`pipe`] carries records and states from the one to the other, counts them, and knows which
//!   states the destination has acknowledged;
//! * [`attempt`] puts it together: check, discover, replicate, one [`Summary`];
//! * [`journal`] is where acknowledged states go ([`file_journal`] is one in a folder), [`observer`] where
//!   everything goes that people see.
//!
//! The contract: the bytes of a record reach the destination as the source wrote them, unless the
//! connection renames or selects. A state is committed only after the destination gave it back, with
//! the counts of the records before it, and durably before the next one. An attempt has succeeded only
//! if both processes ended with 0 and the input of the destination was closed by us.
//!
//! * [`runner`] does it for a server: jobs, leases, a process of its own for each attempt.
//!
//! Absent on purpose outside of [`runner`]: the server, jobs and leases (whoever runs an attempt has a
//! [`Journal`] for them), retries (an attempt is one attempt), secrets (they come in plain), async.

pub mod attempt;
pub mod docker;
mod durable;
pub mod failure;
pub mod file_journal;
pub mod journal;
pub mod limits;
pub mod log_file;
pub mod observer;
pub mod package;
pub mod pipe;
pub mod process;
pub mod protocol;
pub mod runner;
pub mod summary;

pub use attempt::cancel::Cancel;
pub use failure::{Failure, FailureType, Origin};
pub use journal::{Commit, Journal, JournalError};
pub use limits::Limits;
pub use observer::{Level, Observer};
pub use process::Side;
pub use summary::{Status, Summary};
