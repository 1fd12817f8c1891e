//! A workflow definition compiled: its tasks as a flat list of nodes, with what comes after each.
//!
//! Tasks nest: the cases of a SWITCH, the branches of a fork, the body of a loop. A node knows what
//! follows it whatever it stands in ([`Next`]), so that the kernel never walks the tree. Nodes are
//! numbered in the order of the document; numbers are what events carry.

mod check;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::definition::{TaskDefinition, TimeoutPolicy};
use super::lenient;
use crate::graph::Text;

pub use check::{problems, problems_of_definition};

/// A node of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskNode(pub u32);

/// A compiled definition, or the tasks that a dynamic fork added.
#[derive(Debug)]
pub struct Plan {
    /// The JSON it was made from: an object, or a list of tasks.
    pub json: Value,
    /// Its name; empty for added tasks.
    pub name: Text,
    /// Its version.
    pub version: u32,
    /// Where it begins: its first task, or each added task.
    pub first: Vec<TaskNode>,
    /// All tasks.
    pub nodes: Vec<Node>,
    /// How long a run may take (s); 0 is for ever.
    pub timeout_s: u64,
    /// What follows then.
    pub timeout_policy: TimeoutPolicy,
    /// Whether a run that completed may be restarted.
    pub restartable: bool,
}

/// A task of a definition.
#[derive(Debug)]
pub struct Node {
    /// Its reference name.
    pub reference: Text,
    /// Its name.
    pub name: Text,
    /// What it does.
    pub kind: Kind,
    /// Its type as written.
    pub type_name: Text,
    /// Where it stands in [`Plan::json`].
    pub pointer: Box<str>,
    /// What follows it.
    pub next: Next,
    /// Cases and branches by name, and where each begins; the body of a loop is the only one.
    pub branches: Vec<(Text, Option<TaskNode>)>,
    /// Where the default case begins.
    pub default_branch: Option<TaskNode>,
    /// A failure is no obstacle.
    pub optional: bool,
    /// A failure ends the workflow only when all else is done.
    pub permissive: bool,
    /// Somebody else completes it.
    pub async_complete: bool,
    /// Not before this long after it was scheduled (s).
    pub start_delay_s: u32,
    /// Instead of what its definition says.
    pub retry_count: Option<u32>,
    /// Its task definition, when it is written in it.
    pub definition: Option<Arc<TaskDefinition>>,
}

/// What follows a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This one.
    Task(TaskNode),
    /// The loop that it stands in looks at its condition.
    Loop,
    /// Nothing: a branch ends here, or the workflow.
    End,
}

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Work for a worker.
    Simple,
    /// Work for a worker whose type is computed.
    Dynamic,
    /// Goes on with one of its cases.
    Switch,
    /// The same, in its old form.
    Decision,
    /// Begins all its branches.
    Fork,
    /// Begins branches that are computed.
    DynamicFork,
    /// Waits for branches.
    Join,
    /// Waits for the one branch that was taken.
    ExclusiveJoin,
    /// Does its body again and again.
    DoWhile,
    /// Runs another workflow and waits for it.
    SubWorkflow,
    /// Starts another workflow.
    StartWorkflow,
    /// Ends the workflow.
    Terminate,
    /// Writes variables of the workflow.
    SetVariable,
    /// Waits for a time or for somebody.
    Wait,
    /// Waits for somebody.
    Human,
    /// Evaluates a script.
    Inline,
    /// The same, in its old form.
    Lambda,
    /// Evaluates a jq query.
    Jq,
    /// Publishes an event.
    Event,
    /// Nothing.
    Noop,
    /// Work for a worker that is built in: `HTTP`, `KAFKA_PUBLISH`.
    Builtin,
    /// Work for a worker that asks for the type as written; its name must be defined.
    UserDefined,
}

impl Kind {
    /// The kind of a type as written.
    pub fn named(name: &str) -> Kind {
        match name {
            "" | "SIMPLE" => Kind::Simple,
            "DYNAMIC" => Kind::Dynamic,
            "SWITCH" => Kind::Switch,
            "DECISION" => Kind::Decision,
            "FORK_JOIN" | "FORK" => Kind::Fork,
            "FORK_JOIN_DYNAMIC" => Kind::DynamicFork,
            "JOIN" => Kind::Join,
            "EXCLUSIVE_JOIN" => Kind::ExclusiveJoin,
            "DO_WHILE" => Kind::DoWhile,
            "SUB_WORKFLOW" => Kind::SubWorkflow,
            "START_WORKFLOW" => Kind::StartWorkflow,
            "TERMINATE" => Kind::Terminate,
            "SET_VARIABLE" => Kind::SetVariable,
            "WAIT" => Kind::Wait,
            "HUMAN" => Kind::Human,
            "INLINE" => Kind::Inline,
            "LAMBDA" => Kind::Lambda,
            "JSON_JQ_TRANSFORM" => Kind::Jq,
            "EVENT" => Kind::Event,
            "NOOP" => Kind::Noop,
            "HTTP" | "KAFKA_PUBLISH" => Kind::Builtin,
            _ => Kind::UserDefined,
        }
    }

