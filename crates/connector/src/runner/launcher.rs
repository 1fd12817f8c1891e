//! The launcher: takes jobs as resources allow, starts a runner for each, and looks after runners.
//!
//! A job is taken only when there is a place for it, so whoever asks for a thousand at once waits in the
//! queue, in its order. Runners outlive their launcher: one that starts finds them by their folders.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use std::{fs, io};

use tokio::process::{Child, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::{info, warn};
use windlass_worker::{Client, Error, v1};

use crate::runner::folder::{self, Folder, Marker, Spec};
use crate::runner::report;
use crate::runner::store::Store;
use crate::runner::tries::Tries;
use crate::runner::{CHECK_QUEUE, DISCOVER_QUEUE, SPEC_QUEUE, SYNC_QUEUE};

/// How long one waits for a job before asking again.
const WAIT_MS: u64 = 30_000;
/// How long a runner takes from its process to its lock.
const START_MAX: Duration = Duration::from_secs(5);
/// Between two looks at a runner that is not our child.
const LOOK: Duration = Duration::from_millis(500);
/// How long one tries to end what a runner left.
const SWEEP_PATIENCE: Duration = Duration::from_secs(60);
/// Folders of attempts that are over, at most.
const FOLDERS_MAX: usize = 1_000;
/// Between two looks at how many there are.
const TIDY_EVERY: Duration = Duration::from_secs(600);

/// How a launcher works.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose jobs: tenants, each once.
    pub tenants: Vec<String>,
    /// Where attempts, locks and connectors are.
    pub data: PathBuf,
    /// The program of a runner and its words; the folder comes behind them.
    pub runner: Vec<OsString>,
    /// Syncs at once.
    pub syncs_max: u32,
    /// Checks, discoveries and specifications at once.
    pub checks_max: u32,
    /// Memory of all connectors together (bytes): with that of each, another bound of how many run.
    pub memory_bytes: Option<u64>,
    /// Memory of each connector (bytes).
    pub memory_bytes_max: Option<u64>,
    /// Processor cores for all connectors together: with what of a core each is reckoned with (%), a third bound.
    pub cores: Option<u64>,
    /// See there.
    pub core_percent_each: u64,
    /// Between two heartbeats of a runner.
    pub heartbeat: Duration,
    /// How long the server may be away before a runner ends its attempt.
    pub stop_after: Duration,
    /// How long a source may be silent.
    pub source_silence: Duration,
    /// How long a destination may take nothing.
    pub destination_silence: Duration,
    /// How long connectors have to end by themselves.
    pub exit_grace: Duration,
    /// How long an attempt may take until its connectors can be started; 0 for no bound.
    pub claimed: Duration,
    /// How long from there to their first word; 0 for no bound.
    pub launched: Duration,
    /// How long folders of attempts are kept.
    pub keep: Duration,
}

impl Settings {
    /// As the original has it, for the connectors in a folder.
    #[must_use]
    pub fn new(data: PathBuf, runner: Vec<OsString>) -> Settings {
        Settings {
            tenants: vec!["default".to_owned()],
            data,
            runner,
            syncs_max: 10,
            checks_max: 5,
            memory_bytes: None,
            memory_bytes_max: None,
            cores: None,
            core_percent_each: 50,
            heartbeat: Duration::from_secs(10),
            stop_after: Duration::from_secs(600),
            source_silence: Duration::from_secs(10_800),
            destination_silence: Duration::from_secs(86_400),
            exit_grace: Duration::from_secs(60),
            claimed: Duration::from_secs(1_800),
            launched: Duration::from_secs(600),
            keep: Duration::from_secs(30 * 24 * 3600),
        }
    }

    /// Longer than a runner without a server lives, by what it takes to kill its connectors.
    fn lease(&self) -> Duration {
        self.stop_after + 2 * self.exit_grace + SWEEP_PATIENCE
    }

