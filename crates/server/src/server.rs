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

use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use windlass_api_airbyte::Client;
use windlass_gateway::Gateway;
use windlass_gateway::record::command::Command;
use windlass_history::History;
use windlass_log::fs::{FileSystem, OsFileSystem};
use windlass_partition::clock::SystemClock;
use windlass_partition::{Durability, Follower, Partition, Recovery, StopReason};

use crate::data::{self, Data};
use crate::error::ServeError;
use crate::files;
use crate::history::{self, Feed};
use crate::listen::{self, Port};
use crate::origin;
use crate::settings::{Config, Switch};
use crate::watch as pages;

/// What waits to be written on one stream: much, for batches.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// And where jobs are pushed: little, because what waits there counts as sent and its leases run.
const ZEEBE_SEND_BUFFER_BYTES: usize = 64 << 10;

/// A running server. Dropped without a stop, it ends as [`ServerHandle::kill`] ends it.
pub struct ServerHandle {
    address: SocketAddr,
    zeebe_address: Option<SocketAddr>,
    gateway: Gateway,
    recovery: Recovery,
    close: watch::Sender<bool>,
    /// A task per port.
    listening: JoinSet<()>,
    /// There until it is stopped, if there are any.
    builtin: Option<windlass_builtin::Handle>,
    connectors: Option<windlass_connector::runner::Handle>,
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
/// error. Prints one line with the address to standard output when it answers, and calls `ready`.
pub async fn serve(config: Config, ready: impl FnOnce()) -> Result<(), ServeError> {
    let _logging = crate::logging::init(&config)?;
    let server = start(config).await?;
    println!("windlass listens on http://{}", server.address());
    if let Some(address) = server.zeebe_address() {
        println!("zeebe clients connect to {address}");
    }
    ready();
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
    let ports = 1 + usize::from(config.zeebe_listen.address().is_some());
    let connections_max = files::make_room(config.connections_max, ports);
    let opening = config.clone();
    let (partition, history) = spawn_blocking(move || open_partition(&opening, fs))
        .await
        .map_err(|_| ServeError::Vanished)??;
    let recovery = partition.recovery();
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);

    let gateway = Gateway::with_history(partition.handle(), config.limits(), history);
    seed(&gateway, &config).await?;

    let (listener, address) = bind(config.listen).await?;
    let zeebe = match config.zeebe_listen.address() {
        Some(listen) => Some(bind(listen).await?),
        None => None,
    };
    let zeebe_address = zeebe.as_ref().map(|(_, address)| *address);
    let (close, closing) = watch::channel(false);
    let clients = crate::airbyte::clients(&config)?;
    let router = main_port(&config, &gateway, &partition, zeebe_address, clients.clone()).await?;
    let mut router = origin::guarded(router.fallback(pages::not_found), address)
        .layer(axum::middleware::from_fn(crate::patience::bound_body));
    if config.sends_traces() {
        router = router.layer(axum::middleware::from_fn(crate::trace::span_of_request));
    }
    let main = Port { listener, router, connections_max, send_buffer_bytes_max: SEND_BUFFER_BYTES };
    let mut listening = JoinSet::new();
    listening.spawn(listen::run(main, closing.clone(), config.shutdown()));
    if let Some((listener, address)) = zeebe {
        let mut router = origin::guarded(windlass_api_zeebe::router(&gateway, address), address);
        if config.sends_traces() {
            router = router.layer(axum::middleware::from_fn(crate::trace::span_of_request));
        }
        let send_buffer_bytes_max = ZEEBE_SEND_BUFFER_BYTES;
        let port = Port { listener, router, connections_max, send_buffer_bytes_max };
        listening.spawn(listen::run(port, closing, config.shutdown()));
    }
    let stopped = watch_partition(&partition)?;
    announce(&config, address, zeebe_address, &recovery, took_ms);
    if let Some(path) = &config.ready_file {
        write_ready_file(path, address)?;
    }
    let builtin = crate::builtin::start(&config, address);
    let connectors = crate::connectors::start(&config, &clients, address);
    let partition = Some(partition);
    Ok(ServerHandle {
        address,
        zeebe_address,
        gateway,
        recovery,
        close,
        listening,
        builtin,
        connectors,
        partition,
        stopped,
        config,
    })
}

/// The routes of the main port: every face that is there.
async fn main_port(
    config: &Config,
    gateway: &Gateway,
    partition: &Partition,
    zeebe_address: Option<SocketAddr>,
    clients: Vec<Client>,
) -> Result<Router, ServeError> {
    let router = pages::router(gateway.clone(), partition.follow_lag())
        .merge(windlass_api_native::router(gateway));
    let router = router.merge(crate::backup::router(partition.checkpoints()));
    // Both halves of that face are switched off together.
    let router = match zeebe_address {
        Some(zeebe_address) => {
            router.merge(windlass_api_zeebe::rest::router(gateway, zeebe_address))
        }
        None => router,
    };
    let router = match config.conductor {
        Switch::On => router.merge(windlass_api_conductor::router(gateway)),
        Switch::Off => router,
    };
    Ok(match config.airbyte {
        Switch::On => router.merge(crate::airbyte::router(gateway, config, clients).await?),
        Switch::Off => router,
    })
}

async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source| ServeError::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

impl ServerHandle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens for Zeebe's clients, if it does.
    pub fn zeebe_address(&self) -> Option<SocketAddr> {
        self.zeebe_address
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
        // Runners go on without us.
        if let Some(connectors) = self.connectors.take() {
            connectors.stop().await;
        }
        // While there is somebody to take their last results.
        if let Some(builtin) = self.builtin.take() {
            builtin.stop().await;
        }
        self.gateway.shut_down();
        self.close.send_replace(true);
        while self.listening.join_next().await.is_some() {}
        let Some(partition) = self.partition.take() else { return };
        let stopping = spawn_blocking(move || partition.stop());
        if timeout(self.config.shutdown(), stopping).await.is_err() {
            tracing::warn!("the last checkpoint took too long; the log has everything");
        }
        tracing::info!("stopped");
    }

    /// Stops it as a crash would, for tests: nothing is drained and no checkpoint is written.
    pub async fn kill(mut self) {
        self.listening.shutdown().await;
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
        self.listening.abort_all();
        if let Some(partition) = self.partition.take() {
            partition.kill();
        }
    }
}

fn open_partition(
    config: &Config,
    fs: Arc<dyn FileSystem>,
) -> Result<(Partition, Option<History>), ServeError> {
    let Data { log, checkpoint } = data::open(fs, &config.data_dir, config.log())?;
    let options = config.history_options();
    let history = options.and_then(|options| history::open(&config.data_dir, options));
    let follower = history.clone().map(|history| Arc::new(Feed(history)) as Arc<dyn Follower>);
    let clock = Arc::new(SystemClock::default());
    let partition = Partition::open_followed(config.partition(), log, checkpoint, clock, follower)
        .map_err(|source| ServeError::Recover { dir: config.data_dir.clone(), source })?;
    Ok((partition, history))
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

fn announce(
    config: &Config,
    address: SocketAddr,
    zeebe: Option<SocketAddr>,
    recovery: &Recovery,
    took_ms: u64,
) {
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
        zeebe_listen = zeebe.map(tracing::field::display),
        "windlass is ready"
    );
    if config.durability() != Durability::Fsync {
        tracing::warn!("a crash loses acknowledged work: --durability interval is on");
    }
    for address in [Some(address), zeebe].into_iter().flatten() {
        if !address.ip().is_loopback() {
            tracing::warn!(listen = %address, "everybody who reaches this address can do everything");
        }
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
