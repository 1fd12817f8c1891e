//! What was sent, what was given back, and so what is known to be in the destination.
//!
//! For every state that goes to the destination an entry stands in a queue: the counts since the state
//! before. A state that comes back takes its entry out, and those before it, for a destination may skip
//! states; what they count is committed. States of streams have a queue each: a destination may write one
//! stream later than another. States about everything have one queue.
//!
//! A destination that loses the id is matched by what the state means, oldest first. Where two
//! neighbours mean the same, a second copy counts nothing: too little is committed rather than too much.

use std::collections::VecDeque;
use std::sync::Arc;

use thiserror::Error;

use crate::journal::Commit;
use crate::protocol::catalog::Catalog;
use crate::protocol::message::{Descriptor, Estimate, StreamStatus};
use crate::protocol::semantic::Print;
use crate::protocol::state::{self, Scope, State, StateError, Stats};
use crate::summary::{Checksums, Progress, StreamState, StreamStats};

/// Entries in a queue; beyond it the two oldest become one.
pub const STATES_WAITING_MAX: usize = 50_000;
/// Bytes of states that are kept as the source wrote them; of others the destination's copy is committed.
pub const BODIES_BYTES_MAX: usize = 8 << 20;

/// Records of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sent on.
    pub records: u64,
    /// Bytes of their data.
    pub bytes: u64,
    /// Not sent on.
    pub filtered: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.filtered += other.filtered;
    }
}

/// A state that is not sent on.
#[derive(Debug, Error)]
pub enum StateRefused {
    /// It cannot be read.
    #[error(transparent)]
    Malformed(#[from] StateError),
    /// Its stream is not synced.
    #[error("the state is about the stream {0}, which is not synced")]
    UnknownStream(Descriptor),
    /// There was another type before: an error of the source.
    #[error("the source sent a state of type {now} after one of type {before}")]
    Mixed {
        /// The type of the first state.
        before: &'static str,
        /// The type of this one.
        now: &'static str,
    },
}

/// What came of a state that the destination gave back.
#[derive(Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// There is something to commit.
    New,
    /// It was acknowledged before.
    Again,
    /// It was never sent.
    Unknown,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    print: Print,
    is_reset: bool,
    body: Option<Box<str>>,
    tallies: Vec<(usize, Tally)>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Entry>,
    /// Of the last one that was acknowledged.
    last: Option<(u64, Print)>,
}

#[derive(Debug)]
struct Account {
    stats: StreamStats,
    since_state: Tally,
    queue: Queue,
    has_state: bool,
    source_complete: bool,
    /// It said INCOMPLETE last.
    source_incomplete: bool,
}

/// The state as committed: one for each stream, or one for all.
#[derive(Debug, Default, Clone)]
struct Kept {
    streams: Vec<(Descriptor, Arc<str>)>,
    whole: Option<Arc<str>>,
}

/// The books of a replication.
#[derive(Debug)]
pub struct Ledger {
    catalog: Arc<Catalog>,
    accounts: Vec<Account>,
    whole: Queue,
    kind: Option<&'static str>,
    next_id: u64,
    kept: Kept,
    bodies_bytes: usize,
    checksums: Checksums,
    estimate: Option<(Option<u64>, Option<u64>)>,
    estimate_kind: Option<String>,
    is_dirty: bool,
    commits: u64,
    committed_ms: u64,
    durable: Durable,
}

/// What a journal has; an attempt that fails has committed this and nothing else.
#[derive(Debug, Default)]
struct Durable {
    kept: Vec<Arc<str>>,
    streams: Vec<StreamStats>,
}

impl Ledger {
    /// Nothing was sent yet; `state` is what the source starts from.
    ///
    /// # Errors
    /// If an element of it cannot be read.
    pub fn new(catalog: Arc<Catalog>, state: &[Arc<str>]) -> Result<Self, StateError> {
        let mut kept = Kept::default();
        for element in state {
            match State::read(element)?.scope {
                Scope::Stream(stream) => kept.streams.push((stream, Arc::clone(element))),
                Scope::Global | Scope::Legacy => kept.whole = Some(Arc::clone(element)),
            }
        }
        let accounts = catalog.streams.iter().map(|stream| Account {
            stats: StreamStats {
                name: stream.descriptor.name.clone(),
                namespace: stream.descriptor.namespace.clone(),
                ..StreamStats::default()
            },
            since_state: Tally::default(),
            queue: Queue::default(),
            has_state: false,
            source_complete: false,
            source_incomplete: false,
        });
        Ok(Self {
            accounts: accounts.collect(),
            catalog,
            whole: Queue::default(),
            kind: None,
            next_id: 1,
            kept,
            bodies_bytes: 0,
            checksums: Checksums::default(),
            estimate: None,
            estimate_kind: None,
            is_dirty: false,
            commits: 0,
            committed_ms: 0,
            durable: Durable { kept: state.to_vec(), streams: Vec::new() },
        })
    }

