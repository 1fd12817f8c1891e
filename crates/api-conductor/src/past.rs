//! What the core has let go of: the history has it still, if there is one.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use windlass_gateway::read_model::{HistoryError, QueryError};
use windlass_gateway::{SearchError, Searches};
use windlass_record::flow::Key;
use windlass_record::workflow::WorkflowQuery;

use crate::face::Face;
use crate::failure::{Answered, Failure};

/// How long a search waits for the history to have what was answered before.
const FOLLOW_WAIT_MAX: Duration = Duration::from_secs(2);

/// The read model, with everything that was answered before, if that does not take too long; `None`
/// when it is switched off.
pub(crate) async fn searches(face: &Face) -> Answered<Option<&Searches>> {
    match face.gateway.searches_after_now(FOLLOW_WAIT_MAX).await {
        Ok(searches) => Ok(Some(searches)),
        // What it has is better than nothing: clients know that searches lag.
        Err(SearchError::History(HistoryError::NotYet { .. })) => Ok(face.gateway.searches().ok()),
        Err(SearchError::Off) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// A search did not succeed.
pub(crate) fn refused(error: SearchError) -> Failure {
    let message = error.to_string();
    match error {
        SearchError::Gateway(error) => error.into(),
        SearchError::Overloaded { .. } => {
            Failure::new(StatusCode::TOO_MANY_REQUESTS, message).retryable()
        }
        SearchError::History(HistoryError::Query(QueryError::TooMany { .. })) => {
            Failure::validation(vec![message])
        }
        SearchError::History(
            HistoryError::Query(_) | HistoryError::TooManyValues { .. } | HistoryError::Cursor,
        ) => Failure::invalid(message),
        SearchError::Off
        | SearchError::Panicked
        | SearchError::History(
            HistoryError::Database(_)
            | HistoryError::NotYet { .. }
            | HistoryError::OtherFormat { .. },
        ) => Failure::unreadable(message),
    }
}

/// A `Workflow`, now or then.
pub(crate) async fn workflow(face: &Face, key: Key, tasks: bool) -> Answered<Option<Arc<str>>> {
    if let Some(found) = face.find(WorkflowQuery::Workflow { key, tasks }).await? {
        return Ok(Some(found));
    }
    let Some(searches) = searches(face).await? else { return Ok(None) };
    let found = searches.workflow_json(key.raw(), tasks).await.map_err(refused)?;
    Ok(found.map(Arc::from))
}

/// A `Task`, now or then.
pub(crate) async fn task(face: &Face, key: Key) -> Answered<Option<Arc<str>>> {
    if let Some(found) = face.find(WorkflowQuery::Task(key)).await? {
        return Ok(Some(found));
    }
    let Some(searches) = searches(face).await? else { return Ok(None) };
    let found = searches.task_json(key.raw()).await.map_err(refused)?;
    Ok(found.map(Arc::from))
}
