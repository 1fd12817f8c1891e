//! Process instances over the Zeebe face, ourselves beside the real broker: Camunda's load shapes,
//! with a worker that streams and one that polls, each as a closed loop (the maximum) and as an
//! open loop at half of that.
//!
//! Reading order: `load` is one run, the same for both; `broker` is the real one; `figures` is what
//! was found; `waiting` is what many waiting instances change.

mod broker;
mod figures;
mod load;
mod process;
mod waiting;

/// Generated from our own proto; the client half, as our tests of the wire use it.
#[path = "../../../crates/api-zeebe/tests/generated/gateway_protocol.rs"]
#[allow(dead_code, reason = "the bench speaks only a part of it")]
mod protocol;

use std::time::Duration;

use serde_json::{Map, json};
use tokio::runtime::Runtime;

use super::args::{Args, Plan};
use super::failure::{Failure, Result};
use super::measure::{Load, Shape};
use super::peer::{Peer, Workplace};
use super::server::{self, Server};
use super::windlass::{Windlass, runtime};
use figures::{CaseFigures, Cases};
pub(crate) use figures::{HEAD, Measured, Outcome, aims, ratio};
use load::{Fetching, Work};

/// Its name among the systems.
pub(crate) const BROKER: &str = "zeebe";
/// The open loop's share of the case's own maximum.
const OPEN_LOOP_SHARE: f64 = 0.5;
/// The Java machine compiles while it runs.
const BROKER_WARM_UP: Duration = Duration::from_secs(15);
/// Windows of a system that does hundreds a second must be longer to mean something.
const BROKER_WINDOW_MIN: Duration = Duration::from_secs(5);

/// A load shape.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    tasks: u32,
    takes: Duration,
    /// Open instances to try for the maximum: ours, and the broker's.
    ours_open: &'static [u64],
    broker_open: &'static [u64],
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "one_task",
        tasks: 1,
        takes: Duration::ZERO,
        ours_open: &[64, 256, 1024],
        broker_open: &[32, 64, 128],
    },
    Kind {
        name: "ten_tasks",
        tasks: 10,
        takes: Duration::ZERO,
        ours_open: &[64, 256],
        broker_open: &[32, 64],
    },
    Kind {
        name: "one_task_50_ms",
        tasks: 1,
        takes: Duration::from_millis(50),
        ours_open: &[512, 2048],
        broker_open: &[64, 128],
    },
];

const FETCHINGS: [(&str, Fetching); 2] = [("stream", Fetching::Stream), ("poll", Fetching::Poll)];

/// Ourselves.
pub(crate) fn ours(workplace: &Workplace, args: &Args) -> Result<Measured> {
    let windlass = Windlass::built(workplace)?;
    let runtime = runtime()?;
    let mut histories: Vec<(&'static str, Vec<&'static str>)> = vec![("history_off", Vec::new())];
    let mut extra = Map::new();
    if windlass.help()?.contains("--history") {
        histories = vec![
            ("history_on", vec!["--history", "on"]),
            ("history_off", vec!["--history", "off"]),
        ];
    } else {
        let why = "this build has no --history";
        extra.insert("history_on".to_owned(), json!({ "skipped": why }));
    }
    let mut cases = Cases::default();
    for (history, flags) in &histories {
        let mut bench = Bench {
            system: "windlass",
            runtime: &runtime,
            plan: args.plan(),
            start: Box::new(|| start(&windlass, flags)),
            serial: 0,
        };
        for kind in &KINDS {
            for (fetching_name, fetching) in FETCHINGS {
                let figures = bench.case(kind, fetching, kind.ours_open);
                cases.add(history, kind.name, fetching_name, figures);
            }
        }
    }
    if let Some(headline) = cases.headline() {
        let waiting = waiting::measure(&windlass, &runtime, args, headline)?;
        extra.insert("instances_waiting".to_owned(), waiting);
    }
    let configuration = "defaults, fsync on; 4 workers, 4 connections".to_owned();
    Ok(Measured { version: windlass.version(), configuration, cases, extra })
}

/// The real broker, if a Java is found.
pub(crate) fn real_broker(workplace: &Workplace, args: &Args) -> Outcome {
    let broker = match broker::Broker::set_up(workplace) {
        Ok(broker) => broker,
        Err(why) => return Outcome::Skipped(why.to_string()),
    };
    match measure_broker(&broker, args) {
        Ok(measured) => Outcome::Measured(Box::new(measured)),
        Err(why) => Outcome::Failed(why.to_string()),
    }
}

/// Installs what is missing, and says what there is.
pub(crate) fn set_up(workplace: &Workplace) -> Result<String> {
    broker::Broker::set_up(workplace).map(|broker| broker.version())
}

