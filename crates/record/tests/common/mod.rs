//! Every event, made from arbitrary numbers and texts.

use std::borrow::Cow;

use windlass_record::codec::Payloads;
use windlass_record::command::JobOptions;
use windlass_record::event::{
    DeadlineKind, Event, FailureCounts, IncidentKind, JobActivated, JobCreated, Outcome, ReadyCause,
};
use windlass_record::flow::FlowEvent;
use windlass_record::id::{JobKey, LimitId, Payload, PayloadHandle, QueueId};
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings,
    PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};
use windlass_record::schedule::{
    CatchUp, FireCause, FireOutcome, JobTemplate, Overlap, ScheduleAction, ScheduleEvent,
    ScheduleFired, ScheduleSettings, ScheduleTime, ScheduleTimes, SkipReason,
};

/// How many kinds of events there are; `kind_of` fails to compile when there is one more.
pub(crate) const KINDS: usize = 26;

/// The number of an event's kind.
pub(crate) fn kind_of(event: &Event<'_>) -> usize {
    match event {
        Event::PartitionOpened { .. } => 0,
        Event::LeasesMoved { .. } => 1,
        Event::QueueCreated { .. } => 2,
        Event::QueueConfigured { .. } => 3,
        Event::QueuePaused { .. } => 4,
        Event::LimitConfigured { .. } => 5,
        Event::RateFreed { .. } => 6,
        Event::JobCreated(_) => 7,
        Event::JobActivated(_) => 8,
        Event::JobReturned { .. } => 9,
        Event::LeaseExtended { .. } => 10,
        Event::JobProgressed { .. } => 11,
        Event::JobLogged { .. } => 12,
        Event::JobRetried { .. } => 13,
        Event::JobReadied { .. } => 14,
        Event::JobReleased { .. } => 15,
        Event::IncidentRaised { .. } => 16,
        Event::IncidentResolved { .. } => 17,
        Event::CancelAsked { .. } => 18,
        Event::JobUpdated { .. } => 19,
        Event::JobAlerted { .. } => 20,
        Event::JobEnded { .. } => 21,
        Event::DocumentPut { .. } => 22,
        Event::DocumentDeleted { .. } => 23,
        Event::Flow(_) => 24,
        Event::Schedule(_) => 25,
    }
}

/// Payloads in memory.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) payloads: Vec<Vec<u8>>,
}

impl Payloads for Shelf {
    fn bytes(&self, payload: Payload) -> &[u8] {
        self.payloads.get(payload.handle.0 as usize).map_or(&[], |bytes| bytes)
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        if bytes.is_empty() {
            return Payload::EMPTY;
        }
        self.payloads.push(bytes.to_vec());
        let handle = PayloadHandle(self.payloads.len() as u32 - 1);
        Payload { handle, len: bytes.len() as u32 }
    }
}

/// Numbers and texts that events are made of, used again from the start when they run out.
pub(crate) struct Source<'a> {
    numbers: &'a [u64],
    texts: &'a [String],
    next_number: usize,
    next_text: usize,
}

