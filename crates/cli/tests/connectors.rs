//! Syncs as jobs of a real server, with the runner, the connectors and the server killed in between:
//! every record arrives, nothing that was committed is read again, and at no moment do two attempts of
//! one connection run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "common/http.rs"]
mod http;
#[path = "common/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use http::Http;
use server::{Server, free_address};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const WORKSPACE: &str = "00000000-0000-4000-8000-000000000001";

/// A server with a source and a destination of ours.
struct Bench {
    folder: tempfile::TempDir,
    address: String,
    server: Server,
    http: Http,
    watch: Watch,
}

impl Bench {
    fn start() -> Bench {
        Bench::with(&[], 1)
    }

    /// With more flags, and so many attempts at once at most.
    fn with(flags: &[&str], at_once_max: usize) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let server = serve(folder.path(), &address, flags);
        let http = Http::new(&address);
        let watch = Watch::start(folder.path().join("data/attempts"), at_once_max);
        Bench { folder, address, server, http, watch }
    }

    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/public/v1{path}");
        let (_, answer) = self.http.insist(method, &path, &body, PATIENCE);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.text());
        if answer.text().is_empty() { Value::Null } else { answer.json() }
    }

    fn kill(&mut self) {
        self.server.kill();
    }

    fn restart(&mut self) {
        self.server = serve(self.folder.path(), &self.address, &[]);
    }

    fn rows(&self) -> PathBuf {
        self.folder.path().join("out.db")
    }

    /// A connection from our source to our destination.
    fn connect(&mut self, source: Value, destination: Value, mode: &str) -> String {
        let mut ids = Vec::new();
        for (side, script, mut configuration) in
            [("source", "source.py", source), ("destination", "destination.py", destination)]
        {
            let script = connectors().join(script);
            let definition = json!({ "name": side, "type": format!("test-{side}"),
                "launch": { "kind": "command", "command": ["python3", script] } });
            let path = format!("/workspaces/{WORKSPACE}/definitions/{side}s");
            let definition = self.ask("POST", &path, &definition)["id"].clone();
            if side == "destination" {
                configuration["path"] = json!(self.rows());
            }
            let body = json!({ "name": side, "workspaceId": WORKSPACE, "definitionId": definition,
                "configuration": configuration });
            let made = self.ask("POST", &format!("/{side}s"), &body);
            ids.push(made[format!("{side}Id")].as_str().unwrap().to_owned());
        }
        let body = json!({ "sourceId": ids[0], "destinationId": ids[1], "name": "c",
            "configurations": { "streams": [{ "name": "a", "syncMode": mode }] } });
        let made = self.ask("POST", "/connections", &body);
        made["connectionId"].as_str().unwrap().to_owned()
    }

    fn sync(&mut self, connection: &str) -> u64 {
        let body = json!({ "connectionId": connection, "jobType": "sync" });
        self.ask("POST", "/jobs", &body)["jobId"].as_u64().unwrap()
    }

    fn job(&mut self, job: u64) -> Value {
        self.ask("GET", &format!("/jobs/{job}"), &Value::Null)
    }

    #[track_caller]
    fn wait_for(&mut self, job: u64, status: &str) -> Value {
        let began = Instant::now();
        loop {
            let shown = self.job(job);
            if shown["status"] == status {
                return shown;
            }
            let over =
                ["succeeded", "failed", "cancelled"].iter().any(|it| shown["status"] == **it);
            assert!(!over && began.elapsed() < PATIENCE, "{shown} {}", self.logs());
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits until an attempt has committed something.
    fn wait_for_commit(&self) {
        let began = Instant::now();
        while self.commits() < 2 {
            assert!(began.elapsed() < PATIENCE, "nothing is committed: {}", self.logs());
            sleep(Duration::from_millis(10));
        }
    }

    /// The sequence of the newest attempt's last commit.
    fn commits(&self) -> u64 {
        let newest = attempts(self.folder.path()).into_iter().next_back();
        let text = newest.and_then(|path| fs::read(path.join("commit.json")).ok());
        let commit: Value = serde_json::from_slice(&text.unwrap_or_default()).unwrap_or_default();
        commit["commit"]["sequence"].as_u64().unwrap_or(0)
    }

    fn logs(&self) -> String {
        let read = |path: PathBuf| fs::read_to_string(path.join("log")).unwrap_or_default();
        attempts(self.folder.path()).into_iter().map(read).collect()
    }

    fn kill_runner(&self) {
        let runner =
            |words: &str| words.contains("connector-runner") && !words.contains("/question.");
        let found = processes(&self.folder.path().to_string_lossy(), runner);
        assert_eq!(found.len(), 1, "one runner");
        kill(found[0]);
    }

    fn done(self) {
        self.watch.stop();
    }
}

fn serve(folder: &Path, address: &str, more: &[&str]) -> Server {
    let flags = [
        "--listen",
        address,
        "--zeebe-listen",
        "off",
        "--connector-heartbeat-seconds",
        "1",
        "--connector-stop-seconds",
        "4",
        "--connector-exit-seconds",
        "2",
        "--airbyte-retry-backoff-seconds",
        "1",
    ];
    Server::start(&folder.join("data"), &[&flags, more].concat())
}

fn connectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/airbyte/connectors")
        .canonicalize()
        .unwrap()
}

