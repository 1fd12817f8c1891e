//! The way in: [`History`] is fed by one thread and asked by many.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension};

use crate::error::{HistoryError, Result};
use crate::options::Options;
use crate::project::{Problem, Projection};
use crate::retention;
use crate::schema::{self, Found as Opened, stored};
use crate::search::{self, Entity, Found, Search, Task, Workflow};
use crate::workflow::{self, WorkflowSearch};

/// A flush that fails is tried again so often; then its records are a gap. A full disk, a lock and
/// the like are no such failures: they are tried for ever.
const FAILURES_MAX: u32 = 5;
/// Where nothing is to be written, how far it is gets written so seldom, in time of the records: a
/// restart is given that much again.
const CURSOR_EVERY_MS: u64 = 1_000;

/// The read model; cheap to clone.
#[derive(Clone)]
pub struct History {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    options: Options,
    writer: Mutex<Writer>,
    /// Idle connections for searches.
    readers: Mutex<Vec<Connection>>,
    /// Held by searches, and alone by who begins the database anew.
    gate: RwLock<()>,
    covered: AtomicU64,
    kept: AtomicU64,
    gaps: AtomicU64,
    lsns_missed: AtomicU64,
    waiting: Mutex<Vec<Waiting>>,
}

/// Who feeds it.
struct Writer {
    projection: Projection,
    /// Why what was taken since the last flush cannot be written.
    failed: Option<rusqlite::Error>,
    failures: u32,
    /// The newest record's time when it was last written how far this is.
    cursor_ms: u64,
    /// Nothing came since there was nothing more to delete.
    is_settled: bool,
}

impl Writer {
    fn new(projection: Projection) -> Writer {
        Writer { projection, failed: None, failures: 0, cursor_ms: 0, is_settled: false }
    }
}

/// Who waits for an lsn.
struct Waiting {
    lsn: u64,
    tell: Box<dyn FnOnce() + Send>,
}

/// The log that feeds it, as it is when the feed begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The log's life: records of another one have nothing to do with what is here.
    pub life: u64,
    /// The newest durable record.
    pub durable_lsn: u64,
}

/// Records that never came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first of them.
    pub first_lsn: u64,
    /// The last of them.
    pub last_lsn: u64,
    /// Why.
    pub reason: String,
    /// The newest record's time when this was found; 0 before the first.
    pub noted_ms: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Everything up to here is in it, but for the gaps.
    pub covered_lsn: u64,
    /// How many gaps there are.
    pub gaps: u64,
    /// How many records are missing.
    pub lsns_missed: u64,
}

impl History {
    /// Opens the database of this file, or makes it. One that cannot be used is put aside.
    pub fn open(path: &Path, options: Options) -> Result<History> {
        let (database, opened) = schema::open_or_begin(path)?;
        if let Opened::PutAside(reason) = &opened {
            tracing::warn!(
                path = %path.display(),
                reason,
                "the history cannot be used: it is put aside and begun anew"
            );
        }
        let projection = Projection::new(database, options)?;
        let writer = Writer::new(projection);
        let shared = Shared {
            path: path.to_owned(),
            options,
            writer: Mutex::new(writer),
            readers: Mutex::default(),
            gate: RwLock::default(),
            covered: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            lsns_missed: AtomicU64::new(0),
            waiting: Mutex::default(),
        };
        let history = History { shared: Arc::new(shared) };
        let writer = history.writer();
        history.recall(&writer.projection)?;
        drop(writer);
        Ok(history)
    }

    /// Sets the numbers that anybody may ask from what the database says.
    fn recall(&self, projection: &Projection) -> rusqlite::Result<()> {
        let covered = projection.meta("covered")?.cast_unsigned();
        self.shared.covered.store(covered, Ordering::Release);
        self.shared.kept.store(covered, Ordering::Release);
        let sql = "SELECT COUNT(*), COALESCE(SUM(last_lsn - first_lsn + 1), 0) FROM gaps";
        let (gaps, missed): (i64, i64) =
            projection.database.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.shared.gaps.store(gaps.cast_unsigned(), Ordering::Relaxed);
        self.shared.lsns_missed.store(missed.cast_unsigned(), Ordering::Relaxed);
        Ok(())
    }

