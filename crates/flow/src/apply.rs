//! What an event does to the state of flows. Only assigns: every choice was made by a verb or a
//! step and stands in the event. Replay is decode and this.
//!
//! Elements stand here; definitions in `definition`, timers, subscriptions and messages in `wait`.

mod definition;
mod wait;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_record::flow::{
    ElementEntered, FlowEvent, InstanceStarted, JobRole, Key, UserTaskCreated,
    UserTaskTransitionStarted,
};

use crate::graph::{Kind, NodeId, Text, Trigger};
use crate::state::definition::Definition;
use crate::state::element::{Element, Incident, Kept, Loop, Phase, Process, Triggered, UserTask};
use crate::state::image;
use crate::state::transition::{Transition, TransitionEnded, TransitionOutcome};
use crate::state::wait::{Signal, Timer};
use crate::state::{FlowState, InstanceEnded, Todo};

impl FlowState {
    /// Applies an event of the record made at `now_ms`.
    pub fn apply(&mut self, now_ms: u64, event: &FlowEvent<'_>) {
        match event {
            FlowEvent::StepTaken => {
                self.todo.pop_front();
                self.todo_is_dirty = true;
            }
            FlowEvent::ResourceDeployed { key, tenant, name, bytes } => {
                self.resource_deployed(*key, tenant, name, bytes);
            }
            FlowEvent::DefinitionDeployed(deployed) => self.definition_deployed(deployed),
            FlowEvent::DefinitionDeleted { key } => self.definition_deleted(*key),
            FlowEvent::InstanceStarted(started) => self.instance_started(now_ms, started),
            FlowEvent::ElementEntered(entered) => self.element_entered(entered),
            FlowEvent::ElementActivated { key } => self.live_mut(*key).phase = Phase::Active,
            FlowEvent::ElementCompleting { key } => {
                let element = self.live_mut(*key);
                element.phase = Phase::Completing;
                element.listener = 0;
                self.queue(Todo::Element(*key));
            }
            FlowEvent::ElementTerminating { key } => {
                self.live_mut(*key).phase = Phase::Terminating;
                self.queue(Todo::Element(*key));
            }
            FlowEvent::ElementCompleted { key } => self.element_gone(*key, true),
            FlowEvent::ElementTerminated { key } => self.element_gone(*key, false),
            FlowEvent::ElementQueued { key } => self.queue(Todo::Element(*key)),
            FlowEvent::TokenParked { scope, flow } => {
                *self.live_mut(*scope).parked.entry(*flow).or_default() += 1;
            }
            FlowEvent::VariablesSet { scope, variables } => {
                let element = self.live_mut(*scope);
                for (name, value) in variables.iter() {
                    set(&mut element.variables, name, value);
                }
            }
            FlowEvent::JobAttached { element, job, role } => {
                self.live_mut(*element).job = Some((*job, *role));
                self.jobs.insert(*job, *element);
            }
            FlowEvent::JobDetached { element, job } => {
                self.jobs.remove(job);
                self.live_mut(*element).job = None;
                self.moved_on(*element);
            }
            FlowEvent::ListenerPassed { element, next } => {
                self.live_mut(*element).listener = *next;
                self.queue(Todo::Element(*element));
            }
            FlowEvent::LoopStarted { element, items } => {
                let items: Vec<Text> = items.iter().map(|item| Text::from(&**item)).collect();
                let results = vec![Text::default(); items.len()];
                let looped =
                    Loop { items, entered: 0, collected: 0, results, satisfied: false, bytes: 0 };
                self.live_mut(*element).looped = Some(Box::new(looped));
                self.queue(Todo::Element(*element));
            }
            FlowEvent::LoopCollected { element, index, value } => {
                self.loop_collected(*element, *index, value);
            }
            FlowEvent::LoopSatisfied { element } => self.loop_satisfied(*element),
            FlowEvent::EventTriggered { element, node, variables } => {
                let event = Triggered { node: NodeId(*node), variables: owned(variables) };
                let is_outside = comes_from_outside(&self.live(*element).graph, event.node);
                self.live_mut(*element).triggered.push_back(event);
                self.queue(Todo::Element(*element));
                if is_outside {
                    self.moved_on(*element);
                }
            }
            FlowEvent::EventTaken { element } => self.event_taken(*element),
            FlowEvent::InstanceMigrated { instance, definition, nodes } => {
                self.instance_migrated(*instance, *definition, nodes);
            }
            FlowEvent::CompensationKept { scope, node, variables } => {
                let kept = Kept { node: NodeId(*node), variables: owned(variables) };
                self.live_mut(*scope).kept.push(kept);
            }
            FlowEvent::CompensationTaken { scope, node } => self.compensation_taken(*scope, *node),
            // The partition counts keys.
            FlowEvent::KeyUsed { .. } => {}
            FlowEvent::Workflow(event) => self.apply_workflow(now_ms, event),
            FlowEvent::TimerArmed { .. }
            | FlowEvent::TimerGone { .. }
            | FlowEvent::SubscriptionOpened(_)
            | FlowEvent::SubscriptionClosed { .. }
            | FlowEvent::MessagePublished(_)
            | FlowEvent::MessageCorrelated { .. }
            | FlowEvent::MessageQueued { .. }
            | FlowEvent::MessageExpired { .. }
            | FlowEvent::SignalBroadcast { .. }
            | FlowEvent::SignalProgressed { .. }
            | FlowEvent::SignalEnded { .. }
            | FlowEvent::IncidentRaised { .. }
            | FlowEvent::IncidentResolved { .. }
            | FlowEvent::UserTaskCreated(_)
            | FlowEvent::UserTaskChanged(_)
            | FlowEvent::UserTaskEnded { .. }
            | FlowEvent::UserTaskTransitionStarted(_)
            | FlowEvent::UserTaskCorrected(_)
            | FlowEvent::UserTaskTransitionEnded { .. } => self.apply_wait(now_ms, event),
        }
    }

