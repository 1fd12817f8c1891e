//! What can be asked of flows.

use super::Key;
use crate::command::Bytes;
use crate::workflow::WorkflowCommand;

/// A command on flows. One variant, one file in `windlass_flow::verb`.
#[derive(Clone, Debug)]
pub enum FlowCommand {
    /// New definitions, all or none.
    DeployResources(DeployResources),
    /// Forget a definition.
    DeleteResource(DeleteResource),
    /// Start a process.
    CreateInstance(CreateInstance),
    /// End an instance.
    CancelInstance(CancelInstance),
    /// Move tokens by hand.
    ModifyInstance(ModifyInstance),
    /// Go on with another definition.
    MigrateInstance(MigrateInstance),
    /// Write variables of a scope.
    SetVariables(SetVariables),
    /// A message for whoever waits for it, now or soon.
    PublishMessage(PublishMessage),
    /// A signal for everybody who waits for it now.
    BroadcastSignal(BroadcastSignal),
    /// Evaluate a decision and nothing else.
    EvaluateDecision(EvaluateDecision),
    /// What a person does with a user task.
    UpdateUserTask(UpdateUserTask),
    /// Something about workflows.
    Workflow(WorkflowCommand),
}

impl FlowCommand {
    /// Whether it ends or furthers what is there already: it goes first, and is never refused for
    /// load.
    pub fn lets_work_drain(&self) -> bool {
        match self {
            FlowCommand::CancelInstance(_) => true,
            FlowCommand::Workflow(command) => command.lets_work_drain(),
            FlowCommand::DeployResources(_)
            | FlowCommand::DeleteResource(_)
            | FlowCommand::CreateInstance(_)
            | FlowCommand::ModifyInstance(_)
            | FlowCommand::MigrateInstance(_)
            | FlowCommand::SetVariables(_)
            | FlowCommand::PublishMessage(_)
            | FlowCommand::BroadcastSignal(_)
            | FlowCommand::EvaluateDecision(_)
            | FlowCommand::UpdateUserTask(_) => false,
        }
    }
}

/// See [`FlowCommand::DeployResources`].
#[derive(Clone, Debug)]
pub struct DeployResources {
    /// The wall of security.
    pub tenant: Box<str>,
    /// File names and contents; the ending of the name says what it is.
    pub resources: Vec<(Box<str>, Bytes)>,
}

/// See [`FlowCommand::DeleteResource`].
#[derive(Clone, Debug)]
pub struct DeleteResource {
    /// A process definition, a decision requirements graph, or a form.
    pub key: Key,
}

/// Which process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessReference {
    /// This definition.
    Key(Key),
    /// The newest version of this id.
    Latest(Box<str>),
    /// This version of this id.
    Version(Box<str>, u32),
}

/// See [`FlowCommand::CreateInstance`].
#[derive(Clone, Debug)]
pub struct CreateInstance {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Which process.
    pub process: ProcessReference,
    /// A JSON object; empty is `{}`.
    pub variables: Bytes,
    /// Elements to start at instead of the start event.
    pub start_at: Vec<Box<str>>,
    /// The caller's own name of the instance; empty is none.
    pub business_id: Box<str>,
    /// Words to find it by.
    pub tags: Vec<Box<str>>,
    /// Whether somebody waits for its end.
    pub awaited: bool,
}

/// See [`FlowCommand::CancelInstance`].
#[derive(Clone, Debug)]
pub struct CancelInstance {
    /// The instance.
    pub key: Key,
}

/// See [`FlowCommand::ModifyInstance`].
#[derive(Clone, Debug)]
pub struct ModifyInstance {
    /// The instance.
    pub key: Key,
    /// Elements to enter.
    pub activate: Vec<ActivateInstruction>,
    /// Element instances to end.
    pub terminate: Vec<TerminateInstruction>,
    /// Tokens to move.
    pub moves: Vec<MoveInstruction>,
}

/// One element to enter.
#[derive(Clone, Debug)]
pub struct ActivateInstruction {
    /// The element's id.
    pub element_id: Box<str>,
    /// The element instance under which it is entered; `NO_KEY` is "the one there is".
    pub ancestor: Key,
    /// Variables to set first.
    pub variables: Vec<VariableInstruction>,
}

/// Variables to set on the way.
#[derive(Clone, Debug)]
pub struct VariableInstruction {
    /// A JSON object.
    pub variables: Bytes,
    /// The element whose scope gets them; empty is the process.
    pub scope_id: Box<str>,
}

