//! Conductor's dialect: its definitions, its expressions, and what its workflows do.
//!
//! [`path`] reads a value out of a document, [`template`] fills `${…}` in, [`script`] evaluates the
//! simple part of JavaScript.

pub mod path;
pub mod script;
pub mod template;