    /// Those about what is waited for, and by whom.
    fn apply_wait(&mut self, now_ms: u64, event: &FlowEvent<'_>) {
        match event {
            FlowEvent::TimerArmed { key, owner, node, due_ms, repetitions } => {
                let timer = Timer {
                    owner: *owner,
                    node: NodeId(*node),
                    due_ms: *due_ms,
                    repetitions: *repetitions,
                };
                self.touch(image::TIMER, *key);
                self.link_timer(*key, timer);
            }
            FlowEvent::TimerGone { key } => self.timer_gone(*key),
            FlowEvent::SubscriptionOpened(opened) => self.subscription_opened(opened),
            FlowEvent::SubscriptionClosed { key } => self.subscription_closed(*key),
            FlowEvent::MessagePublished(published) => self.message_published(published),
            FlowEvent::MessageCorrelated { message, process_id, .. } => {
                self.touch(image::MESSAGE, *message);
                if let Some(message) = self.messages.get_mut(message) {
                    message.reached.insert((*process_id).into());
                }
            }
            FlowEvent::MessageQueued { key } => self.queue(Todo::Message(*key)),
            FlowEvent::MessageExpired { key } => self.message_expired(*key),
            FlowEvent::SignalBroadcast { key, tenant, name, variables } => {
                let signal = Signal {
                    tenant: (*tenant).into(),
                    name: (*name).into(),
                    variables: (*variables).into(),
                    through: Key::NONE,
                };
                self.touch(image::SIGNAL, *key);
                self.signals.insert(*key, signal);
                self.queue(Todo::Signal(*key));
            }
            FlowEvent::SignalProgressed { key, through } => self.signal_progressed(*key, *through),
            FlowEvent::SignalEnded { key } => {
                self.touch(image::SIGNAL, *key);
                self.signals.remove(key);
            }
            FlowEvent::IncidentRaised { key, element, kind, message } => {
                self.live_mut(*element).incident = Some(*key);
                let incident = Incident {
                    element: *element,
                    kind: *kind,
                    message: (*message).into(),
                    since_ms: now_ms,
                };
                self.touch(image::INCIDENT, *key);
                self.incidents.insert(*key, incident);
            }
            FlowEvent::IncidentResolved { key } => self.incident_resolved(*key),
            FlowEvent::UserTaskCreated(task) | FlowEvent::UserTaskChanged(task) => {
                self.live_mut(task.element).user_task = Some(task.key);
                self.touch(image::USER_TASK, task.key);
                self.user_tasks.insert(task.key, user_task(task));
            }
            FlowEvent::UserTaskEnded { key, completed } => self.user_task_ended(*key, *completed),
            FlowEvent::UserTaskTransitionStarted(started) => self.transition_started(started),
            FlowEvent::UserTaskCorrected(task) => {
                self.touch(image::TRANSITION, task.key);
                if let Some(transition) = self.transitions.get_mut(&task.key) {
                    transition.task = user_task(task);
                }
            }
            FlowEvent::UserTaskTransitionEnded { key, denied, reason } => {
                let denied = denied.then(|| TransitionOutcome::Denied((*reason).into()));
                self.transition_ended(*key, denied.unwrap_or(TransitionOutcome::Done));
            }
            FlowEvent::StepTaken
            | FlowEvent::ResourceDeployed { .. }
            | FlowEvent::DefinitionDeployed(_)
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
            | FlowEvent::VariablesSet { .. }
            | FlowEvent::JobAttached { .. }
            | FlowEvent::JobDetached { .. }
            | FlowEvent::ListenerPassed { .. }
            | FlowEvent::LoopStarted { .. }
            | FlowEvent::LoopCollected { .. }
            | FlowEvent::LoopSatisfied { .. }
            | FlowEvent::EventTriggered { .. }
            | FlowEvent::EventTaken { .. }
            | FlowEvent::InstanceMigrated { .. }
            | FlowEvent::CompensationKept { .. }
            | FlowEvent::CompensationTaken { .. }
            | FlowEvent::Workflow(_)
            | FlowEvent::KeyUsed { .. } => {
                unreachable!("{event:?} is applied with the elements")
            }
        }
    }

