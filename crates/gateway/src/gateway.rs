//! The gateway itself: commands in, durable answers out.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use windlass_history::History;
use windlass_partition::request::{
    Answer, Change, Changed, Commands, HandedJob, InstanceRun, Refused, Request, RunInstance,
    Unsent, WaiterId,
};
use windlass_partition::{Durability, Handle};
use windlass_record::bound::Bound;
use windlass_record::command::Command;
use windlass_record::flow::{CreateInstance, FlowCommand};
use windlass_record::rejection::Rejection;

use crate::error::GatewayError;
use crate::history::Searches;
use crate::limits::Limits;
use crate::metrics::{Metrics, Verb};
use crate::stream::EndStream;

/// A result per command, in order.
pub type Answers = Vec<Result<Answer, Refused>>;

/// The way to the partition; cheap to clone.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    partition: Handle,
    pub(crate) limits: Limits,
    /// Shared with every request under way: it is dozens of counters, each counted by reference.
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) searches: Option<Searches>,
    started: Instant,
    /// Batches of results that wait for their answer.
    result_places: Arc<Semaphore>,
    last_waiter: AtomicU64,
    waiters: AtomicUsize,
    pub(crate) shutting_down: watch::Sender<bool>,
    /// Streams that are told when the server shuts down. Swept as it grows.
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    open: Vec<Weak<dyn EndStream>>,
    sweep_at: usize,
}

impl Gateway {
    /// A gateway in front of one partition.
    pub fn new(partition: Handle, limits: Limits) -> Gateway {
        Gateway::with_history(partition, limits, None)
    }

    /// The same, with the read model of that partition.
    pub fn with_history(partition: Handle, limits: Limits, history: Option<History>) -> Gateway {
        let shared = Shared {
            partition,
            limits,
            metrics: Arc::default(),
            searches: history.map(Searches::new),
            started: Instant::now(),
            result_places: Arc::new(Semaphore::new(limits.result_batches_max)),
            last_waiter: AtomicU64::new(0),
            waiters: AtomicUsize::new(0),
            shutting_down: watch::Sender::new(false),
            streams: Mutex::default(),
        };
        Gateway { shared: Arc::new(shared) }
    }

    /// Creates, updates and settings: refused when too much is waiting. Answered when durable,
    /// each item for itself.
    pub async fn commands(&self, items: Vec<Command>) -> Result<Answers, GatewayError> {
        self.shared.limits.batch(items.len())?;
        let (sender, answer) = oneshot::channel();
        self.shared.hand_over(items, move |answers| {
            // A caller that is gone does not want to know.
            let _gone = sender.send(answers);
        })?;
        answer.await.map_err(|_| GatewayError::Stopped)
    }

    /// One of [`Gateway::commands`].
    pub async fn command(&self, command: Command) -> Result<Answer, GatewayError> {
        single(self.commands(vec![command]).await?)
    }

    /// Results, progress, heartbeats and cancels: waits for a place and is never refused for load.
    pub async fn results(&self, items: Vec<Command>) -> Result<Answers, GatewayError> {
        self.shared.limits.batch(items.len())?;
        let place = self.shared.result_place().await?;
        let (sender, answer) = oneshot::channel();
        self.shared.hand_over(items, move |answers| {
            let _gone = sender.send(answers);
            drop(place);
        })?;
        answer.await.map_err(|_| GatewayError::Stopped)
    }

    /// One of [`Gateway::results`].
    pub async fn result(&self, command: Command) -> Result<Answer, GatewayError> {
        single(self.results(vec![command]).await?)
    }

    /// Starts a process and waits for its end, `wait_ms` at most.
    pub async fn run_instance(
        &self,
        command: CreateInstance,
        wait_ms: u64,
    ) -> Result<InstanceRun, GatewayError> {
        let request = |reply| Request::RunInstance(RunInstance { command, wait_ms, reply });
        self.awaited(Verb::CREATE_INSTANCE, request).await
    }

    /// Changes a user task or the variables of one, and waits until its listeners are through,
    /// `wait_ms` at most. Other commands on flows are answered at once.
    pub async fn change(
        &self,
        command: FlowCommand,
        wait_ms: u64,
    ) -> Result<Changed, GatewayError> {
        let verb = Verb::of_flow(&command);
        self.awaited(verb, |reply| Request::Change(Change { command, wait_ms, reply })).await
    }

