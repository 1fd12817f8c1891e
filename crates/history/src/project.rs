//! From records to rows. Events change rows in memory ([`Table`]); a flush writes what changed and
//! the lsn it reaches, in one transaction. So a record is in the database whole or not at all, and
//! a restart goes on behind the last one that is.
//!
//! Events name little of what they are about: an element that ends does not say its variables, a
//! job does not say its process. What is missing is derived from the keys of the rows.

mod definition;
mod flow;
mod job;
mod task;
mod wait;
mod workflow;

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use rustc_hash::{FxHashMap, FxHashSet};
use windlass_record::codec::{DecodeError, Decoder, Payloads, VERSION, decode_event};
use windlass_record::event::{Event, JobCreated};
use windlass_record::id::{Payload, PayloadHandle};

use crate::error::Result;
use crate::options::{JobLevel, Options};
use crate::row::{Element, Incident, Instance, Job, Subscription, Task, UserTask, Workflow};
use crate::schema::stored;
use crate::table::Table;
use definition::Definition;

/// Definitions that stay in memory.
const DEFINITIONS_KEPT_MAX: usize = 1_000;
/// Messages whose names are remembered.
const MESSAGES_KEPT_MAX: usize = 100_000;
/// Workflows whose newest task's number is remembered.
const TASK_SEQS_KEPT_MAX: usize = 100_000;

/// The name and wall of a queue.
#[derive(Clone)]
struct Queue {
    tenant: Arc<str>,
    name: Arc<str>,
}

/// Rows in memory, and the connection that writes them.
pub(crate) struct Projection {
    pub(crate) database: Connection,
    options: Options,
    now_ms: u64,
    definitions: FxHashMap<u64, Arc<Definition>>,
    queues: FxHashMap<u32, Queue>,
    instances: Table<Instance>,
    elements: Table<Element>,
    jobs: Table<Job>,
    incidents: Table<Incident>,
    user_tasks: Table<UserTask>,
    subscriptions: Table<Subscription>,
    workflows: Table<Workflow>,
    tasks: Table<Task>,
    /// Tasks of workflows, by the live jobs that do their work.
    task_jobs: FxHashMap<u64, u64>,
    /// The number of the newest task, by workflow; what is not here is in the database.
    task_seqs: FxHashMap<u64, u32>,
    /// New values, by instance, scope and name.
    variables: FxHashMap<(u64, u64, Box<str>), Box<str>>,
    /// Live jobs that have a row: events of other jobs are passed over.
    jobs_tracked: FxHashSet<u64>,
    /// Names of messages that may still correlate. What is lost here makes a correlated
    /// subscription look like one that was closed.
    messages: FxHashMap<u64, Box<str>>,
    variables_made: i64,
    /// Finished instances, workflows and plain jobs that are kept.
    pub(crate) finished: u64,
}

/// Payloads are not looked at.
struct Unread;

impl Payloads for Unread {
    fn bytes(&self, _payload: Payload) -> &[u8] {
        &[]
    }

    fn keep(&mut self, bytes: &[u8]) -> Payload {
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Payload { handle: PayloadHandle::EMPTY, len }
    }
}

/// Why a record could not be taken in.
pub(crate) enum Problem {
    /// It makes no sense.
    Record(DecodeError),
    /// The database failed.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Problem {
        Problem::Database(error)
    }
}

impl From<DecodeError> for Problem {
    fn from(error: DecodeError) -> Problem {
        Problem::Record(error)
    }
}

impl Projection {
    /// Projects into this database.
    pub(crate) fn new(database: Connection, options: Options) -> Result<Projection> {
        let mut projection = Projection {
            database,
            options,
            now_ms: 0,
            definitions: FxHashMap::default(),
            queues: FxHashMap::default(),
            instances: Table::default(),
            elements: Table::default(),
            jobs: Table::default(),
            incidents: Table::default(),
            user_tasks: Table::default(),
            subscriptions: Table::default(),
            workflows: Table::default(),
            tasks: Table::default(),
            task_jobs: FxHashMap::default(),
            task_seqs: FxHashMap::default(),
            variables: FxHashMap::default(),
            jobs_tracked: FxHashSet::default(),
            messages: FxHashMap::default(),
            variables_made: 0,
            finished: 0,
        };
        projection.remember()?;
        Ok(projection)
    }

