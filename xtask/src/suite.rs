//! `cargo xtask test`: everything that must hold, one step after the other.

use std::time::{Duration, Instant};

use crate::{tidy, workspace};

/// One step of the suite.
struct Step {
    name: &'static str,
    work: Work,
    /// Programs that must be there; `.ci/run` installs what is missing.
    needs: &'static [&'static str],
}

enum Work {
    Cargo(&'static [&'static str]),
    Command(&'static str, &'static [&'static str]),
    Tidy,
}

use Work::{Cargo, Command, Tidy};

/// The steps, cheapest first. A new check is a line here.
const STEPS: &[Step] = &[
    Step { name: "format", work: Cargo(&["fmt", "--all", "--check"]), needs: &[] },
    Step { name: "tidy", work: Tidy, needs: &["git"] },
    Step {
        name: "lints",
        work: Cargo(&[
            "clippy",
            "--workspace",
            "--features",
            "windlass-cli/otel",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]),
        needs: &[],
    },
    Step {
        name: "lints of the bench",
        work: Cargo(&[
            "clippy",
            "-p",
            "xtask",
            "--features",
            "bench",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]),
        needs: &[],
    },
    Step { name: "tests", work: Cargo(&["test", "--workspace", "--quiet"]), needs: &[] },
    // ---- black-box suites: they build the binary, start it, and speak the wire with real clients ----
    // Each is a folder of `tests/` with a `run` of its own:
    Step {
        name: "zeebe",
        work: Command("tests/zeebe/run", &[]),
        needs: &["node", "npm", "python3"],
    },
    Step {
        name: "conductor",
        work: Command("tests/conductor/run", &[]),
        needs: &["node", "npm", "python3"],
    },
    Step { name: "airbyte", work: Command("tests/airbyte/run", &[]), needs: &["python3"] },
    Step {
        name: "connectors",
        work: Command("tests/airbyte/run-connectors", &[]),
        needs: &["python3"],
    },
];

pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let mut keep_going = false;
    let mut only = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--keep-going" => keep_going = true,
            "--only" => only = Some(words.next().ok_or("--only wants the name of a step")?),
            "--list" => {
                list();
                return Ok(());
            }
            other => return Err(format!("test has no option {other}")),
        }
    }
    let wanted: Vec<&Step> =
        STEPS.iter().filter(|step| only.is_none_or(|only| only == step.name)).collect();
    if wanted.is_empty() {
        list();
        return Err("there is no such step".to_owned());
    }
    let results = run_steps(&wanted, keep_going);
    summary(&wanted, &results)
}

fn run_steps(steps: &[&Step], keep_going: bool) -> Vec<(Result<(), String>, Duration)> {
    let mut results = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        println!("==> {} of {}: {}", number + 1, steps.len(), step.name);
        let start = Instant::now();
        let result = run_step(step);
        if let Err(why) = &result {
            println!("{why}");
        }
        let stop = result.is_err() && !keep_going;
        results.push((result, start.elapsed()));
        if stop {
            break;
        }
    }
    results
}

fn run_step(step: &Step) -> Result<(), String> {
    for program in step.needs {
        if workspace::output(program, &["--version"]).is_err() {
            return Err(format!("{program} is missing; `.ci/run` installs what the suite needs"));
        }
    }
    match step.work {
        Cargo(args) => workspace::run(&workspace::cargo(), args),
        Command(program, args) => workspace::run(program, args),
        Tidy => tidy::run(&[]),
    }
}

fn summary(steps: &[&Step], results: &[(Result<(), String>, Duration)]) -> Result<(), String> {
    println!();
    for (number, step) in steps.iter().enumerate() {
        match results.get(number) {
            Some((Ok(()), took)) => {
                println!("passed   {:7.1} s  {}", took.as_secs_f64(), step.name)
            }
            Some((Err(_), took)) => {
                println!("FAILED   {:7.1} s  {}", took.as_secs_f64(), step.name)
            }
            None => println!("not run             {}", step.name),
        }
    }
    let failed = results.iter().filter(|(result, _)| result.is_err()).count();
    let total: Duration = results.iter().map(|(_, took)| *took).sum();
    println!("in {:.1} s", total.as_secs_f64());
    println!("{} passed, {failed} failed", results.len() - failed);
    // The line above is the last one, so the failure itself says nothing more.
    if failed == 0 { Ok(()) } else { std::process::exit(1) }
}

fn list() {
    for step in STEPS {
        let command = match step.work {
            Cargo(args) => format!("cargo {}", args.join(" ")),
            Command(program, args) => format!("{program} {}", args.join(" ")),
            Tidy => "cargo xtask tidy".to_owned(),
        };
        println!("{:20} {command}", step.name);
    }
}
