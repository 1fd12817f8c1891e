//! `windlass`: the command line. A table of contents; each command has a file of its own.
//!
//! [`args`] says which commands there are. [`failure`] is how a command says that it did not work,
//! and with which exit code; [`rest`] is the way to the APIs for processes
//! and schedules; [`output`], [`show`] and [`json`] are what people and programs get to see,
//! [`units`] durations and numbers in words.

mod args;
mod backup;
mod bench;
mod connection;
mod connector;
mod deploy;
mod document;
mod failure;
mod flow;
mod incident;
mod instance;
mod job;
mod json;
mod limit;
mod log;
mod offline;
mod output;
mod queue;
mod rest;
mod restore;
mod schedule;
mod serve;
mod show;
mod status;
mod sync;
mod top;
mod units;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Command, Line, Online};
use crate::failure::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let line = match Line::try_parse() {
        Ok(line) => line,
        Err(error) => return misused(&error),
    };
    let globals = line.globals;
    let json = globals.json;
    let result = match line.command {
        Command::Serve(args) => serve::run(*args),
        Command::Sandbox => return windlass_server::sandbox(),
        Command::ConnectorRunner { folder } => {
            return windlass_server::connector_runner(&folder, &["connector-helper"]);
        }
        Command::ConnectorHelper { words } => {
            return windlass_connector::process::helper(words);
        }
        Command::Connector(command) => connector::run(command, json),
        Command::Sync(command) => sync::run(command, json),
        Command::Log(command) => log::run(command, json),
        Command::Backup(args) if args.online() => {
            on_runtime(globals, async |online| backup::run_online(online, &args).await)
        }
        Command::Backup(args) => backup::run_offline(&args, json),
        Command::Restore(args) => restore::run(&args, json),
        Command::Flow(command) => flow::run(command, json),
        Command::Deploy(args) => {
            on_runtime(globals, async |online| deploy::run(online, &args).await)
        }
        Command::Instance(command) => {
            on_runtime(globals, async |online| instance::run(online, command).await)
        }
        Command::Worker(args) => {
            on_runtime(globals, async |online| worker::run(online, args).await)
        }
        Command::Job(command) => {
            on_runtime(globals, async |online| job::run(online, command).await)
        }
        Command::Queue(command) => {
            on_runtime(globals, async |online| queue::run(online, command).await)
        }
        Command::Limit(command) => {
            on_runtime(globals, async |online| limit::run(online, command).await)
        }
        Command::Schedule(command) => {
            on_runtime(globals, async |online| schedule::run(online, command).await)
        }
        Command::Connection(args) => {
            on_runtime(globals, async |online| connection::run(online, *args).await)
        }
        Command::Incident(command) => {
            on_runtime(globals, async |online| incident::run(online, command).await)
        }
        Command::Document(command) => {
            on_runtime(globals, async |online| document::run(online, command).await)
        }
        Command::Status => on_runtime(globals, async |online| status::run(online).await),
        Command::Top(args) => on_runtime(globals, async |online| top::run(online, &args).await),
        Command::Bench(args) => on_runtime(globals, async |online| bench::run(online, &args).await),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

/// What clap says of a command line: help and version as text, and what is wrong as JSON where JSON was
/// asked for.
fn misused(error: &clap::Error) -> ExitCode {
    let asks_json =
        std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if asks_json && error.use_stderr() {
        let text = error.render().to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let (message, hint) = text.split_once("\n\n").unwrap_or((text, ""));
        let hint = Some(hint.trim()).filter(|hint| !hint.is_empty());
        let error = serde_json::json!({ "message": message.trim(), "code": "usage", "hint": hint });
        eprintln!("{}", serde_json::json!({ "error": error }));
    } else {
        // The terminal may be gone, and then nobody reads it.
        drop(error.print());
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn on_runtime(
    globals: args::Globals,
    command: impl AsyncFnOnce(&Online) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start the runtime", error))?;
    let address = globals.server.clone();
    let result = runtime.block_on(async {
        let online = Online::new(globals)?;
        command(&online).await
    });
    // A read of the terminal may still block a thread.
    runtime.shutdown_background();
    result.map_err(|failure| failure.at(&address))
}
