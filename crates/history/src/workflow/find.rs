//! Runs searches in Conductor's words.

use rusqlite::Connection;

use super::filter::filter;
use super::query::{QueryError, parse_sort};
use super::{SEARCH_SIZE_MAX, WorkflowSearch};
use crate::error::Result;
use crate::search::{
    self, Entity, Field, Filter, Page, Search, Start, Task, TaskField, Test, Workflow,
    WorkflowField,
};

/// Finds workflows: how many there are, and those that were asked for. By tasks, the query and the
/// free text are about tasks, and workflows are found of which some task passes.
pub(crate) fn find_workflows(
    database: &Connection,
    asked: &WorkflowSearch,
    by_tasks: bool,
) -> Result<(u64, Vec<Workflow>)> {
    check_size(asked, "workflows")?;
    let mut filters = if by_tasks {
        let filters = filter::<TaskField>(&asked.query, &asked.free_text)?;
        vec![Filter::HasTask(Box::new(Filter::All(filters)))]
    } else {
        filter::<WorkflowField>(&asked.query, &asked.free_text)?
    };
    if asked.top_level_only {
        filters.push(Filter::Field(WorkflowField::ParentId, Test::Exists(false)));
    }
    find(database, asked, filters)
}

/// Finds tasks: how many there are, and those that were asked for.
pub(crate) fn find_tasks(
    database: &Connection,
    asked: &WorkflowSearch,
) -> Result<(u64, Vec<Task>)> {
    check_size(asked, "tasks")?;
    find(database, asked, filter::<TaskField>(&asked.query, &asked.free_text)?)
}

fn check_size(asked: &WorkflowSearch, of: &'static str) -> Result<()> {
    let max = SEARCH_SIZE_MAX;
    if asked.size > max { Err(QueryError::TooMany { max, of }.into()) } else { Ok(()) }
}

fn find<E: Entity>(
    database: &Connection,
    asked: &WorkflowSearch,
    filters: Vec<Filter<E::Field>>,
) -> Result<(u64, Vec<E>)>
where
    E::Field: PartialEq,
{
    let search = Search {
        filter: Filter::All(filters),
        sort: parse_sort(&asked.sort, E::Field::named),
        page: Page { limit: asked.size, start: Start::Offset(asked.start.into()) },
    };
    let found = search::find::<E>(database, &search)?;
    Ok((found.total, found.items))
}