    /// Whether a worker does it, ours or somebody else's.
    pub fn is_work(self) -> bool {
        matches!(self, Kind::Simple | Kind::Dynamic | Kind::Builtin | Kind::UserDefined)
    }

    /// Whether it is not begun again by a retry of its workflow, but goes on where it was.
    pub fn goes_on_where_it_was(self) -> bool {
        self.is_control() && !matches!(self, Kind::Switch | Kind::Decision)
    }

    /// Whether a failure of it is never tried again.
    pub fn is_control(self) -> bool {
        matches!(
            self,
            Kind::Switch
                | Kind::Decision
                | Kind::Fork
                | Kind::DynamicFork
                | Kind::Join
                | Kind::ExclusiveJoin
                | Kind::DoWhile
        )
    }
}

impl Plan {
    /// Compiles a definition. [`problems`] says what is wrong with one.
    pub fn compile(json: Value) -> Plan {
        let mut nodes = Vec::new();
        let first = sequence(&mut nodes, lenient::list(&json, "tasks"), "/tasks", Next::End);
        let policy = json.get("timeoutPolicy").map(TimeoutPolicy::deserialize);
        let version = json.get("version").and_then(lenient::integer).unwrap_or(1);
        Plan {
            name: lenient::text(&json, "name").into(),
            version: u32::try_from(version).unwrap_or(1),
            first: first.into_iter().collect(),
            nodes,
            timeout_s: json
                .get("timeoutSeconds")
                .and_then(lenient::integer)
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or(0),
            timeout_policy: match policy {
                Some(Ok(policy)) => policy,
                Some(Err(_)) | None => TimeoutPolicy::AlertOnly,
            },
            restartable: json.get("restartable").and_then(Value::as_bool).unwrap_or(true),
            json,
        }
    }

    /// Compiles tasks that a dynamic fork added: each is a branch of its own.
    pub fn compile_added(json: Value) -> Plan {
        let mut nodes = Vec::new();
        let mut first = Vec::new();
        for (index, task) in json.as_array().map_or(&[][..], Vec::as_slice).iter().enumerate() {
            let number = next_number(&nodes);
            node(&mut nodes, task, format!("/{index}"), Next::End);
            first.push(number);
        }
        Plan {
            json,
            name: Text::default(),
            version: 0,
            first,
            nodes,
            timeout_s: 0,
            timeout_policy: TimeoutPolicy::AlertOnly,
            restartable: false,
        }
    }

    /// The node with this number.
    pub fn node(&self, number: TaskNode) -> &Node {
        usize::try_from(number.0)
            .ok()
            .and_then(|index| self.nodes.get(index))
            .expect("node numbers come from this plan")
    }

    /// The node with this reference name.
    pub fn find(&self, reference: &str) -> Option<TaskNode> {
        (0..)
            .map(TaskNode)
            .zip(&self.nodes)
            .find(|(_, node)| &*node.reference == reference)
            .map(|it| it.0)
    }

    /// The forks around a task, and in which of its branches it stands.
    pub fn forks_around(&self, number: TaskNode) -> Vec<(TaskNode, usize)> {
        let forks = (0..).map(TaskNode).take(self.nodes.len());
        forks.filter_map(|fork| Some((fork, self.branch_of(fork, number)?))).collect()
    }

    /// In which branch of a fork a task stands, if in any. What is between a fork and its JOIN stands
    /// in its branches, in their order: numbers are given in the order of the document.
    pub fn branch_of(&self, fork: TaskNode, number: TaskNode) -> Option<usize> {
        let node = self.node(fork);
        let Next::Task(join) = node.next else { return None };
        if node.kind != Kind::Fork || number <= fork || number >= join {
            return None;
        }
        let first = node.branches.iter().filter_map(|(_, first)| *first);
        first.take_while(|first| *first <= number).count().checked_sub(1)
    }

    /// Which of the added tasks of a dynamic fork this is, or stands in.
    pub fn added_branch(&self, number: TaskNode) -> usize {
        self.first.partition_point(|first| *first <= number).saturating_sub(1)
    }

    /// A task as written.
    pub fn task_json(&self, number: TaskNode) -> &Value {
        self.json.pointer(&self.node(number).pointer).unwrap_or(&Value::Null)
    }
}

fn next_number(nodes: &[Node]) -> TaskNode {
    TaskNode(u32::try_from(nodes.len()).expect("definitions are smaller than 4 GiB"))
}

