//! What runs: element instances, their incidents, their user tasks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use windlass_record::flow::{FlowIncidentKind, JobRole, Key};

use crate::graph::{Graph, Node, NodeId, Text};

/// Where an element instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// On its way in: mappings, listeners.
    Entering,
    /// At work, or waiting.
    Active,
    /// On its way out: mappings, listeners.
    Completing,
    /// To be ended, with all that is in it.
    Terminating,
}

/// A live element instance.
#[derive(Debug)]
pub struct Element {
    /// The element instance that it stands in; 0 for a process instance.
    pub scope: Key,
    /// The process instance.
    pub instance: Key,
    /// Its definition.
    pub definition: Key,
    /// What is stepped through.
    pub(crate) graph: Arc<Graph>,
    /// Its node.
    pub node: NodeId,
    /// Where it is in its life.
    pub phase: Phase,
    /// One instance of a multi-instance: its number, from 1.
    pub loop_counter: u32,
    /// Of a scope: the node to begin at; of an event: itself, when it has happened already.
    pub begin_at: Option<NodeId>,
    /// Its variables, JSON.
    pub variables: BTreeMap<Text, Text>,
    /// Tokens that wait at gateways, by the flow that they came by.
    pub parked: BTreeMap<u32, u32>,
    /// The job it waits for.
    pub job: Option<(Key, JobRole)>,
    /// The next job before or after its work.
    pub listener: u32,
    /// Around the instances of a multi-instance: how far they are.
    pub looped: Option<Box<Loop>>,
    /// Events that happened and were not followed up yet.
    pub triggered: VecDeque<Triggered>,
    /// The incident it waits in.
    pub incident: Option<Key>,
    /// The user task it waits for.
    pub user_task: Option<Key>,
    /// Of a process instance: what it is besides an element instance.
    pub process: Option<Box<Process>>,
    /// Of a scope: completed activities that could be undone, oldest first.
    pub kept: Vec<Kept>,
    /// Of a scope: elements entered in it since something outside last moved it on.
    pub(crate) entered: u32,
    /// Of an outermost instance: live instances below it. Derived.
    pub(crate) called_instances: u32,
    /// Element instances in it. Derived.
    pub(crate) children: BTreeSet<Key>,
    /// Of a call activity: the instance that it called. Derived.
    pub(crate) called: Option<Key>,
    /// Timers and subscriptions. Derived.
    pub(crate) waits: BTreeSet<Key>,
}

/// What a process instance is besides an element instance.
#[derive(Debug)]
pub struct Process {
    /// The call activity that it runs for, or 0.
    pub parent: Key,
    /// The outermost instance.
    pub root: Key,
    /// The nodes that it starts at.
    pub starts: Box<[NodeId]>,
    /// The caller's own name of it.
    pub business_id: Text,
    /// Words to find it by.
    pub tags: Arc<[Text]>,
    /// Whether somebody waits for its end.
    pub awaited: bool,
    /// The correlation key of the message that started it.
    pub started_by: Text,
    /// When it was started.
    pub started_ms: u64,
}

/// How far a multi-instance is.
#[derive(Debug)]
pub struct Loop {
    /// The items, JSON.
    pub items: Vec<Text>,
    /// How many instances were entered.
    pub entered: u32,
    /// How many gave their result.
    pub collected: u32,
    /// Their results, JSON, by item; empty is none.
    pub results: Vec<Text>,
    /// Whether the completion condition held.
    pub satisfied: bool,
    /// Bytes of all results. Derived.
    pub(crate) bytes: usize,
}

/// An event that happened.
#[derive(Clone, Debug)]
pub struct Triggered {
    /// The node of the event.
    pub node: NodeId,
    /// What came with it.
    pub variables: Vec<(Text, Text)>,
}

/// A completed activity that could be undone.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Its node.
    pub node: NodeId,
    /// Its local variables.
    pub variables: Vec<(Text, Text)>,
}

/// An element instance that waits for a person.
#[derive(Debug)]
pub struct Incident {
    /// Which one.
    pub element: Key,
    /// Why.
    pub kind: FlowIncidentKind,
    /// What went wrong.
    pub message: Text,
    /// Since when.
    pub since_ms: u64,
}

/// A user task that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserTask {
    /// The element instance.
    pub element: Key,
    /// Whose it is; may be empty.
    pub assignee: Text,
    /// Who may take it, a JSON list of text.
    pub candidate_groups: Text,
    /// Who may take it, a JSON list of text.
    pub candidate_users: Text,
    /// By when; may be empty.
    pub due_date: Text,
    /// When to look at it again; may be empty.
    pub follow_up_date: Text,
    /// 0..=100.
    pub priority: u32,
    /// The key of its form, or 0.
    pub form: Key,
    /// A form somewhere else; may be empty.
    pub form_reference: Text,
    /// Static headers, a JSON object of text.
    pub headers: Text,
}

impl Loop {
    /// The results as a JSON list; what is not there is null. One may be put in its place before
    /// it is collected.
    pub(crate) fn json(&self, with: Option<(usize, &str)>) -> String {
        let mut list = String::from("[");
        for (index, result) in self.results.iter().enumerate() {
            if index > 0 {
                list.push(',');
            }
            let result = match with {
                Some((place, value)) if place == index => value,
                Some(_) | None => result,
            };
            list.push_str(if result.is_empty() { "null" } else { result });
        }
        list.push(']');
        list
    }
}

impl Element {
    /// Its node.
    pub fn node(&self) -> &Node {
        self.graph.node(self.node)
    }

    /// Whether it stands around the instances of a multi-instance.
    pub fn is_loop(&self) -> bool {
        self.loop_counter == 0 && self.node().repeat.is_some()
    }

    /// Around the instances of a multi-instance: the output collection as it is now. Its variable
    /// is not written again for each result, since it may be long and seldom looked at.
    pub(crate) fn results_so_far(&self, name: &str) -> Option<Text> {
        let looped = self.looped.as_ref().filter(|looped| looped.collected > 0)?;
        let repeat = self.node().repeat.as_ref()?;
        (*repeat.output_collection == *name).then(|| looped.json(None).into())
    }

    /// Whether an event may still happen to it.
    pub(crate) fn listens(&self) -> bool {
        self.phase == Phase::Active
            && self.triggered.iter().all(|event| !self.graph.interrupts(event.node))
    }
}
