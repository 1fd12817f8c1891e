//! Why a command on flows was refused.

use std::fmt;
use std::sync::Arc;

use super::{JobRole, Key, UserTaskEvent};
use crate::rejection::RejectionKind;

/// A refusal. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowRejection {
    /// A resource cannot be deployed.
    InvalidResource {
        /// All problems, a line each: file, place, element, rule.
        problems: Arc<str>,
    },
    /// There is nothing to deploy.
    NothingToDeploy,
    /// No process has this key.
    DefinitionNotFound {
        /// The key.
        key: Key,
    },
    /// No process has this id.
    ProcessNotFound {
        /// The id.
        id: Arc<str>,
    },
    /// The process has no such version.
    VersionNotFound {
        /// The id.
        id: Arc<str>,
        /// The version.
        version: u32,
    },
    /// The process begins with an event only.
    NoNoneStart {
        /// The id.
        id: Arc<str>,
    },
    /// An element does not exist.
    ElementNotFound {
        /// Its id.
        id: Arc<str>,
    },
    /// An element is there but cannot be used so.
    ElementUnsuitable {
        /// Its id.
        id: Arc<str>,
        /// Why, the end of a sentence: "it is inside a multi-instance".
        why: &'static str,
    },
    /// No live instance has this key.
    InstanceNotFound {
        /// The key.
        key: Key,
    },
    /// The instance was called by another one, which must be cancelled instead.
    InstanceIsChild {
        /// The key.
        key: Key,
        /// The outermost instance.
        root: Key,
    },
    /// Another live instance has this business id.
    BusinessIdTaken {
        /// The id.
        id: Arc<str>,
        /// The instance that has it.
        holder: Key,
    },
    /// No live element instance has this key.
    ScopeNotFound {
        /// The key.
        key: Key,
    },
    /// Text that should be a JSON object is none.
    InvalidVariables {
        /// What is wrong with it.
        problem: Arc<str>,
    },
    /// A message with this name, correlation key and id is buffered already.
    MessageExists {
        /// Its id.
        id: Arc<str>,
    },
    /// Nobody waits for the message.
    NotCorrelated {
        /// Its name.
        name: Arc<str>,
        /// Its correlation key.
        correlation_key: Arc<str>,
    },
    /// No decision has this id.
    DecisionNotFound {
        /// The id.
        id: Arc<str>,
    },
    /// No decision has this key.
    DecisionKeyNotFound {
        /// The key.
        key: Key,
    },
    /// No resource has this key.
    ResourceNotFound {
        /// The key.
        key: Key,
    },
    /// Instances of the definition are running.
    ResourceInUse {
        /// The key.
        key: Key,
        /// One of them.
        instance: Key,
    },
    /// The migration plan cannot be followed.
    NotMigratable {
        /// The instance.
        instance: Key,
        /// Which element.
        element: Arc<str>,
        /// Why, the end of a sentence.
        why: &'static str,
    },
    /// The migration plan is wrong in itself.
    InvalidPlan {
        /// Which element.
        element: Arc<str>,
        /// Why, the end of a sentence.
        why: &'static str,
    },
    /// No user task has this key.
    UserTaskNotFound {
        /// The key.
        key: Key,
    },
    /// Somebody has the user task.
    UserTaskAssigned {
        /// The key.
        key: Key,
        /// Who.
        assignee: Arc<str>,
    },
    /// A user task is about to change already: its listeners are asked.
    UserTaskInTransition {
        /// The key.
        key: Key,
        /// What is about to happen.
        event: UserTaskEvent,
    },
    /// No user task has this priority.
    UserTaskPriority {
        /// The user task.
        key: Key,
        /// What was asked for.
        given: u32,
    },
    /// A listener may not say so.
    ListenerSaysTooMuch {
        /// Its job.
        job: Key,
        /// Why, the end of a sentence.
        why: &'static str,
    },
    /// The job of a listener cannot throw its element's errors.
    ListenerThrows {
        /// The job.
        job: Key,
        /// Whose listener it is.
        role: JobRole,
    },
    /// An element cannot be worked on in its state.
    ElementInWrongState {
        /// The element instance.
        key: Key,
    },
    /// Something about a workflow: its clients read the words, so they are Conductor's.
    Workflow {
        /// What sort of refusal it is.
        kind: RejectionKind,
        /// The sentence.
        message: Arc<str>,
    },
}

