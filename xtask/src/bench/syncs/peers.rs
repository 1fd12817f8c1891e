//! PyAirbyte and Meltano on the same sources, each in virtual environments of its own below the workplace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::connectors::{INSTALL_MAX, RUN_MAX, Source, clear, write_json};
use super::timed;
use crate::bench::failure::{Context, Failure, Result};
use crate::bench::peer::Workplace;
use crate::bench::server;

/// Their names among the systems.
pub(crate) const PYAIRBYTE: &str = "pyairbyte";
pub(crate) const MELTANO: &str = "meltano";

/// A peer that is installed.
pub(super) trait Runs {
    fn version(&self) -> String;
    /// What is run, in words.
    fn words(&self) -> &'static str;
    /// One run with nothing left of the one before: the seconds it took.
    fn run(&self, source: &Source) -> Result<f64>;
}

/// The library that Airbyte has for syncs without a platform.
pub(super) struct PyAirbyte {
    python: PathBuf,
    script: PathBuf,
}

impl PyAirbyte {
    pub(super) fn set_up(workplace: &Workplace) -> Result<Box<dyn Runs>> {
        let venv = venv(workplace, PYAIRBYTE, &[11, 10], &["airbyte==0.71.3"])?;
        let script = venv.join("bench_read.py");
        fs::write(&script, include_str!("read.py")).context("write PyAirbyte's script")?;
        Ok(Box::new(Self { python: venv.join("bin/python"), script }))
    }
}

impl Runs for PyAirbyte {
    fn version(&self) -> String {
        said(Command::new(&self.python).args(["-m", "pip", "show", "airbyte"]), "Version: ")
    }

    fn words(&self) -> &'static str {
        "a process of Python that imports airbyte and reads the installed source into the default \
         cache (DuckDB); wall time of the process"
    }

    fn run(&self, source: &Source) -> Result<f64> {
        // The default cache is below the folder that it is started in.
        let folder = source.folder.join(PYAIRBYTE);
        clear(&folder)?;
        fs::create_dir_all(&folder).context("create PyAirbyte's folder")?;
        let mut command = timed::command(&self.python);
        command.arg(&self.script).arg(source.kind.name).arg(&source.program);
        command.arg(&source.config).arg(source.kind.stream).current_dir(&folder);
        command.env("AIRBYTE_OFFLINE_MODE", "1").env("DO_NOT_TRACK", "1");
        command.env("AIRBYTE_LOGGING_ROOT", &folder);
        let ran = timed::run(command, &folder, RUN_MAX)?;
        let figures =
            ran.stdout.lines().rev().find_map(|line| {
                serde_json::from_str::<Value>(line).ok()?.get("records")?.as_u64()
            });
        source.expect(figures.unwrap_or(0), "its cache has")?;
        Ok(ran.wall_s)
    }
}

/// Meltano, with the tap that runs Airbyte's sources.
pub(super) struct Meltano {
    meltano: PathBuf,
    tap: PathBuf,
    target: PathBuf,
}

impl Meltano {
    pub(super) fn set_up(workplace: &Workplace) -> Result<Box<dyn Runs>> {
        // Both are older than a setuptools without `pkg_resources`.
        let old = "setuptools<81";
        let meltano = venv(workplace, MELTANO, &[11, 10, 12], &["meltano==4.4.1"])?;
        let tap = venv(workplace, "tap-airbyte", &[10], &["tap-airbyte==0.0.2", old])?;
        let target = venv(workplace, "target-jsonl", &[10, 11], &["target-jsonl==0.1.4", old])?;
        let script = tap.join("bench_tap.py");
        fs::write(&script, include_str!("tap.py")).context("write the tap's script")?;
        let program = tap.join("bench_tap");
        let line = format!(
            "#!/bin/sh\nexec '{}' '{}' \"$@\"\n",
            tap.join("bin/python").display(),
            script.display()
        );
        fs::write(&program, line).context("write the tap's program")?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .context("make the tap's program one")?;
        let target = target.join("bin/target-jsonl");
        Ok(Box::new(Self { meltano: meltano.join("bin/meltano"), tap: program, target }))
    }

    fn command(&self, project: &Path) -> Command {
        let mut command = timed::command(&self.meltano);
        command.current_dir(project).env("MELTANO_SEND_ANONYMOUS_USAGE_STATS", "false");
        command
    }

