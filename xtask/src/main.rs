//! Automation of the repository: `cargo xtask COMMAND`.
//!
//! * [`suite`]: `test`, the whole truth; its steps are data;
//! * [`tidy`]: `tidy`, every rule of the house that a program can check;
//! * [`relay`]: `sim` and `bench`, which hand over to programs of their own;
//! * [`mod@demo`], a running system to look at;
//! * [`workspace`]: where the repository is, which files it has, and starting programs in it;
//! * [`rust_source`]: just enough understanding of Rust source for `tidy`.

#[cfg(feature = "bench")]
mod bench;
mod demo;
mod relay;
mod rust_source;
mod suite;
mod tidy;
mod workspace;

use std::process::ExitCode;

/// The load generator shares the machine with what it measures.
#[cfg(feature = "bench")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
cargo xtask COMMAND

  test [--keep-going] [--only NAME]   everything that must hold: formatting, lints, tidy, all tests
  test --list                         the steps of that
  tidy [--update]                     the rules of the house; --update shortens the list of long functions
  sim [--seeds A..B | --seed N] ...   the simulator
  bench [...]                         Windlass and its peers, measured in one run
  demo [...]                          a running system to look at
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let command = words.next();
    let words: Vec<String> = words.collect();
    let outcome = match command.as_deref() {
        Some("test") => suite::run(&words),
        Some("tidy") => tidy::run(&words),
        Some("sim") => relay::sim(&words),
        Some("bench") => relay::bench(&words),
        Some("demo") => demo::run_demo(&words),
        #[cfg(feature = "bench")]
        Some("bench-run") => bench::run(words.into_iter()),
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            Ok(())
        }
        Some(other) => Err(format!("there is no command {other}\n\n{USAGE}")),
        None => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{}", why.trim_end());
            ExitCode::FAILURE
        }
    }
}
