//! From source to destination: bytes as they are, counted, and states that are known to have arrived.
//!
//! ```text
//! source ──output──▶ pump ──input──▶ destination ──output──▶ answers
//!                     │ counts, states                          │ acknowledged states
//!                     └──────────────▶ ledger ◀─────────────────┘
//!                                         └──▶ committer ──▶ Journal
//! ```
//!
//! [`pump`] reads, counts and forwards, on one thread; [`lines`] is its buffer, [`outlet`] what it writes
//! with, [`rewrite`] what changes records where a connection asks for it. [`answers`] reads what the
//! destination says. Between them stands the [`ledger`]: what was sent, what was given back.
//! [`committer`] makes that durable; [`shared`] is what all of them have. [`speech`] is everything else that
//! connectors say, [`stderr`] what they print beside. [`sample`] looks at the shape of some records, aside.
//!
//! Everything is bounded: the pump holds one buffer (and one line, where that is longer), the kernel
//! a pipe at each side; what the destination does not take, the source cannot write.

pub mod answers;
pub mod committer;
pub mod ledger;
pub mod lines;
pub mod outlet;
pub mod pump;
pub mod rewrite;
pub mod sample;
pub mod shared;
pub mod speech;
pub mod stderr;
