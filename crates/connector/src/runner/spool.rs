//! Commits of an attempt: durable in its folder at once, at the server as soon as it answers.
//!
//! A commit has the whole state and all counts, so the newest stands for all before it: the spool is one
//! commit long, and what is sent after an outage is the newest alone. A document's version and the
//! sequence in it tell what arrived although nobody said so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::sync::Notify;
use windlass_worker::{Error, Token, v1};

use crate::journal::{Commit, Journal, JournalError};
use crate::observer::{Level, Observer as _, now_ms};
use crate::process::Side;
use crate::protocol::message::Descriptor;
use crate::runner::folder::{Folder, Spec, Spooled};
use crate::runner::report::ROUNDS_MAX;
use crate::runner::secrets::Keeper;
use crate::runner::store::{Document, STATE, Store};
use crate::summary::StreamStats;

/// Bytes of a state: with the attempt's document a message of the server's holds it.
const STATE_BYTES_MAX: usize = 2 << 20;

/// Where the configuration of a connector is kept, and what is secret in it.
#[derive(Debug, Clone)]
pub struct Home {
    /// The kind of its document.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// Its connector's specification, if it is known.
    pub specification: Option<Value>,
}

/// The journal of an attempt at a server.
pub struct Spool {
    folder: Folder,
    spec: Spec,
    store: Store,
    keeper: Keeper,
    homes: (Option<Home>, Home),
    inner: Mutex<Inner>,
    news: Notify,
}

#[derive(Debug)]
struct Inner {
    /// The document of the state, as the server has it.
    state: Document,
    /// The sequence before this attempt.
    base: u64,
    /// What every commit of the attempt has.
    begun: Spooled,
    /// What is not at the server yet.
    spooled: Option<Spooled>,
    configurations: Vec<Side>,
}

/// Why something did not arrive.
#[derive(Debug)]
pub enum NotDelivered {
    /// The server may take it later.
    Later(Error),
    /// It never will: the attempt is somebody else's, or over.
    Never(String),
}

impl NotDelivered {
    fn of(error: Error) -> NotDelivered {
        if error.is_transient() {
            NotDelivered::Later(error)
        } else {
            NotDelivered::Never(error.to_string())
        }
    }
}

impl Spool {
    /// The journal of the attempt in a folder. `state` is the connection's, with what an attempt before
    /// could not send; `before` is whose state the server has.
    #[must_use]
    pub fn new(
        folder: Folder,
        spec: Spec,
        store: Store,
        keeper: Keeper,
        homes: (Option<Home>, Home),
        (state, before): (Document, String),
    ) -> Spool {
        let base = state.number("sequence");
        let begun = Spooled { before, started_ms: now_ms(), ..Spooled::default() };
        let (spooled, configurations) = (None, Vec::new());
        let inner = Mutex::new(Inner { state, base, begun, spooled, configurations });
        Spool { folder, spec, store, keeper, homes, inner, news: Notify::new() }
    }

