//! The scheduler as a few lines over plain lists, to hold the real one against.
//!
//! The rules, once more and apart from the code they check:
//!
//! - A job that left a lease with a token is **fenced** and is only for those who ask with one. A
//!   group has two sides, an open and a fenced one, each with bays, a turn and a line of its own.
//! - A **bay** is what a side of a group has ready under one pair of limit keys. All bays with ready jobs
//!   stand in one line, which a bay joins at the end when it gets its first ready job, and goes back
//!   to the end of whenever it was served.
//! - A bay is parked at a gate (concurrency first, then rate) when the gate is full or an earlier
//!   bay of the same queue and side is parked there; else it is awake. When a gate becomes full its awake
//!   bays park there. While it has room, the earliest parked bay whose queue and side have fewer
//!   awake bays at that gate than there is room is woken.
//! - A side is eligible while it has an awake bay. It takes a turn, a number that grows, when it
//!   becomes eligible and each time its group was served. A request serves the group with the
//!   smallest turn of all queues it asks that are not paused, of the sides that are for it.
//! - In the group: an aged job first (of those that are first of their bay, class and priority, the
//!   one that waits longest, if it waits that long), then due retries where the queue says so, then
//!   the highest priority, or the lowest when the group's counter says so, then the queue's order.
//! - A job that is taken back stands where it stood; its bay goes before those that are parked, its
//!   group has its turn again.

use windlass_record::policy::{JobOrder, PriorityRule, QueueSettings, RateWindow};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Waiting,
    Ready,
    Active,
    Gone,
}

#[derive(Clone, Debug)]
pub(super) struct NaiveJob {
    pub(super) queue: usize,
    pub(super) group: usize,
    pub(super) keys: Keys,
    pub(super) priority: i32,
    pub(super) retry: bool,
    pub(super) fenced: bool,
    /// Its lease has a token.
    tokened: bool,
    pub(super) place: Place,
    pub(super) due_ms: u64,
    order: u64,
    since_ms: u64,
}

/// Which concurrency limit and which rate limit, by number.
pub(super) type Keys = (Option<usize>, Option<usize>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Active,
    Rate,
}

#[derive(Clone, Debug)]
struct NaiveBay {
    queue: usize,
    group: usize,
    fenced: bool,
    keys: Keys,
    parked: Option<Gate>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct NaiveLimit {
    pub(super) active_max: Option<u32>,
    pub(super) rate: Option<RateWindow>,
    pub(super) handed_ms: Vec<u64>,
    /// Until when hand-outs that left the window have woken whom they woke.
    pub(super) freed_ms: u64,
}

#[derive(Clone, Debug)]
pub(super) struct NaiveQueue {
    pub(super) settings: QueueSettings,
    pub(super) paused: bool,
}

/// A hand-out, with what is needed to take it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub(super) job: usize,
    turn: u64,
    count: u32,
    at_ms: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Naive {
    pub(super) now_ms: u64,
    pub(super) jobs: Vec<NaiveJob>,
    pub(super) queues: Vec<NaiveQueue>,
    pub(super) limits: Vec<NaiveLimit>,
    /// All bays with ready jobs, in line.
    line: Vec<NaiveBay>,
    /// Turn, queue, group, side.
    turns: Vec<(u64, usize, usize, bool)>,
    last_turn: u64,
    last_order: u64,
    /// Queue, group, counter.
    counts: Vec<(usize, usize, u32)>,
}

impl Naive {
    // ── what happens ────────────────────────────────────────────────────────────────────────

    pub(super) fn create(
        &mut self,
        (queue, group): (usize, usize),
        keys: Keys,
        priority: i32,
        due_ms: Option<u64>,
    ) {
        self.jobs.push(NaiveJob {
            queue,
            group,
            keys,
            priority,
            retry: false,
            fenced: false,
            tokened: false,
            place: Place::Waiting,
            due_ms: due_ms.unwrap_or(0),
            order: 0,
            since_ms: 0,
        });
        if due_ms.is_none() {
            self.make_ready(self.jobs.len() - 1);
        }
    }

