//! One who follows the log gets every record once and in order, but for those that it leaves out, and is
//! never in the way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use windlass_checkpoint::{MemoryCheckpoint, MemoryDisk};
use windlass_log::MemoryLog;
use windlass_partition::clock::SystemClock;
use windlass_partition::request::{Commands, Query, QueryAnswer, Request};
use windlass_partition::{Followed, Follower, Options, Partition, Record};
use windlass_record::command::{Command, CreateJob, Due, PauseQueue, QueueName};

const SOON: Duration = Duration::from_secs(20);

/// Remembers what it got; can be held up, and can fail.
#[derive(Default)]
struct Notes {
    kept: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Default)]
struct Kept {
    held_up: bool,
    leaves_out: bool,
    flushes_to_fail: u32,
    /// Taken and not flushed.
    open: Vec<u64>,
    lsns: Vec<u64>,
    missed: Vec<(u64, u64)>,
    covered: u64,
}

impl Notes {
    fn hold_up(&self, held_up: bool) {
        self.kept.lock().unwrap().held_up = held_up;
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&Kept) -> bool) {
        let kept = self.kept.lock().unwrap();
        let (_kept, late) =
            self.changed.wait_timeout_while(kept, SOON, |kept| !until(kept)).unwrap();
        assert!(!late.timed_out(), "it did not come so far");
    }

    fn lsns(&self) -> Vec<u64> {
        self.kept.lock().unwrap().lsns.clone()
    }
}

impl Follower for Notes {
    fn begin(&self, log: &Followed) -> u64 {
        let mut kept = self.kept.lock().unwrap();
        kept.open.clear();
        assert!(kept.covered <= log.durable_lsn);
        kept.covered
    }

    fn take(&self, record: &Record<'_>) {
        let kept = self.kept.lock().unwrap();
        let mut kept = self.changed.wait_while(kept, |kept| kept.held_up).unwrap();
        assert!(!record.payload.is_empty());
        kept.open.push(record.lsn);
    }

    fn leave_out(&self, time_ms: u64) -> bool {
        let kept = self.kept.lock().unwrap();
        assert!(kept.open.is_empty(), "what came before was flushed");
        assert!(time_ms > 0);
        kept.leaves_out
    }

    fn miss(&self, first_lsn: u64, last_lsn: u64) {
        self.kept.lock().unwrap().missed.push((first_lsn, last_lsn));
    }

    fn flush(&self, through_lsn: u64) -> u64 {
        let mut kept = self.kept.lock().unwrap();
        let open = std::mem::take(&mut kept.open);
        if kept.flushes_to_fail > 0 {
            kept.flushes_to_fail -= 1;
            return kept.covered;
        }
        kept.lsns.extend(open);
        kept.covered = through_lsn;
        self.changed.notify_all();
        through_lsn
    }

    fn idle(&self) -> bool {
        false
    }

    fn kept(&self) -> u64 {
        self.kept.lock().unwrap().covered
    }
}

struct Fixture {
    log: MemoryLog,
    disk: MemoryDisk,
    notes: Arc<Notes>,
}

impl Fixture {
    fn new() -> Fixture {
        let log = MemoryLog::create(1, 1).unwrap();
        Fixture { log, disk: MemoryDisk::new(), notes: Arc::default() }
    }

    fn open(&self, options: Options) -> Partition {
        let checkpoint = MemoryCheckpoint::open(&self.disk);
        let (log, clock) = (Arc::new(self.log.handle()), Arc::new(SystemClock::default()));
        let notes: Arc<dyn Follower> = self.notes.clone();
        Partition::open_followed(options, log, Arc::new(checkpoint), clock, Some(notes)).unwrap()
    }
}

fn create(partition: &Partition) {
    let command = CreateJob {
        queue: queue(),
        job_type: "".into(),
        group: "".into(),
        priority: 0,
        retries: 3,
        due: Due::Now,
        payload: Arc::from(vec![b'x'; 1_000]),
        options: None,
    };
    submit(partition, Command::CreateJob(command));
}

fn queue() -> QueueName {
    QueueName { tenant: "default".into(), queue: "q".into() }
}

fn submit(partition: &Partition, command: Command) {
    let (tx, rx) = mpsc::channel();
    let reply = Box::new(move |results| tx.send(results).unwrap());
    let commands = Commands { items: vec![command], reply };
    partition.handle().submit(Request::Commands(commands)).unwrap();
    assert!(rx.recv_timeout(SOON).unwrap().remove(0).is_ok());
}

fn durable_lsn(partition: &Partition) -> u64 {
    let (tx, rx) = mpsc::channel();
    let reply = Box::new(move |answer| tx.send(answer).unwrap());
    partition.handle().submit(Request::Query(Query::Status, reply)).unwrap();
    match rx.recv_timeout(SOON).unwrap() {
        Ok(QueryAnswer::Status(status)) => status.durable_lsn,
        other => panic!("{:?}", other.is_ok()),
    }
}

fn wait_covered(fixture: &Fixture, partition: &Partition) {
    let lsn = durable_lsn(partition);
    fixture.notes.wait(|kept| kept.covered >= lsn);
}

