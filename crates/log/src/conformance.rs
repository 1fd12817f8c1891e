//! The contract as tests: every backend runs these suites. A check that fails panics with its name in the backtrace.
//!
//! They are compiled into the library so that backends in other crates can run them too.

use std::io::Read;
use std::sync::Arc;

use crate::{
    Batch, BatchBuilder, EpochOpened, EpochRecord, EpochRequest, FrameKind, Lease, LeaseError,
    LeaseRequest, LifeId, Log, LogError, Position, ReadFrom, SnapshotError, Snapshots, Tail,
};

/// Makes logs for [`check_log`]. Each value is used for one log.
pub trait LogBackend {
    /// Creates the log.
    fn create(&self, partition: u16, first_lsn: u64) -> Arc<dyn Log>;

    /// Closes the log, to which nobody else holds a handle, and opens it again.
    fn reopen(&self, log: Arc<dyn Log>) -> Arc<dyn Log>;

    /// Another handle on the open log, as a second machine would have it, where the backend allows that.
    fn second_handle(&self) -> Option<Arc<dyn Log>>;
}

/// Runs the whole suite for logs; `backend` makes an empty place for each check.
pub fn check_log<B: LogBackend>(backend: impl Fn() -> B) {
    frames_read_back(&backend());
    a_log_begins_at_the_lsn_it_was_created_with(&backend());
    appending_needs_an_epoch(&backend());
    epochs_rise(&backend());
    an_epoch_frame_names_its_predecessor(&backend());
    a_batch_that_does_not_follow_changes_nothing(&backend());
    a_batch_that_is_too_large_is_refused(&backend());
    a_reopened_log_goes_on(&backend());
    every_lsn_can_be_read_from(&backend());
    a_reader_follows_the_tail(&backend());
    a_trimmed_log_keeps_what_is_needed(&backend());
    an_older_epoch_is_fenced(&backend());
}

/// What a reader should yield, kept beside the log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    lsn: u64,
    epoch: u32,
    time_ms: u64,
    payload: Vec<u8>,
    position: Position,
}

fn open_epoch(log: &dyn Log, epoch: u32) -> EpochOpened {
    log.open_epoch(&EpochRequest { epoch, time_ms: u64::from(epoch) * 1000 }).expect("it is higher")
}

fn batch(tail: &Tail, time_ms: u64, payloads: &[Vec<u8>]) -> Batch {
    let mut builder = BatchBuilder::new();
    builder.start(tail, time_ms);
    for payload in payloads {
        builder.frame(|buffer| buffer.extend_from_slice(payload));
    }
    builder.finish()
}

/// Appends batches of growing frames, and returns what was appended and the tail.
fn fill(log: &dyn Log, tail: Tail, batches: u64, frame_bytes: usize) -> (Vec<Expected>, Tail) {
    let mut expected = Vec::new();
    let mut tail = tail;
    for number in 0..batches {
        let count = number % 3 + 1;
        let payloads: Vec<Vec<u8>> = (0..count)
            .map(|frame| {
                let byte = u8::try_from((number + frame) % 251).expect("less than 251");
                vec![byte; frame_bytes]
            })
            .collect();
        let time_ms = 5000 + number;
        let mut batch = batch(&tail, time_ms, &payloads);
        let position = log.append(&mut batch).expect("the batch follows");
        for (payload, lsn) in payloads.into_iter().zip(batch.first_lsn()..) {
            expected.push(Expected { lsn, epoch: tail.epoch, time_ms, payload, position });
        }
        tail = batch.tail_after();
    }
    (expected, tail)
}

/// All data frames from an lsn on.
fn read_data(log: &dyn Log, from: &ReadFrom) -> Vec<Expected> {
    let mut reader = log.read(from).expect("the lsn is in the log");
    let mut entries = Vec::new();
    let mut next_lsn = from.lsn;
    while let Some(entry) = reader.next_entry().expect("the log is whole") {
        assert_eq!(entry.lsn, next_lsn, "lsns are dense");
        next_lsn += 1;
        if entry.kind == FrameKind::Data {
            entries.push(Expected {
                lsn: entry.lsn,
                epoch: entry.epoch,
                time_ms: entry.time_ms,
                payload: entry.payload.to_vec(),
                position: entry.position,
            });
        }
    }
    assert_eq!(next_lsn, log.status().durable_lsn + 1, "a reader reaches the end");
    entries
}

