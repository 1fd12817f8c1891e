//! The workers that come with the server: scripts, HTTP requests.
//!
//! They are workers like any other, over the same SDK and the same port: a job that waits for them is
//! seen, retried and limited as every job is. [`run`](fn@run) starts them; [`Settings`] says how much
//! they may do. What they do: [`sandbox`] evaluates scripts in processes of its own, [`http`] sends
//! requests.
//!
//! | queue | payload | result |
//! |---|---|---|
//! | `windlass/evaluate` | `{"language", "form", "script", "bindings"}` | `{"value"}`, of jq `{"value", "values"}` |
//! | `conductor/HTTP` | the input of the task | `{"response": {"statusCode", "reasonPhrase", "headers", "body"}}` |
//! | `conductor/KAFKA_PUBLISH` | any | none: it fails |
//!
//! An evaluation fails for good, with a message that begins with `script: ` or `limit: `. A request
//! fails with [`http::FAILED`] and the reason behind it; that reason is what Conductor has as the
//! task's `output.response`.
//!
//! Absent on purpose: everything of the server; state; a pool of connections.

pub mod http;
pub mod run;
pub mod sandbox;

pub use run::{Handle, Settings, run};
