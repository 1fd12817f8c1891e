//! Commands that are programs of their own: built in release mode when they are asked for, so that
//! `cargo xtask` itself stays small.

use crate::workspace::{cargo, run};

pub(crate) fn sim(words: &[String]) -> Result<(), String> {
    release(&["-p", "windlass-sim", "--bin", "windlass-sim", "--"], words)
}

pub(crate) fn bench(words: &[String]) -> Result<(), String> {
    release(&["-p", "xtask", "--features", "bench", "--", "bench-run"], words)
}

fn release(what: &[&str], words: &[String]) -> Result<(), String> {
    let mut args = vec!["run", "--quiet", "--release"];
    args.extend(what);
    args.extend(words.iter().map(String::as_str));
    run(&cargo(), &args)
}
