//! One run of workflows against an address: starters, workers, and the proof that every workflow
//! was completed once.
//!
//! The number of a workflow rides in the input of each of its tasks. A worker polls for as many
//! tasks as it has free slots; a slot has a connection of its own, completes its task with
//! `update-v2` and goes on with the task that it is answered with. A workflow counts when the
//! answer to its last completion is here. That it has ended then is not assumed: at the end the
//! system must say that none of that name runs, and of the newest [`CONFIRMED_MAX`] that they are
//! completed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::definition::{Follows, Kind};
use super::http::Connection;
use crate::bench::cases::{Place, Ran};
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::measure::{Histogram, Load, Pickup, Run, Shape, guarded};
use crate::bench::windlass::cpu_us;

/// Workers, and tasks that each works on at once.
const WORKERS: usize = 4;
const SLOTS: usize = 16;
/// Connections that start workflows, and how many each takes on in the closed loop.
const STARTERS: usize = 16;
const STARTS_MIN: u64 = 2;
const STARTS_MAX: u64 = 8;
/// What the SDKs ask for.
const POLL_WAIT_MS: u32 = 100;
/// Workflows whose tasks are remembered.
const WORKFLOWS_MAX: usize = 1 << 20;
/// Workflows that are asked for at the end, connections that ask, and how long one that still runs
/// is waited for.
const CONFIRMED_MAX: usize = 1_000;
const ASKERS: usize = 8;
const END_MAX: Duration = Duration::from_secs(60);

/// What a run found besides its [`Figures`].
#[derive(Debug)]
pub(super) struct Found {
    pub(super) ran: Ran,
    /// Completion sent until a worker has the next task, by what that waited for; of the open loop.
    pub(super) handover_ms: Option<Pickup>,
    pub(super) fork_ms: Option<Pickup>,
    pub(super) join_ms: Option<Pickup>,
}

/// What is known of one workflow.
#[derive(Default)]
struct Progress {
    /// A bit for every task whose completion was sent.
    done: [AtomicU64; 2],
    /// When the completion of its first task was sent, and the newest one; in nanoseconds of the
    /// run.
    first_sent_ns: AtomicU64,
    last_sent_ns: AtomicU64,
}

struct Shared {
    run: Arc<Run>,
    shape: Shape,
    kind: Kind,
    /// Of the workflow and of its tasks, new for every run.
    name: String,
    address: String,
    began: Instant,
    progress: Vec<Progress>,
    /// Completions of tasks that were answered in the window.
    answered: AtomicU64,
    handover: Histogram,
    fork: Histogram,
    join: Histogram,
    /// Ids of the workflows that were started.
    ids: Mutex<Vec<String>>,
}

/// Runs one shape; the workflow is defined first.
pub(super) fn run(
    runtime: &Runtime,
    place: &Place,
    kind: Kind,
    name: String,
    shape: Shape,
) -> Result<Found> {
    runtime.block_on(define(&place.address, kind, &name))?;
    let shared = Arc::new(Shared {
        run: Arc::new(Run::new(shape)),
        shape,
        kind,
        name,
        address: place.address.clone(),
        began: Instant::now(),
        progress: (0..WORKFLOWS_MAX).map(|_| Progress::default()).collect(),
        answered: AtomicU64::new(0),
        handover: Histogram::new(),
        fork: Histogram::new(),
        join: Histogram::new(),
        ids: Mutex::default(),
    });
    let mut tasks = Vec::new();
    for number in 0..WORKERS {
        tasks.push(guarded(runtime, &shared.run, work(Arc::clone(&shared), number)));
    }
    let before = (cpu_us(place.pid)?, cpu_us(std::process::id())?);
    for _ in 0..STARTERS {
        tasks.push(guarded(runtime, &shared.run, start(Arc::clone(&shared))));
    }
    let window = shared.run.drive();
    let after = (cpu_us(place.pid)?, cpu_us(std::process::id())?);
    for task in tasks {
        task.abort();
    }
    let mut figures = shared.run.figures(window?, None)?;
    if kind.is_long() {
        let tasks = shared.answered.load(Ordering::SeqCst) as f64;
        figures.rate_per_s = tasks / f64::from(kind.tasks()) / shape.window.as_secs_f64();
    }
    let confirmed = runtime.block_on(confirm(&shared))?;
    match confirmed {
        Ok(_) => {}
        Err(ref words) => drop(figures.inexact.get_or_insert_with(|| words.clone())),
    }
    let workflows = figures.jobs.max(1) as f64;
    let is_open = matches!(shape.load, Load::Open { .. });
    let quantiles = |histogram: &Histogram| Pickup {
        p50: histogram.quantile_ms(0.50),
        p99: histogram.quantile_ms(0.99),
    };
    let forks = is_open && kind == Kind::ForkOfTen;
    let ran = Ran {
        figures,
        confirmed: confirmed.unwrap_or_default(),
        server_cpu_us: (after.0 - before.0) / workflows,
        load_cpu_us: (after.1 - before.1) / workflows,
    };
    Ok(Found {
        ran,
        handover_ms: (is_open && !forks).then(|| quantiles(&shared.handover)),
        fork_ms: forks.then(|| quantiles(&shared.fork)),
        join_ms: forks.then(|| quantiles(&shared.join)),
    })
}

