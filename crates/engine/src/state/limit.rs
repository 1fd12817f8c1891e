//! Limit keys: how many jobs of a key may be active, and how often one may be handed out.
//!
//! A [`Bay`](super::fair::Bay) holds the lanes of one group that share their keys. When a key is
//! full its bays are parked on it in order; a freed place wakes exactly as many bays of each queue,
//! oldest first. The rules stand in [`fair::gates`](super::fair).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use windlass_record::id::QueueId;
use windlass_record::policy::LimitSettings;

use super::fair::Side;
use super::{PairName, State};

/// One of the two ways in which a key can be full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Too many are active.
    Concurrency,
    /// Too many were handed out in the window.
    Rate,
}

/// A limit key.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) tenant: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) settings: LimitSettings,
    /// Its settings come from a queue: it is forgotten when nothing uses it.
    pub(crate) implied: bool,
    /// Bays that use it, for either gate.
    pub(crate) bays: u32,
    /// Jobs of it that are active.
    pub(crate) active: u32,
    /// When jobs of it were handed out, oldest first, within the window.
    pub(crate) handed_ms: VecDeque<u64>,
    pub(crate) concurrency: GateState,
    pub(crate) rate: GateState,
    /// When its rate gate should be looked at, as registered with the timer.
    pub(crate) rate_wake_ms: Option<u64>,
    pub(crate) image_hash: u64,
    pub(crate) dirty: bool,
}

/// The bays at one gate of a key: one line for each side of each queue.
#[derive(Debug, Default)]
pub(crate) struct GateState {
    lines: BTreeMap<LineId, Line>,
}

/// Whose bays stand in a line.
pub(crate) type LineId = (QueueId, Side);

/// The bays of one side of a queue at one gate, in order of their stamps. None is in both sets.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Bays that may be served.
    pub(crate) awake: BTreeSet<(u64, u32)>,
    /// Bays that wait for the gate.
    pub(crate) parked: BTreeSet<(u64, u32)>,
}

impl GateState {
    /// This line, made if it is new.
    pub(crate) fn line(&mut self, line: LineId) -> &mut Line {
        self.lines.entry(line).or_default()
    }

    /// All lines.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (LineId, &Line)> {
        self.lines.iter().map(|(id, line)| (*id, line))
    }

    /// Whether no bay waits.
    pub(crate) fn none_parked(&self) -> bool {
        self.lines.values().all(|line| line.parked.is_empty())
    }

    /// The stamp of the first bay of a line that waits.
    pub(crate) fn first_parked(&self, line: LineId) -> Option<u64> {
        self.lines.get(&line)?.parked.first().map(|(stamp, _)| *stamp)
    }

    /// The awake bays of all lines, oldest first.
    pub(crate) fn awake(&self) -> Vec<(u64, u32)> {
        let mut awake: Vec<_> = self.lines.values().flat_map(|line| &line.awake).copied().collect();
        awake.sort_unstable();
        awake
    }

    /// The oldest bay that waits in a line with fewer awake bays than there is room.
    pub(crate) fn next_to_wake(&self, room: u32) -> Option<(u64, u32)> {
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        self.lines
            .values()
            .filter(|line| line.awake.len() < room)
            .filter_map(|line| line.parked.first())
            .min()
            .copied()
    }

    /// How many bays of a line wait before this one.
    pub(crate) fn ahead(&self, line: LineId, entry: (u64, u32)) -> u64 {
        let parked = self.lines.get(&line).map(|line| line.parked.range(..entry).count());
        parked.and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
    }

    pub(crate) fn leave_awake(&mut self, id: LineId, entry: (u64, u32)) {
        let line = self.line(id);
        line.awake.remove(&entry);
        self.forget_if_empty(id);
    }

    pub(crate) fn leave_parked(&mut self, id: LineId, entry: (u64, u32)) {
        let line = self.line(id);
        line.parked.remove(&entry);
        self.forget_if_empty(id);
    }

    fn forget_if_empty(&mut self, id: LineId) {
        let line = self.line(id);
        if line.awake.is_empty() && line.parked.is_empty() {
            self.lines.remove(&id);
        }
    }
}

/// A limit key as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitView {
    /// The wall of security.
    pub tenant: Arc<str>,
    /// The key.
    pub name: Arc<str>,
    /// What it lets pass.
    pub settings: LimitSettings,
    /// Nobody set it: it is what the queue of its jobs says, and goes when none uses it.
    pub of_queue: bool,
    /// Jobs of it that are active.
    pub active: u32,
    /// Activations within the window that ends now.
    pub activated: u32,
}