    pub(super) fn make_ready(&mut self, job: usize) {
        self.last_order += 1;
        self.jobs[job].order = match self.settings(job).order {
            JobOrder::Creation => job as u64,
            JobOrder::Ready => self.last_order,
        };
        self.jobs[job].place = Place::Ready;
        self.jobs[job].since_ms = self.now_ms;
        if self.bay(job).is_none() {
            self.free_first(self.jobs[job].keys.1);
            self.join_line(job);
            self.settle(self.line.len() - 1);
        }
        self.relist(job);
    }

    /// Takes a job out of the line, or gives back the place it uses.
    pub(super) fn leave(&mut self, job: usize, place: Place) {
        let was = std::mem::replace(&mut self.jobs[job].place, place);
        match was {
            Place::Ready => self.left_line(job),
            Place::Active => {
                self.wake_all(self.jobs[job].keys.0, Gate::Active);
                let it = &mut self.jobs[job];
                it.fenced |= std::mem::take(&mut it.tokened);
            }
            Place::Waiting | Place::Gone => {}
        }
    }

    pub(super) fn activate(&mut self, queues: &[usize], with_token: bool) -> Option<Pick> {
        let asked = |queue: usize| queues.contains(&queue) && !self.queues[queue].paused;
        let for_it = |fenced: bool| with_token || !fenced;
        let &(turn, queue, group, _) = self
            .turns
            .iter()
            .filter(|(_, queue, _, fenced)| asked(*queue) && for_it(*fenced))
            .min()?;
        let count = self.count(queue, group);
        let job = self.choose(queue, group, with_token);
        if let PriorityRule::Scheme { .. } = self.queues[queue].settings.priority {
            self.set_count(queue, group, count + 1);
        }
        let keys = self.jobs[job].keys;
        self.jobs[job].place = Place::Active;
        self.jobs[job].tokened = with_token;
        if let Some(rate) = keys.1 {
            self.limits[rate].handed_ms.push(self.now_ms);
        }
        self.left_line(job);
        if let Some(bay) = self.bay(job).filter(|&bay| self.line[bay].parked.is_none()) {
            let bay = self.line.remove(bay);
            self.line.push(bay);
        }
        self.refresh(keys.0, Gate::Active);
        self.refresh(keys.1, Gate::Rate);
        for fenced in [false, true] {
            if let Some(place) = self.listed(queue, group, fenced) {
                self.last_turn += 1;
                self.turns[place].0 = self.last_turn;
            }
        }
        Some(Pick { job, turn, count, at_ms: self.now_ms })
    }

    pub(super) fn take_back(&mut self, pick: Pick) {
        let job = pick.job;
        let (queue, group, keys) =
            (self.jobs[job].queue, self.jobs[job].group, self.jobs[job].keys);
        self.free_first(keys.1);
        if let Some(rate) = keys.1 {
            let handed = &mut self.limits[rate].handed_ms;
            let place = handed.iter().position(|&at_ms| at_ms == pick.at_ms);
            handed.remove(place.expect("all hand-outs are kept"));
        }
        self.jobs[job].place = Place::Ready;
        self.jobs[job].tokened = false;
        self.jobs[job].since_ms = self.now_ms;
        let stood = self.bay(job);
        if stood.is_none_or(|bay| self.line[bay].parked.is_some()) {
            let bay = stood.unwrap_or_else(|| self.join_line(job));
            let full = [(keys.0, Gate::Active), (keys.1, Gate::Rate)]
                .into_iter()
                .find(|&(limit, gate)| limit.is_some_and(|limit| self.room(limit, gate) == 0));
            self.line[bay].parked = full.map(|(_, gate)| gate);
        }
        self.relist(job);
        self.wake_all(keys.0, Gate::Active);
        self.wake_all(keys.1, Gate::Rate);
        self.set_count(queue, group, pick.count);
        for fenced in [false, true] {
            if let Some(place) = self.listed(queue, group, fenced) {
                self.turns[place].0 = self.turns[place].0.min(pick.turn);
            }
        }
    }

