//! What only the store on disk has: its lock, its debris, its pace, its backups.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use windlass_checkpoint::backup::{restore_backup, verify_backup, write_backup};
use windlass_checkpoint::conformance::{Random, contents, stamp, write};
use windlass_checkpoint::{
    Checkpoint, Entry, Error, KeyRange, LocalCheckpoint, LocalOptions, MemoryCheckpoint, View,
};

fn fill(store: &dyn Checkpoint, lsn: u64, from: u32, to: u32) {
    let value = [7; 100];
    let mut entries =
        (from..to).map(|n| Ok(Entry::put(format!("k{n:08}").into_bytes(), value.as_slice())));
    store.write(&mut entries, &stamp(lsn)).unwrap();
}

#[test]
fn a_second_opening_is_refused_while_anything_is_open() {
    let dir = TempDir::new().unwrap();
    let options = LocalOptions::default();
    let store = LocalCheckpoint::open(dir.path(), &options).unwrap();
    let refused = LocalCheckpoint::open(dir.path(), &options).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    let snapshot = store.snapshot().unwrap();
    drop(store);
    let refused = LocalCheckpoint::open(dir.path(), &options).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
    drop(snapshot);
    LocalCheckpoint::open(dir.path(), &options).unwrap();
}

#[test]
fn a_failed_write_leaves_no_files() {
    let dir = TempDir::new().unwrap();
    let store = LocalCheckpoint::open(dir.path(), &LocalOptions::default()).unwrap();
    fill(&store, 1, 0, 1_000);
    store.settle();
    let tables = || fs::read_dir(dir.path().join("tree/tables")).unwrap().count();
    let before = tables();
    let mut broken_off = (0..50_000_u32)
        .map(|n| Ok(Entry::put(n.to_string().into_bytes(), n.to_be_bytes().to_vec())));
    // Decimal numbers are not in the order of their bytes: this fails at "10".
    store.write(&mut broken_off, &stamp(2)).unwrap_err();
    assert_eq!(tables(), before);
    fill(&store, 2, 0, 10);
    assert_eq!(contents(&store).len(), 1_000);
}

#[test]
fn writing_keeps_its_pace() {
    let dir = TempDir::new().unwrap();
    let options =
        LocalOptions { write_bytes_per_second: Some(10_000_000), ..LocalOptions::default() };
    let store = LocalCheckpoint::open(dir.path(), &options).unwrap();
    let start = Instant::now();
    fill(&store, 1, 0, 30_000);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(250), "3.3 MB at 10 MB/s took {took:?}");
}

#[test]
fn closing_does_not_wait_for_a_slow_merge() {
    let dir = TempDir::new().unwrap();
    let options = LocalOptions { merge_bytes_per_second: Some(1_000), ..LocalOptions::default() };
    let store = LocalCheckpoint::open(dir.path(), &options).unwrap();
    for lsn in 1..8 {
        fill(&store, lsn, 0, 10_000);
    }
    let start = Instant::now();
    drop(store);
    assert!(start.elapsed() < Duration::from_secs(2), "closing took {:?}", start.elapsed());
    let store = LocalCheckpoint::open(dir.path(), &LocalOptions::default()).unwrap();
    store.settle();
    assert_eq!(contents(&store).len(), 10_000);
}

#[test]
fn three_hundred_checkpoints_do_not_pile_up() {
    let dir = TempDir::new().unwrap();
    let options = LocalOptions { table_bytes: 256 << 10, ..LocalOptions::default() };
    let store = LocalCheckpoint::open(dir.path(), &options).unwrap();
    let mut random = Random(5);
    let value = [1; 100];
    // Each checkpoint adds 400 jobs and removes the 400 oldest of 20,000; some change.
    fill(&store, 1, 0, 20_000);
    for lsn in 2..=300_u32 {
        let first = (lsn - 2) * 400;
        let mut entries = std::collections::BTreeMap::new();
        for n in first..first + 400 {
            entries.insert(n, None);
            entries.insert(n + 20_000, Some(value));
        }
        for _ in 0..200 {
            let n = first + 400 + u32::try_from(random.below(19_000)).unwrap();
            entries.insert(n, Some(value));
        }
        let mut entries = entries.iter().map(|(n, value)| {
            let key = format!("k{n:08}").into_bytes();
            Ok(match value {
                Some(value) => Entry::put(key, value.as_slice()),
                None => Entry::delete(key),
            })
        });
        store.write(&mut entries, &stamp(lsn.into())).unwrap();
    }
    store.settle();
    let mut live = 0;
    store
        .scan_with(&KeyRange::all(), &mut |_, _| {
            live += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    let status = store.status();
    assert_eq!(live, 20_000);
    assert!(status.level_0_runs < 4, "{status:?}");
    assert!(status.entries_stored < 70_000, "{status:?}");
    assert!(status.disk_bytes < 10_000_000, "{status:?}");
    assert_eq!(status.merge_error, None);
}

#[test]
fn a_backup_moves_between_backends_while_writes_go_on() {
    let dir = TempDir::new().unwrap();
    let store = LocalCheckpoint::open(dir.path(), &LocalOptions::default()).unwrap();
    fill(&store, 1, 0, 20_000);
    let expected = contents(&store);
    let snapshot = store.snapshot().unwrap();
    let mut bytes = Vec::new();
    let mut lsn = 1;
    // Each block of the backup is followed by a write that removes what the next ones need.
    let summary = write_backup(snapshot.as_ref(), &mut bytes, |_| {
        lsn += 1;
        let keys: Vec<_> = (0..20_000).map(|n| format!("k{n:08}").into_bytes()).collect();
        let deletes: Vec<(&[u8], Option<&[u8]>)> =
            keys.iter().map(|key| (key.as_slice(), None)).collect();
        write(&store, lsn, &deletes).unwrap();
    })
    .unwrap();
    assert!(lsn > 3 && contents(&store).is_empty());
    assert_eq!(summary.stamp, stamp(1));
    assert_eq!(verify_backup(bytes.as_slice(), |_| {}).unwrap(), summary);

    let memory = MemoryCheckpoint::new();
    restore_backup(bytes.as_slice(), &memory, |_| {}).unwrap();
    assert_eq!(contents(&memory), expected);

    let other = TempDir::new().unwrap();
    let options = LocalOptions::default();
    let restored = LocalCheckpoint::open(other.path(), &options).unwrap();
    let cut = &bytes[..bytes.len() - 1];
    assert!(restore_backup(cut, &restored, |_| {}).unwrap_err().is_damage());
    assert_eq!(restored.stamp(), None);
    restore_backup(bytes.as_slice(), &restored, |_| {}).unwrap();
    drop(restored);
    let restored = LocalCheckpoint::open(other.path(), &options).unwrap();
    assert_eq!(restored.stamp(), Some(stamp(1)));
    assert_eq!(contents(&restored), expected);
}