    /// Reads what is kept in memory beside the rows.
    fn remember(&mut self) -> rusqlite::Result<()> {
        self.variables_made = self.meta("variables_made")?;
        let sql = "SELECT (SELECT COUNT(*) FROM process_instances WHERE end_ms IS NOT NULL) \
                   + (SELECT COUNT(*) FROM jobs WHERE instance IS NULL AND end_ms IS NOT NULL) \
                   + (SELECT COUNT(*) FROM workflows WHERE end_ms IS NOT NULL)";
        let finished: i64 = self.database.query_row(sql, [], |row| row.get(0))?;
        self.finished = finished.cast_unsigned();
        self.remember_task_jobs()?;
        self.queues.clear();
        self.jobs_tracked.clear();
        let mut statement = self.database.prepare("SELECT id, tenant, name FROM queues")?;
        let queues = statement.query_map([], |row| {
            Ok((row.get(0)?, Queue { tenant: row.get(1)?, name: row.get(2)? }))
        })?;
        for queue in queues {
            let (id, queue) = queue?;
            self.queues.insert(id, queue);
        }
        let mut statement = self.database.prepare("SELECT key FROM jobs WHERE end_ms IS NULL")?;
        let jobs = statement.query_map([], |row| row.get::<_, i64>(0))?;
        for job in jobs {
            self.jobs_tracked.insert(job?.cast_unsigned());
        }
        Ok(())
    }

    fn remember_task_jobs(&mut self) -> rusqlite::Result<()> {
        self.task_jobs.clear();
        let sql = "SELECT job, key FROM tasks WHERE job IS NOT NULL";
        let mut statement = self.database.prepare(sql)?;
        let jobs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for job in jobs {
            let (job, task): (i64, i64) = job?;
            self.task_jobs.insert(job.cast_unsigned(), task.cast_unsigned());
        }
        Ok(())
    }

