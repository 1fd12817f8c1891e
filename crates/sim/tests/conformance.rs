//! The log's conformance suites on the simulated disk.

use std::path::Path;
use std::sync::Arc;

use windlass_log::conformance::{LogBackend, check_lease, check_log, check_snapshots};
use windlass_log::{
    FileLease, FileLog, FileLogOptions, FileSnapshots, Housekeeping, LifeId, Log, NewLog,
};
use windlass_sim::SimDisk;

const OPTIONS: FileLogOptions = FileLogOptions {
    segment_bytes: 32 * 1024,
    reserve_segments: 2,
    recycled_segments_max: 8,
    mark_batches: 10,
    housekeeping: Housekeeping::InLine,
};

struct OnSimDisk(SimDisk);

impl LogBackend for OnSimDisk {
    fn create(&self, partition: u16, first_lsn: u64) -> Arc<dyn Log> {
        let new = NewLog { life: LifeId::from_raw(1), partition, first_lsn };
        let fs = Arc::new(self.0.clone());
        Arc::new(FileLog::create(fs, Path::new("/log"), &new, OPTIONS).expect("it is empty"))
    }

    fn reopen(&self, log: Arc<dyn Log>) -> Arc<dyn Log> {
        drop(log);
        let fs = Arc::new(self.0.clone());
        Arc::new(FileLog::open(fs, Path::new("/log"), 0, OPTIONS).expect("it is whole"))
    }

    fn second_handle(&self) -> Option<Arc<dyn Log>> {
        None
    }
}

#[test]
fn the_file_log_conforms_on_the_simulated_disk() {
    check_log(|| OnSimDisk(SimDisk::new(1)));
}

#[test]
fn lease_and_snapshots_conform_on_the_simulated_disk() {
    let disk = SimDisk::new(1);
    let lease =
        || FileLease::open(Arc::new(disk.clone()), Path::new("/lease")).expect("it is free");
    check_lease(lease(), |open| {
        drop(open);
        lease()
    });
    let snapshots = || {
        FileSnapshots::open(Arc::new(disk.clone()), Path::new("/snapshots")).expect("a directory")
    };
    check_snapshots(snapshots(), |_| snapshots());
}
