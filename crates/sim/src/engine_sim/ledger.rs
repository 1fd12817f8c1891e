//! What the log says, kept apart from the engine: a model of jobs, queues, keys and documents that
//! is made from durable records alone, and objects to whatever must not happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_engine::State;
use windlass_engine::lifecycle::{JobState, Transition, Verb, transition};
use windlass_record::command::JobOptions;
use windlass_record::event::{
    DeadlineKind, Event, IncidentKind, JobActivated, JobCreated, Outcome, ReadyCause,
};
use windlass_record::id::{JobKey, LimitId};
use windlass_record::policy::{DeadlineOutcome, LimitSettings, QueueSettings};

use super::coverage::Coverage;
use super::flows::FlowLedger;

/// Slewing makes engine time at most a tenth faster than the monotonic clock.
const SLEW_PERCENT: u64 = 10;

/// Request ids that are remembered whatever their number; the simulated partition has a low bound.
const REQUESTS_SURELY_KEPT: usize = 30;
/// How long a request id is remembered.
const REQUEST_ID_MS: u64 = 10 * 60 * 1000;

/// A version of a document and its bytes.
pub type Version = (u64, Arc<[u8]>);

/// A document's name.
pub type DocumentKey = (String, String, String);

/// What the log says.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Live jobs.
    pub jobs: BTreeMap<JobKey, LedgerJob>,
    /// Jobs at rest.
    pub ended: BTreeMap<JobKey, LedgerEnd>,
    /// Queues in order of their ids: tenant, name, whether they are paused.
    pub queues: Vec<(String, String, bool)>,
    /// Documents with version and bytes.
    pub documents: BTreeMap<DocumentKey, Version>,
    /// All versions that a document ever had.
    pub versions: BTreeMap<DocumentKey, Vec<Version>>,
    /// Processes.
    pub flows: FlowLedger,
    /// Hand-outs that nobody has seen and that were given back.
    pub returning: BTreeSet<(JobKey, u32)>,
    /// Until when a unique key is held after its job: queue and key.
    holds: BTreeMap<(u32, String), u64>,
    /// Request ids in the order of their jobs, with their time.
    requests: Vec<(String, u64)>,
    /// Queues that once kept fewer finished jobs than they do by default.
    forgetful: BTreeSet<u32>,
    /// The time of the newest record.
    last_ms: u64,
    limits: BTreeMap<LimitId, LedgerLimit>,
    /// When a round with this time was on the monotonic clock, and in which life of the process.
    moments: BTreeMap<u64, (u64, u64)>,
}

/// A live job.
#[derive(Debug, Clone)]
pub struct LedgerJob {
    /// Where it is in its life.
    pub state: JobState,
    /// Its queue, by number.
    pub queue: u32,
    /// The bytes it was created with.
    pub payload: Arc<[u8]>,
    /// How often it was handed out.
    pub activation: u32,
    /// The attempt.
    pub attempt: u32,
    /// Retries left.
    pub retries: i32,
    /// Its priority.
    pub priority: i32,
    /// As `Job::due_ms`.
    pub due_ms: u64,
    /// Whether its worker was asked to stop.
    pub cancel_asked: bool,
    /// Whether a token for it is out, and whether only since the newest hand-out.
    fenced: (bool, bool),
    /// What few jobs have.
    pub options: Option<JobOptions>,
    /// The incident it waits in.
    pub incident: Option<JobKey>,
    concurrency: Option<LimitId>,
    rate: Option<LimitId>,
    created_ms: u64,
    handed_ms: u64,
    /// When the lease was set, and for how long.
    lease: (u64, u64),
}

/// A job at rest.
#[derive(Debug, Clone)]
pub struct LedgerEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// The result.
    pub result: Arc<[u8]>,
    /// Its last activation.
    pub activation: u32,
    /// The bytes it was created with.
    pub payload: Arc<[u8]>,
    /// Its request id.
    pub request_id: String,
    /// Its queue, by number.
    pub queue: u32,
    /// When it ended.
    pub ended_ms: u64,
}

