//! `windlass worker`: any program is a worker.
//!
//! The command runs once per job, in a process group of its own: the payload on its standard input,
//! the job in its environment, its standard output is the result, its exit code decides. A job that is
//! cancelled or lost ends its whole group, first politely.
//!
//! Confessed: when this process itself is killed with SIGKILL, its commands live on until they end;
//! their results then count for nothing, since nobody says them.

mod process;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use windlass_worker::{Failure as JobFailure, Job, Worker, WorkerEvent};

use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::units::duration;

use process::{Ended, Program};

#[derive(Debug, Args)]
#[command(after_long_help = "\
The command gets the payload on standard input, and in its environment WINDLASS_JOB_KEY, _TYPE, \
_QUEUE, _GROUP, _PRIORITY, _ATTEMPT, _RETRIES (left), _ACTIVATION, _CREATED_MS, _HEADERS (JSON) and \
WINDLASS_SERVER.

What it prints to standard output is the result: as it is if it is JSON, else as a JSON string. \
Lines it prints to standard error go to the log of the job. Exit code 0 completes the job; any other \
fails the attempt, with the last lines of standard error as the message.")]
pub(crate) struct WorkerArgs {
    /// Type of the jobs: the queue to take from. Several may be given
    #[arg(long = "type", required = true, value_name = "TYPE")]
    types: Vec<String>,
    /// Commands at once
    #[arg(long, default_value_t = 4, value_name = "N")]
    concurrency: u32,
    /// Name of this worker, for people who ask who holds a job [default: command and process id]
    #[arg(long, default_value = "", hide_default_value = true)]
    name: String,
    /// How soon others get the jobs, should this machine die
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = duration)]
    lease: Duration,
    /// A command that takes longer is ended, and its attempt has failed
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// How long a command has between SIGTERM and SIGKILL
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = duration)]
    kill_after: Duration,
    /// On Ctrl-C or SIGTERM, how long commands may go on before they are ended and put back
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration)]
    drain_timeout: Duration,
    /// Give the command only PATH, HOME, LANG, TZ, TMPDIR, the job's variables and --env
    #[arg(long)]
    clean_env: bool,
    /// Give the command this variable; without a value, ours
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Bytes of result; a command that prints more is ended and has failed for good
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES")]
    output_max: usize,
    /// Exit codes after which trying again is of no use
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    permanent_codes: Vec<i32>,
    /// Print nothing about single jobs
    #[arg(long, short)]
    quiet: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn run(online: &Online, args: WorkerArgs) -> Result<(), Failure> {
    let program = Arc::new(program(online, &args)?);
    let draining = Arc::new(AtomicBool::new(false));
    let name = if args.name.is_empty() {
        format!("{}-{}", program.name(), std::process::id())
    } else {
        args.name.clone()
    };
    let handler = {
        let (args, draining) = (Arc::new(args.clone_limits()), Arc::clone(&draining));
        let (program, out) = (Arc::clone(&program), online.out);
        move |job: Job<Bytes>| {
            let (args, draining) = (Arc::clone(&args), Arc::clone(&draining));
            let program = Arc::clone(&program);
            async move {
                let (key, attempt) = (job.key(), job.attempt());
                let ended = program.run(&job).await;
                let answer = answer(ended, &args, draining.load(Ordering::Relaxed), &job);
                if !args.quiet {
                    let failure = answer.as_ref().err().map(|(_, words)| words.as_str());
                    let value =
                        json!({ "job": json::key(key), "attempt": attempt, "failure": failure });
                    let words = failure.unwrap_or("completed");
                    // Our own output does not decide about the job.
                    drop(out.show(&value, || format!("job {key} attempt {attempt}: {words}")));
                }
                answer.map_err(|(failure, _)| failure)
            }
        }
    };
    let mut builder = Worker::builder(online.client.clone())
        .tenant(online.tenant.as_str())
        .worker(name)
        .concurrency(args.concurrency)
        .lease(args.lease)
        .drain_timeout(args.drain_timeout)
        .raw_handler(handler)
        .observe(tell);
    for queue in &args.types {
        builder = builder.queue(queue);
    }
    let ended = builder.build()?.run_until(stop_asked(draining)).await;
    // Whatever the reason: nothing that we started goes on without us.
    process::kill_all();
    let drained = ended?;
    let metrics = drained.metrics;
    let value = json!({
        "completed": metrics.completed,
        "failed": metrics.failed,
        "put_back": drained.put_back,
        "released": metrics.released,
        "unanswered": drained.unanswered,
    });
    online.out.show(&value, || {
        let (completed, failed, released) = (metrics.completed, metrics.failed, metrics.released);
        format!("stopped: {completed} completed, {failed} failed, {released} put back")
    })
}

/// What decides about an answer, apart from the process.
struct Rules {
    permanent_codes: Vec<i32>,
    quiet: bool,
}

