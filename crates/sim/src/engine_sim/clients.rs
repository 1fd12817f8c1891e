//! Those who use the partition: producers, workers and operators. They remember what they asked and
//! object to an answer that does not fit the log.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windlass_engine::lifecycle::JobState;
use windlass_partition::request::{
    Answer, Commands, HandedJob, Poll, Query, QueryAnswer, Refused, Request, Stream, StreamSink,
    WaiterId, Wanted,
};
use windlass_record::bound::Bound;
use windlass_record::command::{Command, CreateJob, Lease, QueueName};
use windlass_record::event::Outcome;
use windlass_record::flow::FlowCommand;
use windlass_record::id::JobKey;
use windlass_record::rejection::Rejection;

use super::answers::{check_document, check_flow, check_job, cover_refusal, name_of};
use super::commands::Drawer;
use super::coverage::Coverage;
use super::ledger::{DocumentKey, Ledger, document_key, expect};
use super::machine::{Life, Machine};
use super::plan::Plan;

/// Holds and former holds that are remembered.
const HELD_MAX: usize = 60;

/// What has come back.
enum Note {
    Commands(Vec<Command>, Vec<Result<Answer, Refused>>),
    Handed(Vec<HandedJob>, bool),
    PollEnded(Result<(), Refused>),
    Document(DocumentKey, Result<QueryAnswer, Refused>),
    Job(JobKey, Result<QueryAnswer, Refused>),
    Stop(Lease),
    /// More jobs came than were asked for.
    TooMany,
}

/// Where answers arrive.
#[derive(Clone, Default)]
struct Mailbox {
    notes: Arc<Mutex<Vec<Note>>>,
}

impl Mailbox {
    fn notes(&self) -> MutexGuard<'_, Vec<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, note: Note) {
        self.notes().push(note);
    }
}

/// A worker's connection.
struct Sink {
    mailbox: Mailbox,
    alive: Arc<AtomicBool>,
    credits: Arc<AtomicU64>,
    with_token: bool,
}

impl StreamSink for Sink {
    fn deliver(&self, jobs: Vec<HandedJob>) -> Vec<HandedJob> {
        let came = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
        let credits = self.credits.load(Ordering::Relaxed);
        if came > credits {
            self.mailbox.push(Note::TooMany);
        }
        self.credits.store(credits.saturating_sub(came), Ordering::Relaxed);
        if !self.alive.load(Ordering::Relaxed) {
            return jobs;
        }
        self.mailbox.push(Note::Handed(jobs, self.with_token));
        Vec::new()
    }

    fn stop(&self, job: JobKey, activation: u32) {
        self.mailbox.push(Note::Stop(Lease { key: job, activation: Some(activation) }));
    }

    fn end(&self) {}
}

struct OpenStream {
    id: WaiterId,
    alive: Arc<AtomicBool>,
    credits: Arc<AtomicU64>,
}

/// All clients.
pub struct Clients {
    /// Draws what they do.
    pub drawer: Drawer,
    plan: Plan,
    mailbox: Mailbox,
    next_waiter: u64,
    polls: u32,
    streams: Vec<OpenStream>,
    /// Jobs that workers hold, as far as they know.
    pub held: Vec<Lease>,
    former: Vec<Lease>,
    tokens: BTreeSet<(JobKey, u32)>,
    created: BTreeSet<JobKey>,
    completed: BTreeSet<JobKey>,
    /// Jobs of processes.
    of_flows: BTreeSet<JobKey>,
    /// Keys that anybody has heard of.
    known: Vec<JobKey>,
    now_ms: u64,
}

impl Clients {
    /// Who do what the plan says.
    #[must_use]
    pub fn new(plan: &Plan) -> Clients {
        Clients {
            drawer: Drawer::new(plan),
            plan: plan.clone(),
            mailbox: Mailbox::default(),
            next_waiter: 1,
            polls: 0,
            streams: Vec::new(),
            held: Vec::new(),
            former: Vec::new(),
            tokens: BTreeSet::new(),
            created: BTreeSet::new(),
            completed: BTreeSet::new(),
            of_flows: BTreeSet::new(),
            known: Vec::new(),
            now_ms: 0,
        }
    }

