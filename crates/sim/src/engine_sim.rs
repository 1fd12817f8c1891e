//! The whole engine on a machine that fails: a partition's core, its log, its checkpoints and its
//! clock, used by simulated clients, broken by faults, and compared with what must be true.
//!
//! One thread, one seed. After every start of the partition:
//!
//! 1. Every record that was durable is there, unchanged; what was acknowledged was durable.
//! 2. The state is that of an engine that has replayed every record and seen no checkpoint: all
//!    images, all payloads, and the checksum ([`shadow`]).
//! 3. The state is what a model made from the records alone says ([`ledger`]).
//!
//! And always: the engine's own invariants hold after each round; records follow the table of a
//! job's life, with exact activations and attempts; no activation is handed out twice; a hand-out
//! carries the bytes the job was created with; timers are neither early nor late; a waiting worker
//! and a job that could be handed out never stand side by side; keys let through what they allow;
//! no token of a process is lost, none is there twice, no task is done twice ([`flows`]); an answer is
//! in the log before it leaves ([`clients`]). In the end all faults heal, every job comes to rest and
//! every instance completes.
//!
//! Reading order: [`plan`] is what a seed draws; [`machine`] the partition and its threads, moved by
//! hand; [`clients`] and [`commands`] those who use it; [`faults`] what breaks; [`coverage`] what was
//! exercised.

mod answers;
pub mod clients;
pub mod clock;
pub mod commands;
pub mod coverage;
pub mod faults;
pub mod finale;
pub mod flows;
pub mod ledger;
pub mod machine;
pub mod plan;
pub mod shadow;
mod threads;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clients::Clients;
use coverage::Coverage;
use machine::{Life, Machine, Stop};
use plan::Plan;
use windlass_checkpoint::MemoryCheckpoint;

use crate::disk::Restart;
use crate::random::Random;

/// Starts in a row that may fail before something must be wrong.
const STARTS_MAX: u32 = 40;

/// A seed that found something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The step in which it was found.
    pub step: u64,
    /// What must not be.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {} in step {}: {}\nrepeat it with: cargo xtask sim --seed {}",
            self.seed, self.step, self.what, self.seed
        )
    }
}

impl std::error::Error for Failure {}

/// Runs what the seed draws.
pub fn run_seed(seed: u64) -> Result<Coverage, Failure> {
    run(&Plan::of_seed(seed))
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Result<Coverage, Failure> {
    let mut sim = Sim::new(plan);
    let outcome = catch_unwind(AssertUnwindSafe(|| sim.run()));
    let what = match outcome {
        Ok(Ok(())) => {
            sim.machine.coverage.runs += 1;
            return Ok(sim.machine.coverage);
        }
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            format!("a panic: {}", text.unwrap_or_default())
        }
    };
    Err(Failure { seed: plan.seed, step: sim.step, what })
}

/// Operations of the disk in the history of a plan, for choosing where to break it.
pub fn count_operations(plan: &Plan) -> Result<u64, Failure> {
    let mut sim = Sim::new(plan);
    match sim.run() {
        Ok(()) => Ok(sim.machine.disk.counts().total()),
        Err(what) => Err(Failure { seed: plan.seed, step: sim.step, what }),
    }
}

/// What a run has left on its disks.
#[derive(Debug)]
pub struct Remains {
    /// The segments of its log.
    pub segments: Vec<Vec<u8>>,
    /// The records in it.
    pub records: Vec<Vec<u8>>,
    /// The images of its newest checkpoint.
    pub images: shadow::Images,
    /// The store that holds them.
    pub store: MemoryCheckpoint,
}

/// Runs a plan without its end and returns what is left.
pub fn remains(plan: &Plan) -> Result<Remains, Failure> {
    let mut sim = Sim::new(plan);
    sim.leave().map_err(|what| Failure { seed: plan.seed, step: sim.step, what })
}

struct Sim {
    plan: Plan,
    machine: Machine,
    clients: Clients,
    random: Random,
    life: Option<Life>,
    step: u64,
    /// The disk is full until this step.
    full_until: u64,
    /// The clocks stand still until this step.
    frozen_until: u64,
}

