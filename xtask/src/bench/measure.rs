//! The load shapes every system is measured with, and the proof that each job ran exactly once.
//!
//! A [`Run`] hands out job numbers and hears what became of them. Who produces asks
//! [`Run::take`] (or [`Run::take_async`]) for numbers to create; the shape decides how many and
//! when. Every acknowledged step is told to the run: [`Run::created`], [`Run::reached`],
//! [`Run::completed`]. [`Run::drive`] is the clock: warm-up, window, drain, verdict.
//!
//! `xtask/bench/peers/load.mjs` is the same in JavaScript for the peers whose client is Node.

use std::io::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::failure::{Failure, Result};

/// Bytes of payload of every job; the job's number is written into its first 16 as hex digits.
pub(crate) const PAYLOAD_BYTES: usize = 200;
/// Workers, each with a connection of its own.
pub(crate) const WORKERS: usize = 4;
/// Creates sent but not yet acknowledged in the enqueue shape, over all producers.
const UNACKNOWLEDGED_MAX: u64 = 8192;
/// Job numbers in one run; a run that uses them up stops creating and is still judged.
const JOBS_MAX: u64 = 1 << 24;
/// How long the jobs of a run may take to finish after the last was created.
const DRAIN_MAX: Duration = Duration::from_secs(60);
/// How often tasks look for scheduled jobs; with the kernel's timer slack about 0.1 ms.
const PACE: Duration = Duration::from_micros(50);
/// The same where more jobs a second are due than [`DENSE_PER_S`]: on the cores that are measured, every look
/// ends in a call, whose cost is that of a dozen jobs in a call under way. What it adds to a latency
/// is counted, as that runs from the scheduled send.
const PACE_DENSE: Duration = Duration::from_micros(250);
/// Jobs a second from which on they are dense.
const DENSE_PER_S: f64 = 50_000.0;
/// After the last completion a run waits this long for deliveries that should not come.
const AFTERMATH: Duration = Duration::from_millis(200);

/// How jobs are created.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Load {
    /// Closed loop: this many jobs are between "create sent" and "complete acknowledged".
    Closed {
        /// Jobs in flight over all workers.
        in_flight: u64,
    },
    /// Creates only, as fast as they are acknowledged; no worker runs.
    Enqueue,
    /// Open loop: job `n` is due `n / per_s` seconds after the start, whatever the system does.
    Open {
        /// Jobs a second.
        per_s: f64,
    },
}

/// One load with its times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// How jobs are created.
    pub(crate) load: Load,
    /// Time before anything counts.
    pub(crate) warmup: Duration,
    /// Time that counts.
    pub(crate) window: Duration,
}

/// What one run found.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    /// Completed lives (for `Enqueue`: acknowledged creates) per second of the window.
    pub(crate) rate_per_s: f64,
    /// Scheduled send until a worker has the job, in the open loop.
    pub(crate) pickup_ms: Option<Pickup>,
    /// Jobs created in the whole run, warm-up included.
    pub(crate) jobs: u64,
    /// Why the delivery was not exact, if it was not.
    pub(crate) inexact: Option<String>,
}

/// Percentiles of the pickup latency.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pickup {
    /// Median in milliseconds.
    pub(crate) p50: f64,
    /// 99th percentile in milliseconds.
    pub(crate) p99: f64,
}

/// One run of one shape against one system, shared by its producers and workers.
pub(crate) struct Run {
    shape: Shape,
    started: Instant,
    issued: AtomicU64,
    created: AtomicU64,
    completed: AtomicU64,
    tracker: Tracker,
    pickup: Histogram,
    ending: AtomicBool,
    finished: AtomicBool,
    failure: Mutex<Option<Failure>>,
    gate: Mutex<()>,
    freed: Condvar,
    freed_async: tokio::sync::Notify,
    /// A task waits for scheduled jobs, so the pacer has someone to wake.
    paced: AtomicBool,
}

enum Step {
    Issue(Range<u64>),
    Until(Instant),
    Wait,
    End,
}

