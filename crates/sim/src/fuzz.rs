//! What is read from disks and streams, given arbitrary bytes: it answers with data or an error, and
//! never panics. Each target is a function of the bytes alone, called by the mutation runner
//! ([`run`]) on stable Rust and by `fuzz/` with libFuzzer.
//!
//! **Checkpoint images.** A store checks its own bytes and a restart compares the checksum of the
//! state, so images that nobody wrote are met only when both have failed. The engine still answers
//! with an error where an image alone shows that it is wrong; what only all of them together show
//! (two jobs with one unique key, say) is left to the checksum.
//!
//! **The API.** `grpc_messages` and `rest_bodies` take bytes as far as the commands they ask for; what
//! lies behind is the engine's, which refuses what it must not do.
//!
//! **Languages.** What people deploy: BPMN, DMN, FEEL; see [`language`].

pub mod language;

use std::collections::BTreeMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use windlass_checkpoint::backup::{restore_backup, verify_backup, write_backup};
use windlass_checkpoint::{Checkpoint, MemoryCheckpoint, View};
use windlass_engine::{Engine, State};
use windlass_log::file::{inspect, repair, verify};
use windlass_log::{FileLog, FileLogOptions, Housekeeping, LifeId, Log, NewLog, ReadFrom};
use windlass_record::bound::Bounds;
use windlass_record::codec::{Decoder, Payloads, decode_event, encode_event};
use windlass_record::id::{PartitionId, Payload, PayloadHandle};

use crate::disk::SimDisk;
use crate::engine_sim::plan::Plan;
use crate::engine_sim::{Remains, remains};
use crate::random::Random;

/// Small, so that a run of the target is quick.
const SEGMENT_BYTES: u64 = 8 * 4096;
/// Inputs are not made longer than this.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Something that reads.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Reads.
    pub read: fn(&[u8]),
    corpus: fn(&Remains) -> Vec<Vec<u8>>,
}

/// All that read.
pub const TARGETS: [Target; 9] = [
    Target { name: "log_reader", read: log_reader, corpus: |remains| remains.segments.clone() },
    Target {
        name: "record_decoder",
        read: record_decoder,
        corpus: |remains| remains.records.clone(),
    },
    Target { name: "checkpoint_images", read: checkpoint_images, corpus: pack_images },
    Target { name: "backup_reader", read: backup_reader, corpus: back_up },
    Target {
        name: "grpc_messages",
        read: windlass_api_native::grpc::read_any,
        corpus: grpc_corpus,
    },
    Target { name: "rest_bodies", read: windlass_api_native::rest::read_any, corpus: rest_corpus },
    Target { name: "bpmn_documents", read: language::bpmn_documents, corpus: language::processes },
    Target { name: "dmn_documents", read: language::dmn_documents, corpus: language::decisions },
    Target {
        name: "feel_expressions",
        read: language::feel_expressions,
        corpus: language::expressions,
    },
];

/// Messages with every part that has a shape of its own.
fn grpc_corpus(_: &Remains) -> Vec<Vec<u8>> {
    use windlass_api_native::v1;
    let retry = v1::retry_policy::Policy::Linear(v1::retry_policy::Linear {
        delay_ms: 1_000,
        scale: 2,
        cap_ms: u64::MAX,
        jitter_ms: 7,
    });
    let job = v1::NewJob {
        queue: "mail".to_owned(),
        group: "anna".to_owned(),
        priority: i32::MIN,
        retries: Some(3),
        delay_ms: 5,
        payload: "{}".into(),
        options: Some(Box::new(v1::JobOptions {
            unique_key: "once".to_owned(),
            retry: Some(v1::RetryPolicy { policy: Some(retry) }),
            exhausted: 1,
            waiting: Some(v1::Deadline { after_ms: 10, outcome: 2 }),
            cancel: 2,
            ..v1::JobOptions::default()
        })),
        ..v1::NewJob::default()
    };
    let fail = v1::Fail { message: "broken".to_owned(), retries: Some(-1), ..v1::Fail::default() };
    let result =
        v1::Result { key: u64::MAX, activation: 1, outcome: Some(v1::result::Outcome::Fail(fail)) };
    let heartbeats = vec![v1::Token { key: 1, activation: 1 }];
    let message = v1::WorkerMessage {
        credits: 7,
        results: vec![result],
        heartbeats,
        ..v1::WorkerMessage::default()
    };
    let jobs = v1::CreateJobsRequest { jobs: vec![job.clone(), job] };
    vec![jobs.encode_to_vec(), message.encode_to_vec()]
}

/// Bodies as people write them.
fn rest_corpus(_: &Remains) -> Vec<Vec<u8>> {
    let job = r#"{"queue": "mail", "group": "anna", "priority": -5, "retries": 2, "delay_ms": 10,
        "payload": {"to": ["a", 1, null, 1.5e300]}, "unique_key": "once",
        "retry": {"exponential": {"delay_ms": 1000, "base": 2}}, "total": {"after_ms": 5}}"#;
    vec![job.as_bytes().to_vec(), format!("{{\"jobs\": [{job}, {job}]}}").into_bytes()]
}

