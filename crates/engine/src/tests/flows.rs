//! Flows through the engine: processes that the black-box suite runs against real clients too, here
//! step by step and with every state compared.

mod calls;
mod decisions;
mod deployments;
mod errors;
mod events;
mod gateways;
mod hardening;
mod incidents;
mod listeners;
mod loops;
mod messages;
mod operations;
mod signals;
mod timers;
mod undo;
mod users;
mod variables;

use windlass_record::codec::{Decoder, decode_event};
use windlass_record::command::{
    ActivateJobs, Command, CompleteJob, FailJob, Lease, ResolveIncident, ThrowError, UpdateJob,
};
use windlass_record::event::Event;
use windlass_record::flow::{
    BroadcastSignal, CancelInstance, CreateInstance, DeployResources, Deployed, FlowAnswer,
    FlowCommand, FlowEvent, Key, ProcessReference, PublishMessage, SetVariables,
};
use windlass_record::rejection::Rejection;

use crate::Answer;
use crate::verb::check::{Check, LEASE_MS};

pub(super) const TENANT: &str = "<default>";

/// A file of the black-box suite.
macro_rules! process {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../tests/zeebe/processes/",
                $name
            )),
        )
    };
}
use process;

/// A process around some elements, for what no file of the suite shows. `roots` are messages,
/// errors, signals; flows are written `a -> b`, one a line.
pub(super) fn document(id: &str, roots: &str, elements: &str) -> String {
    let mut body = String::new();
    for line in elements.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.split_once(" -> ") {
            Some((from, to)) if !line.starts_with('<') => {
                let (to, condition) = to
                    .split_once(" if ")
                    .map_or((to, None), |(to, condition)| (to, Some(condition)));
                let condition = condition.map_or(String::new(), |condition| {
                    format!("<conditionExpression>={condition}</conditionExpression>")
                });
                body.push_str(&format!(
                    "<sequenceFlow id='{from}-{to}' sourceRef='{from}' targetRef='{to}'>{condition}</sequenceFlow>"
                ));
            }
            Some(_) | None => body.push_str(line),
        }
        body.push('\n');
    }
    format!(
        "<definitions xmlns='http://www.omg.org/spec/BPMN/20100524/MODEL' \
         xmlns:z='http://camunda.org/schema/zeebe/1.0' targetNamespace='t'>{roots}\
         <process id='{id}' isExecutable='true'>{body}</process></definitions>"
    )
}

/// A service task.
pub(super) fn task(id: &str) -> String {
    format!(
        "<serviceTask id='{id}'><extensionElements><z:taskDefinition type='{id}'/></extensionElements></serviceTask>"
    )
}

impl Check {
    pub(super) fn flow(&mut self, command: FlowCommand) -> Result<FlowAnswer, Rejection> {
        let answer = self.give(Command::Flow(command))?;
        let Answer::Flow(answer) = answer else {
            panic!("a command on flows was answered {answer:?}");
        };
        self.settle();
        Ok(answer)
    }

    /// Lets flows go on until they rest.
    pub(super) fn settle(&mut self) {
        let context = self.context();
        let mut steps = 0;
        while self.engine.go_on(context, 1, &mut self.shelf) > 0 {
            steps += 1;
            assert!(steps < 100_000, "flows never rest");
        }
        self.check_invariants();
    }

    pub(super) fn deploy(&mut self, resources: &[(&str, &str)]) -> Result<FlowAnswer, Rejection> {
        let resources =
            resources.iter().map(|(name, text)| ((*name).into(), text.as_bytes().into())).collect();
        self.flow(FlowCommand::DeployResources(DeployResources {
            tenant: TENANT.into(),
            resources,
        }))
    }

    pub(super) fn start(&mut self, process: &str, variables: &str) -> Key {
        match self.try_start(process, variables) {
            Ok(FlowAnswer::InstanceCreated { key, .. }) => key,
            other => panic!("create {process}: {other:?}"),
        }
    }

    pub(super) fn try_start(
        &mut self,
        process: &str,
        variables: &str,
    ) -> Result<FlowAnswer, Rejection> {
        self.flow(FlowCommand::CreateInstance(CreateInstance {
            tenant: TENANT.into(),
            process: ProcessReference::Latest(process.into()),
            variables: variables.as_bytes().into(),
            start_at: Vec::new(),
            business_id: "".into(),
            tags: Vec::new(),
            awaited: true,
        }))
    }

