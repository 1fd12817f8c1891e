//! The demo's driver: real work through a real server, with a kill -9 in the middle.
//!
//! `cargo xtask demo [FOLDER] [--files N] [--exit]` builds everything and runs this. Each file of
//! the folder becomes a job `describe` for the Rust worker (`describe.rs`, beside this) and a job
//! `words` for a shell command. Groups are the folder's own subfolders, small files have priority,
//! and the queue gives two turns to high priority for each of low.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use windlass_worker::{Client, v1};

/// A file that is to fail its first attempt: every so many.
const FLAKY_EVERY: usize = 25;
/// Files up to this many bytes have priority.
const SMALL_BYTES: u64 = 16 << 10;
const CREATE_BATCH: usize = 500;
const PATIENCE: Duration = Duration::from_secs(300);

const WORDS_COMMAND: &str =
    r#"path=$(sed -n 's/.*"path":"\([^"]*\)".*/\1/p'); wc -w < "$path" | tr -d ' \n'"#;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Asked {
    folder: PathBuf,
    files_max: usize,
    exit: bool,
    data: PathBuf,
}

struct File {
    path: PathBuf,
    group: String,
    bytes: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome<()> {
    let asked = asked()?;
    let files = files_under(&asked.folder, asked.files_max)?;
    let groups: BTreeSet<&str> = files.iter().map(|file| &*file.group).collect();
    println!("{} files in {} groups under {}", files.len(), groups.len(), asked.folder.display());
    let _ = std::fs::remove_dir_all(&asked.data);
    std::fs::create_dir_all(&asked.data)?;
    let address = free_address();
    let mut server = Running::server(&asked.data, &address)?;
    let client = ready(&address).await?;
    println!("the engine listens on http://{address}, its data is in {}", asked.data.display());
    configure(&client).await?;

    let mut workers = Vec::new();
    for number in 0..2 {
        workers.push(Running::describe(&address, number)?);
    }
    workers.push(Running::words(&address)?);
    println!("two Rust workers serve `describe`, a shell command serves `words`\n");

    let started = Instant::now();
    let acknowledged = create(&client, &files).await?;
    println!("{} jobs created and acknowledged after fsync", acknowledged.len());

    let total = acknowledged.len();
    watch_until(&client, total, total / 2, started).await?;
    println!("\nkill -9 of the server, now, with workers in the middle of it");
    server.kill();
    let down = Instant::now();
    let mut server = Running::server(&asked.data, &address)?;
    let client = ready(&address).await?;
    println!(
        "it is back after {:.2} s; the workers reconnect by themselves\n",
        down.elapsed().as_secs_f64()
    );
    watch_until(&client, total, total, started).await?;
    let took = started.elapsed();

    report(&client, &acknowledged, took).await?;
    next_steps(&address, &asked);
    if asked.exit {
        for worker in &mut workers {
            worker.kill();
        }
        server.kill();
        return Ok(());
    }
    println!("\nCtrl-C ends it.");
    tokio::signal::ctrl_c().await?;
    Ok(())
}

// ── what is asked ──────────────────────────────────────────────────────────────────────────────

fn asked() -> Outcome<Asked> {
    let mut asked = Asked {
        folder: PathBuf::new(),
        files_max: 3_000,
        exit: false,
        data: target_dir()?.join("demo"),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--files" => asked.files_max = words.next().ok_or("--files wants a number")?.parse()?,
            "--exit" => asked.exit = true,
            flag if flag.starts_with('-') => {
                return Err(
                    format!("unknown flag {flag}; demo [FOLDER] [--files N] [--exit]").into()
                );
            }
            folder => asked.folder = folder.into(),
        }
    }
    if asked.folder.as_os_str().is_empty() {
        asked.folder = toolchain_folder()?;
    }
    asked.folder = asked.folder.canonicalize()?;
    Ok(asked)
}

