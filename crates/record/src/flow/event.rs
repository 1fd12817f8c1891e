//! What happened in flows.

use std::borrow::Cow;

use super::Key;
use crate::workflow::WorkflowEvent;

/// An event of a flow. As with jobs, events carry outcomes: `apply` computes nothing that an
/// expression or a rule decided.
///
/// A change that has consequences puts its element on the **to-do list** of the state; each
/// [`FlowEvent::StepTaken`] takes the oldest entry off. What remains to be done is thus part of the
/// state, after a replay too.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum FlowEvent<'a> {
    /// The oldest entry of the to-do list is being worked on.
    StepTaken,
    /// A file is kept.
    ResourceDeployed {
        /// Its key.
        key: Key,
        /// The wall of security.
        tenant: &'a str,
        /// Its name.
        name: &'a str,
        /// What is in it.
        #[cfg_attr(feature = "serde", serde(serialize_with = "crate::shown::bytes"))]
        bytes: &'a [u8],
    },
    /// A definition exists from now on.
    DefinitionDeployed(DefinitionDeployed<'a>),
    /// A definition is gone.
    DefinitionDeleted {
        /// Which one.
        key: Key,
    },
    /// A process instance begins; on the to-do list.
    InstanceStarted(InstanceStarted<'a>),
    /// An element is entered; on the to-do list.
    ElementEntered(ElementEntered),
    /// An element's work began: it waits, or its children run.
    ElementActivated {
        /// The element instance.
        key: Key,
    },
    /// An element is on its way out; on the to-do list.
    ElementCompleting {
        /// The element instance.
        key: Key,
    },
    /// An element is done and gone.
    ElementCompleted {
        /// The element instance.
        key: Key,
    },
    /// An element is to end; on the to-do list.
    ElementTerminating {
        /// The element instance.
        key: Key,
    },
    /// An element is ended and gone.
    ElementTerminated {
        /// The element instance.
        key: Key,
    },
    /// The element has something to go on with; on the to-do list.
    ElementQueued {
        /// The element instance.
        key: Key,
    },
    /// A token waits at a gateway for others.
    TokenParked {
        /// The scope.
        scope: Key,
        /// The flow that it came by.
        flow: u32,
    },
    /// Variables of one scope have new values.
    VariablesSet {
        /// The element instance.
        scope: Key,
        /// Names and values, JSON.
        variables: Cow<'a, [(Cow<'a, str>, Cow<'a, str>)]>,
    },
    /// The element waits for a job.
    JobAttached {
        /// The element instance.
        element: Key,
        /// The job.
        job: Key,
        /// What for.
        role: JobRole,
    },
    /// The element's job is gone.
    JobDetached {
        /// The element instance.
        element: Key,
        /// The job.
        job: Key,
    },
    /// The element's jobs before or after its work are done up to this one.
    ListenerPassed {
        /// The element instance.
        element: Key,
        /// The number of the next one.
        next: u32,
    },
    /// A multi-instance knows its items; on the to-do list.
    LoopStarted {
        /// The element instance around the instances.
        element: Key,
        /// The items, JSON each.
        items: Cow<'a, [Cow<'a, str>]>,
    },
    /// One instance of a multi-instance gave its result.
    LoopCollected {
        /// The element instance around the instances.
        element: Key,
        /// Which item, from 0.
        index: u32,
        /// The result, JSON; empty when nothing is collected.
        value: &'a str,
    },
    /// The completion condition of a multi-instance held; on the to-do list.
    LoopSatisfied {
        /// The element instance around the instances.
        element: Key,
    },
    /// An event happened to an element: a boundary event, one behind an event-based gateway, the
    /// start of an event sub-process. On the to-do list.
    EventTriggered {
        /// The element instance that waited.
        element: Key,
        /// The node of the event.
        node: u32,
        /// What came with it: names and values, JSON.
        variables: Cow<'a, [(Cow<'a, str>, Cow<'a, str>)]>,
    },
    /// A triggered event was followed up.
    EventTaken {
        /// The element instance that waited.
        element: Key,
    },
    /// A timer runs.
    TimerArmed {
        /// Its key.
        key: Key,
        /// The element instance, or the definition whose start event it is.
        owner: Key,
        /// The node of the event.
        node: u32,
        /// When it fires.
        due_ms: u64,
        /// How often it fires after that; `None` is for ever.
        repetitions: Option<u32>,
    },
    /// A timer fired or is no longer wanted.
    TimerGone {
        /// Which one.
        key: Key,
    },
    /// Somebody waits for a message or a signal.
    SubscriptionOpened(SubscriptionOpened<'a>),
    /// Somebody no longer waits.
    SubscriptionClosed {
        /// Which one.
        key: Key,
    },
    /// A message came; on the to-do list.
    MessagePublished(MessagePublished<'a>),
    /// A message reached one who waited, or started an instance.
    MessageCorrelated {
        /// The message.
        message: Key,
        /// The process's id: a message reaches each process once.
        process_id: &'a str,
        /// The instance.
        instance: Key,
        /// The instance's element, or 0 when it was started.
        element: Key,
    },
    /// The message has more to do; on the to-do list.
    MessageQueued {
        /// The message.
        key: Key,
    },
    /// A message is no longer buffered.
    MessageExpired {
        /// The message.
        key: Key,
    },
    /// A signal came; on the to-do list.
    SignalBroadcast {
        /// Its key.
        key: Key,
        /// The wall of security.
        tenant: &'a str,
        /// Its name.
        name: &'a str,
        /// A JSON object.
        variables: &'a str,
    },
    /// A signal reached all up to this subscription; on the to-do list.
    SignalProgressed {
        /// The signal.
        key: Key,
        /// The last subscription that it reached.
        through: Key,
    },
    /// A signal reached everybody.
    SignalEnded {
        /// The signal.
        key: Key,
    },
    /// An element waits for a person.
    IncidentRaised {
        /// The incident.
        key: Key,
        /// The element instance.
        element: Key,
        /// Of which kind.
        kind: FlowIncidentKind,
        /// What went wrong.
        message: &'a str,
    },
    /// A person said: try again. On the to-do list.
    IncidentResolved {
        /// The incident.
        key: Key,
    },
    /// A user task waits for a person.
    UserTaskCreated(Box<UserTaskCreated<'a>>),
    /// A user task has new properties: all of them.
    UserTaskChanged(Box<UserTaskCreated<'a>>),
    /// A user task is done or no longer wanted.
    UserTaskEnded {
        /// The user task.
        key: Key,
        /// Done, or no longer wanted.
        completed: bool,
    },
    /// An instance goes on with another definition.
    InstanceMigrated {
        /// The instance.
        instance: Key,
        /// The definition it goes on with.
        definition: Key,
        /// Nodes, from and to; all that have live element instances.
        nodes: Cow<'a, [(u32, u32)]>,
    },
    /// A completed activity could be undone later.
    CompensationKept {
        /// The scope.
        scope: Key,
        /// The node that was completed.
        node: u32,
        /// Its local variables, names and values.
        variables: Cow<'a, [(Cow<'a, str>, Cow<'a, str>)]>,
    },
    /// A completed activity is being undone.
    CompensationTaken {
        /// The scope.
        scope: Key,
        /// The node that was completed.
        node: u32,
    },
    /// A key was given out for what leaves nothing else behind: nothing else gets it.
    KeyUsed {
        /// The key.
        key: Key,
    },
    /// Something happened in a workflow.
    Workflow(WorkflowEvent<'a>),
    /// A user task is about to change, and its listeners are asked first; on the to-do list.
    UserTaskTransitionStarted(Box<UserTaskTransitionStarted<'a>>),
    /// A listener corrected what a user task is to be after its transition: all properties.
    UserTaskCorrected(Box<UserTaskCreated<'a>>),
    /// A user task's transition is over, and it waits for a person again.
    UserTaskTransitionEnded {
        /// The user task.
        key: Key,
        /// Whether a listener denied it: nothing was changed.
        denied: bool,
        /// Why, for people.
        reason: &'a str,
    },
}

/// See [`FlowEvent::DefinitionDeployed`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DefinitionDeployed<'a> {
    /// Its key.
    pub key: Key,
    /// The deployment that brought it.
    pub deployment: Key,
    /// The file it stands in.
    pub resource: Key,
    /// The wall of security.
    pub tenant: &'a str,
    /// What it is.
    pub kind: DefinitionKind,
    /// Its id.
    pub id: &'a str,
    /// Its version, from 1.
    pub version: u32,
    /// The author's name of the version.
    pub version_tag: &'a str,
    /// For people.
    pub name: &'a str,
    /// Decision: its requirements graph.
    pub group: Key,
    /// Process: its elements by number.
    pub nodes: Cow<'a, [NodeName<'a>]>,
}

/// An element of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct NodeName<'a> {
    /// Its id.
    pub id: Cow<'a, str>,
    /// For people.
    pub name: Cow<'a, str>,
    /// `SERVICE_TASK` and so on.
    pub element_type: Cow<'a, str>,
}

/// What a definition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum DefinitionKind {
    /// A process.
    Process,
    /// A decision.
    Decision,
    /// The graph that decisions stand in.
    DecisionRequirements,
    /// A form.
    Form,
    /// Any other file.
    Resource,
}

/// See [`FlowEvent::InstanceStarted`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InstanceStarted<'a> {
    /// Its key, which is also that of the element instance of the whole process.
    pub key: Key,
    /// Its definition.
    pub definition: Key,
    /// The call activity that it runs for, or 0.
    pub parent: Key,
    /// The outermost instance; itself when nothing called it.
    pub root: Key,
    /// The nodes that it starts at.
    pub starts: Cow<'a, [u32]>,
    /// The caller's own name of it.
    pub business_id: &'a str,
    /// Words to find it by.
    pub tags: Cow<'a, [Cow<'a, str>]>,
    /// Whether somebody waits for its end.
    pub awaited: bool,
    /// The correlation key of the message that started it; no other instance of the process is
    /// started by one with the same key while it lives. Empty is none.
    pub started_by: &'a str,
}

/// See [`FlowEvent::ElementEntered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ElementEntered {
    /// Its key.
    pub key: Key,
    /// The element instance that it stands in.
    pub scope: Key,
    /// Its node.
    pub node: u32,
    /// One instance of a multi-instance: its number, from 1.
    pub loop_counter: u32,
    /// Of a scope: the node to begin at instead of its start event.
    pub begin_at: Option<u32>,
}

