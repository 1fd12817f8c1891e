//! The vocabulary of Windlass: what can be asked, what can happen, what can be refused.
//!
//! A **command** asks ([`Command`]), an **event** says what happened ([`Event`]), a **rejection**
//! says why a command was refused ([`Rejection`]). Events are what the log keeps, so their
//! encoding ([`codec`]) is the product's longest promise: bytes written by a released version are
//! read by every later one.
//!
//! Reading order: [`id`] names things, [`bound`] limits them, [`policy`] holds the rules that
//! travel with a job or a queue as data, then [`command`], [`event`], [`rejection`], the same for
//! flows in [`flow`] and [`workflow`] and for schedules in [`schedule`], and last [`codec`].
//!
//! Absent on purpose: IO, clocks, randomness, threads, async, logging, and any serialization
//! framework for what is kept. This crate depends on nothing; with the feature `serde`, which tools that
//! show a log turn on, events can be written as JSON and never read from it (decision 0019).

pub mod bound;
pub mod codec;
pub mod command;
pub mod event;
pub mod flow;
pub mod id;
pub mod policy;
pub mod rejection;
pub mod schedule;
#[cfg(feature = "serde")]
mod shown;
mod size;
pub mod workflow;

pub use bound::{Bound, Bounds};
pub use command::Command;
pub use event::Event;
pub use id::{Epoch, JobKey, LimitId, Lsn, PartitionId, Payload, PayloadHandle, QueueId, Token};
pub use policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings,
    PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};
pub use rejection::Rejection;
