//! Starting and stopping.
//!
//! A start is: check the settings, open the data directory, recover, seed queues, listen, say so.
//! A stop is: end streams and polls, let requests under way finish, write a last checkpoint; each
//! part has a bounded time, and what was acknowledged is safe whatever part is cut short.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use windlass_gateway::Gateway;
use windlass_gateway::record::command::Command;
use windlass_log::fs::{FileSystem, OsFileSystem};
use windlass_partition::{Durability, Partition, Recovery, StopReason};

use crate::data::{self, Data};
use crate::error::ServeError;
use crate::settings::Config;
use crate::{listen, watch as pages};

/// A running server. Dropped without a stop, it ends as [`ServerHandle::kill`] ends it.
pub struct ServerHandle {
    address: SocketAddr,
    gateway: Gateway,
    recovery: Recovery,
    close: watch::Sender<bool>,
    listening: JoinHandle<()>,
    /// There until it is stopped.
    partition: Option<Partition>,
    stopped: oneshot::Receiver<StopReason>,
    config: Config,
}

/// Why a server ends.
enum End {
    Signal(&'static str),
    Stopped(Option<StopReason>),
}

/// Runs a server until SIGTERM or SIGINT, or until its partition stops by itself, which is an
/// error. Prints one line with the address to standard output when it answers.
pub async fn serve(config: Config) -> Result<(), ServeError> {
    let _logging = crate::logging::init(&config)?;
    let server = start(config).await?;
    println!("windlass listens on http://{}", server.address());
    run(server).await
}

/// Runs a server that was started, as [`serve`] does.
pub async fn run(mut server: ServerHandle) -> Result<(), ServeError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
    let end = server.wait(&mut terminate, &mut interrupt).await;
    match end {
        End::Signal(name) => {
            tracing::info!(signal = name, "shutting down");
            server.stop().await;
            Ok(())
        }
        End::Stopped(reason) => {
            server.close.send_replace(true);
            Err(reason.map_or(ServeError::Vanished, ServeError::Stopped))
        }
    }
}

/// Starts a server. It answers when this returns.
pub async fn start(config: Config) -> Result<ServerHandle, ServeError> {
    start_on(config, Arc::new(OsFileSystem)).await
}

/// Starts a server with its log on this file system, for tests of disks that fail.
pub async fn start_on(config: Config, fs: Arc<dyn FileSystem>) -> Result<ServerHandle, ServeError> {
    config.check()?;
    let began = Instant::now();
    let opening = config.clone();
    let partition = spawn_blocking(move || open_partition(&opening, fs))
        .await
        .map_err(|_| ServeError::Vanished)??;
    let recovery = partition.recovery();
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);

    let gateway = Gateway::new(partition.handle(), config.limits());
    seed(&gateway, &config).await?;

    let failed = |source| ServeError::Listen { listen: config.listen, source };
    let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (close, closing) = watch::channel(false);
    let router = pages::router(gateway.clone()).merge(windlass_api_native::router(&gateway));
    let router = router.merge(crate::backup::router(partition.checkpoints()));
    let mut router = router.fallback(pages::not_found);
    if config.sends_traces() {
        router = router.layer(axum::middleware::from_fn(crate::trace::span_of_request));
    }
    let listening = tokio::spawn(listen::run(
        listener,
        router,
        config.connections_max,
        closing,
        config.shutdown(),
    ));
    let stopped = watch_partition(&partition)?;
    announce(&config, address, &recovery, took_ms);
    if let Some(path) = &config.ready_file {
        write_ready_file(path, address)?;
    }
    let partition = Some(partition);
    Ok(ServerHandle { address, gateway, recovery, close, listening, partition, stopped, config })
}

impl ServerHandle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The way to its partition.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// What its start found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Stops it in good order: streams end, requests under way finish, the state is checkpointed.
    pub async fn stop(mut self) {
        self.gateway.shut_down();
        self.close.send_replace(true);
        let _panicked = (&mut self.listening).await;
        let Some(partition) = self.partition.take() else { return };
        let stopping = spawn_blocking(move || partition.stop());
        if timeout(self.config.shutdown(), stopping).await.is_err() {
            tracing::warn!("the last checkpoint took too long; the log has everything");
        }
        tracing::info!("stopped");
    }

    /// Stops it as a crash would, for tests: nothing is drained and no checkpoint is written.
    pub async fn kill(mut self) {
        self.listening.abort();
        let _aborted = (&mut self.listening).await;
        let Some(partition) = self.partition.take() else { return };
        let _panicked = spawn_blocking(move || partition.kill()).await;
    }

    /// Waits for a signal, or for the partition to stop by itself.
    async fn wait(&mut self, terminate: &mut Signal, interrupt: &mut Signal) -> End {
        tokio::select! {
            _ = terminate.recv() => End::Signal("SIGTERM"),
            _ = interrupt.recv() => End::Signal("SIGINT"),
            reason = &mut self.stopped => End::Stopped(reason.ok()),
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.listening.abort();
        if let Some(partition) = self.partition.take() {
            partition.kill();
        }
    }
}

fn open_partition(config: &Config, fs: Arc<dyn FileSystem>) -> Result<Partition, ServeError> {
    let Data { log, checkpoint } = data::open(fs, &config.data_dir, config.log())?;
    Partition::open(config.partition(), log, checkpoint)
        .map_err(|source| ServeError::Recover { dir: config.data_dir.clone(), source })
}

/// Turns the partition's word into something that can be awaited.
fn watch_partition(partition: &Partition) -> Result<oneshot::Receiver<StopReason>, ServeError> {
    let (sender, receiver) = oneshot::channel();
    let stopped = partition.stopped();
    thread::Builder::new()
        .name("windlass-watch".into())
        .spawn(move || {
            if let Ok(reason) = stopped.recv() {
                // Nobody waits when it was asked to stop.
                let _gone = sender.send(reason);
            }
        })
        .map_err(|source| ServeError::Recover {
            dir: "threads".into(),
            source: windlass_partition::OpenError::Thread(source),
        })?;
    Ok(receiver)
}

async fn seed(gateway: &Gateway, config: &Config) -> Result<(), ServeError> {
    for queue in &config.queues {
        let name = queue.queue.queue.to_string();
        gateway
            .command(Command::ConfigureQueue(queue.clone()))
            .await
            .map_err(|source| ServeError::Seed { queue: name, source })?;
    }
    Ok(())
}

fn announce(config: &Config, address: SocketAddr, recovery: &Recovery, took_ms: u64) {
    tracing::info!(
        version = windlass_api_native::VERSION,
        data_dir = %config.data_dir.display(),
        durability = %config.durability(),
        recovered_jobs = recovery.live_jobs,
        checkpoint_lsn = recovery.checkpoint_lsn,
        replayed_records = recovery.replayed,
        recovery_ms = took_ms,
        epoch = recovery.epoch,
        listen = %address,
        "windlass is ready"
    );
    if config.durability() != Durability::Fsync {
        tracing::warn!("a crash loses acknowledged work: --durability interval is on");
    }
    if !address.ip().is_loopback() {
        tracing::warn!(listen = %address, "everybody who reaches this address can do everything");
    }
}

/// Whole or not at all, so that who waits for the file can read it as soon as it is there.
fn write_ready_file(path: &Path, address: SocketAddr) -> Result<(), ServeError> {
    let failed = |source| ServeError::ReadyFile { path: path.to_owned(), source };
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".tmp");
    std::fs::write(&unfinished, format!("{address}\n")).map_err(failed)?;
    std::fs::rename(&unfinished, path).map_err(failed)
}
