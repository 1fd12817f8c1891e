//! The thread that merges levels of the tree after each write.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use lsm_tree::AbstractTree;
use lsm_tree::compaction::Leveled;

use crate::error::{Error, Result};
use crate::local::{Store, engine};
use crate::pace::Pace;

/// Runs in level 0 that start a merge.
const LEVEL_0_RUNS_MERGE: u8 = 4;

/// Runs in level 0 at which writes wait for merging: reads would look in too many places.
const LEVEL_0_RUNS_MAX: usize = 16;

/// All levels are merged into one when tombstones are at least one in this many entries …
const FULL_MERGE_SHARE: u64 = 6;

/// … and at least this many …
const FULL_MERGE_TOMBSTONES_MIN: u64 = 20_000;

/// … and the store is at most this large: level 0 grows while it lasts. Larger stores keep their
/// tombstones until merging by level takes them down; a scan of them is slower by up to half.
const FULL_MERGE_BYTES_MAX: u64 = 8 << 30;

/// How much less than others the thread weighs where there is not processor enough for all: a tenth.
const NICER: i32 = 10;

#[derive(Debug)]
pub(crate) struct Merger {
    shared: Arc<Shared>,
    pace: Arc<Pace>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<Store>,
    table_bytes: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Held during a merge; see [`Merger::pause`].
    merging: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    wanted: bool,
    busy: bool,
    stop: bool,
    /// Why the last merge failed; none is tried before the next wake.
    error: Option<Error>,
}

impl Merger {
    pub(crate) fn start(store: &Arc<Store>, pace: Arc<Pace>, table_bytes: u64) -> Result<Self> {
        // What was left undone at the last close is wanted at once.
        let state = State { wanted: true, ..State::default() };
        let shared = Arc::new(Shared {
            store: Arc::clone(store),
            table_bytes,
            state: Mutex::new(state),
            changed: Condvar::new(),
            merging: Mutex::new(()),
        });
        let thread = std::thread::Builder::new()
            .name("windlass-merge".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    // Nobody waits for a merge; where the system refuses, it goes on as it is.
                    let _ = rustix::process::nice(NICER);
                    shared.run();
                }
            })
            .map_err(|source| Error::Io { action: "start the merge thread", source })?;
        Ok(Self { shared, pace, thread: Some(thread) })
    }

    /// There may be something to merge.
    pub(crate) fn wake(&self) {
        self.shared.state().wanted = true;
        self.shared.changed.notify_all();
    }

    /// Returns when level 0 is short enough for one more run. Fails with the reason when merging fails:
    /// accepting more would make every read slower without end.
    pub(crate) fn wait_for_room(&self) -> Result<()> {
        let has_room = || self.shared.store.tree.l0_run_count() < LEVEL_0_RUNS_MAX;
        if has_room() {
            return Ok(());
        }
        self.wake();
        let mut state = self.shared.state();
        while !has_room() && (state.wanted || state.busy) {
            state = self.shared.wait(state);
        }
        match state.error.take() {
            Some(error) if !has_room() => Err(error),
            // A strategy that leaves level 0 long on purpose is not ours to overrule.
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn settle(&self) {
        self.wake();
        let mut state = self.shared.state();
        while state.wanted || state.busy {
            state = self.shared.wait(state);
        }
    }

    /// Runs `work` while no merge runs.
    pub(crate) fn pause<T>(&self, work: impl FnOnce() -> T) -> T {
        let _merging = self.shared.merging.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    pub(crate) fn error(&self) -> Option<String> {
        self.shared.state().error.as_ref().map(describe)
    }

    /// Ends the thread; a merge in progress is abandoned, and done again at the next opening.
    pub(crate) fn stop(&mut self) {
        self.pace.stop();
        self.shared.state().stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic in the engine has already been reported by the panic hook, and no state of ours
            // depends on the thread any more.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        // Declared first, so that it runs last, also when the engine panics: nobody waits for a thread
        // that is gone.
        let _end = EndOfThread(self);
        loop {
            let mut state = self.state();
            state.busy = false;
            self.changed.notify_all();
            while !state.wanted && !state.stop {
                state = self.wait(state);
            }
            if state.stop {
                return;
            }
            state.wanted = false;
            state.busy = true;
            drop(state);
            let outcome = self.merge_all();
            let mut state = self.state();
            let stop = state.stop;
            state.error = outcome.err().filter(|_| !stop);
        }
    }

    fn merge_all(&self) -> Result<()> {
        self.merge_by_level()?;
        if self.garbage_is_worth_a_full_merge() && self.may_go_on() {
            let store = &self.store;
            self.step(|| store.tree.major_compact(self.table_bytes, store.watermark()))?;
            // What was written meanwhile.
            self.merge_by_level()?;
        }
        Ok(())
    }

    fn merge_by_level(&self) -> Result<()> {
        while self.may_go_on() {
            let strategy = Leveled::default()
                .with_l0_threshold(LEVEL_0_RUNS_MERGE)
                .with_table_target_size(self.table_bytes);
            let store = &self.store;
            if !self.step(|| store.tree.compact(Arc::new(strategy), store.watermark()))? {
                break;
            }
        }
        Ok(())
    }

    /// Merging by level looks at sizes only. Tombstones are small, so they gather above the last level
    /// without end, and what they delete stays below: a scan would slow down by both.
    fn garbage_is_worth_a_full_merge(&self) -> bool {
        let tree = &self.store.tree;
        let tombstones = tree.tombstone_count();
        tombstones >= FULL_MERGE_TOMBSTONES_MIN
            && tombstones.saturating_mul(FULL_MERGE_SHARE)
                >= u64::try_from(tree.approximate_len()).unwrap_or(u64::MAX)
            && tree.disk_space() <= FULL_MERGE_BYTES_MAX
    }

    /// One merge; returns whether it did anything.
    fn step(&self, merge: impl FnOnce() -> lsm_tree::Result<()>) -> Result<bool> {
        let _merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.store.is_known() {
            // The next write finds out, and wakes this thread.
            return Ok(false);
        }
        let before = self.store.tree.current_version().id();
        if let Err(error) = merge() {
            self.store.after_failure();
            return Err(engine("merge the checkpoint's levels", error));
        }
        // A write in between looks like a merge here; then there is one look too many.
        let changed = self.store.tree.current_version().id() != before;
        self.store.merges.fetch_add(u64::from(changed), Ordering::Relaxed);
        Ok(changed)
    }

    fn may_go_on(&self) -> bool {
        !self.state().stop
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

struct EndOfThread<'a>(&'a Shared);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.busy = false;
        state.wanted = false;
        if !state.stop {
            // Only a panic ends the thread unasked. Reads go on; writes need merging.
            self.0.store.poison();
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

fn describe(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
