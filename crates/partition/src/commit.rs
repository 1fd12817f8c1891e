//! The threads beside the loop: commit makes batches durable and lets their answers leave; the loader
//! reads payloads that were evicted; both end when the loop has.
//!
//! Both wait at channels of the standard library. Those of crossbeam, which the loop needs to wait at several, yield the
//! processor a few times before a thread sleeps at one, and to Linux who yields goes behind everybody else.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Sender;
use windlass_checkpoint::Checkpoint;
use windlass_log::{Batch, Log, LogError, Position};

use crate::checkpoint::Order;
use crate::clock::ClockSource;
use crate::core::{Action, Delivery, Round};
use crate::follow::Nudge;
use crate::recover::OpenError;
use crate::request::{QueryAnswer, Refused, Request};
use crate::run::{Control, PayloadLost, StopReason};

/// Starts a thread.
pub(crate) fn spawn(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    std::thread::Builder::new().name(name.into()).spawn(body).map_err(OpenError::Thread)
}

/// The same for a thread that nobody waits for: where there is not processor enough for all, it has
/// a tenth of the weight of the others.
pub(crate) fn spawn_behind(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    const NICER: i32 = 10;
    spawn(name, move || {
        // Of this thread alone; where the system refuses, it goes on as it is.
        let _ = rustix::process::nice(NICER);
        body();
    })
}

pub(crate) fn refuse_request(request: Request) {
    match request {
        Request::Commands(commands) => {
            let results = commands.items.iter().map(|_| Err(Refused::Stopped)).collect();
            (commands.reply)(results);
        }
        Request::Query(_, reply) => reply(Err(Refused::Stopped)),
        Request::Poll(poll) => {
            (poll.reply)(Err(Refused::Stopped));
        }
        Request::OpenStream(stream) => stream.sink.end(),
        Request::RunInstance(run) => (run.reply)(Err(Refused::Stopped)),
        Request::Change(change) => (change.reply)(Err(Refused::Stopped)),
        Request::EndPoll(_)
        | Request::AddCredits(..)
        | Request::CloseStream(_)
        | Request::Return(_) => {}
    }
}

/// What the commit thread has to do, in order.
pub(crate) enum Work {
    Round(Round),
    /// To be passed on to the writer behind all deliveries before it.
    Checkpoint(Box<Order>),
}

/// What the loader has to do, in order.
pub(crate) enum Errand {
    Delivery(Delivery),
    /// A round that does not wait for the log, see [`Durability`](crate::Durability).
    Round(Vec<Delivery>),
    Checkpoint(Box<Order>),
}

/// What the commit thread says about a batch.
pub(crate) struct Done {
    pub(crate) batch: Batch,
    pub(crate) last_lsn: u64,
    /// How long the log took, waits for room apart.
    pub(crate) took_us: u64,
    pub(crate) result: Result<Position, LogError>,
}

/// The commit thread: makes batches durable, then lets their deliveries leave.
pub(crate) struct Commit {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) clock: Arc<dyn ClockSource>,
    /// The loop has ended: nobody waits for room any more.
    pub(crate) ended: Arc<AtomicBool>,
    pub(crate) work: mpsc::Receiver<Work>,
    pub(crate) done: Sender<Done>,
    pub(crate) deliverer: Deliverer,
    /// Wakes the follower, if there is one.
    pub(crate) nudge: Option<Nudge>,
}

impl Commit {
    pub(crate) fn run(self) {
        /// Nothing came for this long: a good moment to note what is durable.
        const IDLE_AFTER: Duration = Duration::from_millis(50);
        let mut noted = true;
        let mut later = VecDeque::new();
        loop {
            let work = if let Some(work) = later.pop_front() {
                Some(work)
            } else if noted {
                self.work.recv().ok()
            } else {
                match self.work.recv_timeout(IDLE_AFTER) {
                    Ok(work) => Some(work),
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.note_idle();
                        noted = true;
                        continue;
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => None,
                }
            };
            let round = match work {
                None => break,
                Some(Work::Round(round)) => round,
                Some(Work::Checkpoint(order)) => {
                    self.deliverer.pass_on(Errand::Checkpoint(order));
                    continue;
                }
            };
            if let Some(batch) = round.batch {
                noted = false;
                let (done, failed) = self.append(batch, round.jobs_alone, &mut later);
                // The loop ends before this thread does.
                let _ = self.done.send(done);
                if failed {
                    round.deliveries.into_iter().for_each(Delivery::refuse);
                    continue;
                }
            }
            for delivery in round.deliveries {
                self.deliverer.deliver(delivery);
            }
        }
        self.note_idle();
    }

    /// Appends a batch, waiting for room if there is none. What comes meanwhile is for later.
    fn append(
        &self,
        mut batch: Batch,
        jobs_alone: bool,
        later: &mut VecDeque<Work>,
    ) -> (Done, bool) {
        let last_lsn = batch.last_lsn();
        let (result, took_us) = loop {
            let before_us = self.clock.read().monotonic_us;
            let result = self.log.append(&mut batch);
            let took_us = self.clock.read().monotonic_us.saturating_sub(before_us);
            let is_full = matches!(result, Err(LogError::NoSpace));
            if !(is_full && self.wait_for_room(later)) {
                break (result, took_us);
            }
        };
        if let (Some(nudge), Ok(position)) = (&self.nudge, &result) {
            nudge.durable(&batch, *position, jobs_alone);
        }
        let failed = result.is_err();
        if let Err(LogError::NoSpace) = &result {
            tracing::error!(
                "failed to write the last batch: the log has no room, and the partition stops"
            );
        }
        (Done { batch, last_lsn, took_us, result }, failed)
    }

