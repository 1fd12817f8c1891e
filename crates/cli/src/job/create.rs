//! `windlass job create`.

use std::io::{BufRead, Read};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use windlass_worker::v1;

use super::{retry_policy, tail};
use crate::args::Online;
use crate::failure::Failure;
use crate::json;
use crate::show::{is_at_rest, job_text};
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
    #[arg(long, value_name = "POLICY", value_parser = retry_policy::parse, help = retry_policy::HELP)]
    retry: Option<v1::RetryPolicy>,
    /// What happens when no retries are left
    #[arg(long, value_enum, default_value_t = Exhausted::Incident)]
    exhausted: Exhausted,
    /// How a cancel treats the job while a worker has it
    #[arg(long, value_enum, default_value_t = Cancel::AtOnce)]
    cancel: Cancel,
    /// An attempt that takes longer fails, or what OUTCOME says: again (the job is ready again),
    /// fail-attempt, end (as timed out), or alert (it goes on, and shows the alert)
    #[arg(long, value_name = "TIME[,OUTCOME]", value_parser = deadline)]
    attempt_timeout: Option<Deadline>,
    /// A job that takes longer, waiting and retries included, ends as timed out, or OUTCOME
    #[arg(long, value_name = "TIME[,OUTCOME]", value_parser = deadline)]
    total_timeout: Option<Deadline>,
    /// A job that no worker takes for this long ends as timed out, or OUTCOME
    #[arg(long, value_name = "TIME[,OUTCOME]", value_parser = deadline)]
    waiting_timeout: Option<Deadline>,
    /// What follows when the worker is silent until its lease has ended
    #[arg(long, value_enum, default_value_t = Outcome::Again, value_name = "OUTCOME")]
    lease_timeout: Outcome,
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

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Cancel {
    /// It ends
    AtOnce,
    /// Its worker is asked to stop; a completion that comes first does not count
    Cooperative,
    /// Its worker is asked to stop; a completion that comes first counts
    CompletionCounts,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Outcome {
    /// The job is ready again
    Again,
    /// The attempt has failed
    FailAttempt,
    /// The job ends as timed out
    End,
    /// The job goes on, and shows the alert
    Alert,
}

impl Outcome {
    fn wire(self) -> v1::DeadlineOutcome {
        match self {
            Self::Again => v1::DeadlineOutcome::Again,
            Self::FailAttempt => v1::DeadlineOutcome::FailAttempt,
            Self::End => v1::DeadlineOutcome::End,
            Self::Alert => v1::DeadlineOutcome::Alert,
        }
    }
}

/// A deadline, with what it does if that was said.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    after: Duration,
    outcome: Option<Outcome>,
}

/// Reads for instance `10m` or `10m,alert`.
fn deadline(text: &str) -> Result<Deadline, String> {
    let (after, outcome) = match text.split_once(',') {
        Some((after, outcome)) => {
            let one_of =
                || "expected again, fail-attempt, end or alert behind the comma".to_owned();
            (after, Some(Outcome::from_str(outcome, false).map_err(|_| one_of())?))
        }
        None => (text, None),
    };
    Ok(Deadline { after: duration(after)?, outcome })
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
    let value = json!({ "key": json::key(created.key), "existing": created.existing });
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
    let deadline = |given: Option<Deadline>, usual: Outcome| {
        given.map(|Deadline { after, outcome }| v1::Deadline {
            after_ms: millis(after),
            outcome: outcome.unwrap_or(usual).wire().into(),
        })
    };
    let exhausted = match args.exhausted {
        Exhausted::Incident => v1::Exhausted::Incident,
        Exhausted::Fail => v1::Exhausted::Fail,
    };
    let cancel = match args.cancel {
        Cancel::AtOnce => v1::CancelPolicy::AtOnce,
        Cancel::Cooperative => v1::CancelPolicy::Cooperative,
        Cancel::CompletionCounts => v1::CancelPolicy::CooperativeCompletionCounts,
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
        waiting: deadline(args.waiting_timeout, Outcome::End),
        attempt: deadline(args.attempt_timeout, Outcome::FailAttempt),
        total: deadline(args.total_timeout, Outcome::End),
        cancel: cancel.into(),
        lease_outcome: args.lease_timeout.wire().into(),
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
                    online.out.line(&json!({ "key": json::key(job.key) }).to_string())?;
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
    online.out.show(&json::job(&job), || job_text(&job))?;
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