/// What a job does for its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum JobRole {
    /// The element's work.
    Work,
    /// Before the work.
    StartListener,
    /// After the work.
    EndListener,
    /// Before a user task is there.
    CreatingListener,
    /// Before a user task is somebody else's.
    AssigningListener,
    /// Before a user task has other properties.
    UpdatingListener,
    /// Before a user task is done.
    CompletingListener,
    /// Before a user task is no longer wanted.
    CancelingListener,
}

/// What is about to happen to a user task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum UserTaskEvent {
    /// It is made.
    Creating,
    /// It becomes somebody's, or nobody's.
    Assigning,
    /// It gets other properties or variables.
    Updating,
    /// It is done.
    Completing,
    /// It is no longer wanted.
    Canceling,
}

/// See [`FlowEvent::SubscriptionOpened`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SubscriptionOpened<'a> {
    /// Its key.
    pub key: Key,
    /// The element instance, or the definition whose start event it is.
    pub owner: Key,
    /// The node of the event.
    pub node: u32,
    /// For what.
    pub kind: SubscriptionKind,
    /// The name of the message or signal.
    pub name: &'a str,
    /// What a message is correlated by.
    pub correlation_key: &'a str,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum SubscriptionKind {
    /// A message.
    Message,
    /// A signal.
    Signal,
}

