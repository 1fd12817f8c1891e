//! The server: everything around the partition and the faces that makes them one process.
//!
//! [`serve`] runs until a signal or until the partition stops by itself; [`start`] gives a
//! [`ServerHandle`] instead, for tests and for programs that carry a server inside.
//!
//! Reading order: [`settings`] is the one table of settings and where their values come from;
//! [`data`] is the layout of the data directory; `history` joins the read model to the partition;
//! [`server`](mod@server) starts and stops; `builtin` are the workers that come with it, `airbyte` the
//! key and the clients of that face; [`listen`] is the port, `origin` what browsers may ask of it;
//! [`watch`] is `/health` and
//! `/metrics`; [`logging`] is what goes to standard error and to a collector of traces, `trace` the
//! span of a request;
//! [`error`] is everything that can go wrong.
//!
//! Absent on purpose: authentication (until its issue brings it, the server listens on loopback
//! unless told otherwise in words), and anything that a face should do.

mod airbyte;
mod backup;
mod builtin;
mod connectors;
pub mod data;
pub mod error;
mod files;
mod history;
pub mod listen;
pub mod logging;
mod origin;
mod patience;
pub mod server;
pub mod settings;
mod trace;
pub mod watch;

pub use builtin::sandbox;
pub use connectors::runner as connector_runner;
pub use error::{ConfigError, ServeError};
pub use server::{ServerHandle, run, serve, start, start_on};
pub use settings::{Config, ServeArgs};
pub use windlass_partition::StopReason;