    /// Does one thing.
    pub fn act(&mut self, life: &mut Life, ledger: &Ledger) {
        self.now_ms = life.core().now_ms();
        if self.drawer.is_about_flows() {
            let command = self.drawer.flow(&ledger.flows);
            self.send(life, vec![command], false);
            return;
        }
        let features = self.plan.features;
        match self.drawer.random.in_range(0..100) {
            0..=24 => self.produce(life),
            25..=59 => self.work(life),
            60..=74 if features.polls => self.poll(life),
            60..=80 if features.streams => self.stream(life),
            81..=88 => self.operate(life, ledger),
            89..=90 => {
                let command = self.drawer.configure();
                self.send(life, vec![command], false);
            }
            91..=94 if features.documents => {
                let command = self.drawer.put_documents();
                self.send(life, vec![command], false);
            }
            95..=97 if features.queries => self.query(life),
            _ => life.ask_checkpoint(),
        }
    }

    fn produce(&mut self, life: &mut Life) {
        if self.plan.features.storms && self.drawer.random.chance(60) {
            let commands = self.drawer.storm(self.now_ms);
            self.send(life, commands, false);
            return;
        }
        let most = if self.plan.features.batches { 8 } else { 2 };
        let count = self.drawer.random.in_range(1..most);
        let commands = (0..count).map(|_| self.drawer.create(self.now_ms)).collect();
        self.send(life, commands, false);
    }

    fn work(&mut self, life: &mut Life) {
        let most = if self.plan.features.batches { 5 } else { 2 };
        let mut words = Vec::new();
        for _ in 0..self.drawer.random.in_range(1..most) {
            let stale = self.plan.features.stale_words && self.drawer.random.chance(25);
            if stale && let Some(mut lease) = self.drawer.random.pick(&self.former).copied() {
                if self.drawer.random.chance(20) {
                    lease.activation = lease.activation.and_then(|number| number.checked_sub(1));
                }
                words.push(self.drawer.word(lease));
                continue;
            }
            if self.plan.features.dialects
                && self.drawer.random.chance(20)
                && let Some(key) = self.drawer.random.pick(&self.known).copied()
            {
                // A worker of a dialect that knows keys and no leases.
                words.push(self.drawer.word(Lease { key, activation: None }));
                continue;
            }
            let Some(lease) = self.drawer.random.pick(&self.held).copied() else { continue };
            let word = self.drawer.word(lease);
            let word = self.suited(word);
            let goes_on = matches!(
                word,
                Command::ExtendLease(_) | Command::ReportProgress(_) | Command::AppendLog(_)
            );
            let ends = !goes_on && !self.drawer.random.chance(10);
            if ends {
                self.drop_hold(lease);
            }
            words.push(word);
        }
        // A worker that falls silent for ever.
        if self.drawer.random.chance(6)
            && let Some(lease) = self.drawer.random.pick(&self.held).copied()
        {
            self.drop_hold(lease);
        }
        if !words.is_empty() {
            self.send(life, words, true);
        }
    }

    /// A result as the job's kind wants it.
    fn suited(&mut self, mut word: Command) -> Command {
        if let Command::CompleteJob(complete) = &mut word
            && self.of_flows.contains(&complete.lease.key)
        {
            complete.result = self.drawer.variables();
        }
        word
    }

    /// A worker completes a job.
    pub fn complete(&mut self, lease: Lease) -> Command {
        let word = self.drawer.complete(lease);
        self.suited(word)
    }

    fn drop_hold(&mut self, lease: Lease) {
        self.held.retain(|held| *held != lease);
        self.former.push(lease);
        if self.former.len() > HELD_MAX {
            self.former.remove(0);
        }
    }

    fn wanted(&mut self) -> Wanted {
        let mut queues: Vec<QueueName> = vec![self.drawer.queue()];
        while self.drawer.random.chance(40) {
            queues.push(self.drawer.queue());
        }
        self.drawer.maybe_flow_queue(&mut queues);
        let lease_ms = [5, 300, 2_000, 10_000, 60_000];
        Wanted {
            queues,
            worker: format!("w{}", self.drawer.random.in_range(0..3)).into(),
            lease_ms: self.drawer.random.pick(&lease_ms).copied().unwrap_or(300),
            with_token: self.drawer.random.chance(60),
        }
    }

    fn waiter(&mut self) -> WaiterId {
        self.next_waiter += 1;
        WaiterId(self.next_waiter)
    }

    fn poll(&mut self, life: &mut Life) {
        if self.polls > 12 {
            return;
        }
        let wanted = self.wanted();
        let jobs_max = u32::try_from(self.drawer.random.in_range(1..9)).unwrap_or(1);
        let bytes_max = if self.drawer.random.chance(20) { 300 } else { 1 << 20 };
        let wait_ms = [0, 0, 50, 2_000, 30_000];
        let wait_ms = self.drawer.random.pick(&wait_ms).copied().unwrap_or(0);
        let dies = self.plan.features.dead_connections && self.drawer.random.chance(25);
        let id = self.request_jobs(life, wanted, (jobs_max, bytes_max, wait_ms), dies);
        if self.drawer.random.chance(5) {
            life.submit(Request::EndPoll(id), false);
            self.polls -= 1;
        }
    }

