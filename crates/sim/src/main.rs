//! `windlass-sim`: runs seeds of the simulator and says what they have exercised.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use windlass_sim::engine_sim::coverage::Coverage;
use windlass_sim::engine_sim::plan::Plan;
use windlass_sim::engine_sim::run_seed;

const USAGE: &str = "\
windlass-sim [--seed N | --seeds A..B] [--seconds S]

  --seed N      one seed, with its plan
  --seeds A..B  the seeds from A to below B
  --seconds S   as many seeds as fit, from 0 or from A on (10 seconds when nothing is said)
";

/// How often progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

struct Wanted {
    first: u64,
    end: u64,
    at_most: Option<Duration>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match wanted(&words) {
        Ok(wanted) => run(&wanted),
        Err(why) => {
            eprintln!("{why}\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn wanted(words: &[String]) -> Result<Wanted, String> {
    let mut wanted = Wanted { first: 0, end: u64::MAX, at_most: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--seed" => {
                wanted.first = number(value()?)?;
                wanted.end = wanted.first + 1;
            }
            "--seeds" => {
                let range = value()?;
                let (first, end) = range.split_once("..").ok_or("--seeds needs A..B")?;
                (wanted.first, wanted.end) = (number(first)?, number(end)?);
            }
            "--seconds" => wanted.at_most = Some(Duration::from_secs(number(value()?)?)),
            other => return Err(format!("what is {other}?")),
        }
    }
    if wanted.end == u64::MAX && wanted.at_most.is_none() {
        wanted.at_most = Some(Duration::from_secs(10));
    }
    Ok(wanted)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

fn run(wanted: &Wanted) -> ExitCode {
    let start = Instant::now();
    let mut shown = start;
    let mut coverage = Coverage::default();
    if wanted.end - wanted.first == 1 {
        println!("seed {}: {}", wanted.first, Plan::of_seed(wanted.first));
    }
    for seed in wanted.first..wanted.end {
        if wanted.at_most.is_some_and(|at_most| start.elapsed() >= at_most) {
            break;
        }
        match run_seed(seed) {
            Ok(seen) => coverage.merge(&seen),
            Err(failure) => {
                println!("{coverage}");
                eprintln!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        if shown.elapsed() >= PROGRESS_EVERY {
            shown = Instant::now();
            eprintln!("{} seeds, {:.1} a second", coverage.runs, per_second(&coverage, start));
        }
    }
    println!("{coverage}");
    println!("{} seeds held, {:.1} a second", coverage.runs, per_second(&coverage, start));
    ExitCode::SUCCESS
}

fn per_second(coverage: &Coverage, start: Instant) -> f64 {
    let runs = u32::try_from(coverage.runs).unwrap_or(u32::MAX);
    f64::from(runs) / start.elapsed().as_secs_f64().max(0.001)
}
