//! What the simulated threads showed, on the real ones.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use windlass_checkpoint::{
    Checkpoint, Entry, Fault, KeyRange, MemoryCheckpoint, MemoryDisk, Pairs, Stamp, View, Visit,
};
use windlass_log::{
    FileLog, FileLogOptions, Housekeeping, LifeId, Log, LogError, MemoryLog, NewLog,
};
use windlass_partition::clock::{ClockSource, Reading, SystemClock};
use windlass_partition::request::{
    Answer, Commands, HandedJob, Poll, Query, QueryAnswer, Refused, Request, WaiterId, Wanted,
};
use windlass_partition::{Options, Partition, StopReason};
use windlass_record::bound::{Bound, Bounds};
use windlass_record::command::{
    AppendLog, Command, CompleteJob, ConfigureQueue, CreateJob, DocumentWrite, Due, Lease,
    PutDocuments, QueueName,
};
use windlass_record::policy::{PriorityRule, QueueSettings};
use windlass_record::rejection::Rejection;
use windlass_sim::SimDisk;

const SOON: Duration = Duration::from_secs(10);

fn open(options: Options, disk: &MemoryDisk) -> Partition {
    let log = MemoryLog::create(1, 1).unwrap();
    Partition::open(options, Arc::new(log), Arc::new(MemoryCheckpoint::open(disk))).unwrap()
}

fn queue() -> QueueName {
    QueueName { tenant: "t".into(), queue: "q".into() }
}

fn create(priority: i32) -> Command {
    Command::CreateJob(CreateJob {
        queue: queue(),
        job_type: "".into(),
        group: "g".into(),
        priority,
        retries: 0,
        due: Due::Now,
        payload: Arc::from(&b"{}"[..]),
        options: None,
    })
}

fn give(partition: &Partition, command: Command) -> Result<Answer, Refused> {
    give_all(partition, vec![command]).remove(0)
}

fn give_all(partition: &Partition, items: Vec<Command>) -> Vec<Result<Answer, Refused>> {
    let (tx, rx) = mpsc::channel();
    let reply = Box::new(move |results| tx.send(results).unwrap());
    partition.handle().submit(Request::Commands(Commands { items, reply })).unwrap();
    rx.recv_timeout(SOON).unwrap()
}

fn take(partition: &Partition, id: u64, jobs_max: u32, dies: bool) -> Vec<HandedJob> {
    let (tx, rx) = mpsc::channel();
    let wanted =
        Wanted { queues: vec![queue()], worker: "w".into(), lease_ms: 60_000, with_token: true };
    let reply = Box::new(move |jobs: Result<Vec<HandedJob>, Refused>| {
        let jobs = jobs.unwrap();
        tx.send(jobs.clone()).unwrap();
        if dies { jobs } else { Vec::new() }
    });
    let (bytes_max, wait_ms) = (1 << 20, 5_000);
    let poll = Poll { id: WaiterId(id), wanted, jobs_max, bytes_max, wait_ms, reply };
    partition.handle().submit(Request::Poll(poll)).unwrap();
    rx.recv_timeout(SOON).unwrap()
}

/// Creates were refused while checkpoints lagged, and refused creates make no batch, after which
/// alone it was looked whether they still lag.
#[test]
fn creates_are_taken_again_when_a_checkpoint_was_all_that_was_missing() {
    let options = Options { checkpoint_lag_bytes_max: 0, ..Options::default() };
    let partition = open(options, &MemoryDisk::new());
    give(&partition, create(0)).unwrap();
    while give(&partition, create(0)).is_ok() {}
    partition.checkpoint_now().unwrap();
    // The loop hears of the checkpoint before it takes what comes in after it.
    give(&partition, create(0)).unwrap();
    partition.kill();
}

/// The writer asked a store for ever that had said that only opening it again helps.
#[test]
fn a_poisoned_checkpoint_store_stops_the_partition() {
    let disk = MemoryDisk::new();
    let partition = open(Options::default(), &disk);
    give(&partition, create(0)).unwrap();
    disk.fail_next_write(Fault::DurableButFailed);
    assert_eq!(partition.checkpoint_now(), None);
    let reason = partition.wait_stopped(SOON);
    assert!(matches!(reason, Some(StopReason::Checkpoint(_))), "{reason:?}");
}

