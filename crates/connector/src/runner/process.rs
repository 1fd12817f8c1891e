//! The runner: a process of its own for one attempt.

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::time::sleep;
use windlass_worker::{Client, Token};

use crate::Cancel;
use crate::failure::{Failure, FailureType, Origin};
use crate::observer::{Level, Observer as _};
use crate::package::{PackageError, Wanted};
use crate::process::lock::{Lock, LockError};
use crate::process::{Helper, sweep};
use crate::runner::SYNC_QUEUE;
use crate::runner::folder::{Folder, Marker, Outcome, Spec};
use crate::runner::log::Log;
use crate::runner::phase::{self, Bounds};
use crate::runner::question::{self, Asked};
use crate::runner::report;
use crate::runner::secrets::{Keeper, Secrets};
use crate::runner::spool::{NotDelivered, Spool};
use crate::runner::store::Store;
use crate::runner::sync::{self, NotMade, Sync};
use crate::runner::tries::Tries;

/// How long one waits for the runner before to let go of the connection.
const TURN_MAX: Duration = Duration::from_secs(120);
/// How long one tries to end what an earlier attempt left.
const SWEEP_PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries of something that did not work.
const PAUSE: Duration = Duration::from_millis(500);
/// How long one waits for the job's log to take the last lines.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Runs the attempt in a folder, to its end. It says why not on standard error.
#[must_use]
pub fn run(path: &Path, helper: Helper, secrets: Arc<dyn Secrets>) -> ExitCode {
    // Whoever ends the server's session does not end this.
    let _ = rustix::process::setsid();
    let result = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(attend(path, helper, secrets)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn attend(path: &Path, helper: Helper, secrets: Arc<dyn Secrets>) -> io::Result<()> {
    let (folder, spec) = Folder::open(path)?;
    let Some(_lives) = folder.live()? else {
        return Err(io::Error::other("the attempt has a runner already"));
    };
    folder.mark(Marker::Initializing)?;
    let log = Arc::new(Log::open(&folder.log())?);
    let client = Client::lazy(spec.endpoint.clone()).map_err(io::Error::other)?;
    let store = Store::new(client, &spec.tenant);
    let cancel = Cancel::new();
    let lease = Arc::new(Lease::new(&spec, &store, &cancel, &log));
    let beats = tokio::spawn(Arc::clone(&lease).hold());
    let watched = (Arc::clone(&lease), log.phase(), Bounds::of(&spec));
    let phases = tokio::spawn(async move {
        let (lease, phase, bounds) = watched;
        if let Some(why) = phase::late(phase, bounds).await {
            lease.lose(&why);
        }
    });
    let outcome = match turn(&spec, &cancel).await? {
        Some(turn) => {
            let keeper = Keeper { secrets, log: Arc::clone(&log) };
            let runner = Runner { folder: &folder, spec: &spec, store: &store, keeper };
            let outcome = runner.run(helper, &cancel, &lease).await;
            drop(turn);
            outcome
        }
        None => {
            let why = "processes of an earlier attempt of the connection do not end";
            log.log(None, Level::Error, why);
            Outcome { cancelled: cancel.is_cancelled(), ..report::lost(why) }
        }
    };
    phases.abort();
    folder.conclude(&lease.judged(outcome))?;
    // Why it ended stands at the end.
    lease.tell_log(LAST_WORDS).await;
    tell(&store, &folder, &spec, &lease).await;
    beats.abort();
    Ok(())
}

/// Waits until no other attempt of the connection is left. `None`: one is, and does not end, or somebody cancelled.
async fn turn(spec: &Spec, cancel: &Cancel) -> io::Result<Option<Option<Lock>>> {
    if &*spec.queue != SYNC_QUEUE {
        return Ok(Some(None));
    }
    let locks = spec.data.join("locks");
    std::fs::create_dir_all(&locks)?;
    let (path, spec, cancel) = (locks.join(spec.subject()), spec.clone(), cancel.clone());
    // The runner of an earlier attempt may be gone, and its connectors not: they hold the lock too.
    let take = move || -> io::Result<Option<Lock>> {
        if !sweep_others(&spec)? {
            return Ok(None);
        }
        let began = Instant::now();
        loop {
            match Lock::take(&path, PAUSE) {
                Ok(lock) => return Ok(sweep_others(&spec)?.then_some(lock)),
                Err(LockError::Held(_)) if cancel.is_cancelled() => return Ok(None),
                Err(LockError::Held(_)) if began.elapsed() > TURN_MAX => return Ok(None),
                Err(LockError::Held(_)) => {}
                Err(LockError::Io { source, .. }) => return Err(source),
            }
        }
    };
    let taken = tokio::task::spawn_blocking(take).await.map_err(io::Error::other)??;
    Ok(taken.map(Some))
}

/// Ends what other attempts of the connection left; says whether all of it is gone.
fn sweep_others(spec: &Spec) -> io::Result<bool> {
    let (prefix, own) = (format!("{}.", spec.subject()), spec.name());
    for entry in std::fs::read_dir(Folder::root(&spec.data))? {
        let entry = entry?;
        let name = entry.file_name();
        let other = name.to_str().filter(|name| name.starts_with(&prefix) && **name != *own);
        let Some(other) = other else { continue };
        // One that was reported left nothing; one that cannot be read, no containers.
        let is_gone = match Folder::open(&entry.path()) {
            Ok((folder, _)) => folder.is_reported() || folder.sweep(other, SWEEP_PATIENCE),
            Err(_) => sweep::sweep(other, None, SWEEP_PATIENCE),
        };
        if !is_gone {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Runner<'a> {
    folder: &'a Folder,
    spec: &'a Spec,
    store: &'a Store,
    keeper: Keeper,
}

impl Runner<'_> {
    async fn run(&self, helper: Helper, cancel: &Cancel, lease: &Arc<Lease>) -> Outcome {
        let is_sync = &*self.spec.queue == SYNC_QUEUE;
        let mut tries = Tries::new();
        loop {
            let failure = if is_sync {
                match Sync::load(self.store, self.spec, &*self.keeper.secrets).await {
                    Ok(sync) => return self.replicate(sync, helper, cancel, lease).await,
                    Err(not_made) => not_made,
                }
            } else {
                match Asked::load(self.store, self.spec, &*self.keeper.secrets).await {
                    Ok(asked) => return self.ask(asked, helper, cancel).await,
                    Err(not_made) => not_made,
                }
            };
            match failure {
                NotMade::Wrong(failure) => return self.never_began(*failure, cancel),
                NotMade::Missing(wanted) => {
                    if let Err(failure) = self.install(wanted, cancel).await {
                        return self.never_began(failure, cancel);
                    }
                }
                NotMade::Server(error) if cancel.is_cancelled() || !error.is_transient() => {
                    let mut outcome = report::lost(&error.to_string());
                    outcome.cancelled = cancel.is_cancelled();
                    return outcome;
                }
                // For as long as the attempt may be claimed.
                NotMade::Server(error) => {
                    if let Some(why) = tries.missed(&error) {
                        let text = format!("the server does not say what is to be done: {why}");
                        self.keeper.log.log(None, Level::Warn, &text);
                    }
                    tries.pause().await;
                }
            }
        }
    }

    fn never_began(&self, failure: Failure, cancel: &Cancel) -> Outcome {
        let outcome = match &*self.spec.queue {
            SYNC_QUEUE => sync::failed(failure),
            _ => question::never_asked(self.spec, failure),
        };
        Outcome { cancelled: cancel.is_cancelled(), ..outcome }
    }

    /// A package that is not here is installed as a part of the attempt; after that it is here, or this has failed.
    async fn install(&self, wanted: Wanted, cancel: &Cancel) -> Result<(), Failure> {
        let (data, attempt) = (self.spec.data.clone(), self.spec.name());
        let (log, cancel) = (Arc::clone(&self.keeper.log), cancel.clone());
        let work = move || wanted.install(&data, &attempt, &|text: &str| log.step(text), &cancel);
        let failed = |kind, message| Failure::new(Origin::AirbytePlatform, kind, message);
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let kind = match error {
                    PackageError::Name(_) | PackageError::NoProgram { .. } => {
                        FailureType::ConfigError
                    }
                    PackageError::Cancelled => FailureType::ManualCancellation,
                    PackageError::NoPython
                    | PackageError::Failed { .. }
                    | PackageError::Io { .. } => FailureType::SystemError,
                };
                self.keeper.log.log(None, Level::Error, &error.to_string());
                Err(failed(kind, error.to_string()))
            }
            Err(error) => {
                let message = format!("the installation panicked: {error}");
                Err(failed(FailureType::SystemError, message))
            }
        }
    }

    async fn replicate(
        &self,
        sync: Sync,
        helper: Helper,
        cancel: &Cancel,
        lease: &Arc<Lease>,
    ) -> Outcome {
        let log = Arc::clone(&self.keeper.log);
        log.hide(sync.secrets());
        let spool = sync.spool(self.folder, self.spec, self.store, self.keeper.clone());
        let spool = Arc::new(spool);
        let sender = tokio::spawn(send(Arc::clone(&spool), Arc::clone(lease)));
        let (folder, spec) = (self.folder.clone(), self.spec.clone());
        let (cancel, journal) = (cancel.clone(), Arc::clone(&spool));
        let work = move || sync.run(&folder, &spec, helper, (&journal, &log, &cancel));
        let outcome = tokio::task::spawn_blocking(work).await;
        sender.abort();
        ended(outcome).masked(&self.keeper.log.secrets())
    }

    async fn ask(&self, asked: Asked, helper: Helper, cancel: &Cancel) -> Outcome {
        let (folder, spec) = (self.folder.clone(), self.spec.clone());
        let (keeper, cancel) = (self.keeper.clone(), cancel.clone());
        keeper.log.hide(asked.secrets());
        let work = move || asked.run(&folder, &spec, &helper, &keeper, &cancel);
        ended(tokio::task::spawn_blocking(work).await).masked(&self.keeper.log.secrets())
    }
}

fn ended(outcome: Result<Outcome, tokio::task::JoinError>) -> Outcome {
    outcome.unwrap_or_else(|error| report::lost(&format!("the runner panicked: {error}")))
}

/// Sends commits as they come; what is not sent by the end goes with the report.
async fn send(spool: Arc<Spool>, lease: Arc<Lease>) {
    let mut tries = Tries::new();
    loop {
        spool.has_news().await;
        loop {
            match spool.deliver().await {
                Ok(()) => {
                    tries.worked();
                    break;
                }
                // For as long as there is a lease; then the launcher and the next attempt have it.
                Err(NotDelivered::Later(error)) => {
                    if let Some(why) = tries.missed(&error) {
                        let text = format!("what is acknowledged waits in the spool: {why}");
                        lease.log.log(None, Level::Warn, &text);
                    }
                    tries.pause().await;
                }
                Err(NotDelivered::Never(why)) => {
                    lease.lose(&why);
                    return;
                }
            }
        }
    }
}

/// Reports, for as long as the lease may be ours, and no longer than a server may be away. The launcher does it later
/// if we could not.
async fn tell(store: &Store, folder: &Folder, spec: &Spec, lease: &Lease) {
    let mut tries = Tries::new();
    while let Err(error) = report::report(store, folder, spec).await {
        let is_late = tries.lasted() > lease.stop_after;
        if lease.is_lost() || is_late || !error.is_transient() {
            lease.log.log(None, Level::Warn, &format!("the end was not reported: {error}"));
            return;
        }
        if let Some(why) = tries.missed(&error) {
            lease.log.log(None, Level::Warn, &format!("the end is reported later: {why}"));
        }
        tries.pause().await;
    }
}

/// The lease of the job: held by heartbeats, lost when the server says so or is away for too long.
struct Lease {
    token: Token,
    client: Client,
    lease: Duration,
    heartbeat: Duration,
    stop_after: Duration,
    cancel: Cancel,
    log: Arc<Log>,
    /// Why it was lost, once it is.
    lost: OnceLock<String>,
}

impl Lease {
    fn new(spec: &Spec, store: &Store, cancel: &Cancel, log: &Arc<Log>) -> Lease {
        Lease {
            token: Token { key: spec.job, activation: spec.activation },
            client: store.client.clone(),
            lease: Duration::from_millis(spec.lease_ms),
            heartbeat: Duration::from_millis(spec.heartbeat_ms),
            stop_after: Duration::from_millis(spec.stop_after_ms),
            cancel: cancel.clone(),
            log: Arc::clone(log),
            lost: OnceLock::new(),
        }
    }

    fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    fn lose(&self, why: &str) {
        if self.lost.set(why.to_owned()).is_ok() {
            self.log.log(None, Level::Error, &format!("the attempt ends: {why}"));
        }
        self.cancel.cancel();
    }

    /// An attempt that we ended ourselves was cancelled by nobody: the outcome says why it ended.
    fn judged(&self, mut outcome: Outcome) -> Outcome {
        if let (Some(why), false) = (self.lost.get(), outcome.succeeded) {
            outcome.cancelled = false;
            outcome.message = format!("the attempt was ended: {why}");
            if let Some(summary) = &mut outcome.summary {
                let (origin, kind) = (Origin::AirbytePlatform, FailureType::SystemError);
                summary.failures = vec![Failure::new(origin, kind, outcome.message.clone())];
            }
        }
        outcome
    }

    async fn hold(self: Arc<Self>) {
        let mut answered = Instant::now();
        let mut tries = Tries::new();
        loop {
            // No call outlives the time that is left.
            let left = self.stop_after.saturating_sub(answered.elapsed());
            let extension = self.client.extend_lease(self.token, self.lease);
            match tokio::time::timeout(left, extension).await {
                Ok(Ok(lease)) => {
                    answered = Instant::now();
                    tries.worked();
                    if lease.cancel_asked {
                        self.cancel.cancel();
                    }
                }
                Ok(Err(error)) if !error.is_transient() => {
                    self.lose(&format!("its lease is lost: {error}"));
                    return;
                }
                Ok(Err(error)) => {
                    if let Some(why) = tries.missed(&error) {
                        let text = format!("the lease was not extended: {why}");
                        self.log.log(None, Level::Warn, &text);
                    }
                }
                Err(_) => {}
            }
            if answered.elapsed() >= self.stop_after {
                self.lose("the server is away for too long");
                return;
            }
            // A log is no reason to end anything, and holds nothing up.
            let pause = self.heartbeat.min(self.stop_after / 4);
            tokio::join!(sleep(pause), self.tell_log(pause));
        }
    }

    /// Tells the job's log what is new. What may not have arrived is told again.
    async fn tell_log(&self, patience: Duration) {
        let lines = self.log.take();
        if lines.is_empty() {
            return;
        }
        let told = self.client.append_log(self.token, lines.clone());
        match tokio::time::timeout(patience, told).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) if !error.is_transient() => {}
            Ok(Err(_)) | Err(_) => self.log.put_back(lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Incoming;
    use hyper::header::{HeaderMap, HeaderValue};
    use hyper::service::service_fn;
    use hyper::{Request, Response};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use hyper_util::server::conn::auto;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;
    use crate::runner::folder::tests::spec;

    /// A server that extends leases, and takes lines that it never says to have. Tells of each.
    async fn deaf(told: mpsc::UnboundedSender<()>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answer = move |request: Request<Incoming>| {
            let told = told.clone();
            async move {
                if request.uri().path().ends_with("/AppendLog") {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    assert!(memchr::memmem::find(&body, b"a line").is_some());
                    told.send(()).unwrap();
                    std::future::pending::<()>().await;
                }
                // An empty message.
                let ok = HeaderMap::from_iter([(
                    "grpc-status".parse().unwrap(),
                    HeaderValue::from_static("0"),
                )]);
                let body = Full::new(Bytes::from_static(&[0; 5]));
                let body = body.with_trailers(std::future::ready(Some(Ok(ok))));
                let answer = Response::builder().header("content-type", "application/grpc");
                Ok::<_, Infallible>(answer.body(body).unwrap())
            }
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    server.serve_connection(TokioIo::new(stream), service_fn(answer)).await
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn a_log_that_hangs_loses_neither_the_lease_nor_a_line() {
        let data = tempfile::tempdir().unwrap();
        let (tell, mut told) = mpsc::unbounded_channel();
        let mut spec = spec(data.path());
        (spec.lease_ms, spec.heartbeat_ms, spec.stop_after_ms) = (60_000, 20, 5_000);
        let client = Client::lazy(deaf(tell).await).unwrap();
        let log = Arc::new(Log::open(&data.path().join("log")).unwrap());
        log.step("a line");
        let cancel = Cancel::new();
        let lease = Arc::new(Lease::new(&spec, &Store::new(client, "default"), &cancel, &log));
        let beats = tokio::spawn(lease.hold());
        for _ in 0..3 {
            tokio::select! {
                heard = told.recv() => assert!(heard.is_some(), "the server is gone"),
                () = cancel.cancelled() => panic!("the lease is lost: {}", log.take().concat()),
            }
        }
        beats.abort();
    }
}