fn frames_read_back(backend: &dyn LogBackend) {
    let log = backend.create(3, 1);
    let opened = open_epoch(log.as_ref(), 1);
    assert_eq!((opened.lsn, opened.tail.next_lsn, opened.tail.partition), (1, 2, 3));
    let (expected, tail) = fill(log.as_ref(), opened.tail, 20, 300);
    assert_eq!(read_data(log.as_ref(), &ReadFrom::lsn(1)), expected);
    let status = log.status();
    assert_eq!((status.durable_lsn, status.epoch), (tail.last_lsn(), 1));
    assert_eq!((status.first_lsn, status.time_ms), (1, 5019));
    assert!(!status.reserve_low && !status.poisoned);
}

fn a_log_begins_at_the_lsn_it_was_created_with(backend: &dyn LogBackend) {
    let log = backend.create(0, 500);
    assert_eq!((log.status().first_lsn, log.status().durable_lsn), (500, 499));
    let opened = open_epoch(log.as_ref(), 7);
    assert_eq!(opened.lsn, 500);
    let none =
        EpochRecord { predecessor_epoch: 0, predecessor_last_lsn: 499, predecessor_time_ms: 0 };
    assert_eq!(opened.predecessor, none);
    let error = log.read(&ReadFrom::lsn(499)).expect_err("the log begins later");
    assert!(matches!(error, LogError::Trimmed { lsn: 499, first_lsn: 500 }));
}

fn appending_needs_an_epoch(backend: &dyn LogBackend) {
    let log = backend.create(0, 1);
    let opened = open_epoch(log.as_ref(), 1);
    let log = backend.reopen(log);
    let error = log.append(&mut batch(&opened.tail, 0, &[vec![1]])).expect_err("none is open");
    assert!(matches!(error, LogError::NoEpochOpen));
    assert_eq!(log.status().durable_lsn, 1);
}

fn epochs_rise(backend: &dyn LogBackend) {
    let log = backend.create(0, 1);
    open_epoch(log.as_ref(), 5);
    for asked in [0, 4, 5] {
        let error = log.open_epoch(&EpochRequest { epoch: asked, time_ms: 0 });
        let error = error.expect_err("5 is open");
        assert!(matches!(error, LogError::EpochTooLow { last: 5, .. }), "{asked}");
    }
    let log = backend.reopen(log);
    assert!(log.open_epoch(&EpochRequest { epoch: 5, time_ms: 0 }).is_err());
    assert_eq!(open_epoch(log.as_ref(), 6).lsn, 2);
}

fn an_epoch_frame_names_its_predecessor(backend: &dyn LogBackend) {
    let log = backend.create(0, 1);
    let opened = open_epoch(log.as_ref(), 2);
    let (_, tail) = fill(log.as_ref(), opened.tail, 4, 10);
    let log = backend.reopen(log);
    let opened = open_epoch(log.as_ref(), 9);
    assert_eq!(opened.lsn, tail.next_lsn);
    let record = EpochRecord {
        predecessor_epoch: 2,
        predecessor_last_lsn: tail.last_lsn(),
        predecessor_time_ms: 5003,
    };
    assert_eq!(opened.predecessor, record);
    let from = ReadFrom { lsn: opened.lsn, near: Some(opened.position) };
    let mut reader = log.read(&from).expect("it is durable");
    let entry = reader.next_entry().expect("the log is whole").expect("it is durable");
    assert_eq!((entry.kind, entry.epoch, entry.time_ms), (FrameKind::Epoch, 9, 9000));
    assert_eq!(EpochRecord::decode(entry.payload), Some(record));
}

fn a_batch_that_does_not_follow_changes_nothing(backend: &dyn LogBackend) {
    let log = backend.create(0, 1);
    let opened = open_epoch(log.as_ref(), 1);
    let (expected, tail) = fill(log.as_ref(), opened.tail, 3, 10);
    let wrong = [
        opened.tail,
        Tail { next_lsn: tail.next_lsn + 1, ..tail },
        Tail { chain: tail.chain ^ 1, ..tail },
        Tail { epoch: 2, ..tail },
        Tail { partition: 1, ..tail },
        Tail { life: LifeId::from_raw(tail.life.raw() ^ 1), ..tail },
    ];
    for (number, tail) in wrong.iter().enumerate() {
        let refused = log.append(&mut batch(tail, 0, &[vec![1]]));
        assert!(refused.is_err(), "wrong tail {number}");
    }
    let refused = log.append(&mut batch(&tail, 0, &[]));
    assert!(matches!(refused, Err(LogError::EmptyBatch)));
    let (more, _) = fill(log.as_ref(), tail, 3, 10);
    assert_eq!(read_data(log.as_ref(), &ReadFrom::lsn(1)), [expected, more].concat());
}

