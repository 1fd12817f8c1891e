//! One command for one job: started, fed, read, and ended with everything it started.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use windlass_worker::{Job, JobContext};

/// Lines of standard error that make the message of a failure.
const MESSAGE_LINES: usize = 10;
/// Bytes of a line of standard error; the rest of it is cut off.
const LINE_BYTES_MAX: usize = 4_096;
/// How long a process that the command left behind may keep its output open.
const LEFT_BEHIND_MAX: Duration = Duration::from_secs(1);
/// What `--clean-env` leaves.
const CLEAN_ENV: &[&str] = &["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

/// The process groups at work.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// What to run and within which limits.
pub(crate) struct Program {
    pub(crate) command: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) clean_env: bool,
    pub(crate) output_bytes_max: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) kill_after: Duration,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Well, with this output.
    Output(Vec<u8>),
    /// By itself, but not well.
    Failed {
        code: Option<i32>,
        words: String,
    },
    /// The job should stop.
    Stopped,
    TimedOut(Duration),
    OutputTooLong(usize),
    NotStarted(io::Error),
}

impl Program {
    pub(crate) fn name(&self) -> String {
        let name = Path::new(&self.command).file_name().unwrap_or(&self.command);
        name.to_string_lossy().into_owned()
    }

    pub(crate) async fn run(&self, job: &Job<Bytes>) -> Ended {
        let mut child = match self.command(job).spawn() {
            Ok(child) => child,
            Err(error) => return Ended::NotStarted(error),
        };
        let group = Group::of(&child);
        let input = feed(child.stdin.take(), job.payload.clone());
        let output = read_output(child.stdout.take(), self.output_bytes_max);
        let lines = read_lines(child.stderr.take(), job.context());
        let timeout = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let mut reading = std::pin::pin!(async { tokio::join!(input, output, lines) });
        let mut read = None;
        // The first reason to end wins; the command's own end is one of them.
        let early = tokio::select! {
            () = async {
                let (_, output, lines) = (&mut reading).await;
                let too_long = output.is_none();
                read = Some((output, lines));
                // With its output closed the command may still run; with too much it must not.
                if !too_long {
                    std::future::pending::<()>().await;
                }
            } => Some(Ended::OutputTooLong(self.output_bytes_max)),
            _ = child.wait() => None,
            () = job.context().cancelled().cancelled() => Some(Ended::Stopped),
            () = timeout => self.timeout.map(Ended::TimedOut),
        };
        if let Some(early) = early {
            end(&mut child, &group, self.kill_after).await;
            return early;
        }
        if read.is_none() {
            read = finish_reading(reading, &group).await;
        }
        let status = child.wait().await;
        match (status, read) {
            (Ok(_), Some((None, _))) => Ended::OutputTooLong(self.output_bytes_max),
            (Ok(status), Some((Some(output), _))) if status.success() => Ended::Output(output),
            (Ok(status), read) => {
                let lines = read.map(|(_, lines)| lines).unwrap_or_default();
                Ended::Failed { code: status.code(), words: words(status, &lines) }
            }
            (Err(error), _) => Ended::Failed { code: None, words: error.to_string() },
        }
    }

    fn command(&self, job: &Job<Bytes>) -> Command {
        let mut command = Command::new(&self.command);
        command
            .args(&self.arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if self.clean_env {
            command.env_clear();
            let kept = CLEAN_ENV.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
            command.envs(kept);
        }
        command
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("WINDLASS_JOB_KEY", job.key().to_string())
            .env("WINDLASS_JOB_TYPE", job.job_type())
            .env("WINDLASS_JOB_QUEUE", job.queue())
            .env("WINDLASS_JOB_GROUP", job.group())
            .env("WINDLASS_JOB_PRIORITY", job.priority().to_string())
            .env("WINDLASS_JOB_ATTEMPT", job.attempt().to_string())
            .env("WINDLASS_JOB_RETRIES", job.retries().to_string())
            .env("WINDLASS_JOB_ACTIVATION", job.token().activation.to_string())
            .env("WINDLASS_JOB_CREATED_MS", job.created_ms().to_string())
            .env("WINDLASS_JOB_HEADERS", String::from_utf8_lossy(job.header_bytes()).as_ref());
        command
    }
}

/// Ends every command at once, for an exit that does not wait.
pub(crate) fn kill_all() {
    for pid in GROUPS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        signal(*pid, Signal::KILL);
    }
}

