//! Those who wait for jobs: polls, once, and streams, while they have credits. Oldest first; who
//! was served goes to the end.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use windlass_engine::State;
use windlass_record::command::QueueName;
use windlass_record::id::QueueId;

use crate::request::{PollReply, StreamSink, WaiterId, Wanted};

/// All who wait.
#[derive(Default)]
pub struct Waiters {
    all: HashMap<WaiterId, Waiter, FxBuildHasher>,
    /// Who wants jobs of a queue now.
    lines: Vec<Line>,
    /// Who watches a queue, with credits or without: those without tokens, then those with.
    watchers: Vec<[Watchers; 2]>,
    /// Who asked for a queue that does not exist yet.
    hoping: HashMap<QueueName, Vec<WaiterId>>,
    /// The streams of each worker, by its name.
    streams: HashMap<Arc<str>, Vec<WaiterId>, FxBuildHasher>,
    /// When polls give up.
    ends: BTreeSet<(u64, WaiterId)>,
    last_stamp: u64,
    queues_known: usize,
}

/// Those who want jobs of one queue, oldest first.
#[derive(Default)]
struct Line {
    without_token: BTreeSet<(u64, WaiterId)>,
    with_token: BTreeSet<(u64, WaiterId)>,
}

impl Line {
    fn of(&mut self, with_token: bool) -> &mut BTreeSet<(u64, WaiterId)> {
        if with_token { &mut self.with_token } else { &mut self.without_token }
    }

    fn len(&self) -> usize {
        self.without_token.len() + self.with_token.len()
    }
}

/// Those who watch a queue.
#[derive(Clone, Copy, Default)]
struct Watchers {
    count: u32,
    /// When it was asked last; 0 is never.
    asked_ms: u64,
}

/// One who waits.
pub(crate) struct Waiter {
    pub(crate) wanted: Wanted,
    /// The queues of it that exist.
    pub(crate) queues: Vec<QueueId>,
    pub(crate) kind: Kind,
    stamp: u64,
}

pub(crate) enum Kind {
    Poll { jobs_max: u32, bytes_max: u64, reply: PollReply, ends_ms: u64 },
    Stream { credits: u32, sink: Arc<dyn StreamSink> },
}

impl Waiter {
    /// How many jobs it takes now.
    pub(crate) fn room(&self) -> u32 {
        match &self.kind {
            Kind::Poll { jobs_max, .. } => *jobs_max,
            Kind::Stream { credits, .. } => *credits,
        }
    }
}

impl Waiters {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn add(
        &mut self,
        state: &State,
        now_ms: u64,
        id: WaiterId,
        wanted: Wanted,
        kind: Kind,
    ) {
        let mut queues = Vec::new();
        for name in &wanted.queues {
            match state.queue_named(name) {
                Some(queue) => queues.push(queue),
                None => self.hoping.entry(name.clone()).or_default().push(id),
            }
        }
        queues.sort_unstable();
        queues.dedup();
        for queue in &queues {
            let watchers = self.watchers_mut(*queue, wanted.with_token);
            watchers.count += 1;
            watchers.asked_ms = now_ms;
        }
        match &kind {
            Kind::Poll { ends_ms, .. } => {
                self.ends.insert((*ends_ms, id));
            }
            Kind::Stream { .. } => {
                self.streams.entry(wanted.worker.clone()).or_default().push(id);
            }
        }
        let replaced = self.all.insert(id, Waiter { wanted, queues, kind, stamp: 0 });
        debug_assert!(replaced.is_none(), "waiter ids are unique");
        self.join(id);
    }

    pub(crate) fn get(&self, id: WaiterId) -> Option<&Waiter> {
        self.all.get(&id)
    }

    /// It waits no more. Until now it asked.
    pub(crate) fn remove(&mut self, now_ms: u64, id: WaiterId) -> Option<Waiter> {
        self.leave(id);
        let waiter = self.all.remove(&id)?;
        for queue in &waiter.queues {
            let watchers = self.watchers_mut(*queue, waiter.wanted.with_token);
            watchers.count -= 1;
            watchers.asked_ms = now_ms;
        }
        match &waiter.kind {
            Kind::Poll { ends_ms, .. } => {
                self.ends.remove(&(*ends_ms, id));
            }
            Kind::Stream { .. } => {
                if let Some(ids) = self.streams.get_mut(&waiter.wanted.worker) {
                    ids.retain(|&other| other != id);
                    if ids.is_empty() {
                        self.streams.remove(&waiter.wanted.worker);
                    }
                }
            }
        }
        if waiter.queues.len() < waiter.wanted.queues.len() {
            for name in &waiter.wanted.queues {
                if let Some(ids) = self.hoping.get_mut(name) {
                    ids.retain(|&other| other != id);
                    if ids.is_empty() {
                        self.hoping.remove(name);
                    }
                }
            }
        }
        Some(waiter)
    }

    /// Changes a stream's credits, and its place in line: a stream without credits stands in none,
    /// one that was served goes to the end.
    pub(crate) fn set_credits(&mut self, id: WaiterId, change: impl FnOnce(u32) -> u32) {
        self.leave(id);
        if let Some(Waiter { kind: Kind::Stream { credits, .. }, .. }) = self.all.get_mut(&id) {
            *credits = change(*credits);
        }
        self.join(id);
    }

