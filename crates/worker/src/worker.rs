//! The worker: takes jobs from its queues, runs its handler on them, and never forgets a result.
//!
//! One loop owns the connection and the clock. A handler that never waits is run by the loop itself,
//! any other in a task of its own; both say their result into the outbox, so there is no hop in
//! between.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};
use tracing::{Instrument, debug, debug_span, info, warn};

use crate::client::Client;
use crate::convert::{Token, ms};
use crate::error::{Error, RefusalKind};
use crate::failure::Failure;
use crate::flight::{Answer, Flight};
use crate::handler::{self, Guarded, Handler};
use crate::job::Job;
use crate::link::{Link, LinkEvent};
use crate::metrics::{Metrics, add};
use crate::outbox::RefusedResult;
use crate::stream::Received;
use crate::v1;
use crate::v1::result::Outcome;

/// Jobs in flight, unless said otherwise.
pub const CONCURRENCY_DEFAULT: u32 = 32;
/// More slots than this help nobody, and servers give no more credits.
pub const CONCURRENCY_MAX: u32 = 65_536;
/// The lease, unless said otherwise.
pub const LEASE_DEFAULT: Duration = Duration::from_secs(60);
/// A shorter lease could end between two heartbeats.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// How long a drain waits for handlers, unless said otherwise.
pub const DRAIN_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// What handlers have to stop in, after a drain ran out of time and cancelled them.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// How long the last results may take to be answered.
const ANSWER_GRACE: Duration = Duration::from_secs(5);
/// How long the server may take to end the stream once everything is said.
const PART_GRACE: Duration = Duration::from_secs(2);
/// Heartbeats in one lease: two may get lost.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// A handler that keeps the loop longer than this, before its first wait, gets tasks of its own.
const RUN_NOW_MAX: Duration = Duration::from_micros(100);
/// For so many jobs; then it is tried again.
const SPAWN_JOBS: u32 = 1_000;

/// What an observer is told, besides what goes to `tracing`.
#[derive(Debug)]
pub enum WorkerEvent<'a> {
    /// A stream is open.
    Connected {
        /// Of the server.
        address: &'a str,
    },
    /// The stream could not be opened, or broke. Jobs go on; their results wait.
    Disconnected {
        /// Why; nothing when the server ended the stream.
        error: Option<&'a Error>,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// The server refused a result: somebody else has the job, or it is over.
    Refused(&'a RefusedResult),
}

type Observer = Box<dyn Fn(&WorkerEvent<'_>) + Send + Sync>;

/// Builds a [`Worker`]; made by [`Worker::builder`].
pub struct WorkerBuilder {
    client: Client,
    hello: v1::Hello,
    concurrency: u32,
    lease: Duration,
    drain_timeout: Duration,
    handler: Option<Handler>,
    observer: Option<Observer>,
}

/// See the [module](self). Runs when [`run`](Self::run) is awaited.
pub struct Worker {
    flight: Arc<Flight>,
    hello: v1::Hello,
    drain_timeout: Duration,
    handler: Handler,
    observer: Option<Observer>,
    /// Jobs that are not run by the loop, because the handler was slow lately.
    spawn_next: u32,
}

/// Steers and watches a running worker. Cheap to clone.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    flight: Arc<Flight>,
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Jobs that did not end in time, or came too late to begin, and were put back.
    pub put_back: usize,
    /// Results that the server did not answer in time. The server may have them all the same.
    pub unanswered: usize,
    /// The counters at the end.
    pub metrics: Metrics,
}

impl std::fmt::Debug for WorkerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerBuilder").field("hello", &self.hello).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("hello", &self.hello).finish_non_exhaustive()
    }
}

