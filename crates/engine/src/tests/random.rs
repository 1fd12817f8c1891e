//! Random histories: small worlds, so that everything meets everything.

use windlass_record::bound::Bounds;
use windlass_record::command::{
    ActivateJobs, AppendLog, Bytes, CancelJob, Command, CompleteJob, ConfigureLimit,
    ConfigureQueue, CreateJob, DocumentWrite, Due, ExtendLease, FailJob, FailureKind, JobOptions,
    Lease, PauseQueue, PutDocuments, ReleaseJob, ReportProgress, ResolveIncident, ReturnJob,
    ThrowError, UpdateJob,
};
use windlass_record::id::{JobKey, Token};
use windlass_record::policy::{
    CancelPolicy, DeadlineOutcome, Deadlines, Dialect, Exhausted, JobOrder, LimitSettings,
    PriorityRule, QueueSettings, RateWindow, RetryPolicy,
};
use windlass_record::schedule::{
    CatchUp, DeleteSchedule, JobTemplate, Overlap, PauseSchedule, PutPause, PutSchedule,
    ScheduleAction, ScheduleCommand, ScheduleName, ScheduleSettings, ScheduleTime, ScheduleTimes,
};

use crate::verb::check::{Check, queue_name};
use crate::{Answer, HandedOut};

/// xorshift64*, so that a seed is all there is to a history.
#[derive(Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

