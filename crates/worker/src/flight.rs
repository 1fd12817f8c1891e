//! The jobs in a worker's hands: from the moment they arrive until their result is said.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::convert::Token;
use crate::failure::Failure;
use crate::metrics::{Counters, Metrics, add};
use crate::outbox::{Outbox, Outgoing};
use crate::stream::result_of;
use crate::v1::{self, result::Outcome};

/// What a handler came to.
pub(crate) type Answer = Result<Bytes, Failure>;

/// Shared by the worker's loop, its handles, and the contexts of its jobs.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) client: Client,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) counters: Counters,
    /// Told when the last job has left.
    pub(crate) empty: Notify,
    pub(crate) drain_asked: CancellationToken,
    pub(crate) lease: Duration,
    concurrency: u32,
    /// Locked before the outbox, so that free slots and credits said always add up.
    jobs: Mutex<FxHashMap<Token, InFlight>>,
}

#[derive(Debug)]
struct InFlight {
    watch: Arc<Watch>,
    /// Its lease needs no heartbeat before this.
    quiet_until: Instant,
    /// Once it runs in a task of its own.
    abort: Option<AbortHandle>,
}

/// How a job learns that it should stop.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) cancelled: CancellationToken,
    pub(crate) lease_lost: AtomicBool,
}

impl Flight {
    pub(crate) fn new(client: Client, lease: Duration, concurrency: u32) -> Self {
        Self {
            client,
            outbox: Arc::default(),
            counters: Counters::default(),
            empty: Notify::new(),
            drain_asked: CancellationToken::new(),
            lease,
            concurrency,
            jobs: Mutex::default(),
        }
    }

    /// Begins a stream whose credits are the slots that are free, and at once extends what runs, but for
    /// leases that were given more time than a heartbeat would.
    pub(crate) fn attach(&self, hello: v1::Hello) -> Outgoing {
        let jobs = self.lock();
        let taken = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        let free = if self.drain_asked.is_cancelled() { 0 } else { self.concurrency };
        let outgoing = self.outbox.attach(hello, free.saturating_sub(taken));
        self.outbox.heartbeat(in_need(&jobs, Instant::now() + self.lease / 6));
        outgoing
    }

    /// Jobs arrived.
    pub(crate) fn arrive(&self, jobs: Vec<v1::Job>) -> Vec<(v1::Job, Arc<Watch>)> {
        add(&self.counters.received, jobs.len());
        // A lease just given needs no heartbeat before half of the time to the next round.
        let quiet_until = Instant::now() + self.lease / 6;
        let mut flying = self.lock();
        let arrived = jobs.into_iter().map(|job| {
            let watch = Arc::<Watch>::default();
            let entry = InFlight { watch: Arc::clone(&watch), quiet_until, abort: None };
            flying.insert(Token::from(&job), entry);
            (job, watch)
        });
        arrived.collect()
    }

    /// The job goes on in a task of its own. It may have finished before this is noted.
    pub(crate) fn note_task(&self, token: Token, abort: AbortHandle) {
        if let Some(job) = self.lock().get_mut(&token) {
            job.abort = Some(abort);
        }
    }

    /// Says the results of jobs and gives their slots back. A job that has already left (it was put
    /// back by a drain) says nothing.
    pub(crate) fn finish(&self, answers: impl IntoIterator<Item = (Token, Answer)>) {
        let mut jobs = self.lock();
        let mut results = Vec::new();
        for (token, answer) in answers {
            if jobs.remove(&token).is_some() {
                let outcome = outcome(answer);
                self.count(&outcome);
                results.push(result_of(token, outcome));
            }
        }
        let free = u32::try_from(results.len()).unwrap_or(u32::MAX);
        let credits = if self.drain_asked.is_cancelled() { 0 } else { free };
        self.outbox.push_all(results, credits);
        if jobs.is_empty() {
            self.empty.notify_one();
        }
    }

    /// The server says that these should stop.
    pub(crate) fn stop(&self, stops: &[v1::Stop]) {
        add(&self.counters.stops, stops.len());
        let jobs = self.lock();
        for stop in stops {
            let token = Token { key: stop.key, activation: stop.activation };
            if let Some(job) = jobs.get(&token) {
                job.watch.lease_lost.fetch_or(stop.lease_lost, Ordering::Relaxed);
                job.watch.cancelled.cancel();
            }
        }
    }