impl LedgerEnd {
    /// The state at rest that the outcome belongs to.
    #[must_use]
    pub fn state(&self) -> JobState {
        state_of(self.outcome)
    }
}

#[derive(Debug, Default)]
struct LedgerLimit {
    settings: LimitSettings,
    /// Hand-outs since the settings were made.
    handed_ms: Vec<u64>,
}

impl Ledger {
    /// A round begins.
    pub fn moment(&mut self, now_ms: u64, monotonic_us: u64, life: u64) {
        self.moments.entry(now_ms).or_insert((monotonic_us, life));
    }

    /// Takes in an event. `bytes` are those of its payload.
    pub fn apply(
        &mut self,
        now_ms: u64,
        event: &Event<'_>,
        bytes: &Arc<[u8]>,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        self.last_ms = now_ms;
        let object = |what: String| Err(format!("at {now_ms}: {what}: {event:?}"));
        match self.follow(now_ms, event, bytes) {
            Err(what) => object(what),
            Ok(None) => Ok(()),
            Ok(Some((from, verb, to))) => {
                coverage.arrow(from, verb, to);
                let targets = match transition(from, verb) {
                    Transition::To(targets) | Transition::WithoutLease(targets) => targets,
                    Transition::WrongState | Transition::NotFound => &[],
                };
                if targets.contains(&to) {
                    return Ok(());
                }
                let (from, verb, to) = (from.name(), verb.name(), to.name());
                object(format!("{from} --{verb}--> {to} is not in the table"))
            }
        }
    }

