//! Starting and stopping the workers.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::{info, warn};
use windlass_worker::{Client, Error, Failure, Job, Worker, WorkerBuilder, WorkerHandle};

use crate::http::{Caller, FAILED, Network, destination};
use crate::sandbox::{Pool, PoolSettings, SandboxError};

/// Where evaluations wait.
pub const EVALUATE_QUEUE: &str = "windlass/evaluate";
/// Where requests wait.
pub const HTTP_QUEUE: &str = "conductor/HTTP";
/// Where messages for Kafka wait.
pub const KAFKA_QUEUE: &str = "conductor/KAFKA_PUBLISH";

/// How soon others get the jobs of a server that died.
const LEASE: Duration = Duration::from_secs(15);

/// How long a stop waits for what is under way before it is put back.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// How much the workers may do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program and words that a sandbox is started with: it calls
    /// [`serve`](crate::sandbox::serve). Without them, scripts are left to others.
    pub sandbox_command: Option<Vec<OsString>>,
    /// Sandboxes at once, and so evaluations.
    pub scripts_max: u32,
    /// How long an evaluation may take.
    pub script_limit: Duration,
    /// How long a sandbox without work is kept.
    pub sandbox_idle: Duration,
    /// Requests at once.
    pub requests_max: u32,
    /// Where no request goes.
    pub denied: Vec<Network>,
}

/// Workers that run. Dropped, they end without putting anything back.
#[derive(Debug)]
pub struct Handle {
    workers: Vec<WorkerHandle>,
    tasks: JoinSet<()>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sandbox_command: None,
            scripts_max: 2,
            script_limit: Duration::from_secs(4),
            sandbox_idle: Duration::from_secs(60),
            requests_max: 64,
            denied: destination::denied_default(),
        }
    }
}

/// Starts the workers. They connect to `endpoint` when it answers, and again whenever they must.
pub fn run(settings: Settings, endpoint: &str) -> Result<Handle, Error> {
    let client = Client::lazy(endpoint)?;
    let mut handle = Handle { workers: Vec::new(), tasks: JoinSet::new() };
    if let Some(command) = settings.sandbox_command {
        let pool = Pool::new(PoolSettings {
            command,
            processes_max: usize::try_from(settings.scripts_max).unwrap_or(usize::MAX),
            limit: settings.script_limit,
            idle: settings.sandbox_idle,
        });
        let evaluate = move |job: Job<Bytes>| {
            let pool = pool.clone();
            async move { pool.evaluate(&job.payload).await.map_err(evaluation_failure) }
        };
        let worker = Worker::builder(client.clone())
            .worker("windlass/scripts")
            .queue(EVALUATE_QUEUE)
            .concurrency(settings.scripts_max);
        handle.start(worker.raw_handler(evaluate))?;
    }
    let caller = Arc::new(Caller::new(settings.denied));
    let request = move |job: Job<Bytes>| {
        let caller = Arc::clone(&caller);
        async move { task(&caller, &job).await }
    };
    let worker = Worker::builder(client)
        .worker("windlass/tasks")
        .queue(HTTP_QUEUE)
        .queue(KAFKA_QUEUE)
        .concurrency(settings.requests_max);
    handle.start(worker.raw_handler(request))?;
    Ok(handle)
}

impl Handle {
    fn start(&mut self, worker: WorkerBuilder) -> Result<(), Error> {
        let worker = worker.lease(LEASE).drain_timeout(DRAIN_TIMEOUT).build()?;
        self.workers.push(worker.handle());
        self.tasks.spawn(async move {
            if let Err(error) = worker.run().await {
                warn!(%error, "a built-in worker ended");
            }
        });
        Ok(())
    }

    /// Takes no more jobs, gives what runs a moment, and puts the rest back.
    pub async fn stop(mut self) {
        for worker in &self.workers {
            worker.drain();
        }
        while self.tasks.join_next().await.is_some() {}
        info!("built-in workers stopped");
    }
}

fn evaluation_failure(error: SandboxError) -> Failure {
    match error {
        // They would fail again.
        SandboxError::Script(_) | SandboxError::Limit(_) => Failure::permanent(error.to_string()),
        SandboxError::Unavailable(_) => Failure::from(error),
    }
}

async fn task(caller: &Caller, job: &Job<Bytes>) -> Result<Bytes, Failure> {
    if job.queue() == KAFKA_QUEUE {
        return Err(Failure::permanent("KAFKA_PUBLISH is not built in: give its queue a worker"));
    }
    let input: Value = serde_json::from_slice(&job.payload)
        .map_err(|error| Failure::permanent(format!("{FAILED}the input is no JSON: {error}")))?;
    match caller.task(&input).await {
        Ok(output) => Ok(output.to_string().into()),
        Err(error) => {
            let failure = Failure::new(error.message());
            // Clients look for it in the output too.
            let output = json!({ "response": error.to_string() }).to_string();
            Err(if error.was_asked() { failure.variables(output) } else { failure })
        }
    }
}