impl State {
    /// The limit key with this name, as it is at `now_ms`.
    pub fn limit_named(&self, tenant: &str, name: &str, now_ms: u64) -> Option<LimitView> {
        let id = self.limit_names.get(&(tenant, name) as &dyn PairName)?;
        Some(self.limit(*id).view(now_ms))
    }

    /// The limit keys of a tenant whose name comes after `after`, in order.
    pub fn limits_after<'a>(
        &'a self,
        tenant: &'a str,
        after: &'a str,
        now_ms: u64,
    ) -> impl Iterator<Item = LimitView> + 'a {
        let from = &(tenant, after) as &dyn PairName;
        self.limits_in_order
            .range::<dyn PairName, _>((Bound::Excluded(from), Bound::Unbounded))
            .take_while(move |((of, _), _)| **of == *tenant)
            .map(move |(_, id)| self.limit(*id).view(now_ms))
    }
}

impl Limit {
    fn view(&self, now_ms: u64) -> LimitView {
        let window_ms = self.settings.rate.map_or(0, |rate| rate.window_ms);
        let has_left = |at_ms: &u64| at_ms.saturating_add(window_ms) <= now_ms;
        let activated = self.handed_ms.len() - self.handed_ms.partition_point(has_left);
        LimitView {
            tenant: self.tenant.clone(),
            name: self.name.clone(),
            settings: self.settings,
            of_queue: self.implied,
            active: self.active,
            activated: u32::try_from(activated).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn new(tenant: Arc<str>, name: Arc<str>) -> Limit {
        Limit {
            tenant,
            name,
            settings: LimitSettings::default(),
            implied: false,
            bays: 0,
            active: 0,
            handed_ms: VecDeque::new(),
            concurrency: GateState::default(),
            rate: GateState::default(),
            rate_wake_ms: None,
            image_hash: 0,
            dirty: false,
        }
    }

    pub(crate) fn gate(&self, gate: Gate) -> &GateState {
        match gate {
            Gate::Concurrency => &self.concurrency,
            Gate::Rate => &self.rate,
        }
    }

    pub(crate) fn gate_mut(&mut self, gate: Gate) -> &mut GateState {
        match gate {
            Gate::Concurrency => &mut self.concurrency,
            Gate::Rate => &mut self.rate,
        }
    }

    /// How many more may pass the gate now.
    pub(crate) fn free(&self, gate: Gate) -> u32 {
        match gate {
            Gate::Concurrency => {
                self.settings.active_max.map_or(u32::MAX, |max| max.saturating_sub(self.active))
            }
            Gate::Rate => self.settings.rate.map_or(u32::MAX, |rate| {
                let handed = u32::try_from(self.handed_ms.len()).unwrap_or(u32::MAX);
                rate.max.saturating_sub(handed)
            }),
        }
    }

    /// Forgets hand-outs that have left the window that ends at `now_ms`; tells whether any had.
    pub(crate) fn prune(&mut self, now_ms: u64) -> bool {
        let before = self.handed_ms.len();
        match self.settings.rate {
            None => self.handed_ms.clear(),
            Some(rate) => {
                let left = |at_ms: &u64| at_ms.saturating_add(rate.window_ms) <= now_ms;
                while self.handed_ms.front().is_some_and(left) {
                    self.handed_ms.pop_front();
                }
            }
        }
        self.handed_ms.len() != before
    }

    /// Forgets one hand-out that came to nothing.
    pub(crate) fn refund(&mut self, handed_ms: u64) {
        if let Ok(place) = self.handed_ms.binary_search(&handed_ms) {
            self.handed_ms.remove(place);
        }
    }

    /// When the next hand-out is possible: the window may hold more than its maximum, if that was lowered.
    pub(crate) fn room_ms(&self) -> Option<u64> {
        let rate = self.settings.rate?;
        let max = usize::try_from(rate.max).unwrap_or(usize::MAX);
        let over = self.handed_ms.len().saturating_sub(max);
        Some(self.handed_ms.get(over)?.saturating_add(rate.window_ms))
    }

    /// When the oldest hand-out leaves the window.
    pub(crate) fn frees_ms(&self) -> Option<u64> {
        Some(self.handed_ms.front()?.saturating_add(self.settings.rate?.window_ms))
    }
}