/// Dense but for the epoch frames, of which there is one per opening.
fn assert_whole(lsns: &[u64], openings: u64) {
    assert!(lsns.is_sorted_by(|one, next| one < next), "in order, and none twice");
    let last = lsns.last().copied().unwrap_or(0);
    assert_eq!(lsns.len() as u64, last - openings, "none is missing");
}

#[test]
fn every_record_comes_once_and_in_order_over_restarts() {
    let fixture = Fixture::new();
    for opening in 1..=3 {
        let partition = fixture.open(Options::default());
        for _ in 0..20 {
            create(&partition);
        }
        wait_covered(&fixture, &partition);
        partition.kill();
        assert_whole(&fixture.notes.lsns(), opening);
    }
}

#[test]
fn one_that_is_held_up_holds_up_nobody_and_then_gets_everything() {
    let fixture = Fixture::new();
    let partition = fixture.open(Options::default());
    create(&partition);
    wait_covered(&fixture, &partition);
    fixture.notes.hold_up(true);
    let began = Instant::now();
    for _ in 0..2_000 {
        create(&partition);
    }
    assert!(began.elapsed() < SOON, "answers leave as if nobody followed");
    assert!(partition.follow_lag().bytes() > 1_000_000, "{}", partition.follow_lag().bytes());
    // A checkpoint does not take the log away from it.
    let checkpoint = partition.checkpoint_now().unwrap();
    assert!(fixture.notes.kept() < checkpoint);
    fixture.notes.hold_up(false);
    wait_covered(&fixture, &partition);
    assert_whole(&fixture.notes.lsns(), 1);
    assert_eq!(partition.follow_lag().bytes(), 0);
    partition.stop();
}

#[test]
fn one_that_lags_past_the_limit_misses_records_and_is_told_which() {
    let fixture = Fixture::new();
    let options = Options { follow_log_bytes_max: 100_000, ..Options::default() };
    let partition = fixture.open(options);
    create(&partition);
    wait_covered(&fixture, &partition);
    fixture.notes.hold_up(true);
    for _ in 0..1_000 {
        create(&partition);
    }
    partition.checkpoint_now().unwrap();
    create(&partition);
    fixture.notes.hold_up(false);
    wait_covered(&fixture, &partition);
    let kept = fixture.notes.kept.lock().unwrap();
    let [(first, last)] = kept.missed[..] else { panic!("{:?}", kept.missed) };
    let gap = kept.lsns.windows(2).find(|pair| pair[1] - pair[0] > 1);
    assert_eq!(gap, Some(&[first - 1, last + 1][..]));
    drop(kept);
    partition.stop();
}

#[test]
fn what_could_not_be_kept_is_given_again() {
    let fixture = Fixture::new();
    fixture.notes.kept.lock().unwrap().flushes_to_fail = 3;
    let partition = fixture.open(Options::default());
    for _ in 0..20 {
        create(&partition);
    }
    wait_covered(&fixture, &partition);
    assert_whole(&fixture.notes.lsns(), 1);
    partition.stop();
}

#[test]
fn records_about_jobs_alone_are_left_out_where_it_can_do_without_them() {
    let fixture = Fixture::new();
    let notes = &fixture.notes;
    let leave_out = |leaves_out| notes.kept.lock().unwrap().leaves_out = leaves_out;
    let wait_for = |lsn| notes.wait(|kept| kept.covered >= lsn);
    let pause = |partition: &Partition, paused| {
        submit(partition, Command::PauseQueue(PauseQueue { queue: queue(), paused }));
    };
    let partition = fixture.open(Options::default());
    create(&partition);
    // Behind the epoch, the opening, and the first job with its queue.
    let mut lsn = 3;
    wait_for(lsn);
    let mut expected = vec![2, 3];
    for _ in 0..3 {
        leave_out(true);
        (0..50).for_each(|_| create(&partition));
        lsn += 50;
        wait_for(lsn);
        assert_eq!(notes.lsns(), expected, "none of them was given");
        assert_eq!(partition.follow_lag().bytes(), 0, "and none of them is missing");
        pause(&partition, true);
        lsn += 1;
        expected.push(lsn);
        wait_for(lsn);
        assert_eq!(notes.lsns(), expected, "what is about more is given");
        leave_out(false);
        (0..20).for_each(|_| create(&partition));
        expected.extend(lsn + 1..=lsn + 20);
        lsn += 20;
        wait_for(lsn);
        assert_eq!(notes.lsns(), expected, "and so is everything, where it is wanted");
        pause(&partition, false);
        lsn += 1;
        expected.push(lsn);
        wait_for(lsn);
    }
    // What was there before a start is given, whatever it is about.
    notes.kept.lock().unwrap().flushes_to_fail = u32::MAX;
    create(&partition);
    expected.push(lsn + 1);
    partition.kill();
    notes.kept.lock().unwrap().flushes_to_fail = 0;
    leave_out(true);
    let partition = fixture.open(Options::default());
    wait_for(lsn + 1);
    let lsns = notes.lsns();
    assert!(lsns.starts_with(&expected), "{lsns:?} begins as {expected:?}");
    partition.stop();
}
