//! How fast records become rows: instances with one task, from their start to their end, in
//! flushes of some hundred instances. `cargo run --release -p windlass-history --example ingest`
#![allow(clippy::unwrap_used, reason = "an example that cannot go on should stop")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;

use support::{Feed, deployed, done, waiting};
use windlass_history::Options;

const INSTANCES: u64 = 50_000;
/// What comes in 50 ms at 5,000 instances a second.
const PER_FLUSH: u64 = 250;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let mut feed = Feed::open(&dir.path().join("history.db"), Options::default());
    feed.write(1_000, &deployed());
    for overlap in [false, true] {
        let mut spent = std::time::Duration::ZERO;
        let base = if overlap { 1_000_000_000 } else { 1_000 };
        for flush in 0..INSTANCES / PER_FLUSH {
            for number in flush * PER_FLUSH..(flush + 1) * PER_FLUSH {
                waiting(&mut feed, 2_000, base + number * 10);
                // Ends in the same flush, or in the next one.
                let ends = if overlap { number.checked_sub(PER_FLUSH) } else { Some(number) };
                if let Some(ends) = ends {
                    done(&mut feed, 3_000, base + ends * 10);
                }
            }
            let began = Instant::now();
            feed.flush();
            spent += began.elapsed();
        }
        let rate = INSTANCES as f64 / spent.as_secs_f64();
        println!("ends in the next flush: {overlap}: {rate:.0} instances/s of one thread");
    }
}
