//! Conductor's API over its wire: a server on a free port with a directory of its own, and an HTTP
//! client of forty lines.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod bulk;
mod common;
mod conventions;
mod endpoints;
mod hostile;
mod metadata;
mod mocks;
mod runs;
mod schedules;
mod searches;
mod tasks;
mod workflows;