    fn recall_or_warn(&self, projection: &Projection) {
        if let Err(error) = self.recall(projection) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "failed to read how far the history is"
            );
        }
    }

    // ── for the feed ────────────────────────────────────────────────────────────────────────

    /// This log feeds it from now on. Says the newest record that it has.
    pub fn begin(&self, origin: &Origin) -> u64 {
        let mut writer = self.writer();
        if let Err(error) = self.try_begin(&mut writer, origin) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "failed to read the history: it is put aside and begun anew"
            );
            self.begin_anew(&mut writer, Some(origin.life));
        }
        self.covered()
    }

    fn try_begin(&self, writer: &mut Writer, origin: &Origin) -> rusqlite::Result<()> {
        let life = writer.projection.meta("life")?.cast_unsigned();
        let is_other = life != 0 && life != origin.life;
        if is_other || self.covered() > origin.durable_lsn {
            tracing::warn!(
                covered_lsn = self.covered(),
                durable_lsn = origin.durable_lsn,
                "the history is of another log: it is put aside and begun anew"
            );
            self.begin_anew(writer, Some(origin.life));
            return Ok(());
        }
        writer.projection.set_meta("life", stored(origin.life))
    }

    /// Puts the database aside and begins a new one.
    fn begin_anew(&self, writer: &mut Writer, life: Option<u64>) {
        let begun = self.try_begin_anew(writer, life);
        if let Err(error) = begun {
            // What is there goes on being used; the next flush fails and says so.
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "failed to begin the history anew"
            );
        }
    }

    fn try_begin_anew(&self, writer: &mut Writer, life: Option<u64>) -> Result<()> {
        let old = match life {
            Some(life) => stored(life),
            None => writer.projection.meta("life").unwrap_or(0),
        };
        // Whoever closes a database last removes its files by their names, so every connection to
        // the old one is closed before there is a new one.
        let alone = self.shared.gate.write().unwrap_or_else(PoisonError::into_inner);
        lock(&self.shared.readers).clear();
        writer.projection.database = Connection::open_in_memory()?;
        let database = schema::begin_anew(&self.shared.path)?;
        drop(alone);
        writer.projection = Projection::new(database, self.shared.options)?;
        writer.projection.set_meta("life", old)?;
        writer.failed = None;
        self.recall(&writer.projection)?;
        Ok(())
    }

    /// Takes a record: its lsn, the time of its batch, its payload. It is there after a flush.
    pub fn take(&self, lsn: u64, time_ms: u64, payload: &[u8]) {
        let mut writer = self.writer();
        if writer.failed.is_some() {
            return;
        }
        match writer.projection.take(time_ms, payload) {
            Ok(()) => {}
            Err(Problem::Database(error)) => writer.failed = Some(error),
            Err(Problem::Record(error)) => {
                tracing::error!(
                    lsn,
                    error = &error as &dyn std::error::Error,
                    "the history cannot read a record: it is a gap"
                );
                self.note_gap(&mut writer, (lsn, lsn), "the record could not be read");
            }
        }
    }

    /// Batches came, the newest of this time, in which [nothing but jobs] changed.
    /// True if none of their records would change a row, for no job has one and none gets one: they
    /// need not be given, and it is as late as that here too.
    ///
    /// [nothing but jobs]: windlass_record::event::Event::is_of_job
    pub fn leave_out(&self, time_ms: u64) -> bool {
        let mut writer = self.writer();
        writer.failed.is_none() && writer.projection.leave_out(time_ms)
    }

    /// These records will never come.
    pub fn miss(&self, first_lsn: u64, last_lsn: u64) {
        tracing::warn!(first_lsn, last_lsn, "records are missing in the history");
        let mut writer = self.writer();
        self.note_gap(&mut writer, (first_lsn, last_lsn), "the log does not have them any more");
    }

    fn note_gap(&self, writer: &mut Writer, (first_lsn, last_lsn): (u64, u64), reason: &str) {
        let projection = &writer.projection;
        let noted =
            projection.begin().and_then(|()| projection.note_gap(first_lsn, last_lsn, reason));
        if let Err(error) = noted {
            writer.failed = Some(error);
        }
    }

    /// Takes what was taken in for good. Says the newest record that is in it; when that is less than
    /// `through_lsn`, what is behind it must be given again. See [`History::kept`].
    pub fn flush(&self, through_lsn: u64) -> u64 {
        let mut writer = self.writer();
        let flushed = match writer.failed.take() {
            Some(error) => Err(error),
            None => self.try_flush(&mut writer, through_lsn),
        };
        match flushed {
            Ok(()) => writer.failures = 0,
            Err(error) => self.flush_failed(&mut writer, through_lsn, &error),
        }
        drop(writer);
        self.tell();
        self.covered()
    }

    /// Writes what changed, and now and then how far this is: most records of plain jobs change
    /// nothing, and a transaction costs more than reading them.
    fn try_flush(&self, writer: &mut Writer, through_lsn: u64) -> rusqlite::Result<()> {
        writer.is_settled = false;
        let now_ms = writer.projection.now_ms();
        if writer.projection.has_news() || now_ms.abs_diff(writer.cursor_ms) >= CURSOR_EVERY_MS {
            self.write(writer, through_lsn)?;
        }
        self.shared.covered.store(through_lsn, Ordering::Release);
        Ok(())
    }

    /// Writes what changed and how far this is, deletes a slice of what is old, and says how many
    /// that were.
    fn write(&self, writer: &mut Writer, through_lsn: u64) -> rusqlite::Result<u64> {
        writer.projection.write()?;
        let deleted = self.delete_slice(writer)?;
        writer.projection.commit(through_lsn)?;
        writer.cursor_ms = writer.projection.now_ms();
        self.recall_or_warn(&writer.projection);
        Ok(deleted)
    }

    fn flush_failed(&self, writer: &mut Writer, through_lsn: u64, error: &rusqlite::Error) {
        writer.failures += 1;
        tracing::warn!(
            error = error as &dyn std::error::Error,
            failures = writer.failures,
            "failed to write the history, trying again"
        );
        let recovered = writer.projection.take_back();
        let is_damaged = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        );
        if is_damaged || (recovered.is_err() && writer.failures >= FAILURES_MAX) {
            self.begin_anew(writer, None);
        } else if writer.failures >= FAILURES_MAX && !may_pass(error) {
            writer.failures = 0;
            let gap = (self.covered() + 1, through_lsn);
            self.note_gap(writer, gap, "they could not be written");
            if let Err(error) = writer.projection.commit(through_lsn) {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "failed to note a gap in the history"
                );
            }
        } else if let Err(error) = recovered {
            // What it remembers is not whole: it takes nothing until it is.
            writer.failed = Some(error);
        }
        self.recall_or_warn(&writer.projection);
    }

    /// Chores while nothing comes: writes how far it is, deletes a slice of what is old. True if
    /// there may be more.
    pub fn idle(&self) -> bool {
        let mut writer = self.writer();
        if writer.is_settled {
            return false;
        }
        let covered = self.covered();
        match self.write(&mut writer, covered) {
            Ok(deleted) => {
                writer.is_settled = deleted == 0;
                deleted > 0
            }
            Err(error) => {
                self.flush_failed(&mut writer, covered, &error);
                false
            }
        }
    }

    fn delete_slice(&self, writer: &mut Writer) -> rusqlite::Result<u64> {
        let Projection { database, finished, .. } = &writer.projection;
        let now_ms = writer.projection.now_ms();
        let deleted = retention::delete_slice(database, &self.shared.options, now_ms, *finished)?;
        let finished = writer.projection.finished.saturating_sub(deleted);
        writer.projection.finished = finished;
        Ok(deleted)
    }

    // ── for whoever asks ────────────────────────────────────────────────────────────────────

    /// The newest record that is in it.
    pub fn covered(&self) -> u64 {
        self.shared.covered.load(Ordering::Acquire)
    }

    /// The newest record that it has also after a crash; what is behind it must be given again.
    pub fn kept(&self) -> u64 {
        self.shared.kept.load(Ordering::Acquire)
    }

    /// How far it is.
    pub fn status(&self) -> Status {
        Status {
            covered_lsn: self.covered(),
            gaps: self.shared.gaps.load(Ordering::Relaxed),
            lsns_missed: self.shared.lsns_missed.load(Ordering::Relaxed),
        }
    }

    /// Calls `tell` once everything up to this lsn is in it: at once, or from the feed's thread.
    /// `tell` must be quick.
    pub fn when_covered(&self, lsn: u64, tell: impl FnOnce() + Send + 'static) {
        lock(&self.shared.waiting).push(Waiting { lsn, tell: Box::new(tell) });
        self.tell();
    }

    /// Waits until everything up to this lsn is in it. Blocks.
    pub fn wait_for(&self, lsn: u64, at_most: Duration) -> Result<()> {
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let told = done.clone();
        self.when_covered(lsn, move || {
            *lock(&told.0) = true;
            told.1.notify_one();
        });
        let guard = lock(&done.0);
        let waited = done.1.wait_timeout_while(guard, at_most, |done| !*done);
        let (guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *guard {
            Ok(())
        } else {
            Err(HistoryError::NotYet { wanted: lsn, covered: self.covered() })
        }
    }

    fn tell(&self) {
        let covered = self.covered();
        let ready: Vec<Waiting> = {
            let mut waiting = lock(&self.shared.waiting);
            waiting.extract_if(.., |waiting| waiting.lsn <= covered).collect()
        };
        for waiting in ready {
            (waiting.tell)();
        }
    }

    /// Runs a search. Blocks.
    pub fn search<E: Entity>(&self, search: &Search<E::Field>) -> Result<Found<E>> {
        self.read(|database| search::find(database, search))
    }

    /// Reads one, by its key. Blocks.
    pub fn get<E: Entity>(&self, key: u64) -> Result<Option<E>> {
        self.read(|database| search::get(database, key))
    }

    /// Finds workflows in Conductor's words: how many there are, and a page. Blocks.
    pub fn search_workflows(&self, search: &WorkflowSearch) -> Result<(u64, Vec<Workflow>)> {
        self.read(|database| workflow::find_workflows(database, search, false))
    }

    /// Finds workflows that have tasks which pass: how many there are, and a page. Blocks.
    pub fn search_workflows_by_tasks(
        &self,
        search: &WorkflowSearch,
    ) -> Result<(u64, Vec<Workflow>)> {
        self.read(|database| workflow::find_workflows(database, search, true))
    }

    /// Finds tasks in Conductor's words: how many there are, and a page. Blocks.
    pub fn search_tasks(&self, search: &WorkflowSearch) -> Result<(u64, Vec<Task>)> {
        self.read(|database| workflow::find_tasks(database, search))
    }

    /// A workflow as Conductor's clients see it, from its rows: JSON text. Blocks.
    pub fn workflow_json(&self, key: u64, with_tasks: bool) -> Result<Option<String>> {
        self.read(|database| workflow::workflow_json(database, key, with_tasks))
    }

    /// A task of a workflow as Conductor's clients see it, from its rows: JSON text. Blocks.
    pub fn task_json(&self, key: u64) -> Result<Option<String>> {
        self.read(|database| workflow::task_json(database, key))
    }

    /// All of a variable's value, by its key. Blocks.
    pub fn variable_value(&self, key: u64) -> Result<Option<String>> {
        self.read(|database| {
            let sql = "SELECT value FROM variables WHERE key = ?1";
            let mut statement = database.prepare_cached(sql)?;
            Ok(statement.query_row([stored(key)], |row| row.get(0)).optional()?)
        })
    }

    /// The file that a definition of any kind stands in, by the definition's key: its name and
    /// what is in it. Blocks.
    pub fn resource(&self, definition: u64) -> Result<Option<(String, Vec<u8>)>> {
        self.read(|database| {
            let sql = "SELECT r.name, r.bytes FROM definitions d \
                       JOIN resources r ON r.key = d.resource WHERE d.key = ?1";
            let mut statement = database.prepare_cached(sql)?;
            let found =
                statement.query_row([stored(definition)], |row| Ok((row.get(0)?, row.get(1)?)));
            Ok(found.optional()?)
        })
    }

    /// The gaps, oldest first. Blocks.
    pub fn gaps(&self) -> Result<Vec<Gap>> {
        self.read(|database| {
            let sql = "SELECT first_lsn, last_lsn, reason, noted_ms FROM gaps ORDER BY first_lsn";
            let mut statement = database.prepare_cached(sql)?;
            let gaps = statement.query_map([], |row| {
                Ok(Gap {
                    first_lsn: row.get::<_, i64>(0)?.cast_unsigned(),
                    last_lsn: row.get::<_, i64>(1)?.cast_unsigned(),
                    reason: row.get(2)?,
                    noted_ms: row.get::<_, i64>(3)?.cast_unsigned(),
                })
            })?;
            Ok(gaps.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Reads on one connection, of one moment.
    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let _gate = self.shared.gate.read().unwrap_or_else(PoisonError::into_inner);
        let idle = lock(&self.shared.readers).pop();
        let database = match idle {
            Some(database) => database,
            None => schema::open_reader(&self.shared.path)?,
        };
        database.execute_batch("BEGIN")?;
        let answer = read(&database);
        database.execute_batch("ROLLBACK")?;
        let mut readers = lock(&self.shared.readers);
        if readers.len() < self.shared.options.readers_max {
            readers.push(database);
        }
        answer
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.shared.writer)
    }
}

/// Whether waiting may help.
fn may_pass(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
        )
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