/// The Rust toolchain is on every machine that can build this.
fn toolchain_folder() -> Outcome<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let root = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    let candidates = ["share/doc/rust/html", "lib/rustlib/src", "lib", ""];
    let found = candidates.iter().map(|part| root.join(part)).find(|folder| folder.is_dir());
    found.ok_or_else(|| "name a folder with files: cargo xtask demo FOLDER".into())
}

/// Takes half of the files from the largest subfolder and the rest round-robin from the others: one
/// busy user, and many who are not.
fn files_under(folder: &Path, files_max: usize) -> Outcome<Vec<File>> {
    let mut by_group: BTreeMap<String, Vec<File>> = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file()
                && path.to_str().is_some_and(|name| !name.contains(['"', '\\']))
            {
                let inside = path.strip_prefix(folder)?;
                let group = match inside.components().next() {
                    Some(first) if inside.components().count() > 1 => {
                        first.as_os_str().to_string_lossy().into_owned()
                    }
                    _ => ".".to_owned(),
                };
                let bytes = entry.metadata()?.len();
                by_group.entry(group.clone()).or_default().push(File { path, group, bytes });
            }
        }
    }
    let largest =
        by_group.iter().max_by_key(|(_, files)| files.len()).map(|(name, _)| name.clone());
    let mut files = Vec::new();
    if let Some(group) = largest.and_then(|name| by_group.get_mut(&name)) {
        files.extend(group.drain(group.len().saturating_sub(files_max / 2)..));
    }
    by_group.retain(|_, left| !left.is_empty());
    while files.len() < files_max && !by_group.is_empty() {
        by_group.retain(|_, left| {
            if files.len() < files_max {
                files.extend(left.pop());
            }
            !left.is_empty()
        });
    }
    if files.is_empty() {
        return Err(format!("there are no files under {}", folder.display()).into());
    }
    // The busy one stands first in line, and does not get everything all the same.
    Ok(files)
}

// ── processes ──────────────────────────────────────────────────────────────────────────────────

/// A child that does not outlive the demo.
struct Running(Child);

impl Running {
    fn server(data: &Path, address: &str) -> Outcome<Running> {
        let mut command = Command::new(beside("windlass")?);
        command.args(["serve", "--log-level", "warn", "--listen", address]);
        command.args(["--zeebe-listen", "off"]);
        command.arg("--data-dir").arg(data.join("data"));
        Running::start(command, &data.join("server.log"))
    }

    fn describe(address: &str, number: usize) -> Outcome<Running> {
        let mut command = Command::new(beside("examples/describe")?);
        command.env("WINDLASS_SERVER", format!("http://{address}"));
        command.env("WINDLASS_WORKER", format!("describe-{number}"));
        command.env("WINDLASS_CONCURRENCY", "4").env("RUST_LOG", "error");
        Running::start(command, &target_dir()?.join(format!("demo/describe-{number}.log")))
    }

    fn words(address: &str) -> Outcome<Running> {
        let mut command = Command::new(beside("windlass")?);
        command.args(["--server", &format!("http://{address}")]);
        command.args(["worker", "--type", "words", "--concurrency", "4", "--"]);
        command.args(["sh", "-c", WORDS_COMMAND]);
        Running::start(command, &target_dir()?.join("demo/words.log"))
    }

    fn start(mut command: Command, log: &Path) -> Outcome<Running> {
        let name = command.get_program().to_string_lossy().into_owned();
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().map_err(|error| format!("failed to start {name}: {error}"))?;
        Ok(Running(child))
    }

    /// SIGKILL.
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program that the same build made.
fn beside(name: &str) -> Outcome<PathBuf> {
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).ok_or("the demo has no target folder")?;
    Ok(target.join(name))
}

fn target_dir() -> Outcome<PathBuf> {
    let here = std::env::current_exe()?;
    let target = here.ancestors().nth(3).ok_or("the demo has no target folder")?;
    Ok(target.to_owned())
}