    /// Records were sent, or not sent on, since this was called last.
    pub fn count(&mut self, tallies: &mut [Tally]) {
        for (account, tally) in self.accounts.iter_mut().zip(tallies) {
            if *tally == Tally::default() {
                continue;
            }
            account.since_state.add(*tally);
            account.stats.records_emitted += tally.records;
            account.stats.bytes_emitted += tally.bytes;
            account.stats.records_filtered += tally.filtered;
            if matches!(account.stats.status, StreamState::Pending | StreamState::RateLimited) {
                account.stats.status = StreamState::Running;
            }
            *tally = Tally::default();
        }
    }

    /// The source sent a state: the line for the destination.
    ///
    /// # Errors
    /// If it is not to be sent on.
    pub fn sent(&mut self, text: &str) -> Result<String, StateRefused> {
        let mut state = State::read(text)?;
        let kind = state.scope.type_name();
        if let Some(before) = self.kind.filter(|before| *before != kind) {
            return Err(StateRefused::Mixed { before, now: kind });
        }
        let stream = match &state.scope {
            Scope::Stream(name) => Some(
                self.catalog.find(name).ok_or_else(|| StateRefused::UnknownStream(name.clone()))?,
            ),
            Scope::Global | Scope::Legacy => None,
        };
        self.kind = Some(kind);
        let tallies = self.take_tallies(stream);
        let (records, filtered) = tallies
            .iter()
            .fold((0, 0), |sum, (_, tally)| (sum.0 + tally.records, sum.1 + tally.filtered));
        self.compare_source(state.source_stats, records + filtered);
        let id = self.next_id;
        self.next_id += 1;
        let (print, is_reset) = (state.print, state.is_reset);
        let mapped = stream.and_then(|index| self.catalog.streams.get(index));
        let mapped =
            mapped.filter(|stream| stream.mapped != stream.descriptor).map(|stream| &stream.mapped);
        let line = state.for_destination(id, records, mapped)?;
        let body = self.body(text);
        let queue = self.queue(stream);
        let is_full = queue.waiting.len() >= STATES_WAITING_MAX;
        let freed = if is_full { merge_oldest(queue) } else { 0 };
        queue.waiting.push_back(Entry { id, print, is_reset, body, tallies });
        self.bodies_bytes -= freed;
        Ok(line)
    }

