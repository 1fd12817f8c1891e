//! The store in memory: for tests, for the simulator, and as the plainest reading of the contract.
//!
//! [`MemoryDisk`] is what survives a crash; [`MemoryCheckpoint`] is an open store on it. A crash is
//! [`MemoryDisk::crash`] followed by [`MemoryCheckpoint::open`]: handles from before are dead, what was
//! durable is there. Nothing here is random or depends on time: a simulated run repeats exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::range::KeyRange;
use crate::stamp::Stamp;
use crate::store::{Checkpoint, Entry, EntryCheck, Pair, Pairs, View, Visit};

/// How a write goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The disk refuses before anything is read.
    Refused,
    /// The disk is full after this many entries; nothing becomes visible.
    OutOfSpace {
        /// Entries taken before it.
        after_entries: u64,
    },
    /// The disk fails after this many entries; nothing becomes visible.
    Torn {
        /// Entries taken before it.
        after_entries: u64,
    },
    /// The checkpoint becomes durable, but the caller is told that it failed: what a crash between the
    /// switch and its answer looks like. It is visible once the disk is opened again; until then the
    /// store refuses further writes.
    DurableButFailed,
}

/// The durable part: shared between the stores opened on it.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    durable: State,
    /// Counts openings and crashes; a store of another number is stale.
    generation: u64,
    fault: Option<Fault>,
    damaged: BTreeSet<Vec<u8>>,
    writes: u64,
}

/// One state of the map. Cheap to clone: a snapshot shares it until the next write copies.
#[derive(Debug, Clone, Default)]
struct State {
    map: Arc<BTreeMap<Vec<u8>, Vec<u8>>>,
    stamp: Option<Stamp>,
}

