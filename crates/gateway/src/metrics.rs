//! What the gateway counts. Counting costs one step per item on the commit thread and one lock per
//! batch; nothing is looked up by name except for refusals.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use windlass_partition::request::{Answer, Refused};
use windlass_record::command::Command;
use windlass_record::flow::FlowCommand;
use windlass_record::schedule::ScheduleCommand;
use windlass_record::workflow::WorkflowCommand;

use crate::error::GatewayError;

/// Commands that did something, refusals by code, and how long answers take.
#[derive(Debug)]
pub struct Metrics {
    done: Family<VerbLabels, Counter>,
    /// The members of `done`, by number.
    done_by_verb: [Counter; VERBS],
    created: Counter,
    handed_out: Counter,
    returned: Counter,
    refused: Family<RefusalLabels, Counter>,
    batch_items: Histogram,
    answer_seconds: Histogram,
}

/// What tells refusals apart: the verb and the code, both from closed lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    verb: &'static str,
    code: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
}

const VERBS: usize = 37;

/// Names of verbs, by their number.
const VERB_NAMES: [&str; VERBS] = [
    "create",
    "activate",
    "return",
    "extend-lease",
    "report-progress",
    "append-log",
    "complete",
    "fail",
    "throw-error",
    "release",
    "cancel",
    "update",
    "resolve-incident",
    "configure-queue",
    "pause-queue",
    "configure-limit",
    "put-documents",
    "deploy-resources",
    "delete-resource",
    "create-instance",
    "cancel-instance",
    "modify-instance",
    "migrate-instance",
    "set-variables",
    "publish-message",
    "broadcast-signal",
    "evaluate-decision",
    "update-user-task",
    "put-schedule",
    "delete-schedule",
    "pause-schedule",
    "resume-schedule",
    "run-schedule",
    "define-workflow",
    "start-workflow",
    "update-task",
    "control-workflow",
];

/// The number of a command's verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verb(u8);

impl Verb {
    pub(crate) const CREATE_INSTANCE: Verb = Verb(19);

    pub(crate) fn of(command: &Command) -> Verb {
        Verb(match command {
            Command::CreateJob(_) => 0,
            Command::ActivateJobs(_) => 1,
            Command::ReturnJob(_) => 2,
            Command::ExtendLease(_) => 3,
            Command::ReportProgress(_) => 4,
            Command::AppendLog(_) => 5,
            Command::CompleteJob(_) | Command::CompleteListener(_) => 6,
            Command::FailJob(_) => 7,
            Command::ThrowError(_) => 8,
            Command::ReleaseJob(_) => 9,
            Command::CancelJob(_) => 10,
            Command::UpdateJob(_) => 11,
            Command::ResolveIncident(_) => 12,
            Command::ConfigureQueue(_) => 13,
            Command::PauseQueue(_) => 14,
            Command::ConfigureLimit(_) => 15,
            Command::PutDocuments(_) => 16,
            Command::Flow(command) => flow_verb(command),
            Command::Schedule(command) => match command {
                ScheduleCommand::Put(_) => 28,
                ScheduleCommand::Delete(_) => 29,
                ScheduleCommand::Pause(_) => 30,
                ScheduleCommand::Resume(_) => 31,
                ScheduleCommand::RunNow(_) => 32,
            },
        })
    }

    pub(crate) fn of_flow(command: &FlowCommand) -> Verb {
        Verb(flow_verb(command))
    }

    fn index(self) -> usize {
        usize::from(self.0)
    }

    fn name(self) -> &'static str {
        VERB_NAMES.get(self.index()).copied().unwrap_or("unknown")
    }
}

fn flow_verb(command: &FlowCommand) -> u8 {
    match command {
        FlowCommand::DeployResources(_) => 17,
        FlowCommand::DeleteResource(_) => 18,
        FlowCommand::CreateInstance(_) => Verb::CREATE_INSTANCE.0,
        FlowCommand::CancelInstance(_) => 20,
        FlowCommand::ModifyInstance(_) => 21,
        FlowCommand::MigrateInstance(_) => 22,
        FlowCommand::SetVariables(_) => 23,
        FlowCommand::PublishMessage(_) => 24,
        FlowCommand::BroadcastSignal(_) => 25,
        FlowCommand::EvaluateDecision(_) => 26,
        FlowCommand::UpdateUserTask(_) => 27,
        FlowCommand::Workflow(command) => workflow_verb(command),
    }
}