    /// The destination gave a state back.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn acknowledged(&mut self, text: &str) -> Result<Acknowledged, StateError> {
        let state = State::read(text)?;
        let stream = match &state.scope {
            Scope::Stream(name) => match self.catalog.find_mapped(name) {
                Some(stream) => Some(stream),
                None => return Ok(Acknowledged::Unknown),
            },
            Scope::Global | Scope::Legacy => None,
        };
        let queue = self.queue(stream);
        let Some(position) = position(queue, &state) else {
            let again = queue.last.is_some_and(|(id, print)| match state.id {
                Some(given) => given <= id,
                None => print == state.print,
            });
            return Ok(if again { Acknowledged::Again } else { Acknowledged::Unknown });
        };
        // Cannot fail from here but for the state itself.
        let mut done: Vec<Entry> = queue.waiting.drain(..=position).collect();
        let Some(last) = done.last_mut() else { return Ok(Acknowledged::Unknown) };
        queue.last = Some((last.id, last.print));
        let (body, is_reset) = (last.body.take(), last.is_reset);
        let freed = done.iter().filter_map(|entry| entry.body.as_ref()).map(|body| body.len());
        let freed = freed.sum::<usize>() + body.as_ref().map_or(0, |body| body.len());
        self.bodies_bytes = self.bodies_bytes.saturating_sub(freed);
        self.count_committed(&done, state.destination_stats);
        self.keep(stream, body, is_reset, state)?;
        if let Some(account) = stream.and_then(|stream| self.accounts.get_mut(stream)) {
            settle(account);
        } else {
            self.accounts.iter_mut().for_each(settle);
        }
        self.is_dirty = true;
        Ok(Acknowledged::New)
    }

    /// Streams that never had a state, neither now nor before, with the one to inject. A stream that had one keeps
    /// it: a source with nothing new need not repeat it. Nothing, if states are about everything.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        if self.kind.is_some_and(|kind| kind != "STREAM") || self.kept.whole.is_some() {
            return Vec::new();
        }
        let has_state = |account: &Account| {
            let name = account.stats.descriptor();
            account.has_state || self.kept.streams.iter().any(|(kept, _)| *kept == name)
        };
        let lacking = self.accounts.iter().filter(|account| !has_state(account));
        lacking.map(|account| state::missing(&account.stats.descriptor())).collect()
    }

    /// The source says where a stream is. False, if there is no such stream.
    pub fn stream_status(&mut self, status: &StreamStatus) -> bool {
        let name = &status.stream_descriptor;
        let index = self.catalog.find(&Descriptor::new(&name.name, name.namespace()));
        let Some(account) = index.and_then(|index| self.accounts.get_mut(index)) else {
            return false;
        };
        account.source_incomplete = status.status == "INCOMPLETE";
        let limited = status.reasons.iter().flatten().any(|reason| reason.kind == "RATE_LIMITED");
        match status.status.as_str() {
            "COMPLETE" => {
                account.source_complete = true;
                settle(account);
            }
            "INCOMPLETE" => account.stats.status = StreamState::Incomplete,
            _ if limited => account.stats.status = StreamState::RateLimited,
            _ => account.stats.status = StreamState::Running,
        }
        true
    }

    /// Streams of which the source said last that they are incomplete.
    #[must_use]
    pub fn incomplete(&self) -> Vec<Descriptor> {
        let incomplete = self.accounts.iter().filter(|account| account.source_incomplete);
        incomplete.map(|account| account.stats.descriptor()).collect()
    }

    /// The source says how much is to come.
    pub fn estimated(&mut self, estimate: &Estimate) {
        let before = self.estimate_kind.get_or_insert_with(|| estimate.kind.clone());
        if *before != estimate.kind {
            // Both kinds in one sync: none of them can be believed.
            before.clear();
            self.estimate = None;
            for account in &mut self.accounts {
                account.stats.estimated_records = None;
                account.stats.estimated_bytes = None;
            }
            return;
        }
        let (records, bytes) =
            (estimate.row_estimate.map(whole), estimate.byte_estimate.map(whole));
        if estimate.kind == "SYNC" {
            self.estimate = Some((records, bytes));
            return;
        }
        let name =
            Descriptor::new(&estimate.name, estimate.namespace.as_deref().unwrap_or_default());
        let index = self.catalog.find(&name);
        if let Some(account) = index.and_then(|index| self.accounts.get_mut(index)) {
            account.stats.estimated_records = records;
            account.stats.estimated_bytes = bytes;
        }
    }

    /// What is to be made durable, if there is anything new.
    pub fn take_commit(&mut self) -> Option<Commit> {
        if !std::mem::take(&mut self.is_dirty) {
            return None;
        }
        self.commits += 1;
        Some(Commit { sequence: self.commits, state: self.state(), streams: self.stats() })
    }

    /// A commit is durable.
    pub fn committed(&mut self, commit: Commit, now_ms: u64) {
        self.committed_ms = now_ms;
        self.durable = Durable { kept: commit.state, streams: commit.streams };
    }

    /// Both sides ended well: everything that was sent is in the destination, acknowledged or not.
    pub fn completed(&mut self) {
        for account in &mut self.accounts {
            let stats = &mut account.stats;
            stats.records_committed = stats.records_emitted.saturating_sub(stats.records_rejected);
            stats.bytes_committed = stats.bytes_emitted;
            stats.status = StreamState::Complete;
        }
    }

    /// It is over, and not well: streams that are not complete never will be, and what was acknowledged
    /// without becoming durable does not count.
    pub fn broken_off(&mut self) {
        for (index, account) in self.accounts.iter_mut().enumerate() {
            let durable = self.durable.streams.get(index);
            let counts = durable.map_or((0, 0, 0), |durable| {
                (durable.records_committed, durable.bytes_committed, durable.records_rejected)
            });
            let stats = &mut account.stats;
            (stats.records_committed, stats.bytes_committed, stats.records_rejected) = counts;
            if account.stats.status != StreamState::Complete {
                account.stats.status = StreamState::Incomplete;
            }
        }
    }

    /// The whole state as it is durable.
    #[must_use]
    pub fn durable_state(&self) -> &[Arc<str>] {
        &self.durable.kept
    }

    /// The whole state as acknowledged.
    #[must_use]
    pub fn state(&self) -> Vec<Arc<str>> {
        match &self.kept.whole {
            Some(whole) => vec![Arc::clone(whole)],
            None => self.kept.streams.iter().map(|(_, state)| Arc::clone(state)).collect(),
        }
    }

    /// The counts of every stream.
    #[must_use]
    pub fn stats(&self) -> Vec<StreamStats> {
        self.accounts.iter().map(|account| account.stats.clone()).collect()
    }

    /// Whether connectors count as we do.
    #[must_use]
    pub fn checksums(&self) -> &Checksums {
        &self.checksums
    }

    /// Commits so far.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let waiting = self.accounts.iter().map(|account| account.queue.waiting.len());
        let waiting = waiting.sum::<usize>() + self.whole.waiting.len();
        Progress {
            streams: self.stats(),
            estimate: self.estimate,
            commits: self.commits,
            committed_ms: self.committed_ms,
            states_in_flight: u64::try_from(waiting).unwrap_or(u64::MAX),
        }
    }

    fn queue(&mut self, stream: Option<usize>) -> &mut Queue {
        match stream.and_then(|stream| self.accounts.get_mut(stream)) {
            Some(account) => &mut account.queue,
            None => &mut self.whole,
        }
    }

    fn take_tallies(&mut self, stream: Option<usize>) -> Vec<(usize, Tally)> {
        let accounts = self.accounts.iter_mut().enumerate();
        let concerned = accounts.filter(|(index, _)| stream.is_none_or(|stream| stream == *index));
        let taken = concerned.map(|(index, account)| {
            account.has_state = true;
            (index, std::mem::take(&mut account.since_state))
        });
        taken.filter(|(_, tally)| *tally != Tally::default()).collect()
    }

    fn body(&mut self, text: &str) -> Option<Box<str>> {
        let total = self.bodies_bytes + text.len();
        (total <= BODIES_BYTES_MAX).then(|| {
            self.bodies_bytes = total;
            Box::from(text)
        })
    }

    fn compare_source(&mut self, stats: Option<Stats>, records: u64) {
        let Some(said) = stats.and_then(|stats| stats.record_count) else { return };
        self.checksums.source_compared += 1;
        self.checksums.source_mismatched += u64::from(whole(said) != records);
    }

    fn count_committed(&mut self, done: &[Entry], stats: Option<Stats>) {
        let stats = stats.unwrap_or_default();
        let mut rejected = stats.rejected_record_count.map_or(0, whole);
        let tallies = done.iter().flat_map(|entry| &entry.tallies);
        let sum: u64 = tallies.clone().map(|(_, tally)| tally.records).sum();
        if let Some(said) = stats.record_count {
            self.checksums.destination_compared += 1;
            self.checksums.destination_mismatched += u64::from(whole(said) + rejected != sum);
        }
        for (index, tally) in tallies {
            let Some(account) = self.accounts.get_mut(*index) else { continue };
            let refused = rejected.min(tally.records);
            rejected -= refused;
            account.stats.records_rejected += refused;
            account.stats.records_committed += tally.records - refused;
            account.stats.bytes_committed += tally.bytes;
        }
    }

    fn keep(
        &mut self,
        stream: Option<usize>,
        body: Option<Box<str>>,
        is_reset: bool,
        echoed: State<'_>,
    ) -> Result<(), StateError> {
        let name = stream.and_then(|stream| self.catalog.streams.get(stream));
        let name = name.map(|stream| &stream.descriptor);
        let json = match &body {
            Some(body) => State::read(body)?.to_kept(None)?,
            None => echoed.to_kept(name)?,
        };
        let json: Arc<str> = Arc::from(json);
        let Some(name) = name else {
            self.kept = Kept { streams: Vec::new(), whole: Some(json) };
            return Ok(());
        };
        self.kept.whole = None;
        let at = self.kept.streams.iter().position(|(known, _)| known == name);
        match at {
            Some(at) if is_reset => drop(self.kept.streams.remove(at)),
            Some(at) => {
                if let Some((_, state)) = self.kept.streams.get_mut(at) {
                    *state = json;
                }
            }
            None if is_reset => {}
            None => self.kept.streams.push((name.clone(), json)),
        }
        Ok(())
    }
}

