//! One file per command on flows: what it means, what refuses it, what follows.

mod broadcast;
mod cancel;
mod create;
mod delete;
mod deploy;
mod evaluate;
mod migrate;
mod modify;
mod publish;
mod resolve;
mod user_task;
mod variables;

pub use resolve::resolve;

use windlass_record::flow::{FlowAnswer, FlowCommand, FlowRejection};

use crate::conductor;
use crate::kernel::Port;

/// Decides a command on flows.
pub fn decide<P: Port>(port: &mut P, command: &FlowCommand) -> Result<FlowAnswer, FlowRejection> {
    match command {
        FlowCommand::DeployResources(command) => deploy::decide(port, command),
        FlowCommand::DeleteResource(command) => delete::decide(port, command),
        FlowCommand::CreateInstance(command) => create::decide(port, command),
        FlowCommand::CancelInstance(command) => cancel::decide(port, command),
        FlowCommand::ModifyInstance(command) => modify::decide(port, command),
        FlowCommand::MigrateInstance(command) => migrate::decide(port, command),
        FlowCommand::SetVariables(command) => variables::decide(port, command),
        FlowCommand::PublishMessage(command) => publish::decide(port, command),
        FlowCommand::BroadcastSignal(command) => broadcast::decide(port, command),
        FlowCommand::EvaluateDecision(command) => evaluate::decide(port, command),
        FlowCommand::UpdateUserTask(command) => user_task::decide(port, command),
        FlowCommand::Workflow(command) => {
            Ok(FlowAnswer::Workflow(conductor::verb::decide(port, command)?))
        }
    }
}
