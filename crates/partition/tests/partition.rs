//! A partition on memory backends: what goes in, what comes out, what a restart finds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use windlass_checkpoint::{MemoryCheckpoint, MemoryDisk};
use windlass_log::fs::OsFileSystem;
use windlass_log::{FileLog, FileLogOptions, LifeId, MemoryLog, NewLog};
use windlass_partition::clock::{ClockSource, Reading, SystemClock};
use windlass_partition::request::{
    Answer, Commands, HandedJob, JobFilter, Poll, Query, QueryAnswer, Refused, Request, Stream,
    StreamSink, WaiterId, Wanted,
};
use windlass_partition::{Durability, Handle, Options, Partition};
use windlass_record::command::{
    CancelJob, Command, CompleteJob, ConfigureQueue, CreateJob, DocumentWrite, Due, JobOptions,
    Lease, PauseQueue, PutDocuments, QueueName, ReleaseJob,
};
use windlass_record::flow::{
    CancelInstance, CreateInstance, DeployResources, FlowAnswer, FlowCommand, Key,
    ProcessReference, SetVariables,
};
use windlass_record::id::JobKey;
use windlass_record::policy::QueueSettings;
use windlass_record::rejection::Rejection;

const SOON: Duration = Duration::from_secs(5);

struct Fixture {
    partition: Partition,
    log: MemoryLog,
    disk: MemoryDisk,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::with(Options::default())
    }

    fn with(options: Options) -> Fixture {
        let log = MemoryLog::create(1, 1).unwrap();
        let disk = MemoryDisk::new();
        Fixture { partition: open(options, &log, &disk), log, disk }
    }

    /// Stops without a checkpoint and opens again.
    fn crash(self, options: Options) -> Fixture {
        self.partition.kill();
        Fixture { partition: open(options, &self.log, &self.disk), log: self.log, disk: self.disk }
    }

    fn give(&self, command: Command) -> Result<Answer, Refused> {
        give(&self.partition.handle(), vec![command]).remove(0)
    }

    fn query(&self, query: Query) -> QueryAnswer {
        let (tx, rx) = mpsc::channel();
        let reply = Box::new(move |answer| tx.send(answer).unwrap());
        self.partition.handle().submit(Request::Query(query, reply)).unwrap();
        rx.recv_timeout(SOON).unwrap().unwrap()
    }

    fn poll(&self, id: u64, wait_ms: u64) -> mpsc::Receiver<Vec<HandedJob>> {
        self.poll_for(id, wait_ms, wanted())
    }

    fn poll_for(&self, id: u64, wait_ms: u64, wanted: Wanted) -> mpsc::Receiver<Vec<HandedJob>> {
        let (tx, rx) = mpsc::channel();
        let poll = Poll {
            id: WaiterId(id),
            wanted,
            jobs_max: 10,
            bytes_max: u64::MAX,
            wait_ms,
            reply: Box::new(move |jobs| match tx.send(jobs.unwrap()) {
                Ok(()) => Vec::new(),
                Err(mpsc::SendError(jobs)) => jobs,
            }),
        };
        self.partition.handle().submit(Request::Poll(poll)).unwrap();
        rx
    }

    fn complete(&self, job: &HandedJob) -> Result<Answer, Refused> {
        self.complete_with(job, b"done")
    }

    fn complete_with(&self, job: &HandedJob, result: &[u8]) -> Result<Answer, Refused> {
        self.give(Command::CompleteJob(CompleteJob {
            lease: Lease { key: job.key, activation: Some(job.activation) },
            result: result.into(),
            documents: Vec::new(),
        }))
    }

    /// The result of a finished job; nothing when it is forgotten.
    fn result(&self, key: JobKey) -> Option<Arc<[u8]>> {
        let QueryAnswer::Job(job) = self.query(Query::Job(key)) else { panic!() };
        job.map(|job| job.result)
    }

    fn payload_bytes(&self) -> u64 {
        let QueryAnswer::Status(status) = self.query(Query::Status) else { panic!() };
        status.payload_bytes
    }
}

fn open(options: Options, log: &MemoryLog, disk: &MemoryDisk) -> Partition {
    let checkpoint = MemoryCheckpoint::open(disk);
    Partition::open(options, Arc::new(log.handle()), Arc::new(checkpoint)).unwrap()
}

