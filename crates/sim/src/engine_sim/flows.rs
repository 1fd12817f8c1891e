//! What the log says about processes. All of them are instances of one: a task and a timer side by
//! side, then a message. Nothing in it goes round, so each of its elements is entered once, its task
//! is done once, and an instance that completed has been everywhere.

use std::collections::{BTreeMap, BTreeSet};

use windlass_flow::FlowState;
use windlass_record::command::QueueName;
use windlass_record::event::Outcome;
use windlass_record::flow::{FlowEvent, Key, job_queue};

use super::ledger::{LedgerEnd, expect};

/// The tenant of all instances.
pub const TENANT: &str = "t";
/// The id of the process.
pub const PROCESS: &str = "sim";
/// The type of its job.
pub const JOB_TYPE: &str = "work";
/// The message that each instance waits for.
pub const MESSAGE: &str = "go";

/// What every instance that completed has been at.
const ALONG_THE_WAY: [&str; 7] = ["start", "fork", "task", "nap", "join", "wait", "end"];

/// The queue of its jobs.
#[must_use]
pub fn queue() -> QueueName {
    QueueName { tenant: TENANT.into(), queue: job_queue(JOB_TYPE) }
}

/// The process, told apart from others of its kind by a comment.
#[must_use]
pub fn document(version: u64) -> String {
    let mut flows = String::new();
    for (from, to) in [
        ("start", "fork"),
        ("fork", "task"),
        ("fork", "nap"),
        ("task", "join"),
        ("nap", "join"),
        ("join", "wait"),
        ("wait", "end"),
    ] {
        let flow = format!("<sequenceFlow id='{from}-{to}' sourceRef='{from}' targetRef='{to}'/>");
        flows.push_str(&flow);
    }
    format!(
        "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' \
         xmlns:z='http://camunda.org/schema/zeebe/1.0' targetNamespace='t'><!-- {version} -->\
         <message id='m' name='{MESSAGE}'><extensionElements>\
         <z:subscription correlationKey='=key'/></extensionElements></message>\
         <process id='{PROCESS}' isExecutable='true'><startEvent id='start'/>\
         <parallelGateway id='fork'/><parallelGateway id='join'/><endEvent id='end'/>\
         <serviceTask id='task'><extensionElements><z:taskDefinition type='{JOB_TYPE}'/>\
         </extensionElements></serviceTask>\
         <intermediateCatchEvent id='nap'><timerEventDefinition><timeDuration>=duration(nap)\
         </timeDuration></timerEventDefinition></intermediateCatchEvent>\
         <intermediateCatchEvent id='wait'><messageEventDefinition messageRef='m'/>\
         </intermediateCatchEvent>{flows}</process></definitions>"
    )
}

/// What the log says about processes.
#[derive(Debug, Default)]
pub struct FlowLedger {
    /// Ids of the elements of each definition, by number.
    definitions: BTreeMap<Key, Vec<String>>,
    /// All instances there ever were.
    pub instances: BTreeMap<Key, LedgerInstance>,
    /// Live element instances: instance and id of the element.
    live: BTreeMap<Key, (Key, String)>,
    /// Element instance and instance of each job that was ever made.
    jobs: BTreeMap<Key, (Key, Key)>,
    /// When the timer of an element instance is due.
    due_ms: BTreeMap<Key, u64>,
    /// Messages there ever were.
    pub messages: BTreeSet<Key>,
    /// Those that reached the process.
    correlated: BTreeSet<Key>,
    newest: u64,
}

/// An instance.
#[derive(Debug)]
pub struct LedgerInstance {
    /// What messages for it are correlated by, JSON.
    pub correlation_key: String,
    /// Whether it is to end.
    pub terminating: bool,
    /// Whether it completed, once it is over.
    pub completed: Option<bool>,
    definition: Key,
    entered: BTreeSet<String>,
    done: BTreeSet<String>,
}

impl FlowLedger {
    /// Whether there is a process to start.
    #[must_use]
    pub fn is_deployed(&self) -> bool {
        !self.definitions.is_empty()
    }

    /// Instances that are not over.
    pub fn live_instances(&self) -> impl Iterator<Item = (Key, &LedgerInstance)> {
        let live = self.instances.iter().filter(|(_, instance)| instance.completed.is_none());
        live.map(|(key, instance)| (*key, instance))
    }

    /// The instance that a job belongs to.
    #[must_use]
    pub fn instance_of(&self, job: Key) -> Option<&LedgerInstance> {
        let (_, instance) = self.jobs.get(&job)?;
        self.instances.get(instance)
    }

    /// An entity has a new key.
    pub fn new_key(&mut self, key: Key) -> Result<(), String> {
        expect(key.raw() > self.newest, "the key is not above all others")?;
        self.newest = key.raw();
        Ok(())
    }