    pub(super) fn set_active_max(&mut self, limit: usize, active_max: Option<u32>) {
        self.limits[limit].active_max = active_max;
        self.refresh(Some(limit), Gate::Active);
        self.refresh(Some(limit), Gate::Rate);
    }

    /// New settings; a new order numbers all jobs of the queue anew.
    pub(super) fn configure(&mut self, queue: usize, settings: QueueSettings) {
        let old = std::mem::replace(&mut self.queues[queue].settings, settings);
        if old.order == settings.order {
            return;
        }
        let mut jobs: Vec<usize> = (0..self.jobs.len())
            .filter(|&job| self.jobs[job].queue == queue && self.jobs[job].place != Place::Gone)
            .collect();
        jobs.sort_by_key(|&job| (self.jobs[job].order, job));
        for job in jobs {
            self.last_order += 1;
            self.jobs[job].order = match settings.order {
                JobOrder::Creation => job as u64,
                JobOrder::Ready => self.last_order,
            };
        }
    }

    /// When a job or a parked bay is due next, and who.
    pub(super) fn next_due(&self) -> Option<(u64, Result<usize, usize>)> {
        let jobs = (0..self.jobs.len())
            .filter(|&job| self.jobs[job].place == Place::Waiting)
            .map(|job| (self.jobs[job].due_ms, 0, Ok(job)));
        let rates = (0..self.limits.len())
            .filter(|&limit| {
                let mut line = self.line.iter();
                line.any(|bay| bay.keys.1 == Some(limit) && bay.parked == Some(Gate::Rate))
            })
            .filter_map(|limit| {
                let rate = self.limits[limit].rate?;
                let live = self.limits[limit].handed_ms.iter().map(|at_ms| at_ms + rate.window_ms);
                let seen_ms = self.limits[limit].freed_ms;
                Some((live.filter(|&free_ms| free_ms > seen_ms).min()?, 1, Err(limit)))
            });
        let (at_ms, _, who) = jobs.chain(rates).min_by_key(|(at_ms, kind, _)| (*at_ms, *kind))?;
        Some((at_ms, who))
    }

    /// What has left a window lets those pass who wait there, before anybody else comes.
    pub(super) fn free_rate(&mut self, limit: usize) {
        self.limits[limit].freed_ms = self.now_ms;
        self.wake_all(Some(limit), Gate::Rate);
    }

    fn free_first(&mut self, limit: Option<usize>) -> bool {
        let Some(limit) = limit.filter(|&limit| self.limits[limit].freed_ms < self.now_ms) else {
            return false;
        };
        self.free_rate(limit);
        true
    }

    /// Jobs that would be handed out to one request for this queue if nothing else happened and no
    /// limit became full, with tokens, in order: the groups as they are, each emptied by its rule.
    pub(super) fn drain(&self, queue: usize) -> Vec<usize> {
        let mut copy = self.clone();
        copy.queues[queue].paused = false;
        copy.queues[queue].settings.aging_ms = 0;
        let mut out = Vec::new();
        loop {
            let next = copy.turns.iter().filter(|(_, of, ..)| *of == queue).min().copied();
            let Some((_, _, group, _)) = next else { return out };
            let job = copy.choose(queue, group, true);
            if let PriorityRule::Scheme { .. } = copy.queues[queue].settings.priority {
                let count = copy.count(queue, group);
                copy.set_count(queue, group, count + 1);
            }
            copy.jobs[job].place = Place::Gone;
            for fenced in [false, true] {
                let Some(place) = copy.listed(queue, group, fenced) else { continue };
                copy.last_turn += 1;
                copy.turns[place].0 = copy.last_turn;
                if copy.eligible(queue, group, fenced).is_empty() {
                    copy.turns.remove(place);
                }
            }
            out.push(job);
        }
    }

    // ── the rules ───────────────────────────────────────────────────────────────────────────

