//! Ourselves, over the native stream with our own worker SDK.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use prost::bytes::{Bytes, BytesMut};
use tokio::runtime::Runtime;
use windlass_worker::{Client, WorkStream, v1};

use super::failure::{Context, Failure, Result};
use super::measure::{self, Figures, Run, Shape, WORKERS, guarded};
use super::peer::{Durability, Peer, Workplace};
use super::server::{self, Server};

/// The queue that is measured.
pub(crate) const QUEUE: &str = "bench";
/// Jobs in a batch of creates, and the least that is worth one in the closed loop.
const CREATES_MAX: u64 = 1_024;
const CREATES_MIN: u64 = 64;
/// Batches of creates under way at once.
const PRODUCERS: usize = 8;
/// Credits of a worker: more than may be in flight, so that the load decides.
const CREDITS: u32 = 1_024;

/// Ourselves as a system under test.
pub(crate) struct Windlass {
    program: PathBuf,
    work: PathBuf,
}

impl Windlass {
    /// Builds the release binary, or takes the one that `WINDLASS_BINARY` names.
    pub(crate) fn set_up(workplace: &Workplace) -> Result<Box<dyn Peer>> {
        Ok(Box::new(Windlass::built(workplace)?))
    }

    pub(super) fn built(workplace: &Workplace) -> Result<Windlass> {
        if let Some(program) = std::env::var_os("WINDLASS_BINARY") {
            return Ok(Windlass { program: program.into(), work: workplace.dir("windlass")? });
        }
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        server::run(Command::new(cargo).args([
            "build",
            "--release",
            "--quiet",
            "-p",
            "windlass-cli",
        ]))?;
        let target = workplace.root().parent().ok_or_else(|| Failure::new("no target folder"))?;
        let program = target.join("release/windlass");
        Ok(Windlass { program, work: workplace.dir("windlass")? })
    }

    /// The binary.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts the server on an empty folder, or on the one it left; without the face for Zeebe.
    pub(super) fn start(&self, flags: &[&str]) -> Result<Server> {
        self.start_with_zeebe("off", flags)
    }

    /// The same with the face for Zeebe at this address.
    pub(super) fn start_with_zeebe(&self, zeebe: &str, flags: &[&str]) -> Result<Server> {
        std::fs::create_dir_all(&self.work).context("create the data folder")?;
        let port = server::free_port()?;
        let mut command = server::guarded(&self.program.to_string_lossy(), None);
        command.arg("serve").arg("--listen").arg(format!("127.0.0.1:{port}"));
        command.arg("--data-dir").arg(self.work.join("data")).args(["--log-level", "warn"]);
        command.args(["--zeebe-listen", zeebe]);
        // The report says that answers wait for the disk, whatever the environment says.
        command.args(["--durability", "fsync"]);
        command.args(flags);
        Server::start(command, &self.work, port)
    }
}

impl Windlass {
    /// What `serve --help` says.
    pub(super) fn help(&self) -> Result<String> {
        server::run(Command::new(&self.program).args(["serve", "--help"]))
    }
}

impl Peer for Windlass {
    fn durability(&self) -> Durability {
        Durability {
            create: "answered after fsync (group commit)",
            lease: "sent after fsync (group commit)",
            complete: "answered after fsync (group commit)",
            durable_create: true,
            durable_peer: true,
        }
    }

    fn configuration(&self) -> String {
        format!(
            "defaults; batch creates of up to {CREATES_MAX} over {PRODUCERS} calls, one stream per \
             worker"
        )
    }

    fn version(&self) -> String {
        server::run(Command::new(&self.program).arg("--version"))
            .map_or_else(|_| "unknown".to_owned(), |out| out.trim().to_owned())
    }

    fn measure(&mut self, shape: Shape) -> Result<Figures> {
        let server = self.start(&[])?;
        let url = format!("http://{}", server.address());
        let runtime = runtime()?;
        let run = Arc::new(Run::new(shape));
        let mut tasks = Vec::new();
        for _ in 0..PRODUCERS {
            tasks.push(guarded(&runtime, &run, produce(Arc::clone(&run), url.clone())));
        }
        if run.has_workers() {
            for number in 0..WORKERS {
                tasks.push(guarded(&runtime, &run, work(Arc::clone(&run), url.clone(), number)));
            }
        }
        let window = run.drive()?;
        for task in tasks {
            task.abort();
        }
        let left = runtime.block_on(live_jobs(&url))?;
        run.figures(window, Some(left))
    }
}