impl WorkerArgs {
    fn clone_limits(&self) -> Rules {
        Rules { permanent_codes: self.permanent_codes.clone(), quiet: self.quiet }
    }
}

fn program(online: &Online, args: &WorkerArgs) -> Result<Program, Failure> {
    let (command, arguments) =
        args.command.split_first().ok_or_else(|| Failure::new("there is no command"))?;
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    for variable in &args.env {
        match variable.split_once('=') {
            Some((name, value)) => env.push((name.into(), value.into())),
            None => env.extend(std::env::var_os(variable).map(|value| (variable.into(), value))),
        }
    }
    if !env.iter().any(|(name, _)| name == "PATH") && !is_command(command) {
        let command = command.to_string_lossy();
        return Err(Failure::new(format!("{command} is no command that can be started")));
    }
    env.push(("WINDLASS_SERVER".into(), online.address.as_str().into()));
    Ok(Program {
        command: command.clone(),
        arguments: arguments.to_vec(),
        env,
        clean_env: args.clean_env,
        output_bytes_max: args.output_max,
        timeout: args.timeout,
        kill_after: args.kill_after,
    })
}

/// Whether it can be found as the system will look for it: a job would fail only to say that it cannot.
fn is_command(command: &OsStr) -> bool {
    let can_run = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(command);
    if path.components().count() > 1 {
        return can_run(path);
    }
    // What is searched without a PATH is the system's own affair.
    std::env::var_os("PATH")
        .is_none_or(|dirs| std::env::split_paths(&dirs).any(|dir| can_run(&dir.join(path))))
}

fn answer(
    ended: Ended,
    rules: &Rules,
    draining: bool,
    job: &Job<Bytes>,
) -> Result<Bytes, (JobFailure, String)> {
    let (permanent, words) = match ended {
        Ended::Output(output) => return Ok(result(output)),
        Ended::Stopped if draining && !job.context().lease_lost() => {
            return Err((JobFailure::release(Duration::ZERO), "put back".to_owned()));
        }
        Ended::Stopped if job.context().lease_lost() => {
            (false, "ended: the job is no longer ours".to_owned())
        }
        Ended::Stopped => (false, "ended on request".to_owned()),
        Ended::TimedOut(after) => (false, format!("ended after {} s", after.as_secs_f64())),
        Ended::OutputTooLong(max) => (true, format!("printed a result of more than {max} bytes")),
        Ended::Failed { code, words } => {
            (code.is_some_and(|code| rules.permanent_codes.contains(&code)), words)
        }
        // Another worker may have the command.
        Ended::NotStarted(error) => (false, format!("failed to start the command: {error}")),
    };
    let failure = if permanent {
        JobFailure::permanent(words.as_str())
    } else {
        JobFailure::new(words.as_str())
    };
    Err((failure, words))
}

/// JSON as it is, anything else as a JSON string.
fn result(output: Vec<u8>) -> Bytes {
    let trimmed = output.trim_ascii();
    if trimmed.is_empty() {
        return Bytes::new();
    }
    if serde_json::from_slice::<serde_json::Value>(trimmed).is_ok() {
        return Bytes::copy_from_slice(trimmed);
    }
    let text = String::from_utf8_lossy(&output);
    Bytes::from(json!(text.trim_end_matches('\n')).to_string())
}

fn tell(event: &WorkerEvent<'_>) {
    match event {
        WorkerEvent::Connected { address } => eprintln!("connected to {address}"),
        WorkerEvent::Disconnected { error: Some(error), retry_in } => {
            eprintln!("{error}; trying again in {} ms", retry_in.as_millis());
        }
        WorkerEvent::Disconnected { error: None, retry_in } => {
            eprintln!("the server ended the stream; trying again in {} ms", retry_in.as_millis());
        }
        WorkerEvent::Refused(refused) => {
            eprintln!(
                "job {}: the server refused a result: {}",
                refused.result.key, refused.refusal
            );
        }
    }
}

async fn stop_asked(draining: Arc<AtomicBool>) {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    draining.store(true, Ordering::Relaxed);
    eprintln!("stopping: commands may end; press Ctrl-C again to end them now");
    tokio::spawn(async move {
        interrupt.recv().await;
        // Their groups are killed when their jobs are dropped; the leases end by themselves.
        process::kill_all();
        std::process::exit(130);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_json_or_becomes_it() {
        for (output, expected) in [
            ("", ""),
            (" \n", ""),
            ("{\"a\": 1}\n", "{\"a\": 1}"),
            ("12\n", "12"),
            ("hello \"you\"\n", "\"hello \\\"you\\\"\""),
            ("two\nlines\n", "\"two\\nlines\""),
        ] {
            assert_eq!(result(output.as_bytes().to_vec()), expected, "{output:?}");
        }
        assert_eq!(result(vec![0xff]), "\"\u{fffd}\"");
    }
}
