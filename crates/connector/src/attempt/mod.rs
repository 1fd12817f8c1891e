//! One attempt of a sync, from its first process to its summary.
//!
//! [`Attempt`] says what is to be done, [`run`](fn@run) does it: checks, discovery, replication, each a step in
//! the same place. [`operation`] is what a connector is asked alone (`spec`, `check`, `discover`);
//! [`replicate`] watches two of them at work; [`clear`] is the source of a clear, which is no process;
//! [`generation`] decides what starts anew; [`cancel`] ends all of it at any moment; [`files`] is where
//! connectors find what they are to read.

pub mod cancel;
pub mod clear;
pub mod files;
pub mod generation;
pub mod operation;
pub mod replicate;
mod run;

pub use run::{Attempt, Begun, Connector, Discovered, Steps, run};
