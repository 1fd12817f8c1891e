//! How the state of flows gets into a checkpoint and back.
//!
//! One image per entity. An `apply` that changes an entity **touches** it first, which puts it on
//! the dirty list. A **freeze** sets that list aside; the images of what is on it are then written
//! a bounded number at a time, and a touch of an entity whose frozen image was not written yet
//! writes the old image first. All images together thus show the state as it was at the freeze.
//! Indexes are not written; a load makes them again.
//!
//! ```text
//! R key(8) file          P key(8) definition    E key(8) element instance   T key(8) timer
//! S key(8) subscription  M key(8) message       N key(8) signal             I key(8) incident
//! U key(8) user task     V key(8) newest version of a deleted process
//! A key(8) task definition     C key(8) workflow definition    H key(8) event handler
//! W key(8) workflow      K key(8) task of a workflow     L key(8) transition of a user task
//! F        to-do list
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use windlass_record::codec::{DecodeError, Decoder, Encoder, Field};
use windlass_record::flow::{JobRole, Key};

use super::definition::{Compiled, Definition, Resource, Retired};
use super::element::{Element, Incident, Kept, Loop, Phase, Process, Triggered, UserTask};
use super::transition::Transition;
use super::wait::{Message, Signal, Subscription, Timer};
use super::{FlowState, Todo};
use crate::conductor::state::{Handler, KnownTask, Task};
use crate::graph::{NodeId, Text};
use crate::{bpmn, dmn};

pub(crate) const RESOURCE: u8 = b'R';
pub(crate) const DEFINITION: u8 = b'P';
pub(crate) const ELEMENT: u8 = b'E';
pub(crate) const TIMER: u8 = b'T';
pub(crate) const SUBSCRIPTION: u8 = b'S';
pub(crate) const MESSAGE: u8 = b'M';
pub(crate) const SIGNAL: u8 = b'N';
pub(crate) const INCIDENT: u8 = b'I';
pub(crate) const USER_TASK: u8 = b'U';
pub(crate) const TRANSITION: u8 = b'L';
pub(crate) const RETIRED: u8 = b'V';
pub(crate) const TASK_DEFINITION: u8 = b'A';
pub(crate) const WORKFLOW_DEFINITION: u8 = b'C';
pub(crate) const HANDLER: u8 = b'H';
pub(crate) const WORKFLOW: u8 = b'W';
pub(crate) const TASK: u8 = b'K';
const TODO: u8 = b'F';

/// The first byte of every image. The rule is that of the log.
const VERSION: u8 = 1;

type Name = (u8, Key);

/// What is out of date in the newest checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Dirt {
    dirty: HashSet<Name, FxBuildHasher>,
    frozen: Vec<Name>,
    /// Those of `frozen` that were not written yet.
    unwritten: HashSet<Name, FxBuildHasher>,
    early: Vec<(Name, Option<Vec<u8>>)>,
    hashes: HashMap<Name, u64, FxBuildHasher>,
    todo_hash: u64,
}

/// Takes an image, or `None` for one that is gone, and the hash of the one before (0 is none);
/// returns the hash of the new one.
pub type PutImage<'a> = dyn FnMut(&[u8], Option<&[u8]>, u64) -> u64 + 'a;

impl FlowState {
    /// The first bytes of image keys, in the order in which they must be loaded.
    pub const LOAD_ORDER: [u8; 17] = [
        RESOURCE,
        DEFINITION,
        RETIRED,
        ELEMENT,
        TIMER,
        SUBSCRIPTION,
        MESSAGE,
        SIGNAL,
        INCIDENT,
        USER_TASK,
        TRANSITION,
        TASK_DEFINITION,
        WORKFLOW_DEFINITION,
        HANDLER,
        WORKFLOW,
        TASK,
        TODO,
    ];

    /// Must be called before an entity changes, comes or goes.
    pub(crate) fn touch(&mut self, tag: u8, key: Key) {
        let name = (tag, key);
        if self.dirt.dirty.insert(name) && self.dirt.unwritten.remove(&name) {
            let image = self.image(name);
            self.dirt.early.push((name, image));
        }
    }

