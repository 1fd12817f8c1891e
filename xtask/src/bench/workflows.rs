//! Workflows over the Conductor face, ourselves beside the real Conductor server: workers that poll
//! in batches and complete with `update-v2`, each shape as a closed loop (the maximum) and as an
//! open loop at half of that.
//!
//! Reading order: `definition` has the shapes; `load` is one run, the same for both, over `http`;
//! `original` is the real server; `figures` is what was found.

mod definition;
mod figures;
mod http;
mod load;
mod original;

use std::time::Duration;

use serde_json::{Map, json};
use tokio::runtime::Runtime;

use super::args::{Args, Plan};
use super::failure::{Failure, Result};
use super::measure::{Load, Shape};
use super::peer::{Peer, Workplace};
use super::server;
use super::windlass::{Windlass, rss_bytes, runtime};
use definition::Kind;
use figures::{CaseFigures, Cases, Measured};
pub(crate) use figures::{Outcome, head, ratio};
use load::Server;

/// Its name among the systems.
pub(crate) const CONDUCTOR: &str = "conductor";
/// The open loop's share of the case's own maximum.
const OPEN_LOOP_SHARE: f64 = 0.5;
/// The Java machine compiles while it runs.
const ORIGINAL_WARM_UP: Duration = Duration::from_secs(60);
/// Windows of a system that does tens a second must be longer to mean something.
const ORIGINAL_WINDOW_MIN: Duration = Duration::from_secs(10);

/// The shapes, and how many open workflows to try for the maximum: ours, and the original's.
const KINDS: [(Kind, &[u64], &[u64]); 3] = [
    (Kind::FiveTasks, &[64, 256], &[16, 64]),
    (Kind::ForkOfTen, &[64], &[16]),
    (Kind::LoopOfHundred, &[32], &[16]),
];

/// Ourselves.
pub(crate) fn ours(workplace: &Workplace, args: &Args) -> Outcome {
    Outcome::of(measure_ours(workplace, args))
}

/// The real server, if a Java is found.
pub(crate) fn conductor(workplace: &Workplace, args: &Args) -> Outcome {
    match original::Original::set_up(workplace) {
        Ok(original) => Outcome::of(measure_original(&original, args)),
        Err(why) => Outcome::Skipped(why.to_string()),
    }
}

/// Installs what is missing, and says what there is.
pub(crate) fn set_up(workplace: &Workplace) -> Result<String> {
    original::Original::set_up(workplace).map(|original| original.version())
}

fn measure_ours(workplace: &Workplace, args: &Args) -> Result<Measured> {
    let windlass = Windlass::built(workplace)?;
    let runtime = runtime()?;
    let mut cases = Cases::default();
    for (history, flags) in
        [("history_on", ["--history", "on"]), ("history_off", ["--history", "off"])]
    {
        let start = || {
            let server = windlass.start(&flags)?;
            let place = Server { address: server.address().to_string(), pid: server.pid() };
            Ok((Some(server), place))
        };
        let mut bench = Bench {
            system: super::OURS,
            runtime: &runtime,
            plan: args.plan(),
            start: Box::new(start),
            serial: 0,
        };
        for (kind, open, _) in KINDS {
            cases.add(history, kind, bench.case(kind, open));
        }
    }
    let configuration = "defaults, fsync on".to_owned();
    Ok(Measured { version: windlass.version(), configuration, cases, extra: Map::new() })
}

fn measure_original(original: &original::Original, args: &Args) -> Result<Measured> {
    let runtime = runtime()?;
    let server = original.start(&runtime)?;
    let (address, pid) = (server.address().to_string(), server.pid());
    let mut plan = args.plan();
    plan.window = plan.window.max(ORIGINAL_WINDOW_MIN);
    let mut bench = Bench {
        system: CONDUCTOR,
        runtime: &runtime,
        plan,
        start: Box::new(|| Ok((None, Server { address: address.clone(), pid }))),
        serial: 0,
    };
    eprintln!("bench: {CONDUCTOR} warms up for {} s", ORIGINAL_WARM_UP.as_secs());
    let load = Load::Closed { in_flight: 16 };
    bench.run(Kind::FiveTasks, Shape { load, warmup: Duration::ZERO, window: ORIGINAL_WARM_UP })?;
    let mut cases = Cases::default();
    for (kind, _, open) in KINDS {
        cases.add("history_on", kind, bench.case(kind, open));
    }
    drop(bench);
    let mut extra = Map::new();
    extra.insert("rss_bytes".to_owned(), json!(rss_bytes(&server)?));
    let configuration = original::CONFIGURATION.to_owned();
    Ok(Measured { version: original.version(), configuration, cases, extra })
}

type Start<'a> = Box<dyn Fn() -> Result<(Option<server::Server>, Server)> + 'a>;

/// The runs of one system.
struct Bench<'a> {
    system: &'static str,
    runtime: &'a Runtime,
    plan: Plan,
    /// A server of its own for a run, or where one for all is.
    start: Start<'a>,
    /// Counts runs: every run has a workflow of its own.
    serial: u64,
}

impl Bench<'_> {
    /// The maximum over several numbers of open workflows, then the latencies at half of it.
    fn case(&mut self, kind: Kind, open: &[u64]) -> Result<CaseFigures> {
        let mut best: Option<CaseFigures> = None;
        for &in_flight in open {
            let mut tried = CaseFigures::new(in_flight);
            tried.add_closed(&self.run(kind, self.shape(Load::Closed { in_flight }))?);
            if best.as_ref().is_none_or(|best| best.per_s.median() < tried.per_s.median()) {
                best = Some(tried);
            }
        }
        let mut case = best.ok_or_else(|| Failure::new("no number of open workflows to try"))?;
        for _ in 1..self.plan.repeats {
            let load = Load::Closed { in_flight: case.in_flight };
            case.add_closed(&self.run(kind, self.shape(load))?);
        }
        if case.per_s.median() <= 0.0 {
            return Err(Failure::new("nothing was completed in the window"));
        }
        case.latency_at_per_s = case.per_s.median() * OPEN_LOOP_SHARE;
        for _ in 0..self.plan.repeats {
            let load = Load::Open { per_s: case.latency_at_per_s };
            case.add_open(&self.run(kind, self.shape(load))?);
        }
        Ok(case)
    }

    fn shape(&self, load: Load) -> Shape {
        Shape { load, warmup: self.plan.warmup, window: self.plan.window }
    }

    fn run(&mut self, kind: Kind, shape: Shape) -> Result<load::Found> {
        self.serial += 1;
        let (server, place) = (self.start)()?;
        let name = format!("bench_{}", self.serial);
        let found = load::run(self.runtime, &place, kind, name, shape)?;
        drop(server);
        let handover =
            [("task", found.handover_ms), ("fork", found.fork_ms), ("join", found.join_ms)]
                .into_iter()
                .filter_map(|(what, found)| Some((what, found?)))
                .map(|(what, ms)| format!(", {what} p50 {:.2} p99 {:.2} ms", ms.p50, ms.p99));
        eprintln!(
            "bench: {} {} ({}): {:.1} workflows/s{}, {} workflows, {} confirmed, CPU {:.0} + {:.0} \
             us, {}",
            self.system,
            kind.name(),
            load::words(shape.load),
            found.figures.rate_per_s,
            handover.collect::<String>(),
            found.figures.jobs,
            found.confirmed,
            found.server_cpu_us,
            found.load_cpu_us,
            found.figures.inexact.as_deref().unwrap_or("exact"),
        );
        Ok(found)
    }
}
