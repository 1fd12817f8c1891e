//! kill -9 of the runner, the source or the destination at random moments of `windlass sync run`, again and again
//! until it is through: every record is in the destination, exactly once where it is deduplicated, and what is
//! called committed is never more than what is there.
//!
//! `SYNCS=100 cargo test -p windlass-cli --test kill_sync` does more of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_connector::Side;
use windlass_connector::process::sweep;

/// Syncs without `SYNCS`.
const SYNCS: u32 = 12;
/// Kills in one sync; then it may run to its end.
const KILLS_MAX: u32 = 4;
const RECORDS: u64 = 4_000;
const PATIENCE: Duration = Duration::from_secs(60);

struct Sync {
    folder: tempfile::TempDir,
    mode: &'static str,
}

impl Sync {
    fn new(mode: &'static str) -> Sync {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, value: Value| {
            std::fs::write(folder.path().join(name), value.to_string()).unwrap();
        };
        write(
            "source.json",
            json!({"count": RECORDS, "state_every": 100, "pad": 300, "pause_s": 0.01}),
        );
        write("destination.json", json!({"path": folder.path().join("out.db"), "delay_s": 0.003}));
        let stream = |name: &str| {
            json!({"stream": {"name": name, "json_schema": {}}, "sync_mode": "incremental",
                   "destination_sync_mode": mode, "primary_key": [["id"]]})
        };
        write("catalog.json", json!({"streams": [stream("a"), stream("b")]}));
        Sync { folder, mode }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self) -> Child {
        let connectors =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/airbyte/connectors");
        let command = |script: &str| {
            format!("{} -S {}", python(), connectors.join(script).canonicalize().unwrap().display())
        };
        Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["sync", "run", "--json", "--name", "kill", "--source-command"])
            .arg(command("source.py"))
            .arg("--destination-command")
            .arg(command("destination.py"))
            .arg("--source-config")
            .arg(self.path("source.json"))
            .arg("--destination-config")
            .arg(self.path("destination.json"))
            .arg("--catalog")
            .arg(self.path("catalog.json"))
            .arg("--data-dir")
            .arg(self.path("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn book(&self) -> Value {
        let text = std::fs::read(self.path("data/syncs/kill/journal.json"));
        text.map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap())
    }

    fn attempt(&self) -> String {
        self.book()["attemptName"].as_str().unwrap_or_default().to_owned()
    }

    /// What is called committed, of all attempts of the sync.
    fn committed(&self) -> u64 {
        let book = self.book();
        let lists =
            ["earlier", "streams"].map(|list| book[list].as_array().cloned().unwrap_or_default());
        lists.iter().flatten().filter_map(|stream| stream["recordsCommitted"].as_u64()).sum()
    }

    /// Rows, and different ones.
    fn rows(&self) -> (u64, u64) {
        let script = "import sqlite3, sys\n\
            d = sqlite3.connect(sys.argv[1])\n\
            t = d.execute(\"SELECT count(*) FROM sqlite_master WHERE name = 'rows'\").fetchone()[0]\n\
            q = \"SELECT count(*), count(DISTINCT stream || '/' || id) FROM rows\"\n\
            print(*(d.execute(q).fetchone() if t else (0, 0)))";
        let path = self.path("out.db");
        let output = Command::new(python()).args(["-S", "-c", script]).arg(path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let (all, different) = text.trim().split_once(' ').unwrap();
        (all.parse().unwrap(), different.parse().unwrap())
    }

    /// Waits until no process of the attempt is left: its guard sees to that.
    fn wait_for_guard(&self) {
        let (attempt, began) = (self.attempt(), Instant::now());
        while !attempt.is_empty() && !sweep::find(&attempt, None).expect("processes").is_empty() {
            assert!(began.elapsed() < PATIENCE, "connectors outlive their runner");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}

fn kill(pid: i32) {
    // Gone already is as good.
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
}

/// Kills one of the three; the runner's group is not the connectors'.
fn kill_one(sync: &Sync, child: &mut Child, random: &mut fastrand::Rng) -> &'static str {
    let side = match random.u8(..3) {
        0 => {
            child.kill().unwrap();
            return "runner";
        }
        1 => Side::Source,
        _ => Side::Destination,
    };
    sweep::find(&sync.attempt(), Some(side)).expect("processes").into_iter().for_each(kill);
    side.name()
}

#[test]
fn nothing_is_lost_and_nothing_is_called_committed_that_is_not_there() {
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| fastrand::u64(..));
    let syncs = std::env::var("SYNCS").ok().and_then(|text| text.parse().ok()).unwrap_or(SYNCS);
    println!("SEED={seed} SYNCS={syncs} cargo test -p windlass-cli --test kill_sync");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut kills, mut attempts) = (Vec::new(), 0);
    for number in 0..syncs {
        let sync = Sync::new(if number % 2 == 0 { "append" } else { "append_dedup" });
        let mut left = random.u32(1..=KILLS_MAX);
        loop {
            let mut child = sync.start();
            attempts += 1;
            if left > 0 {
                left -= 1;
                std::thread::sleep(Duration::from_millis(random.u64(20..900)));
                kills.push(kill_one(&sync, &mut child, &mut random));
            }
            let output = child.wait_with_output().unwrap();
            sync.wait_for_guard();
            let (rows, different) = sync.rows();
            let there = if sync.mode == "append" { rows } else { different };
            // A deduplicated record that was sent again is there once, and committed once: the attempt that
            // sent it first had not committed it.
            let committed = sync.committed();
            let log = std::fs::read_to_string(sync.path("data/syncs/kill/sync.log"));
            assert!(
                committed <= there,
                "{committed} committed, {there} there, killed {kills:?}: {}\n{}",
                sync.book(),
                log.unwrap_or_default(),
            );
            if output.status.success() {
                let summary = serde_json::from_slice::<Value>(&output.stdout).unwrap();
                assert_eq!(summary["status"], "completed");
                break;
            }
            // It was killed when all was done and written down.
            if sync.book()["isFinished"] == true {
                break;
            }
            assert!(output.status.code() != Some(2), "the command line is wrong");
        }
        let (rows, different) = sync.rows();
        assert_eq!(different, 2 * RECORDS, "every record is there");
        if sync.mode == "append_dedup" {
            assert_eq!(rows, 2 * RECORDS, "once");
        }
        assert_eq!(sync.committed(), 2 * RECORDS, "{}", sync.book());
    }
    println!("{attempts} attempts of {syncs} syncs, killed: {kills:?}");
}

/// A runner is killed and started again at once: the new attempt's connectors start when none of the old one's is
/// left.
#[test]
fn two_attempts_never_run_at_once() {
    let sync = Sync::new("append");
    let mut child = sync.start();
    let began = Instant::now();
    while sweep::find(&sync.attempt(), Some(Side::Destination)).expect("processes").is_empty() {
        assert!(began.elapsed() < PATIENCE, "no destination was started");
        std::thread::sleep(Duration::from_millis(2));
    }
    let old = sync.attempt();
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = sync.start();
    let mut overlapped = 0;
    let status = loop {
        let new = sync.attempt();
        if new != old && !sweep::find(&new, None).expect("processes").is_empty() {
            overlapped += sweep::find(&old, None).expect("processes").len();
        }
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(status.success());
    assert_eq!(overlapped, 0);
    assert_ne!(sync.attempt(), old);
}
