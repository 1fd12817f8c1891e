//! Everything that is remembered about flows. Written by [`apply`](crate::apply) alone.
//!
//! Reading order: [`element`] is what runs; [`definition`] what it runs by; [`wait`] what it waits
//! for; [`transition`] what is about to happen to user tasks; [`image`] is how all of it gets into a
//! checkpoint and back.
//!
//! Besides what events name there are indexes (by name, by time, by owner), made by the same
//! `apply`, so that a replay and a load make the same ones.

pub mod definition;
pub mod element;
pub mod image;
pub mod transition;
pub mod wait;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use windlass_record::flow::{DefinitionKind, Key, SubscriptionKind};

use self::definition::{Definition, Resource, Retired};
use self::element::{Element, Incident, UserTask};
use self::image::Dirt;
use self::transition::{Transition, TransitionEnded, UserTaskShown};
use self::wait::{Message, Signal, Subscription, Timer};
use crate::conductor::state::Workflows;
use crate::graph::Text;

/// A map by key. Its order decides nothing.
pub(crate) type Map<T> = HashMap<Key, T, FxBuildHasher>;

/// What identifies all versions of one definition: tenant, kind, id.
pub(crate) type DefinitionName = (Text, DefinitionKind, Text);

/// What a subscription or a buffered message is found by: tenant, name, correlation key.
pub(crate) type Topic = (Text, Text, Text);

/// Everything that is remembered about flows.
#[derive(Debug, Default)]
pub struct FlowState {
    pub(crate) resources: Map<Resource>,
    pub(crate) definitions: Map<Definition>,
    /// Versions of a definition, oldest first.
    pub(crate) versions: BTreeMap<DefinitionName, Vec<Key>>,
    /// Newest versions of processes that were deleted, by their definition.
    pub(crate) retired: Map<Retired>,
    /// The same, by name. Derived.
    pub(crate) retired_by_name: BTreeMap<(Text, Text), Key>,
    pub(crate) elements: Map<Element>,
    /// Which element instance waits for a job.
    pub(crate) jobs: Map<Key>,
    pub(crate) timers: Map<Timer>,
    pub(crate) due: BTreeSet<(u64, Key)>,
    pub(crate) subscriptions: Map<Subscription>,
    pub(crate) topics: BTreeMap<(SubscriptionKind, Topic), BTreeSet<Key>>,
    /// Timers and subscriptions of start events, by definition.
    pub(crate) starts: Map<BTreeSet<Key>>,
    pub(crate) messages: Map<Message>,
    pub(crate) buffered: BTreeMap<Topic, BTreeSet<Key>>,
    pub(crate) message_ids: BTreeMap<(Topic, Text), Key>,
    /// Messages by the time at which they expire.
    pub(crate) expiring: BTreeSet<(u64, Key)>,
    pub(crate) signals: Map<Signal>,
    pub(crate) incidents: Map<Incident>,
    pub(crate) user_tasks: Map<UserTask>,
    /// User tasks that are about to change, by user task.
    pub(crate) transitions: Map<Transition>,
    /// Live instances that were started by a message, by process id and correlation key.
    pub(crate) started_by: BTreeMap<(Text, Text, Text), Key>,
    /// Live instances by the caller's name of them.
    pub(crate) business_ids: BTreeMap<(Text, Text), Key>,
    /// Live process instances by their definition. Derived.
    pub(crate) instances_of: Map<BTreeSet<Key>>,
    /// Everything about workflows.
    pub(crate) workflows: Workflows,
    /// What remains to be done, oldest first.
    pub(crate) todo: VecDeque<Todo>,
    pub(crate) todo_is_dirty: bool,
    pub(crate) dirt: Dirt,
    pub(crate) effects: Effects,
}

/// An entry of the to-do list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Todo {
    /// An element instance has something to go on with.
    Element(Key),
    /// A message has somebody to reach.
    Message(Key),
    /// A signal has somebody to reach.
    Signal(Key),
    /// A workflow has something to go on with.
    Workflow(Key),
    /// A task of a workflow has something to go on with.
    Task(Key),
}

/// What the shell must do about what was applied.
#[derive(Debug, Default)]
pub struct Effects {
    /// Instances that somebody waited for.
    pub ended: Vec<InstanceEnded>,
    /// Transitions of user tasks that are over.
    pub transitions: Vec<TransitionEnded>,
}