/// The process group of a command. Dropping it ends what is left of the group.
struct Group {
    pid: Option<i32>,
}

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid {
            GROUPS.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
        }
        Self { pid }
    }

    fn signal(&self, what: Signal) {
        if let Some(pid) = self.pid {
            signal(pid, what);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What a command leaves behind holds nothing of ours, and nobody waits for it.
        self.signal(Signal::KILL);
        if let Some(pid) = self.pid {
            GROUPS.lock().unwrap_or_else(PoisonError::into_inner).remove(&pid);
        }
    }
}

fn signal(pid: i32, what: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may be gone already.
        let _ = kill_process_group(pid, what);
    }
}

async fn end(child: &mut Child, group: &Group, kill_after: Duration) {
    group.signal(Signal::TERM);
    if tokio::time::timeout(kill_after, child.wait()).await.is_err() {
        group.signal(Signal::KILL);
        // A process that even SIGKILL does not end waits for its disk; we do not.
        let _ = tokio::time::timeout(LEFT_BEHIND_MAX, child.wait()).await;
    }
}

/// The command has ended; something it started may hold its output open.
async fn finish_reading<T>(
    mut reading: std::pin::Pin<&mut impl Future<Output = (T, Option<Vec<u8>>, Vec<String>)>>,
    group: &Group,
) -> Option<(Option<Vec<u8>>, Vec<String>)> {
    let rest = tokio::time::timeout(LEFT_BEHIND_MAX, &mut reading).await;
    let rest = match rest {
        Ok(rest) => Ok(rest),
        Err(_) => {
            group.signal(Signal::KILL);
            tokio::time::timeout(LEFT_BEHIND_MAX, &mut reading).await
        }
    };
    rest.ok().map(|(_, output, lines)| (output, lines))
}

async fn feed(stdin: Option<ChildStdin>, payload: Bytes) {
    if let Some(mut stdin) = stdin {
        // A command need not read its input.
        let _ = stdin.write_all(&payload).await;
        let _ = stdin.shutdown().await;
    }
}

/// All of it, or nothing when it is too long.
async fn read_output(from: Option<impl AsyncRead + Unpin>, bytes_max: usize) -> Option<Vec<u8>> {
    let mut output = Vec::new();
    if let Some(from) = from {
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        // A broken pipe is the end of it.
        let _ = from.take(limit).read_to_end(&mut output).await;
    }
    (output.len() <= bytes_max).then_some(output)
}

/// Sends every line to the log of the job, and keeps the last ones.
async fn read_lines(from: Option<impl AsyncRead + Unpin>, context: &JobContext) -> Vec<String> {
    let mut last = VecDeque::with_capacity(MESSAGE_LINES);
    if let Some(from) = from {
        let mut from = BufReader::new(from);
        while let Some(line) = read_line(&mut from).await {
            context.log(line.as_str());
            if last.len() == MESSAGE_LINES {
                last.pop_front();
            }
            last.push_back(line);
        }
    }
    last.into()
}

/// A line of bounded length, whatever the command prints.
async fn read_line(from: &mut BufReader<impl AsyncRead + Unpin>) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let buffer = from.fill_buf().await.unwrap_or_default();
        if buffer.is_empty() {
            return (!line.is_empty()).then(|| text(&line));
        }
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..newline.unwrap_or(buffer.len())).unwrap_or_default();
        let room = LINE_BYTES_MAX - line.len();
        line.extend_from_slice(part.get(..room).unwrap_or(part));
        let consumed = part.len() + usize::from(newline.is_some());
        from.consume(consumed);
        if newline.is_some() {
            return Some(text(&line));
        }
    }
}

fn text(line: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(line).trim_end_matches('\r').to_owned();
    // A replacement character is longer than the byte it stands for.
    text.truncate(text.floor_char_boundary(LINE_BYTES_MAX));
    text
}

fn words(status: ExitStatus, lines: &[String]) -> String {
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    if lines.is_empty() { how } else { format!("{how}: {}", lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_and_the_last_one_needs_no_end() {
        let mut bytes = b"one\r\n\n".to_vec();
        bytes.extend(vec![b'x'; 3 * LINE_BYTES_MAX]);
        bytes.extend(b"\nlast");
        let mut from = BufReader::new(bytes.as_slice());
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut from).await {
            lines.push(line);
        }
        let lengths: Vec<usize> = lines.iter().map(String::len).collect();
        assert_eq!(lengths, [3, 0, LINE_BYTES_MAX, 4]);
    }

    #[tokio::test]
    async fn output_past_its_limit_is_nothing() {
        assert_eq!(read_output(Some(b"12345".as_slice()), 5).await, Some(b"12345".to_vec()));
        assert_eq!(read_output(Some(b"123456".as_slice()), 5).await, None);
    }
}
