//! The one helper of the core's tests: an engine whose sink keeps payloads and encoded events in
//! memory, a clock that the test sets, and short ways to give commands.

use windlass_record::bound::Bounds;
use windlass_record::codec::{Decoder, Payloads, VERSION, decode_event, encode_event};
use windlass_record::command::{
    ActivateJobs, Bytes, Command, CompleteJob, CreateJob, FailJob, JobOptions, Lease, QueueName,
};
use windlass_record::event::Event;
use windlass_record::id::{JobKey, PartitionId, Payload, PayloadHandle};
use windlass_record::rejection::Rejection;

use crate::{Answer, Context, Engine, Sink};

/// Payloads and the log of a test.
#[derive(Default)]
pub(crate) struct Shelf {
    payloads: Vec<Box<[u8]>>,
    /// Encoded events with the time of their record.
    pub(crate) log: Vec<(u64, Vec<u8>)>,
    pub(crate) now_ms: u64,
}

impl Payloads for Shelf {
    fn bytes(&self, payload: Payload) -> &[u8] {
        if payload.handle == PayloadHandle::EMPTY {
            return &[];
        }
        &self.payloads[payload.handle.0 as usize]
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        if bytes.is_empty() {
            return Payload::EMPTY;
        }
        self.payloads.push(bytes.into());
        Payload {
            handle: PayloadHandle(self.payloads.len() as u32 - 1),
            len: bytes.len() as u32,
        }
    }
}

impl Sink for Shelf {
    fn keep(&mut self, bytes: &Bytes) -> Payload {
        Payloads::keep(self, bytes)
    }

    fn record(&mut self, event: &Event<'_>) {
        let mut out = Vec::new();
        encode_event(event, self, &mut out);
        self.log.push((self.now_ms, out));
    }
}

/// An engine under test.
pub(crate) struct Check {
    pub(crate) engine: Engine,
    pub(crate) shelf: Shelf,
    pub(crate) now_ms: u64,
}

pub(crate) const START_MS: u64 = 1_800_000_000_000;

impl Check {
    pub(crate) fn new() -> Check {
        Check {
            engine: Engine::new(PartitionId::FIRST, Bounds::default()),
            shelf: Shelf::default(),
            now_ms: START_MS,
        }
    }

    pub(crate) fn context(&mut self) -> Context {
        self.shelf.now_ms = self.now_ms;
        Context { now_ms: self.now_ms, seed: 7 }
    }

    pub(crate) fn give(&mut self, command: Command) -> Result<Answer, Rejection> {
        let context = self.context();
        self.engine.decide(&command, context, &mut self.shelf)
    }

    /// Lets time pass and does all that is due on the way, at its time.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(due_ms) = self.engine.next_due_ms().filter(|&due_ms| due_ms <= end_ms) {
            self.now_ms = self.now_ms.max(due_ms);
            let context = self.context();
            self.engine.fire(context, 1000, &mut self.shelf);
        }
        self.now_ms = end_ms;
    }

    pub(crate) fn create(&mut self, command: CreateJob) -> JobKey {
        match self.give(Command::CreateJob(command)) {
            Ok(Answer::Created { key, .. }) => key,
            other => panic!("create: {other:?}"),
        }
    }

    /// Takes one job from a queue, with a token and a lease of a minute.
    pub(crate) fn take(&mut self, queue: &str) -> Option<JobKey> {
        self.take_many(&[queue], 1).first().copied()
    }

    pub(crate) fn take_many(&mut self, queues: &[&str], jobs_max: u32) -> Vec<JobKey> {
        let queues = queues
            .iter()
            .filter_map(|queue| self.engine.state().queue_named(&queue_name(queue)))
            .collect();
        let command = ActivateJobs {
            queues,
            worker: "w".into(),
            lease_ms: 60_000,
            jobs_max,
            bytes_max: u64::MAX,
            with_token: false,
        };
        match self.give(Command::ActivateJobs(command)) {
            Ok(Answer::Activated(handed)) => handed.iter().map(|handed| handed.key).collect(),
            other => panic!("activate: {other:?}"),
        }
    }

    pub(crate) fn complete(&mut self, key: JobKey) -> Result<Answer, Rejection> {
        self.give(Command::CompleteJob(CompleteJob {
            lease: Lease { key, activation: None },
            result: Bytes::default(),
            documents: Vec::new(),
        }))
    }

    pub(crate) fn fail(&mut self, key: JobKey) -> Result<Answer, Rejection> {
        self.give(Command::FailJob(FailJob {
            lease: Lease { key, activation: None },
            message: "it broke".into(),
            retries: None,
            backoff_ms: None,
            progressed: false,
            permanent: false,
        }))
    }

    /// The same history replayed into a new engine.
    pub(crate) fn replayed(&self) -> Engine {
        let mut engine = Engine::new(PartitionId::FIRST, Bounds::default());
        let mut shelf = Shelf::default();
        for (now_ms, bytes) in &self.shelf.log {
            let event = decode_event(&mut Decoder::new(bytes), &mut shelf).expect("own encoding");
            engine.replay(*now_ms, &event);
        }
        engine
    }
}

pub(crate) fn queue_name(queue: &str) -> QueueName {
    QueueName { tenant: "default".into(), queue: queue.into() }
}

/// A job of a group and priority, ready at once.
pub(crate) fn job(queue: &str, group: &str, priority: i32) -> CreateJob {
    CreateJob {
        queue: queue_name(queue),
        job_type: "".into(),
        group: group.into(),
        priority,
        retries: 3,
        due_ms: None,
        payload: Bytes::default(),
        options: None,
    }
}

/// The same with options.
pub(crate) fn job_with(queue: &str, group: &str, options: JobOptions) -> CreateJob {
    CreateJob { options: Some(Box::new(options)), ..job(queue, group, 0) }
}

/// The version byte is the frame's, not the event's.
const _: () = assert!(VERSION == 1);

#[test]
fn groups_take_turns() {
    let mut check = Check::new();
    let named: Vec<_> = ["a", "a", "a", "b", "c", "c"]
        .iter()
        .map(|group| (check.create(job("q", group, 0)), *group))
        .collect();
    let order: Vec<&str> = std::iter::from_fn(|| check.take("q"))
        .map(|key| named.iter().find(|(other, _)| *other == key).unwrap().1)
        .collect();
    assert_eq!(order, ["a", "b", "c", "a", "c", "a"]);
    let _ = check.replayed();
}
