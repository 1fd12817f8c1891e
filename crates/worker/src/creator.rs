//! Creates of many callers, sent as batches: whatever asks while a batch is under way is the next one.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::client::{Client, Created};
use crate::error::Error;
use crate::v1;

/// Callers that may wait for a batch to be made of them.
const WAITING_MAX: usize = 10_000;
/// Bytes of one batch; one job alone may be larger. Servers read 4 MiB and more.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// How a [`BatchCreator`] works.
#[derive(Debug, Clone, Copy)]
pub struct BatchOptions {
    /// Jobs in one batch.
    pub jobs_max: usize,
    /// Batches under way at once. More than one lets a later batch overtake an earlier.
    pub batches_max: usize,
    /// Gives every job a request id (unless it has one) and asks again for this long when the server
    /// cannot be reached: then no create is lost and none is done twice.
    pub retry_for: Option<Duration>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self { jobs_max: 1_000, batches_max: 4, retry_for: None }
    }
}

/// Creates jobs one at a time, as fast as batches. Cheap to clone; ends with its last clone.
#[derive(Debug, Clone)]
pub struct BatchCreator {
    waiting: mpsc::Sender<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    job: v1::NewJob,
    answer: oneshot::Sender<Result<Created, Error>>,
}

impl BatchCreator {
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn new(client: Client, options: BatchOptions) -> Self {
        let (waiting, arriving) = mpsc::channel(WAITING_MAX);
        tokio::spawn(collect(client, options, arriving));
        Self { waiting }
    }

    /// Creates a job; durable when this returns.
    pub async fn create(&self, job: v1::NewJob) -> Result<Created, Error> {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { job, answer };
        self.waiting.send(waiting).await.map_err(|_| Error::Stopped)?;
        answered.await.map_err(|_| Error::Stopped)?
    }
}

async fn collect(client: Client, options: BatchOptions, mut arriving: mpsc::Receiver<Waiting>) {
    let permits = Arc::new(Semaphore::new(options.batches_max.max(1)));
    let mut arrived = Vec::new();
    loop {
        // The permit first: while all batches are under way, the next one grows.
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let jobs_max = options.jobs_max.max(1);
        if arrived.is_empty() && arriving.recv_many(&mut arrived, jobs_max).await == 0 {
            return;
        }
        let rest = arrived.split_off(batch_len(&arrived));
        let batch = std::mem::replace(&mut arrived, rest);
        let client = client.clone();
        tokio::spawn(async move {
            send(&client, options.retry_for, batch).await;
            drop(permit);
        });
    }
}

/// How many of these make a batch of bounded size.
fn batch_len(arrived: &[Waiting]) -> usize {
    let mut bytes = 0;
    let fits = arrived.iter().take_while(|waiting| {
        bytes += waiting.job.encoded_len();
        bytes <= BATCH_BYTES_MAX
    });
    fits.count().max(1).min(arrived.len())
}

async fn send(client: &Client, retry_for: Option<Duration>, batch: Vec<Waiting>) {
    let (mut jobs, answers): (Vec<_>, Vec<_>) =
        batch.into_iter().map(|waiting| (waiting.job, waiting.answer)).unzip();
    if retry_for.is_some() {
        jobs.iter_mut().for_each(name_request);
    }
    let until = retry_for.map(|time| Instant::now() + time);
    let mut backoff = Backoff::new();
    let results = loop {
        // Without a retry the jobs are not needed again.
        let attempt = if until.is_some() { jobs.clone() } else { std::mem::take(&mut jobs) };
        match client.create_jobs(attempt).await {
            Err(error) if error.is_transient() && until.is_some_and(|at| Instant::now() < at) => {
                tokio::time::sleep(backoff.next()).await;
            }
            results => break results,
        }
    };
    // A caller that does not wait any more is no error: its job exists.
    match results {
        Ok(results) => {
            for (answer, result) in answers.into_iter().zip(results) {
                let _ = answer.send(result.map_err(Error::Refused));
            }
        }
        Err(error) => {
            for answer in answers {
                let _ = answer.send(Err(again(&error)));
            }
        }
    }
}

fn name_request(job: &mut v1::NewJob) {
    let options = job.options_mut();
    if options.request_id.is_empty() {
        options.request_id = format!("{:032x}", fastrand::u128(..));
    }
}

/// The same error for one more caller of the batch.
fn again(error: &Error) -> Error {
    match error {
        Error::Unreachable { message } => Error::Unreachable { message: message.clone() },
        Error::Refused(refusal) => Error::Refused(refusal.clone()),
        Error::Protocol(what) => Error::Protocol(what),
        Error::Address { .. } | Error::Json(_) | Error::Stopped | Error::Invalid(_) => {
            Error::Stopped
        }
    }
}
