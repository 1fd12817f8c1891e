//! The entities: what is read of each, and what it is filtered and sorted by.

mod definition;
mod instance;
mod job;
mod wait;
mod workflow;

pub use definition::{
    DecisionDefinition, DecisionDefinitionField, DecisionRequirements, DecisionRequirementsField,
    ProcessDefinition, ProcessDefinitionField,
};
pub use instance::{
    ElementInstance, ElementInstanceField, ProcessInstance, ProcessInstanceField, Variable,
    VariableField,
};
pub use job::{Job, JobField};
pub use wait::{
    Incident, IncidentField, MessageSubscription, MessageSubscriptionField, UserTask, UserTaskField,
};
pub use workflow::{Task, TaskField, Workflow, WorkflowField};