    /// Takes a record in.
    pub(crate) fn take(
        &mut self,
        time_ms: u64,
        payload: &[u8],
    ) -> std::result::Result<(), Problem> {
        let mut from = Decoder::new(payload);
        let version = from.u8()?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion { version }.into());
        }
        self.now_ms = time_ms + from.u64()?;
        // Jobs that this record makes: an event behind them says whose they are.
        let mut made = Vec::new();
        while !from.is_empty() {
            let event = decode_event(&mut from, &mut Unread)?;
            if let Event::JobCreated(created) = event {
                made.push(created);
            } else {
                self.apply(&event, &mut made)?;
            }
        }
        for created in &made {
            self.plain_job_created(created);
        }
        Ok(())
    }

    /// Whether records about jobs alone change nothing here: what [`apply`](Self::apply) does with the
    /// events that are [of a job](Event::is_of_job) begins with its row. If so, it is `time_ms` now.
    pub(crate) fn leave_out(&mut self, time_ms: u64) -> bool {
        let has_rows = !self.jobs_tracked.is_empty() || !self.task_jobs.is_empty();
        if has_rows || self.options.jobs != JobLevel::None {
            return false;
        }
        self.now_ms = self.now_ms.max(time_ms);
        true
    }

    fn apply(&mut self, event: &Event<'_>, made: &mut Vec<JobCreated<'_>>) -> rusqlite::Result<()> {
        match event {
            Event::Flow(event) => self.flow(event, made),
            Event::QueueCreated { queue, tenant, name, .. } => {
                self.queue_created(queue.0, tenant, name)
            }
            Event::JobActivated(activated) => {
                self.task_activated(activated)?;
                self.job_activated(activated)
            }
            Event::JobReturned { key, .. } => {
                self.task_put_back(key.raw(), true)?;
                self.job_put_back(key.raw())
            }
            Event::JobReleased { key, .. } => {
                self.task_put_back(key.raw(), false)?;
                self.job_put_back(key.raw())
            }
            Event::LeaseExtended { key, deadline_ms } => {
                self.lease_extended(key.raw(), *deadline_ms)
            }
            Event::JobRetried { key, retries, message, .. } => {
                self.job_retried(key.raw(), *retries, message)
            }
            Event::JobReadied { key, cause } => self.job_readied(key.raw(), *cause),
            Event::IncidentRaised { .. } => self.job_incident_raised(event),
            Event::IncidentResolved { key, retries, .. } => {
                self.job_incident_resolved(key.raw(), *retries)
            }
            Event::JobUpdated { key, retries, priority, deadline_ms } => {
                self.job_updated(key.raw(), *retries, *priority, *deadline_ms)
            }
            Event::JobEnded { key, outcome, message, .. } => {
                self.job_ended(key.raw(), *outcome, message)
            }
            Event::PartitionOpened { .. }
            | Event::LeasesMoved { .. }
            | Event::QueueConfigured { .. }
            | Event::QueuePaused { .. }
            | Event::LimitConfigured { .. }
            | Event::RateFreed { .. }
            | Event::JobCreated(_)
            | Event::JobProgressed { .. }
            | Event::JobLogged { .. }
            | Event::CancelAsked { .. }
            | Event::JobAlerted { .. }
            | Event::DocumentPut { .. }
            | Event::DocumentDeleted { .. }
            | Event::Schedule(_) => Ok(()),
        }
    }

    fn queue_created(&mut self, id: u32, tenant: &str, name: &str) -> rusqlite::Result<()> {
        self.begin()?;
        let sql = "INSERT OR REPLACE INTO queues (id, tenant, name) VALUES (?1, ?2, ?3)";
        self.database.prepare_cached(sql)?.execute(params![id, tenant, name])?;
        self.queues.insert(id, Queue { tenant: tenant.into(), name: name.into() });
        Ok(())
    }

    // ── transactions ────────────────────────────────────────────────────────────────────────

    /// Begins the transaction that the next commit ends, if it has not begun.
    pub(crate) fn begin(&self) -> rusqlite::Result<()> {
        if self.database.is_autocommit() {
            self.database.execute_batch("BEGIN IMMEDIATE")?;
        }
        Ok(())
    }

    /// Ends the transaction: with what was written in it, everything up to here is covered.
    pub(crate) fn commit(&self, through_lsn: u64) -> rusqlite::Result<()> {
        self.begin()?;
        self.set_meta("variables_made", self.variables_made)?;
        self.set_meta("covered", stored(through_lsn))?;
        self.database.execute_batch("COMMIT")
    }

    /// Whether anything changed that is not written.
    pub(crate) fn has_news(&self) -> bool {
        !self.database.is_autocommit()
            || self.instances.has_news()
            || self.elements.has_news()
            || self.jobs.has_news()
            || self.incidents.has_news()
            || self.user_tasks.has_news()
            || self.subscriptions.has_news()
            || self.workflows.has_news()
            || self.tasks.has_news()
            || !self.variables.is_empty()
    }

    /// Writes what changed, in a transaction.
    pub(crate) fn write(&mut self) -> rusqlite::Result<()> {
        self.begin()?;
        self.instances.write(&self.database)?;
        self.elements.write(&self.database)?;
        self.jobs.write(&self.database)?;
        self.incidents.write(&self.database)?;
        self.user_tasks.write(&self.database)?;
        self.subscriptions.write(&self.database)?;
        self.workflows.write(&self.database)?;
        self.tasks.write(&self.database)?;
        self.write_variables()?;
        if self.definitions.len() > DEFINITIONS_KEPT_MAX {
            self.definitions.clear();
        }
        if self.messages.len() > MESSAGES_KEPT_MAX {
            self.messages = FxHashMap::default();
        }
        if self.task_seqs.len() > TASK_SEQS_KEPT_MAX {
            self.task_seqs = FxHashMap::default();
        }
        Ok(())
    }

    fn write_variables(&mut self) -> rusqlite::Result<()> {
        let mut variables: Vec<_> = self.variables.drain().collect();
        // Keys are given in this order: the same records give the same keys.
        variables.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let sql = "INSERT INTO variables (key, instance, scope, name, value) \
                   VALUES (?1, ?2, ?3, ?4, ?5) \
                   ON CONFLICT (instance, scope, name) DO UPDATE SET value = excluded.value";
        let mut statement = self.database.prepare_cached(sql)?;
        for ((instance, scope, name), value) in variables {
            self.variables_made += 1;
            let key = self.variables_made;
            statement.execute(params![key, stored(instance), stored(scope), name, value])?;
        }
        Ok(())
    }

    /// Takes the transaction back and forgets what was in memory.
    pub(crate) fn take_back(&mut self) -> rusqlite::Result<()> {
        if !self.database.is_autocommit() {
            self.database.execute_batch("ROLLBACK")?;
        }
        self.forget_rows();
        self.definitions.clear();
        self.messages.clear();
        self.remember()
    }

    /// Forgets the rows: the database was changed behind them.
    fn forget_rows(&mut self) {
        self.instances.forget();
        self.elements.forget();
        self.jobs.forget();
        self.incidents.forget();
        self.user_tasks.forget();
        self.subscriptions.forget();
        self.workflows.forget();
        self.tasks.forget();
        self.task_seqs.clear();
        self.variables.clear();
    }

    /// The newest record's time.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// A number that is kept beside the rows; 0 when it is not there.
    pub(crate) fn meta(&self, name: &str) -> rusqlite::Result<i64> {
        let mut statement =
            self.database.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
        Ok(statement.query_row([name], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// Sets it.
    pub(crate) fn set_meta(&self, name: &str, value: i64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO meta (name, value) VALUES (?1, ?2) \
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        self.database.prepare_cached(sql)?.execute(params![name, value])?;
        Ok(())
    }

    /// Records are missing.
    pub(crate) fn note_gap(
        &self,
        first_lsn: u64,
        last_lsn: u64,
        why: &str,
    ) -> rusqlite::Result<()> {
        let sql = "INSERT OR REPLACE INTO gaps (first_lsn, last_lsn, reason, noted_ms) \
                   VALUES (?1, ?2, ?3, ?4)";
        let mut statement = self.database.prepare_cached(sql)?;
        statement.execute(params![
            stored(first_lsn),
            stored(last_lsn),
            why,
            stored(self.now_ms)
        ])?;
        Ok(())
    }
}

/// Text, or nothing when it is empty.
fn some_text(text: &str) -> Option<Box<str>> {
    (!text.is_empty()).then(|| text.into())
}
