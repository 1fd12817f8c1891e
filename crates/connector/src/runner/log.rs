//! The log of an attempt: a file that is bounded, and what the job's own log is told of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::observer::{Level, Observer, now_ms};
use crate::process::Side;
use crate::runner::folder::masked;

/// Bytes of the file; then it becomes the older one, of which there is one.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Lines that wait to be told to the job.
const TOLD_MAX: usize = 200;

/// A log that takes what an attempt says.
#[derive(Debug)]
pub struct Log {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// For the job's log.
    told: Vec<String>,
    dropped: u64,
    step: String,
    secrets: Vec<String>,
}

impl Log {
    /// Goes on with the file at `path`, or begins it.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Log> {
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        let path = path.to_owned();
        let (told, step) = (Vec::new(), String::new());
        let secrets = Vec::new();
        let inner = Mutex::new(Inner { path, file, bytes, told, dropped: 0, step, secrets });
        Ok(Log { inner })
    }

    /// Texts that it must not have from now on.
    pub fn hide(&self, secrets: Vec<String>) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).secrets = secrets;
    }

    /// What could not be told after all.
    pub fn put_back(&self, lines: Vec<String>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = std::mem::replace(&mut inner.told, lines);
        inner.told.extend(newer);
        let too_many = inner.told.len().saturating_sub(TOLD_MAX);
        inner.told.truncate(TOLD_MAX);
        inner.dropped += u64::try_from(too_many).unwrap_or(0);
    }

    /// What the job's log is to be told since the last time.
    pub fn take(&self) -> Vec<String> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = std::mem::take(&mut inner.dropped);
        if dropped > 0 {
            inner.told.push(format!("{dropped} lines are in the attempt's own log only"));
        }
        std::mem::take(&mut inner.told)
    }

    /// The step that the attempt is at.
    pub fn current_step(&self) -> String {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).step.clone()
    }
}

impl Observer for Log {
    fn log(&self, side: Option<Side>, level: Level, text: &str) {
        let line = format!("{} {}: {text}", level.name(), side.map_or("windlass", Side::name));
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let line = masked(&line, &inner.secrets);
        inner.write(&line);
        if side.is_none() || level >= Level::Warn {
            if inner.told.len() < TOLD_MAX {
                inner.told.push(line);
            } else {
                inner.dropped += 1;
            }
        }
    }

    fn step(&self, name: &str) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).step = name.to_owned();
        self.log(None, Level::Info, name);
    }
}

impl Inner {
    /// A log that cannot be written holds nothing up.
    fn write(&mut self, line: &str) {
        let line = format!("{} {line}\n", now_ms());
        if self.bytes > FILE_BYTES_MAX
            && fs::rename(&self.path, self.path.with_extension("old")).is_ok()
            && let Ok(file) = append(&self.path)
        {
            self.file = file;
            self.bytes = 0;
        }
        if self.file.write_all(line.as_bytes()).is_ok() {
            self.bytes += u64::try_from(line.len()).unwrap_or(0);
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}
