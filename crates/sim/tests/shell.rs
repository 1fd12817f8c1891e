//! What the simulated threads showed, on the real ones.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use windlass_checkpoint::{
    Checkpoint, Entry, Fault, KeyRange, MemoryCheckpoint, MemoryDisk, Pairs, Stamp, View, Visit,
};
use windlass_log::MemoryLog;
use windlass_partition::request::{
    Answer, Commands, HandedJob, Poll, Query, QueryAnswer, Refused, Request, WaiterId, Wanted,
};
use windlass_partition::{Options, Partition, StopReason};
use windlass_record::command::{Command, ConfigureQueue, CreateJob, Due, QueueName};
use windlass_record::policy::{PriorityRule, QueueSettings};

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
    let (tx, rx) = mpsc::channel();
    let reply = Box::new(move |results| tx.send(results).unwrap());
    let commands = Commands { items: vec![command], reply };
    partition.handle().submit(Request::Commands(commands)).unwrap();
    let results: Vec<Result<Answer, Refused>> = rx.recv_timeout(SOON).unwrap();
    results.into_iter().next().unwrap()
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

/// A store on a disk that is full for ever.
struct Full(MemoryCheckpoint, mpsc::Sender<()>);

impl View for Full {
    fn stamp(&self) -> Option<Stamp> {
        self.0.stamp()
    }

    fn get(&self, key: &[u8]) -> windlass_checkpoint::Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn scan_with(
        &self,
        range: &KeyRange,
        visit: &mut Visit<'_>,
    ) -> windlass_checkpoint::Result<()> {
        self.0.scan_with(range, visit)
    }

    fn scan(&self, range: &KeyRange) -> Pairs<'_> {
        self.0.scan(range)
    }

    fn edges(&self, range: &KeyRange) -> windlass_checkpoint::Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.0.edges(range)
    }
}

impl Checkpoint for Full {
    fn write(
        &self,
        _: &mut dyn Iterator<Item = windlass_checkpoint::Result<Entry<'_>>>,
        _: &Stamp,
    ) -> windlass_checkpoint::Result<()> {
        self.1.send(()).unwrap();
        let source = std::io::ErrorKind::StorageFull.into();
        Err(windlass_checkpoint::Error::Io { action: "write the checkpoint", source })
    }

    fn snapshot(&self) -> windlass_checkpoint::Result<Box<dyn View>> {
        self.0.snapshot()
    }
}

/// The writer tried for ever to write to a full disk, and the partition could not be stopped.
#[test]
fn a_partition_ends_though_its_checkpoint_cannot_be_written() {
    let (tried, tries) = mpsc::channel();
    let log = MemoryLog::create(1, 1).unwrap();
    let options = Options { checkpoint_log_bytes: 1, ..Options::default() };
    let store = Full(MemoryCheckpoint::new(), tried);
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
