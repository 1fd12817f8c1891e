//! What commands on flows are answered with.

use std::sync::Arc;

use super::{DefinitionKind, Key};
use crate::workflow::WorkflowAnswer;

/// What a command on flows that was not refused is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowAnswer {
    /// Nothing more to say.
    Done,
    /// What was deployed.
    Deployed(Box<Deployed>),
    /// The new instance.
    InstanceCreated {
        /// Its key.
        key: Key,
        /// Its definition.
        definition: Key,
        /// The process's id.
        process_id: Arc<str>,
        /// The definition's version.
        version: u32,
    },
    /// The key of whatever was made: a message, a signal, a set of variables.
    Key(Key),
    /// The message, and an instance that it was correlated to.
    Correlated {
        /// The message.
        message: Key,
        /// The instance.
        instance: Key,
    },
    /// What a decision came to.
    Evaluated(Box<Evaluated>),
    /// Of a command on workflows.
    Workflow(WorkflowAnswer),
    /// A user task's listeners are asked first. What comes of it is told when they are through.
    UserTaskPending {
        /// The user task.
        task: Key,
        /// The key of what was asked for, if it has one: a set of variables.
        key: Key,
    },
}

/// A deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployed {
    /// Its key.
    pub key: Key,
    /// What it holds, in the order of its resources.
    pub definitions: Vec<DeployedDefinition>,
}

/// One definition of a deployment, new or there already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeployedDefinition {
    /// What it is.
    pub kind: DefinitionKind,
    /// Its key.
    pub key: Key,
    /// Its id.
    pub id: Arc<str>,
    /// Its version.
    pub version: u32,
    /// The author's name of the version; may be empty.
    pub version_tag: Arc<str>,
    /// For people.
    pub name: Arc<str>,
    /// The resource it stands in.
    pub resource: Arc<str>,
    /// Decision: the key of its requirements graph.
    pub group: Key,
    /// Decision: the id of its requirements graph.
    pub group_id: Arc<str>,
}

/// See [`FlowAnswer::Evaluated`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluated {
    /// The decision asked for.
    pub decision: DeployedDefinition,
    /// The result, JSON; `null` when it failed.
    pub output: String,
    /// The decision that failed; empty when none did.
    pub failed_id: String,
    /// Why.
    pub failure: String,
    /// All decisions that were evaluated, in order.
    pub decisions: Vec<EvaluatedDecision>,
    /// The evaluation's own key.
    pub instance: Key,
}

/// One evaluated decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatedDecision {
    /// The decision.
    pub definition: DeployedDefinition,
    /// `DECISION_TABLE`, `LITERAL_EXPRESSION` and so on.
    pub decision_type: String,
    /// Its result, JSON.
    pub output: String,
    /// Its inputs.
    pub inputs: Vec<EvaluatedInput>,
    /// The rules that matched.
    pub rules: Vec<MatchedRule>,
}

/// One input of an evaluated table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatedInput {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its value, JSON.
    pub value: String,
}

/// One output of a matched rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatedOutput {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its value, JSON.
    pub value: String,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchedRule {
    /// Its id.
    pub id: String,
    /// Its place in the table, from 1.
    pub index: u32,
    /// What it says.
    pub outputs: Vec<EvaluatedOutput>,
}