/// Two threads for the load, as every peer's client has.
pub(super) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start the async runtime")
}

async fn produce(run: Arc<Run>, url: String) -> Result<()> {
    let client = Client::connect(url).await.context("connect")?;
    // The same memory for all batches, once the last is sent: pages that the load takes afresh cost
    // a fifth of both cores that are measured.
    let mut memory = BytesMut::new();
    while let Some(jobs) = run.take_async(CREATES_MIN, CREATES_MAX).await {
        memory.reserve(measure::PAYLOAD_BYTES * usize::try_from(CREATES_MAX).unwrap_or_default());
        let batch = jobs.clone().map(|job| {
            memory.extend_from_slice(&measure::payload(job));
            job_of_group(QUEUE, "", memory.split().freeze())
        });
        let results = client.create_jobs(batch.collect()).await.context("create jobs")?;
        if let Some(Err(refusal)) = results.into_iter().find(std::result::Result::is_err) {
            return Err(Failure::new(format!("a create was refused: {refusal}")));
        }
        run.created(jobs);
    }
    Ok(())
}

async fn work(run: Arc<Run>, url: String, number: usize) -> Result<()> {
    let client = Client::connect(url).await.context("connect")?;
    let mut stream = open_stream(&client, QUEUE, &format!("bench-{number}"), CREDITS).await?;
    // Results are answered in order, by their count.
    let mut unanswered = std::collections::VecDeque::new();
    let mut answered = Vec::new();
    while let Some(received) = stream.next().await.context("read the stream")? {
        if let Some(refused) = received.refused.first() {
            return Err(Failure::new(format!("a completion was refused: {refused:?}")));
        }
        answered.clear();
        answered.extend(unanswered.drain(..received.answered));
        if !answered.is_empty() {
            run.completed(&answered);
        }
        if received.jobs.is_empty() {
            continue;
        }
        for job in &received.jobs {
            let number = measure::job_of(&job.payload)?;
            run.reached(number);
            unanswered.push_back(number);
        }
        let done = received.jobs.iter().map(|job| (job.into(), Default::default()));
        stream.sender().complete_all(done, received.jobs.len());
    }
    Ok(())
}

/// Opens a worker's stream.
pub(super) async fn open_stream(
    client: &Client,
    queue: &str,
    worker: &str,
    credits: u32,
) -> Result<WorkStream> {
    let hello = v1::Hello {
        queues: vec![queue.to_owned()],
        worker: worker.to_owned(),
        ..v1::Hello::default()
    };
    client.work(hello, credits).await.context("open a stream")
}

/// A job of a group.
pub(super) fn job_of_group(queue: &str, group: &str, payload: impl Into<Bytes>) -> v1::NewJob {
    v1::NewJob {
        queue: queue.to_owned(),
        group: group.to_owned(),
        payload: payload.into(),
        ..v1::NewJob::default()
    }
}

/// Jobs that the server still holds.
pub(super) async fn live_jobs(url: &str) -> Result<u64> {
    let client = Client::connect(url).await.context("connect")?;
    let status = client.status().await.context("ask for the status")?;
    Ok(u64::from(status.live_jobs))
}

/// Resident memory of a server in bytes.
pub(super) fn rss_bytes(server: &Server) -> Result<u64> {
    // `setpriv` has become the server: same process.
    let path = format!("/proc/{}/status", server.pid());
    let status = std::fs::read_to_string(&path).context(format!("read {path}"))?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .map(|kib| kib * 1024)
        .ok_or_else(|| Failure::new(format!("no VmRSS in {path}")))
}

/// Processor time that a process has used, in microseconds. The kernel counts in hundredths of a
/// second.
pub(super) fn cpu_us(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).context(format!("read {path}"))?;
    // The name, in parentheses, may hold anything; behind it come the state and numbers.
    let numbers = stat.rsplit_once(')').map(|(_, numbers)| numbers).unwrap_or_default();
    let ticks = numbers.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let ticks: std::result::Result<Vec<f64>, _> = ticks.collect();
    Ok(ticks.context(format!("read {path}"))?.iter().sum::<f64>() * 1e4)
}

/// How long a wait in a measurement may take before it has failed.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(120);
