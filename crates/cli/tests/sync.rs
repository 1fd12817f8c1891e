//! `windlass connector` and `windlass sync` as people and programs use them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, value: &Value) -> String {
        std::fs::write(self.path(name), value.to_string()).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(words).env("WINDLASS_DATA_DIR", self.path("data"));
        command.output().unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Our own source and destination under names.
    fn with_connectors() -> Place {
        let place = Place::new();
        for (name, script) in [("source-own", "source.py"), ("destination-own", "destination.py")] {
            let added = place.json(&["connector", "add", name, "--command", &command(script)]);
            assert_eq!(added["name"], name);
        }
        place
    }

    fn sync(&self, source: &Value, more: &[&str]) -> Output {
        let from = self.file("source.json", source);
        let to = self.file("destination.json", &json!({"path": self.path("out.db")}));
        let words = [
            "sync",
            "run",
            "--json",
            "--source",
            "source-own",
            "--source-config",
            &from,
            "--destination",
            "destination-own",
            "--destination-config",
            &to,
        ];
        self.run(&[&words, more].concat())
    }

    fn rows(&self) -> u64 {
        const SCRIPT: &str = "import sqlite3, sys\n\
            print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM rows').fetchone()[0])";
        let path = self.path("out.db");
        let output = Command::new(python()).args(["-S", "-c", SCRIPT]).arg(path).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }
}

fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}

fn command(script: &str) -> String {
    let connectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/airbyte/connectors");
    format!("{} -S '{}'", python(), connectors.join(script).canonicalize().unwrap().display())
}

fn summary(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

#[test]
fn connectors_are_named_listed_and_asked() {
    let place = Place::with_connectors();
    let list = place.json(&["connector", "list"]);
    assert_eq!(list["connectors"].as_array().unwrap().len(), 2);
    let spec = place.json(&["connector", "spec", "destination-own"]);
    assert_eq!(spec["supported_destination_sync_modes"][0], "append");
    let good = place.file("good.json", &json!({"streams": ["a", "b"]}));
    let bad = place.file("bad.json", &json!({"check": "failed"}));
    assert_eq!(
        place.json(&["connector", "check", "source-own", "--config", &good])["status"],
        "SUCCEEDED"
    );
    let streams = place.json(&["connector", "discover", "source-own", "--config", &good]);
    assert_eq!(streams["streams"].as_array().unwrap().len(), 2);
    let failed = place.run(&["connector", "check", "source-own", "--config", &bad]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("the password is wrong"));
    let unknown = place.run(&["connector", "spec", "source-nobody"]);
    assert_eq!(unknown.status.code(), Some(4));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("windlass connector add source-nobody")
    );
    let strange = place.run(&["connector", "add", "../x", "--command", "true"]);
    assert_eq!(strange.status.code(), Some(1));
    assert_eq!(place.run(&["connector", "spec"]).status.code(), Some(2));
}

/// A sync, what is new since, nothing new, a full refresh, a clear.
#[test]
fn syncs_go_on_where_the_last_one_ended() {
    let place = Place::with_connectors();
    let all = |count: u64| json!({"count": count, "state_every": 10});
    let first = summary(&place.sync(&all(100), &[]));
    assert_eq!((&first["status"], &first["recordsCommitted"]), (&json!("completed"), &json!(100)));
    let more = summary(&place.sync(&all(130), &[]));
    assert_eq!((&more["sync"], &more["recordsCommitted"]), (&json!(2), &json!(30)));
    let nothing = summary(&place.sync(&all(130), &[]));
    assert_eq!(nothing["recordsEmitted"], 0);
    assert_eq!(nothing["state"][0]["stream"]["stream_state"]["cursor"], 130);
    assert_eq!(place.rows(), 130);
    let cleared = summary(&place.sync(&all(130), &["--clear"]));
    assert_eq!(cleared["state"], json!([]));
    assert_eq!(place.rows(), 0);
    let again = summary(&place.sync(&all(50), &["--full-refresh", "--name", "full"]));
    assert_eq!(again["recordsCommitted"], 50);
    assert_eq!(place.rows(), 50);
}

