//! `windlass sync`: from a source into a destination, without a server.
//!
//! [`run`](mod@run) does it, [`show`] is what one sees meanwhile and in the end.

mod run;
mod show;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum SyncCommand {
    /// One sync, or what is left of it: a sync that was killed goes on where it was
    Run(Box<run::RunArgs>),
}

pub(crate) fn run(command: SyncCommand, json: bool) -> Result<(), Failure> {
    let SyncCommand::Run(args) = command;
    run::run(&args, json)
}