/// The seeds of a test: one from the environment, or a fixed set. Each failure prints the line
/// that repeats it.
pub(super) fn seeds(test: &str, count: u64, run: impl Fn(u64)) {
    let one = std::env::var("WINDLASS_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let many = std::env::var("WINDLASS_SEEDS").ok().map(|count| count.parse().expect("a number"));
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..many.unwrap_or(count),
    };
    for seed in seeds {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed)));
        if let Err(panic) = result {
            eprintln!("seed {seed} failed; repeat it with");
            eprintln!("  WINDLASS_SEED={seed} cargo test -p windlass-engine {test}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Bounds so small that histories run into them.
pub(super) fn small_bounds() -> Bounds {
    Bounds {
        live_jobs_max: 60,
        idle_groups_max: 3,
        request_ids_max: 5,
        log_lines_per_attempt_max: 3,
        documents_max: 3,
        limit_keys_max: 5,
        job_types_max: 2,
        message_bytes_max: 8,
        schedules_max: 2,
        schedule_queued_max: 2,
        schedule_catch_up_max: 3,
        schedule_late_ms_max: 10_000,
        ..Bounds::default()
    }
}

/// Makes commands about a world of few names.
pub(super) struct World {
    pub(super) random: Random,
    /// Hand-outs whose worker has not been heard of yet; some are stale.
    handed: Vec<HandedOut>,
    serial: u32,
}

const QUEUES: [&str; 3] = ["p", "q", "r"];
const KEYS: [&str; 4] = ["", "", "k1", "k2"];
const RATES: [&str; 4] = ["", "", "r1", "k1"];

impl World {
    pub(super) fn new(seed: u64) -> World {
        World { random: Random::new(seed), handed: Vec::new(), serial: 0 }
    }

    /// One step of a history: a command, or time.
    pub(super) fn step(&mut self, check: &mut Check) {
        match self.random.below(20) {
            0 | 1 => {
                let ms = *self.random.of(&[1, 5, 20, 100, 1000, 70_000]);
                check.pass(self.random.clone().below(ms));
                self.random.next();
            }
            // A shell that is late: time passes and commands come before the timers.
            2 => {
                let late_ms = *self.random.of(&[200, 200, 200, 150_000]);
                check.now_ms += self.random.below(late_ms);
            }
            3 => check.fire(),
            4 if self.random.one_in(5) => {
                let context = check.context();
                let to_ms = check.now_ms + self.random.below(20_000);
                check.engine.open(context, to_ms, &mut check.shelf);
            }
            4 if self.random.one_in(5) => {
                let context = check.context();
                let by_ms = self.random.below(20_000);
                check.engine.move_leases(context, by_ms, &mut check.shelf);
            }
            _ => self.command(check),
        }
    }

    fn command(&mut self, check: &mut Check) {
        let command = match self.random.below(43) {
            0..11 => Command::CreateJob(self.create(check)),
            11..19 => Command::ActivateJobs(self.activate(check)),
            19..24 => Command::CompleteJob(CompleteJob {
                lease: self.lease(check),
                result: self.bytes(),
                documents: self.documents(),
            }),
            24..28 => Command::FailJob(self.fail(check)),
            28 => Command::ThrowError(ThrowError {
                lease: self.lease(check),
                code: "E".into(),
                message: "thrown and caught by nobody".into(),
                variables: Default::default(),
            }),
            29 => Command::ReleaseJob(ReleaseJob {
                lease: self.lease(check),
                delay_ms: *self.random.of(&[0, 0, 10, 500]),
            }),
            30 => Command::CancelJob(CancelJob {
                key: self.key(check),
                force: self.random.one_in(3),
                reason: "unwanted".into(),
                tenant: None,
            }),
            31 => Command::ExtendLease(ExtendLease {
                lease: self.lease(check),
                lease_ms: 1 + self.random.below(1000),
            }),
            32 => Command::ReportProgress(ReportProgress {
                lease: self.lease(check),
                percent: self.random.below(120) as u8,
                note: "so far".into(),
                documents: self.documents(),
            }),
            33 => Command::AppendLog(AppendLog {
                lease: self.lease(check),
                lines: vec!["one".into(), "two".into()],
            }),
            34 => Command::UpdateJob(UpdateJob {
                key: self.key(check),
                activation: None,
                retries: self.random.one_in(2).then_some(2),
                priority: self.random.one_in(2).then(|| self.priority()),
                lease_ms: self.random.one_in(3).then_some(300),
                tenant: None,
            }),
            35 => Command::ResolveIncident(ResolveIncident {
                key: self.incident(check),
                retries: self.random.one_in(2).then_some(2),
                tenant: None,
            }),
            36 if self.random.one_in(3) => Command::ConfigureQueue(ConfigureQueue {
                queue: queue_name(self.queue()),
                settings: self.queue_settings(),
                seed_only: false,
            }),
            36 => Command::PauseQueue(PauseQueue {
                queue: queue_name(self.queue()),
                paused: self.random.one_in(3),
            }),
            37 => Command::ConfigureLimit(ConfigureLimit {
                tenant: "default".into(),
                name: (*self.random.of(&["k1", "k2", "r1"])).into(),
                settings: self.limit_settings(),
            }),
            38 => Command::PutDocuments(PutDocuments { documents: self.documents() }),
            39 => match self.handed.pop() {
                Some(handed) => Command::ReturnJob(ReturnJob {
                    token: Token { key: handed.key, activation: handed.activation },
                    turn: handed.turn,
                    scheme_count: handed.scheme_count,
                }),
                None => return,
            },
            _ => Command::Schedule(self.schedule(check)),
        };
        if let Ok(Answer::Activated(handed)) = check.give(command) {
            self.handed.extend(handed);
        }
    }

    fn create(&mut self, check: &Check) -> CreateJob {
        let queue = *self.random.of(&QUEUES);
        let random = &mut self.random;
        CreateJob {
            queue: queue_name(queue),
            job_type: (*random.of(&["", "", "t1", "t2", "t3"])).into(),
            group: (*random.of(&["", "a", "b", "c", "d", "e", "f"])).into(),
            priority: random.below(3) as i32,
            retries: random.below(3) as i32,
            due: match random.below(10) {
                0 => Due::At(check.now_ms + random.below(300)),
                1 => Due::After(random.below(300)),
                _ => Due::Now,
            },
            payload: self.bytes(),
            options: self.random.one_in(2).then(|| Box::new(self.options())),
        }
    }

    fn schedule(&mut self, check: &Check) -> ScheduleCommand {
        let name = ScheduleName {
            tenant: "default".into(),
            name: (*self.random.of(&["s1", "s2", "s3"])).into(),
        };
        let expected_version = self.random.one_in(5).then(|| self.random.below(3));
        match self.random.below(10) {
            0..4 => {
                let settings = self.schedule_settings(check);
                let reason = || Box::from("not now");
                let pause = match self.random.below(6) {
                    0 => PutPause::Paused(reason()),
                    1 => PutPause::Running,
                    _ => PutPause::AsItIs,
                };
                ScheduleCommand::Put(Box::new(PutSchedule {
                    name,
                    expected_version,
                    settings,
                    pause,
                }))
            }
            4 => ScheduleCommand::Delete(DeleteSchedule { name, expected_version }),
            5 => ScheduleCommand::Pause(PauseSchedule { name, reason: "enough".into() }),
            6 => ScheduleCommand::Resume(name),
            _ => ScheduleCommand::RunNow(name),
        }
    }

    fn schedule_settings(&mut self, check: &Check) -> ScheduleSettings {
        let job = self.create(check);
        let template = JobTemplate {
            queue: (*job.queue.queue).into(),
            job_type: job.job_type,
            group: job.group,
            priority: job.priority,
            retries: job.retries,
            payload: job.payload,
            options: job
                .options
                .map(|options| Box::new(JobOptions { request_id: "".into(), ..*options })),
        };
        let random = &mut self.random;
        let time = ScheduleTime {
            expression: (*random.of(&["0/20 * * * * *", "R/PT7S", "*:*:0/30", "hourly"])).into(),
            zone: (*random.of(&["", "Europe/Berlin"])).into(),
        };
        ScheduleSettings {
            owner: "native".into(),
            spec: "{}".into(),
            times: ScheduleTimes {
                expressions: vec![time],
                starts_ms: random.one_in(4).then(|| check.now_ms + 5_000),
                ends_ms: random.one_in(4).then(|| check.now_ms + 50_000),
            },
            overlap: *random.of(&[Overlap::Skip, Overlap::Queue, Overlap::Replace, Overlap::Allow]),
            catch_up: *random.of(&[CatchUp::None, CatchUp::One, CatchUp::All]),
            action: match random.one_in(8) {
                true => ScheduleAction::Workflow { request: "{}".into() },
                false => ScheduleAction::Job(Box::new(template)),
            },
        }
    }

    fn options(&mut self) -> JobOptions {
        let policy = *self.random.of(&[
            RetryPolicy::WorkerGiven,
            RetryPolicy::Fixed { delay_ms: 50, jitter_ms: 50 },
            RetryPolicy::docspell(30),
            RetryPolicy::AIRBYTE,
        ]);
        let outcomes = [
            DeadlineOutcome::Again,
            DeadlineOutcome::FailAttempt,
            DeadlineOutcome::End,
            DeadlineOutcome::Alert,
        ];
        let random = &mut self.random;
        let deadline = |random: &mut Random| {
            random.one_in(5).then(|| (1 + random.below(500), *random.of(&outcomes)))
        };
        JobOptions {
            headers: (*b"{}").into(),
            unique_key: (*random.of(&["", "", "", "u1", "u2", "u3"])).into(),
            unique_hold_ms: *random.of(&[0, 0, 100, 1000]),
            request_id: match random.below(4) {
                0..3 => format!("request {}", random.below(12)).into(),
                _ => "".into(),
            },
            concurrency_key: (*random.of(&KEYS)).into(),
            rate_key: (*random.of(&RATES)).into(),
            retry: policy,
            exhausted: *random.of(&[Exhausted::Incident, Exhausted::Fail]),
            deadlines: Deadlines {
                waiting: deadline(random),
                attempt: deadline(random),
                total: deadline(random),
                lease: *random.of(&outcomes),
            },
            cancel: *random.of(&[
                CancelPolicy::AtOnce,
                CancelPolicy::Cooperative,
                CancelPolicy::CooperativeCompletionCounts,
            ]),
            dialect: *random.of(&[Dialect::Native, Dialect::Native, Dialect::Conductor]),
        }
    }

    fn activate(&mut self, check: &Check) -> ActivateJobs {
        let queues = QUEUES
            .iter()
            .filter_map(|queue| check.engine.state().queue_named(&queue_name(queue)))
            .filter(|_| self.random.one_in(2))
            .collect();
        ActivateJobs {
            queues,
            worker: (*self.random.of(&["", "w1", "w2"])).into(),
            lease_ms: *self.random.of(&[20, 200, 1000]),
            jobs_max: 1 + self.random.below(5) as u32,
            bytes_max: u64::MAX,
            with_token: self.random.one_in(3),
        }
    }

    fn fail(&mut self, check: &Check) -> FailJob {
        FailJob {
            lease: self.lease(check),
            message: "grüße, it broke".into(),
            retries: self.random.one_in(3).then(|| self.random.below(3) as i32),
            backoff_ms: self.random.one_in(2).then(|| self.random.below(100)),
            progressed: self.random.one_in(2),
            variables: Default::default(),
            kind: FailureKind::of(self.random.one_in(10)),
        }
    }

    /// A live key mostly, of a job in work mostly.
    fn key(&mut self, check: &Check) -> JobKey {
        let mut keys: Vec<JobKey> =
            check.engine.state().jobs().iter().map(|(_, job)| job.key).collect();
        keys.sort_unstable();
        if keys.is_empty() || self.random.one_in(30) {
            return JobKey::from_raw(1);
        }
        *self.random.of(&keys)
    }

    fn lease(&mut self, check: &Check) -> Lease {
        if self.handed.is_empty() || self.random.one_in(6) {
            return Lease { key: self.key(check), activation: None };
        }
        let index = self.random.below(self.handed.len() as u64) as usize;
        let handed = match self.random.one_in(4) {
            true => self.handed[index],
            false => self.handed.swap_remove(index),
        };
        let tokened = match check.engine.state().find(handed.key) {
            Some(slot) => check.engine.state().job(slot).tokened(),
            None => false,
        };
        let activation = (tokened || self.random.one_in(4)).then_some(handed.activation);
        Lease { key: handed.key, activation }
    }

    fn incident(&mut self, check: &Check) -> JobKey {
        let mut keys: Vec<JobKey> = check.engine.state().incidents.keys().copied().collect();
        keys.sort_unstable();
        match keys.is_empty() {
            true => self.key(check),
            false => *self.random.of(&keys),
        }
    }

    fn queue(&mut self) -> &'static str {
        QUEUES[self.random.below(3) as usize]
    }

    fn priority(&mut self) -> i32 {
        self.random.below(3) as i32
    }

    fn queue_settings(&mut self) -> QueueSettings {
        let random = &mut self.random;
        QueueSettings {
            priority: *random.of(&[
                PriorityRule::Strict,
                PriorityRule::Scheme { high: 2, low: 1 },
                PriorityRule::Scheme { high: 1, low: 2 },
            ]),
            order: *random.of(&[JobOrder::Ready, JobOrder::Creation]),
            retries_first: random.one_in(2),
            aging_ms: *random.of(&[0, 0, 100]),
            key_active_max: *random.of(&[0, 2]),
            key_rate: *random.of(&[None, Some(RateWindow { max: 2, window_ms: 60 })]),
            ..QueueSettings::DEFAULT
        }
    }

    fn limit_settings(&mut self) -> LimitSettings {
        let random = &mut self.random;
        LimitSettings {
            active_max: *random.of(&[None, Some(1), Some(2), Some(3), Some(0)]),
            rate: *random.of(&[
                None,
                Some(RateWindow { max: 1, window_ms: 100 }),
                Some(RateWindow { max: 3, window_ms: 30 }),
            ]),
        }
    }

    fn documents(&mut self) -> Vec<DocumentWrite> {
        let mut writes = Vec::new();
        while self.random.one_in(3) {
            writes.push(DocumentWrite {
                tenant: "default".into(),
                kind: "state".into(),
                id: (*self.random.of(&["x", "y", "z", "zz"])).into(),
                expected_version: self.random.one_in(3).then(|| self.random.below(3)),
                bytes: (!self.random.one_in(3)).then(|| self.bytes()),
            });
        }
        writes
    }

    /// Bytes that differ each time, or none.
    fn bytes(&mut self) -> Bytes {
        if self.random.one_in(4) {
            return Bytes::default();
        }
        self.serial += 1;
        format!("bytes {}", self.serial).into_bytes().into()
    }
}
