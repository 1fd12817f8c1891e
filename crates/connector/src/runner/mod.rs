//! Attempts that are jobs of a server: who takes them, who runs them, and what is true whoever dies.
//!
//! * [`launcher`] takes jobs as resources allow and starts a process for each; when it starts itself, it
//!   looks after those that it finds;
//! * [`process`] is that process: it holds the job's lease, runs one attempt or asks one question, and
//!   reports;
//! * [`folder`] is what both know of an attempt: a marker, a spool of what was acknowledged, the
//!   summary;
//! * [`sync`] makes an attempt of documents, [`question`] a `check`, `discover` or `spec`;
//! * [`spool`] commits: to the folder at once, to the server as soon as it answers;
//! * [`report`] tells the server how it ended, from the folder alone;
//! * [`store`] are the documents, [`secrets`] the way to what is sealed in them.
//! * [`phase`] bounds how long an attempt takes to get under way, `tries` is what is tried again.
//!
//! A server that is away ends nothing until `stop_after`: then the runner kills what it started, before
//! its lease ends and somebody else gets the job.

pub mod folder;
pub mod launcher;
pub mod log;
pub mod phase;
pub mod process;
pub mod question;
pub mod report;
pub mod secrets;
pub mod spool;
pub mod store;
pub mod sync;
mod tries;

pub use folder::{Folder, Marker, Spec};
pub use launcher::{Handle, Settings};
pub use secrets::Secrets;

/// The queue of everything that replicates.
pub const SYNC_QUEUE: &str = "airbyte.sync";
/// The queue of `check`.
pub const CHECK_QUEUE: &str = "airbyte.check";
/// The queue of `discover`.
pub const DISCOVER_QUEUE: &str = "airbyte.discover";
/// The queue of `spec`.
pub const SPEC_QUEUE: &str = "airbyte.spec";
