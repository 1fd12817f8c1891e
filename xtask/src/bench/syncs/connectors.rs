//! The real sources that are measured, the destination they go to, and what is asked of each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::timed;
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::peer::Workplace;
use crate::bench::windlass::Windlass;
use crate::workspace::root;

/// An installation is given up after it.
pub(super) const INSTALL_MAX: Duration = Duration::from_secs(900);
/// So is a run.
pub(super) const RUN_MAX: Duration = Duration::from_secs(300);
/// The tests' own destination, on the real kit.
const DESTINATION: &str = "destination-sqlite";

/// A source of PyPI.
pub(super) struct Kind {
    /// What it is called among the figures.
    pub(super) key: &'static str,
    /// As a connector.
    pub(super) name: &'static str,
    pub(super) stream: &'static str,
    records: u64,
    records_quick: u64,
    config: fn(u64) -> Value,
}

/// The slow one and the fast one.
pub(super) const KINDS: [Kind; 2] = [
    Kind {
        key: "hardcoded_records",
        name: "source-hardcoded-records",
        // Records of 1.7 KB.
        stream: "customers",
        records: 100_000,
        records_quick: 2_000,
        config: |count| json!({ "count": count }),
    },
    Kind {
        key: "faker",
        name: "source-faker",
        stream: "users",
        records: 20_000,
        records_quick: 1_000,
        config: |count| json!({ "count": count, "seed": 42, "parallelism": 1, "always_updated": true }),
    },
];

/// The binary and where its connectors are.
pub(super) struct Connectors {
    windlass: PathBuf,
    data: PathBuf,
}

impl Connectors {
    /// Installs the destination; sources come with [`Connectors::add`].
    pub(super) fn set_up(workplace: &Workplace) -> Result<Self> {
        let windlass = Windlass::built(workplace)?.program().to_owned();
        let place = fs::canonicalize(workplace.root()).context("find the workplace")?;
        let connectors = Self { windlass, data: place.join("airbyte") };
        fs::create_dir_all(&connectors.data).context("create the folder for connectors")?;
        let package = root().join("tests/airbyte/destination_sqlite");
        let package = package.to_string_lossy().into_owned();
        connectors.add(&[DESTINATION, "--package", &package])?;
        Ok(connectors)
    }

    /// Installs what is not there yet.
    pub(super) fn add(&self, words: &[&str]) -> Result<()> {
        if !self.data.join("connectors").join(words.first().unwrap_or(&"")).is_dir() {
            eprintln!("bench: installing {} with pip", words.first().unwrap_or(&""));
        }
        let mut command = self.windlass();
        command.args(["connector", "add"]).args(words);
        timed::run(command, &self.data, INSTALL_MAX)
            .context(format!("install {}", words.join(" ")))
            .map(drop)
    }

    /// Our own command line.
    fn windlass(&self) -> Command {
        let mut command = timed::command(&self.windlass);
        command.env("WINDLASS_DATA_DIR", &self.data).arg("--json");
        command
    }

    /// The program of an installed connector.
    pub(super) fn program(&self, name: &str) -> Result<PathBuf> {
        let path = self.data.join("connectors").join(name).join("manifest.json");
        let manifest = fs::read(&path).context(format!("read {}", path.display()))?;
        let manifest: Value = serde_json::from_slice(&manifest).context("parse a manifest")?;
        let program = manifest["command"][0].as_str();
        program.map(PathBuf::from).ok_or_else(|| Failure::new(format!("{name} has no program")))
    }

    /// Writes what the source is asked for, and reads it once to nowhere: what it sends is counted, and
    /// nobody who comes later finds colder files than the next.
    pub(super) fn prepare(
        &self,
        kind: &'static Kind,
        folder: &Path,
        quick: bool,
    ) -> Result<Source> {
        fs::create_dir_all(folder).context(format!("create {}", folder.display()))?;
        let (config, catalog) = (folder.join("source.json"), folder.join("catalog.json"));
        let count = if quick { kind.records_quick } else { kind.records };
        write_json(&config, &(kind.config)(count))?;
        let mut discover = self.windlass();
        discover.args(["connector", "discover", kind.name, "--config"]).arg(&config);
        let ran = timed::run(discover, folder, RUN_MAX).context("discover")?;
        write_json(&catalog, &configured(&ran.stdout, kind.stream)?)?;
        let program = self.program(kind.name)?;
        let mut read = timed::command(&program);
        read.arg("read").arg("--config").arg(&config).arg("--catalog").arg(&catalog);
        let ran = timed::run(read, folder, RUN_MAX).context("read the source alone")?;
        let is_record = |line: &&str| line.starts_with("{\"type\":\"RECORD\"");
        let (mut records, mut bytes) = (0, 0);
        for line in ran.stdout.lines().filter(is_record) {
            records += 1;
            bytes += line.len() as u64 + 1;
        }
        if records != count {
            return Err(Failure::new(format!("the source sent {records} of {count} records")));
        }
        let folder = folder.to_owned();
        Ok(Source { kind, program, folder, config, catalog, records, bytes, alone_s: ran.wall_s })
    }