    /// One command whose answer is waited for beyond its being taken. Counted, and timed with the
    /// wait.
    async fn awaited<T: Send + 'static>(
        &self,
        verb: Verb,
        request: impl FnOnce(Box<dyn FnOnce(Result<T, Refused>) + Send>) -> Request,
    ) -> Result<T, GatewayError> {
        let (sender, answer) = oneshot::channel();
        let (metrics, since) = (Arc::clone(&self.shared.metrics), Instant::now());
        let reply = Box::new(move |result: Result<T, Refused>| {
            let counted = result.as_ref().map(|_| Answer::Done).map_err(Clone::clone);
            metrics.answered(&[verb], &[counted], since.elapsed());
            // A caller that is gone does not want to know.
            let _gone = sender.send(result);
        });
        let submitted = self.shared.submit(request(reply));
        submitted.inspect_err(|error| self.shared.metrics.turned_away(verb, error))?;
        Ok(answer.await.map_err(|_| GatewayError::Stopped)??)
    }

    /// What the gateway counted.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// What an acknowledgement means; as text it is in words.
    pub fn durability(&self) -> Durability {
        self.shared.partition.durability()
    }

    /// How long this process has been at it.
    pub fn uptime(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// Whether [`Gateway::shut_down`] was called.
    pub fn is_shutting_down(&self) -> bool {
        *self.shared.shutting_down.borrow()
    }

    /// Ends waiting polls with nothing, and streams once what they were told is durable. Commands
    /// are still taken, so that requests under way can finish.
    pub fn shut_down(&self) {
        self.shared.shutting_down.send_replace(true);
        let streams = std::mem::take(&mut self.shared.streams().open);
        for stream in streams.iter().filter_map(Weak::upgrade) {
            stream.shut_down();
        }
    }

    /// Returns once [`Gateway::shut_down`] was called.
    pub async fn until_shut_down(&self) {
        let mut shutting_down = self.shared.shutting_down.subscribe();
        // Its sender lives as long as this does.
        let _closed = shutting_down.wait_for(|shutting_down| *shutting_down).await;
    }

    /// Gives back jobs of a poll that the face did not send: they are ready again at once.
    pub fn give_back(&self, jobs: &[HandedJob]) {
        self.shared.give_back(jobs);
    }

    /// Polls and streams that wait.
    pub fn waiters(&self) -> usize {
        self.shared.waiters.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Hands commands to the partition; the closure gets the answers on its commit thread.
    pub(crate) fn hand_over(
        &self,
        items: Vec<Command>,
        reply: impl FnOnce(Answers) + Send + 'static,
    ) -> Result<(), GatewayError> {
        let verbs: Vec<Verb> = items.iter().map(Verb::of).collect();
        let refused_verbs = verbs.first().copied();
        let metrics = Arc::clone(&self.metrics);
        let since = Instant::now();
        let reply = Box::new(move |answers: Answers| {
            debug_assert_eq!(answers.len(), verbs.len(), "every command has one answer");
            metrics.answered(&verbs, &answers, since.elapsed());
            reply(answers);
        });
        self.submit(Request::Commands(Commands { items, reply })).inspect_err(|error| {
            if let Some(verb) = refused_verbs {
                self.metrics.turned_away(verb, error);
            }
        })
    }

    pub(crate) fn submit(&self, request: Request) -> Result<(), GatewayError> {
        self.partition.submit(request).map_err(GatewayError::from)
    }

    /// Gives back jobs that no worker saw.
    pub(crate) fn give_back(&self, jobs: &[HandedJob]) {
        if jobs.is_empty() {
            return;
        }
        self.metrics.returned(jobs.len());
        let unsent: Vec<Unsent> = jobs.iter().map(|job| job.unsent).collect();
        // A partition that has stopped extends every lease when it comes back; they end there.
        let _stopped = self.submit(Request::Return(unsent));
    }

    /// Waits until fewer than the limit of result batches are under way.
    pub(crate) async fn result_place(&self) -> Result<OwnedSemaphorePermit, GatewayError> {
        Arc::clone(&self.result_places).acquire_owned().await.map_err(|_| GatewayError::Stopped)
    }

    pub(crate) fn next_waiter(&self) -> WaiterId {
        WaiterId(self.last_waiter.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A place among those who wait, given back when dropped.
    pub(crate) fn waiting_place(self: &Arc<Self>) -> Result<WaitingPlace, GatewayError> {
        let max = self.limits.waiters_max;
        if self.waiters.fetch_add(1, Ordering::Relaxed) >= max {
            self.waiters.fetch_sub(1, Ordering::Relaxed);
            let max = u64::try_from(max).unwrap_or(u64::MAX);
            return Err(Rejection::Exhausted { bound: Bound::Waiters, max }.into());
        }
        Ok(WaitingPlace { shared: Arc::clone(self) })
    }

    pub(crate) fn remember(&self, stream: Weak<dyn EndStream>) {
        let mut streams = self.streams();
        if streams.open.len() >= streams.sweep_at {
            streams.open.retain(|stream| stream.strong_count() > 0);
            streams.sweep_at = (streams.open.len() * 2).max(64);
        }
        streams.open.push(stream);
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Shared::waiting_place`].
pub(crate) struct WaitingPlace {
    shared: Arc<Shared>,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.shared.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

fn single(answers: Answers) -> Result<Answer, GatewayError> {
    let answer = answers.into_iter().next().ok_or(GatewayError::Stopped)?;
    answer.map_err(GatewayError::from)
}
