//! What an older version wrote stays readable: files of each format, written once and kept for ever.
//!
//! A new format gets a new fixture beside the old ones. `WINDLASS_WRITE_FIXTURES=1` writes those that are
//! missing, and never touches one that is there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windlass_checkpoint::backup::{restore_backup, verify_backup, write_backup};
use windlass_checkpoint::conformance::{Random, apply, changes, contents, stamp, write};
use windlass_checkpoint::{LocalCheckpoint, LocalOptions, MemoryCheckpoint, View};

const LSN: u64 = 6;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn may_write() -> bool {
    std::env::var_os("WINDLASS_WRITE_FIXTURES").is_some()
}

/// The content of every fixture: six checkpoints of a few changes each.
fn fill(store: &dyn windlass_checkpoint::Checkpoint) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut random = Random(1);
    let mut model = BTreeMap::new();
    for lsn in 1..=LSN {
        let changes = changes(&mut random, 30, 12);
        apply(&mut model, &changes);
        let entries: Vec<_> =
            changes.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
        write(store, lsn, &entries).unwrap();
    }
    model
}

#[test]
fn backup_version_1() {
    let store = MemoryCheckpoint::new();
    let model = fill(&store);
    let mut now = Vec::new();
    write_backup(&store, &mut now, |_| {}).unwrap();
    let file = fixture("backup-1.bin");
    if may_write() && !file.exists() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &now).unwrap();
    }
    let then = fs::read(file).unwrap();
    verify_backup(then.as_slice(), |_| {}).unwrap();
    let restored = MemoryCheckpoint::new();
    restore_backup(then.as_slice(), &restored, |_| {}).unwrap();
    assert_eq!(contents(&restored), model);
    assert_eq!(restored.stamp(), Some(stamp(LSN)));
    assert_eq!(now, then, "the same version writes the same bytes");
}

#[test]
fn store_of_lsm_tree_3_1() {
    let directory = fixture("store-lsm-tree-3.1");
    if may_write() && !directory.exists() {
        fill(&LocalCheckpoint::open(&directory, &LocalOptions::default()).unwrap());
    }
    // Opening merges and sweeps: not in the fixture itself.
    let copy = TempDir::new().unwrap();
    copy_all(&directory, copy.path());
    let store = LocalCheckpoint::open(copy.path(), &LocalOptions::default()).unwrap();
    assert_eq!(contents(&store), fill(&MemoryCheckpoint::new()));
    assert_eq!(store.stamp(), Some(stamp(LSN)));
    write(&store, LSN + 1, &[(b"k", None)]).unwrap();
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            fs::copy(path, target).unwrap();
        }
    }
}
