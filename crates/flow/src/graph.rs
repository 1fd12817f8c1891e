//! A compiled process: what the kernel steps through, whatever language it was written in.
//!
//! A [`Graph`] is a flat list of nodes; nesting is each node's `scope`. Nodes are numbered in the
//! order in which their elements stand in the document, the process itself first, so that a number
//! means the same element in every version of the compiler: numbers are what events carry.

use std::sync::Arc;

use windlass_record::flow::UserTaskEvent;

use crate::feel::Expression;

/// Shared text.
pub type Text = Arc<str>;

/// A node of a graph; 0 is the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The process itself.
    pub const PROCESS: NodeId = NodeId(0);
}

/// A sequence flow of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// A compiled process.
#[derive(Debug)]
pub struct Graph {
    /// Its id: versions of one process share it.
    pub id: Text,
    /// For people.
    pub name: Text,
    /// The author's name of this version; may be empty.
    pub version_tag: Text,
    /// All nodes, the process first.
    pub nodes: Vec<Node>,
    /// All sequence flows.
    pub flows: Vec<Flow>,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// Its id in the document.
    pub id: Text,
    /// For people.
    pub name: Text,
    /// What it does.
    pub kind: Kind,
    /// What it is called in its language, as Zeebe's API shows it: `SERVICE_TASK`.
    pub element_type: &'static str,
    /// The process or sub-process that it stands in; its own number for the process.
    pub scope: NodeId,
    /// Flows that lead here.
    pub incoming: Vec<FlowId>,
    /// Flows that leave, in the order of the document.
    pub outgoing: Vec<FlowId>,
    /// The flow taken when no condition of the others holds.
    pub default_flow: Option<FlowId>,
    /// Evaluated on the way in: local variables.
    pub inputs: Vec<Mapping>,
    /// Evaluated on the way out, merged into the scope.
    pub outputs: Vec<Mapping>,
    /// Boundary events attached to it.
    pub boundaries: Vec<NodeId>,
    /// Process, sub-process: the event sub-processes directly in it.
    pub event_scopes: Vec<NodeId>,
    /// Process, sub-process: the inclusive gateways directly in it at which tokens may wait.
    pub inclusive_joins: Vec<NodeId>,
    /// Process, sub-process: its none start event. Event sub-process: its one start event.
    pub start: Option<NodeId>,
    /// Process: its start events that have a trigger.
    pub event_starts: Vec<NodeId>,
    /// One instance per item of a collection.
    pub repeat: Option<Box<Repeat>>,
    /// Jobs before its work.
    pub on_start: Vec<Listener>,
    /// Jobs after its work.
    pub on_end: Vec<Listener>,
    /// The node that undoes it, when it was completed and compensation is thrown.
    pub compensation: Option<NodeId>,
    /// Whether it is entered by compensation only.
    pub is_compensation: bool,
    /// Of a process: the priority of its jobs when they have none of their own.
    pub job_priority: Option<Template>,
}

/// A sequence flow.
#[derive(Debug)]
pub struct Flow {
    /// Its id in the document; may be empty.
    pub id: Text,
    /// Where it begins.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// Taken only if this holds; for exclusive and inclusive gateways.
    pub condition: Option<Expression>,
}

/// A value that is written down or computed: text that begins with `=` is an expression.
#[derive(Clone, Debug)]
pub enum Template {
    /// As written.
    Static(Text),
    /// Computed when it is needed.
    Feel(Expression),
}

/// What a node does.
#[derive(Debug)]
pub enum Kind {
    /// The whole process.
    Process,
    /// An embedded sub-process.
    SubProcess,
    /// A sub-process begun by an event of its surrounding scope. See [`Node::start`].
    EventSubProcess,
    /// Where a scope begins.
    Start(Start),
    /// An event attached to an activity.
    Boundary(Boundary),
    /// Waits in the flow.
    Catch(Trigger),
    /// A task that waits for a message.
    Receive(MessageCatch),
    /// Does something and goes on.
    Throw(Action),
    /// Does something and ends its token.
    End(Action),
    /// Work for a worker: service, send, business rule, script and old-style user tasks.
    Job(JobSpec),
    /// A native user task.
    UserTask(Box<UserTask>),
    /// Computes a value.
    Script(Script),
    /// Evaluates a decision.
    Decision(Box<Decision>),
    /// Runs another process.
    Call(Box<Call>),
    /// Nothing: manual and undefined tasks.
    PassThrough,
    /// Takes the first flow whose condition holds.
    Exclusive,
    /// Takes all flows; waits for one token of each flow that leads here.
    Parallel,
    /// Takes all flows whose condition holds; waits for every token that can still come.
    Inclusive,
    /// Waits for the first of the events behind it.
    EventBased,
}

/// A start event.
#[derive(Debug)]
pub struct Start {
    /// What begins it; `None` is a none start event.
    pub trigger: Option<Trigger>,
    /// Of an event sub-process: whether the rest of the scope is terminated.
    pub interrupting: bool,
    /// The form of a start event, as [`UserTask::form_key`]; for people's front ends.
    pub form_id: Text,
}

