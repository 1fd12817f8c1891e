//! Any sequence of writes, reopenings and reads does to a store what it does to a map.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use tempfile::TempDir;
use windlass_checkpoint::conformance::{Changes, apply, contents, stamp};
use windlass_checkpoint::{
    Checkpoint, Entry, KeyRange, LocalCheckpoint, LocalOptions, MemoryCheckpoint, MemoryDisk, View,
};

#[derive(Debug, Clone)]
enum Step {
    Write(Changes),
    Reopen,
    Settle,
    Get(Vec<u8>),
    Scan(KeyRange),
    /// Taken now, compared at the end.
    Snapshot,
}

// Few letters, so that keys meet, contain each other, and ranges cut through them.
fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(1_u8), Just(b'a'), Just(b'b'), Just(0xff)], 1..5)
}

fn range() -> impl Strategy<Value = KeyRange> {
    prop_oneof![
        Just(KeyRange::all()),
        key().prop_map(KeyRange::prefix),
        (key(), key()).prop_map(|(a, b)| KeyRange::between(a, b)),
        (key(), key()).prop_map(|(a, b)| KeyRange::prefix(a).after(&b)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let value = option::weighted(0.6, vec(any::<u8>(), 0..40));
    prop_oneof![
        6 => btree_map(key(), value, 0..30).prop_map(Step::Write),
        1 => Just(Step::Reopen),
        1 => Just(Step::Settle),
        3 => key().prop_map(Step::Get),
        3 => range().prop_map(Step::Scan),
        1 => Just(Step::Snapshot),
    ]
}

fn write(store: &dyn Checkpoint, lsn: u64, changes: &Changes) {
    let mut entries = changes.iter().map(|(key, value)| {
        Ok(match value {
            Some(value) => Entry::put(key.as_slice(), value.as_slice()),
            None => Entry::delete(key.as_slice()),
        })
    });
    store.write(&mut entries, &stamp(lsn)).unwrap();
}

fn scan(view: &dyn View, range: &KeyRange) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    view.scan_with(range, &mut |key, value| {
        seen.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })
    .unwrap();
    seen
}

/// Runs `steps` on a store that `open` opens; `settle` waits for its background work.
fn run<C: Checkpoint>(steps: &[Step], open: impl Fn() -> C, settle: impl Fn(&C)) {
    let mut model = BTreeMap::new();
    let mut snapshots: Vec<(Box<dyn View>, BTreeMap<_, _>)> = Vec::new();
    let mut store = Some(open());
    let mut lsn = 0;
    for step in steps {
        let open_store = store.as_ref().unwrap();
        match step {
            Step::Write(changes) => {
                lsn += 1;
                write(open_store, lsn, changes);
                apply(&mut model, changes);
            }
            Step::Reopen => {
                // A snapshot keeps the directory's lock.
                for (snapshot, expected) in snapshots.drain(..) {
                    assert_eq!(contents(snapshot.as_ref()), expected);
                }
                drop(store.take());
                store = Some(open());
            }
            Step::Settle => settle(open_store),
            Step::Get(key) => assert_eq!(open_store.get(key).unwrap().as_ref(), model.get(key)),
            Step::Scan(range) => {
                let expected: Vec<_> = model
                    .iter()
                    .filter(|(key, _)| range.contains(key))
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect();
                assert_eq!(scan(open_store, range), expected, "{range:?}");
                let edges = expected.first().zip(expected.last());
                let edges = edges.map(|(first, last)| (first.0.clone(), last.0.clone()));
                assert_eq!(open_store.edges(range).unwrap(), edges);
                let parts = open_store.split(range, 3).unwrap();
                let joined: Vec<_> = parts.iter().flat_map(|part| scan(open_store, part)).collect();
                assert_eq!(joined, expected, "split of {range:?} into {parts:?}");
            }
            Step::Snapshot => {
                snapshots.push((open_store.snapshot().unwrap(), model.clone()));
            }
        }
    }
    let store = store.unwrap();
    assert_eq!(contents(&store), model);
    assert_eq!(store.stamp(), (lsn > 0).then(|| stamp(lsn)));
    for (snapshot, expected) in snapshots {
        assert_eq!(contents(snapshot.as_ref()), expected);
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn memory(steps in vec(step(), 1..40)) {
        let disk = MemoryDisk::new();
        run(&steps, || MemoryCheckpoint::open(&disk), |_| {});
    }
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn local(steps in vec(step(), 1..40)) {
        let dir = TempDir::new().unwrap();
        let options = LocalOptions {
            cache_bytes: 16 << 10,
            block_bytes: 1 << 10,
            table_bytes: 4 << 10,
            ..LocalOptions::default()
        };
        run(
            &steps,
            || LocalCheckpoint::open(dir.path(), &options).unwrap(),
            LocalCheckpoint::settle,
        );
    }
}
