//! Waiting for jobs until closed: the two ends of a worker's connection.
//!
//! ```text
//!  the face's reader ── StreamControl ──► partition        credits, results, drain
//!  the transport     ◄── Deliveries ─── outbox ◄── partition   jobs, answers, stops
//! ```
//!
//! The outbox is one lock and one waker. The partition's commit thread puts in, the transport takes
//! all there is when it can send: what came together leaves together, and a slow connection makes
//! larger messages, not a longer queue of small ones. Its length is bounded: jobs by the credits,
//! answers by the result batches that may be under way.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use windlass_partition::request::{HandedJob, Request, Stream, StreamSink, WaiterId, Wanted};
use windlass_record::command::Command;
use windlass_record::id::JobKey;

use crate::error::GatewayError;
use crate::gateway::{Answers, Gateway, Shared, WaitingPlace};

/// What came together for a worker.
#[derive(Debug)]
pub struct Delivery<C> {
    /// Jobs to send.
    pub jobs: Vec<HandedJob>,
    /// Answers to what the worker said, in the order in which it said it, each with what was
    /// given to [`StreamControl::results`].
    pub answers: Vec<(C, Answers)>,
    /// Jobs that the worker was asked to stop. It may not hold them.
    pub stops: Vec<Stop>,
}

/// A job that a worker was asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The job.
    pub key: JobKey,
    /// The activation meant.
    pub activation: u32,
}

impl Gateway {
    /// Opens a stream. `C` is what the face wants to see again beside an answer.
    pub fn open_stream<C: Send + 'static>(
        &self,
        wanted: Wanted,
        credits: u32,
    ) -> Result<(StreamControl<C>, Deliveries<C>), GatewayError> {
        self.shared.limits.wanted(&wanted)?;
        self.shared.limits.credits(0, credits)?;
        if self.is_shutting_down() {
            return Err(GatewayError::ShuttingDown);
        }
        let place = self.shared.waiting_place()?;
        let id = self.shared.next_waiter();
        let outbox = Arc::new(Outbox {
            id,
            shared: Arc::clone(&self.shared),
            inside: Mutex::new(Inside::new(credits)),
        });
        let sink = Box::new(Sink { outbox: Arc::clone(&outbox) });
        self.shared.submit(Request::OpenStream(Stream { id, wanted, credits, sink }))?;
        let weak: Weak<Outbox<C>> = Arc::downgrade(&outbox);
        self.shared.remember(weak);
        if self.is_shutting_down() {
            outbox.shut_down();
        }
        let deliveries = Deliveries { outbox: Arc::clone(&outbox), _place: place };
        Ok((StreamControl { outbox }, deliveries))
    }
}

/// What the worker says goes in here. When dropped, no more comes from the worker: the stream ends
/// when everything it said has been answered.
pub struct StreamControl<C: Send + 'static> {
    outbox: Arc<Outbox<C>>,
}

impl<C: Send + 'static> StreamControl<C> {
    /// The worker can take more jobs.
    pub fn add_credits(&self, credits: u32) -> Result<(), GatewayError> {
        if credits == 0 {
            return Ok(());
        }
        let shared = &self.outbox.shared;
        {
            let mut inside = self.outbox.lock();
            if inside.closed {
                return Ok(());
            }
            shared.limits.credits(inside.credits, credits)?;
            inside.credits += credits;
        }
        shared.submit(Request::AddCredits(self.outbox.id, credits))
    }

    /// The worker's results and heartbeats, in order. Waits for a place; the answers come out of
    /// [`Deliveries`] with `context`.
    pub async fn results(&self, items: Vec<Command>, context: C) -> Result<(), GatewayError> {
        let shared = &self.outbox.shared;
        shared.limits.batch(items.len())?;
        let place = shared.result_place().await?;
        let unanswered = Unanswered::new(&self.outbox);
        shared.hand_over(items, move |answers| {
            unanswered.answer(context, answers);
            drop(place);
        })
    }

    /// The worker wants no more jobs; what it was sent it will still answer.
    pub fn drain(&self) {
        self.outbox.close();
    }
}

impl<C: Send + 'static> Drop for StreamControl<C> {
    fn drop(&mut self) {
        self.outbox.close();
        self.outbox.put(|inside| inside.silent = true);
    }
}

/// What goes to the worker comes out here. When dropped, jobs that were not taken go back.
pub struct Deliveries<C: Send + 'static> {
    outbox: Arc<Outbox<C>>,
    _place: WaitingPlace,
}