    fn incident_resolved(&mut self, key: Key) {
        self.touch(image::INCIDENT, key);
        if let Some(incident) = self.incidents.remove(&key) {
            self.live_mut(incident.element).incident = None;
            self.queue(Todo::Element(incident.element));
            self.moved_on(incident.element);
        }
    }

    fn user_task_ended(&mut self, key: Key, completed: bool) {
        let done = TransitionOutcome::Done;
        self.transition_ended(key, if completed { done } else { TransitionOutcome::Cancelled });
        self.touch(image::USER_TASK, key);
        if let Some(task) = self.user_tasks.remove(&key) {
            self.live_mut(task.element).user_task = None;
            self.moved_on(task.element);
        }
    }

    fn transition_started(&mut self, started: &UserTaskTransitionStarted<'_>) {
        let (task, element) = (started.task.key, started.task.element);
        self.transition_ended(task, TransitionOutcome::Cancelled);
        let transition = Transition {
            event: started.event,
            task: user_task(&started.task),
            action: (&*started.action).into(),
            assignee: (&*started.assignee).into(),
            variables: owned(&started.variables),
            local: started.local,
        };
        self.touch(image::TRANSITION, task);
        self.transitions.insert(task, transition);
        self.live_mut(element).listener = 0;
        self.queue(Todo::Element(element));
    }

    fn transition_ended(&mut self, task: Key, outcome: TransitionOutcome) {
        self.touch(image::TRANSITION, task);
        if self.transitions.remove(&task).is_some() {
            self.effects.transitions.push(TransitionEnded { task, outcome });
        }
    }

    fn compensation_taken(&mut self, scope: Key, node: u32) {
        let kept = &mut self.live_mut(scope).kept;
        if let Some(at) = kept.iter().rposition(|kept| kept.node == NodeId(node)) {
            kept.remove(at);
        }
    }

