//! Conductor's dialect: its definitions, its expressions, and what its workflows do.
//!
//! [`path`] reads a value out of a document, [`template`] fills `${…}` in.

pub mod path;
pub mod template;