    /// Syncs at once, by number, by memory and by cores: each has two connectors. One runs wherever any may.
    fn syncs(&self) -> usize {
        let room = |all: u64, each: u64| (all / each.saturating_mul(2).max(1)).max(1);
        let by_memory = match (self.memory_bytes, self.memory_bytes_max) {
            (Some(all), Some(each)) => room(all, each),
            _ => u64::MAX,
        };
        let percent = self.cores.map(|cores| cores.saturating_mul(100));
        let by_cores = percent.map_or(u64::MAX, |all| room(all, self.core_percent_each));
        let places = by_memory.min(by_cores).min(u64::from(self.syncs_max));
        usize::try_from(places).unwrap_or(usize::MAX)
    }
}

/// A launcher that runs. Dropped, it takes no more jobs; runners go on.
#[derive(Debug)]
pub struct Handle {
    tasks: JoinSet<()>,
}

impl Handle {
    /// Takes no more jobs, and leaves the runners to themselves.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Starts one. It connects to `endpoint` when it answers, and again whenever it must. Must be called
/// within a tokio runtime.
///
/// # Errors
/// If the endpoint is none, or the folders cannot be made.
pub fn run(settings: Settings, endpoint: &str) -> Result<Handle, Error> {
    let client = Client::lazy(endpoint)?;
    let launcher = Arc::new(Launcher {
        client,
        tell_max: settings.lease(),
        endpoint: endpoint.to_owned(),
        syncs: Arc::new(Semaphore::new(settings.syncs())),
        checks: Arc::new(Semaphore::new(settings.checks_max.max(1) as usize)),
        settings,
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        if let Err(error) = fs::create_dir_all(Folder::root(&launcher.settings.data)) {
            warn!(%error, "no connectors run: their folder cannot be made");
            return;
        }
        let mut all = JoinSet::new();
        launcher.adopt(&mut all);
        let (syncs, checks) = (Arc::clone(&launcher), Arc::clone(&launcher));
        all.spawn(async move { syncs.take(Kind::Syncs).await });
        all.spawn(async move { checks.take(Kind::Checks).await });
        all.spawn(async move { launcher.tidy().await });
        while all.join_next().await.is_some() {}
    });
    Ok(Handle { tasks })
}

#[derive(Clone, Copy)]
enum Kind {
    Syncs,
    Checks,
}

struct Launcher {
    settings: Settings,
    endpoint: String,
    client: Client,
    /// How long one tries to tell how an attempt ended.
    tell_max: Duration,
    syncs: Arc<Semaphore>,
    checks: Arc<Semaphore>,
}

impl Launcher {
    fn places(&self, kind: Kind) -> Arc<Semaphore> {
        Arc::clone(match kind {
            Kind::Syncs => &self.syncs,
            Kind::Checks => &self.checks,
        })
    }

    /// Looks after the attempts of a launcher before.
    fn adopt(self: &Arc<Self>, tasks: &mut JoinSet<()>) {
        for path in folders(&self.settings.data) {
            let Ok((folder, spec)) = Folder::open(&path) else { continue };
            if folder.is_reported() {
                continue;
            }
            let kind = if &*spec.queue == SYNC_QUEUE { Kind::Syncs } else { Kind::Checks };
            let (launcher, places) = (Arc::clone(self), self.places(kind));
            let place = Arc::clone(&places).try_acquire_owned().ok();
            info!(attempt = spec.name(), "an attempt is looked after again");
            tasks.spawn(async move {
                let looked_after = async {
                    gone(&folder).await;
                    launcher.settle(&folder, &spec).await;
                };
                in_place(places, place, looked_after).await;
            });
        }
    }

