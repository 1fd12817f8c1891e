//! How fast records go from a generator to a sink: through `cat` (the limit), through an attempt of ours, and
//! through a full parse and writing anew (what others do). Three processes each time, the same generator and sink,
//! and pipes of the same size.
//!
//! `cargo run --release -p windlass-connector --example throughput -- [MB] [ROUNDS] [alone] [json]`
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "an example that cannot go on panics"
)]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command as Program, ExitCode, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use windlass_connector::attempt::{Attempt, Connector, Steps, run};
use windlass_connector::observer::Nobody;
use windlass_connector::process::{Command, Helper};
use windlass_connector::protocol::catalog::Mapping;
use windlass_connector::{Cancel, Commit, Journal, JournalError, Limits, Side, Status};

/// Between two states.
const RECORDS_PER_STATE: usize = 10_000;
/// What `cat` reads at once is what coreutils reads.
const CAT_BYTES: usize = 128 << 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("helper") => {
            return windlass_connector::process::helper(std::env::args_os().skip(2));
        }
        Some("generate") => generate(words[1].parse().unwrap(), words[2].parse().unwrap()),
        Some("cat") => cat(),
        Some("reserialize") => reserialize(),
        Some("sink") => sink(),
        _ => measure(&words),
    }
    ExitCode::SUCCESS
}

fn measure(words: &[String]) {
    let number = |at: usize, default: usize| words.get(at).map_or(default, |n| n.parse().unwrap());
    let (mb, rounds) = (number(0, 1_000), number(1, 3));
    let asked = |name: &str| words.iter().any(|word| word == name);
    // For a profile of an attempt alone.
    let (alone, as_json) = (asked("alone"), asked("json"));
    let mut measured = Vec::new();
    for record_bytes in [1_700, 600] {
        for mode in ["append", "append_dedup"] {
            let shape = Shape { mode, record_bytes, records: mb * 1_000_000 / record_bytes };
            let figures = shape.measure(rounds, alone);
            if !as_json {
                println!("{}", shape.line(&figures));
            }
            measured.push(figures);
        }
    }
    if as_json {
        println!("{}", json!({ "shapes": measured, "peak_rss_kib": peak_kb() }));
    } else {
        println!("peak memory of this process: {} kB", peak_kb());
    }
}

/// Records of one size, written in one way.
struct Shape {
    mode: &'static str,
    record_bytes: usize,
    records: usize,
}

impl Shape {
    /// Each system in turn, again and again; the medians, in MB/s.
    fn measure(&self, rounds: usize, alone: bool) -> Value {
        let Shape { mode, record_bytes, records } = *self;
        let (mut cat, mut ours, mut reserialize) = (Vec::new(), Vec::new(), Vec::new());
        let cpu_before = cpu_s();
        for _ in 0..rounds {
            if !alone {
                cat.push(shell("cat", records, record_bytes));
            }
            ours.push(attempt(mode, records, record_bytes));
            if mode == "append" && !alone {
                reserialize.push(shell("reserialize", records, record_bytes));
            }
        }
        let gb = (records * record_bytes * rounds) as f64 / 1e9;
        json!({ "record_bytes": record_bytes, "mode": mode, "cat": median(cat),
            "windlass": median(ours), "reserialize": median(reserialize),
            "cpu_s_per_gb": (cpu_s() - cpu_before) / gb })
    }

    fn line(&self, figures: &Value) -> String {
        let figure = |name: &str| figures[name].as_f64().unwrap_or(f64::NAN);
        let (cat, windlass) = (figure("cat"), figure("windlass"));
        format!(
            "{} B {}: cat {cat:.0} MB/s, windlass {windlass:.0} MB/s ({:.0} % of cat, {:.0} records/s), {:.2} s of \
             processor time for 1 GB; reserialize {:.0} MB/s",
            self.record_bytes,
            self.mode,
            windlass / cat * 100.0,
            windlass * 1e6 / self.record_bytes as f64,
            figure("cpu_s_per_gb"),
            figure("reserialize"),
        )
    }
}

/// The middle value; the lower one of two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

fn me(words: &[&str]) -> Program {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.args(words);
    program
}

/// Generator, something between, sink: MB/s from the first start to the last end.
fn shell(between: &str, records: usize, record_bytes: usize) -> f64 {
    let began = Instant::now();
    let (count, bytes) = (records.to_string(), record_bytes.to_string());
    let mut source =
        me(&["generate", &count, &bytes, "read"]).stdout(Stdio::piped()).spawn().unwrap();
    let from = widened(source.stdout.take().unwrap());
    let mut middle = me(&[between]).stdin(from).stdout(Stdio::piped()).spawn().unwrap();
    let from = widened(middle.stdout.take().unwrap());
    let mut sink = me(&["sink"]).stdin(from).stdout(Stdio::null()).spawn().unwrap();
    for child in [&mut source, &mut middle, &mut sink] {
        assert!(child.wait().unwrap().success());
    }
    (records * record_bytes) as f64 / 1e6 / began.elapsed().as_secs_f64()
}

/// As large as an attempt makes its pipes.
fn widened(pipe: std::process::ChildStdout) -> std::process::ChildStdout {
    rustix::pipe::fcntl_setpipe_size(&pipe, 1 << 20).unwrap();
    pipe
}

struct Forget;

impl Journal for Forget {
    fn commit(&self, _commit: &Commit) -> Result<(), JournalError> {
        Ok(())
    }