/// An input on which a target panicked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The target.
    pub target: &'static str,
    /// The seed of the run.
    pub seed: u64,
    /// Which input it was.
    pub iteration: u64,
    /// What the panic said.
    pub panic: String,
    /// The input.
    pub input: Vec<u8>,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} panicked on input {} of seed {} ({} bytes): {}\n\
             repeat it with: cargo xtask sim fuzz --target {} --seed {} --iteration {}",
            self.target,
            self.iteration,
            self.seed,
            self.input.len(),
            self.panic,
            self.target,
            self.seed,
            self.iteration
        )
    }
}

impl std::error::Error for Finding {}

/// A log whose active segment holds these bytes behind its header (when the first byte is odd), or
/// from its first byte on.
pub fn log_reader(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let dir = Path::new("/log");
    let options = FileLogOptions {
        segment_bytes: SEGMENT_BYTES,
        reserve_segments: 1,
        recycled_segments_max: 1,
        mark_batches: 1_000,
        housekeeping: Housekeeping::InLine,
    };
    let disk = SimDisk::new(1);
    let new = NewLog { life: LifeId::from_raw(7), partition: 1, first_lsn: 1 };
    let fs = Arc::new(disk.clone());
    drop(FileLog::create(fs.clone(), dir, &new, options).expect("the disk is empty"));
    let names = if first % 4 == 2 { "marks" } else { "segment" };
    let path = disk.paths().into_iter().find(|path| path.to_string_lossy().contains(names));
    let path = path.expect("a log has segments and marks");
    let mut content = disk.content(&path).expect("it was listed");
    let from = if first % 2 == 1 { 4096 } else { 0 };
    for (place, byte) in content.iter_mut().skip(from).zip(bytes) {
        *place = *byte;
    }
    disk.set_content(&path, content);

    // Whatever they say, they say it without a panic.
    let _ = verify(&disk, dir);
    let _ = inspect(&disk, dir, &mut |_| {});
    if read_all(&disk, dir, options).is_none() {
        let _ = repair(&disk, dir);
        let _ = read_all(&disk, dir, options);
    }
}

fn read_all(disk: &SimDisk, dir: &Path, options: FileLogOptions) -> Option<()> {
    let log = FileLog::open(Arc::new(disk.clone()), dir, 1, options).ok()?;
    let mut reader = log.read(&ReadFrom::lsn(log.status().first_lsn)).ok()?;
    while reader.next_entry().ok()?.is_some() {}
    Some(())
}

/// One record. What can be decoded can be encoded again and is then the same.
pub fn record_decoder(bytes: &[u8]) {
    let mut from = Decoder::new(bytes);
    if from.u8().is_err() || from.u64().is_err() {
        return;
    }
    let mut shelf = Shelf::default();
    while !from.is_empty() {
        let Ok(event) = decode_event(&mut from, &mut shelf) else { return };
        let mut encoded = Vec::new();
        encode_event(&event, &shelf, &mut encoded);
        assert_eq!(encode_again(&encoded).as_ref(), Some(&encoded), "{event:?} changes");
    }
}

fn encode_again(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut shelf = Shelf::default();
    let event = decode_event(&mut Decoder::new(encoded), &mut shelf).ok()?;
    let mut again = Vec::new();
    encode_event(&event, &shelf, &mut again);
    Some(again)
}

#[derive(Default)]
struct Shelf {
    kept: Vec<Vec<u8>>,
}