/// A boundary event.
#[derive(Debug)]
pub struct Boundary {
    /// The activity that it is attached to.
    pub host: NodeId,
    /// What it waits for.
    pub trigger: Trigger,
    /// Whether the activity is terminated.
    pub interrupting: bool,
}

/// What an event waits for.
#[derive(Debug)]
pub enum Trigger {
    /// A message.
    Message(MessageCatch),
    /// A time.
    Timer(Timer),
    /// A signal, by name.
    Signal(Template),
    /// An error; `None` catches every code.
    Error(Option<Text>),
    /// An escalation; `None` catches every code.
    Escalation(Option<Text>),
    /// A link of the same scope, by name. A catch event with this trigger is entered by its throw
    /// event and passes at once.
    Link(Text),
    /// Compensation is thrown.
    Compensation,
}

/// Which message is waited for.
#[derive(Clone, Debug)]
pub struct MessageCatch {
    /// Its name.
    pub name: Template,
    /// What it is correlated by; `None` only at the start event of a process.
    pub correlation_key: Option<Template>,
}

/// When a timer fires.
#[derive(Debug)]
pub struct Timer {
    /// How the value is to be read.
    pub kind: TimerKind,
    /// ISO 8601, or cron for a cycle.
    pub value: Template,
}

/// How a timer's value is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// After this long.
    Duration,
    /// At this time.
    Date,
    /// Again and again.
    Cycle,
}

/// What a throw or end event does.
#[derive(Debug)]
pub enum Action {
    /// Nothing.
    None,
    /// A worker does it.
    Job(JobSpec),
    /// Publishes a message.
    Message(Box<MessageThrow>),
    /// Broadcasts a signal.
    Signal(Template),
    /// Throws an error with this code.
    Error(Template),
    /// Throws an escalation with this code.
    Escalation(Template),
    /// Goes on at the catch event of this link.
    Link(NodeId),
    /// Ends the scope and all that runs in it.
    Terminate,
    /// Undoes what was completed: one activity, or all of the scope.
    Compensate(Option<NodeId>),
}

/// See [`Action::Message`].
#[derive(Debug)]
pub struct MessageThrow {
    /// Its name.
    pub name: Template,
    /// What it is correlated by.
    pub correlation_key: Template,
    /// Makes a repetition harmless; may be absent.
    pub message_id: Option<Template>,
    /// How long it is buffered, ISO 8601; absent is not at all.
    pub time_to_live: Option<Template>,
}

/// Work for a worker.
#[derive(Debug)]
pub struct JobSpec {
    /// The job type.
    pub job_type: Template,
    /// Retries; a number.
    pub retries: Template,
    /// Its priority; a number.
    pub priority: Option<Template>,
    /// Static headers, a JSON object of text; empty is none.
    pub headers: Text,
    /// Headers whose value is computed when the job is made: those of user tasks that are jobs. A
    /// list becomes JSON.
    pub computed_headers: Vec<(Text, Template)>,
}

/// A job before or after an element's work.
#[derive(Debug)]
pub struct Listener {
    /// The job.
    pub job: JobSpec,
}

/// A native user task. Text that is absent is empty.
#[derive(Debug)]
pub struct UserTask {
    /// Whose it is.
    pub assignee: Option<Template>,
    /// Who may take it: a list, or text with commas.
    pub candidate_groups: Option<Template>,
    /// Who may take it: a list, or text with commas.
    pub candidate_users: Option<Template>,
    /// By when, ISO 8601.
    pub due_date: Option<Template>,
    /// When to look at it again, ISO 8601.
    pub follow_up_date: Option<Template>,
    /// 0..=100, 50 when absent.
    pub priority: Option<Template>,
    /// A form deployed with the process, by its id.
    pub form_id: Option<Template>,
    /// Which version of the form with that id.
    pub form_binding: Binding,
    /// A form somewhere else.
    pub form_key: Option<Template>,
    /// Static headers, a JSON object of text; empty is none.
    pub headers: Text,
    /// Who is asked before it changes, in the order of the document.
    pub listeners: Vec<TaskListener>,
}

/// A job before something happens to a user task.
#[derive(Debug)]
pub struct TaskListener {
    /// What is about to happen.
    pub event: UserTaskEvent,
    /// The job.
    pub job: JobSpec,
}

/// See [`Kind::Script`].
#[derive(Debug)]
pub struct Script {
    /// What is computed.
    pub expression: Expression,
    /// Where it goes.
    pub result_variable: Text,
}

/// See [`Kind::Decision`].
#[derive(Debug)]
pub struct Decision {
    /// The decision's id.
    pub decision_id: Template,
    /// Which version of it.
    pub binding: Binding,
    /// Where the result goes.
    pub result_variable: Text,
}