impl<C: Send + 'static> Deliveries<C> {
    /// Takes what there is, at most `jobs_max` jobs and about `bytes_max` bytes of them. `None`
    /// when the stream has ended, an error when the server ended it.
    pub fn poll_next(
        &self,
        context: &mut Context<'_>,
        jobs_max: usize,
        bytes_max: usize,
    ) -> Poll<Option<Result<Delivery<C>, GatewayError>>> {
        let mut inside = self.outbox.lock();
        if let Some(delivery) = inside.take(jobs_max, bytes_max) {
            drop(inside);
            self.outbox.shared.metrics.handed_out(delivery.jobs.len());
            return Poll::Ready(Some(Ok(delivery)));
        }
        match inside.end() {
            Some(end) => Poll::Ready(end.map(Err)),
            None => {
                inside.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<C: Send + 'static> Drop for Deliveries<C> {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

/// Something that can be asked to end in good order.
pub(crate) trait EndStream: Send + Sync {
    /// The server shuts down.
    fn shut_down(&self);
}

struct Outbox<C> {
    id: WaiterId,
    shared: Arc<Shared>,
    inside: Mutex<Inside<C>>,
}

struct Inside<C> {
    jobs: VecDeque<HandedJob>,
    answers: VecDeque<(C, Answers)>,
    stops: Vec<Stop>,
    /// Given and not used.
    credits: u32,
    /// Result batches under way.
    unanswered: usize,
    /// No more jobs are taken.
    closed: bool,
    /// The worker says no more.
    silent: bool,
    shutting_down: bool,
    stopped: bool,
    waker: Option<Waker>,
}

impl<C> Inside<C> {
    fn new(credits: u32) -> Inside<C> {
        Inside {
            jobs: VecDeque::new(),
            answers: VecDeque::new(),
            stops: Vec::new(),
            credits,
            unanswered: 0,
            closed: false,
            silent: false,
            shutting_down: false,
            stopped: false,
            waker: None,
        }
    }

    fn take(&mut self, jobs_max: usize, bytes_max: usize) -> Option<Delivery<C>> {
        let jobs = self.take_jobs(jobs_max, bytes_max);
        let answers = Vec::from(std::mem::take(&mut self.answers));
        // A stop follows the job it is about.
        let stops = if self.jobs.is_empty() { std::mem::take(&mut self.stops) } else { Vec::new() };
        let something = !(jobs.is_empty() && answers.is_empty() && stops.is_empty());
        something.then_some(Delivery { jobs, answers, stops })
    }

    fn take_jobs(&mut self, jobs_max: usize, bytes_max: usize) -> Vec<HandedJob> {
        let mut bytes = 0;
        let fitting = self
            .jobs
            .iter()
            .take(jobs_max)
            .take_while(|job| {
                let first = bytes == 0;
                bytes += job.payload.len() + job.headers.len() + JOB_BYTES;
                first || bytes <= bytes_max
            })
            .count();
        self.jobs.drain(..fitting).collect()
    }

    /// How the stream ends, once there is nothing left to take.
    #[allow(clippy::option_option, reason = "the outer one is whether, the inner one is how")]
    fn end(&self) -> Option<Option<GatewayError>> {
        if self.stopped {
            return Some(Some(GatewayError::Stopped));
        }
        if self.unanswered > 0 {
            return None;
        }
        if self.silent {
            return Some(None);
        }
        self.shutting_down.then_some(Some(GatewayError::ShuttingDown))
    }
}

/// What a job costs on the wire beside its payload and headers, about.
const JOB_BYTES: usize = 128;

impl<C> Outbox<C> {
    fn lock(&self) -> MutexGuard<'_, Inside<C>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the inside and wakes the transport.
    fn put<T>(&self, change: impl FnOnce(&mut Inside<C>) -> T) -> T {
        let mut inside = self.lock();
        let changed = change(&mut inside);
        let waker = inside.waker.take();
        drop(inside);
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }

    /// No more jobs: tells the partition, and gives back what was not taken.
    fn close(&self) {
        let unsent = {
            let mut inside = self.lock();
            if inside.closed {
                return;
            }
            inside.closed = true;
            std::mem::take(&mut inside.jobs)
        };
        // When the partition has stopped it serves nobody.
        let _stopped = self.shared.submit(Request::CloseStream(self.id));
        self.shared.give_back(&Vec::from(unsent));
    }
}

impl<C: Send + 'static> EndStream for Outbox<C> {
    fn shut_down(&self) {
        self.close();
        self.put(|inside| inside.shutting_down = true);
    }
}

/// A batch of results under way. Dropped without an answer when the partition has stopped.
struct Unanswered<C> {
    outbox: Arc<Outbox<C>>,
    answered: bool,
}

impl<C> Unanswered<C> {
    fn new(outbox: &Arc<Outbox<C>>) -> Unanswered<C> {
        outbox.lock().unanswered += 1;
        Unanswered { outbox: Arc::clone(outbox), answered: false }
    }

    fn answer(mut self, context: C, answers: Answers) {
        self.answered = true;
        self.outbox.put(|inside| {
            inside.unanswered -= 1;
            inside.answers.push_back((context, answers));
        });
    }
}

impl<C> Drop for Unanswered<C> {
    fn drop(&mut self) {
        if !self.answered {
            self.outbox.put(|inside| inside.stopped = true);
        }
    }
}

/// The end that the partition holds.
struct Sink<C> {
    outbox: Arc<Outbox<C>>,
}

impl<C> Drop for Sink<C> {
    fn drop(&mut self) {
        // A partition lets go of an open stream only when it has stopped.
        self.outbox.put(|inside| inside.stopped |= !inside.closed);
    }
}

impl<C: Send + 'static> StreamSink for Sink<C> {
    fn deliver(&self, jobs: Vec<HandedJob>) -> Vec<HandedJob> {
        self.outbox.put(|inside| {
            if inside.closed {
                return jobs;
            }
            let used = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
            debug_assert!(used <= inside.credits, "a stream gets no more jobs than its credits");
            inside.credits = inside.credits.saturating_sub(used);
            if inside.jobs.is_empty() {
                inside.jobs = VecDeque::from(jobs);
            } else {
                inside.jobs.extend(jobs);
            }
            Vec::new()
        })
    }

    fn stop(&self, job: JobKey, activation: u32) {
        self.outbox.put(|inside| {
            if !inside.closed {
                inside.stops.push(Stop { key: job, activation });
            }
        });
    }

    fn end(&self) {
        self.outbox.put(|inside| inside.stopped = true);
    }
}
