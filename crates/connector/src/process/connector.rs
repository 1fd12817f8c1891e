//! One connector: a process that leads a session, and everything it starts.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use thiserror::Error;

use crate::docker::sweep::Mark;
use crate::failure::Origin;
use crate::limits::Limits;
use crate::process::exit::Exit;
use crate::process::helper::{Guard, Helper};
use crate::process::program::{Command, Program};
use crate::process::sweep;

/// What the kernel holds of a connector's input or output, where it allows so much.
const PIPE_BYTES: usize = 1 << 20;

/// How long one looks for what a connector left.
const SWEEP_PATIENCE: Duration = Duration::from_secs(10);

/// Which end of the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Records come from here.
    Source,
    /// And go there.
    Destination,
}

impl Side {
    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Destination => "destination",
        }
    }

    /// As failures name it.
    #[must_use]
    pub fn origin(self) -> Origin {
        match self {
            Self::Source => Origin::Source,
            Self::Destination => Origin::Destination,
        }
    }
}

/// A connector that could not be run.
#[derive(Debug, Error)]
pub enum ProcessError {
    /// There is no command.
    #[error("the command of the {} is empty", .0.name())]
    NoCommand(Side),
    /// A process could not be made.
    #[error("failed to start the {}", side.name())]
    Start {
        /// Which one.
        side: Side,
        /// Why.
        source: io::Error,
    },
}

/// Everything that a process is started with.
#[derive(Debug)]
pub struct Launch<'a> {
    /// This program, as a helper.
    pub helper: &'a Helper,
    /// The name of the attempt.
    pub attempt: &'a str,
    /// Which end of the pipe it is.
    pub side: Side,
    /// The connector.
    pub command: &'a Command,
    /// Behind the command.
    pub words: Vec<OsString>,
    /// Where it runs.
    pub directory: &'a Path,
    /// How much it may take.
    pub limits: &'a Limits,
    /// Whether somebody writes to it.
    pub has_input: bool,
    /// Ends it if we die.
    pub guard: Option<&'a Guard>,
}

/// A running connector. Whoever started it must live as long: the kernel kills it with the *thread*
/// that made it. Dropped, it is killed.
#[derive(Debug)]
pub struct Process {
    side: Side,
    attempt: String,
    program: Program,
    mark: Option<Mark>,
    child: Child,
    group: Pid,
    ended: Option<Exit>,
}

/// Our ends of a connector's standard streams.
#[derive(Debug)]
pub struct Streams {
    /// To its standard input, if it has one.
    pub input: Option<OwnedFd>,
    /// From its standard output.
    pub output: OwnedFd,
    /// From its standard error.
    pub errors: OwnedFd,
}

impl Process {
    /// Starts a connector.
    ///
    /// # Errors
    /// If there is no command, or no process can be made. A program that is missing ends with
    /// [`NOT_STARTED`](crate::process::exit::NOT_STARTED) and says so on its standard error.
    pub fn start(launch: Launch<'_>) -> Result<(Self, Streams), ProcessError> {
        let side = launch.side;
        let failed = |source| ProcessError::Start { side, source };
        let program = launch.command.program.clone();
        let mut command = program.process(&launch)?;
        let mark = program.mark(&launch)?;
        if let (Some(guard), Some(_)) = (launch.guard, &mark) {
            guard.tell_container();
        }
        command.stdin(if launch.has_input { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let lost = || failed(io::Error::other("the process has no id or no streams"));
        let group = group.ok_or_else(lost)?;
        if let Some(guard) = launch.guard {
            guard.tell(group, true);
        }
        let streams = Streams {
            input: child.stdin.take().map(OwnedFd::from).inspect(widen),
            output: child.stdout.take().map(OwnedFd::from).inspect(widen).ok_or_else(lost)?,
            errors: child.stderr.take().map(OwnedFd::from).ok_or_else(lost)?,
        };
        let attempt = launch.attempt.to_owned();
        Ok((Self { side, attempt, program, mark, child, group, ended: None }, streams))
    }

    /// Calls back when the leader has ended, by itself or not. It is not reaped by that, so that its
    /// number, and that of its group, belong to nobody else until [`finish`](Self::finish).
    pub fn watch(&self, ended: impl FnOnce() + Send + 'static) {
        let pid = self.group;
        thread::spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
            ended();
        });
    }

    /// Asks the group to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the group.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if self.ended.is_some() {
            return;
        }
        // Until the helper has made the session, there is only the process.
        if kill_process_group(self.group, signal).is_err() {
            let _ = kill_process(self.group, signal);
        }
    }

    /// Ends whatever is left of it, inside of its group and outside, and says how the leader ended.
    pub fn finish(&mut self, guard: Option<&Guard>) -> Exit {
        if let Some(exit) = self.ended {
            return exit;
        }
        self.kill();
        let exit = self.child.wait().map_or(Exit::Signal(9), Exit::of);
        self.ended = Some(exit);
        if let Some(guard) = guard {
            guard.tell(self.group, false);
        }
        if self.sweep_left()
            && let Some(mark) = &self.mark
        {
            mark.remove();
        }
        exit
    }

    /// Kills what left the group, for instance to close the output that it holds open.
    pub fn sweep(&self) {
        self.kill();
        self.sweep_left();
    }

    fn sweep_left(&self) -> bool {
        let processes = sweep::sweep(&self.attempt, Some(self.side), SWEEP_PATIENCE);
        self.program.sweep(&self.attempt, self.side, SWEEP_PATIENCE) && processes
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.finish(None);
    }
}

/// A larger pipe means fewer turns; a kernel that does not allow it costs speed only.
fn widen(pipe: &OwnedFd) {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
}
