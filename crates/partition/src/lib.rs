//! The shell of one partition.
//!
//! A partition is one thread that drains commands, decides each against memory, and hands batches
//! of records to a commit thread; while that makes batch k durable, the loop works on batch k+1.
//! An answer leaves only when everything it saw is durable, unless [`Durability`] says otherwise.
//!
//! Reading order: [`request`] is what goes in and out; [`core`](mod@core) turns requests into
//! records and answers without any thread or clock; `run` is the loop around it with its commit
//! thread; [`clock`] is where time enters; `recover` opens a partition from its checkpoint and its
//! log; [`follow`] is the seam for those who want what is durable; `payload` keeps bytes,
//! `waiters` keeps those who wait, `finished` those who are done; [`tally`] is what the loop counts.
//!
//! Servers use [`Partition`] and [`request`]. The other modules are public for the simulator, which
//! takes the threads' place.

mod awaited;
mod changing;
pub mod checkpoint;
pub mod clock;
mod commit;
pub mod core;
mod finished;
pub mod follow;
mod handle;
mod options;
mod parts;
pub mod payload;
mod query;
pub mod recover;
pub mod request;
mod run;
pub mod tally;
pub mod waiters;
mod waits;
mod why;

pub use follow::{FollowLag, Followed, Follower, Record};
pub use handle::{Handle, Overloaded};
pub use options::{Durability, Options};
pub use recover::OpenError;
pub use run::{Checkpoints, Partition, PayloadLost, Recovery, StopReason};