/// See [`Kind::Call`].
#[derive(Debug)]
pub struct Call {
    /// The called process's id.
    pub process_id: Template,
    /// Which version of it.
    pub binding: Binding,
    /// Whether all variables of the child come back.
    pub child_variables: bool,
    /// Whether the child sees all variables of its parent, or only the mapped ones.
    pub parent_variables: bool,
}

/// Which version of a definition is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The newest when it is needed.
    Latest,
    /// The one deployed together with this process.
    Deployment,
    /// The newest with this version tag.
    VersionTag(Text),
}

/// One instance per item of a collection.
#[derive(Debug)]
pub struct Repeat {
    /// One after the other.
    pub sequential: bool,
    /// The items; a list.
    pub input_collection: Expression,
    /// The name of the item in each instance; may be empty.
    pub input_element: Text,
    /// Where results are collected; may be empty.
    pub output_collection: Text,
    /// One instance's result.
    pub output_element: Option<Expression>,
    /// Ends it early.
    pub completion_condition: Option<Expression>,
}

/// `target = source`; the target may be a path like `a.b`.
#[derive(Debug)]
pub struct Mapping {
    /// Computed in the scope that it comes from.
    pub source: Template,
    /// The variable, and the path in it.
    pub target: Vec<Text>,
}

impl Graph {
    /// The node with this number.
    pub fn node(&self, id: NodeId) -> &Node {
        usize::try_from(id.0)
            .ok()
            .and_then(|index| self.nodes.get(index))
            .expect("node numbers come from this graph")
    }

    /// The node with this number, if there is one.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::try_from(id.0).ok()?)
    }

    /// The flow with this number.
    pub fn flow(&self, id: FlowId) -> &Flow {
        usize::try_from(id.0)
            .ok()
            .and_then(|index| self.flows.get(index))
            .expect("flow numbers come from this graph")
    }

    /// The node with this id.
    pub fn find(&self, id: &str) -> Option<NodeId> {
        (0..).map(NodeId).zip(&self.nodes).find(|(_, node)| &*node.id == id).map(|(id, _)| id)
    }

    /// Whether an event ends what it happens to.
    pub fn interrupts(&self, event: NodeId) -> bool {
        let node = self.node(event);
        if let Kind::Boundary(boundary) = &node.kind {
            return boundary.interrupting;
        }
        let start = node.start.filter(|_| matches!(node.kind, Kind::EventSubProcess));
        match start.map(|start| &self.node(start).kind) {
            Some(Kind::Start(start)) => start.interrupting,
            Some(_) | None => true,
        }
    }

    /// What an event waits for.
    pub fn trigger(&self, event: NodeId) -> Option<&Trigger> {
        let node = self.node(event);
        if matches!(node.kind, Kind::EventSubProcess) {
            return self.trigger(node.start?);
        }
        if let Kind::Start(start) = &node.kind {
            return start.trigger.as_ref();
        }
        if let Kind::Boundary(boundary) = &node.kind {
            return Some(&boundary.trigger);
        }
        if let Kind::Catch(trigger) = &node.kind { Some(trigger) } else { None }
    }

    /// The node to enter in `scope` on the way to `target`, which stands somewhere inside it.
    pub fn towards(&self, scope: NodeId, target: NodeId) -> Option<NodeId> {
        let mut at = target;
        // Scopes are numbered before what is in them, so this ends.
        while at != NodeId::PROCESS {
            let outer = self.get(at)?.scope;
            if outer == scope {
                return Some(at);
            }
            at = outer;
        }
        None
    }

    /// The nodes from which a token can come to `gateway` by one of these flows that lead to it,
    /// without going through it: by flows, boundary events and links of its scope. By number.
    pub fn sources(&self, gateway: NodeId, by: &[FlowId]) -> Vec<bool> {
        let mut links = std::collections::BTreeMap::<NodeId, Vec<NodeId>>::new();
        for (id, node) in (0..).map(NodeId).zip(&self.nodes) {
            if let Some(target) = self.link_target(node) {
                links.entry(target).or_default().push(id);
            }
        }
        let mut is_source = vec![false; self.nodes.len()];
        let mut found: Vec<NodeId> = by.iter().map(|flow| self.flow(*flow).from).collect();
        while let Some(id) = found.pop() {
            let place = usize::try_from(id.0).ok().and_then(|at| is_source.get_mut(at));
            let Some(place) = place.filter(|known| id != gateway && !**known) else { continue };
            *place = true;
            found.extend(self.node(id).incoming.iter().map(|flow| self.flow(*flow).from));
            if let Kind::Boundary(boundary) = &self.node(id).kind {
                found.push(boundary.host);
            }
            found.extend(links.get(&id).into_iter().flatten());
        }
        is_source
    }

    fn link_target(&self, node: &Node) -> Option<NodeId> {
        if let Kind::Throw(Action::Link(target)) = &node.kind { Some(*target) } else { None }
    }
}

impl Kind {
    /// Whether other nodes stand in it.
    pub fn is_scope(&self) -> bool {
        matches!(self, Kind::Process | Kind::SubProcess | Kind::EventSubProcess)
    }
}