    /// A project with one tap and one target.
    fn project(&self, source: &Source, project: &Path, output: &Path) -> Result<()> {
        let config = fs::read(&source.config).context("read the source's configuration")?;
        let config: Value = serde_json::from_slice(&config).context("parse a configuration")?;
        let project_file = json!({
            "version": 1,
            "default_environment": "bench",
            "environments": [{ "name": "bench" }],
            "project_id": "windlass-bench",
            "send_anonymous_usage_stats": false,
            "plugins": {
                "extractors": [{
                    "name": "tap-airbyte",
                    "namespace": "tap_airbyte",
                    "executable": self.tap,
                    "capabilities": ["catalog", "discover"],
                    "config": { "airbyte_config": config },
                    "select": [format!("{}.*", source.kind.stream)],
                }],
                "loaders": [{
                    "name": "target-jsonl",
                    "namespace": "target_jsonl",
                    "executable": self.target,
                    "config": { "destination_path": output, "do_timestamp_file": false },
                }],
            },
        });
        // JSON is YAML.
        write_json(&project.join("meltano.yml"), &project_file)
    }
}

impl Runs for Meltano {
    fn version(&self) -> String {
        said(Command::new(&self.meltano).arg("--version"), "meltano, version ")
    }

    fn words(&self) -> &'static str {
        "`meltano run tap-airbyte target-jsonl`: tap-airbyte 0.0.2 of PyPI starts the installed source \
         in the place of its container, without the source's states, which that release cannot read; \
         target-jsonl 0.1.4 writes a file; the project's own database was made before"
    }

    fn run(&self, source: &Source) -> Result<f64> {
        let project = source.folder.join(MELTANO);
        let output = project.join("output");
        clear(&project)?;
        fs::create_dir_all(&output).context("create Meltano's folder")?;
        self.project(source, &project, &output)?;
        let mut first = self.command(&project);
        first.args(["state", "list"]);
        timed::run(first, &project, RUN_MAX).context("prepare the project")?;
        let mut command = self.command(&project);
        command.args(["run", "tap-airbyte", "target-jsonl"]);
        command.env("BENCH_SOURCE", &source.program);
        let ran = timed::run(command, &project, RUN_MAX)?;
        let written = output.join(format!("{}.jsonl", source.kind.stream));
        let written = fs::read(&written).context("read what the target wrote")?;
        let lines = written.iter().filter(|byte| **byte == b'\n').count();
        source.expect(lines as u64, "the target wrote")?;
        Ok(ran.wall_s)
    }
}

/// A virtual environment with these packages, of the first Python 3 of these minor versions there is.
fn venv(workplace: &Workplace, name: &str, minors: &[u32], packages: &[&str]) -> Result<PathBuf> {
    let place = fs::canonicalize(workplace.root()).context("find the workplace")?;
    let folder = place.join("python").join(name);
    let (mark, wanted) = (folder.join("installed"), packages.join("\n"));
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    let python = minors.iter().find_map(|minor| python(*minor));
    let python = python.ok_or_else(|| {
        let names: Vec<String> = minors.iter().map(|minor| format!("3.{minor}")).collect();
        Failure::new(format!("{name} needs a Python {}, and there is none", names.join(" or ")))
    })?;
    eprintln!("bench: installing {} with pip", packages.join(" "));
    clear(&folder)?;
    fs::create_dir_all(&folder).context(format!("create {}", folder.display()))?;
    let mut make = timed::command(&python);
    make.args(["-m", "venv"]).arg(&folder);
    timed::run(make, &folder, INSTALL_MAX).context(format!("make an environment for {name}"))?;
    let mut pip = timed::command(&folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
    timed::run(pip, &folder, INSTALL_MAX).context(format!("install {name}"))?;
    fs::write(&mark, wanted).context("mark an environment as installed")?;
    Ok(folder)
}

/// On the path, or where pyenv keeps its own.
fn python(minor: u32) -> Option<PathBuf> {
    let name = format!("python3.{minor}");
    let pyenv = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv")))?;
    let kept = fs::read_dir(pyenv.join("versions")).ok().into_iter().flatten().flatten();
    let kept = kept.map(|entry| entry.path().join("bin").join(&name));
    // A shim on the path may be there and not run.
    let runs = |path: &PathBuf| {
        server::run(Command::new(path).args(["-c", "import venv, ensurepip"])).is_ok()
    };
    server::find(&name).into_iter().chain(kept).find(runs)
}

/// The rest of the line that a program says after these words.
fn said(command: &mut Command, before: &str) -> String {
    let words = server::run(command).unwrap_or_default();
    let rest = words.lines().find_map(|line| line.trim().strip_prefix(before));
    rest.unwrap_or("unknown").to_owned()
}