    /// Waits for jobs, once.
    pub fn request_jobs(
        &mut self,
        life: &mut Life,
        wanted: Wanted,
        (jobs_max, bytes_max, wait_ms): (u32, u64, u64),
        dies: bool,
    ) -> WaiterId {
        let id = self.waiter();
        self.polls += 1;
        let (mailbox, with_token) = (self.mailbox.clone(), wanted.with_token);
        let reply = Box::new(move |answer: Result<Vec<HandedJob>, Refused>| {
            let (ended, jobs) = match answer {
                Ok(jobs) => (Ok(()), jobs),
                Err(refused) => (Err(refused), Vec::new()),
            };
            mailbox.push(Note::PollEnded(ended));
            if u32::try_from(jobs.len()).is_ok_and(|came| came > jobs_max) {
                mailbox.push(Note::TooMany);
            }
            if dies {
                return jobs;
            }
            mailbox.push(Note::Handed(jobs, with_token));
            Vec::new()
        });
        life.submit(Request::Poll(Poll { id, wanted, jobs_max, bytes_max, wait_ms, reply }), false);
        id
    }

    fn stream(&mut self, life: &mut Life) {
        let open = u64::try_from(self.streams.len()).unwrap_or(0);
        let credits = u32::try_from(self.drawer.random.in_range(0..6)).unwrap_or(0);
        if open < 3 && self.drawer.random.chance(40) || open == 0 {
            let wanted = self.wanted();
            let alive = Arc::new(AtomicBool::new(true));
            let granted = Arc::new(AtomicU64::new(u64::from(credits)));
            let sink = Box::new(Sink {
                mailbox: self.mailbox.clone(),
                alive: alive.clone(),
                credits: granted.clone(),
                with_token: wanted.with_token,
            });
            let id = self.waiter();
            self.streams.push(OpenStream { id, alive, credits: granted });
            life.submit(Request::OpenStream(Stream { id, wanted, credits, sink }), false);
            return;
        }
        let at = usize::try_from(self.drawer.random.in_range(0..open)).unwrap_or(0);
        let dies = self.plan.features.dead_connections && self.drawer.random.chance(25);
        let Some(stream) = self.streams.get(at) else { return };
        let id = stream.id;
        if dies {
            // What is under way to it comes back; the loop hears of the end later.
            stream.alive.store(false, Ordering::Relaxed);
            life.submit(Request::CloseStream(id), false);
            self.streams.remove(at);
        } else {
            stream.credits.fetch_add(u64::from(credits), Ordering::Relaxed);
            life.submit(Request::AddCredits(id, credits), true);
        }
    }

    /// Closes all streams.
    pub fn close_streams(&mut self, life: &mut Life) {
        for stream in self.streams.drain(..) {
            life.submit(Request::CloseStream(stream.id), false);
        }
    }

    fn operate(&mut self, life: &mut Life, ledger: &Ledger) {
        let live: Vec<JobKey> = ledger.jobs.keys().copied().collect();
        let incidents: Vec<JobKey> = ledger
            .jobs
            .iter()
            .filter(|(_, job)| job.state == JobState::Incident)
            .map(|(key, _)| *key)
            .collect();
        let random = &mut self.drawer.random;
        let key = match random.in_range(0..10) {
            0 => random.pick(&self.known).copied(),
            1..=5 if !incidents.is_empty() => random.pick(&incidents).copied(),
            _ => random.pick(&live).copied(),
        };
        let Some(key) = key else { return };
        let incident = ledger.jobs.get(&key).and_then(|job| job.incident);
        let command = self.drawer.operate(key, incident);
        self.send(life, vec![command], true);
    }

    fn query(&mut self, life: &mut Life) {
        let mailbox = self.mailbox.clone();
        if self.plan.features.documents && self.drawer.random.chance(50) {
            let id = self.drawer.document_id();
            let name = document_key("t", "k", &id);
            let query = Query::Document { tenant: "t".into(), kind: "k".into(), id: id.into() };
            let reply = Box::new(move |answer| mailbox.push(Note::Document(name, answer)));
            life.submit(Request::Query(query, reply), false);
        } else if let Some(key) = self.drawer.random.pick(&self.known).copied() {
            let reply = Box::new(move |answer| mailbox.push(Note::Job(key, answer)));
            life.submit(Request::Query(Query::Job(key), reply), false);
        }
    }