/// Defines the workflow of a run.
pub(super) async fn define(address: &str, kind: Kind, name: &str) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let body = kind.definition(name).to_string();
    let answer = connection.ask("POST", "/api/metadata/workflow", &body).await?;
    answer.expected("define a workflow").map(drop)
}

impl AsRef<Ran> for Found {
    fn as_ref(&self) -> &Ran {
        &self.ran
    }
}

/// Starts workflows as the shape says.
async fn start(shared: Arc<Shared>) -> Result<()> {
    let mut connection = Connection::open(&shared.address).await?;
    let (least, most) = match shared.shape.load {
        Load::Closed { .. } => (STARTS_MIN, STARTS_MAX),
        Load::Open { .. } | Load::Enqueue => (1, 1),
    };
    while let Some(numbers) = shared.run.take_async(least, most).await {
        for number in numbers {
            let body = json!({ "name": shared.name, "version": 1, "input": { "n": number } });
            let answer = connection.ask("POST", "/api/workflow", &body.to_string()).await?;
            let id = answer.expected("start a workflow")?;
            shared.ids().push(String::from_utf8(id).context("read an id")?);
            shared.run.created(number..number + 1);
        }
    }
    Ok(())
}

/// Polls for as many tasks as there are free slots.
async fn work(shared: Arc<Shared>, worker: usize) -> Result<()> {
    let mut connection = Connection::open(&shared.address).await?;
    let slots = Arc::new(Semaphore::new(SLOTS));
    let mut free = Vec::new();
    for _ in 0..SLOTS {
        free.push(Connection::open(&shared.address).await?);
    }
    let free = Arc::new(Mutex::new(free));
    while !shared.run.finished() {
        let slot = Arc::clone(&slots).acquire_owned().await.context("wait for a slot")?;
        let mut taken = vec![slot];
        while let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            taken.push(slot);
        }
        let path = format!(
            "/api/tasks/poll/batch/{}?workerid=bench-{worker}&count={}&timeout={POLL_WAIT_MS}",
            shared.name,
            taken.len()
        );
        let polled = connection.ask("GET", &path, "").await?.expected("poll")?;
        let tasks: Vec<Value> = serde_json::from_slice(&polled).context("read polled tasks")?;
        for task in tasks {
            let task = shared.receive(&task)?;
            let slot = taken.pop().ok_or_else(|| Failure::new("more tasks than asked for"))?;
            let (shared, free) = (Arc::clone(&shared), Arc::clone(&free));
            tokio::spawn(async move {
                if let Err(failure) = go_on(&shared, &free, task, worker, slot).await {
                    shared.run.fail(failure);
                }
            });
        }
    }
    Ok(())
}

/// A task that was received.
struct Task {
    number: u64,
    bit: u32,
    follows: Follows,
    workflow: String,
    id: String,
}

/// Completes a task, and those that come in answer.
async fn go_on(
    shared: &Shared,
    free: &Mutex<Vec<Connection>>,
    mut task: Task,
    worker: usize,
    slot: OwnedSemaphorePermit,
) -> Result<()> {
    let mut free_now = free.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let connection = free_now.as_mut().ok_or_else(|| Failure::new("a slot has no connection"))?;
    loop {
        let body = json!({
            "workflowInstanceId": task.workflow, "taskId": task.id, "status": "COMPLETED",
            "workerId": format!("bench-{worker}"), "outputData": {},
        });
        shared.sends(&task)?;
        let answer = connection.ask("POST", "/api/tasks/update-v2", &body.to_string()).await?;
        shared.completed(&task)?;
        if answer.status == 204 {
            break;
        }
        let next = answer.expected("complete a task")?;
        let next: Value = serde_json::from_slice(&next).context("read the next task")?;
        task = shared.receive(&next)?;
    }
    free.lock().unwrap_or_else(PoisonError::into_inner).extend(free_now);
    drop(slot);
    Ok(())
}

