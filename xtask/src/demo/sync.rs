//! The demo's sync: a real source from PyPI into a destination on the real kit, killed half-way with
//! kill -9, gone on with, and counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::workspace::{root, target};

/// People that the source makes up.
const USERS: u64 = 5_000;
/// Purchases come with them, and a hundred products.
const STREAMS: [&str; 3] = ["users", "products", "purchases"];
/// Between two looks at what it has committed.
const PAUSE: Duration = Duration::from_millis(10);
/// A sync that has committed nothing by then is not killed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Installs the connectors, syncs, kills, syncs on. Where they cannot be installed it says so.
pub(super) fn run(windlass: &Path) -> Result<(), String> {
    println!(
        "\nA sync of real connectors: source-faker from PyPI into SQLite (the first time installs them)"
    );
    let sync = Sync::new(windlass)?;
    let destination = root().join("tests/airbyte/destination_sqlite");
    let installed = sync.call(&["connector", "add", "source-faker"]).and_then(|()| {
        let package = destination.to_string_lossy();
        sync.call(&["connector", "add", "destination-sqlite", "--package", &package])
    });
    if let Err(why) = installed {
        println!("  left out: the connectors cannot be installed here ({why})");
        return Ok(());
    }
    let committed = sync.kill_half_way()?;
    println!("  killed with kill -9 when {committed} records were committed; the same line again:");
    let summary = sync.finish()?;
    let total = |field: &str| summary.get(field).and_then(Value::as_u64).unwrap_or(0);
    println!(
        "  {} records in this attempt, {} committed, state kept for {} streams",
        total("recordsEmitted"),
        total("recordsCommitted"),
        summary.get("state").and_then(Value::as_array).map_or(0, Vec::len)
    );
    sync.count()?;
    println!("  look at it: sqlite3 {}", sync.database().display());
    Ok(())
}

struct Sync<'a> {
    windlass: &'a Path,
    data: PathBuf,
    folder: PathBuf,
}

impl Sync<'_> {
    fn new(windlass: &Path) -> Result<Sync<'_>, String> {
        let target = target();
        let (data, folder) = (target.join("airbyte"), target.join("demo-sync"));
        // Each demo begins anew.
        for old in [folder.clone(), data.join("syncs/demo")] {
            let _ = fs::remove_dir_all(old);
        }
        let sync = Sync { windlass, data, folder };
        fs::create_dir_all(&sync.folder).map_err(|error| error.to_string())?;
        let source =
            json!({ "count": USERS, "seed": 42, "parallelism": 1, "always_updated": true });
        // The destination takes its time, so that there is a half-way.
        let destination = json!({ "path": sync.database(), "delay_ms": 100 });
        for (name, config) in [("source.json", source), ("destination.json", destination)] {
            let written = fs::write(sync.folder.join(name), config.to_string());
            written.map_err(|error| error.to_string())?;
        }
        Ok(sync)
    }

    fn database(&self) -> PathBuf {
        self.folder.join("out.db")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.windlass);
        command.args(words).env("WINDLASS_DATA_DIR", &self.data).current_dir(root());
        command
    }

    fn call(&self, words: &[&str]) -> Result<(), String> {
        let output = self.command(words).stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(said.lines().next().unwrap_or("it did not say why").to_owned())
    }

    fn sync(&self) -> Command {
        let mut command = self.command(&["sync", "run", "--json", "--name", "demo"]);
        for (side, connector) in [("source", "source-faker"), ("destination", "destination-sqlite")]
        {
            command.arg(format!("--{side}")).arg(connector);
            command.arg(format!("--{side}-config")).arg(self.folder.join(format!("{side}.json")));
        }
        command
    }

    /// What the journal of the sync has.
    fn journal(&self) -> Value {
        let text = fs::read(self.data.join("syncs/demo/journal.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Starts it, and kills it when something is committed; says how much.
    fn kill_half_way(&self) -> Result<u64, String> {
        let mut command = self.sync();
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let began = Instant::now();
        while self.journal().get("sequence").and_then(Value::as_u64).unwrap_or(0) < 3 {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("the sync ended before it could be killed: {status}"));
            }
            if began.elapsed() > PATIENCE {
                let _ = child.kill();
                return Err("the sync commits nothing".to_owned());
            }
            sleep(PAUSE);
        }
        child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
        let journal = self.journal();
        let streams = journal.get("streams").and_then(Value::as_array);
        let committed = |stream: &Value| stream.get("recordsCommitted").and_then(Value::as_u64);
        Ok(streams.into_iter().flatten().filter_map(committed).sum())
    }

    fn finish(&self) -> Result<Value, String> {
        let output = self.sync().stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("the sync failed: {}", output.status));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }

    /// Counts rows and keys: each record is there, and once.
    fn count(&self) -> Result<(), String> {
        const QUERY: &str = "import sqlite3, sys\n\
            database = sqlite3.connect(sys.argv[1])\n\
            for name in sys.argv[2:]:\n    \
            print(*database.execute(f'SELECT count(*), count(DISTINCT key) FROM {name}').fetchone())";
        let mut command = Command::new("python3");
        command.args(["-c", QUERY]).arg(self.database()).args(STREAMS);
        let output = command.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut all_there = output.status.success();
        for (name, line) in STREAMS.iter().zip(text.lines()) {
            let (rows, keys) = line.split_once(' ').unwrap_or_default();
            println!("  {name}: {rows} rows, {keys} different keys");
            all_there &=
                rows == keys && rows != "0" && (*name != "users" || *rows == *USERS.to_string());
        }
        if all_there {
            Ok(())
        } else {
            Err("the destination does not have every record once".to_owned())
        }
    }
}
