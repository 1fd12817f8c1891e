//! `windlass job create`.

use std::io::{BufRead, Read};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use windlass_worker::v1::{self, retry_policy::Policy};

use super::tail;
use crate::args::Online;
use crate::failure::Failure;
use crate::show::{is_at_rest, job_json, job_text};
use crate::units::{duration, grouped, millis};

/// Jobs in one batch of `--lines`.
const BATCH_JOBS: usize = 1_000;
/// Bytes of payload in one batch.
const BATCH_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// The queue
    queue: String,
    /// The payload, JSON by convention; - reads standard input, @FILE a file
    #[arg(default_value = "", hide_default_value = true)]
    payload: String,
    /// Create a job per line of standard input, in batches
    #[arg(long, conflicts_with_all = ["payload", "wait", "unique", "request_id"])]
    lines: bool,
    /// What work it is, if not the queue's name
    #[arg(long = "type", default_value = "", hide_default_value = true, value_name = "TYPE")]
    job_type: String,
    /// Whose turn it uses: groups of a queue are served round-robin
    #[arg(long, default_value = "", hide_default_value = true)]
    group: String,
    /// Higher goes first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Retries after the first attempt [default: 3]
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Not before this long from now
    #[arg(long, value_name = "TIME", value_parser = duration)]
    delay: Option<Duration>,
    /// Only one live job of the queue may have this key
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY")]
    unique: String,
    /// How long the unique key stays held after the job has ended
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "unique")]
    unique_hold: Option<Duration>,
    /// A repeated request within ten minutes makes no second job
    #[arg(long, default_value = "", hide_default_value = true, value_name = "ID")]
    request_id: String,
    /// Key of a limit of active jobs
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY")]
    concurrency_key: String,
    /// Key of a limit of activations per window
    #[arg(long, default_value = "", hide_default_value = true, value_name = "KEY")]
    rate_key: String,
    /// When a failed attempt is tried again: fixed:TIME, linear:TIME[,CAP], or
    /// exponential:TIME[,BASE[,CAP]]; otherwise at once, or when the worker says
    #[arg(long, value_name = "POLICY", value_parser = retry_policy)]
    retry: Option<v1::RetryPolicy>,
    /// What happens when no retries are left
    #[arg(long, value_enum, default_value_t = Exhausted::Incident)]
    exhausted: Exhausted,
    /// A cancel asks the worker first, instead of taking the job away
    #[arg(long)]
    cooperative_cancel: bool,
    /// An attempt that takes longer fails
    #[arg(long, value_name = "TIME", value_parser = duration)]
    attempt_timeout: Option<Duration>,
    /// A job that takes longer, waiting and retries included, ends as timed out
    #[arg(long, value_name = "TIME", value_parser = duration)]
    total_timeout: Option<Duration>,
    /// A job that no worker takes for this long ends as timed out
    #[arg(long, value_name = "TIME", value_parser = duration)]
    waiting_timeout: Option<Duration>,
    /// Static metadata, a JSON object
    #[arg(long, value_name = "JSON")]
    headers: Option<String>,
    /// Wait until the job has ended and print it; exit code 1 unless it completed
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Exhausted {
    /// It waits for a person
    Incident,
    /// It ends
    Fail,
}

pub(crate) async fn run(online: &Online, args: CreateArgs) -> Result<(), Failure> {
    let template = new_job(online, &args)?;
    if args.lines {
        return create_lines(online, &template).await;
    }
    let job = template.payload(input(&args.payload)?);
    let created = online.client.create_job(job).await?;
    if args.wait {
        return wait(online, created.key).await;
    }
    let value = json!({ "key": created.key, "existing": created.existing });
    online.out.show(&value, || {
        if created.existing {
            format!("{} (it exists already: this request was made before)", created.key)
        } else {
            created.key.to_string()
        }
    })
}

fn new_job(online: &Online, args: &CreateArgs) -> Result<v1::NewJob, Failure> {
    let headers = args.headers.as_deref().map(input).transpose()?.unwrap_or_default();
    if !headers.is_empty() && serde_json::from_slice::<serde_json::Value>(&headers).is_err() {
        return Err(Failure::new("--headers is not JSON"));
    }
    let deadline = |after: Option<Duration>, outcome: v1::DeadlineOutcome| {
        after.map(|after| v1::Deadline { after_ms: millis(after), outcome: outcome.into() })
    };
    let exhausted = match args.exhausted {
        Exhausted::Incident => v1::Exhausted::Incident,
        Exhausted::Fail => v1::Exhausted::Fail,
    };
    let cancel = if args.cooperative_cancel {
        v1::CancelPolicy::Cooperative
    } else {
        v1::CancelPolicy::AtOnce
    };
    let options = v1::JobOptions {
        headers,
        unique_key: args.unique.clone(),
        unique_hold_ms: args.unique_hold.map(millis).unwrap_or_default(),
        request_id: args.request_id.clone(),
        concurrency_key: args.concurrency_key.clone(),
        rate_key: args.rate_key.clone(),
        retry: args.retry,
        exhausted: exhausted.into(),
        waiting: deadline(args.waiting_timeout, v1::DeadlineOutcome::End),
        attempt: deadline(args.attempt_timeout, v1::DeadlineOutcome::FailAttempt),
        total: deadline(args.total_timeout, v1::DeadlineOutcome::End),
        cancel: cancel.into(),
        ..v1::JobOptions::default()
    };
    Ok(v1::NewJob {
        tenant: online.tenant.clone(),
        queue: args.queue.clone(),
        r#type: args.job_type.clone(),
        group: args.group.clone(),
        priority: args.priority,
        retries: args.retries,
        delay_ms: args.delay.map(millis).unwrap_or_default(),
        // Most jobs have none, and then the server keeps none.
        options: (options != v1::JobOptions::default()).then(|| Box::new(options)),
        ..v1::NewJob::default()
    })
}

