//! Damage, case by case: what a log must refuse, and what it must survive.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windlass_log::file::{TailReport, inspect, repair, verify};
use windlass_log::fs::OsFileSystem;
use windlass_log::{
    BatchBuilder, EpochRequest, Fault, FileLog, FileLogOptions, Housekeeping, LifeId, Log,
    LogError, NewLog, Proof, ReadFrom,
};

const BLOCK: usize = 4096;
const OPTIONS: FileLogOptions = FileLogOptions {
    segment_bytes: 16 * 1024,
    reserve_segments: 1,
    recycled_segments_max: 2,
    mark_batches: 1000,
    housekeeping: Housekeeping::InLine,
};

/// A directory with a log of several segments of three one-block batches each; lsn 1 is the epoch frame.
struct Fixture {
    root: tempfile::TempDir,
    last_lsn: u64,
}

impl Fixture {
    /// `marked`: closed in good order; otherwise as after kill -9, with no mark since the last segment was begun.
    fn new(batches: u64, marked: bool) -> Self {
        let mut fixture = Self { root: tempfile::tempdir().unwrap(), last_lsn: 0 };
        let new = NewLog { life: LifeId::from_raw(99), partition: 0, first_lsn: 1 };
        let fs = Arc::new(OsFileSystem);
        let log = FileLog::create(fs, &fixture.dir(), &new, OPTIONS).unwrap();
        let mut tail = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 1 }).unwrap().tail;
        for number in 0..batches {
            let mut builder = BatchBuilder::new();
            builder.start(&tail, 2 + number);
            for _ in 0..3 {
                builder.frame(|buffer| buffer.extend_from_slice(&[0x55; 200]));
            }
            let mut batch = builder.finish();
            log.append(&mut batch).unwrap();
            tail = batch.tail_after();
        }
        fixture.last_lsn = tail.last_lsn();
        let marks = fs::read(fixture.dir().join("marks")).unwrap();
        drop(log);
        if !marked {
            fs::write(fixture.dir().join("marks"), marks).unwrap();
        }
        fixture
    }

    fn dir(&self) -> PathBuf {
        self.root.path().join("log")
    }

    fn segment(&self, number: u64) -> PathBuf {
        self.dir().join(format!("segment-{number:010}.log"))
    }

    /// Opens the log and reads all of it; the last lsn, or what is wrong.
    fn read(&self) -> Result<u64, LogError> {
        let log = FileLog::open(Arc::new(OsFileSystem), &self.dir(), 0, OPTIONS)?;
        let mut reader = log.read(&ReadFrom::lsn(log.status().first_lsn))?;
        let mut last_lsn = 0;
        while let Some(entry) = reader.next_entry()? {
            last_lsn = entry.lsn;
        }
        Ok(last_lsn)
    }

    fn overwrite(&self, file: &Path, offset: usize, bytes: &[u8]) {
        let mut content = fs::read(file).unwrap();
        content[offset..offset + bytes.len()].copy_from_slice(bytes);
        fs::write(file, content).unwrap();
    }

    /// The log refuses, for this reason; `verify` agrees, nothing is changed, and `repair` leaves a log that opens.
    fn check_refused(&self, name: &str, expected: impl Fn(&Fault, &Proof) -> bool) {
        let before = self.bytes();
        let damage = match self.read() {
            Err(LogError::Damaged(damage)) => damage,
            other => panic!("{name}: {other:?}"),
        };
        assert!(expected(&damage.fault, &damage.proof), "{name}: {damage:?}");
        let message = damage.to_string();
        assert!(message.contains("windlass log verify"), "{name}: {message}");
        assert!(self.bytes() == before, "{name}: nothing is changed");

        let verified = match verify(&OsFileSystem, &self.dir()) {
            Ok(report) => report.damage.expect(name),
            Err(LogError::Damaged(damage)) => *damage,
            Err(error) => panic!("{name}: {error}"),
        };
        assert_eq!((verified.lsn, &verified.file), (damage.lsn, &damage.file), "{name}");
        self.check_repair(name, damage.lsn);
    }

    fn check_repair(&self, name: &str, lsn: u64) {
        match repair(&OsFileSystem, &self.dir()) {
            Ok(report) if report.damage.is_some() => {
                assert_eq!(report.last_lsn + 1, lsn, "{name}");
                assert_eq!(self.read().unwrap(), report.last_lsn, "{name}");
                assert!(report.side_files.iter().all(|file| file.exists()), "{name}");
            }
            // Only the marks were gone, and were written anew.
            Ok(report) => assert!(report.marks_rebuilt, "{name}"),
            // Nothing in front of the damage can be read: there is nothing to keep.
            Err(LogError::Damaged(_)) => assert_eq!(lsn, 1, "{name}"),
            Err(error) => panic!("{name}: {error}"),
        }
    }

    /// The segments. (Where only an older one is damaged, the log opens, and writes a mark.)
    fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files: Vec<_> = fs::read_dir(self.dir())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    }
}