/// See [`FlowEvent::MessagePublished`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MessagePublished<'a> {
    /// Its key.
    pub key: Key,
    /// The wall of security.
    pub tenant: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it is correlated by.
    pub correlation_key: &'a str,
    /// The publisher's id of it; may be empty.
    pub message_id: &'a str,
    /// Until when it is buffered; 0 is not at all.
    pub until_ms: u64,
    /// A JSON object.
    pub variables: &'a str,
}

/// Why an element waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum FlowIncidentKind {
    /// A mapping failed.
    IoMapping,
    /// A condition failed, or none held and there is no default.
    Condition,
    /// A value could not be computed or is of the wrong type.
    ExtractValue,
    /// The called process is not there.
    CalledElement,
    /// Nothing catches the error.
    UnhandledError,
    /// A result is too large.
    MessageSize,
    /// The called decision is not there.
    CalledDecision,
    /// The decision failed.
    DecisionEvaluation,
    /// The form is not there.
    FormNotFound,
    /// A file is not there.
    ResourceNotFound,
}

/// See [`FlowEvent::UserTaskCreated`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct UserTaskCreated<'a> {
    /// Its key.
    pub key: Key,
    /// The element instance.
    pub element: Key,
    /// Whose it is; may be empty.
    pub assignee: Cow<'a, str>,
    /// Who may take it, a JSON list of text.
    pub candidate_groups: Cow<'a, str>,
    /// Who may take it, a JSON list of text.
    pub candidate_users: Cow<'a, str>,
    /// By when; may be empty.
    pub due_date: Cow<'a, str>,
    /// When to look at it again; may be empty.
    pub follow_up_date: Cow<'a, str>,
    /// 0..=100.
    pub priority: u32,
    /// The key of its form, or 0.
    pub form: Key,
    /// A form somewhere else; may be empty.
    pub form_reference: Cow<'a, str>,
    /// Static headers, a JSON object of text.
    pub headers: Cow<'a, str>,
}