    /// Asks for commands to be decided.
    pub fn send(&mut self, life: &mut Life, commands: Vec<Command>, first: bool) {
        let (mailbox, asked) = (self.mailbox.clone(), commands.clone());
        let reply = Box::new(move |results| mailbox.push(Note::Commands(asked, results)));
        life.submit(Request::Commands(Commands { items: commands, reply }), first);
    }

    /// The partition is gone, and everything that was on its way.
    pub fn disconnect(&mut self) {
        self.mailbox = Mailbox::default();
        self.streams.clear();
        self.polls = 0;
    }

    /// Reads the mail and compares it with the log.
    pub fn read_mail(&mut self, machine: &mut Machine) -> Result<(), String> {
        let notes = std::mem::take(&mut *self.mailbox.notes());
        let (ledger, coverage) = (&machine.ledger, &mut machine.coverage);
        for note in notes {
            match note {
                Note::Commands(commands, results) => {
                    expect(commands.len() == results.len(), "not one answer per command")?;
                    for (command, result) in commands.iter().zip(results) {
                        self.answered(command, result, ledger, coverage)?;
                    }
                }
                Note::PollEnded(ended) => {
                    self.polls = self.polls.saturating_sub(1);
                    if let Err(refused) = ended {
                        coverage.count("poll", format!("{refused:?}"));
                    }
                }
                Note::Handed(jobs, with_token) => {
                    for job in jobs {
                        self.handed(&job, with_token, ledger)?;
                        coverage.count("job", "handed out");
                    }
                }
                Note::Document(name, answer) => {
                    coverage.count("query", "document");
                    check_document(&name, answer, ledger)?;
                }
                Note::Job(key, answer) => {
                    coverage.count("query", "job");
                    check_job(key, answer, ledger)?;
                }
                Note::TooMany => return Err("more jobs came than were asked for".to_owned()),
                Note::Stop(lease) => {
                    coverage.count("job", "worker asked to stop");
                    let known = ledger.jobs.get(&lease.key).is_none_or(|job| job.cancel_asked);
                    expect(known, "a worker is asked to stop a job that nobody cancelled")?;
                }
            }
        }
        Ok(())
    }

    fn handed(&mut self, job: &HandedJob, with_token: bool, ledger: &Ledger) -> Result<(), String> {
        let (key, activation) = (job.key, job.activation);
        if !self.tokens.insert((key, activation)) {
            return Err(format!("activation {activation} of job {key} was handed out twice"));
        }
        let payload = ledger.jobs.get(&key).map(|job| &job.payload);
        let payload = payload.or_else(|| ledger.ended.get(&key).map(|end| &end.payload));
        if let Some(facts) = &job.flow {
            self.of_flows.insert(key);
            let instance = ledger.flows.instance_of(key).ok_or("a job of no process")?;
            let text = String::from_utf8_lossy(&job.payload);
            let is_seen = text.contains(&format!("\"key\":{}", instance.correlation_key));
            expect(is_seen, &format!("job {key} of {} sees {text}", facts.instance))?;
        } else if payload != Some(&job.payload) {
            return Err(format!("job {key} was handed out with the payload {:02x?}", job.payload));
        }
        let current = ledger.jobs.get(&key).map(|job| job.activation);
        let current = current.or_else(|| ledger.ended.get(&key).map(|end| end.activation));
        if current.is_none_or(|current| current < activation) {
            return Err(format!("activation {activation} of job {key} is not in the log"));
        }
        self.known.push(key);
        self.held.push(Lease { key, activation: with_token.then_some(activation) });
        if self.held.len() > HELD_MAX {
            let oldest = self.held.remove(0);
            self.former.push(oldest);
        }
        Ok(())
    }

    fn answered(
        &mut self,
        command: &Command,
        result: Result<Answer, Refused>,
        ledger: &Ledger,
        coverage: &mut Coverage,
    ) -> Result<(), String> {
        let name = name_of(command);
        match &result {
            Ok(_) => coverage.count("command", format!("{name}: ok")),
            Err(Refused::Stopped) => coverage.count("command", format!("{name}: stopped")),
            Err(Refused::Rejected(rejection)) => {
                coverage.count("command", format!("{name}: {}", rejection.code()));
                cover_refusal(command, rejection, ledger, coverage);
            }
        }
        let told = |why: &str| format!("{why}: {command:?} was answered with {result:?}");
        self.check_answer(command, &result, ledger).map_err(|why| told(&why))
    }