#[test]
fn a_log_in_order_is_verified_and_inspected() {
    let fixture = Fixture::new(10, true);
    let report = verify(&OsFileSystem, &fixture.dir()).unwrap();
    assert_eq!(report.tail, Some(TailReport::Clean));
    assert_eq!(report.last_lsn(), Some(fixture.last_lsn));
    assert_eq!(report.marked_durable_lsn, fixture.last_lsn);
    assert_eq!(report.segments.iter().map(|segment| segment.frames).sum::<u64>(), 31);
    let mut lsns = Vec::new();
    let damage = inspect(&OsFileSystem, &fixture.dir(), &mut |frame| lsns.push(frame.lsn)).unwrap();
    assert_eq!(damage, None);
    assert_eq!(lsns, (1..=fixture.last_lsn).collect::<Vec<_>>());
    let repaired = repair(&OsFileSystem, &fixture.dir()).unwrap();
    assert_eq!((repaired.damage, repaired.lost_lsns), (None, None));
}

#[test]
fn a_second_process_is_refused() {
    let fixture = Fixture::new(2, true);
    let log = FileLog::open(Arc::new(OsFileSystem), &fixture.dir(), 0, OPTIONS).unwrap();
    assert!(matches!(fixture.read(), Err(LogError::Locked { .. })));
    assert!(matches!(verify(&OsFileSystem, &fixture.dir()), Err(LogError::Locked { .. })));
    drop(log);
    assert_eq!(fixture.read().unwrap(), fixture.last_lsn);
}

#[test]
fn a_log_is_never_created_over_another() {
    let fixture = Fixture::new(2, true);
    let new = NewLog { life: LifeId::from_raw(1), partition: 0, first_lsn: 1 };
    let created = FileLog::create(Arc::new(OsFileSystem), &fixture.dir(), &new, OPTIONS);
    assert!(matches!(created, Err(LogError::AlreadyExists { .. })));
    fs::remove_file(fixture.dir().join("marks")).unwrap();
    let created = FileLog::create(Arc::new(OsFileSystem), &fixture.dir(), &new, OPTIONS);
    assert!(matches!(created, Err(LogError::AlreadyExists { .. })), "its marks are lost");
    let elsewhere = fixture.root.path().join("elsewhere");
    let opened = FileLog::open(Arc::new(OsFileSystem), &elsewhere, 0, OPTIONS);
    assert!(matches!(opened, Err(LogError::NotFound { .. })));
}

#[test]
fn another_partitions_log_is_refused() {
    let fixture = Fixture::new(2, true);
    let opened = FileLog::open(Arc::new(OsFileSystem), &fixture.dir(), 1, OPTIONS);
    assert!(matches!(opened, Err(LogError::WrongLog { expected: 0, found: 1 })));
}

#[test]
fn an_unmarked_torn_batch_is_cut_at_its_first_bad_frame() {
    // Segment 1 holds the epoch frame and two batches; batch 2 is lsn 5 to 7, frames of 232 bytes.
    let cases = [
        ("header", 3 * BLOCK + 30, 4),
        ("first frame", 3 * BLOCK + 64 + 50, 4),
        ("second frame", 3 * BLOCK + 64 + 232 + 50, 5),
        ("third frame", 3 * BLOCK + 64 + 2 * 232 + 50, 6),
        ("padding", 4 * BLOCK - 1, 7),
    ];
    for (name, offset, last_lsn) in cases {
        let fixture = Fixture::new(2, false);
        fixture.overwrite(&fixture.segment(1), offset, &[0xAA]);
        assert_eq!(fixture.read().unwrap(), last_lsn, "{name}");
        // What was dropped stays dropped, and the log goes on.
        assert_eq!(fixture.read().unwrap(), last_lsn, "{name}");
        let log = FileLog::open(Arc::new(OsFileSystem), &fixture.dir(), 0, OPTIONS).unwrap();
        let opened = log.open_epoch(&EpochRequest { epoch: 2, time_ms: 9 }).unwrap();
        assert_eq!(opened.lsn, last_lsn + 1, "{name}");
        drop(log);
        assert_eq!(fixture.read().unwrap(), last_lsn + 1, "{name}");
    }
}

#[test]
fn a_mark_proves_that_the_last_batch_was_durable() {
    let fixture = Fixture::new(2, true);
    fixture.overwrite(&fixture.segment(1), 3 * BLOCK + 64 + 232 + 50, &[0xAA]);
    fixture.check_refused("marked", |fault, proof| {
        matches!(fault, Fault::Frame(_)) && matches!(proof, Proof::Mark { durable_lsn: 7 })
    });
}

#[test]
fn a_later_batch_proves_that_the_one_before_was_durable() {
    let fixture = Fixture::new(2, false);
    fixture.overwrite(&fixture.segment(1), 2 * BLOCK + 64 + 50, &[0xAA]);
    fixture.check_refused("later batch", |_, proof| matches!(proof, Proof::LaterBatch { .. }));
}

