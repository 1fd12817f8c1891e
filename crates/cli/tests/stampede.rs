//! A thousand connections of eleven workspaces whose schedules fire in the same second: as many syncs run as there
//! are places, workspaces take turns, each connection has one job, the server answers meanwhile, and every job
//! ends.
//!
//! The first syncs show it; then the others are cancelled. `WINDLASS_STAMPEDE=all` lets all of them run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[allow(dead_code, reason = "others use more of it")]
#[path = "common/airbyte.rs"]
mod airbyte;
#[allow(dead_code, reason = "others use more of it")]
#[path = "common/http.rs"]
mod http;
#[allow(dead_code, reason = "others use more of it")]
#[path = "common/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use airbyte::{Api, processes, wait_until};
use server::{Server, free_address};

/// Connections of the one large workspace.
const LARGE: usize = 900;
/// Small workspaces, and connections of each.
const SMALL_WORKSPACES: usize = 10;
const SMALL_EACH: usize = 10;
const SMALL: usize = SMALL_WORKSPACES * SMALL_EACH;
const ALL: usize = LARGE + SMALL;
/// `MAX_SYNC_WORKERS`, what the cores have room for, and the memory for connectors: the smallest one counts.
const SYNCS_MAX: usize = 8;
const CORES: usize = 6;
const PLACES: usize = 5;
const MEMORY_EACH_MIB: usize = 128;
/// Syncs that begin before the others are cancelled: all of the small workspaces, and some of the large one.
const SHOWN: usize = 200;
/// Jobs of the large workspace that begin before the last one of a small one: one in each round, and those that
/// were there before the small ones came.
const AHEAD_MAX: usize = 3 * SMALL_EACH;
/// Those who ask at once while the test prepares or cancels.
const CLIENTS: usize = 4;
/// How long it takes to prepare, on a machine that is not too busy.
const PREPARATION: Duration = Duration::from_secs(10);
/// Between a connection that is made and its time, at least.
const LATER: Duration = Duration::from_secs(2);
/// How long an answer may take while everything runs: at most, and half of them.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const ANSWER_MEDIAN_MAX: Duration = Duration::from_millis(500);

/// Source and destination. It notes when a sync begins (a source is asked for its streams before anything else) and
/// when it ends (its destination has all of it); the first ones wait for a lock.
const CONNECTOR: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
case "$2" in
spec) say '{"type":"SPEC","spec":{"connectionSpecification":{"type":"object"}}}' ;;
discover)
  echo "begin $WINDLASS_ATTEMPT" >>"$1/events"
  [ -e "$1/open" ] || flock --shared "$1/gate" true
  say '{"type":"CATALOG","catalog":{"streams":[{"name":"a","json_schema":{"type":"object"},"supported_sync_modes":["full_refresh"]}]}}' ;;
read) say '{"type":"RECORD","record":{"stream":"a","data":{"id":1},"emitted_at":1}}' ;;
write)
  while read -r line; do case "$line" in *'"STATE"'*) say "$line" ;; esac; done
  echo "end $WINDLASS_ATTEMPT" >>"$1/events" ;;
esac
"#;

#[test]
fn a_thousand_schedules_at_once_neither_stampede_nor_starve() {
    let bench = Bench::start();
    let (gate, connections) = (bench.shut(), bench.connections());
    wait_until("all have fired, and every place is taken", || {
        bench.begun().len() == PLACES && bench.jobs(LIVE).len() == ALL
    });
    bench.everybody_has_one(&connections);
    let mut took = bench.ask_around(&connections, 20);
    let begun: BTreeSet<String> = bench.begun().into_iter().collect();
    assert_eq!(begun.len(), PLACES, "more than there are places for");
    assert_eq!(bench.runners(), PLACES, "whoever waits has no process");

    File::create(bench.path("open")).unwrap();
    drop(gate);
    let is_all = std::env::var("WINDLASS_STAMPEDE").is_ok_and(|it| it == "all");
    for shown in (PLACES..=if is_all { ALL } else { SHOWN }).step_by(PLACES) {
        wait_until("the next ones have their turn", || {
            took.extend(bench.ask_around(&connections, 1));
            bench.begun().len() >= shown
        });
    }
    let events = bench.events();
    took_turns(&events, &connections);
    bench.cancel();
    wait_until("all have ended", || bench.jobs(LIVE).is_empty());
    let succeeded = bench.every_job_is_accounted_for(&connections);
    assert!(succeeded >= events.iter().filter(|(begins, _)| !begins).count(), "{succeeded}");
    took.sort_unstable();
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{} answers: half in {median:?}, all in {worst:?}", took.len());
    assert!(median < ANSWER_MEDIAN_MAX && worst < ANSWER_MAX, "{median:?} {worst:?}");
}

/// Statuses of jobs that have not ended, and of those that have.
const LIVE: &[&str] = &["pending", "running", "incomplete"];
const ENDED: &[&str] = &["succeeded", "cancelled", "failed"];

/// Connections, each with its workspace.
type Connections = BTreeMap<String, String>;

struct Bench {
    folder: tempfile::TempDir,
    address: String,
    _server: Server,
}