impl WorkerBuilder {
    /// Adds a queue to take from.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.hello.queues.push(queue.into());
        self
    }

    /// Names the tenant; otherwise the default one.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.hello.tenant = tenant.into();
        self
    }

    /// Names the worker, for people who ask who holds a job.
    #[must_use]
    pub fn worker(mut self, name: impl Into<String>) -> Self {
        self.hello.worker = name.into();
        self
    }

    /// Sets how many jobs are in the handler's hands at once.
    #[must_use]
    pub fn concurrency(mut self, concurrency: u32) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Sets the lease. It is extended for as long as the worker lives, so it says how soon others
    /// get the jobs of a worker that died.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long a drain waits for handlers before it cancels them.
    #[must_use]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Sets an async handler. Payload and result are JSON; an error fails the job, see [`Failure`].
    ///
    /// It is run by the worker's loop up to its first wait: work for the processor belongs into
    /// [`blocking_handler`](Self::blocking_handler).
    #[must_use]
    pub fn handler<T, R, E, F, Fut>(mut self, handle: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        R: Serialize,
        E: Into<Failure>,
        F: Fn(Job<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        self.handler = Some(handler::typed(handle));
        self
    }

    /// Sets a handler that may block or compute; each job has a thread of tokio's blocking pool.
    #[must_use]
    pub fn blocking_handler<T, R, E, F>(mut self, handle: F) -> Self
    where
        T: DeserializeOwned + Send + 'static,
        R: Serialize,
        E: Into<Failure>,
        F: Fn(Job<T>) -> Result<R, E> + Send + Sync + 'static,
    {
        self.handler = Some(handler::blocking(handle));
        self
    }

    /// Sets an async handler of bytes, which are never copied on their way.
    #[must_use]
    pub fn raw_handler<E, F, Fut>(mut self, handle: F) -> Self
    where
        E: Into<Failure>,
        F: Fn(Job<Bytes>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Bytes, E>> + Send + 'static,
    {
        self.handler = Some(handler::raw(handle));
        self
    }

    /// Sets what is told of connections and refused results. Called by the worker's loop: keep it
    /// short.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&WorkerEvent<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Checks everything.
    pub fn build(self) -> Result<Worker, Error> {
        let mut hello = self.hello;
        if hello.queues.is_empty() {
            return Err(Error::Invalid("it needs a queue"));
        }
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            return Err(Error::Invalid("its concurrency must be 1..=65,536"));
        }
        if self.lease < LEASE_MIN {
            return Err(Error::Invalid("its lease must be 100 ms or more"));
        }
        let handler = self.handler.ok_or(Error::Invalid("it needs a handler"))?;
        if hello.worker.is_empty() {
            hello.worker = format!("worker-{}", std::process::id());
        }
        hello.lease_ms = ms(self.lease);
        Ok(Worker {
            flight: Arc::new(Flight::new(self.client, self.lease, self.concurrency)),
            hello,
            drain_timeout: self.drain_timeout,
            handler,
            observer: self.observer,
            spawn_next: 0,
        })
    }
}

/// What the loop waits for.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is not kept")]
enum Event {
    Link(LinkEvent),
    HeartbeatDue,
    DrainAsked,
    LastJobLeft,
    StepOver,
}

/// Where a drain stands, and until when.
#[derive(Clone, Copy)]
enum Phase {
    Working,
    /// Handlers may end by themselves.
    Draining(Instant),
    /// Handlers were cancelled.
    Cancelled(Instant),
    /// What still ran was put back; the last answers are due.
    PutBack(Instant),
}

impl Phase {
    fn until(self) -> Option<Instant> {
        match self {
            Self::Working => None,
            Self::Draining(until) | Self::Cancelled(until) | Self::PutBack(until) => Some(until),
        }
    }
}

impl Worker {
    /// Begins to build one that talks through `client`.
    #[must_use]
    pub fn builder(client: Client) -> WorkerBuilder {
        WorkerBuilder {
            client,
            hello: v1::Hello::default(),
            concurrency: CONCURRENCY_DEFAULT,
            lease: LEASE_DEFAULT,
            drain_timeout: DRAIN_TIMEOUT_DEFAULT,
            handler: None,
            observer: None,
        }
    }

    /// Steers and watches it, also while it runs.
    #[must_use]
    pub fn handle(&self) -> WorkerHandle {
        WorkerHandle { flight: Arc::clone(&self.flight) }
    }

    /// Runs until `stop` is ready, then drains.
    pub async fn run_until(self, stop: impl Future<Output = ()> + Send) -> Result<Drained, Error> {
        let handle = self.handle();
        let mut running = std::pin::pin!(self.run());
        tokio::select! {
            ended = &mut running => ended,
            () = stop => {
                handle.drain();
                running.await
            }
        }
    }

