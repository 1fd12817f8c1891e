//! Scripts in processes of their own.
//!
//! A script may loop, eat memory or crash its engine. So it is evaluated by a child process, one
//! evaluation at a time: a fresh context for each, no IO, bounds of its own on time and memory. The
//! [`Pool`] starts children when they are needed, kills those that do not answer, and lets go of
//! those that nobody needs. The child is [`serve`]: this program again, with another first word.
//!
//! `frame` is what they say to one another; `child` is the child, with `javascript` and `jq`.

mod child;
mod frame;
mod javascript;
mod jq;
mod pool;

pub use child::serve;
pub use pool::{Pool, PoolSettings, SandboxError};

/// How large a script with its bindings may be.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// How large a result may be.
pub const RESULT_BYTES_MAX: usize = 10 << 20;

/// How large a message of a failure may be; a job keeps no more.
const MESSAGE_BYTES_MAX: usize = 4_000;
