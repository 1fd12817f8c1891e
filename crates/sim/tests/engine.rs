//! The whole engine under a fixed set of seeds, and under each fault alone.
//!
//! `WINDLASS_SEED=7 cargo test -p windlass-sim --test engine` runs one seed alone.

use std::ops::Range;

use windlass_sim::CrashPoint;
use windlass_sim::engine_sim::coverage::Coverage;
use windlass_sim::engine_sim::plan::{Fault, Plan};
use windlass_sim::engine_sim::{Failure, count_operations, run, run_seed};

fn seeds(seeds: Range<u64>) -> Range<u64> {
    match std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => seeds,
    }
}

fn hold(result: Result<Coverage, Failure>, how: &str) -> Coverage {
    match result {
        Ok(coverage) => coverage,
        Err(failure) => panic!(
            "{how}: {failure}\nor, with this very plan: WINDLASS_SEED={} cargo test -p windlass-sim \
             --test engine",
            failure.seed
        ),
    }
}

/// Runs seeds with one fault alone, which must have struck.
fn break_with(fault: Fault, from: u64) {
    let mut seen = Coverage::default();
    for seed in seeds(from..from + 8) {
        let plan = Plan { steps: 120, ..Plan::with_faults(seed, &[fault]) };
        seen.merge(&hold(run(&plan), fault.name()));
    }
    assert!(seen.counted("fault", fault.name()) > 0, "the fault never struck");
}

#[test]
fn a_fixed_set_of_seeds_holds() {
    let mut seen = Coverage::default();
    for seed in seeds(0..60) {
        seen.merge(&hold(run_seed(seed), "as drawn"));
    }
    let (missing, all) = seen.uncovered();
    let alone = std::env::var("WINDLASS_SEED").is_ok();
    assert!(alone || seen.counted("command", "start instance: ok") > 100, "too few processes");
    assert!(alone || missing.len() * 5 < all, "too little is exercised: {missing:#?}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [3, 11] {
        assert_eq!(run_seed(seed), run_seed(seed), "seed {seed}");
    }
}

#[test]
fn power_may_fail_at_every_operation_of_a_small_history() {
    for seed in seeds(500..502) {
        let operations = count_operations(&Plan::small(seed, None)).expect("nothing breaks");
        for operation in 1..=operations {
            let point = CrashPoint::Operation(operation);
            hold(run(&Plan::small(seed, Some(point))), &format!("{point:?}"));
        }
    }
}

#[test]
fn power_loss() {
    break_with(Fault::PowerLoss, 1_000);
}

#[test]
fn killed_process() {
    break_with(Fault::ProcessKill, 1_100);
}

#[test]
fn failed_sync() {
    break_with(Fault::FailedSync, 1_200);
}

#[test]
fn full_disk() {
    break_with(Fault::FullDisk, 1_300);
}

#[test]
fn flipped_bits() {
    break_with(Fault::BitFlip, 1_400);
}

#[test]
fn refused_checkpoint() {
    break_with(Fault::CheckpointRefused, 1_500);
}

#[test]
fn torn_checkpoint() {
    break_with(Fault::CheckpointTorn, 1_600);
}

#[test]
fn full_checkpoint_store() {
    break_with(Fault::CheckpointFull, 1_700);
}

#[test]
fn checkpoint_of_unknown_outcome() {
    break_with(Fault::CheckpointUnknown, 1_800);
}

#[test]
fn wall_clock_an_hour_ahead() {
    break_with(Fault::WallAhead, 1_900);
}

#[test]
fn wall_clock_an_hour_back() {
    break_with(Fault::WallBack, 2_000);
}

#[test]
fn outage_of_an_hour() {
    break_with(Fault::Outage, 2_100);
}

#[test]
fn suspended_machine() {
    break_with(Fault::Suspend, 2_200);
}

#[test]
fn jumping_monotonic_clock() {
    break_with(Fault::MonotonicJump, 2_300);
}

#[test]
fn frozen_clock() {
    break_with(Fault::FrozenClock, 2_400);
}

/// A checkpoint that was written while the loader still had a hand-out to fill deleted the payload
/// of a job that had ended meanwhile: the partition stopped.
#[test]
fn a_checkpoint_waits_for_payloads_that_are_being_read() {
    for seed in [9, 21, 27, 37, 46, 58, 70] {
        hold(run(&Plan::without_flows(seed)), "as drawn without processes");
    }
}

/// As above: a document was read with the version before and the bytes after a change.
#[test]
fn a_document_is_read_with_the_bytes_of_its_version() {
    hold(run(&Plan::without_flows(60)), "as drawn without processes");
}