impl Payloads for Shelf {
    fn bytes(&self, payload: Payload) -> &[u8] {
        let place = usize::try_from(payload.handle.0).ok().and_then(|at| self.kept.get(at));
        place.map_or(&[], |bytes| bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        if bytes.is_empty() {
            return Payload::EMPTY;
        }
        let handle = u32::try_from(self.kept.len()).expect("an input is short");
        let len = u32::try_from(bytes.len()).expect("an input is short");
        self.kept.push(bytes.to_vec());
        Payload { handle: PayloadHandle(handle), len }
    }
}

/// The images of a checkpoint, one after the other: length of the key (1 byte), length of the value
/// (2 bytes), key, value. As a store does, it gives each key once and in order.
pub fn checkpoint_images(mut bytes: &[u8]) {
    let mut images = BTreeMap::new();
    loop {
        let mut lengths = [0; 3];
        if bytes.read_exact(&mut lengths).is_err() {
            break;
        }
        let [key_len, low, high] = lengths;
        let value_len = usize::from(u16::from_le_bytes([low, high]));
        let (key, rest) = bytes.split_at(usize::from(key_len).min(bytes.len()));
        let (value, rest) = rest.split_at(value_len.min(rest.len()));
        images.insert(key, value);
        bytes = rest;
    }
    let mut engine = Engine::new(PartitionId::FIRST, Bounds::default());
    let mut handles = 0;
    for tag in State::LOAD_ORDER {
        for (key, value) in images.iter().filter(|(key, _)| key.first() == Some(&tag)) {
            let loaded = engine.load(key, value, &mut |_, len| {
                handles += 1;
                Payload { handle: PayloadHandle(handles), len }
            });
            if loaded.is_err() {
                return;
            }
        }
    }
    engine.finish_load();
}

/// A backup.
pub fn backup_reader(bytes: &[u8]) {
    let verified = verify_backup(bytes, |_| {});
    let store = MemoryCheckpoint::new();
    let restored = restore_backup(bytes, &store, |_| {});
    assert_eq!(verified.is_ok(), restored.is_ok(), "a backup that verifies can be restored");
    assert_eq!(store.stamp().is_some(), restored.is_ok(), "all of it, or nothing");
}

fn pack_images(remains: &Remains) -> Vec<Vec<u8>> {
    let mut whole = Vec::new();
    let mut singles = Vec::new();
    for (key, value) in &remains.images {
        let lengths = (u8::try_from(key.len()), u16::try_from(value.len()));
        let (Ok(key_len), Ok(value_len)) = lengths else { continue };
        let mut packed = vec![key_len];
        packed.extend_from_slice(&value_len.to_le_bytes());
        packed.extend_from_slice(key);
        packed.extend_from_slice(value);
        if key.first() == Some(&b'q') {
            singles.push(packed.clone());
        }
        whole.extend_from_slice(&packed);
    }
    singles.push(whole);
    singles
}

fn back_up(remains: &Remains) -> Vec<Vec<u8>> {
    let mut output = Vec::new();
    match remains.store.snapshot() {
        Ok(view) if write_backup(&*view, &mut output, |_| {}).is_ok() => vec![output],
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// What real runs left behind, as inputs to begin with.
#[must_use]
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let mut inputs = vec![Vec::new()];
    for seed in 0..4 {
        if let Ok(remains) = remains(&Plan { steps: 60, ..Plan::small(seed, None) }) {
            inputs.extend((target.corpus)(&remains));
        }
    }
    inputs
}

/// Gives a target mutated inputs until the time is over, and returns how many they were.
pub fn run(target: &Target, seed: u64, at_most: Duration) -> Result<u64, Finding> {
    let corpus = corpus(target);
    let start = Instant::now();
    let mut iteration = 0;
    while start.elapsed() < at_most {
        try_one(target, &corpus, seed, iteration)?;
        iteration += 1;
    }
    Ok(iteration)
}

/// Gives a target one of its inputs.
pub fn repeat(target: &Target, seed: u64, iteration: u64) -> Result<(), Finding> {
    try_one(target, &corpus(target), seed, iteration)
}

fn try_one(target: &Target, corpus: &[Vec<u8>], seed: u64, iteration: u64) -> Result<(), Finding> {
    let mut random = Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(iteration));
    let input = mutate(&mut random, corpus);
    catch_unwind(AssertUnwindSafe(|| (target.read)(&input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Finding {
            target: target.name,
            seed,
            iteration,
            panic: text.unwrap_or_default(),
            input: input.clone(),
        }
    })
}

fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut input = random.pick(corpus).cloned().unwrap_or_default();
    for _ in 0..random.in_range(1..5) {
        let at = place(random, input.len());
        match random.in_range(0..8) {
            0 => change(&mut input, at, |byte| *byte ^= 1 << (at % 8)),
            1 => {
                let value = [0, 1, 0x7f, 0x80, 0xff].get(at % 5).copied().unwrap_or(0);
                change(&mut input, at, |byte| *byte = value);
            }
            2 => {
                let value = u8::try_from(random.in_range(0..256)).unwrap_or(0);
                change(&mut input, at, |byte| *byte = value);
            }
            3 => input.truncate(at),
            4 => {
                let to = (at + place(random, 16)).min(input.len());
                input.drain(at..to);
            }
            5 => {
                let len = random.in_range(1..12);
                let fresh: Vec<u8> =
                    (0..len).map(|_| u8::try_from(random.in_range(0..256)).unwrap_or(0)).collect();
                input.splice(at..at, fresh);
            }
            6 => {
                let to = (at + place(random, 64)).min(input.len());
                let again = input.get(at..to).unwrap_or_default().to_vec();
                input.splice(at..at, again);
            }
            _ => {
                let other = random.pick(corpus).cloned().unwrap_or_default();
                let from = place(random, other.len());
                input.truncate(at);
                input.extend_from_slice(other.get(from..).unwrap_or_default());
            }
        }
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

fn place(random: &mut Random, len: usize) -> usize {
    let below = u64::try_from(len).unwrap_or(0) + 1;
    usize::try_from(random.in_range(0..below)).unwrap_or(0)
}

fn change(input: &mut [u8], at: usize, change: impl FnOnce(&mut u8)) {
    if let Some(byte) = input.get_mut(at) {
        change(byte);
    }
}