impl Run {
    /// A run whose clock starts now.
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            started: Instant::now(),
            issued: AtomicU64::new(0),
            created: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            tracker: Tracker::new(JOBS_MAX),
            pickup: Histogram::new(),
            ending: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            failure: Mutex::new(None),
            gate: Mutex::new(()),
            freed: Condvar::new(),
            freed_async: tokio::sync::Notify::new(),
            paced: AtomicBool::new(false),
        }
    }

    /// Whether workers take part.
    pub(crate) fn has_workers(&self) -> bool {
        self.shape.load != Load::Enqueue
    }

    /// Blocks until jobs may be created and hands out their numbers, or `None` at the end.
    ///
    /// `at_least` lets a producer that batches wait for a worthwhile batch in the closed loop; it
    /// must be far below the jobs in flight. The open loop ignores it: what is due is sent.
    pub(crate) fn take(&self, at_least: u64, at_most: u64) -> Option<Range<u64>> {
        let mut gate = lock(&self.gate);
        loop {
            gate = match self.step(at_least, at_most) {
                Step::Issue(jobs) => return Some(jobs),
                Step::End => return None,
                Step::Wait => self.freed.wait(gate).unwrap_or_else(PoisonError::into_inner),
                Step::Until(due) => {
                    // A timed condvar wait would do, but sleeping is all that is needed here:
                    // only time, or the end (at most one interval late), changes the answer.
                    drop(gate);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    lock(&self.gate)
                }
            };
        }
    }

    /// [`Run::take`] for a task.
    pub(crate) async fn take_async(&self, at_least: u64, at_most: u64) -> Option<Range<u64>> {
        loop {
            let freed = self.freed_async.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let step = {
                let _gate = lock(&self.gate);
                self.step(at_least, at_most)
            };
            match step {
                Step::Issue(jobs) => {
                    if jobs.end - jobs.start == at_most && self.paced.load(Ordering::SeqCst) {
                        self.freed_async.notify_one();
                    }
                    return Some(jobs);
                }
                Step::End => return None,
                Step::Wait => freed.await,
                Step::Until(_) => {
                    // The runtime's timers have whole milliseconds; the pacer wakes us instead.
                    self.paced.store(true, Ordering::SeqCst);
                    freed.await;
                }
            }
        }
    }

    /// The creates of these jobs were acknowledged.
    pub(crate) fn created(&self, jobs: Range<u64>) {
        let count = jobs.end - jobs.start;
        for job in jobs {
            self.tracker.created(job);
        }
        self.created.fetch_add(count, Ordering::SeqCst);
        if self.shape.load == Load::Enqueue {
            self.wake();
        }
    }

    /// The latency of this job ends here: a worker holds it. That of a process instance ends with it.
    pub(crate) fn reached(&self, job: u64) {
        if let Load::Open { per_s } = self.shape.load {
            let due = due_after(job, per_s);
            let counts = self.shape.warmup..self.shape.warmup + self.shape.window;
            if counts.contains(&due) {
                self.pickup.record(self.started.elapsed().saturating_sub(due));
            }
        }
    }

    /// The completions of these jobs were acknowledged.
    pub(crate) fn completed(&self, jobs: &[u64]) {
        for &job in jobs {
            self.tracker.completed(job);
        }
        self.completed.fetch_add(jobs.len() as u64, Ordering::SeqCst);
        if matches!(self.shape.load, Load::Closed { .. }) {
            self.wake();
        }
    }

    /// True once every job is done and workers may leave; also after a failure.
    pub(crate) fn finished(&self) -> bool {
        self.finished.load(Ordering::SeqCst)
    }

    /// Ends the run because a producer or worker failed; the first failure is reported.
    pub(crate) fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
        self.ending.store(true, Ordering::SeqCst);
        self.finished.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Runs `work` for a producer or worker thread and turns its error into the run's.
    pub(crate) fn guard(&self, work: impl FnOnce() -> Result<()>) {
        if let Err(failure) = work() {
            self.fail(failure);
        }
    }

    /// Keeps time on the calling thread: warm-up, window, drain. Returns when workers may leave.
    pub(crate) fn drive(&self) -> Result<Window> {
        std::thread::scope(|scope| {
            if matches!(self.shape.load, Load::Open { .. }) {
                scope.spawn(|| self.pace());
            }
            self.keep_time()
        })
    }

    fn keep_time(&self) -> Result<Window> {
        self.sleep_until(self.shape.warmup)?;
        let before = (self.counted(), self.started.elapsed());
        self.sleep_until(self.shape.warmup + self.shape.window)?;
        let after = (self.counted(), self.started.elapsed());
        self.ending.store(true, Ordering::SeqCst);
        self.wake();

        let drain_started = Instant::now();
        while !self.is_drained() && drain_started.elapsed() < DRAIN_MAX {
            self.sleep_until(self.started.elapsed() + Duration::from_millis(5))?;
        }
        self.sleep_until(self.started.elapsed() + AFTERMATH)?;
        self.finished.store(true, Ordering::SeqCst);
        self.wake();
        let seconds = (after.1 - before.1).as_secs_f64();
        Ok(Window { rate_per_s: (after.0 - before.0) as f64 / seconds })
    }

    /// The verdict, once producers and workers have left. `left_in_system` is what the system
    /// itself says it still holds (jobs waiting or leased), where it can be asked.
    pub(crate) fn figures(&self, window: Window, left_in_system: Option<u64>) -> Result<Figures> {
        if let Some(failure) = lock(&self.failure).clone() {
            return Err(failure);
        }
        let jobs = self.issued.load(Ordering::SeqCst);
        let inexact = self.tracker.verdict(jobs, self.has_workers()).or_else(|| {
            let expected = if self.has_workers() { 0 } else { jobs };
            let left = left_in_system?;
            (left != expected)
                .then(|| format!("the system holds {left} jobs at the end instead of {expected}"))
        });
        let pickup_ms = matches!(self.shape.load, Load::Open { .. }).then(|| Pickup {
            p50: self.pickup.quantile_ms(0.50),
            p99: self.pickup.quantile_ms(0.99),
        });
        Ok(Figures { rate_per_s: window.rate_per_s, pickup_ms, jobs, inexact })
    }

    fn step(&self, at_least: u64, at_most: u64) -> Step {
        let issued = self.issued.load(Ordering::SeqCst);
        if self.ending.load(Ordering::SeqCst) || issued >= JOBS_MAX {
            return Step::End;
        }
        let room = match self.shape.load {
            Load::Closed { in_flight } => {
                let open = issued.saturating_sub(self.completed.load(Ordering::SeqCst));
                let room = in_flight.saturating_sub(open);
                if room < at_least.max(1) {
                    return Step::Wait;
                }
                room
            }
            Load::Enqueue => {
                let open = issued.saturating_sub(self.created.load(Ordering::SeqCst));
                let room = UNACKNOWLEDGED_MAX.saturating_sub(open);
                if room < at_least.max(1) {
                    return Step::Wait;
                }
                room
            }
            Load::Open { per_s } => {
                let due = (self.started.elapsed().as_secs_f64() * per_s) as u64 + 1;
                if due <= issued {
                    return Step::Until(self.started + due_after(issued, per_s));
                }
                due - issued
            }
        };
        let end = (issued + room.min(at_most)).min(JOBS_MAX);
        self.issued.store(end, Ordering::SeqCst);
        Step::Issue(issued..end)
    }

    fn counted(&self) -> u64 {
        let counter = if self.has_workers() { &self.completed } else { &self.created };
        counter.load(Ordering::SeqCst)
    }

    fn is_drained(&self) -> bool {
        let issued = self.issued.load(Ordering::SeqCst);
        let created = self.created.load(Ordering::SeqCst) >= issued;
        let completed = self.completed.load(Ordering::SeqCst) >= issued;
        created && (completed || !self.has_workers())
    }

    /// Wakes a waiting task when scheduled jobs are due. One: it takes all that it may, and wakes the
    /// next if that was not all; every other would make a call of the few that came due since.
    fn pace(&self) {
        let dense = matches!(self.shape.load, Load::Open { per_s } if per_s > DENSE_PER_S);
        let pace = if dense { PACE_DENSE } else { PACE };
        while !self.ending.load(Ordering::SeqCst) {
            std::thread::sleep(pace);
            if self.paced.load(Ordering::SeqCst) && self.is_due() {
                self.freed_async.notify_one();
            }
        }
    }

    /// A wake-up for nothing costs as much as one for a job, on the cores that are measured.
    fn is_due(&self) -> bool {
        let Load::Open { per_s } = self.shape.load else { return false };
        due_after(self.issued.load(Ordering::SeqCst), per_s) <= self.started.elapsed()
    }

    fn sleep_until(&self, since_start: Duration) -> Result<()> {
        loop {
            if let Some(failure) = lock(&self.failure).clone() {
                return Err(failure);
            }
            let left = since_start.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
    }

    fn wake(&self) {
        drop(lock(&self.gate));
        self.freed.notify_all();
        self.freed_async.notify_waiters();
    }
}