/// What is wrong for ever was tried for ever, while creates went on until checkpoints lagged.
#[test]
fn a_checkpoint_that_can_never_be_written_stops_the_partition() {
    let (tried, tries) = mpsc::channel();
    let log = MemoryLog::create(1, 1).unwrap();
    let store = Asking::before_writes(move || {
        tried.send(()).unwrap();
        Err(windlass_checkpoint::Error::ValueTooLarge { index: 7, bytes: 2, bytes_max: 1 })
    });
    let partition = Partition::open(Options::default(), Arc::new(log), Arc::new(store)).unwrap();
    give(&partition, create(0)).unwrap();
    assert_eq!(partition.checkpoint_now(), None);
    let reason = partition.wait_stopped(SOON);
    assert!(matches!(reason, Some(StopReason::Checkpoint(_))), "{reason:?}");
    assert_eq!(tries.try_iter().count(), 1);
}

/// A store that asks before every write and every read.
struct Asking {
    inner: MemoryCheckpoint,
    write: Box<dyn Fn() -> windlass_checkpoint::Result<()> + Send + Sync>,
    read: Box<dyn Fn() -> windlass_checkpoint::Result<()> + Send + Sync>,
}

impl Asking {
    fn before_writes(
        write: impl Fn() -> windlass_checkpoint::Result<()> + Send + Sync + 'static,
    ) -> Asking {
        let (write, read) = (Box::new(write), Box::new(|| Ok(())));
        Asking { inner: MemoryCheckpoint::new(), write, read }
    }

    /// On a disk that is full for ever. It says when a write was tried.
    fn full(tried: mpsc::Sender<()>) -> Asking {
        Asking::before_writes(move || {
            // Nobody may want to know.
            let _ = tried.send(());
            Err(refused_for_now(std::io::ErrorKind::StorageFull))
        })
    }
}

fn refused_for_now(kind: std::io::ErrorKind) -> windlass_checkpoint::Error {
    windlass_checkpoint::Error::Io { action: "reach the checkpoint", source: kind.into() }
}

impl View for Asking {
    fn stamp(&self) -> Option<Stamp> {
        self.inner.stamp()
    }

    fn get(&self, key: &[u8]) -> windlass_checkpoint::Result<Option<Vec<u8>>> {
        (self.read)()?;
        self.inner.get(key)
    }

    fn scan_with(
        &self,
        range: &KeyRange,
        visit: &mut Visit<'_>,
    ) -> windlass_checkpoint::Result<()> {
        self.inner.scan_with(range, visit)
    }

    fn scan(&self, range: &KeyRange) -> Pairs<'_> {
        self.inner.scan(range)
    }

    fn edges(&self, range: &KeyRange) -> windlass_checkpoint::Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.inner.edges(range)
    }
}

impl Checkpoint for Asking {
    fn write(
        &self,
        entries: &mut dyn Iterator<Item = windlass_checkpoint::Result<Entry<'_>>>,
        stamp: &Stamp,
    ) -> windlass_checkpoint::Result<()> {
        (self.write)()?;
        self.inner.write(entries, stamp)
    }

    fn snapshot(&self) -> windlass_checkpoint::Result<Box<dyn View>> {
        self.inner.snapshot()
    }
}

/// The writer tried for ever to write to a full disk, and the partition could not be stopped.
#[test]
fn a_partition_ends_though_its_checkpoint_cannot_be_written() {
    let (tried, tries) = mpsc::channel();
    let log = MemoryLog::create(1, 1).unwrap();
    let options = Options { checkpoint_log_bytes: 1, ..Options::default() };
    let store = Asking::full(tried);
    let partition = Partition::open(options, Arc::new(log), Arc::new(store)).unwrap();
    give(&partition, create(0)).unwrap();
    tries.recv_timeout(SOON).unwrap();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        partition.kill();
        ended.send(()).unwrap();
    });
    end.recv_timeout(SOON).expect("it ends");
}

