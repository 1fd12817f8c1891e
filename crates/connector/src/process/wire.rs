//! Reading from and writing to a connector without getting stuck: whoever is asked to stop, stops.
//!
//! A process that left its connector may hold the other end of a pipe for ever. So our ends do not block:
//! where there is nothing to do one waits for the pipe or for a [`Stop`], whichever comes first.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;

/// Lets everybody stop who waits on a wire with it.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Nobody writes to it; its other end is closed to stop.
    waits: Arc<OwnedFd>,
    holds: Arc<Mutex<Option<OwnedFd>>>,
}

impl Stop {
    /// Nobody stops yet.
    ///
    /// # Errors
    /// If the system has no file left.
    pub fn new() -> io::Result<Self> {
        let (waits, holds) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Self { waits: Arc::new(waits), holds: Arc::new(Mutex::new(Some(holds))) })
    }

    /// Whether somebody has asked for it.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Now everybody stops.
    pub fn stop(&self) {
        drop(self.holds.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// What came of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// So many bytes.
    Bytes(usize),
    /// The other side has closed it.
    End,
    /// Somebody wants us to stop, or the time is over.
    Stopped,
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// All of it.
    All,
    /// The other side has closed it.
    Closed,
    /// Somebody wants us to stop.
    Stopped,
}

/// One of our ends.
#[derive(Debug)]
pub struct Wire {
    pipe: OwnedFd,
    stop: Stop,
    deadline: Option<Instant>,
    /// Bytes that are read still when one is to stop: what stands in the pipe, and not what somebody goes on
    /// writing.
    rest: AtomicUsize,
}

/// More than any pipe holds.
const REST_BYTES: usize = 1 << 20;

impl Wire {
    /// An end of a pipe of which nobody else has this end.
    ///
    /// # Errors
    /// If it cannot be made not to block.
    pub fn new(pipe: OwnedFd, stop: Stop) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, stop, deadline: None, rest: AtomicUsize::new(REST_BYTES) })
    }

    /// Stops by itself at a time.
    pub fn until(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Reads what there is, waiting for the first byte.
    ///
    /// # Errors
    /// If the system says so.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Read> {
        loop {
            match rustix::io::read(&self.pipe, &mut *into) {
                Ok(0) => return Ok(Read::End),
                Ok(count) if self.is_over() && !self.takes_from_rest(count) => {
                    return Ok(Read::Stopped);
                }
                Ok(count) => return Ok(Read::Bytes(count)),
                Err(Errno::AGAIN) => {
                    if !self.wait(PollFlags::IN)? {
                        return Ok(Read::Stopped);
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether one is to stop.
    fn is_over(&self) -> bool {
        self.stop.is_stopped() || self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    fn takes_from_rest(&self, count: usize) -> bool {
        let take = |rest: usize| rest.checked_sub(count);
        self.rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// If the system says so.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<Written> {
        while !bytes.is_empty() {
            match rustix::io::write(&self.pipe, bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::AGAIN) => {
                    if !self.wait(PollFlags::OUT)? {
                        return Ok(Written::Stopped);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::PIPE) => return Ok(Written::Closed),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Written::All)
    }

    /// Waits until something can be done; false if one is to stop.
    fn wait(&self, what: PollFlags) -> io::Result<bool> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
        let timeout = left.map(timespec);
        let waits = self.stop.waits.as_fd();
        let mut ends =
            [PollFd::new(&self.pipe, what), PollFd::from_borrowed_fd(waits, PollFlags::IN)];
        match poll(&mut ends, timeout.as_ref()) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [pipe, stop] = &ends;
        // What is there is still read when both have something to say.
        Ok(!pipe.revents().is_empty() || stop.revents().is_empty())
    }
}

pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> (OwnedFd, OwnedFd) {
        rustix::pipe::pipe().unwrap()
    }

    #[test]
    fn what_is_written_is_read_and_closed_is_seen() {
        let stop = Stop::new().unwrap();
        let (out, into) = pipe();
        let (out, into) = (Wire::new(out, stop.clone()).unwrap(), Wire::new(into, stop).unwrap());
        let mut buffer = [0; 10];
        assert_eq!(into.write_all(b"abc").unwrap(), Written::All);
        assert_eq!(out.read(&mut buffer).unwrap(), Read::Bytes(3));
        drop(into);
        assert_eq!(out.read(&mut buffer).unwrap(), Read::End);
        let (out, into) = pipe();
        let into = Wire::new(into, Stop::new().unwrap()).unwrap();
        drop(out);
        assert_eq!(into.write_all(b"abc").unwrap(), Written::Closed);
    }

    #[test]
    fn who_writes_without_a_pause_is_stopped() {
        let stop = Stop::new().unwrap();
        let (out, into) = pipe();
        let (out, into) = (Wire::new(out, stop.clone()).unwrap(), Wire::new(into, stop.clone()));
        let into = into.unwrap();
        let writer =
            std::thread::spawn(
                move || {
                    while into.write_all(&[0; 4096]).unwrap() == Written::All {}
                },
            );
        let mut buffer = [0; 1 << 16];
        assert!(matches!(out.read(&mut buffer).unwrap(), Read::Bytes(_)));
        stop.stop();
        let mut rest = 0;
        while let Read::Bytes(count) = out.read(&mut buffer).unwrap() {
            rest += count;
        }
        assert!(rest <= REST_BYTES, "{rest}");
        drop(out);
        writer.join().unwrap();
    }

    #[test]
    fn who_waits_can_be_stopped() {
        let stop = Stop::new().unwrap();
        let (out, into) = pipe();
        let mut out = Wire::new(out, stop.clone()).unwrap();
        out.until(Instant::now() + Duration::from_millis(1));
        assert_eq!(out.read(&mut [0; 1]).unwrap(), Read::Stopped, "the time is over");
        let into = Wire::new(into, stop.clone()).unwrap();
        let writer = std::thread::spawn(move || into.write_all(&vec![0; 4 << 20]).unwrap());
        stop.stop();
        assert_eq!(writer.join().unwrap(), Written::Stopped);
    }
}
