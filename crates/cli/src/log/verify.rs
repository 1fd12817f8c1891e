//! `windlass log verify`: whether a stopped server's data is what was written.

use std::ops::ControlFlow;
use std::path::Path;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use windlass_checkpoint::{KeyRange, LocalCheckpoint, LocalOptions, Stamp, View};
use windlass_log::file::{TailReport, VerifyReport, verify};
use windlass_log::fs::OsFileSystem;
use windlass_server::data;

use crate::failure::Failure;
use crate::offline::{checkpoint_failure, log_failure};
use crate::output::{Output, fields, table};
use crate::units::{grouped, utc};

pub(super) fn run(data_dir: &Path, out: Output) -> Result<(), Failure> {
    let bar = ProgressBar::new_spinner().with_message("reading the log");
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    let read = || -> Result<_, Failure> {
        let report = verify(&OsFileSystem, &data::log_dir(data_dir));
        let report = report.map_err(|error| log_failure(&error))?;
        bar.set_message("reading the checkpoint");
        Ok((verify_checkpoint(&data::checkpoint_dir(data_dir), &report)?, report))
    };
    let read = read();
    bar.finish_and_clear();
    let (checkpoint, report) = read?;
    let mut value = report_json(&report);
    value["checkpoint"] = checkpoint.json();
    out.show(&value, || format!("{}\n{}", report_text(&report), checkpoint.text()))?;
    match (&report.damage, checkpoint.damage) {
        (Some(damage), _) => Err(Failure::damaged(damage.to_string()).hint(
            "`windlass restore` makes a new data directory of a backup; where there is none, `windlass \
             log repair` cuts the log off behind its last good frame",
        )),
        (None, Some(damage)) if begins_at(&report) == 1 => {
            Err(Failure::damaged(damage).hint(format!(
                "the log has everything from its first record on: move {} away, and the next start reads \
                 it all again",
                data::checkpoint_dir(data_dir).display()
            )))
        }
        (None, Some(damage)) => Err(Failure::damaged(damage)
            .hint("`windlass restore` makes a new data directory of a backup")),
        (None, None) => Ok(()),
    }
}

/// The first lsn that the log has.
fn begins_at(log: &VerifyReport) -> u64 {
    log.segments.first().map_or(1, |segment| segment.first_lsn)
}

/// What was found in a checkpoint.
#[derive(Default)]
struct CheckpointReport {
    stamp: Option<Stamp>,
    entries: u64,
    bytes: u64,
    damage: Option<String>,
}

/// Reads all of it, as a start does, so that every checksum is looked at.
fn verify_checkpoint(dir: &Path, log: &VerifyReport) -> Result<CheckpointReport, Failure> {
    let mut report = CheckpointReport::default();
    if !dir.exists() {
        return Ok(report);
    }
    let read = LocalCheckpoint::open(dir, &LocalOptions::default()).and_then(|store| {
        report.stamp = store.stamp();
        store.scan_with(&KeyRange::all(), &mut |key, value| {
            report.entries += 1;
            report.bytes += u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX);
            ControlFlow::Continue(())
        })
    });
    match read {
        Ok(()) => {}
        Err(error) if error.is_damage() => report.damage = Some(error.to_string()),
        Err(error) => return Err(checkpoint_failure(&error)),
    }
    let lsn = report.stamp.as_ref().map_or(0, |stamp| stamp.lsn);
    let first = begins_at(log);
    if report.damage.is_none() && first > lsn + 1 {
        report.damage = Some(format!(
            "the log begins at lsn {first}, and the checkpoint ends at lsn {lsn}: what was between them \
             is missing"
        ));
    }
    Ok(report)
}

impl CheckpointReport {
    fn json(&self) -> Value {
        if self.stamp.is_none() && self.damage.is_none() {
            return Value::Null;
        }
        json!({
            "lsn": self.stamp.as_ref().map(|stamp| stamp.lsn),
            "time_ms": self.stamp.as_ref().map(|stamp| stamp.time_ms),
            "entries": self.entries,
            "bytes": self.bytes,
            "damage": self.damage,
        })
    }

    fn text(&self) -> String {
        match (&self.stamp, &self.damage) {
            (None, None) => "there is no checkpoint".to_owned(),
            (_, Some(_)) => "the checkpoint is damaged".to_owned(),
            (Some(stamp), None) => format!(
                "the checkpoint holds the state at lsn {} of {}: {} entries, {} bytes",
                stamp.lsn,
                utc(stamp.time_ms),
                grouped(self.entries),
                grouped(self.bytes),
            ),
        }
    }
}

fn report_json(report: &VerifyReport) -> Value {
    let segment = |segment: &windlass_log::file::SegmentReport| {
        json!({
            "file": segment.file,
            "first_lsn": segment.first_lsn,
            "last_lsn": segment.last_lsn,
            "batches": segment.batches,
            "frames": segment.frames,
            "used_bytes": segment.used_bytes,
            "file_bytes": segment.file_bytes,
        })
    };
    let tail = report.tail.as_ref().map(|tail| match tail {
        TailReport::Clean => json!("clean"),
        TailReport::Unfinished { file, offset, lsn, fault } => json!({
            "unfinished": { "file": file, "offset": offset, "lsn": lsn, "fault": fault.to_string() }
        }),
    });
    json!({
        "partition": report.partition,
        "marked_durable_lsn": report.marked_durable_lsn,
        "last_lsn": report.last_lsn(),
        "segments": report.segments.iter().map(segment).collect::<Vec<Value>>(),
        "reserve_segments": report.reserve_segments,
        "tail": tail,
        "damage": report.damage.as_ref().map(ToString::to_string),
    })
}

fn report_text(report: &VerifyReport) -> String {
    let row = |segment: &windlass_log::file::SegmentReport| {
        let name = segment.file.file_name().unwrap_or_default();
        vec![
            name.to_string_lossy().into_owned(),
            segment.first_lsn.to_string(),
            segment.last_lsn.to_string(),
            grouped(segment.batches),
            grouped(segment.frames),
            grouped(segment.used_bytes),
        ]
    };
    let rows: Vec<Vec<String>> = report.segments.iter().map(row).collect();
    let tail = match &report.tail {
        Some(TailReport::Clean) => "clean".to_owned(),
        Some(TailReport::Unfinished { lsn, .. }) => format!(
            "an unfinished batch from lsn {lsn} on, as a crash leaves it; it was not acknowledged, \
             and the next start drops it"
        ),
        None => "damaged".to_owned(),
    };
    let head = fields(&[
        ("partition", report.partition.to_string()),
        ("last lsn", report.last_lsn().unwrap_or(0).to_string()),
        ("marked durable", report.marked_durable_lsn.to_string()),
        ("reserve segments", report.reserve_segments.to_string()),
        ("end", tail),
    ]);
    let segments =
        table(&["segment", "first lsn", "last lsn", "batches", "frames", "bytes"], &rows);
    format!("{head}\n{segments}")
}