#[test]
fn a_sync_that_failed_goes_on_and_says_why() {
    let place = Place::with_connectors();
    let failed =
        place.sync(&json!({"mode": "exit_with", "code": 137, "count": 45, "state_every": 10}), &[]);
    assert_eq!(failed.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&failed.stderr).unwrap();
    assert!(said["error"]["message"].as_str().unwrap().contains("out of memory"), "{said}");
    assert!(said["error"]["hint"].as_str().unwrap().contains("goes on"), "{said}");
    assert_eq!(summary(&failed)["recordsCommitted"], 40);
    let rest = summary(&place.sync(&json!({"count": 100, "state_every": 10}), &[]));
    assert_eq!((&rest["attempt"], &rest["recordsCommitted"]), (&json!(1), &json!(60)));
    assert_eq!(rest["earlier"][0]["recordsCommitted"], 40);
    let names: Vec<&str> =
        rest["steps"].as_array().unwrap().iter().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!(names, ["check source", "check destination", "replicate"]);
}

/// A token that the source rotated is used in the next sync, as long as nobody gives another one.
#[test]
fn a_rotated_token_is_used_from_then_on() {
    let place = Place::with_connectors();
    let config = json!({"mode": "control", "count": 10});
    assert!(place.sync(&config, &[]).status.success());
    let book = || -> Value {
        let path = place.path("data/syncs/source-own-to-destination-own/journal.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    assert_eq!(book()["sourceConfig"]["now"]["token"], "rotated");
    assert_eq!(book()["sourceConfig"]["given"], config);
    assert!(place.sync(&config, &[]).status.success());
    // The source was given the new one, and made another of it.
    assert_eq!(book()["sourceConfig"]["given"], config);
    // Also one that it rotates before it reads, and needs then.
    let place = Place::with_connectors();
    let config = json!({"rotates": true, "count": 10});
    assert_eq!(summary(&place.sync(&config, &[]))["status"], "completed");
    let path = place.path("data/syncs/source-own-to-destination-own/journal.json");
    let book: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(book["sourceConfig"]["now"]["token"], "rotated");
}

/// It is another piece of work: it does not go on with the sync that failed.
#[test]
fn a_clear_after_a_sync_that_failed_clears() {
    let place = Place::with_connectors();
    let broken = json!({"mode": "exit_with", "code": 1, "count": 45, "state_every": 10});
    assert_eq!(summary(&place.sync(&broken, &[]))["recordsCommitted"], 40);
    assert!(place.rows() > 0);
    let cleared = summary(&place.sync(&broken, &["--clear"]));
    assert_eq!((&cleared["status"], &cleared["state"]), (&json!("completed"), &json!([])));
    assert_eq!(place.rows(), 0);
}

/// SIGTERM cancels: connectors are ended, the summary says so, what was committed stays.
#[test]
fn a_signal_cancels() {
    let place = Place::with_connectors();
    let from = place.file("source.json", &json!({"mode": "hang", "count": 10}));
    let to = place.file("destination.json", &json!({"path": place.path("out.db")}));
    let child = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["sync", "run", "--json", "--name", "x", "--source", "source-own"])
        .args(["--source-config", &from, "--destination", "destination-own"])
        .args(["--destination-config", &to])
        .env("WINDLASS_DATA_DIR", place.path("data"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let book = || -> Value {
        let text = std::fs::read(place.path("data/syncs/x/journal.json"));
        text.map_or(Value::Null, |text| serde_json::from_slice(&text).unwrap())
    };
    let began = std::time::Instant::now();
    while book()["streams"][0]["recordsCommitted"] != 10 {
        assert!(began.elapsed() < std::time::Duration::from_secs(60), "nothing is committed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let term = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(term.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let summary = summary(&output);
    assert_eq!(
        (&summary["status"], &summary["recordsCommitted"]),
        (&json!("cancelled"), &json!(10))
    );
    assert_eq!(summary["failures"][0]["failureType"], "manual_cancellation");
    let attempt = book()["attemptName"].as_str().unwrap().to_owned();
    assert!(windlass_connector::process::sweep::find(&attempt, None).unwrap().is_empty());
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let place = Place::with_connectors();
    let missing = place.sync(&json!({}), &["--stream", "nobody"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("the source has no stream nobody"));
    let name = place.sync(&json!({}), &["--name", "../x"]);
    assert!(String::from_utf8_lossy(&name.stderr).contains("is no name of a sync"));
    let broken = place.path("broken.json");
    std::fs::write(&broken, "{").unwrap();
    let catalog = place.sync(&json!({}), &["--catalog", broken.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&catalog.stderr).contains("is no JSON"));
    let state = place.file("state.json", &json!({"a": 1}));
    let state = place.sync(&json!({}), &["--state", &state]);
    assert!(String::from_utf8_lossy(&state.stderr).contains("no array of states"));
}
