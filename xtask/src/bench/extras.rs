//! Figures that only we report: the state machine alone, memory, restart, a noisy neighbour.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use windlass_worker::{Client, v1};

use super::failure::{Context, Failure, Result};
use super::peer::Workplace;
use super::server::{self, Server};
use super::windlass::{
    QUEUE, WAIT_MAX, Windlass, job_of_group, live_jobs, open_stream, rss_bytes, runtime,
};

/// Jobs in a batch while filling.
const FILL_BATCH: u64 = 1_000;
/// Calls that fill at once.
const FILLERS: u64 = 4;

/// Measures all of them.
pub(crate) fn extras(workplace: &Workplace, quick: bool) -> Result<Map<String, Value>> {
    let windlass = Windlass::built(workplace)?;
    let mut figures = Map::new();
    figures.insert("core_transitions_per_s".to_owned(), core_transitions()?);
    figures.insert("idle_rss_bytes".to_owned(), idle_rss(&windlass)?);
    let waiting: &[u64] = if quick { &[200_000] } else { &[1_000_000, 10_000_000] };
    for &jobs in waiting {
        let name = format!("waiting_{jobs}");
        figures.insert(name, waiting_and_restart(&windlass, jobs, quick)?);
    }
    figures.insert("noisy_neighbour".to_owned(), noisy_neighbour(&windlass, quick)?);
    Ok(figures)
}

/// The state machine alone, from its own example.
fn core_transitions() -> Result<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--quiet", "-p", "windlass-engine", "--example"]);
    let out = server::run(command.arg("core_bench"))?;
    let line = out.lines().last().unwrap_or_default();
    serde_json::from_str(line).context("read the figures of core_bench")
}

fn idle_rss(windlass: &Windlass) -> Result<Value> {
    let server = windlass.start(&[])?;
    std::thread::sleep(Duration::from_secs(2));
    Ok(json!(rss_bytes(&server)?))
}

/// Memory with many waiting jobs, and the restart after kill -9 behind a steady churn.
fn waiting_and_restart(windlass: &Windlass, jobs: u64, quick: bool) -> Result<Value> {
    let runtime = runtime()?;
    // A checkpoint a second, so that the churn runs through at least twenty.
    let flags = ["--checkpoint-seconds", "1", "--payload-memory-mib", "65536"];
    let server = windlass.start(&flags)?;
    let url = format!("http://{}", server.address());
    let before = settled_rss(&server)?;
    let filling = Instant::now();
    runtime.block_on(fill(&url, QUEUE, "", jobs))?;
    let fill_s = filling.elapsed().as_secs_f64();
    let filled = rss_bytes(&server)?.saturating_sub(before);
    let resident = settled_rss(&server)?.saturating_sub(before);
    let churn = Duration::from_secs(if quick { 4 } else { 25 });
    runtime.block_on(churn_for(&url, churn))?;
    let live = runtime.block_on(live_jobs(&url))?;
    server.kill_keeping_files().keep();
    let warm_s = restart(windlass, &runtime)?;
    let cold_s = match drop_page_cache() {
        Ok(()) => Some(restart(windlass, &runtime)?),
        Err(_) => None,
    };
    // With a small budget payloads stay in the store.
    let small = windlass.start(&["--payload-memory-mib", "64"])?;
    runtime.block_on(first_activation(&format!("http://{}", small.address())))?;
    let evicted = rss_bytes(&small)?.saturating_sub(before);
    drop(small);
    Ok(json!({
        "jobs": live,
        "fill_s": fill_s,
        "rss_bytes_per_waiting_job": resident as f64 / jobs as f64,
        "rss_bytes_per_waiting_job_when_filled": filled as f64 / jobs as f64,
        "rss_bytes_per_waiting_job_after_restart": evicted as f64 / live as f64,
        "restart_s_page_cache_warm": warm_s,
        "restart_s_page_cache_dropped": cold_s,
    }))
}

/// Memory once the checkpoint of what was filled in is written: while it is not, its images stand beside the jobs.
fn settled_rss(server: &Server) -> Result<u64> {
    const LOOK_EVERY: Duration = Duration::from_secs(2);
    const LOOKS_MAX: u32 = 60;
    let mut rss = rss_bytes(server)?;
    for _ in 0..LOOKS_MAX {
        std::thread::sleep(LOOK_EVERY);
        let before = std::mem::replace(&mut rss, rss_bytes(server)?);
        if rss.abs_diff(before) < before / 200 {
            break;
        }
    }
    Ok(rss)
}

