//! The kernel: what follows from what. Every function here reads the state through a [`Port`] and
//! emits events through it; `apply` is what they do.
//!
//! An element instance is **entered**, is **active**, **completes** and is gone; or it is
//! **terminated**. Each event that leaves something to be done puts its element on the to-do list,
//! and [`step`] takes the oldest entry off and goes on with it. A step is small: a large fan-out
//! queues itself again and again, so that whoever drives the kernel chooses how much of it happens
//! in one frame of the log.
//!
//! What cannot be computed raises an incident and leaves the element where it was: resolving it
//! runs the same step again.
//!
//! Reading order: [`enter`], [`active`], [`leave`], [`terminate`] are an element's life; `node` has
//! what is special about each kind; [`waits`], [`message`], [`signal`], [`timer`] are about waiting;
//! [`variables`] and [`expression`] about data; [`catch`] about errors and escalations.

pub(crate) mod active;
pub(crate) mod catch;
pub(crate) mod enter;
pub(crate) mod expression;
pub(crate) mod job;
pub(crate) mod leave;
pub(crate) mod message;
pub(crate) mod signal;
pub(crate) mod terminate;
pub(crate) mod timer;
pub(crate) mod variables;
pub(crate) mod waits;

pub use crate::node::task_listener::check as check_listener;
pub use job::{JobError, job_completed, job_failed, job_threw, listener_answered, role_of};
pub use timer::fire;
pub use variables::{join, split};

use windlass_record::bound::{Bound, Bounds, cut};
use windlass_record::event::DeadlineKind;
use windlass_record::flow::{ElementEntered, FlowEvent, FlowIncidentKind, Key};

use crate::conductor;
use crate::graph::{Kind, NodeId, Text, Trigger};
use crate::state::element::Phase;
use crate::state::{FlowState, Todo};

/// Element instances that one step enters or ends at most.
pub(crate) const FAN_OUT_MAX: usize = 64;

/// Bytes of variables after which a step that writes many leaves the rest to the next one.
pub(crate) const STEP_BYTES_MAX: usize = 256 << 10;

/// The kernel's way to the state, the log, the time and the jobs.
pub trait Port {
    /// What is remembered.
    fn state(&self) -> &FlowState;
    /// Applies an event and logs it.
    fn emit(&mut self, event: FlowEvent<'_>);
    /// The next fresh key; the event that brings it into the world uses it up.
    fn next_key(&self) -> Key;
    /// The time of the record (ms since the epoch).
    fn now_ms(&self) -> u64;
    /// How much is allowed.
    fn bounds(&self) -> &Bounds;
    /// How much this frame holds so far (bytes, about).
    fn written(&self) -> usize;
    /// Makes a job and returns its key.
    fn create_job(&mut self, job: &NewJob) -> Key;
    /// Ends a job that nobody needs any more.
    fn cancel_job(&mut self, job: Key);
    /// Makes the job of a workflow's task and returns its key.
    fn create_task_job(&mut self, job: &NewTaskJob) -> Key;
    /// What is known of the job of a task.
    fn task_job(&self, job: Key) -> Option<TaskJobNow>;
    /// Ends the job of a task that is done.
    fn complete_task_job(&mut self, job: Key);
    /// Hands the job of a task out again, not before this long from now.
    fn put_back_task_job(&mut self, job: Key, delay_ms: u64);
    /// Makes the job of a task that was put back ready now; false when it is not.
    fn ready_task_job(&mut self, job: Key) -> bool;
    /// The worker of a task is still at it.
    fn extend_task_job(&mut self, job: Key);
    /// Sets how many jobs of a limit key may be at work, and how many handed out in a window (ms).
    fn set_limit(&mut self, name: &str, active_max: Option<u32>, rate: Option<(u32, u64)>);
    /// A number that decides jitter: the same for the same key at the same record.
    fn jitter(&self, key: Key) -> u64;
}

/// A job that an element wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The wall of security.
    pub tenant: Text,
    /// The job type.
    pub job_type: Text,
    /// How often it may be tried.
    pub retries: i32,
    /// Higher goes first.
    pub priority: i32,
    /// Static headers, a JSON object; empty is none.
    pub headers: Text,
}

/// The job of a workflow's task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTaskJob {
    /// Where it waits.
    pub queue: Box<str>,
    /// The job type.
    pub job_type: Box<str>,
    /// Higher goes first.
    pub priority: i32,
    /// Not before then (ms since the epoch); 0 is at once.
    pub due_ms: u64,
    /// What a worker of ours gets; empty when the kernel has it.
    pub payload: Box<[u8]>,
    /// Its limits and deadlines.
    pub limits: TaskLimits,
}

