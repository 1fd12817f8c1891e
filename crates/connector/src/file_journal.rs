//! A journal in a folder: for syncs without a server.
//!
//! `journal.json` is one [`Book`], written anew for each commit: beside, synced, renamed, the folder synced. It
//! holds secrets where connectors changed their configuration, and so is for its owner alone. `lock` is
//! held as long as a sync runs, by its connectors too: whoever opens the folder after a crash waits
//! until none is left.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::attempt::generation::Generations;
use crate::durable;
use crate::journal::{Commit, Journal, JournalError};
use crate::process::lock::{Lock, LockError};
use crate::process::{Side, sweep};
use crate::protocol::message::Descriptor;
use crate::summary::StreamStats;

/// The version of the file; a newer one is refused.
const VERSION: u32 = 1;
/// How long one waits for the processes of a sync that was killed.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);

/// A journal that cannot be used.
#[derive(Debug, Error)]
pub enum FileJournalError {
    /// Somebody else has it.
    #[error("another sync runs with {}", .0.display())]
    Busy(PathBuf),
    /// The disk, mostly.
    #[error("failed to {what} {}", path.display())]
    Io {
        /// `read`, `write`, …
        what: &'static str,
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not a journal, or of a newer version.
    #[error("{} cannot be read as a journal: {why}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// What is remembered between attempts, and between syncs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Book {
    version: u32,
    /// The number of the sync, from 1.
    pub sync: u64,
    /// The number of its attempt, from 0.
    pub attempt: u64,
    /// By which the processes of the attempt are found.
    pub attempt_name: String,
    /// Whether the sync has completed: the next one is another.
    pub is_finished: bool,
    /// Whether it takes away what was written.
    #[serde(default)]
    pub is_clear: bool,
    /// Of the last commit of the attempt.
    pub sequence: u64,
    /// Of each stream.
    #[serde(with = "generations")]
    pub generations: Generations,
    /// As for `--state`.
    #[serde(serialize_with = "write_state", deserialize_with = "read_state")]
    pub state: Vec<Arc<str>>,
    /// The counts of the attempt.
    pub streams: Vec<StreamStats>,
    /// The counts of the attempts of the sync before it, added up.
    pub earlier: Vec<StreamStats>,
    /// What the source last showed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<Value>,
    /// A configuration that the source changed, and the one that it was given then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_config: Option<Changed>,
    /// The same of the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_config: Option<Changed>,
}

/// A configuration that a connector changed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Changed {
    /// What it was given.
    pub given: Value,
    /// What it made of it.
    pub now: Value,
}

impl Book {
    /// The configuration to use where this one is given: the changed one, as long as nobody gives another.
    #[must_use]
    pub fn newest(&self, side: Side, given: &Value) -> Value {
        let changed = match side {
            Side::Source => &self.source_config,
            Side::Destination => &self.destination_config,
        };
        match changed {
            Some(changed) if changed.given == *given => changed.now.clone(),
            Some(_) | None => given.clone(),
        }
    }

    /// Another attempt begins: with a new sync, if the last one has finished or had another purpose.
    /// Says whether it is the first of its sync.
    pub fn begin(&mut self, name: &str, is_clear: bool) -> bool {
        let is_first = self.sync == 0 || self.is_finished || self.is_clear != is_clear;
        self.is_clear = is_clear;
        if is_first {
            self.sync += 1;
            self.attempt = 0;
            self.earlier.clear();
        } else {
            self.attempt += 1;
            add_up(&mut self.earlier, &self.streams);
        }
        self.is_finished = false;
        self.sequence = 0;
        self.streams.clear();
        self.attempt_name = format!("{name}-{}-{}", self.sync, self.attempt);
        is_first
    }
}

fn add_up(sums: &mut Vec<StreamStats>, streams: &[StreamStats]) {
    for stream in streams {
        let is_same =
            |sum: &&mut StreamStats| sum.name == stream.name && sum.namespace == stream.namespace;
        match sums.iter_mut().find(is_same) {
            Some(sum) => {
                sum.records_emitted += stream.records_emitted;
                sum.bytes_emitted += stream.bytes_emitted;
                sum.records_committed += stream.records_committed;
                sum.bytes_committed += stream.bytes_committed;
                sum.records_rejected += stream.records_rejected;
                sum.records_filtered += stream.records_filtered;
            }
            None => sums.push(stream.clone()),
        }
    }
}

/// The journal, open and ours.
#[derive(Debug)]
pub struct FileJournal {
    folder: PathBuf,
    book: Mutex<Book>,
    /// What connectors were given in this attempt.
    given: Mutex<(Value, Value)>,
    _lock: Lock,
}

impl FileJournal {
    /// Opens it, or makes it; what is left of a killed attempt is ended first.
    ///
    /// # Errors
    /// If somebody else has it, or it cannot be read.
    pub fn open(folder: &Path) -> Result<Self, FileJournalError> {
        let io = |what, path: &Path| {
            let path = path.to_owned();
            move |source| FileJournalError::Io { what, path, source }
        };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(io("make", folder))?;
        // Connectors hold it too: who waits for it waits for them.
        let lock =
            Lock::take(&folder.join("lock"), LOCK_PATIENCE).map_err(|error| match error {
                LockError::Held(_) => FileJournalError::Busy(folder.to_owned()),
                LockError::Io { path, source } => {
                    FileJournalError::Io { what: "lock", path, source }
                }
            })?;
        let path = folder.join("journal.json");
        let book = read(&path)?;
        let name = &book.attempt_name;
        if !name.is_empty() && !sweep::sweep_all(folder, name, LOCK_PATIENCE) {
            return Err(FileJournalError::Busy(folder.to_owned()));
        }
        Ok(Self {
            folder: folder.to_owned(),
            book: Mutex::new(book),
            given: Mutex::default(),
            _lock: lock,
        })
    }