fn measure_broker(broker: &broker::Broker, args: &Args) -> Result<Measured> {
    let runtime = runtime()?;
    let server = broker.start(&runtime)?;
    let address = server.address().to_string();
    let mut plan = args.plan();
    plan.window = plan.window.max(BROKER_WINDOW_MIN);
    let mut bench = Bench {
        system: BROKER,
        runtime: &runtime,
        plan,
        start: Box::new(|| Ok((None, address.clone()))),
        serial: 0,
    };
    eprintln!("bench: {BROKER} warms up for {} s", BROKER_WARM_UP.as_secs());
    for (_, fetching) in FETCHINGS {
        let load = Load::Closed { in_flight: 32 };
        let window = BROKER_WARM_UP / 2;
        let shape = Shape { load, warmup: Duration::ZERO, window };
        bench.run(&KINDS[0], fetching, shape)?;
    }
    let mut cases = Cases::default();
    for kind in &KINDS {
        for (fetching_name, fetching) in FETCHINGS {
            let figures = bench.case(kind, fetching, kind.broker_open);
            cases.add("history_off", kind.name, fetching_name, figures);
        }
    }
    let mut extra = Map::new();
    extra.insert("rss_bytes".to_owned(), json!(super::windlass::rss_bytes(&server)?));
    let configuration = broker::CONFIGURATION.to_owned();
    Ok(Measured { version: broker.version(), configuration, cases, extra })
}

/// Starts ourselves with the face for Zeebe; says where that is.
fn start(windlass: &Windlass, flags: &[&str]) -> Result<(Option<Server>, String)> {
    let zeebe = format!("127.0.0.1:{}", server::free_port()?);
    let server = windlass.start_with_zeebe(&zeebe, flags)?;
    Ok((Some(server), zeebe))
}

type Start<'a> = Box<dyn Fn() -> Result<(Option<Server>, String)> + 'a>;

/// The runs of one system.
struct Bench<'a> {
    system: &'static str,
    runtime: &'a Runtime,
    plan: Plan,
    /// A server of its own for a run, or the address of one for all.
    start: Start<'a>,
    /// Counts runs: every run has a process of its own.
    serial: u64,
}

impl Bench<'_> {
    /// The maximum over several numbers of open instances, then the latency at half of it.
    fn case(&mut self, kind: &Kind, fetching: Fetching, open: &[u64]) -> Result<CaseFigures> {
        let mut best: Option<CaseFigures> = None;
        for &in_flight in open {
            let mut tried = CaseFigures::new(in_flight);
            let found = self.run(kind, fetching, self.shape(Load::Closed { in_flight }))?;
            tried.add_closed(&found);
            if best.as_ref().is_none_or(|best| best.per_s.median() < tried.per_s.median()) {
                best = Some(tried);
            }
        }
        let mut case = best.ok_or_else(|| Failure::new("no number of open instances to try"))?;
        for _ in 1..self.plan.repeats {
            let load = Load::Closed { in_flight: case.in_flight };
            case.add_closed(&self.run(kind, fetching, self.shape(load))?);
        }
        case.latency_at_per_s = case.per_s.median() * OPEN_LOOP_SHARE;
        for _ in 0..self.plan.repeats {
            let load = Load::Open { per_s: case.latency_at_per_s };
            case.add_open(&self.run(kind, fetching, self.shape(load))?);
        }
        Ok(case)
    }

    fn shape(&self, load: Load) -> Shape {
        Shape { load, warmup: self.plan.warmup, window: self.plan.window }
    }

    fn run(&mut self, kind: &Kind, fetching: Fetching, shape: Shape) -> Result<load::Found> {
        self.serial += 1;
        let (server, address) = (self.start)()?;
        let work = Work {
            name: format!("bench-{}", self.serial),
            tasks: kind.tasks,
            takes: kind.takes,
            fetching,
        };
        let found = load::run(self.runtime, &address, work, shape)?;
        drop(server);
        let words = load::words(shape.load);
        let latency = found.figures.pickup_ms.map_or_else(String::new, |latency| {
            format!(", p50 {:.2} p99 {:.2} ms", latency.p50, latency.p99)
        });
        eprintln!(
            "bench: {} {} {fetching:?} ({words}): {:.0} instances/s{latency}, {} instances, {} \
             confirmed, {} refused for load, {}",
            self.system,
            kind.name,
            found.figures.rate_per_s,
            found.figures.jobs,
            found.confirmed,
            found.refused,
            found.figures.inexact.as_deref().unwrap_or("exact"),
        );
        Ok(found)
    }
}
