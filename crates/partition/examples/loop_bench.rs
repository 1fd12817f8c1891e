//! Full job lives through the loop and a real log, without any network: what the faces can reach
//! at most. `cargo run --release -p windlass-partition --example loop_bench -- DIR`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use windlass_checkpoint::{LocalCheckpoint, LocalOptions};
use windlass_log::fs::OsFileSystem;
use windlass_log::{FileLog, FileLogOptions, LifeId, NewLog};
use windlass_partition::request::{
    Commands, HandedJob, Request, Stream, StreamSink, WaiterId, Wanted,
};
use windlass_partition::{Handle, Options, Partition};
use windlass_record::command::{Command, CompleteJob, CreateJob, Due, Lease, QueueName};
use windlass_record::id::JobKey;

const BATCH: usize = 64;
const IN_FLIGHT: u64 = 1_024;
const WORKERS: u64 = 4;

struct Worker {
    handle: Handle,
    id: WaiterId,
    completed: Arc<AtomicU64>,
    freed: mpsc::Sender<u64>,
}

impl StreamSink for Worker {
    fn deliver(&self, jobs: Vec<HandedJob>) -> Vec<HandedJob> {
        let count = jobs.len() as u64;
        let items = jobs
            .iter()
            .map(|job| {
                Command::CompleteJob(CompleteJob {
                    lease: Lease { key: job.key, activation: Some(job.activation) },
                    result: Arc::default(),
                    documents: Vec::new(),
                })
            })
            .collect();
        let (completed, freed) = (self.completed.clone(), self.freed.clone());
        let (handle, id) = (self.handle.clone(), self.id);
        let reply = Box::new(move |results: Vec<Result<_, _>>| {
            assert!(results.iter().all(Result::is_ok));
            completed.fetch_add(count, Ordering::Relaxed);
            let _ = handle.submit(Request::AddCredits(id, count as u32));
            let _ = freed.send(count);
        });
        let _ = self.handle.submit(Request::Commands(Commands { items, reply }));
        Vec::new()
    }

    fn stop(&self, _job: JobKey, _activation: u32) {}

    fn end(&self) {}
}

fn main() {
    let dir = std::env::args().nth(1).expect("a directory");
    let dir = std::path::Path::new(&dir).join(format!("loop-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let fs = Arc::new(OsFileSystem);
    let new = NewLog { life: LifeId::random(), partition: 1, first_lsn: 1 };
    let log =
        FileLog::create(fs, &dir.join("log"), &new, FileLogOptions::default()).expect("a log");
    let checkpoint =
        LocalCheckpoint::open(dir.join("checkpoint"), &LocalOptions::default()).expect("a store");
    let partition =
        Partition::open(Options::default(), Arc::new(log), Arc::new(checkpoint)).expect("opens");
    let handle = partition.handle();
    let queue = QueueName { tenant: "default".into(), queue: "q".into() };
    let completed = Arc::new(AtomicU64::new(0));
    let (freed_tx, freed) = mpsc::channel();
    for id in 0..WORKERS {
        let id = WaiterId(id);
        let sink = Worker {
            handle: handle.clone(),
            id,
            completed: completed.clone(),
            freed: freed_tx.clone(),
        };
        let wanted = Wanted {
            queues: vec![queue.clone()],
            worker: "w".into(),
            lease_ms: 60_000,
            with_token: true,
        };
        let credits = (IN_FLIGHT / WORKERS) as u32;
        let stream = Stream { id, wanted, credits, sink: Box::new(sink) };
        handle.submit(Request::OpenStream(stream)).expect("runs");
    }
    let payload: Arc<[u8]> = Arc::from([7u8; 200]);
    let started = Instant::now();
    let mut in_flight = 0;
    while started.elapsed() < Duration::from_secs(5) {
        while in_flight + BATCH as u64 <= IN_FLIGHT {
            let items = (0..BATCH)
                .map(|_| {
                    Command::CreateJob(CreateJob {
                        queue: queue.clone(),
                        job_type: "".into(),
                        group: "g".into(),
                        priority: 0,
                        retries: 3,
                        due: Due::Now,
                        payload: payload.clone(),
                        options: None,
                    })
                })
                .collect();
            let commands = Commands { items, reply: Box::new(|_| ()) };
            handle.submit(Request::Commands(commands)).expect("runs");
            in_flight += BATCH as u64;
        }
        in_flight -= freed.recv().expect("runs");
    }
    let lives = completed.load(Ordering::Relaxed);
    println!("{:.0} full job lives/s", lives as f64 / started.elapsed().as_secs_f64());
    partition.stop();
    let _ = std::fs::remove_dir_all(&dir);
}
