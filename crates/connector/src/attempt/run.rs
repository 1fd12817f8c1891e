//! The steps of an attempt, one after the other.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::attempt::cancel::Cancel;
use crate::attempt::operation::Question;
use crate::attempt::replicate::{self, Replication};
use crate::failure::{Failure, FailureType, Failures, Origin};
use crate::journal::{Commit, Journal, JournalError};
use crate::limits::Limits;
use crate::observer::{Observer, now_ms};
use crate::process::{Command, Guard, Helper, Side};
use crate::protocol::catalog::{Catalog, Mapping};
use crate::protocol::message::Descriptor;
use crate::summary::{Status, Step, Summary};

/// A connector with its configuration.
#[derive(Debug, Clone)]
pub struct Connector {
    /// How it is started.
    pub command: Command,
    /// Secrets included.
    pub config: Value,
}

/// What comes before the replication.
#[derive(Debug, Clone, Copy, Default)]
pub struct Steps {
    /// Whether the source's configuration works.
    pub check_source: bool,
    /// Whether the destination's configuration works.
    pub check_destination: bool,
    /// What the source has.
    pub discover: bool,
}

/// What an attempt begins with, once it is known what the source has.
#[derive(Debug, Clone)]
pub struct Begun {
    /// A configured catalog.
    pub catalog: Value,
    /// What the source starts from.
    pub state: Vec<Arc<str>>,
}

/// Makes of what a source showed what the attempt begins with.
pub type Discovered<'a> = &'a (dyn Fn(&Value) -> Result<Begun, Box<Failure>> + Sync);

/// Everything that is to be done.
pub struct Attempt<'a> {
    /// A name that no other attempt has: processes are found by it.
    pub name: String,
    /// Where files go while it runs.
    pub folder: PathBuf,
    /// This program, as a helper.
    pub helper: Helper,
    /// Where records come from; `None` is a clear.
    pub source: Option<Connector>,
    /// Where they go.
    pub destination: Connector,
    /// A configured catalog.
    pub catalog: Value,
    /// Makes the catalog and the state anew of what was discovered.
    pub discovered: Option<Discovered<'a>>,
    /// Streams of which only some fields are sent on.
    pub selected: Vec<(Descriptor, Vec<String>)>,
    /// What streams are called at the destination.
    pub mapping: Mapping,
    /// What the source starts from: the elements of a state file.
    pub state: Vec<Arc<str>>,
    /// What comes before.
    pub steps: Steps,
    /// How much each of it may take.
    pub limits: Limits,
}

