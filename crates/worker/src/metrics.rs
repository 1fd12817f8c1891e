//! Counters of one worker, readable at any time from any thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// The live counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) received: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) thrown: AtomicU64,
    pub(crate) released: AtomicU64,
    pub(crate) panicked: AtomicU64,
    pub(crate) answered: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) heartbeats: AtomicU64,
    pub(crate) stops: AtomicU64,
    pub(crate) notes_dropped: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_lost: AtomicU64,
}

/// The counters at one moment, since the worker was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metrics {
    /// Jobs received.
    pub received: u64,
    /// Jobs whose handler succeeded.
    pub completed: u64,
    /// Jobs whose handler failed, panics included.
    pub failed: u64,
    /// Jobs that ended with an error of their domain.
    pub thrown: u64,
    /// Jobs put back.
    pub released: u64,
    /// Handlers that panicked.
    pub panicked: u64,
    /// Results (progress and log too) that the server made durable or refused.
    pub answered: u64,
    /// Results that the server refused, for instance because the lease was lost.
    pub refused: u64,
    /// Leases extended by heartbeat.
    pub heartbeats: u64,
    /// Jobs that the server asked to stop.
    pub stops: u64,
    /// Progress and log results dropped because the server was away for long.
    pub notes_dropped: u64,
    /// Streams opened.
    pub connections: u64,
    /// Streams that broke.
    pub connections_lost: u64,
    /// Jobs in the hands of the handler now.
    pub in_flight: usize,
}

pub(crate) fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn read(&self, in_flight: usize) -> Metrics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Metrics {
            received: read(&self.received),
            completed: read(&self.completed),
            failed: read(&self.failed),
            thrown: read(&self.thrown),
            released: read(&self.released),
            panicked: read(&self.panicked),
            answered: read(&self.answered),
            refused: read(&self.refused),
            heartbeats: read(&self.heartbeats),
            stops: read(&self.stops),
            notes_dropped: read(&self.notes_dropped),
            connections: read(&self.connections),
            connections_lost: read(&self.connections_lost),
            in_flight,
        }
    }
}
