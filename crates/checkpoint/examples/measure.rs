//! Measures the store on disk: `cargo run --release -p windlass-checkpoint --example measure -- [options]`.
//!
//! Options as `name=value`: `entries` (5000000), `value_bytes` (80), `gets` (200000), `rounds` (300, the
//! small ingestions), `round_entries` (20000), `block_bytes`, `table_bytes`, `cache_bytes`, `compress`
//! (0 or 1), `limit` (bytes per second of both speed limits, 0 for none), `dir`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use windlass_checkpoint::conformance::Random;
use windlass_checkpoint::{
    Checkpoint, Entry, KeyRange, LocalCheckpoint, LocalOptions, Result, Stamp, View,
};

fn main() -> Result<()> {
    let args: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect();
    let number = |name: &str, default: u64| {
        args.get(name).map_or(default, |value| value.parse().expect("options are numbers"))
    };
    let entries = number("entries", 5_000_000);
    let value_bytes = usize::try_from(number("value_bytes", 80)).expect("it fits");
    let limit = Some(number("limit", 0)).filter(|limit| *limit > 0);
    let defaults = LocalOptions::default();
    let options = LocalOptions {
        cache_bytes: number("cache_bytes", defaults.cache_bytes),
        block_bytes: u32::try_from(number("block_bytes", defaults.block_bytes.into()))
            .expect("it fits"),
        table_bytes: number("table_bytes", defaults.table_bytes),
        compress: number("compress", 1) == 1,
        write_bytes_per_second: limit,
        merge_bytes_per_second: limit,
    };
    let dir = args.get("dir").cloned().unwrap_or_else(|| "/tmp/windlass-measure".to_owned());
    // A store of an earlier run would be measured along.
    let _ = std::fs::remove_dir_all(&dir);

    println!("{options:?}");
    let start = Instant::now();
    let store = LocalCheckpoint::open(&dir, &options)?;
    println!("open, empty: {:?}, RSS {:.1} MB", start.elapsed(), rss());

    let start = Instant::now();
    let mut all = (0..entries).map(|n| Ok(Entry::put(key(n).to_vec(), value(n, value_bytes))));
    store.write(&mut all, &stamp(1))?;
    report("ingest", entries, start.elapsed());
    store.settle();
    println!("  {:?}, RSS {:.1} MB", store.status(), rss());
    read(&store, entries, number("gets", 200_000))?;

    rounds(&store, entries, number("rounds", 300), number("round_entries", 20_000), value_bytes)?;
    read(&store, entries, number("gets", 200_000))?;
    drop(store);

    let start = Instant::now();
    let store = LocalCheckpoint::open(&dir, &options)?;
    println!("reopen: {:?}, RSS {:.1} MB", start.elapsed(), rss());
    scan(store.snapshot()?.as_ref(), 2)?;
    drop(store);
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// Small checkpoints as a running system makes them: new keys at the end, the oldest deleted, and some
/// in the middle overwritten.
fn rounds(
    store: &LocalCheckpoint,
    entries: u64,
    rounds: u64,
    round_entries: u64,
    value_bytes: usize,
) -> Result<()> {
    let mut random = Random(1);
    let mut slowest = Duration::ZERO;
    let mut runs_max = 0;
    let (mut first, mut end) = (0, entries);
    let start = Instant::now();
    for round in 0..rounds {
        let share = round_entries / 5;
        let mut middle: Vec<u64> =
            (0..share).map(|_| first + share * 2 + random.below(end - first - share * 2)).collect();
        middle.sort_unstable();
        middle.dedup();
        let deletes = (first..first + share * 2).map(|n| Ok(Entry::delete(key(n).to_vec())));
        let updates =
            middle.into_iter().map(|n| Ok(Entry::put(key(n).to_vec(), value(n + 1, value_bytes))));
        let puts =
            (end..end + share * 2).map(|n| Ok(Entry::put(key(n).to_vec(), value(n, value_bytes))));
        let began = Instant::now();
        store.write(&mut deletes.chain(updates).chain(puts), &stamp(2 + round))?;
        slowest = slowest.max(began.elapsed());
        runs_max = runs_max.max(store.status().level_0_runs);
        first += share * 2;
        end += share * 2;
        if round % 100 == 99 {
            println!("  after {}: {:?}", round + 1, store.status());
        }
    }
    report("small ingestions", rounds * round_entries, start.elapsed());
    println!("  slowest {slowest:?}, level 0 runs at most {runs_max}, RSS {:.1} MB", rss());
    println!("  live entries {}", end - first);
    let start = Instant::now();
    scan(store.snapshot()?.as_ref(), 2)?;
    store.settle();
    println!("  settled after {:?}: {:?}", start.elapsed(), store.status());
    Ok(())
}

fn read(store: &LocalCheckpoint, entries: u64, gets: u64) -> Result<()> {
    let snapshot = store.snapshot()?;
    scan(snapshot.as_ref(), 1)?;
    scan(snapshot.as_ref(), 2)?;
    let (first, last) = snapshot.edges(&KeyRange::all())?.expect("there are entries");
    let (first, last) = (number_of(&first), number_of(&last));
    let mut random = Random(3);
    let mut micros = Vec::new();
    let start = Instant::now();
    for _ in 0..gets {
        let key = key(first + random.below(last - first));
        let began = Instant::now();
        assert!(snapshot.get(&key)?.is_some(), "{entries} entries, one is missing");
        micros.push(began.elapsed().as_nanos());
    }
    report("get, uniform", gets, start.elapsed());
    micros.sort_unstable();
    let at = |share: usize| micros.get(micros.len() * share / 1000).copied().unwrap_or_default();
    println!("  p50 {} ns, p99 {} ns, p99.9 {} ns; RSS {:.1} MB", at(500), at(990), at(999), rss());
    Ok(())
}

fn scan(view: &dyn View, threads: usize) -> Result<()> {
    let start = Instant::now();
    let parts = view.split(&KeyRange::all(), threads)?;
    let count: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = parts
            .iter()
            .map(|part| {
                scope.spawn(move || {
                    let mut count = 0;
                    let mut sum = 0_usize;
                    view.scan_with(part, &mut |key, value| {
                        count += 1;
                        sum += key.len() + value.len();
                        ControlFlow::Continue(())
                    })
                    .expect("the scan works");
                    std::hint::black_box(sum);
                    count
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });
    report(&format!("scan, {threads} threads"), count, start.elapsed());
    Ok(())
}

fn report(what: &str, count: u64, took: Duration) {
    let per_second = u128::from(count) * 1_000_000 / took.as_micros().max(1);
    println!("{what}: {count} in {took:.2?} = {per_second}/s");
}

fn key(n: u64) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = n.to_be_bytes();
    [b'h', a, b, c, d, e, f, g, h]
}

fn number_of(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// Half compressible.
fn value(n: u64, bytes: usize) -> Vec<u8> {
    let mut value = vec![b'x'; bytes];
    let mut random = Random(n);
    for byte in value.chunks_mut(16) {
        for (slot, byte) in byte.iter_mut().zip(random.next().to_le_bytes()) {
            *slot = byte;
        }
    }
    value
}

fn stamp(lsn: u64) -> Stamp {
    Stamp { lsn, ..Stamp::default() }
}

fn rss() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}
