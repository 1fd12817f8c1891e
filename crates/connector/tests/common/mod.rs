//! Attempts with the connectors of `tests/airbyte/connectors`.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by several tests")]

use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_connector::attempt::{Attempt, Connector, Steps, run};
use windlass_connector::process::{Command, Helper, Side, sweep};
use windlass_connector::protocol::catalog::Mapping;
use windlass_connector::{
    Cancel, Commit, Journal, JournalError, Level, Limits, Observer, Status, Summary,
};

/// The Python of the system, which starts faster than a wrapper of it.
pub fn python() -> String {
    let system = "/usr/bin/python3";
    if Path::new(system).exists() { system.to_owned() } else { "python3".to_owned() }
}

pub fn connectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/airbyte/connectors")
}

/// One of our own connectors.
pub fn connector(script: &str, config: Value) -> Connector {
    let script = connectors().join(script).canonicalize().unwrap();
    let words = vec![python(), "-S".to_owned(), script.to_str().unwrap().to_owned()];
    Connector { command: Command::local(words), config }
}

pub fn helper() -> Helper {
    Helper { program: env!("CARGO_BIN_EXE_windlass-connector-helper").into(), words: Vec::new() }
}

/// A catalog of streams, all with the key `id`.
pub fn catalog(streams: &[&str], sync: &str, destination: &str) -> Value {
    let streams = streams.iter().map(|name| {
        json!({"stream": {"name": name, "is_resumable": true, "json_schema":
            {"type": "object", "properties": {"id": {"type": "integer"}, "text": {"type": "string"}}},
            "supported_sync_modes": ["full_refresh", "incremental"]},
            "sync_mode": sync, "destination_sync_mode": destination, "primary_key": [["id"]],
            "cursor_field": ["id"]})
    });
    json!({ "streams": streams.collect::<Vec<_>>() })
}

/// Remembers everything.
#[derive(Default)]
pub struct Memory {
    pub commits: Mutex<Vec<Commit>>,
    pub configurations: Mutex<Vec<(Side, String)>>,
    pub log: Mutex<Vec<(Option<Side>, Level, String)>>,
    pub fails: bool,
}

impl Memory {
    pub fn last(&self) -> Commit {
        self.commits.lock().unwrap().last().cloned().unwrap_or_default()
    }

    /// Whether something in the log has this in it.
    pub fn logged(&self, part: &str) -> usize {
        self.log.lock().unwrap().iter().filter(|(_, _, text)| text.contains(part)).count()
    }
}

impl Journal for Memory {
    fn commit(&self, commit: &Commit) -> Result<(), JournalError> {
        if self.fails {
            return Err(JournalError { message: "the disk is full".to_owned() });
        }
        self.commits.lock().unwrap().push(commit.clone());
        Ok(())
    }

    fn configuration(&self, side: Side, config: &str) -> Result<(), JournalError> {
        self.configurations.lock().unwrap().push((side, config.to_owned()));
        Ok(())
    }
}

impl Observer for Memory {
    fn log(&self, side: Option<Side>, level: Level, text: &str) {
        self.log.lock().unwrap().push((side, level, text.to_owned()));
    }
}

/// A source and a destination with their configurations, and what else a test changes.
pub struct Case {
    pub folder: tempfile::TempDir,
    pub source: Option<Connector>,
    pub destination: Connector,
    pub catalog: Value,
    pub mapping: Mapping,
    pub selected: Vec<(windlass_connector::protocol::message::Descriptor, Vec<String>)>,
    pub state: Vec<Arc<str>>,
    pub steps: Steps,
    pub limits: Limits,
    pub memory: Memory,
    pub cancel: Cancel,
}

impl Case {
    /// Records of one stream `a` are appended.
    pub fn new(source: Value, mut destination: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        destination["path"] = json!(folder.path().join("out.db"));
        let limits = Limits {
            exit_grace: Duration::from_millis(1_000),
            leftover_grace: Duration::from_millis(200),
            ..Limits::default()
        };
        Self {
            folder,
            source: Some(connector("source.py", source)),
            destination: connector("destination.py", destination),
            catalog: catalog(&["a"], "incremental", "append"),
            mapping: Mapping::default(),
            selected: Vec::new(),
            state: Vec::new(),
            steps: Steps::default(),
            limits,
            memory: Memory::default(),
            cancel: Cancel::new(),
        }
    }

    /// One attempt, of which nothing is left.
    pub fn run(&self) -> Summary {
        let summary = self.attempt();
        assert_eq!(summary.status == Status::Completed, summary.failures.is_empty(), "{summary:?}");
        summary
    }

    /// The same, whatever it says.
    pub fn attempt(&self) -> Summary {
        let name = format!("test-{}-{}", std::process::id(), fastrand::u64(..));
        let attempt = Attempt {
            name: name.clone(),
            folder: self.folder.path().join("attempt"),
            helper: helper(),
            source: self.source.clone(),
            destination: self.destination.clone(),
            catalog: self.catalog.clone(),
            discovered: None,
            selected: self.selected.clone(),
            mapping: self.mapping.clone(),
            state: self.state.clone(),
            steps: self.steps,
            limits: self.limits.clone(),
        };
        let summary = run(attempt, &self.memory, &self.memory, &self.cancel);
        assert_eq!(sweep::find(&name, None).unwrap(), Vec::<i32>::new(), "nothing is left");
        assert!(!self.folder.path().join("attempt/source/config.json").exists());
        summary
    }

    /// What a query of the destination says, in JSON.
    pub fn query(&self, sql: &str) -> Value {
        query(&self.folder.path().join("out.db"), sql)
    }

    pub fn rows(&self) -> u64 {
        self.query("SELECT count(*) FROM rows")[0][0].as_u64().unwrap()
    }
}

pub fn query(path: &Path, sql: &str) -> Value {
    let script = "import json, sqlite3, sys\n\
                  print(json.dumps(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall()))";
    let output =
        Program::new(python()).args(["-S", "-c", script]).arg(path).arg(sql).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Why it failed, first of all.
pub fn first_message(summary: &Summary) -> String {
    summary.failures.first().map(|failure| failure.external_message.clone()).unwrap_or_default()
}
