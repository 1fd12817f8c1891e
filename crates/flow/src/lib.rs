//! Flows: definitions, the expressions and decisions in them, and the kernel that steps through
//! them.
//!
//! Reading order: [`graph`] is what a process is compiled to, by [`bpmn`]; [`state`] what is
//! remembered about those that run; [`kernel`] what follows from what, with `node` for each kind of
//! node; `verb` one file per command; [`apply`](mod@apply) what events do. [`feel`] evaluates
//! expressions, [`dmn`] decisions, [`schedule`] reads times; [`invariant`] lists what always holds.
//! [`conductor`] is the other dialect.
//!
//! Absent on purpose: IO, clocks, randomness, threads, async, logging. Time is an argument. Nothing
//! here knows of queues or leases: a job is asked of the [`kernel::Port`].

mod apply;
pub mod bpmn;
pub mod conductor;
pub mod dmn;
pub mod feel;
pub mod graph;
pub mod invariant;
pub mod kernel;
mod node;
pub mod schedule;
pub mod state;
pub mod verb;

pub use kernel::Port;
pub use state::FlowState;