    fn signal_progressed(&mut self, key: Key, through: Key) {
        self.touch(image::SIGNAL, key);
        if let Some(signal) = self.signals.get_mut(&key) {
            signal.through = through;
        }
        self.queue(Todo::Signal(key));
    }

    pub(crate) fn queue(&mut self, todo: Todo) {
        self.todo.push_back(todo);
        self.todo_is_dirty = true;
    }

    // ── elements ────────────────────────────────────────────────────────────────────────────

    fn instance_started(&mut self, now_ms: u64, started: &InstanceStarted<'_>) {
        let graph = self
            .definitions
            .get(&started.definition)
            .and_then(|definition| definition.graph.clone())
            .expect("only what is compiled is started");
        let process = Process {
            parent: started.parent,
            root: started.root,
            starts: started.starts.iter().map(|node| NodeId(*node)).collect(),
            business_id: started.business_id.into(),
            tags: started.tags.iter().map(|tag| Text::from(&**tag)).collect(),
            awaited: started.awaited,
            started_by: started.started_by.into(),
            started_ms: now_ms,
        };
        let mut element =
            Element::new(Key::NONE, started.key, started.definition, graph, NodeId::PROCESS);
        element.process = Some(Box::new(process));
        self.touch(image::ELEMENT, started.key);
        self.link_element(started.key, element);
        self.queue(Todo::Element(started.key));
    }

    fn element_entered(&mut self, entered: &ElementEntered) {
        let scope = self.live_mut(entered.scope);
        let node = NodeId(entered.node);
        let graph = scope.graph.clone();
        // A gateway that waited for tokens takes one of each flow that has some.
        if matches!(graph.node(node).kind, Kind::Parallel | Kind::Inclusive) {
            for flow in &graph.node(node).incoming {
                if let Some(tokens) = scope.parked.get_mut(&flow.0) {
                    *tokens -= 1;
                    if *tokens == 0 {
                        scope.parked.remove(&flow.0);
                    }
                }
            }
        }
        if entered.loop_counter > 0
            && let Some(looped) = &mut scope.looped
        {
            looped.entered = looped.entered.max(entered.loop_counter);
        }
        if entered.loop_counter == 0 {
            scope.entered = scope.entered.saturating_add(1);
        }
        let (instance, definition) = (scope.instance, scope.definition);
        let mut element = Element::new(entered.scope, instance, definition, graph, node);
        element.loop_counter = entered.loop_counter;
        element.begin_at = entered.begin_at.map(NodeId);
        self.touch(image::ELEMENT, entered.key);
        self.link_element(entered.key, element);
        self.queue(Todo::Element(entered.key));
    }

    /// Something outside moved an element on: the scopes around it do not go round in a circle.
    fn moved_on(&mut self, key: Key) {
        // Below it nothing can be wrong, and most scopes need not be written again.
        const COUNT_MIN: u32 = 1_000;
        let mut at = key;
        while let Some(element) = self.elements.get(&at) {
            let next = element.process.as_ref().map_or(element.scope, |process| process.parent);
            if element.entered >= COUNT_MIN {
                self.live_mut(at).entered = 0;
            }
            at = next;
        }
    }

    /// Counts the instances below an outermost one.
    pub(crate) fn count_called(&mut self, key: Key, root: Key, change: impl Fn(u32) -> u32) {
        if key != root
            && let Some(root) = self.elements.get_mut(&root)
        {
            root.called_instances = change(root.called_instances);
        }
    }

    /// Puts an element instance into its indexes.
    pub(crate) fn link_element(&mut self, key: Key, element: Element) {
        if let Some(scope) = self.elements.get_mut(&element.scope) {
            scope.children.insert(key);
        }
        if let Some((job, _)) = element.job {
            self.jobs.insert(job, key);
        }
        if let Some(process) = &element.process {
            if let Some(parent) = self.elements.get_mut(&process.parent) {
                parent.called = Some(key);
            }
            let root = process.root;
            self.count_called(key, root, |count| count.saturating_add(1));
            self.instances_of.entry(element.definition).or_default().insert(key);
            if let Some(definition) = self.definitions.get(&element.definition) {
                let tenant = definition.tenant.clone();
                if !process.started_by.is_empty() {
                    let lock = (tenant.clone(), definition.id.clone(), process.started_by.clone());
                    self.started_by.insert(lock, key);
                }
                if !process.business_id.is_empty() {
                    self.business_ids.insert((tenant, process.business_id.clone()), key);
                }
            }
        }
        self.elements.insert(key, element);
    }

