//! Flows: definitions, the expressions and decisions in them, and the kernel that steps through
//! them.
//!
//! Reading order: [`feel`] evaluates expressions, [`dmn`] decisions; [`graph`] is what a process is
//! compiled to, [`bpmn`] compiles it from XML, [`schedule`] says when timers fire.
//!
//! Absent on purpose: IO, clocks, randomness, threads, async, logging. Time is an argument.

pub mod bpmn;
pub mod dmn;
pub mod feel;
pub mod graph;
pub mod schedule;