fn workflow_verb(command: &WorkflowCommand) -> u8 {
    match command {
        WorkflowCommand::DefineTasks { .. }
        | WorkflowCommand::ForgetTask { .. }
        | WorkflowCommand::DefineWorkflow { .. }
        | WorkflowCommand::ForgetWorkflow { .. }
        | WorkflowCommand::DefineHandler { .. }
        | WorkflowCommand::ForgetHandler { .. } => 33,
        WorkflowCommand::Start { .. } => 34,
        WorkflowCommand::UpdateTask(_)
        | WorkflowCommand::LogTask { .. }
        | WorkflowCommand::RequeueTasks { .. }
        | WorkflowCommand::Signal(_) => 35,
        WorkflowCommand::Control { .. } => 36,
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        let done: Family<VerbLabels, Counter> = Family::default();
        Metrics {
            done_by_verb: VERB_NAMES.map(|verb| done.get_or_create_owned(&VerbLabels { verb })),
            done,
            created: Counter::default(),
            handed_out: Counter::default(),
            returned: Counter::default(),
            refused: Family::default(),
            batch_items: Histogram::new(exponential_buckets(1.0, 4.0, 8)),
            answer_seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 16)),
        }
    }
}

impl Metrics {
    /// Makes the counts visible under `registry`'s prefix.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("commands", "Commands done, by verb", self.done.clone());
        registry.register(
            "jobs_created",
            "Jobs created; repeated requests are not counted",
            self.created.clone(),
        );
        registry.register("jobs_handed_out", "Jobs handed to workers", self.handed_out.clone());
        registry.register(
            "jobs_returned",
            "Jobs that went back because they were never sent",
            self.returned.clone(),
        );
        registry.register("rejections", "Commands refused, by verb and code", self.refused.clone());
        registry.register(
            "batch_items",
            "Commands in one hand-over to the partition",
            self.batch_items.clone(),
        );
        registry.register(
            "answer_seconds",
            "From the hand-over of commands to their durable answer",
            self.answer_seconds.clone(),
        );
    }

    /// A batch was answered.
    pub(crate) fn answered(
        &self,
        verbs: &[Verb],
        answers: &[Result<Answer, Refused>],
        took: Duration,
    ) {
        let mut done = [0_u64; VERBS];
        let mut created = 0;
        for (verb, answer) in verbs.iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    if let Some(count) = done.get_mut(verb.index()) {
                        *count += 1;
                    }
                    created += u64::from(matches!(answer, Answer::Created { existing: false, .. }));
                }
                Err(refused) => self.count_refusal(*verb, &GatewayError::from(refused.clone())),
            }
        }
        for (counter, count) in self.done_by_verb.iter().zip(done) {
            if count > 0 {
                counter.inc_by(count);
            }
        }
        if created > 0 {
            self.created.inc_by(created);
        }
        #[allow(clippy::cast_precision_loss, reason = "a histogram")]
        self.batch_items.observe(verbs.len() as f64);
        self.answer_seconds.observe(took.as_secs_f64());
    }

    /// A batch did not get in; it is counted once, under its first verb.
    pub(crate) fn turned_away(&self, first: Verb, error: &GatewayError) {
        self.count_refusal(first, error);
    }

    /// Jobs left for a worker.
    pub(crate) fn handed_out(&self, jobs: usize) {
        self.handed_out.inc_by(u64::try_from(jobs).unwrap_or(u64::MAX));
    }

    /// Jobs went back.
    pub(crate) fn returned(&self, jobs: usize) {
        self.returned.inc_by(u64::try_from(jobs).unwrap_or(u64::MAX));
    }

    fn count_refusal(&self, verb: Verb, error: &GatewayError) {
        let labels = RefusalLabels { verb: verb.name(), code: error.code() };
        self.refused.get_or_create(&labels).inc();
    }
}