/// An instance that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceEnded {
    /// The instance.
    pub key: Key,
    /// The variables of its outermost scope, when it completed; `None` when it was ended.
    pub variables: Option<Vec<(Text, Text)>>,
}

impl FlowState {
    /// The live element instance with this key.
    pub fn element(&self, key: Key) -> Option<&Element> {
        self.elements.get(&key)
    }

    /// An element instance that an event or an index speaks of.
    pub(crate) fn live(&self, key: Key) -> &Element {
        self.elements.get(&key).expect("events and indexes name live element instances")
    }

    /// The same, to be changed.
    pub(crate) fn live_mut(&mut self, key: Key) -> &mut Element {
        self.touch(image::ELEMENT, key);
        self.elements.get_mut(&key).expect("events and indexes name live element instances")
    }

    /// Everything about workflows.
    pub fn workflows(&self) -> &Workflows {
        &self.workflows
    }

    /// How long the worker of a workflow's task may be silent (ms); 0 is as it asks.
    pub fn response_ms(&self, job: Key) -> u64 {
        if self.workflows.jobs.is_empty() { 0 } else { self.workflows.response_ms(job) }
    }

    /// Notes that a worker asked for a queue, see [`Workflows::note_poll`].
    pub fn note_poll(&mut self, queue: &str, now_ms: u64) {
        self.workflows.note_poll(queue, now_ms);
    }

    /// The element instance that waits for a job.
    pub fn element_of_job(&self, job: Key) -> Option<Key> {
        self.jobs.get(&job).copied()
    }

    /// The jobs that element instances wait for, in no particular order.
    pub fn attached_jobs(&self) -> impl Iterator<Item = Key> {
        self.jobs.keys().copied()
    }

    /// A definition.
    pub fn definition(&self, key: Key) -> Option<&Definition> {
        self.definitions.get(&key)
    }

    /// All definitions, in no particular order.
    pub fn definitions(&self) -> impl Iterator<Item = (Key, &Definition)> {
        self.definitions.iter().map(|(key, definition)| (*key, definition))
    }

    /// A file.
    pub fn resource(&self, key: Key) -> Option<&Resource> {
        self.resources.get(&key)
    }

    /// The newest version of a definition.
    pub fn latest(&self, tenant: &str, kind: DefinitionKind, id: &str) -> Option<Key> {
        self.all_versions(tenant, kind, id).last().copied()
    }

    /// All versions of a definition, oldest first.
    pub fn all_versions(&self, tenant: &str, kind: DefinitionKind, id: &str) -> &[Key] {
        // The map is small and looked at once per start; a name that borrows would need a wrapper.
        let name: DefinitionName = (tenant.into(), kind, id.into());
        self.versions.get(&name).map_or(&[], Vec::as_slice)
    }

    /// The newest version that a definition has or had.
    pub(crate) fn newest_version(&self, tenant: &str, kind: DefinitionKind, id: &str) -> u32 {
        let newest = self.latest(tenant, kind, id).and_then(|key| self.definition(key));
        let is_process = kind == DefinitionKind::Process;
        let retired = self
            .retired_by_name
            .get(&(tenant.into(), id.into()))
            .filter(|_| is_process)
            .and_then(|key| self.retired.get(key));
        newest.map_or(0, |it| it.version).max(retired.map_or(0, |it| it.version))
    }

    /// All live element instances, in no particular order.
    pub fn elements(&self) -> impl Iterator<Item = (Key, &Element)> {
        self.elements.iter().map(|(key, element)| (*key, element))
    }

    /// The names of messages and signals that somebody waits for, in order.
    pub fn topic_names(&self) -> impl Iterator<Item = &str> {
        self.topics.keys().map(|(_, (_, name, _))| &**name)
    }

    /// The incident with this key.
    pub fn incident(&self, key: Key) -> Option<&Incident> {
        self.incidents.get(&key)
    }

    /// Whose process an incident stands in.
    pub fn tenant_of_incident(&self, key: Key) -> Option<&str> {
        let element = self.element(self.incident(key)?.element)?;
        Some(&self.definition(element.definition)?.tenant)
    }

    /// All incidents of element instances, in no particular order.
    pub fn incidents(&self) -> impl Iterator<Item = (Key, &Incident)> {
        self.incidents.iter().map(|(key, incident)| (*key, incident))
    }

