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

use super::args::Args;
use super::cases::{Bench, Place};
use super::failure::Result;
use super::measure::{Load, Shape};
use super::peer::{Peer, Workplace};
use super::server::{self, Server};
use super::windlass::{Windlass, rss_bytes, runtime};
use figures::{CaseFigures, Cases, Measured, PER_S_AIM};
pub(crate) use figures::{Outcome, aims, head, ratio};
use load::{Fetching, Work};

/// Its name among the systems.
pub(crate) const BROKER: &str = "zeebe";
/// The Java machine compiles while it runs.
const BROKER_WARM_UP: Duration = Duration::from_secs(60);
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
pub(crate) fn ours(workplace: &Workplace, args: &Args) -> Outcome {
    Outcome::of(measure_ours(workplace, args))
}

/// The real broker, if a Java is found.
pub(crate) fn real_broker(workplace: &Workplace, args: &Args) -> Outcome {
    match broker::Broker::set_up(workplace) {
        Ok(broker) => Outcome::of(measure_broker(&broker, args)),
        Err(why) => Outcome::Skipped(why.to_string()),
    }
}

/// Installs what is missing, and says what there is.
pub(crate) fn set_up(workplace: &Workplace) -> Result<String> {
    broker::Broker::set_up(workplace).map(|broker| broker.version())
}

fn measure_ours(workplace: &Workplace, args: &Args) -> Result<Measured> {
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
        let start = || start(&windlass, flags).map(|(server, place)| (Some(server), place));
        let mut bench = Bench::new(super::OURS, &runtime, args.plan(), Box::new(start));
        for kind in &KINDS {
            for (name, fetching) in FETCHINGS {
                cases.add(
                    &[*history, kind.name, name],
                    case(&mut bench, kind, fetching, kind.ours_open),
                );
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

fn measure_broker(broker: &broker::Broker, args: &Args) -> Result<Measured> {
    let runtime = runtime()?;
    let server = broker.start(&runtime)?;
    let (address, pid) = (server.address().to_string(), server.pid());
    let mut plan = args.plan();
    plan.window = plan.window.max(BROKER_WINDOW_MIN);
    let start = || Ok((None, Place { address: address.clone(), pid }));
    let mut bench = Bench::new(BROKER, &runtime, plan, Box::new(start));
    eprintln!("bench: {BROKER} warms up for {} s", BROKER_WARM_UP.as_secs());
    for (_, fetching) in FETCHINGS {
        let load = Load::Closed { in_flight: 32 };
        let window = BROKER_WARM_UP / 2;
        run(&mut bench, &KINDS[0], fetching, Shape { load, warmup: Duration::ZERO, window })?;
    }
    let mut cases = Cases::default();
    for kind in &KINDS {
        for (name, fetching) in FETCHINGS {
            let found = case(&mut bench, kind, fetching, kind.broker_open);
            cases.add(&["history_off", kind.name, name], found);
        }
    }
    let mut extra = Map::new();
    extra.insert("rss_bytes".to_owned(), json!(rss_bytes(&server)?));
    let configuration = broker::CONFIGURATION.to_owned();
    Ok(Measured { version: broker.version(), configuration, cases, extra })
}

/// Starts ourselves with the face for Zeebe; says where that is.
fn start(windlass: &Windlass, flags: &[&str]) -> Result<(Server, Place)> {
    let address = format!("127.0.0.1:{}", server::free_port()?);
    let server = windlass.start_with_zeebe(&address, flags)?;
    let pid = server.pid();
    Ok((server, Place { address, pid }))
}

fn case(
    bench: &mut Bench<'_>,
    kind: &Kind,
    fetching: Fetching,
    open: &[u64],
) -> Result<CaseFigures> {
    let mut one = |bench: &mut Bench<'_>, shape| run(bench, kind, fetching, shape);
    let mut figures = CaseFigures::of(bench.case(open, &mut one)?);
    let half = PER_S_AIM * super::OPEN_LOOP_SHARE;
    if kind.tasks == 1 && figures.common.per_s.median() > half {
        figures.at_half_of_aim = Some(bench.latency_at(half, &mut one)?);
    }
    Ok(figures)
}

fn run(
    bench: &mut Bench<'_>,
    kind: &Kind,
    fetching: Fetching,
    shape: Shape,
) -> Result<load::Found> {
    let (name, server, place) = bench.begin()?;
    let work = Work { name, tasks: kind.tasks, takes: kind.takes, fetching };
    let found = load::run(bench.runtime, &place, work, shape)?;
    drop(server);
    let refused = format!(", {} refused for load", found.refused);
    bench.say(&format!("{} {fetching:?}", kind.name), shape.load, &found.ran, &refused);
    Ok(found)
}
