//! Every backend of this crate runs the shared suites.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use windlass_log::conformance::{LogBackend, check_lease, check_log, check_snapshots};
use windlass_log::fs::OsFileSystem;
use windlass_log::{
    FileLease, FileLog, FileLogOptions, FileSnapshots, Housekeeping, LifeId, Log, MemoryLease,
    MemoryLog, MemorySnapshots, NewLog,
};

#[derive(Default)]
struct Memory {
    log: Mutex<Option<MemoryLog>>,
}

impl LogBackend for Memory {
    fn create(&self, partition: u16, first_lsn: u64) -> Arc<dyn Log> {
        let log = MemoryLog::create(partition, first_lsn).unwrap();
        let handle = log.handle();
        *self.log.lock().unwrap() = Some(log);
        Arc::new(handle)
    }

    fn reopen(&self, log: Arc<dyn Log>) -> Arc<dyn Log> {
        drop(log);
        self.second_handle().unwrap()
    }

    fn second_handle(&self) -> Option<Arc<dyn Log>> {
        let log = self.log.lock().unwrap();
        Some(Arc::new(log.as_ref().unwrap().handle()))
    }
}

struct Files {
    root: tempfile::TempDir,
    options: FileLogOptions,
}

impl Files {
    fn dir(&self) -> PathBuf {
        self.root.path().join("log")
    }
}

impl LogBackend for Files {
    fn create(&self, partition: u16, first_lsn: u64) -> Arc<dyn Log> {
        let new = NewLog { life: LifeId::random(), partition, first_lsn };
        let fs = Arc::new(OsFileSystem);
        Arc::new(FileLog::create(fs, &self.dir(), &new, self.options).unwrap())
    }

    fn reopen(&self, log: Arc<dyn Log>) -> Arc<dyn Log> {
        drop(log);
        Arc::new(FileLog::open(Arc::new(OsFileSystem), &self.dir(), 0, self.options).unwrap())
    }

    fn second_handle(&self) -> Option<Arc<dyn Log>> {
        None
    }
}

#[test]
fn the_memory_log_conforms() {
    check_log(Memory::default);
}

#[test]
fn the_file_log_conforms() {
    for housekeeping in [Housekeeping::Thread, Housekeeping::InLine] {
        for segment_bytes in [32 * 1024, 96 * 1024] {
            let options =
                FileLogOptions { segment_bytes, housekeeping, ..FileLogOptions::default() };
            check_log(|| Files { root: tempfile::tempdir().unwrap(), options });
        }
    }
}

#[test]
fn leases_conform() {
    check_lease(MemoryLease::default(), |lease| lease);
    let dir = tempfile::tempdir().unwrap();
    let open = || FileLease::open(Arc::new(OsFileSystem), dir.path()).unwrap();
    check_lease(open(), |lease| {
        assert!(FileLease::open(Arc::new(OsFileSystem), dir.path()).is_err(), "one at a time");
        drop(lease);
        open()
    });
}

#[test]
fn snapshot_stores_conform() {
    check_snapshots(MemorySnapshots::default(), |store| store);
    let dir = tempfile::tempdir().unwrap();
    let open = || FileSnapshots::open(Arc::new(OsFileSystem), dir.path()).unwrap();
    check_snapshots(open(), |store| {
        drop(store);
        open()
    });
}
