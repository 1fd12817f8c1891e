//! How many transitions a second the state machine does: events applied and encoded, nothing else.
//!
//! `cargo run --release -p windlass-engine --example core_bench [live jobs] [seconds]` prints one
//! line of JSON. A million jobs wait in 10 queues of 100 groups and three priorities, with payloads
//! of 200 bytes that the sink keeps; each round creates, activates and completes 32 jobs. The rate is
//! given by the clock and, for machines that others use too, by the processor time that was had.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_engine::{Answer, Context, Engine, HandedOut, Sink};
use windlass_record::bound::Bounds;
use windlass_record::codec::{Payloads, encode_event};
use windlass_record::command::{
    ActivateJobs, Bytes, Command, CompleteJob, ConfigureQueue, CreateJob, Due, Lease, QueueName,
};
use windlass_record::event::Event;
use windlass_record::id::{PartitionId, Payload, PayloadHandle, QueueId};
use windlass_record::policy::QueueSettings;

const QUEUES: usize = 10;
const GROUPS: usize = 100;
const BATCH: usize = 32;
const PAYLOAD_BYTES: usize = 200;
const START_MS: u64 = 1_800_000_000_000;

/// Keeps payloads by handle and encodes events into a buffer that is thrown away when it is full.
#[derive(Default)]
struct Shelf {
    payloads: Vec<Bytes>,
    free: Vec<u32>,
    buffer: Vec<u8>,
    bytes: u64,
    events: u64,
}

impl Payloads for Shelf {
    fn bytes(&self, payload: Payload) -> &[u8] {
        let index = usize::try_from(payload.handle.0).expect("usize has at least 32 bits");
        self.payloads.get(index).map_or(&[], |bytes| bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        self.shelve(bytes.into())
    }
}

impl Shelf {
    fn shelve(&mut self, bytes: Bytes) -> Payload {
        let len = u32::try_from(bytes.len()).expect("payloads are bounded");
        let handle = match self.free.pop() {
            Some(handle) => {
                let index = usize::try_from(handle).expect("usize has at least 32 bits");
                *self.payloads.get_mut(index).expect("it was used before") = bytes;
                handle
            }
            None => {
                self.payloads.push(bytes);
                u32::try_from(self.payloads.len() - 1).expect("fewer than 2^32 payloads")
            }
        };
        Payload { handle: PayloadHandle(handle), len }
    }

    fn free(&mut self, payload: Payload) {
        let index = usize::try_from(payload.handle.0).expect("usize has at least 32 bits");
        if let Some(bytes) = self.payloads.get_mut(index) {
            *bytes = Bytes::default();
        }
        self.free.push(payload.handle.0);
    }
}

impl Sink for Shelf {
    fn keep(&mut self, bytes: &Bytes) -> Payload {
        self.shelve(bytes.clone())
    }

    fn record(&mut self, event: &Event<'_>) {
        if self.buffer.len() > 1 << 20 {
            self.bytes += self.buffer.len() as u64;
            self.buffer.clear();
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        encode_event(event, self, &mut buffer);
        self.buffer = buffer;
        self.events += 1;
    }
}

struct Bench {
    engine: Engine,
    shelf: Shelf,
    creates: Vec<Command>,
    activates: Vec<Command>,
    next_create: usize,
    next_queue: usize,
    now_ms: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut bench = Bench {
            engine: Engine::new(PartitionId::FIRST, Bounds::default()),
            shelf: Shelf::default(),
            creates: Vec::new(),
            activates: Vec::new(),
            next_create: 0,
            next_queue: 0,
            now_ms: START_MS,
        };
        let worker: Arc<str> = "bench-worker-1".into();
        let payload: Bytes = vec![b'x'; PAYLOAD_BYTES].into();
        for number in 0..QUEUES {
            let queue =
                QueueName { tenant: "default".into(), queue: format!("type-{number}").into() };
            let configure = Command::ConfigureQueue(ConfigureQueue {
                queue,
                settings: QueueSettings::DEFAULT,
                seed_only: false,
            });
            let Answer::Queue(id) = bench.give(&configure) else { panic!("configure") };
            bench.activates.push(activate(id, &worker));
        }
        // A prime number of commands with all mixes of queue, group and priority.
        for number in 0..30_011 {
            bench.creates.push(Command::CreateJob(CreateJob {
                queue: QueueName {
                    tenant: "default".into(),
                    queue: format!("type-{}", number % QUEUES).into(),
                },
                job_type: "".into(),
                group: format!("group-{}", number / QUEUES % GROUPS).into(),
                priority: i32::try_from(number / QUEUES / GROUPS % 3).expect("below three"),
                retries: 3,
                due: Due::Now,
                payload: payload.clone(),
                options: None,
            }));
        }
        bench
    }

