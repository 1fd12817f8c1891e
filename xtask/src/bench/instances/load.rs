//! One run of process instances against a Zeebe address: starters, workers, and the proof that
//! every instance ended once.
//!
//! The number of an instance rides in it as the variable `n`, and workers fetch nothing else. An
//! instance ends when the answer to its last CompleteJob is here: in both systems the end event
//! comes in the same batch. That this is so is not assumed: one instance in [`RESULT_EVERY`] is
//! started with CreateProcessInstanceWithResult, whose answer only comes when it has ended, and of
//! [`ASKED_MAX`] others the system is asked at the end whether they are still there (a cancel that
//! finds nothing).

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::process;
use super::protocol as p;
use super::protocol::gateway_client::GatewayClient;
use crate::bench::cases::{Place, Ran};
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::measure::{Run, Shape, guarded};
use crate::bench::windlass::cpu_us;

pub(super) type Client = GatewayClient<Channel>;

/// Connections that starters and completions use, and workers with a connection of their own.
const CONNECTIONS: usize = 4;
const WORKERS: usize = 4;
/// Jobs that a poll asks for, and how long it waits.
const POLL_JOBS_MAX: i32 = 64;
const POLL_WAIT_MS: i64 = 5_000;
/// A worker that streams also asks now and then for what was there before its stream, as the real
/// clients do: the real broker pushes only what comes later.
const BACKLOG_EVERY: Duration = Duration::from_millis(500);
/// Streams are given this long to be known before the first start.
const SETTLE: Duration = Duration::from_millis(300);
/// The lease of a job: no run is that long.
const JOB_TIMEOUT_MS: i64 = 300_000;
/// One instance in so many is started with a result.
const RESULT_EVERY: u64 = 64;
const RESULT_WAIT_MS: i64 = 120_000;
/// One instance in so many is remembered, to be asked for at the end; at most so many.
const ASKED_EVERY: u64 = 8;
const ASKED_MAX: usize = 2_000;
/// Questions under way at once.
const ASKERS: usize = 16;
/// Pauses before a request that was refused for load is sent again.
const PAUSE: Duration = Duration::from_millis(5);
/// Instances whose tasks are remembered.
const INSTANCES_MAX: usize = 1 << 22;
/// Starts handed to tasks at once.
const STARTS_MAX: u64 = 64;

/// How jobs come to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetching {
    Stream,
    Poll,
}

/// What is run.
#[derive(Debug, Clone)]
pub(super) struct Work {
    /// Process id and job type, new for every run: what an earlier run left is not in the way.
    pub(super) name: String,
    pub(super) tasks: u32,
    pub(super) takes: Duration,
    pub(super) fetching: Fetching,
}

/// What a run found besides its [`Figures`].
#[derive(Debug)]
pub(super) struct Found {
    pub(super) ran: Ran,
    /// Requests that were refused for load and sent again.
    pub(super) refused: u64,
}

struct Shared {
    run: Arc<Run>,
    work: Work,
    clients: Vec<Client>,
    /// Per instance a bit for every task that was completed.
    tasks: Vec<AtomicU16>,
    refused: AtomicU64,
    confirmed: AtomicU64,
    /// Keys of instances to ask for.
    keys: Mutex<Vec<i64>>,
}

/// Runs one shape; the process is deployed first.
pub(super) fn run(runtime: &Runtime, place: &Place, work: Work, shape: Shape) -> Result<Found> {
    let address = place.address.as_str();
    let shared = runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(connect(address).await?);
        }
        let mut client = connect(address).await?;
        let text = process::chain(&work.name, &work.name, work.tasks);
        deploy(&mut client, &work.name, text).await?;
        Ok::<_, Failure>(Shared {
            run: Arc::new(Run::new(shape)),
            work,
            clients,
            tasks: (0..INSTANCES_MAX).map(|_| AtomicU16::new(0)).collect(),
            refused: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            keys: Mutex::default(),
        })
    })?;
    let shared = Arc::new(shared);
    let mut tasks = Vec::new();
    for number in 0..WORKERS {
        let worker = worker(Arc::clone(&shared), address.to_owned(), number);
        tasks.push(guarded(runtime, &shared.run, worker));
    }
    if shared.work.fetching == Fetching::Stream {
        tasks.push(guarded(runtime, &shared.run, backlog(Arc::clone(&shared))));
    }
    let before = (cpu_us(place.pid)?, cpu_us(std::process::id())?);
    tasks.push(guarded(runtime, &shared.run, dispatch(Arc::clone(&shared))));
    let window = shared.run.drive();
    for task in tasks {
        task.abort();
    }
    let after = (cpu_us(place.pid)?, cpu_us(std::process::id())?);
    let mut figures = shared.run.figures(window?, None)?;
    let left = runtime.block_on(ask(&shared))?;
    if left > 0 {
        let words = format!("the system still knows {left} instances whose last job it completed");
        figures.inexact.get_or_insert(words);
    }
    let confirmed = shared.confirmed.load(Ordering::SeqCst);
    let instances = figures.jobs.max(1) as f64;
    let ran = Ran {
        figures,
        confirmed,
        server_cpu_us: (after.0 - before.0) / instances,
        load_cpu_us: (after.1 - before.1) / instances,
    };
    Ok(Found { ran, refused: shared.refused.load(Ordering::SeqCst) })
}

