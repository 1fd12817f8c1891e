//! Watches a source and a destination at work, and ends what must end.
//!
//! Threads do the work and tell their end as an `Event`; one loop, on the thread that started the
//! processes, decides: a synchronous function for each event, and one for the time that passes.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::attempt::cancel::Cancel;
use crate::attempt::clear;
use crate::attempt::files::Files;
use crate::attempt::run::{Attempt, Connector, catalog_of};
use crate::failure::{Failure, FailureType, Failures, Origin};
use crate::journal::{Journal, JournalError};
use crate::limits::Limits;
use crate::observer::Observer;
use crate::pipe::ledger::Ledger;
use crate::pipe::pump::{self, Ends, PumpEnd};
use crate::pipe::sample::{self, Sampler};
use crate::pipe::shared::Shared;
use crate::pipe::{answers, committer, stderr};
use crate::process::wire::{Stop, Wire};
use crate::process::{Exit, Guard, Launch, Process, Side};
use crate::protocol::catalog::Catalog;
use crate::summary::{Status, Summary};

/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(50);
/// Between two words about the progress.
const PROGRESS: Duration = Duration::from_millis(200);

/// What a replication is made of.
pub(super) struct Replication<'a> {
    pub(super) attempt: &'a Attempt<'a>,
    pub(super) guard: &'a Guard,
    pub(super) journal: &'a dyn Journal,
    pub(super) observer: &'a dyn Observer,
    pub(super) cancel: &'a Cancel,
}

enum Event {
    /// The leader of a connector has ended.
    Ended(Side),
    /// The source's output is over.
    SourceSilent,
    Pump(PumpEnd),
    Answers(Result<(), Box<Failure>>),
    Committer(Result<(), Box<Failure>>),
}

/// Runs it to its end, and fills in the counts of the summary.
pub(super) fn run(replication: &Replication<'_>, summary: &mut Summary) -> (Status, Failures) {
    let fail = |failure: Failure| {
        let mut failures = Failures::default();
        failures.push(failure);
        (Status::Failed, failures)
    };
    let attempt = replication.attempt;
    let catalog = match catalog_of(attempt) {
        Ok(catalog) => Arc::new(catalog),
        Err(failure) => return fail(*failure),
    };
    summary.keep_state(&attempt.state);
    let ledger = match Ledger::new(Arc::clone(&catalog), &attempt.state) {
        Ok(ledger) => ledger,
        Err(error) => {
            let failure = Failure::new(
                Origin::AirbytePlatform,
                FailureType::SystemError,
                "the state that the source is to start from cannot be read",
            );
            return fail(failure.internal(error.to_string()));
        }
    };
    let started = match Started::new(replication, &catalog) {
        Ok(started) => started,
        Err(error) => {
            let failure = Failure::new(
                Origin::AirbytePlatform,
                FailureType::SystemError,
                "failed to start the connectors",
            );
            return fail(failure.internal(error.message));
        }
    };
    let shared = Shared::new(&catalog, ledger, replication.observer, replication.journal);
    let status = work(replication, started, &shared, summary);
    let mut ledger = shared.ledger.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let failures = shared.failures.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    match status {
        Status::Completed => ledger.completed(),
        Status::Failed | Status::Cancelled => ledger.broken_off(),
    }
    summary.count(ledger.stats());
    summary.keep_state(ledger.durable_state());
    summary.checksums = ledger.checksums().clone();
    summary.commits = ledger.commits();
    (status, failures)
}

/// Both connectors, running, with our ends of their streams.
struct Started<'a> {
    source: Option<Process>,
    destination: Process,
    /// Of the source's output; a clear writes to the other end itself.
    output: OwnedFd,
    clear: Option<OwnedFd>,
    source_errors: Option<OwnedFd>,
    input: OwnedFd,
    answers: OwnedFd,
    destination_errors: OwnedFd,
    /// Removed when all is over.
    _files: (Files<'a>, Files<'a>),
}