/// Spawns a task whose error ends the run.
pub(crate) fn guarded(
    runtime: &Runtime,
    run: &Arc<Run>,
    task: impl Future<Output = Result<()>> + Send + 'static,
) -> JoinHandle<()> {
    let run = Arc::clone(run);
    runtime.spawn(async move {
        if let Err(failure) = task.await {
            run.fail(failure);
        }
    })
}

/// What the timed part of a run counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    rate_per_s: f64,
}

/// The payload of a job.
pub(crate) fn payload(job: u64) -> [u8; PAYLOAD_BYTES] {
    let mut bytes = [b'.'; PAYLOAD_BYTES];
    write!(&mut bytes[..], "{job:016x}").expect("a payload is longer than a number");
    bytes
}

/// The job number in a payload.
pub(crate) fn job_of(payload: &[u8]) -> Result<u64> {
    payload
        .get(..16)
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .filter(|_| payload.len() == PAYLOAD_BYTES)
        .ok_or_else(|| Failure::new("a delivered payload is not one that was sent"))
}

fn due_after(job: u64, per_s: f64) -> Duration {
    Duration::from_secs_f64(job as f64 / per_s)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section here is a load, a store or nothing, so poison means nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts per job how often its creation and its completion were acknowledged.
struct Tracker {
    /// Low four bits: creations; high four bits: completions. Both stop at 15 in practice, and a
    /// wrap would itself show as a wrong count.
    seen: Vec<AtomicU8>,
    foreign: AtomicU64,
}

impl Tracker {
    fn new(jobs: u64) -> Self {
        Self { seen: (0..jobs).map(|_| AtomicU8::new(0)).collect(), foreign: AtomicU64::new(0) }
    }

    fn created(&self, job: u64) {
        self.add(job, 0x01);
    }

    fn completed(&self, job: u64) {
        self.add(job, 0x10);
    }

    fn add(&self, job: u64, step: u8) {
        match usize::try_from(job).ok().and_then(|index| self.seen.get(index)) {
            Some(cell) => {
                cell.fetch_add(step, Ordering::Relaxed);
            }
            None => {
                self.foreign.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn verdict(&self, jobs: u64, with_workers: bool) -> Option<String> {
        let expected = if with_workers { 0x11 } else { 0x01 };
        let (mut missing, mut repeated) = (0_u64, self.foreign.load(Ordering::SeqCst));
        for (index, cell) in self.seen.iter().enumerate() {
            let seen = cell.load(Ordering::SeqCst);
            let wanted = if (index as u64) < jobs { expected } else { 0 };
            if seen & 0x0f > wanted & 0x0f || seen >> 4 > wanted >> 4 {
                repeated += 1;
            } else if seen != wanted {
                missing += 1;
            }
        }
        (missing + repeated > 0).then(|| {
            format!("of {jobs} jobs {missing} never finished and {repeated} came more than once")
        })
    }
}

/// Latencies in 128 steps per power of two (better than 1 %).
pub(crate) struct Histogram {
    buckets: Vec<AtomicU64>,
}

impl Histogram {
    const STEPS_LOG2: u32 = 7;

    pub(crate) fn new() -> Self {
        let count = (u64::BITS - Self::STEPS_LOG2 + 1) << Self::STEPS_LOG2;
        Self { buckets: (0..count).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(crate) fn record(&self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.buckets.get(Self::index(nanos)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        let counts: Vec<u64> = self.buckets.iter().map(|b| b.load(Ordering::SeqCst)).collect();
        let total: u64 = counts.iter().sum();
        let rank = (total as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        for (index, count) in counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return Self::floor(index) as f64 / 1e6;
            }
        }
        f64::NAN
    }

    fn index(nanos: u64) -> usize {
        let steps = 1_u64 << Self::STEPS_LOG2;
        if nanos < steps {
            return nanos as usize;
        }
        let shift = nanos.ilog2() - Self::STEPS_LOG2;
        ((u64::from(shift + 1) << Self::STEPS_LOG2) + ((nanos >> shift) - steps)) as usize
    }

    fn floor(index: usize) -> u64 {
        let steps = 1_u64 << Self::STEPS_LOG2;
        let (exponent, step) = (index as u64 / steps, index as u64 % steps);
        if exponent == 0 { step } else { (steps + step) << (exponent - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_keeps_a_value_within_one_percent() {
        for nanos in [0, 1, 127, 128, 129, 1_000, 65_535, 1_234_567, u64::from(u32::MAX) * 9] {
            let floor = Histogram::floor(Histogram::index(nanos));
            assert!(floor <= nanos, "{floor} > {nanos}");
            assert!((nanos - floor) as f64 <= nanos as f64 * 0.01, "{floor} for {nanos}");
        }
    }

    #[test]
    fn tracker_names_missing_and_repeated_jobs() {
        let tracker = Tracker::new(4);
        for job in 0..3 {
            tracker.created(job);
            tracker.completed(job);
        }
        assert_eq!(tracker.verdict(3, true), None);
        tracker.completed(1);
        tracker.created(3);
        let verdict = tracker.verdict(4, true).expect("two faults");
        assert!(verdict.contains("1 never finished and 1 came more than once"), "{verdict}");
    }

    #[test]
    fn payload_carries_its_job() {
        assert_eq!(job_of(&payload(77)).ok(), Some(77));
        assert!(job_of(b"short").is_err());
    }
}