    fn follow(
        &mut self,
        now_ms: u64,
        event: &Event<'_>,
        bytes: &Arc<[u8]>,
    ) -> Result<Option<Arrow>, String> {
        Ok(match event {
            Event::PartitionOpened { leases_to_ms } => {
                for job in self.jobs.values_mut().filter(|job| job.state == JobState::Active) {
                    job.due_ms = job.due_ms.max(*leases_to_ms);
                }
                None
            }
            Event::LeasesMoved { by_ms } => {
                for job in self.jobs.values_mut().filter(|job| job.state == JobState::Active) {
                    job.due_ms += by_ms;
                }
                None
            }
            Event::QueueCreated { queue, tenant, name, settings } => {
                self.note_settings(queue.0, settings);
                let id = usize::try_from(queue.0).map_err(|error| error.to_string())?;
                expect(id == self.queues.len(), "queue ids are not dense")?;
                let twice = self.queues.iter().any(|(t, n, _)| t == tenant && n == name);
                expect(!twice, "a queue is made twice")?;
                self.queues.push(((*tenant).to_owned(), (*name).to_owned(), false));
                None
            }
            Event::QueueConfigured { queue, settings } => {
                self.note_settings(queue.0, settings);
                None
            }
            Event::RateFreed { .. } => None,
            Event::QueuePaused { queue, paused } => {
                self.queue(queue.0)?.2 = *paused;
                None
            }
            Event::LimitConfigured { limit, settings, .. } => {
                let handed_ms = Vec::new();
                self.limits.insert(*limit, LedgerLimit { settings: *settings, handed_ms });
                None
            }
            Event::JobCreated(created) => {
                self.created(now_ms, created, bytes)?;
                None
            }
            Event::JobActivated(activated) => Some(self.activated(now_ms, activated)?),
            Event::JobReturned { key, .. } => {
                let job = self.live(*key)?;
                let (from, rate, handed_ms) = (job.state, job.rate, job.handed_ms);
                job.unsent(now_ms);
                if let Some(limit) = rate.and_then(|rate| self.limits.get_mut(&rate))
                    && let Some(at) = limit.handed_ms.iter().position(|at| *at == handed_ms)
                {
                    limit.handed_ms.remove(at);
                }
                Some((from, Verb::Return, JobState::Ready))
            }
            Event::LeaseExtended { key, deadline_ms } => {
                let job = self.live(*key)?;
                job.due_ms = *deadline_ms;
                job.lease = (now_ms, deadline_ms.saturating_sub(now_ms));
                Some((job.state, Verb::ExtendLease, job.state))
            }
            Event::JobProgressed { key, .. } | Event::JobLogged { key, .. } => {
                let job = self.live(*key)?;
                Some((job.state, Verb::Report, job.state))
            }
            Event::JobRetried { key, due_ms, retries, attempt, message, .. } => {
                let verb = failed_by(message);
                self.lease_over(*key, verb, now_ms)?;
                let job = self.live(*key)?;
                expect(*attempt == job.attempt + 1, "the attempt is not the next one")?;
                expect(*due_ms == 0 || *due_ms > now_ms, "the next attempt is due in the past")?;
                let from = job.state;
                (job.attempt, job.retries) = (*attempt, *retries);
                job.wait_or_ready(*due_ms, JobState::Backoff, now_ms);
                Some((from, verb, job.state))
            }
            Event::JobReadied { key, cause } => {
                let verb = match cause {
                    ReadyCause::Due | ReadyCause::BackoffEnded => Verb::Due,
                    ReadyCause::LeaseEnded => Verb::LeaseEnds,
                };
                self.lease_over(*key, verb, now_ms)?;
                let job = self.live(*key)?;
                expect(job.due_ms <= now_ms, "a timer is early")?;
                let from = job.state;
                job.wait_or_ready(0, JobState::Ready, now_ms);
                Some((from, verb, JobState::Ready))
            }
            Event::JobReleased { key, due_ms } => {
                let job = self.live(*key)?;
                let from = job.state;
                job.wait_or_ready(*due_ms, JobState::Scheduled, now_ms);
                Some((from, Verb::Release, job.state))
            }
            Event::IncidentRaised { key, incident, kind, retries, message, .. } => {
                let verb = raised_by(*kind, message);
                self.flows.new_key(*incident)?;
                self.lease_over(*key, verb, now_ms)?;
                let job = self.live(*key)?;
                let from = job.state;
                job.state = JobState::Incident;
                job.retries = *retries;
                job.incident = Some(*incident);
                Some((from, verb, JobState::Incident))
            }
            Event::IncidentResolved { key, retries, attempt } => {
                let job = self.live(*key)?;
                expect(*attempt == job.attempt + 1, "the attempt is not the next one")?;
                let from = job.state;
                (job.attempt, job.retries, job.incident) = (*attempt, *retries, None);
                job.wait_or_ready(0, JobState::Ready, now_ms);
                Some((from, Verb::Resolve, JobState::Ready))
            }
            Event::CancelAsked { key, .. } => {
                let job = self.live(*key)?;
                expect(!job.cancel_asked, "cancel was asked before")?;
                job.cancel_asked = true;
                Some((job.state, Verb::Cancel, job.state))
            }
            Event::JobUpdated { key, retries, priority, deadline_ms } => {
                let job = self.live(*key)?;
                (job.retries, job.priority) = (*retries, *priority);
                if let Some(deadline_ms) = deadline_ms {
                    job.due_ms = *deadline_ms;
                    job.lease = (now_ms, deadline_ms.saturating_sub(now_ms));
                }
                Some((job.state, Verb::Update, job.state))
            }
            Event::JobAlerted { key, deadline } => {
                let verb = match deadline {
                    DeadlineKind::Lease => Verb::LeaseEnds,
                    DeadlineKind::Waiting => Verb::WaitingEnds,
                    DeadlineKind::Attempt => Verb::AttemptEnds,
                    DeadlineKind::Total => Verb::TotalEnds,
                };
                self.lease_over(*key, verb, now_ms)?;
                let job = self.live(*key)?;
                Some((job.state, verb, job.state))
            }
            Event::JobEnded { key, outcome, message, .. } => {
                let returned = self
                    .jobs
                    .get(key)
                    .is_some_and(|job| self.returning.contains(&(*key, job.activation)));
                let said = ended_by(*outcome, message, bytes);
                let verb = if said == Verb::Release && returned { Verb::Return } else { said };
                self.lease_over(*key, verb, now_ms)?;
                let job = self.jobs.remove(key).ok_or("the job is not live")?;
                let total = job.options.as_ref().and_then(|options| options.deadlines.total);
                if let (Verb::TotalEnds, Some((after_ms, _))) = (verb, total) {
                    expect(job.created_ms + after_ms <= now_ms, "the total deadline is early")?;
                }
                let (queue, ended_ms) = (job.queue, now_ms);
                if let Some(options) = &job.options {
                    let hold = (queue, options.unique_key.to_string());
                    self.holds.insert(hold, now_ms + options.unique_hold_ms);
                }
                let request_id = job.options.map_or(String::new(), |o| o.request_id.into());
                let end = LedgerEnd {
                    outcome: *outcome,
                    result: bytes.clone(),
                    activation: job.activation,
                    payload: job.payload,
                    request_id,
                    queue,
                    ended_ms,
                };
                let to = end.state();
                self.ended.insert(*key, end);
                Some((job.state, verb, to))
            }
            Event::DocumentPut { tenant, kind, id, version, .. } => {
                let name = document_key(tenant, kind, id);
                let before = self.documents.get(&name).map_or(0, |(version, _)| *version);
                expect(*version == before + 1, "the version is not the next one")?;
                self.versions.entry(name.clone()).or_default().push((*version, bytes.clone()));
                self.documents.insert(name, (*version, bytes.clone()));
                None
            }
            // Schedules are compared by their images.
            Event::Schedule(_) => None,
            Event::Flow(event) => {
                self.flows.apply(now_ms, event, &self.ended)?;
                None
            }
            Event::DocumentDeleted { tenant, kind, id } => {
                let gone = self.documents.remove(&document_key(tenant, kind, id));
                expect(gone.is_some(), "the document does not exist")?;
                None
            }
        })
    }

