//! The server alone, without the rest of the command line: `cargo run --example serve -- --help`.

use std::process::ExitCode;

use clap::Parser;
use windlass_server::{ServeArgs, serve};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ServeArgs,
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Line::parse().args.config() {
        Ok(config) => serve(config, || ()).await,
        Err(error) => Err(error.into()),
    };
    let Err(error) = ended else { return ExitCode::SUCCESS };
    eprintln!("error: {error}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::FAILURE
}
