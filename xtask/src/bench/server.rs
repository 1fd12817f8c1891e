//! Starts a peer's server on a loopback port of its own, in a folder of its own, and makes sure
//! that it is gone afterwards.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::failure::{Context, Failure, Result};

/// A server that does not listen by then has failed to start.
const START_MAX: Duration = Duration::from_secs(20);
/// Between two looks whether it listens.
const PAUSE: Duration = Duration::from_millis(10);

/// A running server. Dropping it kills the process and removes its folder.
///
/// Ctrl-C reaches the server too (same process group), and where util-linux' `setpriv` exists the
/// kernel ends it should the bench itself be killed.
pub(crate) struct Server {
    child: Child,
    port: u16,
    dir: PathBuf,
}

impl Server {
    /// Starts `command`, whose files live in `dir`, and waits until it listens on `port`.
    pub(crate) fn start(command: Command, dir: &Path, port: u16) -> Result<Self> {
        Self::start_within(command, dir, port, START_MAX)
    }

    /// The same for one that may take longer.
    pub(crate) fn start_within(
        mut command: Command,
        dir: &Path,
        port: u16,
        start_max: Duration,
    ) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let log_path = dir.with_extension("log");
        let log = File::create(&log_path).context(format!("create {}", log_path.display()))?;
        let log_too = log.try_clone().context("share the log file")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(log_too)
            .spawn()
            .context(format!("start {name}"))?;
        let mut server = Self { child, port, dir: dir.to_owned() };
        let started = Instant::now();
        while TcpStream::connect(server.address()).is_err() {
            let exited = server.child.try_wait().context(format!("watch {name}"))?;
            if exited.is_some() || started.elapsed() > start_max {
                let log = fs::read_to_string(&log_path).unwrap_or_default();
                return Err(Failure::new(format!("{name} did not start: {}", last_lines(&log))));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(server)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it at once (SIGKILL) and keeps its folder, which goes when the answer is dropped.
    pub(crate) fn kill_keeping_files(mut self) -> Leftovers {
        stop(&mut self.child);
        Leftovers { dir: std::mem::take(&mut self.dir) }
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// The folder of a server that was killed.
pub(crate) struct Leftovers {
    dir: PathBuf,
}

impl Leftovers {
    /// Leaves the folder to the next start.
    pub(crate) fn keep(mut self) {
        self.dir = PathBuf::new();
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        if !self.dir.as_os_str().is_empty() {
            drop(fs::remove_dir_all(&self.dir));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        stop(&mut self.child);
        if self.dir.as_os_str().is_empty() {
            return;
        }
        // Leftovers are only disk space below target/, so a failure here is not worth a word.
        drop(fs::remove_dir_all(&self.dir));
        drop(fs::remove_file(self.dir.with_extension("log")));
    }
}

/// A client program that takes one JSON object per line and answers with one.
pub(crate) struct LineClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl LineClient {
    /// Starts the program.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context(format!("start {name}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        match (input, output) {
            (Some(input), Some(output)) => {
                Ok(Self { child, input, output: BufReader::new(output) })
            }
            (_, _) => Err(Failure::new(format!("{name} has no pipes"))),
        }
    }

    /// Sends one request and waits for its answer; an answer with `error` is a failure.
    pub(crate) fn ask(&mut self, request: &serde_json::Value) -> Result<serde_json::Value> {
        writeln!(self.input, "{request}").context("write to the client program")?;
        self.input.flush().context("write to the client program")?;
        let mut line = String::new();
        let read = self.output.read_line(&mut line).context("read from the client program")?;
        if read == 0 {
            return Err(Failure::new("the client program ended without an answer"));
        }
        let answer: serde_json::Value =
            serde_json::from_str(&line).context("parse the client program's answer")?;
        match answer.get("error").and_then(serde_json::Value::as_str) {
            Some(error) => Err(Failure::new(error)),
            None => Ok(answer),
        }
    }
}

impl Drop for LineClient {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// A command that dies with the bench. `user` runs it under another account (PostgreSQL refuses
/// root). Must be spawned from the main thread: the kernel watches the thread, not the process.
pub(crate) fn guarded(program: &str, user: Option<&str>) -> Command {
    if find("setpriv").is_none() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--init-groups"]);
    }
    command.arg("--").arg(program);
    command
}

/// Where a program lies on the `PATH`, Debian's folders for servers included.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(program))
        .find(|candidate| candidate.is_file())
}

/// A port on 127.0.0.1 that is free right now.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr().context("find a free port")?.port())
}

/// Runs a command to its end; its output is shown only when it fails.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().context(format!("run {name}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("{name} ended with {}: {}", output.status, last_lines(&stderr))))
}

fn stop(child: &mut Child) {
    // Both fail only when the process is gone already, which is what is wanted.
    drop(child.kill());
    drop(child.wait());
}

/// The end of what a program said.
pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join(" / ")
}
