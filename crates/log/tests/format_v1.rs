//! A log written by format version 1 is read for ever, and what is written today is byte for byte the same.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_log::fs::OsFileSystem;
use windlass_log::{
    BatchBuilder, EpochRequest, FileLog, FileLogOptions, FrameKind, Housekeeping, LifeId, Log,
    NewLog, ReadFrom,
};

const OPTIONS: FileLogOptions = FileLogOptions {
    segment_bytes: 12 * 1024,
    reserve_segments: 1,
    recycled_segments_max: 1,
    mark_batches: 1000,
    housekeeping: Housekeeping::InLine,
};
const FILES: [&str; 3] = ["marks", "segment-0000000001.log", "segment-0000000002.log"];

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/log-v1")
}

/// An epoch, two batches of 3 and 2 frames, then another epoch.
fn write_log(dir: &Path) {
    let new =
        NewLog { life: LifeId::from_raw(0x1122_3344_5566_7788), partition: 3, first_lsn: 100 };
    let log = FileLog::create(Arc::new(OsFileSystem), dir, &new, OPTIONS).unwrap();
    let mut tail = log.open_epoch(&EpochRequest { epoch: 5, time_ms: 1000 }).unwrap().tail;
    for (time_ms, payloads) in [(1001, ["a", "", "ccc"].as_slice()), (1002, ["dd", "e"].as_slice())]
    {
        let mut builder = BatchBuilder::new();
        builder.start(&tail, time_ms);
        for payload in payloads {
            builder.frame(|buffer| buffer.extend_from_slice(payload.as_bytes()));
        }
        let mut batch = builder.finish();
        log.append(&mut batch).unwrap();
        tail = batch.tail_after();
    }
    log.open_epoch(&EpochRequest { epoch: 6, time_ms: 1003 }).unwrap();
}

/// `WINDLASS_WRITE_FIXTURE=1` writes the fixture of a new version; those of released versions never change.
#[test]
fn what_is_written_today_is_the_fixture() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("log");
    write_log(&dir);
    if std::env::var_os("WINDLASS_WRITE_FIXTURE").is_some() {
        fs::create_dir_all(fixture()).unwrap();
        for name in FILES {
            fs::copy(dir.join(name), fixture().join(name)).unwrap();
        }
    }
    for name in FILES {
        let (today, kept) = (fs::read(dir.join(name)), fs::read(fixture().join(name)));
        assert!(today.unwrap() == kept.unwrap(), "{name} differs");
    }
}

#[test]
fn the_fixture_is_read() {
    let root = tempfile::tempdir().unwrap();
    for name in FILES {
        fs::copy(fixture().join(name), root.path().join(name)).unwrap();
    }
    let log = FileLog::open(Arc::new(OsFileSystem), root.path(), 3, OPTIONS).unwrap();
    assert_eq!((log.status().first_lsn, log.status().durable_lsn), (100, 106));
    assert_eq!((log.status().epoch, log.status().time_ms), (6, 1003));
    let mut reader = log.read(&ReadFrom::lsn(100)).unwrap();
    let mut data = Vec::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        assert_eq!(entry.partition, 3);
        if entry.kind == FrameKind::Data {
            let payload = String::from_utf8(entry.payload.to_vec()).unwrap();
            data.push((entry.lsn, entry.epoch, entry.time_ms, payload));
        }
    }
    let expected = [
        (101, 5, 1001, "a"),
        (102, 5, 1001, ""),
        (103, 5, 1001, "ccc"),
        (104, 5, 1002, "dd"),
        (105, 5, 1002, "e"),
    ];
    let expected =
        expected.map(|(lsn, epoch, time, payload)| (lsn, epoch, time, payload.to_owned()));
    assert_eq!(data, expected);
}