    /// Sets what is dirty aside. Must not be called while frozen images remain to be written.
    pub fn freeze(&mut self, put: &mut PutImage<'_>) {
        debug_assert!(self.dirt.unwritten.is_empty(), "one checkpoint at a time");
        std::mem::swap(&mut self.dirt.dirty, &mut self.dirt.unwritten);
        self.dirt.frozen = self.dirt.unwritten.iter().copied().collect();
        if self.todo_is_dirty {
            self.todo_is_dirty = false;
            let mut value = vec![VERSION];
            self.todo.encode_into(&mut value);
            self.dirt.todo_hash = put(&[TODO], Some(&value), self.dirt.todo_hash);
        }
    }

    /// Writes up to `count_max` frozen images; true when none remain.
    pub fn write_frozen(&mut self, count_max: usize, put: &mut PutImage<'_>) -> bool {
        self.write_early(put);
        for _ in 0..count_max {
            let Some(name) = self.dirt.frozen.pop() else { break };
            if self.dirt.unwritten.remove(&name) {
                let image = self.image(name);
                self.write(name, image, put);
            }
        }
        self.dirt.frozen.is_empty()
    }

    /// Writes frozen images that could not wait.
    pub fn write_early(&mut self, put: &mut PutImage<'_>) {
        for (name, image) in std::mem::take(&mut self.dirt.early) {
            self.write(name, image, put);
        }
    }

    /// Every image, and the indexes in words: two states are the same when these are.
    pub fn described(&self) -> Vec<String> {
        let names = |tag: u8, keys: Vec<Key>| keys.into_iter().map(move |key| (tag, key));
        let mut all: Vec<Name> = names(RESOURCE, self.resources.keys().copied().collect())
            .chain(names(DEFINITION, self.definitions.keys().copied().collect()))
            .chain(names(RETIRED, self.retired.keys().copied().collect()))
            .chain(names(ELEMENT, self.elements.keys().copied().collect()))
            .chain(names(TIMER, self.timers.keys().copied().collect()))
            .chain(names(SUBSCRIPTION, self.subscriptions.keys().copied().collect()))
            .chain(names(MESSAGE, self.messages.keys().copied().collect()))
            .chain(names(SIGNAL, self.signals.keys().copied().collect()))
            .chain(names(INCIDENT, self.incidents.keys().copied().collect()))
            .chain(names(USER_TASK, self.user_tasks.keys().copied().collect()))
            .chain(names(TRANSITION, self.transitions.keys().copied().collect()))
            .chain(self.workflows.names())
            .collect();
        all.sort_unstable();
        let mut lines: Vec<String> = all
            .into_iter()
            .map(|name| {
                let image = self.image(name).unwrap_or_default();
                // Files are long, and never change.
                let shown = if name.0 == RESOURCE { image.get(..32) } else { Some(&*image) };
                format!("{} {} {} {shown:?}", char::from(name.0), name.1, image.len())
            })
            .collect();
        for (key, element) in self.elements.iter().collect::<BTreeMap<_, _>>() {
            lines.push(format!(
                "element {key}: {:?} {:?} {:?} {}",
                element.children, element.called, element.waits, element.called_instances
            ));
        }
        self.workflows.describe(&mut lines);
        lines.push(format!("todo {:?}", self.todo));
        lines.push(format!("versions {:?}", self.versions));
        lines.push(format!("jobs {:?}", self.jobs.iter().collect::<BTreeMap<_, _>>()));
        lines.push(format!("due {:?}", self.due));
        lines.push(format!("topics {:?}", self.topics));
        lines.push(format!("starts {:?}", self.starts.iter().collect::<BTreeMap<_, _>>()));
        lines.push(format!("buffered {:?} {:?}", self.buffered, self.message_ids));
        lines.push(format!("expiring {:?}", self.expiring));
        lines.push(format!("locks {:?} {:?}", self.started_by, self.business_ids));
        let instances = self.instances_of.iter().filter(|(_, keys)| !keys.is_empty());
        lines.push(format!("instances {:?}", instances.collect::<BTreeMap<_, _>>()));
        lines
    }

