//! Finds the processes of an attempt wherever they went, and ends them.
//!
//! A process that forks, makes a session of its own and leaves is no longer in the group of its connector,
//! but it still carries the name of the attempt in its environment. What also throws that away cannot be
//! found without a cgroup; it can hold nothing up, for nobody waits for its output (see
//! [`wire`](crate::process::wire)).

use std::fs;
use std::io::Read as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::Side;
use crate::process::environment::{ATTEMPT, SIDE};

/// Of an environment; the marks of longer ones are not found.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// The processes of an attempt, or of one side of it, but for ourselves.
#[must_use]
pub fn find(attempt: &str, side: Option<Side>) -> Vec<i32> {
    let mut marks = vec![format!("{ATTEMPT}={attempt}").into_bytes()];
    marks.extend(side.map(|side| format!("{SIDE}={}", side.name()).into_bytes()));
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    ids.filter(|id| *id != own && carries(*id, &marks)).collect()
}

fn carries(id: i32, marks: &[Vec<u8>]) -> bool {
    let Ok(file) = fs::File::open(format!("/proc/{id}/environ")) else { return false };
    let mut environment = Vec::new();
    if file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).is_err() {
        return false;
    }
    let has = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|entry| entry == mark);
    marks.iter().all(has)
}

/// Kills what is found, again and again until nothing is, or `patience` is over. Says whether all
/// is gone.
#[must_use]
pub fn sweep(attempt: &str, side: Option<Side>, patience: Duration) -> bool {
    let began = Instant::now();
    loop {
        let found = find(attempt, side);
        if found.is_empty() {
            return true;
        }
        for id in found {
            // One that is gone already is what we want.
            if let Some(pid) = Pid::from_raw(id) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if began.elapsed() > patience {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}