    fn created(
        &mut self,
        now_ms: u64,
        created: &JobCreated<'_>,
        bytes: &Arc<[u8]>,
    ) -> Result<(), String> {
        self.queue(created.queue.0)?;
        self.flows.new_key(created.key)?;
        let newest = self.jobs.last_key_value().map(|(key, _)| *key);
        let newest = newest.max(self.ended.last_key_value().map(|(key, _)| *key));
        expect(Some(created.key) > newest, "the key is not above all others")?;
        let options = created.options.as_deref().cloned();
        if let Some(unique_key) = options.as_ref().map(|options| &options.unique_key)
            && !unique_key.is_empty()
        {
            let held = self.jobs.values().any(|job| {
                let other = job.options.as_ref().map(|options| &options.unique_key);
                job.queue == created.queue.0 && other == Some(unique_key)
            });
            expect(!held, "a live job holds the unique key")?;
            let hold = self.holds.get(&(created.queue.0, unique_key.to_string()));
            expect(hold.is_none_or(|until| *until <= now_ms), "the unique key is still held")?;
        }
        if let Some(request_id) = options.as_ref().map(|options| &options.request_id)
            && !request_id.is_empty()
        {
            // Its scope is the tenant.
            let request_id = &format!("{} {request_id}", self.queue(created.queue.0)?.0);
            let newest = self.requests.iter().rev().take(REQUESTS_SURELY_KEPT);
            let made = newest.filter(|(id, _)| **id == **request_id).map(|(_, at_ms)| *at_ms).max();
            let kept = made.is_some_and(|at_ms| at_ms + REQUEST_ID_MS > now_ms);
            expect(!kept, "the request was made before")?;
            self.requests.push((request_id.clone(), now_ms));
        }
        let mut job = LedgerJob {
            state: JobState::Scheduled,
            queue: created.queue.0,
            payload: bytes.clone(),
            activation: 0,
            attempt: 1,
            retries: created.retries,
            priority: created.priority,
            due_ms: 0,
            cancel_asked: false,
            fenced: (false, false),
            options,
            incident: None,
            concurrency: created.concurrency,
            rate: created.rate,
            created_ms: now_ms,
            handed_ms: 0,
            lease: (0, 0),
        };
        job.wait_or_ready(created.due_ms, JobState::Scheduled, now_ms);
        self.jobs.insert(created.key, job);
        Ok(())
    }