/// The limits and deadlines of a task's job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskLimits {
    /// The limit key of how many are at work; empty is none.
    pub concurrency_key: Box<str>,
    /// The limit key of how many are handed out per window; empty is none.
    pub rate_key: Box<str>,
    /// How long its worker may be silent (ms); 0 is as the worker asks.
    pub response_ms: u64,
    /// How long it may wait for a worker (ms).
    pub waiting_ms: Option<u64>,
    /// How long it may take from its first hand-out (ms).
    pub attempt_ms: Option<u64>,
    /// How long it may take from now (ms).
    pub total_ms: Option<u64>,
    /// Somebody is told when its time is over, and nothing else happens; not when its worker is
    /// silent.
    pub only_alert: bool,
}

/// What is known of the job of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskJobNow {
    /// Whether a worker has it.
    pub active: bool,
    /// Who had it last; may be empty.
    pub worker: Text,
    /// When it was handed out first (ms since the epoch); 0 is not yet.
    pub started_ms: u64,
    /// How often it was handed out.
    pub activations: u32,
    /// What became overdue while its workflow stood still.
    pub overdue: Option<DeadlineKind>,
}

/// Why an element cannot go on without a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) kind: FlowIncidentKind,
    pub(crate) message: String,
}

impl Stuck {
    pub(crate) fn new(kind: FlowIncidentKind, message: impl Into<String>) -> Stuck {
        Stuck { kind, message: message.into() }
    }

    /// More than a bound allows.
    pub(crate) fn past(
        kind: FlowIncidentKind,
        what: impl std::fmt::Display,
        bound: Bound,
        max: impl std::fmt::Display,
    ) -> Stuck {
        Stuck::new(kind, format!("{what}: more than the bound of {max} {bound}"))
    }
}

/// Works on the oldest entry of the to-do list. False when there is none.
pub fn step<P: Port>(port: &mut P) -> bool {
    let Some(todo) = port.state().todo.front().copied() else { return false };
    port.emit(FlowEvent::StepTaken);
    match todo {
        Todo::Element(key) => run(port, key),
        Todo::Message(key) => message::deliver(port, key),
        Todo::Signal(key) => signal::deliver(port, key),
        Todo::Workflow(key) => conductor::workflow::go_on(port, key),
        Todo::Task(key) => conductor::task::go_on(port, key),
    }
    true
}

fn run<P: Port>(port: &mut P, key: Key) {
    let Some(element) = port.state().element(key) else { return };
    let phase = element.phase;
    // A user task may wait for a person because of a listener; that keeps no event from it.
    let has_news = element.user_task.is_some() && !element.triggered.is_empty();
    if element.incident.is_some() && phase != Phase::Terminating && !has_news {
        return;
    }
    let went = match phase {
        Phase::Entering => enter::enter(port, key),
        Phase::Active => active::go_on(port, key),
        Phase::Completing => leave::leave(port, key),
        Phase::Terminating => terminate::terminate(port, key),
    };
    if let Err(stuck) = went {
        raise(port, key, &stuck);
    }
}

/// The element waits for a person.
fn raise<P: Port>(port: &mut P, element: Key, stuck: &Stuck) {
    let key = port.next_key();
    let message = cut(&stuck.message, port.bounds().message_bytes_max);
    port.emit(FlowEvent::IncidentRaised { key, element, kind: stuck.kind, message });
}

/// Enters a node in a scope.
pub(crate) fn enter_node<P: Port>(
    port: &mut P,
    scope: Key,
    node: NodeId,
    begin_at: Option<NodeId>,
) -> Key {
    let key = port.next_key();
    port.emit(FlowEvent::ElementEntered(ElementEntered {
        key,
        scope,
        node: node.0,
        loop_counter: 0,
        begin_at: begin_at.map(|node| node.0),
    }));
    key
}

/// Enters whatever stands in `scope` on the way to `target`, and begins there.
pub(crate) fn enter_towards<P: Port>(port: &mut P, scope: Key, target: NodeId) -> Option<Key> {
    let element = port.state().live(scope);
    let next = element.graph.towards(element.node, target)?;
    Some(enter_node(port, scope, next, (next != target).then_some(target)))
}

/// Enters an event that has happened, with what came with it.
pub(crate) fn enter_event<P: Port>(
    port: &mut P,
    scope: Key,
    node: NodeId,
    variables: &[(Text, Text)],
) {
    let graph = port.state().live(scope).graph.clone();
    // What comes with an error stays with the event that catches it, as in Zeebe.
    let stays = matches!(graph.node(node).kind, Kind::Boundary(_))
        && matches!(graph.trigger(node), Some(Trigger::Error(_)));
    if graph.node(node).outputs.is_empty() && !stays {
        variables::merge(port, scope, variables);
        enter_node(port, scope, node, Some(node));
        return;
    }
    let key = enter_node(port, scope, node, Some(node));
    variables::set(port, key, variables);
}
