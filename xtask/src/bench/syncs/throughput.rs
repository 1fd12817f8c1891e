//! Records through an attempt of a sync: from a generator process to a sink process, beside `cat` between
//! the same two (the limit) and beside a full parse and writing anew (what others do). The measuring is an
//! example of the connector crate, which is generator, sink and both others as well.

use std::process::Command;

use serde_json::{Map, Value, json};

use crate::bench::OURS;
use crate::bench::args::Args;
use crate::bench::failure::{Failure, Result};
use crate::workspace::{cargo, root};

/// The limit.
pub(super) const CAT: &str = "cat";
/// What others do.
pub(super) const RESERIALIZE: &str = "reserialize";
/// All that are measured together.
const SYSTEMS: [&str; 3] = [OURS, CAT, RESERIALIZE];

/// Measures it: a GB of each shape, the medians of three rounds; with `--quick` a tenth, once.
pub(super) fn measure(args: &Args) -> Result<Value> {
    let (mb, rounds) = if args.quick { ("100", "1") } else { ("1000", "3") };
    let words = ["run", "--release", "--quiet", "-p", "windlass-connector", "--example"];
    let output = Command::new(cargo())
        .args(words)
        .args(["throughput", "--", mb, rounds, "json"])
        .current_dir(root())
        .output()
        .map_err(|error| Failure::new(format!("failed to start cargo: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("the syncs failed: {}", said.trim())));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Failure::new(format!("the syncs gave no figures: {error}")))
}

/// What each system gets in the report: MB/s and records/s by shape.
pub(super) fn by_system(measured: &Value) -> Vec<(&'static str, Map<String, Value>)> {
    let shapes = measured["shapes"].as_array();
    let mut systems = Vec::new();
    for system in SYSTEMS {
        let (mut speed, mut records) = (Map::new(), Map::new());
        for shape in shapes.into_iter().flatten() {
            let Some(mb_per_s) = shape[system].as_f64() else { continue };
            let bytes = shape["record_bytes"].as_f64().unwrap_or(f64::NAN);
            let name = format!("{bytes}_{}", shape["mode"].as_str().unwrap_or_default());
            speed.insert(name.clone(), json!(mb_per_s.round()));
            records.insert(name, json!((mb_per_s * 1e6 / bytes).round()));
        }
        let mut fields = Map::new();
        fields.insert("sync_mb_per_s".to_owned(), speed.into());
        fields.insert("sync_records_per_s".to_owned(), records.into());
        if system == OURS {
            fields.insert("sync_peak_rss_kib".to_owned(), measured["peak_rss_kib"].clone());
        }
        systems.push((system, fields));
    }
    systems
}

/// For a person.
pub(super) fn lines(measured: &Value) -> Vec<String> {
    let head = format!(
        "{:<22}{:>10}{:>10}{:>14}{:>10}",
        "syncs, MB/s", "windlass", "cat", "reserialize", "of cat"
    );
    let mut lines = vec![String::new(), head];
    for shape in measured["shapes"].as_array().into_iter().flatten() {
        let figure = |name: &str| shape[name].as_f64();
        let shown = |name: &str| figure(name).map_or("-".to_owned(), |it| format!("{it:.0}"));
        let share = figure(OURS).zip(figure(CAT)).map(|(ours, cat)| ours / cat);
        let name =
            format!("{} B, {}", shape["record_bytes"], shape["mode"].as_str().unwrap_or_default());
        lines.push(format!(
            "{name:<22}{:>10}{:>10}{:>14}{:>10}",
            shown(OURS),
            shown(CAT),
            shown(RESERIALIZE),
            share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0))
        ));
    }
    let memory = measured["peak_rss_kib"].as_f64().unwrap_or(f64::NAN) / 1024.0;
    lines.push(format!("the runner took {memory:.1} MiB"));
    lines
}

/// Our share of the speed of `cat`, for records of 1.7 KB that are appended.
pub(super) fn over_cat(measured: &Value) -> Option<f64> {
    let mut shapes = measured["shapes"].as_array()?.iter();
    let shape = shapes.find(|it| it["record_bytes"] == 1700 && it["mode"] == "append")?;
    Some(shape[OURS].as_f64()? / shape[CAT].as_f64()?)
}