    /// Takes jobs of a type.
    pub(super) fn work(&mut self, job_type: &str, jobs_max: u32) -> Vec<Key> {
        let name = windlass_record::command::QueueName {
            tenant: TENANT.into(),
            queue: windlass_record::flow::job_queue(job_type),
        };
        let Some(queue) = self.engine.state().queue_named(&name) else { return Vec::new() };
        let command = ActivateJobs {
            queues: vec![queue],
            worker: "w".into(),
            lease_ms: LEASE_MS,
            jobs_max,
            bytes_max: u64::MAX,
            with_token: false,
        };
        match self.give(Command::ActivateJobs(command)) {
            Ok(Answer::Activated(handed)) => handed.iter().map(|handed| handed.key).collect(),
            other => panic!("activate: {other:?}"),
        }
    }

    /// The variables that a job's worker sees.
    pub(super) fn seen_by(&self, job: Key) -> String {
        let flow = self.engine.state().flow();
        assert!(flow.element_of_job(job).is_some(), "a job of a flow");
        crate::join(&flow.variables_of_job(job))
    }

    pub(super) fn done(&mut self, job: Key, result: &str) {
        self.give(Command::CompleteJob(CompleteJob {
            lease: Lease { key: job, activation: None },
            result: result.as_bytes().into(),
            documents: Vec::new(),
        }))
        .expect("the job is active");
        self.settle();
    }

    /// Takes the one job of a type and completes it.
    pub(super) fn do_one(&mut self, job_type: &str, result: &str) -> String {
        let jobs = self.work(job_type, 1);
        let job = *jobs.first().unwrap_or_else(|| panic!("no job of type {job_type}"));
        let seen = self.seen_by(job);
        self.done(job, result);
        seen
    }

    pub(super) fn publish(
        &mut self,
        name: &str,
        correlation_key: &str,
        ttl_ms: u64,
        variables: &str,
    ) {
        self.flow(FlowCommand::PublishMessage(PublishMessage {
            tenant: TENANT.into(),
            name: name.into(),
            correlation_key: correlation_key.into(),
            message_id: "".into(),
            time_to_live_ms: ttl_ms,
            variables: variables.as_bytes().into(),
            must_correlate: false,
        }))
        .expect("a message is taken");
    }

    pub(super) fn signal(&mut self, name: &str) {
        self.flow(FlowCommand::BroadcastSignal(BroadcastSignal {
            tenant: TENANT.into(),
            name: name.into(),
            variables: windlass_record::command::Bytes::default(),
        }))
        .expect("a signal is taken");
    }

    /// The variables with which an awaited instance completed.
    pub(super) fn completed(&mut self, instance: Key) -> Option<String> {
        let ended = self.engine.take_ended_instances();
        let ended = ended.into_iter().find(|ended| ended.key == instance)?;
        let variables = ended.variables?;
        Some(crate::join(variables.iter().map(|(name, value)| (name, value))))
    }

    #[track_caller]
    pub(super) fn assert_completed(&mut self, instance: Key, variables: &str) {
        let flow = self.engine.state().flow();
        let incidents: Vec<_> =
            flow.incidents().map(|(_, incident)| incident.message.clone()).collect();
        match self.completed(instance) {
            Some(left) => assert_eq!(left, variables),
            None => panic!("it has not completed; incidents: {incidents:?}"),
        }
    }

    /// Deploys a file of the suite.
    #[track_caller]
    pub(super) fn with(files: &[(&str, &str)]) -> Check {
        let mut check = Check::new();
        for file in files {
            check.deploy(&[*file]).expect("it is sound");
        }
        check
    }

    #[track_caller]
    pub(super) fn deployed(&mut self, resources: &[(&str, &str)]) -> Box<Deployed> {
        match self.deploy(resources) {
            Ok(FlowAnswer::Deployed(deployed)) => deployed,
            other => panic!("deploy: {other:?}"),
        }
    }

    /// The one job of a type.
    #[track_caller]
    pub(super) fn take_one(&mut self, job_type: &str) -> Key {
        let jobs = self.work(job_type, 2);
        assert_eq!(jobs.len(), 1, "jobs of type {job_type}");
        jobs[0]
    }

    /// Says of a job that it threw an error.
    pub(super) fn throw(&mut self, job: Key, code: &str, message: &str, variables: &str) {
        self.give(Command::ThrowError(ThrowError {
            lease: Lease { key: job, activation: None },
            code: code.into(),
            message: message.into(),
            variables: variables.as_bytes().into(),
        }))
        .expect("the job is active");
        self.settle();
    }

    /// Says of a job that it failed.
    pub(super) fn fail_with(&mut self, job: Key, retries: i32, variables: &str) {
        self.give(Command::FailJob(FailJob {
            lease: Lease { key: job, activation: None },
            message: "it broke".into(),
            retries: Some(retries),
            backoff_ms: None,
            progressed: false,
            kind: Default::default(),
            variables: variables.as_bytes().into(),
        }))
        .expect("the job is active");
        self.settle();
    }

