//! `windlass instance`: start, look at and steer process instances.

mod cancel;
mod get;
mod list;
mod start;
mod tail;

use clap::Subcommand;

use crate::args::Online;
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum InstanceCommand {
    /// Start an instance of a deployed process
    Start(start::StartArgs),
    /// Show an instance: its state, variables and incidents
    Get(get::GetArgs),
    /// List instances, newest first
    List(list::ListArgs),
    /// Cancel instances
    Cancel(cancel::CancelArgs),
    /// Follow an instance: every element it enters and leaves, until it ends
    Tail(tail::TailArgs),
}

pub(crate) async fn run(online: &Online, command: InstanceCommand) -> Result<(), Failure> {
    match command {
        InstanceCommand::Start(args) => start::run(online, &args).await,
        InstanceCommand::Get(args) => get::run(online, &args).await,
        InstanceCommand::List(args) => list::run(online, &args).await,
        InstanceCommand::Cancel(args) => cancel::run(online, &args).await,
        InstanceCommand::Tail(args) => tail::run(online, &args).await,
    }
}