/// See [`FlowEvent::UserTaskTransitionStarted`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct UserTaskTransitionStarted<'a> {
    /// What the user task is to be: all properties.
    pub task: UserTaskCreated<'a>,
    /// What is about to happen.
    pub event: UserTaskEvent,
    /// What the caller calls it; may be empty.
    pub action: Cow<'a, str>,
    /// Creating: whose it is to be next, when listeners are asked about that; may be empty.
    pub assignee: Cow<'a, str>,
    /// What is written when nobody denies it: names and values, JSON.
    pub variables: Cow<'a, [(Cow<'a, str>, Cow<'a, str>)]>,
    /// Updating: written in exactly the scope of the element.
    pub local: bool,
}

impl JobRole {
    /// Of a user task's listener: what it listens to.
    pub fn user_task_event(self) -> Option<UserTaskEvent> {
        match self {
            JobRole::Work | JobRole::StartListener | JobRole::EndListener => None,
            JobRole::CreatingListener => Some(UserTaskEvent::Creating),
            JobRole::AssigningListener => Some(UserTaskEvent::Assigning),
            JobRole::UpdatingListener => Some(UserTaskEvent::Updating),
            JobRole::CompletingListener => Some(UserTaskEvent::Completing),
            JobRole::CancelingListener => Some(UserTaskEvent::Canceling),
        }
    }
}

impl UserTaskEvent {
    /// The role of the jobs of its listeners.
    pub fn role(self) -> JobRole {
        match self {
            UserTaskEvent::Creating => JobRole::CreatingListener,
            UserTaskEvent::Assigning => JobRole::AssigningListener,
            UserTaskEvent::Updating => JobRole::UpdatingListener,
            UserTaskEvent::Completing => JobRole::CompletingListener,
            UserTaskEvent::Canceling => JobRole::CancelingListener,
        }
    }