impl MemoryDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every open store on this disk is dead from now on.
    pub fn crash(&self) {
        self.lock().generation += 1;
    }

    /// The next write fails like this.
    pub fn fail_next_write(&self, fault: Fault) {
        self.lock().fault = Some(fault);
    }

    /// Is a fault waiting for a write?
    pub fn fault_pending(&self) -> bool {
        self.lock().fault.is_some()
    }

    /// From now on, reading `key` finds it damaged. A later write of the key heals it.
    pub fn damage(&self, key: &[u8]) {
        self.lock().damaged.insert(key.to_vec());
    }

    /// The newest durable stamp, also seen without an open store.
    pub fn stamp(&self) -> Option<Stamp> {
        self.lock().durable.stamp.clone()
    }

    /// Everything durable, for comparison with a model.
    pub fn contents(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        self.lock().durable.map.as_ref().clone()
    }

    /// Writes begun since the disk was made, failed ones included.
    pub fn writes(&self) -> u64 {
        self.lock().writes
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // No code under this lock leaves a half-made state, so a panic elsewhere does not poison it.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open store on a [`MemoryDisk`].
#[derive(Debug)]
pub struct MemoryCheckpoint {
    disk: MemoryDisk,
    generation: u64,
    /// The newest state this handle has written or found; behind the disk's only after
    /// [`Fault::DurableButFailed`].
    visible: Mutex<Visible>,
}

#[derive(Debug)]
struct Visible {
    state: State,
    poisoned: bool,
}

impl MemoryCheckpoint {
    /// Opens the disk; a store opened before is stale from now on.
    pub fn open(disk: &MemoryDisk) -> Self {
        let mut shared = disk.lock();
        shared.generation += 1;
        let visible = Visible { state: shared.durable.clone(), poisoned: false };
        Self { disk: disk.clone(), generation: shared.generation, visible: Mutex::new(visible) }
    }

    /// A store on a disk of its own.
    pub fn new() -> Self {
        Self::open(&MemoryDisk::new())
    }

    /// The disk below.
    pub fn disk(&self) -> &MemoryDisk {
        &self.disk
    }

    fn view(&self) -> Result<MemoryView> {
        if self.disk.lock().generation != self.generation {
            return Err(Error::Stale);
        }
        Ok(MemoryView { disk: self.disk.clone(), state: self.visible().state.clone() })
    }

    fn visible(&self) -> MutexGuard<'_, Visible> {
        self.visible.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryCheckpoint {
    fn default() -> Self {
        Self::new()
    }
}

impl Checkpoint for MemoryCheckpoint {
    fn write(
        &self,
        entries: &mut dyn Iterator<Item = Result<Entry<'_>>>,
        stamp: &Stamp,
    ) -> Result<()> {
        // Held throughout: writes wait for each other here.
        let mut visible = self.visible();
        if visible.poisoned {
            return Err(Error::Poisoned);
        }
        let fault = self.begin_write()?;
        stamp.check(visible.state.stamp.as_ref())?;
        let changes = collect(entries, fault)?;

        let mut shared = self.disk.lock();
        if shared.generation != self.generation {
            return Err(Error::Stale);
        }
        for key in changes.keys() {
            shared.damaged.remove(key);
        }
        // The handle's own copy would make the map shared, and the write below a copy of all of it.
        if fault != Some(Fault::DurableButFailed) {
            visible.state = State::default();
        }
        let map = Arc::make_mut(&mut shared.durable.map);
        for (key, value) in changes {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        shared.durable.stamp = Some(stamp.clone());
        if fault == Some(Fault::DurableButFailed) {
            visible.poisoned = true;
            return Err(disk_failed());
        }
        visible.state = shared.durable.clone();
        Ok(())
    }

    fn snapshot(&self) -> Result<Box<dyn View>> {
        Ok(Box::new(self.view()?))
    }
}

impl MemoryCheckpoint {
    fn begin_write(&self) -> Result<Option<Fault>> {
        let mut shared = self.disk.lock();
        if shared.generation != self.generation {
            return Err(Error::Stale);
        }
        shared.writes += 1;
        match shared.fault.take() {
            Some(Fault::Refused) => Err(disk_failed()),
            fault => Ok(fault),
        }
    }
}

/// Takes all entries before any is applied, so that a failure among them changes nothing.
fn collect(
    entries: &mut dyn Iterator<Item = Result<Entry<'_>>>,
    fault: Option<Fault>,
) -> Result<BTreeMap<Vec<u8>, Option<Vec<u8>>>> {
    let mut check = EntryCheck::default();
    let mut changes = BTreeMap::new();
    let mut taken = 0;
    loop {
        match fault {
            Some(Fault::Torn { after_entries }) if taken >= after_entries => {
                return Err(disk_failed());
            }
            Some(Fault::OutOfSpace { after_entries }) if taken >= after_entries => {
                return Err(Error::Io {
                    action: "write the checkpoint",
                    source: io::Error::from(io::ErrorKind::StorageFull),
                });
            }
            Some(_) | None => {}
        }
        let Some(entry) = entries.next() else { break };
        let entry = entry?;
        check.admit(&entry)?;
        taken += 1;
        changes.insert(entry.key.into_owned(), entry.value.map(std::borrow::Cow::into_owned));
    }
    // A fault placed behind the last entry strikes all the same.
    match fault {
        Some(Fault::Torn { .. } | Fault::OutOfSpace { .. }) => Err(disk_failed()),
        Some(Fault::Refused | Fault::DurableButFailed) | None => Ok(changes),
    }
}

fn disk_failed() -> Error {
    Error::Io { action: "write the checkpoint", source: io::Error::other("simulated disk failure") }
}

impl View for MemoryCheckpoint {
    fn stamp(&self) -> Option<Stamp> {
        self.visible().state.stamp.clone()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.view()?.get(key)
    }

    fn scan_with(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<()> {
        self.view()?.scan_with(range, visit)
    }

    fn scan(&self, range: &KeyRange) -> Pairs<'_> {
        match self.view() {
            Ok(view) => Box::new(view.into_pairs(range)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn edges(&self, range: &KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.view()?.edges(range)
    }
}

/// A state that no longer changes.
#[derive(Debug, Clone)]
struct MemoryView {
    disk: MemoryDisk,
    state: State,
}

impl MemoryView {
    fn check(&self, key: &[u8]) -> Result<()> {
        if self.disk.lock().damaged.contains(key) {
            return Err(Error::Corrupt { what: "simulated damage of a value".to_owned() });
        }
        Ok(())
    }

    fn into_pairs(self, range: &KeyRange) -> impl Iterator<Item = Result<Pair>> + Send + use<> {
        let mut rest = Some(range.clone());
        std::iter::from_fn(move || {
            let range = rest.take()?;
            if range.is_empty() {
                return None;
            }
            let (key, value) = self.state.map.range::<[u8], _>(range.bounds()).next()?;
            if let Err(error) = self.check(key) {
                return Some(Err(error));
            }
            rest = Some(range.after(key));
            Some(Ok((key.clone(), value.clone())))
        })
    }
}

impl View for MemoryView {
    fn stamp(&self) -> Option<Stamp> {
        self.state.stamp.clone()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check(key)?;
        Ok(self.state.map.get(key).cloned())
    }

    fn scan_with(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        for (key, value) in self.state.map.range::<[u8], _>(range.bounds()) {
            self.check(key)?;
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn scan(&self, range: &KeyRange) -> Pairs<'_> {
        Box::new(self.clone().into_pairs(range))
    }

    fn edges(&self, range: &KeyRange) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if range.is_empty() {
            return Ok(None);
        }
        let mut keys = self.state.map.range::<[u8], _>(range.bounds()).map(|(key, _)| key);
        let Some(first) = keys.next() else { return Ok(None) };
        let last = keys.next_back().unwrap_or(first);
        Ok(Some((first.clone(), last.clone())))
    }
}
