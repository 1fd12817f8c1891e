//! Workflows as Conductor's clients search and see them.
//!
//! A search is text in Conductor's query language (`query`), which becomes a typed filter
//! (`filter`) and then a [`Search`](crate::Search) like any other: values are bound, never written
//! into SQL. `render` says rows as JSON. Where this differs from the original:
//! * a search by tasks finds a workflow once, however many of its tasks pass, and is sorted by the
//!   fields of workflows;
//! * in summaries, `input` and `output` are JSON texts, cut after 8,192 letters;
//! * the free text is looked for in the fields of a summary, not in its JSON;
//! * `classifier` is taken and means nothing: no definition of ours has one.

mod filter;
mod find;
mod query;
mod render;
mod time;

pub(crate) use find::{find_tasks, find_workflows};
pub use query::QueryError;
pub(crate) use render::{task_json, workflow_json};

/// The most items that one search may ask for.
pub const SEARCH_SIZE_MAX: u32 = 5_000;

/// A search in Conductor's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkflowSearch {
    /// `workflowType IN (a,b) AND status = 'FAILED'`; empty is all.
    pub query: String,
    /// Somewhere in it; empty or `*` is all.
    pub free_text: String,
    /// `startTime:DESC|workflowId:ASC`; the key decides between equals.
    pub sort: String,
    /// So many are left out.
    pub start: u32,
    /// So many at most; more than [`SEARCH_SIZE_MAX`] is refused.
    pub size: u32,
    /// Taken as clients send it.
    pub classifier: Option<String>,
    /// Only workflows that do not run for another.
    pub top_level_only: bool,
}
