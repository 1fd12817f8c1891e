//! A log in memory, for tests and for `--durability none`: the contract of [`Log`] without a disk.
//!
//! Handles made by [`MemoryLog::handle`] share one store, as two machines share one replicated log, so that fencing can
//! be tested without files.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::accept::Acceptor;
use crate::little_endian::to_u64;
use crate::walk::{BatchWalk, Passed};
use crate::{
    Batch, BatchBuilder, Damage, Entry, EpochOpened, EpochRecord, EpochRequest, Fault, LifeId, Log,
    LogError, LogReader, LogStatus, Position, Proof, ReadFrom, Tail,
};

const BATCH_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One handle on a log in memory.
#[derive(Debug)]
pub struct MemoryLog {
    store: Arc<Mutex<Store>>,
    /// The epoch that this handle opened.
    epoch_open: Mutex<Option<u32>>,
}

#[derive(Debug)]
struct Store {
    tail: Tail,
    time_ms: u64,
    batches: VecDeque<StoredBatch>,
    /// Position of the first batch in `batches`; positions count batches from the log's creation.
    first_position: u64,
}

#[derive(Debug, Clone)]
struct StoredBatch {
    /// What stands in front of the batch.
    before: Tail,
    last_lsn: u64,
    bytes: Arc<[u8]>,
}

impl MemoryLog {
    /// An empty log whose first frame will have `first_lsn`.
    pub fn create(partition: u16, first_lsn: u64) -> Result<Self, LogError> {
        if first_lsn == 0 {
            return Err(LogError::InvalidOption("lsns begin at 1"));
        }
        let store = Store {
            tail: Tail::at_creation(LifeId::random(), partition, first_lsn),
            time_ms: 0,
            batches: VecDeque::new(),
            first_position: 0,
        };
        Ok(Self { store: Arc::new(Mutex::new(store)), epoch_open: Mutex::new(None) })
    }

    /// Another handle on the same log, with no epoch open: what a restart, or a second machine, sees.
    #[must_use]
    pub fn handle(&self) -> Self {
        Self { store: Arc::clone(&self.store), epoch_open: Mutex::new(None) }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("no panic while the store is locked")
    }
}

impl Store {
    fn first_lsn(&self) -> u64 {
        self.batches.front().map_or(self.tail.next_lsn, |batch| batch.before.next_lsn)
    }

    fn push(&mut self, batch: &mut Batch) -> Position {
        let bytes: Arc<[u8]> = batch.seal(self.tail.last_lsn()).into();
        let position = self.first_position + to_u64(self.batches.len());
        self.batches.push_back(StoredBatch {
            before: self.tail,
            last_lsn: batch.last_lsn(),
            bytes,
        });
        self.tail = batch.tail_after();
        self.time_ms = batch.time_ms();
        Position::from_raw(position)
    }

    /// The batch at a position, or the first one when it was trimmed.
    fn batch_from(&self, position: u64) -> Option<(u64, &StoredBatch)> {
        let position = position.max(self.first_position);
        let index = usize::try_from(position - self.first_position).ok()?;
        self.batches.get(index).map(|batch| (position, batch))
    }
}

impl Log for MemoryLog {
    fn open_epoch(&self, request: &EpochRequest) -> Result<EpochOpened, LogError> {
        let mut store = self.store();
        if request.epoch <= store.tail.epoch {
            return Err(LogError::EpochTooLow { asked: request.epoch, last: store.tail.epoch });
        }

        // cannot fail from here
        let predecessor = EpochRecord {
            predecessor_epoch: store.tail.epoch,
            predecessor_last_lsn: store.tail.last_lsn(),
            predecessor_time_ms: store.time_ms,
        };
        let mut builder = BatchBuilder::new();
        builder.start(&Tail { epoch: request.epoch, ..store.tail }, request.time_ms);
        builder.epoch_frame(&predecessor);
        let mut batch = builder.finish();
        let position = store.push(&mut batch);
        *self.epoch_open.lock().expect("no panic while the epoch is locked") = Some(request.epoch);
        Ok(EpochOpened { tail: store.tail, lsn: batch.first_lsn(), position, predecessor })
    }

    fn append(&self, batch: &mut Batch) -> Result<Position, LogError> {
        let mut store = self.store();
        let epoch_open = *self.epoch_open.lock().expect("no panic while the epoch is locked");
        check_append(&store.tail, epoch_open, batch, BATCH_BYTES_MAX)?;
        Ok(store.push(batch))
    }

    fn read(&self, from: &ReadFrom) -> Result<Box<dyn LogReader>, LogError> {
        let store = self.store();
        check_read(from, store.first_lsn(), store.tail.last_lsn())?;
        let index = store.batches.partition_point(|batch| batch.last_lsn < from.lsn);
        let reader = MemoryReader {
            store: Arc::clone(&self.store),
            next_lsn: from.lsn,
            next_position: store.first_position + to_u64(index),
            current: None,
        };
        Ok(Box::new(reader))
    }

    fn trim(&self, through_lsn: u64) -> Result<(), LogError> {
        let mut store = self.store();
        while store.batches.front().is_some_and(|batch| batch.last_lsn <= through_lsn) {
            store.batches.pop_front();
            store.first_position += 1;
        }
        Ok(())
    }

