//! Replay equality: a random history, and at every step the state rebuilt from the log, from the
//! newest checkpoint with the log's tail, and by restarts in the middle, compared in all of it.
//!
//! The model is Zeebe's `ReplayStateRandomizedPropertyTest`. `WINDLASS_SEEDS=10000` runs more.

use std::collections::BTreeSet;
use std::sync::Mutex;

use windlass_record::command::JobOptions;
use windlass_record::id::{JobKey, PartitionId};

use super::digest::{assert_same, digest};
use super::random::{World, seeds, small_bounds};
use super::store::{Store, Writing, replay};
use crate::Engine;
use crate::verb::check::{Check, Shelf, job_with};

/// Seeds in every test run.
const SEEDS: u64 = 60;

/// A checkpoint that is being written.
struct Pending {
    /// How much of the log it covers.
    logged: usize,
    /// The state at the freeze.
    digest: Vec<String>,
}

/// Follows a history from somewhere in it, as a standby does.
struct Follower {
    engine: Engine,
    shelf: Shelf,
    logged: usize,
}

impl Follower {
    fn from_the_log() -> Follower {
        let engine = Engine::new(PartitionId::FIRST, small_bounds());
        Follower { engine, shelf: Shelf::default(), logged: 0 }
    }

    fn from_a_checkpoint(store: &Store, logged: usize) -> Follower {
        let mut shelf = Shelf::default();
        let engine = store.load(small_bounds(), &mut shelf);
        Follower { engine, shelf, logged }
    }

    /// Applies what was logged since, and compares everything.
    fn compare(&mut self, what: &str, check: &Check) {
        let tail = check.shelf.log.get(self.logged..).expect("the log only grows");
        replay(&mut self.engine, &mut self.shelf, tail);
        self.logged = check.shelf.log.len();
        for payload in std::mem::take(&mut self.engine.effects().freed) {
            self.shelf.free(payload);
        }
        if let Err(violation) = crate::invariant::check(self.engine.state()) {
            panic!("{what}: {violation}");
        }
        let theirs = digest(self.engine.state(), &self.shelf);
        assert_same(what, &live(check), &theirs);
    }
}

fn live(check: &Check) -> Vec<String> {
    digest(check.engine.state(), &check.shelf)
}

struct Run {
    check: Check,
    world: World,
    store: Store,
    pending: Option<Pending>,
    /// How much of the log the newest whole checkpoint covers.
    covered: usize,
    from_log: Follower,
    from_checkpoint: Option<Follower>,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run {
            check: Check::with_bounds(small_bounds()),
            world: World::new(seed),
            store: Store::default(),
            pending: None,
            covered: 0,
            from_log: Follower::from_the_log(),
            from_checkpoint: None,
        }
    }

    fn step(&mut self) {
        self.world.step(&mut self.check);
        self.check.check_invariants();
        self.write_some();
        for payload in std::mem::take(&mut self.check.engine.effects().freed) {
            self.check.shelf.free(payload);
        }
        self.from_log.compare("a follower of the log", &self.check);
        if let Some(follower) = &mut self.from_checkpoint {
            follower.compare("a follower from a checkpoint", &self.check);
        }
    }

    /// Freezes, or goes on with the checkpoint that is being written.
    fn write_some(&mut self) {
        let Check { engine, shelf, .. } = &mut self.check;
        let mut sink = Writing { store: &mut self.store, shelf };
        let Some(pending) = &self.pending else {
            if self.world.random.one_in(12) {
                let digest = digest(engine.state(), shelf);
                engine.freeze(&mut sink);
                self.pending = Some(Pending { logged: shelf.log.len(), digest });
            }
            return;
        };
        engine.write_early_images(&mut sink);
        if self.world.random.one_in(2) {
            return;
        }
        let jobs_max = 1 + self.world.random.below(4) as usize;
        if !engine.write_frozen(jobs_max, &mut sink) {
            return;
        }
        self.store.commit();
        assert_eq!(self.store.checksum(), engine.checksum(), "the checksum of the checkpoint");
        let follower = Follower::from_a_checkpoint(&self.store, pending.logged);
        assert_eq!(follower.engine.checksum(), engine.checksum(), "the checksum of a load");
        let loaded = digest(follower.engine.state(), &follower.shelf);
        assert_same("a load and the state at the freeze", &pending.digest, &loaded);
        self.covered = pending.logged;
        self.from_checkpoint = Some(follower);
        self.pending = None;
    }

    /// The process is killed: what is left is the newest whole checkpoint and the log.
    fn restart(&mut self) {
        self.store.abandon();
        self.pending = None;
        let mut engine = self.store.load(small_bounds(), &mut self.check.shelf);
        let tail = self.check.shelf.log.get(self.covered..).expect("the log only grows").to_vec();
        replay(&mut engine, &mut self.check.shelf, &tail);
        let before = live(&self.check);
        self.check.engine = engine;
        assert_same("a restart", &before, &live(&self.check));
        for payload in std::mem::take(&mut self.check.engine.effects().freed) {
            self.check.shelf.free(payload);
        }
    }
}