    fn activated(&mut self, now_ms: u64, activated: &JobActivated<'_>) -> Result<Arrow, String> {
        let job = self.live(activated.key)?;
        let (from, queue, concurrency, rate) = (job.state, job.queue, job.concurrency, job.rate);
        expect(activated.activation == job.activation + 1, "the activation is not the next one")?;
        expect(activated.deadline_ms > now_ms, "the lease ends before it begins")?;
        let fenced = job.fenced.0;
        expect(activated.with_token || !fenced, "a fenced job goes to one without tokens")?;
        job.fenced = (fenced || activated.with_token, !fenced);
        job.state = JobState::Active;
        job.activation = activated.activation;
        job.due_ms = activated.deadline_ms;
        job.handed_ms = now_ms;
        job.lease = (now_ms, activated.deadline_ms - now_ms);
        expect(!self.queue(queue)?.2, "the queue is paused")?;
        if let Some(id) = concurrency
            && let Some(max) = self.limits.get(&id).and_then(|limit| limit.settings.active_max)
        {
            let active = self
                .jobs
                .values()
                .filter(|job| job.state == JobState::Active && job.concurrency == Some(id));
            let within = u32::try_from(active.count()).is_ok_and(|active| active <= max);
            expect(within, "more are active than the key allows")?;
        }
        if let Some(limit) = rate.and_then(|id| self.limits.get_mut(&id)) {
            limit.handed_ms.push(now_ms);
            if let Some(window) = limit.settings.rate {
                let since = |at: &&u64| **at + window.window_ms > now_ms;
                let in_window = limit.handed_ms.iter().filter(since).count();
                let within = u32::try_from(in_window).is_ok_and(|count| count <= window.max);
                expect(within, "more were handed out in the window than the key allows")?;
            }
        }
        Ok((from, Verb::Activate, JobState::Active))
    }

    /// A lease that time ends has lasted as long as its worker was promised, on the monotonic
    /// clock; restarts apart, which take as long as they take.
    fn lease_over(&mut self, key: JobKey, verb: Verb, now_ms: u64) -> Result<(), String> {
        let job = self.jobs.get(&key).ok_or("the job is not live")?;
        if verb != Verb::LeaseEnds {
            return Ok(());
        }
        expect(job.due_ms <= now_ms, "the lease ends early")?;
        let (set_ms, lease_ms) = job.lease;
        let moments = (self.moments.get(&set_ms), self.moments.get(&now_ms));
        if let (Some((set_us, set_life)), Some((now_us, now_life))) = moments
            && set_life == now_life
        {
            let lasted_ms = now_us.saturating_sub(*set_us) / 1000;
            let least_ms = (lease_ms * 100 / (100 + SLEW_PERCENT)).saturating_sub(2);
            expect(lasted_ms >= least_ms, &format!("a lease of {lease_ms} lasted {lasted_ms} ms"))?;
        }
        Ok(())
    }

    fn live(&mut self, key: JobKey) -> Result<&mut LedgerJob, String> {
        self.jobs.get_mut(&key).ok_or_else(|| "the job is not live".to_owned())
    }

    fn queue(&mut self, id: u32) -> Result<&mut (String, String, bool), String> {
        let index = usize::try_from(id).map_err(|error| error.to_string())?;
        self.queues.get_mut(index).ok_or_else(|| "there is no such queue".to_owned())
    }

