//! `windlass bench`: loads a running server and measures. Small on purpose: `cargo xtask bench` is the
//! one that compares.
//!
//! Whole lives in a closed loop: producers create in batches, workers take over streams and complete;
//! at most `--in-flight` jobs are between their create and the answer to their result. The queue is
//! made for the run. Delivery is checked: every job exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use rustc_hash::FxHashSet;
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use windlass_worker::{Client, Token, v1};

use crate::args::Online;
use crate::failure::Failure;
use crate::output::fields;
use crate::units::grouped;

/// A run in which nothing happens for this long is stuck.
const STUCK: Duration = Duration::from_secs(30);
/// How often the progress bar moves.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// `{"at":"` and the digits of nanoseconds behind it, by which pickup times are measured.
const HEAD: &str = "{\"at\":\"";
const DIGITS: usize = 20;
/// The rest of the smallest payload: `","fill":""}`.
const REST_BYTES: usize = 12;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Jobs in all
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    jobs: u64,
    /// Workers, each with a connection of its own
    #[arg(long, default_value_t = 4, value_name = "N")]
    workers: u32,
    /// Producers, each with a connection of its own
    #[arg(long, default_value_t = 2, value_name = "N")]
    producers: u32,
    /// Jobs between create and answered result, over all workers
    #[arg(long, default_value_t = 1_024, value_name = "N")]
    in_flight: u32,
    /// Jobs in a batch of creates
    #[arg(long, default_value_t = 256, value_name = "N")]
    batch: u32,
    /// Bytes of a payload, at least 39
    #[arg(long, default_value_t = 200, value_name = "N")]
    payload_bytes: usize,
}

/// Shared by everybody in a run.
struct Run {
    tenant: String,
    queue: String,
    began: Instant,
    jobs: u64,
    fill: String,
    /// Jobs that may be created now.
    room: Semaphore,
    taken: AtomicU64,
    answered: AtomicU64,
    refused: AtomicU64,
    /// All is answered, or somebody failed.
    done: watch::Sender<bool>,
}

pub(crate) async fn run(online: &Online, args: &BenchArgs) -> Result<(), Failure> {
    let status = online.client.status().await?;
    if args.jobs == 0 || args.workers == 0 || args.producers == 0 || args.in_flight == 0 {
        return Err(Failure::new("there must be jobs, workers, producers and jobs in flight"));
    }
    let run = Arc::new(Run {
        tenant: online.tenant.clone(),
        queue: format!("windlass-bench-{:08x}", fastrand::u32(..)),
        began: Instant::now(),
        jobs: args.jobs,
        fill: "x".repeat(args.payload_bytes.saturating_sub(HEAD.len() + DIGITS + REST_BYTES)),
        room: Semaphore::new(usize::try_from(args.in_flight).unwrap_or(usize::MAX)),
        taken: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        done: watch::Sender::new(false),
    });
    let workers: Vec<_> = (0..args.workers)
        .map(|_| {
            let client = Client::lazy(online.address.as_str())?;
            let credits = args.in_flight.div_ceil(args.workers);
            Ok(tokio::spawn(or_all_stop(Arc::clone(&run), work(client, Arc::clone(&run), credits))))
        })
        .collect::<Result<_, Failure>>()?;
    let batch = args.batch.min(args.in_flight.div_ceil(2)).max(1);
    let producers: Vec<_> = (0..args.producers)
        .map(|_| {
            let client = Client::lazy(online.address.as_str())?;
            Ok(tokio::spawn(or_all_stop(
                Arc::clone(&run),
                produce(client, Arc::clone(&run), batch),
            )))
        })
        .collect::<Result<_, Failure>>()?;
    watch_progress(&run).await?;
    let seconds = run.began.elapsed().as_secs_f64();
    let (mut created, mut received, mut pickups) = (Vec::new(), Vec::new(), Vec::new());
    for producer in producers {
        created.extend(ended(producer.await)?);
    }
    for worker in workers {
        let worked = ended(worker.await)?;
        received.extend(worked.keys);
        pickups.extend(worked.pickups_ns);
    }
    let exactly =
        delivered_exactly(&created, &received) && run.refused.load(Ordering::Relaxed) == 0;
    pickups.sort_unstable();
    report(online, args, &status.durability, seconds, exactly, &pickups)
}

fn report(
    online: &Online,
    args: &BenchArgs,
    durability: &str,
    seconds: f64,
    exactly: bool,
    pickups: &[u64],
) -> Result<(), Failure> {
    let per_s = whole(args.jobs as f64 / seconds);
    let ms = |part: f64| quantile(pickups, part) as f64 / 1e6;
    let value = json!({
        "jobs": args.jobs,
        "seconds": seconds,
        "lifecycle_per_s": per_s,
        "delivered_exactly": exactly,
        "durability": durability,
        "pickup_ms": { "p50": ms(0.5), "p99": ms(0.99), "p999": ms(0.999) },
    });
    online.out.show(&value, || {
        fields(&[
            ("jobs", format!("{} in {seconds:.2} s", grouped(args.jobs))),
            ("whole lives", format!("{} a second", grouped(per_s))),
            (
                "create to pickup",
                format!(
                    "p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms (under full load)",
                    ms(0.5),
                    ms(0.99),
                    ms(0.999)
                ),
            ),
            ("durability", durability.to_owned()),
            (
                "delivered",
                if exactly { "every job exactly once" } else { "NOT exactly once" }.to_owned(),
            ),
        ])
    })?;
    if exactly { Ok(()) } else { Err(Failure::damaged("jobs were lost or delivered twice")) }
}