    /// The user task with this key.
    pub fn user_task(&self, key: Key) -> Option<&UserTask> {
        self.user_tasks.get(&key)
    }

    /// How many element instances live.
    pub fn live_elements(&self) -> usize {
        self.elements.len()
    }

    /// How many steps wait.
    pub fn steps_waiting(&self) -> usize {
        self.todo.len()
    }

    /// When the next timer or message is due.
    pub fn next_due_ms(&self) -> Option<u64> {
        let timer_ms = self.due.first().map(|(at_ms, _)| *at_ms);
        let message_ms = self.expiring.first().map(|(at_ms, _)| *at_ms);
        [timer_ms, message_ms, self.workflows.next_due_ms()].into_iter().flatten().min()
    }

    /// Moves what the shell must do out.
    pub fn take_ended(&mut self) -> Vec<InstanceEnded> {
        std::mem::take(&mut self.effects.ended)
    }

    /// The same for transitions of user tasks.
    pub fn take_ended_transitions(&mut self) -> Vec<TransitionEnded> {
        std::mem::take(&mut self.effects.transitions)
    }

    /// The value of a variable, JSON, as an element instance sees it.
    pub fn variable(&self, mut scope: Key, name: &str) -> Option<Text> {
        loop {
            let element = self.elements.get(&scope)?;
            if let Some(value) = element.variables.get(name) {
                return Some(element.results_so_far(name).unwrap_or_else(|| value.clone()));
            }
            scope = element.scope;
        }
    }

    /// All variables that an element instance sees, the nearest of each name.
    pub fn visible_variables(&self, mut scope: Key) -> BTreeMap<Text, Text> {
        let mut seen = BTreeMap::new();
        while let Some(element) = self.elements.get(&scope) {
            for (name, value) in &element.variables {
                seen.entry(name.clone()).or_insert_with(|| {
                    element.results_so_far(name).unwrap_or_else(|| value.clone())
                });
            }
            scope = element.scope;
        }
        seen
    }

    /// All variables that the worker of an element's job sees. The listener of a user task sees what
    /// is to be written too.
    pub fn variables_of_job(&self, job: Key) -> BTreeMap<Text, Text> {
        let Some(key) = self.element_of_job(job) else { return BTreeMap::new() };
        let mut seen = self.visible_variables(key);
        let task = self.element(key).and_then(|element| element.user_task);
        if let Some(transition) = task.and_then(|task| self.transition(task)) {
            seen.extend(transition.variables.iter().cloned());
        }
        seen
    }

    /// The nearest scope, from `scope` outwards, that has the variable; the outermost if none has.
    pub(crate) fn owner_of(&self, mut scope: Key, name: &str) -> Key {
        loop {
            let element = self.live(scope);
            if element.scope == Key::NONE || element.variables.contains_key(name) {
                return scope;
            }
            scope = element.scope;
        }
    }

    /// What a job worker learns about the job's surroundings.
    pub fn facts_of_job(&self, job: Key) -> Option<JobFacts> {
        let key = self.element_of_job(job)?;
        let element = self.live(key);
        let (_, role) = element.job?;
        let definition = self.definitions.get(&element.definition)?;
        let instance = self.elements.get(&element.instance)?.process.as_deref()?;
        Some(JobFacts {
            element: key,
            element_id: element.node().id.clone(),
            instance: element.instance,
            root: instance.root,
            definition: element.definition,
            process_id: definition.id.clone(),
            version: definition.version,
            role,
            business_id: instance.business_id.clone(),
            tags: instance.tags.clone(),
            user_task: role.user_task_event().and_then(|_| self.user_task_of(key)).map(Box::new),
        })
    }
}

/// See [`FlowState::facts_of_job`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFacts {
    /// The element instance.
    pub element: Key,
    /// Its element's id.
    pub element_id: Text,
    /// The process instance.
    pub instance: Key,
    /// The outermost process instance.
    pub root: Key,
    /// The definition.
    pub definition: Key,
    /// The process's id.
    pub process_id: Text,
    /// The definition's version.
    pub version: u32,
    /// What the job does for the element.
    pub role: windlass_record::flow::JobRole,
    /// The caller's own name of the instance.
    pub business_id: Text,
    /// Words to find the instance by.
    pub tags: Arc<[Text]>,
    /// Of the job of a user task's listener: the user task.
    pub user_task: Option<Box<UserTaskShown>>,
}
