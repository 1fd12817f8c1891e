//! A Docker daemon of our own, with a few images: shared by the tests of a program, ended with the last of them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// How long it takes to start.
const START_MAX: Duration = Duration::from_secs(30);

/// A source of three records: without a state it says one, and waits for ever; from there on it says the rest.
const SHELL: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
record() { say '{"type":"RECORD","record":{"stream":"a","data":{"id":'"$1"'},"emitted_at":1}}'; }
state() { say '{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"a"},"stream_state":{"n":'"$1"'}}}}'; }
case "$1" in
spec) say '{"type":"SPEC","spec":{"documentationUrl":"of the shell","connectionSpecification":{"type":"object"}}}' ;;
check) say '{"type":"CONNECTION_STATUS","connectionStatus":{"status":"SUCCEEDED"}}' ;;
discover) say '{"type":"CATALOG","catalog":{"streams":[{"name":"a","json_schema":{"type":"object","properties":{"id":{"type":"integer"}}},"supported_sync_modes":["full_refresh","incremental"],"source_defined_cursor":true}]}}' ;;
read)
  case "$*" in
  *--state*) record 2; record 3; state 3 ;;
  *)
    record 1; state 1
    # What is not there never comes.
    mkfifo /never; read -r line </never ;;
  esac ;;
esac
"#;

pub(crate) struct Dockerd {
    child: Child,
    folder: tempfile::TempDir,
    /// Before all others in the path.
    programs: Vec<PathBuf>,
}

static SHARED: Mutex<Weak<Dockerd>> = Mutex::new(Weak::new());

impl Dockerd {
    /// The one that runs, or a new one; `None`, in words, where none can run.
    pub(crate) fn shared() -> Option<Arc<Dockerd>> {
        let mut shared = SHARED.lock().unwrap();
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let started = match programs().and_then(Dockerd::start) {
            Ok(started) => Arc::new(started),
            Err(why) => {
                // Past the harness, which shows nothing of a test that ends well.
                let text = format!("\n==> SKIPPED, tests of Docker: {why}\n");
                let _ = std::io::stderr().write_all(text.as_bytes());
                return None;
            }
        };
        started.images();
        *shared = Arc::downgrade(&started);
        Some(started)
    }

    fn start(programs: Vec<PathBuf>) -> Result<Dockerd, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = with_path(Command::new("dockerd"), &programs)
            .args(["-H", &format!("unix://{}", path("docker.sock"))])
            .args(["--data-root", &path("data"), "--exec-root", &path("exec")])
            .args(["--pidfile", &path("pid"), "--storage-driver=vfs"])
            .args(["--iptables=false", "--ip6tables=false", "--bridge=none"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut daemon = Dockerd { child, folder, programs };
        let began = Instant::now();
        while !daemon.command(&["version"]).output().unwrap().status.success() {
            let ended = daemon.child.try_wait().unwrap();
            if ended.is_some() || began.elapsed() > START_MAX {
                let log = std::fs::read_to_string(daemon.folder.path().join("log"));
                return Err(format!("dockerd does not start here: {}", log.unwrap_or_default()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    /// What `DOCKER_HOST` is to be.
    pub(crate) fn address(&self) -> String {
        format!("unix://{}", self.folder.path().join("docker.sock").display())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = with_path(Command::new("docker"), &self.programs);
        command.args(words).env("DOCKER_HOST", self.address());
        command
    }

    /// What the program `docker` says.
    #[track_caller]
    pub(crate) fn docker(&self, words: &[&str]) -> String {
        let output = self.command(words).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Made of what this machine has: no registry is there to pull from.
    fn images(&self) {
        let root = self.folder.path().join("root");
        for folder in ["usr", "lib", "lib64", "bin", "tmp", "connectors"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for side in ["source", "destination"] {
            let entry =
                format!(r#"ENTRYPOINT ["/usr/bin/python3", "-S", "/connectors/{side}.py"]"#);
            self.import(&root, &entry, &format!("windlass/{side}-own:1"));
        }
        self.import(&root, "LABEL nothing=1", "windlass/nothing:1");
        std::fs::write(root.join("source.sh"), SHELL).unwrap();
        for program in ["sh", "mkfifo"] {
            bring(&root, program);
        }
        let entry = r#"ENTRYPOINT ["/bin/sh", "/source.sh"]"#;
        self.import(&root, entry, "windlass/shell:1");
        let variable = r#"ENV AIRBYTE_ENTRYPOINT "/bin/sh /source.sh""#;
        self.import(&root, variable, "windlass/variable:1");
    }

    fn import(&self, root: &Path, change: &str, name: &str) {
        let file = self.folder.path().join("root.tar");
        let tar = Command::new("tar").arg("-cf").arg(&file).arg("-C").arg(root).arg(".").status();
        assert!(tar.unwrap().success());
        self.docker(&["import", "-c", change, file.to_str().unwrap(), name]);
    }
}

/// Copies a program with the libraries that it needs.
fn bring(root: &Path, program: &str) {
    let from = Path::new("/bin").join(program);
    std::fs::copy(&from, root.join("bin").join(program)).unwrap();
    let listed = Command::new("ldd").arg(&from).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(library, to).unwrap();
    }
}

/// Where a daemon is.
fn programs() -> Result<Vec<PathBuf>, String> {
    if std::env::var("WINDLASS_DOCKER_TESTS").is_ok_and(|value| value == "off") {
        return Err("WINDLASS_DOCKER_TESTS is off".to_owned());
    }
    let user = Command::new("id").arg("-u").output().unwrap();
    if user.stdout != b"0\n" {
        return Err("a daemon of our own needs root".to_owned());
    }
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/docker/usr");
    let programs: Vec<PathBuf> = ["bin", "sbin"]
        .map(|name| fetched.join(name))
        .into_iter()
        .filter(|it| it.is_dir())
        .collect();
    let found = with_path(Command::new("dockerd"), &programs).arg("--version").output();
    match found {
        Ok(output) if output.status.success() => Ok(programs),
        Ok(_) | Err(_) => {
            Err("there is no dockerd; tests/airbyte/get-docker fetches one".to_owned())
        }
    }
}

fn with_path(mut command: Command, first: &[PathBuf]) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = first.iter().cloned().chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).unwrap());
    command
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        // It ends its containers, and the daemon below it.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