fn a_batch_that_is_too_large_is_refused(backend: &dyn LogBackend) {
    let log = backend.create(0, 1);
    let opened = open_epoch(log.as_ref(), 1);
    let bytes_max = log.status().batch_bytes_max;
    let too_large = usize::try_from(bytes_max).expect("it fits memory");
    if too_large > crate::frame::PAYLOAD_BYTES_MAX {
        return;
    }
    let refused = log.append(&mut batch(&opened.tail, 0, &[vec![0; too_large]]));
    assert!(matches!(refused, Err(LogError::BatchTooLarge { .. })));
    let just_fits = too_large - crate::batch::BATCH_HEADER_BYTES - crate::frame::FRAME_HEADER_BYTES;
    log.append(&mut batch(&opened.tail, 0, &[vec![0; just_fits]])).expect("it fits");
}

fn a_reopened_log_goes_on(backend: &dyn LogBackend) {
    let mut log = backend.create(0, 1);
    let mut expected = Vec::new();
    for epoch in 1..6 {
        let opened = open_epoch(log.as_ref(), epoch);
        let (more, tail) = fill(log.as_ref(), opened.tail, 7, 200);
        expected.extend(more);
        log = backend.reopen(log);
        assert_eq!(read_data(log.as_ref(), &ReadFrom::lsn(1)), expected);
        assert_eq!((log.status().durable_lsn, log.status().epoch), (tail.last_lsn(), epoch));
        assert_eq!(log.status().time_ms, 5006);
    }
}

fn every_lsn_can_be_read_from(backend: &dyn LogBackend) {
    let log = backend.create(0, 1);
    let opened = open_epoch(log.as_ref(), 1);
    let (expected, tail) = fill(log.as_ref(), opened.tail, 30, 500);
    for (index, first) in expected.iter().enumerate() {
        let wanted = expected.get(index..).expect("the index is in it");
        assert_eq!(read_data(log.as_ref(), &ReadFrom::lsn(first.lsn)), wanted);
        let near = Some(first.position);
        assert_eq!(read_data(log.as_ref(), &ReadFrom { lsn: first.lsn, near }), wanted);
        // A hint at an earlier batch is as good, and a wrong one does no harm.
        let near = expected.first().map(|earliest| earliest.position);
        assert_eq!(read_data(log.as_ref(), &ReadFrom { lsn: first.lsn, near }), wanted);
        let near = expected.last().map(|latest| latest.position);
        assert_eq!(read_data(log.as_ref(), &ReadFrom { lsn: first.lsn, near }), wanted);
    }
    assert!(read_data(log.as_ref(), &ReadFrom::lsn(tail.next_lsn)).is_empty());
    let error = log.read(&ReadFrom::lsn(tail.next_lsn + 1)).expect_err("behind the end");
    assert!(matches!(error, LogError::BehindEnd { .. }));
}

fn a_reader_follows_the_tail(backend: &dyn LogBackend) {
    let log = backend.create(0, 1);
    let mut reader = log.read(&ReadFrom::lsn(1)).expect("the first lsn is the next one");
    assert_eq!(reader.next_entry().expect("the log is whole"), None);
    let opened = open_epoch(log.as_ref(), 1);
    let mut tail = opened.tail;
    let mut next_lsn = 1;
    for _ in 0..30 {
        tail = fill(log.as_ref(), tail, 3, 700).1;
        while let Some(entry) = reader.next_entry().expect("the log is whole") {
            assert_eq!(entry.lsn, next_lsn);
            next_lsn += 1;
        }
        assert_eq!(next_lsn, tail.next_lsn);
    }
}

fn a_trimmed_log_keeps_what_is_needed(backend: &dyn LogBackend) {
    let mut log = backend.create(0, 1);
    let mut epoch = 0;
    let mut expected: Vec<Expected> = Vec::new();
    for _ in 0..4 {
        epoch += 1;
        let opened = open_epoch(log.as_ref(), epoch);
        expected.extend(fill(log.as_ref(), opened.tail, 40, 900).0);
        let through_lsn = log.status().durable_lsn - 30;
        log.trim(through_lsn).expect("trimming works");
        let first_lsn = log.status().first_lsn;
        assert!(first_lsn > 1, "something was given back");
        assert!(first_lsn <= through_lsn + 1, "what is needed is kept");
        expected.retain(|entry| entry.lsn >= first_lsn);
        assert_eq!(read_data(log.as_ref(), &ReadFrom::lsn(first_lsn)), expected);
        let error = log.read(&ReadFrom::lsn(first_lsn - 1)).expect_err("it was trimmed");
        assert!(matches!(error, LogError::Trimmed { .. }));
        log.idle().expect("nothing is wrong");
        log = backend.reopen(log);
        assert_eq!(log.status().first_lsn, first_lsn);
        assert_eq!(read_data(log.as_ref(), &ReadFrom::lsn(first_lsn)), expected);
    }
    log.trim(u64::MAX).expect("trimming behind the end is trimming to the end");
    let opened = open_epoch(log.as_ref(), epoch + 1);
    fill(log.as_ref(), opened.tail, 3, 10);
}

