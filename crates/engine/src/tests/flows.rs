//! Flows through the engine: processes that the black-box suite runs against real clients too, here
//! step by step and with every state compared.

use windlass_record::command::{ActivateJobs, Command, CompleteJob, Lease};
use windlass_record::flow::{
    BroadcastSignal, CreateInstance, DeployResources, FlowAnswer, FlowCommand, Key,
    ProcessReference, PublishMessage,
};
use windlass_record::rejection::Rejection;

use crate::Answer;
use crate::verb::check::{Check, LEASE_MS};

pub(super) const TENANT: &str = "<default>";

/// A process of the black-box suite.
macro_rules! process {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../tests/zeebe/processes/", $name)))
    };
}

impl Check {
    pub(super) fn flow(&mut self, command: FlowCommand) -> Result<FlowAnswer, Rejection> {
        match self.give(Command::Flow(command))? {
            Answer::Flow(answer) => {
                self.settle();
                Ok(answer)
            }
            other => panic!("a command on flows was answered {other:?}"),
        }
    }

    /// Lets flows go on until they rest.
    pub(super) fn settle(&mut self) {
        let context = self.context();
        let mut steps = 0;
        while self.engine.go_on(context, &mut self.shelf) {
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
        let element = flow.element_of_job(job).expect("a job of a flow");
        crate::join(&flow.visible_variables(element))
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
}

#[test]
fn one_task() {
    let mut check = Check::new();
    check.deploy(&[process!("one-task.bpmn")]).expect("it is sound");
    let instance = check.start("one-task", r#"{"a":1}"#);
    let seen = check.do_one("one-task", r#"{"b":2}"#);
    assert_eq!(seen, r#"{"a":1}"#);
    check.assert_completed(instance, r#"{"a":1,"b":2}"#);
    assert_eq!(check.engine.state().flow().live_elements(), 0);
}

/// The result of an instance of a loop stays with the instance and is what is collected.
#[test]
fn results_of_a_loop_are_collected_in_their_places() {
    let mut check = Check::new();
    check.deploy(&[process!("multi-parallel.bpmn")]).expect("it is sound");
    let instance = check.start("multi-parallel", r#"{"items":["x","y","z"]}"#);
    let jobs = check.work("multi-parallel", 3);
    check.done(jobs[1], r#"{"result":"R1","extra":7}"#);
    check.done(jobs[0], "{}");
    check.done(jobs[2], r#"{"result":"R2"}"#);
    check.do_one("multi-after", "{}");
    check.assert_completed(
        instance,
        r#"{"extra":7,"items":["x","y","z"],"results":[null,"R1","R2"]}"#,
    );
}