    /// How many entities a checkpoint would write now.
    pub fn dirty_entities(&self) -> usize {
        self.dirt.dirty.len()
    }

    fn write(&mut self, name: Name, image: Option<Vec<u8>>, put: &mut PutImage<'_>) {
        let old = self.dirt.hashes.get(&name).copied().unwrap_or(0);
        if image.is_none() && old == 0 {
            return;
        }
        let new = put(&key_bytes(name), image.as_deref(), old);
        if image.is_some() {
            self.dirt.hashes.insert(name, new);
        } else {
            self.dirt.hashes.remove(&name);
        }
    }

    /// The image of an entity; `None` when there is none.
    fn image(&self, (tag, key): Name) -> Option<Vec<u8>> {
        let mut bytes = vec![VERSION];
        let out = &mut Encoder::new(&mut bytes);
        match tag {
            RESOURCE => self.resources.get(&key)?.image(out),
            DEFINITION => self.definitions.get(&key)?.image(out),
            RETIRED => self.retired.get(&key)?.image(out),
            ELEMENT => self.elements.get(&key)?.image(out),
            TIMER => self.timers.get(&key)?.image(out),
            SUBSCRIPTION => self.subscriptions.get(&key)?.image(out),
            MESSAGE => self.messages.get(&key)?.image(out),
            SIGNAL => self.signals.get(&key)?.image(out),
            INCIDENT => self.incidents.get(&key)?.image(out),
            USER_TASK => self.user_tasks.get(&key)?.image(out),
            TRANSITION => self.transitions.get(&key)?.image(out),
            TASK_DEFINITION => self.workflows.task_definitions.get(&key)?.image(out),
            WORKFLOW_DEFINITION => self.workflows.definitions.get(&key)?.image(out),
            HANDLER => self.workflows.handlers.get(&key)?.image(out),
            WORKFLOW => self.workflows.workflows.get(&key)?.image(out),
            TASK => self.workflows.tasks.get(&key)?.image(out),
            _ => unreachable!("tags are those above"),
        }
        Some(bytes)
    }

    /// Takes in one image and its hash.
    pub fn load(&mut self, key: &[u8], value: &[u8], hash: u64) -> Result<(), DecodeError> {
        let input = &mut Decoder::new(value);
        let version = input.u8()?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion { version });
        }
        let Some((&tag, rest)) = key.split_first() else { return Err(DecodeError::Truncated) };
        if tag == TODO {
            self.todo = VecDeque::decode_from(input)?;
            self.dirt.todo_hash = hash;
            return Ok(());
        }
        let raw: [u8; 8] = rest.try_into().map_err(|_| DecodeError::Truncated)?;
        let key = Key::from_raw(u64::from_be_bytes(raw));
        match tag {
            RESOURCE => {
                let resource = Resource::load(input)?;
                self.resources.insert(key, resource);
            }
            DEFINITION => {
                let definition = Definition::load(input)?;
                self.link_definition(key, definition);
            }
            RETIRED => self.link_retired(key, Retired::load(input)?),
            ELEMENT => {
                let element = Element::load(key, input, self)?;
                self.link_element(key, element);
            }
            TIMER => self.link_timer(key, Timer::load(input)?),
            SUBSCRIPTION => {
                let subscription = Subscription::load(input)?;
                self.link_subscription(key, subscription);
            }
            MESSAGE => self.link_message(key, Message::load(input)?),
            SIGNAL => {
                self.signals.insert(key, Signal::load(input)?);
            }
            INCIDENT => {
                self.incidents.insert(key, Incident::load(input)?);
            }
            USER_TASK => {
                self.user_tasks.insert(key, UserTask::load(input)?);
            }
            TRANSITION => {
                self.transitions.insert(key, Transition::load(input)?);
            }
            TASK_DEFINITION => self.link_task_definition(key, KnownTask::load(input)?),
            WORKFLOW_DEFINITION => self.load_definition(key, input)?,
            HANDLER => self.link_handler(key, Handler::load(input)?),
            WORKFLOW => self.load_workflow(key, input)?,
            TASK => self.link_task(key, Task::load(input)?),
            tag => return Err(DecodeError::UnknownTag { field: "image of a flow", tag }),
        }
        self.dirt.hashes.insert((tag, key), hash);
        Ok(())
    }

    /// After the last image: what refers to entities with larger keys.
    pub fn finish_load(&mut self) {
        self.finish_load_of_workflows();
        let members: Vec<(Key, Key, Key)> = self
            .elements
            .iter()
            .map(|(key, element)| {
                (*key, element.scope, element.process.as_ref().map_or(Key::NONE, |it| it.parent))
            })
            .collect();
        let instances: Vec<(Key, Key)> = self
            .elements
            .iter()
            .filter_map(|(key, element)| Some((*key, element.process.as_ref()?.root)))
            .collect();
        for element in self.elements.values_mut() {
            element.called_instances = 0;
        }
        for (key, root) in instances {
            self.count_called(key, root, |count| count.saturating_add(1));
        }
        for (key, scope, parent) in members {
            if let Some(scope) = self.elements.get_mut(&scope) {
                scope.children.insert(key);
            }
            if let Some(parent) = self.elements.get_mut(&parent) {
                parent.called = Some(key);
            }
        }
    }
}

