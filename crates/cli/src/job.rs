//! `windlass job`: create, look at and steer jobs.

mod cancel;
pub(crate) mod create;
mod get;
mod list;
mod retry;
mod retry_policy;
pub(crate) mod tail;
mod update;
mod why;

use clap::Subcommand;

use crate::args::Online;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Create a job, or one per line of standard input
    Create(Box<create::CreateArgs>),
    /// Show a job
    Get(get::GetArgs),
    /// List jobs
    List(list::ListArgs),
    /// Let a job at an incident try again; copy one that has ended
    Retry(retry::RetryArgs),
    /// Cancel a job
    Cancel(cancel::CancelArgs),
    /// Say where a job is in its queue and why it is not running
    Why(why::WhyArgs),
    /// Follow a job: its states, progress and log, until it ends
    Tail(tail::TailArgs),
    /// Change retries, priority or lease of a job
    Update(update::UpdateArgs),
}

pub(crate) async fn run(online: &Online, command: JobCommand) -> Result<(), Failure> {
    match command {
        JobCommand::Create(args) => create::run(online, *args).await,
        JobCommand::Get(args) => get::run(online, &args).await,
        JobCommand::List(args) => list::run(online, args).await,
        JobCommand::Retry(args) => retry::run(online, &args).await,
        JobCommand::Cancel(args) => cancel::run(online, args).await,
        JobCommand::Why(args) => why::run(online, &args).await,
        JobCommand::Tail(args) => tail::run(online, &args).await,
        JobCommand::Update(args) => update::run(online, &args).await,
    }
}