    /// The attempt begins: with these generations, from this state.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn begin(
        &self,
        state: Vec<Arc<str>>,
        generations: Vec<(Descriptor, u64, u64)>,
    ) -> Result<(), JournalError> {
        let sequence = {
            let mut inner = self.lock();
            inner.begun.generations = generations;
            inner.base += 1;
            inner.base
        };
        self.keep(sequence, Commit { sequence: 0, state, streams: Vec::new() })
    }

    fn keep(&self, sequence: u64, commit: Commit) -> Result<(), JournalError> {
        let bytes: usize = commit.state.iter().map(|state| state.len()).sum();
        if bytes > STATE_BYTES_MAX {
            let message = format!("the state has {bytes} bytes, more than {STATE_BYTES_MAX}");
            return Err(JournalError { message });
        }
        let spooled = Spooled { sequence, commit, ..self.lock().begun.clone() };
        let failed = |error| JournalError::new("keep what was acknowledged", &error);
        self.folder.spool(&spooled).map_err(failed)?;
        self.lock().spooled = Some(spooled);
        self.news.notify_one();
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is to be sent.
    pub async fn has_news(&self) {
        self.news.notified().await;
    }

    /// Sends what there is.
    ///
    /// # Errors
    /// If it did not arrive; what is to be sent later stays.
    pub async fn deliver(&self) -> Result<(), NotDelivered> {
        let sides = std::mem::take(&mut self.lock().configurations);
        for (index, side) in sides.iter().enumerate() {
            if let Err(error) = self.deliver_configuration(*side).await {
                self.lock().configurations.extend(&sides[index..]);
                return Err(error);
            }
        }
        let (spooled, state) = {
            let inner = self.lock();
            (inner.spooled.clone(), inner.state.clone())
        };
        let Some(spooled) = spooled else { return Ok(()) };
        let token = Token { key: self.spec.job, activation: self.spec.activation };
        let result =
            self.store.client.report_progress(token, self.progress(&spooled, &state)).await;
        match result {
            Ok(_) => self.delivered(&spooled, state.version + 1),
            Err(Error::Refused(refusal)) if refusal.code == "document-version" => {
                self.deliver_again(&spooled).await?;
            }
            Err(error) => return Err(NotDelivered::of(error)),
        }
        Ok(())
    }

    fn progress(&self, spooled: &Spooled, state: &Document) -> v1::Progress {
        let streams = &spooled.commit.streams;
        let documents = vec![
            self.store.state(&self.spec, state, spooled),
            self.store.attempt(&self.spec, spooled, streams, Map::new()),
        ];
        let records = |of: fn(&StreamStats) -> u64| streams.iter().map(of).sum::<u64>();
        let note = format!(
            "{} records read, {} committed",
            records(|it| it.records_emitted),
            records(|it| it.records_committed)
        );
        v1::Progress { percent: percent(streams), note, documents }
    }

    /// The state is another one than it was: ours from before, or somebody else's.
    async fn deliver_again(&self, spooled: &Spooled) -> Result<(), NotDelivered> {
        let now = self.store.get(STATE, self.spec.subject()).await;
        let now = now.map_err(NotDelivered::of)?;
        if now.text("attempt") != self.spec.short_name() {
            let message = "the state of the connection was changed by somebody else";
            return Err(NotDelivered::Never(message.to_owned()));
        }
        let (version, arrived) = (now.version, now.number("sequence") >= spooled.sequence);
        self.lock().state = now;
        if arrived {
            self.delivered(spooled, version);
            return Ok(());
        }
        // It is ours, and older: the next round takes it from here.
        self.news.notify_one();
        Ok(())
    }

    fn delivered(&self, spooled: &Spooled, version: u64) {
        let mut inner = self.lock();
        inner.state.version = version;
        if inner.spooled.as_ref().is_some_and(|now| now.sequence == spooled.sequence) {
            inner.spooled = None;
        }
    }

    async fn deliver_configuration(&self, side: Side) -> Result<(), NotDelivered> {
        let Some(home) = self.home(side) else { return Ok(()) };
        let kept = self.folder.configuration(side);
        let kept = kept.map_err(|error| NotDelivered::Never(error.to_string()))?;
        let Some(configuration) = kept else { return Ok(()) };
        let put = put_configuration(&self.store, home, configuration.clone()).await;
        match put {
            Ok(()) => {}
            Err(error) if error.is_transient() => return Err(NotDelivered::Later(error)),
            Err(error) => {
                // What follows it arrives all the same.
                let text =
                    format!("the new configuration of the {} was refused: {error}", side.name());
                self.keeper.log.log(None, Level::Warn, &text);
                return Ok(());
            }
        }
        // Not while another one is written.
        let _guard = self.lock();
        let forgotten = self.folder.forget_configuration(side, &configuration);
        forgotten.map_err(|error| NotDelivered::Never(error.to_string()))
    }

    fn home(&self, side: Side) -> Option<&Home> {
        match side {
            Side::Source => self.homes.0.as_ref(),
            Side::Destination => Some(&self.homes.1),
        }
    }
}

/// Writes a sealed configuration into the document of its source or destination.
///
/// # Errors
/// If the server does not take it.
pub async fn put_configuration(
    store: &Store,
    home: &Home,
    configuration: Value,
) -> Result<(), Error> {
    let mut rounds = 0;
    loop {
        let mut document = store.get(home.kind, &home.id).await?;
        let Some(fields) = document.value.as_object_mut().filter(|_| document.version > 0) else {
            // It was deleted meanwhile.
            return Ok(());
        };
        fields.insert("configuration".to_owned(), configuration.clone());
        fields.insert("updatedAt".to_owned(), now_ms().into());
        let write = store.put(home.kind, &home.id, Some(document.version), &document.value);
        match store.client.put_documents(vec![write]).await {
            Ok(_) => return Ok(()),
            Err(Error::Refused(refusal))
                if refusal.code == "document-version" && rounds < ROUNDS_MAX =>
            {
                rounds += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

impl Journal for Spool {
    fn commit(&self, commit: &Commit) -> Result<(), JournalError> {
        let sequence = self.lock().base + commit.sequence;
        self.keep(sequence, commit.clone())
    }

    fn configuration(&self, side: Side, config: &str) -> Result<(), JournalError> {
        let Some(home) = self.home(side) else { return Ok(()) };
        let scope = self.store.scope(home.kind, &home.id);
        let mut inner = self.lock();
        self.keeper.keep(&self.folder, (&scope, home), side, config)?;
        if !inner.configurations.contains(&side) {
            inner.configurations.push(side);
        }
        drop(inner);
        self.news.notify_one();
        Ok(())
    }
}

/// How far the streams are, by what the source thinks is to come; 0 if it does not say.
fn percent(streams: &[StreamStats]) -> u32 {
    let (mut done, mut all) = (0_u64, 0_u64);
    for stream in streams {
        let Some(estimate) = stream.estimated_records.filter(|it| *it > 0) else { continue };
        done += stream.records_committed.min(estimate);
        all += estimate;
    }
    u32::try_from((done * 100).checked_div(all).unwrap_or(0)).unwrap_or(0)
}