    fn check_answer(
        &mut self,
        command: &Command,
        result: &Result<Answer, Refused>,
        ledger: &Ledger,
    ) -> Result<(), String> {
        let answer = match result {
            Ok(answer) => answer,
            Err(Refused::Rejected(Rejection::JobNotFound { key })) => {
                return expect(!ledger.jobs.contains_key(key), "the job is live");
            }
            Err(Refused::Rejected(Rejection::Exhausted {
                bound: Bound::LogSpace | Bound::CheckpointLag,
                ..
            })) => {
                return expect(adds_work(command), "what lets work drain is refused");
            }
            Err(Refused::Rejected(Rejection::UniqueKeyHeld { holder })) => {
                let known = ledger.jobs.contains_key(holder) || ledger.ended.contains_key(holder);
                return expect(known, "nobody knows the holder");
            }
            Err(_) => return Ok(()),
        };
        match (command, answer) {
            (Command::CreateJob(create), Answer::Created { key, existing }) => {
                self.check_created(create, *key, *existing, ledger)
            }
            (Command::CompleteJob(complete), Answer::Done) => {
                let key = complete.lease.key;
                let end = ledger.ended.get(&key).ok_or("the job has not ended")?;
                expect(self.completed.insert(key), "a job was completed twice")?;
                let is_kept = ledger.flows.instance_of(key).is_none();
                let result = if is_kept { &*complete.result } else { &[] };
                expect(*end.result == *result, "the job has another result")?;
                let given = complete.lease.activation;
                expect(given.is_none_or(|given| given == end.activation), "the token is stale")?;
                let ended = matches!(end.outcome, Outcome::Completed | Outcome::Cancelled);
                expect(ended, "the job ended otherwise")
            }
            (Command::CancelJob(cancel), Answer::Done) => {
                let end = ledger.ended.get(&cancel.key).ok_or("the job has not ended")?;
                expect(end.outcome == Outcome::Cancelled, "the job ended otherwise")
            }
            (Command::CancelJob(cancel), Answer::CancelPending) => {
                let asked = ledger.jobs.get(&cancel.key).is_none_or(|job| job.cancel_asked);
                expect(asked, "cancel was not asked")
            }
            (Command::PutDocuments(put), Answer::Versions(versions)) => {
                for (write, version) in put.documents.iter().zip(versions) {
                    let name = document_key(&write.tenant, &write.kind, &write.id);
                    let Some(bytes) = &write.bytes else { continue };
                    let written = ledger.versions.get(&name).into_iter().flatten();
                    let found = written.clone().any(|(v, b)| v == version && b == bytes);
                    expect(found, "the document was not written")?;
                    let expected = write.expected_version.is_none_or(|v| v + 1 == *version);
                    expect(expected, "the version is not the one after the expected one")?;
                }
                Ok(())
            }
            (Command::Flow(command), Answer::Flow(answer)) => check_flow(command, answer, ledger),
            (Command::PauseQueue(_) | Command::ConfigureQueue(_), Answer::Done) => Ok(()),
            _ => Ok(()),
        }
    }

    fn check_created(
        &mut self,
        create: &CreateJob,
        key: JobKey,
        existing: bool,
        ledger: &Ledger,
    ) -> Result<(), String> {
        let live = ledger.jobs.get(&key).map(|job| {
            let request = job.options.as_ref().map_or("", |o| &o.request_id);
            (&job.payload, request.to_owned())
        });
        let ended = ledger.ended.get(&key);
        let ended = ended.map(|end| (&end.payload, end.request_id.clone()));
        let (payload, request) = live.or(ended).ok_or("the job is not in the log")?;
        let wanted = create.options.as_ref().map_or("", |options| &options.request_id);
        expect(*request == *wanted, "the job has another request id")?;
        self.known.push(key);
        if existing {
            return expect(!wanted.is_empty(), "nothing was repeated");
        }
        expect(self.created.insert(key), "two creates made one job")?;
        expect(*payload == create.payload, "the job has another payload")?;
        Ok(())
    }
}

/// What a partition may refuse so that work can drain.
fn adds_work(command: &Command) -> bool {
    matches!(
        command,
        Command::CreateJob(_)
            | Command::PutDocuments(_)
            | Command::Flow(
                FlowCommand::DeployResources(_)
                    | FlowCommand::CreateInstance(_)
                    | FlowCommand::PublishMessage(_)
            )
    )
}