    fn element_gone(&mut self, key: Key, completed: bool) {
        self.touch(image::ELEMENT, key);
        let Some(element) = self.elements.remove(&key) else { return };
        if let Some(incident) = element.incident {
            self.touch(image::INCIDENT, incident);
            self.incidents.remove(&incident);
        }
        if let Some((job, _)) = element.job {
            self.jobs.remove(&job);
        }
        if let Some(scope) = self.elements.get_mut(&element.scope) {
            scope.children.remove(&key);
            let wakes = scope.phase == Phase::Terminating || !scope.triggered.is_empty();
            if wakes && scope.children.is_empty() {
                self.queue(Todo::Element(element.scope));
            }
        }
        let Some(process) = element.process else { return };
        self.count_called(key, process.root, |count| count.saturating_sub(1));
        if let Some(instances) = self.instances_of.get_mut(&element.definition) {
            instances.remove(&key);
            if instances.is_empty() {
                self.instances_of.remove(&element.definition);
            }
        }
        if let Some(parent) = self.elements.get_mut(&process.parent) {
            parent.called = None;
            if parent.phase == Phase::Terminating {
                self.queue(Todo::Element(process.parent));
            }
        }
        if let Some(definition) = self.definitions.get(&element.definition) {
            let tenant = definition.tenant.clone();
            if !process.started_by.is_empty() {
                let lock = (tenant.clone(), definition.id.clone(), process.started_by);
                if self.started_by.get(&lock) == Some(&key) {
                    self.started_by.remove(&lock);
                }
            }
            let named = (tenant, process.business_id);
            if self.business_ids.get(&named) == Some(&key) {
                self.business_ids.remove(&named);
            }
        }
        if process.awaited {
            let variables = completed.then(|| element.variables.into_iter().collect());
            self.effects.ended.push(InstanceEnded { key, variables });
        }
    }

    fn event_taken(&mut self, key: Key) {
        let element = self.live_mut(key);
        let event = element.triggered.pop_front();
        let more = !element.triggered.is_empty();
        let clears = event.is_some_and(|event| {
            let node = element.graph.node(event.node);
            matches!(node.kind, Kind::EventSubProcess) && element.graph.interrupts(event.node)
        });
        if clears {
            element.parked.clear();
        }
        if more {
            self.queue(Todo::Element(key));
        }
    }

    fn loop_satisfied(&mut self, key: Key) {
        if let Some(looped) = &mut self.live_mut(key).looped {
            looped.satisfied = true;
        }
        self.queue(Todo::Element(key));
    }

    fn loop_collected(&mut self, key: Key, index: u32, value: &str) {
        let Some(looped) = &mut self.live_mut(key).looped else { return };
        looped.collected += 1;
        let place = usize::try_from(index).ok().and_then(|index| looped.results.get_mut(index));
        if let Some(place) = place {
            *place = value.into();
            looped.bytes = looped.bytes.saturating_add(value.len());
        }
    }

