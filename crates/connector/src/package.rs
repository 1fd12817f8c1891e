//! Packages of Python, each in an environment of its own: what is asked for, what is there, and how it gets there.
//!
//! `<data>/connectors/<name>/manifest.json` is written last: a folder without one is an installation that was broken
//! off, and is made anew. Names of people (`windlass connector add`) have no `@`; what a job asked for has one, with its
//! version behind it, so that neither ever replaces the other.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use thiserror::Error;

use crate::attempt::cancel::Cancel;
use crate::durable;
use crate::observer::now_ms;
use crate::process::environment;
use crate::process::lock::{Lock, LockError};

/// Versions of Python that current connectors run with, the best one first.
const PYTHONS: &[&str] = &["3.11", "3.10"];
/// Lines of the installer that are told when it fails.
const SAID_LINES_MAX: usize = 15;
/// Lines of the installer that wait to be told.
const LINES_MAX: usize = 100;
/// Characters of a name or a version.
const NAME_CHARS_MAX: usize = 100;
/// Between two looks whether somebody cancelled.
const TICK: Duration = Duration::from_millis(100);

/// A package that cannot be used.
#[derive(Debug, Error)]
pub enum PackageError {
    /// It is no name.
    #[error("{0:?} is no name of a package, a version or a program")]
    Name(String),
    /// There is nothing to install it with.
    #[error("no Python 3.10 or 3.11 was found, which connectors need")]
    NoPython,
    /// An installer failed.
    #[error("{what} failed ({how}):\n{said}")]
    Failed {
        /// Which step.
        what: &'static str,
        /// How it ended.
        how: String,
        /// Its last lines.
        said: String,
    },
    /// It installs something else.
    #[error("the package {package} has no program {program}")]
    NoProgram {
        /// The package.
        package: String,
        /// What it should have.
        program: String,
    },
    /// The system does not let us.
    #[error("failed to {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Somebody cancelled.
    #[error("cancelled")]
    Cancelled,
}

fn failed(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> PackageError {
    let what = what.into();
    move |source| PackageError::Io { what, source }
}

/// A package as a definition names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    package: String,
    version: Option<String>,
    program: Option<String>,
}

impl Wanted {
    /// A package, one version of it where one is named, and the program of it that is meant.
    ///
    /// # Errors
    /// If one of them is no name: they stand on an installer's command line.
    pub fn new(
        package: &str,
        version: Option<&str>,
        program: Option<&str>,
    ) -> Result<Self, PackageError> {
        for name in [Some(package), version, program].into_iter().flatten() {
            let good = |c: char| c.is_ascii_alphanumeric() || "._-+!".contains(c);
            let is_good = name.starts_with(|c: char| c.is_ascii_alphanumeric())
                && name.len() <= NAME_CHARS_MAX
                && name.chars().all(good);
            if !is_good {
                return Err(PackageError::Name(name.to_owned()));
            }
        }
        let (version, program) = (version.map(str::to_owned), program.map(str::to_owned));
        Ok(Self { package: package.to_owned(), version, program })
    }

    /// What it is called, for people.
    #[must_use]
    pub fn requirement(&self) -> String {
        match &self.version {
            Some(version) => format!("{}=={version}", self.package),
            None => self.package.clone(),
        }
    }

    /// The words that start it, if it is installed in this data directory.
    #[must_use]
    pub fn installed(&self, data: &Path) -> Option<Vec<String>> {
        let folders = fs::read_dir(data.join("connectors")).into_iter().flatten();
        folders.filter_map(|entry| self.in_folder(&entry.ok()?.path())).next()
    }

    fn in_folder(&self, folder: &Path) -> Option<Vec<String>> {
        let manifest = fs::read(folder.join("manifest.json")).ok()?;
        let manifest: Value = serde_json::from_slice(&manifest).ok()?;
        let text = |field: &str| manifest.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("package").is_empty() || bare(text("package")) != bare(&self.package) {
            return None;
        }
        // Also by the name that it was asked for with: 1.0 is 1.0.0 to installers.
        let asked = text("package").split_once("==").map(|(_, version)| version);
        let is_it = |version: &String| version == text("version") || Some(&**version) == asked;
        if !self.version.as_ref().is_none_or(is_it) {
            return None;
        }
        let words = manifest.get("command")?.as_array()?.iter();
        let words: Vec<String> = words.filter_map(|it| Some(it.as_str()?.to_owned())).collect();
        let name = Path::new(words.first()?).file_name()?.to_str()?;
        self.program.as_ref().is_none_or(|program| program == name).then_some(words)
    }

