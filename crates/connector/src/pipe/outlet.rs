//! What the pump writes to the destination: runs of lines that are as they came go out from where they
//! stand, in one piece; what was changed, and small runs, are gathered first.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::process::wire::{Wire, Written};

/// A run of so much is written from where it stands.
const DIRECT_BYTES_MIN: usize = 32 << 10;
/// So much is gathered at most.
const GATHER_BYTES_MAX: usize = 256 << 10;

/// When something happened, for somebody who watches from another thread.
#[derive(Debug)]
pub struct Beat {
    began: Instant,
    /// Milliseconds since `began`, plus one; 0 for never.
    ms: AtomicU64,
}

impl Default for Beat {
    fn default() -> Self {
        Self { began: Instant::now(), ms: AtomicU64::new(0) }
    }
}

impl Beat {
    /// It happens now.
    pub fn now(&self) {
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.ms.store(ms + 1, Ordering::Relaxed);
    }

    /// It does not happen any more.
    pub fn clear(&self) {
        self.ms.store(0, Ordering::Relaxed);
    }

    /// How long ago it was, in milliseconds; `None` for never.
    #[must_use]
    pub fn age_ms(&self) -> Option<u64> {
        let ms = self.ms.load(Ordering::Relaxed).checked_sub(1)?;
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(now.saturating_sub(ms))
    }
}

/// The way to the destination's input.
#[derive(Debug)]
pub struct Outlet<'a> {
    wire: Wire,
    gathered: Vec<u8>,
    run: Range<usize>,
    /// Since when a write waits.
    writing: &'a Beat,
    /// What came of a write that did not write all; nothing is written behind it.
    end: Option<Written>,
}

impl<'a> Outlet<'a> {
    /// Nothing is written yet. `writing` says since when a write waits.
    #[must_use]
    pub fn new(wire: Wire, writing: &'a Beat) -> Self {
        Self { wire, gathered: Vec::new(), run: 0..0, writing, end: None }
    }

    /// A part of `buffer` goes out as it is; the buffer stays until [`settle`](Self::settle).
    pub fn keep(&mut self, buffer: &[u8], part: Range<usize>) {
        if self.run.end == part.start && !self.run.is_empty() {
            self.run.end = part.end;
        } else {
            self.settle(buffer);
            self.run = part;
        }
    }

    /// Whether the last thing that goes out ends here in the buffer.
    #[must_use]
    pub fn keeps_to(&self, end: usize) -> bool {
        !self.run.is_empty() && self.run.end == end
    }

    /// Something else goes out behind it.
    pub fn put(&mut self, buffer: &[u8], pieces: &[&[u8]]) {
        self.settle(buffer);
        for piece in pieces {
            self.gathered.extend_from_slice(piece);
        }
        if self.gathered.len() >= GATHER_BYTES_MAX {
            self.flush();
        }
    }

    /// From here on the buffer is not needed.
    pub fn settle(&mut self, buffer: &[u8]) {
        let run = std::mem::replace(&mut self.run, 0..0);
        let run = buffer.get(run).unwrap_or_default();
        if run.len() >= DIRECT_BYTES_MIN {
            self.flush();
            self.write(run);
        } else {
            self.gathered.extend_from_slice(run);
            if self.gathered.len() >= GATHER_BYTES_MAX {
                self.flush();
            }
        }
    }

    /// What was gathered goes out.
    pub fn flush(&mut self) {
        let mut gathered = std::mem::take(&mut self.gathered);
        self.write(&gathered);
        gathered.clear();
        // A long line leaves no large buffer behind.
        gathered.shrink_to(2 * GATHER_BYTES_MAX);
        self.gathered = gathered;
    }

    /// What came of it so far, if not all could be written.
    #[must_use]
    pub fn end(&self) -> Option<Written> {
        self.end
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.end.is_some() || bytes.is_empty() {
            return;
        }
        self.writing.now();
        self.end = match self.wire.write_all(bytes) {
            Ok(Written::All) => None,
            Ok(other) => Some(other),
            // A pipe has no other way to fail than that nobody reads.
            Err(_) => Some(Written::Closed),
        };
        self.writing.clear();
    }
}
