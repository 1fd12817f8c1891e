//! Airbyte's public API over its wire: a server on a free port with a directory of its own, an HTTP client
//! of forty lines, and a worker that plays the launcher.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod actors;
mod bench;
mod connections;
mod definitions;
mod hostile;
mod jobs;
mod secrets;
mod streams;
mod timings;
mod tokens;
mod workspaces;