impl Sim {
    fn new(plan: &Plan) -> Sim {
        Sim {
            plan: plan.clone(),
            machine: Machine::new(plan),
            clients: Clients::new(plan),
            random: Random::new(plan.seed ^ 0x7369_6d00),
            life: None,
            step: 0,
            full_until: 0,
            frozen_until: 0,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.steps()?;
        self.finish()
    }

    fn steps(&mut self) -> Result<(), String> {
        if let Some(point) = self.plan.crash_at {
            self.machine.disk.crash_at(point);
        }
        self.ensure_started()?;
        while self.step < self.plan.steps {
            self.step += 1;
            self.heal_in_time();
            self.maybe_break()?;
            self.ensure_started()?;
            let outcome = self.one_step();
            self.settle(outcome)?;
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<Remains, String> {
        self.steps()?;
        let mut life = self.life.take().ok_or("the partition is down in the end")?;
        life.ask_checkpoint();
        let drained = self.machine.drain(&mut life);
        drained.map_err(|stop| format!("{stop:?}"))?;
        let records = life.records().map_err(|error| error.to_string())?;
        life.close();
        let disk = &self.machine.disk;
        let segments = disk
            .paths()
            .iter()
            .filter(|path| path.to_string_lossy().contains("segment"))
            .filter_map(|path| disk.content(path))
            .collect();
        let images = self.machine.store_disk.contents();
        let store = MemoryCheckpoint::open(&self.machine.store_disk);
        Ok(Remains { segments, records, images, store })
    }

    /// Clients do something, time passes, and each thread gets on a little, or not at all.
    fn one_step(&mut self) -> Result<(), Stop> {
        let Some(life) = &mut self.life else { return Ok(()) };
        for _ in 0..self.random.in_range(1..5) {
            self.clients.act(life, &self.machine.ledger);
        }
        let spans = [0, 0, 1, 3, 10, 30, 100, 450, 2_500, 15_000];
        let ms = self.random.pick(&spans).copied().unwrap_or(0);
        if ms > 0 {
            let ms = self.random.in_range(1..ms + 1);
            self.machine.pass(life, ms)?;
        }
        for _ in 0..self.random.in_range(1..8) {
            match self.random.in_range(0..20) {
                0..=6 => self.machine.round(life)?,
                7..=13 => self.machine.commit(life)?,
                14..=16 => self.machine.load(life)?,
                17..=18 => self.machine.write_checkpoint(life)?,
                _ => self.machine.idle(life)?,
            }
        }
        self.clients.read_mail(&mut self.machine).map_err(Stop::Violation)
    }

    /// What follows when the machine does not go on.
    fn settle(&mut self, outcome: Result<(), Stop>) -> Result<(), String> {
        match outcome {
            Ok(()) => Ok(()),
            Err(Stop::Violation(what)) => Err(what),
            Err(Stop::Crashed) => {
                self.crash(Restart::PowerLoss);
                Ok(())
            }
            Err(Stop::Stopped(why)) => {
                self.machine.coverage.count("partition stopped", why);
                // What left before it stopped was durable.
                self.clients.read_mail(&mut self.machine)?;
                let power_too = self.random.chance(40);
                self.crash(if power_too { Restart::PowerLoss } else { Restart::ProcessKilled });
                Ok(())
            }
        }
    }

    /// The process is gone; starts another when it is asked to.
    fn crash(&mut self, restart: Restart) {
        self.machine.disk.crash_now();
        self.life = None;
        self.machine.store_disk.crash();
        self.machine.disk.restart(restart);
        self.clients.disconnect();
        if restart == Restart::PowerLoss {
            // The checkpoint store promises to survive it.
            self.machine.clock.outage(self.random.in_range(0..20_000));
        }
    }

    fn ensure_started(&mut self) -> Result<(), String> {
        for _ in 0..STARTS_MAX {
            if self.life.is_some() {
                return Ok(());
            }
            match self.machine.start() {
                Ok(life) => self.life = Some(life),
                Err(Stop::Stopped(why)) if why.contains("no room") => self.heal_disk(),
                Err(stop) => self.settle(Err(stop))?,
            }
        }
        Err("the partition does not start".to_owned())
    }
}