/// What a file is compiled to.
pub(crate) fn compile(name: &str, bytes: &[u8]) -> Compiled {
    let unreadable =
        |problem: Option<String>| Compiled::Unreadable(problem.unwrap_or_default().into());
    if name.ends_with(".bpmn") || name.ends_with(".bpmn20.xml") {
        return match bpmn::compile(bytes) {
            Ok(compiled) => {
                Compiled::Processes(compiled.processes.into_iter().map(Arc::new).collect())
            }
            Err(problems) => unreadable(problems.first().map(ToString::to_string)),
        };
    }
    if name.ends_with(".dmn") {
        return match dmn::parse(bytes) {
            Ok(model) => Compiled::Decisions(Arc::new(model)),
            Err(problems) => unreadable(problems.first().map(ToString::to_string)),
        };
    }
    Compiled::Plain
}

fn key_bytes((tag, key): Name) -> [u8; 9] {
    let mut bytes = [tag; 9];
    for (place, byte) in bytes.iter_mut().skip(1).zip(key.raw().to_be_bytes()) {
        *place = byte;
    }
    bytes
}

// ── values ──────────────────────────────────────────────────────────────────────────────────

/// A value that an image owns.
pub(crate) trait Value: Sized {
    fn put(&self, out: &mut Encoder<'_>);
    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

macro_rules! values_as_fields {
    ($($name:ty)*) => {
        $(impl Value for $name {
            fn put(&self, out: &mut Encoder<'_>) {
                Field::encode(self, out);
            }

            fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                Field::decode(input)
            }
        })*
    };
}

values_as_fields! {
    Key u32 u64 bool JobRole windlass_record::flow::DefinitionKind
    windlass_record::flow::SubscriptionKind windlass_record::flow::FlowIncidentKind
    windlass_record::flow::UserTaskEvent
    windlass_record::workflow::TaskStatus windlass_record::workflow::WorkflowStatus
}

// What stands behind `|` came later: images that were written before have it not.
macro_rules! images {
    ($($name:ident { $($field:ident),* } $(| { $($later:ident : $absent:expr),* })?
        $(+ { $($derived:ident : $value:expr),* })?)*) => {
        $(impl $name {
            pub(crate) fn image(&self, out: &mut Encoder<'_>) {
                $(self.$field.put(out);)*
                $($(self.$later.put(out);)*)?
            }

            pub(crate) fn load(input: &mut Decoder<'_>) -> Result<$name, DecodeError> {
                Ok($name {
                    $($field: Value::take(input)?,)*
                    $($($later: if input.is_empty() { $absent } else { Value::take(input)? },)*)?
                    $($($derived: $value,)*)?
                })
            }
        })*
    };
}

pub(crate) use images;

images! {
    Definition {
        deployment, resource, tenant, kind, id, version, version_tag, name, group, nodes
    } + { graph: None, model: None }
    Retired { tenant, id, version }
    Timer { owner, node, due_ms, repetitions }
    Subscription { owner, node, kind, tenant, name, correlation_key }
    Message { tenant, name, correlation_key, message_id, until_ms, variables, reached }
    Signal { tenant, name, variables, through }
    Incident { element, kind, message, since_ms }
    UserTask {
        element, assignee, candidate_groups, candidate_users, due_date, follow_up_date, priority,
        form, form_reference, headers
    }
    Transition { event, task, action, assignee, variables, local }
    Process { parent, root, starts, business_id, tags, awaited, started_by, started_ms }
    Loop { items, entered, collected, results, satisfied } + { bytes: 0 }
    Triggered { node, variables }
    Kept { node, variables }
}

impl Resource {
    fn image(&self, out: &mut Encoder<'_>) {
        self.tenant.put(out);
        self.name.put(out);
        out.bytes(&self.bytes);
    }

