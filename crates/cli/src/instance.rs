//! `windlass instance`: start, look at and steer process instances.

mod cancel;
mod get;
mod list;
mod start;
mod tail;

use clap::Subcommand;
use serde_json::Value;

use crate::args::Online;
use crate::failure::Failure;
use crate::rest::{Rest, text};

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

/// The instance with this key. One of another tenant than was named is not found.
async fn owned(online: &Online, rest: &Rest, key: &str) -> Result<Value, Failure> {
    let instance = rest.get(&format!("process-instances/{key}")).await?;
    let tenant = online.tenant.as_str();
    if !tenant.is_empty() && text(&instance, "tenantId") != tenant {
        return Err(Failure::not_found(format!("the tenant {tenant} has no instance {key}")));
    }
    Ok(instance)
}