    /// Runs until it is [drained](WorkerHandle::drain). It connects again by itself, also at the
    /// start; an error is one that no second attempt would heal.
    pub async fn run(mut self) -> Result<Drained, Error> {
        let flight = Arc::clone(&self.flight);
        let mut link = Link::new(Arc::clone(&flight), self.hello.clone());
        let mut phase = Phase::Working;
        let mut put_back = 0;
        let period = flight.lease / HEARTBEATS_PER_LEASE;
        let mut heartbeats = interval_at(Instant::now() + period, period);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let working = matches!(phase, Phase::Working);
            let event = tokio::select! {
                event = link.event() => Event::Link(event),
                _ = heartbeats.tick() => Event::HeartbeatDue,
                () = flight.drain_asked.cancelled(), if working => Event::DrainAsked,
                () = flight.empty.notified(), if !working => Event::LastJobLeft,
                () = sleep_until(phase.until().unwrap_or_else(Instant::now)), if !working => {
                    Event::StepOver
                }
            };
            match event {
                Event::Link(event) => {
                    let observer = self.observer.as_ref();
                    let received = link.handle(event, &|event| observe(observer, event))?;
                    if let Some(received) = received {
                        self.receive(received);
                    }
                }
                Event::HeartbeatDue => flight.heartbeat(),
                Event::DrainAsked => {
                    info!(worker = self.hello.worker, "draining");
                    flight.outbox.drain();
                    phase = Phase::Draining(Instant::now() + self.drain_timeout);
                }
                // It may have been told of an earlier moment.
                Event::LastJobLeft if flight.is_empty() => phase = last_job_left(phase),
                Event::LastJobLeft => {}
                Event::StepOver => match self.next_step(phase, &mut put_back) {
                    Some(next) => phase = next,
                    None => return Ok(self.ended(put_back)),
                },
            }
            let ending = !matches!(phase, Phase::Working);
            if ending && flight.is_empty() && flight.outbox.unanswered() == 0 {
                put_back += self.part(&mut link).await;
                return Ok(self.ended(put_back));
            }
        }
    }

    /// Closes our side. The server takes back what it has not sent, and ends the stream behind what it has:
    /// those jobs are put back, so that nobody waits for a lease to end. How many there were.
    async fn part(&self, link: &mut Link) -> usize {
        self.flight.outbox.close();
        let mut put_back = 0;
        let observer = self.observer.as_ref();
        let reading = async {
            loop {
                let received = match link.event().await {
                    LinkEvent::Received(received) => received,
                    opened @ LinkEvent::Opened(Ok(_)) => {
                        // It brings nothing and cannot fail.
                        let _ = link.handle(opened, &|event| observe(observer, event));
                        continue;
                    }
                    LinkEvent::Opened(Err(_)) | LinkEvent::Broken(_) | LinkEvent::TimeToOpen => {
                        break;
                    }
                };
                for job in received.jobs {
                    let client = &self.flight.client;
                    let released = client.release_job(Token::from(&job), Duration::ZERO).await;
                    // When that fails the lease ends by itself.
                    put_back += usize::from(released.is_ok());
                }
            }
        };
        // A server that does not end the stream is not waited for any longer.
        let _ = tokio::time::timeout(PART_GRACE, reading).await;
        add(&self.flight.counters.released, put_back);
        put_back
    }

    fn next_step(&self, phase: Phase, put_back: &mut usize) -> Option<Phase> {
        let now = Instant::now();
        match phase {
            Phase::Working => Some(Phase::Working),
            Phase::Draining(_) => {
                self.flight.cancel_all();
                Some(Phase::Cancelled(now + CANCEL_GRACE))
            }
            Phase::Cancelled(_) => {
                *put_back += self.flight.put_back_all();
                Some(Phase::PutBack(now + ANSWER_GRACE))
            }
            Phase::PutBack(_) => None,
        }
    }

    fn ended(&self, put_back: usize) -> Drained {
        let unanswered = self.flight.outbox.unanswered();
        self.flight.outbox.close();
        Drained { put_back, unanswered, metrics: self.flight.metrics() }
    }

    fn receive(&mut self, received: Received) {
        let Received { jobs, answered, refused, stops, welcome } = received;
        if let Some(welcome) = welcome {
            debug!(
                version = welcome.version,
                lease_ms = welcome.lease_ms,
                "the server welcomed us"
            );
        }
        add(&self.flight.counters.answered, answered);
        for refused in &refused {
            self.refused(refused);
        }
        if !stops.is_empty() {
            self.flight.stop(&stops);
        }
        if !jobs.is_empty() {
            self.start_all(jobs);
        }
    }

    fn refused(&self, refused: &RefusedResult) {
        add(&self.flight.counters.refused, 1);
        let (key, refusal) = (refused.result.key, &refused.refusal);
        warn!(key, %refusal, "a result was refused");
        observe(self.observer.as_ref(), &WorkerEvent::Refused(refused));
        if refusal.kind.is_transient() {
            // Not a verdict about the job: said again, behind what waits by then.
            self.flight.outbox.push_all([refused.result.clone()], 0);
        } else if let Some(failed) = failed_by(refused) {
            self.flight.outbox.push_all([failed], 0);
        }
    }

    fn start_all(&mut self, jobs: Vec<v1::Job>) {
        let mut answers: Vec<(Token, Answer)> = Vec::with_capacity(jobs.len());
        for (job, watch) in self.flight.arrive(jobs) {
            let span =
                debug_span!("job", key = job.key, r#type = job.r#type, attempt = job.attempt);
            let token = Token::from(&job);
            let job = Job::arrived(job, &self.flight, watch);
            let began = Instant::now();
            let mut guarded = span.in_scope(|| Guarded::start(&self.handler, job, &self.flight));
            if self.spawn_next > 0 {
                self.spawn_next -= 1;
            } else {
                let answer = span.in_scope(|| guarded.run_now());
                let slow = began.elapsed() > RUN_NOW_MAX;
                if slow {
                    self.spawn_next = SPAWN_JOBS;
                }
                if let Some(answer) = answer {
                    answers.push((token, answer));
                    if slow {
                        self.flight.finish(answers.drain(..));
                    }
                    continue;
                }
            }
            let flight = Arc::clone(&self.flight);
            let work = async move { flight.finish([(token, guarded.await)]) };
            let task = tokio::spawn(work.instrument(span));
            self.flight.note_task(token, task.abort_handle());
        }
        self.flight.finish(answers);
    }
}

