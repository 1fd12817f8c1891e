//! Append, read and trim at the same time: readers see dense lsns, or are told that they were trimmed. And the
//! keeper beside them, who is in nobody's way.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windlass_log::fs::OsFileSystem;
use windlass_log::{
    BatchBuilder, EpochRequest, FileLog, FileLogOptions, LifeId, Log, LogError, LogStatus, NewLog,
    ReadFrom,
};

const BATCHES: u64 = 600;

#[test]
fn readers_and_trims_do_not_disturb_appends() {
    let root = tempfile::tempdir().unwrap();
    let options =
        FileLogOptions { segment_bytes: 64 * 1024, mark_batches: 7, ..FileLogOptions::default() };
    let new = NewLog { life: LifeId::random(), partition: 0, first_lsn: 1 };
    let log = FileLog::create(Arc::new(OsFileSystem), root.path(), &new, options).unwrap();
    let opened = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 0 }).unwrap();
    let last_lsn = 1 + 4 * BATCHES;
    thread::scope(|scope| {
        scope.spawn(|| append(&log, opened.tail));
        scope.spawn(|| follow(&log, last_lsn, false));
        scope.spawn(|| follow(&log, last_lsn, true));
    });
    assert_eq!(log.status().durable_lsn, last_lsn);
    assert!(log.status().first_lsn > 1, "segments were given back");
    drop(log);
    let log = FileLog::open(Arc::new(OsFileSystem), root.path(), 0, options).unwrap();
    assert_eq!(log.status().durable_lsn, last_lsn);
}

fn append(log: &FileLog, tail: windlass_log::Tail) {
    let mut tail = tail;
    let mut builder = BatchBuilder::new();
    for _ in 0..BATCHES {
        builder.start(&tail, 0);
        for _ in 0..4 {
            let lsn = builder.next_lsn();
            builder.frame(|buffer| buffer.extend_from_slice(&lsn.to_le_bytes().repeat(100)));
        }
        let mut batch = builder.finish();
        log.append(&mut batch).unwrap();
        tail = batch.tail_after();
        builder = BatchBuilder::recycle(batch);
    }
}

/// Reads to the end; one of the readers trims behind itself, so that the other may fall behind the log's begin.
fn follow(log: &FileLog, last_lsn: u64, trims: bool) {
    let mut next_lsn = 1;
    while next_lsn <= last_lsn {
        let read = read_some(log, &mut next_lsn);
        match read {
            Ok(()) => {}
            Err(LogError::Trimmed { first_lsn, .. }) => next_lsn = first_lsn,
            Err(error) => panic!("lsn {next_lsn}: {error}"),
        }
        if trims {
            log.trim(next_lsn.saturating_sub(50)).unwrap();
        }
        thread::yield_now();
    }
}

fn read_some(log: &FileLog, next_lsn: &mut u64) -> Result<(), LogError> {
    let mut reader = log.read(&ReadFrom::lsn(*next_lsn))?;
    while let Some(entry) = reader.next_entry()? {
        assert_eq!(entry.lsn, *next_lsn);
        if entry.lsn > 1 {
            assert_eq!(entry.payload, entry.lsn.to_le_bytes().repeat(100));
        }
        *next_lsn += 1;
    }
    Ok(())
}

#[test]
fn a_reserve_is_prepared_in_pieces_and_marks_are_written_between_them() {
    const SEGMENT_BYTES: u64 = 32 << 20;
    const PATIENCE: Duration = Duration::from_secs(30);
    let root = tempfile::tempdir().unwrap();
    let options = FileLogOptions {
        segment_bytes: SEGMENT_BYTES,
        reserve_segments: 2,
        mark_batches: 2,
        ..FileLogOptions::default()
    };
    let new = NewLog { life: LifeId::random(), partition: 0, first_lsn: 1 };
    let log = FileLog::create(Arc::new(OsFileSystem), root.path(), &new, options).unwrap();
    let tail = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 0 }).unwrap().tail;
    let reserves = || {
        let LogStatus { reserve_bytes, .. } = log.status();
        // What is left of the active segment counts, and is no whole one.
        reserve_bytes / SEGMENT_BYTES
    };
    let wait_until = |what: &str, is_so: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !is_so() {
            assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
            thread::sleep(Duration::from_millis(1));
        }
    };
    wait_until("there is a reserve", &|| reserves() == 1);
    let started = Instant::now();

    let marks = root.path().join("marks");
    let before = fs::read(&marks).unwrap();
    let mut builder = BatchBuilder::new();
    builder.start(&tail, 0);
    builder.frame(|buffer| buffer.push(1));
    log.append(&mut builder.finish()).unwrap();
    wait_until("the second batch is marked", &|| fs::read(&marks).unwrap() != before);
    assert_eq!(reserves(), 1, "it was not written behind a whole segment");
    wait_until("there are two", &|| reserves() == 2);
    // 128 pieces of 256 KiB, each with a rest of 2 ms.
    assert!(started.elapsed() > Duration::from_millis(128), "{:?}", started.elapsed());
}
