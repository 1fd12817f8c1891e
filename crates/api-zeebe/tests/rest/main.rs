//! Camunda's REST API over its wire: a server on a free port with a directory of its own, and an
//! HTTP client of forty lines.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;
mod deployments;
mod errors;
mod instances;
mod jobs;
mod messages;
mod searches;
mod user_tasks;