fn last_job_left(phase: Phase) -> Phase {
    let answers_until = Instant::now() + ANSWER_GRACE;
    match phase {
        Phase::Working => Phase::Working,
        Phase::Draining(_) | Phase::Cancelled(_) => Phase::PutBack(answers_until),
        Phase::PutBack(until) => Phase::PutBack(until),
    }
}

/// What is said instead of a result that no job can have, as one that is too large: it would be
/// refused after every attempt.
fn failed_by(refused: &RefusedResult) -> Option<v1::Result> {
    let v1::Result { key, activation, ref outcome } = refused.result;
    let ends = match outcome {
        Some(Outcome::Complete(_) | Outcome::Throw(_) | Outcome::Release(_)) => true,
        // With nothing in it that could be refused, it is a failure of ours already.
        Some(Outcome::Fail(fail)) => {
            !fail.variables.is_empty() || fail.backoff_ms.is_some() || fail.retries.is_some()
        }
        Some(Outcome::Progress(_) | Outcome::Log(_)) | None => false,
    };
    let never = match refused.refusal.kind {
        RefusalKind::InvalidArgument => true,
        // Not every job can end with an error of its domain.
        RefusalKind::FailedPrecondition => matches!(outcome, Some(Outcome::Throw(_))),
        RefusalKind::NotFound
        | RefusalKind::AlreadyExists
        | RefusalKind::ResourceExhausted
        | RefusalKind::Unavailable
        | RefusalKind::Denied
        | RefusalKind::Unimplemented
        | RefusalKind::Internal => false,
    };
    if !never || !ends {
        return None;
    }
    let message = format!("the result was refused: {}", refused.refusal.message);
    let outcome = Some(Failure::permanent(message).into_outcome());
    Some(v1::Result { key, activation, outcome })
}

fn observe(observer: Option<&Observer>, event: &WorkerEvent<'_>) {
    match event {
        WorkerEvent::Connected { address } => info!(address, "connected"),
        WorkerEvent::Disconnected { error, retry_in } => {
            let reason = error.map_or_else(|| "the server ended it".to_owned(), Error::to_string);
            let retry_ms = ms(*retry_in);
            warn!(reason, retry_ms, "no connection");
        }
        WorkerEvent::Refused(_) => {}
    }
    if let Some(observer) = observer {
        observer(event);
    }
}

impl WorkerHandle {
    /// Takes no more jobs, finishes what runs, and ends the worker. Jobs that do not end within the
    /// drain timeout are cancelled, and soon after put back.
    pub fn drain(&self) {
        self.flight.drain_asked.cancel();
    }

    /// The counters now.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.flight.metrics()
    }
}