/// The same for an orderly stop, which waited for its last checkpoint for ever.
#[test]
fn a_stop_waits_for_its_checkpoint_only_so_long() {
    let (tried, _tries) = mpsc::channel();
    let log = MemoryLog::create(1, 1).unwrap();
    let kept = log.handle();
    let options = Options { stop_wait_max: Duration::from_millis(50), ..Options::default() };
    let store = Asking::full(tried);
    let partition = Partition::open(options, Arc::new(log), Arc::new(store)).unwrap();
    give(&partition, create(0)).unwrap();
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        partition.stop();
        ended.send(()).unwrap();
    });
    end.recv_timeout(SOON).expect("it ends");
    let store = Arc::new(MemoryCheckpoint::new());
    let partition = Partition::open(Options::default(), Arc::new(kept), store).unwrap();
    assert_eq!(partition.recovery().live_jobs, 1, "the log has everything");
    partition.kill();
}

fn log_on(disk: &SimDisk) -> FileLog {
    let options = FileLogOptions {
        segment_bytes: 1 << 20,
        housekeeping: Housekeeping::InLine,
        ..FileLogOptions::default()
    };
    let new = NewLog { life: LifeId::from_raw(1), partition: 1, first_lsn: 1 };
    FileLog::create(Arc::new(disk.clone()), Path::new("/log"), &new, options).unwrap()
}

/// A stop while the log has no room waited for room for ever.
#[test]
fn a_partition_ends_though_its_log_has_no_room() {
    let disk = SimDisk::new(1);
    let log = log_on(&disk);
    disk.set_capacity_bytes(Some(0));
    let store = Arc::new(MemoryCheckpoint::new());
    let options = Options { stop_wait_max: Duration::from_millis(50), ..Options::default() };
    let partition = Partition::open(options, Arc::new(log), store).unwrap();
    let big = create_of(200_000);
    let (tx, answers) = mpsc::channel();
    for _ in 0..40 {
        let tx = tx.clone();
        let reply = Box::new(move |results: Vec<Result<Answer, Refused>>| {
            let _ = tx.send(results);
        });
        let commands = Commands { items: vec![big.clone()], reply };
        partition.handle().submit(Request::Commands(commands)).unwrap();
    }
    drop(tx);
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        partition.stop();
        ended.send(()).unwrap();
    });
    end.recv_timeout(SOON).expect("it ends");
    let refused = answers.iter().flatten().filter(Result::is_err).count();
    assert!(refused > 0, "not everything had room");
}

fn create_of(payload_bytes: usize) -> Command {
    let mut job = create(0);
    if let Command::CreateJob(job) = &mut job {
        job.payload = vec![7; payload_bytes].into();
    }
    job
}

/// Completes the jobs, with large results, by two clients at once: 16 MB for 160 of them.
fn drain(partition: &Partition, jobs: &[HandedJob]) {
    let drain = |jobs: &[HandedJob]| {
        for job in jobs {
            let done = Command::CompleteJob(CompleteJob {
                lease: Lease { key: job.key, activation: Some(job.activation) },
                result: vec![7; 100_000].into(),
                documents: Vec::new(),
            });
            assert_eq!(give(partition, done), Ok(Answer::Done));
        }
    };
    std::thread::scope(|scope| {
        let half = jobs.len() / 2;
        jobs.chunks(half).for_each(|jobs| drop(scope.spawn(|| drain(jobs))));
    });
}

/// Work could drain only as far as the log's reserve, for a checkpoint, behind which there is room again, was written
/// by the clock, and stood behind the batch that waited for room.
#[test]
fn work_drains_though_the_disk_is_full() {
    let disk = SimDisk::new(1);
    let store = Arc::new(MemoryCheckpoint::new());
    let partition = Partition::open(Options::default(), Arc::new(log_on(&disk)), store).unwrap();
    give_all(&partition, vec![create(0); 160]);
    let jobs = take(&partition, 1, 160, false);
    // So many images take longer to collect than the batch under way takes to be written.
    for _ in 0..100 {
        give_all(&partition, vec![create(0); 200]);
    }
    disk.set_capacity_bytes(Some(0));
    drain(&partition, &jobs);
    partition.kill();
}

/// With nothing left to drain, no checkpoint was ever due.
#[test]
fn creates_are_taken_again_when_a_checkpoint_has_made_room() {
    let disk = SimDisk::new(1);
    let options = Options { checkpoint_every: Duration::from_millis(500), ..Options::default() };
    let store = Arc::new(MemoryCheckpoint::new());
    let partition = Partition::open(options, Arc::new(log_on(&disk)), store).unwrap();
    for _ in 0..9 {
        give(&partition, create_of(100_000)).unwrap();
    }
    partition.checkpoint_now().unwrap();
    disk.set_capacity_bytes(Some(0));
    let refused = loop {
        if let Err(refused) = give(&partition, create_of(1_000)) {
            break refused;
        }
    };
    let no_room =
        matches!(refused, Refused::Rejected(Rejection::Exhausted { bound: Bound::LogSpace, .. }));
    assert!(no_room, "{refused:?}");
    let since = Instant::now();
    while give(&partition, create(0)).is_err() {
        assert!(since.elapsed() < SOON, "there is room again");
        std::thread::sleep(Duration::from_millis(10));
    }
    partition.kill();
}