    /// The only incident of an element: its kind, the element's id, what it says.
    #[track_caller]
    pub(super) fn incident(&self) -> (Key, &'static str, String, String) {
        let flow = self.engine.state().flow();
        let mut all = flow.incidents();
        let (key, incident) = all.next().expect("an incident");
        assert!(all.next().is_none(), "one incident");
        let element = flow.element(incident.element).expect("it lives");
        let id = element.node().id.to_string();
        (key, incident.kind.name(), id, incident.message.to_string())
    }

    #[track_caller]
    pub(super) fn assert_incident(&self, kind: &str, element: &str, part: &str) -> Key {
        let (key, found, id, message) = self.incident();
        assert_eq!((found, &*id), (kind, element), "{message}");
        assert!(message.contains(part), "{message:?} says {part:?}");
        key
    }

    #[track_caller]
    pub(super) fn assert_no_incident(&self) {
        let all: Vec<_> =
            self.engine.state().flow().incidents().map(|(_, it)| it.message.clone()).collect();
        assert!(all.is_empty(), "{all:?}");
    }

    pub(super) fn resolve(&mut self, incident: Key) {
        let command = ResolveIncident { key: incident, retries: None, tenant: None };
        self.give(Command::ResolveIncident(command)).expect("it waits");
        self.settle();
    }

    pub(super) fn update_retries(&mut self, job: Key, retries: i32) {
        let update = UpdateJob {
            key: job,
            activation: None,
            retries: Some(retries),
            priority: None,
            lease_ms: None,
            tenant: None,
        };
        self.give(Command::UpdateJob(update)).expect("it lives");
    }

    pub(super) fn set(&mut self, scope: Key, variables: &str, local: bool) {
        let variables = variables.as_bytes().into();
        self.flow(FlowCommand::SetVariables(SetVariables { scope, variables, local }))
            .expect("the scope lives");
    }

    pub(super) fn cancel_instance(&mut self, key: Key) -> Result<FlowAnswer, Rejection> {
        self.flow(FlowCommand::CancelInstance(CancelInstance { key }))
    }

    /// The only live element instance of an element.
    #[track_caller]
    pub(super) fn element(&self, instance: Key, id: &str) -> Key {
        let flow = self.engine.state().flow();
        let mut found = flow
            .elements()
            .filter(|(_, element)| element.instance == instance && &*element.node().id == id);
        let (key, _) = found.next().unwrap_or_else(|| panic!("{id} is live"));
        assert!(found.next().is_none(), "{id} is live once");
        key
    }

    /// The ids of live elements, oldest first, without the process itself.
    pub(super) fn tokens(&self, instance: Key) -> Vec<String> {
        let flow = self.engine.state().flow();
        let mut found: Vec<(Key, String)> = flow
            .elements()
            .filter(|(key, element)| element.instance == instance && *key != instance)
            .map(|(key, element)| (key, element.node().id.to_string()))
            .collect();
        found.sort();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// A variable of exactly this scope.
    pub(super) fn own(&self, scope: Key, name: &str) -> Option<String> {
        let element = self.engine.state().flow().element(scope)?;
        element.variables.get(name).map(|value| value.to_string())
    }

    /// What was handed on since the log began, in the words of the real broker's records: each
    /// element of an instance, when it began to work and when it was gone.
    pub(super) fn path(&mut self, instance: Key) -> String {
        let mut names = std::collections::BTreeMap::new();
        let mut definitions = std::collections::BTreeMap::new();
        let mut path = Vec::new();
        for (_, bytes) in self.shelf.log.clone() {
            let event = decode_event(&mut Decoder::new(&bytes), &mut self.shelf).expect("own");
            let Event::Flow(event) = event else { continue };
            if let FlowEvent::DefinitionDeployed(deployed) = &event {
                let ids: Vec<String> =
                    deployed.nodes.iter().map(|node| node.id.to_string()).collect();
                definitions.insert(deployed.key, ids);
            } else if let FlowEvent::InstanceStarted(started) = &event {
                names.insert(started.key, (started.definition, started.key, 0));
            } else if let FlowEvent::ElementEntered(entered) = &event {
                let (definition, instance, _) = names[&entered.scope];
                names.insert(entered.key, (definition, instance, entered.node as usize));
            }
            let (key, what) = if let FlowEvent::ElementActivated { key } = event {
                (key, "activated")
            } else if let FlowEvent::ElementCompleted { key } = event {
                (key, "completed")
            } else if let FlowEvent::ElementTerminated { key } = event {
                (key, "terminated")
            } else {
                continue;
            };
            let (definition, of, node) = names[&key];
            if of == instance {
                path.push(format!("{}:{what}", definitions[&definition][node]));
            }
        }
        path.join(" ")
    }

    /// Compares the path with what the real broker's records said.
    #[track_caller]
    pub(super) fn assert_path(&mut self, instance: Key, expected: &str) {
        assert_eq!(self.path(instance), expected);
    }
}