    async fn take(self: Arc<Self>, kind: Kind) {
        let queues: &[&str] = match kind {
            Kind::Syncs => &[SYNC_QUEUE],
            Kind::Checks => &[CHECK_QUEUE, DISCOVER_QUEUE, SPEC_QUEUE],
        };
        let places = self.places(kind);
        let (mut runners, mut tries) = (JoinSet::new(), Tries::new());
        loop {
            while runners.try_join_next().is_some() {}
            // Places are never closed.
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let request = v1::ActivateJobsRequest {
                tenant: String::new(),
                tenants: self.settings.tenants.clone(),
                queues: queues.iter().map(|queue| (*queue).to_owned()).collect(),
                worker: "windlass/connectors".to_owned(),
                lease_ms: Some(ms(self.settings.lease())),
                jobs_max: Some(1),
                wait_ms: WAIT_MS,
                without_token: false,
            };
            match self.client.activate_jobs(request).await {
                Ok(jobs) => {
                    if let Some(after) = tries.worked() {
                        info!(?queues, ?after, "jobs of connectors can be taken again");
                    }
                    if let Some(job) = jobs.into_iter().next() {
                        runners.spawn(Arc::clone(&self).launch(job, place));
                    }
                }
                Err(error) => {
                    if let Some(why) = tries.missed(&error) {
                        warn!(why, ?queues, "no jobs of connectors can be taken");
                    }
                    tries.pause().await;
                }
            }
        }
    }

    async fn launch(self: Arc<Self>, job: v1::Job, place: OwnedSemaphorePermit) {
        let spec = self.spec(&job);
        let made = spec.clone();
        let made = tokio::task::spawn_blocking(move || Folder::create(&made)).await;
        let made = made.unwrap_or_else(|error| Err(io::Error::other(error)));
        let started = made.and_then(|folder| match self.start(&folder) {
            Ok(child) => Ok((child, folder)),
            Err(error) => {
                // Nothing ran in it: it is over, and is removed with the others that are.
                let _ = folder.set_reported();
                Err(error)
            }
        });
        match started {
            Ok((mut child, folder)) => {
                info!(attempt = spec.name(), queue = spec.queue, "an attempt begins");
                let _ = child.wait().await;
                // What was started may have been a wrapper that left the runner behind.
                gone(&folder).await;
                self.settle(&folder, &spec).await;
            }
            Err(error) => {
                warn!(%error, attempt = spec.name(), "a runner could not be started");
                let token = windlass_worker::Token::from(&job);
                let message = format!("the runner could not be started: {error}");
                let fail = v1::Fail { message, ..v1::Fail::default() };
                // Without an answer, the end of the lease says the same.
                drop(self.client.fail_job(token, fail).await);
            }
        }
        drop(place);
    }

    fn spec(&self, job: &v1::Job) -> Spec {
        let settings = &self.settings;
        Spec {
            endpoint: self.endpoint.clone(),
            tenant: job.tenant.clone(),
            queue: job.queue.clone(),
            job: job.key,
            activation: job.activation,
            attempt: job.attempt,
            payload: serde_json::from_slice(&job.payload).unwrap_or_default(),
            data: settings.data.clone(),
            place: folder::place(&settings.data),
            lease_ms: ms(settings.lease()),
            heartbeat_ms: ms(settings.heartbeat),
            stop_after_ms: ms(settings.stop_after),
            memory_bytes_max: settings.memory_bytes_max,
            source_silence_s: settings.source_silence.as_secs(),
            destination_silence_s: settings.destination_silence.as_secs(),
            exit_grace_s: settings.exit_grace.as_secs(),
            claimed_s: settings.claimed.as_secs(),
            launched_s: settings.launched.as_secs(),
        }
    }

    fn start(&self, folder: &Folder) -> io::Result<Child> {
        let (program, words) = self
            .settings
            .runner
            .split_first()
            .ok_or_else(|| io::Error::other("a runner has no program"))?;
        let log = fs::OpenOptions::new().create(true).append(true).open(folder.log())?;
        Command::new(program)
            .args(words)
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
    }