    fn give(&mut self, command: &Command) -> Answer {
        let context = Context { now_ms: self.now_ms, seed: 1 };
        self.engine.decide(command, context, &mut self.shelf).expect("nothing is refused here")
    }

    fn create(&mut self) {
        let creates = std::mem::take(&mut self.creates);
        let command = creates.get(self.next_create % creates.len()).expect("there are many");
        self.next_create += 1;
        self.give(command);
        self.creates = creates;
    }

    fn activate(&mut self) -> Vec<HandedOut> {
        let activates = std::mem::take(&mut self.activates);
        let command = activates.get(self.next_queue % QUEUES).expect("one for each queue");
        self.next_queue += 1;
        let answer = self.give(command);
        self.activates = activates;
        let Answer::Activated(handed) = answer else { panic!("activate") };
        handed
    }

    /// Creates, activates and completes a batch; returns how many transitions that were.
    fn round(&mut self, held: &mut Vec<HandedOut>) -> u64 {
        for _ in 0..BATCH {
            self.create();
        }
        let handed = self.activate();
        let done = std::mem::replace(held, handed);
        for job in &done {
            self.give(&Command::CompleteJob(CompleteJob {
                lease: Lease { key: job.key, activation: Some(job.activation) },
                result: Bytes::default(),
                documents: Vec::new(),
            }));
        }
        let effects = self.engine.effects();
        for payload in effects.freed.drain(..) {
            self.shelf.free(payload);
        }
        effects.ended.clear();
        let mut served = Vec::new();
        self.engine.take_served(&mut served);
        u64::try_from(BATCH + held.len() + done.len()).expect("a few")
    }
}

fn activate(queue: QueueId, worker: &Arc<str>) -> Command {
    Command::ActivateJobs(ActivateJobs {
        queues: vec![queue],
        worker: worker.clone(),
        lease_ms: 60_000,
        jobs_max: u32::try_from(BATCH).expect("a few"),
        bytes_max: u64::MAX,
        with_token: true,
    })
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments.next().map_or(default, |text| text.parse().expect("a number was expected"))
    };
    let live = number(1_000_000);
    let seconds = number(5);
    let mut bench = Bench::new();
    let began = Instant::now();
    for _ in 0..live {
        bench.create();
    }
    let filled = began.elapsed();
    let mut held = Vec::new();
    let (mut samples, mut total) = (Vec::new(), 0u64);
    let cpu_began = cpu_seconds();
    for _ in 0..seconds.max(1) {
        let began = Instant::now();
        let mut transitions = 0;
        while began.elapsed() < Duration::from_secs(1) {
            for _ in 0..100 {
                transitions += bench.round(&mut held);
                bench.now_ms += 1;
            }
        }
        total += transitions;
        samples.push(transitions as f64 / began.elapsed().as_secs_f64());
    }
    let by_cpu = total as f64 / (cpu_seconds() - cpu_began);
    samples.sort_by(f64::total_cmp);
    let median = samples.get(samples.len() / 2).copied().unwrap_or_default();
    println!(
        "{{\"live_jobs\": {}, \"core_transitions_per_s\": {:.0}, \"per_cpu_s\": {by_cpu:.0}, \"creates_per_s\": {:.0}, \"bytes_per_event\": {:.0}}}",
        bench.engine.state().jobs().live(),
        median,
        live as f64 / filled.as_secs_f64(),
        bench.shelf.bytes as f64 / bench.shelf.events as f64,
    );
}

/// Processor time of this process so far, where Linux tells it; else time since the first call.
fn cpu_seconds() -> f64 {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let began = BEGAN.get_or_init(Instant::now);
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(|| began.elapsed().as_secs_f64(), |ns| ns / 1e9)
}
