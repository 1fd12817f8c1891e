//! Searches in the read model, and single items from it.
//!
//! The read model follows the engine; an answer here waits, for a bounded time, until it has what
//! was answered before the question. So a client that has just started an instance finds it.
//!
//! `filter` turns JSON into a search; `instance`, `variable`, `wait` and `definition` each have the
//! items of their group, as this wire shows them; `time` is how it writes times.

mod definition;
mod filter;
mod instance;
mod time;
mod variable;
mod wait;

use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use windlass_gateway::read_model::search::{
    DecisionDefinition, DecisionRequirements, ElementInstance, Incident, Job, MessageSubscription,
    ProcessDefinition, ProcessInstance, UserTask,
};
use windlass_gateway::read_model::{Entity, Filter, Found, HistoryError, Search};
use windlass_gateway::{SearchError, Searches};

use crate::refusal::not_taken;
use crate::rest::Face;
use crate::rest::extract::{KeyPath, MaybeBody, Shown};
use crate::rest::problem::{Answered, Problem};

/// How long an answer waits for the read model to have everything.
const FOLLOW_WAIT_MAX: Duration = Duration::from_secs(2);

pub(super) fn routes() -> Router<Face> {
    Router::new()
        .route("/process-instances/search", post(search::<ProcessInstance>))
        .route("/process-instances/{key}", get(show::<ProcessInstance>))
        .route("/process-instances/{key}/call-hierarchy", get(instance::call_hierarchy))
        .route("/process-instances/{key}/incidents/search", post(instance::search_incidents))
        .route("/element-instances/search", post(search::<ElementInstance>))
        .route("/element-instances/{key}", get(show::<ElementInstance>))
        .route("/element-instances/{key}/incidents/search", post(wait::search_of_element))
        .route("/variables/search", post(variable::search))
        .route("/variables/{key}", get(variable::show))
        .route("/jobs/search", post(search::<Job>))
        .route("/incidents/search", post(search::<Incident>))
        .route("/incidents/{key}", get(show::<Incident>))
        .route("/user-tasks/search", post(search::<UserTask>))
        .route("/user-tasks/{key}", get(show::<UserTask>))
        .route("/user-tasks/{key}/variables/search", post(variable::search_of_task))
        .route("/message-subscriptions/search", post(search::<MessageSubscription>))
        .route("/process-definitions/search", post(search::<ProcessDefinition>))
        .route("/process-definitions/{key}", get(show::<ProcessDefinition>))
        .route("/process-definitions/{key}/xml", get(xml::<ProcessDefinition>))
        .route("/decision-definitions/search", post(search::<DecisionDefinition>))
        .route("/decision-definitions/{key}", get(show::<DecisionDefinition>))
        .route("/decision-definitions/{key}/xml", get(xml::<DecisionDefinition>))
        .route("/decision-requirements/search", post(search::<DecisionRequirements>))
        .route("/decision-requirements/{key}", get(show::<DecisionRequirements>))
        .route("/decision-requirements/{key}/xml", get(xml::<DecisionRequirements>))
}

/// An entity as this wire shows and filters it.
trait Item: Entity {
    /// What people call it.
    const NAME: &'static str;

    /// It, with all fields that strict clients want to be there.
    fn shown(self) -> Json;

    /// A member of a filter that is no field: `None` when there is no such thing.
    fn filter(_name: &str, _wanted: &Json) -> Answered<Option<Filter<Self::Field>>> {
        Ok(None)
    }
}

/// What is searched for, as it comes.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    filter: Option<Json>,
    sort: Option<Vec<Sort>>,
    page: Option<Page>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sort {
    field: Option<String>,
    order: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Page {
    from: Option<i64>,
    limit: Option<i64>,
    after: Option<String>,
    before: Option<String>,
}

async fn search<I: Item>(
    State(face): State<Face>,
    MaybeBody(asked): MaybeBody<Asked>,
) -> Answered<Shown<Json>> {
    let asked = filter::read::<I>(asked)?;
    let found = find::<I>(&face, asked).await?;
    Ok(page(found, I::shown))
}

async fn find<I: Item>(face: &Face, asked: Search<I::Field>) -> Answered<Found<I>> {
    let searches = up_to_date(face).await?;
    searches.search::<I>(asked).await.map_err(refused)
}

/// An answer with a page of items.
fn page<I>(found: Found<I>, shown: impl Fn(I) -> Json) -> Shown<Json> {
    let items: Vec<Json> = found.items.into_iter().map(shown).collect();
    Shown(json!({
        "items": items,
        "page": {
            "totalItems": found.total,
            // They are all counted.
            "hasMoreTotalItems": false,
            "startCursor": found.first_cursor,
            "endCursor": found.last_cursor,
        },
    }))
}

async fn show<I: Item>(State(face): State<Face>, KeyPath(key): KeyPath) -> Answered<Shown<Json>> {
    one::<I>(&face, key).await.map(|item| Shown(item.shown()))
}

/// The item with this key.
async fn one<I: Item>(face: &Face, key: i64) -> Answered<I> {
    let searches = up_to_date(face).await?;
    let found = searches.get::<I>(key.cast_unsigned()).await.map_err(refused)?;
    found.ok_or_else(|| not_found(I::NAME, key))
}

fn not_found(name: &str, key: i64) -> Problem {
    Problem::not_found(format!("{name} with key '{key}' not found"))
}

/// The file that a definition stands in.
async fn xml<I: Item>(State(face): State<Face>, KeyPath(key): KeyPath) -> Answered<Response> {
    // That it is of this kind.
    one::<I>(&face, key).await?;
    let searches = face.gateway.searches().map_err(refused)?;
    let file = searches.resource(key.cast_unsigned()).await.map_err(refused)?;
    let Some((_, content)) = file else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    Ok(([(header::CONTENT_TYPE, "text/xml")], content).into_response())
}

/// The read model, with everything that was answered before, if that does not take too long.
async fn up_to_date(face: &Face) -> Answered<&Searches> {
    match face.gateway.searches_after_now(FOLLOW_WAIT_MAX).await {
        Ok(searches) => Ok(searches),
        // What it has is better than nothing: clients know that searches lag.
        Err(SearchError::History(HistoryError::NotYet { .. })) => {
            face.gateway.searches().map_err(refused)
        }
        Err(error) => Err(refused(error)),
    }
}

fn refused(error: SearchError) -> Problem {
    match error {
        SearchError::Off => Problem::plain(
            StatusCode::FORBIDDEN,
            "This endpoint requires a secondary storage, but none is set: the history is off",
        ),
        SearchError::Overloaded { .. } => Problem::overloaded(error.to_string()),
        SearchError::Gateway(error) => not_taken(error).into(),
        SearchError::History(
            HistoryError::Cursor | HistoryError::TooManyValues { .. } | HistoryError::Query(_),
        ) => Problem::invalid(error.to_string()),
        SearchError::History(
            HistoryError::Database(_) | HistoryError::NotYet { .. } | HistoryError::Newer { .. },
        )
        | SearchError::Panicked => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a search failed");
            Problem::plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        }
    }
}
