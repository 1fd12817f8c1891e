//! Feeds a history with records, as a partition would.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod workflow;

use std::path::Path;

use windlass_history::{History, Options, Origin};
use windlass_record::codec::{Decoder, Encoder, Payloads, VERSION, decode_event, encode_event};
use windlass_record::event::{Event, JobActivated, JobCreated, Outcome};
use windlass_record::flow::{
    DefinitionDeployed, DefinitionKind, ElementEntered, FlowEvent, InstanceStarted, JobRole, Key,
    NodeName,
};
use windlass_record::id::{JobKey, Payload, QueueId};
use windlass_record::policy::QueueSettings;

pub(crate) const LIFE: u64 = 77;

/// A history and the log that feeds it.
pub(crate) struct Feed {
    pub(crate) history: History,
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) given: usize,
}

struct NoBytes;

impl Payloads for NoBytes {
    fn bytes(&self, _payload: Payload) -> &[u8] {
        b"{}"
    }

    fn keep(&mut self, _bytes: &[u8]) -> Payload {
        Payload::EMPTY
    }
}

pub(crate) fn key(key: u64) -> Key {
    JobKey::from_raw(key)
}

pub(crate) fn flow(event: FlowEvent<'_>) -> Event<'_> {
    Event::Flow(event)
}

/// Whether a record is one of those that may be left out.
pub(crate) fn is_of_jobs_alone(record: &[u8]) -> bool {
    let mut from = Decoder::new(record);
    assert_eq!(from.u8().unwrap(), VERSION);
    from.u64().unwrap();
    let mut of_jobs = true;
    while !from.is_empty() {
        of_jobs &= decode_event(&mut from, &mut NoBytes).unwrap().is_of_job();
    }
    of_jobs
}

impl Feed {
    pub(crate) fn open(path: &Path, options: Options) -> Feed {
        let history = History::open(path, options).unwrap();
        let mut feed = Feed { history, records: Vec::new(), given: 0 };
        feed.begin();
        feed
    }

    /// The history comes up again over the same file, as after a crash.
    pub(crate) fn reopen(self, path: &Path, options: Options) -> Feed {
        drop(self.history);
        let history = History::open(path, options).unwrap();
        let mut feed = Feed { history, records: self.records, given: 0 };
        feed.begin();
        feed
    }

    fn begin(&mut self) {
        let durable_lsn = self.records.len() as u64;
        self.given = self.history.begin(&Origin { life: LIFE, durable_lsn }) as usize;
    }

    /// A record with these events, made at `now_ms`; durable, but not given yet.
    pub(crate) fn write(&mut self, now_ms: u64, events: &[Event<'_>]) {
        let mut bytes = vec![VERSION];
        Encoder::new(&mut bytes).u64(now_ms);
        for event in events {
            encode_event(event, &NoBytes, &mut bytes);
        }
        self.records.push(bytes);
    }

    /// Gives the next records, this many at most.
    pub(crate) fn give(&mut self, count: usize) {
        for _ in 0..count {
            let Some(record) = self.records.get(self.given) else { return };
            self.given += 1;
            self.history.take(self.given as u64, 0, record);
        }
    }

    /// Gives everything, and flushes.
    pub(crate) fn flush(&mut self) {
        self.give(usize::MAX);
        let covered = self.history.flush(self.given as u64);
        assert_eq!(covered, self.given as u64);
    }

    /// The same in one.
    pub(crate) fn record(&mut self, now_ms: u64, events: &[Event<'_>]) {
        self.write(now_ms, events);
        self.flush();
    }
}

pub(crate) const DEFINITION: u64 = 10;
pub(crate) const QUEUE: QueueId = QueueId(3);

/// A process `order` with a start (1), a task `pay` (2) and an end (3).
pub(crate) fn deployed() -> Vec<Event<'static>> {
    let node = |id: &'static str, name: &'static str, element_type: &'static str| NodeName {
        id: id.into(),
        name: name.into(),
        element_type: element_type.into(),
    };
    vec![
        Event::QueueCreated {
            queue: QUEUE,
            tenant: "<default>",
            name: "zeebe/pay",
            settings: QueueSettings::DEFAULT,
        },
        flow(FlowEvent::ResourceDeployed {
            key: key(9),
            tenant: "<default>",
            name: "order.bpmn",
            bytes: b"<xml/>",
        }),
        flow(FlowEvent::DefinitionDeployed(DefinitionDeployed {
            key: key(DEFINITION),
            deployment: key(8),
            resource: key(9),
            tenant: "<default>",
            kind: DefinitionKind::Process,
            id: "order",
            version: 1,
            version_tag: "v1",
            name: "Order",
            group: Key::NONE,
            nodes: vec![
                node("order", "Order", "PROCESS"),
                node("start", "", "START_EVENT"),
                node("pay", "Pay", "SERVICE_TASK"),
                node("end", "", "END_EVENT"),
            ]
            .into(),
        })),
    ]
}

pub(crate) fn started(instance: u64, business_id: &'static str) -> Event<'static> {
    flow(FlowEvent::InstanceStarted(InstanceStarted {
        key: key(instance),
        definition: key(DEFINITION),
        parent: Key::NONE,
        root: key(instance),
        starts: vec![1].into(),
        business_id,
        tags: vec!["red".into(), "big".into()].into(),
        awaited: false,
        started_by: "",
    }))
}

pub(crate) fn entered(element: u64, scope: u64, node: u32) -> Event<'static> {
    flow(FlowEvent::ElementEntered(ElementEntered {
        key: key(element),
        scope: key(scope),
        node,
        loop_counter: 0,
        begin_at: None,
    }))
}

pub(crate) fn completed(element: u64) -> Event<'static> {
    flow(FlowEvent::ElementCompleted { key: key(element) })
}