#[test]
fn every_step_of_a_random_history_is_rebuilt_exactly() {
    let met = Mutex::new(BTreeSet::new());
    seeds("every_step_of_a_random_history", SEEDS, |seed| {
        let mut run = Run::new(seed);
        for _ in 0..250 {
            run.step();
            if run.world.random.one_in(60) {
                run.restart();
            }
        }
        let tags = run.check.shelf.log.iter().filter_map(|(_, event)| event.first().copied());
        met.lock().expect("no seed has failed").extend(tags);
    });
    let met = met.into_inner().expect("no seed has failed");
    // One seed alone need not meet them all.
    assert!(met.len() == 25 || std::env::var_os("WINDLASS_SEED").is_some(), "only {met:?}");
}

/// There are as many requests as creates, and as many ends: a freeze that wrote them all would hold up the loop.
#[test]
fn a_freeze_writes_little_and_what_changes_behind_it_is_written_as_it_was() {
    let mut run = Run::new(0);
    let request = |run: &mut Run, id: &str| {
        let options = JobOptions { request_id: id.into(), ..JobOptions::default() };
        run.check.create(job_with("q", "g", options))
    };
    let jobs: Vec<JobKey> = (0..50).map(|id| request(&mut run, &id.to_string())).collect();
    run.take_checkpoint();
    for key in jobs {
        run.check.cancel(key, true).expect("any live job can be cancelled by force");
    }
    for id in ["a", "b", "c", "d", "49"] {
        request(&mut run, id);
    }
    let Run { check, store, .. } = &mut run;
    let frozen = digest(check.engine.state(), &check.shelf);
    check.engine.freeze(&mut Writing { store, shelf: &check.shelf });
    assert!(store.staged() < 10, "{}", store.staged());
    let mut rounds = 0;
    loop {
        let (before, sink) =
            (run.store.staged(), &mut Writing { store: &mut run.store, shelf: &run.check.shelf });
        let done = run.check.engine.write_frozen(1, sink);
        assert!(run.store.staged() <= before + 8);
        if done {
            break;
        }
        rounds += 1;
        if rounds == 3 {
            // These push out some of the five that are remembered, and make another anew.
            for id in ["e", "b", "f"] {
                request(&mut run, id);
            }
        }
    }
    assert!(rounds > 40, "{rounds}");
    run.store.commit();
    assert_eq!(run.store.checksum(), run.check.engine.checksum(), "the checksum of the checkpoint");
    let logged = run.check.shelf.log.len();
    let loaded = Follower::from_a_checkpoint(&run.store, logged);
    assert_same("a load", &frozen, &digest(loaded.engine.state(), &loaded.shelf));
    // What died meanwhile is not left behind in the next one.
    run.take_checkpoint();
}

/// Everything ends: no payload, key, lane or limit is left behind, neither in the state nor in the
/// store.
#[test]
fn nothing_is_left_behind() {
    seeds("nothing_is_left_behind", 20, |seed| {
        let mut run = Run::new(seed);
        for _ in 0..150 {
            run.step();
        }
        run.check.delete_schedules();
        let keys: Vec<_> = run.check.engine.state().jobs().iter().map(|(_, job)| job.key).collect();
        for key in keys {
            run.check.cancel(key, true).expect("any live job can be cancelled by force");
        }
        run.check.pass(200_000);
        while run.pending.is_some() {
            run.step_checkpoint();
        }
        run.take_checkpoint();
        let state = run.check.engine.state();
        assert_eq!(state.jobs().live(), 0);
        assert!(state.schedules().is_empty());
        assert_eq!(state.schedules().counts(), (0, 0));
        assert_eq!(state.types.len(), 0);
        assert_eq!(state.workers.len(), 0);
        assert_eq!(state.incidents.len(), 0);
        assert!(state.limits.values().all(|limit| !limit.implied), "implied keys are forgotten");
        assert!(state.groups.live() <= small_bounds().idle_groups_max);
        assert_eq!(run.store.payloads(), state.documents.len(), "but for those of documents");
    });
}

impl Run {
    fn step_checkpoint(&mut self) {
        self.write_some();
        for payload in std::mem::take(&mut self.check.engine.effects().freed) {
            self.check.shelf.free(payload);
        }
    }

    fn take_checkpoint(&mut self) {
        while self.pending.is_none() {
            self.step_checkpoint();
        }
        while self.pending.is_some() {
            self.step_checkpoint();
        }
    }
}