impl<'a> Started<'a> {
    fn new(replication: &Replication<'a>, catalog: &Catalog) -> Result<Self, JournalError> {
        let attempt = replication.attempt;
        let failed = |error: io::Error| JournalError::new("write its files", &error);
        let guard = Some(replication.guard);
        let mut for_source = Files::new(&attempt.folder, Side::Source, guard).map_err(failed)?;
        let mut for_destination =
            Files::new(&attempt.folder, Side::Destination, guard).map_err(failed)?;
        let mut words =
            arguments("write", &mut for_destination, &attempt.destination).map_err(failed)?;
        let streams = catalog.for_destination().to_string();
        let path = for_destination.write("catalog.json", &streams).map_err(failed)?;
        words.extend(["--catalog".into(), path.into()]);
        let start = |side, connector: &Connector, words, files: &Files<'_>| {
            Process::start(Launch {
                helper: &attempt.helper,
                attempt: &attempt.name,
                side,
                command: &connector.command,
                words,
                directory: files.folder(),
                limits: &attempt.limits,
                has_input: side == Side::Destination,
                guard: Some(replication.guard),
            })
            .map_err(|error| JournalError::new("start it", &error))
        };
        let (destination, streams) =
            start(Side::Destination, &attempt.destination, words, &for_destination)?;
        let no_input = || JournalError { message: "the destination has no input".to_owned() };
        let input = streams.input.ok_or_else(no_input)?;
        let (source, output, clear, source_errors) = match &attempt.source {
            Some(connector) => {
                let words = read_arguments(attempt, catalog, connector, &mut for_source);
                let words = words.map_err(failed)?;
                let (process, streams) = start(Side::Source, connector, words, &for_source)?;
                (Some(process), streams.output, None, Some(streams.errors))
            }
            None => {
                let (out, into) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                    .map_err(|error| JournalError::new("make a pipe", &error))?;
                (None, out, Some(into), None)
            }
        };
        Ok(Self {
            source,
            destination,
            output,
            clear,
            source_errors,
            input,
            answers: streams.output,
            destination_errors: streams.errors,
            _files: (for_source, for_destination),
        })
    }
}

fn arguments(
    subcommand: &str,
    files: &mut Files<'_>,
    connector: &Connector,
) -> io::Result<Vec<OsString>> {
    let config = files.write("config.json", &connector.config.to_string())?;
    Ok(vec![subcommand.into(), "--config".into(), config.into()])
}

fn read_arguments(
    attempt: &Attempt<'_>,
    catalog: &Catalog,
    connector: &Connector,
    files: &mut Files<'_>,
) -> io::Result<Vec<OsString>> {
    let mut words = arguments("read", files, connector)?;
    let path = files.write("catalog.json", &catalog.for_source().to_string())?;
    words.extend(["--catalog".into(), path.into()]);
    if !attempt.state.is_empty() {
        let state = files.write("state.json", &format!("[{}]", attempt.state.join(",")))?;
        words.extend(["--state".into(), state.into()]);
    }
    Ok(words)
}

/// The threads, and the loop that watches.
fn work(
    replication: &Replication<'_>,
    started: Started<'_>,
    shared: &Shared<'_>,
    summary: &mut Summary,
) -> Status {
    let limits = &replication.attempt.limits;
    let (Ok(stop), Ok(source_stop), Ok(quiet)) = (Stop::new(), Stop::new(), Stop::new()) else {
        return no_files(shared);
    };
    let Started { source, destination, output, clear, source_errors, input, answers, .. } = started;
    let wire = |pipe, stop: &Stop| Wire::new(pipe, stop.clone());
    let (Ok(from_source), Ok(to_destination), Ok(from_destination), Ok(errors)) = (
        wire(output, &source_stop),
        wire(input, &stop),
        wire(answers, &stop),
        wire(started.destination_errors, &quiet),
    ) else {
        return no_files(shared);
    };
    let source_errors = source_errors.and_then(|pipe| wire(pipe, &quiet).ok());
    let (events, happened) = channel();
    let (tell_source_ended, source_ended) = channel();
    let (news, gathered) = sync_channel(1);
    let (sampler, samples) = Sampler::new(shared.catalog.streams.len());
    let ends = Ends {
        source: from_source,
        destination: to_destination,
        stop: source_stop.clone(),
        line_bytes_max: limits.line_bytes_max,
        sampler,
        source_ended,
    };
    shared.source.now();
    thread::scope(|scope| {
        let (tell, tell_pump) = (events.clone(), events.clone());
        scope.spawn(move || {
            let silent = || drop(tell_pump.send(Event::SourceSilent));
            let end = pump::run(shared, ends, silent);
            let _ = tell.send(Event::Pump(end));
        });
        let tell = events.clone();
        scope.spawn(move || {
            let end = answers::run(shared, &from_destination, limits.line_bytes_max, &news);
            drop(news);
            let _ = tell.send(Event::Answers(end));
        });
        let tell = events.clone();
        scope.spawn(move || drop(tell.send(Event::Committer(committer::run(shared, &gathered)))));
        scope.spawn(move || sample::run(shared.catalog, shared.observer, &samples));
        if let Some(clear) = clear {
            scope.spawn(move || clear::run(shared.catalog, clear));
        }
        let observer = shared.observer;
        let said_source = source_errors
            .map(|wire| scope.spawn(move || stderr::drain(&wire, Side::Source, observer)));
        let said_destination =
            scope.spawn(move || stderr::drain(&errors, Side::Destination, observer));
        let mut monitor =
            Monitor::new(replication, shared, (stop, source_stop), source, destination);
        monitor.tell_source_ended = Some(tell_source_ended);
        monitor.watch(&events);
        drop(events);
        monitor.run(&happened);
        quiet.stop();
        let said_source = said_source.and_then(|said| said.join().ok()).unwrap_or_default();
        let said_destination = said_destination.join().unwrap_or_default();
        monitor.judge(&said_source, &said_destination, summary)
    })
}

