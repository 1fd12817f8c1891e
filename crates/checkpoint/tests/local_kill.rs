//! kill -9 at random moments loses no acknowledged checkpoint and shows no half one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use windlass_checkpoint::conformance::{Changes, Random, apply, changes, contents, stamp};
use windlass_checkpoint::{Checkpoint, Entry, LocalCheckpoint, LocalOptions, View};

const DIR: &str = "WINDLASS_KILL_DIR";
const SEED: u64 = 20_261_121;
const ROUNDS: u64 = 12;

fn options() -> LocalOptions {
    LocalOptions { table_bytes: 64 << 10, block_bytes: 2 << 10, ..LocalOptions::default() }
}

/// The changes of checkpoint `lsn`: the same in parent and child.
fn changes_of(lsn: u64) -> Changes {
    let mut random = Random(SEED ^ lsn.wrapping_mul(0x9e37_79b9));
    let count = 20 + random.below(2_000);
    changes(&mut random, 5_000, count)
}

/// The child: writes one checkpoint after the other and says so, until it is killed. Does nothing when it
/// is run as an ordinary test.
#[test]
fn child() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let store = LocalCheckpoint::open(dir, &options()).unwrap();
    let mut lsn = store.stamp().map_or(0, |stamp| stamp.lsn);
    let mut out = std::io::stdout();
    loop {
        lsn += 1;
        let changes = changes_of(lsn);
        let mut entries = changes.iter().map(|(key, value)| {
            Ok(match value {
                Some(value) => Entry::put(key.as_slice(), value.as_slice()),
                None => Entry::delete(key.as_slice()),
            })
        });
        store.write(&mut entries, &stamp(lsn)).unwrap();
        writeln!(out, "acknowledged {lsn}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn killed_at_random_moments() {
    println!("seed {SEED}: repeat with `cargo test -p windlass-checkpoint --test local_kill`");
    let dir = TempDir::new().unwrap();
    let mut random = Random(SEED);
    let mut model = BTreeMap::new();
    let mut modelled = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let reader = std::thread::spawn(move || {
            let acknowledged = |line: String| line.strip_prefix("acknowledged ")?.parse().ok();
            output.lines().map_while(Result::ok).filter_map(acknowledged).last()
        });
        // The first rounds strike while the store is being made.
        let longest = if round < 3 { 30 } else { 300 };
        std::thread::sleep(Duration::from_millis(5 + random.below(longest)));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged: Option<u64> = reader.join().unwrap();

        let store = LocalCheckpoint::open(dir.path(), &options()).unwrap();
        let stored = store.stamp().map_or(0, |stamp| stamp.lsn);
        let acknowledged = acknowledged.unwrap_or(modelled);
        assert!(
            stored >= acknowledged,
            "checkpoint {acknowledged} was acknowledged, {stored} is stored"
        );
        assert!(stored <= acknowledged + 1, "checkpoint {stored} was never begun");
        while modelled < stored {
            modelled += 1;
            apply(&mut model, &changes_of(modelled));
        }
        assert!(
            contents(&store) == model,
            "round {round}: checkpoint {stored} differs from the model"
        );
        assert!(stored == 0 || store.stamp() == Some(stamp(stored)));
    }
    assert!(modelled > 20, "the child only wrote {modelled} checkpoints");
}