/// Does it, on this thread and some others, and returns when no process of it is left. The thread must
/// live as long.
#[must_use]
pub fn run(
    attempt: Attempt<'_>,
    journal: &dyn Journal,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Summary {
    let mut summary = Summary::begun();
    let mut attempt = attempt;
    let journal = Remembering { journal, latest: Mutex::default() };
    let guard = match Guard::start(&attempt.helper, &attempt.name) {
        Ok(guard) => guard,
        Err(error) => {
            let message = "failed to start the guard of the attempt";
            let failure = Failure::new(Origin::AirbytePlatform, FailureType::SystemError, message);
            return summary.end(Status::Failed, vec![failure.internal(error.to_string())]);
        }
    };
    let prepared = ready(&attempt, observer, cancel)
        .and_then(|()| prepare(&mut attempt, &mut summary, &guard, &journal, observer, cancel));
    if let Err(failures) = prepared {
        let status = if cancel.is_cancelled() { Status::Cancelled } else { Status::Failed };
        summary.keep_state(&attempt.state);
        return summary.end(status, bounded(failures));
    }
    journal.update(&mut attempt);
    observer.step("replicate");
    let began = now_ms();
    let replication =
        Replication { attempt: &attempt, guard: &guard, journal: &journal, observer, cancel };
    let (status, failures) = replicate::run(&replication, &mut summary);
    summary.steps.push(Step {
        name: "replicate".to_owned(),
        started_at: began,
        ended_at: now_ms(),
        succeeded: status == Status::Completed,
    });
    summary.end(status, failures.into_list())
}

fn bounded(failures: Vec<Failure>) -> Vec<Failure> {
    let mut all = Failures::default();
    failures.into_iter().for_each(|failure| all.push(failure));
    all.into_list()
}

/// Whatever is started is there.
fn ready(
    attempt: &Attempt<'_>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<(), Vec<Failure>> {
    let source = attempt.source.as_ref().map(|source| (Side::Source, source));
    for (side, connector) in source.into_iter().chain([(Side::Destination, &attempt.destination)]) {
        let ready = connector.command.program.ready(side, observer, cancel);
        ready.map_err(|failure| vec![*failure])?;
    }
    observer.launched();
    Ok(())
}

/// Checks and discovery.
fn prepare(
    attempt: &mut Attempt<'_>,
    summary: &mut Summary,
    guard: &Guard,
    journal: &Remembering<'_>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<(), Vec<Failure>> {
    let steps = attempt.steps;
    let wanted = [
        (steps.check_source && attempt.source.is_some(), "check source"),
        (steps.check_destination, "check destination"),
        (steps.discover && attempt.source.is_some(), "discover"),
    ];
    for (_, name) in wanted.into_iter().filter(|(wanted, _)| *wanted) {
        observer.step(name);
        let began = now_ms();
        let question = Question {
            helper: &attempt.helper,
            attempt: &attempt.name,
            folder: &attempt.folder,
            limits: &attempt.limits,
            guard: Some(guard),
            journal,
            observer,
            cancel,
        };
        let done = match (name, &attempt.source) {
            ("check source", Some(source)) => question.check(Side::Source, source).map(|()| None),
            ("discover", Some(source)) => question.discover(source).map(Some),
            _ => question.check(Side::Destination, &attempt.destination).map(|()| None),
        };
        journal.update(attempt);
        let succeeded = done.is_ok();
        let name = name.to_owned();
        summary.steps.push(Step { name, started_at: began, ended_at: now_ms(), succeeded });
        if let Some(catalog) = done? {
            if let Some(discovered) = attempt.discovered {
                let begun = discovered(&catalog).map_err(|failure| vec![*failure])?;
                (attempt.catalog, attempt.state) = (begun.catalog, begun.state);
            }
            summary.catalog = Some(catalog);
        }
    }
    Ok(())
}

/// The catalog of an attempt, with its names and selections.
pub(super) fn catalog_of(attempt: &Attempt<'_>) -> Result<Catalog, Box<Failure>> {
    let mut catalog = Catalog::new(&attempt.catalog, &attempt.mapping).map_err(|error| {
        let kind = FailureType::ConfigError;
        Box::new(Failure::new(Origin::AirbytePlatform, kind, error.to_string()))
    })?;
    for (stream, fields) in &attempt.selected {
        catalog.select(stream, fields.clone());
    }
    Ok(catalog)
}

/// A journal that also knows the newest configurations, for the steps that follow.
struct Remembering<'a> {
    journal: &'a dyn Journal,
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    source: Option<Value>,
    destination: Option<Value>,
}

impl Remembering<'_> {
    fn update(&self, attempt: &mut Attempt<'_>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(config), Some(source)) = (latest.source.take(), &mut attempt.source) {
            source.config = config;
        }
        if let Some(config) = latest.destination.take() {
            attempt.destination.config = config;
        }
    }
}

impl Journal for Remembering<'_> {
    fn commit(&self, commit: &Commit) -> Result<(), JournalError> {
        self.journal.commit(commit)
    }

    fn configuration(&self, side: Side, config: &str) -> Result<(), JournalError> {
        self.journal.configuration(side, config)?;
        let parsed = serde_json::from_str(config).ok();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match side {
            Side::Source => latest.source = parsed,
            Side::Destination => latest.destination = parsed,
        }
        Ok(())
    }
}
