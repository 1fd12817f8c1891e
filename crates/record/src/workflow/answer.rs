//! What commands on workflows are answered with.

use std::sync::Arc;

use super::TaskStatus;
use crate::flow::Key;

/// What a command on workflows that was not refused is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkflowAnswer {
    /// Nothing more to say.
    Done,
    /// The workflow, new or the one that the same key started before.
    Started {
        /// Its key.
        workflow: Key,
        /// Whether it was there already.
        existing: bool,
    },
    /// What became of an update.
    Updated {
        /// The task; none when nothing had that name.
        task: Key,
        /// Its status now.
        status: TaskStatus,
        /// Whether the update ended it.
        ended: bool,
        /// What it is: the type a worker asks for.
        task_type: Arc<str>,
        /// The domain of its queue; may be empty.
        domain: Arc<str>,
    },
    /// How many.
    Count(u32),
}
