//! Finds the processes of an attempt wherever they went, and ends them.
//!
//! A process that forks, makes a session of its own and leaves is no longer in the group of its connector,
//! but it still carries the name of the attempt in its environment. What also throws that away cannot be
//! found without a cgroup; it can hold nothing up, for nobody waits for its output (see
//! [`wire`](crate::process::wire)).

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::docker;
use crate::process::Side;
use crate::process::environment::{ATTEMPT, SIDE};
use crate::process::wire::timespec;

/// Of an environment; the marks of longer ones are not found.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;
/// Between two looks where nobody tells an end.
const PAUSE: Duration = Duration::from_millis(10);

/// The processes of an attempt, or of one side of it, but for ourselves.
///
/// # Errors
/// If one cannot look: then nobody knows that there are none.
pub fn find(attempt: &str, side: Option<Side>) -> io::Result<Vec<i32>> {
    find_marked(&marks(attempt, side))
}

/// What all of them have in their environment.
fn marks(attempt: &str, side: Option<Side>) -> Vec<Vec<u8>> {
    let mut marks = vec![format!("{ATTEMPT}={attempt}").into_bytes()];
    marks.extend(side.map(|side| format!("{SIDE}={}", side.name()).into_bytes()));
    marks
}

fn find_marked(marks: &[Vec<u8>]) -> io::Result<Vec<i32>> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let id = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(id) = id.filter(|id| *id != own)
            && carries(id, marks)?
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
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE, Errno::NOMEM].contains(&errno))
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
    let (marks, began) = (marks(attempt, side), Instant::now());
    loop {
        let found = find_marked(&marks);
        if found.as_ref().is_ok_and(Vec::is_empty) {
            return true;
        }
        let ends: Vec<_> =
            found.unwrap_or_default().into_iter().map(|id| kill(id, &marks)).collect();
        let left = patience.saturating_sub(began.elapsed());
        if left.is_zero() {
            return false;
        }
        wait(&ends, left);
    }
}

/// Kills a process that carries the marks; what tells its end, if the system has that.
fn kill(id: i32, marks: &[Vec<u8>]) -> Option<OwnedFd> {
    let pid = Pid::from_raw(id)?;
    match pidfd_open(pid, PidfdFlags::empty()) {
        // It is one process, whoever has its number by now: that one is looked at again.
        Ok(process) => {
            let is_it = carries(id, marks).unwrap_or(false);
            // One that is gone already is what we want.
            is_it.then(|| {
                let _ = pidfd_send_signal(&process, Signal::KILL);
                process
            })
        }
        Err(Errno::SRCH) => None,
        // A kernel before 5.3, or no files left.
        Err(_) => {
            let _ = kill_process(pid, Signal::KILL);
            None
        }
    }
}

/// Waits until processes have ended, for as long as `left`; a moment where nobody tells it.
fn wait(ends: &[Option<OwnedFd>], left: Duration) {
    let until = Instant::now() + left;
    let mut is_told = !ends.is_empty();
    for end in ends {
        is_told &= end.as_ref().is_some_and(|end| {
            loop {
                let left = timespec(until.saturating_duration_since(Instant::now()));
                match poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&left)) {
                    Err(Errno::INTR) => {}
                    polled => return polled.is_ok(),
                }
            }
        });
    }
    if !is_told {
        std::thread::sleep(PAUSE.min(left));
    }
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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn all_that_carry_the_mark_are_killed_and_no_others() {
        let attempt = format!("sweep-test.{}", std::process::id());
        let start = |attempt: &str| {
            let mut command = Command::new("/bin/sh");
            // Two processes each.
            command.args(["-c", "sleep 3600; true"]).env(ATTEMPT, attempt).stdin(Stdio::null());
            command.spawn().unwrap()
        };
        let other = format!("{attempt}0");
        let (mut killed, mut kept) = (start(&attempt), start(&other));
        assert!(sweep(&attempt, None, Duration::from_secs(60)));
        assert_eq!(find(&attempt, None).unwrap(), Vec::<i32>::new());
        assert_eq!(killed.wait().unwrap().code(), None, "a signal ended it");
        assert_eq!(kept.try_wait().unwrap(), None);
        assert!(sweep(&other, None, Duration::from_secs(60)));
        kept.wait().unwrap();
        assert!(sweep(&other, None, Duration::ZERO), "nothing is left");
    }
}