/// A value of the command line: as it is, from standard input, or from a file.
pub(crate) fn input(text: &str) -> Result<Bytes, Failure> {
    if text == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().read_to_end(&mut bytes);
        read.map_err(|error| Failure::io("read standard input", error))?;
        return Ok(bytes.into());
    }
    match text.strip_prefix('@') {
        Some(path) => {
            let bytes = std::fs::read(path);
            Ok(bytes.map_err(|error| Failure::io(format!("read {path}"), error))?.into())
        }
        None => Ok(text.as_bytes().to_vec().into()),
    }
}

async fn create_lines(online: &Online, template: &v1::NewJob) -> Result<(), Failure> {
    let style = ProgressStyle::with_template("{spinner} {human_pos} jobs created, {per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let progress = ProgressBar::new_spinner().with_style(style);
    let (mut created, mut refused) = (0_u64, 0_u64);
    let mut lines = std::io::stdin().lock().split(b'\n');
    let mut ended = false;
    while !ended {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_JOBS && bytes < BATCH_BYTES_MAX {
            let Some(line) = lines.next() else {
                ended = true;
                break;
            };
            let line = line.map_err(|error| Failure::io("read standard input", error))?;
            if !line.is_empty() {
                bytes += line.len();
                batch.push(template.clone().payload(line));
            }
        }
        for result in online.client.create_jobs(batch).await? {
            match result {
                Ok(job) if online.out.json => {
                    online.out.line(&json!({ "key": job.key }).to_string())?;
                    created += 1;
                }
                Ok(_) => created += 1,
                Err(refusal) => {
                    progress.suspend(|| eprintln!("refused: {refusal}"));
                    refused += 1;
                }
            }
        }
        progress.set_position(created);
    }
    progress.finish_and_clear();
    if !online.out.json {
        online.out.line(&format!("{} jobs created", grouped(created)))?;
    }
    if refused > 0 { Err(Failure::new(format!("{refused} jobs were refused"))) } else { Ok(()) }
}

async fn wait(online: &Online, key: u64) -> Result<(), Failure> {
    let job = tail::until(online, key, |job| {
        is_at_rest(job.state()) || job.state() == v1::JobState::Incident
    })
    .await?;
    online.out.show(&job_json(&job), || job_text(&job))?;
    match job.state() {
        v1::JobState::Completed => Ok(()),
        v1::JobState::Incident => Err(Failure::new(format!("job {key} waits for a person"))
            .hint(format!("`windlass incident resolve {key}` lets it try again"))),
        v1::JobState::Unspecified
        | v1::JobState::Scheduled
        | v1::JobState::Ready
        | v1::JobState::Active
        | v1::JobState::Backoff
        | v1::JobState::Failed
        | v1::JobState::Cancelled => Err(Failure::new(format!("job {key} did not complete"))),
    }
}

fn retry_policy(text: &str) -> Result<v1::RetryPolicy, String> {
    let (kind, rest) = text.split_once(':').ok_or("expected for instance exponential:1s,2,5m")?;
    let mut parts = rest.split(',');
    let delay_ms = millis(duration(parts.next().unwrap_or_default())?);
    let mut optional = |reader: &dyn Fn(&str) -> Result<u64, String>, default| {
        parts.next().map_or(Ok(default), reader)
    };
    let time = |text: &str| duration(text).map(millis);
    let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
    let policy = match kind {
        "fixed" => Policy::Fixed(v1::retry_policy::Fixed { delay_ms, jitter_ms: 0 }),
        "linear" => {
            let cap_ms = optional(&time, 0)?;
            Policy::Linear(v1::retry_policy::Linear { delay_ms, scale: 1, cap_ms, jitter_ms: 0 })
        }
        "exponential" => {
            let base = u32::try_from(optional(&number, 2)?).map_err(|error| error.to_string())?;
            let cap_ms = optional(&time, 0)?;
            Policy::Exponential(v1::retry_policy::Exponential {
                delay_ms,
                base,
                cap_ms,
                ..v1::retry_policy::Exponential::default()
            })
        }
        _ => return Err(format!("{kind:?} is not fixed, linear or exponential")),
    };
    match parts.next() {
        Some(more) => Err(format!("{more:?} is one part too many")),
        None => Ok(v1::RetryPolicy { policy: Some(policy) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_policies_are_read() {
        let policy = |text| retry_policy(text).unwrap().policy.unwrap();
        let Policy::Exponential(exponential) = policy("exponential:1s,3,5m") else { panic!() };
        assert_eq!(
            (exponential.delay_ms, exponential.base, exponential.cap_ms),
            (1_000, 3, 300_000)
        );
        let Policy::Fixed(fixed) = policy("fixed:250ms") else { panic!() };
        assert_eq!(fixed.delay_ms, 250);
        for text in ["fixed", "never:1s", "fixed:1s,2", "exponential:1s,x", "linear:"] {
            assert!(retry_policy(text).is_err(), "{text}");
        }
    }
}