    /// Cancels the contexts of all jobs.
    pub(crate) fn cancel_all(&self) {
        for job in self.lock().values() {
            job.watch.cancelled.cancel();
        }
    }

    /// Puts back everything that still runs and ends its tasks. How many there were.
    pub(crate) fn put_back_all(&self) -> usize {
        let mut jobs = self.lock();
        let count = jobs.len();
        let results: Vec<v1::Result> = jobs
            .drain()
            .map(|(token, job)| {
                if let Some(abort) = job.abort {
                    abort.abort();
                }
                result_of(token, Outcome::Release(v1::Release::default()))
            })
            .collect();
        add(&self.counters.released, count);
        self.outbox.push_all(results, 0);
        count
    }

    /// Extends the leases of all jobs that need it.
    pub(crate) fn heartbeat(&self) {
        let tokens = in_need(&self.lock(), Instant::now());
        if !tokens.is_empty() {
            add(&self.counters.heartbeats, tokens.len());
            self.outbox.heartbeat(tokens);
        }
    }

    /// The lease of this job is being extended by other means: a heartbeat that comes behind it must not
    /// shorten it. One is left out, of the two that may be.
    pub(crate) fn extending(&self, token: Token) {
        if let Some(job) = self.lock().get_mut(&token) {
            job.quiet_until = job.quiet_until.max(Instant::now() + self.lease / 3);
        }
    }

    /// It was: a heartbeat must not shorten it.
    pub(crate) fn extended(&self, token: Token, lease: Duration) {
        if let Some(job) = self.lock().get_mut(&token) {
            job.quiet_until = Instant::now() + lease.saturating_sub(self.lease * 2 / 3);
        }
    }

    /// Sends what may be lost.
    pub(crate) fn note(&self, token: Token, outcome: Outcome) {
        if !self.outbox.push_note(result_of(token, outcome)) {
            add(&self.counters.notes_dropped, 1);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn metrics(&self) -> Metrics {
        let in_flight = self.lock().len();
        self.counters.read(in_flight)
    }

    fn count(&self, outcome: &Outcome) {
        let counter = match outcome {
            Outcome::Complete(_) => &self.counters.completed,
            Outcome::Fail(_) => &self.counters.failed,
            Outcome::Throw(_) => &self.counters.thrown,
            Outcome::Release(_) => &self.counters.released,
            Outcome::Progress(_) | Outcome::Log(_) => return,
        };
        add(counter, 1);
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<Token, InFlight>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The largest result, and the most that a failure leaves behind, in bytes: a message of 4 MiB has to
/// hold it, and the server would end the stream over a larger one.
const RESULT_BYTES_MAX: usize = (4 << 20) - (64 << 10);

/// The jobs whose leases need a heartbeat by then.
fn in_need(jobs: &FxHashMap<Token, InFlight>, by: Instant) -> Vec<v1::Token> {
    let due = jobs.iter().filter(|(_, job)| job.quiet_until <= by);
    due.map(|(token, _)| v1::Token::from(*token)).collect()
}

fn outcome(answer: Answer) -> Outcome {
    let too_large = |bytes: usize| {
        let message = format!("the result has {bytes} bytes, more than {RESULT_BYTES_MAX}");
        Failure::permanent(message).into_outcome()
    };
    match answer {
        Ok(result) if result.len() > RESULT_BYTES_MAX => too_large(result.len()),
        Err(failure) if failure.variables_bytes() > RESULT_BYTES_MAX => {
            too_large(failure.variables_bytes())
        }
        Ok(result) => Outcome::Complete(v1::Complete { result, documents: Vec::new() }),
        Err(failure) => failure.into_outcome(),
    }
}

/// What a panic leaves behind, as the failure of the job.
pub(crate) fn panicked(counters: &Counters, panic: &(dyn Any + Send)) -> Failure {
    add(&counters.panicked, 1);
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(format!("the handler panicked: {}", words.unwrap_or("no message")))
}