/// What to end.
#[derive(Clone, Debug)]
pub enum TerminateInstruction {
    /// This element instance.
    Instance(Key),
    /// All live instances of the element with this id.
    Element(Box<str>),
}

/// Ends instances of one element and enters another element as often.
#[derive(Clone, Debug)]
pub struct MoveInstruction {
    /// What ends.
    pub source: TerminateInstruction,
    /// The id of the element that is entered.
    pub target_id: Box<str>,
    /// Under which element instance.
    pub ancestor: MoveAncestor,
    /// Variables to set first.
    pub variables: Vec<VariableInstruction>,
}

/// Under which element instance a moved token is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveAncestor {
    /// This one; `NO_KEY` is "the one there is".
    Instance(Key),
    /// The one that the ended one stands in.
    SourceParent,
    /// The nearest one around the ended one that contains the target.
    SourceHierarchy,
}

/// See [`FlowCommand::MigrateInstance`].
#[derive(Clone, Debug)]
pub struct MigrateInstance {
    /// The instance.
    pub key: Key,
    /// The definition it goes on with.
    pub definition: Key,
    /// Element ids, from and to.
    pub mappings: Vec<(Box<str>, Box<str>)>,
}

/// See [`FlowCommand::SetVariables`].
#[derive(Clone, Debug)]
pub struct SetVariables {
    /// An element instance.
    pub scope: Key,
    /// A JSON object.
    pub variables: Bytes,
    /// Exactly this scope, instead of the nearest one that has the variable.
    pub local: bool,
}

/// See [`FlowCommand::PublishMessage`].
#[derive(Clone, Debug)]
pub struct PublishMessage {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// What it is correlated by.
    pub correlation_key: Box<str>,
    /// Makes a repetition harmless while the message is buffered; empty is none.
    pub message_id: Box<str>,
    /// How long it is buffered; 0 is not at all.
    pub time_to_live_ms: u64,
    /// A JSON object; empty is `{}`.
    pub variables: Bytes,
    /// It must be correlated now; refused otherwise.
    pub must_correlate: bool,
}

/// See [`FlowCommand::BroadcastSignal`].
#[derive(Clone, Debug)]
pub struct BroadcastSignal {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// A JSON object; empty is `{}`.
    pub variables: Bytes,
}

/// Which decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionReference {
    /// This decision.
    Key(Key),
    /// The newest version of this id.
    Latest(Box<str>),
}

/// See [`FlowCommand::EvaluateDecision`].
#[derive(Clone, Debug)]
pub struct EvaluateDecision {
    /// The wall of security.
    pub tenant: Box<str>,
    /// Which decision.
    pub decision: DecisionReference,
    /// A JSON object; empty is `{}`.
    pub variables: Bytes,
}

/// See [`FlowCommand::UpdateUserTask`].
#[derive(Clone, Debug)]
pub struct UpdateUserTask {
    /// The user task.
    pub key: Key,
    /// What is done with it.
    pub action: UserTaskAction,
    /// What the caller calls it, for listeners; may be empty.
    pub name: Box<str>,
}

/// What a listener makes of a user task that is about to change. What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserTaskCorrections {
    /// Whose it is; empty takes it away.
    pub assignee: Option<Box<str>>,
    /// Who may take it, a JSON list of text.
    pub candidate_groups: Option<Box<str>>,
    /// Who may take it, a JSON list of text.
    pub candidate_users: Option<Box<str>>,
    /// By when; empty is never.
    pub due_date: Option<Box<str>>,
    /// When to look at it again; empty is never.
    pub follow_up_date: Option<Box<str>>,
    /// 0..=100.
    pub priority: Option<u32>,
}

/// What a person does with a user task. What is `None` stays.
#[derive(Clone, Debug)]
pub enum UserTaskAction {
    /// It is done; the JSON object is merged.
    Complete(Bytes),
    /// Whose it is; empty takes it away. Without `replace`, refused when somebody has it.
    Assign {
        /// Whose.
        assignee: Box<str>,
        /// Whether somebody else's is taken over.
        replace: bool,
    },
    /// New properties.
    Change {
        /// Who may take it, a JSON list of text.
        candidate_groups: Option<Box<str>>,
        /// Who may take it, a JSON list of text.
        candidate_users: Option<Box<str>>,
        /// By when; empty is never.
        due_date: Option<Box<str>>,
        /// When to look at it again; empty is never.
        follow_up_date: Option<Box<str>>,
        /// 0..=100.
        priority: Option<u32>,
    },
}
