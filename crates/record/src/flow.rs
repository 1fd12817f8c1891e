//! The vocabulary of flows: processes, their instances, messages, signals, decisions, user tasks.
//!
//! Every entity here has a key of the same kind as a job's; no two entities share one.

mod answer;
mod command;
mod event;
mod rejection;

use std::sync::Arc;

pub use answer::{
    Deployed, DeployedDefinition, Evaluated, EvaluatedDecision, EvaluatedInput, EvaluatedOutput,
    FlowAnswer, MatchedRule,
};
pub use command::{
    ActivateInstruction, BroadcastSignal, CancelInstance, CreateInstance, DecisionReference,
    DeleteResource, DeployResources, EvaluateDecision, FlowCommand, MigrateInstance,
    ModifyInstance, MoveAncestor, MoveInstruction, ProcessReference, PublishMessage, SetVariables,
    TerminateInstruction, UpdateUserTask, UserTaskAction, UserTaskCorrections, VariableInstruction,
};
pub use event::{
    DefinitionDeployed, DefinitionKind, ElementEntered, FlowEvent, FlowIncidentKind,
    InstanceStarted, JobRole, MessagePublished, NodeName, SubscriptionKind, SubscriptionOpened,
    UserTaskCreated, UserTaskEvent, UserTaskTransitionStarted,
};
pub use rejection::FlowRejection;

use crate::id::JobKey;

/// The queue in which jobs of a type wait that flows make, and that workers of the Zeebe API ask. Its
/// beginning keeps other faces from serving it by accident.
pub fn job_queue(job_type: &str) -> Arc<str> {
    format!("zeebe/{job_type}").into()
}

/// Names any entity of a flow. Job keys and these come from one counter.
pub type Key = JobKey;

/// "No entity" where a key is expected.
pub const NO_KEY: Key = JobKey::NONE;

/// The greatest priority of a user task.
pub const USER_TASK_PRIORITY_MAX: u32 = 100;
