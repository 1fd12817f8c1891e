//! The worker SDK of Windlass: a function becomes a worker of a durable queue.
//!
//! ```no_run
//! use serde::{Deserialize, Serialize};
//! use windlass_worker::{Client, Failure, Job, Worker};
//!
//! #[derive(Deserialize)]
//! struct Order {
//!     id: String,
//! }
//!
//! #[derive(Serialize)]
//! struct Receipt {
//!     cents: u64,
//! }
//!
//! async fn charge(job: Job<Order>) -> Result<Receipt, Failure> {
//!     job.context().log(format!("charging {}", job.payload.id));
//!     if job.payload.id.is_empty() {
//!         return Err(Failure::permanent("an order needs an id"));
//!     }
//!     Ok(Receipt { cents: 4_200 })
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), windlass_worker::Error> {
//!     let client = Client::lazy("http://127.0.0.1:8080")?;
//!     let worker = Worker::builder(client).queue("charge").handler(charge).build()?;
//!     worker.run_until(async { drop(tokio::signal::ctrl_c().await) }).await?;
//!     Ok(())
//! }
//! ```
//!
//! # What it promises
//!
//! * At least once: a job is finished only when the server has made its result durable. A result that
//!   was not answered is said again on the next connection.
//! * Results carry the token of their activation, so that one that comes too late, or twice, changes
//!   nothing.
//! * No more than `concurrency` jobs are in the handler's hands; a free slot is offered to the server
//!   at once, with no polling in between.
//! * The lease of a job is extended for as long as the worker lives and reaches the server.
//! * A panic fails its job, not the worker. A lost connection is made again; jobs go on meanwhile.
//! * A drain finishes what runs. What does not end in time is cancelled, then put back.
//!
//! # Modules in reading order
//!
//! [`worker`] is the worker and its builder, [`job`] what a handler gets and [`failure`] what it may
//! return. [`client`] has a method per call of the API, [`creator`] makes batches of single creates,
//! [`stream`] is the work stream without a worker around it. [`error`] is what can go wrong. Inside:
//! `outbox` keeps what has to be said until the server has it, `flight` the jobs at work, `link` the
//! connection, `handler` runs handlers. [`v1`] is generated from the proto file.
//!
//! # What is absent
//!
//! Everything of the server: this crate knows its wire and nothing else. No persistence: a result
//! that was not answered when the process dies is lost, and the job runs again when its lease ends.

mod backoff;
pub mod client;
mod convert;
pub mod creator;
pub mod error;
pub mod failure;
mod flight;
mod handler;
pub mod job;
mod link;
mod metrics;
mod outbox;
pub mod stream;
#[path = "generated/windlass.v1.rs"]
pub mod v1;
pub mod worker;

pub use client::{Client, Created, Lease};
pub use convert::Token;
pub use creator::{BatchCreator, BatchOptions};
pub use error::{Error, MetBound, Refusal, RefusalKind};
pub use failure::Failure;
pub use job::{Job, JobContext};
pub use metrics::Metrics;
pub use outbox::RefusedResult;
pub use stream::{Received, WorkSender, WorkStream};
pub use worker::{Drained, Worker, WorkerBuilder, WorkerEvent, WorkerHandle};
