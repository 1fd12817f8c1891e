//! The log under every crash of many small histories.
//!
//! `WINDLASS_SEED=7 cargo test -p windlass-sim --test log` runs one seed alone.

use std::ops::Range;

use windlass_sim::log_sim::{Fault, fill_disk, flip_bits, flip_every_byte, run};

/// The seeds of a test, or the one that the environment asks for.
fn seeds(seeds: Range<u64>) -> Range<u64> {
    match std::env::var("WINDLASS_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => seeds,
    }
}

fn hold(result: Result<(), String>, seed: u64, test: &str, what: &str) {
    if let Err(violation) = result {
        panic!(
            "seed {seed}, {what}: {violation}\n\
             repeat it with: WINDLASS_SEED={seed} cargo test -p windlass-sim --test log {test}"
        );
    }
}

#[test]
fn power_may_fail_at_every_operation() {
    for seed in seeds(0..40) {
        let report = run(seed, Fault::None).unwrap_or_else(|violation| {
            hold(Err(violation), seed, "power_may_fail_at_every_operation", "no fault");
            unreachable!()
        });
        for operation in 1..=report.operations {
            let fault = Fault::PowerLossAt(operation);
            let result = run(seed, fault).map(drop);
            hold(result, seed, "power_may_fail_at_every_operation", &format!("{fault:?}"));
        }
    }
}

#[test]
fn every_sync_may_fail() {
    for seed in seeds(1000..1040) {
        let Ok(report) = run(seed, Fault::None) else { panic!("seed {seed} without a fault") };
        for sync in 1..=report.syncs {
            let fault = Fault::SyncFailureAt(sync);
            hold(run(seed, fault).map(drop), seed, "every_sync_may_fail", &format!("{fault:?}"));
        }
    }
}

#[test]
fn every_flipped_bit_is_found_or_does_no_harm() {
    for seed in seeds(2000..2040) {
        let result = flip_bits(seed, 60);
        hold(result, seed, "every_flipped_bit_is_found_or_does_no_harm", "flips");
    }
}

#[test]
fn a_flip_in_any_byte_of_a_killed_log_costs_the_last_batch_at_most() {
    for seed in seeds(4000..4003) {
        let result = flip_every_byte(seed).map(|flips| assert!(flips > 1000));
        let test = "a_flip_in_any_byte_of_a_killed_log_costs_the_last_batch_at_most";
        hold(result, seed, test, "flips");
    }
}

#[test]
fn a_full_disk_refuses_and_recovers() {
    for seed in seeds(3000..3040) {
        hold(fill_disk(seed), seed, "a_full_disk_refuses_and_recovers", "full disk");
    }
}

/// A rename survived the loss of power and the removal before it did not: an unfinished file of an earlier attempt to
/// create the log became its marks.
#[test]
fn an_unfinished_file_of_an_earlier_attempt_never_gets_the_final_name() {
    let (seed, fault) = (40_136, Fault::SyncFailureAt(2));
    let test = "an_unfinished_file_of_an_earlier_attempt_never_gets_the_final_name";
    hold(run(seed, fault).map(drop), seed, test, &format!("{fault:?}"));
}