/// A read that the operating system refused once stopped the partition.
#[test]
fn a_payload_that_cannot_be_read_now_is_read_again() {
    let (log, disk) = (MemoryLog::create(1, 1).unwrap(), MemoryDisk::new());
    let kept = log.handle();
    let store = Arc::new(MemoryCheckpoint::open(&disk));
    let partition = Partition::open(Options::default(), Arc::new(log), store).unwrap();
    give(&partition, create_of(1_000)).unwrap();
    partition.stop();

    let refusals = Arc::new(AtomicU64::new(0));
    let left = refusals.clone();
    let read = move || match left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
    {
        Ok(_) => Err(refused_for_now(std::io::ErrorKind::QuotaExceeded)),
        Err(_) => Ok(()),
    };
    let inner = MemoryCheckpoint::open(&disk);
    let store = Asking { inner, write: Box::new(|| Ok(())), read: Box::new(read) };
    let partition = Partition::open(Options::default(), Arc::new(kept), Arc::new(store)).unwrap();
    refusals.store(2, Ordering::Relaxed);
    let jobs = take(&partition, 1, 1, false);
    assert_eq!((jobs[0].payload.len(), refusals.load(Ordering::Relaxed)), (1_000, 0));
    partition.kill();
}

/// The machine's clocks, which count how often they are asked.
#[derive(Default)]
struct Counting(SystemClock, AtomicU64);

impl ClockSource for Counting {
    fn read(&self) -> Reading {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read()
    }
}

