//! What 100,000 waiting instances change: rate and latency of one-task instances beside them, over
//! the same without them, in turn; and memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::figures::CaseFigures;
use super::load::{self, Fetching, Work};
use super::{KINDS, process, start};
use crate::bench::args::Args;
use crate::bench::cases::{Latency, words};
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::measure::{Load, Shape};
use crate::bench::report::{Sample, rounded};
use crate::bench::server::Server;
use crate::bench::windlass::{Windlass, cpu_us, rss_bytes};

/// Instances that wait for a worker that never comes.
const WAITING: u64 = 100_000;
/// Starts under way while filling.
const FILLERS: u64 = 64;
/// A server rests when it used less than a twentieth of a core for so long.
const REST: Duration = Duration::from_secs(2);
/// How long it may take until it does.
const REST_WITHIN: Duration = Duration::from_secs(120);

#[derive(Default)]
struct Side {
    per_s: Sample,
    latency: Latency,
    server_cpu_us: Sample,
    rss_bytes: u64,
}

pub(super) fn measure(
    windlass: &Windlass,
    runtime: &Runtime,
    args: &Args,
    headline: &CaseFigures,
) -> Result<Value> {
    let (mut alone, mut beside) = (Side::default(), Side::default());
    for _ in 0..args.plan().repeats {
        pair(windlass, runtime, args, headline, 0, &mut alone)?;
        pair(windlass, runtime, args, headline, WAITING, &mut beside)?;
    }
    let ratio = |one: &Sample, other: &Sample| rounded(one.median() / other.median(), 3);
    let per_instance = beside.rss_bytes.saturating_sub(alone.rss_bytes) / WAITING;
    Ok(json!({
        "waiting": WAITING,
        "rate_ratio": ratio(&beside.per_s, &alone.per_s),
        "p50_ratio": ratio(&beside.latency.p50_ms, &alone.latency.p50_ms),
        "server_cpu_ratio": ratio(&beside.server_cpu_us, &alone.server_cpu_us),
        "p99_ratio": ratio(&beside.latency.p99_ms, &alone.latency.p99_ms),
        "per_s": ([&alone, &beside].map(|side| rounded(side.per_s.median(), 0))),
        "p99_ms": ([&alone, &beside].map(|side| rounded(side.latency.p99_ms.median(), 2))),
        "idle_rss_bytes": alone.rss_bytes,
        "waiting_rss_bytes": beside.rss_bytes,
        "rss_bytes_per_waiting_instance": per_instance,
    }))
}

/// A closed and an open loop on one server each.
fn pair(
    windlass: &Windlass,
    runtime: &Runtime,
    args: &Args,
    headline: &CaseFigures,
    waiting: u64,
    side: &mut Side,
) -> Result<()> {
    let plan = args.plan();
    // At half of the rate to reach where that can be done: nearer to the maximum, what is measured
    // is how well a server on the edge copes.
    let open = headline.at_half_of_aim.as_ref().unwrap_or(&headline.common);
    for load in [
        Load::Closed { in_flight: headline.common.in_flight },
        Load::Open { per_s: open.latency_at_per_s },
    ] {
        let (server, place) = start(windlass, &[])?;
        runtime.block_on(fill(&place.address, waiting))?;
        until_it_rests(&server)?;
        side.rss_bytes = rss_bytes(&server)?;
        let work = Work {
            name: "beside".to_owned(),
            tasks: KINDS[0].tasks,
            takes: KINDS[0].takes,
            fetching: Fetching::Stream,
        };
        let shape = Shape { load, warmup: plan.warmup, window: plan.window };
        let ran = load::run(runtime, &place, work, shape)?.ran;
        let words = words(load);
        let rate = ran.figures.rate_per_s;
        let p99 = ran
            .figures
            .pickup_ms
            .as_ref()
            .map_or_else(String::new, |l| format!(", p99 {:.2} ms", l.p99));
        eprintln!("bench: windlass beside {waiting} waiting ({words}): {rate:.0} instances/s{p99}");
        if let Some(inexact) = ran.figures.inexact {
            return Err(Failure::new(format!("beside {waiting} waiting: {inexact}")));
        }
        side.server_cpu_us.add(ran.server_cpu_us);
        match &ran.figures.pickup_ms {
            Some(latency) => side.latency.add(Some(latency)),
            None => side.per_s.add(rate),
        }
    }
    Ok(())
}

/// Waits until history and checkpoint of what was filled in are written; on a slow machine that takes its time, and what is
/// measured beside it is that.
fn until_it_rests(server: &Server) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < REST_WITHIN {
        let before_us = cpu_us(server.pid())?;
        std::thread::sleep(REST);
        if cpu_us(server.pid())? - before_us < REST.as_secs_f64() * 1e6 / 20.0 {
            return Ok(());
        }
    }
    Err(Failure::new("the server does not come to rest"))
}

async fn fill(address: &str, waiting: u64) -> Result<()> {
    let mut client = load::connect(address).await?;
    load::deploy(&mut client, "waiting", process::chain("waiting", "waiting", 1)).await?;
    let next = Arc::new(AtomicU64::new(0));
    let mut fillers = Vec::new();
    for _ in 0..FILLERS {
        let (next, mut client) = (Arc::clone(&next), client.clone());
        fillers.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= waiting {
                    return Ok::<(), Failure>(());
                }
                load::create(&mut client, "waiting", number).await.context("fill")?;
            }
        }));
    }
    for filler in fillers {
        filler.await.context("join a filler")??;
    }
    Ok(())
}