    fn load(input: &mut Decoder<'_>) -> Result<Resource, DecodeError> {
        let (tenant, name) = (Text::take(input)?, Text::take(input)?);
        let bytes = input.bytes()?;
        let compiled = compile(&name, bytes);
        Ok(Resource { tenant, name, bytes: bytes.into(), compiled })
    }
}

impl Element {
    fn image(&self, out: &mut Encoder<'_>) {
        self.scope.put(out);
        self.instance.put(out);
        self.definition.put(out);
        self.node.put(out);
        self.phase.put(out);
        self.loop_counter.put(out);
        self.begin_at.put(out);
        out.u64(u64::try_from(self.variables.len()).expect("a length fits 64 bits"));
        for (name, value) in &self.variables {
            name.put(out);
            value.put(out);
        }
        out.u64(u64::try_from(self.parked.len()).expect("a length fits 64 bits"));
        for (flow, tokens) in &self.parked {
            flow.put(out);
            tokens.put(out);
        }
        self.job.put(out);
        self.listener.put(out);
        self.looped.put(out);
        out.u64(u64::try_from(self.triggered.len()).expect("a length fits 64 bits"));
        self.triggered.iter().for_each(|event| event.put(out));
        self.incident.put(out);
        self.user_task.put(out);
        self.process.put(out);
        self.kept.put(out);
        self.entered.put(out);
    }

    fn load(_key: Key, input: &mut Decoder<'_>, state: &FlowState) -> Result<Element, DecodeError> {
        let (scope, instance) = (Key::take(input)?, Key::take(input)?);
        let definition = Key::take(input)?;
        let graph = state
            .definitions
            .get(&definition)
            .and_then(|definition| definition.graph.clone())
            .ok_or(DecodeError::UnknownTag { field: "definition of an element", tag: 0 })?;
        let node = NodeId::take(input)?;
        let mut element = Element::new(scope, instance, definition, graph, node);
        element.phase = Phase::take(input)?;
        element.loop_counter = Value::take(input)?;
        element.begin_at = Value::take(input)?;
        let variables: Vec<(Text, Text)> = Value::take(input)?;
        element.variables = variables.into_iter().collect();
        let parked: Vec<(u32, u32)> = Value::take(input)?;
        element.parked = parked.into_iter().collect::<BTreeMap<_, _>>();
        element.job = Value::take(input)?;
        element.listener = Value::take(input)?;
        element.looped = Value::take(input)?;
        let triggered: Vec<Triggered> = Value::take(input)?;
        element.triggered = triggered.into();
        element.incident = Value::take(input)?;
        element.user_task = Value::take(input)?;
        element.process = Value::take(input)?;
        element.kept = Value::take(input)?;
        element.entered = Value::take(input)?;
        if let Some(looped) = &mut element.looped {
            looped.bytes = looped.results.iter().map(|result| result.len()).sum();
        }
        Ok(element)
    }
}

macro_rules! values_as_images {
    ($($name:ident)*) => {
        $(impl Value for $name {
            fn put(&self, out: &mut Encoder<'_>) {
                self.image(out);
            }

            fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                $name::load(input)
            }
        })*
    };
}

