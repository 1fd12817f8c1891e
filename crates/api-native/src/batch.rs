//! Batches of commands, each item for itself.

use windlass_gateway::request::{Answer, Refused};
use windlass_gateway::{Gateway, GatewayError};
use windlass_record::command::Command;

use crate::error::ApiError;

/// Gives the engine what makes a command, and refuses the rest beside it. What came of each, in order.
pub(crate) async fn give_each<T>(
    gateway: &Gateway,
    items: impl IntoIterator<Item = Result<Command, ApiError>>,
    refuse: impl Fn(ApiError) -> T,
    answer: impl Fn(Result<Answer, Refused>) -> T,
) -> Result<Vec<T>, GatewayError> {
    let mut commands = Vec::new();
    let mut refused = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        match item {
            Ok(command) => commands.push(command),
            Err(error) => refused.push((index, refuse(error))),
        }
    }
    let answers = gateway.commands(commands).await?;
    let mut results: Vec<T> = answers.into_iter().map(answer).collect();
    for (index, refusal) in refused {
        results.insert(index, refusal);
    }
    Ok(results)
}