    /// The runner is gone: what it left is ended, and the server is told what it could not tell.
    async fn settle(&self, folder: &Folder, spec: &Spec) {
        if folder.is_reported() {
            return;
        }
        let name = spec.name();
        let left = folder.clone();
        let swept = tokio::task::spawn_blocking(move || left.sweep(&name, SWEEP_PATIENCE));
        if !swept.await.unwrap_or(false) {
            warn!(attempt = spec.name(), "connectors of a dead runner cannot be ended");
        }
        if !folder.marker().is_ok_and(Marker::is_final) {
            // It may have died between its summary and its marker.
            let known = folder.outcome().ok().flatten();
            let outcome = known.unwrap_or_else(|| report::lost("the runner of the attempt died"));
            if let Err(error) = folder.conclude(&outcome) {
                warn!(%error, attempt = spec.name(), "the folder cannot be written");
            }
        }
        let store = Store::new(self.client.clone(), &spec.tenant);
        let mut tries = Tries::new();
        loop {
            match report::report(&store, folder, spec).await {
                Ok(()) => return,
                // Past that its lease is over without us. It is tried again at the next start.
                Err(error) if error.is_transient() && tries.lasted() > self.tell_max => {
                    warn!(%error, attempt = spec.name(), "the end of an attempt was not told");
                    return;
                }
                Err(error) if error.is_transient() => {
                    if let Some(why) = tries.missed(&error) {
                        warn!(why, attempt = spec.name(), "the end of an attempt is told later");
                    }
                    tries.pause().await;
                }
                Err(error) => {
                    warn!(%error, attempt = spec.name(), "the end of an attempt was refused");
                    // It would be refused again.
                    if let Err(error) = folder.set_reported() {
                        warn!(%error, attempt = spec.name(), "the folder cannot be written");
                    }
                    return;
                }
            }
        }
    }