/// A connection of its own.
pub(super) async fn connect(address: &str) -> Result<Client> {
    let endpoint =
        Endpoint::from_shared(format!("http://{address}")).context("read the address")?;
    let channel = endpoint.tcp_nodelay(true).connect().await.context("connect")?;
    Ok(GatewayClient::new(channel))
}

/// Deploys one process.
pub(super) async fn deploy(client: &mut Client, name: &str, text: String) -> Result<()> {
    let content = text.into_bytes().into();
    let resources = vec![p::Resource { name: format!("{name}.bpmn"), content }];
    let request = p::DeployResourceRequest { resources, ..p::DeployResourceRequest::default() };
    client.deploy_resource(request).await.map(drop).context("deploy the process")
}

/// Starts an instance of the newest version.
pub(super) async fn create(
    client: &mut Client,
    name: &str,
    number: u64,
) -> std::result::Result<i64, Status> {
    let answer = client.create_process_instance(creation(name, number)).await?;
    Ok(answer.into_inner().process_instance_key)
}

fn creation(name: &str, number: u64) -> p::CreateProcessInstanceRequest {
    p::CreateProcessInstanceRequest {
        bpmn_process_id: name.to_owned(),
        version: -1,
        variables: format!("{{\"n\":{number}}}"),
        ..p::CreateProcessInstanceRequest::default()
    }
}

impl AsRef<Ran> for Found {
    fn as_ref(&self) -> &Ran {
        &self.ran
    }
}

/// Starts instances as the shape says: a task each, so that none waits for another's answer.
async fn dispatch(shared: Arc<Shared>) -> Result<()> {
    tokio::time::sleep(SETTLE).await;
    while let Some(numbers) = shared.run.take_async(1, STARTS_MAX).await {
        for number in numbers {
            let shared = Arc::clone(&shared);
            tokio::spawn(async move {
                if let Err(failure) = start(&shared, number).await {
                    shared.run.fail(failure);
                }
            });
        }
    }
    Ok(())
}

async fn start(shared: &Shared, number: u64) -> Result<()> {
    let mut client = shared.client(number);
    if number.is_multiple_of(RESULT_EVERY) {
        let request = p::CreateProcessInstanceWithResultRequest {
            request: Some(creation(&shared.work.name, number)),
            request_timeout: RESULT_WAIT_MS,
            fetch_variables: vec!["n".to_owned()],
        };
        loop {
            let answer = client.create_process_instance_with_result(request.clone()).await;
            let Some(answer) = shared.unless_refused(answer).await.context("start an instance")?
            else {
                continue;
            };
            let found = number_of(&answer.variables);
            if found != Some(number) {
                let words = format!("the result of instance {number} is {}", answer.variables);
                return Err(Failure::new(words));
            }
            shared.confirmed.fetch_add(1, Ordering::Relaxed);
            break;
        }
    } else {
        loop {
            let answer = client.create_process_instance(creation(&shared.work.name, number)).await;
            let Some(answer) = shared.unless_refused(answer).await.context("start an instance")?
            else {
                continue;
            };
            if number % ASKED_EVERY == 1 {
                shared.keys().push(answer.process_instance_key);
            }
            break;
        }
    }
    shared.run.created(number..number + 1);
    Ok(())
}

async fn worker(shared: Arc<Shared>, address: String, number: usize) -> Result<()> {
    let mut client = connect(&address).await?;
    let name = format!("bench-{number}");
    loop {
        match shared.work.fetching {
            Fetching::Stream => {
                let request = p::StreamActivatedJobsRequest {
                    r#type: shared.work.name.clone(),
                    worker: name.clone(),
                    timeout: JOB_TIMEOUT_MS,
                    fetch_variable: vec!["n".to_owned()],
                    ..p::StreamActivatedJobsRequest::default()
                };
                let stream = client.stream_activated_jobs(request).await;
                let mut stream = stream.context("open a stream of jobs")?.into_inner();
                while let Some(job) = stream.message().await.context("read a stream of jobs")? {
                    take(&shared, job);
                }
            }
            Fetching::Poll => poll(&shared, &mut client, &name, POLL_WAIT_MS).await?,
        }
    }
}

async fn backlog(shared: Arc<Shared>) -> Result<()> {
    let mut client = shared.client(0);
    loop {
        tokio::time::sleep(BACKLOG_EVERY).await;
        // Negative: it is not to wait.
        poll(&shared, &mut client, "bench-backlog", -1).await?;
    }
}