    /// Adds credits without losing the place in line.
    pub(crate) fn add_credits(&mut self, id: WaiterId, more: u32) -> &[QueueId] {
        match self.all.get_mut(&id) {
            Some(Waiter { kind: Kind::Stream { credits, .. }, .. }) if *credits > 0 => {
                *credits = credits.saturating_add(more);
            }
            Some(_) => self.set_credits(id, |credits| credits.saturating_add(more)),
            None => {}
        }
        self.all.get(&id).map_or(&[], |waiter| &waiter.queues)
    }

    /// The oldest for whom a queue has jobs now, and how many there are like that.
    pub(crate) fn first(&self, state: &State, queue: QueueId) -> Option<(WaiterId, usize)> {
        let line = self.lines.get(usize::try_from(queue.0).ok()?)?;
        if state.eligible_jobs(queue, false) > 0 {
            let first = match (line.without_token.first(), line.with_token.first()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            return first.map(|&(_, id)| (id, line.len()));
        }
        let &(_, id) = line.with_token.first().filter(|_| state.eligible_jobs(queue, true) > 0)?;
        Some((id, line.with_token.len()))
    }

    /// Whether anybody waits for what a queue has.
    pub fn lacks(&self, state: &State, queue: QueueId) -> bool {
        self.first(state, queue).is_some()
    }

    /// How many want jobs of a queue.
    pub fn in_line(&self, queue: QueueId) -> u32 {
        let line = usize::try_from(queue.0).ok().and_then(|index| self.lines.get(index));
        line.map_or(0, |line| u32::try_from(line.len()).unwrap_or(u32::MAX))
    }

    /// Whether anybody watches a queue, with credits or without, or asked it at `since_ms` or later;
    /// only those with tokens count where they are wanted.
    pub(crate) fn watched(&self, queue: QueueId, wants_token: bool, since_ms: u64) -> bool {
        let index = usize::try_from(queue.0).expect("usize has at least 32 bits");
        let [without_token, with_token] = self.watchers.get(index).copied().unwrap_or_default();
        let watch = |it: Watchers| it.count > 0 || it.asked_ms > since_ms;
        watch(with_token) || !wants_token && watch(without_token)
    }

    fn watchers_mut(&mut self, queue: QueueId, with_token: bool) -> &mut Watchers {
        let index = usize::try_from(queue.0).expect("usize has at least 32 bits");
        if self.watchers.len() <= index {
            self.watchers.resize(index + 1, Default::default());
        }
        let [without, with] = self.watchers.get_mut(index).expect("just made");
        if with_token { with } else { without }
    }

    /// Polls whose time is over.
    pub(crate) fn ended(&self, now_ms: u64) -> Option<WaiterId> {
        let &(ends_ms, id) = self.ends.first()?;
        (ends_ms <= now_ms).then_some(id)
    }

    /// When the next poll gives up.
    pub(crate) fn next_end_ms(&self) -> Option<u64> {
        self.ends.first().map(|&(ends_ms, _)| ends_ms)
    }

    /// Lets those who hoped for queues that exist by now stand in their lines. True if there are
    /// new queues.
    pub(crate) fn meet_new_queues(&mut self, state: &State) {
        let known = state.queue_count();
        if known == self.queues_known {
            return;
        }
        let fresh: Vec<(QueueId, QueueName)> = state
            .queues()
            .skip(self.queues_known)
            .map(|(id, queue)| {
                (id, QueueName { tenant: queue.tenant.clone(), queue: queue.name.clone() })
            })
            .collect();
        self.queues_known = known;
        for (queue, name) in fresh {
            for id in self.hoping.remove(&name).unwrap_or_default() {
                self.leave(id);
                if let Some(waiter) = self.all.get_mut(&id) {
                    waiter.queues.push(queue);
                    let with_token = waiter.wanted.with_token;
                    self.watchers_mut(queue, with_token).count += 1;
                }
                self.join(id);
            }
        }
    }

    /// The streams of a worker.
    pub(crate) fn streams_of(&self, worker: &str) -> Vec<Arc<dyn StreamSink>> {
        let ids = self.streams.get(worker).map_or(&[][..], Vec::as_slice);
        let of = |id| match &self.all.get(id)?.kind {
            Kind::Stream { sink, .. } => Some(sink.clone()),
            Kind::Poll { .. } => None,
        };
        ids.iter().filter_map(of).collect()
    }

    /// Everybody, for the end.
    pub(crate) fn drain(&mut self) -> Vec<Waiter> {
        self.lines.clear();
        self.hoping.clear();
        self.streams.clear();
        self.ends.clear();
        self.all.drain().map(|(_, waiter)| waiter).collect()
    }

    fn join(&mut self, id: WaiterId) {
        self.last_stamp += 1;
        let Some(waiter) = self.all.get_mut(&id) else { return };
        if waiter.room() == 0 {
            return;
        }
        waiter.stamp = self.last_stamp;
        for queue in &waiter.queues {
            let index = usize::try_from(queue.0).expect("usize has at least 32 bits");
            if self.lines.len() <= index {
                self.lines.resize_with(index + 1, Line::default);
            }
            if let Some(line) = self.lines.get_mut(index) {
                line.of(waiter.wanted.with_token).insert((self.last_stamp, id));
            }
        }
    }

    fn leave(&mut self, id: WaiterId) {
        let Some(waiter) = self.all.get(&id) else { return };
        for queue in &waiter.queues {
            let line = usize::try_from(queue.0).ok().and_then(|index| self.lines.get_mut(index));
            if let Some(line) = line {
                line.of(waiter.wanted.with_token).remove(&(waiter.stamp, id));
            }
        }
    }
}
