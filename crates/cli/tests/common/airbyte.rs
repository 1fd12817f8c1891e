//! The API of a server, as far as tests of launches need it.

use std::path::{Path, PathBuf};
use std::process::Command;
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

    /// A client of the file of clients.
    pub(crate) fn of_client(address: &str, id: &str, secret: &str) -> Api {
        let body = json!({ "client_id": id, "client_secret": secret });
        let token = Api::new(address).ask("POST", "/applications/token", &body);
        Api(Http::new(address).with_token(token["access_token"].as_str().unwrap()))
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
        let definition = json!({ "name": "own", "launch": own("destination") });
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

    /// Asks for what is refused.
    #[track_caller]
    pub(crate) fn refused(&mut self, path: &str, body: &Value, status: u16) {
        let answer = self.0.ask("POST", &format!("/public/v1{path}"), &body.to_string());
        answer.unwrap().expect_status(status);
    }

    /// Cancels a job, unless it has ended.
    #[track_caller]
    pub(crate) fn cancel(&mut self, job: u64) {
        let path = format!("/public/v1/jobs/{job}");
        let (_, answer) = self.0.insist("DELETE", &path, "", PATIENCE);
        assert!([200, 409].contains(&answer.status), "{}", answer.text());
    }

    /// The job when it has ended.
    #[track_caller]
    pub(crate) fn ended(&mut self, job: u64) -> Value {
        let mut shown = Value::Null;
        wait_until("the job ends", || {
            shown = self.job(job);
            ["succeeded", "failed", "cancelled"].iter().any(|end| shown["status"] == **end)
        });
        shown
    }

    /// Waits until it has ended, and that is how.
    #[track_caller]
    pub(crate) fn ends(&mut self, job: u64, status: &str) {
        assert_eq!(self.ended(job)["status"], status);
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

/// The launch of our own source or destination.
pub(crate) fn own(side: &str) -> Value {
    let script = connectors().join(format!("{side}.py"));
    json!({ "kind": "command", "command": [python(), "-S", script] })
}

/// The rows of our own destination.
pub(crate) fn rows(database: &Path) -> u64 {
    arrived(database).0
}

/// The same, and how many different ids they have.
pub(crate) fn arrived(database: &Path) -> (u64, u64) {
    const SCRIPT: &str = "import sqlite3, sys\n\
        print(*sqlite3.connect(sys.argv[1])\
        .execute('SELECT COUNT(*), COUNT(DISTINCT id) FROM rows').fetchone())";
    let mut command = Command::new(python());
    let output = command.args(["-S", "-c", SCRIPT]).arg(database).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (rows, ids) = text.trim().split_once(' ').unwrap();
    (rows.parse().unwrap(), ids.parse().unwrap())
}

/// Processes whose command line is as wanted.
pub(crate) fn processes(is_wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if is_wanted(&String::from_utf8_lossy(&words).replace('\0', " ")) {
            found.push(id);
        }
    }
    found
}

/// SIGKILL.
pub(crate) fn kill(processes: &[u32]) {
    let ids = processes.iter().map(ToString::to_string);
    assert!(Command::new("kill").arg("-9").args(ids).status().unwrap().success());
}
