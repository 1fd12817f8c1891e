//! The API of a server, as far as tests of launches need it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::Http;

/// Longer than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const WORKSPACE: &str = "00000000-0000-4000-8000-000000000001";

pub(crate) struct Api(Http);

impl Api {
    pub(crate) fn new(address: &str) -> Api {
        Api(Http::new(address))
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/public/v1{path}");
        let (_, answer) = self.0.insist(method, &path, &body, PATIENCE);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.text());
        if answer.text().is_empty() { Value::Null } else { answer.json() }
    }

    /// A definition, and a source or destination of it.
    pub(crate) fn actor(
        &mut self,
        side: &str,
        definition: &Value,
        configuration: &Value,
    ) -> String {
        let path = format!("/workspaces/{WORKSPACE}/definitions/{side}s");
        let made = self.ask("POST", &path, definition);
        let body = json!({ "name": side, "workspaceId": WORKSPACE, "definitionId": made["id"],
            "configuration": configuration });
        let made = self.ask("POST", &format!("/{side}s"), &body);
        made[format!("{side}Id")].as_str().unwrap().to_owned()
    }

    /// Our own destination, as a command.
    pub(crate) fn destination(&mut self, rows: &Path) -> String {
        let script = connectors().join("destination.py");
        let definition = json!({ "name": "own", "launch": { "kind": "command",
            "command": [python(), "-S", script] } });
        self.actor("destination", &definition, &json!({ "path": rows }))
    }

    /// The stream `a`, incremental.
    pub(crate) fn connect(&mut self, source: &str, destination: &str) -> String {
        let body = json!({ "sourceId": source, "destinationId": destination, "name": "c",
            "configurations": { "streams": [{ "name": "a", "syncMode": "incremental_append" }] } });
        self.ask("POST", "/connections", &body)["connectionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn sync(&mut self, connection: &str) -> u64 {
        let body = json!({ "connectionId": connection, "jobType": "sync" });
        self.ask("POST", "/jobs", &body)["jobId"].as_u64().unwrap()
    }

    pub(crate) fn job(&mut self, job: u64) -> Value {
        self.ask("GET", &format!("/jobs/{job}"), &Value::Null)
    }

    /// Waits until it has ended, and that is how.
    #[track_caller]
    pub(crate) fn ends(&mut self, job: u64, status: &str) {
        let ends = ["succeeded", "failed", "cancelled"];
        let mut last = String::new();
        wait_until("the job ends", || {
            self.job(job)["status"].as_str().unwrap().clone_into(&mut last);
            ends.contains(&last.as_str())
        });
        assert_eq!(last, status);
    }
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn connectors() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/airbyte/connectors");
    folder.canonicalize().unwrap()
}

pub(crate) fn python() -> &'static str {
    if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" }
}

/// The rows of our own destination.
pub(crate) fn rows(database: &Path) -> u64 {
    const SCRIPT: &str = "import sqlite3, sys\n\
        print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM rows').fetchone()[0])";
    let mut command = std::process::Command::new(python());
    let output = command.args(["-S", "-c", SCRIPT]).arg(database).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}