values_as_images! { Process Loop Triggered Kept UserTask }

impl Value for NodeId {
    fn put(&self, out: &mut Encoder<'_>) {
        out.u32(self.0);
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(NodeId(input.u32()?))
    }
}

impl Value for Phase {
    fn put(&self, out: &mut Encoder<'_>) {
        out.u8(match self {
            Phase::Entering => 0,
            Phase::Active => 1,
            Phase::Completing => 2,
            Phase::Terminating => 3,
        });
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Phase::Entering,
            1 => Phase::Active,
            2 => Phase::Completing,
            3 => Phase::Terminating,
            tag => return Err(DecodeError::UnknownTag { field: "phase", tag }),
        })
    }
}

impl Value for Todo {
    fn put(&self, out: &mut Encoder<'_>) {
        let (tag, key) = match self {
            Todo::Element(key) => (0, key),
            Todo::Message(key) => (1, key),
            Todo::Signal(key) => (2, key),
            Todo::Workflow(key) => (3, key),
            Todo::Task(key) => (4, key),
        };
        out.u8(tag);
        key.put(out);
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let tag = input.u8()?;
        let key = Key::take(input)?;
        Ok(match tag {
            0 => Todo::Element(key),
            1 => Todo::Message(key),
            2 => Todo::Signal(key),
            3 => Todo::Workflow(key),
            4 => Todo::Task(key),
            tag => return Err(DecodeError::UnknownTag { field: "entry of the to-do list", tag }),
        })
    }
}

impl Value for Text {
    fn put(&self, out: &mut Encoder<'_>) {
        out.str(self);
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(input.str()?.into())
    }
}

impl<A: Value, B: Value> Value for (A, B) {
    fn put(&self, out: &mut Encoder<'_>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok((A::take(input)?, B::take(input)?))
    }
}

impl<A: Value, B: Value, C: Value> Value for (A, B, C) {
    fn put(&self, out: &mut Encoder<'_>) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok((A::take(input)?, B::take(input)?, C::take(input)?))
    }
}

impl<T: Value> Value for Option<T> {
    fn put(&self, out: &mut Encoder<'_>) {
        out.bool(self.is_some());
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(if input.bool()? { Some(T::take(input)?) } else { None })
    }
}

impl<T: Value> Value for Box<T> {
    fn put(&self, out: &mut Encoder<'_>) {
        (**self).put(out);
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Box::new(T::take(input)?))
    }
}

impl<T: Value> Value for Vec<T> {
    fn put(&self, out: &mut Encoder<'_>) {
        out.u64(u64::try_from(self.len()).expect("a length fits 64 bits"));
        self.iter().for_each(|item| item.put(out));
    }

    fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let count = input.u64()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(T::take(input)?);
        }
        Ok(items)
    }
}

macro_rules! values_as_lists {
    ($($name:ty: $item:ty)*) => {
        $(impl Value for $name {
            fn put(&self, out: &mut Encoder<'_>) {
                out.u64(u64::try_from(self.len()).expect("a length fits 64 bits"));
                self.iter().for_each(|item| item.put(out));
            }

            fn take(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                Ok(Vec::<$item>::take(input)?.into_iter().collect())
            }
        })*
    };
}

values_as_lists! {
    Arc<[Text]>: Text
    Arc<[(Text, Text, Text)]>: (Text, Text, Text)
    Box<[NodeId]>: NodeId
    std::collections::BTreeSet<Text>: Text
}

/// The to-do list as an image.
trait TodoImage: Sized {
    fn encode_into(&self, bytes: &mut Vec<u8>);
    fn decode_from(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

impl TodoImage for VecDeque<Todo> {
    fn encode_into(&self, bytes: &mut Vec<u8>) {
        let out = &mut Encoder::new(bytes);
        out.u64(u64::try_from(self.len()).expect("a length fits 64 bits"));
        self.iter().for_each(|todo| todo.put(out));
    }

    fn decode_from(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Vec::take(input)?.into())
    }
}