/// From the start of the process until the first activation is answered; kills it again.
fn restart(windlass: &Windlass, runtime: &tokio::runtime::Runtime) -> Result<f64> {
    let started = Instant::now();
    let server = windlass.start(&["--payload-memory-mib", "65536"])?;
    runtime.block_on(first_activation(&format!("http://{}", server.address())))?;
    let took_s = started.elapsed().as_secs_f64();
    server.kill_keeping_files().keep();
    Ok(took_s)
}

async fn first_activation(url: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let asked = async {
            let client = Client::connect(url).await?;
            client
                .activate_jobs(v1::ActivateJobsRequest {
                    queues: vec![QUEUE.to_owned()],
                    worker: "first".to_owned(),
                    // The job comes back soon.
                    lease_ms: Some(1_000),
                    ..v1::ActivateJobsRequest::default()
                })
                .await
        };
        match asked.await {
            Ok(jobs) if !jobs.is_empty() => return Ok(()),
            Ok(_) => return Err(Failure::new("the restarted server has no job to give")),
            Err(_) if started.elapsed() < WAIT_MAX => {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Err(error) => return Err(error).context("activate after the restart"),
        }
    }
}

async fn fill(url: &str, queue: &str, group: &str, jobs: u64) -> Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..FILLERS {
        let (next, url) = (Arc::clone(&next), url.to_owned());
        let (queue, group) = (queue.to_owned(), group.to_owned());
        tasks.push(tokio::spawn(async move {
            let client = Client::connect(url).await.context("connect")?;
            loop {
                let first = next.fetch_add(FILL_BATCH, Ordering::Relaxed);
                if first >= jobs {
                    return Ok::<(), Failure>(());
                }
                let last = (first + FILL_BATCH).min(jobs);
                let batch = (first..last)
                    .map(|job| job_of_group(&queue, &group, super::measure::payload(job).to_vec()));
                client.create_jobs(batch.collect()).await.context("fill")?;
            }
        }));
    }
    for task in tasks {
        task.await.context("join a filler")??;
    }
    Ok(())
}

/// Takes, completes and creates for a while, so that checkpoints have something to do.
async fn churn_for(url: &str, how_long: Duration) -> Result<()> {
    const CREDITS: u32 = 64;
    let client = Client::connect(url).await.context("connect")?;
    let mut stream = open_stream(&client, QUEUE, "churn", CREDITS).await?;
    let started = Instant::now();
    while started.elapsed() < how_long {
        let Some(received) = stream.next().await.context("read the stream")? else { break };
        if received.jobs.is_empty() {
            continue;
        }
        let done = received.jobs.iter().map(|job| (job.into(), Default::default()));
        stream.sender().complete_all(done, received.jobs.len());
        let again = received.jobs.iter().map(|job| v1::NewJob {
            queue: QUEUE.to_owned(),
            payload: job.payload.clone(),
            ..v1::NewJob::default()
        });
        client.create_jobs(again.collect()).await.context("create again")?;
    }
    Ok(())
}

fn drop_page_cache() -> Result<()> {
    server::run(&mut Command::new("sync"))?;
    std::fs::write("/proc/sys/vm/drop_caches", "1").context("drop the page cache")
}

/// 50 small groups of one job a second each, beside a group that keeps every slot busy: with a
/// hundred of its jobs waiting, then with a million.
fn noisy_neighbour(windlass: &Windlass, quick: bool) -> Result<Value> {
    let seconds = if quick { 5 } else { 65 };
    let many = if quick { 50_000 } else { 1_000_000 };
    let quiet = pickup_beside(windlass, 96, seconds)?;
    let noisy = pickup_beside(windlass, many, seconds)?;
    Ok(json!({
        "noisy_neighbour_ratio": noisy.p99_ms / quiet.p99_ms,
        "quiet_p99_ms": quiet.p99_ms,
        "noisy_p99_ms": noisy.p99_ms,
        "samples": noisy.samples.min(quiet.samples),
        "waiting": many,
    }))
}

struct Beside {
    p99_ms: f64,
    samples: usize,
}

