//! How fast the disk takes batches: `cargo run --release -p windlass-log --example append -- DIR [SECONDS]`.
//!
//! Prints batches and megabytes per second, and the time of an append, for batches of several sizes. The log trims
//! itself as it goes, so that segments are recycled as under a checkpoint.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_log::fs::OsFileSystem;
use windlass_log::{BatchBuilder, EpochRequest, FileLog, FileLogOptions, LifeId, Log, NewLog};

const FRAME_PAYLOAD_BYTES: usize = 218;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(dir) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: append DIR [SECONDS per size]");
        return ExitCode::FAILURE;
    };
    let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(5);
    match run(&dir, Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &std::path::Path, each: Duration) -> Result<(), Box<dyn std::error::Error>> {
    encode_only();
    println!(
        "{:>10} {:>12} {:>8} {:>9} {:>9} {:>9}",
        "batch", "batches/s", "MB/s", "p50 us", "p99 us", "max us"
    );
    for kib in [4_usize, 16, 64, 256] {
        let dir = dir.join(format!("append-bench-{kib}"));
        let new = NewLog { life: LifeId::random(), partition: 0, first_lsn: 1 };
        let log = FileLog::create(Arc::new(OsFileSystem), &dir, &new, FileLogOptions::default())?;
        measure(&log, kib * 1024, each)?;
        drop(log);
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// What one thread encodes without a disk.
fn encode_only() {
    let tail = windlass_log::Tail::at_creation(LifeId::from_raw(1), 0, 1);
    let payload = [7_u8; FRAME_PAYLOAD_BYTES];
    let mut builder = BatchBuilder::new();
    let started = Instant::now();
    let mut frames = 0_u32;
    while started.elapsed() < Duration::from_secs(1) {
        builder.start(&tail, 0);
        for _ in 0..256 {
            builder.frame(|buffer| buffer.extend_from_slice(&payload));
        }
        frames += builder.count();
        builder = BatchBuilder::recycle(std::hint::black_box(builder.finish()));
    }
    let per_second = f64::from(frames) / started.elapsed().as_secs_f64();
    println!("encoding alone: {:.1} M frames/s of 250 bytes", per_second / 1e6);
}

fn measure(log: &FileLog, bytes: usize, each: Duration) -> Result<(), windlass_log::LogError> {
    let payload = [7_u8; FRAME_PAYLOAD_BYTES];
    let mut tail = log.open_epoch(&EpochRequest { epoch: 1, time_ms: 0 })?.tail;
    let mut builder = BatchBuilder::new();
    let mut appends = Vec::new();
    let started = Instant::now();
    while started.elapsed() < each {
        builder.start(&tail, 0);
        builder.frame(|buffer| buffer.extend_from_slice(&payload));
        while builder.len_bytes() < bytes || builder.count() < 15 {
            builder.frame(|buffer| buffer.extend_from_slice(&payload));
        }
        let mut batch = builder.finish();
        let appending = Instant::now();
        log.append(&mut batch)?;
        appends.push(appending.elapsed());
        tail = batch.tail_after();
        builder = BatchBuilder::recycle(batch);
        if appends.len() % 1000 == 0 {
            // A checkpoint every so often.
            log.trim(tail.last_lsn())?;
        }
    }
    let elapsed = started.elapsed().as_secs_f64();
    appends.sort_unstable();
    let at = |part: usize| {
        let index = (appends.len() * part / 1000).min(appends.len().saturating_sub(1));
        appends.get(index).map_or(0, Duration::as_micros)
    };
    let count = f64::from(u32::try_from(appends.len()).unwrap_or(u32::MAX));
    let kib = bytes / 1024;
    let megabytes = count * f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6;
    println!(
        "{kib:>6} KiB {:>12.0} {:>8.0} {:>9} {:>9} {:>9}",
        count / elapsed,
        megabytes / elapsed,
        at(500),
        at(990),
        at(1000)
    );
    Ok(())
}