/// Compiles tasks that follow each other; returns the first.
fn sequence(
    nodes: &mut Vec<Node>,
    tasks: &[Value],
    pointer: &str,
    after: Next,
) -> Option<TaskNode> {
    let mut numbers = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        numbers.push(next_number(nodes));
        node(nodes, task, format!("{pointer}/{index}"), Next::End);
    }
    // What follows is known only now. A SWITCH hands it on to the ends of its cases.
    for (index, number) in numbers.iter().enumerate() {
        let next = numbers.get(index + 1).map_or(after, |next| Next::Task(*next));
        set_next(nodes, *number, next);
    }
    numbers.first().copied()
}

/// Sets what follows a node, and with it what follows the ends of its cases.
fn set_next(nodes: &mut [Node], number: TaskNode, next: Next) {
    let at = |number: TaskNode| usize::try_from(number.0).expect("numbers fit the machine's words");
    let Some(node) = nodes.get_mut(at(number)) else { return };
    node.next = next;
    if !matches!(node.kind, Kind::Switch | Kind::Decision) {
        return;
    }
    let cases = node.branches.iter().map(|(_, first)| *first);
    let starts: Vec<TaskNode> = cases.chain([node.default_branch]).flatten().collect();
    for start in starts {
        let mut last = start;
        // Tasks of a case stand one behind the other; the last has no next yet.
        while let Some(Next::Task(next)) = nodes.get(at(last)).map(|node| node.next) {
            last = next;
        }
        set_next(nodes, last, next);
    }
}

fn node(nodes: &mut Vec<Node>, task: &Value, pointer: String, next: Next) {
    let at = nodes.len();
    let type_name = lenient::text(task, "type");
    let kind = Kind::named(type_name);
    let whole = |field: &str| task.get(field).and_then(lenient::integer);
    let definition = task.get("taskDefinition").filter(|value| value.is_object());
    nodes.push(Node {
        reference: lenient::text(task, "taskReferenceName").into(),
        name: lenient::text(task, "name").into(),
        kind,
        type_name: if type_name.is_empty() { "SIMPLE" } else { type_name }.into(),
        pointer: pointer.as_str().into(),
        next,
        branches: Vec::new(),
        default_branch: None,
        optional: lenient::flag(task, "optional"),
        permissive: lenient::flag(task, "permissive"),
        async_complete: lenient::flag(task, "asyncComplete"),
        start_delay_s: whole("startDelay").and_then(|delay| u32::try_from(delay).ok()).unwrap_or(0),
        retry_count: whole("retryCount").and_then(|count| u32::try_from(count).ok()),
        definition: definition.and_then(|json| TaskDefinition::parse(json).ok()).map(Arc::new),
    });
    let mut branches = Vec::new();
    let mut default_branch = None;
    match kind {
        Kind::Switch | Kind::Decision => {
            for (name, tasks) in lenient::object(task, "decisionCases").into_iter().flatten() {
                let pointer = format!("{pointer}/decisionCases/{}", escape(name));
                let tasks = tasks.as_array().map_or(&[][..], Vec::as_slice);
                branches.push((name.as_str().into(), sequence(nodes, tasks, &pointer, Next::End)));
            }
            let tasks = lenient::list(task, "defaultCase");
            default_branch = sequence(nodes, tasks, &format!("{pointer}/defaultCase"), Next::End);
        }
        Kind::Fork => {
            for (index, tasks) in lenient::list(task, "forkTasks").iter().enumerate() {
                let pointer = format!("{pointer}/forkTasks/{index}");
                let tasks = tasks.as_array().map_or(&[][..], Vec::as_slice);
                let first = sequence(nodes, tasks, &pointer, Next::End);
                branches.push((index.to_string().into(), first));
            }
        }
        Kind::DoWhile => {
            let tasks = lenient::list(task, "loopOver");
            let first = sequence(nodes, tasks, &format!("{pointer}/loopOver"), Next::Loop);
            branches.push(("loop".into(), first));
        }
        Kind::Simple
        | Kind::Dynamic
        | Kind::DynamicFork
        | Kind::Join
        | Kind::ExclusiveJoin
        | Kind::SubWorkflow
        | Kind::StartWorkflow
        | Kind::Terminate
        | Kind::SetVariable
        | Kind::Wait
        | Kind::Human
        | Kind::Inline
        | Kind::Lambda
        | Kind::Jq
        | Kind::Event
        | Kind::Noop
        | Kind::Builtin
        | Kind::UserDefined => {}
    }
    if let Some(node) = nodes.get_mut(at) {
        node.branches = branches;
        node.default_branch = default_branch;
    }
}

/// A name in a JSON pointer (RFC 6901).
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
