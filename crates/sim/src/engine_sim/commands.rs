//! Commands as a seed draws them.

use std::sync::Arc;

use windlass_record::command::{
    AppendLog, CancelJob, Command, CompleteJob, ConfigureLimit, ConfigureQueue, CreateJob,
    DocumentWrite, Due, ExtendLease, FailJob, FailureKind, JobOptions, Lease, PauseQueue,
    PutDocuments, QueueName, ReleaseJob, ReportProgress, ResolveIncident, ThrowError, UpdateJob,
};
use windlass_record::flow::{
    CancelInstance, CreateInstance, DeployResources, FlowCommand, Key, ProcessReference,
    PublishMessage, SetVariables,
};
use windlass_record::id::JobKey;
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings,
    PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};

use super::flows::{self, FlowLedger};
use super::plan::Plan;
use crate::random::Random;

/// Draws commands.
#[derive(Debug)]
pub struct Drawer {
    /// Of this stream.
    pub random: Random,
    plan: Plan,
    payloads: u64,
    /// What is done with processes is drawn apart from the rest.
    flows: Random,
}

/// The bytes that belong to a number, and to no other: a few, some or many; now and then none.
#[must_use]
pub fn payload_bytes(number: u64) -> Arc<[u8]> {
    let mut random = Random::new(number);
    let len = match random.in_range(0..10) {
        0 => return Arc::default(),
        1..=5 => random.in_range(8..40),
        6..=8 => random.in_range(40..300),
        _ => random.in_range(300..1_200),
    };
    let mut bytes: Vec<u8> = number.to_le_bytes().to_vec();
    while u64::try_from(bytes.len()).is_ok_and(|have| have < len) {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes.into()
}

impl Drawer {
    /// For a plan.
    #[must_use]
    pub fn new(plan: &Plan) -> Drawer {
        Drawer {
            random: Random::new(plan.seed ^ 0x6472_6177),
            plan: plan.clone(),
            payloads: 0,
            flows: Random::new(plan.seed ^ 0x666c_6f77_7300),
        }
    }

    fn fresh_payload(&mut self) -> Arc<[u8]> {
        self.payloads += 1;
        payload_bytes(self.plan.seed.wrapping_mul(1 << 20).wrapping_add(self.payloads))
    }

    fn result(&mut self) -> Arc<[u8]> {
        self.payloads += 1;
        self.payloads.to_be_bytes().as_slice().into()
    }

    fn one_of<T: Copy + Default>(&mut self, from: &[T]) -> T {
        self.random.pick(from).copied().unwrap_or_default()
    }

    fn small(&mut self, below: u64) -> u32 {
        u32::try_from(self.random.in_range(0..below)).unwrap_or(0)
    }

    /// A queue that is used.
    pub fn queue(&mut self) -> QueueName {
        let number = self.random.in_range(0..self.plan.queues);
        queue_name(number)
    }

    /// Many jobs that are due at the same time.
    pub fn storm(&mut self, now_ms: u64) -> Vec<Command> {
        // All storms of a minute break at its end.
        let due_ms = (now_ms / 60_000 + 1) * 60_000;
        let count = self.random.in_range(50..100);
        let mut commands: Vec<Command> = (0..count).map(|_| self.create(now_ms)).collect();
        for command in &mut commands {
            if let Command::CreateJob(create) = command {
                create.due = Due::At(due_ms);
            }
        }
        commands
    }

    /// A new job.
    pub fn create(&mut self, now_ms: u64) -> Command {
        let features = self.plan.features;
        let queue = self.queue();
        let due = if features.delays && self.random.chance(30) {
            let waits_ms = [1, 5, 40, 700, 3_000, 60_000, 3_600_000, 3_000_000_000];
            let wait_ms = self.one_of(&waits_ms);
            match self.random.chance(50) {
                true => Due::At(now_ms.saturating_add(wait_ms)),
                false => Due::After(wait_ms),
            }
        } else {
            Due::Now
        };
        let group = self.random.in_range(0..self.plan.groups);
        let job_type = if self.random.chance(20) { "special" } else { "" };
        let payload = self.fresh_payload();
        let options = self.options();
        Command::CreateJob(CreateJob {
            queue,
            job_type: job_type.into(),
            group: format!("g{group}").into(),
            priority: if features.settings { self.one_of(&[-5, 0, 0, 1, 9]) } else { 0 },
            retries: self.one_of(&[0, 0, 1, 2, 3]),
            due,
            payload,
            options,
        })
    }

    fn options(&mut self) -> Option<Box<JobOptions>> {
        let features = self.plan.features;
        let mut options = JobOptions::default();
        if features.unique_keys && self.random.chance(40) {
            options.unique_key = format!("u{}", self.random.in_range(0..8)).into();
            options.unique_hold_ms = self.one_of(&[0, 0, 500, 60_000]);
        }
        if features.request_ids && self.random.chance(40) {
            options.request_id = format!("r{}", self.random.in_range(0..30)).into();
        }
        if features.limits && self.random.chance(50) {
            options.concurrency_key = format!("c{}", self.random.in_range(0..4)).into();
        }
        if features.limits && self.random.chance(50) {
            options.rate_key = format!("w{}", self.random.in_range(0..4)).into();
        }
        if features.policies {
            options.retry = self.retry_policy();
            options.exhausted = self.one_of(&[Exhausted::Incident, Exhausted::Fail]);
        }
        if features.deadlines && self.random.chance(70) {
            options.deadlines = self.deadlines();
        }
        if features.cancels {
            options.cancel = self.one_of(&[
                CancelPolicy::AtOnce,
                CancelPolicy::Cooperative,
                CancelPolicy::CooperativeCompletionCounts,
            ]);
        }
        if features.dialects {
            options.dialect = self.one_of(&[
                Dialect::Native,
                Dialect::Zeebe,
                Dialect::Conductor,
                Dialect::Airbyte,
            ]);
        }
        if self.random.chance(20) {
            options.headers = Box::from(&b"{\"a\":1}"[..]);
        }
        (options != JobOptions::default()).then(|| Box::new(options))
    }

    fn retry_policy(&mut self) -> RetryPolicy {
        let delay_ms = self.one_of(&[0, 10, 250, 4_000]);
        let jitter_ms = self.one_of(&[0, 0, 30]);
        let cap_ms = self.one_of(&[0, 1_000, 60_000]);
        match self.random.in_range(0..6) {
            0 => RetryPolicy::WorkerGiven,
            1 => RetryPolicy::Fixed { delay_ms, jitter_ms },
            2 => RetryPolicy::Linear { delay_ms, scale: 2, cap_ms, jitter_ms },
            3 => {
                RetryPolicy::Exponential { delay_ms, base: 2, cap_ms, jitter_ms, from_start: false }
            }
            4 => RetryPolicy::docspell(delay_ms),
            _ => RetryPolicy::Attempts {
                complete_successive_max: 3,
                complete_total_max: 5,
                partial_successive_max: 4,
                partial_total_max: 6,
                delay_ms,
                base: 3,
                cap_ms,
            },
        }
    }

    fn deadlines(&mut self) -> Deadlines {
        Deadlines {
            lease: self.deadline_outcome(),
            waiting: self.deadline(&[5, 300, 20_000]),
            attempt: self.deadline(&[20, 900, 30_000]),
            total: self.deadline(&[100, 5_000, 600_000]),
        }
    }

    fn deadline(&mut self, after_ms: &[u64]) -> Option<(u64, DeadlineOutcome)> {
        let after_ms = self.one_of(after_ms);
        let outcome = self.deadline_outcome();
        self.random.chance(45).then_some((after_ms, outcome))
    }

    fn deadline_outcome(&mut self) -> DeadlineOutcome {
        self.one_of(&[
            DeadlineOutcome::Again,
            DeadlineOutcome::FailAttempt,
            DeadlineOutcome::End,
            DeadlineOutcome::Alert,
        ])
    }

    /// What a worker says about a job it holds, or held.
    pub fn word(&mut self, lease: Lease) -> Command {
        match self.random.in_range(0..100) {
            0..=39 => self.complete(lease),
            40..=57 => self.fail(lease),
            58..=63 => Command::ThrowError(ThrowError {
                lease,
                code: "E1".into(),
                message: "throw: it cannot be".into(),
                variables: Arc::default(),
            }),
            64..=73 => {
                Command::ReleaseJob(ReleaseJob { lease, delay_ms: self.one_of(&[0, 0, 20, 2_000]) })
            }
            74..=84 => Command::ExtendLease(ExtendLease {
                lease,
                lease_ms: self.one_of(&[5, 400, 5_000, 60_000]),
            }),
            85..=92 => {
                let documents = self.maybe_documents();
                Command::ReportProgress(ReportProgress {
                    lease,
                    percent: u8::try_from(self.random.in_range(0..120)).unwrap_or(0),
                    note: "half way".into(),
                    documents,
                })
            }
            _ => {
                let lines = self.random.in_range(0..7);
                let line = |number| format!("line {number} of an attempt").into_boxed_str();
                Command::AppendLog(AppendLog { lease, lines: (0..lines).map(line).collect() })
            }
        }
    }

    /// The job is done.
    pub fn complete(&mut self, lease: Lease) -> Command {
        let (result, documents) = (self.result(), self.maybe_documents());
        Command::CompleteJob(CompleteJob { lease, result, documents })
    }

    fn fail(&mut self, lease: Lease) -> Command {
        Command::FailJob(FailJob {
            lease,
            message: "fail: it broke".into(),
            retries: self.random.chance(30).then(|| i32::try_from(self.small(4)).unwrap_or(0)),
            backoff_ms: self.random.chance(40).then(|| self.one_of(&[0, 15, 800, 30_000])),
            progressed: self.random.chance(40),
            variables: Arc::default(),
            kind: FailureKind::of(self.random.chance(8)),
        })
    }

    /// What an operator does about a job.
    pub fn operate(&mut self, key: JobKey, incident: Option<JobKey>) -> Command {
        let retries = i32::try_from(self.small(4)).unwrap_or(0);
        match self.random.in_range(0..4) {
            0 if self.plan.features.cancels => Command::CancelJob(CancelJob {
                key,
                force: self.random.chance(25),
                reason: "cancel: not wanted".into(),
                tenant: None,
            }),
            1 | 2 => {
                let key = incident.filter(|_| self.random.chance(50)).unwrap_or(key);
                let retries = self.random.chance(80).then_some(retries);
                Command::ResolveIncident(ResolveIncident { key, retries, tenant: None })
            }
            _ => Command::UpdateJob(UpdateJob {
                key,
                activation: None,
                retries: self.random.chance(50).then_some(retries),
                priority: self.random.chance(50).then(|| self.one_of(&[-5, 0, 3, 9])),
                lease_ms: self.random.chance(25).then(|| self.one_of(&[10, 2_000, 30_000])),
                tenant: None,
            }),
        }
    }

    /// Whether the next thing is done with processes, when there are any.
    pub fn is_about_flows(&mut self) -> bool {
        self.plan.features.flows && self.flows.chance(30)
    }

    /// Adds the queue of processes now and then.
    pub fn maybe_flow_queue(&mut self, queues: &mut Vec<QueueName>) {
        if self.plan.features.flows && self.flows.chance(60) {
            queues.push(flows::queue());
        }
    }

    /// A result that a process can take.
    pub fn variables(&mut self) -> Arc<[u8]> {
        self.payloads += 1;
        format!("{{\"result\":{}}}", self.payloads).into_bytes().into()
    }

    /// What is done with processes.
    pub fn flow(&mut self, known: &FlowLedger) -> Command {
        let live: Vec<(Key, &str)> =
            known.live_instances().map(|(key, it)| (key, &*it.correlation_key)).collect();
        let (instance, waits_for) =
            self.flows.pick(&live).copied().unwrap_or((Key::NONE, "\"k0\""));
        Command::Flow(match self.flows.in_range(0..100) {
            _ if !known.is_deployed() => self.deploy(),
            0..=2 => self.deploy(),
            3..=44 => self.start(),
            45..=84 => self.publish(waits_for),
            85..=92 => FlowCommand::SetVariables(SetVariables {
                scope: instance,
                variables: self.variables(),
                local: self.flows.chance(50),
            }),
            _ => FlowCommand::CancelInstance(CancelInstance { key: instance }),
        })
    }

    fn deploy(&mut self) -> FlowCommand {
        let document = flows::document(self.flows.in_range(0..3));
        FlowCommand::DeployResources(DeployResources {
            tenant: flows::TENANT.into(),
            resources: vec![("sim.bpmn".into(), document.into_bytes().into())],
        })
    }

    fn start(&mut self) -> FlowCommand {
        let naps = ["PT0S", "PT1S", "PT20S", "PT1H"];
        let nap = self.flows.pick(&naps).copied().unwrap_or("PT1S");
        let key = self.flows.in_range(0..12);
        let variables = format!("{{\"key\":\"k{key}\",\"nap\":\"{nap}\"}}");
        FlowCommand::CreateInstance(CreateInstance {
            tenant: flows::TENANT.into(),
            process: ProcessReference::Latest(flows::PROCESS.into()),
            variables: variables.into_bytes().into(),
            start_at: Vec::new(),
            business_id: "".into(),
            tags: Vec::new(),
            awaited: self.flows.chance(20),
        })
    }

    fn publish(&mut self, correlation_key: &str) -> FlowCommand {
        let mut command = message(correlation_key);
        if let FlowCommand::PublishMessage(publish) = &mut command {
            if self.flows.chance(20) {
                publish.message_id = format!("m{}", self.flows.in_range(0..5)).into();
            }
            let live_ms = [0, 0, 500, 60_000, 3_600_000];
            publish.time_to_live_ms = self.flows.pick(&live_ms).copied().unwrap_or(0);
            publish.must_correlate = self.flows.chance(10);
        }
        command
    }

    /// What an operator does about queues and keys.
    pub fn configure(&mut self) -> Command {
        let queue = self.queue();
        match self.random.in_range(0..4) {
            0 => Command::PauseQueue(PauseQueue { queue, paused: self.random.chance(50) }),
            1 if self.plan.features.limits => Command::ConfigureLimit(ConfigureLimit {
                tenant: self.one_of(&["t", "t", "u"]).into(),
                name: format!("{}{}", self.one_of(&["c", "w"]), self.random.in_range(0..4)).into(),
                settings: self.limit_settings(),
            }),
            _ => Command::ConfigureQueue(ConfigureQueue {
                queue,
                settings: self.queue_settings(),
                seed_only: self.random.chance(10),
            }),
        }
    }

    fn limit_settings(&mut self) -> LimitSettings {
        let active_max = self.random.chance(60).then(|| self.small(4));
        LimitSettings { active_max, rate: self.rate_window() }
    }

    fn rate_window(&mut self) -> Option<RateWindow> {
        let (max, window_ms) = (1 + self.small(4), self.one_of(&[10, 500, 8_000]));
        self.random.chance(60).then_some(RateWindow { max, window_ms })
    }

    fn queue_settings(&mut self) -> QueueSettings {
        let features = self.plan.features;
        let mut settings = QueueSettings::DEFAULT;
        settings.finished_max = self.one_of(&[0, 3, 1_000]);
        if features.settings {
            settings.order = self.one_of(&[JobOrder::Ready, JobOrder::Creation]);
            settings.retries_first = self.random.chance(50);
            settings.aging_ms = self.one_of(&[0, 0, 50, 5_000]);
            settings.priority = self.one_of(&[
                PriorityRule::Strict,
                PriorityRule::Scheme { high: 2, low: 1 },
                PriorityRule::Scheme { high: 1, low: 3 },
            ]);
        }
        if features.limits {
            settings.key_active_max = self.small(4);
            settings.key_rate = self.rate_window();
        }
        settings
    }

    fn maybe_documents(&mut self) -> Vec<DocumentWrite> {
        if !self.plan.features.documents || !self.random.chance(40) {
            return Vec::new();
        }
        self.document_writes()
    }

    /// Changes of documents.
    pub fn put_documents(&mut self) -> Command {
        Command::PutDocuments(PutDocuments { documents: self.document_writes() })
    }

    /// A document, by id.
    pub fn document_id(&mut self) -> String {
        format!("d{}", self.random.in_range(0..6))
    }

    fn document_writes(&mut self) -> Vec<DocumentWrite> {
        let mut writes: Vec<DocumentWrite> = Vec::new();
        for _ in 0..self.random.in_range(1..4) {
            let id = self.document_id();
            // A later write of the same command would not have the version it was checked against.
            if writes.iter().any(|write| *write.id == *id) {
                continue;
            }
            let bytes = (!self.random.chance(15)).then(|| self.fresh_payload());
            writes.push(DocumentWrite {
                tenant: "t".into(),
                kind: "k".into(),
                id: id.into(),
                expected_version: self.random.chance(40).then(|| self.random.in_range(0..4)),
                bytes,
            });
        }
        writes
    }
}

/// A message for those who wait now with this key, a JSON text.
#[must_use]
pub fn message(correlation_key: &str) -> FlowCommand {
    FlowCommand::PublishMessage(PublishMessage {
        tenant: flows::TENANT.into(),
        name: flows::MESSAGE.into(),
        correlation_key: correlation_key.trim_matches('"').into(),
        message_id: "".into(),
        time_to_live_ms: 0,
        variables: Arc::default(),
        must_correlate: false,
    })
}

/// The name of a queue, by its number. There are two tenants.
#[must_use]
pub fn queue_name(number: u64) -> QueueName {
    let tenant = if number % 3 == 2 { "u" } else { "t" };
    QueueName { tenant: tenant.into(), queue: format!("q{number}").into() }
}