    /// What it holds now.
    #[must_use]
    pub fn book(&self) -> Book {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes it, durably.
    ///
    /// # Errors
    /// If it cannot be written; then the change is there for this process only.
    pub fn change(&self, change: impl FnOnce(&mut Book)) -> Result<(), FileJournalError> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut book);
        book.version = VERSION;
        self.write(&book)
    }

    /// Says what the connectors are given, to know it again.
    pub fn given(&self, source: Value, destination: Value) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = (source, destination);
    }

    fn write(&self, book: &Book) -> Result<(), FileJournalError> {
        let path = self.folder.join("journal.json");
        let text = serde_json::to_vec(book).map_err(io::Error::from);
        let written = text.and_then(|text| durable::write(&path, &text));
        written.map_err(|source| FileJournalError::Io { what: "write", path, source })
    }
}

impl Journal for FileJournal {
    fn commit(&self, commit: &Commit) -> Result<(), JournalError> {
        let changed = self.change(|book| {
            book.sequence = commit.sequence;
            book.state.clone_from(&commit.state);
            book.streams.clone_from(&commit.streams);
        });
        changed.map_err(|error| JournalError::new("keep a state", &error))
    }

    fn configuration(&self, side: Side, config: &str) -> Result<(), JournalError> {
        let failed =
            |error: &dyn std::error::Error| JournalError::new("keep a configuration", error);
        let now: Value = serde_json::from_str(config).map_err(|error| failed(&error))?;
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let changed = self.change(|book| match side {
            Side::Source => book.source_config = Some(Changed { given: given.0, now }),
            Side::Destination => book.destination_config = Some(Changed { given: given.1, now }),
        });
        changed.map_err(|error| failed(&error))
    }
}

fn read(path: &Path) -> Result<Book, FileJournalError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Book::default()),
        Err(source) => {
            return Err(FileJournalError::Io { what: "read", path: path.to_owned(), source });
        }
    };
    let damaged = |why| FileJournalError::Damaged { path: path.to_owned(), why };
    let book: Book = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if book.version > VERSION {
        let version = book.version;
        return Err(damaged(format!("it is of version {version}, we know {VERSION}")));
    }
    Ok(book)
}

fn write_state<S: Serializer>(state: &[Arc<str>], serializer: S) -> Result<S::Ok, S::Error> {
    let raw = state.iter().map(|state| RawValue::from_string(state.to_string()));
    let raw: Result<Vec<_>, _> = raw.collect();
    raw.map_err(serde::ser::Error::custom)?.serialize(serializer)
}

fn read_state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Arc<str>>, D::Error> {
    let raw = Vec::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(raw.into_iter().map(|state| Arc::from(state.get())).collect())
}

/// As a list, for names are objects.
mod generations {
    use super::{Descriptor, Deserialize, Deserializer, Generations, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        generations: &Generations,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        generations.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Generations, D::Error> {
        let list = Vec::<(Descriptor, u64)>::deserialize(deserializer)?;
        Ok(list.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_committed_is_there_when_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let state: Arc<str> = Arc::from(r#"{"data":{"n":1.50}}"#);
        let stats =
            StreamStats { name: "a".to_owned(), records_committed: 5, ..StreamStats::default() };
        {
            let journal = FileJournal::open(folder.path()).unwrap();
            journal.given(json!({"token": 1}), json!({}));
            journal.change(|book| assert!(book.begin("s", false))).unwrap();
            let commit = Commit { sequence: 1, state: vec![state.clone()], streams: vec![stats] };
            journal.commit(&commit).unwrap();
            journal.configuration(Side::Source, r#"{"token":2}"#).unwrap();
            journal
                .change(|book| book.generations.extend([(Descriptor::new("a", "n"), 3)]))
                .unwrap();
        }
        let journal = FileJournal::open(folder.path()).unwrap();
        let mut book = journal.book();
        assert_eq!(book.state, [state]);
        assert_eq!(book.newest(Side::Source, &json!({"token": 1})), json!({"token": 2}));
        assert_eq!(book.newest(Side::Source, &json!({"token": 9})), json!({"token": 9}));
        assert_eq!(book.generations[&Descriptor::new("a", "n")], 3);
        assert!(!book.begin("s", false), "it goes on");
        assert_eq!((book.sync, book.attempt, book.earlier[0].records_committed), (1, 1, 5));
        book.is_finished = true;
        assert!(book.begin("s", false));
        assert_eq!((book.sync, book.attempt, book.earlier.len()), (2, 0, 0));
        assert!(book.begin("s", true), "a clear does not go on with a sync");
        assert!(!book.begin("s", true));
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["", "[]", r#"{"version":1}"#] {
            fs::write(folder.path().join("journal.json"), text).unwrap();
            let opened = FileJournal::open(folder.path());
            assert!(matches!(opened, Err(FileJournalError::Damaged { .. })), "{text}");
        }
    }
}
