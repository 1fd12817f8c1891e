//! `windlass-sim`: runs seeds of the simulator and says what they have exercised, or fuzzes what
//! reads bytes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use windlass_sim::engine_sim::coverage::Coverage;
use windlass_sim::engine_sim::plan::Plan;
use windlass_sim::engine_sim::run_seed;
use windlass_sim::fuzz::{self, TARGETS, Target};

const USAGE: &str = "\
windlass-sim [--seed N | --seeds A..B] [--seconds S]
windlass-sim fuzz [--target NAME] [--seconds S] [--seed N] [--iteration I]

  --seed N      one seed, with its plan
  --seeds A..B  the seeds from A to below B
  --seconds S   as many seeds as fit, from 0 or from A on (10 seconds when nothing is said)
  --target NAME one of log_reader, record_decoder, checkpoint_images, backup_reader, grpc_messages,
                rest_bodies, bpmn_documents, dmn_documents, feel_expressions; all without it
  --iteration I one input of the seed alone
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
    let outcome = match words.split_first() {
        Some((first, rest)) if first == "fuzz" => fuzz_wanted(rest).and_then(|wanted| wanted.run()),
        Some(_) | None => wanted(&words).map(|wanted| run(&wanted)),
    };
    outcome.unwrap_or_else(|why| {
        eprintln!("{why}\n\n{USAGE}");
        ExitCode::FAILURE
    })
}

struct FuzzWanted {
    target: Option<String>,
    seed: u64,
    iteration: Option<u64>,
    at_most: Duration,
}

fn fuzz_wanted(words: &[String]) -> Result<FuzzWanted, String> {
    let at_most = Duration::from_secs(10);
    let mut wanted = FuzzWanted { target: None, seed: 0, iteration: None, at_most };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--target" => wanted.target = Some(value.clone()),
            "--seed" => wanted.seed = number(value)?,
            "--iteration" => wanted.iteration = Some(number(value)?),
            "--seconds" => wanted.at_most = Duration::from_secs(number(value)?),
            other => return Err(format!("what is {other}?")),
        }
    }
    Ok(wanted)
}

impl FuzzWanted {
    fn run(&self) -> Result<ExitCode, String> {
        let chosen =
            |target: &&Target| self.target.as_deref().is_none_or(|name| name == target.name);
        let targets: Vec<&Target> = TARGETS.iter().filter(chosen).collect();
        if targets.is_empty() {
            return Err("there is no such target".to_owned());
        }
        for target in targets {
            let outcome = match self.iteration {
                Some(iteration) => fuzz::repeat(target, self.seed, iteration).map(|()| 1),
                None => fuzz::run(target, self.seed, self.at_most),
            };
            match outcome {
                Ok(inputs) => println!("{}: {inputs} inputs, none of them harmful", target.name),
                Err(finding) => {
                    eprintln!("{finding}");
                    return Ok(ExitCode::FAILURE);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
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
