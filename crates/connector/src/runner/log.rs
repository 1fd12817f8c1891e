//! The log of an attempt: a file that is bounded, and what the job's own log is told of it.

use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::log_file::LogFile;
use crate::observer::{Level, Observer, now_ms};
use crate::process::Side;
use crate::runner::folder::masked;
use crate::runner::phase::Phase;

/// Bytes of the file, and of the older one.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Lines that wait to be told to the job.
const TOLD_MAX: usize = 200;
/// Texts that it hides; the oldest go.
const SECRETS_MAX: usize = 1_000;

/// A log that takes what an attempt says.
#[derive(Debug)]
pub struct Log {
    inner: Mutex<Inner>,
    phase: watch::Sender<Phase>,
}

#[derive(Debug)]
struct Inner {
    file: LogFile,
    /// For the job's log.
    told: Vec<String>,
    dropped: u64,
    secrets: Vec<String>,
}

impl Log {
    /// Goes on with the file at `path`, or begins it.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = LogFile::open(path, FILE_BYTES_MAX)?;
        let (told, secrets) = (Vec::new(), Vec::new());
        let inner = Mutex::new(Inner { file, told, dropped: 0, secrets });
        Ok(Log { inner, phase: watch::Sender::default() })
    }

    /// How far the attempt is.
    #[must_use]
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    fn reach(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let is_new = *now < phase;
            *now = (*now).max(phase);
            is_new
        });
    }

    /// More texts that it must not have from now on.
    pub fn hide(&self, secrets: Vec<String>) {
        let mut inner = self.lock();
        inner.secrets.retain(|known| !secrets.contains(known));
        inner.secrets.extend(secrets);
        let too_many = inner.secrets.len().saturating_sub(SECRETS_MAX);
        inner.secrets.drain(..too_many);
    }

    /// All that it must not have.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.lock().secrets.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What could not be told after all.
    pub fn put_back(&self, lines: Vec<String>) {
        let mut inner = self.lock();
        let newer = std::mem::replace(&mut inner.told, lines);
        inner.told.extend(newer);
        let too_many = inner.told.len().saturating_sub(TOLD_MAX);
        inner.told.truncate(TOLD_MAX);
        inner.dropped += u64::try_from(too_many).unwrap_or(0);
    }

    /// What the job's log is to be told since the last time.
    pub fn take(&self) -> Vec<String> {
        let mut inner = self.lock();
        let dropped = std::mem::take(&mut inner.dropped);
        if dropped > 0 {
            inner.told.push(format!("{dropped} lines are in the attempt's own log only"));
        }
        std::mem::take(&mut inner.told)
    }
}

impl Observer for Log {
    fn log(&self, side: Option<Side>, level: Level, text: &str) {
        let line = format!("{} {}: {text}", level.name(), side.map_or("windlass", Side::name));
        let mut inner = self.lock();
        let line = masked(&line, &inner.secrets);
        inner.file.write(&format!("{} {line}", now_ms()));
        if side.is_none() || level >= Level::Warn {
            if inner.told.len() < TOLD_MAX {
                inner.told.push(line);
            } else {
                inner.dropped += 1;
            }
        }
    }

    fn step(&self, name: &str) {
        self.log(None, Level::Info, name);
    }

    fn launched(&self) {
        self.reach(Phase::Launched);
    }

    fn heard(&self) {
        self.reach(Phase::Running);
    }
}