    /// Takes in an event. `ended` are jobs at rest.
    pub fn apply(
        &mut self,
        now_ms: u64,
        event: &FlowEvent<'_>,
        ended: &BTreeMap<Key, LedgerEnd>,
    ) -> Result<(), String> {
        if let Some(key) = event.new_key() {
            self.new_key(key)?;
        }
        if let FlowEvent::DefinitionDeployed(deployed) = event {
            let ids = deployed.nodes.iter().map(|node| node.id.to_string()).collect();
            self.definitions.insert(deployed.key, ids);
        } else if let FlowEvent::InstanceStarted(started) = event {
            let instance = LedgerInstance {
                correlation_key: String::new(),
                terminating: false,
                completed: None,
                definition: started.definition,
                entered: BTreeSet::new(),
                done: BTreeSet::new(),
            };
            self.instances.insert(started.key, instance);
            self.live.insert(started.key, (started.key, PROCESS.to_owned()));
        } else if let FlowEvent::ElementEntered(entered) = event {
            self.entered(entered.key, entered.scope, entered.node)?;
        } else if let FlowEvent::ElementTerminating { key } = event {
            if let Some(instance) = self.instances.get_mut(key) {
                instance.terminating = true;
            }
        } else if let FlowEvent::ElementCompleted { key } = event {
            self.completed(*key, ended)?;
        } else if let FlowEvent::ElementTerminated { key } = event {
            let (instance, id) = self.gone(*key)?;
            let instance = self.instance(instance)?;
            expect(instance.terminating, &format!("{id} is ended, its instance is not"))?;
            if id == PROCESS {
                instance.completed = Some(false);
            }
        } else if let FlowEvent::VariablesSet { scope, variables } = event {
            let named = variables.iter().find(|(name, _)| name == "key");
            if let (Some((_, value)), Some(instance)) = (named, self.instances.get_mut(scope)) {
                instance.correlation_key = value.to_string();
            }
        } else if let FlowEvent::JobAttached { element, job, .. } = event {
            let (instance, _) = self.live.get(element).ok_or("a job of what is not live")?;
            let before = self.jobs.values().any(|(other, _)| other == element);
            expect(!before, "two jobs for one element instance")?;
            self.jobs.insert(*job, (*element, *instance));
        } else if let FlowEvent::TimerArmed { owner, due_ms, .. } = event {
            expect(self.live.contains_key(owner), "a timer of what is not live")?;
            self.due_ms.insert(*owner, *due_ms);
        } else if let FlowEvent::EventTriggered { element, .. } = event {
            let (_, id) = self.live.get(element).ok_or("an event of what is not live")?;
            let due_ms = self.due_ms.get(element).copied().unwrap_or(0);
            expect(due_ms <= now_ms, &format!("{id} is early: it is due at {due_ms}"))?;
        } else if let FlowEvent::MessagePublished(published) = event {
            self.messages.insert(published.key);
        } else if let FlowEvent::MessageCorrelated { message, .. } = event {
            expect(self.messages.contains(message), "nobody published the message")?;
            let is_first = self.correlated.insert(*message);
            expect(is_first, "a message reaches the process twice")?;
        } else if let FlowEvent::IncidentRaised { message, .. } = event {
            return Err(format!("an element is stuck, which none of these can be: {message}"));
        }
        Ok(())
    }

    fn entered(&mut self, key: Key, scope: Key, node: u32) -> Result<(), String> {
        let (instance, _) = self.live.get(&scope).cloned().ok_or("the scope is not live")?;
        let definition = self.instance(instance)?.definition;
        let place = usize::try_from(node).map_err(|error| error.to_string())?;
        let ids = self.definitions.get(&definition).ok_or("no such definition")?;
        let id = ids.get(place).cloned().ok_or("no such element")?;
        let is_first = self.instance(instance)?.entered.insert(id.clone());
        expect(is_first, &format!("{id} is entered twice in one instance"))?;
        self.live.insert(key, (instance, id));
        Ok(())
    }

    fn completed(&mut self, key: Key, ended: &BTreeMap<Key, LedgerEnd>) -> Result<(), String> {
        let (instance, id) = self.gone(key)?;
        if id == "task" {
            let jobs = self.jobs.iter().filter(|(_, (element, _))| *element == key);
            let outcomes: Vec<Option<Outcome>> =
                jobs.map(|(job, _)| ended.get(job).map(|end| end.outcome)).collect();
            let done = outcomes == [Some(Outcome::Completed)];
            expect(done, &format!("the task is done, its jobs are {outcomes:?}"))?;
        }
        let instance = self.instance(instance)?;
        if id != PROCESS {
            let is_first = instance.done.insert(id.clone());
            return expect(is_first, &format!("{id} is done twice in one instance"));
        }
        instance.completed = Some(true);
        let missing = ALONG_THE_WAY.iter().find(|id| !instance.done.contains(**id));
        missing.map_or(Ok(()), |id| Err(format!("it completed without {id}")))
    }

    fn gone(&mut self, key: Key) -> Result<(Key, String), String> {
        self.live.remove(&key).ok_or_else(|| "the element instance is not live".to_owned())
    }

    fn instance(&mut self, key: Key) -> Result<&mut LedgerInstance, String> {
        self.instances.get_mut(&key).ok_or_else(|| "there is no such instance".to_owned())
    }

    /// Whether a state has the instances that the log says, and their element instances.
    pub fn compare(&self, state: &FlowState) -> Result<(), String> {
        let found: BTreeSet<Key> = state.elements().map(|(key, _)| key).collect();
        if let Some(key) = self.live.keys().find(|key| !found.contains(key)) {
            return Err(format!("element instance {key} is lost"));
        }
        let made_up = found.iter().find(|key| !self.live.contains_key(key));
        made_up.map_or(Ok(()), |key| Err(format!("element instance {key} is not in the log")))
    }
}