impl<'a> Source<'a> {
    pub(crate) fn new(numbers: &'a [u64], texts: &'a [String]) -> Source<'a> {
        Source { numbers, texts, next_number: 0, next_text: 0 }
    }

    fn u64(&mut self) -> u64 {
        self.next_number += 1;
        self.numbers[self.next_number % self.numbers.len()]
    }

    fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    fn i32(&mut self) -> i32 {
        self.u64() as i32
    }

    fn flag(&mut self) -> bool {
        self.u64().is_multiple_of(2)
    }

    fn text(&mut self) -> &'a str {
        self.next_text += 1;
        &self.texts[self.next_text % self.texts.len()]
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[(self.u64() % items.len() as u64) as usize]
    }

    fn some<T>(&mut self, value: T) -> Option<T> {
        self.flag().then_some(value)
    }

    fn key(&mut self) -> JobKey {
        JobKey::from_raw(self.u64())
    }

    fn rate(&mut self) -> Option<RateWindow> {
        let rate = RateWindow { max: self.u32(), window_ms: self.u64() };
        self.some(rate)
    }

    fn queue_settings(&mut self) -> QueueSettings {
        let scheme = PriorityRule::Scheme { high: self.u32(), low: self.u32() };
        QueueSettings {
            priority: self.of(&[PriorityRule::Strict, scheme]),
            order: self.of(&[JobOrder::Ready, JobOrder::Creation]),
            retries_first: self.flag(),
            aging_ms: self.u64(),
            one_type: self.flag(),
            key_active_max: self.u32(),
            key_rate: self.rate(),
            finished_max: self.u32(),
            finished_ms: self.u64(),
        }
    }

    fn failures(&mut self) -> FailureCounts {
        FailureCounts {
            complete_successive: self.u32(),
            complete_total: self.u32(),
            partial_successive: self.u32(),
            partial_total: self.u32(),
        }
    }

    fn retry(&mut self) -> RetryPolicy {
        let (delay_ms, jitter_ms, cap_ms) = (self.u64(), self.u64(), self.u64());
        let (scale, base, from_start) = (self.u32(), self.u32(), self.flag());
        let policies = [
            RetryPolicy::WorkerGiven,
            RetryPolicy::Fixed { delay_ms, jitter_ms },
            RetryPolicy::Linear { delay_ms, scale, cap_ms, jitter_ms },
            RetryPolicy::Exponential { delay_ms, base, cap_ms, jitter_ms, from_start },
            RetryPolicy::Attempts {
                complete_successive_max: self.u32(),
                complete_total_max: self.u32(),
                partial_successive_max: self.u32(),
                partial_total_max: self.u32(),
                delay_ms,
                base,
                cap_ms,
            },
        ];
        self.of(&policies)
    }

    fn deadline_outcome(&mut self) -> DeadlineOutcome {
        self.of(&[
            DeadlineOutcome::Again,
            DeadlineOutcome::FailAttempt,
            DeadlineOutcome::End,
            DeadlineOutcome::Alert,
        ])
    }

    fn deadline(&mut self) -> Option<(u64, DeadlineOutcome)> {
        let deadline = (self.u64(), self.deadline_outcome());
        self.some(deadline)
    }

    fn options(&mut self) -> JobOptions {
        JobOptions {
            headers: self.text().as_bytes().into(),
            unique_key: self.text().into(),
            unique_hold_ms: self.u64(),
            request_id: self.text().into(),
            concurrency_key: self.text().into(),
            rate_key: self.text().into(),
            retry: self.retry(),
            exhausted: self.of(&[Exhausted::Incident, Exhausted::Fail]),
            deadlines: Deadlines {
                lease: self.deadline_outcome(),
                waiting: self.deadline(),
                attempt: self.deadline(),
                total: self.deadline(),
            },
            cancel: self.of(&[
                CancelPolicy::AtOnce,
                CancelPolicy::Cooperative,
                CancelPolicy::CooperativeCompletionCounts,
            ]),
            dialect: self.of(&[
                Dialect::Native,
                Dialect::Zeebe,
                Dialect::Conductor,
                Dialect::Airbyte,
            ]),
        }
    }

    fn created(&mut self, shelf: &mut Shelf) -> JobCreated<'a> {
        let mut created = JobCreated {
            key: self.key(),
            queue: QueueId(self.u32()),
            job_type: self.text(),
            group: self.text(),
            priority: self.i32(),
            retries: self.i32(),
            due_ms: self.u64(),
            payload: shelf.keep(self.text().as_bytes()),
            concurrency: None,
            rate: None,
            options: None,
        };
        // Limit keys come with options only.
        if self.flag() {
            let (concurrency, rate) = (LimitId(self.u32() / 2), LimitId(self.u32() / 2));
            created.concurrency = self.some(concurrency);
            created.rate = self.some(rate);
            created.options = Some(Cow::Owned(self.options()));
        }
        created
    }

    fn schedule_settings(&mut self) -> ScheduleSettings {
        let template = JobTemplate {
            queue: self.text().into(),
            job_type: self.text().into(),
            group: self.text().into(),
            priority: self.i32(),
            retries: self.i32(),
            payload: self.text().as_bytes().into(),
            options: self.flag().then(|| Box::new(self.options())),
        };
        let time = ScheduleTime { expression: self.text().into(), zone: self.text().into() };
        let (starts_ms, ends_ms) = (self.u64(), self.u64());
        ScheduleSettings {
            owner: self.text().into(),
            spec: self.text().into(),
            times: ScheduleTimes {
                expressions: vec![time; (self.u64() % 3) as usize],
                starts_ms: self.some(starts_ms),
                ends_ms: self.some(ends_ms),
            },
            overlap: self.of(&[Overlap::Skip, Overlap::Queue, Overlap::Replace, Overlap::Allow]),
            catch_up: self.of(&[CatchUp::None, CatchUp::One, CatchUp::All]),
            action: match self.flag() {
                true => ScheduleAction::Job(Box::new(template)),
                false => ScheduleAction::Workflow { request: self.text().into() },
            },
        }
    }

    fn schedule(&mut self) -> ScheduleEvent<'a> {
        let (schedule, due_ms, reason) = (self.key(), self.u64(), self.text());
        match self.u64() % 5 {
            0 => ScheduleEvent::Set {
                schedule,
                tenant: self.text(),
                name: self.text(),
                version: self.u64(),
                settings: Cow::Owned(self.schedule_settings()),
                paused: self.some(reason),
                next_due_ms: self.some(due_ms),
            },
            1 => ScheduleEvent::Deleted { schedule },
            2 => ScheduleEvent::Paused { schedule, reason },
            3 => ScheduleEvent::Resumed { schedule, next_due_ms: self.some(due_ms) },
            _ => {
                let (run, alone, count) = (self.key(), self.flag(), self.u32());
                let reasons = [SkipReason::Running, SkipReason::QueueFull, SkipReason::Missed];
                let why = self.of(&reasons);
                ScheduleEvent::Fired(ScheduleFired {
                    schedule,
                    scheduled_for_ms: self.u64(),
                    cause: self.of(&[FireCause::Due, FireCause::Asked, FireCause::Queued]),
                    outcome: self.of(&[
                        FireOutcome::Started { run },
                        FireOutcome::Queued { alone },
                        FireOutcome::Skipped { why, count },
                        FireOutcome::Failed { message: reason },
                    ]),
                    next_due_ms: self.some(due_ms),
                    caught_up: self.u32(),
                })
            }
        }
    }

    /// An event of this kind.
    pub(crate) fn event(&mut self, kind: usize, shelf: &mut Shelf) -> Event<'a> {
        match kind {
            0 => Event::PartitionOpened { leases_to_ms: self.u64() },
            1 => Event::LeasesMoved { by_ms: self.u64() },
            2 => Event::QueueCreated {
                queue: QueueId(self.u32()),
                tenant: self.text(),
                name: self.text(),
                settings: self.queue_settings(),
            },
            3 => Event::QueueConfigured {
                queue: QueueId(self.u32()),
                settings: self.queue_settings(),
            },
            4 => Event::QueuePaused { queue: QueueId(self.u32()), paused: self.flag() },
            5 => {
                let active_max = self.u32();
                Event::LimitConfigured {
                    limit: LimitId(self.u32()),
                    tenant: self.text(),
                    name: self.text(),
                    settings: LimitSettings {
                        active_max: self.some(active_max),
                        rate: self.rate(),
                    },
                    implied: self.flag(),
                }
            }
            6 => Event::RateFreed { limit: LimitId(self.u32()) },
            7 => Event::JobCreated(self.created(shelf)),
            8 => Event::JobActivated(JobActivated {
                key: self.key(),
                activation: self.u32(),
                deadline_ms: self.u64(),
                attempt_due_ms: self.u64(),
                with_token: self.flag(),
                scheme_count: self.u32(),
                worker: self.text(),
            }),
            9 => Event::JobReturned { key: self.key(), turn: self.u64(), scheme_count: self.u32() },
            10 => Event::LeaseExtended { key: self.key(), deadline_ms: self.u64() },
            11 => Event::JobProgressed {
                key: self.key(),
                percent: self.u64() as u8,
                note: self.text(),
            },
            12 => {
                let count = self.u64() % 5;
                let lines = (0..count).map(|_| Cow::Borrowed(self.text())).collect();
                let lines = Cow::Owned(lines);
                Event::JobLogged { key: self.key(), lines, dropped: self.u32() }
            }
            13 => Event::JobRetried {
                key: self.key(),
                due_ms: self.u64(),
                retries: self.i32(),
                attempt: self.u32(),
                failures: self.failures(),
                message: self.text(),
            },
            14 => Event::JobReadied {
                key: self.key(),
                cause: self.of(&[
                    ReadyCause::Due,
                    ReadyCause::BackoffEnded,
                    ReadyCause::LeaseEnded,
                ]),
            },
            15 => Event::JobReleased { key: self.key(), due_ms: self.u64() },
            16 => Event::IncidentRaised {
                key: self.key(),
                incident: self.key(),
                kind: self.of(&[
                    IncidentKind::NoRetries,
                    IncidentKind::ErrorNotCaught,
                    IncidentKind::Permanent,
                    IncidentKind::TooLarge,
                ]),
                retries: self.i32(),
                failures: self.failures(),
                code: self.text(),
                message: self.text(),
            },
            17 => Event::IncidentResolved {
                key: self.key(),
                retries: self.i32(),
                attempt: self.u32(),
            },
            18 => Event::CancelAsked { key: self.key(), reason: self.text() },
            19 => {
                let deadline_ms = self.u64();
                Event::JobUpdated {
                    key: self.key(),
                    retries: self.i32(),
                    priority: self.i32(),
                    deadline_ms: self.some(deadline_ms),
                }
            }
            20 => Event::JobAlerted {
                key: self.key(),
                deadline: self.of(&[
                    DeadlineKind::Lease,
                    DeadlineKind::Waiting,
                    DeadlineKind::Attempt,
                    DeadlineKind::Total,
                ]),
            },
            21 => Event::JobEnded {
                key: self.key(),
                outcome: self.of(&[
                    Outcome::Completed,
                    Outcome::CompletedWithErrors,
                    Outcome::Failed,
                    Outcome::FailedForGood,
                    Outcome::TimedOut,
                    Outcome::Cancelled,
                    Outcome::Skipped,
                ]),
                result: shelf.keep(self.text().as_bytes()),
                message: self.text(),
            },
            22 => Event::DocumentPut {
                tenant: self.text(),
                kind: self.text(),
                id: self.text(),
                version: self.u64(),
                bytes: shelf.keep(self.text().as_bytes()),
            },
            23 => {
                Event::DocumentDeleted { tenant: self.text(), kind: self.text(), id: self.text() }
            }
            24 => Event::Flow(FlowEvent::TimerArmed {
                key: JobKey::from_raw(self.u64()),
                owner: JobKey::from_raw(self.u64()),
                node: self.u32(),
                due_ms: self.u64(),
                repetitions: Some(self.u32()),
            }),
            25 => Event::Schedule(self.schedule()),
            _ => unreachable!("there are {KINDS} kinds"),
        }
    }
}
