//! `cargo xtask bench`: Windlass and its peers, measured in one run on one machine.
//!
//! In reading order: [`measure`] has the load shapes and the exact-delivery check that all
//! systems share; [`peer`] is what a system offers; [`server`] starts and ends processes; one
//! file per system ([`windlass`], [`beanstalkd`], [`nats`], [`redis_bullmq`],
//! [`postgres_graphile`], the last two through [`node`]); [`mod@instances`] runs process instances on
//! ourselves and on the real Zeebe broker, [`mod@workflows`] runs workflows on ourselves and on the
//! real Conductor server, both by a Java that [`java`] finds; [`mod@syncs`] are syncs of made-up
//! records and of real connectors, beside PyAirbyte and Meltano; [`machine`] looks at the
//! machine, [`memory`] has its memory ready; [`report`] prints.
//!
//! Everything listens on 127.0.0.1 at a free port, keeps its data below `target/bench` and is
//! gone when the bench ends. What is missing is installed with the ordinary package clients, or
//! the system is skipped with the reason.

mod args;
mod beanstalkd;
mod cases;
mod extras;
mod failure;
mod instances;
mod java;
mod machine;
mod measure;
mod memory;
mod nats;
mod node;
mod peer;
mod postgres_graphile;
mod redis_bullmq;
mod report;
mod server;
mod syncs;
mod windlass;
mod workflows;

use std::time::Instant;

use args::{Args, Plan, USAGE};
use failure::{Failure, Result};
use machine::Machine;
use measure::{Figures, Load, Shape};
use peer::{Peer, Workplace};
use report::{Outcome, Report, Sample, System};

/// Our own name among the systems.
const OURS: &str = "windlass";
/// Jobs in flight of the headline figure.
const IN_FLIGHT: u64 = 1024;
/// Jobs in flight of the smaller figure.
const IN_FLIGHT_FEW: u64 = 256;
/// The open loop's share of the system's own measured maximum.
const OPEN_LOOP_SHARE: f64 = 0.5;

type SetUp = fn(&Workplace) -> Result<Box<dyn Peer>>;

/// Every system, in the order of the report.
const SYSTEMS: [(&str, SetUp); 6] = [
    (OURS, windlass::Windlass::set_up),
    ("beanstalkd", beanstalkd::Beanstalkd::set_up),
    ("nats", |workplace| nats::Nats::set_up(workplace, nats::Sync::Always)),
    ("nats_default", |workplace| nats::Nats::set_up(workplace, nats::Sync::Default)),
    ("redis_bullmq", redis_bullmq::RedisBullmq::set_up),
    ("postgres_graphile", postgres_graphile::PostgresGraphile::set_up),
];

/// Runs the bench with the words after `bench` and prints its report. An error means that the
/// arguments are wrong, that a system failed, or that a delivery was not exact.
///
/// Must be called on the main thread: servers are bound to the life of the thread that starts
/// them.
pub(crate) fn run(words: impl Iterator<Item = String>) -> std::result::Result<(), String> {
    bench(words).map_err(|failure| failure.to_string())
}

fn bench(words: impl Iterator<Item = String>) -> Result<()> {
    let mut names = SYSTEMS.map(|(name, _)| name).to_vec();
    names.extend([instances::BROKER, workflows::CONDUCTOR, syncs::PYAIRBYTE, syncs::MELTANO]);
    let args = Args::parse(words, &names)?;
    if args.help {
        println!("{USAGE}");
        return Ok(());
    }
    let workplace = Workplace::open()?;
    let wanted = || SYSTEMS.into_iter().filter(|(name, _)| args.jobs() && args.wants(name));
    // Installing comes first for all, so that no download disturbs a measurement.
    let systems: Vec<_> = wanted().map(|(name, set_up)| (name, set_up(&workplace))).collect();
    let sync_set_up = args.syncs().then(|| syncs::set_up(&workplace, &args));
    if args.setup {
        say_what_there_is(systems, sync_set_up.as_ref(), &workplace, &args);
        return Ok(());
    }

    let machine = Machine::look(workplace.root())?;
    let mut report = Report::of(machine);
    for (name, peer) in systems {
        let outcome = match peer {
            Err(why) => Outcome::Skipped(why.to_string()),
            Ok(mut peer) => match measure_system(name, &mut *peer, &workplace, &args) {
                Ok(system) => Outcome::Measured(Box::new(system)),
                Err(why) => Outcome::Failed(why.to_string()),
            },
        };
        report.systems.push((name, outcome));
    }
    if args.instances() && args.wants(OURS) {
        report.instances = Some(instances::ours(&workplace, &args));
    }
    if args.instances() && args.wants(instances::BROKER) {
        report.broker = Some(instances::real_broker(&workplace, &args));
    }
    if args.workflows() && args.wants(OURS) {
        report.workflows = Some(workflows::ours(&workplace, &args));
    }
    if args.workflows() && args.wants(workflows::CONDUCTOR) {
        report.conductor = Some(workflows::conductor(&workplace, &args));
    }
    if let Some(set_up) = sync_set_up {
        report.syncs = Some(syncs::measure(&set_up, &workplace, &args));
    }
    if args.json {
        println!("{:#}", report.json());
    } else {
        println!("{}", report.table());
    }
    let faults = report.faults();
    if faults.is_empty() { Ok(()) } else { Err(Failure::new(faults.join("\n"))) }
}

