//! Syncs as jobs of a real server, with the runner, the connectors and the server killed in between:
//! every record arrives, nothing that was committed is read again, and at no moment do two attempts of
//! one connection run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[allow(dead_code, reason = "others use more of it")]
#[path = "common/airbyte.rs"]
mod airbyte;
#[allow(dead_code, reason = "others use more of it")]
#[path = "common/http.rs"]
mod http;
#[path = "common/server.rs"]
mod server;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use serde_json::{Value, json};

use airbyte::{Api, arrived, kill, own, processes, wait_until};
use server::{Server, free_address};

/// A server with a source and a destination of ours.
struct Bench {
    folder: tempfile::TempDir,
    address: String,
    server: Server,
    api: Api,
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
        let api = Api::new(&address);
        let watch = Watch::start(folder.path().join("data/attempts"), at_once_max);
        Bench { folder, address, server, api, watch }
    }

    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Value {
        self.api.ask(method, path, body)
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
    fn connect(&mut self, source: &Value, mut destination: Value) -> String {
        destination["path"] = json!(self.rows());
        let [from, to] = [("source", source), ("destination", &destination)].map(|(side, it)| {
            let definition = json!({ "name": side, "launch": own(side) });
            self.api.actor(side, &definition, it)
        });
        self.api.connect(&from, &to)
    }

    fn sync(&mut self, connection: &str) -> u64 {
        self.api.sync(connection)
    }

    #[track_caller]
    fn wait_for(&mut self, job: u64, status: &str) -> Value {
        let shown = self.api.ended(job);
        assert_eq!(shown["status"], status, "{shown} {}", self.logs());
        shown
    }

    /// Waits until an attempt has committed something.
    #[track_caller]
    fn wait_for_commit(&self) {
        wait_until("something is committed", || self.commits() >= 2);
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
        let folder = self.folder.path().to_string_lossy();
        let found = processes(|words| {
            let is_runner = words.contains("connector-runner") && words.contains(&*folder);
            is_runner && !words.contains("/question.")
        });
        assert_eq!(found.len(), 1, "one runner");
        kill(&found);
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

/// The folders of attempts of syncs, in their order.
fn attempts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("data/attempts")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.file_name().unwrap().to_string_lossy().starts_with("question."));
    paths.sort_by_key(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let (job, attempt) = name.rsplit_once('.').unwrap().1.split_once('-').unwrap();
        (job.parse::<u64>().unwrap(), attempt.parse::<u32>().unwrap())
    });
    paths
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

/// A source slow enough to be interrupted: 200 records, a state behind every five.
fn slow() -> Value {
    json!({ "count": 200, "state_every": 5, "pause_s": 0.05 })
}

#[test]
fn a_sync_goes_from_a_source_to_a_destination() {
    let mut bench = Bench::start();
    let source = json!({ "count": 100, "mode": "control", "api_token": "hunter2" });
    let connection = bench.connect(&source, json!({}));
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
    let connection = bench.connect(&slow(), destination);
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
    let connection = bench.connect(&source, json!({}));
    let job = bench.sync(&connection);
    bench.wait_for(job, "failed");
    assert_eq!(attempts(bench.folder.path()).len(), 1);
    bench.done();
}

#[test]
fn a_sync_outlives_its_server() {
    let mut bench = Bench::start();
    let connection = bench.connect(&slow(), json!({}));
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    bench.kill();
    let before = bench.commits();
    wait_until("it goes on without its server", || bench.commits() > before);
    bench.restart();
    assert_eq!(bench.wait_for(job, "succeeded")["rowsSynced"], 200);
    assert_eq!(arrived(&bench.rows()), (200, 200));
    assert_eq!(attempts(bench.folder.path()).len(), 1, "one attempt did it");
    bench.done();
}

#[test]
fn a_runner_that_dies_is_noticed_and_its_attempt_tried_again() {
    let mut bench = Bench::start();
    let connection = bench.connect(&slow(), json!({}));
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    bench.kill_runner();
    wait_until("somebody notices", || attempts(bench.folder.path()).len() == 2);
    bench.wait_for(job, "succeeded");
    let (rows, ids) = arrived(&bench.rows());
    assert_eq!(ids, 200);
    assert!(rows <= 200 + 10, "{rows} rows: what was committed came again");
    bench.done();
}

#[test]
fn a_runner_and_its_server_may_die_together() {
    let mut bench = Bench::start();
    let connection = bench.connect(&slow(), json!({}));
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
    let connection = bench.connect(&source, json!({}));
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    bench.kill();
    let folder = bench.folder.path().join("data/attempts");
    wait_until("no connector runs without a lease", || running(&folder).is_empty());
    let first = attempts(bench.folder.path()).remove(0);
    wait_until("it has failed", || fs::read_to_string(first.join("marker")).unwrap() == "FAILURE");
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
    let connection = bench.connect(&source, json!({}));
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    let another = json!({ "connectionId": connection, "jobType": "sync" });
    bench.api.refused("/jobs", &another, 409);
    bench.ask("DELETE", &format!("/jobs/{job}"), &Value::Null);
    let shown = bench.wait_for(job, "cancelled");
    assert!(shown["rowsSynced"].as_u64().unwrap() > 0, "{shown}");
    let folder = bench.folder.path().join("data/attempts");
    assert!(running(&folder).is_empty(), "its processes were gone before it said so");
    // The next one goes on where that one was.
    let (rows, _) = arrived(&bench.rows());
    let job = bench.sync(&connection);
    bench.wait_for_commit();
    let first = bench.commits();
    wait_until("more is committed", || bench.commits() > first);
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
    let first = bench.connect(&source, json!({}));
    let shown = bench.ask("GET", &format!("/connections/{first}"), &Value::Null);
    let mut connections = vec![first];
    for number in 1..SYNCS {
        let body = json!({ "sourceId": shown["sourceId"], "destinationId": shown["destinationId"],
            "name": format!("c{number}"), "configurations": shown["configurations"] });
        let made = bench.ask("POST", "/connections", &body);
        connections.push(made["connectionId"].as_str().unwrap().to_owned());
    }
    let jobs: Vec<u64> = connections.iter().map(|connection| bench.sync(connection)).collect();
    let waiting = jobs.iter().filter(|job| bench.api.job(**job)["status"] == "pending").count();
    assert!(waiting > 0, "some have to wait");
    for job in jobs {
        bench.wait_for(job, "succeeded");
    }
    assert_eq!(arrived(&bench.rows()), (10 * SYNCS as u64, 10));
    bench.done();
}
