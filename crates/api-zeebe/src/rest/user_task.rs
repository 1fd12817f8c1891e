//! What people do with user tasks. The other wire does not have them.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, patch, post};
use serde::Deserialize;
use serde_json::value::RawValue;
use tonic::Status;
use windlass_gateway::{Gateway, GatewayError};
use windlass_record::flow::{
    FlowCommand, FlowRejection, USER_TASK_PRIORITY_MAX, UpdateUserTask, UserTaskAction,
};
use windlass_record::rejection::Rejection;

use crate::change::{self, Change};
use crate::document;
use crate::flow::key;
use crate::refusal::{not_taken, rejected_as};
use crate::rest::Face;
use crate::rest::extract::{Body, KeyPath, MaybeBody};
use crate::rest::problem::{Answered, Problem};
use crate::rest::shape::{out_of_range, required_text, text};

pub(super) fn routes() -> Router<Face> {
    Router::new()
        .route("/user-tasks/{key}/completion", post(complete))
        .route("/user-tasks/{key}/assignment", post(assign))
        .route("/user-tasks/{key}/assignee", delete(unassign))
        .route("/user-tasks/{key}", patch(update))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Completion {
    variables: Option<Box<RawValue>>,
    action: Option<String>,
}

async fn complete(
    State(face): State<Face>,
    KeyPath(task): KeyPath,
    MaybeBody(asked): MaybeBody<Completion>,
) -> Answered<StatusCode> {
    let variables = document::variables(&text(asked.variables))?;
    let name = asked.action.unwrap_or_else(|| "complete".to_owned());
    ask(&face.gateway, Asked::Complete, (task, name), UserTaskAction::Complete(variables)).await
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Assignment {
    assignee: Option<String>,
    allow_override: Option<bool>,
    action: Option<String>,
}

async fn assign(
    State(face): State<Face>,
    KeyPath(task): KeyPath,
    Body(asked): Body<Assignment>,
) -> Answered<StatusCode> {
    let action = UserTaskAction::Assign {
        assignee: required_text("assignee", asked.assignee)?.into(),
        replace: asked.allow_override.unwrap_or(true),
    };
    let name = asked.action.unwrap_or_else(|| "assign".to_owned());
    ask(&face.gateway, Asked::Assign, (task, name), action).await
}

async fn unassign(State(face): State<Face>, KeyPath(task): KeyPath) -> Answered<StatusCode> {
    let action = UserTaskAction::Assign { assignee: Box::default(), replace: true };
    ask(&face.gateway, Asked::Assign, (task, "unassign".to_owned()), action).await
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Update {
    changeset: Option<Changeset>,
    action: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Changeset {
    due_date: Option<String>,
    follow_up_date: Option<String>,
    candidate_users: Option<Vec<String>>,
    candidate_groups: Option<Vec<String>>,
    priority: Option<i64>,
}

async fn update(
    State(face): State<Face>,
    KeyPath(task): KeyPath,
    MaybeBody(asked): MaybeBody<Update>,
) -> Answered<StatusCode> {
    let (given, has_action) = (asked.changeset.unwrap_or_default(), asked.action.is_some());
    let action = change(given)?;
    if action.1 && !has_action {
        return Err(Problem::invalid(
            "No update data provided. Provide at least an \"action\" or a non-null value for a \
             supported attribute in the \"changeset\".",
        ));
    }
    let name = asked.action.unwrap_or_else(|| "update".to_owned());
    ask(&face.gateway, Asked::Update, (task, name), action.0).await
}

/// The change, and whether it changes nothing.
fn change(given: Changeset) -> Answered<(UserTaskAction, bool)> {
    let Changeset { due_date, follow_up_date, candidate_users, candidate_groups, priority } = given;
    let nothing = due_date.is_none()
        && follow_up_date.is_none()
        && candidate_users.is_none()
        && candidate_groups.is_none()
        && priority.is_none();
    let priority = match priority {
        None => None,
        Some(given) => {
            match u32::try_from(given).ok().filter(|given| *given <= USER_TASK_PRIORITY_MAX) {
                Some(priority) => Some(priority),
                None => return Err(out_of_range("priority", given, "within the [0,100] range")),
            }
        }
    };
    let list = |given: Option<Vec<String>>| {
        given.map(|given| serde_json::to_string(&given).expect("texts are JSON").into())
    };
    let action = UserTaskAction::Change {
        candidate_groups: list(candidate_groups),
        candidate_users: list(candidate_users),
        due_date: due_date.map(Into::into),
        follow_up_date: follow_up_date.map(Into::into),
        priority,
    };
    Ok((action, nothing))
}

/// A command on a user task, as refusals name it.
#[derive(Clone, Copy)]
enum Asked {
    Complete,
    Assign,
    Update,
}

impl Asked {
    fn intent(self) -> &'static str {
        match self {
            Asked::Complete => "COMPLETE",
            Asked::Assign => "ASSIGN",
            Asked::Update => "UPDATE",
        }
    }

    /// What was expected to happen.
    fn what(self, task: i64) -> String {
        format!("{} user task with key '{task}'", self.intent().to_ascii_lowercase())
    }
}

async fn ask(
    gateway: &Gateway,
    asked: Asked,
    (task, name): (i64, String),
    action: UserTaskAction,
) -> Answered<StatusCode> {
    let command = UpdateUserTask { key: key(task), action, name: name.into() };
    let change = Change {
        command: FlowCommand::UpdateUserTask(command),
        intent: asked.intent(),
        what: asked.what(task),
    };
    change::change(gateway, change, |error| refused(asked, task, error)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn refused(asked: Asked, task: i64, error: GatewayError) -> Status {
    let rejection = match error {
        GatewayError::Rejected(rejection) => rejection,
        GatewayError::Overloaded { .. } | GatewayError::ShuttingDown | GatewayError::Stopped => {
            return not_taken(error);
        }
    };
    let why = known_reason(&rejection).unwrap_or_else(|| rejection.to_string());
    let reason = format!("Expected to {}, but {why}", asked.what(task));
    rejected_as(asked.intent(), rejection.kind(), &reason)
}

/// Why, in words that clients know.
fn known_reason(rejection: &Rejection) -> Option<String> {
    let Rejection::Flow(rejection) = rejection else { return None };
    if let FlowRejection::UserTaskNotFound { .. } = **rejection {
        return Some("no such user task was found".to_owned());
    }
    if let FlowRejection::UserTaskAssigned { .. } = **rejection {
        return Some("it has already been assigned".to_owned());
    }
    if let FlowRejection::UserTaskInTransition { event, .. } = **rejection {
        return Some(format!("it is in state '{}'", event.state()));
    }
    None
}
