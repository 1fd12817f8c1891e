//! What a connector is asked by itself: `spec`, `check`, `discover`.

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::attempt::cancel::Cancel;
use crate::attempt::files::Files;
use crate::attempt::run::Connector;
use crate::failure::{Failure, FailureType, Origin};
use crate::journal::Journal;
use crate::limits::Limits;
use crate::observer::{Level, Observer};
use crate::pipe::answers::too_long;
use crate::pipe::lines::{Filled, Lines};
use crate::pipe::shared::for_log;
use crate::pipe::{speech, stderr};
use crate::process::wire::{Stop, Wire};
use crate::process::{Exit, Guard, Helper, Launch, Process, Side};
use crate::protocol::line::{self, Line};
use crate::protocol::message::{ConnectionStatus, Envelope, Trace};

/// Which question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// How is it configured?
    Spec,
    /// Does this configuration work?
    Check,
    /// Which streams are there?
    Discover,
}

impl Operation {
    /// As the connector knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Check => "check",
            Self::Discover => "discover",
        }
    }

    fn answer(self, message: &Envelope<'_>) -> Option<Value> {
        let field = match self {
            Self::Spec => message.spec,
            Self::Check => message.connection_status,
            Self::Discover => message.catalog,
        };
        field.and_then(|field| serde_json::from_str(field.get()).ok())
    }
}

/// Who is asked, and how.
pub struct Question<'a> {
    /// This program, as a helper.
    pub helper: &'a Helper,
    /// The name of the attempt, or another that nobody else has.
    pub attempt: &'a str,
    /// Where its files go.
    pub folder: &'a Path,
    /// How much it may take.
    pub limits: &'a Limits,
    /// Ends it if we die.
    pub guard: Option<&'a Guard>,
    /// Where a new configuration goes.
    pub journal: &'a dyn Journal,
    /// Who watches.
    pub observer: &'a dyn Observer,
    /// Ends it at any moment.
    pub cancel: &'a Cancel,
}