    fn configuration(&self, _side: Side, _config: &str) -> Result<(), JournalError> {
        Ok(())
    }
}

fn attempt(mode: &str, records: usize, record_bytes: usize) -> f64 {
    let folder = std::env::temp_dir().join(format!("throughput-{}", std::process::id()));
    let program = std::env::current_exe().unwrap();
    let connector = |words: &[String]| Connector {
        command: Command::local([&[program.to_str().unwrap().to_owned()], words].concat()),
        config: json!({}),
    };
    let began = Instant::now();
    let attempt = Attempt {
        name: format!("throughput-{}", std::process::id()),
        folder: folder.clone(),
        helper: Helper { program: program.clone(), words: vec!["helper".into()] },
        source: Some(connector(&[
            "generate".to_owned(),
            records.to_string(),
            record_bytes.to_string(),
        ])),
        destination: connector(&["sink".to_owned()]),
        catalog: json!({"streams": [{"stream": {"name": "users", "json_schema": {}},
            "sync_mode": "incremental", "destination_sync_mode": mode, "primary_key": [["id"]]}]}),
        discovered: None,
        selected: Vec::new(),
        mapping: Mapping::default(),
        state: Vec::new(),
        steps: Steps::default(),
        limits: Limits::default(),
    };
    let summary = run(attempt, &Forget, &Nobody, &Cancel::new());
    let took = began.elapsed().as_secs_f64();
    let _ = std::fs::remove_dir_all(folder);
    assert_eq!(summary.status, Status::Completed, "{:?}", summary.failures);
    assert_eq!(summary.records_committed, records as u64);
    assert_eq!(summary.checksums.destination_mismatched, 0);
    (records * record_bytes) as f64 / 1e6 / took
}

/// Records of many short fields, as connectors write them.
fn generate(records: usize, record_bytes: usize) {
    let mut block = Vec::new();
    let per_block = (1 << 20) / record_bytes;
    for number in 0..per_block {
        let mut line = format!(
            "{{\"type\":\"RECORD\",\"record\":{{\"stream\":\"users\",\"data\":{{\"id\":{number},\"name\":\"Ada {number}\""
        );
        for field in 0.. {
            let more = format!(
                ",\"field_{field}\":\"value {} of {field}\",\"n{field}\":{}",
                number * 7,
                number * 13
            );
            if line.len() + more.len() + 40 > record_bytes {
                break;
            }
            line.push_str(&more);
        }
        let pad = record_bytes.saturating_sub(line.len() + 47);
        line.push_str(&format!(
            ",\"p\":\"{}\"}},\"emitted_at\":1700000000000}}}}\n",
            "x".repeat(pad)
        ));
        block.push(line);
    }
    let mut out = io::stdout().lock();
    let mut gathered = Vec::with_capacity(2 << 20);
    for number in 0..records {
        gathered.extend_from_slice(block[number % per_block].as_bytes());
        if (number + 1) % RECORDS_PER_STATE == 0 {
            let state = json!({"type": "STATE", "state": {"type": "STREAM", "stream":
                {"stream_descriptor": {"name": "users"}, "stream_state": {"cursor": number}}}});
            gathered.extend_from_slice(format!("{state}\n").as_bytes());
        }
        if gathered.len() >= 256 << 10 {
            out.write_all(&gathered).unwrap();
            gathered.clear();
        }
    }
    out.write_all(&gathered).unwrap();
}

fn cat() {
    let mut buffer = vec![0; CAT_BYTES];
    let (mut from, mut to) = (io::stdin().lock(), io::stdout().lock());
    loop {
        let count = from.read(&mut buffer).unwrap();
        if count == 0 {
            return;
        }
        to.write_all(&buffer[..count]).unwrap();
    }
}

fn reserialize() {
    let mut to = io::BufWriter::with_capacity(256 << 10, io::stdout().lock());
    let mut from = BufReader::with_capacity(256 << 10, io::stdin().lock());
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).unwrap() > 0 {
        let value: Value = serde_json::from_slice(&line).unwrap();
        serde_json::to_writer(&mut to, &value).unwrap();
        to.write_all(b"\n").unwrap();
        line.clear();
    }
    to.flush().unwrap();
}

/// Gives states back, with a count of the records.
fn sink() {
    let mut from = BufReader::with_capacity(1 << 20, io::stdin().lock());
    let (mut records, mut carry) = (0_u64, Vec::new());
    loop {
        let buffer = from.fill_buf().unwrap();
        if buffer.is_empty() {
            return;
        }
        let mut begin = 0;
        for feed in memchr::memchr_iter(b'\n', buffer) {
            let part = &buffer[begin..feed];
            begin = feed + 1;
            if carry.is_empty() {
                take(part, &mut records);
            } else {
                carry.extend_from_slice(part);
                take(&carry, &mut records);
                carry.clear();
            }
        }
        carry.extend_from_slice(&buffer[begin..]);
        let count = buffer.len();
        from.consume(count);
    }
}

fn take(line: &[u8], records: &mut u64) {
    match line.get(9) {
        Some(b'R') => *records += 1,
        Some(b'S') => {
            let mut message: Value = serde_json::from_slice(line).unwrap();
            message["state"]["destinationStats"] = json!({"recordCount": *records as f64});
            *records = 0;
            println!("{message}");
        }
        _ => {}
    }
}

/// Processor time of this process, in seconds; of the children nothing.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    let ticks = behind_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<f64>().unwrap());
    ticks.sum::<f64>() / 100.0
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
