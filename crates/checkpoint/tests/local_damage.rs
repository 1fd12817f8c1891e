//! A flipped byte in any file of the store is an error, or changes nothing; it is never a wrong answer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windlass_checkpoint::conformance::{Random, apply, changes, stamp};
use windlass_checkpoint::{
    Checkpoint, Entry, Error, KeyRange, LocalCheckpoint, LocalOptions, Result, Stamp, View,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> LocalOptions {
    LocalOptions { block_bytes: 1 << 10, table_bytes: 8 << 10, ..LocalOptions::default() }
}

/// A store with merged, compressed and fresh tables.
fn filled(path: &Path) -> (Map, Stamp) {
    let store = LocalCheckpoint::open(path, &options()).unwrap();
    let mut random = Random(11);
    let mut model = Map::new();
    for lsn in 1..=9 {
        let changes = changes(&mut random, 400, 150);
        apply(&mut model, &changes);
        let mut entries = changes.iter().map(|(key, value)| {
            Ok(match value {
                Some(value) => Entry::put(key.as_slice(), value.as_slice()),
                None => Entry::delete(key.as_slice()),
            })
        });
        store.write(&mut entries, &stamp(lsn)).unwrap();
    }
    store.settle();
    (model, stamp(9))
}

fn files(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn read_all(path: &Path, keys: &Map) -> Result<(Map, Option<Stamp>)> {
    let store = LocalCheckpoint::open(path, &options())?;
    let mut seen = Map::new();
    store.scan_with(&KeyRange::all(), &mut |key, value| {
        seen.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    })?;
    for (key, value) in keys {
        assert_eq!(store.get(key)?.as_ref(), Some(value), "a wrong answer to get");
    }
    let snapshot = store.snapshot()?;
    Ok((seen, snapshot.stamp()))
}

#[test]
fn a_flipped_byte_is_never_a_wrong_answer() {
    let dir = TempDir::new().unwrap();
    let (model, stamp) = filled(dir.path());
    let (mut flips, mut noticed, mut panicked) = (0, 0, 0);
    for file in files(dir.path()) {
        let good = fs::read(&file).unwrap();
        // Every single byte was tried once (29,033 flips); here a sample.
        let every = (good.len() / 60).max(1);
        for index in (0..good.len()).step_by(every) {
            // A fresh copy each time: opening repairs and removes files.
            let copy = TempDir::new().unwrap();
            for other in files(dir.path()) {
                let to = copy.path().join(other.strip_prefix(dir.path()).unwrap());
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(other, to).unwrap();
            }
            let mut bad = good.clone();
            bad[index] ^= 0x20;
            let relative = file.strip_prefix(dir.path()).unwrap();
            fs::write(copy.path().join(relative), bad).unwrap();
            flips += 1;
            let outcome = std::panic::catch_unwind(|| read_all(copy.path(), &model));
            match outcome {
                Ok(Ok((seen, seen_stamp))) => {
                    let right = seen == model && seen_stamp.as_ref() == Some(&stamp);
                    assert!(right, "byte {index} of {relative:?} changed what is read");
                }
                Ok(Err(error)) => {
                    noticed += 1;
                    assert!(
                        error.is_damage() || matches!(error, Error::Engine { .. }),
                        "byte {index} of {relative:?}: {error}"
                    );
                }
                Err(_) => {
                    println!("byte {index} of {relative:?} panicked");
                    panicked += 1;
                }
            }
        }
    }
    println!("{flips} flips, {noticed} noticed, {panicked} panics");
    assert!(noticed * 10 > flips * 7, "only {noticed} of {flips} flips were noticed");
    assert_eq!(panicked, 0);
}

#[test]
fn a_missing_current_is_damage_and_not_an_empty_store() {
    let dir = TempDir::new().unwrap();
    filled(dir.path());
    fs::remove_file(dir.path().join("tree/current")).unwrap();
    let error = LocalCheckpoint::open(dir.path(), &options()).unwrap_err();
    assert!(error.is_damage(), "{error}");
}

#[test]
fn a_missing_table_is_damage() {
    let dir = TempDir::new().unwrap();
    filled(dir.path());
    let table = files(&dir.path().join("tree/tables")).pop().unwrap();
    fs::remove_file(table).unwrap();
    let error = LocalCheckpoint::open(dir.path(), &options()).unwrap_err();
    assert!(error.is_damage(), "{error}");
}
