//! `windlass connector`: Airbyte connectors on this machine.
//!
//! [`install`] puts a package into an environment of its own under the data directory, and writes what it found
//! into a manifest; [`ask`] is `spec`, `check` and `discover`.

pub(crate) mod ask;
pub(crate) mod install;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum ConnectorCommand {
    /// Install a connector, for instance source-faker; or give a command a name
    Add(install::AddArgs),
    /// Show what is installed
    List(install::ListArgs),
    /// How a connector is configured
    Spec(ask::SpecArgs),
    /// Whether a configuration works
    Check(ask::AskArgs),
    /// The streams of a source
    Discover(ask::AskArgs),
}

pub(crate) fn run(command: ConnectorCommand, json: bool) -> Result<(), Failure> {
    match command {
        ConnectorCommand::Add(args) => install::add(&args, json),
        ConnectorCommand::List(args) => install::list(&args, json),
        ConnectorCommand::Spec(args) => ask::spec(&args, json),
        ConnectorCommand::Check(args) => ask::check(&args, json),
        ConnectorCommand::Discover(args) => ask::discover(&args, json),
    }
}
