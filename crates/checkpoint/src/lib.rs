//! The checkpoint: the durable image of a partition's state at one lsn.
//!
//! The log is the truth; a checkpoint is what spares a restart from replaying all of it, and where cold
//! bytes rest that memory has no room for. This crate stores opaque keys and values and knows nothing of
//! jobs: it uses no other crate of the workspace.
//!
//! Modules in reading order:
//!
//! * [`store`]: the seam. Two traits, what they promise, and the entries of a write;
//! * [`stamp`]: what a checkpoint says about itself;
//! * [`range`]: ranges of keys, and how to cut them for several threads;
//! * [`error`]: everything that can go wrong;
//! * [`memory`]: the store in memory, with faults for the simulator;
//! * [`local`]: the store in a directory; beside it `merge`, its background thread, and `pace`, its speed
//!   limit;
//! * [`backup`]: a checkpoint as one portable stream;
//! * [`conformance`]: the promises as tests, run by every backend.
//!
//! What is absent: single writes (state changes only by whole checkpoints), transactions, time (a rate
//! limit aside), and any meaning of the bytes.

pub mod backup;
pub mod conformance;
pub mod error;
pub mod local;
pub mod memory;
mod merge;
mod pace;
pub mod range;
pub mod stamp;
pub mod store;

pub use error::{Error, Result};
pub use local::{LocalCheckpoint, LocalOptions, LocalStatus};
pub use memory::{Fault, MemoryCheckpoint, MemoryDisk};
pub use range::KeyRange;
pub use stamp::Stamp;
pub use store::{Checkpoint, Entry, Pair, Pairs, View, Visit};
