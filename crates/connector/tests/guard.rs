//! What happens when a runner dies: the guard ends the connectors and what left them, and removes secrets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use common::{helper, python};
use windlass_connector::Limits;
use windlass_connector::attempt::files::Files;
use windlass_connector::process::lock::{Lock, LockError};
use windlass_connector::process::{Command, Guard, Launch, Process, Side, sweep};

/// A leader that waits, a child in its group, and one that left.
const FAMILY: &str = "import os, time\n\
    os.fork() or time.sleep(3600)\n\
    if os.fork() == 0:\n    os.setsid(); time.sleep(3600)\n\
    print('ready', flush=True)\n\
    time.sleep(3600)";

fn start(attempt: &str, guard: &Guard, folder: &std::path::Path) -> Process {
    let words = vec![python(), "-S".to_owned(), "-c".to_owned(), FAMILY.to_owned()];
    let (process, streams) = Process::start(Launch {
        helper: &helper(),
        attempt,
        side: Side::Source,
        command: &Command::local(words),
        words: Vec::new(),
        directory: folder,
        limits: &Limits::default(),
        has_input: false,
        guard: Some(guard),
    })
    .unwrap();
    let mut lines = BufReader::new(std::fs::File::from(streams.output)).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    process
}

/// To drop the guard is what our death is to it: the end of its input.
#[test]
fn a_guard_ends_the_whole_family_and_removes_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let attempt = format!("guard-{}", std::process::id());
    let guard = Guard::start(&helper(), &attempt).unwrap();
    let mut files = Files::new(folder.path(), Side::Source, Some(&guard)).unwrap();
    let secret = files.write("config.json", "{\"password\":1}").unwrap();
    // As if we were killed: nobody drops the files.
    std::mem::forget(files);
    let mut process = start(&attempt, &guard, folder.path());
    assert_eq!(sweep::find(&attempt, None).unwrap().len(), 3);
    assert!(secret.exists());
    drop(guard);
    assert_eq!(sweep::find(&attempt, None).unwrap().len(), 0);
    assert!(!secret.exists());
    assert_eq!(process.finish(None).code(), 137);
}

#[test]
fn a_lock_is_held_by_whoever_was_started_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let attempt = format!("lock-{}", std::process::id());
    let lock = Lock::take(&path, Duration::ZERO).unwrap();
    let guard = Guard::start(&helper(), &attempt).unwrap();
    let mut process = start(&attempt, &guard, folder.path());
    drop(lock);
    let held = Lock::take(&path, Duration::from_millis(50));
    assert!(matches!(held, Err(LockError::Held(_))));
    let _ = process.finish(Some(&guard));
    drop(guard);
    let began = Instant::now();
    Lock::take(&path, Duration::from_secs(30)).unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
}