    /// Installs it, once however many ask for it at the same time, and tells what the installer says.
    ///
    /// # Errors
    /// If it cannot be installed; or somebody cancels.
    pub fn install(
        &self,
        data: &Path,
        attempt: &str,
        told: &dyn Fn(&str),
        cancel: &Cancel,
    ) -> Result<(), PackageError> {
        let bare = bare(&self.package);
        let default = bare.strip_prefix("airbyte-").unwrap_or(&bare);
        let program = self.program.as_deref().unwrap_or(default);
        let version = self.version.as_deref().unwrap_or("latest");
        let (all, name) = (data.join("connectors"), format!("{program}@{version}"));
        fs::create_dir_all(&all).map_err(failed(format!("make {}", all.display())))?;
        // An installer inherits it: whoever comes next waits for one that outlived its runner.
        let _lock = turn(&all.join(&name), told, cancel)?;
        if self.installed(data).is_some() {
            return Ok(());
        }
        told(&format!("installing {}", self.requirement()));
        let job = Installation {
            folder: &all.join(&name),
            program,
            package: &self.requirement(),
            python: None,
            attempt: Some(attempt),
        };
        let mut manifest = job.run(told, cancel)?;
        keep(&all.join(&name), &name, &mut manifest)?;
        told(&format!("installed {}", self.requirement()));
        let (package, program) = (self.requirement(), program.to_owned());
        self.installed(data).map(drop).ok_or(PackageError::NoProgram { package, program })
    }
}

/// Writes the manifest of an installation into its folder, whole: others read it at any moment.
///
/// # Errors
/// If it cannot be written.
pub fn keep(folder: &Path, name: &str, manifest: &mut Value) -> Result<(), PackageError> {
    if let Some(fields) = manifest.as_object_mut() {
        fields.insert("name".to_owned(), json!(name));
        fields.insert("addedAt".to_owned(), json!(now_ms()));
    }
    fs::create_dir_all(folder).map_err(failed(format!("make {}", folder.display())))?;
    let path = folder.join("manifest.json");
    durable::write(&path, format!("{manifest:#}\n").as_bytes())
        .map_err(failed(format!("write {}", path.display())))
}

/// Waits until nobody else installs into a folder; nobody does while what it returns is held.
///
/// # Errors
/// If the lock cannot be taken; or somebody cancels.
pub fn turn(folder: &Path, told: &dyn Fn(&str), cancel: &Cancel) -> Result<Lock, PackageError> {
    let mut path = folder.as_os_str().to_owned();
    path.push(".lock");
    let path = Path::new(&path);
    let mut is_told = false;
    loop {
        match Lock::take(path, TICK) {
            Ok(lock) => return Ok(lock),
            Err(LockError::Held(_)) if cancel.is_cancelled() => {
                return Err(PackageError::Cancelled);
            }
            Err(LockError::Held(_)) if is_told => {}
            Err(LockError::Held(_)) => {
                is_told = true;
                told("waiting for somebody else who installs the same");
            }
            Err(LockError::Io { path, source }) => {
                return Err(failed(format!("lock {}", path.display()))(source));
            }
        }
    }
}

/// The name of a package, without a version.
fn named(package: &str) -> &str {
    package.split(|it: char| "=<>!~ [;@".contains(it)).next().unwrap_or_default()
}

/// The same, however it is written.
fn bare(package: &str) -> String {
    named(package).replace('_', "-").to_lowercase()
}

/// One environment that is made.
#[derive(Debug)]
pub struct Installation<'a> {
    /// Where it goes.
    pub folder: &'a Path,
    /// The program that is started.
    pub program: &'a str,
    /// As the installer takes it: a name, with a version, or a path.
    pub package: &'a str,
    /// What it is made with; one is looked for otherwise.
    pub python: Option<&'a Path>,
    /// Who asked for it: the installer carries the name, so that it ends with the attempt.
    pub attempt: Option<&'a str>,
}

impl Installation<'_> {
    /// Makes it, and returns the beginning of its manifest.
    ///
    /// # Errors
    /// If that does not work.
    pub fn run(&self, told: &dyn Fn(&str), cancel: &Cancel) -> Result<Value, PackageError> {
        let python = match self.python {
            Some(python) => python.to_owned(),
            None => find_python().ok_or(PackageError::NoPython)?,
        };
        let _ = fs::remove_file(self.folder.join("manifest.json"));
        let make = format!("make {}", self.folder.display());
        fs::create_dir_all(self.folder).map_err(failed(make))?;
        let find = format!("find {}", self.folder.display());
        let folder = std::path::absolute(self.folder).map_err(failed(find))?;
        let environment = folder.join("venv");
        let mut make = self.command(&python);
        make.args(["-m", "venv", "--clear"]).arg(&environment);
        follow(told, &mut make, "making an environment", cancel)?;
        let mut pip = self.command(&environment.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"]);
        pip.arg(self.package);
        follow(told, &mut pip, "installing", cancel)?;
        let program = environment.join("bin").join(self.program);
        if !program.exists() {
            let (package, program) = (self.package.to_owned(), self.program.to_owned());
            return Err(PackageError::NoProgram { package, program });
        }
        let version = version_of(self.command(&environment.join("bin/python")), self.package);
        Ok(
            json!({"package": self.package, "version": version, "command": [program], "python": python}),
        )
    }

    /// Packages run code of their own when they are installed, and whenever their Python starts: it sees as little
    /// as a connector does.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(environment::handed_on());
        // Where packages come from.
        command.envs(
            std::env::vars_os()
                .filter(|(name, _)| name.to_str().is_some_and(|name| name.starts_with("PIP_"))),
        );
        command.envs(self.attempt.map(|attempt| (environment::ATTEMPT, attempt)));
        command
    }
}

