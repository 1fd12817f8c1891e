//! The one helper of the core's tests: an engine whose sink keeps payloads and encoded events in
//! memory, a clock that the test sets, and short ways to give commands.

use windlass_record::bound::Bounds;
use windlass_record::codec::{Payloads, encode_event};
use windlass_record::command::{
    ActivateJobs, Bytes, CancelJob, Command, CompleteJob, ConfigureLimit, ConfigureQueue,
    CreateJob, Due, FailJob, JobOptions, Lease, PauseQueue, QueueName, ReturnJob,
};
use windlass_record::event::{Event, Outcome};
use windlass_record::id::{JobKey, PartitionId, Payload, PayloadHandle, Token};
use windlass_record::policy::{LimitSettings, QueueSettings, RateWindow};
use windlass_record::rejection::Rejection;
use windlass_record::schedule::{DeleteSchedule, ScheduleCommand};

use crate::lifecycle::JobState;
use crate::state::job::Job;
use crate::{Answer, Context, Engine, HandedOut, Sink};

/// Payloads and the log of a test.
#[derive(Default)]
pub(crate) struct Shelf {
    /// `None` was freed: nobody may ask for it again.
    payloads: Vec<Option<Box<[u8]>>>,
    /// Encoded events with the time of their record.
    pub(crate) log: Vec<(u64, Vec<u8>)>,
    pub(crate) now_ms: u64,
}

impl Payloads for Shelf {
    fn bytes(&self, payload: Payload) -> &[u8] {
        if payload.handle == PayloadHandle::EMPTY {
            return &[];
        }
        self.payloads[payload.handle.0 as usize].as_ref().expect("a payload was freed too early")
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        if bytes.is_empty() {
            return Payload::EMPTY;
        }
        self.payloads.push(Some(bytes.into()));
        Payload { handle: PayloadHandle(self.payloads.len() as u32 - 1), len: bytes.len() as u32 }
    }
}

