//! This program again, between a runner and its connectors.
//!
//! `exec` makes a session, sets limits, asks to be killed with its parent, and becomes the connector: what
//! must happen in the new process before the connector does, without `unsafe` in ours. `container` stands in for one
//! that is an image. `guard` waits
//! for its runner to die, and then ends the connectors' groups and everything else of the attempt.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, kill_process_group,
    set_parent_process_death_signal, setrlimit, setsid,
};

use crate::docker::{self, container};
use crate::limits::Limits;
use crate::process::exit::NOT_STARTED;
use crate::process::sweep;

/// How long a guard tries to end what is left; beyond it something is stuck in the kernel.
const GUARD_PATIENCE: Duration = Duration::from_secs(60);

/// How to start this program as a helper.
#[derive(Debug, Clone)]
pub struct Helper {
    /// Usually our own.
    pub program: PathBuf,
    /// What stands before the helper's own words.
    pub words: Vec<OsString>,
}

impl Helper {
    fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command.args(&self.words);
        command
    }

    /// The command that becomes `program` with its arguments.
    pub(crate) fn exec(&self, limits: &Limits, program: &OsStr) -> std::process::Command {
        let number = |bound: Option<u64>| bound.map_or("-".to_owned(), |bound| bound.to_string());
        let mut command = self.command();
        command.arg("exec").arg(std::process::id().to_string());
        command.arg(number(limits.memory_bytes_max)).arg(number(limits.cpu_seconds_max));
        command.arg(limits.files_max.to_string()).arg(program);
        command
    }
}

/// What the program does when it is started as a helper, with the words behind [`Helper::words`].
pub fn helper(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut words = words.into_iter();
    let first = words.next().unwrap_or_default();
    let result = match first.to_str() {
        Some("exec") => Err(exec(words.collect())),
        Some("container") => match container::stand_in() {
            Ok(code) => return ExitCode::from(code),
            Err(why) => Err(why),
        },
        Some("guard") => guard(words.next().unwrap_or_default()),
        _ => Err("a connector helper is started by windlass only".to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(u8::try_from(NOT_STARTED).unwrap_or(1))
        }
    }
}

/// Returns only to say why it could not.
fn exec(words: Vec<OsString>) -> String {
    let [parent, memory, cpu, files, program, rest @ ..] = words.as_slice() else {
        return "too few words for a connector".to_owned();
    };
    if let Err(why) = become_child(parent, memory, cpu, files) {
        return why;
    }
    let error = std::process::Command::new(program).args(rest).exec();
    format!("failed to start {}: {error}", program.display())
}

fn become_child(parent: &OsStr, memory: &OsStr, cpu: &OsStr, files: &OsStr) -> Result<(), String> {
    let failed = |what: &str, error: rustix::io::Errno| format!("failed to {what}: {error}");
    setsid().map_err(|error| failed("make a session", error))?;
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| failed("ask for the parent's death", error))?;
    // It may have died before we asked.
    let parent: Option<i32> = parent.to_str().and_then(|text| text.parse().ok());
    if getppid().map(Pid::as_raw_pid) != parent {
        return Err("the runner is gone".to_owned());
    }
    limit(Resource::Core, Some(0))?;
    limit(Resource::Data, number(memory)?)?;
    limit(Resource::Cpu, number(cpu)?)?;
    limit(Resource::Nofile, number(files)?)
}

fn number(text: &OsStr) -> Result<Option<u64>, String> {
    match text.to_str() {
        Some("-") => Ok(None),
        other => other
            .and_then(|text| text.parse().ok())
            .map(Some)
            .ok_or_else(|| format!("{} is no limit", text.display())),
    }
}

/// Sets a limit that is not above what we have ourselves.
fn limit(resource: Resource, bound: Option<u64>) -> Result<(), String> {
    let Some(bound) = bound else { return Ok(()) };
    let bound = getrlimit(resource).maximum.map_or(bound, |maximum| maximum.min(bound));
    let both = Rlimit { current: Some(bound), maximum: Some(bound) };
    setrlimit(resource, both).map_err(|error| format!("failed to set a limit: {error}"))
}

/// Waits for the end of standard input. Lines are `+<group>` for a group that lives, `-<group>` for one that is over,
/// `!<path>` for a file with secrets, which is removed in the end, and `@` where there may be containers.
fn guard(attempt: OsString) -> Result<(), String> {
    // Whoever ends the runner's group does not end its guard.
    let _ = setsid();
    let (mut groups, mut secrets): (Vec<i32>, Vec<String>) = (Vec::new(), Vec::new());
    let mut has_containers = false;
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Some((sign, rest)) = line.split_at_checked(1) else { continue };
        match (sign, rest.parse()) {
            ("+", Ok(group)) => groups.push(group),
            ("-", Ok(group)) => groups.retain(|known| *known != group),
            ("!", _) => secrets.push(rest.to_owned()),
            ("@", _) => has_containers = true,
            _ => {}
        }
    }
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    for secret in secrets {
        let _ = std::fs::remove_file(secret);
    }
    let attempt = attempt.to_str().ok_or("the attempt has a strange name")?;
    let processes = sweep::sweep(attempt, None, GUARD_PATIENCE);
    if has_containers && !docker::sweep::sweep(attempt, None, GUARD_PATIENCE) {
        return Err(format!("containers of {attempt} cannot be removed"));
    }
    if processes { Ok(()) } else { Err(format!("processes of {attempt} cannot be ended")) }
}

/// A guard that runs beside an attempt. When it is dropped, or we die, it ends whatever is left.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

impl Guard {
    /// Starts one.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(helper: &Helper, attempt: &str) -> io::Result<Self> {
        let mut command = helper.command();
        command.arg("guard").arg(attempt).env_clear();
        command.env(docker::HOST, docker::address());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// A group lives, or is over.
    pub(crate) fn tell(&self, group: Pid, lives: bool) {
        let sign = if lives { '+' } else { '-' };
        self.say(&format!("{sign}{}\n", group.as_raw_pid()));
    }

    /// A file is to be gone behind the attempt, whatever happens.
    pub(crate) fn tell_secret(&self, path: &Path) {
        // A path with a line feed, or that is no text, is left to whoever made it.
        if let Some(path) = path.to_str().filter(|path| !path.contains('\n')) {
            self.say(&format!("!{path}\n"));
        }
    }

    /// There may be containers from now on.
    pub(crate) fn tell_container(&self) {
        self.say("@\n");
    }

    fn say(&self, line: &str) {
        if let Some(mut input) = self.input.as_ref() {
            // A guard that was killed cannot be told; the death signal is still there.
            let _ = input.write_all(line.as_bytes());
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