impl Question<'_> {
    /// The specification of a connector.
    ///
    /// # Errors
    /// If it gives none.
    pub fn spec(&self, side: Side, connector: &Connector) -> Result<Value, Vec<Failure>> {
        self.ask(Operation::Spec, side, connector)
    }

    /// Whether a configuration works.
    ///
    /// # Errors
    /// If it does not: then the first failure is a wrong configuration; or if it does not say.
    pub fn check(&self, side: Side, connector: &Connector) -> Result<(), Vec<Failure>> {
        let value = self.ask(Operation::Check, side, connector)?;
        let failed = |kind, message| vec![Failure::new(side.origin(), kind, message)];
        let status: ConnectionStatus = serde_json::from_value(value).map_err(|error| {
            failed(FailureType::SystemError, format!("the status of the check is strange: {error}"))
        })?;
        if status.status == "SUCCEEDED" {
            return Ok(());
        }
        let why = status.message.unwrap_or_else(|| "it did not say why".to_owned());
        let message = format!("the check of the {} failed: {why}", side.name());
        Err(failed(FailureType::ConfigError, message))
    }

    /// The streams of a source.
    ///
    /// # Errors
    /// If it shows none.
    pub fn discover(&self, connector: &Connector) -> Result<Value, Vec<Failure>> {
        self.ask(Operation::Discover, Side::Source, connector)
    }

    fn ask(
        &self,
        operation: Operation,
        side: Side,
        connector: &Connector,
    ) -> Result<Value, Vec<Failure>> {
        let platform = |error: &dyn std::error::Error| {
            let message = format!("failed to run {} of the {}", operation.name(), side.name());
            let failure = Failure::new(Origin::AirbytePlatform, FailureType::SystemError, message);
            vec![failure.internal(crate::journal::JournalError::new("start it", error).message)]
        };
        let ready = connector.command.program.ready(side, self.observer, self.cancel);
        ready.map_err(|failure| vec![*failure])?;
        self.observer.launched();
        let mut files =
            Files::new(self.folder, side, self.guard).map_err(|error| platform(&error))?;
        let mut words = vec![OsString::from(operation.name())];
        if operation != Operation::Spec {
            let config = files.write("config.json", &connector.config.to_string());
            words.extend(["--config".into(), config.map_err(|error| platform(&error))?.into()]);
        }
        let launch = Launch {
            helper: self.helper,
            attempt: self.attempt,
            side,
            command: &connector.command,
            words,
            directory: files.folder(),
            limits: self.limits,
            has_input: false,
            guard: self.guard,
        };
        let (mut process, streams) = Process::start(launch).map_err(|error| platform(&error))?;
        let (stop, quiet) = (Stop::new(), Stop::new());
        let (stop, quiet) =
            (stop.map_err(|error| platform(&error))?, quiet.map_err(|error| platform(&error))?);
        self.cancel.stops(&stop);
        let mut output = Wire::new(streams.output, stop).map_err(|error| platform(&error))?;
        let errors = Wire::new(streams.errors, quiet.clone()).map_err(|error| platform(&error))?;
        let began = Instant::now();
        output.until(began + self.limits.operation_max);
        let (heard, exit, said) = thread::scope(|scope| {
            let tail = scope.spawn(|| stderr::drain(&errors, side, self.observer));
            let heard = self.listen(operation, side, &output);
            let exit = self.end(&mut process, !matches!(heard.end, End::Closed));
            quiet.stop();
            (heard, exit, tail.join().unwrap_or_default())
        });
        self.judge(operation, side, heard, exit, &said)
    }

    fn listen(&self, operation: Operation, side: Side, output: &Wire) -> Heard {
        let mut heard =
            Heard { answer: None, failures: Vec::new(), is_unkept: false, end: End::Closed };
        let mut lines = Lines::new(self.limits.line_bytes_max);
        loop {
            let (range, is_end) = match lines.fill(output) {
                Ok(Filled::Lines(range)) => (range, false),
                Ok(Filled::End(range)) => (range, true),
                Ok(Filled::Stopped) | Err(_) => {
                    heard.end = End::Stopped;
                    return heard;
                }
                Ok(Filled::TooLong) => {
                    heard.end = End::Stopped;
                    heard.failures.push(too_long(side, self.limits.line_bytes_max));
                    return heard;
                }
            };
            self.observer.heard();
            for line in lines.bytes(range).split(|byte| *byte == b'\n') {
                self.take(operation, side, line, &mut heard);
            }
            if is_end {
                return heard;
            }
        }
    }

    fn take(&self, operation: Operation, side: Side, text: &[u8], heard: &mut Heard) {
        let message = match line::read(text) {
            Line::Message(message) => message,
            Line::Blank => return,
            Line::Record(_) | Line::Invalid(_) => {
                self.observer.log(Some(side), Level::Info, &for_log(text));
                return;
            }
        };
        if let Some(answer) = operation.answer(&message) {
            heard.answer.get_or_insert(answer);
        } else if let Some(log) = message.log {
            speech::hear_log(self.observer, side, log);
        } else if let Some(trace) = message.trace {
            let trace = serde_json::from_str::<Trace>(trace.get());
            if let Ok(Trace { error: Some(error), emitted_at, .. }) = trace
                && heard.failures.len() < crate::failure::FAILURES_MAX
            {
                let failure = speech::hear_error(self.observer, side, error, emitted_at);
                heard.failures.push(failure);
            }
        } else if let Some(control) = message.control
            && let Err(failure) = speech::hear_control(self.journal, self.observer, side, control)
        {
            heard.failures.push(*failure);
            heard.is_unkept = true;
        }
    }

    /// Waits for the end for a grace, then sees to it.
    fn end(&self, process: &mut Process, now: bool) -> Exit {
        let (tell, ended) = channel();
        process.watch(move || {
            let _ = tell.send(());
        });
        let wait = |ended: &Receiver<()>| ended.recv_timeout(self.limits.exit_grace).is_ok();
        if now || !wait(&ended) {
            process.terminate();
            let _ = wait(&ended);
        }
        process.finish(self.guard)
    }

    fn judge(
        &self,
        operation: Operation,
        side: Side,
        heard: Heard,
        exit: Exit,
        said: &str,
    ) -> Result<Value, Vec<Failure>> {
        let mut failures = heard.failures;
        if self.cancel.is_cancelled() {
            let message = "the attempt was cancelled";
            let kind = FailureType::ManualCancellation;
            return Err(vec![Failure::new(Origin::AirbytePlatform, kind, message)]);
        }
        // What is not kept is lost: a token that it changed may be of use only once.
        if heard.is_unkept {
            return Err(failures);
        }
        // A check that failed may end with any code.
        if let Some(answer) = heard.answer
            && (exit.is_success() || operation == Operation::Check)
        {
            return Ok(answer);
        }
        match heard.end {
            End::Stopped if failures.is_empty() => failures.push(Failure::new(
                side.origin(),
                FailureType::SystemError,
                format!(
                    "{} of the {} took more than {} s",
                    operation.name(),
                    side.name(),
                    self.limits.operation_max.as_secs()
                ),
            )),
            End::Stopped => {}
            End::Closed if exit.is_success() => failures.push(Failure::new(
                side.origin(),
                FailureType::SystemError,
                format!("{} of the {} ended without an answer", operation.name(), side.name()),
            )),
            End::Closed => failures.push(exit.failure(side, said)),
        }
        Err(failures)
    }
}

struct Heard {
    answer: Option<Value>,
    failures: Vec<Failure>,
    /// It changed its configuration, which could not be kept.
    is_unkept: bool,
    end: End,
}

enum End {
    /// Its output is over.
    Closed,
    /// It took too long, or somebody cancelled.
    Stopped,
}