    /// Waits a moment; false when nobody waits for room any more. A checkpoint that comes meanwhile
    /// goes on: it holds what is durable, deletes nothing that this batch's deliveries are to read, and
    /// the log that is trimmed behind it has room again.
    fn wait_for_room(&self, later: &mut VecDeque<Work>) -> bool {
        /// A full disk is asked again this often.
        const ROOM_AGAIN_AFTER: Duration = Duration::from_millis(50);
        match self.work.recv_timeout(ROOM_AGAIN_AFTER) {
            Ok(Work::Checkpoint(order)) if later.is_empty() => {
                self.deliverer.pass_on(Errand::Checkpoint(order));
            }
            Ok(work) => later.push_back(work),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // The loop is gone, or has panicked.
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
        }
        !self.ended.load(Ordering::Acquire)
    }

    fn note_idle(&self) {
        if let Err(error) = self.log.idle() {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "failed to note what is durable"
            );
        }
    }
}

/// Lets answers leave.
pub(crate) struct Deliverer {
    /// Where deliveries go that lack payloads; the loader itself has none.
    pub(crate) to_load: Option<mpsc::Sender<Errand>>,
    pub(crate) returns: Sender<Request>,
}

impl Deliverer {
    fn pass_on(&self, errand: Errand) {
        if let Some(to_load) = &self.to_load {
            // The loader ends after the commit thread.
            let _ = to_load.send(errand);
        }
    }

    fn deliver(&self, delivery: Delivery) {
        if !delivery.missing.is_empty() && self.to_load.is_some() {
            self.pass_on(Errand::Delivery(delivery));
            return;
        }
        let left = delivery.leave();
        if !left.is_empty() {
            let unsent = left.iter().map(|job| job.unsent).collect();
            // When the loop has ended, the leases end by themselves.
            let _ = self.returns.send(Request::Return(unsent));
        }
    }
}

/// The loader thread: reads payloads that were evicted, then lets their deliveries leave, and
/// passes checkpoints on when it has read all that they may change.
pub(crate) struct Loader {
    pub(crate) store: Arc<dyn Checkpoint>,
    pub(crate) input: mpsc::Receiver<Errand>,
    pub(crate) orders: Sender<Order>,
    pub(crate) deliverer: Deliverer,
    pub(crate) control: Sender<Control>,
}

impl Loader {
    pub(crate) fn run(self) {
        while let Ok(errand) = self.input.recv() {
            let deliveries = match errand {
                Errand::Delivery(delivery) => vec![delivery],
                Errand::Round(deliveries) => deliveries,
                Errand::Checkpoint(order) => {
                    // The writer ends after the loader.
                    let _ = self.orders.send(*order);
                    continue;
                }
            };
            deliveries.into_iter().for_each(|delivery| self.deliver(delivery));
        }
    }

    fn deliver(&self, mut delivery: Delivery) {
        match self.fill(&mut delivery) {
            Ok(()) => self.deliverer.deliver(delivery),
            Err(lost) => {
                delivery.refuse();
                // The loop may have ended.
                let _ = self.control.send(Control::Fail(StopReason::Payload(lost)));
            }
        }
    }

    fn fill(&self, delivery: &mut Delivery) -> Result<(), PayloadLost> {
        if delivery.missing.is_empty() {
            return Ok(());
        }
        let mut missing = std::mem::take(&mut delivery.missing);
        missing.sort_by(|a, b| a.key.cmp(&b.key));
        let keys: Vec<&[u8]> = missing.iter().map(|missing| &*missing.key).collect();
        let found = self.read(&keys).map_err(PayloadLost::Store)?;
        for (missing, bytes) in missing.iter().zip(found) {
            let bytes = bytes.ok_or_else(|| PayloadLost::Missing { key: missing.key.clone() })?;
            delivery.fill(missing, bytes.into());
        }
        Ok(())
    }

    /// Reads them, several times if it must: all that is not damage may pass.
    fn read(&self, keys: &[&[u8]]) -> windlass_checkpoint::Result<Vec<Option<Vec<u8>>>> {
        /// What is refused for longer than all of them does not pass by itself.
        const TRIES_MAX: u32 = 20;
        const AGAIN_AFTER: Duration = Duration::from_millis(100);
        for _ in 1..TRIES_MAX {
            match self.store.get_many(keys) {
                Err(error) if error.may_pass() => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "failed to read payloads from the checkpoint, trying again"
                ),
                result => return result,
            }
            std::thread::sleep(AGAIN_AFTER);
        }
        self.store.get_many(keys)
    }
}

impl Delivery {
    /// Puts a payload where it was missing.
    pub fn fill(&mut self, missing: &crate::core::Missing, bytes: Arc<[u8]>) {
        match &mut self.action {
            Action::Poll(_, Ok(jobs)) | Action::Jobs(_, jobs) => {
                if let Some(job) = jobs.get_mut(missing.index) {
                    job.payload = bytes;
                }
            }
            Action::Query(_, QueryAnswer::Job(Some(job))) => {
                if missing.result {
                    job.result = bytes;
                } else {
                    job.payload = bytes;
                }
            }
            Action::Query(_, QueryAnswer::Document(Some((_, value)))) => *value = bytes,
            Action::Query(_, QueryAnswer::WholeDocuments(documents, _)) => {
                if let Some(document) = documents.get_mut(missing.index) {
                    document.bytes = bytes;
                }
            }
            Action::Query(..)
            | Action::Poll(..)
            | Action::Commands(..)
            | Action::Run(..)
            | Action::Change(..)
            | Action::Stop(..) => {
                unreachable!("only jobs and documents have payloads")
            }
        }
    }
}