const SMALL_GROUPS: u64 = 50;
const SLOTS_PER_WORKER: u32 = 16;
const SLOT_WORKERS: u32 = 4;
const HANDLER: Duration = Duration::from_millis(20);

fn pickup_beside(windlass: &Windlass, waiting: u64, seconds: u64) -> Result<Beside> {
    let server = windlass.start(&[])?;
    let url = format!("http://{}", server.address());
    let runtime = runtime()?;
    let out = runtime.block_on(async {
        fill(&url, QUEUE, "big", waiting).await?;
        let ending = Arc::new(AtomicBool::new(false));
        let refill = tokio::spawn(keep_full(url.clone(), waiting, Arc::clone(&ending)));
        let (samples_out, mut samples_in) = tokio::sync::mpsc::unbounded_channel();
        let mut workers = Vec::new();
        for number in 0..SLOT_WORKERS {
            let worker = slot_worker(url.clone(), number, samples_out.clone());
            workers.push(tokio::spawn(worker));
        }
        drop(samples_out);
        small_groups(&url, seconds).await?;
        ending.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.abort();
        }
        refill.await.context("join the refiller")??;
        let mut samples = Vec::new();
        while let Ok(sample) = samples_in.try_recv() {
            samples.push(sample);
        }
        Ok::<Vec<f64>, Failure>(samples)
    })?;
    let mut samples = out;
    samples.sort_by(f64::total_cmp);
    let index = (samples.len() * 99 / 100).min(samples.len().saturating_sub(1));
    let p99_ms = *samples.get(index).ok_or_else(|| Failure::new("no job of a small group ran"))?;
    Ok(Beside { p99_ms, samples: samples.len() })
}

/// Keeps about as many jobs of the big group waiting as there were.
async fn keep_full(url: String, waiting: u64, ending: Arc<AtomicBool>) -> Result<()> {
    let client = Client::connect(url.as_str()).await.context("connect")?;
    while !ending.load(Ordering::Relaxed) {
        let queues = client.queues("").await.context("list queues")?;
        let ready = queues.iter().find(|queue| queue.name == QUEUE).map_or(0, |queue| queue.ready);
        if u64::from(ready) < waiting {
            let missing = (waiting - u64::from(ready)).min(FILL_BATCH);
            let batch = (0..missing)
                .map(|job| job_of_group(QUEUE, "big", super::measure::payload(job).to_vec()));
            client.create_jobs(batch.collect()).await.context("refill")?;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// A worker with a bounded number of slots; credits are its free slots.
async fn slot_worker(
    url: String,
    number: u32,
    samples: tokio::sync::mpsc::UnboundedSender<f64>,
) -> Result<()> {
    let client = Client::connect(url.as_str()).await.context("connect")?;
    let name = format!("slots-{number}");
    let mut stream = open_stream(&client, QUEUE, &name, SLOTS_PER_WORKER).await?;
    while let Some(received) = stream.next().await.context("read the stream")? {
        for job in received.jobs {
            if job.group != "big" {
                let due_us = super::measure::job_of(&job.payload)?;
                let late_us = now_us().saturating_sub(due_us);
                // The measurement may be over.
                let _ = samples.send(late_us as f64 / 1000.0);
            }
            let sender = stream.sender().clone();
            tokio::spawn(async move {
                tokio::time::sleep(HANDLER).await;
                sender.complete((&job).into(), Default::default());
            });
        }
    }
    Ok(())
}

/// One job a second for each small group, spread over the second, each sent at its time.
async fn small_groups(url: &str, seconds: u64) -> Result<()> {
    let client = Client::connect(url).await.context("connect")?;
    let every = Duration::from_micros(1_000_000 / SMALL_GROUPS);
    let mut due = tokio::time::Instant::now() + Duration::from_secs(1);
    for number in 0..seconds * SMALL_GROUPS {
        tokio::time::sleep_until(due).await;
        let late_us = due.elapsed().as_micros();
        let due_us = now_us().saturating_sub(u64::try_from(late_us).unwrap_or(0));
        let group = format!("small-{}", number % SMALL_GROUPS);
        let job = job_of_group(QUEUE, &group, super::measure::payload(due_us).to_vec());
        let client = client.clone();
        tokio::spawn(async move { client.create_job(job).await });
        due += every;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ok(())
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}
