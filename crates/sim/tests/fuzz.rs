//! A short run of every fuzz target; `cargo xtask sim fuzz --seconds 600` is a long one.

use std::time::Duration;

use windlass_sim::fuzz::{TARGETS, corpus, run};

#[test]
fn nothing_that_reads_panics() {
    for target in &TARGETS {
        match run(target, 0, Duration::from_millis(700)) {
            Ok(inputs) => assert!(inputs > 100, "{}: only {inputs} inputs", target.name),
            Err(finding) => panic!("{finding}"),
        }
    }
}

#[test]
fn there_is_something_to_begin_with() {
    for target in &TARGETS {
        let inputs = corpus(target);
        assert!(inputs.len() > 2, "{}", target.name);
        for input in inputs {
            (target.read)(&input);
        }
    }
}