#[test]
fn a_single_frame_of_a_later_batch_is_proof_enough() {
    let fixture = Fixture::new(2, false);
    fixture.overwrite(&fixture.segment(1), 2 * BLOCK + 64 + 50, &[0xAA]);
    // The later batch is torn: its first sector, with the header, was never written.
    fixture.overwrite(&fixture.segment(1), 3 * BLOCK, &[0; 512]);
    fixture
        .check_refused("later frame", |_, proof| matches!(proof, Proof::LaterFrame { lsn: 7, .. }));
}

#[test]
fn damage_in_an_older_segment_is_found_by_its_reader() {
    let fixture = Fixture::new(10, true);
    fixture.overwrite(&fixture.segment(2), BLOCK + 64 + 50, &[0xAA]);
    let opened = FileLog::open(Arc::new(OsFileSystem), &fixture.dir(), 0, OPTIONS);
    drop(opened.expect("the last segment is whole"));
    fixture.check_refused("older segment", |fault, _| matches!(fault, Fault::Frame(_)));
}

#[test]
fn truncated_files() {
    for (segment, bytes) in [(1, BLOCK), (1, 2 * BLOCK + 100), (4, 0), (4, BLOCK + 100)] {
        let fixture = Fixture::new(10, true);
        let file = fs::File::options().write(true).open(fixture.segment(segment)).unwrap();
        file.set_len(u64::try_from(bytes).unwrap()).unwrap();
        fixture.check_refused(&format!("segment {segment} cut to {bytes}"), |_, _| true);
    }
    // Nothing was lost: the file is made whole again.
    let fixture = Fixture::new(1, true);
    let file = fs::File::options().write(true).open(fixture.segment(1)).unwrap();
    file.set_len(3 * 4096).unwrap();
    assert_eq!(fixture.read().unwrap(), fixture.last_lsn);
    assert_eq!(fs::metadata(fixture.segment(1)).unwrap().len(), OPTIONS.segment_bytes);
}

#[test]
fn missing_segments() {
    for (segment, marked) in [(1, true), (2, true), (4, true), (2, false), (4, false)] {
        let fixture = Fixture::new(10, marked);
        fs::remove_file(fixture.segment(segment)).unwrap();
        fixture.check_refused(&format!("segment {segment} missing"), |fault, _| {
            *fault == Fault::FileMissing
        });
    }
}

#[test]
fn swapped_segments() {
    for (one, other) in [(1, 2), (2, 3), (3, 4), (1, 4)] {
        let fixture = Fixture::new(10, true);
        let aside = fixture.dir().join("aside");
        fs::rename(fixture.segment(one), &aside).unwrap();
        fs::rename(fixture.segment(other), fixture.segment(one)).unwrap();
        fs::rename(&aside, fixture.segment(other)).unwrap();
        fixture.check_refused(&format!("{one} and {other} swapped"), |_, _| true);
    }
}

#[test]
fn a_segment_of_an_earlier_life_is_not_read() {
    // As after a crash between the rename of a recycled segment and its first batch.
    let fixture = Fixture::new(10, true);
    fs::copy(fixture.segment(2), fixture.segment(5)).unwrap();
    assert_eq!(fixture.read().unwrap(), fixture.last_lsn);
    assert!(!fixture.segment(5).exists());
}

#[test]
fn unreadable_marks() {
    let fixture = Fixture::new(4, true);
    let marks = fixture.dir().join("marks");
    let whole = fs::read(&marks).unwrap();
    for offset in [20, BLOCK + 20] {
        fs::write(&marks, &whole).unwrap();
        fixture.overwrite(&marks, offset, &[0xAA]);
        assert_eq!(fixture.read().unwrap(), fixture.last_lsn, "one mark is enough");
    }
    fs::write(&marks, vec![0; 2 * BLOCK]).unwrap();
    fixture.check_refused("both marks", |fault, _| *fault == Fault::Marks);
    assert_eq!(fixture.read().unwrap(), fixture.last_lsn, "repair writes them anew");
    fs::remove_file(&marks).unwrap();
    fixture.check_refused("no marks", |fault, _| *fault == Fault::Marks);
    assert_eq!(fixture.read().unwrap(), fixture.last_lsn);
}

#[test]
fn a_newer_format_is_told_from_damage() {
    let fixture = Fixture::new(1, false);
    let mut segment = fs::read(fixture.segment(1)).unwrap();
    let header = &mut segment[2 * BLOCK..2 * BLOCK + 64];
    header[8..10].copy_from_slice(&2_u16.to_le_bytes());
    let crc = crc32c::crc32c_append(LifeId::from_raw(99).seed(), &header[4..]);
    header[..4].copy_from_slice(&crc.to_le_bytes());
    fs::write(fixture.segment(1), segment).unwrap();
    assert!(matches!(fixture.read(), Err(LogError::UnsupportedVersion { version: 2, .. })));
}
