//! What is deployed.

use std::sync::Arc;

use windlass_record::flow::{DefinitionKind, Key};

use crate::dmn;
use crate::graph::{Graph, Text};

/// A file.
#[derive(Debug)]
pub struct Resource {
    /// The wall of security.
    pub tenant: Text,
    /// Its name.
    pub name: Text,
    /// What is in it.
    pub bytes: Arc<[u8]>,
    /// What it was compiled to, once.
    pub(crate) compiled: Compiled,
}

/// What a file was compiled to.
#[derive(Clone, Debug)]
pub enum Compiled {
    /// Processes.
    Processes(Vec<Arc<Graph>>),
    /// Decisions.
    Decisions(Arc<dmn::Model>),
    /// Nothing that runs.
    Plain,
    /// This version of the program cannot compile what an earlier one could.
    Unreadable(Text),
}

/// One version of a process, a decision, a form or a file.
#[derive(Debug)]
pub struct Definition {
    /// The deployment that brought it.
    pub deployment: Key,
    /// The file it stands in.
    pub resource: Key,
    /// The wall of security.
    pub tenant: Text,
    /// What it is.
    pub kind: DefinitionKind,
    /// Its id.
    pub id: Text,
    /// Its version, from 1.
    pub version: u32,
    /// The author's name of the version.
    pub version_tag: Text,
    /// For people.
    pub name: Text,
    /// Decision: its requirements graph.
    pub group: Key,
    /// Process: ids, names and types of its elements by number, as they were when it was deployed.
    pub nodes: Arc<[(Text, Text, Text)]>,
    /// Process: what is stepped through.
    pub graph: Option<Arc<Graph>>,
    /// Decision: the model it stands in.
    pub model: Option<Arc<dmn::Model>>,
}

/// The newest version that a process ever had, when that version was deleted: numbers are never
/// used again.
#[derive(Debug)]
pub struct Retired {
    /// The wall of security.
    pub tenant: Text,
    /// The process's id.
    pub id: Text,
    /// The version.
    pub version: u32,
}
