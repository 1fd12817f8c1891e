//! Where a connector runs: the seam between an attempt and what launches its connectors.
//!
//! Whatever it is, an attempt sees a process of ours with three streams: it is signalled, waited for and killed as a
//! group, and its exit code is the connector's. A program of this machine *is* that process; for a container a
//! helper stands in for it. Another launcher is another variant with four answers: is it ready, which process stands for it,
//! is something left of it, and what says so before there is anything.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::attempt::cancel::Cancel;
use crate::docker::container::{TASK, Task, handed_on};
use crate::docker::sweep::Mark;
use crate::docker::{self, Image};
use crate::failure::{Failure, FailureType};
use crate::limits::Limits;
use crate::observer::Observer;
use crate::process::connector::{Launch, ProcessError, Side};
use crate::process::environment;

/// How a connector is started; its subcommand and files come behind it.
#[derive(Debug, Clone)]
pub struct Command {
    /// What is started.
    pub program: Program,
    /// Variables beside those that every connector gets.
    pub environment: Vec<(String, String)>,
}

impl Command {
    /// A program of this machine.
    #[must_use]
    pub fn local(words: Vec<String>) -> Self {
        Self { program: Program::Local { words, directory: None }, environment: Vec::new() }
    }

    /// An image.
    #[must_use]
    pub fn image(image: Image) -> Self {
        Self { program: Program::Image(image), environment: Vec::new() }
    }
}

/// What is started.
#[derive(Debug, Clone)]
pub enum Program {
    /// A program of this machine.
    Local {
        /// The program and what always stands behind it.
        words: Vec<String>,
        /// Where it runs, if not in the attempt's own folder.
        directory: Option<PathBuf>,
    },
    /// A container of an image.
    Image(Image),
}

impl Program {
    /// Sees to it that it can be started: what is not there yet is fetched.
    ///
    /// # Errors
    /// If it cannot.
    pub fn ready(
        &self,
        side: Side,
        observer: &dyn Observer,
        cancel: &Cancel,
    ) -> Result<(), Box<Failure>> {
        match self {
            Self::Local { directory: Some(directory), .. } if !directory.is_dir() => {
                let message = format!(
                    "the directory of the {} is not there: {}",
                    side.name(),
                    directory.display()
                );
                Err(Box::new(Failure::new(side.origin(), FailureType::ConfigError, message)))
            }
            Self::Local { .. } => Ok(()),
            Self::Image(image) => image.ready(side, observer, cancel),
        }
    }

    /// Says, durably, that something may be there that no process of ours is; before it is.
    pub(super) fn mark(&self, launch: &Launch<'_>) -> Result<Option<Mark>, ProcessError> {
        match self {
            Self::Local { .. } => Ok(None),
            Self::Image(_) => Mark::make(launch.directory)
                .map(Some)
                .map_err(|source| ProcessError::Start { side: launch.side, source }),
        }
    }

    /// The process that is the connector, or stands in for it.
    pub(super) fn process(
        &self,
        launch: &Launch<'_>,
    ) -> Result<std::process::Command, ProcessError> {
        match self {
            Self::Local { words, directory } => {
                let directory = directory.as_deref().unwrap_or(launch.directory);
                local(launch, words, directory)
            }
            Self::Image(image) => container(launch, image),
        }
    }

    /// Ends what is left of it beside its process. Says whether all is gone.
    pub(super) fn sweep(&self, attempt: &str, side: Side, patience: Duration) -> bool {
        match self {
            Self::Local { .. } => true,
            Self::Image(_) => docker::sweep::sweep(attempt, Some(side), patience),
        }
    }
}

fn local(
    launch: &Launch<'_>,
    words: &[String],
    directory: &Path,
) -> Result<std::process::Command, ProcessError> {
    let (program, words) = words.split_first().ok_or(ProcessError::NoCommand(launch.side))?;
    let mut command = launch.helper.exec(launch.limits, OsStr::new(program));
    command.args(words).args(&launch.words).env_clear();
    command.envs(environment::of(launch.attempt, launch.side, &launch.command.environment));
    command.current_dir(directory);
    Ok(command)
}

/// The limits are the container's, not those of who stands in for it.
fn container(launch: &Launch<'_>, image: &Image) -> Result<std::process::Command, ProcessError> {
    let failed =
        |why: String| ProcessError::Start { side: launch.side, source: std::io::Error::other(why) };
    let text = |word: &OsString| {
        let text = word.to_str().map(str::to_owned);
        text.ok_or_else(|| failed(format!("{} is no text", word.display())))
    };
    let limits = launch.limits;
    let extra = &launch.command.environment;
    let mut variables: Vec<(String, String)> = handed_on().into_iter().collect();
    variables.extend(environment::expected(launch.side));
    variables.push(("WORKER_CONNECTOR_IMAGE".to_owned(), image.name.clone()));
    variables.retain(|(name, _)| !extra.iter().any(|(own, _)| own == name));
    variables.extend(extra.iter().cloned());
    let task = Task {
        image: image.clone(),
        attempt: launch.attempt.to_owned(),
        side: launch.side.name().to_owned(),
        words: launch.words.iter().map(text).collect::<Result<_, _>>()?,
        environment: variables,
        files: launch.directory.to_owned(),
        has_input: launch.has_input,
        memory_bytes_max: limits.memory_bytes_max,
        cpu_seconds_max: limits.cpu_seconds_max,
        files_max: limits.files_max,
    };
    let task = serde_json::to_string(&task).map_err(|error| failed(error.to_string()))?;
    let own = Limits { memory_bytes_max: None, cpu_seconds_max: None, ..limits.clone() };
    let mut command = launch.helper.exec(&own, launch.helper.program.as_os_str());
    command.args(&launch.helper.words).arg("container").env_clear();
    command.envs(environment::of(launch.attempt, launch.side, &[]));
    command.env(docker::HOST, docker::address()).env(TASK, task);
    command.current_dir(launch.directory);
    Ok(command)
}