fn no_files(shared: &Shared<'_>) -> Status {
    let message = "the system has no files left for another attempt";
    shared.fail(Failure::new(Origin::AirbytePlatform, FailureType::SystemError, message));
    Status::Failed
}

/// One connector, and where it is on its way to the end.
struct Life {
    process: Process,
    /// Its leader has ended.
    ended: Option<Instant>,
    /// Its output is over.
    silent: Option<Instant>,
    /// We asked it to end.
    asked: Option<Instant>,
    killed: bool,
    over: Option<Exit>,
}

impl Life {
    fn new(process: Process) -> Self {
        Self { process, ended: None, silent: None, asked: None, killed: false, over: None }
    }

    fn ask(&mut self) {
        if self.asked.is_none() {
            self.process.terminate();
            self.asked = Some(Instant::now());
        }
    }

    /// Whether it lived when we asked it to end: then its exit code says nothing.
    fn ended_as_asked(&self) -> bool {
        self.asked.is_some_and(|asked| self.ended.is_none_or(|ended| asked < ended))
    }

    /// Sees to it that what is to end ends. `is_held`: its output is open, and nothing comes any more. True at
    /// the moment when it is over.
    fn tick(&mut self, limits: &Limits, guard: &Guard, is_held: bool) -> bool {
        if self.over.is_some() {
            return false;
        }
        let longer =
            |since: Option<Instant>, than| since.is_some_and(|since| since.elapsed() > than);
        if self.ended.is_some() {
            // What it left behind may still write; not for long.
            let is_left = is_held && longer(self.ended, limits.leftover_grace);
            if self.silent.is_some() || self.asked.is_some() || is_left {
                self.over = Some(self.process.finish(Some(guard)));
                return true;
            }
        } else if longer(self.asked, limits.exit_grace) && !self.killed {
            self.killed = true;
            self.process.sweep();
        }
        false
    }
}

struct Monitor<'a> {
    limits: &'a Limits,
    guard: &'a Guard,
    cancel: &'a Cancel,
    shared: &'a Shared<'a>,
    stop: Stop,
    /// Of what comes from the source alone.
    source_stop: Stop,
    source: Option<Life>,
    destination: Life,
    tell_source_ended: Option<Sender<bool>>,
    pump: Option<PumpEnd>,
    pump_ended: Option<Instant>,
    answers: Option<Result<(), Box<Failure>>>,
    committer: Option<Result<(), Box<Failure>>>,
    /// What we found ourselves: silence, mostly.
    found: Vec<Failure>,
    is_cancelled: bool,
    /// Both processes are over.
    all_over: Option<Instant>,
    progress: Instant,
}

impl<'a> Monitor<'a> {
    fn new(
        replication: &Replication<'a>,
        shared: &'a Shared<'a>,
        (stop, source_stop): (Stop, Stop),
        source: Option<Process>,
        destination: Process,
    ) -> Self {
        Self {
            limits: &replication.attempt.limits,
            guard: replication.guard,
            cancel: replication.cancel,
            shared,
            stop,
            source_stop,
            source: source.map(Life::new),
            destination: Life::new(destination),
            tell_source_ended: None,
            pump: None,
            pump_ended: None,
            answers: None,
            committer: None,
            found: Vec::new(),
            is_cancelled: false,
            all_over: None,
            progress: Instant::now(),
        }
    }

    fn watch(&mut self, events: &Sender<Event>) {
        let watch = |process: &Process, side| {
            let tell = events.clone();
            process.watch(move || drop(tell.send(Event::Ended(side))));
        };
        match &self.source {
            Some(source) => watch(&source.process, Side::Source),
            // A clear has no process that could fail.
            None => self.source_is_over(true),
        }
        watch(&self.destination.process, Side::Destination);
    }