async fn poll(
    shared: &Arc<Shared>,
    client: &mut Client,
    worker: &str,
    request_timeout: i64,
) -> Result<()> {
    let request = p::ActivateJobsRequest {
        r#type: shared.work.name.clone(),
        worker: worker.to_owned(),
        timeout: JOB_TIMEOUT_MS,
        max_jobs_to_activate: POLL_JOBS_MAX,
        fetch_variable: vec!["n".to_owned()],
        request_timeout,
        ..p::ActivateJobsRequest::default()
    };
    let answer = client.activate_jobs(request).await;
    let Some(mut stream) = shared.unless_refused(answer).await.context("poll")? else {
        return Ok(());
    };
    while let Some(message) = stream.message().await.context("read polled jobs")? {
        for job in message.jobs {
            take(shared, job);
        }
    }
    Ok(())
}

/// Jobs are worked on at the same time, as a real worker does.
fn take(shared: &Arc<Shared>, job: p::ActivatedJob) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        if let Err(failure) = finish(&shared, job).await {
            shared.run.fail(failure);
        }
    });
}

async fn finish(shared: &Shared, job: p::ActivatedJob) -> Result<()> {
    let strange = || Failure::new(format!("a job is not one of ours: {job:?}"));
    let number = number_of(&job.variables).ok_or_else(strange)?;
    let place = process::place(&job.element_id).ok_or_else(strange)?;
    if !shared.work.takes.is_zero() {
        tokio::time::sleep(shared.work.takes).await;
    }
    let mut client = shared.client(number);
    let request = p::CompleteJobRequest { job_key: job.key, ..p::CompleteJobRequest::default() };
    loop {
        let answer = client.complete_job(request.clone()).await;
        if shared.unless_refused(answer).await.context("complete a job")?.is_some() {
            break;
        }
    }
    let index = usize::try_from(number).ok();
    let tasks = index.and_then(|index| shared.tasks.get(index)).ok_or_else(strange)?;
    let bit = 1_u16.checked_shl(place).ok_or_else(strange)?;
    let before = tasks.fetch_or(bit, Ordering::SeqCst);
    if before & bit != 0 {
        let words = format!("{} of instance {number} was completed twice", job.element_id);
        return Err(Failure::new(words));
    }
    if (before | bit).count_ones() == shared.work.tasks {
        shared.run.reached(number);
        shared.run.completed(&[number]);
    }
    Ok(())
}

/// Asks for instances that must be gone; says how many are not.
async fn ask(shared: &Arc<Shared>) -> Result<u64> {
    let mut keys = std::mem::take(&mut *shared.keys());
    let every = keys.len().div_ceil(ASKED_MAX).max(1);
    let keys: Vec<i64> = keys.drain(..).step_by(every).collect();
    let mut askers = Vec::new();
    for part in keys.chunks(keys.len().div_ceil(ASKERS).max(1)) {
        let (shared, part) = (Arc::clone(shared), part.to_vec());
        askers.push(tokio::spawn(async move {
            let mut left = 0_u64;
            for (number, key) in (0..).zip(part) {
                left += u64::from(is_there(&shared, number, key).await?);
            }
            Ok::<u64, Failure>(left)
        }));
    }
    let mut left = 0;
    for asker in askers {
        left += asker.await.context("join an asker")??;
    }
    Ok(left)
}

async fn is_there(shared: &Shared, number: u64, key: i64) -> Result<bool> {
    let request = p::CancelProcessInstanceRequest {
        process_instance_key: key,
        ..p::CancelProcessInstanceRequest::default()
    };
    loop {
        let answer = shared.client(number).cancel_process_instance(request).await;
        match answer {
            Ok(_) => return Ok(true),
            Err(status) if status.code() == Code::NotFound => {
                shared.confirmed.fetch_add(1, Ordering::Relaxed);
                return Ok(false);
            }
            Err(status) => {
                shared.unless_refused::<()>(Err(status)).await.context("ask for an instance")?;
            }
        }
    }
}

impl Shared {
    fn client(&self, number: u64) -> Client {
        let connections = u64::try_from(CONNECTIONS).unwrap_or(1);
        let index = usize::try_from(number % connections).unwrap_or_default();
        self.clients[index].clone()
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, Vec<i64>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer; nothing, after a pause, if the request was refused for load.
    async fn unless_refused<T>(
        &self,
        answer: std::result::Result<tonic::Response<T>, Status>,
    ) -> std::result::Result<Option<T>, Status> {
        match answer {
            Ok(answer) => Ok(Some(answer.into_inner())),
            Err(status) if status.code() == Code::ResourceExhausted => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
                Ok(None)
            }
            Err(status) => Err(status),
        }
    }
}

fn number_of(variables: &str) -> Option<u64> {
    let rest = variables.split_once("\"n\":")?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest.get(..end)?.parse().ok()
}
