//! What the keeper does when the file system fails it.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use windlass_log::fs::{File, FileSystem, Lock, OsFileSystem};
use windlass_log::{
    BatchBuilder, EpochRequest, FileLog, FileLogOptions, Housekeeping, LifeId, Log, NewLog, Tail,
};

/// The operating system's, but for one rename.
#[derive(Debug, Default)]
struct Stumbling {
    inner: OsFileSystem,
    fails_next_rename: AtomicBool,
}

impl FileSystem for Stumbling {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir_all(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.inner.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.inner.open(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.fails_next_rename.swap(false, Ordering::Relaxed) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }

    fn available_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.available_bytes(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }
}

fn options() -> FileLogOptions {
    FileLogOptions {
        segment_bytes: 64 << 10,
        reserve_segments: 1,
        recycled_segments_max: 4,
        mark_batches: 1_000,
        housekeeping: Housekeeping::InLine,
    }
}

/// Appends until there are so many segments more.
fn fill(log: &FileLog, mut tail: Tail, segments: u64) -> Tail {
    for _ in 0..segments {
        let mut builder = BatchBuilder::new();
        builder.start(&tail, 0);
        builder.frame(|buffer| buffer.extend_from_slice(&[7; 50 << 10]));
        let mut batch = builder.finish();
        log.append(&mut batch).unwrap();
        tail = batch.tail_after();
    }
    tail
}

fn reserves(dir: &Path) -> usize {
    let names = OsFileSystem.list(dir).unwrap();
    names.iter().filter(|name| name.contains("reserve")).count()
}

/// One segment that could not be given back took all behind it along, until the next start.
#[test]
fn what_is_behind_a_segment_that_cannot_be_given_back_is() {
    let root = tempfile::tempdir().unwrap();
    let fs = Arc::new(Stumbling::default());
    let new = NewLog { life: LifeId::random(), partition: 0, first_lsn: 1 };
    let log = FileLog::create(fs.clone(), root.path(), &new, options()).unwrap();
    let opened = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 0 }).unwrap();
    fill(&log, opened.tail, 5);
    assert_eq!(reserves(root.path()), 1, "{:?}", fs.list(root.path()));
    fs.fails_next_rename.store(true, Ordering::Relaxed);
    log.trim(log.status().durable_lsn).unwrap();
    // Of four, one was in the way.
    assert_eq!(reserves(root.path()), 4, "{:?}", fs.list(root.path()));
    drop(log);

    let few = FileLogOptions { recycled_segments_max: 2, ..options() };
    let log = FileLog::open(fs, root.path(), 0, few).unwrap();
    assert_eq!(reserves(root.path()), 2, "an opening keeps no more than it may");
    drop(log);
}

/// A descriptor that was wanted once cost a segment of disk until the next start.
#[test]
fn the_keeper_tries_again_to_give_back_a_segment() {
    let root = tempfile::tempdir().unwrap();
    let fs = Arc::new(Stumbling::default());
    let new = NewLog { life: LifeId::random(), partition: 0, first_lsn: 1 };
    let thread = FileLogOptions { housekeeping: Housekeeping::Thread, ..options() };
    let log = FileLog::create(fs.clone(), root.path(), &new, thread).unwrap();
    let opened = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 0 }).unwrap();
    fill(&log, opened.tail, 5);
    let segments = || {
        let names = fs.list(root.path()).unwrap();
        names.iter().filter(|name| name.ends_with(".log")).count()
    };
    while reserves(root.path()) == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let before = segments();
    fs.fails_next_rename.store(true, Ordering::Relaxed);
    log.trim(log.status().durable_lsn).unwrap();
    let since = Instant::now();
    while segments() > 1 {
        assert!(since.elapsed() < Duration::from_secs(10), "{:?}", fs.list(root.path()));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(before > 4 && !fs.fails_next_rename.load(Ordering::Relaxed));
}