impl Bench {
    fn start() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("connector.sh"), CONNECTOR).unwrap();
        let address = free_address();
        let text = |number: usize| number.to_string();
        let (syncs, each) = (text(SYNCS_MAX), text(MEMORY_EACH_MIB));
        // Two connectors of each sync, and some that is not enough for one more.
        let all = text(PLACES * 2 * MEMORY_EACH_MIB + MEMORY_EACH_MIB);
        let flags = ["--listen", &*address, "--zeebe-listen", "off"];
        let places = ["--connector-syncs-max", &*syncs, "--connector-memory-mib", &*each];
        let memory = ["--connectors-memory-mib", &*all, "--connector-heartbeat-seconds", "1"];
        let cores = ["--connectors-cores", &text(CORES), "--connector-core-percent", "50"];
        let flags = [&flags[..], &places, &memory, &cores].concat();
        let server = Server::start(&folder.path().join("data"), &flags);
        Bench { folder, address, _server: server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn api(&self) -> Api {
        Api::new(&self.address)
    }

    /// Lets no sync past its beginning for as long as it is held.
    fn shut(&self) -> File {
        let gate = File::create(self.path("gate")).unwrap();
        gate.lock().unwrap();
        gate
    }

    /// Makes them, those of the small workspaces first, all with one time.
    fn connections(&self) -> Connections {
        let sizes = [SMALL_EACH; SMALL_WORKSPACES].into_iter().chain([LARGE]);
        let mut api = self.api();
        let all: VecDeque<_> = sizes
            .enumerate()
            .flat_map(|(number, size)| {
                let workspace = Workspace::new(&mut api, number, self.folder.path());
                std::iter::repeat_n(workspace, size)
            })
            .collect();
        let (all, moment) = (Mutex::new(all), Moment::new(PREPARATION));
        let made = Mutex::new(Connections::new());
        let make = || {
            let mut api = self.api();
            loop {
                let Some(workspace) = all.lock().unwrap().pop_front() else { return };
                let connection = workspace.connect(&mut api, &moment);
                made.lock().unwrap().insert(connection, workspace.id);
            }
        };
        thread::scope(|scope| {
            (0..CLIENTS).for_each(|_| drop(scope.spawn(make)));
        });
        made.into_inner().unwrap()
    }

    /// What attempts noted: whether they begin, and their names.
    fn events(&self) -> Vec<(bool, String)> {
        let text = fs::read_to_string(self.path("events")).unwrap_or_default();
        // The last line may be half there.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let event = |line: &str| {
            let (word, attempt) = line.split_once(' ').unwrap();
            (word == "begin", attempt.to_owned())
        };
        whole.lines().map(event).collect()
    }

    /// Attempts that began, in order.
    fn begun(&self) -> Vec<String> {
        self.events()
            .into_iter()
            .filter(|(begins, _)| *begins)
            .map(|(_, attempt)| attempt)
            .collect()
    }

    /// Runners of syncs that there are now.
    fn runners(&self) -> usize {
        let data = self.path("data");
        let of_sync = |words: &str| {
            let mark = format!("connector-runner {}", data.display());
            words.contains(&mark) && !words.contains("/question.")
        };
        processes(of_sync).len()
    }

    /// Jobs of these statuses: the connection of each, and how it is.
    fn jobs(&self, statuses: &[&str]) -> Vec<(u64, String, String)> {
        let mut api = self.api();
        let mut found = Vec::new();
        for status in statuses {
            for offset in (0..).step_by(100) {
                let path = format!(
                    "/jobs?status={status}&limit=100&offset={offset}&orderBy=createdAt%7CASC"
                );
                let page = api.ask("GET", &path, &Value::Null);
                let page = page["data"].as_array().unwrap();
                found.extend(page.iter().map(|job| {
                    let text = |name: &str| job[name].as_str().unwrap().to_owned();
                    (job["jobId"].as_u64().unwrap(), text("connectionId"), text("status"))
                }));
                if page.len() < 100 {
                    break;
                }
            }
        }
        found
    }

    fn everybody_has_one(&self, connections: &Connections) {
        let jobs = self.jobs(LIVE);
        let of: BTreeSet<&String> = jobs.iter().map(|(_, connection, _)| connection).collect();
        assert_eq!((jobs.len(), of.len()), (ALL, ALL));
        assert!(of.into_iter().eq(connections.keys()));
        let body = json!({ "connectionId": jobs[ALL / 2].1, "jobType": "sync" });
        self.api().refused("/jobs", &body, 409);
    }

    /// How long each of some questions took.
    fn ask_around(&self, connections: &Connections, rounds: usize) -> Vec<Duration> {
        let mut api = self.api();
        let mut took = Vec::new();
        for connection in connections.keys().take(rounds) {
            for path in [
                "/workspaces".to_owned(),
                format!("/connections/{connection}"),
                format!("/jobs?connectionId={connection}"),
                "/jobs?limit=20".to_owned(),
            ] {
                let began = Instant::now();
                api.ask("GET", &path, &Value::Null);
                took.push(began.elapsed());
            }
        }
        took
    }

    /// Cancels whatever waits.
    fn cancel(&self) {
        let waiting = Mutex::new(self.jobs(&["pending"]));
        let cancel = || {
            let mut api = self.api();
            loop {
                let Some((job, ..)) = waiting.lock().unwrap().pop() else { return };
                api.cancel(job);
            }
        };
        thread::scope(|scope| {
            (0..CLIENTS).for_each(|_| drop(scope.spawn(cancel)));
        });
    }

    /// What began has ended well or was cancelled, what did not was cancelled, and nothing ran twice. How many ended
    /// well.
    fn every_job_is_accounted_for(&self, connections: &Connections) -> usize {
        let jobs = self.jobs(ENDED);
        let of: BTreeMap<&str, &str> =
            jobs.iter().map(|(_, connection, status)| (&**connection, &**status)).collect();
        assert_eq!((jobs.len(), of.len()), (ALL, ALL));
        assert!(of.keys().eq(connections.keys()));
        let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for (begins, attempt) in self.events() {
            assert!(attempt.ends_with("-1"), "{attempt} is another attempt");
            let side = if begins { &mut begun } else { &mut ended };
            assert!(side.insert(connection(&attempt).to_owned()), "{attempt} ran twice");
        }
        for (connection, status) in of {
            match status {
                "succeeded" => assert!(ended.contains(connection), "{connection} did not run"),
                "cancelled" => {}
                _ => panic!("{connection} {status}"),
            }
        }
        let of_status = |wanted: &str| jobs.iter().filter(|(.., status)| status == wanted).count();
        let (succeeded, cancelled) = (of_status("succeeded"), of_status("cancelled"));
        println!("{succeeded} succeeded, {cancelled} were cancelled, {} began", begun.len());
        succeeded
    }
}

