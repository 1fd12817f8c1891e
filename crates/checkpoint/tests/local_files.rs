//! A process without a file descriptor left. Alone in its program, for it takes them all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use windlass_checkpoint::conformance::{contents, write};
use windlass_checkpoint::{Error, LocalCheckpoint, LocalOptions};

/// Which version is in force could not be asked either, and that was taken for damage.
#[test]
fn a_store_takes_writes_again_when_there_are_files_again() {
    let dir = TempDir::new().unwrap();
    let store = LocalCheckpoint::open(dir.path(), &LocalOptions::default()).unwrap();
    write(&store, 1, &[(b"a", Some(b"1"))]).unwrap();
    store.settle();

    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..limit }).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    let refused = write(&store, 2, &[(b"b", Some(b"2"))]).unwrap_err();
    assert!(matches!(refused, Error::Engine { .. }) && refused.may_pass(), "{refused:?}");
    let refused = write(&store, 2, &[(b"b", Some(b"2"))]).unwrap_err();
    assert!(matches!(refused, Error::Io { .. }) && refused.may_pass(), "{refused:?}");
    drop(taken);

    write(&store, 2, &[(b"b", Some(b"2"))]).unwrap();
    drop(store);
    let store = LocalCheckpoint::open(dir.path(), &LocalOptions::default()).unwrap();
    assert_eq!(contents(&store).len(), 2);
}