/// The folders of attempts of syncs, in their order.
fn attempts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("data/attempts")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.file_name().unwrap().to_string_lossy().starts_with("question."));
    paths.sort();
    paths
}

/// Processes whose command line has a text and is as wanted.
fn processes(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        if words.contains(text) && wanted(&words) {
            found.push(id);
        }
    }
    found
}

fn kill(process: u32) {
    Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
}

/// Looks again and again whether more attempts than there may be have connectors.
struct Watch {
    stop: Arc<AtomicBool>,
    seen: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<String>>,
}

impl Watch {
    fn start(attempts: PathBuf, at_once_max: usize) -> Watch {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, looked) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            let mut wrong = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let names = running(&attempts);
                looked.fetch_add(usize::from(!names.is_empty()), Ordering::Relaxed);
                if names.len() > at_once_max {
                    wrong.push(format!("{names:?} at once"));
                }
                sleep(Duration::from_millis(5));
            }
            wrong
        });
        Watch { stop, seen, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        assert_eq!(self.thread.join().unwrap(), Vec::<String>::new());
        assert!(self.seen.load(Ordering::Relaxed) > 0, "connectors were seen");
    }
}

/// The attempts below a folder that have connectors now.
fn running(attempts: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let directory = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        if !directory.starts_with(attempts) {
            continue;
        }
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let mark = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(b"WINDLASS_ATTEMPT="));
        let name = mark.map(|mark| String::from_utf8_lossy(mark).into_owned());
        names.extend(name.filter(|name| !name.starts_with("question.")));
    }
    names
}