impl FlowRejection {
    /// What sort of refusal it is.
    pub fn kind(&self) -> RejectionKind {
        match self {
            FlowRejection::DefinitionNotFound { .. }
            | FlowRejection::ProcessNotFound { .. }
            | FlowRejection::VersionNotFound { .. }
            | FlowRejection::InstanceNotFound { .. }
            | FlowRejection::ScopeNotFound { .. }
            | FlowRejection::NotCorrelated { .. }
            | FlowRejection::DecisionNotFound { .. }
            | FlowRejection::DecisionKeyNotFound { .. }
            | FlowRejection::ResourceNotFound { .. }
            | FlowRejection::UserTaskNotFound { .. } => RejectionKind::NotFound,
            FlowRejection::Workflow { kind, .. } => *kind,
            FlowRejection::MessageExists { .. } | FlowRejection::BusinessIdTaken { .. } => {
                RejectionKind::AlreadyExists
            }
            FlowRejection::NoNoneStart { .. }
            | FlowRejection::InstanceIsChild { .. }
            | FlowRejection::ResourceInUse { .. }
            | FlowRejection::NotMigratable { .. }
            | FlowRejection::UserTaskAssigned { .. }
            | FlowRejection::UserTaskInTransition { .. }
            | FlowRejection::ListenerThrows { .. }
            | FlowRejection::ElementInWrongState { .. } => RejectionKind::FailedPrecondition,
            FlowRejection::InvalidResource { .. }
            | FlowRejection::NothingToDeploy
            | FlowRejection::ElementNotFound { .. }
            | FlowRejection::ElementUnsuitable { .. }
            | FlowRejection::InvalidVariables { .. }
            | FlowRejection::UserTaskPriority { .. }
            | FlowRejection::ListenerSaysTooMuch { .. }
            | FlowRejection::InvalidPlan { .. } => RejectionKind::InvalidArgument,
        }
    }

    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            FlowRejection::InvalidResource { .. } => "invalid-resource",
            FlowRejection::NothingToDeploy => "nothing-to-deploy",
            FlowRejection::DefinitionNotFound { .. } => "definition-not-found",
            FlowRejection::ProcessNotFound { .. } => "process-not-found",
            FlowRejection::VersionNotFound { .. } => "version-not-found",
            FlowRejection::NoNoneStart { .. } => "no-none-start",
            FlowRejection::ElementNotFound { .. } => "element-not-found",
            FlowRejection::ElementUnsuitable { .. } => "element-unsuitable",
            FlowRejection::InstanceNotFound { .. } => "instance-not-found",
            FlowRejection::InstanceIsChild { .. } => "instance-is-child",
            FlowRejection::BusinessIdTaken { .. } => "business-id-taken",
            FlowRejection::ScopeNotFound { .. } => "scope-not-found",
            FlowRejection::InvalidVariables { .. } => "invalid-variables",
            FlowRejection::MessageExists { .. } => "message-exists",
            FlowRejection::NotCorrelated { .. } => "not-correlated",
            FlowRejection::DecisionNotFound { .. } | FlowRejection::DecisionKeyNotFound { .. } => {
                "decision-not-found"
            }
            FlowRejection::ResourceNotFound { .. } => "resource-not-found",
            FlowRejection::ResourceInUse { .. } => "resource-in-use",
            FlowRejection::NotMigratable { .. } => "not-migratable",
            FlowRejection::InvalidPlan { .. } => "invalid-plan",
            FlowRejection::UserTaskNotFound { .. } => "user-task-not-found",
            FlowRejection::UserTaskAssigned { .. } => "user-task-assigned",
            FlowRejection::UserTaskInTransition { .. } => "user-task-in-transition",
            FlowRejection::UserTaskPriority { .. } => "user-task-priority",
            FlowRejection::ListenerSaysTooMuch { .. } => "listener-says-too-much",
            FlowRejection::ListenerThrows { .. } => "listener-throws",
            FlowRejection::ElementInWrongState { .. } => "element-in-wrong-state",
            FlowRejection::Workflow { .. } => "workflow",
        }
    }
}

