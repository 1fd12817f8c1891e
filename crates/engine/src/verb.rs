//! One file per command: what it means, what refuses it, what follows.

mod activate;
mod cancel;
mod complete;
mod configure;
mod create;
mod document;
mod extend;
mod fail;
mod flow;
mod guard;
mod release;
mod report;
mod resolve;
mod return_job;
mod schedule;
mod throw;
pub(crate) mod timer;
mod update;

#[cfg(test)]
pub(crate) mod check;

use windlass_record::command::Command;
use windlass_record::rejection::Rejection;

use crate::{Answer, Sink, Step};

/// Decides a command.
pub(crate) fn decide<S: Sink>(
    step: &mut Step<'_, S>,
    command: &Command,
) -> Result<Answer, Rejection> {
    match command {
        Command::CreateJob(command) => create::decide(step, command),
        Command::ActivateJobs(command) => activate::decide(step, command),
        Command::ReturnJob(command) => return_job::decide(step, command),
        Command::ExtendLease(command) => extend::decide(step, command),
        Command::ReportProgress(command) => report::decide_progress(step, command),
        Command::AppendLog(command) => report::decide_log(step, command),
        Command::CompleteJob(command) => complete::decide(step, command),
        Command::CompleteListener(command) => complete::decide_listener(step, command),
        Command::FailJob(command) => fail::decide(step, command),
        Command::ThrowError(command) => throw::decide(step, command),
        Command::ReleaseJob(command) => release::decide(step, command),
        Command::CancelJob(command) => cancel::decide(step, command),
        Command::UpdateJob(command) => update::decide(step, command),
        Command::ResolveIncident(command) => resolve::decide(step, command),
        Command::ConfigureQueue(command) => configure::decide_queue(step, command),
        Command::PauseQueue(command) => configure::decide_pause(step, command),
        Command::ConfigureLimit(command) => configure::decide_limit(step, command),
        Command::PutDocuments(command) => document::decide(step, command),
        Command::Schedule(command) => schedule::decide(step, command),
        Command::Flow(command) => flow::decide(step, command),
    }
}