fn settle(account: &mut Account) {
    if account.source_complete && account.queue.waiting.is_empty() {
        account.stats.status = StreamState::Complete;
    }
}

/// Which entry a state is. Without an id: the oldest that means the same, unless it could as well be
/// a second copy of the one before.
fn position(queue: &Queue, state: &State<'_>) -> Option<usize> {
    let front = queue.waiting.front()?;
    if let Some(id) = state.id {
        if id < front.id {
            return None;
        }
        return queue.waiting.binary_search_by_key(&id, |entry| entry.id).ok();
    }
    let found = queue.waiting.iter().position(|entry| entry.print == state.print)?;
    let ambiguous = found == 0 && queue.last.is_some_and(|(_, print)| print == state.print);
    (!ambiguous).then_some(found)
}

/// The second entry takes over what the first one counts: acknowledged, it implies the first. Returns
/// how many bytes of states are kept less.
fn merge_oldest(queue: &mut Queue) -> usize {
    let Some(oldest) = queue.waiting.pop_front() else { return 0 };
    let freed = oldest.body.map_or(0, |body| body.len());
    let Some(next) = queue.waiting.front_mut() else { return freed };
    for (index, tally) in oldest.tallies {
        match next.tallies.iter_mut().find(|(known, _)| *known == index) {
            Some((_, sum)) => sum.add(tally),
            None => next.tallies.push((index, tally)),
        }
    }
    freed
}

/// A count that came as a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn whole(count: f64) -> u64 {
    count as u64
}

#[cfg(test)]
mod tests;
