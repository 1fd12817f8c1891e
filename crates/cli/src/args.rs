//! Which commands there are, and what all of them understand.

use clap::{Args, Parser, Subcommand};
use windlass_worker::Client;

use crate::failure::Failure;
use crate::output::Output;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused, or failed
  2  the command line is wrong
  3  the server cannot be reached
  4  no such job, instance, incident, schedule, document or connector
  5  damaged data was found
  6  the server stopped by itself: a write or sync failed, or a defect; start it again";

/// A durable job engine in one binary.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Line {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Globals {
    /// Address of the server
    #[arg(
        long,
        global = true,
        env = "WINDLASS_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL",
        help_heading = "Everywhere"
    )]
    pub(crate) server: String,
    /// Whose jobs; empty is the default tenant
    #[arg(
        long,
        global = true,
        env = "WINDLASS_TENANT",
        default_value = "",
        hide_default_value = true,
        help_heading = "Everywhere"
    )]
    pub(crate) tenant: String,
    /// Print JSON, for programs; errors too
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the engine
    Serve(Box<windlass_server::ServeArgs>),
    /// Run a command for every job: any program is a worker
    Worker(crate::worker::WorkerArgs),
    /// Create, look at and steer jobs
    #[command(subcommand)]
    Job(crate::job::JobCommand),
    /// Look at queues, pause and configure them
    #[command(subcommand)]
    Queue(crate::queue::QueueCommand),
    /// Bound how many jobs of a key run, and how often
    #[command(subcommand)]
    Limit(crate::limit::LimitCommand),
    /// Run jobs again and again, by the clock
    #[command(subcommand)]
    Schedule(crate::schedule::ScheduleCommand),
    /// Move data from sources to destinations with connectors of Airbyte
    Connection(Box<crate::connection::ConnectionArgs>),
    /// Deploy processes, decisions and forms
    Deploy(crate::deploy::DeployArgs),
    /// Start, look at and steer process instances
    #[command(subcommand)]
    Instance(crate::instance::InstanceCommand),
    /// Check process and decision files without a server
    #[command(subcommand)]
    Flow(crate::flow::FlowCommand),
    /// Jobs and processes that wait for a person
    #[command(subcommand)]
    Incident(crate::incident::IncidentCommand),
    /// Small durable values with versions
    #[command(subcommand)]
    Document(crate::document::DocumentCommand),
    /// State of the server
    Status,
    /// Watch the queues live
    Top(crate::top::TopArgs),
    /// Load a running server, and measure
    Bench(crate::bench::BenchArgs),
    /// Install Airbyte connectors, and ask them
    #[command(subcommand)]
    Connector(crate::connector::ConnectorCommand),
    /// Sync a source into a destination, without a server
    #[command(subcommand)]
    Sync(crate::sync::SyncCommand),
    /// Run an attempt of a sync in its folder; the launcher starts it
    #[command(hide = true)]
    ConnectorRunner {
        /// See `windlass_connector::runner`
        folder: std::path::PathBuf,
    },
    /// Stand between a runner and its connectors; runners start it
    #[command(hide = true)]
    ConnectorHelper {
        /// See `windlass_connector::process::helper`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<std::ffi::OsString>,
    },
    /// Evaluate scripts from standard input; the server starts it when it needs it
    #[command(hide = true)]
    Sandbox,
    /// Look into the log of a stopped server
    #[command(subcommand)]
    Log(crate::log::LogCommand),
    /// Back up a running server, or the data of a stopped one
    Backup(crate::backup::BackupArgs),
    /// Make a data directory from a backup, or check a backup
    Restore(crate::restore::RestoreArgs),
}

/// What commands that talk to a server have.
pub(crate) struct Online {
    pub(crate) client: Client,
    pub(crate) out: Output,
    pub(crate) tenant: String,
    pub(crate) address: String,
}

impl Online {
    pub(crate) fn new(globals: Globals) -> Result<Self, Failure> {
        Ok(Self {
            client: Client::lazy(globals.server.as_str())?.of_tenant(globals.tenant.as_str()),
            out: Output { json: globals.json },
            tenant: globals.tenant,
            address: globals.server,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Line::command().debug_assert();
    }
}