    fn choose(&self, queue: usize, group: usize, with_token: bool) -> usize {
        let settings = self.queues[queue].settings;
        let mut jobs = self.eligible(queue, group, false);
        if with_token {
            jobs.extend(self.eligible(queue, group, true));
        }
        jobs.sort_by_key(|&job| self.jobs[job].order);
        if settings.aging_ms > 0 {
            let lane = |job: usize| {
                let job = &self.jobs[job];
                (job.keys, job.fenced, job.priority, job.retry && settings.retries_first)
            };
            let is_first =
                |&&job: &&usize| jobs.iter().find(|&&other| lane(other) == lane(job)) == Some(&job);
            let oldest = jobs
                .iter()
                .filter(is_first)
                .min_by_key(|&&job| (self.jobs[job].since_ms, self.jobs[job].order))
                .expect("the group is eligible");
            if self.jobs[*oldest].since_ms + settings.aging_ms <= self.now_ms {
                return *oldest;
            }
        }
        if settings.retries_first && jobs.iter().any(|&job| self.jobs[job].retry) {
            jobs.retain(|&job| self.jobs[job].retry);
        }
        let low = match settings.priority {
            PriorityRule::Strict => false,
            PriorityRule::Scheme { high, low } => self.count(queue, group) % (high + low) >= high,
        };
        let priorities = jobs.iter().map(|&job| self.jobs[job].priority);
        let priority = if low { priorities.min() } else { priorities.max() };
        jobs.retain(|&job| Some(self.jobs[job].priority) == priority);
        jobs[0]
    }

    /// Ready jobs of a side of a group in awake bays.
    fn eligible(&self, queue: usize, group: usize, fenced: bool) -> Vec<usize> {
        (0..self.jobs.len())
            .filter(|&job| {
                let it = &self.jobs[job];
                let of_side = (it.queue, it.group, it.fenced) == (queue, group, fenced);
                of_side
                    && it.place == Place::Ready
                    && self.bay(job).is_some_and(|bay| self.line[bay].parked.is_none())
            })
            .collect()
    }

    fn settle(&mut self, bay: usize) {
        let it = &self.line[bay];
        let blocked = [(it.keys.0, Gate::Active), (it.keys.1, Gate::Rate)].into_iter().find(
            |&(limit, gate)| {
                let Some(limit) = limit else { return false };
                let behind = self.line[..bay].iter().any(|other| {
                    (other.queue, other.fenced) == (it.queue, it.fenced)
                        && other.parked == Some(gate)
                        && key(other.keys, gate) == Some(limit)
                });
                behind || self.room(limit, gate) == 0
            },
        );
        self.line[bay].parked = blocked.map(|(_, gate)| gate);
    }

    fn wake_all(&mut self, limit: Option<usize>, gate: Gate) {
        let Some(limit) = limit else { return };
        loop {
            let room = self.room(limit, gate);
            let at_gate = |bay: &NaiveBay| key(bay.keys, gate) == Some(limit);
            let first = (0..self.line.len()).find(|&bay| {
                let it = &self.line[bay];
                let awake = |other: &&NaiveBay| {
                    let line = (other.queue, other.fenced);
                    at_gate(other) && other.parked.is_none() && line == (it.queue, it.fenced)
                };
                at_gate(it)
                    && it.parked == Some(gate)
                    && (self.line.iter().filter(awake).count() as u32) < room
            });
            let Some(bay) = first else { return };
            if gate == Gate::Active && self.free_first(self.line[bay].keys.1) {
                continue;
            }
            self.line[bay].parked = None;
            self.settle(bay);
            let it = &self.line[bay];
            self.relist_group(it.queue, it.group, it.fenced);
        }
    }

    /// After a change at a gate: parks or wakes what must be.
    fn refresh(&mut self, limit: Option<usize>, gate: Gate) {
        let Some(number) = limit else { return };
        if self.room(number, gate) > 0 {
            self.wake_all(limit, gate);
            return;
        }
        let awake: Vec<NaiveBay> = self
            .line
            .iter()
            .filter(|bay| bay.parked.is_none() && key(bay.keys, gate) == limit)
            .cloned()
            .collect();
        for it in awake {
            let bay = self.line.iter().position(|bay| bay.is(&it)).expect("it stands in line");
            self.line[bay].parked = Some(gate);
            self.relist_group(it.queue, it.group, it.fenced);
            self.wake_all(it.keys.0, Gate::Active);
            self.wake_all(it.keys.1, Gate::Rate);
        }
    }

