//! Messages and signals.

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tonic::Status;
use windlass_gateway::GatewayError;
use windlass_gateway::request::Answer;
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand, FlowRejection, PublishMessage};
use windlass_record::rejection::Rejection;

use crate::flow::{AskedOfFlows, number, other_answer, refused};
use crate::protocol as p;
use crate::queue::TENANT_DEFAULT;
use crate::refusal::{not_yet, rejected_as};
use crate::rest::Face;
use crate::rest::extract::{Body, Key, Shown};
use crate::rest::problem::Answered;
use crate::rest::shape::{required_text, text};
use crate::{document, message, tenant};

pub(super) fn routes() -> Router<Face> {
    Router::new()
        .route("/messages/publication", post(publish))
        .route("/messages/correlation", post(correlate))
        .route("/signals/broadcast", post(broadcast))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Message {
    name: Option<String>,
    correlation_key: Option<String>,
    time_to_live: Option<i64>,
    message_id: Option<String>,
    variables: Option<Box<RawValue>>,
    tenant_id: Option<String>,
    business_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    tenant_id: String,
    message_key: Key,
}

async fn publish(
    State(face): State<Face>,
    Body(asked): Body<Message>,
) -> Answered<Shown<Published>> {
    let given = p::PublishMessageRequest {
        name: required_text("name", asked.name)?,
        correlation_key: asked.correlation_key.unwrap_or_default(),
        time_to_live: asked.time_to_live.unwrap_or(0),
        message_id: asked.message_id.unwrap_or_default(),
        variables: text(asked.variables),
        tenant_id: asked.tenant_id.unwrap_or_default(),
        business_id: asked.business_id,
    };
    let published = message::publish_message(&face.gateway, given).await?;
    let message_key = Key(published.key);
    Ok(Shown(Published { tenant_id: published.tenant_id, message_key }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Correlated {
    tenant_id: &'static str,
    message_key: Key,
    process_instance_key: Key,
}

/// The other wire does not have this one: a message for somebody who waits for it now.
async fn correlate(
    State(face): State<Face>,
    Body(asked): Body<Message>,
) -> Answered<Shown<Correlated>> {
    let name = required_text("name", asked.name)?;
    let tenant = tenant::one("CorrelateMessage", &asked.tenant_id.unwrap_or_default())?;
    if asked.business_id.is_some_and(|id| !id.is_empty()) {
        let missing = "a message does not look for a business id";
        return Err(not_yet("CorrelateMessage with a business id", missing).into());
    }
    let command = PublishMessage {
        tenant: tenant.into(),
        name: name.into(),
        correlation_key: asked.correlation_key.unwrap_or_default().into(),
        message_id: Box::default(),
        time_to_live_ms: 0,
        variables: document::variables(&text(asked.variables))?,
        must_correlate: true,
    };
    let command = Command::Flow(FlowCommand::PublishMessage(command));
    match face.gateway.command(command).await {
        Ok(Answer::Flow(FlowAnswer::Correlated { message, instance })) => Ok(Shown(Correlated {
            tenant_id: TENANT_DEFAULT,
            message_key: Key(number(message)),
            process_instance_key: Key(number(instance)),
        })),
        Ok(_) => Err(other_answer().into()),
        Err(error) => Err(not_correlated(error).into()),
    }
}

fn not_correlated(error: GatewayError) -> Status {
    match &error {
        GatewayError::Rejected(rejection) => {
            let reason = match waits_not(rejection) {
                Some((name, correlation_key)) => format!(
                    "Expected to find subscription for message with name '{name}' and correlation \
                     key '{correlation_key}', but none was found."
                ),
                None => format!("Expected to correlate a message, but {rejection}"),
            };
            rejected_as("CORRELATE", rejection.kind(), &reason)
        }
        GatewayError::Overloaded { .. } | GatewayError::ShuttingDown | GatewayError::Stopped => {
            refused(AskedOfFlows::Publish, error)
        }
    }
}

/// The name and the correlation key that nobody waits for.
fn waits_not(rejection: &Rejection) -> Option<(&str, &str)> {
    let Rejection::Flow(rejection) = rejection else { return None };
    let FlowRejection::NotCorrelated { name, correlation_key } = &**rejection else { return None };
    Some((name, correlation_key))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Signal {
    signal_name: Option<String>,
    variables: Option<Box<RawValue>>,
    tenant_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Broadcast {
    tenant_id: String,
    signal_key: Key,
}

async fn broadcast(
    State(face): State<Face>,
    Body(asked): Body<Signal>,
) -> Answered<Shown<Broadcast>> {
    let given = p::BroadcastSignalRequest {
        signal_name: required_text("signalName", asked.signal_name)?,
        variables: text(asked.variables),
        tenant_id: asked.tenant_id.unwrap_or_default(),
    };
    let done = message::broadcast_signal(&face.gateway, given).await?;
    Ok(Shown(Broadcast { tenant_id: done.tenant_id, signal_key: Key(done.key) }))
}