fn give(handle: &Handle, items: Vec<Command>) -> Vec<Result<Answer, Refused>> {
    let (tx, rx) = mpsc::channel();
    let reply = Box::new(move |results| tx.send(results).unwrap());
    handle.submit(Request::Commands(Commands { items, reply })).unwrap();
    rx.recv_timeout(SOON).unwrap()
}

fn queue() -> QueueName {
    QueueName { tenant: "default".into(), queue: "q".into() }
}

fn wanted() -> Wanted {
    Wanted { queues: vec![queue()], worker: "w".into(), lease_ms: 60_000, with_token: true }
}

fn create(group: &str) -> Command {
    create_with(group, None)
}

fn create_with(group: &str, options: Option<Box<JobOptions>>) -> Command {
    Command::CreateJob(CreateJob {
        queue: queue(),
        job_type: "".into(),
        group: group.into(),
        priority: 0,
        retries: 3,
        due: Due::Now,
        payload: Arc::from(*b"{}"),
        options,
    })
}

fn key_of(answer: Result<Answer, Refused>) -> JobKey {
    match answer {
        Ok(Answer::Created { key, .. }) => key,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_waiting_poll_is_answered_by_a_create_at_once() {
    let fixture = Fixture::new();
    let mut took = Vec::new();
    for _ in 0..10 {
        let jobs = fixture.poll(1, 30_000);
        let started = Instant::now();
        let key = key_of(fixture.give(create("a")));
        let jobs = jobs.recv_timeout(SOON).unwrap();
        took.push(started.elapsed());
        assert_eq!(jobs.iter().map(|job| job.key).collect::<Vec<_>>(), [key]);
        assert_eq!(&*jobs[0].payload, b"{}");
        assert_eq!(fixture.complete(&jobs[0]), Ok(Answer::Done));
        let again = fixture.complete(&jobs[0]);
        assert_eq!(again, Err(Refused::Rejected(Rejection::JobNotFound { key })));
    }
    took.sort_unstable();
    let fast = took[5] < Duration::from_millis(50) && took[9] < Duration::from_millis(500);
    assert!(fast, "no polling interval in between: {took:?}");
}

#[test]
fn a_poll_that_waits_in_vain_ends_empty() {
    let fixture = Fixture::new();
    assert!(fixture.poll(1, 0).recv_timeout(SOON).unwrap().is_empty());
    assert!(fixture.poll(2, 20).recv_timeout(SOON).unwrap().is_empty());
}

#[test]
fn jobs_for_a_poll_whose_client_is_gone_are_ready_again_at_once() {
    let fixture = Fixture::new();
    drop(fixture.poll(1, 30_000));
    let key = key_of(fixture.give(create("a")));
    let jobs = fixture.poll(2, 5_000).recv_timeout(SOON).unwrap();
    assert_eq!(jobs.iter().map(|job| job.key).collect::<Vec<_>>(), [key]);
    assert_eq!(jobs[0].activation, 2, "the number of the lost activation is spent");
}

/// One who asks without tokens stood first in line for a job that is only for those with tokens, and
/// nobody got it.
#[test]
fn a_fenced_job_goes_past_those_who_wait_without_tokens() {
    let fixture = Fixture::new();
    let key = key_of(fixture.give(create("a")));
    let held = fixture.poll(1, 5_000).recv_timeout(SOON).unwrap().remove(0);
    let without = Wanted { with_token: false, ..wanted() };
    let first = fixture.poll_for(2, 30_000, without);
    let second = fixture.poll(3, 30_000);
    let lease = Lease { key, activation: Some(held.activation) };
    let release = ReleaseJob { lease, delay_ms: 0 };
    assert_eq!(fixture.give(Command::ReleaseJob(release)), Ok(Answer::Done));
    let keys = |jobs: Vec<HandedJob>| jobs.iter().map(|job| job.key).collect::<Vec<_>>();
    assert_eq!(keys(second.recv_timeout(SOON).unwrap()), [key]);
    let other = key_of(fixture.give(create("a")));
    assert_eq!(keys(first.recv_timeout(SOON).unwrap()), [other], "it still waits");
}

/// Answers do not wait for the log where that was asked for; checkpoints and an orderly stop do.
#[test]
fn at_an_interval_answers_leave_before_they_are_durable() {
    let hour = Duration::from_secs(3_600);
    let options = Options { durability: Durability::Interval(hour), ..Options::default() };
    let fixture = Fixture::with(options);
    // The first batch finds nothing to wait for.
    key_of(fixture.give(create("a")));
    let status = |fixture: &Fixture| {
        let QueryAnswer::Status(status) = fixture.query(Query::Status) else { panic!() };
        (status.lsn, status.durable_lsn)
    };
    let second = key_of(fixture.give(create("a")));
    let (lsn, durable_lsn) = status(&fixture);
    assert!(durable_lsn < lsn, "{durable_lsn} is durable of {lsn}");
    assert_eq!(fixture.poll(1, 0).recv_timeout(SOON).unwrap().len(), 2);
    let checkpoint_lsn = fixture.partition.checkpoint_now().unwrap();
    assert!(checkpoint_lsn >= lsn && status(&fixture).1 >= checkpoint_lsn);
    let third = key_of(fixture.give(create("a")));
    let Fixture { partition, log, disk } = fixture;
    partition.stop();
    let partition = open(Options::default(), &log, &disk);
    let fixture = Fixture { partition, log, disk };
    for key in [second, third] {
        assert!(matches!(fixture.query(Query::Job(key)), QueryAnswer::Job(Some(_))));
    }
}

struct Sink(mpsc::Sender<Vec<HandedJob>>, mpsc::Sender<JobKey>);

impl StreamSink for Sink {
    fn deliver(&self, jobs: Vec<HandedJob>) -> Vec<HandedJob> {
        match self.0.send(jobs) {
            Ok(()) => Vec::new(),
            Err(mpsc::SendError(jobs)) => jobs,
        }
    }

    fn stop(&self, job: JobKey, _activation: u32) {
        let _ = self.1.send(job);
    }

    fn end(&self) {}
}

fn open_stream(handle: &Handle, id: u64, credits: u32) -> mpsc::Receiver<Vec<HandedJob>> {
    let (jobs_tx, jobs) = mpsc::channel();
    let (stops_tx, _stops) = mpsc::channel();
    let sink = Box::new(Sink(jobs_tx, stops_tx));
    let stream = Stream { id: WaiterId(id), wanted: wanted(), credits, sink };
    handle.submit(Request::OpenStream(stream)).unwrap();
    jobs
}

#[test]
fn a_stream_gets_no_more_than_its_credits() {
    let fixture = Fixture::new();
    for _ in 0..5 {
        key_of(fixture.give(create("a")));
    }
    let handle = fixture.partition.handle();
    let jobs = open_stream(&handle, 1, 2);
    assert_eq!(jobs.recv_timeout(SOON).unwrap().len(), 2);
    let QueryAnswer::Queues(queues) = fixture.query(Query::Queues(None)) else { panic!() };
    assert_eq!((queues[0].counts.ready, queues[0].counts.active), (3, 2));
    handle.submit(Request::AddCredits(WaiterId(1), 10)).unwrap();
    assert_eq!(jobs.recv_timeout(SOON).unwrap().len(), 3, "the backlog is drained in order");
    handle.submit(Request::CloseStream(WaiterId(1))).unwrap();
}

#[test]
fn streams_share_what_is_ready_evenly_and_at_once() {
    // Four streams, jobs that are created together: each stream hears once.
    for (jobs, shares) in [(12, [3, 3, 3, 3]), (13, [4, 3, 3, 3]), (256, [64; 4])] {
        let fixture = Fixture::new();
        let handle = fixture.partition.handle();
        let streams = [1, 2, 3, 4].map(|id| open_stream(&handle, id, 1_024));
        give(&handle, (0..jobs).map(|_| create("a")).collect());
        let heard = streams.each_ref().map(|stream| stream.recv_timeout(SOON).unwrap().len());
        assert_eq!(heard, shares);
        assert!(streams.iter().all(|stream| stream.try_recv().is_err()), "{jobs} jobs");
    }
}

#[test]
fn one_of_a_hundred_concurrent_inserts_holds_the_unique_key() {
    let fixture = Fixture::new();
    let options = JobOptions { unique_key: "only".into(), ..JobOptions::default() };
    let threads: Vec<_> = (0..100)
        .map(|_| {
            let handle = fixture.partition.handle();
            let options = Some(Box::new(options.clone()));
            std::thread::spawn(move || give(&handle, vec![create_with("a", options)]).remove(0))
        })
        .collect();
    let answers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let made: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    let [Answer::Created { key, .. }] = *made.as_slice() else { panic!("{made:?}") };
    let holder = *key;
    let refused = Err(Refused::Rejected(Rejection::UniqueKeyHeld { holder }));
    assert_eq!(answers.iter().filter(|answer| **answer == refused).count(), 99);
}

#[test]
fn a_restart_finds_everything_that_was_acknowledged() {
    for checkpoints in [0, 1, 3] {
        let options = Options { lease_grace: Duration::from_millis(50), ..Options::default() };
        let mut fixture = Fixture::with(options.clone());
        let mut keys = Vec::new();
        for round in 0..4 {
            for group in ["a", "b", "c"] {
                keys.push(key_of(fixture.give(create(group))));
            }
            if round < checkpoints {
                assert!(fixture.partition.checkpoint_now().is_some());
            }
            fixture = fixture.crash(options.clone());
        }
        let mut seen = Vec::new();
        loop {
            let jobs = fixture.poll(100 + seen.len() as u64, 0).recv_timeout(SOON).unwrap();
            if jobs.is_empty() {
                break;
            }
            for job in &jobs {
                assert_eq!(&*job.payload, b"{}", "read back from where it is");
                assert_eq!(fixture.complete(job), Ok(Answer::Done));
                seen.push(job.key);
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, keys, "with {checkpoints} checkpoints");
    }
}

#[test]
fn finished_jobs_can_be_looked_up() {
    let fixture = Fixture::new();
    let key = key_of(fixture.give(create("a")));
    let jobs = fixture.poll(1, 0).recv_timeout(SOON).unwrap();
    fixture.complete(&jobs[0]).unwrap();
    let QueryAnswer::Job(Some(job)) = fixture.query(Query::Job(key)) else { panic!() };
    assert_eq!((job.state, &*job.result), ("completed", &b"done"[..]));
    let filter = JobFilter { state: Some("completed"), ..JobFilter::default() };
    let QueryAnswer::Jobs(jobs, 0) = fixture.query(Query::Jobs(filter)) else { panic!() };
    assert_eq!(jobs.len(), 1);
}

/// Also when its bytes are no longer in memory.
#[test]
fn documents_are_listed_with_their_bytes_in_bounded_pages() {
    let mut fixture = Fixture::new();
    let write = |id: &str, bytes: Vec<u8>| DocumentWrite {
        tenant: "t".into(),
        kind: "k".into(),
        id: id.into(),
        expected_version: None,
        bytes: Some(bytes.into()),
    };
    let large = |byte| vec![byte; 700 << 10];
    for (id, byte) in [("a", b'1'), ("b", b'2'), ("c", b'3'), ("d", b'4')] {
        let documents = vec![write(id, large(byte))];
        fixture.give(Command::PutDocuments(PutDocuments { documents })).unwrap();
    }
    let list = |fixture: &Fixture, after: &str, limit| {
        let query = Query::WholeDocuments {
            tenant: "t".into(),
            kind: "k".into(),
            after: after.into(),
            limit,
        };
        let QueryAnswer::WholeDocuments(documents, more) = fixture.query(query) else { panic!() };
        let found: String = documents
            .iter()
            .map(|it| {
                assert!(it.version == 1 && it.bytes.len() == 700 << 10, "{}", it.id);
                format!("{}{}", it.id, char::from(it.bytes[0]))
            })
            .collect();
        (found, more)
    };
    for _ in 0..2 {
        assert_eq!(list(&fixture, "", 9), ("a1b2".to_owned(), true), "they are large");
        assert_eq!(list(&fixture, "b", 9), ("c3d4".to_owned(), false));
        assert_eq!(list(&fixture, "", 1), ("a1".to_owned(), true));
        assert_eq!(list(&fixture, "d", 1), (String::new(), false));
        fixture.partition.checkpoint_now().unwrap();
        fixture = fixture.crash(Options::default());
    }
}

#[test]
fn a_paused_queue_hands_out_nothing_until_it_is_resumed() {
    let fixture = Fixture::new();
    key_of(fixture.give(create("a")));
    let pause = |paused| Command::PauseQueue(PauseQueue { queue: queue(), paused });
    fixture.give(pause(true)).unwrap();
    assert!(fixture.poll(1, 0).recv_timeout(SOON).unwrap().is_empty());
    let waiting = fixture.poll(2, 30_000);
    fixture.give(pause(false)).unwrap();
    assert_eq!(waiting.recv_timeout(SOON).unwrap().len(), 1);
}

#[test]
fn answers_of_a_stopped_partition_say_so() {
    let fixture = Fixture::new();
    let (tx, waiting) = mpsc::channel();
    let poll = Poll {
        id: WaiterId(1),
        wanted: wanted(),
        jobs_max: 1,
        bytes_max: u64::MAX,
        wait_ms: 60_000,
        reply: Box::new(move |jobs| {
            tx.send(jobs.map(|jobs| jobs.len())).unwrap();
            Vec::new()
        }),
    };
    let handle = fixture.partition.handle();
    handle.submit(Request::Poll(poll)).unwrap();
    fixture.partition.stop();
    assert_eq!(waiting.recv_timeout(SOON).unwrap(), Err(Refused::Stopped));
    let commands = Commands { items: vec![create("a")], reply: Box::new(|_| ()) };
    assert!(handle.submit(Request::Commands(commands)).is_err());
}

#[test]
fn finished_jobs_survive_a_restart() {
    for checkpoint in [false, true] {
        let fixture = Fixture::new();
        let key = key_of(fixture.give(create("a")));
        let jobs = fixture.poll(1, 0).recv_timeout(SOON).unwrap();
        fixture.complete(&jobs[0]).unwrap();
        if checkpoint {
            fixture.partition.checkpoint_now().unwrap();
        }
        let fixture = fixture.crash(Options::default());
        let QueryAnswer::Job(Some(job)) = fixture.query(Query::Job(key)) else { panic!() };
        assert_eq!((job.state, &*job.result), ("completed", &b"done"[..]));
    }
}

/// They stayed in memory as long as they were remembered.
#[test]
fn large_results_leave_memory_and_can_be_looked_up() {
    let options = Options { payload_bytes_max: 0, ..Options::default() };
    let mut fixture = Fixture::with(options.clone());
    let (large, small) = (vec![7; 100_000], b"done");
    let mut keys = Vec::new();
    for id in 0..6 {
        keys.push(key_of(fixture.give(create("a"))));
        let jobs = fixture.poll(id, 0).recv_timeout(SOON).unwrap();
        let result = if id % 2 == 0 { &large[..] } else { small };
        fixture.complete_with(&jobs[0], result).unwrap();
    }
    for crashes in 0..3 {
        if crashes != 1 {
            fixture.partition.checkpoint_now().unwrap();
        }
        // They leave in the round after the one that hears of the checkpoint.
        let begin = Instant::now();
        while fixture.payload_bytes() >= 10_000 {
            assert!(begin.elapsed() < SOON, "{} bytes", fixture.payload_bytes());
        }
        for (key, id) in keys.iter().zip(0..) {
            let result = if id % 2 == 0 { &large[..] } else { small };
            assert_eq!(fixture.result(*key).as_deref(), Some(result));
        }
        fixture = fixture.crash(options.clone());
    }
    fixture.partition.kill();
}

/// There was a bound on their number only, and whoever came too late found no room.
#[test]
fn results_of_all_queues_share_their_room() {
    let options = Options { finished_bytes_max: 1_000_000, ..Options::default() };
    let fixture = Fixture::with(options);
    let mut next = 0;
    let mut finish = |queue: &str, count: usize| -> Vec<JobKey> {
        let one = |_| {
            let name = QueueName { tenant: "default".into(), queue: queue.into() };
            let mut job = create("a");
            if let Command::CreateJob(job) = &mut job {
                job.queue = name.clone();
            }
            let key = key_of(fixture.give(job));
            next += 1;
            let wanted = Wanted { queues: vec![name], ..wanted() };
            let jobs = fixture.poll_for(next, 0, wanted).recv_timeout(SOON).unwrap();
            fixture.complete_with(&jobs[0], &[7; 100_000]).unwrap();
            key
        };
        (0..count).map(one).collect()
    };
    let (many, few) = (finish("many", 30), finish("few", 3));
    let kept = |keys: &[JobKey]| keys.iter().filter(|key| fixture.result(**key).is_some()).count();
    assert_eq!(kept(&few), 3);
    assert_eq!(kept(&many), 7);
    assert!(fixture.result(many[29]).is_some() && fixture.result(many[0]).is_none());
    assert!(fixture.payload_bytes() <= 1_000_000);
}

/// A list of those of a group went through all that a queue remembers.
#[test]
fn a_list_of_finished_jobs_looks_at_a_bounded_number() {
    let fixture = Fixture::new();
    let settings = QueueSettings { finished_max: 30_000, ..QueueSettings::DEFAULT };
    let configure = ConfigureQueue { queue: queue(), settings, seed_only: false };
    fixture.give(Command::ConfigureQueue(configure)).unwrap();
    let handle = fixture.partition.handle();
    let first = key_of(fixture.give(create("rare")));
    let cancel =
        |key| Command::CancelJob(CancelJob { key, force: true, reason: "".into(), tenant: None });
    fixture.give(cancel(first)).unwrap();
    for _ in 0..25 {
        let keys = give(&handle, vec![create("a"); 1_000]).into_iter().map(key_of);
        give(&handle, keys.map(cancel).collect());
    }
    let mut filter =
        JobFilter { group: Some("rare".into()), state: Some("cancelled"), ..JobFilter::default() };
    let QueryAnswer::Jobs(jobs, cursor) = fixture.query(Query::Jobs(filter.clone())) else {
        panic!()
    };
    assert!(jobs.is_empty() && cursor != 0, "{} jobs, {cursor}", jobs.len());
    filter.cursor = cursor;
    let QueryAnswer::Jobs(jobs, 0) = fixture.query(Query::Jobs(filter)) else { panic!() };
    assert_eq!(jobs.iter().map(|job| job.key).collect::<Vec<_>>(), [first]);
}

#[test]
fn why_says_where_a_job_stands_and_what_it_waits_for() {
    let fixture = Fixture::new();
    let first = key_of(fixture.give(create("a")));
    let second = key_of(fixture.give(create("a")));
    let why = |key| {
        let QueryAnswer::Why(Some(why)) = fixture.query(Query::Why(key)) else { panic!("{key}") };
        *why
    };
    assert_eq!(why(first).reason, "no-worker");
    assert_eq!(why(second).position, Some(1));
    let jobs = fixture.poll(1, 0).recv_timeout(SOON).unwrap();
    assert_eq!((why(first).reason, why(first).worker.as_deref()), ("active", Some("w")));
    fixture.complete(&jobs[0]).unwrap();
    assert_eq!(why(first).reason, "at-rest");
}

/// The machine's clocks, set ahead by so many milliseconds.
#[derive(Default)]
struct Ahead {
    clock: SystemClock,
    by_ms: AtomicU64,
}

impl ClockSource for Ahead {
    fn read(&self) -> Reading {
        let Reading { monotonic_us, wall_ms } = self.clock.read();
        let by_ms = self.by_ms.load(Ordering::Relaxed);
        Reading { monotonic_us: monotonic_us + by_ms * 1_000, wall_ms: wall_ms + by_ms }
    }
}

#[test]
fn whoever_waited_until_a_moment_ago_is_a_worker() {
    let (log, disk) = (MemoryLog::create(1, 1).unwrap(), MemoryDisk::new());
    let clock = Arc::new(Ahead::default());
    let checkpoint = Arc::new(MemoryCheckpoint::open(&disk));
    let opened = Partition::open_with(
        Options::default(),
        Arc::new(log.handle()),
        checkpoint,
        Arc::<Ahead>::clone(&clock),
    );
    let fixture = Fixture { partition: opened.unwrap(), log, disk };
    let waiting = fixture.poll(1, 300_000);
    // It hoped for a queue: its first job makes that.
    clock.by_ms.fetch_add(90_000, Ordering::Relaxed);
    key_of(fixture.give(create("a")));
    assert_eq!(waiting.recv_timeout(SOON).unwrap().len(), 1);
    let next = key_of(fixture.give(create("a")));
    let reason = || {
        let QueryAnswer::Why(Some(why)) = fixture.query(Query::Why(next)) else { panic!() };
        why.reason
    };
    assert_ne!(reason(), "no-worker", "it works on what it got");
    clock.by_ms.fetch_add(90_000, Ordering::Relaxed);
    assert_eq!(reason(), "no-worker");
}

/// More than a batch of the log holds: a stopped partition would find the same again.
#[test]
fn hand_outs_of_a_backlog_take_several_batches() {
    const JOBS: usize = 6_000;
    let dir = tempfile::tempdir().unwrap();
    let new = NewLog { life: LifeId::random(), partition: 1, first_lsn: 1 };
    let segments = FileLogOptions { segment_bytes: 1 << 20, ..FileLogOptions::default() };
    let log = FileLog::create(Arc::new(OsFileSystem), dir.path(), &new, segments).unwrap();
    let checkpoint = Arc::new(MemoryCheckpoint::open(&MemoryDisk::new()));
    let partition = Partition::open(Options::default(), Arc::new(log), checkpoint).unwrap();
    let handle = partition.handle();
    for _ in 0..JOBS / 500 {
        let created = give(&handle, (0..500).map(|_| create("a")).collect());
        assert!(created.iter().all(Result::is_ok));
    }
    let (tx, jobs) = mpsc::channel();
    let wanted = Wanted { worker: "w".repeat(250).into(), ..wanted() };
    let sink = Box::new(Sink(tx, mpsc::channel().0));
    let credits = u32::try_from(JOBS).unwrap();
    handle.submit(Request::OpenStream(Stream { id: WaiterId(1), wanted, credits, sink })).unwrap();
    let mut handed = 0;
    while handed < JOBS {
        handed += jobs.recv_timeout(SOON).expect("the partition goes on").len();
    }
    partition.stop();
}

/// Somebody else's checkpoint may be under way: it does not hold what was acknowledged since.
#[test]
fn a_checkpoint_holds_all_that_was_acknowledged_before_it_was_asked_for() {
    let fixture = Fixture::new();
    let others = fixture.partition.checkpoints();
    let asking = std::thread::spawn(move || (0..200).all(|_| others.write_now().is_some()));
    for _ in 0..100 {
        key_of(fixture.give(create("a")));
        let QueryAnswer::Status(status) = fixture.query(Query::Status) else { panic!() };
        let lsn = fixture.partition.checkpoint_now().unwrap();
        assert!(lsn >= status.durable_lsn, "lsn {lsn} is behind {}", status.durable_lsn);
    }
    assert!(asking.join().unwrap());
}

/// A checkpoint with an image past the store's largest value was tried for ever.
#[test]
fn variables_of_one_scope_may_be_many() {
    let process = r#"<?xml version="1.0"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="t">
  <bpmn:process id="p" isExecutable="true">
    <bpmn:startEvent id="start"/>
    <bpmn:sequenceFlow id="a" sourceRef="start" targetRef="wait"/>
    <bpmn:userTask id="wait"/>
  </bpmn:process>
</bpmn:definitions>"#;
    let mut fixture = Fixture::new();
    let flow = |fixture: &Fixture, command| match fixture.give(Command::Flow(command)) {
        Ok(Answer::Flow(answer)) => answer,
        other => panic!("{other:?}"),
    };
    let resources = vec![("p.bpmn".into(), process.as_bytes().into())];
    let deploy = DeployResources { tenant: "t".into(), resources };
    flow(&fixture, FlowCommand::DeployResources(deploy));
    let create = CreateInstance {
        tenant: "t".into(),
        process: ProcessReference::Latest("p".into()),
        variables: Arc::default(),
        start_at: Vec::new(),
        business_id: "".into(),
        tags: Vec::new(),
        awaited: false,
    };
    let created = flow(&fixture, FlowCommand::CreateInstance(create));
    let FlowAnswer::InstanceCreated { key, .. } = created else { panic!("{created:?}") };
    let text = "x".repeat(4_000_000);
    let set = |fixture: &Fixture, number: u32, key: Key| {
        let variables = format!("{{\"v{number}\": \"{text}\"}}").into_bytes().into();
        let command = SetVariables { scope: key, variables, local: true };
        flow(fixture, FlowCommand::SetVariables(command));
    };
    // The store's largest value has 256 MiB.
    for number in 1..=68 {
        set(&fixture, number, key);
    }
    fixture.partition.checkpoint_now().unwrap();
    // Opening compares the state with the checksum of what was written.
    fixture = fixture.crash(Options::default());
    assert_eq!(fixture.partition.recovery().replayed, 0);
    set(&fixture, 1, key);
    flow(&fixture, FlowCommand::CancelInstance(CancelInstance { key }));
    fixture.partition.checkpoint_now().unwrap();
    fixture.crash(Options::default()).partition.kill();
}