/// Runs a program, and tells each line of it.
fn follow(
    told: &dyn Fn(&str),
    command: &mut Command,
    what: &'static str,
    cancel: &Cancel,
) -> Result<(), PackageError> {
    told(what);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(failed(what))?;
    let errors = child.stderr.take();
    let errors = thread::spawn(move || {
        let mut last: Vec<String> = Vec::new();
        for line in errors.into_iter().flat_map(lines_of) {
            if last.len() == SAID_LINES_MAX {
                last.remove(0);
            }
            last.push(line);
        }
        last
    });
    let (tell, lines) = sync_channel(LINES_MAX);
    let out = child.stdout.take();
    thread::spawn(move || out.into_iter().flat_map(lines_of).all(|line| tell.send(line).is_ok()));
    loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => told(&format!("{what}: {}", line.trim())),
            Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                end(&mut child);
                return Err(PackageError::Cancelled);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait().map_err(failed(what))?;
    if status.success() {
        return Ok(());
    }
    let said = errors.join().unwrap_or_default().join("\n");
    Err(PackageError::Failed { what, how: status.to_string(), said })
}

/// To the end, whatever bytes they have: nobody writes into a pipe that is not read.
fn lines_of(from: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(from).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

fn version_of(mut python: Command, package: &str) -> String {
    const SCRIPT: &str = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))";
    let output = python.args(["-c", SCRIPT, named(package)]).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
}

/// A Python that connectors run with: of the path, or of a pyenv.
fn find_python() -> Option<PathBuf> {
    let mut places = Vec::new();
    for version in PYTHONS {
        places.extend(of_pyenv(version));
        places.push(PathBuf::from(format!("python{version}")));
    }
    places.push(PathBuf::from("python3"));
    places.into_iter().find(|place| is_good(place))
}

fn of_pyenv(version: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")))?;
    let mut found: Vec<PathBuf> = fs::read_dir(root.join("versions"))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .collect();
    found.sort();
    Some(found.pop()?.join("bin/python"))
}

fn is_good(python: &Path) -> bool {
    const SCRIPT: &str = "import sys, venv; print('%d.%d' % sys.version_info[:2])";
    let output = Command::new(python).args(["-c", SCRIPT]).stderr(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else { return false };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    PYTHONS.contains(&version.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_found_by_what_is_asked_for() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("connectors/source-faker");
        fs::create_dir_all(&folder).unwrap();
        let manifest = r#"{"package": "airbyte_source-faker==7.2.1", "version": "7.2.1",
            "command": ["/x/source-faker"]}"#;
        fs::write(folder.join("manifest.json"), manifest).unwrap();
        let find = |package: &str, version: Option<&str>, program: Option<&str>| {
            Wanted::new(package, version, program).unwrap().installed(data.path())
        };
        let found = Some(vec!["/x/source-faker".to_owned()]);
        let name = "airbyte-source-faker";
        assert_eq!(find(name, None, None), found);
        assert_eq!(find(name, Some("7.2.1"), Some("source-faker")), found);
        assert_eq!(find(name, Some("7.2.2"), None), None);
        assert_eq!(find(name, None, Some("other")), None);
        // As it was asked for, and as it calls itself.
        let manifest = manifest.replace("\"7.2.1\"", "\"7.2.1.0\"");
        fs::write(folder.join("manifest.json"), manifest).unwrap();
        assert_eq!(find(name, Some("7.2.1"), None), found);
        assert_eq!(find(name, Some("7.2.1.0"), None), found);
        assert_eq!(find(name, Some("7.2"), None), None);
        assert_eq!(find("airbyte-source-file", None, None), None);
    }

    #[test]
    fn names_are_no_words_of_an_installer() {
        for wrong in ["", "-r x", "--index-url", "a b", "a/b", "https://x", "a;b", "@x"] {
            assert!(Wanted::new(wrong, None, None).is_err(), "{wrong}");
            assert!(Wanted::new("x", Some(wrong), None).is_err(), "{wrong}");
            assert!(Wanted::new("x", None, Some(wrong)).is_err(), "{wrong}");
        }
        let wanted = Wanted::new("airbyte-source-x", Some("1.0"), None).unwrap();
        assert_eq!(wanted.requirement(), "airbyte-source-x==1.0");
    }
}