    /// Whether a state shows what the log says.
    pub fn compare(&self, state: &State) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for (slot, job) in state.jobs().iter() {
            let expected = self
                .jobs
                .get(&job.key)
                .ok_or_else(|| format!("job {} is not in the log", job.key))?;
            let found = (job.state, job.activation, job.attempt, job.retries, job.due_ms);
            let wanted = (
                expected.state,
                expected.activation,
                expected.attempt,
                expected.retries,
                expected.due_ms,
            );
            let beside = (state.priority(slot), state.queue_of(slot).0, job.cancel_asked());
            let wanted_beside = (expected.priority, expected.queue, expected.cancel_asked);
            if found != wanted || beside != wanted_beside {
                return Err(format!(
                    "job {} is {found:?} {beside:?}, the log says {wanted:?} {wanted_beside:?}",
                    job.key
                ));
            }
            seen.insert(job.key);
        }
        if let Some(lost) = self.jobs.keys().find(|key| !seen.contains(key)) {
            return Err(format!("job {lost} is lost"));
        }
        let queues = state
            .queues()
            .map(|(_, queue)| (queue.tenant.to_string(), queue.name.to_string(), queue.paused));
        expect(queues.eq(self.queues.iter().cloned()), "the queues are others")?;
        self.flows.compare(state.flow())
    }

    fn note_settings(&mut self, queue: u32, settings: &QueueSettings) {
        let usual = QueueSettings::DEFAULT;
        if settings.finished_max < usual.finished_max || settings.finished_ms < usual.finished_ms {
            self.forgetful.insert(queue);
        }
    }

    /// Whether a job at rest must still be found.
    #[must_use]
    pub fn remembers(&self, end: &LedgerEnd) -> bool {
        let usual = QueueSettings::DEFAULT;
        let few = usize::try_from(usual.finished_max).is_ok_and(|max| self.ended.len() < max);
        let fresh = end.ended_ms.saturating_add(usual.finished_ms) > self.last_ms;
        few && fresh && !self.forgetful.contains(&end.queue)
    }
}

type Arrow = (JobState, Verb, JobState);

impl LedgerJob {
    /// Its hand-out came to nothing, and with it the token.
    fn unsent(&mut self, now_ms: u64) {
        (self.state, self.due_ms) = (JobState::Ready, now_ms);
        if self.fenced.1 {
            self.fenced = (false, false);
        }
    }

    fn wait_or_ready(&mut self, due_ms: u64, waiting: JobState, now_ms: u64) {
        (self.state, self.due_ms) =
            if due_ms == 0 { (JobState::Ready, now_ms) } else { (waiting, due_ms) };
    }

    /// Whether time ends its lease: an alert does not.
    #[must_use]
    pub fn lease_ends(&self) -> bool {
        let deadlines = self.options.as_ref().map(|options| options.deadlines);
        deadlines.unwrap_or_default().lease != DeadlineOutcome::Alert
    }
}

/// Which verb failed the attempt: deadlines have words of their own.
fn failed_by(message: &str) -> Verb {
    match message {
        "the lease ended" => Verb::LeaseEnds,
        "nobody took the job in time" => Verb::WaitingEnds,
        "the attempt took too long" => Verb::AttemptEnds,
        "the job took too long" => Verb::TotalEnds,
        _ => Verb::Fail,
    }
}

fn raised_by(kind: IncidentKind, message: &str) -> Verb {
    match kind {
        IncidentKind::ErrorNotCaught => Verb::ThrowError,
        IncidentKind::NoRetries | IncidentKind::Permanent | IncidentKind::TooLarge => {
            failed_by(message)
        }
    }
}

fn ended_by(outcome: Outcome, message: &str, result: &[u8]) -> Verb {
    match outcome {
        Outcome::Completed | Outcome::CompletedWithErrors | Outcome::Skipped => Verb::Complete,
        Outcome::Failed | Outcome::FailedForGood | Outcome::TimedOut => failed_by(message),
        // Simulated workers complete with a result, and name their verb in their message.
        Outcome::Cancelled if !result.is_empty() => Verb::Complete,
        Outcome::Cancelled if message.is_empty() => Verb::Release,
        Outcome::Cancelled if message.starts_with("cancel") => Verb::Cancel,
        Outcome::Cancelled if message == "its element was terminated" => Verb::Cancel,
        Outcome::Cancelled if message.starts_with("throw") => Verb::ThrowError,
        Outcome::Cancelled => failed_by(message),
    }
}

fn state_of(outcome: Outcome) -> JobState {
    match outcome {
        Outcome::Completed | Outcome::CompletedWithErrors | Outcome::Skipped => JobState::Completed,
        Outcome::Failed | Outcome::FailedForGood | Outcome::TimedOut => JobState::Failed,
        Outcome::Cancelled => JobState::Cancelled,
    }
}

/// A document's name.
#[must_use]
pub fn document_key(tenant: &str, kind: &str, id: &str) -> DocumentKey {
    (tenant.to_owned(), kind.to_owned(), id.to_owned())
}

pub(super) fn expect(holds: bool, violation: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(violation.to_owned()) }
}