    /// The state of a user task while its listeners are asked, as Zeebe's API shows it.
    pub fn state(self) -> &'static str {
        match self {
            UserTaskEvent::Creating => "CREATING",
            UserTaskEvent::Assigning => "ASSIGNING",
            UserTaskEvent::Updating => "UPDATING",
            UserTaskEvent::Completing => "COMPLETING",
            UserTaskEvent::Canceling => "CANCELING",
        }
    }

    /// Whether a listener may say that it must not happen.
    pub fn may_be_denied(self) -> bool {
        match self {
            UserTaskEvent::Assigning | UserTaskEvent::Updating | UserTaskEvent::Completing => true,
            UserTaskEvent::Creating | UserTaskEvent::Canceling => false,
        }
    }
}

impl FlowIncidentKind {
    /// Its name as Zeebe's API shows it.
    pub fn name(self) -> &'static str {
        match self {
            FlowIncidentKind::IoMapping => "IO_MAPPING_ERROR",
            FlowIncidentKind::Condition => "CONDITION_ERROR",
            FlowIncidentKind::ExtractValue => "EXTRACT_VALUE_ERROR",
            FlowIncidentKind::CalledElement => "CALLED_ELEMENT_ERROR",
            FlowIncidentKind::UnhandledError => "UNHANDLED_ERROR_EVENT",
            FlowIncidentKind::MessageSize => "MESSAGE_SIZE_EXCEEDED",
            FlowIncidentKind::CalledDecision => "CALLED_DECISION_ERROR",
            FlowIncidentKind::DecisionEvaluation => "DECISION_EVALUATION_ERROR",
            FlowIncidentKind::FormNotFound => "FORM_NOT_FOUND",
            FlowIncidentKind::ResourceNotFound => "RESOURCE_NOT_FOUND",
        }
    }
}

