//! Workflows in the way of Conductor: tasks as JSON, each with a record of its own.
//!
//! They live on the same log, to-do list, jobs and timers as processes do, see
//! [`crate::kernel`]; their rules are their own. Reading order: [`definition`] and [`plan`] are what
//! was written, [`state`] what is remembered; `workflow` and `task` are the two lives, with a file in
//! `task/` for each kind; `job` is where a worker's job meets its task; [`verb`] has the commands,
//! `apply` and `image` what events do and how it is saved; [`render`] and [`query`] show it.
//!
//! [`path`] reads a value out of a document, [`template`] fills `${…}` in, [`script`] evaluates the
//! simple part of JavaScript.

mod apply;
pub mod definition;
mod handler;
mod image;
pub(crate) mod invariant;
pub mod job;
mod lenient;
pub mod path;
pub mod plan;
pub mod query;
pub mod render;
pub mod schema;
pub mod script;
mod seen;
mod start;
pub mod state;
pub(crate) mod task;
pub mod template;
pub mod time;
pub mod verb;
pub(crate) mod workflow;

use windlass_record::flow::FlowRejection;
use windlass_record::rejection::RejectionKind;

/// A refusal in Conductor's words.
fn refuse(kind: RejectionKind, message: String) -> FlowRejection {
    FlowRejection::Workflow { kind, message: message.into() }
}