/// What the destination has: rows, and different ids.
fn arrived(database: &Path) -> (u64, u64) {
    const QUERY: &str = "import sqlite3,sys; print(*sqlite3.connect(sys.argv[1])\
        .execute('SELECT COUNT(*), COUNT(DISTINCT id) FROM rows').fetchone())";
    let output = Command::new("python3").args(["-c", QUERY]).arg(database).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// A source slow enough to be interrupted: 200 records, a state behind every five.
fn slow() -> Value {
    json!({ "count": 200, "state_every": 5, "pause_s": 0.05 })
}

#[test]
fn a_sync_goes_from_a_source_to_a_destination() {
    let mut bench = Bench::start();
    let source = json!({ "count": 100, "mode": "control", "api_token": "hunter2" });
    let connection = bench.connect(source, json!({}), "incremental_append");
    let job = bench.sync(&connection);
    let shown = bench.wait_for(job, "succeeded");
    assert_eq!((&shown["rowsSynced"], &shown["jobType"]), (&json!(100), &json!("sync")));
    assert_eq!(arrived(&bench.rows()), (100, 100));
    // What it called its new token is nowhere in what it said.
    let logs = bench.logs();
    assert!(logs.contains("the new token is **********") && !logs.contains("rotated"), "{logs}");
    // Another one has nothing new to bring.
    let job = bench.sync(&connection);
    assert_eq!(bench.wait_for(job, "succeeded")["rowsSynced"], 0);
    assert_eq!(arrived(&bench.rows()), (100, 100));
    // The source said a new token, which is kept, and shown to nobody.
    let shown = bench.ask("GET", "/sources", &Value::Null).to_string();
    assert!(shown.contains("\"token\":\"**********\"") && !shown.contains("rotated"), "{shown}");
    // What it showed when it was synced is what it has.
    let source = bench.ask("GET", "/sources", &Value::Null)["data"][0]["sourceId"].clone();
    let path = format!("/streams?sourceId={}", source.as_str().unwrap());
    assert_eq!(bench.ask("GET", &path, &Value::Null)[0]["streamName"], "a");
    // A clear leaves nothing of it, neither there nor in the state.
    let body = json!({ "connectionId": connection, "jobType": "clear" });
    let clear = bench.ask("POST", "/jobs", &body)["jobId"].as_u64().unwrap();
    bench.wait_for(clear, "succeeded");
    assert_eq!(arrived(&bench.rows()), (0, 0));
    let job = bench.sync(&connection);
    assert_eq!(bench.wait_for(job, "succeeded")["rowsSynced"], 100);
    bench.done();
}

#[test]
fn a_destination_that_dies_is_gone_on_with() {
    let mut bench = Bench::start();
    let destination = json!({ "mode": "die", "after": 73 });
    let connection = bench.connect(slow(), destination, "incremental_append");
    let job = bench.sync(&connection);
    // Each attempt brings 73 more at most, and commits what stood before a state.
    let shown = bench.wait_for(job, "succeeded");
    assert_eq!(shown["rowsSynced"], 200);
    let (rows, ids) = arrived(&bench.rows());
    assert_eq!(ids, 200);
    assert!(rows <= 200 + 3 * 5, "{rows} rows: more than what was not committed came again");
    bench.done();
}

#[test]
fn a_configuration_that_is_wrong_is_not_tried_again() {
    let mut bench = Bench::start();
    let source = json!({ "mode": "error_trace", "failures": ["config_error"], "count": 0 });
    let connection = bench.connect(source, json!({}), "incremental_append");
    let job = bench.sync(&connection);
    bench.wait_for(job, "failed");
    assert_eq!(attempts(bench.folder.path()).len(), 1);
    bench.done();
}

#[test]
fn a_sync_outlives_its_server() {
    let mut bench = Bench::start();
    let connection = bench.connect(slow(), json!({}), "incremental_append");
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    bench.kill();
    let before = bench.commits();
    sleep(Duration::from_millis(1_500));
    assert!(bench.commits() > before, "it goes on without its server");
    bench.restart();
    assert_eq!(bench.wait_for(job, "succeeded")["rowsSynced"], 200);
    assert_eq!(arrived(&bench.rows()), (200, 200));
    assert_eq!(attempts(bench.folder.path()).len(), 1, "one attempt did it");
    bench.done();
}

#[test]
fn a_runner_that_dies_is_noticed_and_its_attempt_tried_again() {
    let mut bench = Bench::start();
    let connection = bench.connect(slow(), json!({}), "incremental_append");
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    bench.kill_runner();
    let killed = Instant::now();
    while attempts(bench.folder.path()).len() < 2 {
        assert!(killed.elapsed() < Duration::from_secs(10), "nobody noticed");
        sleep(Duration::from_millis(10));
    }
    bench.wait_for(job, "succeeded");
    let (rows, ids) = arrived(&bench.rows());
    assert_eq!(ids, 200);
    assert!(rows <= 200 + 10, "{rows} rows: what was committed came again");
    bench.done();
}

#[test]
fn a_runner_and_its_server_may_die_together() {
    let mut bench = Bench::start();
    let connection = bench.connect(slow(), json!({}), "incremental_append");
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    bench.kill();
    bench.kill_runner();
    bench.restart();
    bench.wait_for(job, "succeeded");
    let (rows, ids) = arrived(&bench.rows());
    assert_eq!(ids, 200);
    assert!(rows <= 200 + 10, "{rows} rows: what was committed came again");
    assert_eq!(attempts(bench.folder.path()).len(), 2);
    bench.done();
}

#[test]
fn a_runner_whose_server_stays_away_ends_its_connectors() {
    let mut bench = Bench::start();
    let source = json!({ "count": 1_000, "state_every": 5, "pause_s": 0.05 });
    let connection = bench.connect(source, json!({}), "incremental_append");
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    bench.kill();
    let folder = bench.folder.path().join("data/attempts");
    let began = Instant::now();
    while !running(&folder).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "connectors run without a lease");
        sleep(Duration::from_millis(20));
    }
    let first = attempts(bench.folder.path()).remove(0);
    let began = Instant::now();
    while fs::read_to_string(first.join("marker")).unwrap() != "FAILURE" {
        assert!(began.elapsed() < PATIENCE, "{}", bench.logs());
        sleep(Duration::from_millis(20));
    }
    bench.restart();
    bench.wait_for(job, "succeeded");
    let (rows, ids) = arrived(&bench.rows());
    assert_eq!(ids, 1_000);
    assert!(rows <= 1_010, "{rows} rows: what was committed came again");
    bench.done();
}