impl FlowEvent<'_> {
    /// About how many bytes it takes in the log.
    pub fn bytes(&self) -> usize {
        const OTHERS: usize = 32;
        let of_pairs = |pairs: &[(Cow<'_, str>, Cow<'_, str>)]| -> usize {
            pairs.iter().map(|(name, value)| name.len() + value.len()).sum()
        };
        let long = match self {
            FlowEvent::ResourceDeployed { bytes, .. } => bytes.len(),
            FlowEvent::VariablesSet { variables, .. }
            | FlowEvent::EventTriggered { variables, .. }
            | FlowEvent::CompensationKept { variables, .. } => of_pairs(variables),
            FlowEvent::LoopStarted { items, .. } => items.iter().map(|item| item.len()).sum(),
            FlowEvent::LoopCollected { value, .. } => value.len(),
            FlowEvent::MessagePublished(published) => published.variables.len(),
            FlowEvent::SignalBroadcast { variables, .. } => variables.len(),
            FlowEvent::IncidentRaised { message, .. } => message.len(),
            FlowEvent::DefinitionDeployed(deployed) => {
                deployed.nodes.iter().map(|node| node.id.len() + node.name.len() + 16).sum()
            }
            FlowEvent::Workflow(event) => event.text_bytes(),
            FlowEvent::UserTaskTransitionStarted(started) => of_pairs(&started.variables),
            FlowEvent::StepTaken
            | FlowEvent::DefinitionDeleted { .. }
            | FlowEvent::InstanceStarted(_)
            | FlowEvent::ElementEntered(_)
            | FlowEvent::ElementActivated { .. }
            | FlowEvent::ElementCompleting { .. }
            | FlowEvent::ElementCompleted { .. }
            | FlowEvent::ElementTerminating { .. }
            | FlowEvent::ElementTerminated { .. }
            | FlowEvent::ElementQueued { .. }
            | FlowEvent::TokenParked { .. }
            | FlowEvent::JobAttached { .. }
            | FlowEvent::JobDetached { .. }
            | FlowEvent::ListenerPassed { .. }
            | FlowEvent::LoopSatisfied { .. }
            | FlowEvent::EventTaken { .. }
            | FlowEvent::TimerArmed { .. }
            | FlowEvent::TimerGone { .. }
            | FlowEvent::SubscriptionOpened(_)
            | FlowEvent::SubscriptionClosed { .. }
            | FlowEvent::MessageCorrelated { .. }
            | FlowEvent::MessageQueued { .. }
            | FlowEvent::MessageExpired { .. }
            | FlowEvent::SignalProgressed { .. }
            | FlowEvent::SignalEnded { .. }
            | FlowEvent::IncidentResolved { .. }
            | FlowEvent::UserTaskCreated(_)
            | FlowEvent::UserTaskChanged(_)
            | FlowEvent::UserTaskEnded { .. }
            | FlowEvent::UserTaskCorrected(_)
            | FlowEvent::UserTaskTransitionEnded { .. }
            | FlowEvent::InstanceMigrated { .. }
            | FlowEvent::CompensationTaken { .. }
            | FlowEvent::KeyUsed { .. } => 0,
        };
        OTHERS + long
    }

    /// The newest key that it brings into the world.
    pub fn new_key(&self) -> Option<Key> {
        match self {
            FlowEvent::ResourceDeployed { key, .. }
            | FlowEvent::TimerArmed { key, .. }
            | FlowEvent::SignalBroadcast { key, .. }
            | FlowEvent::IncidentRaised { key, .. }
            | FlowEvent::KeyUsed { key } => Some(*key),
            FlowEvent::DefinitionDeployed(deployed) => Some(deployed.key.max(deployed.deployment)),
            FlowEvent::InstanceStarted(started) => Some(started.key),
            FlowEvent::ElementEntered(entered) => Some(entered.key),
            FlowEvent::SubscriptionOpened(opened) => Some(opened.key),
            FlowEvent::MessagePublished(published) => Some(published.key),
            FlowEvent::UserTaskCreated(created) => Some(created.key),
            FlowEvent::Workflow(event) => event.new_key(),
            FlowEvent::StepTaken
            | FlowEvent::DefinitionDeleted { .. }
            | FlowEvent::ElementActivated { .. }
            | FlowEvent::ElementCompleting { .. }
            | FlowEvent::ElementCompleted { .. }
            | FlowEvent::ElementTerminating { .. }
            | FlowEvent::ElementTerminated { .. }
            | FlowEvent::ElementQueued { .. }
            | FlowEvent::TokenParked { .. }
            | FlowEvent::VariablesSet { .. }
            | FlowEvent::JobAttached { .. }
            | FlowEvent::JobDetached { .. }
            | FlowEvent::ListenerPassed { .. }
            | FlowEvent::LoopStarted { .. }
            | FlowEvent::LoopCollected { .. }
            | FlowEvent::LoopSatisfied { .. }
            | FlowEvent::EventTriggered { .. }
            | FlowEvent::EventTaken { .. }
            | FlowEvent::TimerGone { .. }
            | FlowEvent::SubscriptionClosed { .. }
            | FlowEvent::MessageCorrelated { .. }
            | FlowEvent::MessageQueued { .. }
            | FlowEvent::MessageExpired { .. }
            | FlowEvent::SignalProgressed { .. }
            | FlowEvent::SignalEnded { .. }
            | FlowEvent::IncidentResolved { .. }
            | FlowEvent::UserTaskChanged(_)
            | FlowEvent::UserTaskEnded { .. }
            | FlowEvent::UserTaskTransitionStarted(_)
            | FlowEvent::UserTaskCorrected(_)
            | FlowEvent::UserTaskTransitionEnded { .. }
            | FlowEvent::InstanceMigrated { .. }
            | FlowEvent::CompensationKept { .. }
            | FlowEvent::CompensationTaken { .. } => None,
        }
    }
}