    fn run(&mut self, happened: &Receiver<Event>) {
        while !self.is_done() {
            match happened.recv_timeout(TICK) {
                Ok(event) => self.on(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.tick();
        }
        self.shared.observer.progress(&self.shared.ledger().progress());
    }

    fn is_done(&self) -> bool {
        let source_over = self.source.as_ref().is_none_or(|source| source.over.is_some());
        let threads_over =
            self.pump.is_some() && self.answers.is_some() && self.committer.is_some();
        source_over && self.destination.over.is_some() && threads_over
    }

    fn on(&mut self, event: Event) {
        let now = Some(Instant::now());
        match event {
            Event::Ended(Side::Source) => {
                if let Some(source) = &mut self.source {
                    source.ended = now;
                }
            }
            Event::Ended(Side::Destination) => {
                self.destination.ended = now;
                if self.pump.is_none() {
                    // Nobody reads any more: what the source still has is for the next attempt.
                    self.ask_source();
                }
            }
            Event::SourceSilent => {
                if let Some(source) = &mut self.source {
                    source.silent = now;
                }
            }
            Event::Pump(end) => {
                match &end {
                    PumpEnd::Done | PumpEnd::SourceFailed => {}
                    PumpEnd::DestinationClosed | PumpEnd::Stopped | PumpEnd::Failed(_) => {
                        self.ask_source();
                    }
                }
                self.pump = Some(end);
                self.pump_ended = now;
            }
            Event::Answers(end) => {
                self.destination.silent = now;
                if end.is_err() {
                    self.ask_both();
                }
                self.answers = Some(end);
            }
            Event::Committer(end) => {
                if end.is_err() {
                    self.ask_both();
                }
                self.committer = Some(end);
            }
        }
    }

    fn tick(&mut self) {
        if self.cancel.is_cancelled() && !self.is_cancelled {
            self.is_cancelled = true;
            self.ask_both();
        }
        self.tick_processes();
        self.look_for_silence();
        self.end_what_hangs();
        if self.progress.elapsed() >= PROGRESS {
            self.progress = Instant::now();
            let progress = self.shared.ledger().progress();
            self.shared.observer.progress(&progress);
        }
    }

    fn tick_processes(&mut self) {
        let is_held = self.source_is_held();
        if let Some(source) = &mut self.source
            && source.tick(self.limits, self.guard, is_held)
        {
            let well = source.over.is_some_and(Exit::is_success) && !source.ended_as_asked();
            self.source_is_over(well);
        }
        let _ = self.destination.tick(self.limits, self.guard, true);
        let source_over = self.source.as_ref().is_none_or(|source| source.over.is_some());
        if source_over && self.destination.over.is_some() && self.all_over.is_none() {
            self.all_over = Some(Instant::now());
        }
    }

    /// Silence of which a connector is to blame.
    fn look_for_silence(&mut self) {
        let over = |age: Option<u64>, max: Duration| {
            age.is_some_and(|age| u128::from(age) > max.as_millis())
        };
        let writing = self.shared.writing.age_ms();
        let source_max = self.limits.source_silence_max;
        let source = self.source.as_ref().is_some_and(|source| {
            source.silent.is_none() && source.ended.is_none() && source.asked.is_none()
        });
        if source
            && self.pump.is_none()
            && writing.is_none()
            && over(self.shared.source.age_ms(), source_max)
        {
            self.found.push(Failure::new(
                Origin::Source,
                FailureType::HeartbeatTimeout,
                format!(
                    "the source hangs: no record and no state for {} s",
                    source_max.as_secs_f32()
                ),
            ));
            self.ask_source();
        }
        let max = self.limits.destination_silence_max;
        let finishing = self.pump_ended.is_some_and(|ended| {
            ended.elapsed() > max
                && self.shared.destination.age_ms().is_none_or(|age| over(Some(age), max))
        });
        let destination = &self.destination;
        let lives = destination.ended.is_none() && destination.asked.is_none();
        if lives && destination.silent.is_none() && (over(writing, max) || finishing) {
            let what =
                if finishing { "said nothing after the end of its input" } else { "took nothing" };
            self.found.push(Failure::new(
                Origin::Destination,
                FailureType::DestinationTimeout,
                format!("the destination hangs: it {what} for {} s", max.as_secs_f32()),
            ));
            self.ask_both();
        }
    }

    /// Connectors that do not end although their output is over; threads whose pipe somebody holds open.
    fn end_what_hangs(&mut self) {
        let grace = self.limits.exit_grace;
        let hangs = |life: &Life| {
            life.ended.is_none()
                && life.asked.is_none()
                && life.silent.is_some_and(|since| since.elapsed() > grace)
        };
        let sides = [
            (self.source.as_mut(), Side::Source),
            (Some(&mut self.destination), Side::Destination),
        ];
        for (life, side) in sides {
            let Some(life) = life.filter(|life| hangs(life)) else { continue };
            let message = format!(
                "the {} closed its output, but did not end within {} s",
                side.name(),
                grace.as_secs_f32()
            );
            self.found.push(Failure::new(side.origin(), FailureType::SystemError, message));
            life.ask();
        }
        let held = self.all_over.is_some_and(|since| since.elapsed() > self.limits.leftover_grace);
        // Its leftovers had one grace to end, and one more since they were killed.
        let source_held = self.source_is_held()
            && self.source.as_ref().is_some_and(|source| {
                let grace = self.limits.leftover_grace * 2;
                source.over.is_some() && source.ended.is_some_and(|since| since.elapsed() > grace)
            });
        if held || source_held {
            self.source_stop.stop();
        }
        // The destination goes on giving back states after the source is done with.
        if held {
            self.stop.stop();
        }
    }

    /// Everything that came was taken, and its output is still open. As long as a slow destination has not taken
    /// all of what stands in the pipe, a source that has ended is not to blame.
    fn source_is_held(&self) -> bool {
        let is_open = self.source.as_ref().is_some_and(|source| source.silent.is_none());
        let waits_ms = self.shared.reading.age_ms().unwrap_or(0);
        is_open && u128::from(waits_ms) > self.limits.leftover_grace.as_millis()
    }

    fn source_is_over(&mut self, well: bool) {
        if let Some(tell) = self.tell_source_ended.take() {
            let _ = tell.send(well);
        }
    }

    fn ask_source(&mut self) {
        if let Some(source) = &mut self.source {
            source.ask();
        }
    }

    fn ask_both(&mut self) {
        self.ask_source();
        self.destination.ask();
    }

    /// What it comes to.
    fn judge(self, source_said: &str, destination_said: &str, summary: &mut Summary) -> Status {
        let source_exit = self.source.as_ref().and_then(|source| source.over);
        let destination_exit = self.destination.over;
        summary.source_exit_code = source_exit.map(Exit::code);
        summary.destination_exit_code = destination_exit.map(Exit::code);
        let source_well = self.source.is_none() || source_exit.is_some_and(Exit::is_success);
        let well = source_well
            && destination_exit.is_some_and(Exit::is_success)
            && self.found.is_empty()
            && matches!(self.pump, Some(PumpEnd::Done))
            && matches!(self.answers, Some(Ok(())))
            && matches!(self.committer, Some(Ok(())));
        if well && !self.is_cancelled {
            return Status::Completed;
        }
        let is_cancelled = self.is_cancelled;
        let shared = self.shared;
        let failures = if is_cancelled {
            let message = "the attempt was cancelled";
            vec![Failure::new(Origin::AirbytePlatform, FailureType::ManualCancellation, message)]
        } else {
            self.failures(source_said, destination_said)
        };
        failures.into_iter().for_each(|failure| shared.fail(failure));
        if is_cancelled { Status::Cancelled } else { Status::Failed }
    }

    /// Why it failed: at least one reason.
    fn failures(self, source_said: &str, destination_said: &str) -> Vec<Failure> {
        let mut list = self.found;
        let mut exits = |life: &Life, side: Side, said: &str| {
            if let Some(exit) =
                life.over.filter(|exit| !exit.is_success() && !life.ended_as_asked())
            {
                list.push(exit.failure(side, said));
            }
        };
        // Who ended first is to blame first.
        let destination_first = self
            .source
            .as_ref()
            .is_none_or(|source| source.ended_as_asked() || source.ended > self.destination.ended);
        if destination_first {
            exits(&self.destination, Side::Destination, destination_said);
        }
        if let Some(source) = &self.source {
            exits(source, Side::Source, source_said);
        }
        if !destination_first {
            exits(&self.destination, Side::Destination, destination_said);
        }
        for end in [self.answers, self.committer].into_iter().flatten() {
            list.extend(end.err().map(|failure| *failure));
        }
        let kind = FailureType::SystemError;
        match self.pump {
            Some(PumpEnd::Failed(failure)) => list.push(*failure),
            Some(PumpEnd::DestinationClosed) if list.is_empty() => {
                let message = "the destination closed its input before everything was sent";
                list.push(Failure::new(Origin::Destination, kind, message));
            }
            Some(PumpEnd::Stopped) if list.is_empty() => {
                let message = "a process that a connector left behind held its output open";
                list.push(Failure::new(Origin::Source, kind, message));
            }
            _ => {}
        }
        if list.is_empty() {
            let message = "the attempt did not end as it should have";
            list.push(Failure::new(Origin::Replication, kind, message));
        }
        list
    }
}