    fn instance_migrated(&mut self, instance: Key, definition: Key, nodes: &[(u32, u32)]) {
        let Some(graph) = self.definitions.get(&definition).and_then(|to| to.graph.clone()) else {
            return;
        };
        let nodes: BTreeMap<u32, u32> = nodes.iter().copied().collect();
        let mut members = vec![instance];
        let mut at = 0;
        while let Some(key) = members.get(at).copied() {
            at += 1;
            members.extend(self.live(key).children.iter().copied());
        }
        let old = self.live(instance).definition;
        self.move_lock(instance, old, definition);
        for key in members {
            let element = self.live_mut(key);
            element.graph = graph.clone();
            element.definition = definition;
            if let Some(node) = nodes.get(&element.node.0) {
                element.node = NodeId(*node);
            }
            for kept in &mut element.kept {
                if let Some(node) = nodes.get(&kept.node.0) {
                    kept.node = NodeId(*node);
                }
            }
            for wait in element.waits.clone() {
                self.touch(image::TIMER, wait);
                self.touch(image::SUBSCRIPTION, wait);
                let place = match (self.timers.get_mut(&wait), self.subscriptions.get_mut(&wait)) {
                    (Some(timer), _) => &mut timer.node,
                    (None, Some(subscription)) => &mut subscription.node,
                    (None, None) => continue,
                };
                if let Some(node) = nodes.get(&place.0) {
                    *place = NodeId(*node);
                }
            }
        }
        if let Some(instances) = self.instances_of.get_mut(&old) {
            instances.remove(&instance);
        }
        self.instances_of.entry(definition).or_default().insert(instance);
    }

    /// What an instance keeps others from starting goes with it to its new process.
    fn move_lock(&mut self, instance: Key, old: Key, new: Key) {
        let started_by = self.live(instance).process.as_ref().map(|it| it.started_by.clone());
        let Some(started_by) = started_by.filter(|it| !it.is_empty()) else { return };
        let lock = |definition: &Definition| {
            (definition.tenant.clone(), definition.id.clone(), started_by.clone())
        };
        if let Some(old) = self.definitions.get(&old).map(lock)
            && self.started_by.get(&old) == Some(&instance)
        {
            self.started_by.remove(&old);
        }
        if let Some(new) = self.definitions.get(&new).map(lock) {
            self.started_by.insert(new, instance);
        }
    }
}

impl Element {
    pub(crate) fn new(
        scope: Key,
        instance: Key,
        definition: Key,
        graph: Arc<crate::graph::Graph>,
        node: NodeId,
    ) -> Element {
        Element {
            scope,
            instance,
            definition,
            graph,
            node,
            phase: Phase::Entering,
            loop_counter: 0,
            begin_at: None,
            variables: BTreeMap::new(),
            parked: BTreeMap::new(),
            job: None::<(Key, JobRole)>,
            listener: 0,
            looped: None,
            triggered: std::collections::VecDeque::new(),
            incident: None,
            user_task: None,
            process: None,
            kept: Vec::new(),
            entered: 0,
            called_instances: 0,
            children: std::collections::BTreeSet::new(),
            called: None,
            waits: std::collections::BTreeSet::new(),
        }
    }
}

/// Whether an event is brought by time or by somebody, and not by the process itself.
fn comes_from_outside(graph: &crate::graph::Graph, node: NodeId) -> bool {
    match graph.trigger(node) {
        Some(Trigger::Message(_) | Trigger::Timer(_) | Trigger::Signal(_)) => true,
        Some(
            Trigger::Error(_) | Trigger::Escalation(_) | Trigger::Link(_) | Trigger::Compensation,
        ) => false,
        None => matches!(graph.node(node).kind, Kind::Receive(_)),
    }
}

fn set(variables: &mut BTreeMap<Text, Text>, name: &str, value: &str) {
    match variables.get_mut(name) {
        Some(place) => *place = value.into(),
        None => {
            variables.insert(name.into(), value.into());
        }
    }
}

fn owned(variables: &[(Cow<'_, str>, Cow<'_, str>)]) -> Vec<(Text, Text)> {
    variables.iter().map(|(name, value)| ((&**name).into(), (&**value).into())).collect()
}

fn user_task(task: &UserTaskCreated<'_>) -> UserTask {
    UserTask {
        element: task.element,
        assignee: (&*task.assignee).into(),
        candidate_groups: (&*task.candidate_groups).into(),
        candidate_users: (&*task.candidate_users).into(),
        due_date: (&*task.due_date).into(),
        follow_up_date: (&*task.follow_up_date).into(),
        priority: task.priority,
        form: task.form,
        form_reference: (&*task.form_reference).into(),
        headers: (&*task.headers).into(),
    }
}