/// The loop went round and round while its batch was full and the log took none.
#[test]
fn a_partition_sleeps_while_its_log_has_no_room() {
    let disk = SimDisk::new(1);
    let (log, clock) = (Arc::new(log_on(&disk)), Arc::new(Counting::default()));
    // Nor has the checkpoint, behind which there would be some.
    let (tried, _tries) = mpsc::channel();
    let store = Arc::new(Asking::full(tried));
    let partition =
        Partition::open_with(Options::default(), log.clone(), store, clock.clone()).unwrap();
    give_all(&partition, vec![create(0); 40]);
    let jobs = take(&partition, 1, 40, false);
    disk.set_capacity_bytes(Some(0));
    // Results are never refused. What is ready takes some of them, the batch under way some, and the
    // one behind it is full.
    for jobs in jobs.chunks(4) {
        let done = |job: &HandedJob| {
            Command::CompleteJob(CompleteJob {
                lease: Lease { key: job.key, activation: Some(job.activation) },
                result: vec![7; 200_000].into(),
                documents: Vec::new(),
            })
        };
        let commands = Commands { items: jobs.iter().map(done).collect(), reply: Box::new(|_| {}) };
        partition.handle().submit(Request::Commands(commands)).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(log.status().reserve_low, "it has no room");
    let (before, durable_lsn) = (clock.1.load(Ordering::Relaxed), log.status().durable_lsn);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(log.status().durable_lsn, durable_lsn, "and gets none");
    let asked = clock.1.load(Ordering::Relaxed) - before;
    assert!(asked < 1_000, "the clock was asked {asked} times in 300 ms");
    partition.kill();
}

/// A failed sync is the end of the partition: what was not acknowledged is refused.
#[test]
fn a_failed_sync_stops_the_partition_and_says_why() {
    let disk = SimDisk::new(1);
    let store = Arc::new(MemoryCheckpoint::new());
    let partition = Partition::open(Options::default(), Arc::new(log_on(&disk)), store).unwrap();
    give(&partition, create(0)).unwrap();
    disk.fail_sync_at(1);
    assert_eq!(give(&partition, create(0)), Err(Refused::Stopped));
    let reason = partition.wait_stopped(SOON);
    let Some(StopReason::Log(LogError::WriteFailed(cause))) = &reason else { panic!("{reason:?}") };
    assert_eq!(cause.to_string(), "the simulated disk failed to write");
}

/// A record larger than a segment of the log stopped the partition. It is refused, whatever it is
/// made of, and so is what does not fit beside its neighbours.
#[test]
fn what_no_batch_can_hold_is_refused() {
    let disk = SimDisk::new(1);
    let store = Arc::new(MemoryCheckpoint::new());
    let bounds = Bounds {
        payload_bytes_max: usize::MAX,
        log_line_bytes_max: usize::MAX,
        documents_per_command_max: 1_000,
        ..Bounds::default()
    };
    let options = Options { bounds, ..Options::default() };
    let partition = Partition::open(options, Arc::new(log_on(&disk)), store).unwrap();
    give(&partition, create(0)).unwrap();
    let held = take(&partition, 1, 1, false).remove(0);
    let lease = Lease { key: held.key, activation: Some(held.activation) };
    let bytes = |len: usize| -> Arc<[u8]> { vec![7; len].into() };
    let documents = |count: usize, len: usize| -> Vec<DocumentWrite> {
        let write = |number| DocumentWrite {
            tenant: "t".into(),
            kind: "k".into(),
            id: format!("{number}").into(),
            expected_version: None,
            bytes: Some(bytes(len)),
        };
        (0..count).map(write).collect()
    };
    let half = 512 << 10;
    let mut huge = create(0);
    if let Command::CreateJob(job) = &mut huge {
        job.payload = bytes(2 * half);
    }
    let commands = [
        huge,
        Command::CompleteJob(CompleteJob {
            lease,
            result: bytes(half),
            documents: documents(2, half / 2),
        }),
        Command::AppendLog(AppendLog { lease, lines: vec!["x".repeat(half / 100).into(); 200] }),
        Command::PutDocuments(PutDocuments { documents: documents(256, 4_096) }),
    ];
    for command in commands {
        let refused = give(&partition, command);
        let Err(Refused::Rejected(Rejection::TooLarge { bound, .. })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(bound, Bound::RecordBytes);
    }
    let one = || Command::PutDocuments(PutDocuments { documents: documents(1, half / 2) });
    let results = give_all(&partition, (0..8).map(|_| one()).collect());
    assert!(matches!(&results[0], Ok(Answer::Versions(_))), "{:?}", results[0]);
    let full = |result: &Result<Answer, Refused>| {
        let bound = Bound::BatchBytes;
        matches!(result, Err(Refused::Rejected(Rejection::Exhausted { bound: found, .. })) if *found == bound)
    };
    assert!(results.iter().any(full), "{results:?}");
    let done = CompleteJob { lease, result: bytes(half), documents: Vec::new() };
    assert_eq!(give(&partition, Command::CompleteJob(done)), Ok(Answer::Done), "it goes on");
    partition.kill();
}

/// Jobs that came back together were taken back in the order of their hand-out, so that the
/// counting scheme of their group went on from the last of them and not from the first.
#[test]
fn jobs_that_come_back_together_give_back_the_turn_of_the_first() {
    let partition = open(Options::default(), &MemoryDisk::new());
    let settings = QueueSettings {
        priority: PriorityRule::Scheme { high: 2, low: 1 },
        ..QueueSettings::DEFAULT
    };
    let configure = ConfigureQueue { queue: queue(), settings, seed_only: false };
    give(&partition, Command::ConfigureQueue(configure)).unwrap();
    for priority in [1, 9, 1, 9, 1, 9] {
        give(&partition, create(priority)).unwrap();
    }
    let priorities = |jobs: &[HandedJob]| jobs.iter().map(|job| job.priority).collect::<Vec<_>>();
    let lost = take(&partition, 1, 2, true);
    assert_eq!(priorities(&lost), [9, 9]);
    // Until they are back.
    loop {
        let (tx, rx) = mpsc::channel();
        let reply = Box::new(move |answer| tx.send(answer).unwrap());
        partition.handle().submit(Request::Query(Query::Queues(None), reply)).unwrap();
        let Ok(QueryAnswer::Queues(queues)) = rx.recv_timeout(SOON).unwrap() else { panic!() };
        if queues[0].counts.ready == 6 {
            break;
        }
    }
    assert_eq!(priorities(&take(&partition, 2, 3, false)), [9, 9, 1]);
    partition.kill();
}
