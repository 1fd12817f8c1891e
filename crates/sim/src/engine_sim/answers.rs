//! Whether answers fit the log, and which refusals of the life cycle's table they show.

use windlass_engine::lifecycle::{JobState, Verb};
use windlass_partition::request::{QueryAnswer, Refused};
use windlass_record::command::Command;
use windlass_record::flow::{FlowAnswer, FlowCommand};
use windlass_record::id::JobKey;
use windlass_record::rejection::Rejection;

use super::coverage::Coverage;
use super::ledger::{DocumentKey, Ledger, LedgerEnd, expect};

pub(super) fn check_document(
    name: &DocumentKey,
    answer: Result<QueryAnswer, Refused>,
    ledger: &Ledger,
) -> Result<(), String> {
    let Ok(QueryAnswer::Document(Some((version, bytes)))) = answer else { return Ok(()) };
    let known = ledger.versions.get(name).into_iter().flatten();
    let holds = known.clone().any(|(v, b)| *v == version && *b == bytes);
    expect(holds, &format!("document {name:?} was read as version {version}: {bytes:02x?}"))
}

pub(super) fn check_job(
    key: JobKey,
    answer: Result<QueryAnswer, Refused>,
    ledger: &Ledger,
) -> Result<(), String> {
    let Ok(QueryAnswer::Job(view)) = answer else { return Ok(()) };
    let Some(view) = view else {
        let lost = ledger.ended.get(&key).is_some_and(|end| ledger.remembers(end));
        return expect(!lost, &format!("job {key} has ended and is not remembered"));
    };
    if view.outcome.is_some() {
        let end = ledger.ended.get(&key).ok_or("a job that is read as ended is not")?;
        return expect(
            end.result == view.result,
            &format!("job {key} was read with another result"),
        );
    }
    // What a job of a process sees is put together when it is handed out.
    if ledger.flows.instance_of(key).is_some() {
        return Ok(());
    }
    let payload = ledger.jobs.get(&key).map(|job| &job.payload);
    let payload = payload.or_else(|| ledger.ended.get(&key).map(|end| &end.payload));
    expect(payload == Some(&view.payload), &format!("job {key} was read with another payload"))
}

pub(super) fn check_flow(
    command: &FlowCommand,
    answer: &FlowAnswer,
    ledger: &Ledger,
) -> Result<(), String> {
    let flows = &ledger.flows;
    if let FlowAnswer::InstanceCreated { key, .. } | FlowAnswer::Correlated { instance: key, .. } =
        answer
    {
        return expect(flows.instances.contains_key(key), "the instance is not in the log");
    }
    if let (FlowCommand::PublishMessage(_), FlowAnswer::Key(key)) = (command, answer) {
        return expect(flows.messages.contains(key), "the message is not in the log");
    }
    if let FlowCommand::CancelInstance(cancel) = command {
        let instance = flows.instances.get(&cancel.key).ok_or("there is no such instance")?;
        return expect(instance.terminating, "the instance is not cancelled");
    }
    Ok(())
}

pub(super) fn cover_refusal(
    command: &Command,
    rejection: &Rejection,
    ledger: &Ledger,
    coverage: &mut Coverage,
) {
    let Some((key, verb)) = verb_of(command) else { return };
    match rejection {
        Rejection::JobInWrongState { state, verb, .. } => coverage.refused(state, verb),
        Rejection::LeaseEnded { .. } => coverage.refused(JobState::Ready.name(), verb.name()),
        Rejection::JobNotFound { .. } | Rejection::IncidentNotFound { .. } => {
            let ended = ledger.ended.get(&key).map(LedgerEnd::state);
            let state = ended.or_else(|| ledger.jobs.get(&key).map(|job| job.state));
            if let Some(state) = state {
                coverage.refused(state.name(), verb.name());
            }
        }
        Rejection::TokenMissing { .. }
        | Rejection::TokenStale { .. }
        | Rejection::UniqueKeyHeld { .. }
        | Rejection::QueueOfOneType
        | Rejection::QueueNotFound
        | Rejection::NoRetriesLeft { .. }
        | Rejection::DocumentVersion { .. }
        | Rejection::NameEmpty { .. }
        | Rejection::OutOfRange { .. }
        | Rejection::TooLarge { .. }
        | Rejection::Exhausted { .. }
        | Rejection::Schedule(_)
        | Rejection::Flow(_) => {}
    }
}

fn verb_of(command: &Command) -> Option<(JobKey, Verb)> {
    Some(match command {
        Command::ExtendLease(command) => (command.lease.key, Verb::ExtendLease),
        Command::ReportProgress(command) => (command.lease.key, Verb::Report),
        Command::AppendLog(command) => (command.lease.key, Verb::Report),
        Command::CompleteJob(command) => (command.lease.key, Verb::Complete),
        Command::CompleteListener(command) => (command.lease.key, Verb::Complete),
        Command::FailJob(command) => (command.lease.key, Verb::Fail),
        Command::ThrowError(command) => (command.lease.key, Verb::ThrowError),
        Command::ReleaseJob(command) => (command.lease.key, Verb::Release),
        Command::CancelJob(command) => (command.key, Verb::Cancel),
        Command::UpdateJob(command) => (command.key, Verb::Update),
        Command::ResolveIncident(command) => (command.key, Verb::Resolve),
        Command::CreateJob(_)
        | Command::ActivateJobs(_)
        | Command::ReturnJob(_)
        | Command::ConfigureQueue(_)
        | Command::PauseQueue(_)
        | Command::ConfigureLimit(_)
        | Command::PutDocuments(_)
        | Command::Schedule(_)
        | Command::Flow(_) => return None,
    })
}

pub(super) fn name_of(command: &Command) -> &'static str {
    match command {
        Command::CreateJob(_) => "create",
        Command::ActivateJobs(_) => "activate",
        Command::ReturnJob(_) => "return",
        Command::ExtendLease(_) => "extend",
        Command::ReportProgress(_) => "progress",
        Command::AppendLog(_) => "log",
        Command::CompleteJob(_) | Command::CompleteListener(_) => "complete",
        Command::FailJob(_) => "fail",
        Command::ThrowError(_) => "throw",
        Command::ReleaseJob(_) => "release",
        Command::CancelJob(_) => "cancel",
        Command::UpdateJob(_) => "update",
        Command::ResolveIncident(_) => "resolve",
        Command::ConfigureQueue(_) => "configure queue",
        Command::PauseQueue(_) => "pause",
        Command::ConfigureLimit(_) => "configure limit",
        Command::PutDocuments(_) => "documents",
        Command::Schedule(_) => "schedule",
        Command::Flow(command) => flow_name(command),
    }
}

fn flow_name(command: &FlowCommand) -> &'static str {
    match command {
        FlowCommand::DeployResources(_) => "deploy",
        FlowCommand::DeleteResource(_) => "delete resource",
        FlowCommand::CreateInstance(_) => "start instance",
        FlowCommand::CancelInstance(_) => "cancel instance",
        FlowCommand::ModifyInstance(_) => "modify instance",
        FlowCommand::MigrateInstance(_) => "migrate instance",
        FlowCommand::SetVariables(_) => "set variables",
        FlowCommand::PublishMessage(_) => "publish message",
        FlowCommand::BroadcastSignal(_) => "broadcast signal",
        FlowCommand::EvaluateDecision(_) => "evaluate decision",
        FlowCommand::UpdateUserTask(_) => "update user task",
        FlowCommand::Workflow(_) => "workflow",
    }
}