impl Shelf {
    pub(crate) fn free(&mut self, payload: Payload) {
        let freed = self.payloads[payload.handle.0 as usize].take();
        assert!(freed.is_some(), "a payload is freed once");
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
/// The lease of every hand-out of the helper.
pub(crate) const LEASE_MS: u64 = 60_000;

impl Check {
    pub(crate) fn new() -> Check {
        Check::with_bounds(Bounds::default())
    }

    pub(crate) fn with_bounds(bounds: Bounds) -> Check {
        Check {
            engine: Engine::new(PartitionId::FIRST, bounds),
            shelf: Shelf::default(),
            now_ms: START_MS,
        }
    }

    pub(crate) fn context(&mut self) -> Context {
        self.shelf.now_ms = self.now_ms;
        Context { now_ms: self.now_ms, seed: 7 }
    }

    /// Gives a command. A refused one must log nothing, and the invariants must hold after any.
    pub(crate) fn give(&mut self, command: Command) -> Result<Answer, Rejection> {
        let context = self.context();
        let logged = self.shelf.log.len();
        let answer = self.engine.decide(&command, context, &mut self.shelf);
        if answer.is_err() {
            assert_eq!(self.shelf.log.len(), logged, "{command:?} was refused and left a trace");
        }
        self.check_invariants();
        answer
    }

    pub(crate) fn check_invariants(&self) {
        if let Err(broken) = windlass_flow::invariant::check(self.engine.state().flow()) {
            panic!("{broken}");
        }
        if let Err(violation) = crate::invariant::check(self.engine.state()) {
            panic!("{violation}");
        }
    }

    /// Does what is due now.
    pub(crate) fn fire(&mut self) {
        let context = self.context();
        while self.engine.fire(context, 1000, &mut self.shelf) == 1000 {}
        self.check_invariants();
    }

    /// Lets time pass and does all that is due on the way, at its time.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end_ms = self.now_ms + ms;
        while let Some(due_ms) = self.engine.next_due_ms().filter(|&due_ms| due_ms <= end_ms) {
            self.now_ms = self.now_ms.max(due_ms);
            self.fire();
        }
        self.now_ms = end_ms;
    }

    /// The live job.
    pub(crate) fn job(&self, key: JobKey) -> &Job {
        let slot = self.engine.state().find(key).expect("the job lives");
        self.engine.state().job(slot)
    }

    pub(crate) fn state_of(&self, key: JobKey) -> Option<JobState> {
        self.engine.state().find(key).map(|slot| self.engine.state().job(slot).state)
    }

    /// How a job ended, since the effects were last taken.
    pub(crate) fn outcome(&mut self, key: JobKey) -> Option<Outcome> {
        let ended = &self.engine.effects().ended;
        ended.iter().find(|ended| ended.job.key == key).map(|ended| ended.outcome)
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
        self.hand_out(queues, jobs_max, false).iter().map(|handed| handed.key).collect()
    }

    /// Takes one job with a token.
    pub(crate) fn take_fenced(&mut self, queue: &str) -> Token {
        let handed = self.hand_out(&[queue], 1, true);
        let handed = handed.first().expect("a job was ready");
        Token { key: handed.key, activation: handed.activation }
    }

    pub(crate) fn hand_out(
        &mut self,
        queues: &[&str],
        jobs_max: u32,
        with_token: bool,
    ) -> Vec<HandedOut> {
        let queues = queues
            .iter()
            .filter_map(|queue| self.engine.state().queue_named(&queue_name(queue)))
            .collect();
        let command = ActivateJobs {
            queues,
            worker: "w".into(),
            lease_ms: LEASE_MS,
            jobs_max,
            bytes_max: u64::MAX,
            with_token,
        };
        match self.give(Command::ActivateJobs(command)) {
            Ok(Answer::Activated(handed)) => handed,
            other => panic!("activate: {other:?}"),
        }
    }

    /// Takes back a job that was never sent.
    pub(crate) fn take_back(&mut self, handed: &HandedOut) -> Result<Answer, Rejection> {
        self.give(Command::ReturnJob(ReturnJob {
            token: Token { key: handed.key, activation: handed.activation },
            turn: handed.turn,
            scheme_count: handed.scheme_count,
        }))
    }

    pub(crate) fn configure(&mut self, queue: &str, settings: QueueSettings) {
        let queue = queue_name(queue);
        let command = ConfigureQueue { queue, settings, seed_only: false };
        self.give(Command::ConfigureQueue(command)).expect("the settings are good");
    }

    pub(crate) fn limit(&mut self, name: &str, settings: LimitSettings) {
        let command = ConfigureLimit { tenant: "default".into(), name: name.into(), settings };
        self.give(Command::ConfigureLimit(command)).expect("the settings are good");
    }

    pub(crate) fn pause(&mut self, queue: &str, paused: bool) {
        let command = PauseQueue { queue: queue_name(queue), paused };
        self.give(Command::PauseQueue(command)).expect("the queue exists");
    }

    pub(crate) fn delete_schedules(&mut self) {
        let all = self.engine.state().schedules().by_key.values();
        let names: Vec<_> = all.map(|schedule| schedule.name.clone()).collect();
        for name in names {
            let command = DeleteSchedule { name, expected_version: None };
            let command = Command::Schedule(ScheduleCommand::Delete(command));
            self.give(command).expect("it is there");
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
        self.give(Command::FailJob(failure(key)))
    }

    pub(crate) fn cancel(&mut self, key: JobKey, force: bool) -> Result<Answer, Rejection> {
        self.give(Command::CancelJob(CancelJob {
            key,
            force,
            reason: "not wanted".into(),
            tenant: None,
        }))
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
        due: Due::Now,
        payload: Bytes::default(),
        options: None,
    }
}

/// The same with options.
pub(crate) fn job_with(queue: &str, group: &str, options: JobOptions) -> CreateJob {
    CreateJob { options: Some(Box::new(options)), ..job(queue, group, 0) }
}

/// A failure of the tokenless kind that says nothing special.
pub(crate) fn failure(key: JobKey) -> FailJob {
    FailJob {
        lease: Lease { key, activation: None },
        message: "it broke".into(),
        retries: None,
        backoff_ms: None,
        progressed: false,
        variables: Default::default(),
        kind: Default::default(),
    }
}

/// A limit of so many active jobs.
pub(crate) fn active_max(max: u32) -> LimitSettings {
    LimitSettings { active_max: Some(max), rate: None }
}

/// A limit of so many hand-outs in a window.
pub(crate) fn rate(max: u32, window_ms: u64) -> LimitSettings {
    LimitSettings { active_max: None, rate: Some(RateWindow { max, window_ms }) }
}