    /// The source through a sync of ours.
    pub(super) fn sync(&self, source: &Source) -> Result<timed::Ran> {
        let name = format!("bench-{}", source.kind.key);
        // Each is the first of its name, with the catalog that the pipe has, too.
        clear(&self.data.join("syncs").join(&name))?;
        let to = self.empty_database(source)?;
        let mut command = self.windlass();
        command.args(["sync", "run", "--name", &name, "--source", source.kind.name]);
        command.arg("--source-config").arg(&source.config).arg("--catalog").arg(&source.catalog);
        command.args(["--destination", DESTINATION, "--destination-config"]).arg(&to);
        let ran = timed::run(command, &source.folder, RUN_MAX).context("sync")?;
        let summary: Value = serde_json::from_str(&ran.stdout).context("parse the summary")?;
        let committed = summary["recordsCommitted"].as_u64().unwrap_or(0);
        source.expect(committed, "the sync committed")?;
        self.expect_in_database(source)?;
        Ok(ran)
    }

    /// The same by a pipe of the shell.
    pub(super) fn pipe(&self, source: &Source) -> Result<timed::Ran> {
        const LINE: &str =
            r#""$1" read --config "$2" --catalog "$3" | "$4" write --config "$5" --catalog "$3""#;
        let to = self.empty_database(source)?;
        let mut command = timed::command(Path::new("sh"));
        command.args(["-c", LINE, "sh"]).arg(&source.program);
        command.arg(&source.config).arg(&source.catalog);
        command.arg(self.program(DESTINATION)?).arg(&to);
        let ran = timed::run(command, &source.folder, RUN_MAX).context("pipe")?;
        self.expect_in_database(source)?;
        Ok(ran)
    }

    /// Takes away what an earlier run wrote, and says which configuration names the place.
    fn empty_database(&self, source: &Source) -> Result<PathBuf> {
        let database = source.database();
        match fs::remove_file(&database) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::new(format!("failed to empty the destination: {error}")));
            }
            Ok(()) | Err(_) => {}
        }
        let config = source.folder.join("destination.json");
        write_json(&config, &json!({ "path": database, "delay_ms": 0 }))?;
        Ok(config)
    }

    fn expect_in_database(&self, source: &Source) -> Result<()> {
        const COUNT: &str = "import sqlite3, sys; \
             print(sqlite3.connect(sys.argv[1]).execute(f'SELECT count(*) FROM {sys.argv[2]}').fetchone()[0])";
        let python = self.program(DESTINATION)?.with_file_name("python");
        let mut count = timed::command(&python);
        count.args(["-c", COUNT]).arg(source.database()).arg(source.kind.stream);
        let ran = timed::run(count, &source.folder, RUN_MAX).context("count what arrived")?;
        source.expect(ran.stdout.trim().parse().unwrap_or(0), "the destination has")
    }
}

/// A source that is ready to be read.
pub(super) struct Source {
    pub(super) kind: &'static Kind,
    pub(super) program: PathBuf,
    /// Its files, and those of whoever reads it.
    pub(super) folder: PathBuf,
    pub(super) config: PathBuf,
    catalog: PathBuf,
    pub(super) records: u64,
    /// Of its lines that are records.
    pub(super) bytes: u64,
    /// What it takes into a file.
    pub(super) alone_s: f64,
}

impl Source {
    /// Every record once, or it was not this source.
    pub(super) fn expect(&self, records: u64, who: &str) -> Result<()> {
        if records == self.records {
            return Ok(());
        }
        Err(Failure::new(format!("{who} {records} of {} records", self.records)))
    }

    fn database(&self) -> PathBuf {
        self.folder.join("out.db")
    }
}

/// Removes a folder, if it is there.
pub(super) fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("failed to remove {}: {error}", folder.display())))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn write_json(path: &Path, value: &Value) -> Result<()> {
    fs::write(path, value.to_string()).context(format!("write {}", path.display()))
}

/// A catalog of one stream, appended.
fn configured(discovered: &str, stream: &str) -> Result<Value> {
    let catalog: Value = serde_json::from_str(discovered).context("parse a catalog")?;
    let streams = catalog["streams"].as_array();
    let found = streams.into_iter().flatten().find(|it| it["name"] == stream);
    let found = found.ok_or_else(|| Failure::new(format!("there is no stream {stream}")))?;
    Ok(json!({ "streams": [{
        "stream": found,
        "sync_mode": "full_refresh",
        "destination_sync_mode": "append",
        "generation_id": 0,
        "minimum_generation_id": 0,
        "sync_id": 1,
    }] }))
}