/// The usual port if it is free, so that every hint below works as it stands.
fn free_address() -> String {
    for address in ["127.0.0.1:8080", "127.0.0.1:0"] {
        if let Ok(listener) = TcpListener::bind(address)
            && let Ok(address) = listener.local_addr()
        {
            return address.to_string();
        }
    }
    "127.0.0.1:8080".to_owned()
}

async fn ready(address: &str) -> Outcome<Client> {
    let started = Instant::now();
    loop {
        if let Ok(client) = Client::connect(format!("http://{address}")).await
            && client.status().await.is_ok()
        {
            return Ok(client);
        }
        if started.elapsed() > PATIENCE {
            return Err("the server does not answer; see server.log in target/demo".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// ── the work ───────────────────────────────────────────────────────────────────────────────────

async fn configure(client: &Client) -> Outcome<()> {
    for queue in ["describe", "words"] {
        let settings = v1::QueueSettings {
            scheme_high: 2,
            scheme_low: 1,
            retries_first: true,
            finished_max: Some(1_000_000),
            ..v1::QueueSettings::default()
        };
        let request = v1::ConfigureQueueRequest {
            queue: queue.to_owned(),
            settings: Some(settings),
            ..v1::ConfigureQueueRequest::default()
        };
        client.configure_queue(request).await?;
    }
    Ok(())
}

/// Creates the jobs; returns the keys that were acknowledged.
async fn create(client: &Client, files: &[File]) -> Outcome<BTreeSet<u64>> {
    let mut jobs = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let flaky = number % FLAKY_EVERY == 0;
        let wanted = json!({ "path": file.path, "fail_until_attempt": if flaky { 2 } else { 0 } });
        let priority = if file.bytes <= SMALL_BYTES { 10 } else { 0 };
        for queue in ["describe", "words"] {
            jobs.push(v1::NewJob {
                queue: queue.to_owned(),
                group: file.group.clone(),
                priority,
                payload: wanted.to_string().into(),
                options: Some(Box::new(v1::JobOptions {
                    retry: Some(v1::RetryPolicy {
                        policy: Some(v1::retry_policy::Policy::Exponential(
                            v1::retry_policy::Exponential {
                                delay_ms: 500,
                                base: 2,
                                ..v1::retry_policy::Exponential::default()
                            },
                        )),
                    }),
                    ..v1::JobOptions::default()
                })),
                ..v1::NewJob::default()
            });
        }
    }
    // One job that no retry can help: something to look at afterwards.
    let lost = json!({ "path": "/this/file/is/not/there" }).to_string();
    jobs.push(v1::NewJob {
        queue: "describe".to_owned(),
        group: "lost".to_owned(),
        payload: lost.into(),
        ..v1::NewJob::default()
    });
    let mut keys = BTreeSet::new();
    for batch in jobs.chunks(CREATE_BATCH) {
        for result in client.create_jobs(batch.to_vec()).await? {
            keys.insert(result.map_err(|refusal| refusal.to_string())?.key);
        }
    }
    Ok(keys)
}

/// Shows what happens until so many jobs have come to rest or wait for a person.
async fn watch_until(client: &Client, total: usize, rest: usize, started: Instant) -> Outcome<()> {
    let mut shown = Instant::now();
    let began = Instant::now();
    loop {
        let queues = client.queues("").await?;
        let live: u32 = queues
            .iter()
            .map(|queue| queue.scheduled + queue.ready + queue.active + queue.backoff)
            .sum();
        let done = total.saturating_sub(live as usize);
        if shown.elapsed() > Duration::from_secs(1) || done >= rest {
            let sum = |of: fn(&v1::QueueView) -> u32| queues.iter().map(of).sum::<u32>();
            println!(
                "{:6.1} s  {done:6} of {total} done   {:5} ready  {:3} active  {:4} in backoff  {:2} incidents",
                started.elapsed().as_secs_f64(),
                sum(|queue| queue.ready),
                sum(|queue| queue.active),
                sum(|queue| queue.backoff),
                sum(|queue| queue.incident),
            );
            shown = Instant::now();
        }
        if done >= rest {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err("the work does not end; the logs are in target/demo".into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// ── what came of it ────────────────────────────────────────────────────────────────────────────

async fn report(client: &Client, acknowledged: &BTreeSet<u64>, took: Duration) -> Outcome<()> {
    let completed = all(client, v1::JobState::Completed).await?;
    let incidents = all(client, v1::JobState::Incident).await?;
    let found: BTreeSet<u64> = completed.iter().chain(&incidents).map(|job| job.key).collect();
    let lost = acknowledged.difference(&found).count();
    let retried = completed.iter().filter(|job| job.attempt > 1).count();
    let again = completed.iter().filter(|job| job.activation > job.attempt).count();
    println!("\n{} jobs completed, {} wait for a person", completed.len(), incidents.len());
    println!(
        "{retried} were retried after a failure, {again} were handed out again after the kill"
    );
    println!(
        "{:.0} jobs/s over {:.1} s, the outage included",
        completed.len() as f64 / took.as_secs_f64(),
        took.as_secs_f64()
    );
    fairness(completed);
    if lost > 0 {
        return Err(format!("{lost} acknowledged jobs are nowhere to be found").into());
    }
    println!("\nacknowledged jobs lost by the kill -9: 0 of {}", acknowledged.len());
    Ok(())
}

async fn all(client: &Client, state: v1::JobState) -> Outcome<Vec<v1::JobView>> {
    let mut jobs = Vec::new();
    let mut cursor = 0;
    loop {
        let request = v1::ListJobsRequest {
            state: state.into(),
            cursor,
            limit: 1_000,
            ..v1::ListJobsRequest::default()
        };
        let page = client.list_jobs(request).await?;
        jobs.extend(page.jobs);
        cursor = page.next_cursor;
        if cursor == 0 {
            return Ok(jobs);
        }
    }
}

/// How far each of the largest groups was when a quarter of the work was done: served in turns, a
/// small group is through while a large one has just its share.
fn fairness(mut completed: Vec<v1::JobView>) {
    completed.retain(|job| job.queue == "describe");
    completed.sort_by_key(|job| job.time_ms);
    let quarter = completed.len() / 4;
    let mut early: HashMap<&str, usize> = HashMap::new();
    let mut whole: HashMap<&str, usize> = HashMap::new();
    for (index, job) in completed.iter().enumerate() {
        *whole.entry(&job.group).or_default() += 1;
        if index < quarter {
            *early.entry(&job.group).or_default() += 1;
        }
    }
    let mut groups: Vec<_> = whole.into_iter().collect();
    groups.sort_by_key(|&(group, jobs)| (std::cmp::Reverse(jobs), group));
    println!("\nfairness: jobs done in the first quarter of the work, by group (largest first)");
    for (group, jobs) in groups.iter().take(8) {
        println!("  {:6} of {jobs:6}  {group}", early.get(group).copied().unwrap_or(0));
    }
}

fn next_steps(address: &str, asked: &Asked) {
    let server = if address == "127.0.0.1:8080" {
        String::new()
    } else {
        format!(" --server http://{address}")
    };
    let windlass = "target/debug/windlass";
    println!("\nlook next:");
    println!("  {windlass} top{server}                    the queues, live");
    println!(
        "  {windlass} incident list{server}          the job that needs you; then: incident resolve KEY"
    );
    println!("  {windlass} job list --state completed{server}");
    println!(
        "  {windlass} job why KEY{server}            where a job is and why it is not running"
    );
    println!("  http://{address}/windlass/v1/openapi.json and http://{address}/metrics");
    println!("  the logs and the data: {}", asked.data.display());
}
