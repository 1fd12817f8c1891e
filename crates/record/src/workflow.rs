//! The vocabulary of workflows: tasks in the way of Conductor, their definitions, their runs.
//!
//! A workflow keeps the record of every task it ever scheduled, retries too, until it is removed. Its
//! definitions, inputs and outputs are JSON, and stand in commands and events as text: the kernel
//! parses what it looks at. Every entity has a key of the same kind as a job's.

mod answer;
mod command;
mod event;
mod query;

pub use answer::WorkflowAnswer;
pub use command::{
    RerunWorkflow, SignalWorkflow, TaskReference, TaskUpdate, WorkflowCommand, WorkflowVerb,
};
pub use event::{
    TaskChanged, TaskScheduled, TaskStatus, WorkflowEvent, WorkflowRevived, WorkflowStarted,
    WorkflowStatus,
};

pub use query::WorkflowQuery;

use crate::flow::Key;
use crate::id::mix;

/// The tenant of workflows and their tasks.
pub const WORKFLOW_TENANT: &str = "default";

/// What the queues of tasks begin with.
pub const TASK_QUEUE_PREFIX: &str = "conductor/";

/// The queue of Conductor tasks: `[domain:]type[@namespace][-isolation]` behind a prefix.
pub fn task_queue(domain: &str, task_type: &str, namespace: &str, isolation: &str) -> Box<str> {
    let mut name = String::from(TASK_QUEUE_PREFIX);
    if !domain.is_empty() {
        name.push_str(domain);
        name.push(':');
    }
    name.push_str(task_type);
    if !namespace.is_empty() {
        name.push('@');
        name.push_str(namespace);
    }
    if !isolation.is_empty() {
        name.push('-');
        name.push_str(isolation);
    }
    name.into()
}

/// Where scripts wait that the kernel does not evaluate itself. No face shows it.
pub const EVALUATION_QUEUE: &str = "windlass/evaluate";

/// The id of a workflow or task as clients see it: a UUID (version 8) with the key in it. The first
/// groups are a hash of the key, so that ids differ at first sight and a made-up one is noticed.
pub fn id_of(key: Key) -> String {
    let raw = key.raw();
    let hash = mix(raw);
    format!(
        "{:08x}-{:04x}-8{:03x}-8{:x}00-{:012x}",
        hash >> 32,
        (hash >> 16) & 0xffff,
        raw >> 52,
        (raw >> 48) & 0xf,
        raw & 0xffff_ffff_ffff
    )
}

/// The key in an id; `None` when it is not one of [`id_of`].
pub fn key_of(id: &str) -> Option<Key> {
    let groups: Vec<&str> = id.split('-').collect();
    let [_, _, high, middle, low] = groups.as_slice() else { return None };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let high = hex(high.strip_prefix('8')?)?;
    let middle = hex(middle.strip_prefix('8')?.strip_suffix("00")?)?;
    let key = Key::from_raw(high << 52 | middle << 48 | hex(low)?);
    (id_of(key) == id.to_ascii_lowercase()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_hold_their_keys() {
        for raw in [1, 2_251_799_813_685_249, u64::MAX, 1 << 52, 0x000f_ffff_ffff_ffff] {
            let id = id_of(Key::from_raw(raw));
            assert_eq!(id.len(), 36);
            assert_eq!(key_of(&id), Some(Key::from_raw(raw)), "{id}");
        }
        for made_up in ["", "x", "00000000-0000-8000-8000-000000000001", "1-2-3-4-5"] {
            assert_eq!(key_of(made_up), None);
        }
    }

    #[test]
    fn queues_are_named_as_conductor_names_them() {
        assert_eq!(&*task_queue("", "t", "", ""), "conductor/t");
        assert_eq!(&*task_queue("d", "HTTP", "n", "i"), "conductor/d:HTTP@n-i");
    }
}
