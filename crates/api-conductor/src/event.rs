//! Event handlers: `/event`.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Deserialize;
use serde_json::value::RawValue;
use windlass_record::workflow::{WorkflowCommand, WorkflowQuery};

use crate::answer::{Empty, Shown};
use crate::extract::{At, ObjectText, Params};
use crate::face::Face;
use crate::failure::{Answered, Failure};

pub(crate) fn routes() -> Router<Face> {
    Router::new()
        .route("/event", get(all).post(add).put(update))
        .route("/event/{a}", get(of_event).delete(forget))
}

async fn add(State(face): State<Face>, body: ObjectText) -> Answered<Empty> {
    define(&face, body, false).await
}

async fn update(State(face): State<Face>, body: ObjectText) -> Answered<Empty> {
    define(&face, body, true).await
}

async fn define(face: &Face, body: ObjectText, must_exist: bool) -> Answered<Empty> {
    let handler = body.required()?[..].into();
    let command = WorkflowCommand::DefineHandler { handler, must_exist };
    face.ask(command).await.map_err(Failure::into_validation)?;
    Ok(Empty)
}

async fn forget(State(face): State<Face>, At(name): At<String>) -> Answered<Empty> {
    face.ask(WorkflowCommand::ForgetHandler { name: name.into() }).await?;
    Ok(Empty)
}

async fn all(State(face): State<Face>) -> Answered<impl IntoResponse> {
    face.listed(WorkflowQuery::Handlers).await
}

/// What a handler listens to.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Listens {
    event: Option<String>,
    active: Option<bool>,
}

async fn of_event(
    State(face): State<Face>,
    At(event): At<String>,
    params: Params,
) -> Answered<impl IntoResponse> {
    let active_only = params.flag("activeOnly", true)?;
    let mut handlers: Vec<Box<RawValue>> = face.list(WorkflowQuery::Handlers).await?;
    handlers.retain(|handler| {
        let listens: Listens = serde_json::from_str(handler.get()).unwrap_or_default();
        listens.event.as_deref() == Some(&*event)
            && (!active_only || listens.active.unwrap_or(false))
    });
    Ok(Shown(handlers))
}
