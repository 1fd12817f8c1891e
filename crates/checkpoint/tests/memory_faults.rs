//! What the simulator relies on: faults of the memory backend look like those of a disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windlass_checkpoint::conformance::{contents, stamp, write};
use windlass_checkpoint::{Checkpoint, Error, Fault, KeyRange, MemoryCheckpoint, MemoryDisk, View};

fn disk_with_one_checkpoint() -> (MemoryDisk, MemoryCheckpoint) {
    let disk = MemoryDisk::new();
    let store = MemoryCheckpoint::open(&disk);
    write(&store, 1, &[(b"a", Some(b"1")), (b"b", Some(b"1"))]).unwrap();
    (disk, store)
}

#[test]
fn a_failed_write_leaves_nothing_and_the_next_one_works() {
    let faults = [
        Fault::Refused,
        Fault::Torn { after_entries: 0 },
        Fault::Torn { after_entries: 1 },
        Fault::Torn { after_entries: 9 },
        Fault::OutOfSpace { after_entries: 1 },
    ];
    for fault in faults {
        let (disk, store) = disk_with_one_checkpoint();
        let before = disk.contents();
        disk.fail_next_write(fault);
        let error = write(&store, 2, &[(b"a", None), (b"b", Some(b"2"))]).unwrap_err();
        assert_eq!(error.is_out_of_space(), matches!(fault, Fault::OutOfSpace { .. }), "{error}");
        assert_eq!((disk.contents(), store.stamp()), (before, Some(stamp(1))), "{fault:?}");
        assert!(!disk.fault_pending());
        write(&store, 2, &[(b"a", None)]).unwrap();
        assert_eq!(contents(&MemoryCheckpoint::open(&disk)).len(), 1);
        assert_eq!(disk.writes(), 3);
    }
}

#[test]
fn a_write_of_unknown_outcome_shows_after_reopening() {
    let (disk, store) = disk_with_one_checkpoint();
    disk.fail_next_write(Fault::DurableButFailed);
    write(&store, 2, &[(b"a", None)]).unwrap_err();
    assert_eq!(store.stamp(), Some(stamp(1)));
    assert_eq!(contents(&store).len(), 2);
    assert!(matches!(write(&store, 3, &[]), Err(Error::Poisoned)));
    let store = MemoryCheckpoint::open(&disk);
    assert_eq!(store.stamp(), Some(stamp(2)));
    assert_eq!(contents(&store).len(), 1);
    write(&store, 3, &[]).unwrap();
}

#[test]
fn a_crash_kills_every_open_store() {
    let (disk, store) = disk_with_one_checkpoint();
    disk.crash();
    assert!(matches!(store.get(b"a"), Err(Error::Stale)));
    assert!(matches!(write(&store, 2, &[]), Err(Error::Stale)));
    assert!(matches!(store.scan(&KeyRange::all()).next(), Some(Err(Error::Stale))));
    assert!(matches!(store.snapshot(), Err(Error::Stale)));
    let again = MemoryCheckpoint::open(&disk);
    assert_eq!(contents(&again).len(), 2);
    assert_eq!(disk.stamp(), Some(stamp(1)));
}

#[test]
fn damage_is_an_error_until_the_key_is_written_again() {
    let (disk, store) = disk_with_one_checkpoint();
    disk.damage(b"b");
    assert!(store.get(b"b").unwrap_err().is_damage());
    assert!(store.scan(&KeyRange::all()).last().unwrap().unwrap_err().is_damage());
    assert!(store.get(b"a").unwrap().is_some());
    write(&store, 2, &[(b"b", Some(b"2"))]).unwrap();
    assert!(store.get(b"b").unwrap().is_some());
}