async fn produce(client: Client, run: Arc<Run>, batch: u32) -> Result<Vec<u64>, Failure> {
    let mut keys = Vec::new();
    loop {
        let wanted = u64::from(batch);
        let before = run.taken.fetch_add(wanted, Ordering::Relaxed);
        let count = run.jobs.saturating_sub(before).min(wanted);
        if count == 0 {
            return Ok(keys);
        }
        let permits = u32::try_from(count).unwrap_or(batch);
        let Ok(room) = run.room.acquire_many(permits).await else { return Ok(keys) };
        room.forget();
        let at = nanos(run.began);
        let payload = bytes::Bytes::from(format!("{HEAD}{at:020}\",\"fill\":\"{}\"}}", run.fill));
        let job = v1::NewJob { tenant: run.tenant.clone(), payload, ..v1::NewJob::new(&run.queue) };
        let jobs = (0..count).map(|_| job.clone()).collect();
        for result in client.create_jobs(jobs).await? {
            let created = result.map_err(windlass_worker::Error::Refused)?;
            keys.push(created.key);
        }
    }
}

#[derive(Default)]
struct Worked {
    keys: Vec<u64>,
    pickups_ns: Vec<u64>,
}

async fn work(client: Client, run: Arc<Run>, credits: u32) -> Result<Worked, Failure> {
    let hello = v1::Hello {
        tenant: run.tenant.clone(),
        queues: vec![run.queue.clone()],
        worker: "windlass-bench".to_owned(),
        lease_ms: 0,
    };
    let mut stream = client.work(hello, credits).await?;
    let mut worked = Worked::default();
    let mut done = run.done.subscribe();
    loop {
        let received = tokio::select! {
            received = stream.next() => received?,
            _ = done.wait_for(|done| *done) => return Ok(worked),
        };
        let Some(received) = received else {
            return Err(Failure::new("the server ended a stream"));
        };
        let now = nanos(run.began);
        for job in &received.jobs {
            worked.keys.push(job.key);
            worked.pickups_ns.push(now.saturating_sub(created_at(&job.payload).unwrap_or(now)));
        }
        let count = received.jobs.len();
        if count > 0 {
            let results = received.jobs.iter().map(|job| (Token::from(job), bytes::Bytes::new()));
            stream.sender().complete_all(results, count);
        }
        if received.answered > 0 {
            run.room.add_permits(received.answered);
            let answered = u64::try_from(received.answered).unwrap_or(0);
            let refused = u64::try_from(received.refused.len()).unwrap_or(0);
            run.refused.fetch_add(refused, Ordering::Relaxed);
            let all = run.answered.fetch_add(answered, Ordering::Relaxed) + answered;
            if all >= run.jobs {
                run.done.send_replace(true);
            }
        }
    }
}

/// Shows the progress until all jobs are answered.
async fn watch_progress(run: &Run) -> Result<(), Failure> {
    let style = ProgressStyle::with_template("{wide_bar} {human_pos} of {human_len}, {per_sec}");
    let bar = ProgressBar::new(run.jobs);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let answered = run.answered.load(Ordering::Relaxed);
        bar.set_position(answered);
        if *run.done.borrow() {
            bar.finish_and_clear();
            return Ok(());
        }
        if answered > last {
            (last, since) = (answered, Instant::now());
        } else if since.elapsed() > STUCK {
            return Err(Failure::new(format!(
                "stuck at {answered} of {} jobs: nothing was answered for 30 s",
                run.jobs
            ))
            .hint(format!("`windlass job list --queue {}` shows what is left", run.queue)));
        }
        let mut done = run.done.subscribe();
        let done = done.wait_for(|done| *done);
        // Neither a tick nor the end is an error.
        let _ = tokio::time::timeout(PROGRESS_EVERY, done).await;
    }
}

/// A failure of one ends the run for all.
async fn or_all_stop<T>(
    run: Arc<Run>,
    task: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let result = task.await;
    if result.is_err() {
        run.done.send_replace(true);
        run.room.close();
    }
    result
}

fn ended<T>(task: Result<Result<T, Failure>, tokio::task::JoinError>) -> Result<T, Failure> {
    task.map_err(|error| Failure::caused(&error))?
}

fn delivered_exactly(created: &[u64], received: &[u64]) -> bool {
    let unique: FxHashSet<u64> = received.iter().copied().collect();
    unique.len() == received.len()
        && received.len() == created.len()
        && created.iter().all(|key| unique.contains(key))
}

fn created_at(payload: &[u8]) -> Option<u64> {
    let digits = payload.get(HEAD.len()..HEAD.len() + DIGITS)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn nanos(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn quantile(sorted: &[u64], part: f64) -> u64 {
    let index = whole(sorted.len() as f64 * part);
    let index = usize::try_from(index).unwrap_or(usize::MAX).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or(0)
}

/// Cut off, not rounded; the values are far below what a float can hold exactly.
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_twice_or_missing_is_noticed() {
        assert!(delivered_exactly(&[1, 2, 3], &[3, 1, 2]));
        assert!(!delivered_exactly(&[1, 2, 3], &[3, 1]));
        assert!(!delivered_exactly(&[1, 2, 3], &[3, 1, 2, 2]));
        assert!(!delivered_exactly(&[1, 2, 3], &[3, 1, 1]));
    }

    #[test]
    fn quantiles_of_few_and_none() {
        assert_eq!(quantile(&[], 0.99), 0);
        assert_eq!(quantile(&[5], 0.99), 5);
        assert_eq!(quantile(&[1, 2, 3, 4], 0.5), 3);
    }
}
