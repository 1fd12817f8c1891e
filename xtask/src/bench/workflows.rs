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

use super::args::Args;
use super::cases::{Bench, Place};
use super::failure::Result;
use super::measure::{Load, Shape};
use super::peer::{Peer, Workplace};
use super::windlass::{Windlass, rss_bytes, runtime};
use definition::Kind;
use figures::{CaseFigures, Cases, Measured};
pub(crate) use figures::{Outcome, head, ratio};

/// Its name among the systems.
pub(crate) const CONDUCTOR: &str = "conductor";
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
            let place = Place { address: server.address().to_string(), pid: server.pid() };
            Ok((Some(server), place))
        };
        let mut bench = Bench::new(super::OURS, &runtime, args.plan(), Box::new(start));
        for (kind, open, _) in KINDS {
            cases.add(&[history, kind.name()], case(&mut bench, kind, open));
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
    let start = || Ok((None, Place { address: address.clone(), pid }));
    let mut bench = Bench::new(CONDUCTOR, &runtime, plan, Box::new(start));
    eprintln!("bench: {CONDUCTOR} warms up for {} s", ORIGINAL_WARM_UP.as_secs());
    let load = Load::Closed { in_flight: 16 };
    let warm_up = Shape { load, warmup: Duration::ZERO, window: ORIGINAL_WARM_UP };
    run(&mut bench, Kind::FiveTasks, warm_up)?;
    let mut cases = Cases::default();
    for (kind, _, open) in KINDS {
        cases.add(&["history_on", kind.name()], case(&mut bench, kind, open));
    }
    drop(bench);
    let mut extra = Map::new();
    extra.insert("rss_bytes".to_owned(), json!(rss_bytes(&server)?));
    let configuration = original::CONFIGURATION.to_owned();
    Ok(Measured { version: original.version(), configuration, cases, extra })
}

fn case(bench: &mut Bench<'_>, kind: Kind, open: &[u64]) -> Result<CaseFigures> {
    bench.case(open, |bench, shape| run(bench, kind, shape)).map(CaseFigures::of)
}

fn run(bench: &mut Bench<'_>, kind: Kind, shape: Shape) -> Result<load::Found> {
    let (name, server, place) = bench.begin()?;
    let found = load::run(bench.runtime, &place, kind, name, shape)?;
    drop(server);
    let handover =
        [("task", &found.handover_ms), ("fork", &found.fork_ms), ("join", &found.join_ms)]
            .into_iter()
            .filter_map(|(what, found)| Some((what, found.as_ref()?)))
            .map(|(what, ms)| format!(", {what} p50 {:.2} p99 {:.2} ms", ms.p50, ms.p99));
    bench.say(kind.name(), shape.load, &found.ran, &handover.collect::<String>());
    Ok(found)
}