    /// Removes folders that are old, or too many.
    async fn tidy(&self) {
        loop {
            let (data, keep) = (self.settings.data.clone(), self.settings.keep);
            let tidied = tokio::task::spawn_blocking(move || tidy(&data, keep));
            if let Ok(Err(error)) = tidied.await {
                warn!(%error, "folders of attempts cannot be removed");
            }
            sleep(TIDY_EVERY).await;
        }
    }
}

/// Does something that is under way. There may be fewer places now than attempts that run: one without a place takes
/// the next one that is free, before anything new begins there.
async fn in_place(
    places: Arc<Semaphore>,
    place: Option<OwnedSemaphorePermit>,
    work: impl Future<Output = ()>,
) {
    let mut work = pin!(work);
    let place = match place {
        Some(place) => Some(place),
        None => tokio::select! {
            place = places.acquire_owned() => place.ok(),
            () = &mut work => return,
        },
    };
    work.await;
    drop(place);
}

/// Waits until no runner is left that lives, or is about to.
async fn gone(folder: &Folder) {
    let began = Instant::now();
    loop {
        let starts =
            matches!(folder.marker(), Ok(Marker::NotStarted)) && began.elapsed() < START_MAX;
        // To look at its lock is to hold it for a moment: not while it is about to take it.
        if !starts && !folder.lives() {
            return;
        }
        sleep(LOOK).await;
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn folders(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(Folder::root(data)).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn tidy(data: &Path, keep: Duration) -> io::Result<()> {
    let mut over: Vec<(SystemTime, PathBuf)> = Vec::new();
    for path in folders(data) {
        // One that was never finished is over since it was made.
        let is_whole = path.join("spec.json").exists();
        let since = if is_whole { path.join("reported") } else { path.clone() };
        if let Ok(modified) = fs::metadata(&since).and_then(|it| it.modified()) {
            over.push((modified, path));
        }
    }
    over.sort();
    let mut failed = None;
    let too_many = over.len().saturating_sub(FOLDERS_MAX);
    for (index, (modified, path)) in over.iter().enumerate() {
        let is_old = modified.elapsed().is_ok_and(|age| age > keep);
        if index < too_many || is_old {
            // One that cannot be removed is no reason to keep the others.
            failed = fs::remove_dir_all(path).err().or(failed);
        }
    }
    failed.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use tokio::sync::oneshot;

    use super::*;
    use crate::runner::folder::tests::spec;

    #[test]
    fn the_smallest_of_three_bounds_counts() {
        for (syncs_max, memory, cores, expected) in [
            (10, None, None, 10),
            (10, Some((700, 100)), None, 3),
            (2, Some((700, 100)), Some((8, 50)), 2),
            (10, Some((2_000, 100)), Some((4, 50)), 4),
            (10, None, Some((3, 100)), 1),
            (10, None, Some((1, 400)), 1),
            (10, Some((1, 100)), None, 1),
            (0, None, Some((8, 50)), 0),
        ] {
            let settings = Settings {
                syncs_max,
                memory_bytes: memory.map(|(all, _)| all),
                memory_bytes_max: memory.map(|(_, each)| each),
                cores: cores.map(|(all, _)| all),
                core_percent_each: cores.map_or(50, |(_, each)| each),
                ..Settings::new(PathBuf::new(), Vec::new())
            };
            assert_eq!(settings.syncs(), expected, "{syncs_max} {memory:?} {cores:?}");
        }
    }

    #[tokio::test]
    async fn what_is_under_way_counts_before_anything_new() {
        let places = Arc::new(Semaphore::new(1));
        let first = Arc::clone(&places).try_acquire_owned().ok();
        let (end_first, first_ends) = oneshot::channel::<()>();
        let (end_second, second_ends) = oneshot::channel::<()>();
        let until = |end: oneshot::Receiver<()>| async move { end.await.unwrap() };
        let first = tokio::spawn(in_place(Arc::clone(&places), first, until(first_ends)));
        let second = tokio::spawn(in_place(Arc::clone(&places), None, until(second_ends)));
        tokio::task::yield_now().await;
        let mut new = pin!(places.acquire());
        assert!(poll_once(new.as_mut()).await.is_none(), "two are under way");
        end_first.send(()).unwrap();
        first.await.unwrap();
        tokio::task::yield_now().await;
        assert!(poll_once(new.as_mut()).await.is_none(), "one is under way");
        end_second.send(()).unwrap();
        second.await.unwrap();
        assert!(poll_once(new.as_mut()).await.is_some());
    }

    async fn poll_once<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn an_end_that_cannot_be_told_holds_nothing_up_for_ever() {
        let data = tempfile::tempdir().unwrap();
        let spec = spec(data.path());
        let folder = Folder::create(&spec).unwrap();
        let launcher = Launcher {
            settings: Settings::new(data.path().to_owned(), Vec::new()),
            endpoint: String::new(),
            // Nobody listens there.
            client: Client::lazy("http://127.0.0.1:1").unwrap(),
            tell_max: Duration::from_millis(1),
            syncs: Arc::new(Semaphore::new(1)),
            checks: Arc::new(Semaphore::new(1)),
        };
        launcher.settle(&folder, &spec).await;
        assert_eq!(folder.marker().unwrap(), Marker::Failure);
        assert!(!folder.is_reported(), "the next start tells it");
    }

    #[test]
    fn what_is_over_is_removed_and_what_runs_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let make = |job| Folder::create(&Spec { job, ..spec(data.path()) }).unwrap();
        let (runs, is_reported, is_unfinished) = (make(1), make(2), make(3));
        is_reported.set_reported().unwrap();
        fs::remove_file(is_unfinished.path().join("spec.json")).unwrap();
        tidy(data.path(), Duration::from_secs(60)).unwrap();
        assert_eq!(folders(data.path()).len(), 3, "they are new");
        tidy(data.path(), Duration::ZERO).unwrap();
        assert_eq!(folders(data.path()), [runs.path()]);
    }
}
