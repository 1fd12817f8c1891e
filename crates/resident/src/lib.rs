//! How much of a server that has nothing to do the kernel keeps in memory.
//!
//! Two things are in there that an idle server does not use: [`huge_pages`], of which it touches a
//! few bytes each, and the part of its [`program`] that only a start runs.
//!
//! Absent on purpose: memory that the engine asks for. Bounds on that belong to whoever asks.

pub mod huge_pages;
pub mod program;