    fn idle(&self) -> Result<(), LogError> {
        Ok(())
    }

    fn status(&self) -> LogStatus {
        let store = self.store();
        LogStatus {
            first_lsn: store.first_lsn(),
            durable_lsn: store.tail.last_lsn(),
            epoch: store.tail.epoch,
            time_ms: store.time_ms,
            log_bytes: store.batches.iter().map(|batch| to_u64(batch.bytes.len())).sum(),
            reserve_bytes: u64::MAX,
            batch_bytes_max: BATCH_BYTES_MAX,
            reserve_low: false,
            poisoned: false,
        }
    }
}

/// The checks that every backend makes before it writes anything.
pub(crate) fn check_append(
    tail: &Tail,
    epoch_open: Option<u32>,
    batch: &Batch,
    batch_bytes_max: u64,
) -> Result<(), LogError> {
    let epoch = epoch_open.ok_or(LogError::NoEpochOpen)?;
    if epoch < tail.epoch {
        return Err(LogError::Fenced { epoch, newer: tail.epoch });
    }
    let before = batch.tail_before();
    if before.life != tail.life || before.partition != tail.partition {
        return Err(LogError::WrongLog { expected: tail.partition, found: before.partition });
    }
    if before != *tail {
        return Err(LogError::NotNext { expected: tail.next_lsn, found: before.next_lsn });
    }
    if batch.count() == 0 {
        return Err(LogError::EmptyBatch);
    }
    let bytes = to_u64(batch.len_bytes());
    if bytes > batch_bytes_max {
        return Err(LogError::BatchTooLarge { bytes, bytes_max: batch_bytes_max });
    }
    Ok(())
}

/// The checks that every backend makes before it reads.
pub(crate) fn check_read(
    from: &ReadFrom,
    first_lsn: u64,
    durable_lsn: u64,
) -> Result<(), LogError> {
    if from.lsn < first_lsn {
        return Err(LogError::Trimmed { lsn: from.lsn, first_lsn });
    }
    if from.lsn > durable_lsn + 1 {
        return Err(LogError::BehindEnd { lsn: from.lsn, durable_lsn });
    }
    Ok(())
}

#[derive(Debug)]
struct MemoryReader {
    store: Arc<Mutex<Store>>,
    next_lsn: u64,
    next_position: u64,
    current: Option<Current>,
}

#[derive(Debug)]
struct Current {
    position: Position,
    bytes: Arc<[u8]>,
    walk: BatchWalk,
    acceptor: Acceptor,
}

impl MemoryReader {
    /// The batch that holds the next lsn, unless it is not written yet.
    fn load_next_batch(&mut self) -> Result<Option<Current>, LogError> {
        let store = self.store.lock().expect("no panic while the store is locked");
        if self.next_lsn < store.first_lsn() {
            return Err(LogError::Trimmed { lsn: self.next_lsn, first_lsn: store.first_lsn() });
        }
        let Some((position, batch)) = store.batch_from(self.next_position) else {
            return Ok(None);
        };
        let acceptor = Acceptor::for_single_writer(&batch.before);
        let walk = BatchWalk::begin(&batch.bytes, batch.before.life, &acceptor)
            .map_err(|fault| damage(self.next_lsn, 0, fault))?;
        self.next_position = position + 1;
        let position = Position::from_raw(position);
        Ok(Some(Current { position, bytes: Arc::clone(&batch.bytes), walk, acceptor }))
    }
}

impl LogReader for MemoryReader {
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, LogError> {
        let passed = loop {
            let Some(current) = &mut self.current else {
                self.current = self.load_next_batch()?;
                if self.current.is_none() {
                    return Ok(None);
                }
                continue;
            };
            match current.walk.step(&current.bytes, &mut current.acceptor) {
                Ok(Some(passed)) if passed.header.lsn < self.next_lsn => {}
                Ok(Some(passed)) => break passed,
                Ok(None) => self.current = None,
                Err(bad) => return Err(damage(self.next_lsn, to_u64(bad.at), bad.fault)),
            }
        };
        self.next_lsn = passed.header.lsn + 1;
        let current = self.current.as_ref().expect("the frame was found in this batch");
        Ok(Some(entry(&passed, &current.walk, current.position, &current.bytes)))
    }
}

/// What a reader hands out for an accepted frame.
pub(crate) fn entry<'a>(
    passed: &Passed,
    walk: &BatchWalk,
    position: Position,
    bytes: &'a [u8],
) -> Entry<'a> {
    Entry {
        lsn: passed.header.lsn,
        epoch: passed.header.epoch,
        partition: passed.header.partition,
        kind: passed.header.kind,
        time_ms: walk.header.time_ms,
        position,
        payload: bytes.get(passed.payload.clone()).expect("the frame was decoded from these bytes"),
    }
}

fn damage(lsn: u64, offset: u64, fault: Fault) -> LogError {
    let proof = Proof::Acknowledged { durable_lsn: lsn };
    Damage { file: "(memory)".into(), offset, lsn, fault, proof }.into()
}