const NOTHING_TO_DEPLOY: &str = "expected at least one resource to deploy, but none was given";

impl fmt::Display for FlowRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlowRejection::InvalidResource { problems } => f.write_str(problems),
            FlowRejection::Workflow { message, .. } => f.write_str(message),
            FlowRejection::NothingToDeploy => f.write_str(NOTHING_TO_DEPLOY),
            FlowRejection::DefinitionNotFound { key } => {
                write!(f, "no process definition has the key {key}")
            }
            FlowRejection::ProcessNotFound { id } => {
                write!(f, "no process definition has the id '{id}'")
            }
            FlowRejection::VersionNotFound { id, version } => {
                write!(f, "no process definition has the id '{id}' and version {version}")
            }
            FlowRejection::NoNoneStart { id } => {
                write!(f, "process '{id}' has no none start event: an event must start it")
            }
            FlowRejection::ElementNotFound { id } => write!(f, "no element has the id '{id}'"),
            FlowRejection::ElementUnsuitable { id, why } => {
                write!(f, "element '{id}' cannot be used here: {why}")
            }
            FlowRejection::InstanceNotFound { key } => {
                write!(f, "no such process instance was found: {key}")
            }
            FlowRejection::InstanceIsChild { key, root } => write!(
                f,
                "process instance {key} was created by a call activity: cancel its root, {root}"
            ),
            FlowRejection::BusinessIdTaken { id, holder } => {
                write!(f, "the live process instance {holder} has the business id '{id}'")
            }
            FlowRejection::ScopeNotFound { key } => {
                write!(f, "no live element instance has the key {key}")
            }
            FlowRejection::InvalidVariables { problem } => {
                write!(f, "variables must be a JSON object: {problem}")
            }
            FlowRejection::MessageExists { id } => {
                write!(f, "a message with the id '{id}' is already published")
            }
            FlowRejection::NotCorrelated { name, correlation_key } => write!(
                f,
                "nothing waits for message '{name}' with the correlation key '{correlation_key}'"
            ),
            FlowRejection::DecisionNotFound { id } => write!(
                f,
                "expected to evaluate decision '{id}', but no decision found for id '{id}'"
            ),
            FlowRejection::DecisionKeyNotFound { key } => write!(
                f,
                "expected to evaluate decision {key}, but no decision found for key {key}"
            ),
            FlowRejection::ResourceNotFound { key } => write!(f, "no resource has the key {key}"),
            FlowRejection::ResourceInUse { key, instance } => {
                write!(f, "process instance {instance} still runs with definition {key}")
            }
            FlowRejection::NotMigratable { instance, element, why } => {
                write!(
                    f,
                    "process instance {instance} cannot be migrated: element '{element}' {why}"
                )
            }
            FlowRejection::InvalidPlan { element, why } => {
                write!(f, "the migration plan is wrong: element '{element}' {why}")
            }
            FlowRejection::UserTaskNotFound { key } => write!(f, "no user task has the key {key}"),
            FlowRejection::UserTaskAssigned { key, assignee } => {
                write!(f, "user task {key} is assigned to '{assignee}'")
            }
            FlowRejection::UserTaskInTransition { key, event } => in_transition(f, *key, *event),
            FlowRejection::UserTaskPriority { key, given } => {
                write!(f, "the priority of user task {key} must be 0 to 100, not {given}")
            }
            FlowRejection::ListenerSaysTooMuch { job, why } => too_much(f, *job, why),
            FlowRejection::ListenerThrows { job, .. } => {
                write!(f, "job {job} is a listener's, which cannot throw errors of its element")
            }
            FlowRejection::ElementInWrongState { key } => {
                write!(f, "element instance {key} is not active")
            }
        }
    }
}

fn in_transition(f: &mut fmt::Formatter<'_>, key: Key, event: UserTaskEvent) -> fmt::Result {
    write!(f, "user task {key} is in state '{}'", event.state())
}

fn too_much(f: &mut fmt::Formatter<'_>, job: Key, why: &str) -> fmt::Result {
    write!(f, "job {job} cannot be completed so: {why}")
}