pub(crate) fn set(scope: u64, variables: &[(&'static str, &'static str)]) -> Event<'static> {
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    flow(FlowEvent::VariablesSet { scope: key(scope), variables: variables.into() })
}

pub(crate) fn created(job: u64) -> Event<'static> {
    Event::JobCreated(JobCreated {
        key: key(job),
        queue: QUEUE,
        job_type: "pay",
        group: "",
        priority: 5,
        retries: 3,
        due_ms: 0,
        payload: Payload::EMPTY,
        concurrency: None,
        rate: None,
        options: None,
    })
}

pub(crate) fn attached(element: u64, job: u64) -> Event<'static> {
    flow(FlowEvent::JobAttached { element: key(element), job: key(job), role: JobRole::Work })
}

pub(crate) fn activated(job: u64, deadline_ms: u64) -> Event<'static> {
    Event::JobActivated(JobActivated {
        key: key(job),
        activation: 1,
        deadline_ms,
        attempt_due_ms: 0,
        with_token: false,
        scheme_count: 0,
        worker: "ann",
    })
}

pub(crate) fn ended(job: u64, outcome: Outcome) -> Event<'static> {
    Event::JobEnded { key: key(job), outcome, result: Payload::EMPTY, message: "" }
}

/// An instance that begins and waits at its task: elements `instance + 1` and `+ 2`, job `+ 3`.
pub(crate) fn waiting(feed: &mut Feed, now_ms: u64, instance: u64) {
    feed.write(
        now_ms,
        &[started(instance, ""), set(instance, &[("amount", "17"), ("who", "\"bob\"")])],
    );
    let mut events = vec![entered(instance + 1, instance, 1), completed(instance + 1)];
    events.extend([entered(instance + 2, instance, 2), created(instance + 3)]);
    events.push(attached(instance + 2, instance + 3));
    feed.write(now_ms + 1, &events);
}

/// And ends.
pub(crate) fn done(feed: &mut Feed, now_ms: u64, instance: u64) {
    feed.write(now_ms, &[activated(instance + 3, now_ms + 1_000)]);
    let mut events = vec![ended(instance + 3, Outcome::Completed), completed(instance + 2)];
    events.extend([set(instance, &[("paid", "true")]), entered(instance + 4, instance, 3)]);
    events.extend([completed(instance + 4), completed(instance)]);
    feed.write(now_ms + 1, &events);
}
