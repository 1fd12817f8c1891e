//! Finds the processes of an attempt wherever they went, and ends them.
//!
//! A process that forks, makes a session of its own and leaves is no longer in the group of its connector,
//! but it still carries the name of the attempt in its environment. What also throws that away cannot be
//! found without a cgroup; it can hold nothing up, for nobody waits for its output (see
//! [`wire`](crate::process::wire)).

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::docker;
use crate::process::Side;
use crate::process::environment::{ATTEMPT, SIDE};

/// Of an environment; the marks of longer ones are not found.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// The processes of an attempt, or of one side of it, but for ourselves.
///
/// # Errors
/// If one cannot look: then nobody knows that there are none.
pub fn find(attempt: &str, side: Option<Side>) -> io::Result<Vec<i32>> {
    let mut marks = vec![format!("{ATTEMPT}={attempt}").into_bytes()];
    marks.extend(side.map(|side| format!("{SIDE}={}", side.name()).into_bytes()));
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let id = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(id) = id.filter(|id| *id != own)
            && carries(id, &marks)?
        {
            found.push(id);
        }
    }
    Ok(found)
}

fn carries(id: i32, marks: &[Vec<u8>]) -> io::Result<bool> {
    let mut environment = Vec::new();
    let read = fs::File::open(format!("/proc/{id}/environ"))
        .and_then(|file| file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment));
    match read {
        Ok(_) => {}
        // We have no files left to look with.
        Err(error) if is_ours(&error) => return Err(error),
        // It is gone, or somebody else's.
        Err(_) => return Ok(false),
    }
    let has = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|entry| entry == mark);
    Ok(marks.iter().all(has))
}

fn is_ours(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    errno.is_some_and(|errno| {
        use rustix::io::Errno;
        [Errno::MFILE, Errno::NFILE, Errno::NOMEM].contains(&errno)
    })
}

/// Everything of an attempt whose files are in a folder: its containers, if there may be some, and its processes.
/// Says whether all is gone.
#[must_use]
pub(crate) fn sweep_all(folder: &Path, attempt: &str, patience: Duration) -> bool {
    let are_gone = docker::sweep::sweep_marked(folder, attempt, patience);
    sweep(attempt, None, patience) && are_gone
}

/// Kills the processes of an attempt, or of one side of it, for as long as `patience` has it. Says whether all
/// are gone.
#[must_use]
pub fn sweep(attempt: &str, side: Option<Side>, patience: Duration) -> bool {
    let kill = |id| {
        // One that is gone already is what we want.
        if let Some(pid) = Pid::from_raw(id) {
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    until_gone(patience, || find(attempt, side), kill)
}

/// Ends what is found, again and again until nothing is, or `patience` is over. Says whether all is gone.
pub(crate) fn until_gone<T, E>(
    patience: Duration,
    find: impl Fn() -> Result<Vec<T>, E>,
    end: impl Fn(T),
) -> bool {
    let began = Instant::now();
    loop {
        let found = find();
        if found.as_ref().is_ok_and(Vec::is_empty) {
            return true;
        }
        found.unwrap_or_default().into_iter().for_each(&end);
        if began.elapsed() > patience {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}