#[test]
fn a_sync_is_cancelled_at_any_moment() {
    let mut bench = Bench::start();
    let source = json!({ "count": 100_000, "state_every": 5, "pause_s": 0.05 });
    let connection = bench.connect(source, json!({}), "incremental_append");
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    let another = json!({ "connectionId": connection, "jobType": "sync" }).to_string();
    bench.http.ask("POST", "/public/v1/jobs", &another).unwrap().expect_status(409);
    bench.ask("DELETE", &format!("/jobs/{job}"), &Value::Null);
    let shown = bench.wait_for(job, "cancelled");
    assert!(shown["rowsSynced"].as_u64().unwrap() > 0, "{shown}");
    let folder = bench.folder.path().join("data/attempts");
    assert!(running(&folder).is_empty(), "its processes were gone before it said so");
    // The next one goes on where that one was.
    let (rows, _) = arrived(&bench.rows());
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    sleep(Duration::from_millis(500));
    bench.ask("DELETE", &format!("/jobs/{job}"), &Value::Null);
    bench.wait_for(job, "cancelled");
    let (more, ids) = arrived(&bench.rows());
    assert!(more > rows && more - ids <= 10, "{rows} and {more} rows, {ids} ids");
    bench.done();
}

#[test]
fn many_syncs_at_once_wait_for_their_places() {
    const SYNCS: usize = 12;
    let mut bench = Bench::with(&["--connector-syncs-max", "2"], 2);
    let source = json!({ "count": 10 });
    let first = bench.connect(source, json!({}), "incremental_append");
    let shown = bench.ask("GET", &format!("/connections/{first}"), &Value::Null);
    let mut connections = vec![first];
    for number in 1..SYNCS {
        let body = json!({ "sourceId": shown["sourceId"], "destinationId": shown["destinationId"],
            "name": format!("c{number}"), "configurations": shown["configurations"] });
        let made = bench.ask("POST", "/connections", &body);
        connections.push(made["connectionId"].as_str().unwrap().to_owned());
    }
    let jobs: Vec<u64> = connections.iter().map(|connection| bench.sync(connection)).collect();
    let waiting = jobs.iter().filter(|job| bench.job(**job)["status"] == "pending").count();
    assert!(waiting > 0, "some have to wait");
    for job in jobs {
        bench.wait_for(job, "succeeded");
    }
    assert_eq!(arrived(&bench.rows()), (10 * SYNCS as u64, 10));
    bench.done();
}
