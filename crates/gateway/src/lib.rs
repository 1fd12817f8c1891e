//! The way from the faces to the partitions.
//!
//! A face maps the words of its wire to commands and queries and hands them to a [`Gateway`]; it
//! gets answers that are durable. Everything passes in batches: one hand-over per message of a
//! face, whatever the number of its items, and no task per job.
//!
//! * [`Gateway::commands`] and [`Gateway::results`] give commands. Results, heartbeats and cancels
//!   are held back by waiting for a place and never refused for load; everything else is refused
//!   at the limits of the partition.
//! * [`Gateway::poll`] waits for jobs once; dropping the future ends the wait, and jobs that were
//!   already on their way go back. A face that got jobs and could not send them gives them back
//!   with [`Gateway::give_back`].
//! * [`Gateway::open_stream`] waits until closed: a [`StreamControl`] for what the worker says, a
//!   [`Deliveries`] for what it gets. Jobs that were not taken from the latter go back when it is
//!   dropped.
//! * [`read`] asks questions of the partition, [`history`](mod@history) searches the read model.
//!
//! Reading order: [`gateway`], [`poll`], [`stream`], [`read`], [`history`](mod@history), [`limits`], [`error`], [`metrics`].
//!
//! Absent on purpose: rules of the domain, names and codes of any wire, authentication (it comes
//! with its own issue), and more than one partition: what routes by key or queue will stand in
//! [`gateway`] and nowhere else.

pub mod error;
pub mod gateway;
pub mod history;
pub mod limits;
pub mod metrics;
pub mod poll;
pub mod read;
pub mod stream;

pub use error::GatewayError;
pub use gateway::Gateway;
pub use history::{SearchError, Searches};
pub use limits::Limits;
pub use metrics::Metrics;
pub use poll::PollRequest;
pub use stream::{Deliveries, Delivery, Stop, StreamControl};
/// The vocabulary of searches, for whoever may use the gateway and not the crate itself.
pub use windlass_history as read_model;
pub use windlass_partition::request;
/// The vocabulary of commands, for whoever may use the gateway and not the crate itself.
pub use windlass_record as record;