fn an_older_epoch_is_fenced(backend: &dyn LogBackend) {
    let first = backend.create(0, 1);
    let Some(second) = backend.second_handle() else { return };
    let opened = open_epoch(first.as_ref(), 1);
    let (_, tail) = fill(first.as_ref(), opened.tail, 2, 10);
    open_epoch(second.as_ref(), 2);
    let error = first.append(&mut batch(&tail, 0, &[vec![1]])).expect_err("it was deposed");
    assert!(matches!(error, LogError::Fenced { epoch: 1, newer: 2 }));
    assert_eq!(second.status().durable_lsn, tail.next_lsn);
}

/// Runs the whole suite for leases; `reopen` closes the one it is given and opens it again.
pub fn check_lease<L: Lease>(lease: L, reopen: impl FnOnce(L) -> L) {
    let request = |holder: &'static str, now_ms: u64| LeaseRequest {
        holder,
        epoch_above: 0,
        now_ms,
        ttl_ms: 100,
    };
    let first = lease.acquire(&request("one", 1000)).expect("it is free");
    assert_eq!(first.epoch, 1);
    let refused = lease.acquire(&request("two", 1099)).expect_err("it is held");
    assert!(matches!(refused, LeaseError::Held { remaining_ms: 1, .. }));
    lease.renew(&first, 1050, 100).expect("nobody else has it");
    assert!(lease.acquire(&request("two", 1149)).is_err());

    let again = lease.acquire(&request("one", 1149)).expect("its own");
    assert_eq!(again.epoch, 2, "every grant has a higher epoch");
    assert!(matches!(lease.renew(&first, 1150, 100), Err(LeaseError::Lost { newer: 2, .. })));

    let second = lease.acquire(&request("two", 1300)).expect("it ended");
    assert_eq!(second.epoch, 3);
    assert!(matches!(lease.renew(&again, 1301, 100), Err(LeaseError::Lost { newer: 3, .. })));

    let lease = reopen(lease);
    let above = LeaseRequest { epoch_above: 40, ..request("two", 2000) };
    assert_eq!(lease.acquire(&above).expect("it ended").epoch, 41);
    assert_eq!(lease.acquire(&request("two", 2001)).expect("its own").epoch, 42);
}

/// Runs the whole suite for snapshot stores.
pub fn check_snapshots<S: Snapshots>(store: S, reopen: impl FnOnce(S) -> S) {
    let read = |store: &S, name: &str| {
        let mut bytes = Vec::new();
        store.get(name).expect("it exists").read_to_end(&mut bytes).expect("it is whole");
        bytes
    };
    let large: Vec<u8> = (0..700_000_u32).flat_map(u32::to_le_bytes).collect();
    assert!(matches!(store.get("none"), Err(SnapshotError::NotFound(_))));
    assert_eq!(store.put("large", &mut large.as_slice()).expect("there is room"), 2_800_000);
    store.put("empty", &mut [].as_slice()).expect("there is room");
    store.put("small", &mut b"before".as_slice()).expect("there is room");
    store.put("small", &mut b"after".as_slice()).expect("there is room");
    assert_eq!(read(&store, "small"), b"after");

    // A source that fails half-way leaves what was there.
    let mut failing = b"half".as_slice().chain(FailingReader);
    assert!(matches!(store.put("small", &mut failing), Err(SnapshotError::Content(_))));
    for name in ["", ".hidden", "a/b", "..", "a b"] {
        let refused = store.put(name, &mut [].as_slice());
        assert!(matches!(refused, Err(SnapshotError::InvalidName(_))), "{name:?}");
    }

    let store = reopen(store);
    assert_eq!(read(&store, "small"), b"after");
    assert_eq!(read(&store, "empty"), b"");
    assert_eq!(read(&store, "large"), large);
    let names = |store: &S| -> Vec<(String, u64)> {
        let list = store.list().expect("it can be listed");
        list.into_iter().map(|info| (info.name, info.bytes)).collect()
    };
    let all = [("empty".to_owned(), 0), ("large".to_owned(), 2_800_000), ("small".to_owned(), 5)];
    assert_eq!(names(&store), all);
    store.delete("large").expect("it exists");
    store.delete("large").expect("deleting twice is no error");
    assert_eq!(names(&store).len(), 2);
}

#[derive(Debug)]
struct FailingReader;

impl Read for FailingReader {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the source failed"))
    }
}
