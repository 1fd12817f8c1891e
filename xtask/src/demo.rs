//! `cargo xtask demo`: builds the engine and its workers and hands over to the driver, an example of
//! the worker SDK, which shows real work, a kill -9 in the middle of it, and what came of it. Before
//! that, [`sync`] has real connectors do the same.

mod sync;

use crate::workspace::{cargo, run, target};

pub(crate) fn run_demo(words: &[String]) -> Result<(), String> {
    println!("building (the first time takes some minutes)");
    let packages = ["-p", "windlass-cli", "--bin", "windlass"];
    let examples = ["-p", "windlass-worker", "--example", "describe", "--example", "demo"];
    for what in [&packages[..], &examples[..]] {
        let mut args = vec!["build", "--quiet"];
        args.extend(what);
        run(&cargo(), &args)?;
    }
    let target = target();
    sync::run(&target.join("debug/windlass"))?;
    let driver = target.join("debug/examples/demo");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(&driver.to_string_lossy(), &words)
}