/// Installs what only `--setup` installs by itself, and says what there is.
fn say_what_there_is(
    systems: Vec<(&str, Result<Box<dyn Peer>>)>,
    sync_set_up: Option<&syncs::SetUp>,
    workplace: &Workplace,
    args: &Args,
) {
    for (name, peer) in systems {
        match peer {
            Ok(peer) => println!("{name}: {}", peer.version()),
            Err(why) => println!("{name}: skipped: {why}"),
        }
    }
    if args.instances() && args.wants(instances::BROKER) {
        let version = instances::set_up(workplace);
        let version = version.unwrap_or_else(|why| format!("skipped: {why}"));
        println!("{}: {version}", instances::BROKER);
    }
    if args.workflows() && args.wants(workflows::CONDUCTOR) {
        let version = workflows::set_up(workplace);
        let version = version.unwrap_or_else(|why| format!("skipped: {why}"));
        println!("{}: {version}", workflows::CONDUCTOR);
    }
    for line in sync_set_up.iter().flat_map(|it| it.lines()) {
        println!("{line}");
    }
}

fn measure_system(
    name: &str,
    peer: &mut dyn Peer,
    workplace: &Workplace,
    args: &Args,
) -> Result<System> {
    let started = Instant::now();
    let plan = args.plan();
    let mut series = Series { name, peer, plan, jobs: 0, inexact: Vec::new() };
    let (lifecycle_per_s, _) = series.measure(Load::Closed { in_flight: IN_FLIGHT })?;
    let (lifecycle_per_s_256, _) = series.measure(Load::Closed { in_flight: IN_FLIGHT_FEW })?;
    let pickup_at_per_s = lifecycle_per_s.median() * OPEN_LOOP_SHARE;
    let (_, pickups) = series.measure(Load::Open { per_s: pickup_at_per_s })?;
    // Last: what it writes keeps the disk busy for a while after.
    let (enqueue_per_s, _) = series.measure(Load::Enqueue)?;
    let (mut pickup_p50_ms, mut pickup_p99_ms) = (Sample::default(), Sample::default());
    for pickup in pickups {
        pickup_p50_ms.add(pickup.p50);
        pickup_p99_ms.add(pickup.p99);
    }
    let Series { jobs, inexact, .. } = series;
    let extras = match name {
        OURS => extras::extras(workplace, args.quick)?,
        _ => serde_json::Map::new(),
    };
    Ok(System {
        version: peer.version(),
        configuration: peer.configuration(),
        durability: peer.durability(),
        lifecycle_per_s,
        lifecycle_per_s_256,
        enqueue_per_s,
        pickup_p50_ms,
        pickup_p99_ms,
        pickup_at_per_s,
        jobs,
        inexact,
        took_s: started.elapsed().as_secs_f64(),
        extras,
    })
}

/// The runs of one system, and what they have in common.
struct Series<'a> {
    name: &'a str,
    peer: &'a mut dyn Peer,
    plan: Plan,
    jobs: u64,
    inexact: Vec<String>,
}

impl Series<'_> {
    fn measure(&mut self, load: Load) -> Result<(Sample, Vec<measure::Pickup>)> {
        let mut rates = Sample::default();
        let mut pickups = Vec::new();
        for repeat in 1..=self.plan.repeats {
            let shape = Shape { load, warmup: self.plan.warmup, window: self.plan.window };
            let figures = match load {
                Load::Enqueue => {
                    let lasts = shape.warmup + shape.window;
                    let measure = || self.peer.measure(shape);
                    memory::Backed::for_a_run(lasts)?.give_back_during(lasts, measure)?
                }
                Load::Closed { .. } | Load::Open { .. } => self.peer.measure(shape)?,
            };
            eprintln!("bench: {} {load:?} run {repeat}: {}", self.name, in_words(&figures));
            rates.add(figures.rate_per_s);
            pickups.extend(figures.pickup_ms);
            self.jobs += figures.jobs;
            self.inexact.extend(figures.inexact.map(|fault| format!("{load:?}: {fault}")));
        }
        Ok((rates, pickups))
    }
}

fn in_words(figures: &Figures) -> String {
    let pickup = figures.pickup_ms.map_or_else(String::new, |pickup| {
        format!(", pickup p50 {:.3} p99 {:.3} ms", pickup.p50, pickup.p99)
    });
    let exact = figures.inexact.as_deref().unwrap_or("exact");
    format!("{:.0}/s{pickup}, {} jobs, {exact}", figures.rate_per_s, figures.jobs)
}