/// As many as there are places, and the small workspaces in turn with the large one.
fn took_turns(events: &[(bool, String)], connections: &Connections) {
    let (mut now, mut most) = (0_usize, 0);
    for (begins, _) in events {
        now = if *begins { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    assert_eq!(most, PLACES);
    let sizes = connections.values().fold(BTreeMap::new(), |mut sizes, workspace| {
        *sizes.entry(workspace).or_insert(0_usize) += 1;
        sizes
    });
    let begun = events.iter().filter(|(begins, _)| *begins);
    let is_large: Vec<bool> =
        begun.map(|(_, it)| sizes[&connections[connection(it)]] == LARGE).collect();
    assert_eq!(is_large.iter().filter(|is_large| !*is_large).count(), SMALL);
    let last = is_large.iter().rposition(|is_large| !is_large).unwrap();
    let ahead = is_large[..last].iter().filter(|is_large| **is_large).count();
    println!("{ahead} of the large workspace began before the last of a small one");
    assert!((1..=AHEAD_MAX).contains(&ahead), "{ahead}");
}

/// The connection of an attempt.
fn connection(attempt: &str) -> &str {
    attempt.split_once('.').unwrap().0
}

/// A workspace with a source and a destination.
#[derive(Clone)]
struct Workspace {
    id: String,
    source: String,
    destination: String,
}

impl Workspace {
    fn new(api: &mut Api, number: usize, folder: &Path) -> Workspace {
        let body = json!({ "name": format!("workspace {number}") });
        let id = api.ask("POST", "/workspaces", &body)["workspaceId"].as_str().unwrap().to_owned();
        let mut actor = |side: &str| {
            let command = [json!("/bin/sh"), json!(folder.join("connector.sh")), json!(folder)];
            let launch = json!({ "kind": "command", "command": command });
            let path = format!("/workspaces/{id}/definitions/{side}s");
            let made = api.ask("POST", &path, &json!({ "name": "shell", "launch": launch }));
            let body = json!({ "name": side, "workspaceId": id, "definitionId": made["id"],
                "configuration": {} });
            let made = api.ask("POST", &format!("/{side}s"), &body);
            made[format!("{side}Id")].as_str().unwrap().to_owned()
        };
        let (source, destination) = (actor("source"), actor("destination"));
        Workspace { id, source, destination }
    }

    /// A connection that syncs once, at this time; a little later if that has come.
    fn connect(&self, api: &mut Api, moment: &Moment) -> String {
        let later = (moment.time < SystemTime::now() + LATER).then(|| Moment::new(2 * LATER));
        let cron = &later.as_ref().unwrap_or(moment).cron;
        let body = json!({ "sourceId": self.source, "destinationId": self.destination, "name": "c",
            "schedule": { "scheduleType": "cron", "cronExpression": cron } });
        api.ask("POST", "/connections", &body)["connectionId"].as_str().unwrap().to_owned()
    }
}

/// A time and no other, as Quartz says it.
struct Moment {
    time: SystemTime,
    cron: String,
}

impl Moment {
    fn new(from_now: Duration) -> Moment {
        let time = SystemTime::now() + from_now;
        let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut command = Command::new("date");
        command.args(["-u", "-d", &format!("@{seconds}"), "+%-S %-M %-H %-d %-m ? %Y"]);
        let cron = String::from_utf8(command.output().unwrap().stdout).unwrap();
        Moment { time, cron: cron.trim().to_owned() }
    }
}