impl Shared {
    fn ids(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn progress(&self, number: u64) -> Result<&Progress> {
        let index = usize::try_from(number).ok();
        let progress = index.and_then(|index| self.progress.get(index));
        progress.ok_or_else(|| Failure::new(format!("workflow {number} is one too many")))
    }

    /// A worker has a task.
    fn receive(&self, task: &Value) -> Result<Task> {
        let now = self.now_ns();
        let text = |field: &str| task.get(field).and_then(Value::as_str);
        let read = || {
            let place = self.kind.place(text("referenceTaskName")?)?;
            Some(Task {
                number: task.get("inputData")?.get("n")?.as_u64()?,
                bit: place.bit,
                follows: place.follows,
                workflow: text("workflowInstanceId")?.to_owned(),
                id: text("taskId")?.to_owned(),
            })
        };
        let task = read().ok_or_else(|| Failure::new(format!("not one of our tasks: {task}")))?;
        let progress = self.progress(task.number)?;
        let last = progress.last_sent_ns.load(Ordering::SeqCst);
        let (sent, histogram) = match task.follows {
            Follows::Start => return Ok(task),
            Follows::Task => (last, &self.handover),
            Follows::Fork => (progress.first_sent_ns.load(Ordering::SeqCst), &self.fork),
            Follows::Join => (last, &self.join),
        };
        if self.counts(now) {
            histogram.record(Duration::from_nanos(now.saturating_sub(sent)));
        }
        Ok(task)
    }

    /// The completion of a task is about to be sent. It counts from here: what comes next may be
    /// done before the answer is.
    fn sends(&self, task: &Task) -> Result<()> {
        let progress = self.progress(task.number)?;
        let now = self.now_ns();
        if task.follows == Follows::Start {
            progress.first_sent_ns.store(now, Ordering::SeqCst);
        }
        progress.last_sent_ns.fetch_max(now, Ordering::SeqCst);
        let [low, high] = &progress.done;
        let (word, bit) =
            if task.bit < 64 { (low, task.bit) } else { (high, task.bit.saturating_sub(64)) };
        if word.fetch_or(1 << bit, Ordering::SeqCst) & (1 << bit) != 0 {
            let words = format!("task {} of workflow {} came twice", task.bit, task.number);
            return Err(Failure::new(words));
        }
        Ok(())
    }

    /// Whether the window is open.
    fn counts(&self, now_ns: u64) -> bool {
        let window = self.shape.warmup..self.shape.warmup + self.shape.window;
        window.contains(&Duration::from_nanos(now_ns))
    }

    /// The completion of a task was answered.
    fn completed(&self, task: &Task) -> Result<()> {
        if self.counts(self.now_ns()) {
            self.answered.fetch_add(1, Ordering::SeqCst);
        }
        if task.bit + 1 != self.kind.tasks() {
            return Ok(());
        }
        let progress = self.progress(task.number)?;
        let done: u32 = progress.done.iter().map(|w| w.load(Ordering::SeqCst).count_ones()).sum();
        if done != self.kind.tasks() {
            let words = format!("workflow {} has its last task before others", task.number);
            return Err(Failure::new(words));
        }
        self.run.reached(task.number);
        self.run.completed(&[task.number]);
        Ok(())
    }
}

/// What the system itself says: how many of the newest are completed, or what is wrong.
async fn confirm(shared: &Arc<Shared>) -> Result<std::result::Result<u64, String>> {
    let mut connection = Connection::open(&shared.address).await?;
    let path = format!("/api/workflow/running/{}?version=1", shared.name);
    let asked = Instant::now();
    loop {
        let running = connection.ask("GET", &path, "").await?.expected("list what runs")?;
        let running: Vec<Value> = serde_json::from_slice(&running).context("read what runs")?;
        if running.is_empty() {
            break;
        }
        if asked.elapsed() > END_MAX {
            let words = format!("{} workflows run whose last task is done", running.len());
            return Ok(Err(words));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let ids = std::mem::take(&mut *shared.ids());
    let newest = ids.get(ids.len().saturating_sub(CONFIRMED_MAX)..).unwrap_or_default();
    let mut askers = Vec::new();
    for part in newest.chunks(newest.len().div_ceil(ASKERS).max(1)) {
        let (shared, part) = (Arc::clone(shared), part.to_vec());
        askers.push(tokio::spawn(async move { not_completed(&shared, &part).await }));
    }
    for asker in askers {
        if let Some(words) = asker.await.context("join an asker")?? {
            return Ok(Err(words));
        }
    }
    Ok(Ok(newest.len() as u64))
}

/// The first of these that is not completed, in words.
async fn not_completed(shared: &Shared, ids: &[String]) -> Result<Option<String>> {
    let mut connection = Connection::open(&shared.address).await?;
    for id in ids {
        let path = format!("/api/workflow/{id}?includeTasks=false");
        let answer = connection.ask("GET", &path, "").await?.expected("ask for a workflow")?;
        let workflow: Value = serde_json::from_slice(&answer).context("read a workflow")?;
        let status = workflow.get("status").and_then(Value::as_str).unwrap_or_default();
        if status != "COMPLETED" {
            return Ok(Some(format!("workflow {id} ends as {status:?}")));
        }
    }
    Ok(None)
}