    fn room(&self, limit: usize, gate: Gate) -> u32 {
        let it = &self.limits[limit];
        match gate {
            Gate::Active => {
                let is_active =
                    |job: &&NaiveJob| job.place == Place::Active && job.keys.0 == Some(limit);
                let active = self.jobs.iter().filter(is_active).count() as u32;
                it.active_max.map_or(u32::MAX, |max| max.saturating_sub(active))
            }
            Gate::Rate => it.rate.map_or(u32::MAX, |rate| {
                let within = |at_ms: &&u64| **at_ms + rate.window_ms > self.now_ms;
                rate.max.saturating_sub(it.handed_ms.iter().filter(within).count() as u32)
            }),
        }
    }

    // ── lists ───────────────────────────────────────────────────────────────────────────────

    fn join_line(&mut self, job: usize) -> usize {
        let it = &self.jobs[job];
        self.line.push(it.bay());
        self.line.len() - 1
    }

    /// A job is not ready any more: its bay may be empty.
    fn left_line(&mut self, job: usize) {
        let it = self.jobs[job].clone();
        let alike = |other: &NaiveJob| other.bay().is(&it.bay());
        if self.jobs.iter().any(|other| other.place == Place::Ready && alike(other)) {
            return;
        }
        let bay = self.bay(job).expect("a ready job has a bay in line");
        let bay = self.line.remove(bay);
        self.relist(job);
        if bay.parked.is_none() {
            self.wake_all(it.keys.0, Gate::Active);
            self.wake_all(it.keys.1, Gate::Rate);
        }
    }

    fn bay(&self, job: usize) -> Option<usize> {
        let it = self.jobs[job].bay();
        self.line.iter().position(|bay| bay.is(&it))
    }

    fn relist(&mut self, job: usize) {
        let it = &self.jobs[job];
        self.relist_group(it.queue, it.group, it.fenced);
    }

    fn relist_group(&mut self, queue: usize, group: usize, fenced: bool) {
        let eligible = !self.eligible(queue, group, fenced).is_empty();
        match self.listed(queue, group, fenced) {
            None if eligible => {
                self.last_turn += 1;
                self.turns.push((self.last_turn, queue, group, fenced));
            }
            Some(place) if !eligible => {
                self.turns.remove(place);
            }
            None | Some(_) => {}
        }
    }

    fn listed(&self, queue: usize, group: usize, fenced: bool) -> Option<usize> {
        self.turns.iter().position(|&(_, q, g, f)| (q, g, f) == (queue, group, fenced))
    }

    fn count(&self, queue: usize, group: usize) -> u32 {
        self.counts.iter().find(|&&(q, g, _)| (q, g) == (queue, group)).map_or(0, |it| it.2)
    }

    fn set_count(&mut self, queue: usize, group: usize, count: u32) {
        self.counts.retain(|&(q, g, _)| (q, g) != (queue, group));
        self.counts.push((queue, group, count));
    }

    fn settings(&self, job: usize) -> QueueSettings {
        self.queues[self.jobs[job].queue].settings
    }
}

impl NaiveJob {
    /// The bay it would make.
    fn bay(&self) -> NaiveBay {
        let NaiveJob { queue, group, fenced, keys, .. } = *self;
        NaiveBay { queue, group, fenced, keys, parked: None }
    }
}

impl NaiveBay {
    fn is(&self, other: &NaiveBay) -> bool {
        let name = |bay: &NaiveBay| (bay.queue, bay.group, bay.fenced, bay.keys);
        name(self) == name(other)
    }
}

fn key(keys: Keys, gate: Gate) -> Option<usize> {
    match gate {
        Gate::Active => keys.0,
        Gate::Rate => keys.1,
    }
}
